"""Oracles: methods that see the domains or the labels of all domains."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from leaflearn.benchmark.methods.contract import Method, OracleInfo, as_answers, descend
from leaflearn.benchmark.methods.erm import ERM
from leaflearn.benchmark.methods.label_sets import label_set_loss, label_set_network
from leaflearn.benchmark.methods.leaf import usage
from leaflearn.benchmark.methods.registry import register
from leaflearn.core.algorithm import objective
from leaflearn.core.allocation import one_hot
from leaflearn.core.batches import Batches
from leaflearn.core.model_set import make_model_set

N_SHARED = 64  # neurons or channels of the shared layer


@register("mtl-oracle")
class MultiTaskOracle(Method):
    """One model per domain, given the domain of each group.

    Parameters
    ----------
    shared
        Add a layer that all models share, as the paper also tried.

    Examples
    --------
    >>> sorted(MultiTaskOracle.sees)
    ['domain']
    """

    sees = frozenset({"domain"})

    def __init__(self, *, shared: bool = False) -> None:
        self.shared = shared

    def build(self) -> None:
        """Create one network per domain."""
        self.models = make_model_set(
            lambda: self.problem.network(self.problem.n_outputs), (self.problem.n_domains,)
        )
        self.shared_layer = self._make_shared() if self.shared else nn.Identity()
        self.optimizer = self.problem.optimizer(
            [*self.models.parameters(), *self.shared_layer.parameters()]
        )

    def learn(self, batches: Batches, oracle_info: OracleInfo | None) -> dict[str, float]:
        """Train each model on its own domain."""
        assert oracle_info is not None, "the multi-task oracle needs an OracleInfo"
        assert oracle_info.domain is not None, (
            "the multi-task oracle needs the domain of each group"
        )
        weights = one_hot(oracle_info.domain, self.problem.n_domains, batches.x.dtype)
        seen = Batches(
            self.shared_layer(batches.x), batches.y, batches.group, n_groups=batches.n_groups
        )
        return {
            "loss": descend(
                self.optimizer, objective(self.models, seen, self.problem.loss, weights)
            ),
            **usage(weights),
        }

    def answer(self, x: Tensor) -> Tensor:
        """Predict with the model of each domain, (N, K, D)."""
        self.models.train(False)
        return as_answers(
            self.models(self.shared_layer(x)).transpose(0, 1), self.problem.is_classification
        )

    def _make_shared(self) -> nn.Module:
        """A layer that keeps the shape of its inputs, so that the networks do not change."""
        channels = self.problem.input_shape[0]
        if len(self.problem.input_shape) == 3:
            return nn.Sequential(
                nn.Conv2d(channels, N_SHARED, 3, padding=1),
                nn.ReLU(),
                nn.Conv2d(N_SHARED, channels, 1),
            )
        return nn.Sequential(
            nn.Linear(channels, N_SHARED), nn.ReLU(), nn.Linear(N_SHARED, channels)
        )


@register("mll-oracle")
class MultiLabelOracle(ERM):
    """One network for all labels, given the label of each row in every domain.

    Examples
    --------
    >>> sorted(MultiLabelOracle.sees)
    ['label_set']
    """

    sees = frozenset({"label_set"})
    claims = frozenset({"classification"})
    gives_label_set = True

    def build(self) -> None:
        """Create one network."""
        self.network = label_set_network(self.problem)
        self.optimizer = self.problem.optimizer(self.network.parameters())

    def learn(self, batches: Batches, oracle_info: OracleInfo | None) -> dict[str, float]:
        """Minimize the binary cross-entropy of all labels."""
        assert oracle_info is not None, "the multi-label oracle needs an OracleInfo"
        assert oracle_info.label_sets is not None, (
            "the multi-label oracle needs the labels of all domains"
        )
        goal = torch.zeros(len(batches.x), self.problem.n_outputs).scatter_(
            1, oracle_info.label_sets, 1.0
        )
        self.network.train()
        return {"loss": descend(self.optimizer, label_set_loss(self.network(batches.x), goal))}

    def answer(self, x: Tensor) -> Tensor:
        """Predict the probability of each label, (N, 1, C)."""
        return torch.sigmoid(self.network.eval()(x))[:, None]
