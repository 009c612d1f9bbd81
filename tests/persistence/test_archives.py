"""An archive that would take more memory than it has bytes, or read beyond its own, is refused before anything is built."""

import io
import json
import zipfile

import numpy as np
import pytest
from sklearn.linear_model import Ridge
from sklearn.tree import DecisionTreeRegressor

from leaflearn.persistence import pack_objects, unpack_objects

RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 3))
Y = X @ [1.0, 2.0, 3.0]


def json_node(value, number):
    return {
        "__class__": "str",
        "__module__": "builtins",
        "__loader__": "JsonNode",
        "__id__": number,
        "content": json.dumps(value),
    }


def rewritten(content, change, compression=zipfile.ZIP_STORED):
    """The archive with every member passed through `change(name, bytes)`."""
    buffer = io.BytesIO()
    with (
        zipfile.ZipFile(io.BytesIO(content)) as old,
        zipfile.ZipFile(buffer, "w", compression) as new,
    ):
        for name in old.namelist():
            new.writestr(name, change(name, old.read(name)))
    return buffer.getvalue()


def header(shape, dtype="<f8"):
    buffer = io.BytesIO()
    np.lib.format.write_array_header_1_0(
        buffer, {"descr": dtype, "fortran_order": False, "shape": shape}
    )
    return buffer.getvalue()


@pytest.fixture(scope="module")
def content():
    return pack_objects(Ridge().fit(X, Y), "local_model")


@pytest.mark.parametrize(
    "array",
    [
        header((2**40,)) + bytes(8),
        header((3,)) + bytes(16),
        header((1,), "|O") + bytes(8),
        b"",
        b"nonsense",
    ],
)
def test_arrays_that_do_not_fit_their_bytes_are_refused(content, array):
    wrong = rewritten(content, lambda name, old: array if name.endswith(".npy") else old)
    with pytest.raises(ValueError, match=r"^local_model cannot be read \("):
        unpack_objects(wrong, "local_model")


def test_archives_that_swell_are_refused(content):
    wrong = rewritten(content, lambda name, old: old, zipfile.ZIP_DEFLATED)
    with pytest.raises(
        ValueError,
        match=r"^local_model cannot be read \(ValueError: the archive is larger inside than outside\); ",
    ):
        unpack_objects(wrong, "local_model")


@pytest.mark.parametrize("wrong", [b"", b"PK", b"nonsense" * 100, b"\x80"])
def test_what_is_no_archive_is_refused(wrong):
    with pytest.raises(ValueError, match=r"^local_model (cannot be read|is a pickle)"):
        unpack_objects(wrong, "local_model")


def announce_more_outputs(tree):
    number = tree["__reduce__"]["args"]["content"][2]
    number.update(content=str(10**6), __id__=0)


def build_by_another_loader(tree):
    arguments = tree["__reduce__"]["args"]
    announce_more_outputs(tree)
    tree.clear()
    tree.update(
        __module__="sklearn.tree._tree",
        __class__="Tree",
        __loader__="ConstructorFromReduceNode",
        content=arguments,
    )


def hide_behind_another_number(tree):
    earlier = json_node(10**6, tree["__reduce__"]["args"]["content"][2]["__id__"])
    tree["content"]["content"] = {"first": earlier, **tree["content"]["content"]}


@pytest.mark.parametrize(
    "spoil", [announce_more_outputs, build_by_another_loader, hide_behind_another_number]
)
def test_a_tree_that_would_read_beyond_its_memory_is_never_built(spoil):
    content = pack_objects(DecisionTreeRegressor(max_depth=2).fit(X, Y), "local_model")

    def change(name, old):
        if name != "schema.json":
            return old
        schema = json.loads(old)
        spoil(schema["content"]["content"]["tree_"])
        return json.dumps(schema)

    with pytest.raises(ValueError, match=r"^local_model cannot be read \((KeyError|ValueError): "):
        unpack_objects(rewritten(content, change), "local_model")
