"""Renyi differential privacy of the Poisson-subsampled Gaussian, at any real order (notebook 05).

Adjacency: add/remove. Sampler: Poisson. One number for each step, E_Q[(P/Q)^order], multiplies over
the steps; Markov's inequality then turns it into (epsilon, delta).
"""

import math

import numpy as np
from scipy.optimize import minimize_scalar

from coursekit import _arguments
from coursekit.accounting.losses import sampled

LARGEST_NOISE = 1e6


def rdp(order, *, noise_multiplier, sampling_rate=1.0):
    """Return the Renyi divergence of one step at a real `order` above 1, both directions covered.

    A trapezoid sum over the noisy value, whose error falls faster than any power of its step.
    Adjacency: add/remove; sampler: Poisson. Raises: ValueError or TypeError for noise outside 0.01
    to 1e6 (1e-6 to 1e6 without sampling), a rate outside [0, 1], or an order that is not above 1 or
    would take a sum of over a million terms.
    Source: Mironov, Talwar, Zhang (2019), arXiv:1908.10530, Theorem 5 (removal is the worse one).

    >>> rdp(4.0, noise_multiplier=2.0)
    0.5
    """
    order = _arguments.real(order, "order", "a finite number above 1")
    if order <= 1:
        raise ValueError(f"order must be a finite number above 1, got {order!r}.")
    rate = _arguments.probability(sampling_rate, "sampling_rate")
    noise = noise_within_range(noise_multiplier, rate)
    if 0 < rate < 1 and order > _largest_order(noise):
        largest = _largest_order(noise)
        raise ValueError(f"order must be up to {largest:.6g} for this noise, got {order!r}.")
    return _rdp(order, noise, rate)


def rdp_epsilon(*, noise_multiplier, sampling_rate, steps, delta):
    """Return an epsilon, good at `delta`, from the best real Renyi order; never negative.

    An upper bound, typically 10% above the truth; `epsilon_bounds` is tighter. Adjacency:
    add/remove; sampler: Poisson. Raises: ValueError or TypeError as `epsilon_bounds`.
    Source: Canonne, Kamath, Steinke (2020), NeurIPS, Proposition 12, for the conversion.

    >>> round(rdp_epsilon(noise_multiplier=1.15, sampling_rate=0.02, steps=500, delta=1e-5), 4)
    2.3621
    """
    rate = _arguments.probability(sampling_rate, "sampling_rate")
    noise = noise_within_range(noise_multiplier, rate)
    steps = _arguments.whole(steps, "steps", least=1)
    delta = _arguments.fraction(delta, "delta")
    if rate == 0:
        return 0.0

    def epsilon(log_s):
        s = math.exp(log_s)
        spent = steps * _rdp(1 + s, noise, rate)
        return spent + math.log(s / (1 + s)) - math.log(delta * (1 + s)) / s

    plain = noise * np.sqrt(-2 * np.log(delta) / steps)  # the best order less 1 without sampling
    most = min(plain + 2 + 2 * noise**2 * np.log(1 / rate), plain / rate + 2)
    if rate < 1:
        most = min(most, _largest_order(noise) / 11)
    grid = np.linspace(np.log(1e-3), np.log(10 * most), 8)
    best = grid[np.argmin([epsilon(log_s) for log_s in grid])]
    around = (best - 1.1 * (grid[1] - grid[0]), best + 1.1 * (grid[1] - grid[0]))
    return max(0.0, float(minimize_scalar(epsilon, bounds=around, options={"xatol": 1e-3}).fun))


def smallest_noise(rate):
    """Return the smallest noise multiplier taken: less is never private, and slow with sampling."""
    return 0.01 if 0 < rate < 1 else 1e-6


def noise_within_range(noise_multiplier, rate):
    """Return `noise_multiplier`, checked."""
    noise = _arguments.positive(noise_multiplier, "noise_multiplier")
    if not smallest_noise(rate) <= noise <= LARGEST_NOISE:
        raise ValueError(
            f"noise_multiplier must lie between {smallest_noise(rate):.0e} and "
            f"{LARGEST_NOISE:.0e} at sampling_rate={rate!r}, got {noise_multiplier!r}."
        )
    return noise


def _largest_order(noise):
    return 1e6 * _step(noise)  # for a sum of a million terms


def _step(noise):
    return min(0.45 * noise, 0.5 * noise**2)


def _rdp(order, noise, rate):
    if rate in (0, 1):
        return rate * order / (2 * noise**2)
    step = _step(noise)
    x = np.arange(-9 * noise, order + 9 * noise, step)
    loss = sampled((2 * x - 1) / (2 * noise**2), rate)
    log_q = math.log(step / noise / math.sqrt(2 * math.pi)) - x**2 / (2 * noise**2)
    power = order * loss
    if np.max(power) > 500:
        top = np.max(power + log_q)
        return float(top + np.log(np.sum(np.exp(power + log_q - top)))) / (order - 1)
    return float(np.log1p(np.exp(log_q) @ np.expm1(power))) / (order - 1)
