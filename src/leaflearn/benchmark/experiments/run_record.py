"""The record of a run: its settings, where it ran, its learning curve and its result.

A run in progress has a folder of its own:

    settings.json      everything that determines the result; its hash is in the folder's name
    environment.json   versions, commit, date
    records.jsonl      one line per epoch; about a hundred lines for long runs
    checkpoint.pt      the state of the method, to continue after an interruption

A finished run is one line of `DATASET.jsonl` beside these folders, with the keys `name`,
`settings`, `environment`, `records` and `result`, and its folder is removed. Version 0.1.0 kept
the folders and wrote the result into `result.json`; such folders are read as well, and
`pack_folders` moves them into the files.
"""

from __future__ import annotations

import io
import json
import os
import platform
import shutil
import subprocess
from datetime import UTC, datetime
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import torch

import leaflearn
from leaflearn.benchmark.experiments.spec import Run
from leaflearn.benchmark.json_lines import Record, append_json_line, read_json_lines
from leaflearn.persistence.atomic_files import make_folder, write_file

KEYS = ("name", "settings", "environment", "records", "result")


class RunRecord:
    """The record of a run inside `root`.

    Examples
    --------
    >>> import tempfile
    >>> run = Run("leaf", "", {"dataset": {"name": "functions"}, "seed": 0})
    >>> with tempfile.TemporaryDirectory() as root:
    ...     record = RunRecord(Path(root), run)
    ...     record.begin()
    ...     in_progress = os.listdir(record.folder)
    ...     record.finish({"errors": {}})
    ...     record.name, record.is_done, sorted(in_progress), os.listdir(root)
    ('functions-leaf-0-...', True, ['environment.json', 'settings.json'], ['functions.jsonl'])
    """

    def __init__(self, root: Path, run: Run) -> None:
        dataset = run.settings["dataset"]["name"]
        self.run = run
        self.name = f"{dataset}-{run.method}-{run.seed}-{run.key}"
        self.folder = root / self.name
        self.file = root / f"{dataset}.jsonl"

    @property
    def is_done(self) -> bool:
        """Is there a result?"""
        return (self.folder / "result.json").exists() or self.name in _finished(self.file)

    @property
    def result(self) -> dict[str, Any]:
        """What was measured."""
        finished = self._read()
        if finished is None:
            raise FileNotFoundError(2, "There is no result of this run", str(self.folder))
        return dict(finished["result"])

    def environment(self) -> dict[str, Any]:
        """Versions, commit and date of the run."""
        finished = self._read()
        return dict(finished["environment"] if finished else _load(self.folder, "environment.json"))

    def records(self) -> list[dict[str, Any]]:
        """All complete lines of the learning curve."""
        finished = self._read()
        return list(finished["records"]) if finished else _read_records(self.folder)

    def begin(self) -> None:
        """Make the folder, and write the settings and the environment."""
        make_folder(self.folder)
        self._write("settings.json", self.run.settings)
        self._write("environment.json", describe_environment())

    def go_on(self) -> None:
        """Write the environment of a resumed run; its result comes from both commits."""
        before, now = self.environment(), describe_environment()
        commits = dict.fromkeys([*str(before["commit"]).split(", "), str(now["commit"])])
        self._write("environment.json", {**now, "commit": ", ".join(commits)})

    def add(self, line: dict[str, Any]) -> None:
        """Add a line to the learning curve."""
        with open(self.folder / "records.jsonl", "a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")

    def save(self, state: dict[str, Any]) -> None:
        """Save a checkpoint."""
        buffer = io.BytesIO()
        torch.save(state, buffer)
        write_file(self.folder / "checkpoint.pt", buffer.getvalue())

    def resume(self) -> dict[str, Any] | None:
        """The state of the checkpoint, or None; records of later epochs are removed."""
        path = self.folder / "checkpoint.pt"
        if not path.exists():
            return None
        state: dict[str, Any] = torch.load(path, weights_only=True)
        kept = [line for line in _read_records(self.folder) if line["epoch"] < state["n_epochs"]]
        lines = "".join(json.dumps(line) + "\n" for line in kept)
        write_file(self.folder / "records.jsonl", lines.encode())
        return state

    def restart(self) -> None:
        """Remove the records of a run that cannot be resumed."""
        (self.folder / "records.jsonl").unlink(missing_ok=True)

    def finish(self, result: dict[str, Any]) -> None:
        """Add the run to the file of finished runs, and remove its folder."""
        in_progress = {
            "name": self.name,
            "settings": _load(self.folder, "settings.json"),
            "environment": _load(self.folder, "environment.json"),
            "records": _read_records(self.folder),
        }
        append_json_line(self.file, {**in_progress, "result": _sorted(result)})
        _remove(self.folder)

    def _read(self) -> Record | None:
        """The complete record of a finished run; None if the run is not done.

        The folder is read first: it is removed only after the run has been added to the file.
        """
        return _read_folder(self.folder) or _finished(self.file).get(self.name)

    def _write(self, name: str, content: dict[str, Any]) -> None:
        text = json.dumps(content, indent=1, sort_keys=True) + "\n"
        write_file(self.folder / name, text.encode())


def pack_folders(root: Path) -> int:
    """Move the folders of finished runs into the files of finished runs; return their number.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as root:
    ...     record = RunRecord(Path(root), Run("leaf", "", {"dataset": {"name": "a"}, "seed": 0}))
    ...     record.begin()
    ...     _ = (record.folder / "result.json").write_text('{"seconds": 1.0}')
    ...     pack_folders(Path(root)), os.listdir(root), record.result
    (1, ['a.jsonl'], {'seconds': 1.0})
    """
    n_packed = 0
    for folder in sorted(path.parent for path in root.glob("*/result.json")):
        record = _read_folder(folder)
        if record is not None:
            file = root / f"{record['settings']['dataset']['name']}.jsonl"
            if folder.name not in _finished(file):
                append_json_line(file, record)
            n_packed += 1
    for file in root.glob("*.jsonl"):
        for name in _finished(file):
            if (root / name).is_dir():  # just packed, or left by a process killed while finishing
                _remove(root / name)
    return n_packed


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


def _finished(file: Path) -> dict[str, Record]:
    """The finished runs of a file, by name; of two records of a run, the later one counts."""
    try:
        state = file.stat()
    except FileNotFoundError:
        return {}
    return _parse_finished(file, state.st_size, state.st_mtime_ns)


@lru_cache(maxsize=32)
def _parse_finished(file: Path, size: int, changed: int) -> dict[str, Record]:  # noqa: ARG001
    """Parse a file again only if its size or its time of change differs."""
    return {record["name"]: record for record in read_json_lines(file, KEYS)}


def _read_folder(folder: Path) -> Record | None:
    """The record of a finished run from its folder, as version 0.1.0 wrote it."""
    try:
        result = _load(folder, "result.json")
        settings, environment = _load(folder, "settings.json"), _load(folder, "environment.json")
    except FileNotFoundError:
        return None
    parts = (folder.name, settings, environment, _read_records(folder), result)
    is_complete = (folder / "result.json").exists()  # not removed while it was read
    return dict(zip(KEYS, parts, strict=True)) if is_complete else None


def _read_records(folder: Path) -> list[dict[str, Any]]:
    """All complete lines; a line without its end is incomplete."""
    path = folder / "records.jsonl"
    lines = path.read_text(encoding="utf-8").split("\n")[:-1] if path.exists() else []
    return [json.loads(line) for line in lines]


def _load(folder: Path, name: str) -> dict[str, Any]:
    return dict(json.loads((folder / name).read_text(encoding="utf-8")))


def _sorted(content: dict[str, Any]) -> dict[str, Any]:
    """The same with sorted keys at every level, and exactly as a reader of the file will see it."""
    return dict(json.loads(json.dumps(content, sort_keys=True)))


def _remove(folder: Path) -> None:
    (folder / "result.json").unlink(missing_ok=True)  # first: what is left is not taken for a run
    shutil.rmtree(folder, ignore_errors=True)


def _commit() -> str | None:
    """The commit of the checkout that the library runs from; None outside of a checkout.

    A plus sign after it says that files have been changed since.
    """
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
