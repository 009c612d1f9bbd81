"""Shared fixtures. All tests run on one thread, which is fastest for small arrays."""

import os
import shutil
import subprocess
import warnings
from copy import deepcopy

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
import pytest
import torch
from sklearn.linear_model import LinearRegression, LogisticRegression

from leaflearn import LeafClassifier, LeafRegressor
from linear_groups import Spy

torch.set_num_threads(1)


# For the tests of the command line: a table with two contexts as a file, a model, the command.


@pytest.fixture
def table(tmp_path, monkeypatch):
    """The table as a file in an empty working folder."""
    from special_names import make_table

    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("LEAFLEARN_DEBUG", raising=False)
    make_table().to_csv("table.csv", index=False)
    return tmp_path / "table.csv"


@pytest.fixture(scope="session")
def fitted():
    """A model that is fitted to the table."""
    from leaflearn.tabular.table_model import TableModel
    from special_names import make_table

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return TableModel("effect", "source", contexts=2, local_model="linear").fit(make_table())


@pytest.fixture
def model(fitted, table):
    """The model, saved in the folder `model` beside the table."""
    fitted.save("model")
    return table.parent / "model"


@pytest.fixture
def call(capsys):
    """Run the command in this process; returns exit code, standard output and standard error."""

    from leaflearn.cli.main import run

    def run_here(*arguments):
        code = run([str(argument) for argument in arguments])
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return run_here


@pytest.fixture
def small_disk(tmp_path):
    """A disk of 64 kilobytes, if the tests may mount one."""
    place = tmp_path / "disk"
    place.mkdir()
    mount = shutil.which("mount")
    if (
        mount is None
        or subprocess.run(
            [mount, "-t", "tmpfs", "-o", "size=64k", "tmpfs", place],
            capture_output=True,
            check=False,
        ).returncode
    ):
        pytest.skip("A small disk cannot be mounted here.")
    yield place
    subprocess.run(["umount", place], check=True)


# Small conflicting data: two contexts with opposite signs, or opposite labels.


class Conflict:
    """Twelve groups of ten rows; every third group is in the second context."""

    def __init__(self, seed=0):
        rng = np.random.default_rng(seed)
        self.X = rng.normal(size=(120, 2))
        self.groups = np.repeat(np.arange(12), 10)
        self.truth = (np.arange(12) % 3 == 0).astype(int)  # of each group
        self.sign = np.where(self.truth[self.groups] == 0, 1.0, -1.0)
        self.y = self.sign * (self.X @ [2.0, 1.0]) + rng.normal(0, 0.01, 120)
        self.labels = np.where(self.y > 0, "good", "bad")


@pytest.fixture
def conflict():
    return Conflict()


@pytest.fixture(scope="session")
def same_conflict():
    return Conflict()  # for fixtures of the whole session; tests must not change it


@pytest.fixture(scope="session")
def _regressor():
    data = Conflict()
    return LeafRegressor(local_model=LinearRegression(), random_state=0).fit(
        data.X, data.y, data.groups
    )


@pytest.fixture(scope="session")
def _classifier():
    data = Conflict()
    return LeafClassifier(local_model=LogisticRegression(), random_state=0).fit(
        data.X, data.labels, data.groups
    )


@pytest.fixture
def regressor(_regressor):
    return deepcopy(_regressor)  # a test may change it


@pytest.fixture
def classifier(_classifier):
    return deepcopy(_classifier)


@pytest.fixture
def spied():
    """The log of all calls of `Spy` models."""
    Spy.log = []
    return Spy.log
