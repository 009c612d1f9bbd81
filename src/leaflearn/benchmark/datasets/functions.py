"""Three functions in one cloud of points: the paper's regression task (Appendix D.1).

A single model can only learn their average.
"""

from __future__ import annotations

import numpy as np

from leaflearn.benchmark.datasets.domains import Domain, DomainSet
from leaflearn.benchmark.datasets.registry import register
from leaflearn.benchmark.datasets.sources import Array, Function

LOW, HIGH = -2.0, 2.0
NOISE = 0.01  # standard deviation
N_TEST = 401  # test points per function, on a grid


def absolute(x: Array) -> Array:
    """Absolute value: 2 |x| - 2.

    Examples
    --------
    >>> absolute(np.array([-2.0, 0.0, 1.0]))
    array([ 2., -2.,  0.])
    """
    return 2.0 * np.abs(x) - 2.0


def sine(x: Array) -> Array:
    """Sine: 2 sin(3x + pi/2).

    Examples
    --------
    >>> sine(np.array([0.0]))
    array([2.])
    """
    return 2.0 * np.sin(3.0 * x + np.pi / 2.0)


def logarithm(x: Array) -> Array:
    """Logarithm: 3/2 log(5/2 - x) - 1, natural.

    Examples
    --------
    >>> logarithm(np.array([1.5]))
    array([-1.])
    """
    return 1.5 * np.log(2.5 - x) - 1.0


@register("functions")
def functions() -> DomainSet:
    """Three functions of one number, in one cloud of points.

    x is uniform between -2 and 2, and y has noise with standard deviation 0.01. The default sample
    has 250 groups of 2 points.

    Examples
    --------
    >>> domains = functions()
    >>> domains.names, domains.n_groups, domains.group_size
    (('absolute', 'sine', 'logarithm'), 250, 2)
    """
    sources = {
        target.__name__: Function(target, LOW, HIGH, NOISE)
        for target in (absolute, sine, logarithm)
    }
    domains = tuple(
        Domain(name, train=source, test=source.grid(N_TEST)) for name, source in sources.items()
    )
    return DomainSet("functions", domains, n_groups=250, group_size=2)
