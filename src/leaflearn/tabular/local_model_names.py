"""Local models by name, or by the Python file that holds a factory."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from pathlib import Path
from typing import Any

from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from leaflearn.engines.engine import CLOSED_FORM_MODELS
from leaflearn.engines.networks import convnet
from leaflearn.tabular import settings

AUTO = "auto"  # the estimator chooses on held-out rows
NAMES = (AUTO, "linear", "smooth", "boosting", "mlp", "convnet")
FROM_FILE = "module:"


def make_named(
    name: str, is_classifier: bool, of_items: bool = False, has_effects: bool = True
) -> Any:
    """The value of `local_model` of an estimator for this name.

    Linear, smooth and boosted models have group effects, where there are enough groups for them
    (`has_effects`). Items have linear models of scikit-learn.

    Examples
    --------
    >>> make_named("auto", is_classifier=True) is None, make_named("smooth", is_classifier=False)
    (True, 'smooth')
    >>> make_named("tree", is_classifier=True)
    Traceback (most recent call last):
    ...
    ValueError: There is no local model called 'tree'; choose one of auto, linear, smooth, \
boosting, mlp, convnet, or module:PATH.py:FACTORY.
    """
    if name.startswith(FROM_FILE):
        return load_factory(name)
    if name not in NAMES:
        raise ValueError(
            f"There is no local model called {name!r}; choose one of {', '.join(NAMES)}, or "
            "module:PATH.py:FACTORY."
        )
    if name == AUTO:
        return None if has_effects else "mlp"
    if name in CLOSED_FORM_MODELS and not of_items and has_effects:
        return name
    if name == "smooth":
        raise ValueError(
            "The local model 'smooth' needs many groups of several rows; choose boosting instead."
        )
    if name == "linear":
        return make_linear(is_classifier, of_items)
    if name == "boosting":
        return (
            HistGradientBoostingClassifier() if is_classifier else HistGradientBoostingRegressor()
        )
    return convnet if name == "convnet" else "mlp"


def make_linear(is_classifier: bool, of_items: bool = False) -> Any:
    """A linear model of scikit-learn, without group effects.

    If most inputs say which item a row is about (`of_items`), it takes them unscaled: standardized,
    an item with few answers would be a large number, and would be overfitted.

    Examples
    --------
    >>> make_linear(is_classifier=False, of_items=True)
    Ridge(alpha=0.1)
    """
    if of_items:
        strength = settings.TABLES.item_penalty_inverse
        return (
            LogisticRegression(C=strength, max_iter=1000)
            if is_classifier
            else Ridge(alpha=1 / strength)
        )
    return make_pipeline(
        StandardScaler(), LogisticRegression(max_iter=1000) if is_classifier else Ridge()
    )


def load_factory(name: str) -> Callable[..., Any]:
    """The factory of torch modules that `module:PATH.py:FACTORY` names. This runs the file.

    Examples
    --------
    >>> load_factory("module:net.py")
    Traceback (most recent call last):
    ...
    ValueError: 'module:net.py' does not name a factory; write module:PATH.py:FACTORY.
    """
    place, _, attribute = name.removeprefix(FROM_FILE).rpartition(":")
    path = Path(place)
    if not place or not attribute:
        raise ValueError(f"{name!r} does not name a factory; write module:PATH.py:FACTORY.")
    if not path.is_file():
        raise FileNotFoundError(f"There is no file '{path}' with the factory '{attribute}'.")
    specification = importlib.util.spec_from_file_location(f"leaflearn_factory_{path.stem}", path)
    if specification is None or specification.loader is None:
        raise ValueError(f"'{path}' is not a Python file; its name must end in .py.")
    module = importlib.util.module_from_spec(specification)
    try:
        specification.loader.exec_module(module)
    except Exception as error:  # anything that the user's own code raises
        raise ValueError(f"'{path}' cannot be run ({type(error).__name__}: {error}).") from error
    if not callable(getattr(module, attribute, None)):
        raise ValueError(
            f"'{path}' has no function or class '{attribute}'; name one that makes a "
            "torch.nn.Module."
        )
    factory: Callable[..., Any] = getattr(module, attribute)
    return factory
