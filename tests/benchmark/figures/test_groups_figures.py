"""Figures of contexts whose truth is known."""

from leaflearn.benchmark.altered.summary import TaskSummary
from leaflearn.benchmark.figures.groups_figures import draw_altered, draw_groups


def make(scenario, n_found, n_true, method="leaflearn"):
    score = {"n_found": n_found, "n_true": n_true, "ari": 0.8, "n_groups": 10}
    score |= {"n_sure_wrong": 0, "bins": [[10, 9.0, 8]]}
    return {
        "scenario": scenario,
        "method": method,
        "seed": 0,
        "outcome": "ok",
        "contexts": score,
        "best_ari": 0.9,
        "seconds": 1.0,
    }


def test_degree_is_at_zero_and_kind_at_its_distance():
    records = [
        make("degree/slopes/linear/values", 1, 1),
        make("kind/offset/4/values", 2, 2),
        make("kind/slope/4/values", 1, 2),
    ]
    cost = {"scenario": "cost/6000-rows", "method": "leaflearn", "seed": 0, "outcome": "ok"}
    figure = draw_groups([*records, cost | {"seconds": 1.0}])
    rates, agreement, reliability = figure.axes
    kind, degree = rates.lines[:2]
    assert (list(kind.get_xdata()), list(kind.get_ydata())) == ([4], [0.5])
    assert (list(degree.get_xdata()), list(degree.get_ydata())) == ([0], [1.0])
    assert list(agreement.lines[0].get_xdata()) == [4]
    assert list(reliability.lines[1].get_ydata()) == [0.8]


def test_every_method_and_the_oracle_have_a_mark():
    lines = [
        TaskSummary("bdf-unit", name, 1.0, (2,), 2, (0.97,), 1, 1, 1, 0.0, 0)
        for name in ("leaflearn", "leaflearn smooth")
    ]
    figure = draw_altered(lines)
    names = [text.get_text() for text in figure.legends[0].get_texts()]
    assert names == ["leaflearn", "leaflearn smooth", "oracle"]
