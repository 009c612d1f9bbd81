"""A data folder of its own for each test, empty, and one that has a publisher's files where the machine has them."""

import pytest

from leaflearn.benchmark.datasets import store


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """An empty data folder."""
    monkeypatch.setenv(store.VARIABLE, str(tmp_path / "data"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    (tmp_path / "data").mkdir()
    return tmp_path / "data"


@pytest.fixture
def need():
    """Skip, saying so, where these files are not in the data folder."""

    def skip_without(files):
        if store.missing(files):
            pytest.skip(
                f"{files.title} is not in the data folder; set {store.VARIABLE} to where it is."
            )

    return skip_without
