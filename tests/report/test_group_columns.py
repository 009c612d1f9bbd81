"""Columns that are constant within groups are cross-tabulated and tested, not drawn as curves."""

import numpy as np
import pandas
import pytest

from leaflearn.report.column_curves import find_curves
from leaflearn.report.group_columns import (
    find_associations,
    find_constant_columns,
    find_group_columns,
)
from leaflearn.report.model_report import render_report
from leaflearn.report.origin import Origin
from leaflearn.report.training_rows import find_labelled_rows, read_training_rows
from leaflearn.tabular.table_model import TableModel


@pytest.fixture(scope="module")
def sites():
    """60 sites in two contexts; region goes with the context, staff with the offset."""
    rng = np.random.default_rng(1)
    m, n = 60, 15
    site, dose, age = np.repeat(np.arange(m), n), rng.normal(size=m * n), rng.normal(size=m * n)
    is_reversed = np.arange(m) % 3 == 0
    offset = rng.normal(0, 0.5, m)
    region = np.where(is_reversed ^ (rng.random(m) < 0.1), "north", "south")
    staff = 20 + 5 * offset + rng.normal(0, 1, m)
    effect = np.where(is_reversed, -1.5, 1.5)[site] * dose + offset[site] + age
    table = pandas.DataFrame({"site": [f"site {s}" for s in site], "dose": dose, "age": age})
    table["region"], table["staff"] = region[site], staff[site]
    table["roof"] = rng.choice(["red", "blue"], m)[site]
    table["effect"] = effect + rng.normal(0, 0.5, m * n)
    options = {"local_model": "linear", "features": ["dose", "age", "roof"]}
    model = TableModel("effect", "site", contexts=2, **options).fit(table)
    return model, table


def test_only_real_associations_are_significant(sites):
    model, table = sites
    rows = read_training_rows(model, table)
    columns = find_group_columns(model, rows)
    assert [column.name for column in columns] == ["region", "staff", "roof"]
    clear = {
        (found.column.name, found.subject)
        for found in find_associations(model, columns, rows.X)
        if found.is_significant
    }
    assert clear == {("region", "contexts"), ("staff", "offset")}


def test_constant_columns_have_no_curves_and_differences_within_noise_are_called_so(sites):
    model, table = sites
    rows = read_training_rows(model, table)
    labelled = find_labelled_rows(model, rows)
    left_out = find_constant_columns(model, labelled.X, labelled.group)
    assert left_out == {"roof"}
    curves = find_curves(model, rows.X, rows.frame, labelled, left_out)
    assert [(curve.column, curve.is_clear) for curve in curves] == [("dose", True), ("age", False)]


def test_the_page_has_the_cross_table_the_map_and_no_curve_of_the_constant_column(sites):
    model, table = sites
    page = render_report(model, table, Origin())
    assert "Groups by <bdi>region</bdi> and context" in page
    assert "<h3>Map of the groups</h3>" in page
    assert "are of kind (2 contexts) and" in page
    assert "along <bdi>roof</bdi>" not in page
    assert "along <bdi>age</bdi></h3>" not in page
    assert "along <bdi>dose</bdi></h3>" in page


def test_a_page_without_the_table_has_the_map_too(sites):
    model, _ = sites
    page = render_report(model, None, Origin())
    assert "<h3>Map of the groups</h3>" in page
    assert "What groups have in common" not in page
