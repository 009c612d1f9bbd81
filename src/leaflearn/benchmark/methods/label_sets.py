"""Shared parts of the methods that learn all labels of a row at once, with one score per label."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn
from torch.nn.functional import binary_cross_entropy_with_logits

from leaflearn.benchmark.methods.contract import Problem


def label_set_loss(logits: Tensor, goal: Tensor, weight: Tensor | None = None) -> Tensor:
    """Binary cross-entropy (N, C), summed over the labels of a row and averaged over rows.

    A mean over the labels would make the steps smaller the more labels there are, which slows down
    plain SGD; the cross-entropy of single labels has no such factor.

    Examples
    --------
    >>> import torch
    >>> goal = torch.tensor([[1.0, 0.0, 1.0]])
    >>> label_set_loss(torch.zeros(1, 3), goal).round(decimals=2)  # three times log 2
    tensor(2.0800)
    """
    return binary_cross_entropy_with_logits(logits, goal, weight=weight, reduction="sum") / len(
        logits
    )


def label_set_network(problem: Problem) -> nn.Module:
    """Create a network whose initial probability of each label is n_domains / n_labels.

    If all labels started at one half, the first steps would push all of them down together. With
    many labels this can deactivate hidden neurons permanently.

    Examples
    --------
    >>> import torch
    >>> network = lambda n_outputs: nn.Linear(3, n_outputs)
    >>> problem = Problem((3,), 4, True, 1, 10, 500, network, lambda n_rows: None)
    >>> torch.sigmoid(label_set_network(problem).bias.detach())
    tensor([0.2500, 0.2500, 0.2500, 0.2500])
    """
    n_labels, n_outputs = problem.n_domains, problem.n_outputs
    network = problem.network(n_outputs)
    layers = [layer for layer in network.modules() if isinstance(layer, nn.Linear)]
    if (
        layers
        and layers[-1].out_features == n_outputs
        and layers[-1].bias is not None
        and n_labels < n_outputs
    ):
        nn.init.constant_(layers[-1].bias, math.log(n_labels / (n_outputs - n_labels)))
    return network


def fill(given: Tensor, scores: Tensor, n_labels: int) -> Tensor:
    """Add to the given labels (N, C) those with the best scores (N, C), up to `n_labels` per row.

    Examples
    --------
    >>> fill(torch.tensor([[True, False, False]]), torch.tensor([[0.0, 0.1, 0.2]]), n_labels=2)
    tensor([[ True, False,  True]])
    """
    scores, n_best = scores.masked_fill(given, torch.inf), min(n_labels, given.shape[1])
    best = scores.topk(n_best).indices  #                                                (N, n_best)
    return given.scatter(1, best, True)  # more than `n_labels` only if more are given


def count_rows(problem: Problem, name: str) -> int:
    """Return the number of training rows, or raise an error if the training set is not fixed.

    Examples
    --------
    >>> problem = Problem((1,), 2, True, 2, 10, 500, nn.LazyLinear, lambda n_rows: None)
    >>> count_rows(problem, "pseudo-label")
    500
    """
    if problem.n_rows is None:
        raise ValueError(
            f"{name} stores the labels of every training input, but here inputs are drawn again "
            "for each group; "
            "choose a data set with a fixed training set."
        )
    return problem.n_rows
