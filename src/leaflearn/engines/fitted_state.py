"""The fitted state: everything a fit found about the contexts, as one value.

Engines make one, `updates/` turns one into another, and only the estimator assigns it. A state is
never changed in place.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from leaflearn.core.grouped_data import GroupedData
from leaflearn.effects.group_effects import GroupEffects
from leaflearn.engines.calibration import posterior
from leaflearn.engines.local_models import LocalModels
from leaflearn.engines.novelty import HeldOut

Floats = NDArray[np.float64]
Ints = NDArray[np.intp]

# Quick copies of the local models: from some rows, the contexts (m,) and a seed.
RefitQuickly = Callable[[Ints, Ints, int], LocalModels]


@dataclass(frozen=True, eq=False)
class FittedState:
    """What a fit found; m groups, K contexts, T epochs.

    Parameters
    ----------
    local_models
        The fitted local models, one per context.
    scores
        Summed loss of every local model on every group, shape (m, K).
    sizes
        Rows of each group, shape (m,).
    history, restarts, best_restart, init, selection
        As the attributes of the estimators with these names.
    converged, stability
        Whether the allocation converged and, once it was diagnosed, whether the fit looks right;
        and the agreement between equally good starts.
    constant_loss
        Mean loss of the best constant prediction.
    temperature
        Loss difference at which a context becomes e times less likely, by the training rows.
    held_out
        Losses of each context on rows that its local model has not seen.
    context_order
        The number that each context had during training, shape (K,).
    is_unexplained
        Groups that no context explains, see `partial_fit`, shape (m,).
    replay_buffer
        Training rows kept for `prune`, `merge` and `partial_fit`.
    effects
        Group effects, with priors and noise of the contexts; None for models without. With them,
        scores are minus the log of prior times marginal likelihood.

    Examples
    --------
    >>> from leaflearn.engines.local_models import RefittedModels
    >>> scores = np.array([[0.1, 0.2, 9.0], [0.2, 0.1, 9.0], [9.0, 9.0, 0.1], [9.0, 9.0, 0.1]])
    >>> models = RefittedModels([None] * 3, None)
    >>> history = {"usage": np.ones((1, 3)) / 3}
    >>> state = FittedState(models, scores, np.ones(4, dtype=int), history, [], 0)
    >>> state.contexts, state.without(1).contexts
    (array([0, 1, 2, 2]), array([0, 0, 1, 1]))
    >>> state.ordered_by_usage().context_order
    array([2, 0, 1])
    """

    local_models: LocalModels
    scores: Floats  #                                                           (m, K)
    sizes: Ints  #                                                              (m,)
    history: dict[str, NDArray[Any]]
    restarts: list[dict[str, Any]]
    best_restart: int
    converged: bool = True
    stability: float = 1.0
    constant_loss: float = 1.0
    init: str = "random"
    selection: dict[str, NDArray[Any]] = field(default_factory=dict)
    temperature: float = 1.0
    held_out: HeldOut = field(default_factory=lambda: HeldOut.unknown(0))
    context_order: Ints = field(default_factory=lambda: np.empty(0, dtype=np.intp))
    is_unexplained: NDArray[np.bool_] = field(default_factory=lambda: np.empty(0, dtype=bool))
    replay_buffer: GroupedData | None = None
    effects: GroupEffects | None = None

    def __post_init__(self) -> None:
        m, K = self.scores.shape
        if not len(self.held_out.losses):
            object.__setattr__(self, "held_out", HeldOut.unknown(K))
        if not len(self.context_order):
            object.__setattr__(self, "context_order", np.arange(K))
        if not len(self.is_unexplained):
            object.__setattr__(self, "is_unexplained", np.zeros(m, dtype=bool))

    @property
    def n_contexts(self) -> int:
        """Number of contexts."""
        return self.scores.shape[1]

    @property
    def contexts(self) -> Ints:
        """The context of each group, (m,)."""
        return self.scores.argmin(1)

    @property
    def usage(self) -> Floats:
        """Share of groups in each context, (K,)."""
        return np.bincount(self.contexts, minlength=self.n_contexts) / len(self.scores)

    @property
    def mean_scores(self) -> Floats:
        """Mean loss of every local model on every group, (m, K)."""
        return self.scores / self.sizes[:, None]

    @property
    def evidence_unit(self) -> float:
        """Loss difference that makes a context e times less likely, calibrated on held-out rows."""
        return self.temperature * self.held_out.evidence_factor

    @property
    def probabilities(self) -> Floats:
        """Posterior over the contexts of each group, (m, K)."""
        return posterior(self.scores / self.evidence_unit)

    def ordered_by_usage(self) -> FittedState:
        """The contexts numbered by decreasing usage."""
        return self.take_contexts(np.argsort(-self.usage, kind="stable"))

    def take_contexts(self, chosen: Ints) -> FittedState:
        """These contexts, in this order; groups of the others go to their next best context."""
        return replace(
            self,
            local_models=self.local_models.reordered(chosen),
            scores=self.scores[:, chosen],
            held_out=replace(self.held_out, losses=[self.held_out.losses[k] for k in chosen]),
            context_order=self.context_order[chosen],
            history={**self.history, "usage": self.history["usage"][:, chosen]},
            effects=None if self.effects is None else self.effects.take_contexts(chosen),
        )

    def without(self, gone: int, into: int | None = None) -> FittedState:
        """One context less; its groups go to their next best context, or all to `into`."""
        scores, losses = self.scores.copy(), list(self.held_out.losses)
        left = np.delete(np.arange(self.n_contexts), gone)
        if into is not None:
            scores[:, into] = scores[:, [into, gone]].min(1)
            losses[into] = np.sort(np.concatenate([losses[into], losses[gone]]))
        # Contexts opened by partial_fit have no score on groups outside the replay buffer.
        has_none = np.isinf(scores[:, left]).all(1)
        scores[has_none] = scores[has_none, gone, None]
        held_out = replace(self.held_out, losses=losses)
        return replace(self, scores=scores, held_out=held_out).take_contexts(left)

    def with_new_contexts(
        self, local_models: LocalModels, held_out_losses: Sequence[Floats]
    ) -> FittedState:
        """Further contexts behind the present ones, with infinite scores until they are known."""
        n_new, m = len(held_out_losses), len(self.scores)
        unused = np.zeros((len(self.history["usage"]), n_new))
        new_numbers = self.context_order.max() + 1 + np.arange(n_new)
        return replace(
            self,
            local_models=self.local_models.joined(local_models),
            scores=np.hstack([self.scores, np.full((m, n_new), np.inf)]),
            held_out=replace(self.held_out, losses=[*self.held_out.losses, *held_out_losses]),
            context_order=np.append(self.context_order, new_numbers),
            history={**self.history, "usage": np.hstack([self.history["usage"], unused])},
        )


class EngineResult(NamedTuple):
    """What an engine returns: the state, and how to refit quickly without some of the rows."""

    state: FittedState
    refit_quickly: RefitQuickly
