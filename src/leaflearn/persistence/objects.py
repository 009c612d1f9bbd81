"""Fitted scikit-learn models as bytes, by skops: a schema in JSON and plain arrays, no code.

Only types of a fixed list are saved and loaded: those that skops trusts by itself (estimators of
scikit-learn, numbers of numpy, plain Python values), and those of `TRUSTED`. Functions are not
among them, except elementwise ones of numpy and scipy.

skops writes a zip archive that declares the sizes of everything in it. `check_archive` compares
them with the actual bytes before skops builds anything.
"""

from __future__ import annotations

import io
import json
import math
import zipfile
from collections.abc import Iterator, Sequence
from typing import IO, Any

import numpy as np

from leaflearn.persistence.arrays import refuse_pickle

# Types of leaflearn that a model folder may hold. Where one moves, its new name is added here, and
# the old one stays for the folders that have it.
OWN_TYPES = (
    "leaflearn.engines.refit_task.ConstantModel",
    "leaflearn.core.row_losses.ConstantModel",  # 0.1.0
)
KERNELS = (
    *("ConstantKernel", "WhiteKernel", "RBF", "Matern", "RationalQuadratic", "ExpSineSquared"),
    *("DotProduct", "Sum", "Product", "Exponentiation", "CompoundKernel"),
)
TRUSTED = (  # further types that occur in fitted estimators of scikit-learn
    *OWN_TYPES,
    "numpy.dtype",
    *(f"scipy.sparse._{k}.{k}_{form}" for k in ("csr", "csc") for form in ("matrix", "array")),
    "sklearn._loss.loss.HalfTweedieLoss",
    "sklearn._loss.loss.HalfTweedieLossIdentity",
    "sklearn.calibration._CalibratedClassifier",
    "sklearn.calibration._SigmoidCalibration",
    "sklearn.ensemble._hist_gradient_boosting.predictor.TreePredictor",  # see `check_sound`
    "sklearn.gaussian_process._gpc._BinaryGaussianProcessClassifierLaplace",
    *(f"sklearn.gaussian_process.kernels.{kernel}" for kernel in KERNELS),
    "sklearn.neural_network._stochastic_optimizers.AdamOptimizer",
    "sklearn.neural_network._stochastic_optimizers.SGDOptimizer",
    "sklearn.tree._tree.Tree",  # see `check_sound`
    "sklearn.utils._bunch.Bunch",
)
MAX_SPARSE_BYTES = 2**30  # of a sparse matrix, the only part that may be compressed


def pack_objects(value: Any, what: str, also: Sequence[str] = ()) -> bytes:
    """A scikit-learn estimator, or lists and dictionaries of them, as bytes.

    Parameters
    ----------
    value
        The estimator.
    what
        Its name in error messages.
    also
        Full names of further trusted types.

    Examples
    --------
    >>> from sklearn.linear_model import Ridge
    >>> unpack_objects(pack_objects([Ridge(alpha=2.0)], "the example"), "the example")
    [Ridge(alpha=2.0)]
    >>> from sklearn.preprocessing import FunctionTransformer
    >>> pack_objects(FunctionTransformer(print), "local_model")
    Traceback (most recent call last):
    ...
    ValueError: local_model holds builtins.print, which is not trusted in a model folder; ...
    """
    import skops.io

    try:
        content = skops.io.dumps(value)
    except Exception as error:  # types that skops does not support raise various errors
        reason = _first_line(error)
        raise ValueError(
            f"{what} cannot be kept in a model folder ({reason}); choose scikit-learn's own "
            "estimators."
        ) from error
    unpack_objects(content, what, also)  # do not save what could not be loaded
    return content


def unpack_objects(content: bytes, what: str, also: Sequence[str] = ()) -> Any:
    """Restore the estimator; archives with types that are not trusted are refused before any use.

    Examples
    --------
    >>> import pickle
    >>> unpack_objects(pickle.dumps(print), "local-models.skops")
    Traceback (most recent call last):
    ...
    ValueError: local-models.skops is a pickle, and pickles can run code, so it was not read; ...
    """
    import skops.io  # this and the next import load all of scikit-learn

    from leaflearn.persistence.soundness import check_sound

    trusted = [*TRUSTED, *also]
    try:
        check_archive(content)
        types = skops.io.get_untrusted_types(data=content)
        refused = [name for name in types if name not in trusted]
        value = None if refused else skops.io.loads(content, trusted=trusted)
        check_sound(value)
    except Exception as error:  # a damaged file may raise any error
        refuse_pickle(content, what)
        raise ValueError(
            f"{what} cannot be read ({_first_line(error)}); get a fresh copy, or save it again "
            "with this version."
        ) from error
    if refused:
        advice = (
            "choose algorithm='brute'"
            if "neighbors" in "".join(refused)
            else "choose scikit-learn's own estimators without it"
        )
        raise ValueError(
            f"{what} holds {' and '.join(refused[:3])}, which is not trusted in a model folder; "
            f"{advice}."
        )
    return value


def check_archive(content: bytes) -> None:
    """Raise an error for archives that need more memory than their size, or read beyond it.

    Examples
    --------
    >>> buffer = io.BytesIO()
    >>> with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
    ...     archive.writestr("schema.json", " " * 100_000)
    >>> check_archive(buffer.getvalue())
    Traceback (most recent call last):
    ...
    ValueError: the archive expands to more bytes than it has
    """
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        members = archive.infolist()
        is_compressed = any(member.compress_type != zipfile.ZIP_STORED for member in members)
        if is_compressed or sum(member.file_size for member in members) > len(content):
            raise ValueError("the archive expands to more bytes than it has")
        shapes = {}
        for member in members:
            with archive.open(member) as file:
                if member.filename.endswith(".npy"):
                    shapes[member.filename] = _check_array(file, member.file_size)
                elif member.filename.endswith(".npz"):
                    _check_sparse(file)
        _check_trees(list(_walk(json.loads(archive.read("schema.json")))), shapes)


def _check_array(file: IO[bytes], n_bytes: int) -> tuple[int, ...]:
    """The declared shape of an array, which must fit the number of bytes."""
    read_header = {
        (1, 0): np.lib.format.read_array_header_1_0,
        (2, 0): np.lib.format.read_array_header_2_0,
    }
    shape, _, dtype = read_header[np.lib.format.read_magic(file)](file)
    n_left = n_bytes - file.tell()
    if dtype.hasobject or math.prod(shape) * dtype.itemsize != n_left:
        raise ValueError(f"an array of shape {shape} and type {dtype} does not fit its bytes")
    return shape


def _check_sparse(file: IO[bytes]) -> None:
    with zipfile.ZipFile(file) as archive:
        if sum(member.file_size for member in archive.infolist()) > MAX_SPARSE_BYTES:
            raise ValueError("a sparse matrix is too large")
        for member in archive.infolist():
            with archive.open(member) as array:
                _check_array(array, member.file_size)


def _check_trees(nodes: list[dict[str, Any]], shapes: dict[str, tuple[int, ...]]) -> None:
    """Check the declared number of outputs of every tree.

    The constructor of a tree reads as many class counts as it has outputs, without a check.
    """
    arguments: dict[Any, dict[str, Any]] = {}
    for node in nodes:
        names = (node.get("__module__"), node.get("__class__"))
        if node.get("__loader__") == "TreeNode" or names == ("sklearn.tree._tree", "Tree"):
            args = node["__reduce__"]["args"]
            _, classes, n_outputs = args["content"]
            n_declared = int(n_outputs["content"])
            if node["__loader__"] != "TreeNode" or shapes[classes["file"]] != (n_declared,):
                raise ValueError("a tree has another number of outputs than it declares")
            arguments |= {each["__id__"]: each for each in (args, classes, n_outputs)}
    # skops builds the first of several objects with the same id, so ids must be unique here.
    if any(arguments.get(node.get("__id__"), node) != node for node in nodes):
        raise ValueError("a tree is described twice")


def _walk(schema: Any) -> Iterator[dict[str, Any]]:
    """All dictionaries in a schema, at any depth."""
    waiting = [schema]
    while waiting:
        item = waiting.pop()
        if isinstance(item, dict):
            yield item
            waiting += item.values()
        elif isinstance(item, list):
            waiting += item


def _first_line(error: Exception) -> str:
    reason = str(error).splitlines()[0] if str(error) else "no reason given"
    return f"{type(error).__name__}: {reason}".rstrip(".")
