"""The allocation rules: from the scores of a meta-batch to the weights with which each model learns from each group.

LEAF, LEAF-EM, textbook EM and annealing differ in nothing but the rule. A rule takes

    scores     summed loss of every model on every group     (..., B, K)
    sizes      rows of each group                             (B,)
    group_id   which groups of the training set these are     (B,)
    progress   how far the run is, 0 to 1
    generator  the source of randomness

and returns weights (..., B, K) whose rows sum to 1. The leading dimension, where there is one, counts restarts.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor

Temperature = float | Tensor  # a tensor (R, 1, 1) gives every restart its own


class Rule(Protocol):
    """What the algorithm asks of an allocation rule."""

    def __call__(
        self,
        scores: Tensor,
        sizes: Tensor,
        group_id: Tensor | None,
        progress: float,
        generator: torch.Generator | None,
    ) -> Tensor:
        """Weights (..., B, K), rows sum to 1."""


def one_hot(context: Tensor, n_contexts: int, dtype: torch.dtype) -> Tensor:
    """Weights that send a group wholly to one context, shape (..., B, K)."""
    return torch.zeros(*context.shape, n_contexts, dtype=dtype, device=context.device).scatter_(
        -1, context[..., None], 1.0
    )


@dataclass(frozen=True)
class Hard:
    """LEAF as printed: the whole group goes to the model that explains it best (Algorithm 1, line 3).

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
    """Textbook EM: every model learns from the group in proportion to its posterior, softmax(-summed loss / temperature).

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
    """LEAF-EM: one model is drawn from the posterior softmax(-summed loss / temperature) (Appendix A.3).

    Examples
    --------
    >>> import torch
    >>> Sampled(temperature=0.1)(torch.tensor([[0.0, 9.0]]), torch.ones(1), generator=torch.Generator().manual_seed(0))
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
        # The largest of logits plus Gumbel noise is a draw from their softmax, and unlike multinomial it survives a restart that diverged.
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
    """Soft at first, hard in the end: the temperature falls linearly from `start` to 0 over the share `until` of the run.

    The softmax is over the group's mean loss, so that a large group is not frozen while the models are still alike. `start` is in units of
    the loss; half the loss of the best constant prediction is a good one.

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
    """The allocation is known for the share `until` of the run, group `i` of the training set goes to `contexts[i]`; then it is hard.

    With the true domains and to the end (the default) this is the multi-task oracle; with a first guess for a while, a start.

    Examples
    --------
    >>> import torch
    >>> Given(torch.tensor([1, 0]))(torch.zeros(1, 2), torch.ones(1), group_id=torch.tensor([0]))
    tensor([[0., 1.]])
    """

    contexts: Tensor  # (m,), or (R, m) where each restart has its own
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
        assert group_id is not None, "a given allocation needs to know which groups these are"
        chosen = torch.as_tensor(self.contexts)[..., group_id].to(scores.device)
        return one_hot(chosen.expand(scores.shape[:-1]), scores.shape[-1], scores.dtype)


def contexts_of(rule: Rule, scores: Tensor, weights: Tensor) -> Tensor:
    """The context of each group, shape (..., B): the model that learns most from it; where one was drawn, the one that explains it best.

    Examples
    --------
    >>> import torch
    >>> contexts_of(Sampled(), torch.tensor([[1.0, 2.0]]), weights=torch.tensor([[0.0, 1.0]]))
    tensor([0])
    """
    return scores.argmin(-1) if isinstance(rule, Sampled) else weights.argmax(-1)


def temperature_of(rule: Rule, progress: float) -> float:
    """The temperature that a rule has now, the highest where restarts differ; 0 for rules that know none.

    Examples
    --------
    >>> temperature_of(Annealed(start=2.0, until=0.5), progress=0.25), temperature_of(Hard(), progress=0.25)
    (1.0, 0.0)
    """
    temperature = getattr(rule, "temperature", 0.0)
    return float(
        torch.as_tensor(temperature(progress) if callable(temperature) else temperature).max()
    )


def constant_from(rule: Rule) -> float:
    """The progress from which a rule no longer changes by itself.

    Examples
    --------
    >>> constant_from(Annealed(start=1.0)), constant_from(Hard())
    (0.75, 0.0)
    """
    until = float(getattr(rule, "until", 0.0))
    return until if math.isfinite(until) else 0.0  # what never changes is settled from the start


def make_rule(name: str, temperature: Temperature) -> Rule:
    """The rule of that name. `temperature` is what `RULES[name]` calls its temperature or its start.

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
