"""A torch DataLoader whose batches are (pictures, labels, annotators): fit, ask batch by batch, and learn on from later batches.

python examples/with_data_loader.py

Annotators sort digits in two. Some go by even and odd, some by small and large, and nobody wrote down who.
"""

import numpy as np
import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from leaflearn import LeafClassifier

torch.set_num_threads(1)  # networks this small lose more by talking between threads than they win

# Any data set will do whose items are (x, y, group). This one stands for yours: pictures (1, 8, 8), labels 0 and 1, numbers of annotators.
pictures, digit = (column[:900] for column in load_digits(return_X_y=True))
pictures = torch.tensor(pictures, dtype=torch.float32).reshape(-1, 1, 8, 8) / 16
annotator = torch.arange(len(digit)) // 30  # thirty pictures each
by_size = (
    np.random.default_rng(0).random(len(annotator.unique())) < 0.4
)  # the hidden context, for the last line only
label = torch.tensor(np.where(by_size[annotator], digit >= 5, digit % 2))
everything = TensorDataset(pictures, label, annotator)
known, later = torch.utils.data.random_split(
    everything, [700, 200], torch.Generator().manual_seed(0)
)


def small_network(input_shape, n_outputs):
    """A local model: every context gets a network of its own from this function."""
    return nn.Sequential(
        nn.Flatten(), nn.Linear(int(np.prod(input_shape)), 64), nn.ReLU(), nn.Linear(64, n_outputs)
    )


# 1. Fit. The loader may shuffle, and a batch may hold rows of many annotators: `groups` says which rows belong together, wherever they are.
#    All batches become one tensor each, because the context of a group is chosen by all of its rows; small pictures are no burden.
x, y, group = (
    torch.cat(column)
    for column in zip(*DataLoader(known, batch_size=128, shuffle=True), strict=True)
)
#    A hundred epochs do for an example; without `max_epochs` it learns longer and answers better.
leaf = LeafClassifier(n_contexts=2, local_model=small_network, max_epochs=100, random_state=0).fit(
    x, y, groups=group
)

# 2. Ask batch by batch: annotators that are known answer in their contexts.
wrong = sum(
    (leaf.predict(x, groups=group) != y.numpy()).sum()
    for x, y, group in DataLoader(later, batch_size=128)
)
print(f"{wrong} of {len(later)} later pictures are answered wrongly")

# 3. Learn on from what comes later, a batch at a time, without fitting anew. More rows of a known annotator join those it has;
#    a new annotator is put into the context that explains it, or opens another one. Batches should be large here: a few hundred rows.
for x, y, group in DataLoader(later, batch_size=200):
    leaf.partial_fit(x, y, groups=group)
right = (leaf.contexts_ == leaf.contexts_[by_size.argmax()]) == by_size[leaf.groups_]
print(f"{right.mean():.0%} of the annotators are with those who sort as they do")
