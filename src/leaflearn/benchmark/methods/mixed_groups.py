"""Groups that hold rows of other contexts: every row teaches the model that it belongs to.

A group says of which context its rows are, but for a share of strangers. So in a group of context k a label is as likely as

    (1 - strangers) p_k  +  strangers * mean of p_j over the other contexts j,

and this mixture does three things: it scores the group, so that one stranger cannot outvote the others; it tells for each row how likely it
is that the row belongs to k, or to which other context; and the share of strangers is what these probabilities say on average.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import one_hot

from leaflearn.core.algorithm import sum_by_group

FIRST_GUESS = 0.1  # share of strangers before anything was seen
MEMORY = 0.95  # how much of the share is kept from step to step
FEW = 0.03  # up to this share, groups are taken at their word


class Strangers:
    """How many rows belong to another context than their group, learnt step by step.

    Examples
    --------
    Three of four rows are explained by the first model, the last one by the second.

    >>> losses = torch.tensor([[0.1, 0.1, 0.1, 9.0], [9.0, 9.0, 9.0, 0.1]])
    >>> strangers = Strangers()
    >>> group = torch.zeros(4, dtype=torch.long)
    >>> contexts = strangers.allocate(losses, group, n_groups=1)
    >>> contexts
    tensor([0])
    >>> strangers.deal_rows(losses, contexts[group], torch.Generator().manual_seed(0))
    tensor([0, 0, 0, 1])
    >>> round(strangers.share, 4)  # a quarter of this group
    0.1075
    """

    def __init__(self) -> None:
        self.share = FIRST_GUESS

    @property
    def are_many(self) -> bool:
        """Whether rows are dealt one by one."""
        return self.share > FEW

    def allocate(self, losses: Tensor, group: Tensor, n_groups: int) -> Tensor:
        """From cross-entropies (K, N) to the context of each group (B,), by the mixture."""
        n_contexts = len(losses)
        # (K, N)
        members = torch.stack(
            [self._joint(losses, torch.full_like(group, k)).logsumexp(0) for k in range(n_contexts)]
        )
        return sum_by_group(-members, group, n_groups).argmin(-1)

    def deal_rows(self, losses: Tensor, contexts: Tensor, generator: torch.Generator) -> Tensor:
        """The context that each row learns in, drawn from what is likely given that of its group, (N,); learns the share on the way."""
        posterior = torch.softmax(self._joint(losses, contexts), 0).T  #                      (N, K)
        away = 1 - posterior[torch.arange(len(contexts)), contexts].mean()
        self.share = MEMORY * self.share + (1 - MEMORY) * float(away)
        return (
            torch.multinomial(posterior, 1, generator=generator)[:, 0]
            if self.are_many
            else contexts
        )

    def state_dict(self) -> dict[str, float]:
        """What is learnt."""
        return {"share": self.share}

    def load_state_dict(self, state: dict[str, float]) -> None:
        """Go on from there."""
        self.share = state["share"]

    def _joint(self, losses: Tensor, contexts: Tensor) -> Tensor:
        """log of how likely each row is a member of each context and has its label, in groups of these contexts (N,), (K, N)."""
        n_contexts = len(losses)
        own = one_hot(contexts, n_contexts).T.bool()  #                                       (K, N)
        prior = torch.where(own, 1 - self.share, self.share / (n_contexts - 1))
        return prior.log() - losses
