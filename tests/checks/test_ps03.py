"""Problem set 03: its answers against the package and closed forms, and what a learner reads."""

import itertools
import json
import math
import re
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from coursekit import accounting, mechanisms, neighbours, verify
from coursekit.checks import ps03
from coursekit.checks.exercise import NOT_ATTEMPTED, RIGHT, WRONG, Law, LocalSubject
from tests.checks.tasks import tried_examples

ROOT = Path(__file__).resolve().parents[2]
NAME = "ps03-composition"
SOLUTION = json.loads((ROOT / "solutions" / NAME / f"{NAME}.ipynb").read_text(encoding="utf-8"))
PROSE = {cell["id"]: "".join(cell["source"]) for cell in SOLUTION["cells"]
         if cell["cell_type"] == "markdown"}
CODED = [exercise for exercise in ps03.EXERCISES if exercise.function]
SEED = 20_240


def verdict(exercise, answer):
    return exercise.check(LocalSubject({exercise.function: answer}), seed=SEED)


def cases(exercise):
    return exercise.parts[0].cases(np.random.default_rng(SEED))


# Exact answers, against the package


def test_ledger_spends_what_basic_composition_says():
    for case in cases(ps03.LEDGER):
        decisions = ps03.answered(**case)
        kept = []
        for (each, delta, repeats), yes in zip(case["requests"], decisions, strict=True):
            new = [*kept, *[(each, delta)] * repeats]
            epsilons, deltas = zip(*new, strict=True)
            total, total_delta = accounting.basic_composition(epsilons, deltas)
            room = 1 + 1e-12
            assert yes == (total <= case["epsilon"] * room and total_delta <= case["delta"] * room)
            kept = new if yes else kept


def test_no_request_of_a_case_misses_its_budget_by_less_than_a_tolerance_sees():
    for case in cases(ps03.LEDGER):
        spent = [Fraction(0), Fraction(0)]
        budget = [ps03.exactly(case["epsilon"]), ps03.exactly(case["delta"])]
        for request, yes in zip(case["requests"], ps03.answered(**case), strict=True):
            would_be = ps03.sums([spent, ps03.cost(*request)])
            gaps = [float(total / limit - 1)
                    for total, limit in zip(would_be, budget, strict=True)]
            assert all(gap <= 0 or gap > 1e-3 for gap in gaps)
            spent = would_be if yes else spent


def test_demo_adds_up_to_what_the_task_says():
    total, _ = accounting.basic_composition([0.1, 1, 10], 0)
    assert total == 11.1 and f"adds up to: {total}" in PROSE["task-3-2"]
    assert ps03.answered([(0.1, 0, 1), (1, 0, 1), (10, 0, 1)], total, 1e-6) == [True] * 3


def test_advanced_composition_is_the_packages():
    for case in cases(ps03.ADVANCED):
        expected = accounting.advanced_composition(
            case["epsilon"], case["delta"], count=case["count"], slack=case["slack"])
        assert ps03.advanced(**case) == pytest.approx(expected, rel=1e-12)


def test_largest_share_keeps_the_budget_and_no_larger_one_does():
    for case in cases(ps03.SHARE):
        share = ps03.largest_share(**case)

        def spent(each, case=case):
            advanced, _ = accounting.advanced_composition(
                each, 0.0, count=case["count"], slack=case["slack"])
            return min(case["count"] * each, advanced)

        assert spent(share) <= case["total"] * (1 + 1e-12)
        assert spent(share * (1 + 1e-9)) > case["total"]


def test_cases_of_the_share_need_both_theorems():
    basic = [ps03.largest_share(**case) == case["total"] / case["count"]
             for case in cases(ps03.SHARE)]
    assert True in basic and False in basic


@pytest.mark.parametrize(("epsilon", "each", "count"), [(0.3, 0.4, 6), (1.0, 0.5, 8), (2, 0.3, 10)])
def test_delta_of_responses_by_going_through_all_lists_of_answers(epsilon, each, count):
    p = math.exp(each) / (1 + math.exp(each))
    gain = 0
    for truths in itertools.product([True, False], repeat=count):
        here = math.prod(p if truth else 1 - p for truth in truths)
        there = math.prod(1 - p if truth else p for truth in truths)
        gain += max(0, here - math.exp(epsilon) * there)
    assert ps03.responses_delta(epsilon, each, count) == pytest.approx(gain, rel=1e-9)


def test_responses_at_the_packages_epsilon_cost_its_slack():
    for each, count, slack in ((0.1, 200, 1e-5), (0.5, 20, 1e-4), (0.25, 12, 1e-6)):
        epsilon, _ = accounting.optimal_composition(each, 0.0, count=count, slack=slack)
        assert ps03.responses_delta(epsilon, each, count) == pytest.approx(slack, rel=1e-6)


def test_gaussian_curve_and_noise_are_the_packages():
    for case in cases(ps03.GAUSSIAN_DELTA):
        expected = accounting.gaussian_delta(case["mu"], case["epsilon"])
        assert expected > 1e-9  # large enough for logarithms to be compared
        assert ps03.gaussian_delta(**case) == pytest.approx(expected, rel=1e-6)
    for case in cases(ps03.SIGMA):
        sigma = ps03.smallest_sigma(**case)
        assert sigma == pytest.approx(mechanisms.gaussian_sigma(**case), rel=1e-8)
        mu = case["sensitivity"] / sigma
        assert accounting.gaussian_delta(mu, case["epsilon"]) <= case["delta"] * (1 + 1e-7)


def test_classical_mistake_is_the_packages_formula_and_breaks_its_promise_at_16():
    for epsilon in (0.1, 1.0):
        expected = accounting.classical_noise_multiplier(epsilon, 1e-5)
        assert ps03.classical(1, epsilon, 1e-5) == pytest.approx(expected)
    sigma = ps03.classical(1, 16, 1e-5)
    assert f"{sigma:.1f} Δ" in PROSE["task-3-7"]
    assert f"has δ = {accounting.gaussian_delta(1 / sigma, 16):.4f}" in PROSE["task-3-7"]
    assert sigma < ps03.smallest_sigma(1, 16, 1e-5)


def test_zcdp_mistake_keeps_the_promise_with_more_noise_than_needed():
    for case in cases(ps03.SIGMA):
        sigma = ps03.by_zcdp(**case)
        rho = accounting.zcdp_rho(sigma / case["sensitivity"])
        simple = rho + 2 * math.sqrt(rho * math.log(1 / case["delta"]))
        assert simple == pytest.approx(case["epsilon"])
        assert accounting.zcdp_epsilon(rho, case["delta"]) <= case["epsilon"]
        assert sigma > ps03.smallest_sigma(**case)


# The choice


def test_statements_of_the_choice():
    wards = [0, 1, 2]
    for adjacency, expected in (("add-remove", 1), ("replace-one", 2)):
        found = neighbours.global_sensitivity(
            lambda data: np.bincount(np.array(data, dtype=int), minlength=3),
            universe=wards, size=2, adjacency=adjacency)
        assert found == expected  # d: that many counts move, by 1 each
    passes = stats.norm.sf(4.38 - 0.5)  # b: the loss is z - 1/2 for mu = 1
    assert accounting.gaussian_delta(1.0, 4.38) <= 1e-5 < passes
    assert f"{passes:.0e}".replace("e-0", "e-") in dict(
        (m.name, m.message) for m in ps03.CHOICE.mistakes)["chose-b"]
    assert 10_000 * 0.001 == 10  # a
    assert ps03.CHOICE.right() == "d"


# The vectors


def test_sensitivity_of_a_clipped_sum():
    rng = np.random.default_rng(SEED)
    rows = ps03.clipped(rng.normal(0, 3, (200, 4)), 1.5)
    assert np.linalg.norm(rows, axis=1).max() == pytest.approx(1.5)
    pairs = np.linalg.norm(rows[:, None] - rows, axis=2)
    assert pairs.max() <= ps03.sensitivity_of(1.5, "replace-one")
    opposite = ps03.clipped(np.array([[9.0, 0, 0, 0], [-9.0, 0, 0, 0]]), 1.5)
    worst = np.linalg.norm(opposite[0] - opposite[1])
    assert worst == pytest.approx(ps03.sensitivity_of(1.5, "replace-one"))
    assert ps03.sensitivity_of(1.5, "add-remove") == 1.5


def test_laws_have_the_deviation_that_the_package_gives():
    for law in ps03.VECTOR_SUM.parts:
        if isinstance(law, Law) and "cut-off" not in law.wrong:
            sensitivity = ps03.sensitivity_of(law.case["bound"], law.case["adjacency"])
            sigma = mechanisms.gaussian_sigma(sensitivity=sensitivity, epsilon=1.0, delta=1e-5)
            per_unit = accounting.gaussian_noise_multiplier(1.0, 1e-5)
            assert law.right.std() / law.case["multiplier"] == pytest.approx(sigma / per_unit)


def test_rows_for_the_laws_are_short():
    assert np.linalg.norm(ps03.SHORT, axis=1).max() < ps03.VECTORS["bound"]


def vectors_plus(noise):
    def answer(rows, bound, multiplier, adjacency, rng):
        sigma = multiplier * ps03.sensitivity_of(bound, adjacency)
        return ps03.clipped(rows, bound).sum(axis=0) + noise(sigma, rows.shape[1], rng)
    return answer


UNLISTED = {
    "student-t": lambda s, d, rng: rng.standard_t(4, d) * s / math.sqrt(2),
    "uniform": lambda s, d, rng: rng.uniform(-1, 1, d) * s * math.sqrt(3),
    "a-fifth-too-narrow": lambda s, d, rng: rng.normal(0, 0.8 * s, d),
    "off-centre": lambda s, d, rng: rng.normal(s / 10, s, d),
    "sometimes-none": lambda s, d, rng: rng.normal(0, s, d) * (rng.random() < 0.9),
    "sorted": lambda s, d, rng: np.sort(rng.normal(0, s, d)),
    "zero-sum": lambda s, d, rng: (lambda x: (x - x.mean()) * math.sqrt(d / max(d - 1, 1)))(
        rng.normal(0, s, d)),
    "two-draws": lambda s, d, rng: np.resize(rng.normal(0, s, 2), d),
    "right-at-one-width-only": lambda s, d, rng: rng.normal(0, 5.5, d),
}


@pytest.mark.parametrize("name", UNLISTED)
def test_unlisted_noise_is_refused(name):
    assert verdict(ps03.VECTOR_SUM, vectors_plus(UNLISTED[name])).status == WRONG


def test_the_same_frame_with_the_right_noise_is_accepted():
    right = vectors_plus(lambda s, d, rng: rng.normal(0, s, d))
    assert verdict(ps03.VECTOR_SUM, right).status == RIGHT


# The safe side


@pytest.mark.parametrize(("exercise", "safe", "mistake"), [
    (ps03.SHARE, -1, "overdraws"), (ps03.SIGMA, 1, "too-little-noise")], ids=["share", "sigma"])
def test_a_search_may_miss_on_the_safe_side_only(exercise, safe, mistake):
    def off(factor):
        return lambda **case: exercise.right(**case) * (1 + safe * factor)

    assert verdict(exercise, off(5e-7)).status == RIGHT
    assert verdict(exercise, off(1e-12 * -safe)).status == RIGHT
    assert verdict(exercise, off(-1e-6)).mistake == mistake
    assert verdict(exercise, off(-1e-2)).mistake == mistake
    assert verdict(exercise, off(1e-4)).status == WRONG
    for strange in (math.nan, math.inf, 0.0, -1.0, "much", [1.0, 2.0], 1j, True):
        assert verdict(exercise, lambda strange=strange, **case: strange).status == WRONG


@pytest.mark.parametrize("strange", [math.nan, "a", [1.0], (1, 2, 3), {"a": 1}, 0.0, -1.0])
@pytest.mark.parametrize("exercise", CODED, ids=lambda exercise: exercise.key)
def test_strange_answers_are_refused_in_a_sentence(exercise, strange):
    told = verdict(exercise, lambda **case: strange)
    assert told.status == WRONG and told.message


def test_small_deltas_are_told_apart():
    for exercise in (ps03.RESPONSES, ps03.GAUSSIAN_DELTA):
        def nearly(exercise=exercise, **case):
            return exercise.right(**case) * (1 + 1e-4)
        assert verdict(exercise, nearly).status == WRONG

    def nearly_advanced(**case):
        epsilon, delta = ps03.advanced(**case)
        return epsilon, delta + 1e-10
    assert verdict(ps03.ADVANCED, nearly_advanced).status == WRONG


# Numbers in what a learner reads


def test_numbers_of_the_lessons():
    second = 1000 * 0.1 * math.expm1(0.1)
    dropped = {m.name: m.message for m in ps03.ADVANCED.mistakes}["second-term-dropped"]
    assert f"about {second:.1f}" in dropped
    advanced, _ = accounting.advanced_composition(0.1, 0.0, count=1000, slack=1e-5)
    optimal, _ = accounting.optimal_composition(0.1, 0.0, count=1000, slack=1e-5)
    assert f"{advanced:.1f} where basic composition says {1000 * 0.1:.0f}" in ps03.ADVANCED.lesson
    assert f"it is {optimal:.1f}, and advanced composition says {advanced:.1f}" in " ".join(
        ps03.RESPONSES.lesson.split())
    share = ps03.largest_share(1.0, 3 * 365, 1e-6)
    assert f"about {share:.4f}" in ps03.SHARE.lesson and round(share * 1095) == 6
    exact, classical = (f(1.0, 1e-5) for f in (accounting.gaussian_noise_multiplier,
                                               accounting.classical_noise_multiplier))
    assert f"{exact:.2f} times" in ps03.SIGMA.lesson and f"{classical:.2f} " in ps03.SIGMA.lesson


def test_letter_to_the_board_has_its_arithmetic_right():
    letter, releases = PROSE["answer-3-9"], 3 * 365
    assert f"3 × 365 = {releases}" in letter and f"add up to {releases * 0.1:.1f}" in letter
    assert ps03.answered([(0.1, 0, 3)] * 3 + [(0.1, 0, 1)] * 2, 1, 1e-6) == [True] * 4 + [False]
    assert f"after three days {9 * 0.1:.1f} is spent" in letter
    assert round(math.sqrt(365)) == 19 and "nineteen times smaller" in letter
    advanced, _ = accounting.advanced_composition(0.1, 0.0, count=releases, slack=1e-6)
    optimal, _ = accounting.optimal_composition(0.1, 0.0, count=releases, slack=1e-6)
    assert f"by {advanced:.1f}" in letter and f"is {optimal:.1f}" in letter
    assert f"about {advanced:.0f}" in ps03.DASHBOARDS.rubric
    assert f"about {optimal:.0f}" in ps03.DASHBOARDS.rubric
    share = ps03.largest_share(1.0, releases, 1e-6)
    scale = mechanisms.laplace_scale(sensitivity=1, epsilon=share)
    assert f"may spend {share:.4f}" in letter and f"scale of {scale:.0f}" in letter
    assert ps03.largest_share(1.0, 12, 1e-6) == pytest.approx(1 / 12, rel=1e-12)
    assert "scale 12" in letter


def test_pointers_name_headings_of_the_notebook():
    path = ROOT / "notebooks" / "03_composition.ipynb"
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    lines = "".join("".join(cell["source"]) + "\n" for cell in cells
                    if cell["cell_type"] == "markdown").splitlines()
    headings = {line.lstrip("# ") for line in lines if line[:1] == "#"}
    messages = [m.message for exercise in ps03.EXERCISES for m in exercise.mistakes]
    named = [name for message in messages
             for name in re.findall(r'notebook 03, "([^"]+)"', message)]
    assert len(named) > 8
    assert set(named) <= headings


def test_released_notebook_leaves_everything_to_do():
    path = ROOT / "exercises" / NAME / f"{NAME}.ipynb"
    namespace = verify.run_cells(json.loads(path.read_text(encoding="utf-8")))
    for exercise in CODED:
        assert exercise.check(LocalSubject(namespace), seed=SEED).status == NOT_ATTEMPTED


def test_examples_in_the_tasks_are_true():
    assert tried_examples(SOLUTION, PROSE) == 13
