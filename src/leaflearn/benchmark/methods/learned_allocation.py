"""Allocation by a network of its own: it reads the rows of a group and says which local model the group belongs to.

This is what LEAF's allocation is contrasted with. LEAF takes the model of the smallest loss, which needs no parameters; here, as in the
spirit of Su et al. (2020), a separate network infers the index. Su et al. train it and the models in two nested problems; here both descend
the same soft loss at once, which is the plainest thing to do with a separate network.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from leaflearn.benchmark.methods.contract import OracleInfo, descend
from leaflearn.benchmark.methods.leaf import Leaf, usage
from leaflearn.benchmark.methods.registry import register
from leaflearn.benchmark.methods.sparse_moe import join
from leaflearn.core.algorithm import sum_by_group
from leaflearn.core.batches import Batches
from leaflearn.core.model_set import make_model_set

WIDTH = 32  # of what is known of a row, and of a group


@register("learned-allocation")
class LearnedAllocation(Leaf):
    """K local models, and a network that tells from the rows of a group how much each model should learn from it.

    Parameters
    ----------
    n_contexts
        Local models; as many as there are domains where None.

    Examples
    --------
    >>> LearnedAllocation(n_contexts=4).n_contexts
    4
    """

    def build(self) -> None:
        """K networks, and one more that reads groups."""
        n_contexts, n_outputs = self.n_contexts or self.problem.n_domains, self.problem.n_outputs
        self.models = make_model_set(lambda: self.problem.network(n_outputs), (n_contexts,))
        self.reader = GroupReader(
            self.problem.network(WIDTH), n_outputs, n_contexts, self.problem.is_classification
        )
        self.optimizer = self.problem.optimizer(
            [*self.models.parameters(), *self.reader.parameters()]
        )

    def learn(self, batches: Batches, told: OracleInfo | None) -> dict[str, float]:
        """Mean over groups of the local models' mean losses, weighted with what the network makes of the group."""
        self.models.train(True)
        weights = self.reader.train()(batches)  #                                             (B, K)
        losses = _average(self.problem.loss(self.models(batches.x), batches.y), batches)  #   (B, K)
        return {
            "loss": descend(self.optimizer, (weights * losses).sum(-1).mean()),
            **usage(weights.detach()),
        }

    def contexts(self, batches: Batches) -> Tensor:
        """The local model that the network infers for each group, (B,)."""
        with torch.no_grad():
            return torch.as_tensor(self.reader.eval()(batches).argmax(-1))


class GroupReader(nn.Module):
    """Probabilities of K local models for each group, from the mean over its rows of an embedding of (x, y).

    Parameters
    ----------
    network
        Reads the inputs, with 32 outputs.
    n_outputs, n_contexts, is_classification
        Classes, or values a row; K; whether the answers are classes.

    Examples
    --------
    >>> reader = GroupReader(nn.Linear(1, 32), n_outputs=1, n_contexts=3, is_classification=False)
    >>> reader(Batches(torch.zeros(3, 1), torch.zeros(3, 1), torch.tensor([0, 0, 1]))).shape
    torch.Size([2, 3])
    """

    def __init__(
        self, network: nn.Module, n_outputs: int, n_contexts: int, is_classification: bool
    ) -> None:
        super().__init__()
        self.n_classes = n_outputs if is_classification else None
        self.network = network
        self.embed = nn.Sequential(
            nn.Linear(WIDTH + n_outputs, WIDTH), nn.ReLU(), nn.Linear(WIDTH, WIDTH), nn.ReLU()
        )
        self.decide = nn.Linear(WIDTH, n_contexts)

    def forward(self, batches: Batches) -> Tensor:
        """Probabilities, (B, K)."""
        rows = self.embed(join(self.network(batches.x), batches.y, self.n_classes))  #       (N, 32)
        return torch.softmax(self.decide(_average(rows.T, batches)), -1)


def _average(rows: Tensor, batches: Batches) -> Tensor:
    """From numbers of rows (D, N) to their means over groups (B, D)."""
    return (
        sum_by_group(rows, batches.group, batches.n_groups, batches.weight)
        / batches.sizes.to(rows)[:, None]
    )
