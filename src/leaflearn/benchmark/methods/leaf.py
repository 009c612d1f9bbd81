"""LEAF and its variants, which differ only in the allocation rule."""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor

from leaflearn.benchmark.methods.contract import Method, OracleInfo, as_answers
from leaflearn.benchmark.methods.registry import register
from leaflearn.core.algorithm import score, step
from leaflearn.core.allocation import Hard, Rule, Sampled, Soft
from leaflearn.core.batches import Batches
from leaflearn.core.losses import Loss
from leaflearn.core.model_set import make_model_set

Temperature = float | Literal["paper"]


@register("leaf")
class Leaf(Method):
    """Algorithm 1 as printed: each group is allocated to the model with the smallest loss.

    Parameters
    ----------
    n_contexts
        Number of local models; None means the number of domains.

    Examples
    --------
    >>> Leaf(n_contexts=4).n_contexts
    4
    """

    def __init__(self, *, n_contexts: int | None = None) -> None:
        self.n_contexts = n_contexts

    def rule(self) -> Rule:
        """The allocation rule."""
        return Hard()

    @property
    def loss(self) -> Loss:
        """The loss of a row."""
        return self.problem.loss

    def build(self) -> None:
        """Create K networks."""
        shape = (self.n_contexts or self.problem.n_domains,)
        self.models = make_model_set(lambda: self.problem.network(self.problem.n_outputs), shape)
        self.optimizer = self.problem.optimizer(self.models.parameters())

    def learn(self, batches: Batches, oracle_info: OracleInfo | None) -> dict[str, float]:
        """Score, allocate and take a gradient step."""
        taken = step(
            self.models,
            batches,
            self.loss,
            self.rule(),
            self.optimizer,
            self.progress,
            self.generator,
        )
        return {"loss": float(taken.value), **usage(taken.weights)}

    def answer(self, x: Tensor) -> Tensor:
        """Predict with each local model, (N, K, D)."""
        self.models.train(False)
        return as_answers(self.models(x).transpose(0, 1), self.problem.is_classification)

    def contexts(self, batches: Batches) -> Tensor:
        """The local model with the smallest loss on each group, (B,)."""
        return score(self.models, batches, self.loss).argmin(-1)


@register("leaf-em")
class LeafEM(Leaf):
    """LEAF-EM: the model is sampled from the posterior (Appendix A.3).

    Parameters
    ----------
    n_contexts
        As in `Leaf`.
    temperature
        Temperature of the posterior; the paper uses 0.1 in regression and 1 in classification.

    Examples
    --------
    >>> LeafEM().temperature
    'paper'
    """

    def __init__(
        self, *, n_contexts: int | None = None, temperature: Temperature = "paper"
    ) -> None:
        super().__init__(n_contexts=n_contexts)
        self.temperature = temperature

    def degree(self) -> float:
        """The temperature as a number."""
        return (
            (1.0 if self.problem.is_classification else 0.1)
            if self.temperature == "paper"
            else float(self.temperature)
        )

    def rule(self) -> Rule:
        """Sample a model."""
        return Sampled(self.degree())


@register("em-single")
class EMSingle(LeafEM):
    """EM without groups (Appendix G).

    Every row is a group of its own, and every model learns from it with its posterior weight.

    Examples
    --------
    >>> EMSingle.name
    'em-single'
    """

    def rule(self) -> Rule:
        """Textbook EM."""
        return Soft(self.degree())

    def learn(self, batches: Batches, oracle_info: OracleInfo | None) -> dict[str, float]:
        """Like LEAF, row by row."""
        rows = torch.arange(len(batches.group))
        return super().learn(
            Batches(batches.x, batches.y, rows, index=batches.index, n_groups=len(rows)),
            oracle_info,
        )


@register("leaf-extra")
class LeafExtra(Leaf):
    """LEAF with one extra model (LEAF-AM in the paper).

    Examples
    --------
    >>> LeafExtra.name
    'leaf-extra'
    """

    def build(self) -> None:
        """Create one network more than there are domains."""
        self.n_contexts = self.n_contexts or self.problem.n_domains + 1
        super().build()


def usage(weights: Tensor) -> dict[str, float]:
    """Share of the groups (B, K) that each model learned from, by name.

    Examples
    --------
    >>> usage(torch.tensor([[1.0, 0.0], [1.0, 0.0]]))
    {'usage_0': 1.0, 'usage_1': 0.0}
    """
    return {f"usage_{k}": float(share) for k, share in enumerate(weights.mean(0))}
