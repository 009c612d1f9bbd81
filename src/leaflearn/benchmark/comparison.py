"""Three learners on one data set: ERM (pooled model), LEAF, and the oracle (given the domains)."""

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
    """Records the context of every group after every epoch of the search, for each start.

    Examples
    --------
    >>> RecordContexts().contexts
    []
    """

    def __init__(self) -> None:
        self.contexts: list[Array] = []  # one entry per epoch, each            (R, m)

    def on_epoch(self, training: Training) -> None:
        """Record a copy."""
        if training.stage != "refresh":  # the refresh uses the allocation that was found
            self.contexts.append(training.contexts.numpy().copy())


@dataclass(frozen=True, eq=False)
class Learner:
    """The result of one learner."""

    predictions: Array  # of its models on the test inputs                      (N, K)
    errors: BestErrors  # of its best model in every domain                     (n_domains,)
    contexts: Array  # of the training groups                                   (m,)
    domains: Array  # that match its contexts, -1 for none                      (K,)


@dataclass(frozen=True, eq=False)
class Comparison:
    """Three learners on one sample of one data set."""

    data: DomainSet
    sample: GroupedSample
    truth: Truth
    learners: dict[str, Learner]  # "ERM", "LEAF", "oracle"
    found: Array  # the domains that match LEAF's contexts, after each epoch    (T, m)
    agreement: float  # share of groups that LEAF allocated correctly


def compare(
    data: DomainSet, random_state: int, watch: Watch, n_groups: int | None = None, **settings: Any
) -> Comparison:
    """Sample groups from `data` and fit all three estimators, with the same `settings`.

    Examples
    --------
    >>> from rich.console import Console
    >>> from leaflearn.benchmark.datasets import DATASETS
    >>> quiet = lambda learner: ProgressBar(learner, Console(quiet=True))
    >>> result = compare(DATASETS["functions"](), 0, quiet, n_groups=9, max_epochs=2, n_init=1)
    >>> {name: learner.predictions.shape for name, learner in result.learners.items()}
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
    learners = {name: _measure(estimator, data, truth) for name, estimator in fitted.items()}
    leaf = learners["LEAF"]
    found = _follow_domains(recorder.contexts, fitted["LEAF"], leaf.domains)
    agreement = allocation_agreement(leaf.contexts, truth.domain)
    return Comparison(data, sample, truth, learners, found, agreement)


def _fit(
    data: DomainSet, sample: GroupedSample, bar: ProgressBar, callbacks: Any = (), **parameters: Any
) -> LeafRegressor | LeafClassifier:
    estimator = (LeafRegressor if data.classes is None else LeafClassifier)(
        callbacks=[*callbacks, bar], **parameters
    )
    with bar:
        return estimator.fit(_flatten(sample.x), sample.y, groups=sample.groups)


def _measure(estimator: LeafRegressor | LeafClassifier, data: DomainSet, truth: Truth) -> Learner:
    first, *_ = data  # in these data sets all domains have the same test inputs
    predictions = estimator.predict_each(_flatten(np.asarray(first.test.x)))  #  (N, K)
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
    return Learner(predictions, errors, estimator.contexts_, domains)


def _follow_domains(
    recorded: list[Array], estimator: LeafRegressor | LeafClassifier, domains: Array
) -> Array:
    """The domains that match the recorded contexts, which had other numbers in training, (T, m)."""
    domain_of = np.empty_like(domains)
    domain_of[estimator.context_order_] = domains
    return domain_of[np.stack(recorded)[:, estimator.best_restart_]]


def _flatten(x: Array) -> Array:
    return x.reshape(len(x), -1)
