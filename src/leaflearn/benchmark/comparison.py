"""Three learners on one data set: ERM, which takes one model for all; LEAF; and the oracle, which is told every group's domain."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from leaflearn.benchmark.datasets.domains import DomainSet, Truth
from leaflearn.benchmark.datasets.sampling import GroupedSample, sample_groups
from leaflearn.benchmark.evaluation import (
    BestErrors,
    allocation_agreement,
    best_errors,
    error_rate,
    rmse,
)
from leaflearn.core.allocation import Given
from leaflearn.core.matching import match_contexts
from leaflearn.core.training import Callback, Training
from leaflearn.engines.progress import ProgressBar
from leaflearn.estimators import LeafClassifier, LeafRegressor

Array = NDArray[Any]
Watch = Callable[[str], ProgressBar]  # the name of a learner -> its progress bar


class RecordContexts(Callback):
    """Keeps the context of every group after every epoch of the search for them, for each of the starts that run side by side.

    Examples
    --------
    >>> RecordContexts().contexts
    []
    """

    def __init__(self) -> None:
        self.contexts: list[Array] = []  # one entry an epoch, each             (R, m)

    def on_epoch(self, training: Training) -> None:
        """Keep a copy."""
        if training.stage != "refresh":  # which learns from the allocation that was found
            self.contexts.append(training.contexts.numpy().copy())


@dataclass(frozen=True, eq=False)
class Learnt:
    """What one learner made of the data."""

    predictions: Array  # of its models on the test inputs                      (N, K)
    errors: BestErrors  # in every domain, that of its best model               (n_domains,)
    contexts: Array  # of the training groups                                   (m,)
    domains: Array  # the domain each context stands for, -1 for none           (K,)


@dataclass(frozen=True, eq=False)
class Comparison:
    """Three learners on one sample of one data set."""

    data: DomainSet
    sample: GroupedSample
    truth: Truth
    learnt: dict[str, Learnt]  # "ERM", "LEAF", "oracle"
    found: Array  # after each epoch, the domain LEAF's context stands for      (T, m)
    agreement: float  # share of groups that LEAF allocated right


def compare(
    data: DomainSet, random_state: int, watch: Watch, n_groups: int | None = None, **settings: Any
) -> Comparison:
    """Sample groups from `data` and let the three learners learn from them; `settings` go to all three estimators.

    Examples
    --------
    >>> from rich.console import Console
    >>> from leaflearn.benchmark.datasets import DATASETS
    >>> hush = lambda learner: ProgressBar(learner, Console(quiet=True))
    >>> result = compare(DATASETS["functions"](), 0, hush, n_groups=9, max_epochs=2, n_init=1)
    >>> {learner: learnt.predictions.shape for learner, learnt in result.learnt.items()}
    {'ERM': (401, 1), 'LEAF': (401, 3), 'oracle': (401, 3)}
    """
    sample, truth = sample_groups(data, n_groups=n_groups, random_state=random_state)
    recorder = RecordContexts()
    plans: dict[str, dict[str, Any]] = {
        "ERM": {"n_contexts": 1},
        "LEAF": {"n_contexts": len(data), "callbacks": [recorder]},
        "oracle": {"n_contexts": len(data), "allocation": Given(torch.as_tensor(truth.domain))},
    }
    fitted = {
        name: _fit(data, sample, watch(name), random_state=random_state, **plan, **settings)
        for name, plan in plans.items()
    }
    learnt = {name: _measure(estimator, data, truth) for name, estimator in fitted.items()}
    leaf = learnt["LEAF"]
    found = _follow_domains(recorder.contexts, fitted["LEAF"], leaf.domains)
    return Comparison(
        data, sample, truth, learnt, found, allocation_agreement(leaf.contexts, truth.domain)
    )


def _fit(
    data: DomainSet, sample: GroupedSample, bar: ProgressBar, callbacks: Any = (), **parameters: Any
) -> Any:
    estimator = (LeafRegressor if data.classes is None else LeafClassifier)(
        callbacks=[*callbacks, bar], **parameters
    )
    with bar:
        return estimator.fit(_flatten(sample.x), sample.y, groups=sample.groups)


def _measure(estimator: Any, data: DomainSet, truth: Truth) -> Learnt:
    first, *_ = data  # in the data sets shown here all domains are tested on the same inputs
    predictions = estimator.predict_each(
        _flatten(np.asarray(first.test.x))
    )  #                                     (N, K)
    errors = best_errors(
        predictions,
        [domain.test.y for domain in data],
        rmse if data.classes is None else error_rate,
    )
    n_contexts = predictions.shape[1]
    domains = (
        match_contexts(estimator.contexts_, truth.domain, n_contexts)
        if n_contexts > 1
        else np.array([-1])
    )
    return Learnt(predictions, errors, estimator.contexts_, domains)


def _follow_domains(recorded: list[Array], estimator: Any, domains: Array) -> Array:
    """From the contexts recorded in training, where they still had other numbers, to the domains they came to stand for, (T, m)."""
    domain_of = np.empty_like(domains)
    domain_of[estimator.context_order_] = domains
    return domain_of[np.stack(recorded)[:, estimator.best_restart_]]


def _flatten(x: Array) -> Array:
    return x.reshape(len(x), -1)
