"""The summary of runs on altered tables, against the bars."""

import pytest

from leaflearn.benchmark.altered.summary import describe, make_table, render_markdown, summarize


def make(method, seed=0, ari=1.0, n_found=2, task="bdf-unit"):
    score = {"n_found": n_found, "n_true": 2, "ari": ari, "n_groups": 10, "n_sure_wrong": 1}
    score["bins"] = [[10, 9.0, 8]]
    return {"task": task, "method": method, "seed": seed, "outcome": "ok", "contexts": score}


def test_only_what_the_oracle_solves_counts():
    records = [make("oracle", 0, 1.0), make("oracle", 1, 0.5)]
    records += [make("leaflearn", 0, 0.92), make("leaflearn", 1, 0.1, n_found=1)]
    (line,) = summarize(records)
    assert (line.oracle, line.n_solvable, line.n_good, line.n_number_right) == (0.75, 1, 1, 1)
    assert line.aris == (0.92, 0.1)
    assert line.sure_wrong == pytest.approx(0.1)  # of the data set with several contexts
    assert describe([line]) == [
        "leaflearn: where the oracle reaches 0.95, an ARI of 0.9 in 1 of 1 data sets (100 %), and "
        "the right number of contexts in 1 (100 %; bar 80 %)."
    ]


def test_a_failed_fit_counts_as_wrong():
    failed = {"task": "bdf-unit", "method": "leaflearn", "seed": 0, "outcome": "failed"}
    (line,) = summarize([make("oracle"), failed])
    assert (line.n_solvable, line.n_good, line.n_failed, line.aris) == (1, 0, 1, (0.0,))
    assert make_table([line])[1] == ("bdf-unit", "1.00", "leaflearn", "", "0.00", "", "1")


def test_without_a_solvable_task_the_sentence_says_so():
    lines = summarize([make("oracle", ari=0.2), make("leaflearn")])
    assert describe(lines) == ["leaflearn: the oracle reaches 0.95 in no data set."]


def test_the_page_has_the_reliability_of_every_method():
    page = render_markdown([make("oracle"), make("leaflearn")])
    assert "| leaflearn | 10 | 0.900 | 0.800 |" in page
    assert "| oracle | 10 | 0.900 | 0.800 |" in page
