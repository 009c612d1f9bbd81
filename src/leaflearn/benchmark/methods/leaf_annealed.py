"""leaflearn's own way on a stream: contexts are read off the conflict of a first sample, then allocation is hard."""

from __future__ import annotations

from typing import Any, Literal, get_args

import torch
from torch import Tensor
from torch.nn.functional import one_hot

from leaflearn.benchmark.methods.contract import OracleInfo
from leaflearn.benchmark.methods.leaf import Leaf, usage
from leaflearn.benchmark.methods.mixed_groups import Strangers
from leaflearn.benchmark.methods.registry import register
from leaflearn.core.algorithm import objective, score, score_rows, step
from leaflearn.core.allocation import Annealed, Given, Hard, Rule
from leaflearn.core.batches import Batches
from leaflearn.core.losses import Loss
from leaflearn.core.robust_losses import GeneralizedCrossEntropy
from leaflearn.engines import GIVEN
from leaflearn.initialization.start import MOST_SINGLE_ROWS, Start, find_start

LossName = Literal["auto", "gce"]
LEAST_MAJORITY = 3  # rows in a group, for a stranger to be in the minority


@register("leaf-annealed")
class LeafAnnealed(Leaf):
    """The repaired LEAF.

    Before learning, smooth models find contexts in some thousand rows (`conflict/`). For the first 30 % of the run they allocate groups,
    then the local models do, hard. Where the smooth models explain too little, the allocation is annealed. Labelled groups of three rows or
    more may hold rows of other contexts; where these are many, rows are dealt one by one (`mixed_groups.py`). Where the smooth models fill
    fewer contexts than there are local models, the others stay idle: a model that has learnt nothing would soon be the best one for single
    rows that all others get wrong.

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
        self,
        *,
        n_contexts: int | None = None,
        n_peeked: int = MOST_SINGLE_ROWS,
        n_extra: int = 0,
        loss: LossName = "auto",
    ) -> None:
        super().__init__(n_contexts=n_contexts)
        if loss not in get_args(LossName):
            raise ValueError(
                f"`loss` is {loss!r}; choose 'auto', or 'gce' for labels that may be wrong."
            )
        self.n_peeked, self.n_extra, self.loss_name = n_peeked, n_extra, loss

    @property
    def loss(self) -> Loss:
        """The problem's own, or the robust one."""
        return GeneralizedCrossEntropy() if self.loss_name == "gce" else self.problem.loss

    def build(self) -> None:
        """K networks, and a look at the conflict."""
        self.n_contexts = self.n_contexts or self.problem.n_domains + self.n_extra
        super().build()
        self.strangers = Strangers()
        first = self.problem.peek(self.n_peeked)
        self.temperature = 0.5 * self.loss.of_best_constant(first.y) or 1.0
        n_classes = self.problem.n_outputs if self.problem.is_classification else 0
        self.start: Start = find_start(
            first.x.numpy(),
            first.y.numpy(),
            first.group.numpy(),
            len(self.models.modules()),
            n_classes,
            self.problem.seed,
        )
        used = (
            torch.as_tensor(self.start.contexts)
            if self.start.is_trusted
            else torch.arange(self.n_contexts)
        )
        # (K,)
        self.is_idle = torch.ones(self.n_contexts, dtype=torch.bool).index_fill(
            0, used.unique(), False
        )

    def about(self) -> dict[str, Any]:
        """Where the contexts of the first part of the run came from, and whether they were trusted."""
        return {
            "start": self.start.kind,
            "is_trusted": bool(self.start.is_trusted),
            "reason": self.start.reason,
        }

    def rule(self) -> Rule:
        """Annealed, where there is no start to trust."""
        return Annealed(self.temperature)

    def learn(self, batches: Batches, told: OracleInfo | None) -> dict[str, float]:
        """Allocate by the start for a while, then by the local models."""
        if not self.start.is_trusted:
            return super().learn(batches, told)
        contexts = self._given(batches)
        if self._deals_rows(batches):
            return self._learn_row_by_row(batches, contexts)
        here = Batches(
            batches.x,
            batches.y,
            batches.group,
            group_id=torch.arange(batches.n_groups),
            n_groups=batches.n_groups,
        )
        rule = self._allocate_hard if contexts is None else Given(contexts)
        taken = step(
            self.models, here, self.loss, rule, self.optimizer, self.progress, self.generator
        )
        return {"loss": float(taken.value), **usage(taken.weights)}

    def contexts(self, batches: Batches) -> Tensor:
        """The context that each group learns in at this moment of the run, (B,): the start's for a while, then the local models' own."""
        given = self._given(batches)
        if given is not None:
            return given
        if self.start.is_trusted and self._deals_rows(batches):
            return self.strangers.allocate(
                self._score_rows(batches), batches.group, batches.n_groups
            )
        return self._allocate_hard(score(self.models, batches, self.loss), batches.sizes).argmax(-1)

    def _given(self, batches: Batches) -> Tensor | None:
        """The contexts of the start, as long as they are learnt with."""
        if not self.start.is_trusted or self.progress >= GIVEN:
            return None
        return torch.as_tensor(
            self.start.allocate(batches.x.numpy(), batches.y.numpy(), batches.group.numpy())
        )

    def _deals_rows(self, batches: Batches) -> bool:
        """Can a row be of another context than its group, and be told from it?"""
        return (
            self.problem.is_classification
            and self.n_contexts != 1
            and bool(batches.sizes.min() >= LEAST_MAJORITY)
        )

    def _allocate_hard(
        self,
        scores: Tensor,
        sizes: Tensor,
        group_id: Tensor | None = None,
        progress: float = 0.0,
        generator: torch.Generator | None = None,
    ) -> Tensor:
        """LEAF's own rule, among the models that are not idle."""
        return Hard()(scores.masked_fill(self.is_idle, torch.inf), sizes)

    def _score_rows(self, batches: Batches) -> Tensor:
        """Cross-entropy of every row under every model, beyond all bounds under idle ones, (K, N)."""
        return score_rows(self.models, batches, self.problem.loss).masked_fill(
            self.is_idle[:, None], torch.inf
        )

    def _learn_row_by_row(self, batches: Batches, contexts: Tensor | None) -> dict[str, float]:
        """A step in which a row may be of another context than its group."""
        losses = self._score_rows(batches)  #                                                 (K, N)
        if contexts is None:
            contexts = self.strangers.allocate(losses, batches.group, batches.n_groups)
        of_row = self.strangers.deal_rows(losses, contexts[batches.group], self.generator)  #   (N,)
        rows = Batches(batches.x, batches.y, torch.arange(len(of_row)), n_groups=len(of_row))
        weights = one_hot(of_row, len(losses)).to(losses)  #                                  (N, K)
        value = objective(self.models, rows, self.loss, weights)
        self.models.zero_grad()
        value.backward()
        self.optimizer.step()
        return {"loss": float(value.detach()), "strangers": self.strangers.share, **usage(weights)}
