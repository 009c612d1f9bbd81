"""The time and memory of linear and smooth models, in processor seconds of one thread.

OMP_NUM_THREADS=1 python benchmarks/closed_form.py
OMP_NUM_THREADS=1 python benchmarks/closed_form.py --before OTHER/src --cases small real

Each case runs in a process of its own. With `--before`, every case also runs with the code of
another source tree, right before the present one, and the last columns compare the two. The cases
`real` need the tables in the folder `real` of LEAFLEARN_DATA; `large` takes a minute, and
much longer with an earlier tree. "A pass" only makes the features and moments of all rows.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

SMALL = {
    f"{model}, {kind}": {"model": model, "kind": kind, "m": 200, "n": 30, "d": 8}
    for model in ("linear", "smooth")
    for kind in ("degree", "kind")
}
REAL = {f"smooth, {name}": {"model": "smooth", "table": name} for name in ("males", "wages")}
REAL["smooth, parkinsons"] = {"model": "smooth", "table": "parkinsons"}
LARGE = {
    f"{model}, {m * 20:,} rows": {"model": model, "kind": "degree", "m": m, "n": 20, "d": 10}
    for model in ("linear", "smooth")
    for m in (5_000, 50_000)
}
CASES: dict[str, dict[str, dict[str, Any]]] = {"small": SMALL, "real": REAL, "large": LARGE}


def make_rows(kind: str, m: int, n: int, d: int) -> tuple[Any, Any, Any]:
    """Random intercepts, slopes and a sine; with `kind`, one group in three has another slope."""
    rng = np.random.default_rng(0)
    group, X = np.repeat(np.arange(m), n), rng.normal(size=(m * n, d))
    y = X[:, 0] + np.sin(2 * X[:, 1]) + rng.normal(0, 0.7, m)[group]
    y += rng.normal(0, 0.5, m)[group] * X[:, 2] + rng.normal(0, 0.5, m * n)
    if kind == "kind":
        y -= np.where(group % 3 == 0, 3.0, 0.0) * X[:, 3]
    return X, y, group


def run_case(case: dict[str, Any]) -> dict[str, Any]:
    """Fit once; the processor seconds, the peak of memory beyond the rows, and what was found."""
    from leaflearn import LeafRegressor

    if "table" in case:
        from leaflearn.benchmark.real.tables import TABLES

        table = TABLES[case["table"]].load()
        X, y, group = table.X, table.y, table.group
    else:
        X, y, group = make_rows(case["kind"], case["m"], case["n"], case["d"])
    few = make_rows("degree", 5, 10, 3)
    LeafRegressor(1, local_model="linear").fit(few[0], few[1], groups=few[2])  # imports everything
    leaf = LeafRegressor(local_model=case["model"], random_state=0)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    began = time.process_time()
    leaf.fit(X, y, groups=group)
    seconds = time.process_time() - began
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return {
        "seconds": seconds,
        "reading": time_reading(leaf, X, y, group),
        "megabytes": (peak - before) / 1024,
        "n_contexts": int(leaf.n_contexts_),
        "n_effects": int(leaf.effect_variances_.shape[-1]),
        "noise": leaf.noise_.ravel().tolist(),
        "variances": leaf.effect_variances_.ravel().tolist(),
        "prediction": leaf.predict(X[:1000], groups=group[:1000]).tolist(),
    }


def time_reading(leaf: Any, X: Any, y: Any, group: Any) -> float:
    """Processor seconds of one pass over all rows that only makes features and moments."""
    try:
        from leaflearn.engines.many_groups import iterate_moments
    except ImportError:  # an earlier source tree
        return float("nan")
    began = time.process_time()
    features = leaf.fitted_state_.local_models.features
    for _ in iterate_moments(features, X, y[:, None], group, None):
        pass
    return time.process_time() - began


def run_apart(case: dict[str, Any], source: Path) -> dict[str, Any]:
    """The same in a process of its own, with the code of a source tree."""
    variables = dict(os.environ, PYTHONPATH=str(source), OMP_NUM_THREADS="1")
    command = [sys.executable, "-W", "ignore", __file__, "--case", json.dumps(case)]
    done = subprocess.run(command, env=variables, capture_output=True, text=True)
    if done.returncode:
        return {"error": done.stderr.strip().splitlines()[-1]}
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def describe(found: dict[str, Any]) -> str:
    if "error" in found:
        return f"{found['error'][:40]:>40s}"
    return (
        f"{found['seconds']:8.2f} s (a pass {found['reading']:4.1f}) {found['megabytes']:6.0f} MB"
        f" {found['n_contexts']:4d} contexts {found['n_effects']:2d} effects"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--before", type=Path, help="source tree to compare with")
    parser.add_argument("--cases", nargs="+", choices=CASES, default=["small"])
    parser.add_argument("--case", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.case:
        print(json.dumps(run_case(json.loads(options.case))))
        return
    present = Path(__file__).parents[1] / "src"
    for name, case in [each for part in options.cases for each in CASES[part].items()]:
        earlier = run_apart(case, options.before) if options.before else None
        found = run_apart(case, present)
        line = f"{name:28s} {describe(found)}"
        if earlier is not None:
            line += f" | before {describe(earlier)}"
        if earlier is not None and "error" not in earlier and "error" not in found:
            change = np.subtract(found["prediction"], earlier["prediction"])
            share = np.sqrt(np.mean(change**2)) / np.std(earlier["prediction"])
            ratio = earlier["seconds"] / found["seconds"]
            line += f" | {ratio:5.1f} times as fast, predictions differ by {share:.1e}"
        print(line, flush=True)


if __name__ == "__main__":
    main()
