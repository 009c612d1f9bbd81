"""The folder of one run: what was to be done, where it was done, what came of it, and what it takes to go on after an interruption.

settings.json      all that decides the outcome; its hash is in the folder's name
environment.json   versions, commit, date
records.jsonl      one line an epoch, of long runs about a hundred in all
checkpoint.pt      the method's state, while the run is not done
result.json        what was measured; where it is, the run is done
"""

from __future__ import annotations

import io
import json
import os
import platform
import subprocess
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import torch

import leaflearn
from leaflearn.benchmark.experiments.spec import Run
from leaflearn.persistence.atomic_files import make_folder, write_file


class RunFolder:
    """The folder of a run inside `root`.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as root:
    ...     folder = RunFolder(Path(root), Run("leaf", "", {"dataset": {"name": "functions"}, "seed": 0}))
    ...     folder.begin()
    ...     folder.finish({"errors": {}})
    ...     folder.path.name, folder.is_done, sorted(os.listdir(folder.path))
    ('functions-leaf-0-...', True, ['environment.json', 'result.json', 'settings.json'])
    """

    def __init__(self, root: Path, run: Run) -> None:
        self.run = run
        self.path = root / f"{run.settings['dataset']['name']}-{run.method}-{run.seed}-{run.key}"

    @property
    def is_done(self) -> bool:
        """Is there a result?"""
        return (self.path / "result.json").exists()

    @property
    def result(self) -> dict[str, Any]:
        """What was measured."""
        return dict(json.loads((self.path / "result.json").read_text(encoding="utf-8")))

    def environment(self) -> dict[str, Any]:
        """Where and when it was done."""
        return dict(json.loads((self.path / "environment.json").read_text(encoding="utf-8")))

    def begin(self) -> None:
        """Make the folder, and write down what will be done and where."""
        make_folder(self.path)
        self._write("settings.json", self.run.settings)
        self._write("environment.json", describe_environment())

    def go_on(self) -> None:
        """Write down where an interrupted run goes on: its result is of both commits."""
        before, now = self.environment(), describe_environment()
        commits = dict.fromkeys([*str(before["commit"]).split(", "), str(now["commit"])])
        self._write("environment.json", {**now, "commit": ", ".join(commits)})

    def record(self, line: dict[str, Any]) -> None:
        """Add a line."""
        with open(self.path / "records.jsonl", "a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")

    def records(self) -> list[dict[str, Any]]:
        """All whole lines."""
        path = self.path / "records.jsonl"
        lines = (
            path.read_text(encoding="utf-8").split("\n")[:-1] if path.exists() else []
        )  # what has no end was cut off
        return [json.loads(line) for line in lines]

    def save(self, state: dict[str, Any]) -> None:
        """Keep the state to go on from."""
        buffer = io.BytesIO()
        torch.save(state, buffer)
        write_file(self.path / "checkpoint.pt", buffer.getvalue())

    def resume(self) -> dict[str, Any] | None:
        """The state to go on from, with the records that belong to it; None where the run begins."""
        path = self.path / "checkpoint.pt"
        if not path.exists():
            return None
        state: dict[str, Any] = torch.load(path, weights_only=True)
        kept = [line for line in self.records() if line["epoch"] < state["n_epochs"]]
        write_file(
            self.path / "records.jsonl", "".join(json.dumps(line) + "\n" for line in kept).encode()
        )
        return state

    def restart(self) -> None:
        """Forget records of a run that has no state to go on from."""
        (self.path / "records.jsonl").unlink(missing_ok=True)

    def finish(self, result: dict[str, Any]) -> None:
        """Write the result, which marks the run as done."""
        self._write("result.json", result)
        (self.path / "checkpoint.pt").unlink(missing_ok=True)

    def _write(self, name: str, content: dict[str, Any]) -> None:
        write_file(
            self.path / name, (json.dumps(content, indent=1, sort_keys=True) + "\n").encode()
        )


def describe_environment() -> dict[str, Any]:
    """Versions, commit and date.

    Examples
    --------
    >>> sorted(describe_environment())
    ['commit', 'date', 'leaflearn', 'numpy', 'processors', 'python', 'torch']
    """
    return {
        "date": datetime.now(UTC).strftime("%Y-%m-%d"),
        "commit": _commit(),
        "leaflearn": leaflearn.__version__,
        "numpy": np.__version__,
        "torch": torch.__version__,
        "python": platform.python_version(),
        "processors": os.cpu_count(),
    }


def _commit() -> str | None:
    """The commit of the checkout that the library runs from, with a plus sign where files were changed since; None elsewhere."""
    here = Path(__file__).parent
    try:
        commit = _git(here, "rev-parse", "--short", "HEAD")
        changed = _git(here.parent, "status", "--porcelain", "--", ".")
    except (OSError, subprocess.CalledProcessError):
        return None
    return commit + ("+" if changed else "")


def _git(folder: Path, *arguments: str) -> str:
    return subprocess.run(
        ["git", *arguments], cwd=folder, capture_output=True, text=True, check=True
    ).stdout.strip()
