"""Every mechanism against a closed form, an independent library or exact enumeration.

Tests that draw noise say how often they would alarm for a right mechanism: at most ALARM in each,
by an exact binomial test for each cell (Bonferroni over the cells) or by the Dvoretzky-Kiefer-
Wolfowitz inequality with Massart's constant, which holds for every law and sample size.
"""

import inspect
import itertools
import math
from decimal import MAX_EMAX, MIN_EMIN, Context, Decimal
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from coursekit import mechanisms as m
from coursekit.accounting import zcdp_epsilon

SEED = 2026
ALARM = 1e-9
DIGITS = Context(prec=100, Emax=MAX_EMAX, Emin=MIN_EMIN)


@pytest.fixture
def rng():
    return np.random.default_rng(SEED)


def assert_follows(draws, cdf):
    """DKW: the two distribution functions differ by more than the band with chance <= ALARM."""
    draws = np.sort(np.asarray(draws, dtype=float))
    values, last = np.unique(draws, return_index=True)
    below = last / draws.size  # share strictly below each value
    upto = np.append(last[1:], draws.size) / draws.size
    law = cdf(values)
    law_below = cdf(np.nextafter(values, -np.inf))
    gap = max(np.abs(upto - law).max(), np.abs(below - law_below).max())
    assert gap <= math.sqrt(math.log(2 / ALARM) / (2 * draws.size)), gap


def assert_frequencies(counts, chances):
    """Exact binomial test for each cell; together they alarm with chance <= ALARM."""
    total = int(np.sum(counts))
    for count, chance in zip(counts, chances, strict=True):
        p_value = stats.binomtest(int(count), total, min(float(chance), 1.0)).pvalue
        assert p_value > ALARM / len(counts), (count, total * chance)


def outcomes(program, *, least):
    """Enumerate what `program(choose)` returns, with its chances, over all that it can draw.

    `choose(chances)` draws an index. Returns ({outcome: chance}, chance lost), where branches
    less likely than `least` are lost.
    """

    class Fork(Exception):
        pass

    found, lost, unfinished = {}, 0, [((), Fraction(1))]
    while unfinished:
        path, chance = unfinished.pop()
        if chance < least:
            lost += chance
            continue
        steps = iter(path)

        def choose(chances, steps=steps):
            for step in steps:
                return step
            raise Fork(chances)

        try:
            outcome = program(choose)
        except Fork as fork:
            for step, share in enumerate(fork.args[0]):
                unfinished.append(((*path, step), chance * share))
        else:
            found[outcome] = found.get(outcome, 0) + chance
    return found, lost


def uniform(choose):
    return lambda n: choose([Fraction(1, n)] * n)


class Again(Exception):
    """A rejection sampler begins another round."""


def one_round(program, *, opening, least):
    """Return the law of a rejection sampler whose every round opens with `below(opening)`.

    Rounds are alike and independent, so it is the law of one round, given that it is not rejected.
    """

    def first_round(choose):
        openings = iter([True])

        def below(n):
            if n == opening and not next(openings, False):
                raise Again
            return uniform(choose)(n)

        try:
            return program(choose, below)
        except Again:
            return Again

    found, lost = outcomes(first_round, least=least)
    again = found.pop(Again)
    return {outcome: chance / (1 - again) for outcome, chance in found.items()}, lost / (1 - again)


@pytest.fixture
def exp_coin(monkeypatch):
    """Let `_bernoulli_exp`, which has its own test, be one fork; `below` is then `choose`."""

    def install(choose):
        def coin(numerator, denominator, below):
            heads = math.exp(-numerator / denominator)
            return choose([heads, 1 - heads]) == 0

        monkeypatch.setattr(m, "_bernoulli_exp", coin)

    return install


class Scripted(np.random.Generator):
    """A generator whose `integers` returns what the test tells it to."""

    def __init__(self, *draws):
        super().__init__(np.random.PCG64(0))
        self.draws = draws

    def integers(self, high, size=None, dtype=np.int64):
        return np.resize(np.array(self.draws, dtype=dtype), size)


@pytest.fixture
def silent(monkeypatch):
    """Switch the discrete noise off and return the list of the scales it was asked for."""
    scales = []
    monkeypatch.setattr(m, "_discrete_laplace", lambda scale, below: scales.append(scale) or 0)
    return scales


# -------------------------------------------------------------------------------------- Laplace


def test_laplace_scale_is_sensitivity_over_epsilon():
    assert m.laplace_scale(sensitivity=3, epsilon=0.5) == 6
    assert m.laplace_scale(sensitivity=Fraction(1, 4), epsilon=Fraction(1, 2)) == 0.5


@pytest.mark.parametrize(("sensitivity", "epsilon"), [(1, 1), (3, 0.5), (0.1, 2)])
def test_laplace_noise_has_the_laplace_law(sensitivity, epsilon, rng):
    # False alarm <= 1e-9 (DKW, 40,000 draws: band 0.0164; a scale wrong by sqrt(2) is 0.064 off).
    zeros = np.zeros((200, 200))
    noise = m.laplace_mechanism(zeros + 5, sensitivity=sensitivity, epsilon=epsilon, rng=rng) - 5
    assert noise.shape == zeros.shape
    assert_follows(noise.ravel(), stats.laplace(scale=sensitivity / epsilon).cdf)


@pytest.mark.parametrize(("sensitivity", "epsilon", "delta"), [(1, 1, 1e-5), (3, 8, 1e-9)])
def test_gaussian_noise_has_the_normal_law(sensitivity, epsilon, delta, rng):
    # False alarm <= 1e-9 (DKW, 40,000 draws: band 0.0164; 8% more noise is 0.019 off). The
    # deviation is checked by the promise itself: exactly (epsilon, delta), and no less.
    release = m.gaussian_mechanism(
        np.full((200, 200), 5.0), sensitivity=sensitivity, epsilon=epsilon, delta=delta, rng=rng
    )
    assert release.shape == (200, 200)
    sigma = m.gaussian_sigma(sensitivity=sensitivity, epsilon=epsilon, delta=delta)
    assert_follows((release - 5).ravel(), stats.norm(scale=sigma).cdf)
    mu = sensitivity / sigma
    spent = stats.norm.cdf(mu / 2 - epsilon / mu) - math.exp(epsilon) * stats.norm.cdf(
        -mu / 2 - epsilon / mu
    )
    assert spent == pytest.approx(delta, rel=1e-6)


def test_a_number_comes_back_as_a_number(rng):
    for value in (3, 2.5, np.float64(1), np.int32(4), np.array(2.0)):
        assert type(m.laplace_mechanism(value, sensitivity=1, epsilon=1, rng=rng)) is float
    for value in (3, np.int64(3), np.array(3, dtype=np.uint8)):
        assert type(m.discrete_laplace_mechanism(value, sensitivity=1, epsilon=1, rng=rng)) is int
    assert m.laplace_mechanism([], sensitivity=1, epsilon=1, rng=rng).shape == (0,)
    assert type(m.gaussian_mechanism(3, sensitivity=1, epsilon=1, delta=0.1, rng=rng)) is float


def test_coordinates_get_independent_normal_noise(rng):
    # False alarm <= 1e-9: two independent signs agree half of the time (exact binomial).
    zeros = np.zeros((10_000, 2))
    pairs = m.gaussian_mechanism(zeros, sensitivity=1, epsilon=1, delta=0.1, rng=rng)
    agree = int(((pairs[:, 0] > 0) == (pairs[:, 1] > 0)).sum())
    assert stats.binomtest(agree, 10_000, 0.5).pvalue > ALARM


@pytest.mark.parametrize("mechanism", [m.laplace_mechanism, m.discrete_laplace_mechanism])
def test_coordinates_get_independent_noise(mechanism, rng):
    # False alarm <= 1e-9 for each: two independent signs agree half of the time (exact binomial;
    # at epsilon 1e-6 the discrete noise is 0 with chance 5e-7, which shifts that by less).
    pairs = mechanism(np.zeros((10_000, 2), dtype=int), sensitivity=1, epsilon=1e-6, rng=rng)
    first, second = (pairs > 0).T
    agree = int((first == second).sum())
    assert stats.binomtest(agree, 10_000, 0.5).pvalue > ALARM
    larger = int((np.abs(pairs) > 1e6 * math.log(2)).all(axis=1).sum())  # the median of |noise|
    assert stats.binomtest(larger, 10_000, 0.25).pvalue > ALARM


# ---------------------------------------------------------------- the exact sampler, enumerated


def test_uniform_integers_use_every_pattern_of_bits_once():
    for n in (1, 2, 5, 8):
        bits = (n - 1).bit_length()
        patterns = [pattern << (64 - bits) for pattern in range(2**bits)]
        below = m._uniform_integers(Scripted(*patterns))
        assert [below(n) for _ in range(2 * n)] == 2 * list(range(n))
    # 65 bits are cut from two words; of the two patterns here only the second is below n.
    n = 2**64 + 2**63
    below = m._uniform_integers(Scripted(2**64 - 1, 2**63, 2**63 + 1, 2**63))
    assert below(n) == 2**64 + 3


def test_uniform_integers_beyond_64_bits_are_uniform(rng):
    # False alarm <= 1e-9 (DKW, 20,000 draws).
    below = m._uniform_integers(rng)
    n = 3 * 2**70
    assert_follows([below(n) / n for _ in range(20_000)], stats.uniform.cdf)


@pytest.mark.parametrize("x", [(0, 1), (1, 1), (2, 3), (1, 7), (5, 2)])
def test_bernoulli_exp_has_chance_exp_minus_x(x):
    # No randomness: every branch is followed, up to a chance of one in a thousand.
    found, lost = outcomes(
        lambda choose: m._bernoulli_exp(*x, uniform(choose)), least=Fraction(1, 10**6)
    )
    assert lost < 1e-3
    assert found.get(True, 0) <= math.exp(-x[0] / x[1]) * (1 + 1e-15)
    assert found.get(False, 0) <= (1 - math.exp(-x[0] / x[1])) * (1 + 1e-15)
    assert sum(found.values()) + lost == 1


@pytest.mark.parametrize("scale", [Fraction(1), Fraction(5, 2), Fraction(1, 3), Fraction(7, 3)])
def test_discrete_laplace_sampler_has_exactly_the_law(scale, exp_coin):
    # No randomness: every branch is followed, up to a chance of 1e-6 in all.
    def program(choose, below):
        exp_coin(choose)
        return m._discrete_laplace(scale, below)

    found, lost = one_round(program, opening=scale.numerator, least=1e-8)
    assert lost < 1e-6
    law = stats.dlaplace(float(1 / scale))
    for k in range(-12, 13):
        assert found.get(k, 0) == pytest.approx(law.pmf(k), abs=1e-6)


@pytest.mark.parametrize("scale", [0.01, 0.5, 1, 3.7, 1e6, 1e20])
def test_discrete_laplace_pmf_agrees_with_scipy(scale):
    k = np.arange(-40, 41)
    np.testing.assert_allclose(
        m.discrete_laplace_pmf(k, scale=scale), stats.dlaplace(1 / scale).pmf(k), rtol=1e-12
    )
    assert type(m.discrete_laplace_pmf(3, scale=scale)) is float


def test_discrete_laplace_pmf_sums_to_one_and_stands_extremes():
    k = np.arange(-400, 401)
    assert m.discrete_laplace_pmf(k, scale=8).sum() == pytest.approx(1, abs=1e-14)
    assert m.discrete_laplace_pmf(0, scale=1e-320) == 1
    assert m.discrete_laplace_pmf(1, scale=1e-320) == 0
    assert m.discrete_laplace_pmf(-(2**63), scale=1) == 0


@pytest.mark.parametrize(
    ("sensitivity", "epsilon"),
    [(1, 1), (1, 0.1), (2, Fraction(1, 3)), (0.3, 1.7), (1, 1e-9), (5, 2.0**-70)],
)
def test_discrete_laplace_mechanism_has_the_law(sensitivity, epsilon, rng):
    # False alarm <= 1e-9 (DKW, 10,000 draws: band 0.033; a scale wrong by sqrt(2) is 0.064 off).
    noise = m.discrete_laplace_mechanism(
        np.full(10_000, 17), sensitivity=sensitivity, epsilon=epsilon, rng=rng
    ).astype(float) - 17  # fmt: skip
    rate = float(epsilon) / sensitivity
    if rate > 1e-3:
        assert_follows(noise, lambda k: stats.dlaplace(rate).cdf(np.floor(k)))
    elif rate > 1e-15:  # so coarse a law is the continuous one to nine digits
        assert_follows(noise, stats.laplace(scale=1 / rate).cdf)
    else:  # beyond int64, an array is set to the end of int64: here all but 0.2% of it
        assert set(np.sign(noise)) == {-1, 1}
        assert np.mean(np.abs(noise) == 2.0**63) > 0.99


def test_each_value_of_discrete_laplace_has_its_frequency(rng):
    # False alarm <= 1e-9 (exact binomial for each of 15 cells, Bonferroni).
    noise = m.discrete_laplace_mechanism(np.zeros(30_000, int), sensitivity=2, epsilon=1, rng=rng)
    inner = np.arange(-6, 7)
    counts = [int((noise == k).sum()) for k in inner]
    counts = [int((noise < -6).sum()), *counts, int((noise > 6).sum())]
    law = stats.dlaplace(0.5)
    assert_frequencies(counts, [law.cdf(-7), *law.pmf(inner), law.sf(6)])


def test_discrete_laplace_scalars_have_the_law_and_may_pass_int64(rng):
    # False alarm <= 1e-9 (DKW, 5,000 draws: band 0.046; twice the scale is 0.125 off).
    draws = [m.discrete_laplace_mechanism(3, sensitivity=1, epsilon=0.5, rng=rng) - 3
             for _ in range(5_000)]  # fmt: skip
    assert_follows(draws, lambda k: stats.dlaplace(0.5).cdf(np.floor(k)))
    huge = [m.discrete_laplace_mechanism(0, sensitivity=1, epsilon=1e-40, rng=rng)
            for _ in range(20)]  # fmt: skip
    assert max(map(abs, huge)) > 2**64  # fails with chance (1 - e^-2e-21)^20 < 1e-400


# ----------------------------------------------------------------- privacy, by exact enumeration


@pytest.mark.parametrize(("sensitivity", "epsilon"), [(1, 1), (1, 0.1), (3, 0.7)])
def test_discrete_laplace_likelihood_ratio_is_at_most_epsilon_and_attained(sensitivity, epsilon):
    scale, outputs = sensitivity / epsilon, np.arange(-50, 51)
    worst = 0
    for shift in range(-sensitivity, sensitivity + 1):
        here = np.log(m.discrete_laplace_pmf(outputs, scale=scale))
        there = np.log(m.discrete_laplace_pmf(outputs - shift, scale=scale))
        worst = max(worst, np.abs(here - there).max())
    assert worst == pytest.approx(epsilon, rel=1e-12)


@pytest.mark.parametrize("epsilon", [1e-300, 1e-17, 1e-3, 0.1, 1, 3.3, 10, 36, 37, 100, 1e308])
def test_randomised_response_ratio_is_at_most_epsilon_and_attained(epsilon):
    # No randomness: a bit flips if its draw is below some threshold, which bisection finds.
    def flips(draw):
        return m.randomised_response(0, epsilon=epsilon, rng=Scripted(draw)) == 1

    low, high = 0, 2**53 - 1
    assert flips(low) and not flips(high)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if flips(middle) else (low, middle)
    limit = DIGITS.exp(Decimal(min(epsilon, 1000)))
    flip, keep = high, 2**53 - high
    assert keep >= flip  # a bit is kept at least as often as it is flipped
    assert DIGITS.divide(keep, flip) <= limit
    if flip > 1:  # one unit of 2^-53 less would break the promise
        assert DIGITS.divide(keep + 1, flip - 1) > limit


def test_randomised_response_flips_both_values_alike_and_each_bit_by_itself(rng):
    # False alarm <= 1e-9 (exact binomial for each of 4 cells, Bonferroni).
    flip = 1 / (1 + math.e)
    reports = m.randomised_response(np.array([[0, 1]] * 20_000), epsilon=1, rng=rng)
    zero_flipped, one_flipped = reports[:, 0] == 1, reports[:, 1] == 0
    joint = [np.sum((zero_flipped == a) & (one_flipped == b)) for a in (0, 1) for b in (0, 1)]
    assert_frequencies(joint, [(1 - flip) ** 2, flip * (1 - flip), flip * (1 - flip), flip**2])


def test_randomised_response_keeps_shape_and_kind(rng):
    assert m.randomised_response(True, epsilon=1, rng=rng) in (True, False)
    assert type(m.randomised_response(True, epsilon=1, rng=rng)) is bool
    assert type(m.randomised_response(1, epsilon=1, rng=rng)) is int
    for bits in (np.zeros((3, 4), bool), np.ones((2, 0), np.int8), [0, 1]):
        reports = m.randomised_response(bits, epsilon=1, rng=rng)
        assert reports.shape == np.shape(bits)
        assert reports.dtype == np.asarray(bits).dtype


@pytest.mark.parametrize("epsilon", [0.2, 1, 5])
def test_randomised_response_mean_is_unbiased(epsilon):
    # No randomness: the expectation over all reports of three people, weighted by their chance.
    keep = math.exp(epsilon) / (1 + math.exp(epsilon))
    for bits in itertools.product([0, 1], repeat=3):
        expected = 0
        for reports in itertools.product([0, 1], repeat=3):
            chance = math.prod(keep if r == b else 1 - keep
                               for r, b in zip(reports, bits, strict=True))  # fmt: skip
            expected += chance * m.randomised_response_mean(reports, epsilon=epsilon)
        assert expected == pytest.approx(sum(bits) / 3, abs=1e-12)


SCORES = [[0.0, 1.0, 2.5], [3, 3, 3, 3], [7], [-1e308, 1e308, 1e308], [1e6, 1e6 + 1, 1e6 - 4]]


@pytest.mark.parametrize("scores", SCORES)
@pytest.mark.parametrize(("sensitivity", "epsilon"), [(1, 1), (2, 3), (0.5, 0.1)])
def test_exponential_mechanism_probabilities_have_the_closed_form(scores, sensitivity, epsilon):
    best = max(Fraction(s) for s in scores)
    rate = Fraction(epsilon) / (2 * Fraction(sensitivity))
    weights = [math.exp(max(rate * (Fraction(s) - best), Fraction(-2000))) for s in scores]
    chances = m.exponential_mechanism_probabilities(
        scores, sensitivity=sensitivity, epsilon=epsilon
    )
    np.testing.assert_allclose(chances, np.array(weights) / sum(weights), rtol=1e-9)


def test_exponential_mechanism_sampler_has_exactly_the_law(monkeypatch, exp_coin):
    # No randomness: every branch of a round is followed.
    scores, epsilon = [0, 1, 3], 2

    def program(choose, below):
        exp_coin(choose)
        monkeypatch.setattr(m, "_uniform_integers", lambda rng: below)
        return m.exponential_mechanism(
            scores, sensitivity=1, epsilon=epsilon, rng=np.random.default_rng(0)
        )

    found, lost = one_round(program, opening=len(scores), least=1e-9)
    chances = np.exp(np.array(scores) * epsilon / 2)
    assert lost == 0
    assert [float(found[i]) for i in range(3)] == pytest.approx(chances / chances.sum(), rel=1e-12)


def test_exponential_mechanism_draws_have_the_law(rng):
    # False alarm <= 1e-9 (exact binomial for each of 4 cells, Bonferroni).
    scores = np.array([1e9, 1e9 - 2, 1e9 + 1, 1e9])
    law = np.exp(0.7 / (2 * 1.5) * (scores - 1e9))
    draws = [m.exponential_mechanism(scores, sensitivity=1.5, epsilon=0.7, rng=rng)
             for _ in range(5_000)]  # fmt: skip
    assert type(draws[0]) is int
    assert_frequencies(np.bincount(draws, minlength=4), law / law.sum())


@pytest.mark.parametrize(("sensitivity", "epsilon"), [(1, 1), (2, 0.3), (0.5, 4)])
def test_exponential_mechanism_ratio_is_at_most_epsilon_and_nearly_attained(sensitivity, epsilon):
    def log_chances(scores):
        return np.log(
            m.exponential_mechanism_probabilities(scores, sensitivity=sensitivity, epsilon=epsilon)
        )

    base = np.array([0.0, 1.0, 2.0])
    for move in itertools.product([-1, 0, 1], repeat=3):
        moved = base + sensitivity * np.array(move)
        assert np.abs(log_chances(base) - log_chances(moved)).max() <= epsilon + 1e-12
    # With many candidates, one rising while all others fall comes as close as one likes.
    rise = np.append(sensitivity, np.zeros(1_000_000))
    fall = np.append(0, np.full(1_000_000, sensitivity))
    assert (log_chances(rise) - log_chances(fall))[0] == pytest.approx(epsilon, rel=1e-4)


# ------------------------------------------------------------------------------------- snapping


def snapping_scale_and_grid(sensitivity, epsilon, bound):
    """Mironov's theorem solved for the noise, in floats (its 2^-49 hardly shows)."""
    scale = (sensitivity + 2.0**-49 * bound) / epsilon
    return scale, 2.0 ** math.ceil(math.log2(scale))


def snapping_cells(grid, bound):
    """Return the outputs between the two bounds and the edges of the cells that round to them."""
    top = math.floor(bound / grid)
    inner = [j * grid for j in range(-top, top + 1)]
    points = sorted({-bound, *inner, bound})
    first, last = math.ceil(-bound / grid), math.floor(bound / grid)
    if bound in inner:
        first, last = first + 1, last - 1
    return points, [(j - 0.5) * grid for j in range(first, last + 2)]


@pytest.mark.parametrize(
    ("value", "sensitivity", "epsilon", "bound"),
    [(0.3, 1, 1, 64), (-70.0, 1, 0.8, 50.3), (12.5, 3, 2.5, 30)],
)
def test_snapping_outputs_lie_on_the_grid_and_have_the_law(value, sensitivity, epsilon, bound, rng):
    # False alarm <= 1e-9 (DKW, 1,500 draws: band 0.085; twice the scale is 0.125 off).
    draws = np.array([
        m.snapping_mechanism(value, sensitivity=sensitivity, epsilon=epsilon, bound=bound, rng=rng)
        for _ in range(1_500)
    ])  # fmt: skip
    scale, grid = snapping_scale_and_grid(sensitivity, epsilon, bound)
    points, edges = snapping_cells(grid, bound)
    assert set(draws) <= set(points)
    laplace = stats.laplace(loc=np.clip(value, -bound, bound), scale=scale)
    upto = np.append(laplace.cdf(edges), 1.0)
    assert len(upto) == len(points)
    assert_follows(draws, lambda y: np.append(0, upto)[np.searchsorted(points, y, side="right")])


def log_of(mantissa, exponent):
    """ln(mantissa / 2^exponent), correctly rounded, by 100-digit arithmetic."""
    return float(DIGITS.fma(-exponent, DIGITS.ln(2), DIGITS.ln(mantissa)))


def test_log_of_uniform_is_correctly_rounded_and_covers_every_exponent(rng):
    for exponent in [53, 54, 60, 300, 1200]:
        for mantissa in [2**52, 2**53 - 1, 2**53 - 2, *rng.integers(2**52, 2**53, size=5).tolist()]:
            script = iter([1] * (exponent - 53) + [0, mantissa - 2**52])
            sizes = []
            drawn = m._log_of_uniform(lambda n, script=script, sizes=sizes:
                                      sizes.append(n) or next(script))  # fmt: skip
            assert drawn == log_of(mantissa, exponent)
            assert sizes == [2] * (exponent - 52) + [2**52]  # chance 2^-(exponent - 52) 2^-52


def test_snapping_rounds_ties_up_and_clamps_on_both_sides(monkeypatch, rng):
    def snap(value, log):
        monkeypatch.setattr(m, "_log_of_uniform", lambda below: log)
        monkeypatch.setattr(m, "_uniform_integers", lambda rng: lambda n: 0)  # the sign is +
        return m.snapping_mechanism(value, sensitivity=1, epsilon=0.6, bound=9, rng=rng)

    assert [snap(v, 0.0) for v in (-3, -1, 1, 3, 0.999, -1.001)] == [-2, 0, 2, 4, 0, -2]
    assert snap(50, -5.0) == snap(9, -5.0)  # clamped before the noise
    assert snap(-50, -5.0) == -9 and snap(50, 0.0) == 9  # and after it


def passing(z):
    """Return the least U = (mantissa, exponent) whose rounded logarithm is above -z, by bisection.

    P(U < u) = u, as U stands for all reals up to the next float: so u is P(-ln U >= z).
    """
    near = 53 + int(z * 1.442695040888963)

    def at(index):  # U falls as the index rises
        return 2**53 - 1 - index % 2**52, max(near - 4, 53) + index // 2**52

    first, last = 0, 2**55
    assert log_of(*at(first)) > -z >= log_of(*at(last))
    while last - first > 1:
        middle = (first + last) // 2
        first, last = (middle, last) if log_of(*at(middle)) > -z else (first, middle)
    return at(first)


def chance_at_least(edge, value, scale):
    """Return P(value + scale S ln U >= edge); no edge here is hit exactly."""
    mantissa, exponent = passing(abs(edge - value) / scale)
    tail = DIGITS.divide(mantissa, DIGITS.power(2, exponent + 1))
    return tail if edge > value else DIGITS.subtract(1, tail)


SNAPPINGS = [(1, 1, 6.4), (3, 2, 1.7), (0.1, 0.3, 1.9)]  # sensitivity, epsilon, bound


@pytest.mark.parametrize("share", [-1, -0.4, 0.31, 0.9])
@pytest.mark.parametrize(("sensitivity", "epsilon", "bound"), SNAPPINGS)
def test_snapping_ratio_is_at_most_epsilon_and_attained(sensitivity, epsilon, bound, share):
    # No randomness: the exact law on every cell, for values a sensitivity apart.
    start = share * bound
    values = [Fraction(start), Fraction(start) + Fraction(sensitivity)]
    scale = (Fraction(sensitivity) + Fraction(bound) / 2**49) / Fraction(epsilon)
    _, grid = snapping_scale_and_grid(sensitivity, epsilon, bound)
    points, edges = snapping_cells(grid, bound)
    laws = []
    for value in values:
        clamped = min(max(value, -Fraction(bound)), Fraction(bound))
        upto = [1, *(chance_at_least(Fraction(e), clamped, scale) for e in edges), 0]
        laws.append([DIGITS.subtract(a, b) for a, b in itertools.pairwise(upto)])
    assert len(laws[0]) == len(points)
    assert min(map(min, laws)) > 0  # the same outputs are possible for both neighbours
    losses = [abs(DIGITS.ln(DIGITS.divide(p, q))) for p, q in zip(*laws, strict=True)]
    assert max(losses) <= epsilon
    if values[1] < min(edges[-1], bound):  # the last cell is beyond both values
        assert max(losses) >= epsilon * (1 - 1e-12)


@pytest.mark.parametrize("power", [10, 30, 45])
def test_snapping_ratio_holds_up_to_enormous_bounds(power):
    # No randomness: far cells are where the rounding of the logarithm costs most.
    bound, epsilon = 1.3 * 2.0**power, 1
    scale = 1 + Fraction(bound) / 2**49
    _, grid = snapping_scale_and_grid(1, epsilon, bound)
    first, second = -Fraction(bound), 1 - Fraction(bound)
    for place in (-0.9, -0.2, 0.4, 0.99):
        edge = Fraction((round(place * bound / grid) + 0.5) * grid)
        cells = [
            DIGITS.subtract(chance_at_least(edge, value, scale),
                            chance_at_least(edge + Fraction(grid), value, scale))
            for value in (first, second)
        ]  # fmt: skip
        assert 0 < abs(DIGITS.ln(DIGITS.divide(*cells))) <= epsilon


@pytest.mark.parametrize(("sensitivity", "epsilon", "bound"), SNAPPINGS)
def test_snapping_passes_each_edge_exactly_where_the_law_says(
    sensitivity, epsilon, bound, monkeypatch,
):
    # No randomness: this ties the exact law above to the code, draw by draw.
    value = 0.17 * bound
    scale = (Fraction(sensitivity) + Fraction(bound) / 2**49) / Fraction(epsilon)
    _, grid = snapping_scale_and_grid(sensitivity, epsilon, bound)
    points, edges = snapping_cells(grid, bound)

    def snap(negative, mantissa, exponent):
        script = iter([negative] + [1] * (exponent - 53) + [0, mantissa - 2**52])
        monkeypatch.setattr(m, "_uniform_integers", lambda rng: lambda n: next(script))
        return m.snapping_mechanism(
            value, sensitivity=sensitivity, epsilon=epsilon, bound=bound,
            rng=np.random.default_rng(0),
        )  # fmt: skip

    for below, above, edge in zip(points, points[1:], edges, strict=False):
        mantissa, exponent = passing(abs(Fraction(edge) - Fraction(value)) / scale)
        nearer = (mantissa, exponent)
        farther = (mantissa - 1, exponent) if mantissa > 2**52 else (2**53 - 1, exponent + 1)
        upwards = edge > value
        assert snap(int(upwards), *nearer) == (below if upwards else above)
        assert snap(int(upwards), *farther) == (above if upwards else below)


@pytest.mark.parametrize("bound", [0.5, 1.0, 2.0**47, 1e300])
def test_snapping_refuses_bounds_outside_the_theorem(bound, rng):
    with pytest.raises(ValueError, match=r"bound must lie between the noise scale, here .*, got"):
        m.snapping_mechanism(0, sensitivity=1, epsilon=1, bound=bound, rng=rng)


# ---------------------------------------------------------------------------- the float attack


def finer_than(outputs, step):
    return np.asarray(outputs) / step % 1 != 0


def test_float_laplace_gives_the_count_away_and_the_exact_mechanisms_do_not(rng):
    # Noise in [2^-(k+1), 2^-k) has bits below 2^-53 unless k zeros happen to end it; added to 1,
    # such noise has none left. False alarm <= 1e-9 at count 0 (exact binomial), none at 1.
    share = sum((1 - 2**-k) * (math.exp(-(2.0 ** -(k + 1))) - math.exp(-(2.0**-k)))
                for k in range(1, 60))  # fmt: skip
    assert share == pytest.approx(0.2718, abs=5e-5)
    zero, one = (m.laplace_mechanism(np.full(20_000, count), sensitivity=1, epsilon=1, rng=rng)
                 for count in (0, 1))  # fmt: skip
    caught = int(finer_than(zero, 2.0**-53).sum())
    assert stats.binomtest(caught, 20_000, share).pvalue > ALARM
    assert not finer_than(one, 2.0**-53).any()

    for count in (0, 1):
        released = m.discrete_laplace_mechanism(
            np.full(20_000, count), sensitivity=1, epsilon=1, rng=rng
        )
        assert not finer_than(released, 1).any()
        # Each value from -5 to 6 is missed by 20,000 draws with chance below 1e-13.
        assert set(range(-5, 7)) <= set(released.tolist())
        snapped = [m.snapping_mechanism(count, sensitivity=1, epsilon=1, bound=50, rng=rng)
                   for _ in range(100)]  # fmt: skip
        assert not finer_than(snapped, 2).any()


# --------------------------------------------------------- counts, sums, means and histograms


def data_sets(universe, size):
    return itertools.product(universe, repeat=size)


def neighbouring_pairs(universe, adjacency, sizes=(0, 1, 2, 3)):
    """All ordered pairs that differ in the last record; the releases do not mind the order."""
    for size in sizes:
        for rest in data_sets(universe, size):
            if adjacency == "add-remove":
                yield from ((rest, (*rest, new)) for new in universe)
            else:
                yield from (((*rest, a), (*rest, b)) for a in universe for b in universe)


@pytest.mark.parametrize("adjacency", m.ADJACENCIES)
def test_count_noise_is_calibrated_to_the_worst_neighbours(adjacency, silent, rng):
    worst = 0
    for one, other in neighbouring_pairs((0, 1), adjacency):
        moved = m.private_count(one, epsilon=2, rng=rng) - m.private_count(
            other, epsilon=2, rng=rng
        )
        worst = max(worst, abs(moved))
    assert worst == 1
    assert set(silent) == {Fraction(worst, 2)}


BOUNDS = [(0, 100), (-3, 1), (-5, -1), (0.1, 0.7), (1e6, 1e6 + 1)]


@pytest.mark.parametrize("adjacency", m.ADJACENCIES)
@pytest.mark.parametrize(("lower", "upper"), BOUNDS)
def test_sum_noise_is_calibrated_to_the_worst_neighbours(lower, upper, adjacency, silent, rng):
    # Without noise the release is the sum on the grid: exact Fractions, over every pair of
    # neighbours drawn from both bounds and values that lie on no grid.
    universe = (lower, lower + (upper - lower) / math.pi, lower + (upper - lower) / 3, upper)
    epsilon = Fraction(1, 3)

    def release(records):
        return Fraction(m.private_sum(
            records, lower=lower, upper=upper, epsilon=epsilon, adjacency=adjacency, rng=rng
        ))  # fmt: skip

    step = Fraction(m._grid_step(upper - lower))
    pairs = neighbouring_pairs(universe, adjacency, sizes=(0, 1, 2))
    worst = max(abs(release(one) - release(other)) for one, other in pairs)
    assert set(silent) == {worst / step / epsilon}
    named = max(abs(lower), abs(upper)) if adjacency == "add-remove" else upper - lower
    assert float(worst) == pytest.approx(named, abs=float(step))


def test_grid_step_is_a_power_of_two_of_a_millionth_of_the_range():
    for width in (1, 0.999, 1.5, 100, 3e-200, 7e250):
        step = m._grid_step(width)
        assert math.frexp(step)[0] == 0.5
        assert step <= width / 2**20 < 2 * step


def test_sum_is_close_and_lies_on_the_grid_and_does_not_mind_the_order(silent, rng):
    values = rng.uniform(-3, 11, size=1_000)
    arguments = dict(lower=-3, upper=11, epsilon=1, adjacency="add-remove", rng=rng)
    total = m.private_sum(values, **arguments)
    step = m._grid_step(14)
    assert total == pytest.approx(values.sum(), abs=1_000 * step / 2)
    assert total / step == int(total / step)
    for _ in range(20):  # a float sum would move in its last bits
        assert m.private_sum(rng.permutation(values), **arguments) == total


@pytest.mark.parametrize("adjacency", m.ADJACENCIES)
def test_histogram_noise_is_calibrated_to_the_worst_neighbours(adjacency, silent, rng):
    worst = 0
    for one, other in neighbouring_pairs("abc", adjacency):
        first, second = (
            m.private_histogram(d, categories=list("abc"), epsilon=2, adjacency=adjacency, rng=rng)
            for d in (one, other)
        )
        worst = max(worst, int(np.abs(first - second).sum()))
    assert worst == (1 if adjacency == "add-remove" else 2)
    assert set(silent) == {Fraction(worst, 2)}


def test_histogram_counts_in_the_order_of_the_categories(silent, rng):
    for values in (["x", "z", "x"], np.array(["x", "z", "x"]), ("z", "x", "x")):
        counts = m.private_histogram(
            values, categories=("z", "y", "x"), epsilon=1, adjacency="add-remove", rng=rng
        )
        assert counts.tolist() == [1, 0, 2]
        assert counts.dtype == np.int64
    counts = m.private_histogram(
        np.array([3, 3]), categories=range(5), epsilon=1, adjacency="replace-one", rng=rng
    )
    assert counts.tolist() == [0, 0, 0, 2, 0]
    empty = m.private_histogram(
        [], categories=[0, 1], epsilon=1, adjacency="add-remove", rng=rng
    )
    assert empty.tolist() == [0, 0]


def test_every_category_gets_noise_of_its_own(rng):
    # False alarm <= 1e-9 (DKW, 10,000 draws), and 1e-9 (exact binomial) for the agreement.
    noise = m.private_histogram(
        [], categories=range(10_000), epsilon=1, adjacency="replace-one", rng=rng
    )
    assert_follows(noise, lambda k: stats.dlaplace(0.5).cdf(np.floor(k)))
    zero = 2 * stats.dlaplace(0.5).pmf(0)
    even, odd = noise[::2] > 0, noise[1::2] > 0
    positive = (1 - zero / 2) / 2
    both = int((even & odd).sum())
    assert stats.binomtest(both, 5_000, positive**2).pvalue > ALARM


@pytest.mark.parametrize("share", [0.5, 0.1, Fraction(2, 3)])
@pytest.mark.parametrize(("lower", "upper"), [(0, 128), (-3, 1)])
def test_mean_with_private_size_splits_epsilon_exactly(lower, upper, share, silent, rng):
    values = np.linspace(lower, upper, 7) * 0.9
    mean = m.private_mean(
        values, lower=lower, upper=upper, epsilon=0.3, adjacency="add-remove", rng=rng,
        count_share=share,
    )  # fmt: skip
    width = upper - lower
    step = Fraction(m._grid_step(width))
    count_scale, sum_scale = silent
    count_epsilon, sum_epsilon = 1 / count_scale, Fraction(width, 2) / step / sum_scale
    assert count_epsilon == Fraction(0.3) * Fraction(share)
    assert count_epsilon + sum_epsilon == Fraction(0.3)
    assert mean == pytest.approx(values.mean(), abs=float(step))


def test_mean_with_public_size_is_the_noisy_sum_over_it(silent, rng):
    mean = m.private_mean(
        [1, 2, 60], lower=0, upper=100, epsilon=0.5, adjacency="replace-one", rng=rng
    )
    assert mean == 21
    assert silent == [Fraction(100) / Fraction(m._grid_step(100)) * 2]


def test_releases_of_the_sum_and_the_public_mean_have_the_law(rng):
    # False alarm <= 1e-9 for each (DKW, 1,500 draws: band 0.085; twice the scale is 0.125 off).
    ages = [30, 45, 60]
    for adjacency, sensitivity in (("add-remove", 100), ("replace-one", 130)):
        arguments = dict(lower=-30, upper=100, epsilon=2, adjacency=adjacency, rng=rng)
        sums = [m.private_sum(ages, **arguments) for _ in range(1_500)]
        assert_follows(sums, stats.laplace(loc=135, scale=sensitivity / 2).cdf)
    means = [m.private_mean(ages, **arguments) for _ in range(1_500)]
    assert_follows(means, stats.laplace(loc=45, scale=130 / 2 / 3).cdf)


def test_mean_with_private_size_stays_in_bounds_even_of_nobody(rng):
    for values in ([], [40], [100] * 3, [0] * 3):
        for _ in range(200):
            mean = m.private_mean(
                values, lower=0, upper=100, epsilon=0.1, adjacency="add-remove", rng=rng
            )
            assert 0 <= mean <= 100


@pytest.mark.parametrize(
    ("noise", "divisor"), [(0, 4), (4, 8), (-2, 2), (-3, 1), (-4, 1), (-9, 1)]
)
def test_mean_with_private_size_divides_by_the_noisy_count(noise, divisor, monkeypatch, rng):
    noises = iter([noise, 0])  # for the count, then for the sum
    monkeypatch.setattr(m, "_discrete_laplace", lambda scale, below: next(noises))
    mean = m.private_mean(
        [50, 52, 54, 52], lower=0, upper=100, epsilon=1, adjacency="add-remove", rng=rng
    )
    assert mean == 50 + 8 / divisor


def test_mean_with_private_size_has_the_law_of_the_noisy_ratio(rng):
    # False alarm <= 1e-9 (DKW, 1,500 draws); the law is summed over the noisy count.
    epsilon, ages = 2, [30, 45, 60, 90]
    means = [
        m.private_mean(ages, lower=0, upper=100, epsilon=epsilon, adjacency="add-remove", rng=rng)
        for _ in range(1_500)
    ]
    noise = np.arange(-60, 61)
    weights = stats.dlaplace(epsilon / 2).pmf(noise)
    divisors = np.maximum(len(ages) + noise, 1)
    laplace = stats.laplace(loc=sum(ages) - 50 * len(ages), scale=50 / (epsilon / 2))

    def cdf(y):
        inside = (laplace.cdf((np.asarray(y)[:, None] - 50) * divisors) * weights).sum(axis=1)
        return np.where(y >= 100, 1.0, np.where(y < 0, 0.0, inside))

    assert_follows(means, cdf)


def noises(function, data, truth, **arguments):
    """Release minus truth, under the same forty generators for whatever data."""
    generators = map(np.random.default_rng, range(40))
    return [function(data, epsilon=0.7, rng=rng, **arguments) - truth for rng in generators]


@pytest.mark.parametrize("adjacency", m.ADJACENCIES)
def test_the_noise_does_not_depend_on_the_data(adjacency):
    quiet, loud = [0.5] * 6, [64.0, 0.0, 64.0, 0.0, 64.0, 64.0]
    bounds = dict(lower=0, upper=64, adjacency=adjacency)
    one, other = (noises(m.private_sum, data, sum(data), **bounds) for data in (quiet, loud))
    assert one == other
    if adjacency == "replace-one":
        one, other = (noises(m.private_mean, d, sum(d) / 6, **bounds) for d in (quiet, loud))
        np.testing.assert_allclose(one, other, rtol=0, atol=1e-12)
    assert noises(m.private_count, [0] * 9, 0) == noises(m.private_count, [1] * 9, 9)
    one, other = (
        noises(m.private_histogram, data, np.bincount(data, minlength=3),
               categories=[0, 1, 2], adjacency=adjacency)
        for data in ([0, 0, 0], [0, 1, 2])
    )  # fmt: skip
    np.testing.assert_array_equal(one, other)


# ------------------------------------------------------------------------ arguments and refusals


CALLS = {
    "laplace": (m.laplace_mechanism, (1.5,), dict(sensitivity=1, epsilon=1)),
    "gaussian": (m.gaussian_mechanism, (1.5,), dict(sensitivity=1, epsilon=1, delta=0.1)),
    "discrete": (m.discrete_laplace_mechanism, (3,), dict(sensitivity=1, epsilon=1)),
    "discrete gaussian": (m.discrete_gaussian_mechanism, (3,), dict(sensitivity=1, rho=1)),
    "snapping": (m.snapping_mechanism, (1.5,), dict(sensitivity=1, epsilon=1, bound=64)),
    "response": (m.randomised_response, ([0, 1] * 40,), dict(epsilon=1)),
    "exponential": (m.exponential_mechanism, ([0, 1, 2],), dict(sensitivity=1, epsilon=0.1)),
    "count": (m.private_count, ([0, 1, 1],), dict(epsilon=1)),
    "sum": (m.private_sum, ([1, 2],), dict(lower=0, upper=5, epsilon=1, adjacency="add-remove")),
    "mean": (m.private_mean, ([1, 2],), dict(lower=0, upper=5, epsilon=1, adjacency="add-remove")),
    "public mean": (
        m.private_mean, ([1, 2],), dict(lower=0, upper=5, epsilon=1, adjacency="replace-one")
    ),
    "histogram": (
        m.private_histogram, ([1, 2],),
        dict(categories=[1, 2, 3], epsilon=1, adjacency="add-remove"),
    ),
}  # fmt: skip
every_mechanism = pytest.mark.parametrize("name", CALLS)


def call(name, rng, *values, **changes):
    function, default, arguments = CALLS[name]
    return function(*(values or default), **{**arguments, **changes}, rng=rng)


def assert_refused(name, error, sentence, *values, **changes):
    """The call is refused with this sentence, and the generator was not touched."""
    rng = np.random.default_rng(0)
    before = rng.bit_generator.state
    with pytest.raises(error, match=sentence):
        call(name, rng, *values, **changes)
    assert rng.bit_generator.state == before


@every_mechanism
def test_a_seed_gives_the_same_release_again_and_another_seed_another(name):
    def releases(seed):
        rng = np.random.default_rng(seed)
        return [np.asarray(call(name, rng)).tolist() for _ in range(60)]

    assert releases(5) == releases(5)
    assert releases(5) != releases(6)  # alike with chance far below 1e-9


@every_mechanism
def test_the_data_are_not_modified_and_no_global_generator_is_used(name):
    _, (value,), _ = CALLS[name]
    value = np.array(value)
    kept = value.copy()
    before = np.random.get_state()[1].copy()  # noqa: NPY002
    call(name, np.random.default_rng(1), value if value.ndim else value.item())
    assert (value == kept).all()
    assert (np.random.get_state()[1] == before).all()  # noqa: NPY002


@every_mechanism
@pytest.mark.parametrize(
    "wrong",
    [None, 7, np.random.RandomState(7), np.random],
    ids=["None", "7", "RandomState", "module"],
)
def test_rng_must_be_a_generator(name, wrong):
    with pytest.raises(TypeError, match=r"rng must be a numpy Generator such as .*, got "):
        call(name, wrong)


@every_mechanism
def test_a_missing_rng_is_refused_in_the_same_words_and_everything_else_is_required(name):
    function, values, arguments = CALLS[name]
    with pytest.raises(TypeError, match=r"rng must be a numpy Generator such as .*, got None"):
        function(*values, **arguments)
    for parameter in list(inspect.signature(function).parameters.values())[1:]:
        assert parameter.kind is inspect.Parameter.KEYWORD_ONLY
        optional = parameter.name in ("rng", "clip", "count_share")
        assert (parameter.default is not inspect.Parameter.empty) == optional


def test_the_two_that_draw_nothing_take_keywords_only():
    with pytest.raises(TypeError):
        m.laplace_scale(1, 1)
    with pytest.raises(TypeError):
        m.randomised_response_mean([1], 1)


WRONG_TYPE = [True, np.True_, "1", None, [1.0], 1j, np.array([1.0])]
wrong_value = st.one_of(
    st.floats(max_value=0), st.just(math.nan), st.just(math.inf), st.integers(max_value=0),
    st.fractions(max_value=0), st.just(10**400), st.just(Fraction(1, 10**400)),
)  # fmt: skip
NEED = [(name, argument) for name in CALLS for argument in ("epsilon", "sensitivity", "bound")
        if argument in CALLS[name][2]]  # fmt: skip
NEED.append(("discrete gaussian", "rho"))


@pytest.mark.parametrize(("name", "argument"), NEED)
@settings(max_examples=20, deadline=None)
@given(wrong=wrong_value)
def test_wrong_values_of_positive_arguments_are_refused(name, argument, wrong):
    sentence = f"^{argument} must be a finite number above 0, got "
    assert_refused(name, ValueError, sentence, **{argument: wrong})


@pytest.mark.parametrize(("name", "argument"), NEED)
@pytest.mark.parametrize("wrong", WRONG_TYPE, ids=repr)
def test_wrong_types_of_positive_arguments_are_refused(name, argument, wrong):
    sentence = f"^{argument} must be a finite number above 0, got "
    assert_refused(name, TypeError, sentence, **{argument: wrong})


NO_LAPLACE = ("response", "gaussian", "discrete gaussian")


@pytest.mark.parametrize("name", [name for name in CALLS if name not in NO_LAPLACE])
@pytest.mark.parametrize("epsilon", [1e-320, 1e-310, 5e-324, 1e305])
def test_noise_too_wide_or_too_narrow_for_a_float_is_refused(name, epsilon):
    sentence = "sensitivity / epsilon must lie between 1e-300 and 1e300, got sensitivity=.*epsilon="
    assert_refused(name, ValueError, sentence, epsilon=epsilon)


@pytest.mark.parametrize("epsilon", [5e-324, 1e-310, 1e305])
def test_normal_noise_for_an_extreme_epsilon(epsilon):
    """With a delta the noise stays finite for every epsilon; only an extreme scale is refused."""
    sigma = m.gaussian_sigma(sensitivity=1, epsilon=epsilon, delta=0.1)
    assert 1e-160 < sigma < 4  # at epsilon 0, 2 Phi(1 / (2 sigma)) - 1 = 0.1: sigma = 3.979
    assert_refused("gaussian", ValueError, "the noise must lie between", sensitivity=1e-320,
                   epsilon=epsilon)


def test_the_figures_without_noise_refuse_the_same():
    for function in (m.laplace_scale, lambda **k: m.exponential_mechanism_probabilities([1], **k)):
        for wrong in (0, -1, math.nan, math.inf):
            with pytest.raises(ValueError, match=f"epsilon must be .* above 0, got {wrong}"):
                function(sensitivity=1, epsilon=wrong)
            with pytest.raises(ValueError, match=f"sensitivity must be .* above 0, got {wrong}"):
                function(sensitivity=wrong, epsilon=1)
    with pytest.raises(ValueError, match="scale must be a finite number above 0, got 0"):
        m.discrete_laplace_pmf(1, scale=0)
    with pytest.raises(TypeError, match="k must be an integer"):
        m.discrete_laplace_pmf(0.5, scale=1)
    with pytest.raises(ValueError, match="reports must hold at least one report"):
        m.randomised_response_mean([], epsilon=1)
    with pytest.raises(ValueError, match="epsilon must be at least 1e-300"):
        m.randomised_response_mean([1], epsilon=1e-310)


REFUSED = [
    ("laplace", ValueError, "value must hold finite numbers only, got nan", [1.0, math.nan]),
    ("laplace", TypeError, "value must be an array of numbers", "12"),
    ("laplace", TypeError, "value must be an array of numbers", [[1], [1, 2]]),
    ("discrete", TypeError, "value must be an integer or an array of integers, got 3.0", 3.0),
    ("discrete", TypeError, "value must be an integer .* got float64 values", [1.0, 2.0]),
    ("discrete", TypeError, "value must be an integer .* got True", True),
    ("discrete", TypeError, "value must be an integer .* got '3'", "3"),
    ("discrete", TypeError, "value must be an integer .* got None", None),
    ("discrete", TypeError, "value must be an integer .* unequal length", [[1], [1, 2]]),
    ("discrete", ValueError, r"value must lie from -2\*\*63 to 2\*\*63 - 1, got 9223372", 2**63),
    ("discrete", ValueError, "value must lie from", [0, 10**30]),
    ("discrete", ValueError, "value must lie from", -(2**63) - 1),
    ("snapping", ValueError, "value must be a finite number, got nan", math.nan),
    ("snapping", TypeError, "value must be a finite number, got ", [1.0]),
    ("response", ValueError, r"bits must be 0 or 1 \(or False and True\), got 2", [0, 2]),
    ("response", ValueError, "bits must be 0 or 1 .* got 0.5", 0.5),
    ("response", ValueError, "bits must be 0 or 1 .* got nan", [math.nan]),
    ("response", TypeError, "bits must be 0 or 1 .* got 'yes'", "yes"),
    ("response", TypeError, "bits must be 0 or 1 .* unequal length", [[1], [1, 0]]),
    ("exponential", ValueError, "scores must hold at least one score, got none", []),
    ("exponential", ValueError, "scores must hold finite numbers only, got inf", [0, math.inf]),
    ("exponential", ValueError, "scores must have 1 dimension", [[1, 2]]),
    ("count", ValueError, "flags must be 0 or 1 .* got 3", [0, 3]),
    ("count", ValueError, "flags must be one row", 1),
    ("sum", ValueError, "values must lie from lower=0.0 to upper=5.0, got 5.5; clip=True", [5.5]),
    ("sum", ValueError, r"values must lie from .* got -0.1", [-0.1]),
    ("sum", ValueError, "values must hold finite numbers only, got nan", [math.nan]),
    ("sum", ValueError, "values must have 1 dimension", [[1, 2]]),
    ("sum", TypeError, "values must be an array of numbers", ["a"]),
    ("mean", ValueError, r"values must lie from .* got 6.0", [6]),
    ("public mean", ValueError, "values must hold at least one value under 'replace-one'", []),
    ("histogram", ValueError, r"values must lie in categories \[1, 2, 3\], got 4", [1, 4]),
    ("histogram", TypeError, "values must be a list, tuple or 1-D array, got 'ab'", "ab"),
    ("histogram", TypeError, "values must be a list, tuple or 1-D array", np.zeros((2, 2))),
    ("histogram", TypeError, "must be plain labels, got unhashable type", [[1]]),
]  # fmt: skip


@pytest.mark.parametrize(("name", "error", "sentence", "value"), REFUSED)
def test_values_out_of_place_are_refused(name, error, sentence, value):
    assert_refused(name, error, sentence, value)


@pytest.mark.parametrize("name", ["sum", "mean", "public mean"])
@pytest.mark.parametrize(
    ("changes", "error", "sentence"),
    [
        (dict(lower=5, upper=0), ValueError, "lower must be below upper, got lower=5.0 and upper"),
        (dict(lower=5), ValueError, "lower must be below upper"),
        (dict(lower=math.nan), ValueError, "lower must be a finite number, got nan"),
        (dict(upper=math.inf), ValueError, "upper must be a finite number, got inf"),
        (dict(upper=None), TypeError, "upper must be a finite number, got None"),
        (dict(lower=False), TypeError, "lower must be a finite number, got False"),
        (dict(lower=-1e300), ValueError, "lower and upper must lie from -1e290 to 1e290"),
        (dict(lower=0, upper=1e-300), ValueError, "at least 1e-290 apart"),
        (dict(adjacency="swap"), ValueError, "adjacency must be one of 'add-remove', 'repl"),
        (dict(clip="yes"), ValueError, "clip must be one of True, False, got 'yes'"),
    ],
)
def test_bounds_adjacency_and_clip_are_checked(name, changes, error, sentence):
    assert_refused(name, error, sentence, **changes)


@pytest.mark.parametrize("share", [0, 1, -0.5, 2])
def test_count_share_must_lie_between_0_and_1(share):
    sentence = "count_share must lie between 0 and 1, got"
    assert_refused("mean", ValueError, sentence, count_share=share)


@pytest.mark.parametrize(
    ("share", "epsilon"), [(5e-324, 1), (1e-301, 1), (1e-200, 1e-200), (1 - 2**-53, 1e-285)]
)
def test_a_share_too_small_for_its_noise_is_refused_before_any_draw(share, epsilon):
    sentence = "count_share must leave count and sum an epsilon .* got .* of epsilon="
    assert_refused("mean", ValueError, sentence, count_share=share, epsilon=epsilon)


@pytest.mark.parametrize("name", [name for name in CALLS if name != "snapping"])
def test_masked_arrays_are_refused(name):
    masked = np.ma.array([1, 0, 1], mask=[0, 0, 1])
    assert_refused(name, TypeError, "must not be a masked array", masked)


def test_masked_reports_and_categories_are_refused_too():
    masked = np.ma.array([1, 0, 1], mask=[0, 0, 1])
    with pytest.raises(TypeError, match="reports must not be a masked array"):
        m.randomised_response_mean(masked, epsilon=1)
    assert_refused("histogram", TypeError, "categories must not be a masked", categories=masked)


def test_a_mean_of_half_precision_reports_is_as_exact_as_of_others():
    reports = np.arange(100_000) % 3 == 0
    expected = m.randomised_response_mean(reports, epsilon=1)
    for kind in (np.float16, np.float32, np.int8):
        assert m.randomised_response_mean(reports.astype(kind), epsilon=1) == expected


def test_numpy_scalars_are_taken_as_choices(rng):
    arguments = dict(lower=0, upper=64, epsilon=1e9, adjacency=np.str_("add-remove"), rng=rng)
    assert m.private_sum([1000], clip=np.True_, **arguments) == 64
    with pytest.raises(ValueError, match="values must lie from"):
        m.private_sum([1000], clip=np.False_, **arguments)


@pytest.mark.parametrize(
    ("categories", "error", "sentence"),
    [
        ([], ValueError, "categories must be one or more, each stated once"),
        ([1, 2, 2], ValueError, "categories must be one or more, each stated once"),
        ({1, 2}, TypeError, "categories must be a list, tuple or 1-D array"),
        ("12", TypeError, "categories must be a list, tuple or 1-D array"),
        ([[1], [2]], TypeError, "must be plain labels"),
    ],
)
def test_categories_are_checked(categories, error, sentence):
    assert_refused("histogram", error, sentence, categories=categories)
    assert_refused("histogram", ValueError, "adjacency must be one of", adjacency="swap")


def test_clipping_moves_values_to_the_nearest_bound(silent, rng):
    arguments = dict(lower=0, upper=64, epsilon=1, rng=rng, clip=True)
    values = [-1000, 32, 1e9]
    assert m.private_sum(values, adjacency="add-remove", **arguments) == 96
    assert m.private_mean(values, adjacency="replace-one", **arguments) == 32
    assert m.private_mean(values, adjacency="add-remove", **arguments) == 32


# --------------------------------------------------------------------- discrete Gaussian noise


def discrete_gaussian_law(sigma):
    """Return (outputs, chances) of all but a share of 1e-30 of the noise, summed as it stands."""
    outputs = np.arange(-math.ceil(12 * sigma) - 2, math.ceil(12 * sigma) + 3)
    weights = np.exp(-(outputs**2) / (2 * sigma**2))
    return outputs, weights / weights.sum()


def discrete_gaussian_cdf(sigma):
    outputs, chances = discrete_gaussian_law(sigma)
    upto = np.append(0, np.cumsum(chances))
    return lambda y: upto[np.searchsorted(outputs, y, side="right")]


@pytest.mark.parametrize("variance", [Fraction(1, 3), Fraction(5), Fraction(31, 3)])
def test_discrete_gaussian_sampler_has_exactly_the_law(variance, exp_coin):
    # No randomness: every branch is followed, up to a chance of 1e-6 in all.
    def program(choose, below):
        exp_coin(choose)
        return m._discrete_gaussian(variance, below)

    scale = math.isqrt(math.floor(variance)) + 1  # of the discrete Laplace proposal
    assert scale != 2  # or its sign would look like an opening
    found, lost = one_round(program, opening=scale, least=1e-9)
    assert lost < 1e-6
    for k, chance in zip(*discrete_gaussian_law(math.sqrt(variance)), strict=True):
        assert found.get(int(k), 0) == pytest.approx(chance, abs=1e-6)


@pytest.mark.parametrize("variance", [Fraction(1, 3), Fraction(5), Fraction(0.1) * 7])
def test_discrete_gaussian_sampler_stays_with_whole_numbers(variance, monkeypatch):
    coins = []
    flip = m._bernoulli_exp

    def coin(numerator, denominator, below):
        coins.append((numerator, denominator))
        return flip(numerator, denominator, below)

    monkeypatch.setattr(m, "_bernoulli_exp", coin)
    below = m._uniform_integers(np.random.default_rng(SEED))
    draws = [m._discrete_gaussian(variance, below) for _ in range(50)]
    assert {type(number) for number in [*draws, *itertools.chain(*coins)]} == {int}


@pytest.mark.parametrize("sigma", [0.05, 0.3, 0.99, 1, 1.01, 2.5, 40])
def test_discrete_gaussian_pmf_is_the_normalised_weight(sigma):
    outputs, chances = discrete_gaussian_law(sigma)
    np.testing.assert_allclose(
        m.discrete_gaussian_pmf(outputs, sigma=sigma), chances, rtol=1e-12, atol=1e-300
    )
    assert type(m.discrete_gaussian_pmf(3, sigma=sigma)) is float


def test_discrete_gaussian_pmf_stands_extremes():
    assert m.discrete_gaussian_pmf(0, sigma=1e-320) == 1
    assert m.discrete_gaussian_pmf(1, sigma=1e-320) == 0
    assert m.discrete_gaussian_pmf(-(2**63), sigma=1) == 0
    wide = m.discrete_gaussian_pmf(10**12, sigma=1e12)  # so coarse a law is the normal one
    assert wide == pytest.approx(stats.norm(scale=1e12).pdf(1e12), rel=1e-12)
    with pytest.raises(ValueError, match="sigma must be a finite number above 0, got 0"):
        m.discrete_gaussian_pmf(1, sigma=0)
    with pytest.raises(TypeError, match="k must be an integer"):
        m.discrete_gaussian_pmf(0.5, sigma=1)


@pytest.mark.parametrize(
    ("sensitivity", "rho"), [(1, 0.5), (1, Fraction(1, 50)), (2, 7), (0.3, 1.7), (1, 1e-9)]
)
def test_discrete_gaussian_mechanism_has_the_law(sensitivity, rho, rng):
    # False alarm <= 1e-9 (DKW, 10,000 draws: band 0.033). Twice the variance is 0.08 off.
    noise = m.discrete_gaussian_mechanism(
        np.full(10_000, 17), sensitivity=sensitivity, rho=rho, rng=rng
    ) - 17  # fmt: skip
    sigma = sensitivity / math.sqrt(2 * rho)
    assert m.discrete_gaussian_sigma(sensitivity=sensitivity, rho=rho) == pytest.approx(sigma)
    law = discrete_gaussian_cdf(sigma) if sigma < 1e3 else stats.norm(scale=sigma).cdf
    assert_follows(noise, law)


def test_each_value_of_discrete_gaussian_has_its_frequency(rng):
    # False alarm <= 1e-9 (exact binomial for each of 13 cells, Bonferroni).
    noise = m.discrete_gaussian_mechanism(np.zeros(30_000, int), sensitivity=2, rho=0.5, rng=rng)
    inner = np.arange(-5, 6)
    counts = [int((noise == k).sum()) for k in inner]
    counts = [int((noise < -5).sum()), *counts, int((noise > 5).sum())]
    chances = m.discrete_gaussian_pmf(inner, sigma=2)
    tail = (1 - chances.sum()) / 2
    assert_frequencies(counts, [tail, *chances, tail])


def test_coordinates_get_independent_discrete_gaussian_noise(rng):
    # False alarm <= 1e-9 for each: two independent signs agree half of the time (exact binomial;
    # at rho 1e-12 the noise is 0 with chance 6e-7, which shifts that by less).
    pairs = m.discrete_gaussian_mechanism(
        np.zeros((10_000, 2), dtype=int), sensitivity=1, rho=1e-12, rng=rng
    )
    first, second = (pairs > 0).T
    assert stats.binomtest(int((first == second).sum()), 10_000, 0.5).pvalue > ALARM
    median = stats.norm.ppf(0.75) / math.sqrt(2e-12)  # of |noise|
    larger = int((np.abs(pairs) > median).all(axis=1).sum())
    assert stats.binomtest(larger, 10_000, 0.25).pvalue > ALARM


def test_discrete_gaussian_releases_keep_their_kind_and_their_range(rng):
    for value in (3, np.int64(3), np.array(3, dtype=np.uint8)):
        assert type(m.discrete_gaussian_mechanism(value, sensitivity=1, rho=1, rng=rng)) is int
    assert m.discrete_gaussian_mechanism([], sensitivity=1, rho=1, rng=rng).shape == (0,)
    # Beyond int64 an array is set to its ends, here all but 2e-20 of it; a number is not.
    ends = m.discrete_gaussian_mechanism(np.zeros(40, int), sensitivity=1, rho=1e-78, rng=rng)
    assert ends.dtype == np.int64 and set(ends.tolist()) == {-(2**63), 2**63 - 1}
    assert abs(m.discrete_gaussian_mechanism(0, sensitivity=1, rho=1e-78, rng=rng)) > 2**64


def test_discrete_gaussian_noise_is_calibrated_exactly(monkeypatch, rng):
    variances = []
    monkeypatch.setattr(
        m, "_discrete_gaussian", lambda variance, below: variances.append(variance) or 0
    )
    for sensitivity, rho in [(1, Fraction(1, 3)), (Fraction(2, 7), 5), (0.1, 0.3), (3, 1e-9)]:
        released = m.discrete_gaussian_mechanism(
            [[4, 5]], sensitivity=sensitivity, rho=rho, rng=rng
        )
        assert released.tolist() == [[4, 5]]
        assert variances == [Fraction(sensitivity) ** 2 / (2 * Fraction(rho))] * 2
        variances.clear()


@pytest.mark.parametrize("sigma", [0.4, 1, 3.7])
def test_discrete_gaussian_is_rho_zcdp_for_whole_shifts_and_no_less(sigma):
    # No randomness: the Renyi divergence of every order, by its definition, on the exact law.
    outputs = np.arange(-700, 701)
    exponent = -(outputs**2) / (2 * sigma**2)
    log_total = np.log(discrete_gaussian_law(sigma)[1].max())  # -log of the normaliser

    for shift in (1, 2, 5):
        moved = -((outputs - shift) ** 2) / (2 * sigma**2)
        for order in (1.01, 1.3, 2, 2.5, 3, 17, 64.5):
            terms = order * exponent + (1 - order) * moved
            peak = terms.max()
            log_sum = peak + np.log(np.exp(terms - peak).sum()) + log_total
            divergence = log_sum / (order - 1)
            rho = shift**2 / (2 * sigma**2)
            assert divergence <= order * rho * (1 + 1e-9)
            if order == int(order):  # then the completed square is centred on a whole number
                assert divergence == pytest.approx(order * rho, rel=1e-9)


@pytest.mark.parametrize(("rho", "delta"), [(0.1, 1e-5), (0.5, 1e-9), (3, 1e-3)])
def test_zcdp_epsilon_holds_for_discrete_gaussian_noise(rho, delta):
    # No randomness: the hockey-stick divergence of the two exact laws, a whole shift apart.
    epsilon = zcdp_epsilon(rho, delta)
    for sensitivity in (1, 3):
        sigma = m.discrete_gaussian_sigma(sensitivity=sensitivity, rho=rho)
        outputs = np.arange(-200, 201)
        here = m.discrete_gaussian_pmf(outputs, sigma=sigma)
        there = m.discrete_gaussian_pmf(outputs - sensitivity, sigma=sigma)
        spent = np.maximum(here - math.exp(epsilon) * there, 0).sum()
        assert 0 < spent <= delta


@pytest.mark.parametrize("rho", [1e308, 1e305, Fraction(10) ** 307])
def test_discrete_gaussian_noise_too_narrow_or_too_wide_is_refused(rho):
    sentence = r"sensitivity / sqrt\(2 rho\) must lie between 1e-150 and 1e150, got sensitivity="
    assert_refused("discrete gaussian", ValueError, sentence, rho=rho)
    assert_refused("discrete gaussian", ValueError, sentence, rho=1 / rho, sensitivity=1)
    with pytest.raises(ValueError, match=sentence):
        m.discrete_gaussian_sigma(sensitivity=1, rho=rho)


@pytest.mark.parametrize(
    ("value", "error", "sentence"),
    [
        (3.0, TypeError, "value must be an integer or an array of integers, got 3.0"),
        ([1.0, 2.0], TypeError, "value must be an integer .* got float64 values"),
        (True, TypeError, "value must be an integer .* got True"),
        (2**63, ValueError, r"value must lie from -2\*\*63 to 2\*\*63 - 1, got 9223372"),
    ],
)
def test_discrete_gaussian_takes_integers_only(value, error, sentence):
    assert_refused("discrete gaussian", error, sentence, value)
