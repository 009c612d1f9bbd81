"""Arrays and tensors as bytes, in the safetensors format: a short header in JSON, then plain numbers.

The format has no place for code, and its reader checks before it allocates: the header is read by its declared length, which is bounded,
and every declared shape has to fit the bytes that are there.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import numpy as np
import safetensors.numpy
import safetensors.torch
from numpy.typing import NDArray
from safetensors import SafetensorError
from torch import Tensor

T = TypeVar("T")


def pack_arrays(arrays: Mapping[str, NDArray[Any]]) -> bytes:
    """Arrays of numbers, by name, as bytes.

    Examples
    --------
    >>> unpack_arrays(pack_arrays({"a": np.arange(3)}), "the example")
    {'a': array([0, 1, 2])}
    """
    return safetensors.numpy.save(
        {name: np.require(array, requirements="C") for name, array in arrays.items()}
    )


def unpack_arrays(content: bytes, what: str) -> dict[str, NDArray[Any]]:
    """The arrays again; `what` names the bytes where they are something else.

    Examples
    --------
    >>> unpack_arrays(b"nonsense", "weights.safetensors")
    Traceback (most recent call last):
    ...
    ValueError: weights.safetensors cannot be read as safetensors; get a fresh copy of the model folder.
    """
    return {
        name: array.copy() for name, array in _unpack(safetensors.numpy.load, content, what).items()
    }  # copies can be written to


def pack_tensors(tensors: Mapping[str, Tensor]) -> bytes:
    """Tensors, by name, as bytes; they may share memory, and be of types that numpy does not know.

    Examples
    --------
    >>> import torch
    >>> unpack_tensors(pack_tensors({"a": torch.ones(2)}), "the example")
    {'a': tensor([1., 1.])}
    """
    return safetensors.torch.save(
        {name: tensor.detach().cpu().contiguous().clone() for name, tensor in tensors.items()}
    )


def unpack_tensors(content: bytes, what: str) -> dict[str, Tensor]:
    """The tensors again; `what` names the bytes where they are something else.

    Examples
    --------
    >>> import pickle
    >>> unpack_tensors(pickle.dumps([1.0, 2.0]), "weights.safetensors")
    Traceback (most recent call last):
    ...
    ValueError: weights.safetensors is a pickle, and pickles can run code, so it was not read; get a fresh copy of the model folder.
    """
    return {
        name: tensor.clone()
        for name, tensor in _unpack(safetensors.torch.load, content, what).items()
    }  # at aligned addresses


def refuse_pickle(content: bytes, what: str) -> None:
    """Say it where bytes that cannot be read are a pickle, or an archive of torch that holds one.

    Examples
    --------
    >>> refuse_pickle(b"something else", "the weights")
    """
    if content[:1] == b"\x80" or (content[:2] == b"PK" and b"data.pkl" in content[:1000]):
        raise ValueError(
            f"{what} is a pickle, and pickles can run code, so it was not read; get a fresh copy of the model folder."
        ) from None


def _unpack(load: Callable[[bytes], dict[str, T]], content: bytes, what: str) -> dict[str, T]:
    try:
        return load(content)
    except (SafetensorError, ValueError, KeyError, TypeError, OverflowError, MemoryError):
        refuse_pickle(content, what)
        raise ValueError(
            f"{what} cannot be read as safetensors; get a fresh copy of the model folder."
        ) from None
