"""The data of many tasks side by side, in the colours of the contexts that were found.

A colour stands for a domain, and for the context that came to stand for it. Functions of one number are curves with the data around them.
Points of the plane with two labels are filled or hollow, contexts side by side. Pictures have their labels beneath, a row of them for each
context. Of linear functions of many numbers, each row is drawn against what its context's own function says: rows whose group is in the
right context lie on a line.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from textwrap import fill
from typing import Any

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import to_hex
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from leaflearn.benchmark.datasets.domains import DomainSet
from leaflearn.benchmark.datasets.sampling import GroupedSample
from leaflearn.benchmark.datasets.sources import Array
from leaflearn.plot.style import FAINT, INK, PALETTE, styled

WIDTH, HEIGHT, SMALL, LETTERS = (
    4.2,
    3.3,
    12,
    11,
)  # inches of a panel; size of small letters, and how many of them to an inch
N_ACROSS, N_DOWN = 4, 2  # pictures in a panel
N_DOTS = 1200  # points of a cloud
CAPTION = "A colour stands for the context that a group was found to be in; black for one that stands for no domain; grey: not fitted."


@dataclass(frozen=True, eq=False)
class TaskPicture:
    """A task's data, and what was found in it.

    Parameters
    ----------
    name, words
        What stands above, and in small letters below it.
    data, sample
        The domains, and the rows that were drawn from them.
    found
        The domain that the context of each group stands for, -1 for none, shape (m,); None where nothing was fitted.

    Examples
    --------
    >>> from leaflearn.benchmark.datasets.sampling import sample_groups
    >>> from leaflearn.benchmark.datasets import DATASETS
    >>> data = DATASETS["functions"]()
    >>> TaskPicture("functions", "as drawn", data, sample_groups(data, n_groups=5, random_state=0)[0]).colors.shape
    (10,)
    """

    name: str
    words: str
    data: DomainSet
    sample: GroupedSample
    found: Array | None = None

    @property
    def colors(self) -> Array:
        """The colour of every row, shape (N,)."""
        if self.found is None:
            return np.full(len(self.sample.groups), FAINT)
        palette = np.array([*_palette(len(self.data)), INK])  # -1 is the last
        return np.asarray(palette[self.found[self.sample.groups]])


@styled
def plot_tasks(pictures: Sequence[TaskPicture], n_columns: int = 4) -> Figure:
    """Draw a small picture of each task.

    Examples
    --------
    >>> from leaflearn.benchmark.datasets.sampling import sample_groups
    >>> from leaflearn.benchmark.datasets import DATASETS
    >>> data = DATASETS["colored-digits"]()
    >>> sample, truth = sample_groups(data, n_groups=20, random_state=0)
    >>> figure = plot_tasks([TaskPicture("digits", "told the truth", data, sample, truth.domain)])
    >>> figure.axes[0].get_title(loc="left")
    'digits'
    """
    n_columns = min(n_columns, len(pictures))
    n_rows = -(-len(pictures) // n_columns)
    width = max(WIDTH * n_columns, 2 * WIDTH)
    kinds = dict.fromkeys(_kind_of(picture.data) for picture in pictures)
    lines = fill(" ".join([CAPTION, *(KINDS[kind][1] for kind in kinds)]), int(LETTERS * width))
    figure = Figure(
        figsize=(width, HEIGHT * n_rows + 0.3 + 0.22 * len(lines.splitlines())),
        layout="constrained",
    )
    grid = figure.subplots(n_rows, n_columns, squeeze=False)
    for axes, picture in zip(grid.flat, pictures, strict=False):
        KINDS[_kind_of(picture.data)][0](axes, picture)
        axes.set_title(picture.name, pad=26)
        axes.text(0, 1.04, picture.words, transform=axes.transAxes, fontsize=SMALL, in_layout=False)
    for axes in grid.flat[len(pictures) :]:
        axes.remove()
    figure.supxlabel(lines, fontsize=SMALL, x=0.01, ha="left")
    return figure


def _palette(n: int) -> list[str]:
    if n <= len(PALETTE):
        return list(PALETTE[:n])
    return [to_hex(color) for color in matplotlib.colormaps["turbo"](np.linspace(0.05, 0.95, n))]


def _kind_of(data: DomainSet) -> str:
    if data.classes is None:
        return "curves" if data.input_shape == (1,) else "many inputs"
    return "pictures" if len(data.input_shape) == 3 else "two labels"


def _draw_curves(axes: Axes, picture: TaskPicture) -> None:
    for domain, color in zip(picture.data, _palette(len(picture.data)), strict=True):
        order = np.argsort(domain.test.x[:, 0])
        axes.plot(
            domain.test.x[order, 0], domain.test.y[order], color=color, linewidth=0.9, zorder=1
        )
    axes.scatter(
        picture.sample.x[:, 0],
        picture.sample.y,
        s=20,
        c=picture.colors,
        alpha=0.6,
        linewidths=0,
        zorder=2,
    )
    axes.xaxis.set_major_locator(MaxNLocator(5, integer=True))
    axes.yaxis.set_major_locator(MaxNLocator(4))
    axes.tick_params(labelsize=SMALL)


def _draw_against_own(axes: Axes, picture: TaskPicture) -> None:
    """Each row's answer against what the function of its context says, contexts beside each other."""
    x = _flatten(picture.sample.x)
    own = _own_domains(picture)
    says = np.stack(
        [x @ np.linalg.lstsq(_flatten(d.test.x), d.test.y, rcond=None)[0] for d in picture.data],
        axis=1,
    )
    place = says[np.arange(len(x)), own] + 0.8 * np.ptp(picture.sample.y) * own
    axes.scatter(place, picture.sample.y, s=8, c=picture.colors, alpha=0.4, linewidths=0)
    axes.set(xticks=[], yticks=[])


def _draw_sides(axes: Axes, picture: TaskPicture) -> None:
    """The clouds of the contexts beside each other; labels are filled or hollow."""
    x, filled, colors = (
        _flatten(picture.sample.x)[:N_DOTS],
        picture.sample.y[:N_DOTS] > 0,
        picture.colors[:N_DOTS],
    )
    across, up = x[:, 0] + 1.05 * np.ptp(x[:, 0]) * _own_domains(picture)[:N_DOTS], x[:, -1]
    axes.scatter(across[filled], up[filled], s=14, c=colors[filled], linewidths=0)
    axes.scatter(
        across[~filled],
        up[~filled],
        s=12,
        facecolors="none",
        edgecolors=list(colors[~filled]),
        linewidths=0.8,
    )
    axes.set(xticks=[], yticks=[])


def _own_domains(picture: TaskPicture) -> Array:
    """The domain that the context of each row stands for, -1 for none; 0 where nothing was fitted, (N,)."""
    groups = picture.sample.groups
    return (
        np.zeros(len(groups), dtype=int)
        if picture.found is None
        else np.asarray(picture.found[groups])
    )


def _draw_pictures(axes: Axes, picture: TaskPicture) -> None:
    """Rows of training pictures, each with its label in the colour of its group's context."""
    classes = picture.data.classes or ()
    for place, row in enumerate(_choose_pictures(picture)):
        down, across = divmod(place, N_ACROSS)
        left, top = 1.15 * across, 1.5 * down
        image = np.asarray(picture.sample.x[row : row + 1])[0].transpose(
            1, 2, 0
        )  #            (height, width, channels)
        axes.imshow(
            image,
            extent=(left, left + 1, top + 1, top),
            cmap="gray",
            vmin=0.0,
            vmax=1.0,
            interpolation="nearest",
        )
        label, color = classes[picture.sample.y[row]], picture.colors[row]
        axes.text(
            left + 0.5,
            top + 1.08,
            label,
            color=color,
            ha="center",
            va="top",
            fontsize=SMALL,
            weight="bold",
            parse_math=False,
        )
    axes.set(xlim=(-0.05, 1.15 * N_ACROSS - 0.1), ylim=(1.5 * N_DOWN, -0.05))
    axes.axis("off")


def _choose_pictures(picture: TaskPicture) -> Array:
    """The first rows of the first groups of each context, as many as there is room for."""
    first = np.unique(picture.sample.groups, return_index=True)[
        1
    ]  # the first row of each group                   (m,)
    own = _own_domains(picture)[first]
    n_each = N_ACROSS if picture.found is not None else N_ACROSS * N_DOWN
    return np.concatenate([first[own == domain][:n_each] for domain in range(len(picture.data))])[
        : N_ACROSS * N_DOWN
    ]


def _flatten(x: Any) -> Array:
    return np.asarray(x).reshape(len(x), -1)


KINDS: dict[
    str, tuple[Callable[[Axes, TaskPicture], None], str]
] = {  # how to draw it, and what is to be seen
    "curves": (_draw_curves, "Curves: what each domain answers; points: the data."),
    "pictures": (_draw_pictures, "Pictures: beneath each the label that came with it."),
    "two labels": (_draw_sides, "Filled and hollow points: the two labels, contexts side by side."),
    "many inputs": (
        _draw_against_own,
        "Linear functions of many inputs: each answer, upwards, against what the function of its context says; contexts side by side.",
    ),
}
