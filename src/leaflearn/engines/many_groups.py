"""Contexts that were found on some of the groups, fitted to all of them.

Which columns have effects, how large their variances are, and how many contexts there are, is
decided by a few thousand groups as well as by a million. The means, the noise, the priors and the
posterior then follow from all groups in one pass over their rows, a block of groups at a time, so
that memory does not grow with the data.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from leaflearn.effects.restricted_likelihood import (
    MixedModel,
    fit_from_products,
    log_likelihood,
    marginal_products,
)
from leaflearn.engines import settings
from leaflearn.moments.group_moments import GroupMoments

Floats = NDArray[np.float64]
Ints = NDArray[np.intp]


@dataclass(frozen=True, eq=False)
class AllGroups:
    """Contexts fitted to all groups; K contexts, m groups."""

    models: list[list[MixedModel]]  # by context and target
    priors: Floats  #                                                               (K,)
    scores: Floats  # minus log of prior times marginal likelihood                  (m, K)
    posterior: Floats  #                                                            (K, m)


def sample_groups(group: Ints, n_groups: int, seed: int) -> Ints:
    """Rows of groups that are drawn at random, in order; `n_groups` of them.

    Examples
    --------
    >>> sample_groups(np.array([0, 0, 1, 2, 2]), 2, seed=0)
    array([0, 1, 3, 4])
    """
    m = int(group.max()) + 1
    is_drawn = np.zeros(m, dtype=bool)
    is_drawn[np.random.default_rng(seed).permutation(m)[:n_groups]] = True
    return np.flatnonzero(is_drawn[group])


def iterate_moments(
    make_features: Callable[[Floats], Floats],
    X: Floats,
    y: Floats,
    group: Ints,
    weight: Floats | None,
) -> Iterator[GroupMoments]:
    """Moments of all groups in their order, a block of groups at a time."""
    order = np.argsort(group, kind="stable")
    m, at_once = int(group.max()) + 1, settings.CLOSED_FORM.groups_at_once
    starts = np.arange(0, m, at_once)
    ends = np.searchsorted(group[order], starts + at_once)
    for start, first, end in zip(starts, np.r_[0, ends[:-1]], ends, strict=True):
        rows = order[first:end]
        own = None if weight is None else weight[rows]
        n_groups = min(at_once, m - int(start))
        yield GroupMoments.of_rows(
            make_features, X[rows], y[rows], group[rows] - start, n_groups, own
        )


def fit_to_all(
    models: Sequence[Sequence[MixedModel]],
    priors: Floats,
    blocks: Iterator[GroupMoments],
    is_shrunk: NDArray[np.bool_],
    is_hard: bool,
) -> AllGroups:
    """One round over all groups: their posterior, then the means and the noise of the contexts.

    Variances of effects, relative to the noise, stay. So does a context with few rows.
    """
    K, D, P = len(models), len(models[0]), len(is_shrunk) + 1
    scores, sums, n_rows = [], np.zeros((K, D, P, P)), np.zeros(K)
    for moments in blocks:
        targets = [moments.target(d) for d in range(D)]
        density = np.stack([sum(map(log_likelihood, each, targets)) for each in models], 1)
        scores.append(-density - np.log(priors))
        posterior = find_posterior(scores[-1], is_hard)  #                              (K, m)
        n_rows += posterior @ moments.sizes
        for k, each in enumerate(models):
            for d, (model, target) in enumerate(zip(each, targets, strict=True)):
                sums[k, d] += marginal_products(target, model, posterior[k])
    least = settings.CLOSED_FORM.rows_per_coefficient * int((~is_shrunk).sum())
    fitted = [
        [
            fit_from_products(sums[k, d], n_rows[k], model, is_shrunk)
            if n_rows[k] >= least
            else model
            for d, model in enumerate(each)
        ]
        for k, each in enumerate(models)
    ]
    all_scores = np.concatenate(scores)
    posterior = find_posterior(all_scores, is_hard)
    return AllGroups(fitted, np.maximum(posterior.mean(1), 1e-6), all_scores, posterior)


def find_posterior(scores: Floats, is_hard: bool) -> Floats:
    """Probability of each context for each group, (K, m); 0 or 1 if allocation is hard.

    Examples
    --------
    >>> find_posterior(np.array([[0.0, 0.0], [5.0, 1.0]]), is_hard=True).tolist()
    [[1.0, 0.0], [0.0, 1.0]]
    """
    if is_hard:
        return np.eye(scores.shape[1])[scores.argmin(1)].T
    density = np.exp(scores.min(1, keepdims=True) - scores)
    return (density / density.sum(1, keepdims=True)).T
