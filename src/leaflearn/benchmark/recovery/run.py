"""One run of the recovery suite: fit one task by one rule on the data of one seed, and measure it.

A rule is a name for settings of the estimator. To measure an idea, add its settings to `RULES`.
"""

from __future__ import annotations

import time
import warnings
from typing import Any

import numpy as np
import torch

from leaflearn.benchmark.datasets.domains import DomainSet, Truth
from leaflearn.benchmark.datasets.sampling import GroupedSample
from leaflearn.benchmark.evaluation import allocation_agreement, error_rate, rmse
from leaflearn.benchmark.json_lines import Record
from leaflearn.benchmark.recovery.tasks import Task
from leaflearn.core.allocation import Given
from leaflearn.estimators import LeafClassifier, LeafRegressor

PLAIN: dict[str, Any] = {"n_init": 1, "refresh": False, "init": "random"}  # one start, nothing more
RULES: dict[str, dict[str, Any]] = {
    "default": {},
    "auto": {"n_contexts": "auto"},  # the default without the number of contexts
    "hard": {"allocation": "hard", **PLAIN},
    "sampled": {"allocation": "sampled", **PLAIN},
    "soft": {"allocation": "soft", **PLAIN},
    "annealed": {"init": "random"},  # random starts, annealed, and a final fit of new models
    "oracle": PLAIN,  # is given the domain of every group
}


def run(
    task: Task, rule: str, seed: int, n_contexts: str = "given", keep_contexts: bool = False
) -> Record:
    """Fit the data of one seed and measure the result.

    Parameters
    ----------
    task, rule
        The task, and the name of the settings in `RULES`.
    seed
        Of the data and of the fit.
    n_contexts
        `"given"` gives the estimator the task's number of contexts, unless the rule sets it.
        `"auto"` lets the estimator choose; the record then has the name of the rule with `-auto`
        appended.
    keep_contexts
        Also record the context of every group, for a figure.

    Returns
    -------
    dict
        What was run, whether the contexts were recovered, the error of the best model in every
        domain, the share of groups in the right context, the final number of contexts, processor
        seconds, whether the fit converged, and the number of warnings.

    Examples
    --------
    >>> from leaflearn.benchmark.recovery.tasks import TASKS
    >>> RULES["quick"] = {"max_epochs": 1, "n_init": 1, "init": "random"}
    >>> record = run(TASKS["functions-m50"], "quick", seed=0)
    >>> record["recovered"], len(record["errors"]), record["n_contexts_found"]
    (False, 3, 3)
    >>> del RULES["quick"]
    """
    if n_contexts not in ("given", "auto"):
        raise ValueError(f"n_contexts={n_contexts!r} is not known; choose 'given' or 'auto'.")
    data, (sample, truth) = task.make(seed), task.sample(seed)
    settings = {
        "n_contexts": task.n_contexts,
        **RULES[rule],
        **({"n_contexts": "auto"} if n_contexts == "auto" else {}),
    }
    if rule == "oracle":
        contexts = Given(torch.as_tensor(truth.domain))
        settings |= {"n_contexts": len(data), "allocation": contexts}
    estimator = (LeafRegressor if data.classes is None else LeafClassifier)(
        random_state=seed, **settings
    )
    seconds, n_warnings = _fit(estimator, sample, n_domains=len(data))
    record = {
        "task": task.name,
        "rule": rule if n_contexts == "given" else f"{rule}-auto",
        "seed": seed,
        **_measure(estimator, task, data, truth),
        "seconds": round(seconds, 2),
        "converged": bool(estimator.converged_),
        "warnings": n_warnings,
        "init": str(estimator.init_),
        "n_contexts_found": int(estimator.n_contexts_),
    }
    return record | ({"contexts": estimator.contexts_.tolist()} if keep_contexts else {})


def _fit(
    estimator: LeafRegressor | LeafClassifier, sample: GroupedSample, n_domains: int
) -> tuple[float, int]:
    """Fit, and prune if too many contexts were requested; processor seconds and warnings.

    Only the warnings about the final contexts count.
    """
    began = time.process_time()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        estimator.fit(sample.x.reshape(len(sample.x), -1), sample.y, groups=sample.groups)
        requested, n_before = estimator.n_contexts, estimator.n_contexts_
        if isinstance(requested, int) and requested > n_domains:
            n_of_fit = len(caught)
            estimator.prune()
            if estimator.n_contexts_ < n_before:  # the remaining contexts were checked again
                del caught[:n_of_fit]
    return time.process_time() - began, len(caught)


def _measure(
    estimator: LeafRegressor | LeafClassifier, task: Task, data: DomainSet, truth: Truth
) -> Record:
    error, tests = rmse if data.classes is None else error_rate, [domain.test for domain in data]
    inputs = [np.asarray(test.x).reshape(len(test), -1) for test in tests]
    errors = [
        error(estimator.predict_each(x), test.y).min()
        for x, test in zip(inputs, tests, strict=True)
    ]
    agreement = allocation_agreement(estimator.contexts_, truth.domain)
    is_right = agreement >= task.groups_right if task.groups_right else max(errors) < task.threshold
    return {
        "recovered": bool(is_right),
        "errors": [round(float(e), 4) for e in errors],
        "agreement": round(agreement, 4),
    }
