"""What counts as success, and the table of the recovery suite."""

import numpy as np
import pytest
from scipy.stats import binomtest

from leaflearn.benchmark.recovery.summary import HEAD, render_markdown, summarize


def rate_of(*records):
    (line,) = (line for line in summarize(records) if line.rule == "default")
    return line.successes


@pytest.mark.parametrize(
    ("errors", "oracle_errors", "oracle_recovered", "successes"),
    [
        ((0.30, 0.06), (0.20, 0.04), False, 1),  # exactly 1.5 times in both
        ((0.31, 0.06), (0.20, 0.04), False, 0),  # more in the worst domain
        ((0.20, 0.07), (0.20, 0.04), False, 0),  # more in a domain that is far below the threshold
        ((0.15, 0.04), (0.14, 0.04), True, 0),  # the oracle succeeds on these data
    ],
)
def test_if_the_oracle_fails_too_its_error_is_the_reference(
    errors, oracle_errors, oracle_recovered, successes, make_record
):
    run, oracle = (
        make_record(recovered=False, errors=errors),
        make_record(rule="oracle", recovered=oracle_recovered, errors=oracle_errors),
    )
    assert rate_of(run, oracle) == successes


def test_only_the_oracle_of_the_same_task_and_seed_counts(make_record):
    run = make_record(recovered=False, errors=(0.2, 0.2))
    oracle = make_record(rule="oracle", recovered=False, errors=(0.2, 0.2))
    assert rate_of(run, oracle) == 1
    assert (
        rate_of(run)
        == rate_of(run, oracle | {"seed": 1})
        == rate_of(run, oracle | {"task": "rare"})
        == 0
    )
    assert rate_of(run | {"recovered": True, "errors": [9.0, 9.0]}, oracle) == 1


@pytest.mark.parametrize(("successes", "runs"), [(0, 1), (0, 20), (7, 20), (20, 20), (99, 100)])
def test_the_interval_is_wilsons(successes, runs, make_record):
    (line,) = summarize(
        [make_record(seed=seed, recovered=seed < successes) for seed in range(runs)]
    )
    interval = binomtest(successes, runs).proportion_ci(method="wilson")
    assert (line.low, line.high) == pytest.approx((interval.low, interval.high))
    z, rate = 1.959964, successes / runs
    center, half = (
        rate + z**2 / (2 * runs),
        z * np.sqrt(rate * (1 - rate) / runs + z**2 / (4 * runs**2)),
    )
    assert (line.low, line.high) == pytest.approx(
        ((center - half) / (1 + z**2 / runs), (center + half) / (1 + z**2 / runs)), abs=1e-6
    )


def test_errors_costs_and_flags(make_record):
    default = [
        make_record(seed=0, errors=(0.1, 0.2), seconds=6.0, n_contexts_found=2),
        make_record(seed=1, errors=(0.4, 0.1), seconds=8.0, warnings=1, n_contexts_found=3),
        make_record(seed=2, errors=(0.6, 0.1), recovered=False, converged=False),
        make_record(seed=3, errors=(0.8, 0.1), recovered=False),
    ]
    hard = [make_record(rule="hard", seed=seed, seconds=2.0) for seed in (0, 5)]
    oracle = make_record(rule="oracle", seed=2, errors=(0.3, 0.2))
    line, *others = summarize([*default, *hard, oracle])
    # The oracle ran on the hardest seed only, so it has no line.
    assert [other.rule for other in others] == ["hard"]
    assert line.worst_error == pytest.approx(0.5)
    assert (line.oracle_ratio, line.oracle_runs) == (pytest.approx(2.0), 1)
    assert line.cost == pytest.approx(4.0 / 2.0)
    assert (line.successes, line.successes_flagged, line.failures_flagged) == (2, 1, 1)
    assert line.counted_right == 0.5


def test_an_oracle_that_ran_on_all_seeds_has_a_line_with_the_plain_threshold(make_record):
    oracles = [make_record(rule="oracle", seed=seed, recovered=False) for seed in range(2)]
    lines = summarize([make_record(seed=0), make_record(seed=1), *oracles])
    assert [(line.rule, line.successes) for line in lines] == [("default", 2), ("oracle", 0)]


def test_lines_follow_the_order_of_the_suite_with_other_names_last(make_record):
    records = [
        make_record(task, rule)
        for task in ("zebra", "rare", "functions")
        for rule in ("mine", "hard", "default")
    ]
    lines = [(line.task, line.rule) for line in summarize(records)]
    assert lines == [
        (task, rule)
        for task in ("functions", "rare", "zebra")
        for rule in ("default", "hard", "mine")
    ]


def test_markdown_has_a_row_for_each_line_and_a_cell_for_each_column(make_record):
    page = render_markdown(summarize([make_record(), make_record(rule="hard", recovered=False)]))
    rows = [
        [cell.strip() for cell in line.strip("|").split("|")]
        for line in page.splitlines()
        if line.startswith("|")
    ]
    assert [len(row) for row in rows] == [len(HEAD)] * 4
    assert rows[2][:5] == ["functions", "default", "1 of 1", "21 to 100 %", "98 %"]
    assert rows[3][:5] == ["functions", "hard", "0 of 1", "0 to 79 %", ""]
