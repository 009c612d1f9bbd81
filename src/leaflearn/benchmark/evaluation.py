"""How well the hidden truth was recovered.

best_errors           the paper's protocol: in every domain, the smallest error of a local model
identified_errors     the same, but the model is chosen on a few labelled rows, as a user has to,
                      and tested on the others
label_set_errors      the paper's protocol for a method that predicts a set of labels
allocation_agreement  the share of groups in the right context, for any order of the contexts
adjusted_rand         how similarly contexts and domains divide the groups, beyond chance
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from leaflearn.core.matching import match_contexts

Array = NDArray[Any]
Error = Callable[[Array, Array], Array]  # predictions (N, K, ...), truth (N, ...) -> (K,)


class BestErrors(NamedTuple):
    """The smallest error of a model in every domain, and the index of that model."""

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
        raise ValueError(
            f"The true targets have shape {truth.shape}, but predictions of shape "
            f"{predictions.shape} need {expected}."
        )


def best_errors(predictions: ArrayLike, truths: Sequence[ArrayLike], error: Error) -> BestErrors:
    """The smallest error of a model in every domain (the paper's protocol).

    Parameters
    ----------
    predictions
        Of all K models for the test inputs, shape (N, K) or (N, K, D).
    truths
        The targets of each domain for the same inputs, shape (N,) or (N, D).
    error
        `rmse` or `error_rate`, or any function of predictions and truth that returns one number
        per model.

    Examples
    --------
    >>> best_errors([[0.0, 1.0], [0.0, 1.0]], [[1.0, 1.0], [0.5, 0.5]], rmse)
    BestErrors(error=array([0. , 0.5]), model=array([1, 0]))
    """
    predictions = np.asarray(predictions)
    for truth in truths:
        if len(np.asarray(truth)) != len(predictions):
            raise ValueError(
                f"There are predictions for {len(predictions)} rows and true targets for "
                f"{len(np.asarray(truth))}."
            )
    errors = np.stack([error(predictions, np.asarray(truth)) for truth in truths])  # (n_domains, K)
    return BestErrors(errors.min(axis=1), errors.argmin(axis=1))


def identified_errors(
    predictions: ArrayLike,
    truths: Sequence[ArrayLike],
    loss: Literal["squared", "cross-entropy"],
    n_support: int = 10,
    n_draws: int = 20,
    random_state: int = 0,
) -> NDArray[np.float64]:
    """The error in every domain if a few labelled rows of it choose the context.

    The error is measured on all other rows. Shape (n_domains,).

    Parameters
    ----------
    predictions
        Of all K models for the test inputs: values, or probabilities of classes, shape (N, K, D).
    truths
        The targets of each domain for the same inputs: values (N, D), or class numbers (N,).
    loss
        "squared" chooses by squared error and reports the RMSE, "cross-entropy" chooses by
        cross-entropy and reports the error rate.
    n_support, n_draws
        Number of labelled rows that choose the context, and how often they are drawn; the errors
        are means over the draws.
    random_state
        The seed of the draws.

    Examples
    --------
    >>> predictions = np.repeat([[[0.0], [1.0]]], 12, axis=0)  # two models: always 0, always 1
    >>> identified_errors(predictions, [np.ones((12, 1)), np.full((12, 1), 0.25)], "squared")
    array([0.  , 0.25])
    """
    predictions, generator = (
        np.asarray(predictions, dtype=np.float64),
        np.random.default_rng(random_state),
    )
    if not 1 <= n_support < len(predictions):
        raise ValueError(
            f"`n_support` must be at least 1 and leave rows to test on; it is {n_support}, "
            f"and there are {len(predictions)} rows."
        )
    errors = []
    for truth in truths:
        row_loss, row_error = _row_losses(predictions, np.asarray(truth), loss)  # (N, K) each
        rows = np.tile(np.arange(len(predictions)), (n_draws, 1))
        order = generator.permuted(rows, axis=1)  #                             (n_draws, N)
        chosen = row_loss[order[:, :n_support]].mean(axis=1).argmin(axis=-1)  # (n_draws,)
        error = row_error[order[:, n_support:], chosen[:, None]].mean(axis=1)
        errors.append((np.sqrt(error) if loss == "squared" else error).mean())
    return np.array(errors)


def _row_losses(predictions: Array, truth: Array, loss: str) -> tuple[Array, Array]:
    """The loss that chooses a context, and the error that is reported, (N, K) each."""
    if loss == "squared":
        _check_shapes(predictions, truth)
        squared = np.square(predictions - truth[:, None]).mean(axis=-1)
        return squared, squared
    if loss != "cross-entropy":
        raise ValueError(f"`loss` must be 'squared' or 'cross-entropy'; it is {loss!r}.")
    _check_shapes(predictions[..., 0], truth)
    of_truth = np.take_along_axis(predictions, truth[:, None, None], axis=-1)[..., 0]
    log_loss = -np.log(np.maximum(of_truth, np.finfo(np.float32).tiny))
    return log_loss, predictions.argmax(axis=-1) != truth[:, None]


def label_set_errors(
    scores: ArrayLike, truths: Sequence[ArrayLike], n_domains: int
) -> NDArray[np.float64]:
    """The share of rows in every domain whose label is not among the best scores.

    As many labels are predicted as there are domains. Shape (n_domains,).

    Parameters
    ----------
    scores
        Of each label for the test inputs, shape (N, C).
    truths
        The class numbers of each domain for the same inputs, shape (N,).
    n_domains
        Number of predicted labels.

    Examples
    --------
    >>> label_set_errors([[0.9, 0.1, 0.8], [0.9, 0.8, 0.1]], [[0, 0], [2, 2]], n_domains=2)
    array([0. , 0.5])
    """
    scores = np.asarray(scores)
    if scores.ndim != 2:
        raise ValueError(
            "The scores must be one number per row and label, of shape (rows, labels); "
            f"their shape is {scores.shape}."
        )
    best = np.argsort(-scores, axis=1, kind="stable")[:, :n_domains]  #         (N, n_domains)
    for truth in truths:
        _check_shapes(best[:, :1], np.asarray(truth))
    return np.array([(best != np.asarray(truth)[:, None]).all(axis=1).mean() for truth in truths])


def allocation_agreement(contexts: ArrayLike, domains: ArrayLike) -> float:
    """Share of groups in the right context, under the best one-to-one match of contexts to domains.

    Parameters
    ----------
    contexts
        The contexts found, one integer per group, -1 for no decision, shape (n_groups,).
    domains
        The truth, one integer per group, shape (n_groups,).

    Examples
    --------
    >>> allocation_agreement([1, 1, 0, 0], [0, 0, 1, 0])
    0.75
    """
    contexts, domains = _check_groups(contexts, domains)
    is_decided = contexts >= 0  # a group without a decision is not right
    if not is_decided.any():
        return 0.0
    found, truth = contexts[is_decided], domains[is_decided]
    return float((match_contexts(found, truth)[found] == truth).sum() / len(domains))


def adjusted_rand(contexts: ArrayLike, domains: ArrayLike) -> float:
    """The adjusted Rand index of contexts and domains, one integer per group each.

    It is 1 if both divide the groups in the same way, and about 0 by chance. Groups without a
    decision, with context -1, count as one more context.

    Examples
    --------
    >>> adjusted_rand([1, 1, 0, 0], [0, 0, 1, 1])
    1.0
    """
    from sklearn.metrics import adjusted_rand_score  # not above: it takes a second to import

    contexts, domains = _check_groups(contexts, domains)
    return float(adjusted_rand_score(domains, contexts))


def _check_groups(contexts: ArrayLike, domains: ArrayLike) -> tuple[Array, Array]:
    contexts, domains = np.asarray(contexts), np.asarray(domains)
    if contexts.shape != domains.shape or contexts.ndim != 1:
        raise ValueError(
            "Contexts and domains must be one number per group; "
            f"their shapes are {contexts.shape} and {domains.shape}."
        )
    return contexts, domains
