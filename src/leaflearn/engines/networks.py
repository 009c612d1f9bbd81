"""The default networks: a multilayer perceptron, and convolutions for images."""

from __future__ import annotations

from torch import nn


def mlp(
    n_inputs: int, n_outputs: int, hidden: tuple[int, ...] = (32, 32, 32, 32, 32)
) -> nn.Sequential:
    """Linear layers with ReLU between them; by default as wide as in the paper's regression task.

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


def convnet(
    input_shape: tuple[int, ...], n_outputs: int, channels: tuple[int, ...] = (16, 32, 32)
) -> nn.Sequential:
    """Convolutions with ReLU and one linear layer, as in the paper's image tasks.

    Each convolution but the last halves height and width.

    Parameters
    ----------
    input_shape
        Channels, height and width of an image.
    n_outputs
        Of the linear layer.
    channels
        Of each convolution. The paper gives their number, three or five, but no widths.

    Examples
    --------
    >>> convnet((3, 28, 28), 18)[-1]
    Linear(in_features=1568, out_features=18, bias=True)
    >>> convnet((3, 2, 2), 18)
    Traceback (most recent call last):
    ...
    ValueError: Images of 2 by 2 pixels are too small for 3 convolutions, which need 4 by 4; give
    larger images or fewer channels.
    """
    depth, height, width = input_shape
    least = 2 ** (len(channels) - 1)
    if min(height, width) < least:
        raise ValueError(
            f"Images of {height} by {width} pixels are too small for {len(channels)} convolutions, "
            f"which need {least} by {least}; give larger images or fewer channels."
        )
    layers: list[nn.Module] = []
    for number, n_channels in enumerate(channels):
        layers += [nn.Conv2d(depth, n_channels, 3, padding=1), nn.ReLU()]
        depth = n_channels
        if number < len(channels) - 1:
            layers.append(nn.MaxPool2d(2))
            height, width = height // 2, width // 2
    return nn.Sequential(*layers, nn.Flatten(), nn.Linear(depth * height * width, n_outputs))
