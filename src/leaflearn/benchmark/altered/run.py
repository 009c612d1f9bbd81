"""One run on an altered table: fit one method, or let the oracle allocate, and compare contexts."""

from __future__ import annotations

import time
import warnings
from typing import Any

from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from leaflearn.benchmark.altered.oracle import allocate_knowing_models
from leaflearn.benchmark.altered.tasks import AlteredTask
from leaflearn.benchmark.groups.scoring import score_contexts
from leaflearn.benchmark.json_lines import Record
from leaflearn.benchmark.real.contract import Method
from leaflearn.benchmark.real.run import FAILED, MAX_REASON, OK, OWN

ORACLE = "oracle"


def run(
    task: AlteredTask,
    method: str,
    seed: int,
    commit: str | None = None,
    fit: Method | None = None,
) -> Record:
    """Fit a method of leaflearn to an altered table, or allocate its groups as the oracle does.

    Parameters
    ----------
    task
        The task, whose table is read.
    method
        A name in `OWN`, leaflearn's methods on real tables, or "oracle".
    seed
        Which groups are altered. Tasks with a hidden column are the same for every seed.
    commit
        Recorded as it is.
    fit
        Fits the rows instead of the method of this name.

    Returns
    -------
    dict
        What was run; the outcome, and the reason if the fit failed; what `score_contexts` returns;
        and processor seconds.

    Examples
    --------
    >>> import inspect
    >>> list(inspect.signature(run).parameters)
    ['task', 'method', 'seed', 'commit', 'fit']
    """
    rows, truth = task.make(seed)
    outcome, reason = OK, None
    found: Record = {}
    began = time.process_time()
    try:
        with warnings.catch_warnings(), threadpool_limits(1):
            warnings.simplefilter("ignore")
            if method == ORACLE:
                allocated = allocate_knowing_models(rows, truth)
            else:
                estimator: Any = (fit or OWN[method])(rows).estimator  # type: ignore[attr-defined]
                allocated = estimator.contexts_, estimator.probabilities_
                found = {"init": str(estimator.init_)}
        found |= {"contexts": score_contexts(*allocated, truth)}
    except Exception as error:  # one failed fit does not end the others
        outcome, reason = FAILED, f"{type(error).__name__}: {error}"[-MAX_REASON:]
    return {
        "task": task.name,
        "method": method,
        "seed": seed,
        "outcome": outcome,
        "reason": reason,
        **found,
        "seconds": round(time.process_time() - began, 3),
        "commit": commit,
    }
