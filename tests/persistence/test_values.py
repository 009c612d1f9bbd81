"""Values are restored exactly, type included; other types raise an error."""

import datetime
import json
import re
import uuid
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as st_numpy

from leaflearn.persistence import from_json, to_json


@dataclass(frozen=True)
class Point:
    """A class in the list of the caller."""

    x: float
    y: object = None


@dataclass(frozen=True)
class Unlisted:
    """A class that is not in the list."""

    x: float = 0.0


def through_json(value, **options):
    arrays = {}
    content = json.loads(json.dumps(to_json(value, arrays, **options), allow_nan=False))
    return from_json(content, arrays, **options)


def bits(array):
    """The bytes of numbers, with one representation for all NaNs."""
    return (
        np.where(np.isnan(array), np.array(np.nan, array.dtype), array).tobytes()
        if array.dtype.kind == "f"
        else array.tobytes()
    )


def same(a, b):
    if isinstance(a, np.ndarray):
        is_same = a.dtype.kind == b.dtype.kind and a.shape == b.shape
        if not is_same or a.dtype.kind in "OU":
            return is_same and same(a.tolist(), b.tolist())
        return a.dtype == b.dtype and bits(a) == bits(b)
    if isinstance(a, list | tuple):
        return type(a) is type(b) and len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, dict):
        return list(a) == list(b) and all(same(a[key], b[key]) for key in a)
    return type(a) is type(b) and (a == b or (a != a and b != b)) and repr(a) == repr(b)


plain = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text()
    | st.dates()
    | st.datetimes().map(lambda date: date.replace(fold=0))
)
nested = st.recursive(
    plain,
    lambda inner: (
        st.lists(inner)
        | st.lists(inner).map(tuple)
        | st.dictionaries(st.text(), inner)
        | st.dictionaries(st.integers() | st.tuples(st.text(), st.integers()), inner)
    ),
    max_leaves=10,
)
numbers = st_numpy.scalar_dtypes().filter(
    lambda dtype: dtype.kind in "biuf" and dtype.itemsize <= 8
)


@given(nested)
def test_plain_values_are_restored_exactly(value):
    assert same(through_json(value), value)


@given(st_numpy.arrays(numbers, st_numpy.array_shapes(min_dims=0, min_side=0, max_side=12)))
def test_arrays_of_numbers_are_restored_exactly(array):
    expected = array.astype(array.dtype.newbyteorder("="))
    assert same(through_json(array), expected)
    assert same(through_json(array.T), expected.T)
    assert same(from_json(json.loads(json.dumps(to_json(array)))), expected)  # all in the JSON


@given(
    st_numpy.from_dtype(np.dtype("float32"))
    | st_numpy.from_dtype(np.dtype("int16"))
    | st_numpy.from_dtype(np.dtype("bool"))
)
def test_scalars_of_numpy_are_restored(value):
    assert same(through_json(value), value)


@pytest.mark.parametrize(
    "labels",
    [
        ["a", "bb", "ä"],
        [("site", 1), ("site", 2.5)],
        [1, "one", 2.5, None, True, datetime.date(2026, 1, 31)],
        np.array(["2026-01-31", "NaT"], dtype="datetime64[ns]"),
        np.array([1, 2], dtype="timedelta64[h]"),
        np.array(["b", "a"] * 200),
        np.datetime64("2026-01-31T10:00"),
        np.str_("a"),
        datetime.datetime(2026, 1, 31, 10, tzinfo=datetime.UTC),
    ],
)
def test_labels_of_many_types_are_restored(labels):
    values = labels if not isinstance(labels, list) else np.array([None, *labels], dtype=object)[1:]
    assert same(through_json(values), values)


def test_large_arrays_are_stored_outside_of_the_json_and_keep_their_memory_order():
    arrays = {}
    table = np.asfortranarray(np.arange(600.0).reshape(200, 3))
    content = to_json({"history": [table]}, arrays, name="fitted")
    assert content == {"history": [{"$transposed": {"$array": "fitted.history.0"}}]}
    again = from_json(content, arrays)["history"][0]
    assert again.flags.f_contiguous
    assert not again.flags.c_contiguous


def test_a_random_state_continues():
    generator = np.random.RandomState(3)
    generator.normal(size=3)  # an odd number leaves a cached value
    again = through_json(generator)
    np.testing.assert_array_equal(again.normal(size=5), generator.normal(size=5))


def test_only_classes_in_the_list_of_the_caller_are_restored():
    assert through_json(Point(1.5, (2, Point(3.0))), classes={"Point": Point}) == Point(
        1.5, (2, Point(3.0))
    )
    with pytest.raises(ValueError, match="of type Unlisted, which a model folder cannot hold"):
        to_json(Unlisted(), classes={"Point": Point})
    with pytest.raises(ValueError, match="of type Point, which a model folder cannot hold"):
        to_json(Point(1.0), classes={"Point": Unlisted})
    with pytest.raises(KeyError):
        from_json({"$object": ["system", {}]}, classes={"Point": Point})


@pytest.mark.parametrize(
    "value",
    [
        {1},
        b"bytes",
        1j,
        object,
        print,
        uuid.UUID(int=0),
        np.array([1j]),
        np.zeros(1, dtype="i4,f4"),
        np.array([b"a"]),
        frozenset(),
    ],
)
def test_other_types_are_refused(value):
    with pytest.raises(
        ValueError, match=r"^groups_ holds .* which a model folder cannot hold; use text, numbers"
    ):
        to_json(value, name="groups_")


def test_the_error_names_the_place_and_the_type():
    sentence = (
        "groups_.1 holds {2}, of type set, which a model folder cannot hold; "
        "use text, numbers, dates, or tuples of them."
    )
    with pytest.raises(ValueError, match=f"^{re.escape(sentence)}$"):
        to_json([1, {2}], name="groups_")


@pytest.mark.parametrize(
    "content",
    [
        {"$unknown": 1},
        {"$array": "../secret"},
        {"$values": ["O8", [1], [1]]},
        {"$values": ["<U1000000000", [1], ["a"]]},
        {"$values": ["float64", [2**50], [1.0]]},
        {"$values": ["float64", [1], ["a"]]},
        {"$values": ["float64"]},
        {"$dates": ["datetime64[7s]", {"$values": ["int64", [1], [1]]}]},
        {"$dates": ["float64", {"$values": ["int64", [1], [1]]}]},
        {"$date": "tomorrow"},
        {"$float": "many"},
        {"$random_state": {"bit_generator": "os.system"}},
        {"$scalar": {"$values": ["float64", [2], "ab"]}},
    ],
)
def test_json_that_to_json_does_not_write_raises_an_ordinary_error(content):
    with pytest.raises((ValueError, KeyError, TypeError)):
        from_json(content)
