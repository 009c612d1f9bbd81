"""The figure of a data set: examples with the targets of every domain, which shows their conflict.

Images are shown as a grid with the labels below, functions of one input as curves, and all other
inputs as points in one panel per domain, at the same places and coloured by the target.
"""

from __future__ import annotations

from collections.abc import Sequence, Sized
from textwrap import fill, wrap
from typing import Any, NamedTuple

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine
from numpy.typing import NDArray
from sklearn.decomposition import PCA
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from leaflearn.benchmark.datasets.domains import Domain, DomainSet
from leaflearn.benchmark.datasets.sampling import sample_groups
from leaflearn.benchmark.datasets.sources import Array, Examples
from leaflearn.plot.style import FAINT, INK, color_of, styled

N_COLUMNS, N_ROWS = 6, 4  # of the grid of images
CELL, GAP, MARGIN = 1.75, 0.3, 0.3  # inches: an image, between two images, the edge
LINE, NAME = 0.21, 0.4  # inches: a line of a label, the name of a domain
LETTERS = 18  # of a label in a line below an image
CAPTION = 0.6  # inches for the text below panels
SMALL = 12  # font size of the labels
MAX_SHARP = 32  # images of up to this many pixels are shown with sharp pixels
N_DOTS = 2000  # test examples in a panel
N_NAMED = 10  # largest number of labels that a legend names


class _Shown(NamedTuple):
    """An image, and the labels of domains (by number), broken into lines."""

    image: Array  #                                                     (channels, height, width)
    answers: list[tuple[int, list[str]]]

    @property
    def n_lines(self) -> int:
        """How many lines there are below the image."""
        return sum(len(lines) for _, lines in self.answers)


@styled
def draw_sheet(data: DomainSet, seed: int = 0) -> Figure:
    """Draw examples of the data set with the targets of every domain; the seed selects them.

    Examples
    --------
    >>> from leaflearn.benchmark.datasets import DATASETS
    >>> figure = draw_sheet(DATASETS["colored-digits"]())
    >>> len(figure.axes), [text.get_text() for text in figure.axes[0].texts]
    (24, ['0', 'red'])
    """
    generator = np.random.default_rng(seed)
    if data.classes is not None and len(data.input_shape) == 3 and data.input_shape[0] in (1, 3):
        return _draw_images(data, data.classes, generator)
    if data.classes is None and data.input_shape == (1,) and data.domains[0].test.y.ndim == 1:
        return _draw_curves(data, generator)
    return _draw_clouds(data, generator)


# The heading: the name, and a line for each domain, which is also the legend of its colour


def _head_height(data: DomainSet) -> float:
    return 2 * MARGIN + 0.28 * len(data) + 0.2


def _write_heading(figure: Figure, data: DomainSet) -> None:
    width, height = figure.get_size_inches()
    lines = [
        (data.name, INK, 18),
        *((_describe(domain), color_of(d), 14) for d, domain in enumerate(data)),
    ]
    for i, (text, color, size) in enumerate(lines):
        y = 1 - (MARGIN + 0.28 * i + (0.06 if i else 0)) / height
        figure.text(
            MARGIN / width,
            y,
            text,
            color=color,
            fontsize=size,
            weight="normal" if i else "bold",
            va="top",
            parse_math=False,
        )


def _describe(domain: Domain) -> str:
    n_train = f"{len(domain.train):,}" if isinstance(domain.train, Sized) else "any number of"
    return f"{domain.name}: {n_train} training examples, {len(domain.test):,} test examples"


# Images


def _draw_images(data: DomainSet, classes: Sequence[str], generator: np.random.Generator) -> Figure:
    together = all(domain.test.x is data.domains[0].test.x for domain in data)
    everyone = [*range(len(data))]
    # blocks of domains with the same test examples
    blocks = [everyone] if together else [[domain] for domain in everyone]
    n_rows = max(1, N_ROWS // len(blocks))
    rows = [row for block in blocks for row in _show(data, block, classes, n_rows, generator)]
    image_height = CELL * data.input_shape[1] / data.input_shape[2]  # in inches
    heights = [image_height + LINE * max(shown.n_lines for shown in row) + GAP for row in rows]
    left = MARGIN if together else MARGIN + NAME
    figure = Figure(
        figsize=(left + N_COLUMNS * (CELL + GAP) - GAP + MARGIN, _head_height(data) + sum(heights))
    )
    _write_heading(figure, data)
    for row, below in zip(rows, np.cumsum([0.0, *heights]), strict=False):
        all_axes = [
            _add_axes(figure, left + i * (CELL + GAP), _head_height(data) + below, image_height)
            for i in range(len(row))
        ]
        for axes, shown in zip(all_axes, row, strict=True):
            _draw_shown(axes, shown, image_height)
        if not together:
            domain, _ = row[0].answers[0]
            all_axes[0].set_ylabel(fill(data.names[domain], LETTERS), color=color_of(domain))
    return figure


def _add_axes(figure: Figure, left: float, down: float, height: float) -> Axes:
    """Axes of the width of an image at this place, in inches from the left and from the top."""
    whole_width, whole_height = figure.get_size_inches()
    return figure.add_axes(
        (
            left / whole_width,
            1 - (down + height) / whole_height,
            CELL / whole_width,
            height / whole_height,
        )
    )


def _show(
    data: DomainSet,
    domains: list[int],
    classes: Sequence[str],
    n_rows: int,
    generator: np.random.Generator,
) -> list[list[_Shown]]:
    """Rows of images from the test examples that these domains share."""
    tests = [data.domains[d].test for d in domains]
    y = np.stack([test.y for test in tests], axis=1)  #                         (N, n_domains)
    rows = _choose(y, n_rows * N_COLUMNS, generator)
    shown = [
        _Shown(
            image,
            [(d, wrap(classes[label], LETTERS)) for d, label in zip(domains, labels, strict=True)],
        )
        for image, labels in zip(tests[0].x[rows], y[rows], strict=True)
    ]
    return [shown[start : start + N_COLUMNS] for start in range(0, len(shown), N_COLUMNS)]


def _choose(y: Array, n: int, generator: np.random.Generator) -> NDArray[np.intp]:
    """Choose n rows of the labels (N, n_domains) so that many different labels occur.

    Each row has the labels that were chosen least often so far.
    """
    order = generator.permutation(len(y))  # ties are broken at random
    _, combinations = np.unique(y[order], axis=0, return_inverse=True)
    labels = np.hstack([y[order], combinations.reshape(-1, 1)])  #              (N, n_domains + 1)
    columns = np.arange(labels.shape[1])
    seen = np.zeros((len(columns), int(labels.max()) + 1))
    chosen: list[int] = []
    for _ in range(min(n, len(y))):
        novelty = ((len(columns) + 1.0) ** -seen[columns, labels]).sum(axis=1)  # new labels win
        novelty[chosen] = -1.0
        chosen.append(int(novelty.argmax()))
        seen[columns, labels[chosen[-1]]] += 1
    rows = order[chosen]
    return rows[np.lexsort(y[rows].T[::-1])]  # sorted by the labels of the first domain


def _draw_shown(axes: Axes, shown: _Shown, height: float) -> None:
    is_gray = len(shown.image) == 1
    image = shown.image[0] if is_gray else shown.image.transpose(1, 2, 0)  # (height, width[, 3])
    sharp = "nearest" if max(image.shape[:2]) <= MAX_SHARP else None
    axes.imshow(image, cmap="gray", vmin=0.0, vmax=1.0, interpolation=sharp)
    axes.set(xticks=[], yticks=[])
    axes.spines[:].set(visible=True, color=FAINT, linewidth=0.8)
    line = 0
    for domain, lines in shown.answers:
        place: Any = {
            "transform": axes.transAxes,
            "ha": "center",
            "va": "top",
            "parse_math": False,  # a dollar sign is only a letter
        }
        axes.text(
            0.5,
            -(0.07 + LINE * line) / height,
            "\n".join(lines),
            color=color_of(domain),
            fontsize=SMALL,
            **place,
        )
        line += len(lines)


# Functions of one input


def _draw_curves(data: DomainSet, generator: np.random.Generator) -> Figure:
    figure, grid = _make_panels(data, 1, 1, size=(8.5, 4.5))
    axes = grid[0, 0]
    sample, _ = sample_groups(data, n_groups=250, group_size=2, random_state=generator)
    axes.scatter(sample.x[:, 0], sample.y, s=40, c=FAINT, alpha=0.6, linewidths=0)
    for d, domain in enumerate(data):
        order = np.argsort(domain.test.x[:, 0])
        axes.plot(domain.test.x[order, 0], domain.test.y[order], color=color_of(d), linewidth=1.5)
    axes.set_xlabel("x")
    axes.set_ylabel("y", rotation=0, labelpad=12)
    figure.supxlabel(
        "Lines: test examples. Grey: training examples; their domain is hidden.",
        fontsize=SMALL,
    )
    return figure


# Points


def _draw_clouds(data: DomainSet, generator: np.random.Generator) -> Figure:
    tables = _thin(data, generator)
    places = _project([np.asarray(table.x).reshape(len(table), -1) for table in tables])
    targets = [table.y.reshape(len(table), -1) for table in tables]  #          (n, n_outputs) each
    figure, grid = _make_panels(data, targets[0].shape[1], len(data), size=(4.6, 3.9))
    for output, row in enumerate(grid):
        answers = [target[:, output] for target in targets]
        if data.classes is None:
            _paint_numbers(figure, row, places, answers, f"output {output + 1}")
        else:
            _paint_labels(row, places, answers, data.classes)
    for d, axes in enumerate(grid[0]):
        axes.set_title(fill(data.names[d], 2 * LETTERS), color=color_of(d))
        axes.set(xticks=[], yticks=[])  # only relative places matter
    n_inputs = int(np.prod(data.input_shape))
    words = (
        f"Test examples, placed by the first two principal components of their {n_inputs:,} inputs "
        "and coloured by the target."
    )
    figure.supxlabel(fill(words, 80), fontsize=SMALL)
    return figure


def _make_panels(
    data: DomainSet, n_rows: int, n_columns: int, size: tuple[float, float]
) -> tuple[Figure, NDArray[Any]]:
    width, height = max(size[0] * n_columns, 8.5), size[1] * n_rows + _head_height(data) + CAPTION
    below_heading = (MARGIN / 2 / width, 0.0, 1 - MARGIN / width, 1 - _head_height(data) / height)
    figure = Figure(figsize=(width, height), layout=ConstrainedLayoutEngine(rect=below_heading))
    _write_heading(figure, data)
    return figure, figure.subplots(n_rows, n_columns, sharex=True, sharey=True, squeeze=False)


def _thin(data: DomainSet, generator: np.random.Generator) -> list[Examples]:
    """Some test examples of every domain; the same ones if domains share them."""
    seed = int(generator.integers(2**32))
    choices = [
        np.random.default_rng(seed).permutation(len(domain.test))[:N_DOTS] for domain in data
    ]
    return [
        Examples(domain.test.x[rows], domain.test.y[rows])
        for domain, rows in zip(data, choices, strict=True)
    ]


def _project(inputs: list[Array]) -> list[Array]:
    """Project all inputs onto one plane, shape (n, 2) each, which is the same for every panel."""
    together = np.concatenate(inputs)
    if together.shape[1] == 1:  # a plane needs a second direction
        together = np.hstack([together, np.zeros_like(together)])
    plane = make_pipeline(StandardScaler(), PCA(n_components=2, random_state=0)).fit_transform(
        together
    )
    return np.split(plane, np.cumsum([len(x) for x in inputs])[:-1])


def _paint_numbers(
    figure: Figure, row: NDArray[Any], places: list[Array], answers: list[Array], what: str
) -> None:
    low, high = min(y.min() for y in answers), max(y.max() for y in answers)
    for axes, place, y in zip(row, places, answers, strict=True):
        dots = axes.scatter(*place.T, c=y, vmin=low, vmax=high, s=12, linewidths=0)
    figure.colorbar(dots, ax=list(row), label=what)


def _paint_labels(
    row: NDArray[Any], places: list[Array], answers: list[Array], classes: Sequence[str]
) -> None:
    for axes, place, y in zip(row, places, answers, strict=True):
        labels, ranks = np.unique(y, return_inverse=True)
        colors = matplotlib.colormaps["turbo"](np.linspace(0.05, 0.95, len(labels)))
        axes.scatter(*place.T, c=colors[ranks], s=12, linewidths=0)
        if len(labels) > N_NAMED:
            axes.set_xlabel(f"{len(labels)} labels, each of its own colour")
            continue
        for label, color in zip(labels, colors, strict=True):
            axes.scatter([], [], color=color, label=classes[label])
        axes.legend(
            loc="upper center",
            bbox_to_anchor=(0.5, -0.02),
            ncols=2,
            fontsize=SMALL,
            handletextpad=0.2,
        )
