"""The style of all figures: one palette, one set of sizes."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, ParamSpec, TypeVar

from matplotlib import rc_context

P = ParamSpec("P")
R = TypeVar("R")

# The colours of Okabe and Ito, distinguishable with every kind of colour vision, strongest first.
PALETTE = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
INK = "#222222"
FAINT = "#B8B8B8"  # data points, unused models, guides

# Any, because matplotlib's types name every setting, and the names differ between releases.
STYLE: Any = {
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
    """The colour of a domain, or of the context that matches it; `INK` for -1, no domain.

    Examples
    --------
    >>> color_of(0), color_of(-1)
    ('#0072B2', '#222222')
    """
    return PALETTE[domain % len(PALETTE)] if domain >= 0 else INK


def styled(draw: Callable[P, R]) -> Callable[P, R]:
    """Make a function draw in the style of the library, without changing matplotlib's settings.

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
