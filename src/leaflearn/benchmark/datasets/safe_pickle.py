"""Reading pickles of published data without running what they say.

A pickle is a program for a small stack machine, and some of its instructions call any function of Python by name. Here is a machine of our
own that has only the instructions which lists, dictionaries, text, numbers and numpy arrays are written with. It calls nothing by name:
seven names stand for functions in this file, which check all that they are given. Nor can a file make it take much more memory than the
file is long: lengths are compared with what is left of the file, and arrays with the bytes that they are made of.
"""

from __future__ import annotations

import math
import os
import pickletools
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from leaflearn.benchmark.datasets.store import DataError

KINDS = {
    "b1",
    "i1",
    "i2",
    "i4",
    "i8",
    "u1",
    "u2",
    "u4",
    "u8",
    "f2",
    "f4",
    "f8",
    "c8",
    "c16",
}  # of numbers; above all, no objects
KEYS = (
    str,
    bytes,
    int,
    float,
)  # of dictionaries; not tuples, which can be nested so deeply that hashing them breaks Python
PLAIN = (*KEYS, list, tuple, dict, type(None), np.ndarray, np.generic, np.dtype)
MOST_AXES = 32
LONGEST_NAME = 80  # characters of a name that are read and shown


class _RefusedError(Exception):
    """The pickle asks for something that has no place in a file of data."""


class _DamagedError(Exception):
    """The pickle makes no sense."""

    def __init__(self, reason: str = "its parts do not fit together") -> None:
        super().__init__(reason)


def load_pickle(path: Path) -> object:
    """What the pickle holds, where it is made of lists, dictionaries, text, numbers and numpy arrays; else a `DataError`, and nothing ran.

    Text that Python 2 wrote comes as bytes, because Python 2 did not tell the two apart. Arrays are read-only. Protocols 2 to 4 are read.

    Examples
    --------
    >>> import pickle, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "numbers"
    ...     _ = path.write_bytes(pickle.dumps({"squares": np.arange(3) ** 2}, protocol=4))
    ...     print(load_pickle(path))
    {'squares': array([0, 1, 4])}
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "numbers"
    ...     _ = path.write_bytes(pickle.dumps(print, protocol=4))
    ...     load_pickle(path)
    Traceback (most recent call last):
    ...
    leaflearn.benchmark.datasets.store.DataError: '...numbers' is refused and nothing of it ran, because it asks for 'builtins.print', which data have
    no use for; fetch it again from its publisher.
    """
    try:
        with path.open("rb") as file:
            return _Machine(file).run()
    except _RefusedError as error:
        reason = f"is refused and nothing of it ran, because it asks for {error}, which data have no use for"
    except _DamagedError as error:
        reason = f"is not a whole pickle of numbers, text and arrays: {error}"
    except (
        LookupError,
        TypeError,
        ValueError,
        OverflowError,
    ):  # from values that the machine takes on trust, such as places in its memory
        reason = f"is not a whole pickle of numbers, text and arrays: {_DamagedError()}"
    except OSError as error:
        raise DataError(f"Cannot read '{path}': {error.strerror or error}.") from error
    raise DataError(f"'{path}' {reason}; fetch it again from its publisher.")


# What the names stand for


class _Unfinished:
    """An array or a type between the instruction that begins it and the one that says what it is."""

    def __init__(self, finish: Callable[[Any], object]) -> None:
        self.finish = finish
        self.places: list[
            int
        ] = []  # in the memory of the machine, which shall hold the finished one


def _begin_array(*arguments: object) -> _Unfinished:
    """Stands for `_reconstruct`, which numpy only ever asks for an empty array that is filled afterwards."""
    if (
        len(arguments) != 3
        or arguments[0] is not _NDARRAY
        or arguments[1] != (0,)
        or arguments[2] not in (b"b", "b")
    ):
        raise _RefusedError("an array that numpy would not ask for")
    return _Unfinished(_finish_array)


def _finish_array(state: tuple[Any, ...]) -> np.ndarray[Any, Any]:
    _, shape, kind, by_columns, content = state
    if not isinstance(kind, np.dtype) or not isinstance(content, bytes):
        raise _RefusedError("an array of other things than numbers")
    if (
        not isinstance(shape, tuple)
        or len(shape) > MOST_AXES
        or not all(type(length) is int and length >= 0 for length in shape)
    ):
        raise _DamagedError("an array in it has no proper shape")
    if len(content) != kind.itemsize * math.prod(shape):
        raise _DamagedError("an array in it has another size than its content")
    return np.frombuffer(content, kind).reshape(shape, order="F" if by_columns else "C")


def _begin_type(code: object = None, *_: object) -> _Unfinished:
    """Stands for `dtype`, of numbers and no others."""
    name = code.decode("latin1") if isinstance(code, bytes) else code
    if not isinstance(name, str):
        raise _RefusedError("an array of a type without a name")
    if name not in KINDS:
        raise _RefusedError(f"an array of type {name[:LONGEST_NAME]!r}")
    return _Unfinished(lambda state: _finish_type(name, state))


def _finish_type(name: str, state: tuple[Any, ...]) -> np.dtype[Any]:
    order = state[1].decode("latin1") if isinstance(state[1], bytes) else state[1]
    if order not in ("<", ">", "|", "=") or any(
        part is not None for part in state[2:5]
    ):  # parts and fields, which numbers have not
        raise _RefusedError("an array of other things than numbers")
    return np.dtype(order + name)


def _make_scalar(kind: object = None, content: object = None, *_: object) -> Any:
    """Stands for `scalar`, a single number of numpy."""
    if (
        not isinstance(kind, np.dtype)
        or not isinstance(content, bytes)
        or len(content) != kind.itemsize
    ):
        raise _RefusedError("a number that numpy would not ask for")
    return np.frombuffer(content, kind)[0]


def _encode(text: object = None, code: object = None, *_: object) -> bytes:
    """Stands for `encode`: protocol 2 has no bytes, so Python 3 writes them as text with the same numbers."""
    if not isinstance(text, str) or code not in ("latin1", b"latin1"):
        raise _RefusedError("a translation that bytes do not need")
    return text.encode("latin1")


_NDARRAY = object()  # the class, which is only ever an argument
_STAND_INS: dict[tuple[object, object], object] = {
    ("numpy", "ndarray"): _NDARRAY,
    ("numpy", "dtype"): _begin_type,
    ("numpy.core.multiarray", "_reconstruct"): _begin_array,
    ("numpy.core.multiarray", "scalar"): _make_scalar,
    ("numpy._core.multiarray", "_reconstruct"): _begin_array,  # as numpy 2 writes them
    ("numpy._core.multiarray", "scalar"): _make_scalar,
    ("_codecs", "encode"): _encode,
}
_FUNCTIONS = (_begin_type, _begin_array, _make_scalar, _encode)


def _stand_in(module: object, name: object) -> object:
    if not isinstance(module, str) or not isinstance(name, str):
        raise _RefusedError("a function without a name")
    if (module, name) not in _STAND_INS:
        raise _RefusedError(repr(f"{module}.{name}"[: 2 * LONGEST_NAME]))
    return _STAND_INS[module, name]


# The machine


class _Machine:
    """A stack, a memory, and the instructions that data are written with."""

    def __init__(self, file: BinaryIO) -> None:
        self.file, self.size = file, os.fstat(file.fileno()).st_size
        self.left, self.encoded = self.size, 0
        self.stack: list[Any] = []
        self.marks: list[int] = []  # heights of the stack that the file marked
        self.memory: dict[int, Any] = {}
        self.instructions = self._instructions()

    def run(self) -> object:
        while (code := self.read(1)) != b".":
            if code not in self.instructions:
                raise _unknown(code)
            self.instructions[code]()
        result = self.stack.pop()
        _check_finished(result)
        return result

    def _instructions(self) -> dict[bytes, Callable[[], object]]:
        def push(value: Callable[[], object]) -> Callable[[], object]:
            return lambda: self.stack.append(value())

        return {
            b"\x80": lambda: self.read(1),  # the protocol
            b"\x95": lambda: self.read(8),  # the length of a frame
            b"N": push(lambda: None),
            b"\x88": push(lambda: True),
            b"\x89": push(lambda: False),
            b"K": push(lambda: self.number(1)),
            b"M": push(lambda: self.number(2)),
            b"J": push(lambda: self.number(4, signed=True)),
            b"\x8a": push(lambda: self.number(self.number(1), signed=True)),
            b"G": push(lambda: struct.unpack(">d", self.read(8))[0]),
            b"U": push(lambda: self.read(self.number(1))),  # text of Python 2, short and long
            b"T": push(lambda: self.read(self.number(4))),
            b"C": push(lambda: self.read(self.number(1))),  # bytes, short and long
            b"B": push(lambda: self.read(self.number(4))),
            b"\x8c": push(lambda: self.read(self.number(1)).decode()),  # text, short and long
            b"X": push(lambda: self.read(self.number(4)).decode()),
            b"]": push(list),
            b"}": push(dict),
            b")": push(tuple),
            b"\x85": push(lambda: tuple(self.take(1))),
            b"\x86": push(lambda: tuple(self.take(2))),
            b"\x87": push(lambda: tuple(self.take(3))),
            b"(": lambda: self.marks.append(len(self.stack)),
            b"t": push(lambda: tuple(self.take_marked())),
            b"a": lambda: self.extend(self.take(1)),
            b"e": lambda: self.extend(self.take_marked()),
            b"s": lambda: self.update(self.take(2)),
            b"u": lambda: self.update(self.take_marked()),
            b"q": lambda: self.remember(self.number(1)),
            b"r": lambda: self.remember(self.number(4)),
            b"\x94": lambda: self.remember(len(self.memory)),
            b"h": push(lambda: self.memory[self.number(1)]),
            b"j": push(lambda: self.memory[self.number(4)]),
            b"c": push(lambda: _stand_in(self.line(), self.line())),
            b"\x93": push(lambda: _stand_in(*self.take(2))),
            b"R": push(lambda: self.call(*self.take(2))),
            b"b": push(lambda: self.finish(*self.take(2))),
        }

    def read(self, n: int) -> bytes:
        if n > self.left:  # found out before memory is taken for them
            raise _DamagedError("it ends too early")
        self.left -= n
        return self.file.read(n)

    def number(self, n: int, signed: bool = False) -> int:
        return int.from_bytes(self.read(n), "little", signed=signed)

    def line(self) -> str:
        line = self.file.readline(LONGEST_NAME)
        self.left -= len(line)
        if not self.left:  # there has to be more
            raise _DamagedError("it ends too early")
        return line.decode("latin1").removesuffix("\n")

    def take(self, n: int) -> list[Any]:
        """The last `n` values of the stack, off it."""
        start = len(self.stack) - n
        if start < 0:
            raise _DamagedError
        values = self.stack[start:]
        del self.stack[start:]
        return values

    def take_marked(self) -> list[Any]:
        return self.take(max(0, len(self.stack) - self.marks.pop()))

    def extend(self, values: list[Any]) -> None:
        """Put the values at the end of the list below them."""
        if type(self.stack[-1]) is not list:
            raise _DamagedError
        self.stack[-1].extend(values)

    def update(self, values: list[Any]) -> None:
        """Put keys and values, by turns, into the dictionary below them."""
        if type(self.stack[-1]) is not dict or not all(
            isinstance(key, KEYS) for key in values[::2]
        ):
            raise _DamagedError
        self.stack[-1].update(zip(values[::2], values[1::2], strict=True))

    def remember(self, place: int) -> None:
        self.memory[place] = self.stack[-1]
        if isinstance(self.stack[-1], _Unfinished):
            self.stack[-1].places.append(place)

    def call(self, function: Any, arguments: object) -> object:
        """What the function of this file answers."""
        if not any(function is known for known in _FUNCTIONS) or not isinstance(arguments, tuple):
            raise _RefusedError("a call of something that is no function")
        result = function(*arguments)
        if isinstance(result, bytes):
            self.encoded += len(
                result
            )  # one long text could be asked for again and again, and fill all memory
            if self.encoded > self.size:
                raise _RefusedError("more bytes than it holds")
        return result

    def finish(self, unfinished: object, state: object) -> object:
        """Make the array or type that was begun, here and in the memory."""
        if not isinstance(unfinished, _Unfinished):
            raise _RefusedError("the instruction BUILD of something else than an array")
        finished = unfinished.finish(state)
        self.memory.update(dict.fromkeys(unfinished.places, finished))
        return finished


def _unknown(code: bytes) -> Exception:
    """Why this instruction is not followed: pickles have it and data do not need it, or there is none such."""
    names = {
        instruction.code.encode("latin1"): instruction.name for instruction in pickletools.opcodes
    }
    return (
        _RefusedError(f"the instruction {names[code]}")
        if code in names
        else _DamagedError(f"there is no instruction {code!r}")
    )


def _check_finished(result: object) -> None:
    """Whoever reads the result shall find plain values and no pieces of this machine."""
    seen, waiting = set(), [result]
    while waiting:
        value = waiting.pop()
        if not isinstance(value, PLAIN):
            raise _DamagedError("an array in it was begun and not finished")
        if isinstance(value, list | tuple | dict) and id(value) not in seen:
            seen.add(id(value))
            waiting.extend(value.values() if isinstance(value, dict) else value)
