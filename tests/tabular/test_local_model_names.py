"""Local models by name, and errors about names that cannot be loaded."""

import pytest
from sklearn.base import is_classifier

from leaflearn.tabular.local_model_names import load_factory, make_named


@pytest.mark.parametrize("name", ["linear", "boosting"])
def test_local_models_suit_the_task(name):
    assert is_classifier(make_named(name, True, has_effects=False))
    assert not is_classifier(make_named(name, False, has_effects=False))


@pytest.mark.parametrize("name", ["linear", "smooth", "boosting"])
def test_many_groups_have_models_with_group_effects(name):
    for labels in (False, True):
        assert make_named(name, is_classifier=labels) == name


def test_smooth_models_need_many_groups_of_several_rows():
    sentence = (
        "The local model 'smooth' needs many groups of several rows; choose boosting instead."
    )
    with pytest.raises(ValueError, match=f"^{sentence}$"):
        make_named("smooth", is_classifier=False, has_effects=False)


def test_a_factory_from_a_file(tmp_path):
    path = tmp_path / "net.py"
    path.write_text("def make(input_shape, n_outputs):\n    return (input_shape, n_outputs)\n")
    assert load_factory(f"module:{path}:make")(1, 2) == (1, 2)


@pytest.mark.parametrize(
    ("name", "content", "sentence"),
    [
        (
            "module::make",
            "",
            "'module::make' does not name a factory; write module:PATH.py:FACTORY.",
        ),
        (
            "module:gone.py:make",
            None,
            "There is no file 'gone.py' with the factory 'make'.",
        ),
        (
            "module:net.py:make",
            "1/0",
            "'net.py' cannot be run (ZeroDivisionError: division by zero).",
        ),
        (
            "module:net.py:make",
            "make = 5",
            "'net.py' has no function or class 'make'; name one that makes a torch.nn.Module.",
        ),
        ("module:net.txt:make", "", "'net.txt' is not a Python file; its name must end in .py."),
    ],
)
def test_names_that_cannot_be_loaded_are_errors(tmp_path, monkeypatch, name, content, sentence):
    monkeypatch.chdir(tmp_path)
    if content is not None:
        for file in ("net.py", "net.txt"):
            (tmp_path / file).write_text(content)
    with pytest.raises((ValueError, OSError)) as error:
        load_factory(name)
    assert str(error.value) == sentence
