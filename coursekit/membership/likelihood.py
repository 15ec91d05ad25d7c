"""LiRA and its small-sample variant: is this signal more likely from a model that saw the record?

Signals are one number for each model and record, such as `logit_confidence` (for several queries of
a record, their mean). Shadow models are others than the target; their signals must come through the
same defence as the target's.
"""

import numpy as np
from scipy import stats

from coursekit import _arguments
from coursekit.membership.inputs import checked_signals, refuse_few

FLOOR = 1e-30  # the least standard deviation, so that scores stay finite
FEW = " Train more shadow models, or use variance='fixed'."


def lira_online(signal, shadow_signals, shadow_membership, *, variance="per-record"):
    """Return log N(signal; IN) - log N(signal; OUT), Gaussians fitted to each record's shadows.

    Threat model: scores, true label, and shadow models with and without each record in question.

    Args:
        signal: the target's, (records,), or (targets, records) for several.
        shadow_signals, shadow_membership: (models, records); True is IN.
        variance: "per-record", of each record's own signals (divided by their number); noisy with
            few shadows. "fixed": one for IN and one for OUT, of all signals after each record's
            mean is taken off.

    Raises: ValueError for records with fewer than 2 IN or OUT shadow models (1 if fixed).
    Source: Carlini et al. (2022), S&P, the online attack.

    >>> shadows = [[1.0, 5.0], [3.0, 9.0], [0.0, 4.0], [-2.0, 0.0]]
    >>> inside = [[True, True], [True, True], [False, False], [False, False]]
    >>> lira_online([2.0, 2.0], shadows, inside).round(3)
    array([ 4.5  , -3.125])
    """
    signal, shadow, inside = checked_signals(signal, shadow_signals, shadow_membership)
    ratio = 0.0
    for these, side, sign in ((inside, "IN", 1), (~inside, "OUT", -1)):
        mean, spread = _gaussians(shadow, these, side, variance)
        ratio = ratio - sign * (((signal - mean) / spread) ** 2 / 2 + np.log(spread))
    return ratio


def lira_offline(signal, shadow_signals, shadow_membership, *, variance="per-record"):
    """Return how many standard deviations z the signal lies above the mean of its OUT shadows.

    One-sided, as in the paper, whose score is Pr[Z < z] for a standard Gaussian Z: the same order,
    but 1.0 in floating point from z = 8.3 on. (Minus the log of the density under OUT is another
    score: it takes signals far *below* the mean for members.)

    Threat model: scores, true label, and shadow models without the records in question. Signals of
    IN shadows are not read and may be NaN. Arguments: as for `lira_online`.

    Raises: ValueError for records with fewer than 2 OUT shadow models (1 if fixed).
    Source: Carlini et al. (2022), S&P, the offline attack.

    >>> lira_offline([5.0], [[1.0], [3.0], [float("nan")]], [[False], [False], [True]])
    array([3.])
    """
    arrays = (signal, shadow_signals, shadow_membership)
    signal, shadow, inside = checked_signals(*arrays, offline=True)
    mean, spread = _gaussians(shadow, ~inside, "OUT", variance)
    return (signal - mean) / spread


def bavaria(
    signal, shadow_signals, shadow_membership, *, mean_strength=None, variance_strength=4.0
):
    """Return the log ratio of Student-t predictives: LiRA that knows how little a few shadows say.

    Mean and variance of each record have a normal-inverse-gamma prior, one for IN and one for OUT,
    found on all records: m0 is the average of the records' means, s0^2 the pooled variance. Of
    strengths k and v and n signals with mean m and sum of squares S about it, the predictive has
    v + n degrees of freedom, location (k m0 + n m) / (k + n) and squared scale
    (1 + 1 / (k + n)) (v s0^2 + S + (m - m0)^2 k n / (k + n)) / (v + n). With many shadows that is
    LiRA with a variance per record, without any it is the prior.

    Threat model and arguments: as for `lira_online`; records may have any number of shadows.

    Args:
        mean_strength: k, in signals; by default s0^2 over the variance of means between records.
        variance_strength: v, in signals.

    Raises: ValueError if no record has 2 IN, or 2 OUT, shadow models.
    Source: Brännvall (2026), arXiv 2603.11799; k and v are this course's choice.

    >>> shadows = [[1.0, 5.0], [3.0, 9.0], [0.0, 4.0], [-2.0, 0.0]]
    >>> inside = [[True, True], [True, True], [False, False], [False, False]]
    >>> bavaria([2.0, 2.0], shadows, inside).round(2)
    array([ 0.05, -1.01])
    """
    signal, shadow, inside = checked_signals(signal, shadow_signals, shadow_membership)
    v, k = _arguments.positive(variance_strength, "variance_strength"), mean_strength
    k = k if k is None else _arguments.positive(k, "mean_strength")
    ratio = 0.0
    for these, side, sign in ((inside, "IN", 1), (~inside, "OUT", -1)):
        ratio = ratio + sign * stats.t.logpdf(signal, *_predictive(shadow, these, side, k, v))
    return ratio


def _moments(shadow, these):
    """Return each record's number of signals, their mean, and their squares about it."""
    count = these.sum(axis=0)
    mean = np.where(these, shadow, 0).sum(axis=0) / np.maximum(count, 1)
    return count, mean, np.where(these, (shadow - mean) ** 2, 0).sum(axis=0)


def _gaussians(shadow, these, side, variance):
    """Return each record's mean, and its standard deviation or the one of all."""
    own = _arguments.one_of(variance, "variance", ("per-record", "fixed")) == "per-record"
    refuse_few(these, side, *((2, FEW) if own else (1,)))
    count, mean, squares = _moments(shadow, these)
    _refuse_single(count, side)
    spread = np.sqrt(squares / count if own else squares.sum() / count.sum())
    return mean, np.maximum(spread, FLOOR)


def _predictive(shadow, these, side, k, v):
    """Return degrees of freedom, location and scale of each record's Student-t."""
    count, mean, squares = _moments(shadow, these)
    _refuse_single(count, side)
    seen = count > 0
    variance = max(squares.sum() / (count - 1)[seen].sum(), FLOOR**2)
    prior = mean[seen].mean()
    if k is None:
        between = np.var(mean[seen]) - variance * np.mean(1 / count[seen])
        k = variance / max(between, 1e-6 * variance)
    off = (mean - prior) ** 2 * k * count / (k + count)
    scale = np.sqrt((1 + 1 / (k + count)) * (v * variance + squares + off) / (v + count))
    return v + count, (k * prior + count * mean) / (k + count), scale


def _refuse_single(count, side):
    if count.max() < 2:
        raise ValueError(f"some record must have 2 {side} shadow models, none has.")
