"""The networks that local models are made of where the user names none."""

from __future__ import annotations

from torch import nn


def mlp(n_inputs: int, n_outputs: int, hidden: tuple[int, ...] = (32, 32, 32, 32, 32)) -> nn.Sequential:
    """Linear layers with ReLU between them; the default widths are those of the paper's regression task.

    Examples
    --------
    >>> mlp(2, 1, hidden=(8,))
    Sequential(
      (0): Linear(in_features=2, out_features=8, bias=True)
      (1): ReLU()
      (2): Linear(in_features=8, out_features=1, bias=True)
    )
    """
    layers: list[nn.Module] = []
    for width in hidden:
        layers += [nn.Linear(n_inputs, width), nn.ReLU()]
        n_inputs = width
    return nn.Sequential(*layers, nn.Linear(n_inputs, n_outputs))
