"""A torch DataLoader whose batches are (images, labels, annotators).

python examples/with_data_loader.py

Annotators sort digits into two classes. Some sort by even and odd, some by small and large, and
the data do not say which. Fit, predict batch by batch, and update the model with later batches.
"""

import numpy as np
import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from leaflearn import LeafClassifier

torch.set_num_threads(1)  # several threads slow down networks as small as these

# Any data set of (x, y, group) will do: here images (1, 8, 8), labels 0 and 1, and annotators.
images, digit = (column[:900] for column in load_digits(return_X_y=True))
images = torch.tensor(images, dtype=torch.float32).reshape(-1, 1, 8, 8) / 16
annotator = torch.arange(len(digit)) // 30  # thirty images each
by_size = np.random.default_rng(0).random(len(annotator.unique())) < 0.4  # the hidden context
label = torch.tensor(np.where(by_size[annotator], digit >= 5, digit % 2))
everything = TensorDataset(images, label, annotator)
generator = torch.Generator().manual_seed(0)
known, later = torch.utils.data.random_split(everything, [700, 200], generator)


def small_network(input_shape, n_outputs):
    """The factory of the local models: it makes a network for every context."""
    n_pixels = int(np.prod(input_shape))
    return nn.Sequential(nn.Flatten(), nn.Linear(n_pixels, 64), nn.ReLU(), nn.Linear(64, n_outputs))


# 1. Fit. The loader may shuffle: `groups` says which rows belong together. All batches are joined,
#    because the context of a group depends on all of its rows.
batches = DataLoader(known, batch_size=128, shuffle=True)
x, y, group = (torch.cat(column) for column in zip(*batches, strict=True))
#    A hundred epochs are enough for an example; without `max_epochs` the networks train longer.
leaf = LeafClassifier(n_contexts=2, local_model=small_network, max_epochs=100, random_state=0)
leaf.fit(x, y, groups=group)

# 2. Predict batch by batch, in the contexts of the annotators.
batches = DataLoader(later, batch_size=128)
wrong = sum((leaf.predict(x, groups=group) != y.numpy()).sum() for x, y, group in batches)
print(f"{wrong} of {len(later)} predictions for later images are wrong")

# 3. Update the model with later batches. Rows of known annotators are added to their groups; a new
#    annotator joins the context that explains it, or opens a new one. Use batches of a few
#    hundred rows.
for x, y, group in DataLoader(later, batch_size=200):
    leaf.partial_fit(x, y, groups=group)
right = (leaf.contexts_ == leaf.contexts_[by_size.argmax()]) == by_size[leaf.groups_]
print(f"{right.mean():.0%} of the annotators are with those who sort as they do")
