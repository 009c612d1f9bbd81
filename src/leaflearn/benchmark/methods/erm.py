"""Empirical risk minimization: one pooled model, which learns the average target."""

from __future__ import annotations

from torch import Tensor

from leaflearn.benchmark.methods.contract import Method, OracleInfo, as_answers, descend
from leaflearn.benchmark.methods.registry import register
from leaflearn.core.batches import Batches


@register("erm")
class ERM(Method):
    """One pooled model.

    Examples
    --------
    >>> ERM().name
    'erm'
    """

    def build(self) -> None:
        """Create one network."""
        self.network = self.problem.network(self.problem.n_outputs)
        self.optimizer = self.problem.optimizer(self.network.parameters())

    def learn(self, batches: Batches, oracle_info: OracleInfo | None) -> dict[str, float]:
        """Minimize the mean loss of all rows."""
        self.network.train()
        return {
            "loss": descend(
                self.optimizer, self.problem.loss(self.network(batches.x), batches.y).mean()
            )
        }

    def answer(self, x: Tensor) -> Tensor:
        """Predict with the pooled model, (N, 1, D)."""
        return as_answers(self.network.eval()(x), self.problem.is_classification)[:, None]


@register("erm-top-k")
class ERMTopK(ERM):
    """One pooled model, whose k best labels are the predicted labels of the k domains.

    Examples
    --------
    >>> ERMTopK.gives_label_set
    True
    """

    claims = frozenset({"classification"})
    gives_label_set = True
