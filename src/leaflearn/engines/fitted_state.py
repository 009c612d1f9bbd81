"""What every engine takes and hands back: checked examples, and local models with the scores of the groups."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leaflearn.engines.local_models import LocalModels

RefitQuickly = Callable[
    [NDArray[np.intp], NDArray[np.intp], int], LocalModels
]  # from some rows, the contexts (m,) known; and a seed


@dataclass(frozen=True)
class Fitting:
    """What an engine hands back."""

    local_models: LocalModels
    scores: NDArray[np.float64]  # summed loss of every model on every group        (m, K)
    history: dict[str, NDArray[Any]]
    restarts: list[dict[str, Any]]
    best_restart: int
    converged: bool
    constant_loss: float  # mean loss of the best constant prediction
    refit_quickly: RefitQuickly  # local models that have not seen the other rows
    init: str = "random"  # where the search began, and why
    selection: dict[str, NDArray[Any]] = field(
        default_factory=dict
    )  # what other numbers of contexts would have given
