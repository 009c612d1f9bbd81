"""The first screen names the column in which the contexts differ most, says how, and says so where it is not one column."""

import re
import warnings
from types import SimpleNamespace

import numpy as np
import pandas
import pytest
from leaflearn.report.telling_column import tell_difference, tell_difference_from_memory

from leaflearn.report.column_curves import ColumnCurve
from leaflearn.tabular.table_model import TableModel
from report_models import fit_label, fit_quantity


def make_rows(seed=0):
    rng = np.random.default_rng(seed)
    site = np.repeat(np.arange(15), 10)
    table = pandas.DataFrame(
        {"site": site, "dose": rng.uniform(0, 10, 150), "age": rng.uniform(20, 80, 150)}
    )
    return (
        table.assign(ward=rng.choice(["north", "south"], 150)),
        np.where(site % 3 == 0, -1.0, 1.0),
        rng.normal(0, 0.05, 150),
    )


def tell(table, effect, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = TableModel("effect", "site", contexts=2, local_model="linear", **options).fit(
            table.assign(effect=effect)
        )
    return tell_difference_from_memory(model, repr)


def test_the_column_is_named_with_what_the_contexts_do_along_it():
    table, sign, noise = make_rows()
    where, how = tell(table, sign * (table.dose - 5) + 0.02 * table.age + noise)
    assert (
        where
        == "The contexts differ most in 'dose': 'effect' rises along it in context 0 and falls in context 1."
    )
    assert how.startswith("They are furthest apart where 'dose' is ")
    assert how.endswith(", they nearly agree.")
    agree = float(how.split("where it is ")[1].split(",")[0])
    assert agree == pytest.approx(5, abs=0.5)  # the lines cross at 5


def test_a_category_is_named_with_its_value():
    table, sign, noise = make_rows()
    where, how = tell(
        table,
        3 * sign * (table.ward == "south") + 0.3 * table.dose + noise,
        features=["ward", "dose"],
    )
    assert where == "The contexts differ most in 'ward'."
    assert how.startswith(
        "They are furthest apart where 'ward' is 'south': there 'effect' is on average 4."
    )
    assert how.endswith("in context 1; where it is anything else, they nearly agree.")


def test_a_constant_difference_is_no_column():
    table, sign, noise = make_rows()
    told = tell(table, 3 * sign + table.dose + noise)
    assert (
        told[0]
        == "The contexts differ by about the same amount everywhere, whatever the columns hold."
    )
    assert told[1].startswith("On average 'effect' is 8.")
    assert " in context 0 and 2." in told[1]


def test_columns_that_part_the_contexts_alike_are_all_named():
    table, sign, noise = make_rows()
    where, _ = tell(table, sign * ((table.dose - 5) / 10 + (table.age - 50) / 60) + noise)
    assert where.startswith("The contexts differ in more than one column, about as much in '")
    assert {"dose", "age"} == set(where.split("'")[1::2])


def test_contexts_that_differ_only_in_how_columns_act_together():
    """Each answers the product of two columns, with another sign."""
    estimator = SimpleNamespace(
        usage_=np.array([0.6, 0.4]), predict_each=lambda X: np.outer(X[:, 0] * X[:, 1], [1.0, -1.0])
    )
    flat = ColumnCurve("dose", "number", [-1.0, 1.0], np.full(2, 0.5), np.zeros((2, 2)), -1, 0.01)
    columns = [SimpleNamespace(kind="number"), SimpleNamespace(kind="text")]
    model = SimpleNamespace(
        estimator_=estimator,
        target_=SimpleNamespace(is_label=False),
        preparation_=SimpleNamespace(columns=columns),
    )
    X = np.random.default_rng(0).choice([-1.0, 1.0], (400, 2))
    assert tell_difference(model, [flat], X, repr) == [
        "The contexts do not differ in one column, but in how columns act together, or in free text."
    ]
    model.preparation_.columns = columns[:1]
    assert tell_difference(model, [flat], X, repr)[0].endswith("in how columns act together.")


def test_labels_are_told_by_their_chance():
    model, _ = fit_label()
    where, how = tell_difference_from_memory(model, str)
    assert where.startswith(
        "The contexts differ most in <script>alert(1)</script>: the chance of <u>yes</u> rises along it in context 0"
    )
    assert re.search(
        r"there the chance of <u>yes</u> is on average .*\u00a0% in context 0 and .*\u00a0% in context 1",
        how,
    )


def test_one_context_differs_from_nobody_and_one_that_forgot_its_rows_says_nothing():
    model, _ = fit_quantity(tame=True)
    forgetful = SimpleNamespace(**vars(model))
    forgetful.estimator_ = SimpleNamespace(usage_=np.array([0.5, 0.5]), replay_buffer_=None)
    assert tell_difference_from_memory(forgetful, repr) == []
    forgetful.estimator_ = SimpleNamespace(
        usage_=np.ones(1), replay_buffer_=model.estimator_.replay_buffer_
    )
    assert tell_difference_from_memory(forgetful, repr) == []


def test_of_many_contexts_the_lowest_and_the_highest_answer_are_given():
    answers = np.array([[0.0, 0.0, 0.0, 0.0], [2.0, -1.0, 0.5, 4.0]])
    curve = ColumnCurve("dose", "number", [0.0, 1.0], np.full(2, 0.5), answers, -1, 1.0)
    estimator = SimpleNamespace(usage_=np.full(4, 0.25), predict_each=lambda X: X @ answers[1:])
    model = SimpleNamespace(
        estimator_=estimator, target="effect", target_=SimpleNamespace(is_label=False)
    )
    assert tell_difference(model, [curve], np.linspace(-1, 1, 50)[:, None], repr) == [
        "The contexts differ most in 'dose'.",
        "They are furthest apart where 'dose' is 1.00: there 'effect' is on average -1.00 in context 1 and 4.00 in context 3; "
        "where it is 0.00, they nearly agree.",
    ]
