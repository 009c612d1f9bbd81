"""PseudoLabel (Lee, 2013) for missing labels: each input has one label per domain, one is given.

start       missing labels are filled at random
each step   the network learns the whole label set of each row
each epoch  the filled labels are replaced by those with the highest confidence; given labels stay

Labels are replaced only after a warm-up. An untrained network is most confident of the frequent
labels; it would assign them to all inputs and then learn them.
"""

from __future__ import annotations

import torch
from torch import Tensor

from leaflearn.benchmark.methods.contract import Method, OracleInfo, descend
from leaflearn.benchmark.methods.label_sets import (
    count_rows,
    fill,
    label_set_loss,
    label_set_network,
)
from leaflearn.benchmark.methods.registry import register
from leaflearn.core.batches import Batches


@register("pseudo-label")
class PseudoLabel(Method):
    """One network for all labels, which fills the missing labels from its own confidence.

    An input may occur again with the label of another domain; all given labels are kept. The
    confidence is computed during the epoch, before the network learns from the rows again, so no
    inputs are stored.

    Parameters
    ----------
    warm_up
        Share of the run during which the random labels stay.

    Examples
    --------
    >>> PseudoLabel.gives_label_set, sorted(PseudoLabel.sees)
    (True, [])
    """

    claims = frozenset({"classification"})
    gives_label_set = True

    def __init__(self, *, warm_up: float = 0.5) -> None:
        self.warm_up = warm_up

    def build(self) -> None:
        """Create one network and the label tables; missing labels are drawn at random."""
        shape = (count_rows(self.problem, self.name), self.problem.n_outputs)
        self.network = label_set_network(self.problem)
        self.optimizer = self.problem.optimizer(self.network.parameters())
        self.given = torch.zeros(shape, dtype=torch.bool)  # given labels  (n_rows, C)
        # fills the missing labels
        self.confidence = torch.rand(shape, generator=self.generator)  #                 (n_rows, C)
        self.latest = self.confidence.clone()  # of this epoch            (n_rows, C)
        self.seen = torch.zeros(shape[0], dtype=torch.bool)  # in this epoch               (n_rows,)
        self.changed = torch.tensor(1.0)  # share of filled labels that the last epoch changed

    def learn(self, batches: Batches, oracle_info: OracleInfo | None) -> dict[str, float]:
        """Minimize the binary cross-entropy of given and filled labels."""
        assert batches.index is not None, "pseudo-label needs the row numbers of the training set"
        self.given[batches.index, batches.y] = True
        given, confidence = self.given[batches.index], self.confidence[batches.index]
        goal = fill(given, confidence, self.problem.n_domains)  #                             (N, C)
        logits = self.network.train()(batches.x)
        self.latest[batches.index], self.seen[batches.index] = logits.detach(), True
        return {
            "loss": descend(self.optimizer, label_set_loss(logits, goal.float())),
            "changed": float(self.changed),
        }

    def end_epoch(self) -> None:
        """Choose the filled labels again, after the warm-up."""
        if self.progress >= self.warm_up:
            self._choose_labels()
        self.seen = torch.zeros_like(self.seen)

    def label_sets(self) -> Tensor:
        """Given and filled labels of every input, (n_rows, C) of bool."""
        return fill(self.given, self.confidence, self.problem.n_domains)

    def answer(self, x: Tensor) -> Tensor:
        """Predict the probability of each label, (N, 1, C)."""
        return torch.sigmoid(self.network.eval()(x))[:, None]

    def _choose_labels(self) -> None:
        """Fill the labels of this epoch's inputs by the latest confidence; count the changes."""
        before = self.label_sets()
        self.confidence = torch.where(self.seen[:, None], self.latest, self.confidence)
        filled = (self.label_sets() & ~self.given)[self.seen]
        self.changed = (filled & ~before[self.seen]).sum() / filled.sum().clamp(min=1)
