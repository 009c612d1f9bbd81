"""A custom data set in one file: one shop sorts wines by grower, another one by strength.

python examples/own_dataset.py
"""

import numpy as np
import torch
from sklearn.datasets import load_wine
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler

from leaflearn import LeafClassifier
from leaflearn.benchmark.datasets import DATASETS, register
from leaflearn.benchmark.datasets.domains import Domain, DomainSet
from leaflearn.benchmark.datasets.sampling import sample_groups
from leaflearn.benchmark.datasets.sources import Examples
from leaflearn.benchmark.evaluation import allocation_agreement

CLASSES = ("grower 1", "grower 2", "grower 3", "light", "strong")  # one label space for both shops


@register("wines")
def wines() -> DomainSet:
    """Wines (13 measurements), sorted by grower or by strength."""
    x, grower = load_wine(return_X_y=True)
    strength = 3 + (x[:, 0] > 13.0)  # percent of alcohol
    # The split belongs to the data set, so its seed is fixed.
    train, test = train_test_split(
        np.arange(len(x)), test_size=0.3, stratify=grower, random_state=0
    )
    x = StandardScaler().fit(x[train]).transform(x)
    train_x, test_x = x[train], x[test]  # one array for both domains: they label the same wines
    labels = {"grower": grower, "strength": strength}
    domains = tuple(
        Domain(name, Examples(train_x, y[train]), Examples(test_x, y[test]))
        for name, y in labels.items()
    )
    return DomainSet("wines", domains, n_groups=200, group_size=4, classes=CLASSES)


torch.set_num_threads(1)
data = DATASETS["wines"]()
(x, y, groups), truth = sample_groups(data, random_state=0)
leaf = LeafClassifier(n_contexts=2, random_state=0).fit(x, y, groups=groups)
agreement = allocation_agreement(leaf.contexts_, truth.domain)
print(f"{data.names}: {agreement:.0%} of the groups are in the right context")
