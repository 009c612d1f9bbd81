"""The section on how to reproduce the model: code, versions, and a fingerprint of the rows."""

from __future__ import annotations

import platform
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib.metadata import version
from typing import Any

from leaflearn.persistence.folder import LIBRARIES
from leaflearn.report.advice import Advice
from leaflearn.report.formatting import count
from leaflearn.report.rendering import isolate, plain
from leaflearn.report.training_rows import TrainingRows
from leaflearn.tabular.table_model import TableModel

LONGEST_CODE = 2000  # characters that are shown


@dataclass(frozen=True)
class Origin:
    """Where a model and its table come from, as far as it is known.

    Parameters
    ----------
    model, data
        The paths of the model folder and of the table.
    library
        Versions of the libraries that wrote the model.

    Examples
    --------
    >>> Origin(data="trial.csv").data
    'trial.csv'
    """

    model: str | None = None
    data: str | None = None
    library: Mapping[str, str] = field(default_factory=dict)


def describe_origin(
    model: TableModel, origin: Origin, rows: TrainingRows | None, advice: Advice
) -> dict[str, Any]:
    """The values of `origin.html`.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> from leaflearn.report.advice import python_advice
    >>> from leaflearn.tabular.table_model import TableModel
    >>> model = TableModel("effect")
    >>> model.target_, model.local_model_ = SimpleNamespace(task="regression"), "mlp"
    >>> model.preparation_ = None
    >>> model.estimator_ = SimpleNamespace(outliers_=[False] * 40, fingerprint_="0123abcd")
    >>> values = describe_origin(model, Origin(), None, python_advice(model))
    >>> values["fit"], values["n_rows"]
    ("TableModel(target='effect', random_state=0).fit(table)", '40 training rows')
    """
    here = {"python": platform.python_version(), **{name: version(name) for name in LIBRARIES}}
    return {
        "fit": plain(advice.fit, LONGEST_CODE),
        "to_fill_in": advice.fill_in_fit,
        "seed": model.random_state,
        "task": model.target_.task,
        "local_model": isolate(model.local_model_),
        "n_rows": count(len(model.estimator_.outliers_), "training row"),
        "fingerprint": model.estimator_.fingerprint_,
        "is_same": None if rows is None else rows.is_same,
        "libraries": [
            [isolate(name), isolate(origin.library.get(name, "unknown")), here.get(name, "none")]
            for name in dict.fromkeys([*here, *origin.library])
        ],
    }
