"""LiRA, Bayesian variance and RMIA in a Gaussian world with known answers, and record by record.

The world: signal of record i in model m is difficulty_i + 1.5 member + N(0, 1), difficulties
N(0, 9). With known Gaussians the AUC is Phi(1.5 / sqrt 2) = 0.8556, and a threshold for all records
has Phi(1.5 / sqrt(2 (1 + 9))) = 0.6313. An AUC of m members and n others has a standard error of at
most sqrt(A (1 - A) / min(m, n)) (Birnbaum and Klose, 1957); random ones are held to 6 of them,
exceeded with probability below 2e-9 (Gaussian tail), and their seeds are fixed.
"""

import numpy as np
import pytest
from scipy import stats
from scipy.special import log_ndtr

from coursekit.membership import bavaria, lira_offline, lira_online, rmia

D, TAU = 1.5, 3.0
ORACLE = stats.norm.cdf(D / np.sqrt(2))
GLOBAL = stats.norm.cdf(D / np.sqrt(2 * (1 + TAU**2)))
ATTACKS = {"online": lira_online, "offline": lira_offline, "bavaria": bavaria}


def paired(models, records, rng):
    """Each record in exactly half of the models, and all models of one size."""
    half = np.array([rng.permutation(records) < records // 2 for _ in range(models // 2)])
    return np.concatenate([half, ~half])


def world(models, records, rng, d=D):
    """(signal, members) of a target, (signals, membership) of the shadow models."""
    difficulty = rng.normal(0, TAU, records)
    membership = np.vstack([rng.permutation(records) < records // 2, paired(models, records, rng)])
    signals = difficulty + d * membership + rng.normal(size=membership.shape)
    return signals[0], membership[0], signals[1:], membership[1:]


def auc(scores, members):
    ranks = stats.rankdata(scores)
    m, n = members.sum(), (~members).sum()
    return (ranks[members].sum() - m * (m + 1) / 2) / (m * n)


def error(a, records):
    return np.sqrt(a * (1 - a) / (records // 2))


def two_sided(signal, shadow, inside):
    """The offline attack of published code: minus the log density under OUT."""
    out = np.ma.array(shadow, mask=inside)
    return -stats.norm.logpdf(signal, out.mean(0).data, out.std(0).data + 1e-30)


def test_the_gaussian_world():
    """128 shadows: within 6 standard errors of known Gaussians, less what estimation may cost."""
    n = 20_000
    signal, members, *shadows = world(128, n, np.random.default_rng(0))
    width = 6 * error(ORACLE, n)
    for attack in ATTACKS.values():
        for variance in ({},) if attack is bavaria else ({}, {"variance": "fixed"}):
            found = auc(attack(signal, *shadows, **variance), members)
            assert ORACLE - 0.006 - width < found < ORACLE + width
            assert 0.84 < found < 0.87
    assert abs(auc(signal, members) - GLOBAL) < 6 * error(GLOBAL, n)
    assert auc(two_sided(signal, *shadows), members) < 0.78


def test_rate_at_one_percent_in_the_gaussian_world():
    """TPR at 1% FPR, threshold from the other half of non-members: 0.2043 for known Gaussians."""
    n = 20_000
    signal, members, *shadows = world(128, n, np.random.default_rng(1))
    truth = stats.norm.cdf(stats.norm.ppf(0.01) + D)
    assert truth == pytest.approx(0.2043, abs=5e-5)
    slope = stats.norm.pdf(stats.norm.ppf(0.01) + D) / stats.norm.pdf(stats.norm.ppf(0.01))
    width = 6 * np.sqrt(truth * (1 - truth) / (n / 2) + slope**2 * 0.01 * 0.99 / (n / 2))
    for attack in (lira_online, lira_offline):
        scores = attack(signal, *shadows, variance="fixed")
        found = np.mean(scores[members] > np.quantile(scores[~members], 0.99))
        assert abs(found - truth) < width + 0.006


@pytest.mark.parametrize("name", ATTACKS)
def test_the_null_world(name):
    signal, members, *shadows = world(64, 20_000, np.random.default_rng(2), d=0.0)
    scores = ATTACKS[name](signal, *shadows)
    assert abs(auc(scores, members) - 0.5) < 6 * np.sqrt(20_001 / (12 * 1e8))


def test_few_shadows():
    """8 shadows: the Bayesian variance and the fixed one beat one variance for each record."""
    signal, members, *shadows = world(8, 40_000, np.random.default_rng(3))
    own = auc(lira_online(signal, *shadows), members)
    fixed = auc(lira_online(signal, *shadows, variance="fixed"), members)
    assert min(fixed, auc(bavaria(signal, *shadows), members)) > own + 6 * 2 * error(own, 40_000)


def small(rng, models=9, records=30):
    membership = rng.random((models, records)) < 0.5
    membership[:3], membership[3:6] = True, False
    return rng.normal(size=records), rng.normal(size=(models, records)) * 2, membership


@pytest.mark.parametrize("variance", ["per-record", "fixed"])
def test_equal_to_a_plain_loop(variance):
    signal, shadow, inside = small(np.random.default_rng(4))
    centred = {True: [], False: []}
    for i in range(30):
        for side in (True, False):
            own = shadow[inside[:, i] == side, i]
            centred[side] += list(own - own.mean())
    online, offline = [], []
    for i in range(30):
        fits = {}
        for side in (True, False):
            own = shadow[inside[:, i] == side, i]
            spread = own.std() if variance == "per-record" else np.std(centred[side])
            fits[side] = (own.mean(), spread)
        online.append(stats.norm.logpdf(signal[i], *fits[True])
                      - stats.norm.logpdf(signal[i], *fits[False]))
        offline.append(stats.norm.logcdf(signal[i], *fits[False]))
    arrays = (signal, shadow, inside)
    np.testing.assert_allclose(lira_online(*arrays, variance=variance), online, rtol=1e-10)
    z = lira_offline(*arrays, variance=variance)
    np.testing.assert_allclose(log_ndtr(z), offline, rtol=1e-10)


def test_fixed_variance_is_centred():
    """Difficulties far apart must not enter the variance: the scores do not move with them."""
    signal, shadow, inside = small(np.random.default_rng(5))
    far = np.linspace(0, 1000, 30)
    for attack in (lira_online, lira_offline):
        np.testing.assert_allclose(attack(signal + far, shadow + far, inside, variance="fixed"),
                                   attack(signal, shadow, inside, variance="fixed"), rtol=1e-8)


def test_scale_and_temperature_change_nothing():
    signal, shadow, inside = small(np.random.default_rng(6))
    for attack in ATTACKS.values():
        np.testing.assert_allclose(attack(signal / 8, shadow / 8, inside),
                                   attack(signal, shadow, inside), rtol=1e-9)


def marginal(x, m0, k, v, s2):
    """Log marginal likelihood of x under the normal-inverse-gamma prior, as the product of its
    predictives would have it: a multivariate t with location m0, scale s2 (I + 1 1' / k)."""
    n = len(x)
    if not n:
        return 0.0
    shape = s2 * (np.eye(n) + np.ones((n, n)) / k)
    return stats.multivariate_t.logpdf(x, np.full(n, m0), shape, df=v)


@pytest.mark.parametrize("k", [None, 0.3])
def test_bayesian_variance_is_a_ratio_of_marginals(k):
    """The predictive is p(signals and the new one) / p(signals); the record without IN as well."""
    signal, shadow, inside = small(np.random.default_rng(7))
    inside[:, 0], inside[:, 1] = False, True
    wanted = np.zeros(30)
    for side in (True, False):
        own = [shadow[inside[:, i] == side, i] for i in range(30)]
        own_mean = np.array([x.mean() for x in own if len(x)])
        s2 = sum(((x - x.mean()) ** 2).sum() for x in own if len(x))
        s2 /= sum(len(x) - 1 for x in own if len(x))
        between = own_mean.var() - s2 * np.mean([1 / len(x) for x in own if len(x)])
        strength = s2 / max(between, 1e-6 * s2) if k is None else k
        prior = (own_mean.mean(), strength, 5.0, s2)
        for i, x in enumerate(own):
            new = marginal(np.append(x, signal[i]), *prior) - marginal(x, *prior)
            wanted[i] += new if side else -new
    found = bavaria(signal, shadow, inside, mean_strength=k, variance_strength=5.0)
    np.testing.assert_allclose(found, wanted, rtol=1e-6, atol=1e-6)


def test_bayesian_variance_tends_to_lira():
    signal, _, shadow, inside = world(20_000, 6, np.random.default_rng(8))
    np.testing.assert_allclose(bavaria(signal, shadow, inside), lira_online(signal, shadow, inside),
                               rtol=0.01, atol=0.01)
    signal, shadow, inside = small(np.random.default_rng(9))
    strong = bavaria(signal, shadow, inside, mean_strength=1e-9, variance_strength=1e9)
    count = np.where([[True], [False]], inside.sum(0), (~inside).sum(0))
    wanted = 0
    for side, n, sign in zip((inside, ~inside), count, (1, -1), strict=True):
        mean = np.where(side, shadow, 0).sum(0) / n
        pooled = np.where(side, (shadow - mean) ** 2, 0).sum() / (n - 1).sum()
        wanted += sign * stats.norm.logpdf(signal, mean, np.sqrt(pooled * (1 + 1 / n)))
    np.testing.assert_allclose(strong, wanted, rtol=1e-5, atol=1e-5)


def rmia_arguments(rng, models=6, records=300, population=50):
    membership = rng.random((models, records)) < 0.5
    membership[:2] = [[True], [False]] * np.ones((2, records), bool)
    draws = [np.log(rng.beta(4, 1, shape)) for shape in
             (records, (models, records), population, (models, population))]
    return draws[0], draws[1], membership, draws[2], draws[3]


@pytest.mark.parametrize("a", [0, 0.3, 1])
@pytest.mark.parametrize("gamma", [0.5, 1, 2])
def test_rmia_by_its_definition(a, gamma):
    arguments = signal, shadow, inside, others, shadow_others = rmia_arguments(
        np.random.default_rng(10))
    p_out = [np.exp(shadow[~inside[:, i], i]).mean() for i in range(300)]
    ratio = np.exp(signal) / ((1 + a) / 2 * np.array(p_out) + (1 - a) / 2)
    z = np.exp(others) / ((1 + a) / 2 * np.exp(shadow_others).mean(0) + (1 - a) / 2)
    share = (ratio[:, None] / z > gamma).mean(1)
    scores = rmia(*arguments, gamma=gamma, a=a)
    np.testing.assert_allclose(np.floor(scores * 51) / 50, share, atol=1e-12)
    np.testing.assert_array_equal(np.argsort(scores), np.argsort(ratio))  # ties broken
    assert len(np.unique(scores)) == 300 > 51 >= len(np.unique(share))
    assert 0 < scores.min() and scores.max() < 1


def test_rmia_refuses():
    signal, shadow, inside, others, shadow_others = rmia_arguments(np.random.default_rng(11))
    with pytest.raises(ValueError, match=r"at most 0, got 1\."):
        rmia(signal + 1 - signal.max(), shadow, inside, others, shadow_others)
    with pytest.raises(ValueError, match=r"1 OUT shadow model.*; 300 of 300 records"):
        rmia(signal, shadow, np.ones_like(inside), others, shadow_others)
    with pytest.raises(ValueError, match="from the same models"):
        rmia(signal, shadow, inside, others, shadow_others[1:])
    for a in (-0.1, 1.1):
        with pytest.raises(ValueError, match="a must be a number from 0 to 1"):
            rmia(signal, shadow, inside, others, shadow_others, a=a)


def test_in_signals_are_not_read_offline():
    arrays = signal, shadow, inside = small(np.random.default_rng(12))
    poisoned = np.where(inside, np.nan, shadow)
    for variance in ("per-record", "fixed"):
        np.testing.assert_array_equal(lira_offline(signal, poisoned, inside, variance=variance),
                                      lira_offline(*arrays, variance=variance))
    signal, shadow, inside, others, shadow_others = rmia_arguments(np.random.default_rng(13))
    np.testing.assert_array_equal(
        rmia(signal, np.where(inside, np.nan, shadow), inside, others, shadow_others),
        rmia(signal, shadow, inside, others, shadow_others))
    for attack in (lira_online, bavaria):
        with pytest.raises(ValueError, match="shadow_signals must hold finite numbers"):
            attack(arrays[0], poisoned, arrays[2])


@pytest.mark.parametrize("name", [*ATTACKS, "rmia"])
def test_several_targets_permutations_and_no_change_of_inputs(name):
    rng = np.random.default_rng(14)
    attack = ATTACKS.get(name, rmia)
    one = rmia_arguments(rng) if name == "rmia" else small(rng)
    copies = [array.copy() for array in one]
    for array in one:
        array.flags.writeable = False
    scores = attack(*one)
    many = [np.stack([one[i]] * 2) if i in (0, 3) else one[i] for i in range(len(one))]
    np.testing.assert_array_equal(attack(*many), [scores, scores])
    mix = rng.permutation(len(one[0]))
    mixed = attack(*[a[..., mix] for a in one[:3]], *one[3:])
    np.testing.assert_allclose(mixed, scores[mix], rtol=1e-12)
    order = rng.permutation(len(one[1]))
    again = [a[order] if i in (1, 2, 4) else a for i, a in enumerate(one)]
    np.testing.assert_allclose(attack(*again), scores, rtol=1e-10)
    for array, copy in zip(one, copies, strict=True):
        np.testing.assert_array_equal(array, copy)


def test_saturated_and_equal_signals_give_finite_scores():
    signal = np.array([1e4, -1e4, 0, 1e4])
    shadow = np.array([[1e4, 1e4, 0, -1e4]] * 4)
    inside = np.array([[True] * 4, [True] * 4, [False] * 4, [False] * 4])
    for attack in ATTACKS.values():
        assert np.isfinite(attack(signal, shadow, inside)).all()
    shadow = shadow + np.array([[0.0], [1], [2], [3]])
    for attack in ATTACKS.values():
        assert np.isfinite(attack(signal, shadow, inside)).all()
    logs = np.minimum(shadow, 0)
    scores = rmia(np.minimum(signal, 0), logs, inside, -np.arange(5.0) * 1e4, -np.ones((4, 5)))
    assert np.isfinite(scores).all()


def test_offline_keeps_the_order_where_the_paper_scores_tie():
    signal = np.array([9.0, 40, 400])
    z = lira_offline(signal, np.array([[-1.0] * 3, [1] * 3]), np.zeros((2, 3), bool))
    np.testing.assert_allclose(z, signal)
    assert len(set(stats.norm.cdf(z))) == 1


def test_too_few_shadows_are_counted():
    signal, shadow, inside = small(np.random.default_rng(15))
    inside[:, :4] = False
    inside[0, :3] = True  # records 0 to 2 have one IN shadow, record 3 none
    with pytest.raises(ValueError, match=r"least 2 IN shadow model\(s\); 4 of 30 records"):
        lira_online(signal, shadow, inside)
    with pytest.raises(ValueError, match=r"least 1 IN shadow model\(s\); 1 of 30 records"):
        lira_online(signal, shadow, inside, variance="fixed")
    with pytest.raises(ValueError, match=r"least 2 OUT shadow model\(s\); 4 of 30 records"):
        lira_offline(signal, shadow, ~inside)
    assert np.isfinite(lira_offline(signal, shadow, inside)).all()
    assert np.isfinite(bavaria(signal, shadow, inside)).all()
    one = np.array([[True] * 30, [False] * 30])
    for attack in (lira_online, bavaria):
        with pytest.raises(ValueError, match="some record must have 2 IN shadow models"):
            attack(signal, shadow[:2], one, **({} if attack is bavaria else {"variance": "fixed"}))


@pytest.mark.parametrize("name", ATTACKS)
def test_refused(name):
    signal, shadow, inside = small(np.random.default_rng(16))
    for arrays, kind, words in [
        ((signal, shadow, inside.astype(int)), TypeError, "shadow_membership must hold True"),
        ((signal, shadow, inside[1:]), ValueError, r"shadow_membership must have .* \(9, 30\)"),
        ((signal[1:], shadow, inside), ValueError, r"got \(29,\) and \(9, 30\)"),
        ((signal, shadow[0], inside), ValueError, r"got \(30,\) and \(30,\)"),
        ((1.0, shadow, inside), ValueError, r"got \(\) and"),
        ((signal * np.nan, shadow, inside), ValueError, "signal must hold finite numbers only"),
        ((signal, np.ma.array(shadow), inside), TypeError, "masked"),
    ]:
        with pytest.raises(kind, match=words):
            ATTACKS[name](*arrays)
    option = {"variance_strength": 0} if name == "bavaria" else {"variance": "global"}
    with pytest.raises(ValueError, match="variance"):
        ATTACKS[name](signal, shadow, inside, **option)
