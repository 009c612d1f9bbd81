"""Skip examples in docstrings that read a publisher's files where the files are missing."""

import pytest
from _pytest.doctest import DoctestItem

from leaflearn.benchmark.datasets import store


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Look for the `Files` that the module of a docstring names, before its example runs."""
    if not isinstance(item, DoctestItem) or item.dtest is None:
        return
    for files in item.dtest.globs.values():
        if isinstance(files, store.Files) and store.missing(files):
            pytest.skip(
                f"{files.title} is not in the data folder; set LEAFLEARN_DATA to where it is."
            )
