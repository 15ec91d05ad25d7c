"""One step of DP-SGD: a Poisson batch, the clipped sum, noise, the update (notebook 04)."""

import math

import numpy as np
import torch

from coursekit import _arguments
from coursekit.accounting import Ledger, calibrate_noise
from coursekit.ensemble import OPTIMISERS, updater


def poisson_batch(records, sampling_rate, rng):
    """Return the indices of a Poisson batch: each record enters by itself with `sampling_rate`.

    Sizes are Binomial(records, sampling_rate), so a batch may be empty. Raises: TypeError or
    ValueError for a bad argument. Source: Abadi et al. (2016), CCS, who call a batch a lot.

    >>> poisson_batch(3, 1.0, np.random.default_rng(0))
    array([0, 1, 2])
    """
    records = _arguments.whole(records, "records", least=0)
    rate = _arguments.probability(sampling_rate, "sampling_rate")
    return np.flatnonzero(_arguments.generator(rng).random(records) < rate)


def step_taker(
    gradients,
    *,
    noise_multiplier,
    max_grad_norm,
    expected_batch_size,
    optimiser,
    learning_rate,
    rng,
):
    """Return a function that takes one step on a batch (X, y) and returns norms and losses.

    `gradients` has `clipped_sum`, which writes to `total`, and `parameters`, one vector of the same
    layout: a `Gradients` or `ClippedNets`. The noise is independent in each number of each step.
    """
    parameters, total = gradients.parameters, gradients.total
    scale = noise_multiplier * max_grad_norm if noise_multiplier else 0.0
    bound = torch.tensor(max_grad_norm, dtype=total.dtype)  # quicker than a float
    noise = _noise(total, rng)
    rate = _arguments.positive(learning_rate, "learning_rate")
    optimiser = _arguments.one_of(optimiser, "optimiser", OPTIMISERS)
    update = updater(optimiser, parameters, total, rate, 1 / expected_batch_size)

    def step(X, y):
        norms, losses = gradients.clipped_sum(X, y, bound)
        if scale:
            total.add_(noise(), alpha=scale)
        update()
        return norms, losses

    return step


def _noise(total, rng):
    """Return what draws standard normal noise for `total`.

    float64 comes from NumPy, the same on every CPU; float32 from PyTorch, in half the time.
    """
    if total.dtype == torch.float64:
        return lambda: torch.from_numpy(rng.standard_normal(len(total)))
    generator = torch.Generator().manual_seed(int(rng.integers(2**62)))
    noise = torch.empty_like(total)
    return lambda: noise.normal_(generator=generator)


class NoPromise(Ledger):
    """The ledger of training without noise: epsilon is infinite."""

    def bounds(self, delta):
        _arguments.fraction(delta, "delta")
        return 0.0, math.inf


def seeded(seed):
    return np.random.default_rng(_arguments.whole(seed, "seed", least=0))


def clipping_norm(max_grad_norm, noise_multiplier):
    if max_grad_norm == math.inf and noise_multiplier == 0:
        return math.inf
    return _arguments.positive(max_grad_norm, "max_grad_norm")


def promise(noise_multiplier, epsilon, delta, sampling_rate, steps):
    """Return the noise multiplier and a ledger that has booked all steps."""
    _arguments.positive(sampling_rate, "sampling_rate")
    known = dict(sampling_rate=sampling_rate, steps=_arguments.whole(steps, "steps", least=1))
    if noise_multiplier is None:
        if epsilon is None or delta is None:
            raise ValueError("give noise_multiplier, or both epsilon and delta.")
        noise = calibrate_noise(epsilon=epsilon, delta=delta, **known)
        ledger = Ledger(epsilon=epsilon, delta=delta)
    elif epsilon is not None or delta is not None:
        raise ValueError("give noise_multiplier, or epsilon and delta, not both.")
    else:
        noise = _arguments.non_negative(noise_multiplier, "noise_multiplier")
        _arguments.probability(sampling_rate, "sampling_rate")
        ledger = Ledger() if noise else NoPromise()
    if noise:
        ledger.add(noise_multiplier=noise, **known)
    return noise, ledger


def refuse_diverged(number, step):
    if not math.isfinite(number):
        raise FloatingPointError(
            f"training diverged by step {step + 1}: try a smaller learning_rate, or max_grad_norm."
        )
