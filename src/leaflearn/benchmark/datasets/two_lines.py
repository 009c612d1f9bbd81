"""Two crossing lines, from the paper's last appendix.

Single points cannot show which line is which; pairs of points can.
"""

from __future__ import annotations

from leaflearn.benchmark.datasets.domains import Domain, DomainSet
from leaflearn.benchmark.datasets.registry import register
from leaflearn.benchmark.datasets.sources import Array, Function

N_TEST = 201  # test points per line, on a grid


def rising(x: Array) -> Array:
    """The line y = x.

    Examples
    --------
    >>> rising(0.25)
    0.25
    """
    return x


def falling(x: Array) -> Array:
    """The line y = 1 - x.

    Examples
    --------
    >>> falling(0.25)
    0.75
    """
    return 1.0 - x


@register("two-lines")
def two_lines() -> DomainSet:
    """Two lines that cross, y = x and y = 1 - x.

    x is uniform between 0 and 1, and y has no noise. The cross is also a V and its mirror image;
    groups of one point cannot distinguish the two interpretations. The default sample has 250
    groups of two.

    Examples
    --------
    >>> two_lines().names
    ('rising', 'falling')
    """
    sources = {target.__name__: Function(target, low=0.0, high=1.0) for target in (rising, falling)}
    domains = tuple(
        Domain(name, train=source, test=source.grid(N_TEST)) for name, source in sources.items()
    )
    return DomainSet("two-lines", domains, n_groups=250, group_size=2)
