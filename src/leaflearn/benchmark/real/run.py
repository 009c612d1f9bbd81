"""One run of the comparison on real tables: fit one method to one split of a table, and measure it.

The methods are the peers and leaflearn's own estimators. To measure another one, add it to
`METHODS`.
"""

from __future__ import annotations

import os
import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from leaflearn.benchmark.json_lines import Record
from leaflearn.benchmark.real.contract import (
    Fitted,
    Floats,
    Ints,
    Method,
    MissingProgramError,
    NotApplicableError,
    Rows,
)
from leaflearn.benchmark.real.peers import PEERS
from leaflearn.benchmark.real.splits import Split, make_splits
from leaflearn.benchmark.real.tables import RealData, RealTable
from leaflearn.estimators import LeafClassifier, LeafRegressor

OK, NOT_APPLICABLE, MISSING, FAILED = "ok", "not applicable", "missing", "failed"
KNOWN = "known"  # the cell of groups that were learnt from; the others are "new 1", "new 5", ...
RMSE, ERROR_RATE = "rmse", "error rate"
MAX_REASON = 300  # characters of an error message in a record


@dataclass(frozen=True, eq=False)
class Leaf:
    """A fitted estimator of leaflearn."""

    estimator: Any

    def known(self, X: Floats, group: Ints) -> NDArray[Any]:
        """Predict rows of groups that were learnt from."""
        return np.asarray(self.estimator.predict(X, groups=group))

    def new(self, labelled: Rows, X: Floats, group: Ints) -> NDArray[Any]:
        """Predict rows of new groups in the contexts that their labelled rows suggest."""
        found = self.estimator.identify(labelled.X, labelled.y, labelled.group)
        return np.asarray(self.estimator.predict(X, context=found, groups=group))


def fit_default(rows: Rows) -> Fitted:
    """The estimator as it is by default."""
    estimator = (LeafClassifier if rows.n_classes else LeafRegressor)(random_state=0)
    return Leaf(estimator.fit(rows.X, rows.y, groups=rows.group))


def fit_linear(rows: Rows) -> Fitted:
    """Linear local models with group effects, in closed form."""
    return _fit_closed_form("linear", rows)


def fit_smooth(rows: Rows) -> Fitted:
    """Smooth local models with group effects, in closed form."""
    return _fit_closed_form("smooth", rows)


def fit_boosting(rows: Rows) -> Fitted:
    """Boosted trees and smooth functions with group effects."""
    return _fit_closed_form("boosting", rows)


def _fit_closed_form(local_model: str, rows: Rows) -> Fitted:
    kind = LeafClassifier if rows.n_classes else LeafRegressor
    estimator = kind(local_model=local_model, random_state=0)
    return Leaf(estimator.fit(rows.X, rows.y, groups=rows.group))


OWN: dict[str, Method] = {
    "leaflearn": fit_default,
    "leaflearn linear": fit_linear,
    "leaflearn smooth": fit_smooth,
    "leaflearn boosting": fit_boosting,
}
METHODS: dict[str, Method] = OWN | PEERS


def run(table: RealTable, method: str, split: int, commit: str | None = None) -> Record:
    """Fit a method to one split of a table, and predict the other rows.

    Parameters
    ----------
    table
        The table, whose file is read.
    method
        A name in `METHODS`.
    split
        The number of the split, from 0.
    commit
        Recorded as it is.

    Returns
    -------
    dict
        What was run; the outcome, and the reason if it is not "ok"; for each cell the summed loss
        (squared errors, or wrong classes), the rows and the groups; and the processor seconds of
        the fit with its child processes.

    Examples
    --------
    >>> import tempfile
    >>> from unittest.mock import patch
    >>> table = RealTable("pets", "pets.csv", "weight", "owner", (), "a friend")
    >>> lines = [f"{3 * (i % 7)},{i // 12},{i % 7}" for i in range(120)]
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with patch.dict(os.environ, LEAFLEARN_DATA=folder):
    ...         table.path.parent.mkdir()
    ...         _ = table.path.write_text("\\n".join(["weight,owner,age", *lines]))
    ...         record = run(table, "pooled linear", split=0)
    >>> record["outcome"], record["measure"], list(record["cells"])
    ('ok', 'rmse', ['known', 'new 1', 'new 5'])
    >>> record["cells"]["known"]["rows"], record["cells"]["known"]["groups"]
    (48, 8)
    """
    data = table.load()
    rows = list(make_splits(data.group))[split]
    outcome, reason, cells, seconds = OK, None, {}, 0.0
    try:
        with warnings.catch_warnings(), threadpool_limits(1):
            warnings.simplefilter("ignore")  # of the peers; leaflearn's are not counted here
            began = _processor_seconds()
            fitted = METHODS[method](_rows(data, rows.train))
            seconds = _processor_seconds() - began
            cells = _measure(fitted, data, rows)
    except NotApplicableError as error:
        outcome, reason = NOT_APPLICABLE, str(error)
    except MissingProgramError as error:
        outcome, reason = MISSING, str(error)
    except Exception as error:  # another library's; the other runs go on
        outcome, reason = FAILED, f"{type(error).__name__}: {error}"[-MAX_REASON:]
    return {
        "table": table.name,
        "method": method,
        "split": split,
        "outcome": outcome,
        "reason": reason,
        "measure": ERROR_RATE if data.n_classes else RMSE,
        "cells": cells,
        "seconds": round(seconds, 3),
        "commit": commit,
    }


def _rows(data: RealData, numbers: Ints) -> Rows:
    return Rows(data.X[numbers], data.y[numbers], data.group[numbers], data.n_classes)


def _measure(fitted: Fitted, data: RealData, split: Split) -> dict[str, dict[str, float]]:
    X, group = data.X, data.group
    cells = {KNOWN: _cell(fitted.known(X[split.known], group[split.known]), data, split.known)}
    for n_labels, (labelled, rest) in split.new.items():
        if len(rest):
            predicted = fitted.new(_rows(data, labelled), X[rest], group[rest])
            cells[f"new {n_labels}"] = _cell(predicted, data, rest)
    return cells


def _cell(predicted: NDArray[Any], data: RealData, numbers: Ints) -> dict[str, float]:
    y = data.y[numbers]
    if data.n_classes:
        classes = predicted.argmax(1) if predicted.ndim == 2 else predicted
        loss = (classes != y).astype(float)
    else:
        loss = (predicted - y) ** 2
    if not np.isfinite(loss).all():
        raise ValueError("some predictions are not finite")
    n_groups = len(np.unique(data.group[numbers]))
    return {"loss": float(loss.sum()), "rows": len(loss), "groups": n_groups}


def _processor_seconds() -> float:
    """Of this process and of its children that have ended, such as R."""
    return sum(os.times()[:4])
