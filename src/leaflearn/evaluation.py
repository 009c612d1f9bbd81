"""How well the hidden truth was recovered.

best_errors           the paper's protocol: in every domain, the error of the local model that is best there
allocation_agreement  the share of groups that came to the right context, whatever the contexts are numbered
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import linear_sum_assignment

Array = NDArray[Any]
Error = Callable[[Array, Array], Array]  # predictions (N, K, ...), truth (N, ...) -> (K,)


class BestErrors(NamedTuple):
    """The error in every domain of the model that is best there, and which model that is."""

    error: NDArray[np.float64]  #                                               (n_domains,)
    model: NDArray[np.intp]  #                                                  (n_domains,)


def rmse(predictions: Array, truth: Array) -> Array:
    """Root mean squared error of every model, shape (K,).

    Examples
    --------
    >>> rmse(np.array([[1.0, 3.0], [1.0, 3.0]]), np.array([1.0, 1.0]))
    array([0., 2.])
    """
    _check_shapes(predictions, truth)
    squared = np.square(predictions - truth[:, None])  #                        (N, K, ...)
    return np.asarray(np.sqrt(squared.mean(axis=(0, *range(2, squared.ndim)))))


def error_rate(predictions: Array, truth: Array) -> Array:
    """Share of wrong labels of every model, shape (K,).

    Examples
    --------
    >>> error_rate(np.array([["a", "b"], ["a", "a"]]), np.array(["a", "a"]))
    array([0. , 0.5])
    """
    _check_shapes(predictions, truth)
    return np.asarray((predictions != truth[:, None]).mean(axis=0))


def _check_shapes(predictions: Array, truth: Array) -> None:
    if truth.shape != predictions.shape[:1] + predictions.shape[2:]:
        expected = predictions.shape[:1] + predictions.shape[2:]
        raise ValueError(f"the true targets have shape {truth.shape}, but predictions of shape {predictions.shape} need {expected}.")


def best_errors(predictions: ArrayLike, truths: Sequence[ArrayLike], error: Error) -> BestErrors:
    """In every domain, the error of the model that is best there (the paper's protocol).

    Parameters
    ----------
    predictions
        Of all K models on the test inputs, shape (N, K) or (N, K, D).
    truths
        For every domain its targets of the same inputs, shape (N,) or (N, D).
    error
        `rmse` or `error_rate`, or any function of predictions and truth that gives one number a model.

    Examples
    --------
    >>> best_errors([[0.0, 1.0], [0.0, 1.0]], [[1.0, 1.0], [0.5, 0.5]], rmse)
    BestErrors(error=array([0. , 0.5]), model=array([1, 0]))
    """
    predictions = np.asarray(predictions)
    for truth in truths:
        if len(np.asarray(truth)) != len(predictions):
            raise ValueError(f"There are predictions for {len(predictions)} rows and true targets for {len(np.asarray(truth))}.")
    errors = np.stack([error(predictions, np.asarray(truth)) for truth in truths])  #   (n_domains, K)
    return BestErrors(errors.min(axis=1), errors.argmin(axis=1))


def match_contexts(
    contexts: ArrayLike, domains: ArrayLike, n_contexts: int | None = None, weight: NDArray[np.float64] | None = None
) -> NDArray[np.intp]:
    """The domain that each context stands for, one to one, so that most groups agree; -1 for contexts that are left over. Shape (K,).

    Groups count once, or by their `weight` (m,).

    Examples
    --------
    >>> match_contexts([1, 1, 0, 2], [0, 0, 1, 1])
    array([ 1,  0, -1])
    """
    contexts, domains = np.asarray(contexts), np.asarray(domains)
    n_contexts = int(contexts.max()) + 1 if n_contexts is None else n_contexts
    together = np.zeros((n_contexts, int(domains.max()) + 1))  #                        (K, n_domains)
    np.add.at(together, (contexts, domains), 1.0 if weight is None else weight)
    matched = np.full(n_contexts, -1)
    rows, columns = linear_sum_assignment(together, maximize=True)
    matched[rows] = columns
    return matched


def allocation_agreement(contexts: ArrayLike, domains: ArrayLike) -> float:
    """Share of groups whose context stands for their domain, under the best one-to-one match of contexts and domains.

    Parameters
    ----------
    contexts
        What the learner found, one integer a group, -1 where it abstained, shape (n_groups,).
    domains
        The truth, one integer a group, shape (n_groups,).

    Examples
    --------
    >>> allocation_agreement([1, 1, 0, 0], [0, 0, 1, 0])
    0.75
    """
    contexts, domains = np.asarray(contexts), np.asarray(domains)
    if contexts.shape != domains.shape or contexts.ndim != 1:
        raise ValueError(f"Contexts and domains must be one number a group; their shapes are {contexts.shape} and {domains.shape}.")
    known = contexts >= 0  # a group that was left open is not right
    return (
        float((match_contexts(contexts[known], domains[known])[contexts[known]] == domains[known]).sum() / len(domains))
        if known.any()
        else 0.0
    )
