"""A curve is the mean prediction of a context when a value is put into a column."""

import numpy as np
import pytest

from leaflearn.report.column_curves import (
    MISSING,
    OTHER,
    ColumnCurve,
    _category_values,
    find_curves,
    find_drawn,
    measure_difference,
)
from leaflearn.report.formatting import show_day
from report_models import KINDS, fit_label, fit_quantity


@pytest.fixture(scope="module")
def quantity():
    return fit_quantity(tame=True)


def test_curves_agree_with_predictions_on_changed_rows(quantity):
    model, table = quantity
    rows = table.dropna()
    curves = {curve.column: curve for curve in find_curves(model, model.features_of(rows), rows)}
    assert {curve.kind for curve in curves.values()} == {"number", "date", "category"}
    for column, curve in curves.items():
        for value, means in zip(curve.values, curve.means, strict=True):
            cell = show_day(value) if curve.kind == "date" else value
            each = model.predict(rows.assign(**{column: cell}), each=True).mean().to_numpy()
            tolerance = 0.02 if curve.kind == "date" else 1e-6  # a date is rounded to a day
            assert means == pytest.approx(each, abs=tolerance)


def test_values_are_in_the_unit_of_the_column(quantity):
    model, table = quantity
    curve = next(c for c in find_curves(model, model.features_of(table)) if c.column == "dose")
    dose = table["dose"].fillna(table["dose"].median())
    assert min(curve.values) == pytest.approx(dose.quantile(0.02))
    assert max(curve.values) == pytest.approx(dose.quantile(0.98))


def test_the_most_informative_column_comes_first(quantity):
    model, table = quantity
    curves = find_curves(model, model.features_of(table))
    assert curves[0].column == "dose"
    assert curves[0].difference > 3 * curves[1].difference


def test_a_value_without_a_feature_is_named_if_the_table_is_given(quantity):
    model, table = quantity
    shorter = np.flatnonzero(
        [name != f"kind = {KINDS[2]}" for name in model.preparation_.feature_names]
    )
    kept = model.preparation_.kept
    try:
        object.__setattr__(model.preparation_, "kept", kept[shorter])
        values = [_kinds(model, model.preparation_(table), rows) for rows in (None, table)]
    finally:
        object.__setattr__(model.preparation_, "kept", kept)
    assert [found[-1] for found in values] == [OTHER, KINDS[2]]
    assert MISSING not in values[1]


def _kinds(model, X, rows):
    column = next(c for c in model.preparation_.columns if c.name == "kind")
    own = np.array(
        [i for i, name in enumerate(model.preparation_.feature_columns) if name == "kind"]
    )
    return _category_values(model.preparation_, column, X, own, rows)[0]


def test_of_two_labels_the_probability_of_the_second_is_drawn():
    model, table = fit_label()
    curve = find_curves(model, model.features_of(table))[0]
    assert curve.label == 1
    assert ((curve.means >= 0) & (curve.means <= 1)).all()
    each = model.estimator_.predict_proba_each(model.features_of(table))[:, find_drawn(model), 1]
    assert curve.means.mean(0) == pytest.approx(each.mean(0), abs=0.15)


def test_an_offset_is_no_difference_and_a_single_curve_is_compared_with_its_mean():
    line, share = np.linspace(0.0, 1.0, 11), np.full(11, 1 / 11)
    parallel = np.stack([line, line + 7.0], axis=1)[:, :, None]
    assert measure_difference(parallel, share)[0] == pytest.approx(0.0, abs=1e-12)
    assert measure_difference(line[:, None, None], share)[0] == pytest.approx(line.std())


def test_curves_have_a_shape_in_words():
    means = np.array([[0.0, 1.0, 0.0, 2.0], [0.5, 1.0, 2.0, 1.5], [1.0, 1.0, 0.0, 0.0]])
    curve = ColumnCurve("dose", "number", [0.0, 1.0, 2.0], np.full(3, 1 / 3), means, -1, 0.5)
    assert [curve.shape(k) for k in range(4)] == ["rises", "hardly changes", "bends", "falls"]
