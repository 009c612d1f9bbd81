"""The demo from end to end, on a few epochs: what it prints and writes, and how it fails."""

import json
import os
import signal
import subprocess
import sys

import pytest
import torch
from click.testing import CliRunner

from leaflearn.cli.demo import demo
from leaflearn.cli.main import run
from leaflearn.core.threads import one_thread

FILES = {
    "functions.png",
    "functions-allocation.png",
    "colored-digits.png",
    "colored-digits-allocation.png",
    "index.html",
}


@pytest.fixture(scope="module")
def shown(tmp_path_factory):
    folder = tmp_path_factory.mktemp("demo") / "new" / "[bold]folder"
    return CliRunner().invoke(demo, ["--quick", "-o", str(folder)], catch_exceptions=False), folder


@pytest.fixture(scope="module")
def answered(tmp_path_factory):
    folder = tmp_path_factory.mktemp("demo")
    return CliRunner().invoke(
        demo, ["--quick", "--json", "--seed", "1", "-o", str(folder)], catch_exceptions=False
    ), folder


def test_a_table_and_a_finding_are_printed_per_data_set(shown):
    result, folder = shown
    assert result.exit_code == 0
    for word in ("absolute", "sine", "logarithm", "digit", "color", "ERM", "LEAF", "oracle"):
        assert word in result.stdout
    assert result.stdout.count("groups to the right") == 2
    assert result.stdout.endswith(f"open in a browser: {folder / 'index.html'}\n")


def test_progress_goes_to_standard_error(shown):
    result, _ = shown
    # Three learners on two data sets; LEAF trains in two stages.
    assert result.stderr.count("usage") == 8
    assert "usage" not in result.stdout


def test_only_the_images_and_the_page_are_written(shown):
    _, folder = shown
    assert set(os.listdir(folder)) == FILES
    assert all(
        (folder / name).read_bytes().startswith(b"\x89PNG")
        for name in FILES
        if name.endswith(".png")
    )
    page = (folder / "index.html").read_text()
    assert page.count("<img ") == 4
    assert "leaflearn demo --seed 0" in page


def test_json_is_the_only_output(answered):
    result, folder = answered
    answer = json.loads(result.stdout)
    assert answer["seed"] == 1
    assert {os.path.basename(file) for file in answer["files"]} == set(os.listdir(folder)) == FILES
    functions, digits = answer["data_sets"]["functions"], answer["data_sets"]["colored-digits"]
    assert functions["error"] == "rmse"
    assert digits["error"] == "error rate"
    assert set(functions["errors"]) == {"ERM", "LEAF", "oracle"}
    assert set(digits["errors"]["LEAF"]) == {"digit", "color"}
    assert 0 <= digits["allocation_agreement"] <= 1


def test_the_number_of_threads_is_restored():
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        with one_thread():
            assert torch.get_num_threads() == 1
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(before)


def test_an_output_that_is_a_file_is_rejected_before_the_work(tmp_path, capsys):
    file = tmp_path / "file"
    file.write_text("mine")
    assert run(["demo", "-o", str(file)]) == 2
    captured = capsys.readouterr()
    assert (
        captured.err
        == f"leaflearn: Cannot write into '{file}': it is a file, and a folder is needed.\n"
    )
    assert file.read_text() == "mine"


def test_a_negative_seed_is_rejected(capsys):
    assert run(["demo", "--seed", "-1"]) == 2
    assert (
        capsys.readouterr().err
        == "leaflearn: Invalid value for '--seed': -1 is not in the range x>=0. See "
        "'leaflearn demo --help'.\n"
    )


def test_ctrl_c_exits_with_130_and_leaves_no_files(tmp_path):
    command = [sys.executable, "-m", "leaflearn", "demo", "-o", str(tmp_path)]
    with subprocess.Popen(
        command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
    ) as process:
        assert "Three functions" in process.stderr.readline()  # the first fit begins
        process.send_signal(signal.SIGINT)
        said = process.stderr.read()
    assert process.returncode == 130
    assert said.endswith("leaflearn: Interrupted.\n")
    assert "Traceback" not in said
    assert os.listdir(tmp_path) == []
