"""One run on simulated groups: fit one method to the data set of one seed, and measure it."""

from __future__ import annotations

import time
import warnings
from typing import Any

import numpy as np
from scipy.stats import norm
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from leaflearn.benchmark.groups.scoring import score_contexts
from leaflearn.benchmark.groups.settings import GROUPS
from leaflearn.benchmark.groups.simulation import (
    Scenario,
    SimulatedData,
    simulate,
    simulate_for_cost,
)
from leaflearn.benchmark.json_lines import Record
from leaflearn.benchmark.real.contract import Floats, Method, Rows
from leaflearn.benchmark.real.run import FAILED, MAX_REASON, OK, OWN


def run(
    scenario: Scenario,
    method: str,
    seed: int,
    commit: str | None = None,
    fit: Method | None = None,
) -> Record:
    """Fit a method of leaflearn to a simulated data set.

    Parameters
    ----------
    scenario
        How groups differ.
    method
        A name in `OWN`, leaflearn's methods on real tables.
    seed
        Of the data.
    commit
        Recorded as it is.
    fit
        Fits the rows instead of the method of this name.

    Returns
    -------
    dict
        What was run; the outcome, and the reason if the fit failed; what `score_contexts` returns;
        the adjusted Rand index of someone who knows the model; how many of the predicted rows are
        in their 90 % interval, and how many there are, of known and new groups; and the processor
        seconds of the fit.

    Examples
    --------
    >>> from leaflearn.benchmark.groups.simulation import SCENARIOS
    >>> record = run(SCENARIOS["degree/intercepts/linear/values"], "leaflearn linear", seed=0)
    >>> record["outcome"], record["contexts"]["n_found"], record["coverage"]["known"][1]
    ('ok', 1, 200)
    """
    is_cost = scenario.study == "cost"
    data = simulate_for_cost(scenario, seed) if is_cost else simulate(scenario, seed)
    train = data if isinstance(data, Rows) else data.train
    outcome, reason, seconds = OK, None, 0.0
    found: Record = {}
    began = time.process_time()
    try:
        with warnings.catch_warnings(), threadpool_limits(1):
            warnings.simplefilter("ignore")
            estimator: Any = (fit or OWN[method])(train).estimator  # type: ignore[attr-defined]
            seconds = time.process_time() - began
            found = {"init": str(estimator.init_), "n_contexts": int(estimator.n_contexts_)}
            if isinstance(data, SimulatedData):
                found |= _measure(estimator, data)
    except Exception as error:  # one failed fit does not end the others
        outcome, reason = FAILED, f"{type(error).__name__}: {error}"[-MAX_REASON:]
        seconds = time.process_time() - began
    return {
        "scenario": scenario.name,
        "method": method,
        "seed": seed,
        "outcome": outcome,
        "reason": reason,
        "n_groups": len(np.unique(train.group)),
        "n_rows": len(train.X),
        **found,
        "seconds": round(seconds, 3),
        "commit": commit,
    }


def _measure(estimator: Any, data: SimulatedData) -> Record:
    from sklearn.metrics import adjusted_rand_score

    scored = score_contexts(estimator.contexts_, estimator.probabilities_, data.truth)
    best = float(adjusted_rand_score(data.truth, data.best))
    return {
        "contexts": scored,
        "best_ari": round(best, 4),
        "coverage": _cover(estimator, data) if not data.train.n_classes else {},
    }


def _cover(estimator: Any, data: SimulatedData) -> dict[str, list[int]]:
    """Rows within their interval, and all rows; empty for models without a standard deviation."""
    if not hasattr(estimator, "noise_"):  # networks have no model of the noise
        return {}
    known = estimator.predict(data.known.X, groups=data.known.group, return_std=True)
    seen = data.labelled
    identified = estimator.identify(seen.X, seen.y, seen.group)
    new = estimator.predict(data.new.X, context=identified, groups=data.new.group, return_std=True)
    return {"known": _count_inside(data.known, *known), "new": _count_inside(data.new, *new)}


def _count_inside(rows: Rows, mean: Floats, std: Floats) -> list[int]:
    half = norm.ppf(0.5 + GROUPS.interval / 2) * std
    return [int((np.abs(rows.y - mean) <= half).sum()), len(rows.y)]
