"""What a fit has come to: the start that was kept, what became of the others, and the warning where it may not be right."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import nn

from leaflearn.core.training import NonFiniteLossError, Training

CONVERGED = 0.01  # share of groups that may have moved in the last epoch of a converged run


@dataclass(frozen=True)
class Fit:
    """The start that was kept, and what became of the others."""

    modules: list[nn.Module]  # K local models
    scores: NDArray[np.float64]  # summed loss of every model on every group        (m, K)
    history: dict[str, NDArray[Any]]
    restarts: list[
        dict[str, Any]
    ]  # of every start: stage, error, kept, n_iter, converged, its curve of losses, and its contexts (m,)
    best_restart: int
    converged: bool
    stopped: bool  # by a callback
    error: float  # mean over groups of the mean loss under the best model
    kept_start: bool = False  # the contexts that were given to start from led here


def keep_best(training: Training, stage: str = "training") -> Fit:
    """The start that explains the groups best; `stage` is what the stage is called where starts are told.

    Examples
    --------
    >>> import torch
    >>> from leaflearn.core.allocation import Hard
    >>> from leaflearn.core.batches import GroupedExamples
    >>> from leaflearn.core.losses import SquaredError
    >>> from leaflearn.core.model_set import make_model_set
    >>> data = GroupedExamples(torch.zeros(2, 1), torch.ones(2, 1), torch.arange(2))
    >>> models = make_model_set(lambda: nn.Linear(1, 1), (3, 2))  # three starts of two contexts
    >>> optimizer = torch.optim.SGD(models.parameters(), lr=0.1)
    >>> fit = keep_best(Training(models, data, SquaredError(), Hard(), optimizer, max_epochs=2, generator=torch.Generator()).run())
    >>> fit.error == min(start["error"] for start in fit.restarts), len(fit.restarts), len(fit.modules)
    (True, 3, 2)
    """
    scores = (
        training.score_all_groups().cpu().numpy()
    )  #                                                   (R, m, K)
    sizes = training.data.sizes.cpu().numpy()
    errors = (scores.min(-1) / sizes).mean(
        -1
    )  #                                                           (R,)
    if not np.isfinite(errors).any():
        raise NonFiniteLossError(
            "The loss became non-finite in the last step; the likely cause is a learning rate that is too large: lower it."
        )
    best = int(np.nanargmin(np.where(np.isfinite(errors), errors, np.inf)))
    still = (
        training.columns()["changed"][-1] <= CONVERGED
    )  #                                                   (R,)
    n_contexts = scores.shape[-1]
    return Fit(
        modules=training.models.modules()[best * n_contexts : (best + 1) * n_contexts],
        scores=scores[best],
        history=training.columns(best),
        restarts=_tell_restarts(training, stage, scores, errors, still, best),
        best_restart=best,
        converged=bool(still[best]),
        stopped=training.stopped,
        error=float(errors[best]),
    )


def _tell_restarts(
    training: Training, stage: str, scores: NDArray[np.float64], errors: NDArray[np.float64], still: NDArray[np.bool_], best: int
) -> list[dict[str, Any]]:  # fmt: skip
    """What became of every start, from the scores (R, m, K)."""
    curves = training.columns()[
        "loss"
    ].T  #                                                                (R, T)
    return [
        {
            "stage": stage,
            "error": float(error),
            "kept": r == best,
            "n_iter": training.epoch,
            "converged": bool(still[r]),
            "curve": curves[r],
            "contexts": scores[r].argmin(-1),
        }
        for r, error in enumerate(errors)
    ]
