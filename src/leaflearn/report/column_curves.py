"""What each context answers as one column changes and all others stay as they are, and along which columns the contexts part.

Every value of a column is put into the same rows, one value after the other, and each context's answers are averaged over the rows. The
work is done among the features, so it needs no table: the rows that a fitted estimator remembers are enough.

Contexts that differ by the same amount everywhere do not part along a column. So how far they part is measured on curves whose means were
taken off.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leaflearn.tabular.column_kinds import Column, read_texts
from leaflearn.tabular.preparation import Preparation

MOST_DRAWN = 6  # contexts with a colour of their own
N_VALUES = 21  # of a number along which a curve is drawn
FEW_VALUES = 12  # of a number: then each is a place of its own
TAIL = 0.02  # of the rows on either side that a curve leaves out
N_ASKED = 200_000  # answers of each context, at most and about
FEWEST_ROWS, MOST_ROWS = 30, 200  # into which values are put
MOST_CELLS = 2 * 10**7  # of features that are asked at once, about
MISSING, OTHER, THERE = "(missing)", "(any other)", "(there)"

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class ColumnCurve:
    """The answers of the contexts along a column.

    Parameters
    ----------
    column
        Its name.
    kind
        `"number"`, `"date"` or `"category"`.
    values
        Numbers, days since 1970, or the names of the values, (G,).
    share
        Of the rows, which have each value; equal for numbers, (G,).
    answers
        The mean answer of each drawn context: a quantity, or the probability of a label, (G, K).
    label
        The number of that label; -1 for quantities.
    parting
        How far the contexts part along the column, in the unit of the answers.

    Examples
    --------
    >>> curve = ColumnCurve("dose", "number", [0.0, 1.0], np.full(2, 0.5), np.array([[0.0, 1.0], [1.0, 0.0]]), -1, 0.5)
    >>> curve.answers[:, 1].tolist()
    [1.0, 0.0]
    """

    column: str
    kind: str
    values: Sequence[Any]
    share: Floats
    answers: Floats
    label: int
    parting: float


def find_drawn(estimator: Any) -> NDArray[np.intp]:
    """The contexts that are told apart by colour: the most used ones, and none that no group uses, shape (K,).

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> find_drawn(SimpleNamespace(usage_=np.array([0.7, 0.3, 0.0])))
    array([0, 1])
    """
    return np.flatnonzero(estimator.usage_ > 0)[:MOST_DRAWN]


def ask_each(model: Any, X: NDArray[Any]) -> Floats:
    """The answers of the drawn contexts: quantities (N, K, 1), or the probability of every label (N, K, C).

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> estimator = SimpleNamespace(usage_=np.array([0.6, 0.4]), predict_each=lambda X: X * [1.0, -1.0])
    >>> ask_each(SimpleNamespace(target_=SimpleNamespace(is_label=False), estimator_=estimator), np.ones((3, 1))).shape
    (3, 2, 1)
    """
    estimator = model.estimator_
    each = (
        estimator.predict_proba_each(X)
        if model.target_.is_label
        else estimator.predict_each(X)[:, :, None]
    )
    return np.asarray(each[:, find_drawn(estimator)], dtype=np.float64)


def find_curves(model: Any, X: NDArray[Any], rows: Any = None) -> list[ColumnCurve]:
    """A curve for every column that has one, those first along which the contexts part most.

    Parameters
    ----------
    model
        A fitted `TableModel` of columns, not of pictures.
    X
        Features of rows to put the values into, (N, F).
    rows
        The table that they come from, where it is there: it knows the names of rare values.

    Examples
    --------
    >>> import pandas
    >>> from leaflearn.tabular.table_model import TableModel
    >>> rng = np.random.default_rng(0)
    >>> site = np.repeat(np.arange(20), 10)
    >>> table = pandas.DataFrame({"site": site, "dose": rng.normal(size=200), "age": rng.normal(size=200)})
    >>> table["effect"] = table.dose * np.where(site % 2 == 0, 1.0, -1.0) + table.age
    >>> model = TableModel("effect", group="site", contexts=2, local_model="linear").fit(table)
    >>> [curve.column for curve in find_curves(model, model.features_of(table))]
    ['dose', 'age']
    """
    prepare = model.preparation_
    columns = [
        c
        for c in prepare.columns
        if c.kind in ("number", "date", "category") and c.name in set(prepare.feature_columns)
    ]
    n_rows = int(np.clip(N_ASKED // (N_VALUES * max(1, len(columns))), FEWEST_ROWS, MOST_ROWS))
    sample = X[np.random.default_rng(0).permutation(len(X))[:n_rows]]
    return sorted(
        (_follow(model, column, X, sample, rows) for column in columns),
        key=lambda curve: -curve.parting,
    )


def _follow(
    model: Any, column: Column, X: NDArray[Any], sample: NDArray[Any], rows: Any
) -> ColumnCurve:
    prepare = model.preparation_
    own = np.array([i for i, name in enumerate(prepare.feature_columns) if name == column.name])
    value_at = [
        i for i in own if prepare.feature_names[i] == column.name and column.kind != "category"
    ]
    values: Sequence[Any]
    if value_at:
        values, share, features = _number_values(prepare, column, X, own, value_at[0])
    else:
        values, share, features = _category_values(prepare, column, X, own, rows)
    sample = sample[
        : max(1, MOST_CELLS // features.size)
    ]  # of hundreds of items not all values are put into all rows
    asked = np.repeat(
        sample[None], len(values), axis=0
    )  #                                         (G, n, F)
    asked[:, :, own] = features[:, None]
    answers = ask_each(model, asked.reshape(-1, sample.shape[1]))
    mean = answers.reshape(len(values), len(sample), *answers.shape[1:]).mean(
        1
    )  #                 (G, K, D)
    parting = measure_parting(mean, share)
    output = 1 if len(parting) == 2 else int(parting.argmax())  # of two labels, one tells the other
    label = output if model.target_.is_label else -1
    kind = column.kind if value_at else "category"
    return ColumnCurve(
        column.name, kind, values, share, mean[:, :, output], label, float(parting[output])
    )


def measure_parting(answers: Floats, share: Floats) -> Floats:
    """How far curves (G, K, D) differ in shape, for each output; how far the curve goes up and down, where there is one, shape (D,).

    Examples
    --------
    Two lines that cross, and two that run beside each other.

    >>> line = np.linspace(-1.0, 1.0, 5)
    >>> cross, beside = np.stack([line, -line], axis=1), np.stack([line, line + 3.0], axis=1)
    >>> measure_parting(np.stack([cross, beside], axis=2), np.full(5, 0.2)).round(2).tolist()
    [0.71, 0.0]
    """
    weight = (share / share.sum())[:, None, None]
    curves = answers - (weight * answers).sum(0)
    if curves.shape[1] > 1:
        curves = curves - curves.mean(1, keepdims=True)
    return np.asarray(np.sqrt((weight * np.square(curves)).sum(0).mean(0)))


def _number_values(
    prepare: Preparation, column: Column, X: NDArray[Any], own: NDArray[np.intp], at: int
) -> tuple[list[float], Floats, Floats]:  # fmt: skip
    """Places along a number in its own unit, their shares (G,), and the column's features there (G, own); none is a hole."""
    known = np.unique(X[:, at])
    if len(known) > FEW_VALUES:
        low, high = np.quantile(X[:, at], [TAIL, 1.0 - TAIL])
        known = np.linspace(low, high, N_VALUES)
    numbers = [c.name for c in prepare.columns if c.kind in ("number", "date")]
    scaling = prepare.parts["number"][-1]
    place = numbers.index(column.name)
    values = known * scaling.scale_[place] + scaling.mean_[place]
    features = np.where(own == at, known[:, None], 0.0)
    return (
        [float(f"{value:.10g}") for value in values],
        np.full(len(known), 1.0 / len(known)),
        features,
    )


def _category_values(
    prepare: Preparation, column: Column, X: NDArray[Any], own: NDArray[np.intp], rows: Any
) -> tuple[list[str], Floats, Floats]:  # fmt: skip
    """The values that are told apart, their shares of the rows (G,), and the column's features there (G, own)."""
    values = [prepare.feature_names[i].removeprefix(f"{column.name} = ") for i in own]
    values = [MISSING if value == f"{column.name} is missing" else value for value in values]
    share, features = X[:, own].mean(0), np.eye(len(own))
    rest = float((X[:, own].sum(1) == 0).mean())
    if rest > 0:
        values.append(_name_rest(column, values, rows))
        share, features = (
            np.append(share, rest),
            np.concatenate([features, np.zeros((1, len(own)))]),
        )
    return values, share, features


def _name_rest(column: Column, values: Sequence[str], rows: Any) -> str:
    """What is none of the values; where that is one value only, its name."""
    if column.kind != "category":
        return THERE
    left = (
        set()
        if rows is None
        else {text or MISSING for text in read_texts(rows[column.name])} - set(values)
    )
    return left.pop() if len(left) == 1 else OTHER
