"""A sparse mixture of experts: a gate sees one row with its target and selects one of K experts.

    H(x, y) = [x, y] W_gate + noise * softplus([x, y] W_noise)      the noisy logits
    G(x, y) = softmax(keep_top_1(H(x, y)))                          as the paper prints it

A softmax over a single logit is always 1, so the printed gate has no gradient. Its initialization
determines which rows each expert learns from, and only weight decay changes it. The "switch" gate
keeps the probability of the selected expert among all experts, which depends on the logits, and has
a penalty for unequal use of the experts (after Fedus et al. 2022).

A gate that can learn need not find the domains. It sees y, so it can send rows with similar targets
to the same expert. Then the training loss is small, but no expert corresponds to a domain.

Assumptions where the paper is silent: every row and expert has its own noise, as in Shazeer et al.
(2017), and there is no noise outside training; rows are routed one by one ("for each example"), so
groups are not used; the gate's matrices have no bias and the default initialization of linear
layers; a label becomes one plane per class, with ones for the class of the row.
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
    """One expert per domain, and a noisy gate that sees a row with its target and selects one.

    Parameters
    ----------
    gate
        "paper", which cannot learn, or "switch", which weights the loss by the probability of the
        selected expert.
    balance
        Weight of the switch gate's penalty for unequal use of the experts.
    hidden
        Neurons of a layer before the gate. 0, as printed, makes the gate linear.

    Examples
    --------
    >>> SparseMoE(gate="switch").balance
    0.01
    """

    def __init__(self, *, gate: Gate = "paper", balance: float = 0.01, hidden: int = 0) -> None:
        if gate not in get_args(Gate):
            raise ValueError(
                f"`gate` is {gate!r}; choose 'paper', as printed, or 'switch', which can learn."
            )
        self.kind, self.balance, self.hidden = gate, balance, hidden

    def build(self) -> None:
        """Create K experts and a gate, which are trained together."""
        n_experts = self.problem.n_domains
        self.models = make_model_set(
            lambda: self.problem.network(self.problem.n_outputs), (n_experts,)
        )
        self.gate = NoisyGate(_count_inputs(self.problem), n_experts, self.hidden)
        self.optimizer = self.problem.optimizer(
            [*self.models.parameters(), *self.gate.parameters()]
        )

    def learn(self, batches: Batches, oracle_info: OracleInfo | None) -> dict[str, float]:
        """Minimize the mean loss of all rows, each under its own expert."""
        logits = self.gate(self._inputs(batches), self.generator)  #                          (N, K)
        chosen = one_hot(logits.argmax(-1), logits.shape[-1], logits.dtype)
        weights = self._weigh(logits, chosen)
        self.models.train(True)
        value = self.models.weighted_loss(batches, self.problem.loss, weights.T / len(weights))
        if self.kind == "switch":
            value = _against_mean(value, weights) + self.balance * imbalance(logits, chosen)
        return {"loss": descend(self.optimizer, value), **usage(chosen)}

    def answer(self, x: Tensor) -> Tensor:
        """Predict with each expert, (N, K, D): at test time the gate has no y."""
        self.models.train(False)
        return as_answers(self.models(x).transpose(0, 1), self.problem.is_classification)

    def experts(self, batches: Batches) -> Tensor:
        """The expert that each row is sent to without noise, (N,)."""
        with torch.no_grad():
            return torch.as_tensor(self.gate(self._inputs(batches)).argmax(-1))

    def _weigh(self, logits: Tensor, chosen: Tensor) -> Tensor:
        """Weight of each expert's loss on each row, (N, K): zero except for the selected expert.

        The sum of gated outputs has one term, so its loss is the loss of that term. The switch gate
        weights the loss and not the output: an expert whose output is scaled in training would give
        predictions of the wrong scale when it is used alone.
        """
        if self.kind == "paper":
            return torch.softmax(keep_top_1(logits), -1)
        return torch.softmax(logits, -1) * chosen

    def _inputs(self, batches: Batches) -> Tensor:
        return append_targets(
            batches.x, batches.y, self.problem.n_outputs if self.problem.is_classification else None
        ).flatten(1)


class NoisyGate(nn.Module):
    """Logits of K experts, with noise whose scale is learned as well.

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
        """Logits (N, K); without noise if there is no generator."""
        features = self.features(rows)
        logits: Tensor = self.clean(features)
        if generator is None:
            return logits
        return logits + torch.randn(logits.shape, generator=generator) * softplus(
            self.noise(features)
        )


def append_targets(x: Tensor, y: Tensor, n_classes: int | None = None) -> Tensor:
    """Append targets to their inputs: as further columns, or as further planes of an image.

    Parameters
    ----------
    x
        Inputs, (N, D), or images (N, C, H, W).
    y
        Values (N, D), or class numbers (N,) of `n_classes` classes, which are one-hot encoded.
    n_classes
        None in regression.

    Examples
    --------
    >>> append_targets(torch.tensor([[5.0], [6.0]]), torch.tensor([0, 1]), n_classes=2)
    tensor([[5., 1., 0.],
            [6., 0., 1.]])
    >>> images, labels = torch.zeros(4, 3, 8, 8), torch.zeros(4, dtype=torch.long)
    >>> append_targets(images, labels, n_classes=18).shape
    torch.Size([4, 21, 8, 8])
    """
    target = y.to(x.dtype) if n_classes is None else one_hot(y, n_classes, x.dtype)  #        (N, D)
    if x.ndim == 4:
        return torch.cat([x, target[:, :, None, None].expand(-1, -1, *x.shape[2:])], 1)
    return torch.cat([x.flatten(1), target], 1)


def keep_top_1(logits: Tensor) -> Tensor:
    """Set all logits except the largest of each row to minus infinity; the first one wins a tie.

    Examples
    --------
    >>> keep_top_1(torch.tensor([[1.0, 3.0, 2.0]]))
    tensor([[-inf, 3., -inf]])
    """
    best = logits.argmax(-1, keepdim=True)
    return logits.masked_fill(torch.arange(logits.shape[-1]) != best, -torch.inf)


def imbalance(logits: Tensor, chosen: Tensor) -> Tensor:
    """How unequally the experts are used: 1 if equally, K if one expert always has all rows.

    The share of rows of an expert is not a smooth function of the logits, but its mean probability
    is. Their product is small if experts with many rows become less probable.

    Examples
    --------
    >>> imbalance(torch.zeros(2, 2), torch.tensor([[1.0, 0.0], [0.0, 1.0]]))
    tensor(1.)
    >>> imbalance(torch.tensor([[99.0, 0.0]]), torch.tensor([[1.0, 0.0]]))
    tensor(2.)
    """
    return logits.shape[-1] * (chosen.mean(0) * torch.softmax(logits, -1).mean(0)).sum()


def _against_mean(value: Tensor, weights: Tensor) -> Tensor:
    """The same value, but with the mean loss as a baseline for the gate's gradient.

    All losses are positive. Without the baseline, the gate would gain by being less certain of its
    choice, and become uniform.
    """
    kept = weights.sum(-1).mean()
    return value - (value / kept).detach() * (kept - kept.detach())


def _count_inputs(problem: Problem) -> int:
    """Number of columns that the gate sees."""
    shape = problem.input_shape
    return math.prod(shape) + problem.n_outputs * (math.prod(shape[1:]) if len(shape) == 3 else 1)
