"""Rows that contradict their context: outlier rows of a group, and wrong labels.

A group may contain a few rows of another context. With squared errors, one such row can outweigh
the others, both in the choice of the context and in the fit of the models. `find_outlier_rows`
finds them, and `search_with_bounded_losses` repeats the search with losses that are bounded, so
that the size of a large error does not matter.

A label may be wrong inside the right context. `find_wrong_labels` finds such labels before anything
is trained, so that no local model memorizes them.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn.functional import one_hot

from leaflearn.initialization import settings
from leaflearn.initialization.features import Projection
from leaflearn.initialization.search import (
    GroupTable,
    SearchResult,
    harden,
    leave_group_out,
)

Flags = NDArray[np.bool_]


def find_outlier_rows(rows: Tensor, contexts: Tensor, table: GroupTable) -> Tensor:
    """Rows with a large loss that another context explains far better, as a mask (m, n).

    Parameters
    ----------
    rows
        Loss of each row under each model, shape (K, m, n).
    contexts
        The context of each group, shape (m,).
    table
        The groups.

    Examples
    --------
    Two models, and one group of four rows:

    >>> import numpy as np
    >>> table = GroupTable.of(torch.ones(4, 1), torch.zeros(4, 1), np.zeros(4, dtype=int))
    >>> losses = torch.tensor([[[0.1, 0.1, 0.1, 9.0]], [[9.0, 9.0, 9.0, 0.1]]])
    >>> find_outlier_rows(losses, torch.tensor([0]), table)
    tensor([[False, False, False,  True]])
    """
    own = _own(rows, contexts)  #                                                   (m, n)
    is_outlier = are_outliers(own, rows.amin(0), find_bound(rows, contexts, table))
    is_decidable = table.sizes > settings.SEARCH.outliers.undecidable_size
    return is_outlier & (table.weight > 0) & is_decidable[:, None]


def find_bound(rows: Tensor, contexts: Tensor, table: GroupTable) -> float:
    """The loss above which a row may be an outlier: a multiple of the median loss of all rows.

    Examples
    --------
    >>> import numpy as np
    >>> table = GroupTable.of(torch.ones(3, 1), torch.zeros(3, 1), np.zeros(3, dtype=int))
    >>> find_bound(torch.tensor([[[0.25, 0.5, 9.0]]]), torch.tensor([0]), table)
    10.0
    """
    return float(_bound(_own(rows, contexts), table))


def are_outliers(own: Tensor, best: Tensor, bound: float) -> Tensor:
    """Rows whose loss in their own context exceeds the bound, and by far the loss in the best one.

    Examples
    --------
    >>> are_outliers(torch.tensor([0.1, 9.0, 9.0]), torch.tensor([0.1, 0.1, 8.0]), bound=2.0)
    tensor([False,  True, False])
    """
    return (own > bound) & (best * settings.SEARCH.outliers.min_ratio < own)


def bound_losses(rows: Tensor, bound: float | Tensor) -> Tensor:
    """Losses that approach the bound and never exceed it.

    Examples
    --------
    >>> bound_losses(torch.tensor([0.0, 1.0, 999.0]), bound=1.0)
    tensor([0.0000, 0.5000, 0.9990])
    """
    return bound * rows / (bound + rows)


def weigh_rows(rows: Tensor, bound: float | Tensor) -> Tensor:
    """Weights of rows with these losses in a fit with bounded losses, from 1 down to 0.

    Examples
    --------
    >>> weigh_rows(torch.tensor([0.0, 1.0, 999.0]), bound=1.0)
    tensor([1.0000e+00, 2.5000e-01, 1.0000e-06])
    """
    return (bound / (bound + rows)).square()


def mean_of_inliers(rows: Tensor, contexts: Tensor, is_outlier: Tensor, table: GroupTable) -> float:
    """Mean loss of the rows that are no outliers, each in the context of its group.

    Examples
    --------
    >>> import numpy as np
    >>> table = GroupTable.of(torch.ones(2, 1), torch.zeros(2, 1), np.zeros(2, dtype=int))
    >>> losses, is_outlier = torch.tensor([[[0.5, 9.0]]]), torch.tensor([[False, True]])
    >>> mean_of_inliers(losses, torch.tensor([0]), is_outlier, table)
    0.5
    """
    return float(_own(rows, contexts)[(table.weight > 0) & ~is_outlier].mean())


def search_with_bounded_losses(
    table: GroupTable, contexts: Tensor, n_contexts: int
) -> SearchResult:
    """Continue the search from these contexts (m,) with bounded losses.

    The bound falls to a multiple of the median loss, see `OutlierSettings`.

    Examples
    --------
    The last row of every other group is an outlier.

    >>> import numpy as np
    >>> y = torch.tensor([1.0, 1.0, 1.0, -1.0, -1.0, -1.0, -1.0, 1.0], dtype=torch.float64)
    >>> features = torch.ones(40, 1, dtype=torch.float64)
    >>> table = GroupTable.of(features, y.repeat(5)[:, None], np.arange(40) // 4)
    >>> search_with_bounded_losses(table, torch.arange(10) % 2, 2).contexts
    tensor([[0, 1, 0, 1, 0, 1, 0, 1, 0, 1]])
    """
    setting = settings.SEARCH.outliers
    contexts, row_weight = contexts[None], None
    loss = torch.full((1,), setting.min_loss, dtype=table.y.dtype)
    for round_ in range(setting.rounds):
        weights = harden(contexts, n_contexts, table.y.dtype)
        ridge = settings.SEARCH.ridge * loss.clamp(min=setting.min_loss)
        rows = leave_group_out(table, weights, ridge, row_weight)  #                (1, K, m, n)
        falling = setting.first_bound * (1 - round_ / (setting.tightening * setting.rounds))
        bound = torch.maximum(
            _bound(_own(rows[0], contexts[0]), table), torch.tensor(falling).to(rows)
        )
        row_weight = weigh_rows(rows, bound)
        mean = bound_losses(rows, bound).sum(-1) / table.sizes  #                   (1, K, m)
        loss, contexts = mean.amin(1).mean(-1), mean.argmin(1)
    return SearchResult(contexts, mean, loss, torch.full_like(rows[:, 0], torch.nan), rows)


def _own(rows: Tensor, contexts: Tensor) -> Tensor:
    """Loss of each row in the context of its group, (m, n)."""
    return torch.gather(rows, 0, contexts[None, :, None].expand(1, -1, rows.shape[-1]))[0]


def _bound(own: Tensor, table: GroupTable) -> Tensor:
    setting = settings.SEARCH.outliers
    return setting.bound * own[table.weight > 0].median().clamp(min=setting.min_loss)


# ---- wrong labels -------------------------------------------------------------------------------


def find_wrong_labels(
    x: NDArray[np.floating],
    y: NDArray[np.integer],
    group: NDArray[np.intp],
    contexts: NDArray[np.intp],
    seed: int,
) -> Flags:
    """Rows whose label the other rows of their context contradict, shape (N,); none if few.

    A smooth model of each context estimates how plausible each label is for each input, without
    that input. If more than a few labels are far less plausible than another one, the context has
    wrong labels, and all rows whose label is clearly less plausible than another one are returned.
    Contexts whose classes merely overlap have none: there, another label is likelier, but not by
    far.

    A group with a majority of such rows is in the wrong context, and the model cannot predict a
    class with a majority of them: both keep all their rows. So do groups of a single row.

    Parameters
    ----------
    x
        Inputs (N, ...).
    y
        Class numbers (N,).
    group
        The group of each row, 0..m-1.
    contexts
        The context of each group (m,).
    seed
        Determines the order of the rows, which matters if they are judged in parts.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> x, group, contexts = rng.normal(size=(400, 1)), np.arange(400) // 4, np.zeros(100, int)
    >>> y = (x[:, 0] > 0).astype(int)
    >>> wrong = (np.arange(400) % 20 == 0) & (np.abs(x[:, 0]) > 0.5)
    >>> found = find_wrong_labels(x, np.where(wrong, 1 - y, y), group, contexts, seed=0)
    >>> np.array_equal(found, wrong)
    True
    >>> find_wrong_labels(x, y, group, contexts, seed=0).any()
    np.False_
    """
    rng = np.random.default_rng(seed)
    max_rows = settings.SEARCH.wrong_labels.max_rows
    project = Projection.of(x[np.sort(rng.permutation(len(y))[:max_rows])])
    found = np.zeros(len(y), dtype=bool)
    for context in np.unique(contexts):
        rows = np.flatnonzero(contexts[group] == context)
        found[rows] = _find_in_context(project, x, y, rows, group[rows], rng)
    return found


def _find_in_context(
    project: Projection,
    x: NDArray[np.floating],
    y: NDArray[np.integer],
    rows: NDArray[np.intp],
    group: NDArray[np.intp],
    rng: np.random.Generator,
) -> Flags:
    setting = settings.SEARCH.wrong_labels
    is_suspect, is_certain = np.zeros(len(rows), dtype=bool), np.zeros(len(rows), dtype=bool)
    order = rng.permutation(len(rows))
    few = rows[order[: setting.n_scale_rows]]
    scale = _estimate(project(x[few]), y[few], setting.scales).scale
    for number, part in enumerate(np.array_split(order, -(-len(rows) // setting.max_rows))):
        label = _estimate(project(x[rows[part]]), y[rows[part]], (scale,))
        is_suspect[part] = label.best - label.own > setting.min_margin
        is_certain[part] = is_suspect[part] & (setting.min_ratio * label.own < label.best)
        # One part is enough to see that there are no wrong labels, so clean data cost little.
        if number == 0 and (
            label.unexplained > setting.max_unexplained
            or is_certain[part].mean() <= setting.min_share
        ):
            return np.zeros(len(rows), dtype=bool)
    is_judged = ~_is_mostly(is_suspect, group) & ~_is_mostly(is_suspect, y[rows])
    return is_suspect & is_judged & ((is_certain & is_judged).mean() > setting.min_share)


def _is_mostly(flags: Flags, key: NDArray[np.integer]) -> Flags:
    """Rows whose key, a group or a class, has more than half of its rows flagged."""
    return np.asarray((2 * np.bincount(key, flags) > np.bincount(key))[key])


class _Plausibility(NamedTuple):
    """How plausible labels are under a smooth model that has not seen them."""

    own: NDArray[np.float64]  # plausibility of the given label, about 0 to 1       (n,)
    best: NDArray[np.float64]  # plausibility of the most plausible label           (n,)
    unexplained: float  # 1 if inputs are not informative about labels
    scale: float


def _estimate(z: Tensor, y: NDArray[np.integer], scales: tuple[float, ...]) -> _Plausibility:
    """Plausibilities at the scale that predicts left-out labels best.

    All classes have the same weight, so that a rare one is no less plausible.
    """
    classes, number = np.unique(y, return_inverse=True)
    labels = one_hot(torch.as_tensor(number), len(classes)).to(z.dtype)  #          (n, C)
    weight = (len(y) / len(classes) / labels.sum(0))[number]  #                     (n,)
    centred = labels - 1 / len(classes)
    predicted = _predict_left_out(z, centred, weight, scales)  #                    (S, n, C)
    total = (centred.square().sum(-1) @ weight).clamp(min=1e-12)
    unexplained = ((predicted - centred).square().sum(-1) @ weight) / total  #      (S,)
    best = int(unexplained.argmin())
    plausible = predicted[best] + 1 / len(classes)
    return _Plausibility(
        (plausible * labels).sum(1).numpy(),
        plausible.amax(1).numpy(),
        float(unexplained[best]),
        scales[best],
    )


def _predict_left_out(z: Tensor, y: Tensor, weight: Tensor, scales: tuple[float, ...]) -> Tensor:
    """Predictions (S, n, C) of kernel ridge regressions for each row without it and its copies.

    Copies of a row with a wrong label would confirm that label. So equal inputs are one row with
    the weight of all of them.
    """
    setting = settings.SEARCH.wrong_labels
    _, first, which = np.unique(z.numpy().round(6), axis=0, return_index=True, return_inverse=True)
    distinct, at = z[first], torch.as_tensor(which.reshape(-1))
    total = weight.new_zeros(len(distinct)).index_add_(0, at, weight)  #            (u,)
    sums = y.new_zeros(len(distinct), y.shape[1]).index_add_(0, at, weight[:, None] * y)
    mean = sums / total[:, None]
    squared = torch.cdist(distinct, distinct).square()  #                           (u, u)
    some = squared[: setting.n_distance_inputs, : setting.n_distance_inputs]
    unit = some[some > 0].median() if len(distinct) > 1 else torch.ones_like(squared[0, 0])
    predicted = []
    for scale in scales:
        kernel = torch.exp(-scale / unit * squared) + torch.diag(setting.ridge / total)
        inverse = torch.cholesky_inverse(torch.linalg.cholesky(kernel))
        predicted.append((mean - inverse @ mean / inverse.diagonal()[:, None])[at])
    return torch.stack(predicted)
