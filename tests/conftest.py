"""One thread for every test: small arrays gain nothing from more, and two threads on a busy machine lose much."""

import os
import shutil
import subprocess
import warnings

os.environ.setdefault("OMP_NUM_THREADS", "1")

import pytest
import torch

torch.set_num_threads(1)


# A small table with two contexts as a file, a model of it, and the command in the same process: for the tests of the verbs.


@pytest.fixture
def table(tmp_path, monkeypatch):
    """The table as a file in an otherwise empty working folder."""
    from strange_tables import make_table

    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("LEAFLEARN_DEBUG", raising=False)
    make_table().to_csv("table.csv", index=False)
    return tmp_path / "table.csv"


@pytest.fixture(scope="session")
def fitted():
    """A model of the table."""
    from leaflearn.estimators.table_model import TableModel
    from strange_tables import make_table

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return TableModel("effect", "source", contexts=2, local_model="linear").fit(make_table())


@pytest.fixture
def model(fitted, table):
    """The same in the folder `model` beside the table."""
    fitted.save("model")
    return table.parent / "model"


@pytest.fixture
def call(capsys):
    """Run the command; its exit code, what it printed, and what it said on standard error."""

    from leaflearn.cli.main import run

    def run_here(*arguments):
        code = run([str(argument) for argument in arguments])
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return run_here


@pytest.fixture
def small_disk(tmp_path):
    """A disk of 64 kilobytes, where the tests may mount one."""
    place = tmp_path / "disk"
    place.mkdir()
    mount = shutil.which("mount")
    if (
        mount is None
        or subprocess.run([mount, "-t", "tmpfs", "-o", "size=64k", "tmpfs", place], capture_output=True, check=False).returncode
    ):
        pytest.skip("A small disk cannot be mounted here.")
    yield place
    subprocess.run(["umount", place], check=True)
