"""How many contexts there are, chosen on held-out rows; AIC, BIC and ICL for comparison.

Each further context lowers the loss under the best model, if only by chance. Chance does not
improve predictions: for a held-out row, the context that the other rows of its group choose must be
the better one. So the losses of held-out rows are compared group by group, and one more context
must lower them significantly.

The standard error is estimated in two ways. If all groups gain about the same, it is estimated from
the differences between groups. If two sources of twelve contradict all others, only they gain; then
it is estimated from the rows. The smaller estimate is used.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from leaflearn.initialization import settings
from leaflearn.initialization.search import GroupTable, SearchResult, harden, ridge_at, solve


@dataclass(frozen=True, eq=False)
class CandidateCount:
    """The losses that one number of contexts leaves.

    Parameters
    ----------
    n_contexts
        The number of contexts.
    error
        Mean over groups of the loss under the best model that has not seen the group.
    held_out
        Loss of each held-out row, one line per group, shape (m, n); nan in padding and for groups
        of a single row.

    Examples
    --------
    >>> CandidateCount(2, 0.1, np.array([[0.2, 0.3], [0.75, np.nan], [np.nan, np.nan]])).mean
    0.5
    """

    n_contexts: int
    error: float
    held_out: NDArray[np.float64]

    @property
    def mean(self) -> float:
        """Mean over groups of the loss of their held-out rows; nan where no group has two rows."""
        means = mean_of_rows(self.held_out)
        means = means[np.isfinite(means)]
        return float(np.mean(means)) if len(means) else float("nan")


def count_up(find: Callable[[int], CandidateCount], most: int) -> list[CandidateCount]:
    """Try 1, 2, ... contexts, until more of them bring no significant gain, at most `most`.

    Examples
    --------
    >>> losses = {1: 0.9, 2: 0.95, 3: 0.01, 4: 0.01, 5: 0.01}
    >>> def find(k):
    ...     return CandidateCount(k, losses[k], np.full((20, 2), losses[k]))
    >>> [count.n_contexts for count in count_up(find, most=9)]
    [1, 2, 3, 4, 5]
    """
    counts: list[CandidateCount] = []
    best = 0
    for n_contexts in range(1, most + 1):
        counts.append(find(n_contexts))
        if is_significantly_better(counts[-1], counts[best]):
            best = len(counts) - 1
        if len(counts) - 1 - best >= settings.SEARCH.n_contexts.patience:
            break
    return counts


def choose(counts: list[CandidateCount]) -> int:
    """The smallest number of contexts that no larger one improves on significantly.

    Examples
    --------
    >>> losses = [0.9, 0.95, 0.01, 0.0099]
    >>> choose([CandidateCount(k, x, np.full((20, 2), x)) for k, x in enumerate(losses, start=1)])
    3
    """
    for i, candidate in enumerate(counts):
        if not any(is_significantly_better(larger, candidate) for larger in counts[i + 1 :]):
            return candidate.n_contexts
    return counts[-1].n_contexts


def count_down(
    find: Callable[[int], CandidateCount], asked: int
) -> tuple[int, list[CandidateCount]]:
    """How many of the requested contexts the data support, and all counts that were tried.

    If one context less is significantly worse, all are used. The size of the difference does not
    matter, because they were requested, and with mixed groups or wrong labels most of the loss is
    noise. Otherwise the number is found by bisection. If that gives one context, held-out rows are
    not informative and all requested contexts are used: they may differ in few places only.

    Examples
    --------
    >>> losses = {1: 0.9, 2: 0.95, 3: 0.01, 4: 0.01, 5: 0.01}
    >>> def find(k):
    ...     return CandidateCount(k, losses[k], np.full((20, 2), losses[k]))
    >>> n_used, counts = count_down(find, asked=5)
    >>> n_used, [count.n_contexts for count in counts]
    (3, [1, 2, 3, 4, 5])
    """
    counts: dict[int, CandidateCount] = {}

    def find_once(n: int) -> CandidateCount:
        if n not in counts:
            counts[n] = find(n)
        return counts[n]

    def is_better(more: int, less: int) -> bool:
        return is_significantly_better(find_once(more), find_once(less), min_gain=0.0)

    too_few, enough = 1, asked
    find_once(asked), find_once(1)
    if asked > 2 and not is_better(asked, asked - 1):
        enough = asked - 1
        while enough - too_few > 1:
            middle = (too_few + enough) // 2
            if is_better(enough, middle):
                too_few = middle
            else:
                enough = middle
    n_used = enough if is_better(enough, too_few) else too_few
    return n_used if n_used > 1 else asked, [counts[n] for n in sorted(counts)]


def is_significantly_better(
    better: CandidateCount, worse: CandidateCount, min_gain: float | None = None
) -> bool:
    """Whether the first predicts held-out rows significantly better, or fits far better.

    Contexts that differ in rare groups, or in few places, change the mean loss of held-out rows
    little and the fit much.

    Parameters
    ----------
    better, worse
        Two numbers of contexts with their losses.
    min_gain
        Share of the loss that must be saved, in addition to significance; by default
        `CountSettings.min_gain`.

    Examples
    --------
    >>> one = CandidateCount(1, 0.5, np.full((50, 4), 0.5))
    >>> two = CandidateCount(2, 0.1, np.full((50, 4), 0.1))
    >>> is_significantly_better(two, one), is_significantly_better(one, two)
    (True, False)
    """
    setting = settings.SEARCH.n_contexts
    n_more = better.n_contexts - worse.n_contexts
    if better.error * setting.min_loss_ratio**n_more < worse.error and n_more > 0:
        return True
    gain = worse.held_out - better.held_out  #                                      (m, n)
    gain = gain[np.isfinite(gain).any(1)]
    if len(gain) < 2:
        return False
    required = (setting.min_gain if min_gain is None else min_gain) * worse.mean
    return bool(
        mean_of_rows(gain).mean() > max(setting.n_standard_errors * standard_error(gain), required)
    )


def standard_error(gain: NDArray[np.float64]) -> float:
    """Standard error of the mean gain of groups that have at least one finite value each.

    It is the smaller one of two estimates: from the differences between groups, and from the gains
    of rows. If the signs of the rows' gains were random, their sum would be about the root of the
    sum of their squares.

    Parameters
    ----------
    gain
        Gain of the rows of each group, nan in padding, shape (m, n).

    Examples
    --------
    >>> few_gain_much = np.concatenate([np.full((2, 40), 1.0), np.zeros((10, 40))])
    >>> round(standard_error(few_gain_much), 3), round(standard_error(few_gain_much[:, :1]), 3)
    (0.019, 0.112)
    """
    n_finite = np.isfinite(gain).sum(1, keepdims=True)  #                           (m, 1)
    of_groups = mean_of_rows(gain).std(ddof=1) * np.sqrt(len(gain))
    return float(min(of_groups, np.sqrt(np.nansum((gain / n_finite) ** 2))) / len(gain))


def mean_of_rows(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Mean of the finite values of each line, nan where there are none, (m,).

    Examples
    --------
    >>> mean_of_rows(np.array([[1.0, 2.0], [3.0, np.nan]]))
    array([1.5, 3. ])
    """
    is_finite = np.isfinite(values)
    n_finite = is_finite.sum(1)
    sums = np.where(is_finite, values, 0.0).sum(1)
    return np.divide(sums, n_finite, out=np.full(len(values), np.nan), where=n_finite > 0)


class Criteria(NamedTuple):
    """Information criteria of a number of contexts; lower is better.

    The surrogate models are taken as a mixture of Gaussian regressions with one variance, and each
    group as a member of its context only. Their number of parameters is the effective one: the
    trace of the matrix that maps targets to predictions.
    """

    train_error: float  # mean squared error of the rows that the models were fitted to
    aic: float
    bic: float
    icl: float


def compute_criteria(table: GroupTable, found: SearchResult) -> Criteria:
    """The information criteria of one start.

    Examples
    --------
    >>> import numpy as np
    >>> from leaflearn.initialization.search import refine
    >>> y = torch.tensor([[1.0], [1.1], [-1.0], [-1.1]], dtype=torch.float64).repeat(5, 1)
    >>> table = GroupTable.of(torch.ones(20, 1, dtype=torch.float64), y, np.arange(20) // 2)
    >>> one, two = (
    ...     compute_criteria(table, refine(table, torch.arange(10)[None] % k, k, torch.ones(1)))
    ...     for k in (1, 2)
    ... )
    >>> two.aic < one.aic, two.bic < one.bic, two.icl < one.icl
    (True, True, True)
    """
    n_contexts, contexts = found.losses.shape[1], found.contexts
    coefficients, root, fitted_weight = solve(
        table, harden(contexts, n_contexts, table.y.dtype), ridge_at(found.error)
    )
    x = table.features.reshape(-1, table.features.shape[-1])  #                     (M, F)
    squares = (table.y.reshape(len(x), -1) - x @ coefficients).square().sum(-1)  #  (K, M)
    squares = squares.reshape(n_contexts, *table.weight.shape).sum(-1)  #           (K, m)
    half = torch.linalg.solve_triangular(root, x.T.expand(n_contexts, -1, -1), upper=False)
    n_effective = float((half.square().sum(1) * fitted_weight[:, 0]).sum())
    n_rows = int(table.weight.sum())
    return _from_squares(squares, contexts[0], n_effective, n_rows, table.y.shape[-1])


def _from_squares(
    squares: Tensor, contexts: Tensor, n_effective: float, n_rows: int, n_outputs: int
) -> Criteria:
    n_contexts, n_values = len(squares), n_rows * n_outputs
    own = squares.gather(0, contexts[None]).sum()
    variance = max(float(own) / n_values, settings.SEARCH.min_loss / n_outputs)
    share = torch.bincount(contexts, minlength=n_contexts).to(squares.dtype) / len(contexts)  # (K,)
    log_share = torch.log(share.clamp(min=1e-12))
    deviance = (
        n_values * math.log(2 * math.pi * variance)
        + float(own) / variance
        - 2 * float(log_share[contexts].sum())
    )
    n_parameters = n_effective * n_outputs + n_contexts  # shares sum to 1, and there is a variance
    posterior = torch.softmax(log_share[:, None] - squares / (2 * variance), 0)  #  (K, m)
    entropy = float(torch.special.entr(posterior).sum())
    bic = deviance + n_parameters * math.log(n_rows)
    return Criteria(float(own) / n_rows, deviance + 2 * n_parameters, bic, bic + 2 * entropy)
