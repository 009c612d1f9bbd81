"""Allocation rules: from the scores of groups to the weights with which models learn from them.

LEAF, LEAF-EM, textbook EM and annealing differ in the allocation rule only. A rule takes

    scores     summed loss of every model on every group      (..., B, K)
    sizes      number of rows of each group                   (B,)
    group_id   position of each group in the training set     (B,)
    progress   completed share of the run, 0 to 1
    generator  source of randomness

and returns weights (..., B, K) whose rows sum to 1. A leading dimension, if any, is the restarts.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor

Temperature = float | Tensor  # or one per restart, as a tensor (R, 1, 1)


class Rule(Protocol):
    """The interface of an allocation rule."""

    def __call__(
        self,
        scores: Tensor,
        sizes: Tensor,
        group_id: Tensor | None,
        progress: float,
        generator: torch.Generator | None,
    ) -> Tensor:
        """Weights (..., B, K); the rows sum to 1."""


def one_hot(context: Tensor, n_contexts: int, dtype: torch.dtype) -> Tensor:
    """Weights of 1 for the given context of each group and 0 elsewhere, shape (..., B, K)."""
    return torch.zeros(*context.shape, n_contexts, dtype=dtype, device=context.device).scatter_(
        -1, context[..., None], 1.0
    )


@dataclass(frozen=True)
class Hard:
    """LEAF as in the paper: each group goes to the model with the lowest score (line 3).

    Examples
    --------
    >>> import torch
    >>> Hard()(torch.tensor([[3.0, 1.0]]), torch.ones(1))
    tensor([[0., 1.]])
    """

    def __call__(
        self,
        scores: Tensor,
        sizes: Tensor,
        group_id: Tensor | None = None,
        progress: float = 0.0,
        generator: torch.Generator | None = None,
    ) -> Tensor:
        return one_hot(scores.argmin(-1), scores.shape[-1], scores.dtype)


@dataclass(frozen=True)
class Soft:
    """Textbook EM: each model learns from a group in proportion to its posterior.

    The posterior is softmax(-summed loss / temperature).

    Examples
    --------
    >>> import torch
    >>> Soft(temperature=1.0)(torch.tensor([[0.0, 0.0]]), torch.ones(1))
    tensor([[0.5000, 0.5000]])
    """

    temperature: Temperature = 1.0

    def __call__(
        self,
        scores: Tensor,
        sizes: Tensor,
        group_id: Tensor | None = None,
        progress: float = 0.0,
        generator: torch.Generator | None = None,
    ) -> Tensor:
        return torch.softmax(-scores / self.temperature, -1)


@dataclass(frozen=True)
class Sampled:
    """LEAF-EM: one model is sampled from the posterior (Appendix A.3).

    The posterior is softmax(-summed loss / temperature).

    Examples
    --------
    >>> import torch
    >>> generator = torch.Generator().manual_seed(0)
    >>> rule = Sampled(temperature=0.1)
    >>> rule(torch.tensor([[0.0, 9.0]]), torch.ones(1), generator=generator)
    tensor([[1., 0.]])
    """

    temperature: Temperature = 1.0

    def __call__(
        self,
        scores: Tensor,
        sizes: Tensor,
        group_id: Tensor | None = None,
        progress: float = 0.0,
        generator: torch.Generator | None = None,
    ) -> Tensor:
        # The argmax of logits plus Gumbel noise is a sample from their softmax. Unlike
        # torch.multinomial, it does not fail when a restart has diverged.
        noise = (
            torch.empty(scores.shape, dtype=scores.dtype)
            .exponential_(generator=generator)
            .log_()
            .neg_()
            .to(scores.device)
        )
        return one_hot(
            (noise - scores / self.temperature).argmax(-1), scores.shape[-1], scores.dtype
        )


@dataclass(frozen=True)
class Annealed:
    """Soft at first, hard later: the temperature falls linearly from `start` to 0.

    The softmax is over the mean loss of the group. With the summed loss, large groups would be
    allocated for good while the models are still similar.

    Parameters
    ----------
    start
        First temperature, in units of the loss. Half of the loss of the best constant prediction
        works well.
    until
        Share of the run after which the rule is hard.

    Examples
    --------
    >>> import torch
    >>> rule = Annealed(start=2.0)
    >>> rule(torch.tensor([[0.0, 1.0]]), torch.ones(1), progress=0.0)
    tensor([[0.6225, 0.3775]])
    >>> rule(torch.tensor([[0.0, 1.0]]), torch.ones(1), progress=0.8)
    tensor([[1., 0.]])
    """

    start: Temperature
    until: float = 0.75

    def temperature(self, progress: float) -> Temperature:
        return self.start * max(0.0, 1.0 - progress / self.until)

    def __call__(
        self,
        scores: Tensor,
        sizes: Tensor,
        group_id: Tensor | None = None,
        progress: float = 0.0,
        generator: torch.Generator | None = None,
    ) -> Tensor:
        if progress >= self.until:
            return Hard()(scores, sizes)
        return torch.softmax(-scores / sizes[:, None] / self.temperature(progress), -1)


@dataclass(frozen=True)
class Given:
    """A given allocation for the share `until` of the run, then hard.

    With the true domains for the whole run (the default), this is the multi-task oracle. With
    estimated contexts for a share of the run, it is an initialization.

    Parameters
    ----------
    contexts
        The context of each group of the training set, (m,), or (R, m) with one row per restart.
    until
        Share of the run for which the allocation is used.

    Examples
    --------
    >>> import torch
    >>> rule = Given(torch.tensor([1, 0]))
    >>> rule(torch.zeros(1, 2), torch.ones(1), group_id=torch.tensor([0]))
    tensor([[0., 1.]])
    """

    contexts: Tensor
    until: float = math.inf

    def __call__(
        self,
        scores: Tensor,
        sizes: Tensor,
        group_id: Tensor | None = None,
        progress: float = 0.0,
        generator: torch.Generator | None = None,
    ) -> Tensor:
        if progress >= self.until:
            return Hard()(scores, sizes)
        assert group_id is not None, (
            "Given needs group_id, the position of each group in the training set"
        )
        chosen = torch.as_tensor(self.contexts)[..., group_id].to(scores.device)
        return one_hot(chosen.expand(scores.shape[:-1]), scores.shape[-1], scores.dtype)


def contexts_of(rule: Rule, scores: Tensor, weights: Tensor) -> Tensor:
    """The context of each group, shape (..., B): the model with the largest weight.

    Where the weights are sampled, it is the model with the lowest score instead.

    Examples
    --------
    >>> import torch
    >>> contexts_of(Sampled(), torch.tensor([[1.0, 2.0]]), weights=torch.tensor([[0.0, 1.0]]))
    tensor([0])
    """
    return scores.argmin(-1) if isinstance(rule, Sampled) else weights.argmax(-1)


def temperature_of(rule: Rule, progress: float) -> float:
    """The current temperature of a rule, the highest over the restarts; 0 for rules without one.

    Examples
    --------
    >>> temperature_of(Annealed(start=2.0, until=0.5), progress=0.25)
    1.0
    >>> temperature_of(Hard(), progress=0.25)
    0.0
    """
    temperature = getattr(rule, "temperature", 0.0)
    current = temperature(progress) if callable(temperature) else temperature
    return float(torch.as_tensor(current).max())


def constant_from(rule: Rule) -> float:
    """The progress after which a rule no longer changes.

    Examples
    --------
    >>> constant_from(Annealed(start=1.0)), constant_from(Hard())
    (0.75, 0.0)
    """
    until = float(getattr(rule, "until", 0.0))
    return until if math.isfinite(until) else 0.0  # rules without an end are constant


def make_rule(name: str, temperature: Temperature) -> Rule:
    """The rule with this name; `temperature` is its temperature, or the first one if annealed.

    Examples
    --------
    >>> make_rule("annealed", 0.5)
    Annealed(start=0.5, until=0.75)
    """
    rule = RULES[name]
    return rule() if rule is Hard else rule(temperature)  # type: ignore[call-arg]


RULES: dict[str, type[Rule]] = {
    "hard": Hard,
    "sampled": Sampled,
    "soft": Soft,
    "annealed": Annealed,
}
