"""How every picture of the library looks: one palette, one set of sizes."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, ParamSpec, TypeVar

from matplotlib import rc_context

P = ParamSpec("P")
R = TypeVar("R")

# Okabe and Ito's colours, which people with any kind of colour vision can tell apart, the strongest ones first.
PALETTE = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
INK = "#222222"
FAINT = "#B8B8B8"  # data points, leftovers, guides

STYLE: Any = {  # matplotlib types its settings by the name of each, which differ from release to release
    "font.size": 14,
    "axes.titlesize": 16,
    "axes.titlelocation": "left",
    "axes.titlepad": 10,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.edgecolor": INK,
    "text.color": INK,
    "lines.linewidth": 2.4,
    "figure.constrained_layout.h_pad": 0.12,
    "figure.constrained_layout.w_pad": 0.12,
    "legend.frameon": False,
    "figure.facecolor": "white",
    "figure.dpi": 130,
}


def color_of(domain: int) -> str:
    """The colour of the domain of that index, or of a context that stands for it; ink for -1, which stands for none.

    Examples
    --------
    >>> color_of(0), color_of(-1)
    ('#0072B2', '#222222')
    """
    return PALETTE[domain % len(PALETTE)] if domain >= 0 else INK


def styled(draw: Callable[P, R]) -> Callable[P, R]:
    """Make a function that draws use the library's style, and leave matplotlib's settings as they were.

    Examples
    --------
    >>> import matplotlib
    >>> styled(lambda: matplotlib.rcParams["font.size"])()
    14.0
    """

    @wraps(draw)
    def drawn(*args: P.args, **kwargs: P.kwargs) -> R:
        with rc_context(STYLE):
            return draw(*args, **kwargs)

    return drawn
