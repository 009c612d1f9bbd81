"""The advice of the library is Python code."""

import pytest

from leaflearn.report.advice import python_advice
from leaflearn.tabular.images import ImageFiles
from leaflearn.tabular.table_model import TableModel


def make_model(**parameters):
    model = TableModel("effect", **parameters)
    model.preparation_ = ImageFiles("file") if "image_column" in parameters else None
    return model


def test_the_code_of_a_fit_makes_the_same_model():
    given = {"group": "site", "contexts": 2, "features": ["dose", "day"], "random_state": 3}
    code = python_advice(make_model(**given)).fit
    made = eval(code.removesuffix(".fit(table)"), {"TableModel": TableModel})
    assert {name: getattr(made, name) for name in given} == given


@pytest.mark.parametrize(
    ("name", "value", "text"),
    [
        ("contexts", "auto", "contexts='auto'"),
        ("contexts", 1, "contexts=1"),
        ("group", None, "group="),
    ],
)
def test_options_are_parameters(name, value, text):
    assert python_advice(make_model()).option(name, value) == text


def test_the_folder_of_the_images_has_to_be_filled_in_unless_it_is_known():
    unknown = python_advice(make_model(image_column="file"))
    assert unknown.predict == "model.predict(new, images=folder)"
    assert unknown.fit.endswith("image_column='file', random_state=0, images=folder).fit(table)")
    assert ("folder", "the folder with the images") in unknown.fill_in_fit
    known = python_advice(make_model(image_column="file", images="here"))
    assert "images='here'" in known.fit
    assert known.fill_in_fit == (("table", "the training table"),)
