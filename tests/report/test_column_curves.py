"""A curve is the mean answer of a context when a value is put into a column; asked the way a user would ask, it comes out the same."""

import numpy as np
import pytest
from leaflearn.report.number_text import show_day

from leaflearn.report.column_curves import MISSING, OTHER, find_curves, find_drawn, measure_parting
from report_models import KINDS, fit_label, fit_quantity


@pytest.fixture(scope="module")
def quantity():
    return fit_quantity(tame=True)


def test_numbers_dates_and_categories_agree_with_predictions_on_changed_rows(quantity):
    model, table = quantity
    rows = table.dropna()
    curves = {curve.column: curve for curve in find_curves(model, model.features_of(rows), rows)}
    assert {curve.kind for curve in curves.values()} == {"number", "date", "category"}
    for column, curve in curves.items():
        for value, answers in zip(curve.values, curve.answers, strict=True):
            said = show_day(value) if curve.kind == "date" else value
            each = model.predict(rows.assign(**{column: said}), each=True).mean().to_numpy()
            tolerance = 0.02 if curve.kind == "date" else 1e-6  # a date is written as a whole day
            assert answers == pytest.approx(each, abs=tolerance)


def test_values_are_in_the_unit_of_the_column(quantity):
    model, table = quantity
    curve = next(c for c in find_curves(model, model.features_of(table)) if c.column == "dose")
    assert min(curve.values) == pytest.approx(
        table["dose"].fillna(table["dose"].median()).quantile(0.02)
    )
    assert max(curve.values) == pytest.approx(
        table["dose"].fillna(table["dose"].median()).quantile(0.98)
    )


def test_the_column_that_parts_the_contexts_comes_first(quantity):
    model, table = quantity
    curves = find_curves(model, model.features_of(table))
    assert curves[0].column == "dose"
    assert curves[0].parting > 3 * curves[1].parting


def test_a_value_that_is_told_by_the_absence_of_others_has_its_name_where_the_table_is_there(
    quantity,
):
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
    from leaflearn.report.column_curves import _category_values

    column = next(c for c in model.preparation_.columns if c.name == "kind")
    own = np.array(
        [i for i, name in enumerate(model.preparation_.feature_columns) if name == "kind"]
    )
    return _category_values(model.preparation_, column, X, own, rows)[0]


def test_probabilities_of_two_labels_are_told_by_the_second():
    model, table = fit_label()
    curve = find_curves(model, model.features_of(table))[0]
    assert curve.label == 1
    assert ((curve.answers >= 0) & (curve.answers <= 1)).all()
    each = model.estimator_.predict_proba_each(model.features_of(table))[
        :, find_drawn(model.estimator_), 1
    ]
    assert curve.answers.mean(0) == pytest.approx(each.mean(0), abs=0.15)


def test_a_shift_is_no_parting_and_a_single_curve_is_measured_by_its_own_ups_and_downs():
    line, share = np.linspace(0.0, 1.0, 11), np.full(11, 1 / 11)
    assert measure_parting(np.stack([line, line + 7.0], axis=1)[:, :, None], share)[
        0
    ] == pytest.approx(0.0, abs=1e-12)
    assert measure_parting(line[:, None, None], share)[0] == pytest.approx(line.std())
