"""What would one model for all have made of it? Both are fitted again without some rows of every group, and asked for these.

It is a check and not the model itself, so networks learn for a short while only, and from some of the groups where there are many.
"""

from __future__ import annotations

import math
import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor

from leaflearn.estimators.splitting import WithinGroupKFold
from leaflearn.tabular.held_out_errors import HeldOutErrors, measure_errors

MOST_ROWS = 5000
STEPS = 400  # of a network: a fifth of what a fit takes
N_FOLDS = 5  # one of which is held out
HELPS = 0.95  # of the error, or less: then features that were left out are missed

Rows = NDArray[np.intp]


def compare_with_pooled_model(
    estimator: Any, X: NDArray[Any], y: NDArray[Any], group: Rows, contexts: Rows, seed: int
) -> HeldOutErrors | None:  # fmt: skip
    """Hold a model for each context, as found, against one model for all; None where groups are single rows.

    Parameters
    ----------
    estimator
        As it was fitted.
    X, y
        The training rows.
    group
        The group of each, 0..m-1.
    contexts
        The context of each group, (m,).
    seed
        Of the choice of rows.

    Examples
    --------
    >>> from sklearn.linear_model import LinearRegression
    >>> from leaflearn import LeafRegressor
    >>> X, group = np.linspace(-1, 1, 40)[:, None], np.tile([0, 1], 20)
    >>> y = np.where(group == 0, 1.0, -1.0) * X[:, 0]
    >>> errors = compare_with_pooled_model(LeafRegressor(2, local_model=LinearRegression()), X, y, group, np.array([0, 1]), seed=0)
    >>> errors.contexts < 0.01 < errors.one_model
    True
    """
    split = hold_out(group, seed)
    if split is None:
        return None
    learn, held = split
    quick = _make_quick(estimator, len(np.unique(group[learn])))
    one = _answers(quick, X, y, group, learn, held)
    context, each = contexts[group], one.copy()
    for k in np.unique(context[held]) if contexts.max() else ():
        mine = held[context[held] == k]
        each[np.isin(held, mine)] = _answers(quick, X, y, group, learn[context[learn] == k], mine)
    is_rate = y.dtype.kind != "f"
    return measure_errors(
        row_losses(one, y[held]), row_losses(each, y[held]), group[held], context[held], is_rate
    )


def are_needed(
    features: NDArray[np.float64],
    kept: Rows,
    y: NDArray[Any],
    group: Rows,
    contexts: Rows,
    seed: int,
) -> bool:
    """Do held-out rows suffer where only the kept features are known? Asked of boosted trees, one for each context.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> features, group = rng.normal(size=(400, 3)), np.repeat(np.arange(10), 40)
    >>> y, contexts = features[:, 0] + features[:, 1], np.zeros(10, dtype=int)
    >>> [are_needed(features, np.array(kept), y, group, contexts, seed=0) for kept in ([0], [0, 1])]
    [True, False]
    """
    split = hold_out(group, seed)
    if split is None:
        return True
    learn, held = split
    context = contexts[group]
    kind = HistGradientBoostingRegressor if y.dtype.kind == "f" else HistGradientBoostingClassifier
    losses = []
    for x in (features, features[:, kept]):
        loss = np.empty(len(held))
        for k in np.unique(context[held]):
            mine, rows = context[held] == k, learn[context[learn] == k]
            if len(rows) < 2 or len(np.unique(y[rows])) < 2:
                return True
            model = kind(random_state=seed, max_iter=50).fit(x[rows], y[rows])
            loss[mine] = row_losses(model.predict(x[held[mine]]), y[held[mine]])
        losses.append(loss)
    gain = losses[1] - losses[0]
    return bool(
        losses[0].mean() < HELPS * losses[1].mean()
        and gain.mean() > 2.0 * gain.std() / math.sqrt(len(gain))
    )


def hold_out(group: Rows, seed: int) -> tuple[Rows, Rows] | None:
    """Rows to learn from and rows to ask for, of as many groups as have enough rows; None where all are single rows.

    Examples
    --------
    >>> [len(rows) for rows in hold_out(np.repeat(np.arange(4), 10), seed=0)]
    [32, 8]
    """
    rng, size = np.random.default_rng(seed), np.bincount(group)
    if size.max() < 2:
        return None
    order = rng.permutation(len(size))
    taken = order[: max(1, int(np.searchsorted(np.cumsum(size[order]), MOST_ROWS, side="right")))]
    rows = rng.permutation(np.flatnonzero(np.isin(group, taken)))[:MOST_ROWS]
    if np.bincount(group[rows]).max() < 2:
        return None
    learn, held = next(
        WithinGroupKFold(N_FOLDS, shuffle=True, random_state=seed).split(rows, groups=group[rows])
    )
    return (rows[learn], rows[held]) if len(held) else None


def _make_quick(estimator: Any, n_groups: int) -> Any:
    """The same with one context, one start and few steps."""
    quick = clone(estimator).set_params(n_contexts=1, n_init=1, callbacks=None, verbose=0)
    if quick._engine != "refit":
        quick.set_params(
            max_epochs=max(5, math.ceil(STEPS / math.ceil(n_groups / quick.groups_per_step)))
        )
    return quick


def _answers(
    quick: Any, X: NDArray[Any], y: NDArray[Any], group: Rows, learn: Rows, ask: Rows
) -> NDArray[Any]:
    """What a model of some rows says of others; the one label there is, where there is one only."""
    if not len(learn):
        learn = np.setdiff1d(np.arange(len(y)), ask)
    if len(np.unique(y[learn])) == 1:
        return np.repeat(y[learn[:1]], len(ask))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        answers: NDArray[Any] = (
            clone(quick).fit(X[learn], y[learn], groups=group[learn]).predict(X[ask])
        )
    return answers


def row_losses(answers: NDArray[Any], y: NDArray[Any]) -> NDArray[np.float64]:
    """Squared errors of values; of labels, which are wrong.

    Examples
    --------
    >>> row_losses(np.array(["a", "b"]), np.array(["a", "c"]))
    array([0., 1.])
    """
    return (
        np.square(answers - y)
        if y.dtype.kind == "f"
        else np.asarray(answers != y, dtype=np.float64)
    )
