"""leaflearn's own way on a stream: contexts are read off the conflict of a first sample, then allocation is hard."""

from __future__ import annotations

from typing import Any, Literal, get_args

import numpy as np
import torch

from leaflearn.conflict.start import MOST_SINGLE_ROWS, Start, find_start
from leaflearn.core.algorithm import step
from leaflearn.core.allocation import Annealed, Given, Rule
from leaflearn.core.batches import Batches
from leaflearn.core.losses import Loss
from leaflearn.core.robust_losses import GeneralizedCrossEntropy
from leaflearn.methods.contract import Told
from leaflearn.methods.leaf import Leaf, usage
from leaflearn.methods.registry import register
from leaflearn.recipe import GIVEN

LossName = Literal["auto", "gce"]


@register("leaf-annealed")
class LeafAnnealed(Leaf):
    """The repaired LEAF.

    Before learning, smooth models find contexts in some thousand rows (`conflict/`). For the first 30 % of the run they allocate groups,
    then the local models do, hard. Where the smooth models explain too little, the allocation is annealed.

    Parameters
    ----------
    n_contexts
        As in `Leaf`.
    n_peeked
        Rows that are looked at beforehand.
    n_extra
        Local models more than there are domains, where `n_contexts` is None.
    loss
        "auto", or "gce" for labels that may be wrong: generalised cross-entropy, which gives up on rows that nothing explains.

    Examples
    --------
    >>> LeafAnnealed().n_peeked
    8000
    """

    def __init__(
        self, *, n_contexts: int | None = None, n_peeked: int = MOST_SINGLE_ROWS, n_extra: int = 0, loss: LossName = "auto"
    ) -> None:
        super().__init__(n_contexts=n_contexts)
        if loss not in get_args(LossName):
            raise ValueError(f"`loss` is {loss!r}; choose 'auto', or 'gce' for labels that may be wrong.")
        self.n_peeked, self.n_extra, self.loss_name = n_peeked, n_extra, loss

    @property
    def loss(self) -> Loss:
        """The problem's own, or the robust one."""
        return GeneralizedCrossEntropy() if self.loss_name == "gce" else self.problem.loss

    def build(self) -> None:
        """K networks, and a look at the conflict."""
        self.n_contexts = self.n_contexts or self.problem.n_domains + self.n_extra
        super().build()
        first = self.problem.peek(self.n_peeked)
        self.temperature = 0.5 * self.loss.of_best_constant(first.y) or 1.0
        n_classes = self.problem.n_outputs if self.problem.is_classification else 0
        self.start: Start = find_start(
            first.x.numpy(), first.y.numpy(), first.group.numpy(), len(self.models.modules()), n_classes, self.problem.seed
        )

    def about(self) -> dict[str, Any]:
        """Where the contexts of the first part of the run came from, and whether they were trusted."""
        return {"start": self.start.kind, "is_trusted": bool(self.start.is_trusted), "reason": self.start.reason}

    def rule(self) -> Rule:
        """Annealed, where there is no start to trust."""
        return Annealed(self.temperature)

    def learn(self, batches: Batches, told: Told | None) -> dict[str, float]:
        """Allocate by the start for a while, then by the local models."""
        if not self.start.is_trusted:
            return super().learn(batches, told)
        contexts = np.zeros(batches.n_groups, dtype=np.intp)
        if self.progress < GIVEN:
            contexts = self.start.allocate(batches.x.numpy(), batches.y.numpy(), batches.group.numpy())
        here = Batches(batches.x, batches.y, batches.group, group_id=torch.arange(batches.n_groups), n_groups=batches.n_groups)
        rule = Given(torch.as_tensor(contexts), until=GIVEN)
        taken = step(self.models, here, self.loss, rule, self.optimizer, self.progress, self.generator)
        return {"loss": float(taken.value), **usage(taken.weights)}
