"""Proof that the random checks judge rightly: exact bounds, and thousands of runs.

The laws of the runs are those of a count over survey answers: sensitivity 2, epsilon 0.25, so
Laplace noise of scale 8, against nine mistakes that learners make.
"""

import math
from dataclasses import dataclass

import numpy as np
import pytest
from scipy import integrate, special, stats

from coursekit.checks import evidence

SENSITIVITY, EPSILON = 2.0, 0.25
SCALE = SENSITIVITY / EPSILON
DEVIATION = SCALE * math.sqrt(2)
RIGHT = stats.laplace(0, SCALE)
WRONG = {
    "epsilon-over-sensitivity": stats.laplace(0, EPSILON / SENSITIVITY),
    "gaussian": stats.norm(0, DEVIATION),
    "factor-2": stats.laplace(0, 2 * SCALE),
    "factor-half": stats.laplace(0, SCALE / 2),
    "variance-for-scale": stats.laplace(0, math.sqrt(SCALE / 2)),
    "epsilon-times-sensitivity": stats.laplace(0, EPSILON * SENSITIVITY),
    "one-sided": stats.expon(0, SCALE),
    "uniform": stats.uniform(-DEVIATION * math.sqrt(3), 2 * DEVIATION * math.sqrt(3)),
    "sensitivity-from-data": stats.laplace(0, SCALE * 2 / 3),
}
RIGHT_RUNS, RIGHT_DRAWS = 4000, 2000
WRONG_RUNS, WRONG_DRAWS = 1000, 3000  # for each mistake

COIN = stats.randint(0, 2)
DISCRETE = [stats.dlaplace(0.5), stats.dlaplace(1.0), stats.randint(-3, 4), stats.randint(-2, 3),
            stats.poisson(2), stats.geom(0.3, loc=-1)]


EDGES = np.sinh(np.linspace(-14, 14, 40_001)) / 1000  # cells to +-600, finer towards 0
MIDDLE, WIDTH = (EDGES[1:] + EDGES[:-1]) / 2, np.diff(EDGES)


@dataclass(frozen=True)
class Quick:
    """A law of this file in three lines of numpy: scipy's care with arguments is most of its time.

    13,000 runs take seconds so; `test_the_quick_laws_are_scipys` holds both against each other.
    """

    kind: str
    low: float
    scale: float
    dist: object = None  # no logpmf: a continuous law

    def logpdf(self, x):
        z = (x - self.low) / self.scale
        return {
            "laplace": lambda: -np.abs(z) - math.log(2 * self.scale),
            "norm": lambda: -z * z / 2 - math.log(self.scale * math.sqrt(2 * math.pi)),
            "expon": lambda: np.where(z >= 0, -z, -np.inf) - math.log(self.scale),
            "uniform": lambda: np.where((z >= 0) & (z <= 1), -math.log(self.scale), -np.inf),
        }[self.kind]()

    def cdf(self, x):
        z = (x - self.low) / self.scale
        return {
            "laplace": lambda: 0.5 + np.sign(z) * -np.expm1(-np.abs(z)) / 2,
            "norm": lambda: special.ndtr(z),
            "expon": lambda: -np.expm1(-np.maximum(z, 0)),
            "uniform": lambda: np.clip(z, 0, 1),
        }[self.kind]()


def quick(law):
    return Quick(law.dist.name, *law.args)


QUICK_RIGHT, QUICK_WRONG = quick(RIGHT), {name: quick(law) for name, law in WRONG.items()}


@pytest.mark.parametrize("law", [RIGHT, *WRONG.values()])
def test_the_quick_laws_are_scipys(law):
    x = np.concatenate([np.random.default_rng(1).laplace(0, SCALE, 1000), [0.0, *law.args]])
    assert quick(law).logpdf(x) == pytest.approx(evidence.log_density(law, x), abs=1e-11)
    assert quick(law).cdf(x) == pytest.approx(law.cdf(x), abs=1e-14)


# The likelihood ratio


@pytest.mark.parametrize("right", [RIGHT, *WRONG.values()])
def test_expected_likelihood_ratio_is_at_most_one(right):
    """Markov's inequality needs E_right[f_wrong / f_right] <= 1: wrong's mass where right is."""
    possible = right.pdf(MIDDLE) > 0
    under_right = evidence.log_density(right, MIDDLE[possible])
    for wrong in (RIGHT, *WRONG.values()):
        log_ratio = evidence.log_density(wrong, MIDDLE[possible]) - under_right
        expected = np.sum(np.exp(log_ratio + right.logpdf(MIDDLE[possible])) * WIDTH[possible])
        cells = wrong.cdf(EDGES[1:]) - wrong.cdf(EDGES[:-1])
        assert expected <= 1 + 1e-3
        assert expected == pytest.approx(np.sum(cells[possible]), abs=1e-3)


@pytest.mark.parametrize("right", DISCRETE)
@pytest.mark.parametrize("wrong", DISCRETE)
def test_expected_likelihood_ratio_is_at_most_one_for_discrete_laws(right, wrong):
    values = np.arange(-300, 301)
    values = values[right.pmf(values) > 0]
    ratio = np.exp([evidence.log_likelihood(wrong, [x]) - evidence.log_likelihood(right, [x])
                    for x in values])
    assert np.sum(ratio * right.pmf(values)) == pytest.approx(np.sum(wrong.pmf(values)), abs=1e-12)
    assert np.sum(ratio * right.pmf(values)) <= 1 + 1e-12


def test_log_likelihood_is_the_log_of_the_product_of_densities():
    sample = np.array([-3.0, 0.5, 9.0])
    density = np.exp(-np.abs(sample) / SCALE) / (2 * SCALE)
    assert evidence.log_likelihood(RIGHT, sample) == pytest.approx(math.log(np.prod(density)))
    assert evidence.log_likelihood(COIN, np.array([0, 1, 1])) == pytest.approx(-3 * math.log(2))
    assert evidence.log_likelihood(COIN, np.array([0, 2])) == -math.inf


def _sample_with_log_ratio(target, shift, count=10_000):
    """A sample whose log likelihood ratio, normal(shift) to normal(0), is exactly `target`."""
    spread = stats.norm.ppf((np.arange(count) + 0.5) / count)
    return spread + (target / count + shift**2 / 2) / shift


@pytest.mark.parametrize("false_alarm", [1e-9, 1e-6])
@pytest.mark.parametrize("decoys", [0, 1, 8])
def test_one_law_is_ruled_out_exactly_at_its_threshold(false_alarm, decoys):
    """With K laws the ratio of one must reach 2 K / false_alarm: the others give nothing."""
    laws = {"shift": stats.norm(0.07, 1)}
    laws |= {f"decoy-{number}": stats.norm(50 + number, 1) for number in range(decoys)}
    threshold = math.log(2 * len(laws) / false_alarm)
    for step, wrong in ((-1e-4, False), (1e-4, True)):
        sample = _sample_with_log_ratio(threshold + step, 0.07)
        # The distribution function alone says nothing here: it is the ratio that decides.
        assert evidence.fits(sample, stats.norm(), false_alarm / 2)
        assert evidence.weigh(sample, stats.norm(), laws, false_alarm=false_alarm).wrong is wrong


def test_the_ratios_are_averaged():
    """Five names for one law need no more evidence than one name: the mean ratio is the same."""
    laws = {f"name-{number}": stats.norm(0.07, 1) for number in range(5)}
    for step, wrong in ((-1e-4, False), (1e-4, True)):
        sample = _sample_with_log_ratio(math.log(2 / 1e-9) + step, 0.07)
        assert evidence.weigh(sample, stats.norm(), laws).wrong is wrong


# The distribution function


@pytest.mark.parametrize("false_alarm", [0.1, 1e-3, 1e-6, 5e-10])
@pytest.mark.parametrize("count", [100, 2000, 20_000])
def test_dkw_radius_against_the_exact_law_of_the_distance(count, false_alarm):
    """Massart's bound holds, and is no wider than it must be: Kolmogorov's exact law knows."""
    exact = stats.kstwo.sf(evidence.dkw_radius(count, false_alarm), count)
    assert 0.4 * false_alarm < exact <= false_alarm


@pytest.mark.parametrize("law", [RIGHT, *WRONG.values()])
def test_cdf_distance_is_kolmogorovs_for_continuous_laws(law):
    sample = np.random.default_rng(5).laplace(0, SCALE, 500)
    expected = stats.kstest(sample, law.cdf).statistic
    assert evidence.cdf_distance(sample, law) == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("law", [*DISCRETE, stats.randint(0, 7, loc=-3), stats.randint(9, 12)])
@pytest.mark.parametrize("count", [1, 5, 400])
def test_cdf_distance_of_discrete_laws_by_looking_everywhere(law, count):
    """Both functions are steps at whole numbers, so a look at each of them sees the largest gap."""
    sample = law.rvs(count, random_state=count)
    everywhere = np.arange(-200, 201)
    empirical = np.mean(sample[:, None] <= everywhere, axis=0)
    expected = np.max(np.abs(empirical - law.cdf(everywhere)))
    assert evidence.cdf_distance(sample, law) == pytest.approx(expected, abs=1e-12)


def test_cdf_distance_sees_ties_in_a_sample_of_a_continuous_law():
    assert evidence.cdf_distance(np.full(10, 0.5), stats.uniform()) == 0.5
    ties = np.array([0.2, 0.2, 0.9])
    assert evidence.cdf_distance(ties, stats.uniform()) == pytest.approx(2 / 3 - 0.2)


@pytest.mark.parametrize("false_alarm", [1e-9, 1e-3])
def test_without_listed_laws_the_distribution_function_decides_exactly_at_its_radius(false_alarm):
    """Evenly spread points, squeezed by a factor: their distance from uniform has a closed form."""
    count = 5000
    radius = math.sqrt(math.log(4 / false_alarm) / (2 * count))
    spread = (np.arange(count) + 0.5) / count
    for step, wrong in ((-1e-9, False), (1e-9, True)):
        squeezed = (1 - radius - step) / (1 - 0.5 / count) * spread
        assert evidence.cdf_distance(squeezed, stats.uniform()) == pytest.approx(radius + step)
        finding = evidence.weigh(squeezed, stats.uniform(), {}, false_alarm=false_alarm)
        assert finding == evidence.Finding(wrong=wrong)


# The verdict


def test_right_runs_never_fail():
    """By the bound under test at most 4,000 x 1e-9 over new streams; the stream here is fixed."""
    rng = np.random.default_rng(20_240_601)
    wrong = sum(evidence.weigh(rng.laplace(0, SCALE, RIGHT_DRAWS), QUICK_RIGHT, QUICK_WRONG).wrong
                for _ in range(RIGHT_RUNS))
    assert wrong == 0


def test_the_false_alarm_rate_holds_where_it_can_be_measured():
    """At a rate of 0.2 and with close laws; a sound check fails this once in 1e9 streams."""
    rng = np.random.default_rng(3)
    close = {"up": Quick("laplace", 0, 9), "down": Quick("laplace", 0, 7),
             "normal": Quick("norm", 0, 11)}
    runs = 4000
    wrong = sum(evidence.weigh(rng.laplace(0, 8, 200), QUICK_RIGHT, close, false_alarm=0.2).wrong
                for _ in range(runs))
    assert 0 < wrong <= stats.binom.isf(1e-9, runs, 0.2)


@pytest.mark.parametrize("name", WRONG)
def test_wrong_runs_are_caught_under_their_name(name):
    """1,000 runs for each of nine mistakes; the next test bounds the false alarms of this one."""
    rng = np.random.default_rng(sum(map(ord, name)))
    draws = WRONG[name].rvs((WRONG_RUNS, WRONG_DRAWS), random_state=rng)
    findings = [evidence.weigh(sample, QUICK_RIGHT, QUICK_WRONG) for sample in draws]
    assert all(finding.wrong for finding in findings)
    names = [finding.name for finding in findings]
    assert set(names) <= {name, None}
    assert names.count(None) <= 2  # its own law fits a sample but once in a million


def test_the_wrong_runs_fail_by_chance_at_most_twice_in_1e9():
    """Chernoff's bound for each pair of laws: missed, or likelier under another mistake's law.

    P(sum of log(f / f_wrong) >= -t) <= exp(s t) (integral of f^s f_wrong^(1-s))^n, with t = 0 for
    another mistake's law and, for the right one, the log of the threshold.
    """
    logs = {name: law.logpdf(MIDDLE) + np.log(WIDTH)
            for name, law in {"right": RIGHT, **WRONG}.items()}
    threshold = math.log(2 * len(WRONG) / evidence.FALSE_ALARM)
    powers = np.linspace(0.1, 0.9, 9)
    total = 0.0
    for name in WRONG:
        for other in logs.keys() - {name}:
            margin = threshold if other == "right" else 0.0
            both = np.isfinite(logs[other]) & np.isfinite(logs[name])
            bounds = [power * margin + WRONG_DRAWS * np.log(np.sum(np.exp(
                power * logs[other][both] + (1 - power) * logs[name][both]))) for power in powers]
            total += WRONG_RUNS * math.exp(min(bounds))
    unnamed = len(WRONG) * stats.binom.sf(2, WRONG_RUNS, evidence.NAMING)
    assert total < 1e-10
    assert total + unnamed < 2e-9


def test_a_mistake_is_named_only_while_its_own_law_fits():
    """Scale 20 is nobody's; factor 2 (16) is the nearest law by far, and is not blamed."""
    sample = np.random.default_rng(11).laplace(0, 20, 20_000)
    assert not evidence.fits(sample, WRONG["factor-2"], 1e-9)
    assert max(WRONG, key=lambda name: evidence.log_likelihood(WRONG[name], sample)) == "factor-2"
    assert evidence.weigh(sample, RIGHT, WRONG) == evidence.Finding(wrong=True)


def test_naming_allows_a_law_the_chance_of_one_in_a_million():
    """Squeezed points at the radius of that rate, by the closed form: named within, not beyond."""
    count = 5000
    radius = math.sqrt(math.log(2 / 1e-6) / (2 * count))
    spread = (np.arange(count) + 0.5) / count
    for step, name in ((-1e-9, "shorter"), (1e-9, None)):
        squeezed = (1 - radius - step) / (1 - 0.5 / count) * spread
        finding = evidence.weigh(squeezed, stats.uniform(0, 2), {"shorter": stats.uniform()})
        assert finding == evidence.Finding(wrong=True, name=name)


def test_a_law_nobody_listed_is_noticed():
    """Noise clipped at three scales leaves ties, of which no likelihood ratio here knows."""
    sample = np.clip(np.random.default_rng(2).laplace(0, SCALE, 20_000), -3 * SCALE, 3 * SCALE)
    assert evidence.weigh(sample, RIGHT, WRONG) == evidence.Finding(wrong=True)


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_a_value_that_is_no_number_is_wrong_and_nobody_is_blamed(value):
    sample = np.random.default_rng(4).laplace(0, SCALE, 2000)
    sample[7] = value
    assert evidence.weigh(sample, RIGHT, WRONG) == evidence.Finding(wrong=True)


def test_a_value_that_the_right_law_cannot_produce_is_wrong():
    sample = np.random.default_rng(4).exponential(SCALE, 2000)
    assert not evidence.weigh(sample, WRONG["one-sided"], {"two-sided": RIGHT}).wrong
    sample[3] = -0.001
    assert evidence.weigh(sample, WRONG["one-sided"], {}) == evidence.Finding(wrong=True)
    half = np.array([0.0, 1.0, 0.5] * 100)
    assert evidence.weigh(half, COIN, {"biased": stats.bernoulli(0.9)}) == evidence.Finding(True)


def test_discrete_laws_are_weighed_too():
    right, wrong = stats.dlaplace(0.5), {"twice": stats.dlaplace(1.0), "half": stats.dlaplace(0.25)}
    rng = np.random.default_rng(8)
    for _ in range(50):
        assert not evidence.weigh(right.rvs(2000, random_state=rng), right, wrong).wrong
    for name, law in wrong.items():
        for _ in range(50):
            sample = law.rvs(2000, random_state=rng)
            assert evidence.weigh(sample, right, wrong) == evidence.Finding(True, name)
    rounded = np.rint(rng.laplace(0, 2, 200_000))  # unlisted: the atom at 0 is 0.221, not 0.245
    assert evidence.weigh(rounded, right, wrong) == evidence.Finding(wrong=True)


def test_what_cannot_be_weighed_is_refused():
    with pytest.raises(ValueError, match=r"1-D and not empty, got shape \(0,\)"):
        evidence.weigh([], RIGHT, WRONG)
    with pytest.raises(ValueError, match=r"1-D and not empty, got shape \(10, 2\)"):
        evidence.weigh(np.zeros((10, 2)), RIGHT, WRONG)
    # A narrow density summed over whole numbers exceeds 1, so the bound would not hold.
    assert sum(stats.norm(0, 0.1).pdf(np.arange(-5, 6))) > 3
    for right, wrong in ((COIN, RIGHT), (RIGHT, COIN)):
        with pytest.raises(ValueError, match="all discrete or all continuous"):
            evidence.weigh([0.0, 1.0], right, {"other": wrong})
        with pytest.raises(ValueError, match="all discrete or all continuous"):
            evidence.draws_needed(right, wrong, laws=1)


# How many draws it takes

# From a study made for this course: scale 6, a threshold of 1e9, Chernoff's bound on 400,000 log
# ratios drawn from the mistake's law. Such an estimate is rough for close laws (the last three).
STUDY = [
    (stats.laplace(0, 1 / 6), 21), (stats.norm(0, 6 * math.sqrt(2)), 1591),
    (stats.laplace(0, 12), 359), (stats.laplace(0, 3), 413), (stats.laplace(0, 4), 1191),
    (stats.uniform(-6 * math.sqrt(6), 12 * math.sqrt(6)), 232),
    (stats.laplace(0, math.sqrt(3)), 134), (stats.laplace(0, 1.5), 109), (stats.expon(0, 6), 50),
    (stats.norm(0, 6 * math.sqrt(math.pi / 2)), 1686),
    (stats.logistic(0, 6 * math.sqrt(6) / math.pi), 3690), (stats.laplace(0, 5.4), 18_870),
]


@pytest.mark.parametrize(("wrong", "published"), STUDY)
def test_draws_needed_against_the_study(wrong, published):
    """Half a law makes our threshold of 2 laws / false_alarm the study's 1e9."""
    ours = evidence.draws_needed(stats.laplace(0, 6), wrong, laws=0.5)
    assert ours == pytest.approx(published, rel=0.04 if published < 2000 else 0.15, abs=1.5)


@pytest.mark.parametrize("wrong", [
    stats.norm(0, 6 * math.sqrt(2)), stats.logistic(0, 6 * math.sqrt(6) / math.pi),
    stats.expon(0, 6), stats.uniform(-15, 30),
])
def test_draws_needed_by_quadrature(wrong):
    right, (low, high) = stats.laplace(0, 6), wrong.support()

    def log_rho(s):
        def integrand(x):
            return math.exp(s * right.logpdf(x) + (1 - s) * wrong.logpdf(x))
        pieces = [(max(low, -150), 0), (0, min(high, 150))]
        return math.log(sum(integrate.quad(integrand, *piece)[0] for piece in pieces
                            if piece[0] < piece[1]))

    powers = np.linspace(0.05, 0.95, 10)
    expected = min((math.log(1e6) + s * math.log(2e9)) / -log_rho(s) for s in powers)
    ours = evidence.draws_needed(right, wrong, laws=1)
    assert expected * 0.98 - 1 < ours < expected * 1.001 + 1


@pytest.mark.parametrize(("right", "wrong"), [
    (6, 12), (6, 3), (6, 4), (6, 5.4), (8, 7.9), (6, 1 / 6), (1000, 0.001), (0.001, 1000),
])
@pytest.mark.parametrize(("laws", "miss"), [(1, 1e-6), (9, 1e-6), (9, 0.05)])
def test_draws_needed_between_laplace_laws_in_closed_form(right, wrong, laws, miss):
    """The integral of right^s wrong^(1-s) is (2/a) (2 right)^-s (2 wrong)^(s-1), a: mean rate."""
    s = np.linspace(0.001, 0.999, 9999)
    rate = s / right + (1 - s) / wrong
    log_rho = math.log(2) - np.log(rate) - s * np.log(2 * right) - (1 - s) * np.log(2 * wrong)
    expected = np.min((math.log(1 / miss) + s * math.log(2 * laws / 1e-9)) / -log_rho)
    ours = evidence.draws_needed(stats.laplace(0, right), stats.laplace(0, wrong), laws=laws,
                                 miss=miss)
    assert expected <= ours + 1e-3 * expected
    assert ours <= math.ceil(expected * 1.004)


def test_draws_needed_for_heavy_tails():
    """Cauchy laws, whose tails reach to 1e12; with x = tan(angle) the integral is an easy one."""
    def log_rho(s):
        def integrand(angle):
            x = math.tan(angle)
            return (1 + x * x) * stats.cauchy.pdf(x) ** s * stats.cauchy.pdf(x, 0, 2) ** (1 - s)
        return math.log(integrate.quad(integrand, -math.pi / 2, math.pi / 2)[0])

    powers = np.linspace(0.2, 0.8, 25)
    expected = min((math.log(1e6) + s * math.log(2e9)) / -log_rho(s) for s in powers)
    ours = evidence.draws_needed(stats.cauchy(), stats.cauchy(0, 2), laws=1)
    assert ours == pytest.approx(expected, rel=0.01)


def test_draws_needed_for_coins_in_closed_form():
    """Randomised response at epsilon 1 against half of it: a sum of two terms."""
    right, wrong = (1 / (1 + math.exp(-epsilon)) for epsilon in (1, 0.5))
    s = np.linspace(0.001, 0.999, 9999)
    rho = right**s * wrong ** (1 - s) + (1 - right) ** s * (1 - wrong) ** (1 - s)
    expected = np.min((math.log(1e6) + s * math.log(2 * 4 / 1e-9)) / -np.log(rho))
    ours = evidence.draws_needed(stats.bernoulli(right), stats.bernoulli(wrong), laws=4)
    assert expected <= ours <= expected * 1.004 + 1


@pytest.mark.parametrize(("right", "wrong"), [
    (RIGHT, WRONG["factor-2"]), (RIGHT, WRONG["factor-half"]), (RIGHT, WRONG["gaussian"]),
    (RIGHT, WRONG["one-sided"]), (RIGHT, WRONG["uniform"]),
    (stats.dlaplace(0.5), stats.dlaplace(1.0)), (stats.bernoulli(0.73), stats.bernoulli(0.27)),
])
def test_draws_needed_keep_the_miss_rate_where_it_can_be_measured(right, wrong):
    """At a miss of 0.05 the rate is below it; with half the draws it is well above."""
    needed, runs = evidence.draws_needed(right, wrong, laws=9, miss=0.05), 2000
    draws = wrong.rvs((runs, needed), random_state=np.random.default_rng(6))
    log_ratios = evidence.log_density(wrong, draws) - evidence.log_density(right, draws)
    threshold = math.log(2 * 9 / 1e-9)
    missed = np.sum(log_ratios.sum(axis=1) < threshold)
    missed_by_half = np.sum(log_ratios[:, : needed // 2].sum(axis=1) < threshold)
    assert missed <= stats.binom.isf(1e-9, runs, 0.05)
    assert missed_by_half > stats.binom.isf(1e-9, runs, 0.05)


@pytest.mark.parametrize("law", [*WRONG.values(), RIGHT, *DISCRETE, stats.cauchy()])
def test_no_number_of_draws_tells_a_law_from_itself(law):
    assert evidence.draws_needed(law, law, laws=3) == math.inf


def test_draws_needed_for_laws_with_different_supports():
    """Half the draws of the wider law are impossible: missed with probability 2^-n exactly."""
    wider = evidence.draws_needed(stats.uniform(0, 1), stats.uniform(0, 2), laws=1)
    assert math.log2(1e6) <= wider <= 21
    assert evidence.draws_needed(stats.uniform(0, 1), stats.uniform(5, 1), laws=1) == 1
    assert evidence.draws_needed(stats.randint(0, 2), stats.randint(4, 6), laws=1) == 1
    faces = evidence.draws_needed(stats.randint(0, 6), stats.randint(0, 12), laws=1)
    assert math.log2(1e6) <= faces <= 21
    # The narrower law's draws are possible, so it takes a ratio of 2e9, and n draws give 2^n; the
    # bound, with s below 1, asks for 2e9 x 1e6 of it.
    narrower = evidence.draws_needed(stats.uniform(0, 2), stats.uniform(0, 1), laws=1)
    assert math.log2(2e9) <= narrower <= math.log2(2e15) / 0.98 + 1


# Independence of the numbers of one answer

LAWS_OF_COLUMNS = {
    "laplace": stats.laplace(0, 8),
    "dlaplace": stats.dlaplace(0.5),
    "bernoulli": stats.bernoulli(0.71),
    "shifted": stats.expon(3, 2),
}


@pytest.mark.parametrize("name", LAWS_OF_COLUMNS)
def test_independent_draws_pass(name):
    """Each of 200 runs fails with probability at most 1e-9: together 2e-7 on a new stream."""
    law, rng = LAWS_OF_COLUMNS[name], np.random.default_rng(1)
    for _ in range(200):
        assert evidence.independent(law.rvs((500, 4), random_state=rng), law)


@pytest.mark.parametrize("law", [stats.laplace(0, 1), stats.dlaplace(0.5), stats.bernoulli(0.71)])
def test_false_alarms_of_independence_stay_below_the_rate_where_it_can_be_measured(law):
    """At a rate of 0.2, 400 runs: more than 144 alarms have probability below 1e-9 if it holds."""
    rng = np.random.default_rng(2)
    alarms = sum(not evidence.independent(law.rvs((60, 3), random_state=rng), law, false_alarm=0.2)
                 for _ in range(400))
    assert stats.binom.sf(144, 400, 0.2) < 1e-9
    assert alarms <= 144


@pytest.mark.parametrize("name", LAWS_OF_COLUMNS)
@pytest.mark.parametrize("wrong", [
    lambda x: np.repeat(x[:, :2], 2, axis=1),
    lambda x: np.tile(x[:, :2], 2),
    lambda x: np.sort(x, axis=1),
    lambda x: np.where(np.arange(4) == 0, np.roll(x, 1, axis=0), x[:, [1, 1, 2, 1]]),
], ids=["pairs", "tiled", "sorted", "two of four"])
def test_draws_that_hang_together_fail(name, wrong):
    law = LAWS_OF_COLUMNS[name]
    sample = law.rvs((1000, 4), random_state=np.random.default_rng(3))
    assert not evidence.independent(wrong(sample), law)


def test_a_shifted_discrete_law_keeps_its_quartiles():
    """The lower quartile is 0 here, where the next float below vanishes in scipy's shift."""
    law = stats.dlaplace(0.5, loc=1)
    assert law.ppf(0.25) == 0
    sample = law.rvs((60_000, 3), random_state=np.random.default_rng(5))
    assert evidence.independent(sample, law)


def test_shared_signs_shared_sizes_and_a_law_that_depends_on_the_place_fail():
    law, rng = stats.laplace(), np.random.default_rng(4)
    sample = rng.laplace(size=(1000, 3))
    signs = rng.choice([-1, 1], (1000, 3))
    assert evidence.independent(np.abs(sample) * signs, law)
    assert not evidence.independent(np.abs(sample) * signs[:, :1], law)
    assert not evidence.independent(np.abs(sample[:, :1]) * signs, law)
    assert not evidence.independent(sample * [1, 1, 2], law)
