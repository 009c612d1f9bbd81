"""Fashion, opposite answers: would he like it, would she? What one finds positive, the other finds negative."""

from __future__ import annotations

import numpy as np

from leaflearn.benchmark.datasets.domains import Domain, DomainSet
from leaflearn.benchmark.datasets.fashion_images import FASHION, HEIGHT, Catalogue, load_catalogue
from leaflearn.benchmark.datasets.registry import register
from leaflearn.benchmark.datasets.sources import Array, Examples, Images

CLASSES = ("negative", "positive")
SEED = 0  # of who is asked about which image, which is part of the data


@register("fashion-opposite", files=FASHION)
def fashion_opposite(height: int = HEIGHT) -> DomainSet:
    """Product images (3, 80, 60), liked or disliked by a man or by a woman.

    Half of the images for men and half of those for women, drawn at random, are shown to him, who likes what is for men; the rest to
    her, who likes what is for women. So each of the 15,000 training images belongs to one domain only. Both are tested on all 2,464 test
    images: the paper's errors of a single model, 49.50 and 50.50 %, add up to 100, as they do on the same images. By default 750 groups
    of 20 are drawn, one epoch of the paper's fifty.

    Parameters
    ----------
    height
        Scale the images down to this many rows; see `load_catalogue`.

    Examples
    --------
    >>> domains = fashion_opposite()
    >>> domains.names, domains.classes, [len(domain.train) for domain in domains]
    (('male', 'female'), ('negative', 'positive'), [7501, 7499])
    >>> [len(domain.test) for domain in domains]
    [2464, 2464]
    """
    train, test = load_catalogue(height)
    asked = _ask(train, np.random.default_rng(SEED))
    domains = tuple(
        Domain(
            name,
            train=_answers(train, np.flatnonzero(asked == person), person),
            test=_answers(test, np.arange(len(test.values)), person),
        )
        for person, name in enumerate(("male", "female"))
    )
    return DomainSet("fashion-opposite", domains, n_groups=750, group_size=20, classes=CLASSES)


def _ask(catalogue: Catalogue, generator: np.random.Generator) -> Array:
    """Who is shown each image, 0 for him and 1 for her, (N,): half of the images of each gender go to either."""
    for_women = catalogue.values[:, 0]  # 1 where the product is for women              (N,)
    asked = np.empty(len(for_women), dtype=np.int64)
    for gender in (0, 1):
        rows = generator.permutation(np.flatnonzero(for_women == gender))
        asked[rows] = np.arange(len(rows)) % 2
    return asked


def _answers(catalogue: Catalogue, rows: Array, person: int) -> Examples:
    """What he or she says of these images."""
    likes = catalogue.values[rows, 0] == person
    return Examples(Images(catalogue.images[rows]), likes.astype(np.int64))
