"""The advice of the command line consists of commands and options."""

import shlex

import pytest

from leaflearn.cli._report_advice import command_line_advice
from leaflearn.messages import TryMoreContexts
from leaflearn.report.origin import Origin
from leaflearn.tabular.images import ImageFiles
from leaflearn.tabular.table_model import TableModel


def make_model(has_images=False, **parameters):
    model = TableModel("effect", **parameters)
    model.preparation_ = ImageFiles("file") if has_images else None
    model.local_model_ = "mlp"
    return model


def test_commands_name_the_folder_and_the_table():
    advice = command_line_advice(make_model(group="site"), Origin("my model", "-trial.csv"))
    assert advice.identify == "leaflearn identify 'my model' FEW.csv"
    assert advice.predict_with_labels == (
        "leaflearn predict 'my model' NEW.csv --support FEW.csv -o answers.csv"
    )
    assert advice.fit == (
        "leaflearn fit ./-trial.csv --target effect --group site --seed 0 -o 'my model'"
    )
    assert (advice.fill_in, advice.fill_in_fit) == ((), ())


def test_what_is_unknown_has_to_be_filled_in():
    advice = command_line_advice(make_model(has_images=True), Origin())
    assert advice.predict == "leaflearn predict MODEL NEW.csv -o answers.csv --images IMAGES"
    assert [word for word, _ in advice.fill_in] == ["MODEL", "IMAGES"]
    assert [word for word, _ in advice.fill_in_fit] == ["DATA.csv", "MODEL", "IMAGES"]
    assert "--images IMAGES" in advice.fit


def test_all_parameters_of_a_fit_become_options():
    model = make_model(
        group="the site",
        contexts=3,
        task="regression",
        local_model="linear",
        features=["dose", "the day"],
        drop=["id"],
        images="some images",
        image_column="file",
        random_state=7,
    )
    assert shlex.split(command_line_advice(model, Origin("model", "a.csv")).fit) == [
        "leaflearn",
        "fit",
        "a.csv",
        "--target",
        "effect",
        "--group",
        "the site",
        "--contexts",
        "3",
        "--task",
        "regression",
        "--local-model",
        "linear",
        "--features",
        "dose,the day",
        "--drop",
        "id",
        "--images",
        "some images",
        "--image-column",
        "file",
        "--seed",
        "7",
        "-o",
        "model",
    ]


@pytest.mark.parametrize(
    ("name", "value", "text"),
    [
        ("contexts", "auto", "--contexts auto"),
        ("contexts", 1, "--contexts 1"),
        ("random_state", None, "--seed"),
        ("features", None, "--features"),
    ],
)
def test_options_are_those_of_the_command(name, value, text):
    assert command_line_advice(make_model(), Origin()).option(name, value) == text


def test_messages_advise_options():
    message = command_line_advice(make_model(), Origin()).message(TryMoreContexts(3, 2))
    assert message.endswith("significantly better than 2; try --contexts 3.")
