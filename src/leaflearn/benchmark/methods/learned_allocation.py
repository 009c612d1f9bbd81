"""Allocation by a separate network, which reads the rows of a group and predicts its local model.

It is a baseline for LEAF's allocation, which takes the model with the smallest loss and has no
parameters. The idea follows Su et al. (2020), who train the network and the models in two nested
problems. Here both minimize the same soft loss at once, which is the simplest variant.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from leaflearn.benchmark.methods.contract import OracleInfo, descend
from leaflearn.benchmark.methods.leaf import Leaf, usage
from leaflearn.benchmark.methods.registry import register
from leaflearn.benchmark.methods.sparse_moe import append_targets
from leaflearn.core.algorithm import sum_rows_by_group
from leaflearn.core.batches import Batches
from leaflearn.core.model_set import make_model_set

WIDTH = 32  # of the embeddings of rows and groups


@register("learned-allocation")
class LearnedAllocation(Leaf):
    """K local models, and a network that predicts their weights for a group from its rows.

    Parameters
    ----------
    n_contexts
        Number of local models; None means the number of domains.

    Examples
    --------
    >>> LearnedAllocation(n_contexts=4).n_contexts
    4
    """

    def build(self) -> None:
        """Create K networks, and one that reads groups."""
        n_contexts, n_outputs = self.n_contexts or self.problem.n_domains, self.problem.n_outputs
        self.models = make_model_set(lambda: self.problem.network(n_outputs), (n_contexts,))
        self.reader = GroupReader(
            self.problem.network(WIDTH), n_outputs, n_contexts, self.problem.is_classification
        )
        self.optimizer = self.problem.optimizer(
            [*self.models.parameters(), *self.reader.parameters()]
        )

    def learn(self, batches: Batches, oracle_info: OracleInfo | None) -> dict[str, float]:
        """Minimize the weighted mean losses of the local models, averaged over groups."""
        self.models.train(True)
        weights = self.reader.train()(batches)  #                                             (B, K)
        losses = _average(self.problem.loss(self.models(batches.x), batches.y), batches)  #   (B, K)
        return {
            "loss": descend(self.optimizer, (weights * losses).sum(-1).mean()),
            **usage(weights.detach()),
        }

    def contexts(self, batches: Batches) -> Tensor:
        """The local model with the largest predicted weight for each group, (B,)."""
        with torch.no_grad():
            return torch.as_tensor(self.reader.eval()(batches).argmax(-1))


class GroupReader(nn.Module):
    """Probabilities of K local models for each group, from the mean embedding of its rows (x, y).

    Parameters
    ----------
    network
        Embeds the inputs, with 32 outputs.
    n_outputs, n_contexts, is_classification
        Classes, or values per row; K; whether targets are classes.

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
        inputs = append_targets(self.network(batches.x), batches.y, self.n_classes)
        rows = self.embed(inputs)  #                                                         (N, 32)
        return torch.softmax(self.decide(_average(rows.T, batches)), -1)


def _average(rows: Tensor, batches: Batches) -> Tensor:
    """Average values of rows (D, N) over groups, (B, D)."""
    return (
        sum_rows_by_group(rows, batches.group, batches.n_groups, batches.weight)
        / batches.sizes.to(rows)[:, None]
    )
