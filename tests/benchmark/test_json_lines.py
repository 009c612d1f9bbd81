"""Files of JSON lines survive processes that are killed, and processes that write at once."""

import json
import subprocess
import sys

import pytest

from leaflearn.benchmark.json_lines import append_json_line, read_json_lines

WRITE = """
import sys
from pathlib import Path
from leaflearn.benchmark.json_lines import append_json_line
for seed in range(int(sys.argv[2]), 60, 3):
    append_json_line(Path(sys.argv[1]), {"seed": seed, "numbers": [0.1] * 5000})
"""


@pytest.fixture
def path(tmp_path):
    return tmp_path / "records.jsonl"


def test_processes_that_write_at_once_lose_no_line(path):
    command = [sys.executable, "-c", WRITE, str(path)]
    writers = [subprocess.Popen([*command, str(first)]) for first in range(3)]
    assert [writer.wait() for writer in writers] == [0, 0, 0]
    assert sorted(record["seed"] for record in read_json_lines(path)) == list(range(60))


@pytest.mark.parametrize("n_lost", range(1, 12))
def test_an_incomplete_last_line_is_ignored_and_then_removed(path, n_lost):
    append_json_line(path, {"seed": 0})
    append_json_line(path, {"seed": 1})
    path.write_bytes(path.read_bytes()[:-n_lost])
    is_complete = n_lost == 1  # only the line end is missing
    kept = [{"seed": 0}, {"seed": 1}] if is_complete else [{"seed": 0}]
    assert read_json_lines(path) == kept
    append_json_line(path, {"seed": 2})
    assert [json.loads(line) for line in path.open()] == [*kept, {"seed": 2}]


def test_a_complete_line_that_is_no_record_is_reported(path):
    path.write_text('{"seed": 0}\n[1]\n')
    with pytest.raises(ValueError, match=r"^Line 2 of '.*' is not a record of a run; repair it,"):
        read_json_lines(path)
