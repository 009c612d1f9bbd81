"""Spies that start with a clean log."""

import pytest

from linear_groups import Spy


@pytest.fixture
def spied():
    """The log of what spies did."""
    Spy.log = []
    return Spy.log
