"""The contribution of each part of the method for groups, with one part left out.

    python benchmarks/ablation_groups.py [--base NAME] [--seeds 3] [--tables NAMES]
        [--tasks NAMES] [--scenarios BEGINNINGS] [--record FILE]

The base is the default estimator, or one with a local model: linear, smooth or boosting. It is
measured on real tables (errors, one seed is one split), altered tables (agreement with the truth)
and simulated groups (number of contexts, agreement). A record is one line of JSON per part, data
and seed; recorded runs are not repeated.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np

from leaflearn.benchmark.altered.run import run as run_altered
from leaflearn.benchmark.altered.tasks import TASKS
from leaflearn.benchmark.groups.run import run as run_simulated
from leaflearn.benchmark.groups.simulation import SCENARIOS
from leaflearn.benchmark.groups.suite import select
from leaflearn.benchmark.json_lines import KeyedRecords, Record
from leaflearn.benchmark.real.contract import Rows
from leaflearn.benchmark.real.run import METHODS, Leaf
from leaflearn.benchmark.real.run import run as run_real
from leaflearn.benchmark.real.tables import all_tables
from leaflearn.core.grouped_data import position_in_group
from leaflearn.core.threads import one_thread
from leaflearn.estimators import LeafClassifier, LeafRegressor
from leaflearn.initialization import settings

REAL, ALTERED, SIMULATED = "real", "altered", "simulated"
TABLES = "hsb82,cigar,growth-school,wages,sleepstudy"
TASK_NAMES = "hsb82-unit,school-reversed,bdf-reversed,growth-school-reversed,cigar-reversed"
BEGINNINGS = "degree,kind/offset/4,kind/offset/6,kind/slope/4,kind/slope/6"
N_ROWS = 32  # of a group, as the search for contexts of networks uses them
KEY = ("benchmark", "data", "base", "left_out", "seed")


def fit(parameters: dict[str, Any], rows: Rows) -> Leaf:
    """The estimator with these parameters."""
    kind = LeafClassifier if rows.n_classes else LeafRegressor
    return Leaf(kind(random_state=0, **parameters).fit(rows.X, rows.y, groups=rows.group))


def fit_some_rows(parameters: dict[str, Any], rows: Rows) -> Leaf:
    """The same on at most 32 rows of each group."""
    order = np.random.default_rng(0).permutation(len(rows.group))
    kept = position_in_group(rows.group, order) < N_ROWS
    part = Rows(rows.X[kept], rows.y[kept], rows.group[kept], rows.n_classes)
    return fit(parameters, part)


@contextmanager
def common_noise() -> Iterator[None]:
    """No group has a noise of its own, so that the density of a group is that of squared errors."""
    changed = replace(settings.STRUCTURE, min_noise_rows=math.inf)
    with mock.patch.object(settings, "STRUCTURE", changed):
        yield


def fit_with_common_noise(parameters: dict[str, Any], rows: Rows) -> Leaf:
    """The same noise for all groups."""
    with common_noise():
        return fit(parameters, rows)


LEFT_OUT: dict[str, Callable[[dict[str, Any], Rows], Leaf]] = {
    "nothing": fit,
    "group effects": lambda parameters, rows: fit(parameters | {"group_effects": None}, rows),
    "own noise of groups": fit_with_common_noise,
    f"rows beyond {N_ROWS} of a group": fit_some_rows,
    "choice of the local model (linear)": lambda parameters, rows: fit(
        parameters | {"local_model": "linear"}, rows
    ),
    "choice of the local model (smooth)": lambda parameters, rows: fit(
        parameters | {"local_model": "smooth"}, rows
    ),
}


def run(benchmark: str, data: str, base: str, left_out: str, seed: int) -> Record:
    """One fit, with one part left out."""
    parameters = {} if base == "default" else {"local_model": base}

    def method(rows: Rows) -> Leaf:
        return LEFT_OUT[left_out](parameters, rows)

    if benchmark == REAL:
        with mock.patch.dict(METHODS, {left_out: method}):
            record = run_real(all_tables()[data], left_out, seed)
    elif benchmark == ALTERED:
        record = run_altered(TASKS[data], left_out, seed, fit=method)
    else:
        record = run_simulated(SCENARIOS[data], left_out, seed, fit=method)
    measured = ("outcome", "reason", "cells", "contexts", "best_ari", "coverage", "seconds")
    key = dict(zip(KEY, (benchmark, data, base, left_out, seed), strict=True))
    return key | {name: record[name] for name in measured if name in record}


def summarize(records: list[Record], left_out: str) -> list[str]:
    """The cells of a line of the table."""
    own = [record for record in records if record["left_out"] == left_out]
    whole = {
        (record["data"], record["seed"]): record
        for record in records
        if record["left_out"] == "nothing" and record["benchmark"] == REAL
    }
    cells = []
    for cell in ("known", "new 5"):
        ratios = [
            0.5 * np.log(record["cells"][cell]["loss"] / other["cells"][cell]["loss"])
            for record in own
            if record["benchmark"] == REAL
            and cell in record.get("cells", {})
            and cell in (other := whole.get((record["data"], record["seed"]), {})).get("cells", {})
        ]
        cells.append(f"{np.exp(np.mean(ratios)):.3f}" if ratios else "")
    for benchmark, beginning in ((ALTERED, ""), (SIMULATED, "degree"), (SIMULATED, "kind")):
        runs = [
            record.get("contexts")
            for record in own
            if record["benchmark"] == benchmark and record["data"].startswith(beginning)
        ]
        right = sum(score is not None and score["n_found"] == score["n_true"] for score in runs)
        ari = np.mean([0.0 if score is None else score["ari"] for score in runs]) if runs else 0
        cells.append(f"{right} of {len(runs)}, {ari:.2f}" if runs else "")
    return [*cells, str(sum(record["outcome"] == "failed" for record in own))]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--base", default="default")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--tables", default=TABLES)
    parser.add_argument("--tasks", default=TASK_NAMES)
    parser.add_argument("--scenarios", default=BEGINNINGS)
    parser.add_argument("--record", type=Path, default=Path("ablation-groups.jsonl"))
    arguments = parser.parse_args()
    records = KeyedRecords(arguments.record, KEY)
    named = [(REAL, name) for name in arguments.tables.split(",") if name]
    named += [(ALTERED, name) for name in arguments.tasks.split(",") if name]
    beginnings = [name for name in arguments.scenarios.split(",") if name]
    named += [(SIMULATED, name) for name in (select(beginnings) if beginnings else [])]
    with one_thread():
        for seed in range(arguments.first_seed, arguments.first_seed + arguments.seeds):
            for benchmark, data in named:
                for left_out in LEFT_OUT:
                    key = (benchmark, data, arguments.base, left_out, seed)
                    if key not in records and not (benchmark == REAL and seed > 4):
                        records.add(run(*key))
    found = [record for record in records.all() if record["base"] == arguments.base]
    head = ("known", "new 5", "altered", "degree", "kind", "failed")
    print(f"{'left out':38s}" + "".join(f"{name:>16s}" for name in head))
    for left_out in LEFT_OUT:
        cells = summarize(found, left_out)
        print(f"{left_out:38s}" + "".join(f"{cell:>16s}" for cell in cells))
    print("known, new 5: error on real tables, divided by that with nothing left out.")
    print("altered, degree, kind: data sets with the right number of contexts, and mean ARI.")


if __name__ == "__main__":
    main()
