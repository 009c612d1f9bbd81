"""Errors on held-out rows: of the contexts, and of a pooled model that ignores them.

Some rows of the groups are held out, one fold after the other. Both kinds of models are fitted to
all other rows of the table and predict those of the fold. The context of a held-out row, and the
effects of its group, are found from the other rows of the group: contexts that were chosen with the
row in view would look better than they are.

Folds are evaluated as long as the number of rows that models are fitted to is within a budget.
Networks train for a short time only. If there are very many rows, only some of each group are held
out, and of some groups only.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import t as student_t
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor

from leaflearn.core.grouped_data import position_in_group, sum_by_group
from leaflearn.estimators.classifier import LeafClassifier
from leaflearn.estimators.regressor import LeafRegressor
from leaflearn.estimators.splitting import WithinGroupKFold
from leaflearn.tabular import settings
from leaflearn.tabular.fold_models import FoldModels

Floats = NDArray[np.float64]
Rows = NDArray[np.intp]
Interval = tuple[float, float]


@dataclass(frozen=True)
class ErrorsOfContext:
    """The errors on the rows of one context: of its local model, and of the pooled model.

    Examples
    --------
    >>> ErrorsOfContext(0, n_rows=40, n_groups=8, own=0.1, one_model=0.5).own_interval is None
    True
    """

    context: int
    n_rows: int
    n_groups: int
    own: float
    one_model: float
    own_interval: Interval | None = None
    one_model_interval: Interval | None = None


@dataclass(frozen=True)
class HeldOutErrors:
    """The error on held-out rows: the error rate, or the root mean squared error.

    `one_model` is the error of the pooled model, `contexts` the error of the local models, which
    include group effects if `has_effects` is True; the pooled model never does.
    `ratio_interval` belongs to the second divided by the first. The intervals have a level of 95 %;
    they are None if there are too few groups, or if an older version saved the model without them.

    Examples
    --------
    >>> HeldOutErrors("error rate", one_model=0.5, contexts=0.1, n_rows=200).contexts
    0.1
    """

    metric: str
    one_model: float
    contexts: float
    n_rows: int
    n_groups: int = 0
    one_model_interval: Interval | None = None
    contexts_interval: Interval | None = None
    ratio_interval: Interval | None = None
    by_context: tuple[ErrorsOfContext, ...] = ()
    has_effects: bool = False

    @property
    def is_rate(self) -> bool:
        """Whether the error is the share of wrong labels."""
        return self.metric == "error rate"


def compare_with_pooled_model(
    estimator: LeafClassifier | LeafRegressor,
    X: NDArray[Any],
    y: NDArray[Any],
    group: Rows,
    contexts: Rows,
    seed: int,
) -> HeldOutErrors | None:
    """Compare a model per context with a pooled model; None if all groups are single rows.

    The models of the contexts predict with group effects, if they have any; the pooled model knows
    no groups.

    Parameters
    ----------
    estimator
        The fitted estimator; one with scikit-learn models may be unfitted.
    X, y
        The training rows.
    group
        The group of each row, 0..m-1.
    contexts
        The context of each group, (m,).
    seed
        Seed of the choice of rows.

    Examples
    --------
    >>> from sklearn.linear_model import LinearRegression
    >>> X, group = np.linspace(-1, 1, 40)[:, None], np.tile([0, 1], 20)
    >>> y = np.where(group == 0, 1.0, -1.0) * X[:, 0]
    >>> leaf = LeafRegressor(2, local_model=LinearRegression())
    >>> errors = compare_with_pooled_model(leaf, X, y, group, np.array([0, 1]), seed=0)
    >>> errors.contexts < 0.01 < errors.one_model
    True
    """
    used, numbers = np.unique(contexts, return_inverse=True)
    models = FoldModels(estimator, X, y, group, numbers, seed)
    rows = choose_rows(group, settings.TABLES.held_out_rows, seed)
    if not len(rows):
        return None
    n_folds = count_folds(len(y), models.are_networks)
    pooled, local = predict_in_folds(models, rows, n_folds, seed)
    losses = row_losses(pooled, y[rows]), row_losses(local, y[rows])
    context = used[numbers[group[rows]]]
    return measure_errors(
        *losses, group[rows], context, is_rate=y.dtype.kind != "f", has_effects=models.has_effects
    )


def predict_in_folds(
    models: FoldModels, rows: Rows, n_folds: int, seed: int
) -> tuple[NDArray[Any], NDArray[Any]]:
    """Predictions of the pooled model and of the local models for rows that were held out, (n,).

    Without group effects, the local model of a row is the one that has the least loss on the other
    rows of its group: those of other folds, each predicted without its own fold, and those that are
    never held out.

    Examples
    --------
    >>> from sklearn.linear_model import LinearRegression
    >>> X, group = np.linspace(-1, 1, 40)[:, None], np.tile([0, 1], 20)
    >>> y = np.where(group == 0, 1.0, -1.0) * X[:, 0]
    >>> leaf = LeafRegressor(2, local_model=LinearRegression())
    >>> models = FoldModels(leaf, X, y, group, contexts=np.array([0, 1]), seed=0)
    >>> pooled, local = predict_in_folds(models, np.arange(40), n_folds=5, seed=0)
    >>> bool(np.abs(local - y).max() < 1e-6 < np.abs(pooled - y).max())
    True
    """
    group = models.group
    folds = WithinGroupKFold(n_folds, shuffle=True, random_state=seed)
    parts = [held for _, held in folds.split(rows, groups=group[rows])]  # places among the rows
    fold = np.empty(len(rows), dtype=np.intp)
    for number, held in enumerate(parts):
        fold[held] = number
    is_chosen = np.isin(group, group[rows])
    is_chosen[rows] = False
    never = np.flatnonzero(is_chosen) if models.n_contexts > 1 else np.empty(0, dtype=np.intp)
    first = [
        models.predict(
            np.setdiff1d(np.arange(len(group)), rows[held]), np.append(rows[held], never)
        )
        for held in parts
    ]
    n_columns = first[0].local.shape[1]
    pooled = np.empty(len(rows), dtype=models.y.dtype)
    local = np.empty((len(rows), n_columns), dtype=models.y.dtype)
    losses = np.empty((len(rows), n_columns))
    for held, found in zip(parts, first, strict=True):
        pooled[held] = found.pooled[: len(held)]
        local[held], losses[held] = found.local[: len(held)], found.losses[: len(held)]
    context = np.empty(len(rows), dtype=np.intp)
    for number, (held, found) in enumerate(zip(parts, first, strict=True)):
        others = fold != number
        scores = np.zeros((int(group.max()) + 1, n_columns))  #                    (m, K)
        np.add.at(scores, group[rows[others]], losses[others])
        np.add.at(scores, group[never], found.losses[len(held) :])
        context[held] = scores[group[rows[held]]].argmin(1)
    return pooled, local[np.arange(len(rows)), context]


def count_folds(n_rows: int, are_networks: bool) -> int:
    """The number of folds that the budget of fitted rows allows, at least two.

    Examples
    --------
    >>> count_folds(1000, are_networks=False), count_folds(10**6, are_networks=False)
    (5, 2)
    """
    limits = settings.TABLES
    if are_networks:  # trained for a number of steps that does not depend on the rows
        return limits.held_out_network_folds
    affordable = limits.held_out_work // (2 * n_rows)  # a pooled model, and all local models
    return int(np.clip(affordable, 2, limits.held_out_folds))


def are_needed(
    features: Floats, kept: Rows, y: NDArray[Any], group: Rows, contexts: Rows, seed: int
) -> bool:
    """Whether the other features are needed beside the kept ones to predict held-out rows.

    The comparison fits boosted trees per context.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> features, group = rng.normal(size=(400, 3)), np.repeat(np.arange(10), 40)
    >>> y, contexts = features[:, 0] + features[:, 1], np.zeros(10, dtype=int)
    >>> kept = np.array([0]), np.array([0, 1])
    >>> [are_needed(features, columns, y, group, contexts, seed=0) for columns in kept]
    [True, False]
    """
    split = hold_out(group, seed)
    if split is None:
        return True
    learn, held = split
    context = contexts[group]
    losses = []
    for x in (features, features[:, kept]):
        loss = np.empty(len(held))
        for k in np.unique(context[held]):
            mine, rows = context[held] == k, learn[context[learn] == k]
            if len(rows) < 2 or len(np.unique(y[rows])) < 2:
                return True
            model = make_trees(is_classifier=y.dtype.kind != "f", seed=seed).fit(x[rows], y[rows])
            loss[mine] = row_losses(model.predict(x[held[mine]]), y[held[mine]])
        losses.append(loss)
    return are_better(*losses)


def make_trees(is_classifier: bool, seed: int) -> Any:
    """A few boosted trees, to compare features.

    Examples
    --------
    >>> make_trees(is_classifier=True, seed=0).max_iter
    50
    """
    kind = HistGradientBoostingClassifier if is_classifier else HistGradientBoostingRegressor
    return kind(random_state=seed, max_iter=settings.TABLES.n_trees)


def are_better(losses: Floats, others: Floats) -> bool:
    """Whether losses of rows (N,) are smaller than others, significantly and by enough to matter.

    Examples
    --------
    >>> are_better(np.full(10, 0.5), np.ones(10)), are_better(np.full(10, 0.99), np.ones(10))
    (True, False)
    """
    limits, gain = settings.TABLES, others - losses
    return bool(
        losses.mean() < limits.needed_error_ratio * others.mean()
        and gain.mean() > limits.needed_standard_errors * gain.std() / math.sqrt(len(gain))
    )


def hold_out(group: Rows, seed: int) -> tuple[Rows, Rows] | None:
    """Rows to learn from and rows to predict, within groups; None if all groups are single rows.

    Both come from all groups, or from a part of them if there are many; their number is limited.

    Examples
    --------
    >>> [len(rows) for rows in hold_out(np.repeat(np.arange(4), 10), seed=0)]
    [32, 8]
    """
    rows = choose_rows(group, settings.TABLES.compared_rows, seed)
    if not len(rows):
        return None
    folds = WithinGroupKFold(settings.TABLES.held_out_folds, shuffle=True, random_state=seed)
    learn, held = next(folds.split(rows, groups=group[rows]))
    return (rows[learn], rows[held]) if len(held) else None


def choose_rows(group: Rows, max_rows: int, seed: int) -> Rows:
    """Rows that can be held out: of every group of at least two rows, or of at least 200 groups.

    If there are more than `max_rows`, large groups give fewer of their rows, down to ten. If these
    are still too many, some groups are left out.

    Examples
    --------
    >>> group = np.repeat(np.arange(4), [1, 10, 100, 1000])
    >>> np.bincount(group[choose_rows(group, 100, seed=0)])
    array([ 0, 10, 33, 33])
    """
    limits, rng = settings.TABLES, np.random.default_rng(seed)
    size = np.bincount(group)
    able = rng.permutation(np.flatnonzero(size > 1))
    wanted = max(limits.min_held_out_groups, max_rows // limits.min_rows_per_held_out_group)
    able = able[:wanted]
    per_group = max(2, max_rows // max(1, len(able)))
    position = position_in_group(group, rng.permutation(len(group)))
    return np.flatnonzero(np.isin(group, able) & (position < per_group))


def row_losses(predictions: NDArray[Any], y: NDArray[Any]) -> Floats:
    """Squared errors of values; 1 for each wrong label.

    Examples
    --------
    >>> row_losses(np.array(["a", "b"]), np.array(["a", "c"]))
    array([0., 1.])
    """
    if y.dtype.kind == "f":
        return np.asarray(np.square(predictions - y))
    return np.asarray(predictions != y, dtype=np.float64)


# ---- errors -------------------------------------------------------------------------------------


def measure_errors(
    pooled: Floats,
    local: Floats,
    group: Rows,
    context: Rows,
    is_rate: bool,
    has_effects: bool = False,
) -> HeldOutErrors:
    """Errors with intervals from the losses of rows.

    Parameters
    ----------
    pooled, local
        The loss of every row under the pooled model, and under the model of its context, (N,):
        squared errors, or 1 for each wrong label.
    group, context
        The group and the context of every row, (N,).
    is_rate
        Whether the losses are those of labels.
    has_effects
        Whether the local models include group effects.

    Examples
    --------
    >>> group = np.repeat(np.arange(6), 4)
    >>> errors = measure_errors(np.ones(24), np.zeros(24), group, group % 2, is_rate=True)
    >>> errors.one_model, errors.contexts, [part.own for part in errors.by_context]
    (1.0, 0.0, [0.0, 0.0])
    """
    rows, pooled_sums, local_sums = _count_and_sum(group, pooled, local)
    parts = [
        _measure_context(int(k), pooled, local, group, context == k, is_rate)
        for k in np.unique(context)
    ]
    return HeldOutErrors(
        metric="error rate" if is_rate else "RMSE",
        one_model=_error(pooled, is_rate),
        contexts=_error(local, is_rate),
        n_rows=len(pooled),
        n_groups=len(rows),
        one_model_interval=find_interval(pooled_sums, rows, is_rate),
        contexts_interval=find_interval(local_sums, rows, is_rate),
        ratio_interval=find_interval_of_ratio(local_sums, pooled_sums, is_rate),
        by_context=tuple(parts),
        has_effects=has_effects,
    )


def _measure_context(
    number: int,
    pooled: Floats,
    local: Floats,
    group: Rows,
    is_mine: NDArray[np.bool_],
    is_rate: bool,
) -> ErrorsOfContext:
    rows, pooled_sums, local_sums = _count_and_sum(group[is_mine], pooled[is_mine], local[is_mine])
    return ErrorsOfContext(
        context=number,
        n_rows=int(rows.sum()),
        n_groups=len(rows),
        own=_error(local[is_mine], is_rate),
        one_model=_error(pooled[is_mine], is_rate),
        own_interval=find_interval(local_sums, rows, is_rate),
        one_model_interval=find_interval(pooled_sums, rows, is_rate),
    )


def _count_and_sum(group: Rows, *losses: Floats) -> tuple[Floats, ...]:
    """The number of rows of each group, and the sums of their losses, (m,) each."""
    _, number = np.unique(group, return_inverse=True)
    return tuple(sum_by_group(np.stack((np.ones(len(group)), *losses), 1), number).T)


def _error(losses: Floats, is_rate: bool) -> float:
    return float(losses.mean()) if is_rate else math.sqrt(losses.mean())


def read_errors(saved: Mapping[str, Any] | None) -> HeldOutErrors | None:
    """The errors from `dataclasses.asdict`, also without intervals; a `TypeError` if malformed.

    Examples
    --------
    >>> saved = {"metric": "RMSE", "one_model": 2.0, "contexts": 1.0, "n_rows": 10}
    >>> read_errors(saved).ratio_interval is None
    True
    """
    if saved is None:
        return None
    parts = [ErrorsOfContext(**_check(part)) for part in saved.get("by_context", ())]
    return HeldOutErrors(**{**_check(saved), "by_context": tuple(parts)})


def _check(saved: Mapping[str, Any]) -> dict[str, Any]:
    """Check that errors are numbers; JSON has lists in place of pairs."""
    return {
        name: value if name in ("metric", "by_context") else _number(value, name)
        for name, value in saved.items()
    }


def _number(value: Any, name: str = "") -> Any:
    if name.endswith("_interval"):
        return None if value is None else (_number(value[0]), _number(value[1]))
    if isinstance(value, bool) and name == "has_effects":
        return value
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise TypeError("an error is a number")
    return value


# ---- intervals ----------------------------------------------------------------------------------
#
# How far may an error be from its expectation over all possible groups? The groups are treated as a
# sample: errors of the rows of a group may be correlated, so the variance between groups counts.
# Bootstrap intervals over the groups are much too narrow if there are few groups. These intervals
# use the quantile of Student's t on a scale on which errors are spread more evenly, so that no end
# is below 0 or above 1.


def find_interval(losses: Floats, rows: Floats, is_rate: bool) -> Interval | None:
    """The interval of an error rate or of a root mean squared error; None for too few groups.

    Parameters
    ----------
    losses
        The sum of the losses of each group's rows, (m,): wrong labels, or squared errors.
    rows
        The number of rows of each group, (m,).
    is_rate
        Whether the losses are those of labels.

    Examples
    --------
    Eight groups of ten rows; two rows are wrong in each of the first four groups.

    >>> wrong = np.array([2.0, 2.0, 2.0, 2.0, 0.0, 0.0, 0.0, 0.0])
    >>> [round(end, 2) for end in find_interval(wrong, np.full(8, 10.0), is_rate=True)]
    [0.04, 0.22]
    """
    if not is_rate:
        return find_interval_of_ratio(losses, rows, is_rate)
    if len(losses) < settings.TABLES.min_interval_groups:
        return None
    n_rows = float(rows.sum())
    share = float(losses.sum()) / n_rows
    error = _standard_error(losses - share * rows) / n_rows
    return _wilson_interval(share, error, n_rows, _quantile(len(losses)))


def find_interval_of_ratio(losses: Floats, others: Floats, is_rate: bool) -> Interval | None:
    """The interval of the ratio of two errors on the same rows.

    It is None for too few groups, or if one of the errors is 0.

    Examples
    --------
    >>> others = np.array([3.0, 5.0, 4.0, 6.0, 5.0, 4.0])
    >>> losses = 0.5 * others + [0.2, -0.2, 0.1, -0.1, 0.3, -0.3]
    >>> [round(end, 2) for end in find_interval_of_ratio(losses, others, is_rate=True)]
    [0.45, 0.56]
    """
    sums = np.array([losses.sum(), others.sum()])
    if len(losses) < settings.TABLES.min_interval_groups or not (
        np.isfinite(sums).all() and sums.all()
    ):
        return None
    power = 1.0 if is_rate else 0.5  # a root halves deviations on the log scale
    middle = float(sums[0] / sums[1]) ** power
    reach = power * _quantile(len(losses)) * _standard_error(losses / sums[0] - others / sums[1])
    return middle * math.exp(-reach), middle * math.exp(reach)


def _standard_error(deviations: Floats) -> float:
    """The standard error of a sum over groups, from the deviation of each group, (m,)."""
    m = len(deviations)
    return math.sqrt(m / (m - 1) * float(np.square(deviations).sum()))


def _quantile(n_groups: int) -> float:
    return float(student_t.ppf(0.5 + settings.TABLES.interval_level / 2, n_groups - 1))


def _wilson_interval(share: float, error: float, n_rows: float, quantile: float) -> Interval:
    """Wilson's interval for the number of independent rows that has this standard error."""
    rows = n_rows if error == 0 else min(n_rows, share * (1.0 - share) / error**2)
    slack = quantile**2 / rows
    middle = (share + slack / 2) / (1.0 + slack)
    reach = math.sqrt(share * (1.0 - share) * slack + slack**2 / 4) / (1.0 + slack)
    return max(0.0, middle - reach), min(1.0, middle + reach)
