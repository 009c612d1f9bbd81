"""Rows of the table to which the contexts give the most different answers."""

from __future__ import annotations

import io
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leaflearn.report.column_curves import ask_each, find_drawn
from leaflearn.report.number_text import show_beside, show_number, show_share
from leaflearn.report.training_rows import TrainingRows

MOST_ASKED = 5000  # rows
N_EXAMPLES, N_ALIKE = (
    6,
    2,
)  # rows to show, and how many of them may have the contexts answer in the same order
MISSING = "(missing)"


@dataclass(frozen=True)
class Example:
    """A row of the table, and what each context says of it.

    Parameters
    ----------
    row
        Its number, from 1, without the header.
    group
        Its group.
    context
        The context of the group; None where the model does not know it.
    cells
        As they are in the table.
    truth
        The answer that the table has.
    answers
        Of each drawn context.
    png
        The picture, as the model sees it, where it learnt from pictures.

    Examples
    --------
    >>> Example(1, "site 7", 0, ["3.5"], "good", ["good (90 %)", "bad (80 %)"]).truth
    'good'
    """

    row: int
    group: str
    context: int | None
    cells: list[str]
    truth: str
    answers: list[str]
    png: bytes | None = None


def find_examples(model: Any, rows: TrainingRows, columns: Sequence[str]) -> list[Example]:
    """Up to six rows on which the contexts differ most, with their cells in these columns; none where there is one context only.

    Examples
    --------
    >>> import pandas
    >>> from leaflearn.tabular.table_model import TableModel
    >>> from leaflearn.report.training_rows import read_training_rows
    >>> site, dose = np.repeat(np.arange(20), 10), np.tile(np.linspace(-1.0, 1.0, 10), 20)
    >>> table = pandas.DataFrame({"site": site, "dose": dose, "effect": dose * np.where(site % 2 == 0, 1.0, -1.0)})
    >>> model = TableModel("effect", group="site", contexts=2, local_model="linear").fit(table)
    >>> sorted({example.cells[0] for example in find_examples(model, read_training_rows(model, table), ["dose"])})
    ['-1.0', '1.0']
    """
    return [
        Example(
            row=int(rows.frame.index[place]) + 1,
            group=str(rows.groups[place]),
            context=_context_of(model, rows.groups[place]),
            cells=[_show_cell(rows.frame[column].iloc[place]) for column in columns],
            truth=str(rows.y[place])
            if model.target_.is_label
            else show_beside(float(rows.y[place]), np.ptp(answers)),
            answers=_show_answers(model, answers),
        )
        for place, answers in _find_most_different(model, rows.X, rows.groups)
    ]


def find_pictures(model: Any) -> list[Example]:
    """The same of a model that learnt from pictures, among the rows that its estimator remembers.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> find_pictures(SimpleNamespace(estimator_=SimpleNamespace(replay_buffer_=None)))
    []
    """
    estimator, memory = model.estimator_, model.estimator_.replay_buffer_
    if memory is None:
        return []
    X, groups = np.asarray(memory.X), estimator.groups_[memory.group]
    return [
        Example(
            row=int(memory.row[place]) + 1,
            group=str(groups[place]),
            context=_context_of(model, groups[place]),
            cells=[],
            truth=_recall_truth(model, memory.y[place]),
            answers=_show_answers(model, answers),
            png=_to_png(X[place].reshape(3, model.preparation_.size, model.preparation_.size)),
        )
        for place, answers in _find_most_different(model, X, groups)
    ]


def _find_most_different(
    model: Any, X: NDArray[Any], groups: NDArray[Any]
) -> list[tuple[int, NDArray[np.float64]]]:
    """Places of rows, and the answers of the contexts there (K, D)."""
    if len(find_drawn(model.estimator_)) < 2:
        return []
    chosen = np.random.default_rng(0).permutation(len(X))[:MOST_ASKED]
    answers = ask_each(
        model, X[chosen]
    )  #                                                         (n, K, D)
    order = np.argsort(-np.ptp(answers, axis=1).max(1), kind="stable")
    differs = [
        len(set(pattern)) > 1 for pattern in _patterns(answers[order])
    ]  # quantities always do
    order = order[differs] if any(differs) else order
    return [
        (int(chosen[i]), answers[i])
        for i in order[_pick(_patterns(answers[order]), groups[chosen[order]])]
    ]


def _patterns(answers: NDArray[np.float64]) -> list[tuple[int, ...]]:
    """In which way the contexts differ: who says more, or who says what."""
    said = answers[:, :, 0].argsort(1) if answers.shape[2] == 1 else answers.argmax(2)
    return [tuple(row) for row in said.tolist()]


def _pick(patterns: Sequence[tuple[int, ...]], groups: NDArray[Any]) -> list[int]:
    """The first rows, few of them alike and each from another group; then whichever come first."""
    seen, taken = Counter[tuple[int, ...]](), set[Any]()
    picked: list[int] = []
    for i, pattern in enumerate(patterns):
        if len(picked) < N_EXAMPLES and seen[pattern] < N_ALIKE and groups[i] not in taken:
            seen[pattern] += 1
            taken.add(groups[i])
            picked.append(i)
    rest = [i for i in range(len(patterns)) if i not in picked]
    return sorted([*picked, *rest[: N_EXAMPLES - len(picked)]])


def _context_of(model: Any, group: Any) -> int | None:
    found = np.flatnonzero(model.estimator_.groups_ == group)
    return int(model.estimator_.contexts_[found[0]]) if len(found) else None


def _show_cell(cell: Any) -> str:
    import pandas  # type: ignore[import-untyped]

    return MISSING if pandas.api.types.is_scalar(cell) and pandas.isna(cell) else str(cell)


def _show_answers(model: Any, answers: NDArray[np.float64]) -> list[str]:
    """The quantity that each context answers, or its likeliest label, from outputs (K, D)."""
    if not model.target_.is_label:
        return [show_beside(float(value), np.ptp(answers)) for value in answers[:, 0]]
    best = answers.argmax(1)
    return [
        f"{model.estimator_.classes_[c]} ({show_share(float(outputs[c]))})"
        for outputs, c in zip(answers, best, strict=True)
    ]


def _recall_truth(model: Any, target: Any) -> str:
    """From what the estimator remembers: the number of a class, or the value."""
    return (
        str(model.estimator_.classes_[int(target)])
        if model.target_.is_label
        else show_number(float(np.ravel(target)[0]))
    )


def _to_png(picture: NDArray[Any]) -> bytes:
    """A picture (3, height, width) between 0 and 1 as a file."""
    from PIL import Image

    pixels = np.clip(255.0 * picture.transpose(1, 2, 0), 0.0, 255.0).astype(np.uint8)
    buffer = io.BytesIO()
    Image.fromarray(pixels).save(buffer, format="PNG")
    return buffer.getvalue()
