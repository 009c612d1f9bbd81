"""What is measured of a method that has trained; a spec names the measures that its table or figure needs."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from leaflearn.benchmark.datasets.sources import Array
from leaflearn.benchmark.datasets.streaming import BilevelSampler, as_inputs, as_targets
from leaflearn.benchmark.evaluation import best_errors, error_rate, rmse
from leaflearn.benchmark.experiments.method_errors import N_ADAPTED, method_errors
from leaflearn.benchmark.methods import Method

GRID = 161  # points that curves are drawn with
SHOWN = 3000  # rows that answers are timed on, as in the paper, where there are so many
TIMES = 5  # that answers are timed
SELDOM = 0.25  # of an equal share: a model that is called less often than that is not needed


@dataclass(frozen=True)
class Trained:
    """A method that has trained, what it trained from, and how long that took."""

    method: Method
    sampler: BilevelSampler
    seconds: float
    seed: int


def errors(trained: Trained) -> dict[str, list[float]]:
    """The errors in every domain by every protocol that applies."""
    return {
        name: _round(each)
        for name, each in method_errors(
            trained.method, trained.sampler.domains, trained.seed
        ).items()
    }


def pruned_errors(trained: Trained) -> dict[str, Any]:
    """The same without the one model that is superfluous, and which that is.

    As the paper's appendix has it: a model that is seldom called, else one whose answers another gives as well; of those two the one that
    is called less.
    """
    domains, method = trained.sampler.domains, trained.method
    is_class = domains.classes is not None
    x = method.problem.peek(SHOWN).x[:SHOWN]  # training rows: no test row may decide
    answers, usage = method.predict_each(x).numpy(), _usage(trained)
    dropped = _superfluous(answers, usage, is_class)
    kept = [k for k in range(len(usage)) if k != dropped]
    left = []
    for domain in domains:
        each = method.predict_each(as_inputs(np.asarray(domain.test.x[:]))).numpy()[:, kept]
        truth, measure = np.asarray(domain.test.y), error_rate if is_class else rmse
        decided, truth = (
            (each.argmax(-1), truth) if is_class else (each, truth.reshape(len(truth), -1))
        )
        left += best_errors(decided, [truth], measure).error.tolist()
    return {"dropped": dropped, "usage": _round(usage), "best": _round(left)}


def curves(trained: Trained) -> dict[str, Any]:
    """Answers on a grid of a single input, for drawing: one curve a context; of a meta-learner, one a domain after adaptation."""
    domains, method = trained.sampler.domains, trained.method
    x = np.asarray(domains.domains[0].test.x)
    grid = np.linspace(x.min(), x.max(), GRID, dtype=np.float32)[:, None]
    if hasattr(method, "adapt"):
        drawn = np.stack([_adapt(method, domain.train, grid, trained.seed) for domain in domains])
    else:
        drawn = method.predict_each(as_inputs(grid)).numpy()[:, :, 0].T
    return {"x": _round(grid[:, 0]), "curves": [_round(curve) for curve in drawn]}


def distance_to_mean(trained: Trained) -> float:
    """How far the first answer is from the mean of the domains' functions: what one model for all should learn."""
    tests = [domain.test for domain in trained.sampler.domains]
    mean = np.mean([np.asarray(test.y).reshape(len(test.y), -1) for test in tests], axis=0)
    answer = trained.method.predict_each(as_inputs(np.asarray(tests[0].x))).numpy()[:, 0]
    return round(float(np.sqrt(np.mean((answer - mean) ** 2))), 4)


def answer_time(trained: Trained) -> float:
    """Milliseconds to answer a row with all labels, over up to 3,000 test rows at once, the median of five times."""
    x = as_inputs(np.asarray(trained.sampler.domains.domains[0].test.x[:SHOWN]))
    trained.method.predict_each(x[:64])  # what is only done once
    seconds = []
    for _ in range(TIMES):
        began = time.process_time()
        trained.method.predict_each(x)
        seconds.append(time.process_time() - began)
    return round(1000 * float(np.median(seconds)) / len(x), 4)


def solution(trained: Trained) -> str:
    """Which reading of two lines that cross was found: S1, the lines; S2, a V and its mirror image; or neither."""
    x = as_inputs(np.linspace(0.0, 1.0, 101)[:, None])
    answers = trained.method.predict_each(x).numpy()[
        :, :, 0
    ]  #                               (101, K)
    line, hill = x.numpy()[:, 0], np.minimum(x.numpy()[:, 0], 1 - x.numpy()[:, 0])
    for name, pair in (("S1", (line, 1 - line)), ("S2", (hill, 1 - hill))):
        off = [
            min(
                float(np.sqrt(np.mean((answers[:, k] - goal) ** 2)))
                for k in range(answers.shape[1])
            )
            for goal in pair
        ]
        if max(off) < 0.05:
            return name
    return "neither"


def features(trained: Trained, n_rows: int = 600) -> dict[str, Any]:
    """What each local model makes of test rows before its last layer, by t-SNE, the rows' labels, and each model's error in each domain."""
    from sklearn.manifold import TSNE

    domains = trained.sampler.domains
    x = as_inputs(np.asarray(domains.domains[0].test.x[:n_rows]))
    models: Any = trained.method.models  # type: ignore[attr-defined]
    points = []
    for network in models.modules():
        network.eval()
        with torch.no_grad():
            seen = network[:-1](x).numpy()
        points.append(np.round(TSNE(2, init="pca", random_state=0).fit_transform(seen), 2).tolist())
    labels = {domain.name: np.asarray(domain.test.y[:n_rows]).tolist() for domain in domains}
    return {
        "points": points,
        "labels": labels,
        "classes": list(domains.classes or ()),
        "errors": _round(_errors_of_each(trained)),
    }


def snapshot(method: Method, sampler: BilevelSampler) -> dict[str, Any]:
    """The local models' curves as they are now, and the model that each group of the training set would go to."""
    x = np.asarray(sampler.domains.domains[0].test.x)
    grid = np.linspace(x.min(), x.max(), GRID, dtype=np.float32)[:, None]
    parts = [(batches, method.contexts(batches)) for batches, _ in sampler.epoch(0)]  # type: ignore[attr-defined]
    return {
        "x": _round(grid[:, 0]),
        "curves": [
            _round(curve) for curve in method.predict_each(as_inputs(grid)).numpy()[:, :, 0].T
        ],
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
    """Share of an epoch's groups that each model explains best."""
    method: Any = trained.method
    contexts: Tensor = torch.cat(
        [method.contexts(batches) for batches, _ in trained.sampler.epoch(0)]
    )
    n_contexts = trained.method.predict_each(
        as_inputs(np.asarray(trained.sampler.domains.domains[0].test.x[:1]))
    ).shape[1]
    return np.bincount(contexts.numpy(), minlength=n_contexts) / len(contexts)


def _errors_of_each(trained: Trained) -> Array:
    """The error of each local model in each domain, which tells what a model is for, (K, n_domains)."""
    errors = []
    for domain in trained.sampler.domains:
        answers = trained.method.predict_each(as_inputs(np.asarray(domain.test.x[:]))).numpy()
        errors.append(error_rate(answers.argmax(-1), np.asarray(domain.test.y)))
    return np.stack(errors, axis=1)


def _superfluous(answers: Array, usage: Array, is_class: bool) -> int:
    if usage.min() < SELDOM / len(usage):
        return int(usage.argmin())
    decided = answers.argmax(-1)[..., None] if is_class else answers
    pairs = [(k, other) for k in range(len(usage)) for other in range(k)]
    gaps = [decided[:, k] - decided[:, other] for k, other in pairs]
    unlike = [float(np.mean(gap != 0 if is_class else gap**2)) for gap in gaps]
    return min(pairs[int(np.argmin(unlike))], key=lambda k: usage[k])


def _adapt(method: Any, source: Any, grid: Array, seed: int) -> Array:
    support = source.draw(N_ADAPTED, np.random.default_rng(seed))
    answer = method.adapt(
        as_inputs(np.asarray(support.x[:])), as_targets(np.asarray(support.y), is_class=False)
    )
    return np.asarray(answer(as_inputs(grid)).numpy()[:, 0])


def _round(numbers: Any) -> Any:
    return np.round(np.asarray(numbers, dtype=float), 5).tolist()
