"""The Gaussian curve against 60 digits, calibration against its definition, zCDP as a bound."""

import math

import mpmath
import pytest

from coursekit.accounting import (
    classical_noise_multiplier,
    gaussian_delta,
    gaussian_epsilon,
    gaussian_noise_multiplier,
    zcdp_epsilon,
    zcdp_rho,
)
from coursekit.mechanisms import gaussian_sigma

BALLE_WANG = {0.1: (30.7496, 48.4481), 0.5: (7.0318, 9.6896), 1: (3.7306, 4.8448)}
ANALYTIC_ABOVE_1 = {2: 1.9938, 4: 1.0812, 8: 0.6002}


def exact_delta(mu, epsilon):
    with mpmath.workdps(60):
        mu, epsilon = mpmath.mpf(mu), mpmath.mpf(epsilon)
        return float(mpmath.ncdf(mu / 2 - epsilon / mu)
                     - mpmath.exp(epsilon) * mpmath.ncdf(-mu / 2 - epsilon / mu))


@pytest.mark.parametrize("mu", [1e-4, 0.1, 1.0, 4.0, 30.0])
@pytest.mark.parametrize("share", [0.0, 0.3, 1.0, 3.0])
def test_curve(mu, share):
    epsilon = share * (mu * mu / 2 + 3 * mu)
    assert gaussian_delta(mu, epsilon) == pytest.approx(exact_delta(mu, epsilon), rel=1e-9)


@pytest.mark.parametrize("mu", [0.1, 1.0, 10.0])
@pytest.mark.parametrize("delta", [1e-3, 1e-9, 1e-30])
def test_epsilon_inverts_the_curve(mu, delta):
    assert exact_delta(mu, gaussian_epsilon(mu, delta)) == pytest.approx(delta, rel=1e-9)


def test_epsilon_is_never_negative():
    assert gaussian_epsilon(0.01, 0.5) == 0.0 == gaussian_epsilon(0, 1e-5)
    assert gaussian_delta(0, 0) == 0.0


@pytest.mark.parametrize("epsilon", [1e-3, 0.1, 1, 8, 300])
@pytest.mark.parametrize("delta", [0.3, 1e-5, 1e-20])
def test_calibration_is_smallest(epsilon, delta):
    noise = gaussian_noise_multiplier(epsilon, delta)
    assert exact_delta(1 / noise, epsilon) <= delta * (1 + 1e-12)
    assert exact_delta(1 / (noise * (1 - 1e-6)), epsilon) > delta


def test_published_calibrations():
    for epsilon, (analytic, classical) in BALLE_WANG.items():
        assert gaussian_noise_multiplier(epsilon, 1e-5) == pytest.approx(analytic, abs=5e-5)
        assert classical_noise_multiplier(epsilon, 1e-5) == pytest.approx(classical, abs=5e-5)
    for epsilon, analytic in ANALYTIC_ABOVE_1.items():
        assert gaussian_sigma(sensitivity=3, epsilon=epsilon, delta=1e-5) == pytest.approx(
            3 * analytic, abs=2e-4)


def test_classical_is_refused_where_it_fails():
    assert math.sqrt(2 * math.log(1.25e5)) / 0.3 < 16.2 < 19.1 < gaussian_epsilon(1 / 0.3, 1e-5)
    with pytest.raises(ValueError, match="up to 1 only, got 2"):
        classical_noise_multiplier(2, 1e-5)


def test_zcdp_bounds_the_truth_and_beats_the_simple_formula():
    for noise, steps, delta in [(1, 1, 1e-5), (5, 40, 1e-9), (0.5, 3, 1e-2), (100, 1, 1e-6)]:
        rho = zcdp_rho(noise, steps=steps)
        exact = gaussian_epsilon(math.sqrt(steps) / noise, delta)
        simple = rho + 2 * math.sqrt(rho * math.log(1 / delta))
        assert exact < zcdp_epsilon(rho, delta) < simple
    assert zcdp_epsilon(0.5, 1e-5) == pytest.approx(4.7284, abs=1e-4)
    assert zcdp_epsilon(0, 1e-5) == 0.0


@pytest.mark.parametrize("call", [
    lambda: gaussian_delta(-1, 1), lambda: gaussian_delta(1, -1),
    lambda: gaussian_delta(1, math.nan), lambda: gaussian_epsilon(-1, 0.1),
    lambda: gaussian_epsilon(1, 0), lambda: gaussian_epsilon(1, 1),
    lambda: gaussian_noise_multiplier(0, 0.1), lambda: gaussian_noise_multiplier(1, 1.5),
    lambda: classical_noise_multiplier(0.5, 0), lambda: zcdp_rho(0), lambda: zcdp_rho(1, steps=0),
    lambda: zcdp_epsilon(-1, 0.1), lambda: zcdp_epsilon(1, 0),
])
def test_refuses(call):
    with pytest.raises(ValueError):
        call()
