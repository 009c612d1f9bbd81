"""CIFAR-100: both published layouts give two parallel labels for the same images.

Harmful and damaged files end in one clear sentence.
"""

import copyreg
import functools
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
    CIFAR100_PICKLED,
    cifar100_hierarchy,
    load_images,
)
from leaflearn.benchmark.datasets.sources import Images
from leaflearn.benchmark.datasets.store import (
    DataError,
    MissingDataError,
    locate,
    missing,
    verify,
)

module = sys.modules[load_images.__module__]
AGAIN = "fetch the data again with: leaflearn data get cifar100-hierarchy"


@pytest.fixture
def binary(folder):
    """400 images per part, four of each class, in the binary layout."""
    stand_ins.write_cifar100(folder / "cifar-100-binary")
    return folder / "cifar-100-binary"


@pytest.fixture
def pickled(folder):
    """The same in the pickled layout."""
    stand_ins.write_pickled_cifar100(folder / "cifar-100-python")
    return folder / "cifar-100-python"


@pytest.fixture(params=["binary", "pickled"])
def cifar(request):
    """Either layout."""
    return request.getfixturevalue(request.param)


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


@pytest.fixture
def canary(tmp_path, monkeypatch):
    """A file that COMMAND creates."""
    monkeypatch.setenv("CANARY", str(tmp_path / "canary"))
    return tmp_path / "canary"


def change(path, **values):
    content = pickle.loads(path.read_bytes(), encoding="bytes")
    path.write_bytes(
        pickle.dumps(content | {key.encode(): value for key, value in values.items()}, protocol=4)
    )


def pixels(folder, part):
    if (folder / part).exists():
        return pickle.loads((folder / part).read_bytes(), encoding="bytes")[b"data"].copy()
    return records(folder, part)[:, 2:]


def records(folder, part):
    return np.fromfile(folder / f"{part}.bin", np.uint8).reshape(-1, 3074)


def is_wrong(path):
    with pytest.raises(DataError) as error:
        cifar100_hierarchy(inputs="images")
    assert str(error.value) == (
        f"'{path}' is damaged or is not a file of CIFAR-100; delete it and {AGAIN}"
    )


# What is loaded


def test_both_domains_label_the_same_images(cifar):
    data = cifar100_hierarchy(inputs="images")
    assert data.names == ("superclass", "class")
    assert data.shares_inputs
    superclass, class_ = data
    assert superclass.train.x is class_.train.x
    assert superclass.test.x is class_.test.x
    assert isinstance(superclass.train.x, Images)
    assert (data.n_groups, data.group_size) == (25_000, 2)


def test_images_and_labels_are_those_of_the_files(cifar):
    superclass, class_ = cifar100_hierarchy(inputs="images")
    for part, name in ((superclass.train, "train"), (superclass.test, "test")):
        assert np.array_equal(part.x.stored.reshape(-1, 3072), pixels(cifar, name))
    fine = np.repeat(np.arange(100), 4)
    assert np.array_equal(superclass.train.y, fine // 5)
    assert np.array_equal(class_.test.y, 20 + fine)


def test_labels_have_readable_names_in_one_space(cifar):
    data = cifar100_hierarchy(inputs="images")
    assert data.classes[:2] == ("coarse 0", "coarse 1")
    assert data.classes[20:22] == ("fine 0", "fine 1")
    assert len(data.classes) == 120


def test_both_layouts_give_the_same_data(pickled):
    from_pickles = cifar100_hierarchy(inputs="images")
    stand_ins.write_cifar100(pickled.parent / "cifar-100-binary")
    assert locate(CIFAR100).name == "cifar-100-binary"  # preferred where both are there
    from_binary = cifar100_hierarchy(inputs="images")
    assert from_binary.classes == from_pickles.classes
    for one, other in zip(from_binary, from_pickles, strict=True):
        for a, b in ((one.train, other.train), (one.test, other.test)):
            assert np.array_equal(a.x.stored, b.x.stored)
            assert np.array_equal(a.y, b.y)
            assert a.y.dtype == b.y.dtype


def test_the_pickled_layout_takes_the_place_of_the_binary_one(pickled):
    assert missing(CIFAR100) == []
    assert locate(CIFAR100) == pickled
    assert verify(CIFAR100) == dict.fromkeys(CIFAR100_PICKLED.contents, "wrong")  # stand-ins
    (pickled / "meta").unlink()
    assert missing(CIFAR100) == list(CIFAR100.contents)


def test_the_old_name_of_the_images_option_still_works(cifar):
    with pytest.warns(FutureWarning, match=r"^`inputs='pictures'` is now called 'images'\.$"):
        assert cifar100_hierarchy(inputs="pictures").input_shape == (3, 32, 32)


def test_features_are_of_the_same_images_in_the_same_order(cifar, average):
    by_features, by_images = (
        cifar100_hierarchy(backbone="average"),
        cifar100_hierarchy(inputs="images"),
    )
    assert by_features.input_shape == (3,)
    assert by_features.shares_inputs
    for one, other in zip(by_features, by_images, strict=True):
        assert np.array_equal(one.train.y, other.train.y)
        assert np.allclose(one.train.x, other.train.x.stored.mean(axis=(2, 3)))
        assert np.allclose(one.test.x, other.test.x.stored.mean(axis=(2, 3)))


def test_training_images_that_are_test_images_are_excluded(cifar, average):
    data = pixels(cifar, "train")
    data[[3, 200, 399]] = pixels(cifar, "test")[[7, 7, 0]]
    if (cifar / "train").exists():
        change(cifar / "train", data=data)
    else:
        np.column_stack([records(cifar, "train")[:, :2], data]).tofile(cifar / "train.bin")
    train, test = load_images()
    assert len(train.images) == len(test.images) == 400
    kept = np.delete(np.arange(400), [3, 200, 399])
    superclass, class_ = cifar100_hierarchy(inputs="images")
    assert np.array_equal(superclass.train.x.stored, train.images[kept])
    assert np.array_equal(class_.train.y - 20, train.labels[kept, 1])
    assert np.array_equal(superclass.test.x.stored, test.images)
    assert len(cifar100_hierarchy(backbone="average").domains[0].train) == 397


def test_the_files_are_read_once(cifar, monkeypatch):
    first = cifar100_hierarchy(inputs="images")
    monkeypatch.setattr(module, "load_images", None)
    assert np.array_equal(
        cifar100_hierarchy(inputs="images").domains[0].train.x, first.domains[0].train.x
    )


def test_another_version_is_made_again_and_has_its_own_features(cifar, average, monkeypatch):
    cifar100_hierarchy(backbone="average")
    data = pixels(cifar, "train")
    published = module.load_images
    monkeypatch.setattr(module, "VERSION", 2)
    monkeypatch.setattr(
        module,
        "load_images",
        lambda: tuple(part._replace(images=255 - part.images) for part in published()),
    )
    changed = cifar100_hierarchy(backbone="average").domains[0].train.x
    assert np.allclose(changed, 255 - data.reshape(-1, 3, 1024).mean(axis=2))


def test_a_damaged_cache_is_made_again(cifar):
    expected = np.array(cifar100_hierarchy(inputs="images").domains[0].train.x)
    (path,) = cifar.parent.glob("prepared/*/pictures.npy")
    os.truncate(path, 1000)
    assert np.array_equal(cifar100_hierarchy(inputs="images").domains[0].train.x, expected)


# What goes wrong


def test_wrong_options_end_in_a_sentence(folder):
    with pytest.raises(
        ValueError, match=r"^`inputs` must be one of 'features', 'images'; it is 'pixels'\.$"
    ):
        cifar100_hierarchy(inputs="pixels")
    with pytest.raises(
        ValueError,
        match=r"^`backbone` must be one of 'efficientnet-lite0', 'densenet121'; it is 'resnet'\.$",
    ):
        cifar100_hierarchy(inputs="images", backbone="resnet")


def test_missing_files_end_in_a_sentence_that_says_what_to_put_where(folder):
    with pytest.raises(MissingDataError) as error:
        cifar100_hierarchy()
    assert str(error.value) == (
        "CIFAR-100 (Krizhevsky 2009): 'train.bin' and 3 more are not in "
        f"'{folder / 'cifar-100-binary'}'. Put the files of its binary version there, or those of "
        "its Python version into 'cifar-100-python'."
    )


@pytest.mark.parametrize("n_bytes", [0, 1, 3073, 3075])
def test_a_binary_file_of_the_wrong_size_ends_in_a_sentence(binary, n_bytes):
    (binary / "train.bin").write_bytes(bytes(n_bytes))
    is_wrong(binary / "train.bin")


@pytest.mark.parametrize(("column", "label"), [(0, 20), (1, 100)])
def test_a_binary_file_with_unknown_labels_ends_in_a_sentence(binary, column, label):
    content = records(binary, "test")
    content[5, column] = label
    content.tofile(binary / "test.bin")
    is_wrong(binary / "test.bin")
    assert list((binary.parent / "prepared").iterdir()) == []


def test_too_few_names_in_a_text_file_end_in_a_sentence(binary):
    (binary / "fine_label_names.txt").write_text("apple\n")
    is_wrong(binary / "fine_label_names.txt")


# Harmful pickles

COMMAND = "touch $CANARY"
SYSTEM = f"{os.system.__module__}.system"


class Call:
    """Pickled, it asks for a call when it is loaded."""

    def __init__(self, function, *arguments):
        self.asked = function, arguments

    def __reduce__(self):
        return self.asked


def refused(path, content, name):
    """The file is refused by name and nothing in it runs."""
    path.write_bytes(content)
    with pytest.raises(DataError) as error:
        cifar100_hierarchy(inputs="images")
    assert str(error.value) == (
        f"'{path}' is refused and none of its code ran, because it refers to {name!r}; "
        f"delete it and {AGAIN}"
    )


FUNCTIONS = {
    SYSTEM: Call(os.system, COMMAND),
    "builtins.eval": Call(eval, f"__import__('os').system('{COMMAND}')"),
    "builtins.exec": Call(exec, f"import os; os.system('{COMMAND}')"),
    "subprocess.getoutput": Call(subprocess.getoutput, COMMAND),
    "functools.partial": Call(functools.partial(os.system, COMMAND)),
}
CONTENT = {
    "alone": lambda harm: harm,
    "among the labels": lambda harm: {
        b"data": np.zeros((1, 3072), np.uint8),
        b"fine_labels": [1, harm],
    },
    "in an array": lambda harm: {b"data": np.array([harm], dtype=object)},
}


@pytest.mark.parametrize("part", ["train", "test", "meta"])
@pytest.mark.parametrize("place", CONTENT)
def test_harmful_files_are_refused_and_nothing_runs(pickled, canary, place, part):
    content = pickle.dumps(CONTENT[place](Call(os.system, COMMAND)), protocol=3)
    refused(pickled / part, content, SYSTEM)
    assert not canary.exists()
    pickle.loads(content)
    assert canary.exists()  # and it would have run


@pytest.mark.parametrize("protocol", [3, 4])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_are_refused_by_name(pickled, canary, name, protocol):
    content = pickle.dumps({"data": [1, FUNCTIONS[name]]}, protocol)
    refused(pickled / "train", content, name)
    assert not canary.exists()
    pickle.loads(content)
    assert canary.exists()  # Python's own reader runs it


BY_HAND = {
    "text protocol": (b"cos\nsystem\n(S'touch $CANARY'\ntR.", "os.system"),
    "instance": (b"(U\rtouch $CANARYios\nsystem\n.", "os.system"),
    "object": (b"(cos\nsystem\nU\rtouch $CANARYo.", "os.system"),
    "function of a submodule": (
        b"\x80\x04\x8c\x05numpy\x8c\x11testing.os.system\x93\x8c\rtouch $CANARY\x85R.",
        "numpy.testing.os.system",
    ),
    "attribute of an admitted name": (
        b"\x80\x04\x8c\x05numpy\x8c\rdtype.__new__\x93.",
        "numpy.dtype.__new__",
    ),
    "admitted name of another module": (b"cos\ndtype\n.", "os.dtype"),
    "name with control characters": (b"c\x1b[31mos\nsystem\n.", "\x1b[31mos.system"),
    "import by a codec": (
        b"\x80\x02c_codecs\nlookup\nX\x03\x00\x00\x00zip\x85R.",
        "_codecs.lookup",
    ),
    "array of another class": (
        b"\x80\x02cnumpy.core.multiarray\n_reconstruct\ncnumpy\nmemmap\nK\x00\x85U\x01b\x87R.",
        "numpy.memmap",
    ),
}


@pytest.mark.parametrize("name", BY_HAND)
def test_pickles_written_by_hand_are_refused(pickled, canary, name):
    refused(pickled / "meta", *BY_HAND[name])
    assert not canary.exists()


def test_numbered_extensions_are_refused_even_when_they_are_registered(pickled, canary):
    copyreg.add_extension(os.system.__module__, "system", 0xF0)
    try:
        content = pickle.dumps(Call(os.system, COMMAND), protocol=2)
        refused(pickled / "meta", content, SYSTEM)
        assert not canary.exists()
        pickle.loads(content)
        assert canary.exists()
    finally:
        copyreg.remove_extension(os.system.__module__, "system", 0xF0)


# Damaged pickles

DAMAGED = {
    "empty": b"",
    "web page": b"<!DOCTYPE html>",
    "no value": b"\x80\x02.",
    "unknown memo": b"\x80\x02h\x07.",
    "text for a list": b"\x80\x02U\x01xU\x01ya.",
    "list as a key": b"\x80\x02}]Ns.",
    "no mark": b"\x80\x02]e.",
    "persistent text": b"Ptouch\n.",
    "persistent object": b"U\x05touchQ.",
    "name that is not text": b"\x80\x04K\x01K\x02\x93.",
    "call of text": b"\x80\x02U\x04exec)R.",
    "state of a function": b"\x80\x02c_codecs\nencode\n}U\x0c__defaults__)sb.",
    "name for a value": b"\x80\x02cnumpy\ndtype\n.",
    "text longer than the file": b"\x80\x02T\xff\xff\xff\x0f",
    "huge array": (
        b"\x80\x02cnumpy.core.multiarray\n_reconstruct\ncnumpy\nndarray\n"
        b"\x8a\x08\x00\x00\x00\x00\x00\x00\x00\x40\x85U\x01b\x87R."
    ),
    "no dictionary": pickle.dumps([1, 2, 3]),
}


@pytest.mark.parametrize("name", DAMAGED)
def test_damaged_pickles_end_in_a_sentence(pickled, name):
    (pickled / "meta").write_bytes(DAMAGED[name])
    is_wrong(pickled / "meta")


@pytest.mark.parametrize("share", [0.1, 0.5, 0.99])
def test_a_truncated_pickle_ends_in_a_sentence(pickled, share):
    content = (pickled / "train").read_bytes()
    (pickled / "train").write_bytes(content[: int(share * len(content))])
    is_wrong(pickled / "train")


WRONG = {
    "not bytes": {"data": np.zeros((400, 3072))},
    "not 3072 of them": {"data": np.zeros((400, 784), dtype=np.uint8)},
    "no array": {"data": [1, 2, 3]},
    "too few labels": {"fine_labels": [0] * 399},
    "unknown labels": {"coarse_labels": [20] * 400},
    "negative labels": {"coarse_labels": [-1] * 400},
    "labels that are not integers": {"coarse_labels": [0.5] * 400},
}


@pytest.mark.parametrize("name", WRONG)
def test_another_pickled_layout_ends_in_a_sentence(pickled, name):
    change(pickled / "test", **WRONG[name])
    is_wrong(pickled / "test")
    assert list((pickled.parent / "prepared").iterdir()) == []


@pytest.mark.parametrize("names", [[b"apple"], [1] * 100, None])
def test_names_of_another_layout_end_in_a_sentence(pickled, names):
    change(pickled / "meta", fine_label_names=names)
    is_wrong(pickled / "meta")


def test_a_file_that_cannot_be_read_is_named(pickled, monkeypatch):
    monkeypatch.setattr(module, "_ArrayUnpickler", lambda *_, **__: (pickled / "no").open())
    with pytest.raises(
        DataError, match=f"^Cannot read '{pickled / 'meta'}': No such file or directory.$"
    ):
        cifar100_hierarchy(inputs="images")


# The published files


def test_the_published_files_are_right_and_complete(need):
    need(CIFAR100)
    assert set(verify(CIFAR100).values()) <= {"right", "there"}
    train, test = load_images()
    assert train.images.shape == (50_000, 3, 32, 32)
    assert test.images.shape == (10_000, 3, 32, 32)
    assert set(np.bincount(train.labels[:, 1])) == {500}
    assert set(np.bincount(test.labels[:, 1])) == {100}
    assert len(np.unique(train.labels, axis=0)) == 100  # every class has one superclass
    data = cifar100_hierarchy(inputs="images")
    assert [len(domain.train) for domain in data] == [49_990, 49_990]
    assert [len(domain.test) for domain in data] == [10_000, 10_000]
    assert [data.classes[domain.test.y[2]] for domain in data] == ["aquatic mammals", "seal"]


MEASURE = """
from pathlib import Path
from leaflearn.benchmark.datasets.cifar100_hierarchy import load_images
def peak():
    return int(Path("/proc/self/status").read_text().split("VmHWM:")[1].split()[0]) * 1024
before = peak()
train, test = load_images()
print((peak() - before) / (train.images.nbytes + test.images.nbytes))
"""


@pytest.mark.skipif(
    not sys.platform.startswith("linux"), reason="peak memory is read from /proc, as on Linux"
)
def test_memory_stays_near_the_size_of_the_arrays(binary):
    for part, n in (("train", 50_000), ("test", 10_000)):
        np.resize(records(binary, part), (n, 3074)).tofile(binary / f"{part}.bin")
    printed = subprocess.run(
        [sys.executable, "-c", MEASURE], capture_output=True, text=True, check=True
    ).stdout
    assert 0.9 < float(printed) < 1.25
