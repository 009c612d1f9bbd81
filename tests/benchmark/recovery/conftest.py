"""Records and quick fits for the tests of the recovery suite."""

from dataclasses import replace

import pytest

from leaflearn.benchmark.recovery.run import RULES
from leaflearn.benchmark.recovery.tasks import TASKS

QUICK = {"max_epochs": 1, "n_init": 1, "init": "random"}


@pytest.fixture
def make_record():
    """Makes a record of a run; arguments replace its fields."""
    return _make_record


@pytest.fixture(autouse=True)
def quick_fits(monkeypatch):
    """A task of ten groups, and rules that train for one epoch."""
    monkeypatch.setitem(
        TASKS, "tiny", replace(TASKS["functions"], name="tiny", n_groups=10, n_contexts=4)
    )
    for rule, settings in list(RULES.items()):
        monkeypatch.setitem(RULES, rule, settings | QUICK)


def _make_record(
    task="functions",
    rule="default",
    seed=0,
    recovered=True,
    errors=(0.1, 0.1),
    seconds=1.0,
    converged=True,
    warnings=0,
    **more,
):
    record = {"task": task, "rule": rule, "seed": seed, "recovered": recovered}
    record |= {"errors": list(errors), "seconds": seconds}
    return record | {"converged": converged, "warnings": warnings, **more}
