"""All methods side by side on one data set that needs no files.

    python benchmarks/methods.py functions|colored-digits [--seeds 5] [--steps 2000] [--methods a,b] [--record FILE]

The same network, groups of 4, 32 groups in a step, and the methods' own hyper-parameters (the paper's). A record is one line of JSON for
each method and seed; those that are in the file already are not run again.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

from leaflearn.data.streaming import BilevelSampler
from leaflearn.datasets import DATASETS
from leaflearn.experiments.method_errors import method_errors
from leaflearn.methods import METHODS, describe, make_method, train
from leaflearn.networks import mlp

HIDDEN = {"functions": (32, 32, 32, 32, 32), "colored-digits": (256,)}


def run(name: str, data: str, seed: int, n_steps: int) -> dict[str, Any]:
    """Train one method from one seed."""
    domains = DATASETS[data]()
    sampler = BilevelSampler(domains, group_size=4, groups_per_step=32, random_state=seed)
    n_inputs, n_epochs = int(np.prod(domains.input_shape)), max(1, round(n_steps / len(sampler)))
    problem = describe(sampler, lambda n_outputs: nn.Sequential(nn.Flatten(), *mlp(n_inputs, n_outputs, HIDDEN[data])), n_epochs, seed)
    method = make_method(name)
    began = time.process_time()
    train(method, sampler, problem, n_epochs)
    seconds = time.process_time() - began
    errors = {protocol: [round(e, 4) for e in each] for protocol, each in method_errors(method, domains, seed).items()}
    return {"data": data, "method": name, "seed": seed, "steps": n_steps, "seconds": round(seconds, 1), **errors}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", choices=HIDDEN)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--steps", type=int, default=2000)
    parser.add_argument("--methods", default=None)
    parser.add_argument("--record", type=Path, default=None)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    kind = "regression" if DATASETS[arguments.data]().classes is None else "classification"
    names = arguments.methods.split(",") if arguments.methods else [name for name, method in METHODS.items() if kind in method.claims]
    path = arguments.record
    records = [json.loads(line) for line in path.read_text().splitlines()] if path and path.exists() else []
    done = {(r["data"], r["method"], r["seed"], r["steps"]): r for r in records}
    for name in names:
        rows = []
        for seed in range(arguments.seeds):
            key = (arguments.data, name, seed, arguments.steps)
            if key not in done:
                done[key] = run(name, arguments.data, seed, arguments.steps)
                if path:
                    with path.open("a") as file:
                        file.write(json.dumps(done[key]) + "\n")
            rows.append(done[key])
        for protocol in ("best", "identified", "label set", "adapted"):
            told = [row[protocol] for row in rows if protocol in row]
            if told:
                print(f"{name:20s} {protocol:11s} " + "  ".join(f"{e:.3f}" for e in np.mean(told, 0)), flush=True)


if __name__ == "__main__":
    main()
