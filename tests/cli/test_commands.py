"""Commands that a shell splits into the intended words."""

import shlex
from types import SimpleNamespace

import pytest

from leaflearn.cli._commands import NEW, quote_path, write_command
from leaflearn.tabular.images import ImageFiles


@pytest.mark.parametrize(
    "place",
    [
        "model",
        "my model",
        "it's",
        "$HOME; rm *",
        "two\nlines",
        "*",
        "~user",
        "שלום 🙂",
        "-o",
        "--each",
    ],
)
def test_a_shell_reads_the_given_path(place):
    (word,) = shlex.split(quote_path(place))
    assert word.removeprefix("./") == place
    assert not word.startswith("-")


@pytest.mark.parametrize(
    ("verb", "has_images", "local_model", "options"),
    [
        ("predict", False, "linear", []),
        ("identify", True, "convnet", ["--images", "IMAGES"]),
        ("report", True, "convnet", []),
        ("predict", False, "module:my net.py:make", ["--local-model", "module:my net.py:make"]),
    ],
)
def test_required_options_are_included(verb, has_images, local_model, options):
    model = SimpleNamespace(
        preparation_=ImageFiles("file") if has_images else None, local_model_=local_model
    )
    assert shlex.split(write_command(model, verb, "my model", NEW)) == [
        "leaflearn",
        verb,
        "my model",
        "NEW.csv",
        *options,
    ]
