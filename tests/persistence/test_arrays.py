"""Arrays are restored exactly, and other bytes are refused before memory is allocated."""

import io
import json
import os
import pickle
import struct

import numpy as np
import pytest
import torch

from leaflearn.persistence import pack_arrays, pack_tensors, unpack_arrays, unpack_tensors

CANNOT = r"^the weights cannot be read as safetensors; get a fresh copy of the model folder.$"
PICKLE = (
    r"^the weights is a pickle, and pickles can run code, so it was not read; "
    r"get a fresh copy of the model folder.$"
)


class Harmful:
    """Creates a folder when it is unpickled."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return os.mkdir, (str(self.path),)


@pytest.mark.parametrize(
    "dtype", ["bool", "int8", "uint16", "int64", "uint64", "float16", "float32", "float64"]
)
@pytest.mark.parametrize("shape", [(), (0,), (0, 3), (5,), (2, 3, 4)])
def test_arrays_are_restored(dtype, shape):
    array = np.random.default_rng(0).integers(0, 100, shape).astype(dtype)
    again = unpack_arrays(pack_arrays({"a": array, "b": array[..., None].T}), "the weights")
    np.testing.assert_array_equal(again["a"], array, strict=True)
    np.testing.assert_array_equal(again["b"], array[..., None].T, strict=True)
    assert again["a"].flags.writeable


def test_nan_infinity_and_negative_zero_are_restored():
    array = np.array([np.nan, np.inf, -np.inf, -0.0, 5e-324])
    assert unpack_arrays(pack_arrays({"a": array}), "the weights")["a"].tobytes() == array.tobytes()


def test_tensors_may_share_memory_and_have_any_type():
    shared = torch.arange(6.0).reshape(2, 3)
    tensors = {
        "a": shared,
        "b": shared,
        "c": shared.T,
        "d": shared.bfloat16(),
        "e": torch.tensor(3),
    }
    again = unpack_tensors(pack_tensors(tensors), "the weights")
    assert all(
        torch.equal(again[name], tensors[name]) and again[name].dtype == tensors[name].dtype
        for name in tensors
    )


def header(**entries):
    text = json.dumps(entries).encode()
    return struct.pack("<Q", len(text)) + text


ONE = {"dtype": "F64", "data_offsets": [0, 8]}
WRONG = {
    "empty": b"",
    "too short": b"\x01\x02",
    "header longer than the file": struct.pack("<Q", 2**62) + b"{}",
    "header larger than allowed": struct.pack("<Q", 200 * 2**20) + b" " * 100,
    "not JSON": struct.pack("<Q", 4) + b"abcd",
    "huge shape": header(a={**ONE, "shape": [2**40]}) + bytes(8),
    "shape that overflows": header(a={**ONE, "shape": [2**40, 2**40, 2**40]}) + bytes(8),
    "negative shape": header(a={**ONE, "shape": [-1]}) + bytes(8),
    "offsets beyond the end": header(a={**ONE, "shape": [1], "data_offsets": [0, 2**40]})
    + bytes(8),
    "offsets backwards": header(a={**ONE, "shape": [1], "data_offsets": [8, 0]}) + bytes(8),
    "unknown type": header(a={**ONE, "shape": [1], "dtype": "OBJ"}) + bytes(8),
    "bytes left over": header(a={**ONE, "shape": [1]}) + bytes(800),
}


@pytest.mark.parametrize("content", WRONG.values(), ids=WRONG)
@pytest.mark.parametrize("unpack", [unpack_arrays, unpack_tensors])
def test_headers_that_do_not_fit_the_bytes_are_refused(unpack, content):
    with pytest.raises(ValueError, match=CANNOT):
        unpack(content, "the weights")


@pytest.mark.parametrize("unpack", [unpack_arrays, unpack_tensors])
@pytest.mark.parametrize("protocol", [2, 5])
def test_a_pickle_is_refused_and_not_run(tmp_path, unpack, protocol):
    with pytest.raises(ValueError, match=PICKLE):
        unpack(pickle.dumps(Harmful(tmp_path / "made"), protocol), "the weights")
    buffer = io.BytesIO()
    torch.save({"a": torch.ones(3)}, buffer)
    with pytest.raises(ValueError, match=PICKLE):
        unpack(buffer.getvalue(), "the weights")
    assert os.listdir(tmp_path) == []
