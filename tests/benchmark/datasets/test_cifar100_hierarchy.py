"""CIFAR-100: the published pickles in, two parallel answers to the same pictures out; harmful and damaged files end in a sentence."""

import os
import pickle
import subprocess
import sys

import numpy as np
import pytest

import stand_ins
from leaflearn.benchmark.datasets.backbones import BACKBONES, Backbone
from leaflearn.benchmark.datasets.cifar100_hierarchy import (
    CIFAR100,
    cifar100_hierarchy,
    load_pictures,
)
from leaflearn.benchmark.datasets.sources import Pictures
from leaflearn.benchmark.datasets.store import DataError, MissingDataError, verify


@pytest.fixture
def cifar(folder):
    """400 pictures a part, four of each class."""
    stand_ins.write_cifar100(folder / "cifar-100-python")
    return folder / "cifar-100-python"


@pytest.fixture
def average(tmp_path, monkeypatch):
    """A backbone that averages the channels."""
    (tmp_path / "weights").touch()
    monkeypatch.setitem(
        BACKBONES,
        "average",
        Backbone(
            1,
            3,
            lambda: tmp_path / "weights",
            lambda path: lambda batch: batch.float().mean(dim=(2, 3)),
        ),
    )


def change(path, **values):
    content = pickle.loads(path.read_bytes(), encoding="bytes")
    path.write_bytes(
        pickle.dumps(content | {key.encode(): value for key, value in values.items()}, protocol=4)
    )


def pixels(path):
    return pickle.loads(path.read_bytes(), encoding="bytes")[b"data"].copy()


# What comes out


def test_both_domains_answer_the_same_pictures(cifar):
    data = cifar100_hierarchy(inputs="pictures")
    assert data.names == ("superclass", "class")
    assert data.shares_inputs
    superclass, class_ = data
    assert superclass.train.x is class_.train.x
    assert superclass.test.x is class_.test.x
    assert isinstance(superclass.train.x, Pictures)
    assert (data.n_groups, data.group_size) == (25_000, 2)


def test_pictures_and_labels_are_those_of_the_files(cifar):
    superclass, class_ = cifar100_hierarchy(inputs="pictures")
    for part, name in ((superclass.train, "train"), (superclass.test, "test")):
        assert np.array_equal(part.x.stored.reshape(-1, 3072), pixels(cifar / name))
    fine = np.repeat(np.arange(100), 4)
    assert np.array_equal(superclass.train.y, fine // 5)
    assert np.array_equal(class_.test.y, 20 + fine)


def test_labels_have_readable_names_in_one_space(cifar):
    data = cifar100_hierarchy(inputs="pictures")
    assert data.classes[:2] == ("coarse 0", "coarse 1")
    assert data.classes[20:22] == ("fine 0", "fine 1")
    assert len(data.classes) == 120


def test_features_are_of_the_same_pictures_in_the_same_order(cifar, average):
    by_features, by_pictures = (
        cifar100_hierarchy(backbone="average"),
        cifar100_hierarchy(inputs="pictures"),
    )
    assert by_features.input_shape == (3,)
    assert by_features.shares_inputs
    for one, other in zip(by_features, by_pictures, strict=True):
        assert np.array_equal(one.train.y, other.train.y)
        assert np.allclose(one.train.x, other.train.x.stored.mean(axis=(2, 3)))
        assert np.allclose(one.test.x, other.test.x.stored.mean(axis=(2, 3)))


def test_training_pictures_that_are_test_pictures_are_left_out(cifar, average):
    data = pixels(cifar / "train")
    data[[3, 200, 399]] = pixels(cifar / "test")[[7, 7, 0]]
    change(cifar / "train", data=data)
    train, test = load_pictures()
    assert len(train.pictures) == len(test.pictures) == 400
    kept = np.delete(np.arange(400), [3, 200, 399])
    superclass, class_ = cifar100_hierarchy(inputs="pictures")
    assert np.array_equal(superclass.train.x.stored, train.pictures[kept])
    assert np.array_equal(class_.train.y - 20, train.labels[kept, 1])
    assert np.array_equal(superclass.test.x.stored, test.pictures)
    assert len(cifar100_hierarchy(backbone="average").domains[0].train) == 397


def test_the_pickles_are_read_once(cifar, monkeypatch):
    first = cifar100_hierarchy(inputs="pictures")
    monkeypatch.setattr(sys.modules[load_pictures.__module__], "load_pictures", None)
    assert np.array_equal(
        cifar100_hierarchy(inputs="pictures").domains[0].train.x, first.domains[0].train.x
    )


def test_another_version_is_made_anew_and_has_features_of_its_own(cifar, average, monkeypatch):
    cifar100_hierarchy(backbone="average")
    data = pixels(cifar / "train")
    module = sys.modules[load_pictures.__module__]
    published = module.load_pictures
    monkeypatch.setattr(module, "VERSION", 2)
    monkeypatch.setattr(
        module,
        "load_pictures",
        lambda: tuple(album._replace(pictures=255 - album.pictures) for album in published()),
    )
    changed = cifar100_hierarchy(backbone="average").domains[0].train.x
    assert np.allclose(changed, 255 - data.reshape(-1, 3, 1024).mean(axis=2))


def test_a_damaged_cache_is_made_anew(cifar):
    expected = np.array(cifar100_hierarchy(inputs="pictures").domains[0].train.x)
    (path,) = cifar.parent.glob("prepared/*/pictures.npy")
    os.truncate(path, 1000)
    assert np.array_equal(cifar100_hierarchy(inputs="pictures").domains[0].train.x, expected)


# What goes wrong


def test_wrong_options_end_in_a_sentence(folder):
    with pytest.raises(
        ValueError, match=r"^`inputs` must be one of 'features', 'pictures'; it is 'images'\.$"
    ):
        cifar100_hierarchy(inputs="images")
    with pytest.raises(
        ValueError,
        match=r"^`backbone` must be one of 'efficientnet-lite0', 'densenet121'; it is 'resnet'\.$",
    ):
        cifar100_hierarchy(inputs="pictures", backbone="resnet")


def test_missing_files_end_in_a_sentence_that_says_what_to_put_where(folder):
    with pytest.raises(MissingDataError) as error:
        cifar100_hierarchy()
    assert str(error.value) == (
        f"CIFAR-100 (Krizhevsky 2009): 'train' and 2 more are not in '{folder / 'cifar-100-python'}'. "
        "Put the files train, test and meta of its Python version there."
    )


class Harm:
    def __reduce__(self):
        return os.system, ("touch $CANARY",)


HARMFUL = {
    "alone": pickle.dumps(Harm(), protocol=2),
    "among the labels": pickle.dumps(
        {b"data": np.zeros((1, 3072), np.uint8), b"fine_labels": [Harm()]}, protocol=4
    ),
    "in an array": pickle.dumps({b"data": np.array([Harm()], dtype=object)}, protocol=3),
    "by hand": b"cos\nsystem\n(S'touch $CANARY'\ntR.",
}


@pytest.mark.parametrize("part", ["train", "test", "meta"])
@pytest.mark.parametrize("name", HARMFUL)
def test_harmful_files_are_refused_and_nothing_runs(cifar, tmp_path, monkeypatch, name, part):
    monkeypatch.setenv("CANARY", str(tmp_path / "canary"))
    (cifar / part).write_bytes(HARMFUL[name])
    with pytest.raises(
        DataError, match=f"^'{cifar / part}' is refused and nothing of it ran, because it asks for "
    ):
        cifar100_hierarchy(inputs="pictures")
    assert not (tmp_path / "canary").exists()
    pickle.loads(HARMFUL[name])
    assert (tmp_path / "canary").exists()  # and it would have


WRONG = {
    "not bytes": {"data": np.zeros((400, 3072))},
    "not 3072 of them": {"data": np.zeros((400, 784), dtype=np.uint8)},
    "no array": {"data": [1, 2, 3]},
    "too few labels": {"fine_labels": [0] * 399},
    "labels that are none": {"coarse_labels": [20] * 400},
    "labels that are no whole numbers": {"coarse_labels": [0.5] * 400},
}


@pytest.mark.parametrize("name", WRONG)
def test_another_layout_ends_in_a_sentence(cifar, name):
    change(cifar / "test", **WRONG[name])
    with pytest.raises(DataError) as error:
        cifar100_hierarchy(inputs="pictures")
    assert str(error.value) == (
        f"'{cifar / 'test'}' is not laid out as a file of CIFAR-100 is; fetch it again with: leaflearn data get cifar100-hierarchy"
    )
    assert list((cifar.parent / "prepared").iterdir()) == []


@pytest.mark.parametrize("names", [[b"apple"], [1] * 100, None])
def test_names_of_another_layout_end_in_a_sentence(cifar, names):
    change(cifar / "meta", fine_label_names=names)
    with pytest.raises(
        DataError, match=f"^'{cifar / 'meta'}' is not laid out as a file of CIFAR-100 is; "
    ):
        cifar100_hierarchy(inputs="pictures")


def test_half_a_file_ends_in_a_sentence(cifar):
    content = (cifar / "train").read_bytes()
    (cifar / "train").write_bytes(content[: len(content) // 2])
    with pytest.raises(
        DataError,
        match=f"^'{cifar / 'train'}' is not a whole pickle of numbers, text and arrays: it ends too early; ",
    ):
        cifar100_hierarchy(inputs="pictures")


# The published files


def test_the_published_files_are_right_and_whole(need):
    need(CIFAR100)
    assert set(verify(CIFAR100).values()) == {"right"}
    train, test = load_pictures()
    assert train.pictures.shape == (50_000, 3, 32, 32)
    assert test.pictures.shape == (10_000, 3, 32, 32)
    assert set(np.bincount(train.labels[:, 1])) == {500}
    assert set(np.bincount(test.labels[:, 1])) == {100}
    assert len(np.unique(train.labels, axis=0)) == 100  # every class has one superclass
    data = cifar100_hierarchy(inputs="pictures")
    assert [len(domain.train) for domain in data] == [49_990, 49_990]
    assert [len(domain.test) for domain in data] == [10_000, 10_000]
    assert [data.classes[domain.test.y[2]] for domain in data] == ["aquatic mammals", "seal"]


MEASURE = """
from pathlib import Path
from leaflearn.benchmark.datasets.cifar100_hierarchy import load_pictures
def peak():
    return int(Path("/proc/self/status").read_text().split("VmHWM:")[1].split()[0]) * 1024
before = peak()
train, test = load_pictures()
print((peak() - before) / (train.pictures.nbytes + test.pictures.nbytes))
"""


@pytest.mark.skipif(
    not sys.platform.startswith("linux"), reason="the peak of memory is read as Linux tells it"
)
def test_memory_stays_near_the_size_of_the_arrays(need):
    need(CIFAR100)
    printed = subprocess.run(
        [sys.executable, "-c", MEASURE], capture_output=True, text=True, check=True
    ).stdout
    assert 0.9 < float(printed) < 1.25
