"""DP-SGD: clip each record's gradient, sum, add noise, step (notebook 04).

Adjacency: add/remove. Sampler: Poisson, each record in each batch with probability `sampling_rate`.
The promise covers the models of all steps, not the history, nor `seed`: whoever knows it can take
the noise away again. It holds in real arithmetic. So learn with this module, and release with noise
that nobody can replay.
"""

import copy
import math
from typing import NamedTuple

import numpy as np
import torch
from torch import nn
from tqdm import tqdm

from coursekit import _arguments
from coursekit.accounting import Ledger
from coursekit.dpsgd.gradients import Gradients, cross_entropy
from coursekit.dpsgd.inputs import checked
from coursekit.dpsgd.steps import (
    clipping_norm,
    poisson_batch,
    promise,
    refuse_diverged,
    seeded,
    step_taker,
)
from coursekit.ensemble import SILENT


class Training(NamedTuple):
    """What `train_dp_sgd` returns.

    `history` holds one number for each step: "batch_size", "loss" (mean over the batch; NaN for an
    empty one) and "clipped" (share of the batch whose gradients were cut). They come from the
    records without any noise: look at them, never release them.
    """

    model: nn.Module
    history: dict
    ledger: Ledger


def per_example_norms(model, X, y, *, loss=cross_entropy):
    """Return the L2 norm of each record's gradient in all trainable parameters, (records,).

    The gradient is that of the record's own loss. X (records, ...), y (records,), arrays or
    tensors; `loss` takes outputs and y and returns (records,). No gradient is built for linear
    layers: see `gradients`. Not for release: the norms come without noise.
    Raises: TypeError or ValueError for bad X or y, or a model that mixes records (BatchNorm).
    Source: Goodfellow (2015), arXiv:1510.01799.

    >>> from coursekit.dpsgd import logistic_regression
    >>> norms = per_example_norms(logistic_regression(2, 2, seed=0), [[0, 0], [3, 4]], [0, 1])
    >>> norms.shape
    torch.Size([2])
    """
    X, y, probe = checked(model, X, y, loss)
    norms, _ = Gradients(model, probe, loss).clipped_sum(X, y, math.inf)
    return norms


def train_dp_sgd(
    model,
    X,
    y,
    *,
    max_grad_norm,
    sampling_rate,
    steps,
    learning_rate,
    seed,
    noise_multiplier=None,
    epsilon=None,
    delta=None,
    optimiser="sgd",
    loss=cross_entropy,
    expected_batch_size=None,
):
    """Train a copy of `model` by DP-SGD; return (model, history, ledger), see `Training`.

    A step draws a Poisson batch, scales each record's gradient down to an L2 norm of at most
    `max_grad_norm` (C), sums, adds normal noise of deviation noise_multiplier * C to every
    coordinate, divides by the expected batch size and hands the result to the optimiser ("sgd",
    "momentum" with 0.9, or "adam"), which costs no privacy. Give `noise_multiplier`, or else
    `epsilon` and `delta` for the smallest noise that keeps them. Adjacency: add/remove; sampler:
    Poisson; the ledger counts all steps.

    Choosing: C about the median of `per_example_norms`, measured on public records, or a tenth of
    it. With a small C most gradients are cut, and learning_rate * C is what matters: try 1 to 10,
    far above plain training. Take large batches, as long as enough steps are left.

    Args:
        model: a torch.nn.Module of float64 or float32 that treats each record alone.
        X, y: arrays or tensors, one row for each record; y holds class numbers for cross-entropy.
        sampling_rate: above 0, at most 1. steps: updates, empty batches included.
        seed: whole number; batches, noise and dropout are drawn from it.
        loss: takes outputs and y, returns one number for each record.
        expected_batch_size: a public number to divide by, sampling_rate * len(X) unless given. That
            default treats the number of records as public, which add/remove does not grant: the
            strict promise needs a number fixed without looking.

    Without noise (noise_multiplier=0) the ledger's epsilon is infinite; max_grad_norm may then be
    infinite too. Models of linear layers and convolutions cost about as much as without privacy.

    Raises: TypeError or ValueError for a bad number, for X or y that do not fit, for BatchNorm and
    other layers that mix records; FloatingPointError if training diverges.
    Source: Abadi et al. (2016), CCS, Algorithm 1, on Poisson batches.

    >>> from coursekit.dpsgd import logistic_regression
    >>> model, history, ledger = train_dp_sgd(
    ...     logistic_regression(2, 2, seed=0), [[0, 1], [1, 0]], [0, 1], noise_multiplier=1.0,
    ...     max_grad_norm=1.0, sampling_rate=1.0, steps=1, learning_rate=0.5, seed=0)
    >>> history["batch_size"], round(ledger.epsilon(1e-5), 3)
    (array([2.]), 4.377)
    """
    C = clipping_norm(max_grad_norm, noise_multiplier)
    noise, ledger = promise(noise_multiplier, epsilon, delta, sampling_rate, steps)
    rate, rng = float(sampling_rate), seeded(seed)
    X, y, probe = checked(model, X, y, loss)
    expected = rate * len(X) if expected_batch_size is None else expected_batch_size
    expected = _arguments.positive(expected, "expected_batch_size")
    with torch.random.fork_rng(devices=[]):  # dropout draws from PyTorch's own generator
        torch.manual_seed(int(rng.integers(2**62)))
        gradients = Gradients(model, probe, loss)
        take_step = step_taker(
            gradients,
            noise_multiplier=noise,
            max_grad_norm=C,
            expected_batch_size=expected,
            optimiser=optimiser,
            learning_rate=learning_rate,
            rng=rng,
        )
        history = {name: np.full(steps, np.nan) for name in ("batch_size", "loss", "clipped")}
        for step in tqdm(range(steps), delay=SILENT, leave=False, unit="step", desc="DP-SGD"):
            batch = torch.from_numpy(poisson_batch(len(X), rate, rng))
            norms, losses = take_step(X[batch], y[batch])
            history["batch_size"][step] = len(batch)
            if len(batch):
                history["loss"][step] = losses.numpy().sum() / len(batch)
                history["clipped"][step] = np.count_nonzero(norms.numpy() > C) / len(batch)
                refuse_diverged(history["loss"][step], step)
    refuse_diverged(float(gradients.parameters.sum()), steps - 1)
    trained = copy.deepcopy(model)
    for parameter, value in zip(trained.parameters(), gradients.model.parameters(), strict=True):
        parameter.data.copy_(value)
    return Training(trained, history, ledger)
