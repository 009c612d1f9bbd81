"""A sparse mixture of experts: a gate looks at one row, its answer included, and hands it to one of K experts.

    H(x, y) = [x, y] W_gate + noise * softplus([x, y] W_noise)      the noisy logits
    G(x, y) = softmax(keep_top_1(H(x, y)))                          as the paper prints it

A softmax over one kept logit is 1, whatever the logit is. So the printed gate has no gradient: its draw at the start decides for good which
rows an expert learns from, and only weight decay moves it. The "switch" gate keeps the probability that the chosen expert has among all of
them, which depends on the logits, and is asked to use all experts alike (after Fedus et al. 2022).

A gate that can learn need not find the domains: it sees y, so it may hand each expert the rows whose answers are alike, whatever they
answer. Then the loss in training is small, and no expert knows a domain.

Where the paper is silent, this is assumed: every row and every expert has noise of its own, as in Shazeer et al. (2017), which is left out
where nothing is learnt; rows are routed one by one ("for each example"), so groups play no part; the gate's matrices have no bias and start
as any linear layer does; a label becomes one plane a class, all ones for the class at hand.
"""

from __future__ import annotations

import math
from typing import Literal, get_args

import torch
from torch import Tensor, nn
from torch.nn.functional import softplus

from leaflearn.benchmark.methods.contract import Method, OracleInfo, Problem, as_answers, descend
from leaflearn.benchmark.methods.leaf import usage
from leaflearn.benchmark.methods.registry import register
from leaflearn.core.allocation import one_hot
from leaflearn.core.batches import Batches
from leaflearn.core.model_set import make_model_set

Gate = Literal["paper", "switch"]


@register("sparse-moe")
class SparseMoE(Method):
    """As many experts as domains, and a noisy gate that sees a row with its answer and picks one of them.

    Parameters
    ----------
    gate
        "paper", which cannot learn, or "switch", which weighs the loss with the probability of the chosen expert.
    balance
        How much the switch gate is asked to use all experts alike.
    hidden
        Neurons of a layer before the gate; 0, as printed, makes it linear, so that it can only part rows along straight lines.

    Examples
    --------
    >>> SparseMoE(gate="switch").balance
    0.01
    """

    def __init__(self, *, gate: Gate = "paper", balance: float = 0.01, hidden: int = 0) -> None:
        if gate not in get_args(Gate):
            raise ValueError(
                f"`gate` is {gate!r}; choose 'paper', which is as printed, or 'switch', which can learn."
            )
        self.kind, self.balance, self.hidden = gate, balance, hidden

    def build(self) -> None:
        """K experts and a gate, which learn together."""
        n_experts = self.problem.n_domains
        self.models = make_model_set(
            lambda: self.problem.network(self.problem.n_outputs), (n_experts,)
        )
        self.gate = NoisyGate(_count_inputs(self.problem), n_experts, self.hidden)
        self.optimizer = self.problem.optimizer(
            [*self.models.parameters(), *self.gate.parameters()]
        )

    def learn(self, batches: Batches, told: OracleInfo | None) -> dict[str, float]:
        """The mean loss of all rows, each under its own expert."""
        logits = self.gate(self._join(batches), self.generator)  #                            (N, K)
        chosen = one_hot(logits.argmax(-1), logits.shape[-1], logits.dtype)
        weights = self._weigh(logits, chosen)
        self.models.train(True)
        value = self.models.weighted_loss(batches, self.problem.loss, weights.T / len(weights))
        if self.kind == "switch":
            value = _against_mean(value, weights) + self.balance * imbalance(logits, chosen)
        return {"loss": descend(self.optimizer, value), **usage(chosen)}

    def answer(self, x: Tensor) -> Tensor:
        """The answer of each expert, (N, K, D): at test time there is no y for the gate to see."""
        self.models.train(False)
        return as_answers(self.models(x).transpose(0, 1), self.problem.is_classification)

    def experts(self, batches: Batches) -> Tensor:
        """The expert that each row goes to without noise, (N,)."""
        with torch.no_grad():
            return torch.as_tensor(self.gate(self._join(batches)).argmax(-1))

    def _weigh(self, logits: Tensor, chosen: Tensor) -> Tensor:
        """What each expert's loss on each row counts, (N, K): zero but for the chosen one.

        The sum of gated outputs has one term, so its loss is the loss of that term. The switch weighs the loss and not the output: an
        expert whose output is scaled while it learns gives answers of the wrong size when it is asked alone.
        """
        if self.kind == "paper":
            return torch.softmax(keep_top_1(logits), -1)
        return torch.softmax(logits, -1) * chosen

    def _join(self, batches: Batches) -> Tensor:
        return join(
            batches.x, batches.y, self.problem.n_outputs if self.problem.is_classification else None
        ).flatten(1)


class NoisyGate(nn.Module):
    """Logits of K experts, with noise whose size is learnt too.

    Parameters
    ----------
    n_inputs, n_experts
        Columns of [x, y], and K.
    hidden
        Neurons of a layer before the two matrices; 0 for none.

    Examples
    --------
    >>> NoisyGate(3, 2)(torch.zeros(5, 3)).shape
    torch.Size([5, 2])
    """

    def __init__(self, n_inputs: int, n_experts: int, hidden: int = 0) -> None:
        super().__init__()
        self.features = (
            nn.Sequential(nn.Linear(n_inputs, hidden), nn.ReLU()) if hidden else nn.Identity()
        )
        self.clean = nn.Linear(hidden or n_inputs, n_experts, bias=False)
        self.noise = nn.Linear(hidden or n_inputs, n_experts, bias=False)

    def forward(self, rows: Tensor, generator: torch.Generator | None = None) -> Tensor:
        """Logits (N, K); without noise where there is no generator to draw it from."""
        features = self.features(rows)
        logits: Tensor = self.clean(features)
        if generator is None:
            return logits
        return logits + torch.randn(logits.shape, generator=generator) * softplus(
            self.noise(features)
        )


def join(x: Tensor, y: Tensor, n_classes: int | None = None) -> Tensor:
    """Inputs with their answers beside them: as further columns, or as further planes of an image.

    Parameters
    ----------
    x
        Inputs, (N, D), or images (N, C, H, W).
    y
        Values (N, D), or class numbers (N,) of `n_classes` classes, which become ones and zeros.
    n_classes
        None in regression.

    Examples
    --------
    >>> join(torch.tensor([[5.0], [6.0]]), torch.tensor([0, 1]), n_classes=2)
    tensor([[5., 1., 0.],
            [6., 0., 1.]])
    >>> join(torch.zeros(4, 3, 8, 8), torch.zeros(4, dtype=torch.long), n_classes=18).shape
    torch.Size([4, 21, 8, 8])
    """
    target = y.to(x.dtype) if n_classes is None else one_hot(y, n_classes, x.dtype)  #        (N, D)
    if x.ndim == 4:
        return torch.cat([x, target[:, :, None, None].expand(-1, -1, *x.shape[2:])], 1)
    return torch.cat([x.flatten(1), target], 1)


def keep_top_1(logits: Tensor) -> Tensor:
    """All logits but the largest of each row become minus infinity; of equals, the first is kept.

    Examples
    --------
    >>> keep_top_1(torch.tensor([[1.0, 3.0, 2.0]]))
    tensor([[-inf, 3., -inf]])
    """
    best = logits.argmax(-1, keepdim=True)
    return logits.masked_fill(torch.arange(logits.shape[-1]) != best, -torch.inf)


def imbalance(logits: Tensor, chosen: Tensor) -> Tensor:
    """How unevenly the experts are used: 1 where all are used alike, K where one takes all rows for certain.

    The share of the rows that an expert has does not depend on the logits smoothly, but its mean probability does: their product is small
    where the experts that have many rows are made less likely.

    Examples
    --------
    >>> imbalance(torch.zeros(2, 2), torch.tensor([[1.0, 0.0], [0.0, 1.0]]))
    tensor(1.)
    >>> imbalance(torch.tensor([[99.0, 0.0]]), torch.tensor([[1.0, 0.0]]))
    tensor(2.)
    """
    return logits.shape[-1] * (chosen.mean(0) * torch.softmax(logits, -1).mean(0)).sum()


def _against_mean(value: Tensor, weights: Tensor) -> Tensor:
    """The same value, but the gate learns only whether a row did better or worse than the mean.

    All losses are positive: without this, the gate would gain wherever it is less sure of its choice, and end as a toss of a coin.
    """
    kept = weights.sum(-1).mean()
    return value - (value / kept).detach() * (kept - kept.detach())


def _count_inputs(problem: Problem) -> int:
    """Columns of what the gate sees."""
    shape = problem.input_shape
    return math.prod(shape) + problem.n_outputs * (math.prod(shape[1:]) if len(shape) == 3 else 1)
