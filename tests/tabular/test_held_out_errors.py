"""Errors on held-out rows: the parts make the whole, and they come back from JSON, also from before there were intervals."""

import json
from dataclasses import asdict

import numpy as np
import pytest

from leaflearn.tabular.held_out import HeldOutErrors, measure_errors, read_errors


@pytest.fixture(params=[True, False])
def errors(request):
    rng = np.random.default_rng(0)
    group = rng.integers(0, 15, 200)
    one, each = (rng.integers(0, 2, 200) * weight for weight in (1.0, rng.integers(0, 2, 200)))
    return measure_errors(one, each, group, group % 3, is_rate=request.param), one, each


def test_the_contexts_make_the_whole(errors):
    found, one, each = errors
    power = 1 if found.is_rate else 2
    rows = np.array([part.n_rows for part in found.by_context])
    assert ([part.context for part in found.by_context], rows.sum(), found.n_rows) == (
        [0, 1, 2],
        200,
        200,
    )
    assert sum(part.n_groups for part in found.by_context) == found.n_groups == 15
    assert found.one_model**power == pytest.approx(one.mean())
    assert found.contexts**power == pytest.approx(each.mean())
    assert (rows * [part.own**power for part in found.by_context]).sum() / 200 == pytest.approx(
        each.mean()
    )
    assert (
        rows * [part.one_model**power for part in found.by_context]
    ).sum() / 200 == pytest.approx(one.mean())


def test_the_whole_is_surer_than_its_parts(errors):
    found, *_ = errors
    assert found.contexts_interval[0] < found.contexts < found.contexts_interval[1]
    assert all(
        np.ptp(part.own_interval) > np.ptp(found.contexts_interval) for part in found.by_context
    )
    assert found.ratio_interval[0] < found.contexts / found.one_model < found.ratio_interval[1]


def test_a_context_of_few_groups_has_an_error_and_no_interval():
    group = np.repeat(np.arange(9), 4)
    found = measure_errors(np.ones(36), np.zeros(36), group, (group > 6).astype(int), is_rate=True)
    assert [part.own_interval is None for part in found.by_context] == [False, True]
    assert found.by_context[1].own == 0.0


def test_they_come_back_from_json(errors):
    found, *_ = errors
    assert read_errors(json.loads(json.dumps(asdict(found)))) == found
    assert read_errors(None) is None


def test_those_from_before_there_were_intervals_have_none():
    old = {"metric": "error rate", "one_model": 0.5, "contexts": 0.1, "n_rows": 200}
    assert read_errors(old) == HeldOutErrors("error rate", 0.5, 0.1, 200)


@pytest.mark.parametrize(
    "strange",
    [
        {"one_model": "half"},
        {"n_rows": None},
        {"contexts_interval": [0.1]},
        {"contexts_interval": [0.1, "a"]},
        {"contexts_interval": 7},
        {"by_context": 7},
        {"by_context": [{"context": "a"}]},
        {"more": 1},
    ],
)
def test_what_are_no_errors_is_refused(strange):
    kept = {"metric": "error rate", "one_model": 0.5, "contexts": 0.1, "n_rows": 200, **strange}
    with pytest.raises(
        (TypeError, IndexError, AttributeError)
    ):  # which the folder's owner turns into one sentence
        read_errors(kept)
