"""Supervised learning from labels that disagree because of an unrecorded context.

from leaflearn import LeafClassifier, LeafRegressor
"""

from __future__ import annotations

from importlib import import_module
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

from leaflearn import _renamed

if TYPE_CHECKING:
    from leaflearn.estimators import (
        Identification,
        LeafClassifier,
        LeafRanker,
        LeafRegressor,
        WithinGroupKFold,
        load,
    )
    from leaflearn.messages import RecoveryWarning
    from leaflearn.tabular.informative_columns import find_informative_columns
    from leaflearn.tabular.table_model import TableModel

__version__ = version("leaflearn")

# Loaded on first use: torch and scikit-learn take seconds, and `leaflearn --help` needs neither.
_HOME = {
    "Identification": "leaflearn.estimators",
    "LeafClassifier": "leaflearn.estimators",
    "LeafRanker": "leaflearn.estimators",
    "LeafRegressor": "leaflearn.estimators",
    "RecoveryWarning": "leaflearn.messages",
    "TableModel": "leaflearn.tabular.table_model",
    "WithinGroupKFold": "leaflearn.estimators",
    "find_informative_columns": "leaflearn.tabular.informative_columns",
    "load": "leaflearn.estimators",
}
__all__ = [
    "Identification",
    "LeafClassifier",
    "LeafRanker",
    "LeafRegressor",
    "RecoveryWarning",
    "TableModel",
    "WithinGroupKFold",
    "__version__",
    "find_informative_columns",
    "load",
]


_renamed.install()


def __getattr__(name: str) -> Any:
    if name in _renamed.NAMES:
        _renamed.warn_renamed(f"leaflearn.{name}", f"leaflearn.{_renamed.NAMES[name]}")
        name = _renamed.NAMES[name]
    if name not in _HOME:
        raise AttributeError(f"module 'leaflearn' has no attribute {name!r}")
    return getattr(import_module(_HOME[name]), name)


def __dir__() -> list[str]:
    return sorted(__all__)
