"""leaflearn's own method on a stream: contexts come from a first sample, then allocation is hard.

A group may hold rows of other contexts, here called outlier rows. `GroupMixture` estimates their
share and allocates them to the context that they belong to.
"""

from __future__ import annotations

from typing import Any, Literal, get_args

import torch
from torch import Tensor
from torch.nn.functional import one_hot

from leaflearn.benchmark.methods import settings
from leaflearn.benchmark.methods.contract import OracleInfo
from leaflearn.benchmark.methods.leaf import Leaf, usage
from leaflearn.benchmark.methods.registry import register
from leaflearn.core.algorithm import objective, score, score_rows, step, sum_rows_by_group
from leaflearn.core.allocation import Annealed, Given, Hard, Rule
from leaflearn.core.batches import Batches
from leaflearn.core.losses import GeneralizedCrossEntropy, Loss
from leaflearn.engines.settings import TRAINING
from leaflearn.initialization import settings as search_settings
from leaflearn.initialization.start import find_start
from leaflearn.initialization.surrogate import Start

LossName = Literal["auto", "gce"]


@register("leaf-annealed")
class LeafAnnealed(Leaf):
    """LEAF with the repairs of the estimators.

    Before training, smooth surrogate models find contexts in a few thousand rows
    (`initialization/`). During the first 30 % of the run they allocate the groups, then the local
    models do, with hard allocation. If the surrogate models explain too little, the allocation is
    annealed instead. In classification, groups of three rows or more may contain outlier rows; if
    there are many, rows are allocated one by one. If the surrogate models use fewer contexts than
    there are local models, the other models stay idle: an untrained model would soon have the
    smallest loss on single rows that all others predict wrongly.

    Parameters
    ----------
    n_contexts
        As in `Leaf`.
    n_peeked
        Number of rows for the surrogate models.
    n_extra
        Number of extra local models if `n_contexts` is None.
    loss
        "auto", or "gce" for labels that may be wrong: the generalized cross-entropy, which limits
        the influence of rows that no model explains.

    Examples
    --------
    >>> LeafAnnealed().n_peeked
    8000
    """

    def __init__(
        self,
        *,
        n_contexts: int | None = None,
        n_peeked: int = search_settings.SEARCH.label_blocks.max_rows,
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
        """The problem's loss, or the robust one."""
        return GeneralizedCrossEntropy() if self.loss_name == "gce" else self.problem.loss

    def build(self) -> None:
        """Create K networks and find the initial contexts."""
        self.n_contexts = self.n_contexts or self.problem.n_domains + self.n_extra
        super().build()
        self.mixture = GroupMixture()
        first = self.problem.peek(self.n_peeked)
        self.temperature = (
            settings.LEAF_ANNEALED.temperature_scale * self.loss.of_best_constant(first.y) or 1.0
        )
        self.start: Start = find_start(
            first.x.numpy(),
            first.y.numpy(),
            first.group.numpy(),
            len(self.models.modules()),
            self.problem.n_outputs if self.problem.is_classification else 0,
            self.problem.seed,
        )
        used = (
            torch.as_tensor(self.start.contexts)
            if self.start.is_trusted
            else torch.arange(self.n_contexts)
        )
        self.is_idle = torch.ones(self.n_contexts, dtype=torch.bool)  #                         (K,)
        self.is_idle[used.unique()] = False

    def about(self) -> dict[str, Any]:
        """The source of the initial contexts, and whether they are trusted."""
        return {
            "start": self.start.kind,
            "is_trusted": bool(self.start.is_trusted),
            "reason": self.start.reason,
        }

    def rule(self) -> Rule:
        """Annealed allocation, used if the initial contexts are not trusted."""
        return Annealed(self.temperature)

    def learn(self, batches: Batches, oracle_info: OracleInfo | None) -> dict[str, float]:
        """Allocate by the initial contexts first, then by the local models."""
        if not self.start.is_trusted:
            return super().learn(batches, oracle_info)
        contexts = self._given(batches)
        if self._allocates_rows(batches):
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
        """The context that each group is allocated to at this point of the run, (B,)."""
        given = self._given(batches)
        if given is not None:
            return given
        if self.start.is_trusted and self._allocates_rows(batches):
            return self.mixture.allocate(self._score_rows(batches), batches.group, batches.n_groups)
        return self._allocate_hard(score(self.models, batches, self.loss), batches.sizes).argmax(-1)

    def _given(self, batches: Batches) -> Tensor | None:
        """The initial contexts during the first part of the run, then None."""
        if not self.start.is_trusted or self.progress >= TRAINING.given_share:
            return None
        return torch.as_tensor(
            self.start.allocate(batches.x.numpy(), batches.y.numpy(), batches.group.numpy())
        )

    def _allocates_rows(self, batches: Batches) -> bool:
        """Whether outlier rows can exist and can be identified."""
        return (
            self.problem.is_classification
            and self.n_contexts != 1
            and bool(batches.sizes.min() >= settings.LEAF_ANNEALED.min_group_size)
        )

    def _allocate_hard(
        self,
        scores: Tensor,
        sizes: Tensor,
        group_id: Tensor | None = None,
        progress: float = 0.0,
        generator: torch.Generator | None = None,
    ) -> Tensor:
        """LEAF's hard rule, among the models that are not idle."""
        return Hard()(scores.masked_fill(self.is_idle, torch.inf), sizes)

    def _score_rows(self, batches: Batches) -> Tensor:
        """Cross-entropy of every row under every model, infinite under idle ones, (K, N)."""
        return score_rows(self.models, batches, self.problem.loss).masked_fill(
            self.is_idle[:, None], torch.inf
        )

    def _learn_row_by_row(self, batches: Batches, contexts: Tensor | None) -> dict[str, float]:
        """A step that may allocate a row to another context than its group."""
        losses = self._score_rows(batches)  #                                                 (K, N)
        if contexts is None:
            contexts = self.mixture.allocate(losses, batches.group, batches.n_groups)
        of_row = self.mixture.allocate_rows(losses, contexts[batches.group], self.generator)  # (N,)
        rows = Batches(batches.x, batches.y, torch.arange(len(of_row)), n_groups=len(of_row))
        weights = one_hot(of_row, len(losses)).to(losses)  #                                  (N, K)
        value = objective(self.models, rows, self.loss, weights)
        self.models.zero_grad()
        value.backward()
        self.optimizer.step()
        # The records in results/ store the share of outlier rows as `strangers`.
        return {"loss": float(value.detach()), "strangers": self.mixture.share, **usage(weights)}


class GroupMixture:
    """The share of outlier rows, which belong to another context than their group.

    In a group of context k, the probability of a label is

        (1 - share) p_k  +  share * mean of p_j over the other contexts j.

    This mixture scores the group, so that a single outlier row cannot outweigh the others. It gives
    the posterior probability of each context for each row. The share is a moving average of the
    posterior probability of the other contexts.

    Examples
    --------
    Three of four rows are explained by the first model, the last one by the second.

    >>> losses = torch.tensor([[0.1, 0.1, 0.1, 9.0], [9.0, 9.0, 9.0, 0.1]])
    >>> mixture = GroupMixture()
    >>> group = torch.zeros(4, dtype=torch.long)
    >>> contexts = mixture.allocate(losses, group, n_groups=1)
    >>> contexts
    tensor([0])
    >>> mixture.allocate_rows(losses, contexts[group], torch.Generator().manual_seed(0))
    tensor([0, 0, 0, 1])
    >>> round(mixture.share, 4)  # a quarter of this group
    0.1075
    """

    def __init__(self) -> None:
        self.share = settings.LEAF_ANNEALED.first_outlier_share

    @property
    def are_many(self) -> bool:
        """Whether rows are allocated one by one."""
        return self.share > settings.LEAF_ANNEALED.min_outlier_share

    def allocate(self, losses: Tensor, group: Tensor, n_groups: int) -> Tensor:
        """Allocate groups (B,) from cross-entropies (K, N) by the mixture."""
        joints = (self._joint(losses, torch.full_like(group, k)) for k in range(len(losses)))
        members = torch.stack([joint.logsumexp(0) for joint in joints])  #                    (K, N)
        return sum_rows_by_group(-members, group, n_groups).argmin(-1)

    def allocate_rows(self, losses: Tensor, contexts: Tensor, generator: torch.Generator) -> Tensor:
        """Sample the context of each row from its posterior, (N,), and update the share."""
        posterior = torch.softmax(self._joint(losses, contexts), 0).T  #                      (N, K)
        away = 1 - posterior[torch.arange(len(contexts)), contexts].mean()
        decay = settings.LEAF_ANNEALED.outlier_share_decay
        self.share = decay * self.share + (1 - decay) * float(away)
        return (
            torch.multinomial(posterior, 1, generator=generator)[:, 0]
            if self.are_many
            else contexts
        )

    def state_dict(self) -> dict[str, float]:
        """The estimated share."""
        return {"share": self.share}

    def load_state_dict(self, state: dict[str, float]) -> None:
        """Restore the estimated share."""
        self.share = state["share"]

    def _joint(self, losses: Tensor, contexts: Tensor) -> Tensor:
        """Log joint probability of a row's context and label, given its group's context, (K, N)."""
        n_contexts = len(losses)
        own = one_hot(contexts, n_contexts).T.bool()  #                                       (K, N)
        prior = torch.where(own, 1 - self.share, self.share / (n_contexts - 1))
        return prior.log() - losses
