"""The ledger: different releases together, a budget, and refusals before anything is spent."""

import math
import warnings

import numpy as np
import pytest

from coursekit.accounting import (
    BudgetExceeded,
    Ledger,
    WideBounds,
    epsilon_bounds,
    gaussian_epsilon,
    optimal_composition,
)
from coursekit.mechanisms import discrete_laplace_pmf
from tests.accounting.exact import exact_epsilon


def test_an_empty_ledger_spent_nothing():
    assert Ledger().bounds(1e-5) == (0.0, 0.0)


def test_one_phase_is_epsilon_bounds():
    ledger = Ledger()
    ledger.add(noise_multiplier=1.15, sampling_rate=0.02, steps=200)
    ledger.add(noise_multiplier=1.15, sampling_rate=0.02, steps=300)
    assert ledger.bounds(1e-5) == epsilon_bounds(
        noise_multiplier=1.15, sampling_rate=0.02, steps=500, delta=1e-5)


def test_gaussians_add_their_squares():
    ledger = Ledger()
    ledger.add(noise_multiplier=2.0, steps=3)
    ledger.add(noise_multiplier=5.0)
    exact = gaussian_epsilon(math.sqrt(3 / 4 + 1 / 25), 1e-6)
    low, high = ledger.bounds(1e-6)
    assert low <= exact <= high <= low * (1 + 1e-8)


def test_mixed_phases_lie_between_what_is_simpler():
    """300 weaker and 1000 stronger steps cost more than either, less than all at the worse."""
    ledger = Ledger()
    ledger.add(noise_multiplier=1.15, sampling_rate=0.02, steps=300)
    ledger.add(noise_multiplier=1.5, sampling_rate=0.02, steps=500)
    low, high = ledger.bounds(1e-5)
    assert high <= 1.001 * low
    assert low > exact_epsilon(delta=1e-5, noise_multiplier=1.5, sampling_rate=0.02, steps=800)
    assert high < exact_epsilon(delta=1e-5, noise_multiplier=1.15, sampling_rate=0.02, steps=800)


def test_laplace_with_gaussian_against_an_integral():
    """One Laplace loss and one Gaussian loss: delta by an integral over the Laplace noise."""
    from scipy.integrate import quad
    from scipy.stats import norm

    eps0, mu, epsilon = 0.7, 0.5, 1.2

    def rest(loss):  # of the Gaussian, once the Laplace loss is known
        e = epsilon - loss
        return norm.cdf(mu / 2 - e / mu) - math.exp(e) * norm.cdf(-mu / 2 - e / mu)

    lumps = 0.5 * rest(eps0) + 0.5 * math.exp(-eps0) * rest(-eps0)
    delta = lumps + quad(lambda y: 0.25 * math.exp((y - eps0) / 2) * rest(y), -eps0, eps0,
                         epsabs=1e-14)[0]
    ledger = Ledger()
    ledger.add(laplace_epsilon=eps0)
    ledger.add(noise_multiplier=1 / mu)
    low, high = ledger.bounds(delta)
    assert low <= epsilon <= high <= 1.001 * low


@pytest.mark.parametrize("epsilon, count", [(0.1, 10), (0.1, 1000), (2.0, 7), (0.5, 1)])
@pytest.mark.parametrize("delta", [1e-10, 1e-5, 1e-2])
def test_any_pure_release_is_the_coin(epsilon, count, delta):
    """Against the binomial sum of Kairouz, Oh and Viswanath; whole-number noise is this coin."""
    ledger = Ledger()
    ledger.add(pure_epsilon=epsilon, steps=count)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", WideBounds)  # lumps: a little over 0.1% now and then
        low, high = ledger.bounds(delta)
    exact, _ = optimal_composition(epsilon, 0, count=count, slack=delta)
    assert low <= exact * (1 + 1e-12) and exact * (1 - 1e-12) <= high <= 1.002 * low


def test_whole_number_noise_costs_more_than_real_valued():
    """Discrete Laplace noise on counts that differ by 1 has losses of +-epsilon only."""
    k = np.arange(-2000, 2001)
    p, q = discrete_laplace_pmf(k, scale=10), discrete_laplace_pmf(k - 1, scale=10)
    assert np.allclose(np.abs(np.log(p / q)), 0.1, rtol=1e-9)
    whole, real = Ledger(), Ledger()
    whole.add(pure_epsilon=0.1, steps=100)
    real.add(laplace_epsilon=0.1, steps=100)
    assert whole.bounds(1e-5)[0] > real.bounds(1e-5)[1]


def test_sampled_laplace_is_amplified():
    """Sampling turns epsilon into log(1 + q (e^epsilon - 1)); near delta 0 the bound meets it."""
    ledger = Ledger()
    ledger.add(laplace_epsilon=2.0, sampling_rate=0.1)
    amplified = math.log1p(0.1 * math.expm1(2.0))
    low, high = ledger.bounds(1e-12)
    assert 0.998 * amplified < low <= high <= amplified


def test_a_budget_is_never_overdrawn():
    ledger = Ledger(epsilon=2.5, delta=1e-5)
    ledger.add(noise_multiplier=1.15, sampling_rate=0.02, steps=700)
    before = ledger.bounds(1e-5)
    with pytest.raises(BudgetExceeded, match="would spend epsilon=2"):
        ledger.add(noise_multiplier=1.15, sampling_rate=0.02, steps=2)
    assert ledger.bounds(1e-5) == before and before[1] <= 2.5


def test_remaining_steps_are_the_most_that_fit():
    ledger = Ledger(epsilon=2.5, delta=1e-5)
    step = dict(noise_multiplier=1.15, sampling_rate=0.02)
    left = ledger.remaining(**step)
    assert left == 700  # exact: epsilon(700) = 2.4986, epsilon(701) = 2.5004
    ledger.add(**step, steps=left)
    with pytest.raises(BudgetExceeded):
        ledger.add(**step)
    assert ledger.remaining(**step) == 0
    assert Ledger(epsilon=2.5, delta=1e-5).remaining(**step, most=10) == 10


@pytest.mark.parametrize("call, error", [
    (lambda: Ledger(epsilon=1), ValueError), (lambda: Ledger(epsilon=1, delta=0), ValueError),
    (lambda: Ledger(epsilon=0, delta=0.1), ValueError),
    (lambda: Ledger().add(), ValueError),
    (lambda: Ledger().add(noise_multiplier=1, laplace_epsilon=1), ValueError),
    (lambda: Ledger().add(noise_multiplier=0), ValueError),
    (lambda: Ledger().add(pure_epsilon=0), ValueError),
    (lambda: Ledger().add(sigma=1), ValueError),
    (lambda: Ledger().add(laplace_epsilon=-1), ValueError),
    (lambda: Ledger().add(noise_multiplier=1, sampling_rate=2), ValueError),
    (lambda: Ledger().add(noise_multiplier=1, steps=0), ValueError),
    (lambda: Ledger().bounds(0), ValueError), (lambda: Ledger().epsilon(1), ValueError),
    (lambda: Ledger().remaining(noise_multiplier=1), ValueError),
    (lambda: Ledger().add(noise_multiplier="1"), TypeError),
])
def test_refuses(call, error):
    with pytest.raises(error):
        call()
