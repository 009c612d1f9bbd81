"""The summary of runs on simulated groups."""

from leaflearn.benchmark.groups.summary import describe, make_tables, render_markdown, summarize

DEGREE, KIND = "degree/slopes/linear/values", "kind/offset/4/values"


def test_failed_fits_count_as_wrong(make_record):
    failed = {"scenario": DEGREE, "method": "leaflearn", "seed": 1, "outcome": "failed"}
    (line,) = summarize([make_record(DEGREE), failed | {"seconds": 1.0}])
    assert (line.n_runs, line.n_failed, line.number_right, line.ari) == (2, 1, 0.5, 0.5)


def test_a_fit_with_one_context_is_not_sure_of_anything(make_record):
    one, two = make_record(KIND, 1, 2, ari=0.0), make_record(KIND, 2, 2, seed=1, ari=0.8)
    (line,) = summarize([one, two])
    assert (line.n_groups, line.sure_wrong, line.number_right) == (10, 0.1, 0.5)
    assert summarize([one])[0].sure_wrong is None


def test_the_bar_is_in_the_sentence(make_record):
    runs = [make_record(DEGREE, n_found=1 + (seed == 0), seed=seed) for seed in range(4)]
    assert describe(runs) == [
        "leaflearn: one context in 3 of 4 data sets whose groups differ by degree (75 %; bar 95 %)."
    ]
    failed = {"scenario": DEGREE, "method": "leaflearn", "seed": 9, "outcome": "failed"}
    assert describe([*runs, failed | {"seconds": 1.0}])[0].endswith("(60 %; bar 95 %; 1 failed).")


def test_tables_have_totals_coverage_and_cost(make_record):
    cost = {"scenario": "cost/6000-rows", "method": "leaflearn", "seed": 0, "outcome": "ok"}
    tables = make_tables([make_record(DEGREE), make_record(KIND, 2, 2), cost | {"seconds": 3.14}])
    assert list(tables) == [
        "Degree: one context found",
        "Kind: contexts found",
        "Coverage of intervals",
        "Reliability of stated probabilities",
        "Cost",
    ]
    assert tables["Degree: one context found"][-1] == ("values", "1 of 1 (100 %)")
    assert tables["Coverage of intervals"][1:] == [
        ("degree, light tails", "leaflearn", "90.0 % of 100", "90.0 % of 50"),
        ("kind", "leaflearn", "90.0 % of 100", "90.0 % of 50"),
    ]
    assert tables["Reliability of stated probabilities"][1] == ("leaflearn", "2", "0.600", "0.500")
    assert tables["Cost"][1] == ("cost/6000-rows", "3.14")


def test_the_page_shows_the_figure_only_if_something_was_scored(make_record):
    assert "![" in render_markdown([make_record(DEGREE)])
    assert "![" not in render_markdown([])
