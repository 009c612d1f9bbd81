"""Files with one JSON object per line, to which several processes may append.

Only the last line of such a file can be incomplete, because the process that wrote it was killed.
Readers ignore an incomplete last line, and the next append removes it.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

if sys.platform != "win32":
    import fcntl

Record = dict[str, Any]


def read_json_lines(path: Path, required: Iterable[str] = ()) -> list[Record]:
    """Read all complete lines; an empty list if there is no such file.

    Parameters
    ----------
    path
        The file.
    required
        Keys that every record has.

    Raises
    ------
    ValueError
        If a line other than an incomplete last one is not such a record.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "records.jsonl"
    ...     _ = path.write_text('{"seed": 0}\\n{"seed": 1}\\n{"se')
    ...     read_json_lines(path, required=["seed"])
    [{'seed': 0}, {'seed': 1}]
    """
    keys, records = frozenset(required), []
    lines = path.read_bytes().splitlines(keepends=True) if path.exists() else []
    for number, line in enumerate(lines, start=1):
        record = _parse(line, keys)
        if record is not None:
            records.append(record)
        elif line.strip() and line.endswith(b"\n"):
            raise ValueError(
                f"Line {number} of '{path}' is not a record of a run; "
                "repair it, delete it, or choose another folder."
            )
    return records


def append_json_line(path: Path, record: Record) -> None:
    """Append a record; it is on disk when this returns, and no other process writes meanwhile.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "records.jsonl"
    ...     _ = path.write_text('{"seed": 0}\\n{"se')
    ...     append_json_line(path, {"seed": 1})
    ...     path.read_text()
    '{"seed": 0}\\n{"seed": 1}\\n'
    """
    line = json.dumps(record).encode() + b"\n"
    with open(path, "a+b") as file, _locked(file):
        file.seek(0)
        content = file.read()
        n_ended = content.rfind(b"\n") + 1
        if _parse(content[n_ended:], frozenset()) is not None:  # complete but for its line end
            line = b"\n" + line
        else:
            file.truncate(n_ended)
        file.write(line)
        file.flush()
        os.fsync(file.fileno())


class KeyedRecords:
    """The records of a file, by what identifies a run.

    Parameters
    ----------
    path
        The file; it may not exist yet. Of two records of the same run, the later one counts.
    key_names
        Names of the values that identify a run.
    required
        Further keys that every record has.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     KeyedRecords(Path(folder) / "records.jsonl", ["seed"]).add({"seed": 3})
    ...     (3,) in KeyedRecords(Path(folder) / "records.jsonl", ["seed"])
    True
    """

    def __init__(self, path: Path, key_names: Sequence[str], required: Iterable[str] = ()) -> None:
        self.path, self.key_names = path, tuple(key_names)
        records = read_json_lines(path, [*self.key_names, *required])
        self._by_key = {self.key_of(record): record for record in records}

    def __contains__(self, key: tuple[Any, ...]) -> bool:
        return key in self._by_key

    def key_of(self, record: Record) -> tuple[Any, ...]:
        """What identifies the run of a record."""
        return tuple(record[name] for name in self.key_names)

    def get(self, key: tuple[Any, ...]) -> Record | None:
        """The record of a run, or None."""
        return self._by_key.get(key)

    def all(self) -> list[Record]:
        """Every record, in the order in which they were added."""
        return list(self._by_key.values())

    def add(self, record: Record) -> None:
        """Add a record; it is in the file when this returns."""
        append_json_line(self.path, record)
        self._by_key[self.key_of(record)] = record


def _parse(line: bytes, required: frozenset[str]) -> Record | None:
    """The record, or None if the line is empty, incomplete or something else."""
    try:
        record = json.loads(line)
    except ValueError:  # not JSON, or not UTF-8
        return None
    return record if isinstance(record, dict) and required <= record.keys() else None


@contextmanager
def _locked(file: IO[bytes]) -> Iterator[None]:
    """Wait until no other process holds the file, and hold it; closing the file releases it.

    On Windows, where files cannot be locked like this, a line is still written in one piece.
    """
    if sys.platform != "win32":
        fcntl.flock(file, fcntl.LOCK_EX)
    yield
