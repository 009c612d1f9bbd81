"""The charts of the report, as inline SVG.

Charts are small and show one thing each, so that they can be read on a phone. Contexts differ by
color, dashes and marks. matplotlib draws them; `to_inline_svg` then replaces `style` attributes,
which the page's content security policy ignores, by presentation attributes. Text stays text, and
colors that stand for a role, such as the ink or a context, become CSS variables of the page, which
have other values in the dark theme.
"""

from __future__ import annotations

import io
import re
import warnings
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable, Mapping, Sequence
from functools import wraps
from typing import Any, ParamSpec

import numpy as np
from markupsafe import Markup
from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, MaxNLocator
from numpy.typing import NDArray

from leaflearn.diagnostics.group_map import GroupMap
from leaflearn.report.column_curves import ColumnCurve
from leaflearn.report.formatting import show_day
from leaflearn.report.rendering import isolate

P = ParamSpec("P")
WIDTH, HEIGHT = 4.8, 3.2  # inches; 72 units of the SVG each
DASHES: tuple[Any, ...] = (  # `line` in templates/macros.html draws the same
    "-",
    (0, (5, 2)),
    (0, (1.5, 1.5)),
    (0, (6, 2, 1.5, 2)),
    (0, (9, 3)),
    (0, (3, 1, 1, 1, 1, 1)),
)
MARKS = ("o", "s", "^", "D", "v", "P")  # `context_mark` in templates/macros.html draws the same
MAX_POINTS = 300  # of a curve over epochs
MAX_MARKED = 12  # values of a curve with a mark at each
LONGEST_LABEL = 22  # characters beside an axis
MIN_EPOCHS = 3  # for a curve over epochs
MAX_MAPPED = 1000  # groups in a map
INK, SOFT, LINE = "#000001", "#000002", "#000003"  # placeholders for colors of the page
STYLE: Any = {
    "font.size": 11.5,
    "axes.labelsize": 11.5,
    "lines.linewidth": 2.2,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.edgecolor": SOFT,
    "axes.labelcolor": INK,
    "text.color": INK,
    "xtick.color": SOFT,
    "ytick.color": SOFT,
    "xtick.labelcolor": INK,
    "ytick.labelcolor": INK,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": LINE,
    "text.parse_math": False,  # a dollar sign in a name is a dollar sign
}
_FIRST_CONTEXT = 0x10
_ROLES = {INK: "currentColor", SOFT: "var(--soft)", LINE: "var(--line)"}
_CONTEXT = re.compile(r"#0000([1-9a-f][0-9a-f])\b")
_FONT_SIZE = re.compile(r"([\d.]+)px")
_LONG_NUMBER = re.compile(r"-?\d+\.\d{3,}")
_REFERENCE = re.compile(r"#([\w.-]+)")
_TO_ROUND = ("d", "transform", "x", "y", "points", "width", "height", "viewBox")


def _with_page_style(draw: Callable[P, Figure]) -> Callable[P, Figure]:
    @wraps(draw)
    def drawn(*args: P.args, **kwargs: P.kwargs) -> Figure:
        with rc_context(STYLE):
            return draw(*args, **kwargs)

    return drawn


@_with_page_style
def draw_curve(curve: ColumnCurve, predicted: str) -> Figure:
    """The mean prediction of each context along a number or a date.

    Parameters
    ----------
    curve
        Of a number or a date.
    predicted
        What is predicted: the label of the axis.

    Examples
    --------
    >>> means = np.array([[0.0, 1.0], [1.0, 0.0]])
    >>> curve = ColumnCurve("dose", "number", [0.0, 1.0], np.full(2, 0.5), means, -1, 0.5)
    >>> len(draw_curve(curve, "effect").axes[0].lines)
    2
    """
    figure, axes = _begin(isolate(curve.column, LONGEST_LABEL + 10), predicted)
    has_marks = len(curve.values) <= MAX_MARKED
    for k in range(curve.means.shape[1]):
        mark: dict[str, Any] = (
            {"marker": MARKS[k % len(MARKS)], "markersize": 6} if has_marks else {}
        )
        axes.plot(
            curve.values,
            curve.means[:, k],
            color=color_of_context(k),
            linestyle=DASHES[k % len(DASHES)],
            **mark,
        )
    axes.xaxis.set_major_locator(MaxNLocator(4 if curve.kind == "date" else 6))
    if curve.kind == "date":
        axes.xaxis.set_major_formatter(FuncFormatter(lambda day, _: show_day(day)))
    _mark_percent(axes.yaxis, curve)
    return figure


@_with_page_style
def draw_categories(curve: ColumnCurve, predicted: str) -> Figure:
    """The mean prediction of each context for each value of a category, as marks on a line.

    Examples
    --------
    >>> means, genres = np.array([[0.0, 1.0], [1.0, 0.0]]), ["crime", "travel"]
    >>> curve = ColumnCurve("genre", "category", genres, np.full(2, 0.5), means, -1, 0.5)
    >>> figure = draw_categories(curve, "rating")
    >>> [len(label.get_text()) for label in figure.axes[0].get_yticklabels()]
    [7, 8]
    """
    n_values, n_contexts = curve.means.shape
    figure, axes = _begin(
        predicted, "", height=max(1.6, 0.9 + 0.34 * n_values + 0.06 * n_values * n_contexts)
    )
    for k in range(n_contexts):
        place = np.arange(n_values) + 0.12 * (k - (n_contexts - 1) / 2)
        style: dict[str, Any] = {
            "color": color_of_context(k),
            "marker": MARKS[k % len(MARKS)],
            "markersize": 8,
            "linestyle": "none",
        }
        axes.plot(curve.means[:, k], place, **style)
    axes.set_yticks(range(n_values), [isolate(value, LONGEST_LABEL) for value in curve.values])
    axes.set_ylim(n_values - 0.5, -0.5)
    axes.xaxis.set_major_locator(MaxNLocator(5))
    _mark_percent(axes.xaxis, curve)
    return figure


@_with_page_style
def draw_groups(drawn: GroupMap, x_label: str, y_label: str) -> Figure:
    """Groups as points and contexts as clouds; without slopes, groups in order beside bands.

    Examples
    --------
    >>> cloud = np.eye(2)[None]
    >>> drawn = GroupMap(np.zeros((3, 2)), np.zeros(3, int), np.zeros((1, 2)), cloud, 0, 0)
    >>> figure = draw_groups(drawn, "mean effect", "slope along dose")
    >>> len(figure.axes[0].lines), len(figure.axes[0].patches)
    (1, 1)
    """
    figure, axes = _begin(x_label, y_label, height=3.8)
    order = np.argsort(drawn.points[:, 0], kind="stable")
    rank = np.empty(len(order))
    rank[order] = np.arange(1, len(order) + 1)
    is_drawn = np.zeros(len(order), dtype=bool)
    is_drawn[np.random.default_rng(0).permutation(len(order))[:MAX_MAPPED]] = True
    for k in np.unique(drawn.contexts):
        color, mark = color_of_context(min(int(k), len(DASHES))), MARKS[int(k) % len(MARKS)]
        mine = (drawn.contexts == k) & is_drawn
        height = drawn.points[:, 1] if drawn.has_slopes else rank
        if drawn.has_slopes:
            axes.fill(*drawn.ellipse(int(k)).T, color=color, alpha=0.13, linewidth=0)
        else:
            center, spread = drawn.centers[k, 0], 1.96 * np.sqrt(drawn.covariances[k, 0, 0])
            axes.axvspan(center - spread, center + spread, color=color, alpha=0.13, linewidth=0)
        axes.plot(
            drawn.points[mine, 0],
            height[mine],
            color=color,
            marker=mark,
            markersize=5,
            markeredgewidth=0,
            alpha=0.75,
            linestyle="none",
        )
    axes.xaxis.set_major_locator(MaxNLocator(6))
    return figure


@_with_page_style
def draw_history(history: Mapping[str, NDArray[Any]], column: str, label: str) -> Figure:
    """The loss over the epochs, or the share of the groups in each context.

    Examples
    --------
    >>> history = {"epoch": np.arange(1, 5), "usage": np.full((4, 2), 0.5)}
    >>> len(draw_history(history, "usage", "share of the groups").axes[0].lines)
    2
    """
    figure, axes = _begin("epoch", label)
    chosen = _thin(len(history["epoch"]))
    values = history[column][chosen]
    for k in range(1 if values.ndim == 1 else min(values.shape[1], len(DASHES))):
        color = INK if values.ndim == 1 else color_of_context(k)
        axes.plot(
            history["epoch"][chosen],
            values if values.ndim == 1 else values[:, k],
            color=color,
            linestyle=DASHES[k],
        )
    axes.set_ylim(bottom=0)
    axes.xaxis.set_major_locator(MaxNLocator(5, integer=True))
    if values.ndim == 2:
        axes.yaxis.set_major_formatter(FuncFormatter(_as_percent))
    return figure


@_with_page_style
def draw_starts(starts: Sequence[Mapping[str, Any]]) -> Figure:
    """The loss of every start over its epochs; the selected one is drawn thick.

    Examples
    --------
    >>> starts = [{"curve": np.array([2.0, 1.0, 0.5]), "kept": kept} for kept in (True, False)]
    >>> len(draw_starts(starts).axes[0].lines)
    2
    """
    figure, axes = _begin("epoch", "loss")
    for start in sorted(starts, key=lambda start: bool(start["kept"])):
        chosen = _thin(len(start["curve"]))
        style: dict[str, Any] = (
            {"color": INK, "linewidth": 3.0}
            if start["kept"]
            else {"color": SOFT, "linewidth": 1.2, "linestyle": DASHES[1]}
        )
        axes.plot(chosen + 1, np.asarray(start["curve"])[chosen], **style)
    axes.set_ylim(bottom=0)
    axes.xaxis.set_major_locator(MaxNLocator(5, integer=True))
    return figure


@_with_page_style
def draw_selection(selection: Mapping[str, NDArray[Any]], n_contexts: int) -> Figure:
    """The held-out error for each number of contexts, with a ring around the selected one.

    Examples
    --------
    >>> selection = {"n_contexts": np.array([1, 2, 3]), "held_out": np.array([0.9, 0.1, 0.1])}
    >>> len(draw_selection(selection, 2).axes[0].lines)
    2
    """
    figure = _draw_choice(selection["n_contexts"], selection["held_out"], n_contexts)
    figure.axes[0].set(ylabel="error on held-out rows", ylim=(0, None))
    return figure


@_with_page_style
def draw_criterion(
    numbers: NDArray[Any],
    criterion: NDArray[Any],
    n_contexts: int,
    label: str = "criterion (lower is better)",
) -> Figure:
    """A criterion of each number of contexts, with a ring around the selected one.

    Examples
    --------
    >>> len(draw_criterion(np.array([1, 2]), np.array([-5.0, -9.0]), 2).axes[0].lines)
    2
    """
    figure = _draw_choice(numbers, criterion, n_contexts)
    figure.axes[0].set(ylabel=label)
    return figure


def _draw_choice(numbers: NDArray[Any], values: NDArray[Any], n_contexts: int) -> Figure:
    figure, axes = _begin("number of contexts", "")
    axes.plot(numbers, values, color=INK, marker="o", markersize=6)
    here = numbers == n_contexts
    ring: dict[str, Any] = {
        "markersize": 16,
        "markerfacecolor": "none",
        "markeredgecolor": color_of_context(0),
        "markeredgewidth": 2.5,
    }
    axes.plot(numbers[here], values[here], marker="o", linestyle="none", **ring)
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.margins(x=0.08, y=0.12)
    return figure


def color_of_context(context: int) -> str:
    """The placeholder color of a context, which becomes its color on the page.

    Examples
    --------
    >>> color_of_context(2)
    '#000012'
    """
    return f"#{_FIRST_CONTEXT + context:06x}"


def to_inline_svg(figure: Figure, name: str, title: str, description: str) -> Markup:
    """A figure as an `<svg>` element with a title and a description.

    Parameters
    ----------
    figure
        Drawn in the placeholder colors of this module.
    name
        Prefix of the identifiers; it must be unique on a page.
    title, description
        What a screen reader reads out.

    Examples
    --------
    >>> svg = to_inline_svg(Figure(figsize=(1, 1)), "empty", "Nothing", "An empty square.")
    >>> svg.startswith('<svg viewBox="0 0 72 72"'), "http" in svg, "style=" in svg
    (True, False, False)
    """
    buffer = io.BytesIO()
    settings: Any = {
        "svg.fonttype": "none",
        "svg.hashsalt": name,
        "text.parse_math": False,
    }
    with rc_context(settings), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # glyphs that only the reader's browser has
        figure.savefig(buffer, format="svg", transparent=True)
    root = ElementTree.fromstring(buffer.getvalue())
    _clean(root)
    _rename(root, name)
    root.attrib = {
        "viewBox": _round(root.get("viewBox", "")),
        "class": "chart",
        "role": "img",
        "aria-labelledby": f"{name}-title {name}-description",
    }
    for place, (tag, text) in enumerate((("title", title), ("desc", description))):
        element = ElementTree.Element(
            tag, {"id": f"{name}-{'title' if tag == 'title' else 'description'}"}
        )
        element.text = text
        root.insert(place, element)
    return Markup(ElementTree.tostring(root, encoding="unicode"))


def _begin(x_label: str, y_label: str, height: float = HEIGHT) -> tuple[Figure, Axes]:
    figure = Figure(figsize=(WIDTH, height), layout="constrained")
    axes = figure.subplots()
    axes.set(xlabel=x_label, ylabel=y_label)
    return figure, axes


def _thin(n: int) -> NDArray[np.intp]:
    """Indices of at most `MAX_POINTS` epochs, including the first and the last."""
    return np.unique(np.linspace(0, n - 1, min(n, MAX_POINTS)).astype(np.intp))


def _mark_percent(axis: Axis, curve: ColumnCurve) -> None:
    if curve.label >= 0:
        axis.set_major_formatter(FuncFormatter(_as_percent))


def _as_percent(value: float, _: Any) -> str:
    return f"{100 * value:.0f} %"


def _clean(element: ElementTree.Element) -> None:
    """Remove namespaces, metadata and styles from the element and its children."""
    element.tag = element.tag.split("}")[-1]
    given = {key.split("}")[-1]: value for key, value in element.attrib.items()}
    given |= _to_attributes(given.pop("style", ""))
    element.attrib = {
        key: _round(value) if key in _TO_ROUND else _to_role(value) for key, value in given.items()
    }
    if element.tag not in ("text", "tspan"):
        element.text = None
    for child in list(element):
        _clean(child)
        child.tail = None
        if child.tag in ("metadata", "style"):
            element.remove(child)


def _to_attributes(style: str) -> dict[str, str]:
    """From "fill: none; font: 12px Sans" to attributes; the page sets the font family."""
    pairs = [piece.split(":", 1) for piece in style.split(";") if ":" in piece]
    given = {key.strip(): value.strip() for key, value in pairs}
    size = _FONT_SIZE.search(given.pop("font", "") or given.pop("font-size", ""))
    given.pop("font-family", None)
    return given | ({"font-size": size.group(1)} if size else {})


def _to_role(value: str) -> str:
    if value in _ROLES:
        return _ROLES[value]
    return _CONTEXT.sub(
        lambda found: f"var(--context-{int(found.group(1), 16) - _FIRST_CONTEXT})", value
    )


def _round(value: str) -> str:
    """Round coordinates to hundredths of a unit."""
    return _LONG_NUMBER.sub(
        lambda found: f"{float(found.group()):.2f}".rstrip("0").rstrip("."), value
    )


def _rename(root: ElementTree.Element, name: str) -> None:
    """Drop identifiers without references, and prefix all others with the name."""
    used = set()
    for element in root.iter():
        for key in ("href", "clip-path"):
            found = _REFERENCE.search(element.get(key, ""))
            if found:
                used.add(found.group(1))
                element.set(
                    key,
                    element.get(key, "").replace(f"#{found.group(1)}", f"#{name}-{found.group(1)}"),
                )
    for element in root.iter():
        identifier = element.attrib.pop("id", None)
        if identifier in used:
            element.set("id", f"{name}-{identifier}")
