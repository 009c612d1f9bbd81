"""Methods that learn all labels of a row at once: a score for each label, how they learn, and where they begin."""

from __future__ import annotations

import math

from torch import Tensor, nn
from torch.nn.functional import binary_cross_entropy_with_logits

from leaflearn.benchmark.methods.contract import Problem


def label_set_loss(logits: Tensor, goal: Tensor, weight: Tensor | None = None) -> Tensor:
    """Binary cross-entropy of every label (N, C), summed over the labels of a row and averaged over rows.

    A mean over the labels would make the steps smaller the more labels there are, and hold back methods of label sets where plain SGD
    learns: the cross-entropy of one label has no such factor.

    Examples
    --------
    >>> import torch
    >>> label_set_loss(torch.zeros(1, 3), torch.tensor([[1.0, 0.0, 1.0]])).round(decimals=2)  # three times log 2
    tensor(2.0800)
    """
    return binary_cross_entropy_with_logits(logits, goal, weight=weight, reduction="sum") / len(
        logits
    )


def label_set_network(problem: Problem) -> nn.Module:
    """A new network that finds every label as unlikely as it is for a row to have it: one for each domain, of all there are.

    A network whose labels all begin at one half spends its first steps on pushing them down together, and where there are many labels
    this can silence its hidden neurons for good.

    Examples
    --------
    >>> import torch
    >>> problem = Problem((3,), 4, True, 1, 10, 500, lambda n_outputs: nn.Linear(3, n_outputs), lambda n_rows: None)
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
