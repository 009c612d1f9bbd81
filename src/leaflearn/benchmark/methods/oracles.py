"""The oracles: they are told what nobody else may know."""

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

N_SHARED = 64


@register("mtl-oracle")
class MultiTaskOracle(Method):
    """One model a domain, told the domain of each group.

    Parameters
    ----------
    shared
        Let all models look through one layer that they share, which the paper tried.

    Examples
    --------
    >>> sorted(MultiTaskOracle.sees)
    ['domain']
    """

    sees = frozenset({"domain"})

    def __init__(self, *, shared: bool = False) -> None:
        self.shared = shared

    def build(self) -> None:
        """As many networks as domains."""
        self.models = make_model_set(
            lambda: self.problem.network(self.problem.n_outputs), (self.problem.n_domains,)
        )
        self.shared_layer = self._make_shared() if self.shared else nn.Identity()
        self.optimizer = self.problem.optimizer(
            [*self.models.parameters(), *self.shared_layer.parameters()]
        )

    def learn(self, batches: Batches, told: OracleInfo | None) -> dict[str, float]:
        """Each model learns from its own domain."""
        assert told is not None, "the multi-task oracle must be told"
        assert told.domain is not None, (
            "the multi-task oracle must be told the domain of each group"
        )
        weights = one_hot(told.domain, self.problem.n_domains, batches.x.dtype)
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
        """The answer of each domain's model, (N, K, D)."""
        self.models.train(False)
        return as_answers(
            self.models(self.shared_layer(x)).transpose(0, 1), self.problem.is_classification
        )

    def _make_shared(self) -> nn.Module:
        """A layer that keeps the shape of its inputs, so that the same networks fit behind it."""
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
    """One model of all labels at once, told the answers of all domains to each row.

    Examples
    --------
    >>> sorted(MultiLabelOracle.sees)
    ['label_set']
    """

    sees = frozenset({"label_set"})
    claims = frozenset({"classification"})
    gives_label_set = True

    def build(self) -> None:
        """One network."""
        self.network = label_set_network(self.problem)
        self.optimizer = self.problem.optimizer(self.network.parameters())

    def learn(self, batches: Batches, told: OracleInfo | None) -> dict[str, float]:
        """Binary cross-entropy, label by label."""
        assert told is not None, "the multi-label oracle must be told"
        assert told.label_sets is not None, (
            "the multi-label oracle must be told the labels of all domains"
        )
        goal = torch.zeros(len(batches.x), self.problem.n_outputs).scatter_(1, told.label_sets, 1.0)
        self.network.train()
        return {"loss": descend(self.optimizer, label_set_loss(self.network(batches.x), goal))}

    def answer(self, x: Tensor) -> Tensor:
        """How likely each label is, (N, 1, C)."""
        return torch.sigmoid(self.network.eval()(x))[:, None]
