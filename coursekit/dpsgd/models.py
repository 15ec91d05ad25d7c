"""Small models for the course: logistic regression, a network of linear layers, a small CNN.

Weights and biases are drawn evenly from -1/sqrt(inputs) to 1/sqrt(inputs), as PyTorch does, but
from a seeded NumPy generator, so that they are the same on every CPU. They depend on no record.
"""

from itertools import pairwise

import numpy as np
import torch
from torch import nn

from coursekit import _arguments
from coursekit.ensemble import draw_evenly

ACTIVATIONS = {"relu": nn.ReLU, "tanh": nn.Tanh}
DTYPES = (torch.float64, torch.float32)


def logistic_regression(features, classes, *, seed, dtype=torch.float64):
    """Return one linear layer from `features` numbers to `classes` scores (logits).

    Raises: TypeError or ValueError unless features is a whole number of at least 1, classes of at
    least 2, seed of at least 0, and dtype is torch.float64 or torch.float32.

    >>> logistic_regression(64, 10, seed=0)
    Sequential(
      (0): Linear(in_features=64, out_features=10, bias=True)
    )
    """
    return mlp([features, classes], seed=seed, dtype=dtype)


def mlp(widths, *, seed, activation="relu", dtype=torch.float64):
    """Return linear layers of the sizes `widths`, features first and classes last.

    Raises: TypeError or ValueError as `logistic_regression`, for fewer than two widths, or for an
    activation that is not "relu" or "tanh".

    >>> mlp([64, 128, 10], seed=0)
    Sequential(
      (0): Linear(in_features=64, out_features=128, bias=True)
      (1): ReLU()
      (2): Linear(in_features=128, out_features=10, bias=True)
    )
    """
    if not isinstance(widths, (list, tuple)) or len(widths) < 2:
        raise ValueError(f"widths must be a list of two or more sizes, got {widths!r}.")
    widths = [_arguments.whole(w, "each of widths", least=1) for w in widths]
    _arguments.whole(widths[-1], "classes", least=2)
    between = ACTIVATIONS[_arguments.one_of(activation, "activation", tuple(ACTIVATIONS))]
    layers = []
    for inside, outside in pairwise(widths):
        layers += [nn.utils.skip_init(nn.Linear, inside, outside), between()]
    return _drawn(nn.Sequential(*layers[:-1]), seed, dtype)


def small_cnn(side, classes, *, seed, channels=(16, 32), dtype=torch.float64):
    """Return a CNN for records of side * side numbers: two 3 x 3 convolutions, tanh, max pooling.

    tanh rather than ReLU because it trains better under DP-SGD (Papernot, Thakurta, Song, Chien,
    Erlingsson 2021, AAAI). Raises: TypeError or ValueError unless side is a whole number of at
    least 4, `channels` two of at least 1, and the rest as for `logistic_regression`.

    >>> small_cnn(14, 10, seed=0)(torch.zeros(5, 196, dtype=torch.float64)).shape
    torch.Size([5, 10])
    """
    side = _arguments.whole(side, "side", least=4)
    classes = _arguments.whole(classes, "classes", least=2)
    if not isinstance(channels, (list, tuple)) or len(channels) != 2:
        raise ValueError(f"channels must be two sizes, got {channels!r}.")
    first, second = (_arguments.whole(size, "each of channels", least=1) for size in channels)
    layers = [nn.Unflatten(1, (1, side, side))]
    for inside, outside in ((1, first), (first, second)):
        layers += [nn.utils.skip_init(nn.Conv2d, inside, outside, 3, padding=1), nn.Tanh()]
        layers += [nn.MaxPool2d(2)]
    flat = second * (side // 4) ** 2
    layers += [nn.Flatten(), nn.utils.skip_init(nn.Linear, flat, classes)]
    return _drawn(nn.Sequential(*layers), seed, dtype)


def _drawn(model, seed, dtype):
    rng = np.random.default_rng(_arguments.whole(seed, "seed", least=0))
    if dtype not in DTYPES:
        raise ValueError(f"dtype must be torch.float64 or torch.float32, got {dtype!r}.")
    for layer in model.to(dtype):
        if hasattr(layer, "weight"):
            draw_evenly(layer.parameters(), layer.weight[0].numel(), rng)
    return model
