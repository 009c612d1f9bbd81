"""The archive in which skops keeps a model, looked through before skops opens it.

It says for itself how large everything in it is. Here these sizes are held against the bytes that are there.
"""

from __future__ import annotations

import io
import json
import math
import zipfile
from collections.abc import Iterator
from typing import IO, Any

import numpy as np

LARGEST_SPARSE = 2**30  # bytes of a sparse matrix, which alone may be compressed


def check_archive(content: bytes) -> None:
    """Refuse archives that would need more memory than they have bytes, or read what is not theirs, before anything is built.

    Examples
    --------
    >>> buffer = io.BytesIO()
    >>> with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
    ...     archive.writestr("schema.json", " " * 100_000)
    >>> check_archive(buffer.getvalue())
    Traceback (most recent call last):
    ...
    ValueError: the archive is larger inside than outside
    """
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        members = archive.infolist()
        if any(m.compress_type != zipfile.ZIP_STORED for m in members) or sum(
            m.file_size for m in members
        ) > len(content):
            raise ValueError("the archive is larger inside than outside")
        shapes = {}
        for member in members:
            with archive.open(member) as file:
                if member.filename.endswith(".npy"):
                    shapes[member.filename] = _check_array(file, member.file_size)
                elif member.filename.endswith(".npz"):
                    _check_sparse(file)
        _check_trees(list(_walk(json.loads(archive.read("schema.json")))), shapes)


def _check_array(file: IO[bytes], n_bytes: int) -> tuple[int, ...]:
    """The shape of an array, which has to fit the bytes that are there."""
    read_header = {
        (1, 0): np.lib.format.read_array_header_1_0,
        (2, 0): np.lib.format.read_array_header_2_0,
    }
    shape, _, dtype = read_header[np.lib.format.read_magic(file)](file)
    if dtype.hasobject or math.prod(shape) * dtype.itemsize != n_bytes - file.tell():
        raise ValueError(f"an array of shape {shape} and type {dtype} does not fit its bytes")
    return shape


def _check_sparse(file: IO[bytes]) -> None:
    with zipfile.ZipFile(file) as archive:
        if sum(member.file_size for member in archive.infolist()) > LARGEST_SPARSE:
            raise ValueError("a sparse matrix is too large")
        for member in archive.infolist():
            with archive.open(member) as array:
                _check_array(array, member.file_size)


def _check_trees(nodes: list[dict[str, Any]], shapes: dict[str, tuple[int, ...]]) -> None:
    """The constructor of a tree believes how many outputs it is told, and reads as many numbers of classes."""
    arguments: dict[Any, dict[str, Any]] = {}
    for node in nodes:
        if node.get("__loader__") == "TreeNode" or (
            node.get("__module__"),
            node.get("__class__"),
        ) == ("sklearn.tree._tree", "Tree"):
            args = node["__reduce__"]["args"]
            _, classes, n_outputs = args["content"]
            if node["__loader__"] != "TreeNode" or shapes[classes["file"]] != (
                int(n_outputs["content"]),
            ):
                raise ValueError("a tree has another number of outputs than it says")
            arguments |= {each["__id__"]: each for each in (args, classes, n_outputs)}
    # Of objects with the same number skops builds the first that it meets: there may be no other.
    if any(arguments.get(node.get("__id__"), node) != node for node in nodes):
        raise ValueError("a tree is described twice")


def _walk(schema: Any) -> Iterator[dict[str, Any]]:
    """All dictionaries in a schema, at whatever depth."""
    waiting = [schema]
    while waiting:
        item = waiting.pop()
        if isinstance(item, dict):
            yield item
        waiting += (
            list(item.values())
            if isinstance(item, dict)
            else item
            if isinstance(item, list)
            else []
        )
