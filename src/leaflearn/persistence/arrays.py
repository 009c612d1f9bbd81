"""Arrays and tensors as bytes in the safetensors format: a JSON header, then plain numbers.

The format cannot hold code, and its reader checks sizes before it allocates memory: the length of
the header is limited, and every declared shape must fit the number of bytes.
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
    contiguous = {name: np.require(array, requirements="C") for name, array in arrays.items()}
    return safetensors.numpy.save(contiguous)


def unpack_arrays(content: bytes, what: str) -> dict[str, NDArray[Any]]:
    """Restore the arrays; `what` names the bytes in error messages.

    Examples
    --------
    >>> unpack_arrays(b"nonsense", "weights.safetensors")
    Traceback (most recent call last):
    ...
    ValueError: weights.safetensors cannot be read as safetensors; get a fresh copy of the model ...
    """
    arrays = _unpack(safetensors.numpy.load, content, what)
    return {name: array.copy() for name, array in arrays.items()}  # copies are writable


def pack_tensors(tensors: Mapping[str, Tensor]) -> bytes:
    """Tensors, by name, as bytes; they may share memory and have types that numpy lacks.

    Examples
    --------
    >>> import torch
    >>> unpack_tensors(pack_tensors({"a": torch.ones(2)}), "the example")
    {'a': tensor([1., 1.])}
    """
    copies = {name: tensor.detach().cpu().contiguous().clone() for name, tensor in tensors.items()}
    return safetensors.torch.save(copies)


def unpack_tensors(content: bytes, what: str) -> dict[str, Tensor]:
    """Restore the tensors; `what` names the bytes in error messages.

    Examples
    --------
    >>> import pickle
    >>> unpack_tensors(pickle.dumps([1.0, 2.0]), "weights.safetensors")
    Traceback (most recent call last):
    ...
    ValueError: weights.safetensors is a pickle, and pickles can run code, so it was not read; ...
    """
    tensors = _unpack(safetensors.torch.load, content, what)
    return {name: tensor.clone() for name, tensor in tensors.items()}  # copies are aligned


def refuse_pickle(content: bytes, what: str) -> None:
    """Raise an error if the bytes are a pickle, or an archive of torch with a pickle.

    Examples
    --------
    >>> refuse_pickle(b"something else", "the weights")
    """
    if content[:1] == b"\x80" or (content[:2] == b"PK" and b"data.pkl" in content[:1000]):
        raise ValueError(
            f"{what} is a pickle, and pickles can run code, so it was not read; get a fresh copy "
            "of the model folder."
        ) from None


def _unpack(load: Callable[[bytes], dict[str, T]], content: bytes, what: str) -> dict[str, T]:
    try:
        return load(content)
    except (SafetensorError, ValueError, KeyError, TypeError, OverflowError, MemoryError):
        refuse_pickle(content, what)
        raise ValueError(
            f"{what} cannot be read as safetensors; get a fresh copy of the model folder."
        ) from None
