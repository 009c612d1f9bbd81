"""Which engine fits a local model.

Networks are fitted by gradient steps, scikit-learn models by refits, linear and smooth models in
closed form.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from torch import nn

from leaflearn.core.grouped_data import GroupedData
from leaflearn.engines.fitted_state import EngineResult
from leaflearn.engines.gradient import fit_by_gradient
from leaflearn.engines.parameters import Parameters
from leaflearn.engines.refit import fit_by_refitting
from leaflearn.initialization.surrogate import Start

Engine = Callable[[Parameters, int, GroupedData, Start | None, np.random.RandomState], EngineResult]

CLOSED_FORM_MODELS = ("linear", "smooth", "boosting")  # their engine finds the contexts itself

ENGINES: dict[str, Engine] = {
    "mlp": fit_by_gradient,
    "module": fit_by_gradient,
    "refit": fit_by_refitting,
}


def suits_engine(local_model: Any, kind: str) -> bool:
    """Whether fitted local models of this kind can belong to a `local_model`.

    Examples
    --------
    >>> suits_engine(None, "mlp"), suits_engine("linear", "mlp")
    (True, False)
    """
    engine = choose_engine(local_model)
    return engine == kind or (engine == "chosen" and kind in ("mlp", "closed_form"))


def choose_engine(local_model: Any) -> str:
    """The engine of a local model: "mlp", "module" (a factory), "refit" or "closed_form".

    None is "chosen": which one depends on the rows.

    Examples
    --------
    >>> from sklearn.linear_model import Ridge
    >>> choose_engine(None), choose_engine(Ridge()), choose_engine(lambda shape, n_outputs: ...)
    ('chosen', 'refit', 'module')
    """
    if isinstance(local_model, str) and local_model in CLOSED_FORM_MODELS:
        return "closed_form"
    if local_model is None:
        return "chosen"
    if isinstance(local_model, str) and local_model == "mlp":
        return "mlp"
    is_class = isinstance(local_model, type)
    if hasattr(local_model, "fit") and hasattr(local_model, "predict") and not is_class:
        return "refit"
    if isinstance(local_model, nn.Module):
        raise TypeError(
            "local_model is a torch module, but every context needs one of its own; pass a "
            "function or class that makes one."
        )
    if is_class and hasattr(local_model, "fit"):
        name = local_model.__name__
        raise TypeError(
            f"local_model={name} is a class, but an object was expected; write {name}()."
        )
    if callable(local_model):
        return "module"
    raise TypeError(
        f"local_model={local_model!r} is neither None, 'linear', 'smooth', 'boosting', 'mlp', a "
        "factory (input_shape, n_outputs) -> torch.nn.Module, nor a scikit-learn estimator object; "
        "pass one of these."
    )
