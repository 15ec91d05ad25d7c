"""Is this sample drawn from the right law? Decided with an exact bound on wrong failures.

Two tests share one false-alarm rate. The first weighs the right law against each law that a named
mistake would produce: the likelihood ratio has expectation 1 under the right law, so by Markov's
inequality the average of several of them reaches 1/alpha with probability at most alpha, at any
sample size. The second compares distribution functions with the bound of Dvoretzky, Kiefer,
Wolfowitz and Massart, and so notices mistakes that nobody listed.

Laws are frozen `scipy.stats` distributions. Those of mistakes need not be exact: the bound holds
whatever they are, only the power to catch the mistake depends on them.
Source: Massart 1990 (the constant 2); Ramdas et al. 2023 (testing by e-values).
"""

import itertools
import math
from dataclasses import dataclass

import numpy as np

FALSE_ALARM = 1e-9
NAMING = 1e-6  # a mistake is named only while its own law fits the sample at this level


@dataclass(frozen=True)
class Finding:
    """What a sample says: `wrong` or not, the `name` of a listed mistake, or None."""

    wrong: bool
    name: str | None = None


def is_discrete(law):
    """True for a law with probabilities, False for one with a density."""
    return hasattr(law.dist, "logpmf")


def log_density(law, sample):
    """Log of the density (or of the probability, if discrete) of `law` at each value."""
    return law.logpmf(sample) if is_discrete(law) else law.logpdf(sample)


def log_likelihood(law, sample):
    """Log likelihood of a whole sample; minus infinity if `law` cannot produce one of its values.

    >>> from scipy import stats
    >>> float(log_likelihood(stats.laplace(0, 1), np.array([0.0, 2.0])).round(4))
    -3.3863
    """
    return np.sum(log_density(law, sample))


def dkw_radius(count, false_alarm):
    """How far an empirical distribution function strays from the true one, at most.

    >>> round(dkw_radius(20_000, 1e-9), 4)
    0.0231
    """
    return math.sqrt(math.log(2 / false_alarm) / (2 * count))


def cdf_distance(sample, law):
    """Largest gap between the empirical distribution function and that of `law`.

    Exact for continuous and discrete laws: both are compared at, and just before, each value seen.
    """
    values, counts = np.unique(sample, return_counts=True)
    after = np.cumsum(counts) / len(sample)
    before = after - counts / len(sample)
    at = law.cdf(values)
    left = at - law.pmf(values) if is_discrete(law) else at
    return float(max(np.max(np.abs(after - at)), np.max(np.abs(before - left))))


def fits(sample, law, false_alarm):
    """True unless the sample is further from `law` than chance allows at this rate."""
    return cdf_distance(sample, law) <= dkw_radius(len(sample), false_alarm)


def weigh(sample, right, wrong, *, false_alarm=FALSE_ALARM):
    """Decide whether `sample` is from the law `right`, and name the mistake if it is a listed one.

    sample: 1-D array of independent draws. wrong: dict from a mistake's name to its law.
    A sample from `right` is called wrong with probability at most `false_alarm`.
    Raises ValueError if the sample is empty or not 1-D, or if only some of the laws are discrete.

    >>> from scipy import stats
    >>> sample = np.random.default_rng(1).laplace(0, 12, 4000)
    >>> weigh(sample, stats.laplace(0, 6), {"factor-2": stats.laplace(0, 12)})
    Finding(wrong=True, name='factor-2')
    """
    sample = np.asarray(sample, dtype=float)
    if sample.ndim != 1 or not sample.size:
        raise ValueError(f"sample must be 1-D and not empty, got shape {sample.shape}.")
    _refuse_a_mixture(right, *wrong.values())
    if not np.all(np.isfinite(sample)):
        return Finding(wrong=True)
    likelihoods = {name: log_likelihood(law, sample) for name, law in wrong.items()}
    if _is_consistent(sample, right, [*likelihoods.values()], false_alarm):
        return Finding(wrong=False)
    best = max(likelihoods, key=likelihoods.get, default=None)
    named = best is not None and likelihoods[best] > -math.inf and fits(sample, wrong[best], NAMING)
    return Finding(wrong=True, name=best if named else None)


def _is_consistent(sample, right, likelihoods, false_alarm):
    """Neither the listed laws nor the distribution function speak against the right law."""
    under_right = log_likelihood(right, sample)
    if under_right == -math.inf:
        return False
    ratios = np.array(likelihoods) - under_right
    threshold = math.log(2 * max(len(ratios), 1) / false_alarm)
    if np.logaddexp.reduce(ratios, initial=-math.inf) >= threshold:
        return False
    return fits(sample, right, false_alarm / 2)


def _refuse_a_mixture(*laws):
    """A probability over a density is no likelihood ratio: its expectation may exceed 1."""
    if len({is_discrete(law) for law in laws}) > 1:
        raise ValueError("The laws must be all discrete or all continuous, got some of each.")


def independent(sample, law, *, false_alarm=FALSE_ALARM):
    """True unless the columns of a sample speak against independent draws from `law`.

    sample: (draws, columns), rows independent. Each column is compared with the law alone, so that
    a law that changes with the position shows. Then each pair of columns: are both in the upper
    half or so, or neither, as often as for independent draws? And in the outer half or so? The
    number of such rows is binomial, so the false-alarm rate holds exactly.

    >>> draws = np.random.default_rng(1).laplace(size=(1000, 4))
    >>> from scipy import stats
    >>> independent(draws, stats.laplace()), independent(np.sort(draws), stats.laplace())
    (True, False)
    """
    from scipy import stats

    sample = np.asarray(sample, dtype=float)
    rows, columns = sample.shape
    if not all(fits(column, law, false_alarm / 2 / columns) for column in sample.T):
        return False
    low, _, high = quartiles = law.ppf([0.25, 0.5, 0.75])
    middle = min(quartiles, key=lambda cut: abs(law.sf(cut) - 0.5))
    below = law.cdf(low) - (law.pmf(low) if is_discrete(law) else 0)
    features = ((sample > middle, law.sf(middle)),
                ((sample < low) | (sample > high), law.sf(high) + below))
    tail = false_alarm / 2 / (4 * max(1, columns * (columns - 1) / 2))
    for holds, chance in features:
        agree = stats.binom(rows, chance**2 + (1 - chance) ** 2)
        for i, j in itertools.combinations(range(columns), 2):
            together = np.sum(holds[:, i] == holds[:, j])
            if agree.cdf(together) < tail or agree.sf(together - 1) < tail:
                return False
    return True


def draws_needed(right, wrong, *, laws, miss=1e-6, false_alarm=FALSE_ALARM):
    """Draws after which a sample from the law `wrong` is missed with probability at most `miss`.

    laws: how many mistakes share the false-alarm rate. Chernoff's bound on the sum of log ratios,
    P(missed) <= (2 laws / false_alarm)^s rho(s)^n with rho(s) the integral of right^s wrong^(1-s),
    minimised over s in (0, 1). Infinity when the two laws are too alike to tell apart.

    >>> from scipy import stats
    >>> draws_needed(stats.laplace(0, 6), stats.laplace(0, 12), laws=9)
    383
    """
    _refuse_a_mixture(right, wrong)
    log_right, log_wrong = _on_common_points(right, wrong)
    threshold = math.log(2 * laws / false_alarm)
    best = math.inf
    for s in np.linspace(0.01, 0.99, 99):
        rate = -np.logaddexp.reduce(s * log_right + (1 - s) * log_wrong)
        if rate > 1e-12:  # below, rounding
            best = min(best, (math.log(1 / miss) + s * threshold) / rate)
    return max(math.ceil(best), 1) if best < math.inf else math.inf


def _on_common_points(right, wrong):
    """Log probabilities of two laws on the same fine cells, which carry all but 1e-12 of each.

    Quantiles of both laws bound the cells of continuous laws, so that edges, corners and far
    tails are met at the scale of either.
    """
    if is_discrete(right):
        low = min(right.ppf(1e-12), wrong.ppf(1e-12))
        high = max(right.isf(1e-12), wrong.isf(1e-12))
        points, log_width = np.arange(low, high + 1), 0.0
    else:
        odds = np.exp(np.linspace(-27.6, 27.6, 4001))
        edges = np.unique([law.ppf(odds / (1 + odds)) for law in (right, wrong)])
        points, log_width = (edges[1:] + edges[:-1]) / 2, np.log(np.diff(edges))
    with np.errstate(divide="ignore"):
        both = [log_density(law, points) + log_width for law in (right, wrong)]
    return [logs - np.logaddexp.reduce(logs) for logs in both]
