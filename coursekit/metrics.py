"""What an attack on membership achieves: ROC, its bands, TPR at low FPR, posterior (notebook 08).

`scores` are numbers, higher for "member"; `membership` are booleans of the same shape, (records,)
or (targets, records), which pools all pairs of a target model and a record. The rule at threshold t
is "member if score >= t", and equal scores move together. TPR is the share of members called
members, FPR that of non-members. Infinite scores are the highest or lowest and tie with each other;
a saturated softmax makes them, so score from logits. NaN is refused. All of these functions raise
TypeError or ValueError for arrays of unequal shape or other types, and without a member or a
non-member.

Clopper-Pearson intervals and DeLong's error take pairs as independent. Pairs of one target share
it, so for many targets `Auc.over_targets` and `roc_over_targets` take whole targets as independent,
for these records and shadow models. Complementary targets are not: take one of each two.
"""

import math
import numbers
from typing import NamedTuple

import numpy as np
from scipy.special import betainccinv, betaincinv, ndtr, ndtri, stdtrit

from coursekit import _arguments, neighbours

LEAST_FALSE = 10  # false positives that an FPR must allow among the non-members
LEAST_TARGETS = 5


class Roc(NamedTuple):
    """A ROC curve from (0, 0) to (1, 1): a point for nobody, then one for each different score."""

    fpr: np.ndarray
    tpr: np.ndarray
    thresholds: np.ndarray  # falling; the first is inf, or nan if some score is inf: none is above
    false_positives: np.ndarray
    true_positives: np.ndarray
    non_members: int
    members: int

    def bands(self, *, alpha=0.05):
        """Return (low, high) for all of fpr and (low, high) for all of tpr, by Clopper-Pearson.

        They are pointwise: each limit alone, at a threshold fixed beforehand, is wrong with
        probability alpha/2 at most; that the whole curve lies within them all is less likely.
        """
        fpr = clopper_pearson(self.false_positives, self.non_members, alpha)
        return fpr, clopper_pearson(self.true_positives, self.members, alpha)


def roc(scores, membership):
    """Return the whole `Roc` curve: no point dropped, and none put between tied scores.

    >>> curve = roc([3.0, 2.0, 2.0, 1.0], [True, True, False, False])
    >>> curve.fpr, curve.tpr
    (array([0. , 0. , 0.5, 1. ]), array([0. , 0.5, 1. , 1. ]))
    """
    scores, membership = _checked(scores, membership)
    order, ends = _falling(scores)
    tp = np.append(0, np.cumsum(membership.ravel()[order])[ends])
    fp = np.append(0, ends + 1) - tp
    thresholds = scores.ravel()[order[ends]]
    first = math.nan if thresholds[0] == math.inf else math.inf
    n, m = int(fp[-1]), int(tp[-1])
    return Roc(fp / n, tp / m, np.append(first, thresholds), fp, tp, n, m)


class TargetBand(NamedTuple):
    """The TPR at each FPR, and pointwise limits over target models."""

    fpr: np.ndarray
    tpr: np.ndarray
    low: np.ndarray
    high: np.ndarray


def roc_over_targets(scores, membership, fpr, *, alpha=0.05, resamples=2000, rng):
    """Return the `TargetBand` at `fpr`, a number or a list: a bootstrap over whole target models.

    Few targets spread less than many, so the quantiles are taken further out than alpha/2
    (Hesterberg 2015, expanded percentiles). Still they are approximate, and pointwise.

    Raises: ValueError for fewer than 5 targets, a target without members or without non-members,
    or fewer than 10 / fpr non-members in all.

    >>> rng = np.random.default_rng(0)
    >>> membership = rng.permuted(np.tile([True, False], (20, 100)), axis=1)
    >>> band = roc_over_targets(rng.normal(2.0 * membership), membership, [0.01, 0.1], rng=rng)
    >>> band.low < band.tpr
    array([ True,  True])
    """
    scores, membership = _checked(scores, membership)
    _arguments.generator(rng)
    if scores.ndim != 2 or len(scores) < LEAST_TARGETS:
        raise ValueError(
            f"scores must be (targets, records) with at least {LEAST_TARGETS} targets, "
            f"got shape {scores.shape}."
        )
    if not (membership.any(axis=1) & ~membership.all(axis=1)).all():
        raise ValueError("each target must have at least one member and one non-member.")
    resamples = _arguments.whole(resamples, "resamples", least=100)
    alpha, targets = _arguments.fraction(alpha, "alpha"), len(scores)
    fpr = np.array([_enough(f, np.count_nonzero(~membership)) for f in np.ravel(fpr)])
    order, ends = _falling(scores)
    target, member = order // scores.shape[1], membership.ravel()[order]

    def tpr(weights):
        weight = weights[target]
        tp = np.append(0, np.cumsum(weight * member)[ends])
        fp = np.append(0, np.cumsum(weight)[ends]) - tp
        return (tp / tp[-1])[np.searchsorted(fp / fp[-1], fpr, side="right") - 1]

    draws = rng.multinomial(targets, np.full(targets, 1 / targets), size=resamples)
    tail = ndtr(math.sqrt(targets / (targets - 1)) * stdtrit(targets - 1, alpha / 2))
    low, high = np.quantile([tpr(weights) for weights in draws], [tail, 1 - tail], axis=0)
    return TargetBand(fpr, tpr(np.ones(targets, int)), low, high)


class Auc(float):
    """The area under the ROC curve, a number (also `value`), that carries two standard errors.

    error: DeLong's, pairs independent; nan with fewer than 2 members or non-members. over_targets:
    targets independent; None with fewer than 2 of them.
    """

    def __new__(cls, value, error=math.nan, over_targets=None):
        self = super().__new__(cls, value)
        self.value, self.error, self.over_targets = float(value), error, over_targets
        return self


def auc(scores, membership):
    """Return the `Auc`: the chance that a member scores above a non-member, ties counting one half.

    Where members and non-members do not overlap, both errors are 0 and say nothing. An interval
    over few targets takes Student's t with targets - 1 degrees of freedom.
    Source: DeLong et al. (1988); Obuchowski (1997), Biometrics 53, for clusters (here: targets).

    >>> auc([3.0, 2.0, 2.0, 1.0], [True, True, False, False])
    0.875
    """
    scores, membership = _checked(scores, membership)
    above, below = scores[membership], scores[~membership]
    m, n = len(above), len(below)
    wins, losses = _share_below(above, below), 1 - _share_below(below, above)
    value, error, over_targets = float(wins.mean()), math.nan, None
    if min(m, n) > 1:
        error = math.sqrt(wins.var(ddof=1) / m + losses.var(ddof=1) / n)
    if scores.ndim == 2 and len(scores) > 1:
        parts, targets = np.empty(scores.shape), len(scores)
        parts[membership], parts[~membership] = (wins - value) / m, (losses - value) / n
        over_targets = math.sqrt(targets / (targets - 1) * np.sum(parts.sum(axis=1) ** 2))
    return Auc(value, error, over_targets)


def auc_null_error(members, non_members):
    """Return sqrt((m + n + 1) / (12 m n)), the standard error of an AUC whose scores are noise.

    Exact for independent scores of one law without ties; ties make it smaller.
    Source: Mann and Whitney (1947).

    >>> round(auc_null_error(1000, 1000), 4)
    0.0129
    """
    m = _arguments.whole(members, "members", least=1)
    n = _arguments.whole(non_members, "non_members", least=1)
    return math.sqrt((m + n + 1) / (12 * m * n))


class Rates(float):
    """The TPR at one threshold, a number (also `tpr`), that carries the rest.

    fpr, threshold; tpr_interval, fpr_interval: (low, high), by Clopper-Pearson.
    """

    def __new__(cls, tpr, fpr=math.nan, threshold=math.nan, tpr_interval=None, fpr_interval=None):
        self = super().__new__(cls, tpr)
        self.tpr, self.fpr, self.threshold = float(tpr), fpr, threshold
        self.tpr_interval, self.fpr_interval = tpr_interval, fpr_interval
        return self


def tpr_at_fpr(scores, membership, fpr, *, alpha=0.05):
    """Return the `Rates` with the largest TPR whose FPR is at most `fpr`; nothing is interpolated.

    The cut lies above the first non-member too many, so it depends on these non-members alone: the
    interval of the TPR holds for it, but its true FPR may well be above `fpr` (see its interval).
    With the threshold fixed elsewhere, such as on shadow models, the FPR here is what it turns out
    to be, above `fpr` or below: use `rates` and report both.

    Raises: ValueError with fewer than 10 / fpr non-members.

    >>> scores, member = np.arange(2000.0), np.arange(2000) % 2 == 1
    >>> found = tpr_at_fpr(scores, member, 0.01)
    >>> found.tpr, found.fpr, found.threshold
    (0.011, 0.01, 1979.0)
    """
    curve = roc(scores, membership)
    fpr = _enough(fpr, curve.non_members)
    at = np.searchsorted(curve.fpr, fpr, side="right") - 1
    return _rates(curve, at, curve.thresholds[at], alpha)


def rates(scores, membership, *, threshold, alpha=0.05):
    """Return the `Rates` at a threshold that was fixed without these scores.

    >>> rates([3.0, 2.0, 2.0, 1.0], [True, True, False, False], threshold=2.5).tpr
    0.5
    """
    if isinstance(threshold, (bool, np.bool_)) or not isinstance(threshold, numbers.Real):
        raise TypeError(f"threshold must be a number or infinite, got {threshold!r}.")
    if math.isnan(threshold):
        raise ValueError("threshold must be a number or infinite, got nan.")
    curve = roc(scores, membership)
    at = np.searchsorted(-curve.thresholds[1:], -threshold, side="right")
    return _rates(curve, at, threshold, alpha)


def advantage(scores, membership, *, threshold=None):
    """Return TPR - FPR at `threshold`, or, without one, at the best threshold on these very data.

    The best is optimistic. Noise, with n members, n non-members and no ties, has (4^n / C(2n, n) -
    1) / (2n) in the mean, so a balanced accuracy of 0.558, 0.542, 0.530, 0.514 for n = 50, 100,
    200, 1000. `advantage_null` gives the law with these scores.

    Source: Yeom et al. (2018); Gnedenko and Korolyuk (1951) for the law of noise.

    >>> advantage([3.0, 2.0, 2.0, 1.0], [True, True, False, False])
    0.5
    """
    if threshold is not None:
        at = rates(scores, membership, threshold=threshold)
        return at.tpr - at.fpr
    curve = roc(scores, membership)
    return float(np.max(curve.tpr - curve.fpr))


def attack_accuracy(scores, membership, *, threshold=None):
    """Return the accuracy on members and non-members in equal parts, never below one half.

    It is (1 + `advantage`) / 2. Whoever does worse than a coin can toss one, so no defence gains by
    pushing an attack below one half.

    >>> attack_accuracy([1.0, 2.0], [True, False], threshold=1.5)
    0.5
    """
    return max(0.5, (1 + advantage(scores, membership, threshold=threshold)) / 2)


def advantage_null(scores, membership, *, permutations=1000, rng):
    """Return best-threshold advantages with membership shuffled within each target: those of noise.

    If k are at least the advantage seen, (k + 1) / (permutations + 1) is a p-value, where all
    memberships with as many members are equally likely, in each target independently.

    >>> scores, member = np.arange(100.0), np.arange(100) % 2 == 1
    >>> null = advantage_null(scores, member, rng=np.random.default_rng(0))
    >>> bool(0.10 < null.mean() < 0.13)
    True
    """
    scores, membership = _checked(scores, membership)
    permutations = _arguments.whole(permutations, "permutations", least=1)
    _arguments.generator(rng)
    order, ends = _falling(scores)
    m, n = np.count_nonzero(membership), np.count_nonzero(~membership)
    found = np.empty(permutations)
    for i in range(permutations):
        tp = np.cumsum(rng.permuted(membership, axis=-1).ravel()[order])[ends]
        found[i] = np.max(tp / m - (ends + 1 - tp) / n)
    return found


def clopper_pearson(successes, trials, alpha=0.05):
    """Return (low, high) for the probability behind `successes` of `trials`, numbers or arrays.

    For independent trials either limit is wrong with probability alpha/2 at most, whatever the
    truth, and mostly less. Raises: TypeError or ValueError unless both are whole numbers with
    0 <= successes <= trials and trials >= 1. Source: Clopper and Pearson (1934).

    >>> low, high = clopper_pearson(0, 1000)
    >>> low, round(high, 5)
    (0.0, 0.00368)
    """
    alpha = _arguments.fraction(alpha, "alpha")
    k = np.asarray(_arguments.unmasked(successes, "successes"))
    n = np.asarray(_arguments.unmasked(trials, "trials"))
    if k.dtype.kind not in "iu" or n.dtype.kind not in "iu":
        raise TypeError(
            f"successes and trials must be whole numbers, got {k.dtype} and {n.dtype} values."
        )
    k, n = k.astype(np.int64), n.astype(np.int64)
    if not ((k >= 0) & (k <= n) & (n >= 1)).all():
        raise ValueError(
            f"0 <= successes <= trials and trials >= 1 must hold, got {successes} of {trials}."
        )
    low = np.where(k > 0, betaincinv(np.maximum(k, 1), n - k + 1, alpha / 2), 0.0)
    high = np.where(k < n, betainccinv(k + 1, np.maximum(n - k, 1), alpha / 2), 1.0)
    return _plain(low), _plain(high)


def posterior(tpr, fpr, prior):
    """Return the chance that who is called a member is one, if a share `prior` are members.

    It is TPR prior / (TPR prior + FPR (1 - prior)), the precision, for numbers from 0 to 1 or
    arrays of them; nan where nobody is called a member.

    >>> round(posterior(0.76, 0.24, 0.01), 3)
    0.031
    """
    tpr, fpr, prior = _share(tpr, "tpr"), _share(fpr, "fpr"), _share(prior, "prior")
    true, called = tpr * prior, tpr * prior + fpr * (1 - prior)
    return _plain(np.where(called > 0, true / np.where(called > 0, called, 1), math.nan))


def region(fpr, *, epsilon, delta=0.0):
    """Return the largest TPR at each FPR against an (epsilon, delta)-DP model: see `tpr_bounds`.

    It bounds expected rates; counted ones scatter about them. Adjacency: add/remove where each
    record is a member by its own toss of one coin, replace-one where the number of members is
    fixed. Source: Kairouz, Oh, Viswanath (2015).

    >>> region([0.0, 0.1, 0.5], epsilon=1.0, delta=1e-5).round(3)
    array([0.   , 0.272, 0.816])
    """
    return _plain(neighbours.tpr_bounds(fpr, epsilon=epsilon, delta=delta)[1])


def gaussian_tradeoff(fpr, *, mu):
    """Return Phi(Phi^-1(FPR) + mu), the largest TPR at each FPR against a mu-Gaussian-DP model.

    It is the ROC curve of scores from N(0, 1) and N(mu, 1), with AUC Phi(mu / sqrt 2). One Gaussian
    release has mu = L2 sensitivity / sigma. Adjacency: as for `region`, that of the sensitivity.
    Source: Dong, Roth, Su (2022), JRSS B 84.

    >>> round(gaussian_tradeoff(0.01, mu=1.5), 4)
    0.2043
    """
    mu = _arguments.non_negative(mu, "mu")
    return _plain(ndtr(ndtri(_share(fpr, "fpr")) + mu))


def midput(*, attacks_before, attacks_after, accuracy_before, accuracy_after):
    """Return MIDPUT as published: the mean drop of the attacks' accuracy less that of the model's.

    It pays for attacks pushed below one half, counts a point of accuracy as one of attack, and
    rests on the attacks given, which need not know of the defence.

    Args:
        attacks_before, attacks_after: balanced accuracy of each attack, 0 to 1, in one order.
        accuracy_before, accuracy_after: of the model on its test set, 0 to 1.

    Source: Forough and Haddadi (2026), PoPETs; the example is their CIFAR-10 (four attacks).

    >>> before, after = [0.6124, 0.6180, 0.6387, 0.6097], [0.5014, 0.5219, 0.5053, 0.5342]
    >>> round(midput(attacks_before=before, attacks_after=after,
    ...              accuracy_before=0.7875, accuracy_after=0.7807), 4)
    0.0972
    """
    before, after, lost = _drops(attacks_before, attacks_after, accuracy_before, accuracy_after)
    if len(before) != len(after):
        raise ValueError(
            "attacks_before and attacks_after must be of one length, "
            f"got {len(before)} and {len(after)}."
        )
    return float(np.mean(before - after) - lost)


def midput_clipped(*, attacks_before, attacks_after, accuracy_before, accuracy_after):
    """Return the drop of the best attack, a coin included, less that of the model's accuracy.

    Our repair of `midput`, not published. Arguments as there; the lists may differ in length, as
    attacks_after should hold every attack that adapts to the defence.

    >>> midput_clipped(attacks_before=[0.75, 0.6], attacks_after=[0.2, 0.3],
    ...                accuracy_before=0.8, accuracy_after=0.8)
    0.25
    """
    before, after, lost = _drops(attacks_before, attacks_after, accuracy_before, accuracy_after)
    return float(max(before.max(), 0.5) - max(after.max(), 0.5) - lost)


def _checked(scores, membership):
    try:
        scores = np.asarray(_arguments.unmasked(scores, "scores"))
        membership = np.asarray(_arguments.unmasked(membership, "membership"))
    except ValueError:
        raise TypeError("scores and membership must not have rows of unequal length.") from None
    if scores.dtype.kind not in "iuf":
        raise TypeError(f"scores must be an array of numbers, got {scores.dtype} values.")
    if membership.dtype != bool and membership.size:
        raise TypeError(
            f"membership must be booleans, True for members, got {membership.dtype} values."
        )
    if scores.shape != membership.shape or scores.ndim not in (1, 2):
        raise ValueError(
            "scores and membership must have one shape, (records,) or (targets, records), "
            f"got {scores.shape} and {membership.shape}."
        )
    scores = scores.astype(np.float64)
    wrong, m = np.count_nonzero(np.isnan(scores)), np.count_nonzero(membership)
    if wrong:
        raise ValueError(f"scores must not hold NaN, got {wrong} among {scores.size}.")
    if not 0 < m < scores.size:
        raise ValueError(
            f"there must be at least one member and one non-member, got {m} and {scores.size - m}."
        )
    return scores, membership


def _falling(scores):
    """Return (the order of falling scores, the last place of each run of equal ones)."""
    order = np.argsort(-scores.ravel(), kind="stable")
    falling = scores.ravel()[order]
    return order, np.flatnonzero(np.append(falling[1:] != falling[:-1], True))


def _share_below(these, others):
    """Return for each of `these` the share of `others` below it, those equal counting one half."""
    others = np.sort(others)
    twice = np.searchsorted(others, these) + np.searchsorted(others, these, side="right")
    return twice / (2 * len(others))


def _enough(fpr, non_members):
    """Return `fpr`, refused if the non-members are too few to speak of it."""
    fpr = _arguments.fraction(fpr, "fpr")
    needed = math.ceil(LEAST_FALSE / fpr * (1 - 1e-12))
    if non_members < needed:
        raise ValueError(
            f"an FPR of {fpr:g} needs at least {needed} non-members ({LEAST_FALSE} / FPR), "
            f"got {non_members}."
        )
    return fpr


def _rates(curve, at, threshold, alpha):
    tpr = clopper_pearson(curve.true_positives[at], curve.members, alpha)
    fpr = clopper_pearson(curve.false_positives[at], curve.non_members, alpha)
    return Rates(float(curve.tpr[at]), float(curve.fpr[at]), float(threshold), tpr, fpr)


def _share(values, name):
    array = _arguments.finite_array(values, name)
    if ((array < 0) | (array > 1)).any():
        raise ValueError(f"{name} must hold numbers from 0 to 1, got {values!r}.")
    return array


def _drops(before, after, accuracy_before, accuracy_after):
    before, after = _share(before, "attacks_before"), _share(after, "attacks_after")
    if before.ndim != 1 or after.ndim != 1 or not (before.size and after.size):
        raise ValueError(
            "attacks_before and attacks_after must be lists, an entry for each attack."
        )
    lost = _arguments.probability(accuracy_before, "accuracy_before")
    return before, after, lost - _arguments.probability(accuracy_after, "accuracy_after")


def _plain(array):
    return float(array) if array.ndim == 0 else array
