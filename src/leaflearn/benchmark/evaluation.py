"""How well the hidden truth was recovered.

best_errors           the paper's protocol: in every domain, the error of the local model that is best there
identified_errors     the same where the model is chosen on a few labelled rows, as a user must, and not on those it is tested on
label_set_errors      the paper's protocol for a method that answers with a set of labels
allocation_agreement  the share of groups that came to the right context, whatever the contexts are numbered
adjusted_rand         how much contexts and domains part the groups alike, beyond chance
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
        raise ValueError(
            f"the true targets have shape {truth.shape}, but predictions of shape {predictions.shape} need {expected}."
        )


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
            raise ValueError(
                f"There are predictions for {len(predictions)} rows and true targets for {len(np.asarray(truth))}."
            )
    errors = np.stack(
        [error(predictions, np.asarray(truth)) for truth in truths]
    )  #   (n_domains, K)
    return BestErrors(errors.min(axis=1), errors.argmin(axis=1))


def identified_errors(
    predictions: ArrayLike, truths: Sequence[ArrayLike], loss: Literal["squared", "cross-entropy"], n_support: int = 10, n_draws: int = 20,
    random_state: int = 0,
) -> NDArray[np.float64]:  # fmt: skip
    """In every domain, the error of the context that a few labelled rows of it point to, on all other rows. Shape (n_domains,).

    Parameters
    ----------
    predictions
        Of all K models on the test inputs: values, or probabilities of classes, shape (N, K, D).
    truths
        For every domain its targets of the same inputs: values (N, D), or class numbers (N,).
    loss
        "squared" chooses by squared error and reports the RMSE, "cross-entropy" chooses by cross-entropy and reports the error rate.
    n_support, n_draws
        Labelled rows that the context is chosen on, and how often they are drawn anew; the errors are the mean over the draws.
    random_state
        The seed of the draws.

    Examples
    --------
    >>> predictions = np.repeat([[[0.0], [1.0]]], 12, axis=0)  # two models, which always say 0 and always say 1
    >>> identified_errors(predictions, [np.ones((12, 1)), np.full((12, 1), 0.25)], "squared")
    array([0.  , 0.25])
    """
    predictions, generator = (
        np.asarray(predictions, dtype=np.float64),
        np.random.default_rng(random_state),
    )
    if not 1 <= n_support < len(predictions):
        raise ValueError(
            f"`n_support` must be at least 1 and leave rows to test on; it is {n_support}, and there are {len(predictions)} rows."
        )
    errors = []
    for truth in truths:
        row_loss, row_error = _row_losses(
            predictions, np.asarray(truth), loss
        )  #                  (N, K) each
        order = generator.permuted(
            np.tile(np.arange(len(predictions)), (n_draws, 1)), axis=1
        )  #   (n_draws, N)
        chosen = (
            row_loss[order[:, :n_support]].mean(axis=1).argmin(axis=-1)
        )  #                     (n_draws,)
        error = row_error[order[:, n_support:], chosen[:, None]].mean(axis=1)
        errors.append((np.sqrt(error) if loss == "squared" else error).mean())
    return np.array(errors)


def _row_losses(predictions: Array, truth: Array, loss: str) -> tuple[Array, Array]:
    """By which a context is chosen, and on which it is judged, (N, K) each."""
    if loss == "squared":
        _check_shapes(predictions, truth)
        squared = np.square(predictions - truth[:, None]).mean(axis=-1)
        return squared, squared
    if loss != "cross-entropy":
        raise ValueError(f"`loss` must be 'squared' or 'cross-entropy'; it is {loss!r}.")
    _check_shapes(predictions[..., 0], truth)
    of_truth = np.take_along_axis(predictions, truth[:, None, None], axis=-1)[..., 0]
    return -np.log(np.maximum(of_truth, np.finfo(np.float32).tiny)), predictions.argmax(
        axis=-1
    ) != truth[:, None]


def label_set_errors(
    scores: ArrayLike, truths: Sequence[ArrayLike], n_domains: int
) -> NDArray[np.float64]:
    """In every domain, the share of rows whose label is not among the `n_domains` labels with the best scores. Shape (n_domains,).

    Parameters
    ----------
    scores
        Of each label for the test inputs, shape (N, C).
    truths
        For every domain its class numbers of the same inputs, shape (N,).
    n_domains
        Labels in the answer.

    Examples
    --------
    >>> label_set_errors([[0.9, 0.1, 0.8], [0.9, 0.8, 0.1]], [[0, 0], [2, 2]], n_domains=2)
    array([0. , 0.5])
    """
    scores = np.asarray(scores)
    if scores.ndim != 2:
        raise ValueError(
            f"The scores must be one number a row and label, of shape (rows, labels); their shape is {scores.shape}."
        )
    best = np.argsort(-scores, axis=1, kind="stable")[:, :n_domains]  #         (N, n_domains)
    for truth in truths:
        _check_shapes(best[:, :1], np.asarray(truth))
    return np.array([(best != np.asarray(truth)[:, None]).all(axis=1).mean() for truth in truths])


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
    contexts, domains = _check_groups(contexts, domains)
    known = contexts >= 0  # a group that was left open is not right
    return (
        float(
            (
                match_contexts(contexts[known], domains[known])[contexts[known]] == domains[known]
            ).sum()
            / len(domains)
        )
        if known.any()
        else 0.0
    )


def adjusted_rand(contexts: ArrayLike, domains: ArrayLike) -> float:
    """The adjusted Rand index of contexts and domains, one integer a group each: 1 if they part the groups alike, about 0 by chance.

    Groups that were left open, with context -1, count as a context of their own.

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
            f"Contexts and domains must be one number a group; their shapes are {contexts.shape} and {domains.shape}."
        )
    return contexts, domains
