"""Examples are rows on which contexts differ, in several ways and from several groups."""

import io
from types import SimpleNamespace

import numpy as np
from PIL import Image

from leaflearn.report.disagreement import (
    N_ALIKE,
    _pick,
    describe_disagreement,
    find_image_examples,
)
from leaflearn.report.rendering import render
from leaflearn.tabular.images import ImageFiles


def image_model(flat):
    """Two contexts with opposite labels for red, and eight stored images of four groups."""
    images = np.zeros((8, 3, 28, 28), dtype=np.float32)
    images[::2, 0], images[1::2, 2] = 1.0, 1.0
    X = images.reshape(8, -1) if flat else images
    stored = SimpleNamespace(
        X=X, y=np.array([1, 0] * 4), group=np.arange(8) // 2, row=np.arange(8) + 10
    )

    def is_red(X):
        return X.reshape(len(X), 3, -1)[:, 0].mean(1)

    estimator = SimpleNamespace(
        replay_buffer_=stored,
        groups_=np.array(["a", "b", "c", "<d>"]),
        contexts_=np.array([0, 1, 0, 1]),
        usage_=np.array([0.5, 0.5]),
        n_contexts_=2,
        classes_=np.array(["blue", "red"]),
        predict_proba_each=lambda X: np.stack(
            [np.stack([1 - p, p], axis=1) for p in (is_red(X), 1 - is_red(X))], axis=1
        ),
    )
    return SimpleNamespace(
        estimator_=estimator,
        target="color",
        target_=SimpleNamespace(is_label=True),
        preparation_=ImageFiles("file"),
    )


def test_images_are_shown_as_the_model_sees_them_in_either_shape():
    for flat in (False, True):
        examples = find_image_examples(image_model(flat))
        assert len(examples) == 6
        for example in examples:
            pixel = np.asarray(Image.open(io.BytesIO(example.png)))[0, 0].tolist()
            assert example.truth == ("red" if pixel == [255, 0, 0] else "blue")
            predicted = [example.truth, "blue"] if example.truth == "red" else ["blue", "red"]
            assert example.predictions == [f"{label} (100\u00a0%)" for label in predicted]
            assert 11 <= example.row <= 18


def test_images_are_inside_the_page_with_a_description():
    model = image_model(flat=False)
    values = describe_disagreement(model, [], find_image_examples(model), [])
    section = render("disagreement.html", **values)
    assert section.count('<img src="data:image/png;base64,') == 6
    assert section.count('alt="the image of this row"') == 6
    assert (
        "The model was fitted to images, so there are no columns to compare the contexts on."
        in section
    )


def test_few_examples_are_alike_and_each_is_from_another_group():
    patterns = [(0, 1)] * 50 + [(1, 0)] * 50
    groups = np.repeat(np.arange(20), 5)
    picked = _pick(patterns, groups)
    first = [i for i in picked if patterns[i] == (0, 1)]
    assert len(picked) == 6
    assert len(first) >= N_ALIKE
    assert any(patterns[i] == (1, 0) for i in picked)
    assert picked == sorted(picked)


def test_if_all_rows_are_alike_there_are_as_many_examples():
    assert len(_pick([(0, 1)] * 9, np.zeros(9))) == 6


def test_rows_with_one_label_for_all_contexts_are_no_examples():
    model = image_model(flat=True)
    differ = [[1.0, 0.0], [0.0, 1.0]]
    agree = [[1.0, 0.0], [0.6, 0.4]]  # the probabilities differ, but both labels are blue
    model.estimator_.predict_proba_each = lambda X: np.array([differ, agree] * (len(X) // 2))
    assert [example.predictions for example in find_image_examples(model)] == [
        ["blue (100\u00a0%)", "red (100\u00a0%)"]
    ] * 4
    model.estimator_.predict_proba_each = lambda X: np.array([agree] * len(X))
    assert len(find_image_examples(model)) == 6  # those whose probabilities differ most
