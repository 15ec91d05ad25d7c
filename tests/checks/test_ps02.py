"""Problem set 02: its answers against the package and closed forms, and what a learner reads."""

import json
import math
import re
from pathlib import Path

import numpy as np
import pytest
from scipy import integrate, stats

from coursekit import mechanisms, neighbours
from coursekit.checks import ps02
from coursekit.checks.exercise import RIGHT, WRONG, Law, LocalSubject
from coursekit.learn import check
from tests.checks.tasks import tried_examples

ROOT = Path(__file__).resolve().parents[2]
NAME = "ps02-laplace-mechanism"
SOLUTION = json.loads((ROOT / "solutions" / NAME / f"{NAME}.ipynb").read_text(encoding="utf-8"))
PROSE = {cell["id"]: "".join(cell["source"]) for cell in SOLUTION["cells"]
         if cell["cell_type"] == "markdown"}
SEED = 20_240


def laws(exercise):
    """The laws of the noise; those of its tails have a test of their own."""
    return [part for part in exercise.parts
            if isinstance(part, Law) and "cut-off" not in part.wrong]


def verdict(exercise, answer):
    return exercise.check(LocalSubject({exercise.function: answer}), seed=SEED)


def scale_of(law):
    """Scale of a Laplace law, from its entropy log(2 e b)."""
    return math.exp(law.entropy() - 1) / 2


# The right laws: sensitivities by exhaustive search, scales by the package


def test_count_has_the_scale_of_its_sensitivity_under_either_adjacency():
    for adjacency in neighbours.ADJACENCIES:
        found = neighbours.global_sensitivity(sum, universe=[0, 1], size=4, adjacency=adjacency)
        for law in laws(ps02.NOISY_COUNT):
            expected = mechanisms.laplace_scale(sensitivity=found, epsilon=law.case["epsilon"])
            assert scale_of(law.right) == pytest.approx(expected)


def test_sum_has_the_scale_of_its_sensitivity_under_add_remove():
    for law in laws(ps02.NOISY_SUM):
        lower, upper = law.case["lower"], law.case["upper"]
        found = neighbours.global_sensitivity(
            sum, universe=[lower, (lower + upper) / 2, upper], size=3, adjacency="add-remove")
        expected = mechanisms.laplace_scale(sensitivity=found, epsilon=law.case["epsilon"])
        assert scale_of(law.right) == pytest.approx(expected)


def test_histogram_has_the_scale_of_its_sensitivity_under_replace_one():
    for law in laws(ps02.NOISY_HISTOGRAM):
        found = neighbours.global_sensitivity(
            lambda data: np.bincount(data, minlength=8),
            universe=range(len(law.case["categories"])), size=2, adjacency="replace-one")
        expected = mechanisms.laplace_scale(sensitivity=found, epsilon=law.case["epsilon"])
        assert scale_of(law.right) == pytest.approx(expected)


def test_sum_and_count_together_spend_epsilon_and_no_less():
    for_sum, for_count, _ = laws(ps02.NOISY_SUM_AND_COUNT)
    lower, upper, epsilon = (ps02.PAIR[name] for name in ("lower", "upper", "epsilon"))
    scales = np.array([scale_of(for_sum.right), scale_of(for_count.right)])
    spent = neighbours.global_sensitivity(
        lambda data: np.array([sum(data), len(data)]) / scales,
        universe=[lower, 0, upper], size=3, adjacency="add-remove")
    assert spent == pytest.approx(epsilon)
    assert (ps02.PAIR_SUM, ps02.PAIR_COUNT) == (8.0 - 7.5, 10)  # by hand: 9 counts as 3


def test_larger_of_two_independent_noises_has_the_stated_law():
    x = np.linspace(0.01, 20, 500)
    both_below = (2 * stats.laplace.cdf(x) - 1) ** 2
    np.testing.assert_allclose(stats.exponweib(2, 1).cdf(x), both_below, rtol=1e-9)
    *_, larger = laws(ps02.NOISY_SUM_AND_COUNT)
    np.testing.assert_allclose(larger.right.cdf(x), both_below, rtol=1e-9)


def test_tails_have_the_stated_chance():
    assert 2 * stats.laplace.sf(4) == pytest.approx(math.exp(-4))
    far = mechanisms.discrete_laplace_pmf(np.arange(11, 400), scale=2.0).sum()
    assert ps02.beyond(10, 2.0) == pytest.approx(2 * far)
    for exercise in ps02.EXERCISES[2:7]:
        (tail,) = (part for part in exercise.parts
                   if isinstance(part, Law) and "cut-off" in part.wrong)
        expected = ps02.beyond(10, 2.0) if exercise.key == "2.7" else math.exp(-4)
        assert tail.right.mean() == pytest.approx(expected)


HANG_TOGETHER = {
    "zero-sum": lambda x, rng: (x - x.mean()) * math.sqrt(len(x) / max(1, len(x) - 1)),
    "two draws tiled": lambda x, rng: np.resize(x[:2], len(x)),
    "one for all but the first": lambda x, rng: np.where(np.arange(len(x)) == 0, x, x[-1]),
    "antithetic": lambda x, rng: np.where(np.arange(len(x)) % 2 == 0, x, -np.roll(x, 1)),
    "sorted": lambda x, rng: np.sort(x),
    "shared sign": lambda x, rng: np.abs(x) * rng.choice([-1, 1]),
    "shared size": lambda x, rng: np.abs(x[0]) * rng.choice([-1, 1], len(x)),
}


@pytest.mark.parametrize("name", HANG_TOGETHER)
def test_bins_and_draws_that_hang_together_are_refused(name):
    make = HANG_TOGETHER[name]

    def histogram(values, categories, epsilon, rng):
        noise = make(rng.laplace(0, 2 / epsilon, len(categories)), rng)
        return ps02.counts_of(values, categories) + noise

    def draws(scale, size, rng):
        return np.rint(make(ps02.discrete_laplace(scale, size, rng), rng)).astype(int)

    assert verdict(ps02.NOISY_HISTOGRAM, histogram).status == WRONG
    assert verdict(ps02.DISCRETE_LAPLACE, draws).status == WRONG


def test_discrete_laws_are_those_of_the_package_and_of_the_formula():
    k = np.arange(-60, 61)
    for law in laws(ps02.DISCRETE_LAPLACE):
        scale = law.case["scale"]
        p = math.exp(-1 / scale)
        np.testing.assert_allclose(law.right.pmf(k), (1 - p) / (1 + p) * p ** np.abs(k), rtol=1e-9)
        expected = mechanisms.discrete_laplace_pmf(k, scale=scale)
        np.testing.assert_allclose(law.right.pmf(k), expected, rtol=1e-9)
        for name, wrong in law.wrong.items():
            assert wrong.pmf(np.arange(-400, 401)).sum() == pytest.approx(1), name


def test_our_sampler_agrees_with_the_packages_exact_one():
    ours = ps02.discrete_laplace(2.0, 20_000, np.random.default_rng(SEED))
    exact = mechanisms.discrete_laplace_mechanism(
        np.zeros(20_000, dtype=int), sensitivity=2, epsilon=1, rng=np.random.default_rng(SEED + 1))
    cells = np.arange(-6, 7)
    table = [[np.sum(np.clip(draws, -6, 6) == k) for k in cells] for draws in (ours, exact)]
    assert stats.chi2_contingency(table).pvalue > 1e-9


# Exact answers


@pytest.mark.parametrize("seed", range(20))
def test_privacy_loss_is_the_log_ratio_of_densities(seed):
    rng = np.random.default_rng(seed)
    value, other, scale = [*rng.normal(size=2).tolist(), rng.uniform(0.2, 3)]
    z = rng.laplace(value, scale, 50)
    densities = stats.laplace.pdf(z, value, scale) / stats.laplace.pdf(z, other, scale)
    loss = ps02.privacy_loss(z, value, other, scale)
    np.testing.assert_allclose(loss, np.log(densities), atol=1e-9)
    assert np.all(np.abs(loss) <= abs(value - other) / scale + 1e-12)


def test_statement_c_holds_and_the_others_do_not():
    def delta(epsilon, ratio):  # by integrating p - e^epsilon q where it is positive
        p, q = stats.norm(1 / ratio), stats.norm(0)
        start = (epsilon + 0.5 / ratio**2) * ratio  # there the two are equal
        return integrate.quad(lambda z: p.pdf(z) - math.exp(epsilon) * q.pdf(z), start, 20)[0]

    sensitivity = neighbours.global_sensitivity(
        np.mean, universe=[0, 100], size=5, adjacency="replace-one") * 5 / 1000
    assert sensitivity == pytest.approx(0.1)
    assert delta(4.37, 0.1 / sensitivity) > 1e-5 > delta(4.38, 0.1 / sensitivity)
    assert delta(1, 1) > 0.1  # far from pure 1-DP
    assert delta(4.38, 0.1 / 0.2) > 1e-3  # with twice the bounds
    assert ps02.CHOICE.right() == "c"


def test_a_count_of_one_never_gives_an_impossible_release():
    rng = np.random.default_rng(SEED)
    steps = [0.0, *(2.0**-power for power in range(1, 80))]
    edges = [-x + s * y for x in (0, 0.5, 1, 1.5, 2) for y in steps for s in (-1, 1)]
    noise = np.concatenate([rng.laplace(0, 1, 200_000), rng.uniform(-2, 0.5, 200_000), edges])
    assert not np.any(ps02.impossible_from_one(1 + noise))


def test_share_of_impossible_releases_is_the_closed_form():
    # A noise between 2^-(k+1) and 2^-k has k bits finer than 2^-53, all 0 with chance 2^-k.
    k = np.arange(1, 60)
    share = np.sum((np.exp(-(2.0 ** -(k + 1))) - np.exp(-(2.0**-k))) * (1 - 2.0**-k))
    assert f"about {share:.0%}" in ps02.IMPOSSIBLE.lesson
    seen = ps02.impossible_from_one(np.random.default_rng(SEED).laplace(0, 1, 200_000)).sum()
    assert stats.binomtest(int(seen), 200_000, share).pvalue > 1e-9


# Wrong answers that nobody listed


def count_plus(noise):
    return lambda flags, epsilon, rng: np.sum(flags) + noise(1 / epsilon, rng)


UNLISTED = {
    "student-t": lambda b, rng: rng.standard_t(3) * b * math.sqrt(2 / 3),
    "logistic": lambda b, rng: rng.logistic(0, b * math.sqrt(6) / math.pi),
    "clipped-at-three-scales": lambda b, rng: np.clip(rng.laplace(0, b), -3 * b, 3 * b),
    "rounded": lambda b, rng: np.rint(rng.laplace(0, b)),
    "a-fifth-too-narrow": lambda b, rng: rng.laplace(0, 0.8 * b),
    "off-centre": lambda b, rng: rng.laplace(b / 10, b),
    "sometimes-none": lambda b, rng: rng.laplace(0, b) * (rng.random() < 0.9),
    "right-at-one-epsilon-only": lambda b, rng: rng.laplace(0, 5),
}


@pytest.mark.parametrize("name", UNLISTED)
def test_unlisted_noise_is_refused(name):
    assert verdict(ps02.NOISY_COUNT, count_plus(UNLISTED[name])).status == WRONG


def test_the_same_frame_with_the_right_noise_is_accepted():
    right = count_plus(lambda b, rng: rng.laplace(0, b))
    assert verdict(ps02.NOISY_COUNT, right).status == RIGHT


def test_dependent_noise_of_the_right_laws_is_refused():
    def mirrored(values, lower, upper, epsilon, rng):
        draw = rng.laplace(0, 2 / epsilon)
        total = np.clip(values, lower, upper).sum() - max(abs(lower), abs(upper)) * draw
        return np.array([total, len(values) + draw])

    assert verdict(ps02.NOISY_SUM_AND_COUNT, mirrored).mistake == "same-draw-for-both"


def test_noise_on_empty_bins_must_be_the_same_as_elsewhere():
    def timid(values, categories, epsilon, rng):
        counts = ps02.counts_of(values, categories)
        return counts + rng.laplace(0, 2 / epsilon, len(counts)) * np.where(counts > 0, 1, 0.5)

    assert verdict(ps02.NOISY_HISTOGRAM, timid).status == WRONG


def test_sum_with_an_unclipped_outlier_is_refused_whatever_its_noise():
    def generous(values, lower, upper, epsilon, rng):
        return np.sum(values) + rng.laplace(0, 1000 / epsilon)

    assert verdict(ps02.NOISY_SUM, generous).status == WRONG


# What a learner reads


def test_unnamed_noise_gets_advice_and_a_wrong_shape_is_told(capsys):
    check("2.3", namespace={"noisy_count": count_plus(UNLISTED["student-t"])})
    assert "do not follow the law" in (told := capsys.readouterr().out) and "root of 2" in told
    check("2.4", namespace={"noisy_sum": lambda rng, **case: [ps02.noisy_sum(rng=rng, **case)]})
    assert "shape (1,); expected shape ()" in capsys.readouterr().out


def test_pointers_name_headings_of_the_notebook():
    path = ROOT / "notebooks" / "02_laplace_mechanism.ipynb"
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    lines = "".join("".join(cell["source"]) + "\n" for cell in cells
                    if cell["cell_type"] == "markdown").splitlines()
    headings = {re.sub(r"""["“”']""", "", line.lstrip("# ")) for line in lines if line[:1] == "#"}
    messages = [m.message for exercise in ps02.EXERCISES for m in exercise.mistakes]
    named = [name for message in messages
             for name in re.findall(r'notebook 02, "([^"]+)"', message)]
    assert len(named) > 8
    assert {name.replace("'", "") for name in named} <= headings


def test_examples_in_the_tasks_are_true():
    assert tried_examples(SOLUTION, PROSE) == 13


def test_letter_to_meera_has_its_arithmetic_right():
    letter = PROSE["answer-2-9"]
    width, people, weeks = 14 - 4, 500, 52
    sensitivity = width / people
    assert f"{width}/{people} = {sensitivity:.2f}" in letter
    assert f"{sensitivity} × {weeks} = {sensitivity * weeks:.2f}" in letter
    assert f"each have scale {sensitivity * 4:.2f}" in letter
    assert len(str(int(math.exp(weeks)))) == 23 and "23 digits" in letter
    assert round(math.sqrt(weeks)) == 7 and "seven times smaller" in letter
