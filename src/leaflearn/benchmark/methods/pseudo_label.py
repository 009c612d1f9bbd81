"""PseudoLabel (Lee, 2013) for labels that are missing: every input has one label a domain, of which a training row tells only one.

at first     the labels that are missing are filled at random
every step   the network learns the whole set of labels of each row
every epoch  the labels that were filled in are chosen anew, those that the network is most confident of; given labels stay

It begins to choose only when the network has learnt something: one that has not is most confident of the labels that are frequent, gives
them to all inputs, and learns to be right about it.
"""

from __future__ import annotations

import torch
from torch import Tensor

from leaflearn.benchmark.methods.contract import Method, OracleInfo, Problem, descend
from leaflearn.benchmark.methods.label_sets import label_set_loss, label_set_network
from leaflearn.benchmark.methods.registry import register
from leaflearn.core.batches import Batches


@register("pseudo-label")
class PseudoLabel(Method):
    """One model of all labels at once, which fills the missing labels from its own confidence.

    An input may come again with the label of another domain; every label that was ever given is kept. Confidence is read while the rows of
    an epoch pass, before the network learns from them again, so no input is stored. Once no label changes any more, none will.

    Parameters
    ----------
    warm_up
        Share of the run in which the labels drawn at random stay as they are.

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
        """One network, and what is known of the labels of each row: nothing yet, so the missing ones are drawn at random."""
        shape = (count_rows(self.problem, self.name), self.problem.n_outputs)
        self.network = label_set_network(self.problem)
        self.optimizer = self.problem.optimizer(self.network.parameters())
        self.given = torch.zeros(shape, dtype=torch.bool)  # labels that rows came with  (n_rows, C)
        # fills the missing ones
        self.confidence = torch.rand(shape, generator=self.generator)  #                 (n_rows, C)
        self.latest = (self.confidence.clone())  # the same, as of this epoch            (n_rows, C)
        self.seen = torch.zeros(shape[0], dtype=torch.bool)  # in this epoch               (n_rows,)
        self.changed = torch.tensor(1.0)  # share of filled labels that the last epoch changed

    def learn(self, batches: Batches, told: OracleInfo | None) -> dict[str, float]:
        """Binary cross-entropy, label by label, of given and filled labels."""
        assert batches.index is not None, (
            "pseudo-label must know which input of the training set each row is"
        )
        self.given[batches.index, batches.y] = True
        # (N, C)
        goal = fill(
            self.given[batches.index], self.confidence[batches.index], self.problem.n_domains
        )
        logits = self.network.train()(batches.x)
        self.latest[batches.index], self.seen[batches.index] = logits.detach(), True
        return {
            "loss": descend(self.optimizer, label_set_loss(logits, goal.float())),
            "changed": float(self.changed),
        }

    def end_epoch(self) -> None:
        """Fill the labels anew, once the warm-up is over."""
        if self.progress >= self.warm_up:
            self._choose_anew()
        self.seen = torch.zeros_like(self.seen)

    def label_sets(self) -> Tensor:
        """The labels that every input is believed to have, given ones among them, (n_rows, C) of bool."""
        return fill(self.given, self.confidence, self.problem.n_domains)

    def answer(self, x: Tensor) -> Tensor:
        """How likely each label is, (N, 1, C)."""
        return torch.sigmoid(self.network.eval()(x))[:, None]

    def _choose_anew(self) -> None:
        """Fill the labels of the inputs that this epoch saw by the latest confidence, and count how many change."""
        before = self.label_sets()
        self.confidence = torch.where(self.seen[:, None], self.latest, self.confidence)
        filled = (self.label_sets() & ~self.given)[self.seen]
        self.changed = (filled & ~before[self.seen]).sum() / filled.sum().clamp(min=1)


def fill(given: Tensor, scores: Tensor, n_labels: int) -> Tensor:
    """The given labels (N, C) of each row, and those with the best scores (N, C) until there are `n_labels` of them.

    Examples
    --------
    >>> fill(torch.tensor([[True, False, False]]), torch.tensor([[0.0, 0.1, 0.2]]), n_labels=2)
    tensor([[ True, False,  True]])
    """
    # (N, n_labels)
    best = (scores.masked_fill(given, torch.inf).topk(min(n_labels, given.shape[1])).indices)
    return given.scatter(1, best, True)  # more than `n_labels` only where more are given


def count_rows(problem: Problem, name: str) -> int:
    """Rows of the training set, for a method that remembers their labels; an error where there is no end to them.

    Examples
    --------
    >>> count_rows(Problem((1,), 2, True, 2, 10, 500, torch.nn.LazyLinear, lambda n_rows: None), "pseudo-label")
    500
    """
    if problem.n_rows is None:
        raise ValueError(
            f"{name} remembers the labels of every training input, but here inputs are drawn anew for each group; "
            "choose a data set with a fixed training set."
        )
    return problem.n_rows
