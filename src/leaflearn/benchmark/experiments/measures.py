"""What is measured of a trained method; a spec lists the measures of its table or figure.

Errors in each domain follow the protocols that apply to the method, which are never mixed:

    best        the paper's: the context with the smallest error on the test labels
    identified  realistic: the context is chosen on ten labelled rows and tested on the others
    label set   for methods with one score per label: is the domain's label among the best N?
    adapted     for meta-learners: after fine-tuning on a hundred labelled rows of the domain,
                mean of ten draws
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor

from leaflearn.benchmark.datasets.domains import Domain, DomainSet
from leaflearn.benchmark.datasets.sources import Array
from leaflearn.benchmark.datasets.streaming import BilevelSampler, as_inputs, as_targets
from leaflearn.benchmark.evaluation import (
    best_errors,
    error_rate,
    identified_errors,
    label_set_errors,
    rmse,
)
from leaflearn.benchmark.experiments import settings
from leaflearn.benchmark.methods import Method

Errors = dict[str, list[float]]
CURVE_POINTS = 161  # of a curve in a figure


@dataclass(frozen=True)
class Trained:
    """A trained method, the sampler it was trained with, the processor seconds, and the seed."""

    method: Method
    sampler: BilevelSampler
    seconds: float
    seed: int


def method_errors(method: Method, domains: DomainSet, random_state: int = 0) -> Errors:
    """The errors of a trained method in every domain, by every protocol that applies to it.

    Examples
    --------
    >>> from leaflearn.benchmark.datasets.streaming import BilevelSampler
    >>> from leaflearn.benchmark.datasets import DATASETS
    >>> from leaflearn.benchmark.methods import describe, make_method, train
    >>> from leaflearn.engines.networks import mlp
    >>> sampler, method = BilevelSampler(DATASETS["functions"]()), make_method("leaf")
    >>> problem = describe(sampler, lambda n_outputs: mlp(1, n_outputs), n_epochs=1)
    >>> _ = train(method, sampler, problem, n_epochs=1)
    >>> errors = method_errors(method, sampler.domains)
    >>> {protocol: len(of_domains) for protocol, of_domains in errors.items()}
    {'best': 3, 'identified': 3}
    """
    is_class = domains.classes is not None
    if hasattr(method, "adapt"):
        adapted = [_adapted_error(method, domain, is_class, random_state) for domain in domains]
        return {"adapted": adapted}
    predictions = [method.predict_each(_test_inputs(domain)).numpy() for domain in domains]
    truths = [_truth(domain, is_class) for domain in domains]
    if method.gives_label_set:
        label_set = [
            float(label_set_errors(each[:, 0], [truth], len(domains))[0])
            for each, truth in zip(predictions, truths, strict=True)
        ]
        return {"label set": label_set}
    best, identified = [], []
    loss: Literal["squared", "cross-entropy"] = "cross-entropy" if is_class else "squared"
    for each, truth in zip(predictions, truths, strict=True):
        best += best_errors(
            _decide(each, is_class), [truth], error_rate if is_class else rmse
        ).error.tolist()
        identified += identified_errors(each, [truth], loss, random_state=random_state).tolist()
    return {"best": best, "identified": identified}


def errors(trained: Trained) -> Errors:
    """The rounded errors in every domain, by every protocol that applies."""
    found = method_errors(trained.method, trained.sampler.domains, trained.seed)
    return {name: _round(each) for name, each in found.items()}


def pruned_errors(trained: Trained) -> dict[str, Any]:
    """The errors without the one superfluous model, and which model that is.

    As in the paper's appendix: a model that is rarely used; otherwise, of the two models with the
    most similar predictions, the one that is used less.
    """
    domains, method = trained.sampler.domains, trained.method
    is_class = domains.classes is not None
    n_rows = settings.MEASURES.timed_rows
    x = method.problem.peek(n_rows).x[:n_rows]  # training rows: no test row may decide
    predictions, usage = method.predict_each(x).numpy(), _usage(trained)
    dropped = _superfluous(predictions, usage, is_class)
    kept = [k for k in range(len(usage)) if k != dropped]
    best = []
    for domain in domains:
        each = method.predict_each(_test_inputs(domain)).numpy()[:, kept]
        truth, error = _truth(domain, is_class), error_rate if is_class else rmse
        best += best_errors(_decide(each, is_class), [truth], error).error.tolist()
    return {"dropped": dropped, "usage": _round(usage), "best": _round(best)}


def curves(trained: Trained) -> dict[str, Any]:
    """Predictions on a grid of a single input: one curve per context.

    For a meta-learner, one curve per domain after adaptation.
    """
    domains, method = trained.sampler.domains, trained.method
    grid = _grid(domains)
    if hasattr(method, "adapt"):
        seed, x = trained.seed, as_inputs(grid)
        each = [_adapt(method, d, x, np.random.default_rng(seed), is_class=False) for d in domains]
        found = np.stack(each)[:, :, 0]
    else:
        found = method.predict_each(as_inputs(grid)).numpy()[:, :, 0].T
    return {"x": _round(grid[:, 0]), "curves": [_round(curve) for curve in found]}


def distance_to_mean(trained: Trained) -> float:
    """RMSE of the first model to the mean of the functions, which a pooled model should learn."""
    tests = [domain.test for domain in trained.sampler.domains]
    mean = np.mean([np.asarray(test.y).reshape(len(test.y), -1) for test in tests], axis=0)
    predicted = trained.method.predict_each(as_inputs(np.asarray(tests[0].x))).numpy()[:, 0]
    return round(float(np.sqrt(np.mean((predicted - mean) ** 2))), 4)


def answer_time(trained: Trained) -> float:
    """Milliseconds to predict all labels of a row, over up to 3,000 test rows at once.

    The median of five times.
    """
    first = trained.sampler.domains.domains[0]
    x = as_inputs(np.asarray(first.test.x[: settings.MEASURES.timed_rows]))
    trained.method.predict_each(x[:64])  # what is only done once
    seconds = []
    for _ in range(settings.MEASURES.n_timings):
        began = time.process_time()
        trained.method.predict_each(x)
        seconds.append(time.process_time() - began)
    return round(1000 * float(np.median(seconds)) / len(x), 4)


def solution(trained: Trained) -> str:
    """Which pair of functions was found in two crossing lines.

    S1: the lines; S2: a V and its mirror image; or neither.
    """
    x = as_inputs(np.linspace(0.0, 1.0, 101)[:, None])
    predictions = trained.method.predict_each(x).numpy()[:, :, 0]  #                (101, K)
    line, hill = x.numpy()[:, 0], np.minimum(x.numpy()[:, 0], 1 - x.numpy()[:, 0])
    for name, pair in (("S1", (line, 1 - line)), ("S2", (hill, 1 - hill))):
        distances = [
            min(float(np.sqrt(np.mean((curve - function) ** 2))) for curve in predictions.T)
            for function in pair
        ]
        if max(distances) < settings.MEASURES.solution_rmse:
            return name
    return "neither"


def features(trained: Trained, n_rows: int = 600) -> dict[str, Any]:
    """The features of test rows before the last layer of each local model, by t-SNE.

    With the labels of the rows, and the error of each model in each domain.
    """
    from sklearn.manifold import TSNE

    domains = trained.sampler.domains
    x = as_inputs(np.asarray(domains.domains[0].test.x[:n_rows]))
    models: Any = trained.method.models  # type: ignore[attr-defined]
    points = []
    for network in models.modules():
        network.eval()
        with torch.no_grad():
            hidden = network[:-1](x).numpy()
        plane = TSNE(2, init="pca", random_state=0).fit_transform(hidden)
        points.append(np.round(plane, 2).tolist())
    return {
        "points": points,
        "labels": {domain.name: np.asarray(domain.test.y[:n_rows]).tolist() for domain in domains},
        "classes": list(domains.classes or ()),
        "errors": _round(_errors_of_each(trained)),
    }


def snapshot(method: Method, sampler: BilevelSampler) -> dict[str, Any]:
    """The current curves of the local models, and the model that each training group would get."""
    grid = _grid(sampler.domains)
    parts = [
        (batches, method.contexts(batches))  # type: ignore[attr-defined]
        for batches, _ in sampler.epoch(0)
    ]
    predictions = method.predict_each(as_inputs(grid)).numpy()[:, :, 0]
    return {
        "x": _round(grid[:, 0]),
        "curves": [_round(curve) for curve in predictions.T],
        "points": [
            _round(np.column_stack([b.x[:, 0], b.y[:, 0], contexts[b.group]]))
            for b, contexts in parts
        ],
    }


MEASURES: dict[str, Callable[[Trained], Any]] = {
    "errors": errors,
    "pruned": pruned_errors,
    "curves": curves,
    "distance to mean": distance_to_mean,
    "answer time": answer_time,
    "solution": solution,
    "features": features,
}


def _usage(trained: Trained) -> Array:
    """Share of the groups of an epoch that each model fits best."""
    method: Any = trained.method
    contexts: Tensor = torch.cat(
        [method.contexts(batches) for batches, _ in trained.sampler.epoch(0)]
    )
    one_row = as_inputs(np.asarray(trained.sampler.domains.domains[0].test.x[:1]))
    n_contexts = trained.method.predict_each(one_row).shape[1]
    return np.bincount(contexts.numpy(), minlength=n_contexts) / len(contexts)


def _errors_of_each(trained: Trained) -> Array:
    """The error of each local model in each domain, (K, n_domains)."""
    predict = trained.method.predict_each
    found = [
        error_rate(predict(_test_inputs(domain)).numpy().argmax(-1), np.asarray(domain.test.y))
        for domain in trained.sampler.domains
    ]
    return np.stack(found, axis=1)


def _superfluous(predictions: Array, usage: Array, is_class: bool) -> int:
    if usage.min() < settings.MEASURES.rare_usage / len(usage):
        return int(usage.argmin())
    decided = predictions.argmax(-1)[..., None] if is_class else predictions
    pairs = [(k, other) for k in range(len(usage)) for other in range(k)]
    gaps = [decided[:, k] - decided[:, other] for k, other in pairs]
    distances = [float(np.mean(gap != 0 if is_class else gap**2)) for gap in gaps]
    return min(pairs[int(np.argmin(distances))], key=lambda k: usage[k])


def _adapted_error(method: Any, domain: Domain, is_class: bool, random_state: int) -> float:
    """Mean over several draws of the rows that the method is fine-tuned on."""
    generator, error = np.random.default_rng(random_state), error_rate if is_class else rmse
    found = []
    for _ in range(settings.MEASURES.n_adaptations):
        predictions = _adapt(method, domain, _test_inputs(domain), generator, is_class)
        decided = _decide(predictions[:, None], is_class)
        found.append(float(error(decided, _truth(domain, is_class))[0]))
    return float(np.mean(found))


def _adapt(
    method: Any, domain: Domain, x: Tensor, generator: np.random.Generator, is_class: bool
) -> Array:
    """Predictions for `x` after the method is fine-tuned on some rows of the domain."""
    support = domain.train.draw(settings.MEASURES.adaptation_rows, generator)
    predict = method.adapt(
        as_inputs(np.asarray(support.x[:])), as_targets(np.asarray(support.y), is_class)
    )
    return np.asarray(predict(x).numpy())


def _grid(domains: DomainSet) -> Array:
    x = np.asarray(domains.domains[0].test.x)
    return np.linspace(x.min(), x.max(), CURVE_POINTS, dtype=np.float32)[:, None]


def _test_inputs(domain: Domain) -> Tensor:
    return as_inputs(np.asarray(domain.test.x[:]))


def _decide(predictions: Any, is_class: bool) -> Any:
    """From predictions (N, K, D) to what is evaluated: class numbers (N, K), or the values."""
    return predictions.argmax(-1) if is_class else predictions


def _truth(domain: Domain, is_class: bool) -> Any:
    """Class numbers (N,), or values (N, D)."""
    y = np.asarray(domain.test.y)
    return y if is_class else y.reshape(len(y), -1)


def _round(numbers: Any) -> Any:
    return np.round(np.asarray(numbers, dtype=float), 5).tolist()
