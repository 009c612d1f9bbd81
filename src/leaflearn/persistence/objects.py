"""Fitted scikit-learn models as bytes, by skops: a schema in JSON and plain arrays, where pickle would have a program.

Only types of a fixed list are taken, on saving and on loading: scikit-learn's own estimators, numpy's numbers and plain Python values,
which skops trusts by itself, and those of `TRUSTED`. Functions are not among them, but for numpy's and scipy's elementwise ones.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from leaflearn.persistence.archives import check_archive
from leaflearn.persistence.arrays import refuse_pickle

TRUSTED = (  # what fitted estimators of scikit-learn are made of, beyond what skops trusts
    "leaflearn.core.row_losses.ConstantModel",  # where version 0.1.0 had it
    "leaflearn.engines.refit_task.ConstantModel",
    "numpy.dtype",
    *(
        f"scipy.sparse._{kind}.{kind}_{form}"
        for kind in ("csr", "csc")
        for form in ("matrix", "array")
    ),
    "sklearn._loss.loss.HalfTweedieLoss",
    "sklearn._loss.loss.HalfTweedieLossIdentity",
    "sklearn.calibration._CalibratedClassifier",
    "sklearn.calibration._SigmoidCalibration",
    "sklearn.ensemble._hist_gradient_boosting.predictor.TreePredictor",  # skops leaves it and Tree to us, see `check_sound`
    "sklearn.gaussian_process._gpc._BinaryGaussianProcessClassifierLaplace",
    *(
        f"sklearn.gaussian_process.kernels.{kernel}"
        for kernel in (
            "ConstantKernel",
            "WhiteKernel",
            "RBF",
            "Matern",
            "RationalQuadratic",
            "ExpSineSquared",
            "DotProduct",
        )
    ),
    *(
        f"sklearn.gaussian_process.kernels.{operator}"
        for operator in ("Sum", "Product", "Exponentiation", "CompoundKernel")
    ),
    "sklearn.neural_network._stochastic_optimizers.AdamOptimizer",
    "sklearn.neural_network._stochastic_optimizers.SGDOptimizer",
    "sklearn.tree._tree.Tree",
    "sklearn.utils._bunch.Bunch",
)


def pack_objects(value: Any, what: str, also: Sequence[str] = ()) -> bytes:
    """A scikit-learn estimator, or lists and dictionaries of them, as bytes that `unpack_objects` will take.

    Parameters
    ----------
    value
        The estimator.
    what
        What it is, for errors.
    also
        Full names of further types that are trusted.

    Examples
    --------
    >>> from sklearn.linear_model import Ridge
    >>> unpack_objects(pack_objects([Ridge(alpha=2.0)], "the example"), "the example")
    [Ridge(alpha=2.0)]
    >>> from sklearn.preprocessing import FunctionTransformer
    >>> pack_objects(FunctionTransformer(print), "local_model")
    Traceback (most recent call last):
    ...
    ValueError: local_model holds builtins.print, which is not trusted in a model folder; choose scikit-learn's own estimators without it.
    """
    import skops.io

    try:
        content = skops.io.dumps(value)
    except Exception as error:  # whatever a type that skops does not know brings with it
        reason = _first_line(error)
        raise ValueError(
            f"{what} cannot be kept in a model folder ({reason}); choose scikit-learn's own estimators."
        ) from error
    unpack_objects(content, what, also)  # what could not be loaded is not saved
    return content


def unpack_objects(content: bytes, what: str, also: Sequence[str] = ()) -> Any:
    """The estimator again; an archive with any other type than the trusted ones is refused, and nothing of it is run.

    Examples
    --------
    >>> import pickle
    >>> unpack_objects(pickle.dumps(print), "local-models.skops")
    Traceback (most recent call last):
    ...
    ValueError: local-models.skops is a pickle, and pickles can run code, so it was not read; get a fresh copy of the model folder.
    """
    import skops.io  # this and the next load all of scikit-learn

    from leaflearn.persistence.soundness import check_sound

    trusted = [*TRUSTED, *also]
    try:
        check_archive(content)
        strange = [
            name for name in skops.io.get_untrusted_types(data=content) if name not in trusted
        ]
        value = None if strange else skops.io.loads(content, trusted=trusted)
        check_sound(value)
    except Exception as error:  # a foreign file may be wrong in any way
        refuse_pickle(content, what)
        raise ValueError(
            f"{what} cannot be read ({_first_line(error)}); get a fresh copy, or save it again with this version."
        ) from error
    if strange:
        advice = (
            "choose algorithm='brute'"
            if "neighbors" in "".join(strange)
            else "choose scikit-learn's own estimators without it"
        )
        raise ValueError(
            f"{what} holds {' and '.join(strange[:3])}, which is not trusted in a model folder; {advice}."
        )
    return value


def _first_line(error: Exception) -> str:
    return f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else 'no reason given'}".rstrip(
        "."
    )
