"""Plain values as JSON that restores them exactly.

Values may be numbers, text, dates, tuples, arrays, and dataclasses from a list. Values that JSON
has are stored as they are. Others become a dictionary with a single key, a tag that begins with
`$`:

    {"$float": "nan"}                   numbers that are not finite
    {"$tuple": [1, 2]}                  tuples
    {"$dict": [[1, "a"], [2, "b"]]}     dictionaries with keys that are not text
    {"$scalar": {"$values": ...}}       scalars of numpy
    {"$date": "2026-01-31"}             dates; likewise $datetime
    {"$dates": ["datetime64[D]", ...]}  arrays of dates, as integers
    {"$values": ["int64", [2], [1, 2]]} arrays with type and shape, also of text and objects
    {"$array": "scores"}                large arrays of numbers, which are stored elsewhere by name
    {"$transposed": ...}                arrays in column-major order, on which the last digits of
                                        sums depend
    {"$object": ["Huber", {...}]}       dataclasses from a list that the caller passes
    {"$random_state": {...}}            the state of a generator of numpy
"""

from __future__ import annotations

import datetime
import math
from collections.abc import Mapping
from dataclasses import fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

Arrays = dict[str, NDArray[Any]]
Classes = Mapping[str, type[Any]]

MAX_JSON_SIZE = 100  # larger arrays of numbers are stored outside of the JSON
NUMBERS = (
    *("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"),
    *("float16", "float32", "float64"),
)
DATES = {datetime.date: "$date", datetime.datetime: "$datetime"}
UNITS = ("Y", "M", "W", "D", "h", "m", "s", "ms", "us", "ns")  # of dates of numpy


def to_json(
    value: Any, arrays: Arrays | None = None, classes: Classes | None = None, name: str = "value"
) -> Any:
    """A value as plain JSON.

    Parameters
    ----------
    value
        None, text, numbers, dates, scalars and arrays of numpy, dataclasses of `classes`, and
        lists, tuples and dictionaries of these.
    arrays
        Receives the larger arrays of numbers, by names that begin with `name`. Without it, all
        arrays are stored in the JSON.
    classes
        Dataclasses that may be stored, by name.
    name
        Name of the value, used in the names of arrays and in error messages.

    Examples
    --------
    >>> to_json({"site": ("a", 1), "noise": float("nan")})
    {'site': {'$tuple': ['a', 1]}, 'noise': {'$float': 'nan'}}
    >>> to_json({1, 2}, name="groups_")
    Traceback (most recent call last):
    ...
    ValueError: groups_ holds {1, 2}, of type set, which a model folder cannot hold; use text, ...
    """
    kind = type(value)
    if value is None or kind in (bool, int, str):
        return value
    if kind is float:
        return value if math.isfinite(value) else {"$float": repr(value)}
    if kind in (list, tuple):
        items = [to_json(item, arrays, classes, f"{name}.{i}") for i, item in enumerate(value)]
        return items if kind is list else {"$tuple": items}
    if kind is dict:
        return _dict_to_json(value, arrays, classes, name)
    if kind in DATES:
        return {DATES[kind]: value.isoformat()}
    if isinstance(value, np.generic):
        return {"$scalar": _array_to_json(np.asarray(value), None, classes, name)}
    if kind is np.ndarray:
        return _array_to_json(value, arrays, classes, name)
    if kind is np.random.RandomState:
        return {"$random_state": to_json(value.get_state(legacy=False), arrays, classes, name)}
    if classes and classes.get(kind.__name__) is kind:
        content = {
            saved: to_json(getattr(value, own), arrays, classes, f"{name}.{saved}")
            for own, saved in _saved_names(kind).items()
        }
        return {"$object": [kind.__name__, content]}
    raise ValueError(
        f"{name} holds {value!r}, of type {kind.__name__}, which a model folder cannot hold; use "
        "text, numbers, dates, or tuples of them."
    )


def from_json(
    content: Any, arrays: Mapping[str, NDArray[Any]] | None = None, classes: Classes | None = None
) -> Any:
    """Restore the value; other JSON than that of `to_json` raises Value-, Key- or TypeError.

    Examples
    --------
    >>> from_json({"site": {"$tuple": ["a", 1]}, "noise": {"$float": "nan"}})
    {'site': ('a', 1), 'noise': nan}
    """
    if isinstance(content, list):
        return [from_json(item, arrays, classes) for item in content]
    if not isinstance(content, dict):
        return content
    tag = next(iter(content), "")
    if not tag.startswith("$"):
        return {key: from_json(value, arrays, classes) for key, value in content.items()}
    inner = content[tag]
    match tag:
        case "$float":
            return float(inner)
        case "$tuple":
            return tuple(from_json(inner, arrays, classes))
        case "$dict":
            return {
                from_json(key, arrays, classes): from_json(value, arrays, classes)
                for key, value in inner
            }
        case "$date":
            return datetime.date.fromisoformat(inner)
        case "$datetime":
            return datetime.datetime.fromisoformat(inner)
        case "$scalar":
            return from_json(inner)[()]
        case "$values":
            dtype, shape, values = inner
            return _values_from_json(dtype, shape, from_json(values, None, classes))
        case "$dates":
            return _dates_from_json(inner[0], from_json(inner[1], arrays))
        case "$array":
            return (arrays or {})[inner]
        case "$transposed":
            return from_json(inner, arrays, classes).T
        case "$random_state":
            generator = np.random.RandomState()
            generator.set_state(from_json(inner, arrays))
            return generator
        case "$object":
            known = (classes or {})[inner[0]]
            own = {saved: name for name, saved in _saved_names(known).items()}
            values = from_json(inner[1], arrays, classes)
            return known(**{own.get(name, name): values[name] for name in values})
    raise ValueError(f"the tag {tag} is not supported")


def _saved_names(kind: type[Any]) -> dict[str, str]:
    """The fields of a dataclass, and the names under which they are saved.

    A field that was renamed keeps its first name in files: `field(metadata={"saved_as": ...})`.
    """
    return {field.name: field.metadata.get("saved_as", field.name) for field in fields(kind)}


def _dict_to_json(
    value: dict[Any, Any], arrays: Arrays | None, classes: Classes | None, name: str
) -> Any:
    items = [(key, to_json(item, arrays, classes, f"{name}.{key}")) for key, item in value.items()]
    if all(type(key) is str and not key.startswith("$") for key in value):
        return dict(items)
    return {
        "$dict": [[to_json(key, None, classes, f"a key of {name}"), item] for key, item in items]
    }


def _array_to_json(
    array: NDArray[Any], arrays: Arrays | None, classes: Classes | None, name: str
) -> Any:
    array = array.astype(array.dtype.newbyteorder("="), copy=False)
    if array.ndim > 1 and array.flags.f_contiguous and not array.flags.c_contiguous:
        return {"$transposed": _array_to_json(array.T, arrays, classes, name)}
    kind = array.dtype.kind
    if kind in "Mm" and _unit_of(str(array.dtype)):
        numbers = _array_to_json(array.view(np.int64), arrays, classes, name)
        return {"$dates": [str(array.dtype), numbers]}
    if kind not in "UO" and array.dtype.name not in NUMBERS:
        raise ValueError(
            f"{name} holds an array of type {array.dtype}, which a model folder cannot hold; use "
            "text, numbers or dates."
        )
    if arrays is not None and kind not in "UO" and array.size > MAX_JSON_SIZE:
        arrays[name] = array
        return {"$array": name}
    dtype = {"U": "str", "O": "object"}.get(kind, array.dtype.name)
    values = to_json(array.ravel().tolist(), None, classes, name)
    return {"$values": [dtype, list(array.shape), values]}


def _values_from_json(dtype: str, shape: list[int], items: list[Any]) -> NDArray[Any]:
    if dtype not in (*NUMBERS, "str", "object"):
        raise ValueError(f"arrays of type {dtype} are not supported")
    array = np.empty(len(items), dtype=object)
    array[:] = items  # np.array would turn tuples into a matrix
    return array.astype(dtype).reshape(shape)


def _dates_from_json(dtype: str, numbers: NDArray[Any]) -> NDArray[Any]:
    if not _unit_of(dtype) or numbers.dtype != np.int64:
        raise ValueError(f"dates of type {dtype} are not supported")
    return numbers.view(dtype)


def _unit_of(dtype: str) -> str | None:
    return next(
        (unit for unit in UNITS if dtype in (f"datetime64[{unit}]", f"timedelta64[{unit}]")), None
    )
