"""Composition: what many private releases about the same people promise together (notebook 03).

Whatever adjacency and sampler the single promises hold under, the total holds under the same.
"""

import math

import numpy as np
from scipy.special import gammaln

from coursekit import _arguments
from coursekit.accounting.losses import smallest_epsilon


def basic_composition(epsilons, deltas):
    """Return (sum of epsilons, sum of deltas): the releases together are (epsilon, delta)-DP.

    Both are sequences of one length, or one number for all. Later releases may depend on earlier
    answers. A total delta of 1 or more promises nothing. Adjacency and sampler: those of the parts.

    Raises: ValueError or TypeError unless epsilons are at least 0 and deltas in [0, 1).
    Source: Dwork, Kenthapadi, McSherry, Mironov, Naor (2006), EUROCRYPT.

    >>> basic_composition([0.1, 1.0, 10.0], 0.0)
    (11.1, 0.0)
    """
    epsilons, deltas = np.broadcast_arrays(
        _arguments.finite_array(np.atleast_1d(epsilons), "epsilons", ndim=1),
        _arguments.finite_array(np.atleast_1d(deltas), "deltas", ndim=1),
    )
    pairs = [_promise(epsilon, delta) for epsilon, delta in zip(epsilons, deltas, strict=True)]
    return math.fsum(epsilon for epsilon, _ in pairs), math.fsum(delta for _, delta in pairs)


def advanced_composition(epsilon, delta, *, count, slack):
    """Return the (epsilon, delta) of `count` releases, each (epsilon, delta)-DP, for a `slack`.

    epsilon' = epsilon sqrt(2 k ln(1/slack)) + k epsilon (e^epsilon - 1), delta' = k delta + slack.
    The second term is part of the theorem. Adjacency and sampler: those of the parts.

    Raises: ValueError or TypeError for a bad promise, count below 1 or slack outside (0, 1).
    Source: Dwork, Rothblum, Vadhan (2010), FOCS, Theorem III.3.

    >>> round(advanced_composition(0.1, 0.0, count=1000, slack=1e-5)[0], 2)
    25.69
    """
    epsilon, delta, count, slack = _repeated(epsilon, delta, count, slack)
    root = epsilon * math.sqrt(2 * count * math.log(1 / slack))
    growth = math.expm1(epsilon) if epsilon < 700 else math.inf
    return root + count * epsilon * growth, count * delta + slack


def optimal_composition(epsilon, delta, *, count, slack):
    """Return the best (epsilon, delta) that `count` releases, each (epsilon, delta)-DP, can claim.

    Best means: if no more is known of them than that promise, whose worst case is randomised
    response. Each loss is then +epsilon or -epsilon, so their sum is binomial, and epsilon' is the
    smallest whose delta is `slack`; the total delta is 1 - (1 - delta)^count (1 - slack).
    Adjacency and sampler: those of the parts.

    Raises: ValueError or TypeError for a bad promise, count below 1 or slack outside (0, 1).
    Source: Kairouz, Oh, Viswanath (2015), ICML, Theorem 3.3 (here at every epsilon', not at
    multiples of epsilon only).

    >>> round(optimal_composition(0.1, 0.0, count=1000, slack=1e-5)[0], 2)
    17.79
    """
    epsilon, delta, count, slack = _repeated(epsilon, delta, count, slack)
    total_delta = -math.expm1(count * math.log1p(-delta) + math.log1p(-slack))
    if epsilon == 0:
        return 0.0, total_delta
    ups = np.arange(count + 1)
    choices = gammaln(count + 1) - gammaln(ups + 1) - gammaln(count - ups + 1)
    log_p = choices + ups * -np.log1p(np.exp(-epsilon)) + (count - ups) * -np.logaddexp(0, epsilon)
    return smallest_epsilon((2 * ups - count) * epsilon, log_p, slack), total_delta


def _promise(epsilon, delta):
    epsilon = _arguments.non_negative(float(epsilon), "epsilon")
    delta = _arguments.real(float(delta), "delta", "a number from 0 up to, not including, 1")
    if not 0 <= delta < 1:
        raise ValueError(f"delta must be a number from 0 up to, not including, 1, got {delta!r}.")
    return epsilon, delta


def _repeated(epsilon, delta, count, slack):
    epsilon, delta = _promise(epsilon, delta)
    count = _arguments.whole(count, "count", least=1)
    return epsilon, delta, count, _arguments.fraction(slack, "slack")
