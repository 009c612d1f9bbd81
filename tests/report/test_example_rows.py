"""Examples are rows on which contexts differ, of several kinds and groups; of pictures, the picture itself is shown."""

import io
from types import SimpleNamespace

import numpy as np
from leaflearn.report.example_rows import N_ALIKE, _pick, find_pictures
from PIL import Image

from leaflearn.report.disagreement import tell_disagreement
from leaflearn.tabular.images import ImageFiles


def picture_model(flat):
    """Two contexts that take red for opposite things, and remember eight pictures of four groups."""
    pictures = np.zeros((8, 3, 28, 28), dtype=np.float32)
    pictures[::2, 0], pictures[1::2, 2] = 1.0, 1.0
    X = pictures.reshape(8, -1) if flat else pictures
    memory = SimpleNamespace(
        X=X, y=np.array([1, 0] * 4), group=np.arange(8) // 2, row=np.arange(8) + 10
    )

    def is_red(X):
        return X.reshape(len(X), 3, -1)[:, 0].mean(1)

    estimator = SimpleNamespace(
        replay_buffer_=memory,
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
        target="colour",
        target_=SimpleNamespace(is_label=True),
        preparation_=ImageFiles("file"),
    )


def test_pictures_are_shown_as_the_model_sees_them_in_either_shape():
    for flat in (False, True):
        examples = find_pictures(picture_model(flat))
        assert len(examples) == 6
        for example in examples:
            pixel = np.asarray(Image.open(io.BytesIO(example.png)))[0, 0].tolist()
            assert example.truth == ("red" if pixel == [255, 0, 0] else "blue")
            assert example.answers == [
                f"{a} (100\u00a0%)"
                for a in ([example.truth, "blue"] if example.truth == "red" else ["blue", "red"])
            ]
            assert 11 <= example.row <= 18


def test_pictures_stand_inside_the_page_with_a_description():
    model = picture_model(flat=False)
    section = tell_disagreement(model, [], find_pictures(model), [])
    assert section.count("<img src='data:image/png;base64,") == 6
    assert section.count("alt='the picture of this row'") == 6
    assert (
        "The model learnt from pictures, so there are no columns along which contexts could be compared."
        in section
    )


def test_few_examples_are_alike_and_each_is_of_another_group():
    patterns = [(0, 1)] * 50 + [(1, 0)] * 50
    groups = np.repeat(np.arange(20), 5)
    picked = _pick(patterns, groups)
    first = [i for i in picked if patterns[i] == (0, 1)]
    assert len(picked) == 6
    assert len(first) >= N_ALIKE
    assert any(patterns[i] == (1, 0) for i in picked)
    assert picked == sorted(picked)


def test_where_all_rows_are_alike_there_are_as_many_examples():
    assert len(_pick([(0, 1)] * 9, np.zeros(9))) == 6


def test_rows_with_one_label_for_all_contexts_are_no_examples():
    model = picture_model(flat=True)
    sure, unsure = (
        [[1.0, 0.0], [0.0, 1.0]],
        [[1.0, 0.0], [0.6, 0.4]],
    )  # the second differs by much, and yet all say blue
    model.estimator_.predict_proba_each = lambda X: np.array([sure, unsure] * (len(X) // 2))
    assert [example.answers for example in find_pictures(model)] == [
        ["blue (100\u00a0%)", "red (100\u00a0%)"]
    ] * 4
    model.estimator_.predict_proba_each = lambda X: np.array([unsure] * len(X))
    assert (
        len(find_pictures(model)) == 6
    )  # where they never differ, those on which they are least of one mind
