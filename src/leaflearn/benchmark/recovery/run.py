"""How often the contexts are recovered: one fit of one task, by one rule, on the data of one seed, and what came out of it.

A rule is a name for settings of the estimator. To measure an idea, give its settings a name in `RULES`.
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
from leaflearn.benchmark.recovery.tasks import Task
from leaflearn.core.allocation import Given
from leaflearn.estimators import LeafClassifier, LeafRegressor

Record = dict[str, Any]
PLAIN: dict[str, Any] = {
    "n_init": 1,
    "refresh": False,
    "init": "random",
}  # one run of a rule, and nothing around it
RULES: dict[str, dict[str, Any]] = {
    "default": {},
    "auto": {"n_contexts": "auto"},  # the default, which is not told how many contexts there are
    "hard": {"allocation": "hard", **PLAIN},
    "sampled": {"allocation": "sampled", **PLAIN},
    "soft": {"allocation": "soft", **PLAIN},
    "annealed": {"init": "random"},  # random starts, annealed, and fresh models
    "oracle": PLAIN,  # is told the domain of every group
}


def run(
    task: Task, rule: str, seed: int, n_contexts: str = "given", keep_contexts: bool = False
) -> Record:
    """Fit the data of one seed and measure what came out.

    Parameters
    ----------
    task, rule
        What to fit, and the name of the settings in `RULES`.
    seed
        Draws the data, and starts the fit.
    n_contexts
        `"given"` tells the estimator the task's number of contexts, unless the rule says otherwise. `"auto"` leaves it to the estimator;
        the rule is then recorded under its name with `-auto` behind it.
    keep_contexts
        Record the context of every group too, for a picture of it.

    Returns
    -------
    dict
        What was run, whether the contexts were recovered, the error of the best model in every domain, the share of groups in the right
        context, how many contexts there are in the end, processor seconds, and whether the estimator itself had doubts.

    Examples
    --------
    >>> from leaflearn.benchmark.recovery.tasks import TASKS
    >>> RULES["glance"] = {"max_epochs": 1, "n_init": 1, "init": "random"}
    >>> record = run(TASKS["functions-m50"], "glance", seed=0)
    >>> record["recovered"], len(record["errors"]), record["n_contexts_found"]
    (False, 3, 3)
    >>> del RULES["glance"]
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
        settings |= _tell(data, truth)
    estimator = (LeafRegressor if data.classes is None else LeafClassifier)(
        random_state=seed, **settings
    )
    seconds, n_warnings = _fit(estimator, sample, n_domains=len(data))
    record = {
        "task": task.name, "rule": rule if n_contexts == "given" else f"{rule}-auto", "seed": seed,
        **_measure(estimator, task, data, truth),
        "seconds": round(seconds, 2), "converged": bool(estimator.converged_), "warnings": n_warnings, "init": str(estimator.init_),
        "n_contexts_found": int(estimator.n_contexts_),
    }  # fmt: skip
    return record | ({"contexts": estimator.contexts_.tolist()} if keep_contexts else {})


def _tell(data: DomainSet, truth: Truth) -> dict[str, Any]:
    return {"n_contexts": len(data), "allocation": Given(torch.as_tensor(truth.domain))}


def _fit(estimator: Any, sample: GroupedSample, n_domains: int) -> tuple[float, int]:
    """Fit in place; processor seconds, and how many warnings the contexts carry. Those that were asked for in excess are pruned."""
    began = time.process_time()
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        estimator.fit(sample.x.reshape(len(sample.x), -1), sample.y, groups=sample.groups)
        asked, n_before = estimator.n_contexts, estimator.n_contexts_
        if isinstance(asked, int) and asked > n_domains:
            of_fit = len(warned)
            estimator.prune()
            if estimator.n_contexts_ < n_before:  # pruned contexts were looked at again
                del warned[:of_fit]
    return time.process_time() - began, len(warned)


def _measure(estimator: Any, task: Task, data: DomainSet, truth: Truth) -> Record:
    measure = rmse if data.classes is None else error_rate
    errors = [
        measure(
            estimator.predict_each(np.asarray(d.test.x).reshape(len(d.test), -1)), d.test.y
        ).min()
        for d in data
    ]
    agreement = allocation_agreement(estimator.contexts_, truth.domain)
    recovered = (
        agreement >= task.groups_right if task.groups_right else max(errors) < task.threshold
    )
    return {
        "recovered": bool(recovered),
        "errors": [round(float(e), 4) for e in errors],
        "agreement": round(agreement, 4),
    }
