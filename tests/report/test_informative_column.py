"""Sentences name the column in which the contexts differ most, or say that there is none."""

import re
import warnings
from types import SimpleNamespace

import numpy as np
import pandas
import pytest

from leaflearn.report.column_curves import ColumnCurve
from leaflearn.report.informative_column import (
    describe_difference,
    describe_difference_without_table,
)
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


def describe(table, effect, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = TableModel("effect", "site", contexts=2, local_model="linear", **options).fit(
            table.assign(effect=effect)
        )
    return describe_difference_without_table(model, repr)


def test_the_column_is_named_with_the_shape_of_the_curves():
    table, sign, noise = make_rows()
    where, how = describe(table, sign * (table.dose - 5) + 0.02 * table.age + noise)
    assert where == (
        "The contexts differ most in 'dose': 'effect' rises along it in context 0 and falls "
        "in context 1."
    )
    assert how.startswith("They are furthest apart where 'dose' is ")
    assert how.endswith(", they nearly agree.")
    agree = float(how.split("where it is ")[1].split(",")[0])
    assert agree == pytest.approx(5, abs=0.5)  # the lines cross at 5


def test_a_category_is_named_with_its_value():
    table, sign, noise = make_rows()
    where, how = describe(
        table,
        3 * sign * (table.ward == "south") + 0.3 * table.dose + noise,
        features=["ward", "dose"],
    )
    assert where == "The contexts differ most in 'ward'."
    assert how.startswith(
        "They are furthest apart where 'ward' is 'south': there 'effect' is on average 4."
    )
    assert how.endswith("in context 1; where it is anything else, they nearly agree.")


def test_a_constant_offset_is_reported_without_a_column():
    table, sign, noise = make_rows()
    sentences = describe(table, 3 * sign + table.dose + noise)
    assert (
        sentences[0]
        == "The contexts differ by about the same amount everywhere, regardless of the columns."
    )
    assert sentences[1].startswith("On average 'effect' is 8.")
    assert " in context 0 and 2." in sentences[1]


def test_equally_informative_columns_are_all_named():
    table, sign, noise = make_rows()
    where, _ = describe(table, sign * ((table.dose - 5) / 10 + (table.age - 50) / 60) + noise)
    assert where.startswith("The contexts differ in more than one column, about equally in '")
    assert {"dose", "age"} == set(where.split("'")[1::2])


def test_contexts_that_differ_only_in_an_interaction():
    """Both predict the product of two columns, with opposite signs."""
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
    assert describe_difference(model, [flat], X, repr) == [
        "The contexts do not differ in a single column, but in how columns act together, or in "
        "free "
        "text."
    ]
    model.preparation_.columns = columns[:1]
    assert describe_difference(model, [flat], X, repr)[0].endswith("in how columns act together.")


def test_labels_are_described_by_their_probability():
    model, _ = fit_label()
    where, how = describe_difference_without_table(model, str)
    assert where.startswith(
        "The contexts differ most in <script>alert(1)</script>: the probability of <u>yes</u> "
        "rises along it in context 0"
    )
    assert re.search(
        r"there the probability of <u>yes</u> is on average .*\u00a0% in context 0 and .*\u00a0% "
        r"in context 1",
        how,
    )


def test_one_context_and_a_model_without_stored_rows_have_no_sentences():
    model, _ = fit_quantity(tame=True)
    bare = SimpleNamespace(**vars(model))
    bare.estimator_ = SimpleNamespace(usage_=np.array([0.5, 0.5]), replay_buffer_=None)
    assert describe_difference_without_table(bare, repr) == []
    bare.estimator_ = SimpleNamespace(
        usage_=np.ones(1), replay_buffer_=model.estimator_.replay_buffer_
    )
    assert describe_difference_without_table(bare, repr) == []


def test_of_many_contexts_the_lowest_and_the_highest_mean_are_given():
    answers = np.array([[0.0, 0.0, 0.0, 0.0], [2.0, -1.0, 0.5, 4.0]])
    curve = ColumnCurve("dose", "number", [0.0, 1.0], np.full(2, 0.5), answers, -1, 1.0)
    estimator = SimpleNamespace(usage_=np.full(4, 0.25), predict_each=lambda X: X @ answers[1:])
    model = SimpleNamespace(
        estimator_=estimator, target="effect", target_=SimpleNamespace(is_label=False)
    )
    assert describe_difference(model, [curve], np.linspace(-1, 1, 50)[:, None], repr) == [
        "The contexts differ most in 'dose'.",
        "They are furthest apart where 'dose' is 1.00: there 'effect' is on average -1.00 in "
        "context 1 and 4.00 in context 3; "
        "where it is 0.00, they nearly agree.",
    ]
