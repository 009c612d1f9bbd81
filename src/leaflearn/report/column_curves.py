"""The mean prediction of each context along each column, and how far the contexts differ there.

These are partial dependence curves. Each value of a column is put into the same rows, one value at
a time, while all other columns keep their values, and the predictions of each context are averaged
over the rows. Values are set among the features, so no table is needed: the rows in the replay
buffer of a fitted estimator are enough.

Contexts that differ by a constant do not differ along a column. Therefore each curve is centered
before the difference is measured.

Curves of contexts also differ because each is fitted to noisy rows. A difference is clear if rows
are explained better by the curve of their own context than by the mean curve of all contexts, by
more than the groups vary in that.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from leaflearn.report import settings
from leaflearn.report.formatting import show_day, show_number, show_share
from leaflearn.report.training_rows import LabelledRows
from leaflearn.tabular.column_kinds import Column, read_texts
from leaflearn.tabular.preparation import Preparation
from leaflearn.tabular.table_model import TableModel

MAX_DRAWN = 6  # contexts with a color of their own
MISSING, OTHER, PRESENT = "(missing)", "(any other)", "(there)"  # categories without a name

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class ColumnCurve:
    """The mean predictions of the contexts along a column.

    Parameters
    ----------
    column
        Its name.
    kind
        `"number"`, `"date"` or `"category"`.
    values
        Numbers, days since 1970, or the names of the values, (G,).
    share
        Share of the rows with each value; equal for numbers, (G,).
    means
        Mean predictions of the drawn contexts: quantities, or probabilities of a label, (G, K).
    label
        The index of that label; -1 for quantities.
    difference
        How far the contexts differ along the column, in the unit of the predictions.
    is_clear
        Whether the difference exceeds its noise; always for a single context.

    Examples
    --------
    >>> means = np.array([[0.0, 1.0], [1.0, 0.0]])
    >>> curve = ColumnCurve("dose", "number", [0.0, 1.0], np.full(2, 0.5), means, -1, 0.5)
    >>> curve.shape(0), curve.show_value(1.0), curve.show_mean(0.25)
    ('rises', '1', '0.25')
    """

    column: str
    kind: str
    values: Sequence[Any]
    share: Floats
    means: Floats
    label: int
    difference: float
    is_clear: bool = True

    def shape(self, place: int) -> str:
        """What the predictions of one context do along the column: a verb."""
        means = self.means[:, place]
        widest = max(float(np.ptp(self.means, axis=0).max()), 1e-12)
        if np.ptp(means) < settings.REPORT.flat * widest:
            return "hardly changes"
        if self.kind == "category":
            return "varies"
        if abs(means[-1] - means[0]) < (1.0 - settings.REPORT.bend) * np.ptp(means):
            return "bends"
        return "rises" if means[-1] > means[0] else "falls"

    def show_value(self, value: Any) -> str:
        """A value of the column as text."""
        if self.kind == "category":
            return str(value)
        return show_day(value) if self.kind == "date" else show_number(value)

    def show_mean(self, mean: float) -> str:
        """A mean prediction as text."""
        return show_number(mean) if self.label < 0 else show_share(mean)


def find_drawn(model: TableModel) -> NDArray[np.intp]:
    """The contexts that have a color of their own: the most used ones, shape (K,).

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> estimator = SimpleNamespace(usage_=np.array([0.7, 0.3, 0.0]))
    >>> find_drawn(SimpleNamespace(estimator_=estimator))
    array([0, 1])
    """
    return np.flatnonzero(model.estimator_.usage_ > 0)[:MAX_DRAWN]


def predict_drawn(model: TableModel, X: NDArray[Any]) -> Floats:
    """Predictions of the drawn contexts: quantities (N, K, 1), or probabilities (N, K, C).

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> predict_each = lambda X: X * [1.0, -1.0]
    >>> estimator = SimpleNamespace(usage_=np.array([0.6, 0.4]), predict_each=predict_each)
    >>> model = SimpleNamespace(target_=SimpleNamespace(is_label=False), estimator_=estimator)
    >>> predict_drawn(model, np.ones((3, 1))).shape
    (3, 2, 1)
    """
    estimator, is_label = model.estimator_, model.target_.is_label
    each = estimator.predict_proba_each(X) if is_label else estimator.predict_each(X)[:, :, None]
    return np.asarray(each[:, find_drawn(model)], dtype=np.float64)


def predict_sample(model: TableModel, X: NDArray[Any]) -> Floats:
    """Predictions of the drawn contexts for some of the rows, from which means are taken.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> estimator = SimpleNamespace(usage_=np.ones(1), predict_each=lambda X: X)
    >>> model = SimpleNamespace(target_=SimpleNamespace(is_label=False), estimator_=estimator)
    >>> predict_sample(model, np.ones((2000, 1))).shape
    (500, 1, 1)
    """
    chosen = np.random.default_rng(1).permutation(len(X))[: settings.REPORT.max_mean_rows]
    return predict_drawn(model, X[chosen])


def find_curves(
    model: TableModel,
    X: NDArray[Any],
    rows: Any = None,
    labelled: LabelledRows | None = None,
    left_out: Collection[str] = (),
) -> list[ColumnCurve]:
    """A curve for every column that has one, the columns on which contexts differ most first.

    Parameters
    ----------
    model
        A fitted `TableModel` of columns, not of images.
    X
        Features of rows to put the values into, (N, F).
    rows
        The table that they come from, if available: it has the names of rare values.
    labelled
        Rows on which the noise of the differences is measured; None measures none.
    left_out
        Columns without curves, such as those that are constant within groups.

    Examples
    --------
    >>> import pandas
    >>> from leaflearn.tabular.table_model import TableModel
    >>> rng = np.random.default_rng(0)
    >>> site, dose, age = np.repeat(np.arange(20), 10), rng.normal(size=200), rng.normal(size=200)
    >>> table = pandas.DataFrame({"site": site, "dose": dose, "age": age})
    >>> table["effect"] = table.dose * np.where(site % 2 == 0, 1.0, -1.0) + table.age
    >>> model = TableModel("effect", group="site", contexts=2, local_model="linear").fit(table)
    >>> [curve.column for curve in find_curves(model, model.features_of(table))]
    ['dose', 'age']
    """
    prepare, limits = cast(Preparation, model.preparation_), settings.REPORT
    columns = [
        column
        for column in prepare.columns
        if column.kind in ("number", "date", "category")
        and column.name in set(prepare.feature_columns) - set(left_out)
    ]
    n_rows = limits.max_curve_predictions // (limits.n_values * max(1, len(columns)))
    n_rows = int(np.clip(n_rows, limits.min_curve_rows, limits.max_curve_rows))
    sample = X[np.random.default_rng(0).permutation(len(X))[:n_rows]]
    check = None if labelled is None or len(find_drawn(model)) < 2 else _Check.of(model, labelled)
    curves = [_find_curve(model, column, X, sample, rows, check) for column in columns]
    return sorted(curves, key=lambda curve: (not curve.is_clear, -curve.difference))


@dataclass(frozen=True, eq=False)
class _Check:
    """Rows of drawn contexts, and how far each is from the prediction of its context."""

    X: NDArray[Any]
    context: NDArray[np.intp]  # place of the row's context among the drawn ones    (N,)
    group: NDArray[np.intp]
    residual: Floats  #                                                             (N, D)

    @classmethod
    def of(cls, model: TableModel, labelled: LabelledRows) -> _Check:
        drawn, context = find_drawn(model), model.estimator_.contexts_[labelled.group]
        rng = np.random.default_rng(0)
        chosen = rng.permutation(np.flatnonzero(np.isin(context, drawn)))
        chosen = np.sort(chosen[: settings.REPORT.max_example_rows])
        place = np.searchsorted(drawn, context[chosen])
        X, y = labelled.X[chosen], labelled.y[chosen]
        own = predict_drawn(model, X)[np.arange(len(chosen)), place]  #             (N, D)
        target = np.eye(own.shape[1])[y.astype(int)] if model.target_.is_label else y[:, None]
        return cls(X, place, labelled.group[chosen], target - own)

    def is_clear(self, means: Floats, share: Floats, at: Floats, output: int) -> bool:
        """Whether own curves explain rows better than the mean curve of all contexts.

        Parameters
        ----------
        means, share
            Curves of the contexts (G, K), and the shares of their values (G,).
        at
            Weight of each value of the curve in each row, (N, G).
        output
            The target or label that the curves predict.
        """
        curves = means - (share / share.sum()) @ means
        own = curves - curves.mean(1, keepdims=True)  #                             (G, K)
        shift = (at * own.T[self.context]).sum(1)  # from the mean curve to one's own
        gain = 2 * self.residual[:, output] * shift + np.square(shift)
        by_group = np.bincount(self.group, gain)[np.unique(self.group)]
        if len(by_group) < 2:
            return True
        error = by_group.std(ddof=1) * np.sqrt(len(by_group))
        return bool(by_group.sum() > settings.REPORT.min_standard_errors * error)


def _find_curve(
    model: TableModel,
    column: Column,
    X: NDArray[Any],
    sample: NDArray[Any],
    rows: Any,
    check: _Check | None,
) -> ColumnCurve:
    prepare = cast(Preparation, model.preparation_)
    own = np.array([i for i, name in enumerate(prepare.feature_columns) if name == column.name])
    value_at = [
        i for i in own if prepare.feature_names[i] == column.name and column.kind != "category"
    ]
    values: Sequence[Any]
    if value_at:
        values, share, features = _number_values(prepare, column, X, own, value_at[0])
    else:
        values, share, features = _category_values(prepare, column, X, own, rows)
    sample = sample[: max(1, settings.REPORT.max_cells // features.size)]
    changed = np.repeat(sample[None], len(values), axis=0)  #                     (G, n, F)
    changed[:, :, own] = features[:, None]
    predicted = predict_drawn(model, changed.reshape(-1, sample.shape[1]))
    shape = (len(values), len(sample), *predicted.shape[1:])
    means = predicted.reshape(shape).mean(1)  #                                   (G, K, D)
    difference = measure_difference(means, share)
    # The probabilities of two labels are complementary, so the second one is enough.
    output = 1 if len(difference) == 2 else int(difference.argmax())
    is_clear = True
    if check is not None:
        at = (
            _weigh_numbers(check.X[:, value_at[0]], features[:, own == value_at[0]][:, 0])
            if value_at
            else _weigh_categories(check.X[:, own], len(features))
        )
        is_clear = check.is_clear(means[:, :, output], share, at, output)
    return ColumnCurve(
        column.name,
        column.kind if value_at else "category",
        values,
        share,
        means[:, :, output],
        output if model.target_.is_label else -1,
        float(difference[output]),
        is_clear,
    )


def _weigh_numbers(values: Floats, grid: Floats) -> Floats:
    """Weights of the places of a grid that interpolate at some values, (N, G)."""
    return np.stack([np.interp(values, grid, hat) for hat in np.eye(len(grid))], 1)


def _weigh_categories(indicators: Floats, n_values: int) -> Floats:
    """Which value of a category each row has; rows without an indicator have the last, (N, G)."""
    number = np.where(indicators.sum(1) > 0, indicators.argmax(1), n_values - 1)
    return np.eye(n_values)[number]


def measure_difference(means: Floats, share: Floats) -> Floats:
    """How far curves (G, K, D) differ in shape, for each output; shape (D,).

    A single curve is compared with its mean.

    Examples
    --------
    Two lines that cross, and two parallel lines.

    >>> line = np.linspace(-1.0, 1.0, 5)
    >>> crossing = np.stack([line, -line], axis=1)
    >>> parallel = np.stack([line, line + 3.0], axis=1)
    >>> means = np.stack([crossing, parallel], axis=2)
    >>> measure_difference(means, np.full(5, 0.2)).round(2).tolist()
    [0.71, 0.0]
    """
    weight = (share / share.sum())[:, None, None]
    curves = means - (weight * means).sum(0)
    if curves.shape[1] > 1:
        curves = curves - curves.mean(1, keepdims=True)
    return np.asarray(np.sqrt((weight * np.square(curves)).sum(0).mean(0)))


def _number_values(
    prepare: Preparation, column: Column, X: NDArray[Any], own: NDArray[np.intp], at: int
) -> tuple[list[float], Floats, Floats]:
    """Values of a number in its unit, their shares (G,), and the column's features (G, own).

    None of the values is missing.
    """
    known = np.unique(X[:, at])
    if len(known) > settings.REPORT.few_values:
        tail = settings.REPORT.tail
        low, high = np.quantile(X[:, at], [tail, 1.0 - tail])
        known = np.linspace(low, high, settings.REPORT.n_values)
    numbers = [c.name for c in prepare.columns if c.kind in ("number", "date")]
    scaling = prepare.parts["number"][-1]
    place = numbers.index(column.name)
    values = known * scaling.scale_[place] + scaling.mean_[place]
    features = np.where(own == at, known[:, None], 0.0)
    share = np.full(len(known), 1.0 / len(known))
    return [float(f"{value:.10g}") for value in values], share, features


def _category_values(
    prepare: Preparation, column: Column, X: NDArray[Any], own: NDArray[np.intp], rows: Any
) -> tuple[list[str], Floats, Floats]:
    """Values of a category, their shares of the rows (G,), and the column's features (G, own)."""
    values = [prepare.feature_names[i].removeprefix(f"{column.name} = ") for i in own]
    values = [MISSING if value == f"{column.name} is missing" else value for value in values]
    share, features = X[:, own].mean(0), np.eye(len(own))
    rest = float((X[:, own].sum(1) == 0).mean())
    if rest > 0:
        values.append(_name_rest(column, values, rows))
        share = np.append(share, rest)
        features = np.concatenate([features, np.zeros((1, len(own)))])
    return values, share, features


def _name_rest(column: Column, values: Sequence[str], rows: Any) -> str:
    """The name of what is none of the values: the remaining value, if there is only one."""
    if column.kind != "category":
        return PRESENT
    if rows is None:
        return OTHER
    left = {text or MISSING for text in read_texts(rows[column.name])} - set(values)
    return left.pop() if len(left) == 1 else OTHER
