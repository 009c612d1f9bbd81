"""Fashion, parallel answers: who is it for, what is it, which colour has it? Three attributes of one image, asked for at random."""

from __future__ import annotations

from leaflearn.benchmark.datasets.domains import Domain, DomainSet
from leaflearn.benchmark.datasets.fashion_images import ATTRIBUTES, FASHION, HEIGHT, load_catalogue
from leaflearn.benchmark.datasets.registry import register
from leaflearn.benchmark.datasets.sources import Examples, Images


@register("fashion-parallel", files=FASHION)
def fashion_parallel(height: int = HEIGHT) -> DomainSet:
    """Product images (3, 80, 60) called by gender, category or colour.

    15,000 training and 2,464 test images, eight labels. By default 15,000 groups of one are drawn, one epoch of the paper's fifty.

    Parameters
    ----------
    height
        Scale the images down to this many rows; see `load_catalogue`.

    Examples
    --------
    >>> domains = fashion_parallel()
    >>> domains.names, domains.input_shape
    (('gender', 'category', 'color'), (3, 80, 60))
    >>> [domains.classes[domain.test.y[0]] for domain in domains]
    ['female', 'footwear', 'black']
    """
    (train_x, train_values), (test_x, test_values) = load_catalogue(height)
    train, test = (
        Images(train_x),
        Images(test_x),
    )  # one of each for all domains: they answer the same images
    domains: list[Domain] = []
    classes: list[str] = []
    for d, (name, (_, values)) in enumerate(ATTRIBUTES.items()):
        first = len(classes)  # each domain's labels follow those of the one before
        domains.append(
            Domain(
                name,
                train=Examples(train, first + train_values[:, d]),
                test=Examples(test, first + test_values[:, d]),
            )
        )
        classes += values.values()
    return DomainSet(
        "fashion-parallel", tuple(domains), n_groups=15_000, group_size=1, classes=tuple(classes)
    )
