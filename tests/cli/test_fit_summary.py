"""The summary says what a person can act on."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from leaflearn.cli.fit_summary import describe, tell
from leaflearn.tabular.column_kinds import NOT_INFORMATIVE, Column
from leaflearn.tabular.held_out import HeldOutErrors
from leaflearn.tabular.preparation import Preparation
from leaflearn.tabular.targets import Target

LABEL = Target("rating", "classification", True, "it holds 5 different whole numbers")


@pytest.fixture
def model():
    """A model that was never fitted, with what a summary asks of it."""
    estimator = SimpleNamespace(
        groups_=np.array(["A 10", "A 2", "B"]), contexts_=np.array([0, 0, 1]), usage_=np.array([2 / 3, 1 / 3]), n_contexts_=2,
        probabilities_=np.array([[0.99, 0.01], [1.0, 0.0], [0.4, 0.6]]), converged_=True, stability_=1.0, classes_=np.array([1, 2]),
        selection_={}, replay_buffer_=None,
    )  # fmt: skip
    columns = (
        Column("price", "number"),
        Column("colour", "nothing", NOT_INFORMATIVE),
        Column("id", "nothing", "a different text in every row"),
    )
    return SimpleNamespace(
        estimator_=estimator, preparation_=Preparation(columns, {"text": []}, np.array([0])), target="rating", target_=LABEL, group="who",
        n_rows_=1200, local_model_="mlp", group_sizes_=np.array([500, 400, 300]), errors_=HeldOutErrors("error rate", 0.5, 0.125, 240),
        contexts="auto",
    )  # fmt: skip


def test_all_that_was_found(model):
    assert tell(model).splitlines() == [
        "1,200 rows, 3 groups by 'who'. The target 'rating' is taken for a label (it holds 5 different whole numbers).",
        "Learnt from 'price'. Left out, since they tell nothing of the target: 'colour'.",
        "",
        "2 contexts were found.",
        "",
        "           groups  rows    sure  which",
        "context 0       2   900  2 of 2  A 2, A 10",
        "context 1       1   300  0 of 1  B",
        "",
        "Less than 90 % sure: B (60 %). A few more labelled rows of these would settle them.",
        "Wrong answers on 240 rows held out inside the groups: one model for all 50 %, the contexts 12 %.",
        "With the contexts the error is 75 % smaller than that of a pooled model.",
        "The model was saved by a version without intervals; fit it again to get them.",
    ]


def test_errors_with_their_intervals(model):
    model.errors_ = HeldOutErrors("RMSE", 1.5, 0.75, 240, 30, (1.2, 1.9), (0.6, 0.9), (0.4, 0.6))
    lines = tell(model).splitlines()
    assert lines[-3:-1] == [
        "Typical error on 240 rows held out inside the groups (root of the mean square): one model for all 1.5 (95 % interval: 1.2 to 1.9)"
        ", the contexts 0.75 (95 % interval: 0.6 to 0.9).",
        "With the contexts the error is 50 % smaller than that of a pooled model (95 % interval: 40 % to 60 %).",
    ]
    assert lines[-1].startswith(
        "A 95 % interval is where the error would lie on many more groups like these;"
    )
    model.estimator_.n_contexts_ = 1
    assert (
        tell(model)
        .splitlines()[-2]
        .endswith(" (root of the mean square): one model for all 1.5 (95 % interval: 1.2 to 1.9).")
    )


def test_contexts_that_stay_empty_were_not_found(model):
    model.estimator_.contexts_, model.estimator_.usage_ = (
        np.zeros(3, dtype=int),
        np.array([1.0, 0.0]),
    )
    assert (
        "2 contexts were asked for, but only 1 has groups; try another --seed, or fewer contexts.\n"
        in tell(model)
    )


def test_one_context(model):
    model.estimator_.n_contexts_, model.errors_ = (
        1,
        replace(model.errors_, metric="RMSE", one_model=1.5),
    )
    told = tell(model)
    assert (
        "One context: the groups do not clearly contradict each other, and one model answers for all.\n\n"
        in told
    )
    assert (
        "\nTypical error on 240 rows held out inside the groups (root of the mean square): one model for all 1.5.\n"
        in told
    )
    assert "smaller" not in told


def test_one_context_that_was_asked_for_is_no_finding(model):
    model.estimator_.n_contexts_, model.contexts = 1, 1
    assert "One context, as you asked for: one model answers for all.\n\n" in tell(model)


@pytest.mark.parametrize(
    ("errors", "hint"),
    [
        ([0.81, 0.27, 0.26], "But 2 contexts leave 33 % of its error on held-out rows, though too few groups gain to be sure; "
                             "look at them with --contexts 2."),
        ([0.42, 0.41, 0.21], "But 3 contexts leave 50 % of its error on held-out rows, though too few groups gain to be sure; "
                             "look at them with --contexts 3."),
        ([0.53, 0.50, 0.44], ""),
        ([0.53], ""),
        ([np.nan, np.nan], ""),
    ],
)  # fmt: skip
def test_one_context_that_a_second_look_may_part(model, errors, hint):
    model.estimator_.n_contexts_ = 1
    model.estimator_.selection_ = {
        "n_contexts": np.arange(1, len(errors) + 1),
        "held_out": np.array(errors),
    }
    lines = tell(model).splitlines()
    assert lines[4] == hint
    assert sum(line.startswith("But ") for line in lines) == bool(hint)


def test_rows_without_groups_are_counted_and_not_named(model):
    model.group = None
    told = tell(model)
    assert "1,200 rows, every row a group of its own." in told
    assert "A 10" not in told


def test_many_groups_are_not_all_named(model):
    model.estimator_.groups_ = np.array([f"group {i}" for i in range(1000)])
    model.estimator_.contexts_ = np.arange(1000) % 2
    model.estimator_.probabilities_, model.group_sizes_ = (
        np.full((1000, 2), 0.5),
        np.ones(1000, dtype=int),
    )
    told = tell(model)
    assert (
        "group 0, group 2, group 4, group 6, group 8, group 10 and 494 more\n" in told
    )  # as many as a line of 60 characters holds
    assert len(told) < 1500


def test_as_many_groups_are_named_as_a_line_holds(model):
    model.estimator_.groups_ = np.array(
        [*"ABCDEFGHIJKLMNOPQRST", "a long name of a group that is cut " * 9]
    )
    model.estimator_.contexts_ = np.array([0] * 20 + [1])
    model.estimator_.probabilities_, model.group_sizes_ = (
        np.full((21, 2), 1.0),
        np.ones(21, dtype=int),
    )
    rows = [line for line in tell(model).splitlines() if line.startswith("context")]
    assert rows[0].endswith("20 of 20  A, B, C, D, E, F, G, H, I, J, K, L, M, N, O, P, Q, R, S, T")
    assert rows[1].endswith("1 of 1  a long name of a group that...")


def test_for_programs(model):
    found = describe(model)
    assert found["contexts"][1] == {
        "context": 1, "share_of_groups": 1 / 3, "rows": 300, "groups": [{"group": "B", "rows": 300, "probability": 0.6}],
    }  # fmt: skip
    assert found["held_out"] == {
        "metric": "error rate", "one_model": 0.5, "one_model_interval": None, "contexts": 0.125, "contexts_interval": None,
        "contexts_to_one_model_interval": None, "rows": 240, "groups": 0, "by_context": [],
    }  # fmt: skip
    assert (found["columns"], found["labels"]) == (["price"], [1, 2])
