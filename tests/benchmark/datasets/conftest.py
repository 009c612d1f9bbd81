"""Fixtures: an empty data folder for each test, and a skip for missing publishers' files."""

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
    """Skip the test if these files are not in the data folder."""

    def skip_without(files):
        if store.missing(files):
            pytest.skip(
                f"{files.title} is not in the data folder; set {store.VARIABLE} to where it is."
            )

    return skip_without
