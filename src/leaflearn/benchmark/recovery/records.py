"""Records of the recovery suite in a file: one line of JSON for each run, added as soon as the run is done.

A line is the unit that may be lost. Where the program was killed while it wrote one, what is there of it is removed when the file is opened
again, and its run is run again.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

Record = dict[str, Any]
Key = tuple[str, str, int]
FIELDS = (
    "task",
    "rule",
    "seed",
    "recovered",
    "errors",
    "seconds",
    "converged",
    "warnings",
)  # what every record has had from the first


def key_of(record: Record) -> Key:
    """What a record is a record of: task, rule and seed.

    Examples
    --------
    >>> key_of({"task": "rare", "rule": "hard", "seed": 3, "recovered": False})
    ('rare', 'hard', 3)
    """
    return record["task"], record["rule"], record["seed"]


class Records:
    """The records of a file, by task, rule and seed; what is added is in the file before `add` returns.

    Parameters
    ----------
    path
        The file; it need not be there yet. Of two records of the same run, the later one counts.

    Examples
    --------
    >>> import tempfile
    >>> record = {"task": "rare", "rule": "hard", "seed": 3, "recovered": False, "errors": [0.3, 0.1, 0.1]}
    >>> record |= {"seconds": 2.8, "converged": True, "warnings": 0}
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     Records(Path(folder) / "records.jsonl").add(record)
    ...     ("rare", "hard", 3) in Records(Path(folder) / "records.jsonl")
    True
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        content = path.read_bytes() if path.exists() else b""
        records, n_whole = _parse_lines(content, path)
        if n_whole < len(
            content
        ):  # now and not when the next is added: by then another command may have added its own
            os.truncate(path, n_whole)
        if n_whole and not content[:n_whole].endswith(b"\n"):
            self._append(b"\n")
        self._by_key = {key_of(record): record for record in records}

    def __contains__(self, key: Key) -> bool:
        return key in self._by_key

    def all(self) -> list[Record]:
        """Every record, in the order in which they were added."""
        return list(self._by_key.values())

    def add(self, record: Record) -> None:
        """Add a record behind the last."""
        self._append(json.dumps(record).encode() + b"\n")
        self._by_key[key_of(record)] = record

    def _append(self, line: bytes) -> None:
        with open(
            self.path, "ab", buffering=0
        ) as file:  # one write for the whole line, so that two commands may share a file
            file.write(line)
            os.fsync(file.fileno())


def _parse_lines(content: bytes, path: Path) -> tuple[list[Record], int]:
    """The records, and how many bytes of the content are whole lines; only the last may be cut off, and then has no end."""
    records, n_whole = [], 0
    lines = content.splitlines(keepends=True)
    for number, line in enumerate(lines, start=1):
        record = _parse(line)
        if record is not None:
            records.append(record)
        elif line.strip() and (number < len(lines) or line.endswith(b"\n")):
            raise ValueError(
                f"Line {number} of '{path}' is not a record of a run; mend it, delete it, or choose another folder."
            )
        n_whole += len(line) if record is not None or not line.strip() else 0
    return records, n_whole


def _parse(line: bytes) -> Record | None:
    """The record, or None where the line holds none, or only the beginning of one."""
    try:
        record = json.loads(line)
    except ValueError:  # of JSON, or of its letters
        return None
    return record if isinstance(record, dict) and all(field in record for field in FIELDS) else None
