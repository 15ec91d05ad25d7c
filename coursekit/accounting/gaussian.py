"""The Gaussian mechanism: exact curve, noise for a target, and zCDP (notebook 03).

`mu` is sensitivity / standard deviation of the noise, the L2 sensitivity taken under the adjacency
you chose; every promise here then holds under that adjacency, in real arithmetic. T releases with
one `mu` each are exactly one release with mu sqrt(T). No sampling.
"""

import math

from scipy.optimize import brentq, minimize_scalar
from scipy.special import log_ndtr

from coursekit import _arguments


def gaussian_delta(mu, epsilon):
    """Return the exact delta, Phi(mu/2 - epsilon/mu) - e^epsilon Phi(-mu/2 - epsilon/mu).

    Adjacency: the one `mu` was taken under; no sampling. Raises: ValueError or TypeError unless
    both are finite and at least 0. Source: Balle and Wang (2018), ICML, Theorem 8.

    >>> gaussian_delta(1.0, 4.377178)  # doctest: +ELLIPSIS
    1.00000...e-05
    """
    mu, epsilon = _arguments.non_negative(mu, "mu"), _arguments.non_negative(epsilon, "epsilon")
    return math.exp(_log_delta(mu, epsilon)) if mu > 0 else 0.0


def gaussian_epsilon(mu, delta):
    """Return the smallest epsilon for which noise with `mu` is (epsilon, delta)-DP; never negative.

    Adjacency: the one `mu` was taken under; no sampling. Raises: ValueError or TypeError unless mu
    is finite and at least 0, delta in (0, 1). Source: Balle and Wang (2018), ICML, Theorem 8.

    >>> round(gaussian_epsilon(1.0, 1e-5), 4)
    4.3772
    """
    mu, delta = _arguments.non_negative(mu, "mu"), _arguments.fraction(delta, "delta")
    goal = math.log(delta)
    if mu == 0 or _log_delta(mu, 0.0) <= goal:
        return 0.0
    largest = mu * mu / 2 + mu * math.sqrt(-2 * goal)  # P(loss > largest) <= delta already
    return brentq(lambda e: _log_delta(mu, e) - goal, 0.0, largest, xtol=1e-300, rtol=1e-14)


def gaussian_noise_multiplier(epsilon, delta):
    """Return the smallest noise (standard deviation / sensitivity) that is (epsilon, delta)-DP.

    Adjacency: the one the sensitivity is taken under; no sampling. Raises: ValueError or TypeError
    unless epsilon is above 0 and delta in (0, 1). Source: Balle and Wang (2018), ICML, section 3.

    >>> round(gaussian_noise_multiplier(1.0, 1e-5), 4)
    3.7306
    """
    epsilon, goal = _arguments.positive(epsilon, "epsilon"), _arguments.fraction(delta, "delta")
    goal = math.log(goal)
    low = high = 1.0  # mu
    while _log_delta(low, epsilon) > goal:
        low /= 2
    while _log_delta(high, epsilon) < goal:
        high *= 2
    if low == high:
        return 1 / low
    mu = brentq(lambda m: _log_delta(m, epsilon) - goal, low, high, xtol=1e-300, rtol=1e-14)
    return (1 + 1e-12) / mu  # the safe side of the root


def classical_noise_multiplier(epsilon, delta):
    """Return sqrt(2 ln(1.25/delta)) / epsilon, the formula of most textbooks, for epsilon up to 1.

    Above 1 its proof fails, and for large epsilon so does the promise; it is refused there. Below
    it is right and wasteful: use `gaussian_noise_multiplier`. Adjacency: the one the sensitivity is
    taken under; no sampling. Raises: ValueError or TypeError unless epsilon is in (0, 1] and delta
    in (0, 1). Source: Dwork and Roth (2014), Theorem A.1, for epsilon below 1.

    >>> round(classical_noise_multiplier(1.0, 1e-5), 3)
    4.845
    """
    epsilon, delta = _arguments.positive(epsilon, "epsilon"), _arguments.fraction(delta, "delta")
    if epsilon > 1:
        raise ValueError(f"the classical formula holds for epsilon up to 1 only, got {epsilon!r}.")
    return math.sqrt(2 * math.log(1.25 / delta)) / epsilon


def zcdp_rho(noise_multiplier, *, steps=1):
    """Return rho = steps / (2 noise_multiplier^2): Gaussian releases are rho-zCDP, and rhos add up.

    Adjacency: the one the sensitivity is taken under; no sampling. Raises: ValueError or TypeError
    for noise not above 0 or steps not a whole number of at least 1.
    Source: Bun and Steinke (2016), TCC, Proposition 1.6 and Lemma 1.7.

    >>> zcdp_rho(2.0, steps=4)
    0.5
    """
    noise = _arguments.positive(noise_multiplier, "noise_multiplier")
    return _arguments.whole(steps, "steps", least=1) / (2 * noise * noise)


def zcdp_epsilon(rho, delta):
    """Return an epsilon for which any rho-zCDP release is (epsilon, delta)-DP; never negative.

    The best over all real orders, so a little below rho + 2 sqrt(rho ln(1/delta)), and for a
    Gaussian still above `gaussian_epsilon`. Adjacency and sampler: those under which rho holds.
    Raises: ValueError or TypeError unless rho is at least 0 and delta in (0, 1).
    Source: Canonne, Kamath, Steinke (2020), NeurIPS, Proposition 12.

    >>> round(zcdp_epsilon(0.5, 1e-5), 4)
    4.7284
    """
    rho, delta = _arguments.non_negative(rho, "rho"), _arguments.fraction(delta, "delta")
    if rho == 0:
        return 0.0

    def at(log_order):  # the order is 1 + e^log_order
        s = math.exp(log_order)
        return rho * (s + 1) + math.log(s / (s + 1)) - math.log(delta * (s + 1)) / s

    centre = 0.5 * math.log(math.log(1 / delta) / rho)
    best = minimize_scalar(at, bounds=(centre - 20, centre + 20), options={"xatol": 1e-10})
    return max(0.0, float(best.fun))


def _log_delta(mu, epsilon):
    keep, remove = log_ndtr(mu / 2 - epsilon / mu), epsilon + log_ndtr(-mu / 2 - epsilon / mu)
    gap = -math.expm1(min(remove - keep, 0.0)) if keep > -math.inf else 0.0
    return keep + math.log(gap) if gap > 0 else -math.inf
