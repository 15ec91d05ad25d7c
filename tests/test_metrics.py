"""Metrics: against pair counts, enumeration, closed forms, scikit-learn and scipy.

Random tests allow 6.2 standard errors (false alarm below 1e-9 under normality), or say otherwise.
"""

import itertools
import math
import pickle
import subprocess
import sys

import numpy as np
import pytest
from scipy import integrate, stats
from sklearn.metrics import roc_auc_score, roc_curve

from coursekit import neighbours
from coursekit.accounting import gaussian_delta, gaussian_epsilon
from coursekit.metrics import (
    advantage,
    advantage_null,
    attack_accuracy,
    auc,
    auc_null_error,
    clopper_pearson,
    gaussian_tradeoff,
    midput,
    midput_clipped,
    posterior,
    rates,
    region,
    roc,
    roc_over_targets,
    tpr_at_fpr,
)

INF = math.inf
FAR = 6.2


def generator(seed):
    return np.random.default_rng(seed)


def tied(seed, size=300, values=12):
    """Scores of few values, and members that score a little higher."""
    rng = generator(seed)
    member = rng.random(size) < 0.4
    return np.round(rng.normal(member, 1) * values / 4) / 4, member


def normal_world(seed, m, n, d):
    rng = generator(seed)
    member = rng.permutation(np.arange(m + n) < m)
    return rng.normal(d * member), member


def shared_targets(rng, targets=10, records=100, d=1.5, tau=0.5):
    """Each target leaks more or less than the others: d + tau N(0, 1)."""
    member = rng.permuted(np.tile([True, False], (targets, records // 2)), axis=1)
    leak = d + tau * rng.normal(size=(targets, 1))
    return rng.normal(size=member.shape) + leak * member, member


SMALL = [(np.array(scores, float)[[2, 0, 3, 1]], np.array(member))
         for scores in itertools.combinations_with_replacement([0, 1, 2], 4)
         for member in itertools.product([False, True], repeat=4) if 0 < sum(member) < 4]


# ROC


def test_every_small_case_by_counting():
    for scores, member in SMALL:
        curve = roc(scores, member)
        cuts = [INF, *sorted(set(scores), reverse=True)]
        assert curve.thresholds.tolist() == cuts
        assert curve.true_positives.tolist() == [sum(scores[member] >= c) for c in cuts]
        assert curve.false_positives.tolist() == [sum(scores[~member] >= c) for c in cuts]
        assert (curve.members, curve.non_members) == (sum(member), sum(~member))
        pairs = [(x > y) + (x == y) / 2 for x in scores[member] for y in scores[~member]]
        assert auc(scores, member) == pytest.approx(np.mean(pairs), abs=1e-15)
        gaps = [np.mean(scores[member] >= c) - np.mean(scores[~member] >= c) for c in cuts]
        assert advantage(scores, member) == pytest.approx(max(gaps), abs=1e-15)
    for scores, member in SMALL[::3]:
        for cut in (-1, 0, 0.5, 1, 1.5, 2, 3):
            at = rates(scores, member, threshold=cut)
            assert at.tpr == np.mean(scores[member] >= cut) and at.threshold == cut
            assert at.fpr == np.mean(scores[~member] >= cut)
            assert advantage(scores, member, threshold=cut) == at.tpr - at.fpr


@pytest.mark.parametrize("seed", range(5))
def test_curve_and_area_are_scikit_learns_and_scipys(seed):
    scores, member = tied(seed)
    curve = roc(scores, member)
    fpr, tpr, thresholds = roc_curve(member, scores, drop_intermediate=False)
    np.testing.assert_array_equal(curve.fpr, fpr)
    np.testing.assert_array_equal(curve.tpr, tpr)
    np.testing.assert_array_equal(curve.thresholds, thresholds)
    value = auc(scores, member)
    assert value == pytest.approx(roc_auc_score(member, scores), rel=1e-13)
    assert value == pytest.approx(np.trapezoid(curve.tpr, curve.fpr), rel=1e-13)
    u = stats.mannwhitneyu(scores[member], scores[~member]).statistic
    assert value == pytest.approx(u / (member.sum() * (~member).sum()), rel=1e-13)


@pytest.mark.parametrize("scores", [
    [INF, INF, 3.0, 2.0, 2.0, -INF, -INF, 1.0], [-INF, 3.0, 2.0, 2.0, 1.0, 0.0, -INF, 5.0],
    [INF] * 4 + [-INF] * 4])
def test_infinite_scores_are_the_ends_and_the_rule_gives_back_the_counts(scores):
    scores, member = np.array(scores), np.arange(8) % 2 == 0
    curve = roc(scores, member)
    finite = np.clip(scores, -9, 9)
    np.testing.assert_array_equal(curve.tpr, roc(finite, member).tpr)
    np.testing.assert_array_equal(curve.fpr, roc(finite, member).fpr)
    one, other = auc(scores, member), auc(finite, member)
    assert one == other and one.error == other.error
    for i, cut in enumerate(curve.thresholds):
        assert curve.true_positives[i] == np.sum(scores[member] >= cut)
        assert curve.false_positives[i] == np.sum(scores[~member] >= cut)
        if not math.isnan(cut):
            at = rates(scores, member, threshold=cut)
            assert (at.tpr, at.fpr) == (curve.tpr[i], curve.fpr[i])
    assert math.isnan(curve.thresholds[0]) == (INF in scores)


def test_two_dimensions_pool_all_targets():
    scores, member = tied(7)
    for flat, pooled in zip(roc(scores, member), roc(scores.reshape(6, 50), member.reshape(6, 50)),
                            strict=True):
        np.testing.assert_array_equal(flat, pooled)
    two, flat = auc(scores.reshape(6, 50), member.reshape(6, 50)), auc(scores, member)
    assert two == flat and two.error == flat.error and flat.over_targets is None


def test_other_numbers_give_the_same_and_inputs_stay():
    scores = np.array([3, 2, 2, 0, 5])
    member = np.array([True, False, True, False, False])
    before = scores.copy(), member.copy()
    for other in (scores.astype(np.float32), scores.astype(np.uint8), scores.tolist(),
                  np.asfortranarray(scores[:, None])[:, 0]):
        np.testing.assert_array_equal(roc(other, member).tpr, roc(scores.astype(float), member).tpr)
    auc(scores, member), advantage(scores, member), rates(scores, member, threshold=2)
    advantage_null(scores, member, permutations=3, rng=generator(0))
    np.testing.assert_array_equal(scores, before[0])
    np.testing.assert_array_equal(member, before[1])


def test_bands_are_the_interval_of_each_count():
    curve = roc(*tied(3, size=40))
    fpr, tpr = curve.bands(alpha=0.1)
    for i in range(len(curve.fpr)):
        for (low, high), count, total in (
                (fpr, curve.false_positives[i], curve.non_members),
                (tpr, curve.true_positives[i], curve.members)):
            exact = stats.binomtest(int(count), total).proportion_ci(0.9, method="exact")
            assert (low[i], high[i]) == pytest.approx(tuple(exact), abs=1e-12)


# AUC


@pytest.mark.parametrize("m, n, d", [(20_000, 20_000, 1.5), (4000, 30_000, 0.0)])
def test_auc_and_delong_of_normal_scores_in_closed_form(m, n, d):
    scores, member = normal_world(11, m, n, d)
    found, truth = auc(scores, member), stats.norm.cdf(d / math.sqrt(2))
    both = stats.multivariate_normal([0, 0], [[1, 0.5], [0.5, 1]]).cdf([d / math.sqrt(2)] * 2)
    variance = (truth * (1 - truth) + (m + n - 2) * (both - truth**2)) / (m * n)
    assert abs(found - truth) < FAR * math.sqrt(variance)
    assert found.error == pytest.approx(math.sqrt(variance), rel=0.04)  # its own spread: below .6%
    if d == 0:
        assert auc_null_error(m, n) == pytest.approx(math.sqrt(variance), rel=1e-4)


@pytest.mark.parametrize("seed", range(3))
def test_delong_is_the_jackknife(seed):
    """Leaving out one record at a time, members and non-members apart, areas by scikit-learn."""
    scores, member = tied(seed, size=40)
    variance = 0.0
    for group in (member, ~member):
        without = [roc_auc_score(np.delete(member, i), np.delete(scores, i))
                   for i in np.flatnonzero(group)]
        variance += (len(without) - 1) * np.var(without)
    assert auc(scores, member).error == pytest.approx(math.sqrt(variance), rel=1e-10)


@pytest.mark.parametrize("m, n", [(3, 4), (1, 5), (2, 2)])
def test_null_error_over_all_memberships(m, n):
    def areas(scores):
        return [auc(scores, np.isin(np.arange(m + n), chosen))
                for chosen in itertools.combinations(range(m + n), m)]
    distinct = np.arange(m + n, dtype=float)
    assert np.std(areas(distinct)) == pytest.approx(auc_null_error(m, n), rel=1e-12)
    assert np.std(areas(distinct // 2)) < auc_null_error(m, n)


def test_error_over_targets_is_obuchowskis():
    """Her S10, S01 and S11 by pairs, with targets of unequal numbers of members."""
    rng = generator(5)
    member = rng.random((7, 9)) < 0.4
    scores = np.round(rng.normal(member) * 2) / 2 + np.arange(7)[:, None] / 3
    m, n, targets = member.sum(), (~member).sum(), 7
    def won(x, y):
        return (x > y) + (x == y) / 2
    wins = {(i, j): np.mean([won(scores[i, j], y) for y in scores[~member]])
            for i, j in np.argwhere(member)}
    losses = {(i, j): np.mean([won(x, scores[i, j]) for x in scores[member]])
              for i, j in np.argwhere(~member)}
    area = np.mean(list(wins.values()))
    ten = np.array([sum(w - area for (i, _), w in wins.items() if i == k) for k in range(7)])
    one = np.array([sum(v - area for (i, _), v in losses.items() if i == k) for k in range(7)])
    scale = targets / (targets - 1)
    s10, s01, s11 = scale * ten @ ten / m, scale * one @ one / n, scale * ten @ one
    assert auc(scores, member).over_targets == pytest.approx(
        math.sqrt(s10 / m + s01 / n + 2 * s11 / (m * n)), rel=1e-12)


def test_error_over_targets_sees_that_targets_differ_and_delong_does_not():
    """SD of the area over 300 worlds of 20 targets; its own standard error is 4.1%."""
    rng = generator(8)
    found = [auc(*shared_targets(rng, targets=20)) for _ in range(300)]
    spread = np.std(found, ddof=1)
    over = math.sqrt(np.mean([one.over_targets**2 for one in found]))
    assert spread == pytest.approx(over, rel=0.25)
    assert np.mean([one.error for one in found]) < 0.6 * spread


def test_errors_that_cannot_be_known_are_not_made_up():
    assert math.isnan(auc([1.0, 2.0, 3.0], [True, False, False]).error)
    assert auc([[1.0, 2.0, 3.0]], [[True, False, False]]).over_targets is None
    apart = auc([[3.0, 1.0], [4.0, 2.0]], [[True, False]] * 2)
    assert apart.error == 0 and apart.over_targets == 0


# TPR at an FPR


def brute_tpr(scores, member, fpr):
    cuts = [INF, *np.unique(scores)]
    return max(np.mean(scores[member] >= c) for c in cuts if np.mean(scores[~member] >= c) <= fpr)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("fpr", [0.1, 0.123, 0.29, 0.57, 0.9])
def test_tpr_is_the_largest_within_the_fpr(seed, fpr):
    scores, member = tied(seed, values=12 if seed % 2 else 100)
    found = tpr_at_fpr(scores, member, fpr)
    assert found.tpr == brute_tpr(scores, member, fpr)
    assert found.fpr == np.mean(scores[~member] >= found.threshold) <= fpr
    assert found.tpr == np.mean(scores[member] >= found.threshold)
    again = rates(scores, member, threshold=found.threshold)
    assert again == found


def test_an_fpr_that_is_reached_exactly_counts():
    """29 of 100 are 0.29, though 0.29 * 100 is less than 29 in floating point."""
    scores = np.arange(200.0)
    for k in range(10, 100):
        assert tpr_at_fpr(scores, np.arange(200) % 2 == 1, k / 100).fpr == k / 100


def test_no_threshold_is_put_inside_a_tie():
    scores, member = np.append(np.zeros(200), 1.0), np.arange(201) < 100
    found = tpr_at_fpr(scores, member, 0.5)
    assert (found.tpr, found.fpr) == (0.0, 1 / 101)
    found = tpr_at_fpr(scores[:200], member[:200], 0.5)
    assert (found.tpr, found.fpr, found.threshold) == (0.0, 0.0, INF)


@pytest.mark.parametrize("fpr, needed", [(0.01, 1000), (0.001, 10_000), (0.07, 143), (0.03, 334)])
def test_too_few_non_members_are_refused_with_the_number_needed(fpr, needed):
    member = np.arange(needed + 50) < 50
    scores = generator(0).normal(size=needed + 50)
    assert tpr_at_fpr(scores, member, fpr).fpr <= fpr
    with pytest.raises(ValueError, match=rf"at least {needed} non-members .* got {needed - 1}\."):
        tpr_at_fpr(scores[:-1], member[:-1], fpr)


@pytest.mark.parametrize("fpr, d", [(0.01, 1.5), (0.001, 1.5), (0.1, 0.0)])
def test_tpr_of_normal_scores_in_closed_form(fpr, d):
    m, n = 20_000, 50_000
    found, z = tpr_at_fpr(*normal_world(3, m, n, d), fpr), stats.norm.ppf(fpr)
    truth = stats.norm.cdf(z + d)
    slope = stats.norm.pdf(z + d) / stats.norm.pdf(z)
    error = math.sqrt(truth * (1 - truth) / m + slope**2 * fpr * (1 - fpr) / n)
    assert abs(found.tpr - truth) < FAR * error
    assert gaussian_tradeoff(fpr, mu=d) == pytest.approx(truth, rel=1e-12)
    count = round(found.tpr * m)
    exact = stats.binomtest(count, m).proportion_ci(0.95, method="exact")
    assert found.tpr_interval == pytest.approx(tuple(exact), rel=1e-9)
    assert found.fpr_interval[0] < found.fpr < found.fpr_interval[1]


def test_interval_holds_though_the_threshold_is_set_on_the_non_members():
    """1000 worlds, 100 non-members; the cut lies above the 11th of them. At most 5% may miss."""
    rng, missed = generator(4), 0
    member = np.arange(150) < 50
    for _ in range(1000):
        scores = rng.normal(member)
        low, high = tpr_at_fpr(scores, member, 0.1).tpr_interval
        truth = stats.norm.sf(np.sort(scores[~member])[-11] - 1)
        missed += not low <= truth <= high
    assert 0 < missed <= stats.binom.isf(1e-9, 1000, 0.05)


# Over target models


def test_band_over_targets_is_the_bootstrap_done_plainly():
    scores, member = shared_targets(generator(1), targets=6, records=40)
    scores, fpr = np.round(scores, 1), [0.1, 0.25, 0.5]
    member[:2, ::3] = True  # unequal numbers of members
    band = roc_over_targets(scores, member, fpr, alpha=0.2, resamples=100, rng=generator(2))
    draws = generator(2).multinomial(6, [1 / 6] * 6, size=100)
    plain = []
    for times in draws:
        chosen = np.repeat(np.arange(6), times)
        s, t = scores[chosen].ravel(), member[chosen].ravel()
        plain.append([brute_tpr(s, t, f) for f in fpr])
    tail = stats.norm.cdf(math.sqrt(6 / 5) * stats.t.ppf(0.1, 5))
    np.testing.assert_allclose(band.low, np.quantile(plain, tail, axis=0), rtol=1e-12)
    np.testing.assert_allclose(band.high, np.quantile(plain, 1 - tail, axis=0), rtol=1e-12)
    assert band.tpr.tolist() == [tpr_at_fpr(scores, member, f).tpr for f in fpr]
    assert band.fpr.tolist() == fpr


def test_band_over_targets_covers_where_independent_records_would_not():
    """60 worlds. Coverage (measured): the band .93, so 39 or more, and Clopper-Pearson .34, so 42
    or fewer, but for a chance below 1e-9."""
    rng, covered = generator(9), np.zeros(2)
    truth = stats.norm.sf((stats.norm.isf(0.1) - 1.5) / math.sqrt(1 + 1.0**2))
    for _ in range(60):
        scores, member = shared_targets(rng, tau=1.0)
        band = roc_over_targets(scores, member, 0.1, resamples=200, rng=rng)
        low, high = tpr_at_fpr(scores, member, 0.1).tpr_interval
        covered += [band.low[0] <= truth <= band.high[0], low <= truth <= high]
    assert covered[0] >= 39 and covered[1] <= 42


# Advantage


@pytest.mark.parametrize("seed", range(4))
def test_best_advantage_is_the_one_sided_kolmogorov_smirnov_statistic(seed):
    scores, member = tied(seed)
    other = stats.ks_2samp(scores[member], scores[~member], alternative="less").statistic
    assert advantage(scores, member) == pytest.approx(other, rel=1e-12)
    assert advantage(-scores, member) >= 0  # to call everybody a member is a rule too


def noise_advantage(n):
    return (4**n / math.comb(2 * n, n) - 1) / (2 * n)


def test_best_advantage_of_noise():
    for n in (1, 2, 4):
        scores = np.arange(2.0 * n)
        all_of_them = [advantage(scores, np.isin(np.arange(2 * n), chosen))
                       for chosen in itertools.combinations(range(2 * n), n)]
        assert np.mean(all_of_them) == pytest.approx(noise_advantage(n), rel=1e-12)
    stated = {50: 0.558, 100: 0.542, 200: 0.530, 1000: 0.514}
    assert {n: round(0.5 + noise_advantage(n) / 2, 3) for n in stated} == stated
    for number in stated.values():
        assert f"{number:.3f}" in advantage.__doc__


def test_permutation_null():
    n = 50
    null = advantage_null(np.arange(2.0 * n), np.arange(2 * n) < n, permutations=3000,
                          rng=generator(1))
    assert abs(null.mean() - noise_advantage(n)) < FAR * null.std() / math.sqrt(3000)
    level = 0.24  # P(D >= k/n) = C(2n, n+k) / C(2n, n)
    chance = math.comb(2 * n, n + 12) / math.comb(2 * n, n)
    hits = np.sum(null >= level - 1e-9)
    assert abs(hits - 3000 * chance) < FAR * math.sqrt(3000 * chance * (1 - chance))
    ties = advantage_null(np.zeros(20), np.arange(20) < 9, permutations=5, rng=generator(0))
    assert not ties.any()


def test_permutation_null_shuffles_within_targets():
    """Targets that differ in level and in numbers of members: that alone tells members apart."""
    member = np.array([[True] * 9 + [False], [True] + [False] * 9])
    scores = np.array([[1.0] * 10, [0.0] * 10])
    null = advantage_null(scores, member, permutations=20, rng=generator(0))
    assert null == pytest.approx(np.full(20, advantage(scores, member))) and null[0] > 0.7


def test_accuracy_is_never_below_one_half():
    """The gap attack: 1/2 + (train accuracy - test accuracy) / 2, exactly."""
    member = np.arange(200) < 100
    right = np.where(member, np.arange(200) < 90, np.arange(200) < 165).astype(float)
    assert attack_accuracy(right, member, threshold=0.5) == pytest.approx(0.5 + (0.9 - 0.65) / 2)
    assert attack_accuracy(-right, member, threshold=-0.5) == 0.5
    assert advantage(-right, member, threshold=-0.5) == pytest.approx(-0.25)
    assert attack_accuracy(right, member) == pytest.approx(0.625)


# Clopper-Pearson


@pytest.mark.parametrize("n", [1, 2, 7, 30])
@pytest.mark.parametrize("alpha", [0.05, 0.3, 1e-6])
def test_limits_are_scipys_and_leave_their_tails(n, alpha):
    k = np.arange(n + 1)
    low, high = clopper_pearson(k, n, alpha)
    for i in k:
        exact = stats.binomtest(int(i), n).proportion_ci(1 - alpha, method="exact")
        assert (low[i], high[i]) == pytest.approx(tuple(exact), rel=1e-7, abs=1e-12)
    assert stats.binom.sf(k[1:] - 1, n, low[1:]) == pytest.approx(np.full(n, alpha / 2), rel=1e-9)
    assert stats.binom.cdf(k[:-1], n, high[:-1]) == pytest.approx(np.full(n, alpha / 2), rel=1e-9)
    assert low[0] == 0 and high[-1] == 1 and (low < high).all()


@pytest.mark.parametrize("n", [1, 5, 20, 60])
@pytest.mark.parametrize("alpha", [0.05, 0.3])
def test_each_tail_is_missed_at_most_alpha_half_by_enumeration(n, alpha):
    k = np.arange(n + 1)
    low, high = clopper_pearson(k, n, alpha)
    p = np.concatenate([np.linspace(0, 1, 301), low[1:] - 1e-9, high[:-1] + 1e-9])
    p = np.clip(p, 0, 1)[:, None]
    chance = stats.binom.pmf(k, n, p)
    below, above = (chance * (p < low)).sum(axis=1), (chance * (p > high)).sum(axis=1)
    assert max(below.max(), above.max()) <= alpha / 2 + 1e-9
    assert min(below.max(), above.max()) > 0.999 * alpha / 2  # and no wider than they must be


def test_limits_at_the_ends_and_of_many():
    assert clopper_pearson(0, 1000)[1] == pytest.approx(1 - 0.025 ** (1 / 1000), rel=1e-12)
    assert clopper_pearson(500, 500, 0.01)[0] == pytest.approx(0.98945931, abs=5e-9)
    low, high = clopper_pearson(200_000, 1_000_000)
    assert (low, high) == pytest.approx((0.2 - 0.000784, 0.2 + 0.000784), abs=2e-6)
    low, high = clopper_pearson([[1], [2]], [10, 20, 30])
    assert low.shape == high.shape == (2, 3) and low[1, 2] == clopper_pearson(2, 30)[0]
    low, high = clopper_pearson(np.array([100], np.int8), np.array([110], np.int8))
    assert (low[0], high[0]) == clopper_pearson(100, 110)  # in double precision
    assert all(type(x) is float for x in clopper_pearson(np.int8(100), np.int16(200)))


# Posterior, region, trade-off


def test_posterior_by_counting():
    for members, outsiders, tp, fp in [(100, 900, 30, 9), (50, 50, 1, 0), (7, 993, 7, 993)]:
        prior = members / (members + outsiders)
        found = posterior(tp / members, fp / outsiders, prior)
        assert found == pytest.approx(tp / (tp + fp), rel=1e-12)
    assert posterior(0.76, 0.24, 0.5) == pytest.approx(0.76)
    assert round(posterior(0.76, 0.24, 0.01), 3) == 0.031
    assert math.isnan(posterior(0.0, 0.0, 0.5)) and posterior(0.3, 0.2, 0.0) == 0
    assert posterior([0, 0.5, 1], [0, 0.5, 1], [[0.1], [0.2]])[:, 1:] == pytest.approx(
        np.array([[0.1, 0.1], [0.2, 0.2]]))


@pytest.mark.parametrize("epsilon, delta", [(0.0, 0.0), (1.0, 1e-5), (0.3, 0.2), (6.0, 0.0)])
def test_region_is_its_two_lines(epsilon, delta):
    fpr = np.linspace(0, 1, 101)
    lines = [np.exp(epsilon) * fpr + delta, 1 - np.exp(-epsilon) * (1 - delta - fpr)]
    found = region(fpr, epsilon=epsilon, delta=delta)
    assert found == pytest.approx(np.minimum(1, np.minimum(*lines)), abs=1e-14)
    corner = (1 - delta) / (1 + np.exp(epsilon))
    best = region(corner, epsilon=epsilon, delta=delta) - corner
    assert best == pytest.approx(neighbours.largest_advantage(epsilon, delta), abs=1e-14)


@pytest.mark.parametrize("mu", [0.3, 1.0, 3.0])
def test_gaussian_tradeoff_and_the_accountants_curve_are_one(mu):
    """Each line of (epsilon, delta(epsilon)) touches the trade-off from above, none cuts it."""
    fpr = stats.norm.cdf(np.linspace(-6, 6, 61))
    tpr = gaussian_tradeoff(fpr, mu=mu)
    epsilons = np.concatenate([np.linspace(0, 30, 601), [gaussian_epsilon(mu, 1e-5)]])
    lines = np.array([region(fpr, epsilon=e, delta=gaussian_delta(mu, e)) for e in epsilons])
    assert (lines >= tpr - 1e-12).all()
    assert lines.min(axis=0) == pytest.approx(tpr, abs=1e-3)
    for epsilon in (0.1, 1.0, gaussian_epsilon(mu, 1e-5)):
        touch = stats.norm.cdf(-epsilon / mu - mu / 2)  # there the slope is e^epsilon
        delta = gaussian_tradeoff(touch, mu=mu) - math.exp(epsilon) * touch
        assert delta == pytest.approx(gaussian_delta(mu, epsilon), rel=1e-7)
    area = integrate.quad(lambda f: gaussian_tradeoff(f, mu=mu), 0, 1, epsabs=1e-10)[0]
    assert area == pytest.approx(stats.norm.cdf(mu / math.sqrt(2)), abs=1e-7)
    assert gaussian_tradeoff([0.0, 1.0], mu=mu).tolist() == [0.0, 1.0]
    assert gaussian_tradeoff(0.2, mu=0) == pytest.approx(0.2, rel=1e-14)


def test_adjacency_of_the_region():
    """A sum of values -1 or 1 with geometric noise: epsilon for add/remove, twice that to replace.

    One record is 1, three are -1. If each is in by its own coin, being in moves the sum by 1; if
    two of four are in, it takes another's place and moves it by 2.
    """
    epsilon, reach = 0.8, 60
    noise = np.exp(-epsilon * np.abs(np.arange(-reach, reach + 1)))
    noise /= noise.sum()

    def attack(inside, outside):
        """(TPR, FPR) of "sum at least t"; `inside` and `outside` list equally likely sums."""
        p, q = (sum(np.roll(noise, s) for s in sums) / len(sums) for sums in (inside, outside))
        return np.cumsum(p[::-1]), np.cumsum(q[::-1])
    others = [-sum(coins) for coins in itertools.product([0, 1], repeat=3)]
    tpr, fpr = attack([1 + s for s in others], others)
    assert (tpr <= region(np.clip(fpr, 0, 1), epsilon=epsilon) + 1e-9).all()
    tpr, fpr = attack([1 - 1], [-1 - 1])
    fpr = np.clip(fpr, 0, 1)
    assert (tpr <= region(fpr, epsilon=2 * epsilon) + 1e-9).all()
    assert (tpr > region(fpr, epsilon=epsilon) + 0.1).any()


# MIDPUT: the table of the authors' project page, CIFAR-10 and ImageNet-10

BEFORE = {"cifar": (0.7875, [0.6124, 0.6180, 0.6387, 0.6097]),
          "imagenet": (0.7958, [0.5824, 0.6003, 0.5817, 0.5721])}
PUBLISHED = [
    ("cifar", 0.7573, [0.5516, 0.5829, 0.5708, 0.5836], 0.0173),
    ("cifar", 0.7674, [0.5394, 0.5173, 0.5346, 0.5164], 0.0727),
    ("cifar", 0.7422, [0.5, 0.5, 0.5, 0.5], 0.0744),
    ("cifar", 0.7807, [0.5014, 0.5219, 0.5053, 0.5342], 0.0972),
    ("imagenet", 0.7962, [0.5316, 0.5944, 0.5549, 0.5598], 0.0244),
    ("imagenet", 0.6804, [0.4952, 0.5010, 0.5055, 0.5034], -0.0325)]


@pytest.mark.parametrize("data, accuracy, attacks, expected", PUBLISHED)
def test_midput_of_published_tables(data, accuracy, attacks, expected):
    before, asr = BEFORE[data]
    given = dict(attacks_before=asr, attacks_after=attacks, accuracy_before=before,
                 accuracy_after=accuracy)
    assert midput(**given) == pytest.approx(expected, abs=6e-5)
    each = [midput(**{**given, "attacks_before": [b], "attacks_after": [a]})
            for b, a in zip(asr, attacks, strict=True)]
    assert np.mean(each) == pytest.approx(midput(**given), rel=1e-12)
    clipped = max(*asr, 0.5) - max(*attacks, 0.5) - (before - accuracy)
    assert midput_clipped(**given) == pytest.approx(clipped, abs=1e-15)


def test_midput_pays_below_one_half_and_the_clipped_one_does_not():
    same = dict(accuracy_before=0.8, accuracy_after=0.8)
    assert midput(attacks_before=[0.7, 0.6], attacks_after=[0.7, 0.6], **same) == 0
    assert midput(attacks_before=[0.7], attacks_after=[0.28], **same) == pytest.approx(0.42)
    assert midput_clipped(attacks_before=[0.7], attacks_after=[0.28], **same) == pytest.approx(0.2)
    assert midput_clipped(attacks_before=[0.3], attacks_after=[0.2], **same) == 0
    adaptive = midput_clipped(attacks_before=[0.7], attacks_after=[0.28, 0.69], **same)
    assert adaptive == pytest.approx(0.01)
    worse = dict(accuracy_before=0.8, accuracy_after=0.7)
    assert midput(attacks_before=[0.6], attacks_after=[0.6], **worse) == pytest.approx(-0.1)


# Refusals

S, M = np.arange(6.0), np.arange(6) < 3
FIVE = np.tile(S, (5, 1)), np.tile(M, (5, 1))


@pytest.mark.parametrize("call, error, says", [
    (lambda: roc(S[:5], M), ValueError, r"one shape.*\(5,\) and \(6,\)"),
    (lambda: roc(FIVE[0], M), ValueError, r"one shape.*\(5, 6\) and \(6,\)"),
    (lambda: roc(S.reshape(2, 3), M), ValueError, r"one shape.*\(2, 3\) and \(6,\)"),
    (lambda: roc(S[None, None], M[None, None]), ValueError, r"one shape"),
    (lambda: roc(1.0, True), ValueError, r"one shape"),
    (lambda: roc(S, M.astype(int)), TypeError, r"booleans, True for members, got int64"),
    (lambda: roc(M, S), TypeError, r"scores must be an array of numbers, got bool"),
    (lambda: roc(["a"], [True]), TypeError, r"array of numbers"),
    (lambda: roc(S + 1j, M), TypeError, r"array of numbers, got complex128"),
    (lambda: roc([[1.0], [1.0, 2.0]], M), TypeError, r"unequal length"),
    (lambda: roc(np.ma.array(S, mask=M), M), TypeError, r"scores must not be a masked array"),
    (lambda: roc(S, np.ma.array(M, mask=M)), TypeError, r"membership must not be a masked"),
    (lambda: roc(np.where(M, np.nan, S), M), ValueError, r"NaN, got 3 among 6"),
    (lambda: auc(np.where(S < 1, np.nan, S), M), ValueError, r"NaN, got 1 among 6"),
    (lambda: roc(S, M | True), ValueError, r"one member and one non-member, got 6 and 0"),
    (lambda: roc(S, M & False), ValueError, r"one member and one non-member, got 0 and 6"),
    (lambda: roc([], []), ValueError, r"one member and one non-member, got 0 and 0"),
    (lambda: roc(S, M).bands(alpha=0), ValueError, r"alpha must be"),
    (lambda: tpr_at_fpr(S, M, 0.0), ValueError, r"fpr must be"),
    (lambda: tpr_at_fpr(S, M, [0.1]), TypeError, r"fpr must be"),
    (lambda: rates(S, M, threshold=math.nan), ValueError, r"threshold must be .* got nan"),
    (lambda: rates(S, M, threshold=True), TypeError, r"threshold must be .* got True"),
    (lambda: advantage(S, M, threshold="1"), TypeError, r"threshold must be .* got '1'"),
    (lambda: advantage_null(S, M, rng=7), TypeError, r"rng must be"),
    (lambda: advantage_null(S, M, permutations=0, rng=generator(0)), ValueError, r"permutations"),
    (lambda: auc_null_error(0, 5), ValueError, r"members must be"),
    (lambda: auc_null_error(5, 2.5), TypeError, r"non_members must be"),
    (lambda: roc_over_targets(S, M, 0.5, rng=generator(0)), ValueError, r"at least 5 targets"),
    (lambda: roc_over_targets(FIVE[0][:4], FIVE[1][:4], 0.9, rng=generator(0)), ValueError,
     r"at least 5 targets, got shape \(4, 6\)"),
    (lambda: roc_over_targets(FIVE[0], np.arange(30).reshape(5, 6) < 15, 0.9, rng=generator(0)),
     ValueError, r"each target must have"),
    (lambda: roc_over_targets(*FIVE, [0.9, 0.5], rng=generator(0)), ValueError,
     r"at least 20 non-members .* got 15"),
    (lambda: roc_over_targets(*FIVE, 0.9, rng=0), TypeError, r"rng must be"),
    (lambda: roc_over_targets(*FIVE, 0.9, resamples=9, rng=generator(0)), ValueError, r"resamples"),
    (lambda: roc_over_targets(*FIVE, 0.9, alpha=1, rng=generator(0)), ValueError, r"alpha"),
    (lambda: clopper_pearson(3, 2), ValueError, r"must hold, got 3 of 2"),
    (lambda: clopper_pearson(-1, 2), ValueError, r"must hold"),
    (lambda: clopper_pearson(0, 0), ValueError, r"must hold"),
    (lambda: clopper_pearson(0.5, 2), TypeError, r"whole numbers, got float64"),
    (lambda: clopper_pearson(True, 2), TypeError, r"whole numbers, got bool"),
    (lambda: clopper_pearson(1, 2, 1.0), ValueError, r"alpha must be"),
    (lambda: posterior(1.2, 0.1, 0.1), ValueError, r"tpr must hold numbers from 0 to 1, got 1\.2"),
    (lambda: posterior(0.1, -0.1, 0.1), ValueError, r"fpr must hold"),
    (lambda: posterior(0.1, 0.1, [0.1, 2]), ValueError, r"prior must hold"),
    (lambda: region([0.1, 1.1], epsilon=1), ValueError, r"fpr must hold"),
    (lambda: region(0.1, epsilon=-1), ValueError, r"epsilon must be"),
    (lambda: region(0.1, epsilon=1, delta=2), ValueError, r"delta must be"),
    (lambda: gaussian_tradeoff(0.1, mu=-1), ValueError, r"mu must be"),
    (lambda: gaussian_tradeoff(1.1, mu=1), ValueError, r"fpr must hold"),
])
def test_refusals(call, error, says):
    with pytest.raises(error, match=says):
        call()


@pytest.mark.parametrize("change, says", [
    (dict(attacks_after=[0.5]), r"one length, got 2 and 1"),
    (dict(attacks_before=[0.5, 61.2]), r"attacks_before must hold numbers from 0 to 1"),
    (dict(attacks_before=0.6), r"must be lists"),
    (dict(attacks_before=[], attacks_after=[]), r"must be lists"),
    (dict(accuracy_before=78.0), r"accuracy_before must be"),
    (dict(accuracy_after=-0.1), r"accuracy_after must be"),
])
def test_midput_refusals(change, says):
    given = dict(attacks_before=[0.6, 0.7], attacks_after=[0.5, 0.5], accuracy_before=0.8,
                 accuracy_after=0.8) | change
    with pytest.raises(ValueError, match=says):
        midput(**given)
    if "one length" not in says:
        with pytest.raises(ValueError, match=says):
            midput_clipped(**given)


def test_neither_torch_nor_scikit_learn_is_loaded():
    code = "import coursekit.metrics, sys; print({'torch', 'sklearn'} & set(sys.modules))"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "set()"


def test_numbers_that_carry_more_are_numbers():
    found = auc(S, M), tpr_at_fpr(np.arange(200.0), np.arange(200) % 2 == 1, 0.1)
    for number, value in ((found[0], found[0].value), (found[1], found[1].tpr)):
        assert number == value and f"{number:.3f}" == f"{value:.3f}" and type(value) is float
        again = pickle.loads(pickle.dumps(number))
        assert again == number and vars(again) == vars(number)
