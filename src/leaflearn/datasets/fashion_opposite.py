"""Fashion, opposite answers: would he like it, would she? What one finds positive, the other finds negative."""

from __future__ import annotations

import numpy as np

from leaflearn.data.domains import Domain, DomainSet
from leaflearn.data.sources import Array, Examples, Pictures
from leaflearn.datasets.fashion_pictures import FASHION, HEIGHT, Catalogue, load_catalogue
from leaflearn.datasets.registry import register

CLASSES = ("negative", "positive")
SEED = 0  # of who is asked about which picture, which is part of the data


@register("fashion-opposite", files=FASHION)
def fashion_opposite(height: int = HEIGHT) -> DomainSet:
    """Product pictures (3, 80, 60), liked or disliked by a man or by a woman.

    Half of the pictures for men and half of those for women, drawn at random, are shown to him, who likes what is for men; the rest to
    her, who likes what is for women. So each picture belongs to one domain only, in the test part too. There are 15,000 training and 2,464
    test pictures; by default 750 groups of 20 are drawn, one epoch of the paper's fifty.

    Parameters
    ----------
    height
        Scale the pictures down to this many rows; see `load_catalogue`.

    Examples
    --------
    >>> domains = fashion_opposite()
    >>> domains.names, domains.classes, [len(domain.train) for domain in domains]
    (('male', 'female'), ('negative', 'positive'), [7501, 7499])
    """
    generator = np.random.default_rng(SEED)
    parts = [_ask(catalogue, generator) for catalogue in load_catalogue(height)]
    domains = tuple(Domain(name, train=train, test=test) for name, train, test in zip(("male", "female"), *parts, strict=True))
    return DomainSet("fashion-opposite", domains, n_groups=750, group_size=20, classes=CLASSES)


def _ask(catalogue: Catalogue, generator: np.random.Generator) -> list[Examples]:
    """Show half of the pictures of each gender to him and the rest to her, and take down what they say."""
    for_women = catalogue.values[:, 0]  # 1 where the product is for women              (N,)
    asked = np.empty(len(for_women), dtype=np.int64)  # 0 for him, 1 for her             (N,)
    for gender in (0, 1):
        rows = generator.permutation(np.flatnonzero(for_women == gender))
        asked[rows] = np.arange(len(rows)) % 2
    return [_table(catalogue.pictures, np.flatnonzero(asked == person), for_women == person) for person in (0, 1)]


def _table(pictures: Array, rows: Array, likes: Array) -> Examples:
    return Examples(Pictures(pictures[rows]), likes[rows].astype(np.int64))
