"""Problem set 08: its answers against the package and enumeration, and what a learner reads."""

import itertools
import json
import math
import re
from decimal import Decimal, localcontext
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from coursekit import membership, metrics, neighbours, verify
from coursekit.checks import ps08
from coursekit.checks.exercise import RIGHT, WRONG, LocalSubject
from tests.checks.tasks import tried_examples

ROOT = Path(__file__).resolve().parents[2]
NAME = "ps08-threshold-attacks"
SOLUTION = json.loads((ROOT / "solutions" / NAME / f"{NAME}.ipynb").read_text(encoding="utf-8"))
PROSE = {cell["id"]: "".join(cell["source"]) for cell in SOLUTION["cells"]
         if cell["cell_type"] == "markdown"}
SHOWN = {cell["id"]: "".join("".join(output.get("text", "")) for output in cell["outputs"])
         for cell in SOLUTION["cells"] if cell["cell_type"] == "code"}
SEED = 20_240
CODED = [exercise for exercise in ps08.EXERCISES if exercise.function]


def verdict(exercise, answer, seed=SEED):
    return exercise.check(LocalSubject({exercise.function: answer}), seed=seed)


def answers(exercise):
    return (exercise.right, *exercise.others)


def joined(members, others):
    """Scores and membership as the package takes them."""
    return np.concatenate([members, others]), np.arange(len(members) + len(others)) < len(members)


# 8.1 to 8.3: the package's scores


@pytest.mark.parametrize("seed", range(5))
def test_gap_accuracy_is_that_of_the_packages_gap_score(seed):
    for case in ps08.gap_cases(np.random.default_rng(seed)):
        score = membership.gap_score(np.eye(4)[case["predicted"]], case["labels"])
        gap = metrics.advantage(score, case["member"], threshold=0.5)
        for answer in answers(ps08.GAP):
            assert answer(**case) == pytest.approx((1 + gap) / 2)


def test_some_gaps_are_negative_and_the_lesson_on_the_gap_holds():
    found = [ps08.gap_accuracy(**case) for case in ps08.gap_cases(np.random.default_rng(SEED))]
    assert min(found) < 0.4 and max(found) > 0.7
    assert "a gap of 12 points gives 56%" in ps08.GAP.lesson and 0.5 + 0.12 / 2 == 0.56


def odds_to_fifty_digits(row, label):
    with localcontext() as context:
        context.prec = 50
        sums = [sum(Decimal(z).exp() for z, own in zip(row, label, strict=True) if own == wanted)
                for wanted in (True, False)]
        return float((sums[0] / sums[1]).ln())


@pytest.mark.parametrize("seed", range(5))
def test_log_odds_are_those_of_fifty_digits_and_of_the_package(seed):
    for case in ps08.odds_cases(np.random.default_rng(seed)):
        expected = [odds_to_fifty_digits(row.tolist(), label.tolist())
                    for row, label in zip(case["logits"], case["true"], strict=True)]
        for answer in answers(ps08.LOG_ODDS):
            np.testing.assert_allclose(answer(**case), expected, rtol=1e-12, atol=1e-12)
        one = case["true"].sum(axis=1) == 1
        if one.any():
            np.testing.assert_allclose(
                membership.logit_confidence(case["logits"][one], case["true"][one].argmax(axis=1)),
                np.array(expected)[one], rtol=1e-12, atol=1e-12)


def test_sayings_on_saturation_are_true():
    def lead(z):
        return ps08.softmax(np.array([[float(z), 0.0]]))[0, 0]

    assert lead(37) == 1 > lead(36)  # "from a lead of 37 on"
    assert math.log(1e-45) == pytest.approx(-103.6, abs=0.05)
    with np.errstate(over="ignore"):
        assert np.exp(-800.0) == 0 and np.exp(800.0) == math.inf
    logits = np.array([[30.0, 1, 2], [3.0, 2, 1], [0, 1, -4], [5, 2, 2]])
    signals = [score(logits, np.zeros(4, dtype=int)) for score in (
        membership.logit_confidence, membership.loss_score, membership.true_label_score)]
    assert len({tuple(np.argsort(signal)) for signal in signals}) == 1  # one order
    p = ps08.softmax(np.array([[40.0, 0], [50, 0], [800, 0]]))[:, 0]
    assert np.all(p == 1) and np.all(np.log(p) == 0)  # the chance and a loss taken from it tie


@pytest.mark.parametrize("seed", range(5))
def test_modified_entropy_is_the_packages_and_its_closed_forms(seed):
    case = ps08.mentropy_cases(np.random.default_rng(seed))[-1]
    expected = membership.modified_entropy_score(
        membership.logits_from_probabilities(case["p"]), case["labels"])
    sure, even = np.eye(5)[[0, 0]], np.full((1, 5), 0.2)
    for answer in answers(ps08.MENTROPY):
        np.testing.assert_allclose(answer(**case), expected, rtol=1e-9)
        np.testing.assert_allclose(answer(sure, np.array([0, 1]), 1e-30),
                                   [0, 2 * math.log(1e-30)], atol=1e-12)
        assert answer(even, np.array([3]), 1e-30)[0] == pytest.approx(
            -(0.8 * math.log(5) - 0.8 * math.log(0.8)))


def test_the_slip_puts_sure_wrong_answers_at_infinity_and_cutting_at_one_does_not_help():
    wrong = {mistake.name: mistake.wrong for mistake in ps08.MENTROPY.mistakes}
    sure, labels = np.eye(3)[[0]], np.array([1])
    with np.errstate(all="ignore"):
        assert wrong["guards-the-wrong-array"](sure, labels, 1e-30)[0] == -math.inf
        assert wrong["log-of-zero-is-zero"](sure, labels, 1e-30)[0] == 0
        assert np.log(1 - np.clip(sure, 1e-30, 1 - 1e-30)).min() == -math.inf


# 8.4 to 8.6: the package's metrics


@pytest.mark.parametrize("seed", range(5))
def test_curve_is_the_packages(seed):
    for case in ps08.roc_cases(np.random.default_rng(seed)):
        losses, member = joined(**case)
        curve = metrics.roc(-losses, member)
        for answer in answers(ps08.ROC):
            np.testing.assert_allclose(answer(**case), [curve.fpr, curve.tpr])


def test_curves_have_ties_across_and_infinite_losses_and_straight_pieces():
    cases = ps08.roc_cases(np.random.default_rng(SEED))
    assert sum(bool(np.intersect1d(*case.values()).size) for case in cases) >= 5
    assert any(np.isinf(case["members"]).any() and np.isinf(case["others"]).sum() > 1
               for case in cases)
    assert any(len(ps08.corners_only(*ps08.roc_of_losses(**case))[0])
               < len(ps08.roc_of_losses(**case)[0]) for case in cases)


@pytest.mark.parametrize("seed", range(5))
def test_area_is_the_packages_and_its_error_too_where_nothing_ties(seed):
    for case in ps08.auc_cases(np.random.default_rng(seed)):
        expected = metrics.auc(*joined(**case))
        plain = metrics.auc_null_error(len(case["members"]), len(case["others"]))
        tied = len(np.unique(np.concatenate([*case.values()]))) < sum(map(len, case.values()))
        for answer in answers(ps08.AUC):
            auc, error = answer(**case)
            assert auc == pytest.approx(expected)
            assert error < plain if tied else error == pytest.approx(plain)


@pytest.mark.parametrize("scores", [
    [3, 2, 2, 2, 1], [1, 1, 1, 1, 0, 0, 0], [5, 4, 3, 2, 1, 0], [0, 1], [2, 2, 1, 1, 0, 0, 0, 3]])
def test_error_is_that_of_all_choices_of_members(scores):
    scores = np.array(scores, dtype=float)
    for m in range(1, len(scores)):
        chosen = [np.isin(np.arange(len(scores)), c)
                  for c in itertools.combinations(range(len(scores)), m)]
        for answer in answers(ps08.AUC):
            found = [answer(scores[who], scores[~who]) for who in chosen]
            assert np.mean([auc for auc, _ in found]) == pytest.approx(0.5)
            assert np.std([auc for auc, _ in found]) == pytest.approx(found[0][1])


def test_lesson_on_chance():
    assert metrics.auc_null_error(1000, 1000) == pytest.approx(0.013, abs=5e-4)
    assert "1000 a side and no ties chance strays by 0.013" in ps08.AUC.lesson
    assert 0.02 / metrics.auc_null_error(1000, 1000) < 2


@pytest.mark.parametrize("seed", range(5))
def test_rates_at_an_fpr_are_the_packages_and_refused_where_it_refuses(seed):
    refused = 0
    for case in ps08.low_fpr_cases(np.random.default_rng(seed)):
        try:
            found = metrics.tpr_at_fpr(*joined(case["members"], case["others"]), case["fpr"])
            expected = found.tpr, found.fpr
        except ValueError as error:
            assert "needs at least" in str(error)
            expected, refused = (math.nan, math.nan), refused + 1
        for answer in answers(ps08.TPR_AT):
            np.testing.assert_allclose(answer(**case), expected)
    assert refused == 3


def test_cases_at_an_fpr_are_what_their_comment_says_and_never_hang_on_rounding():
    cases = ps08.low_fpr_cases(np.random.default_rng(SEED))
    reached = [round(float(ps08.tpr_at(**case)[1] * len(case["others"])), 9) for case in cases[:7]]
    assert reached[:3] == [10, 7, 0] and math.isnan(reached[3]) and reached[5:] == [10, 10]
    assert 9.9 < cases[3]["fpr"] * len(cases[3]["others"]) < 10
    assert ps08.tpr_at(**cases[2]) == (0, 0)
    for seed in range(30):
        for case in ps08.low_fpr_cases(np.random.default_rng(seed)):
            n, fpr = len(case["others"]), case["fpr"]
            k = np.arange(n + 1)
            assert np.array_equal(k / n <= fpr, k <= math.floor(fpr * n + 1e-9))
            assert np.array_equal(k / n <= fpr, k <= fpr * n)
            assert (n < 10 / fpr) == (n * fpr < 10)


# 8.7


@pytest.mark.parametrize("seed", range(5))
def test_precision_limits_are_made_of_the_packages(seed):
    for case in ps08.precision_cases(np.random.default_rng(seed)):
        tpr = metrics.clopper_pearson(case["found"], case["members"], case["alpha"] / 2)
        fpr = metrics.clopper_pearson(case["alarms"], case["others"], case["alpha"] / 2)
        expected = [metrics.posterior(tpr[i], fpr[1 - i], case["prior"]) for i in (0, 1)]
        for answer in answers(ps08.PRECISION):
            np.testing.assert_allclose(answer(**case), expected, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize(("tpr", "fpr"), [(0.3, 0.02), (0.05, 0.05), (0.8, 0.3), (0.02, 0.6)])
def test_limits_miss_the_precision_as_rarely_as_promised(tpr, fpr):
    m, n, prior, alpha = 25, 30, 0.2, 0.1
    truth, missed = metrics.posterior(tpr, fpr, prior), 0.0
    for k, j in itertools.product(range(m + 1), range(n + 1)):
        low, high = ps08.precision_limits(k, m, j, n, prior, alpha)
        if not low <= truth <= high:
            missed += stats.binom.pmf(k, m, tpr) * stats.binom.pmf(j, n, fpr)
    assert missed <= alpha


def test_lesson_on_precision():
    lesson = ps08.PRECISION.lesson
    assert round(1 / metrics.posterior(0.76, 0.24, 0.01)) == 32 and "person in 32" in lesson
    assert ps08.precision_limits(10, 1000, 0, 1000, 0.01, 0.05)[0] < 0.01
    assert "fewer than one in a hundred" in lesson


# 8.8


@pytest.mark.parametrize("seed", range(5))
def test_least_epsilon_is_where_the_packages_region_begins_to_hold(seed):
    for case in ps08.epsilon_cases(np.random.default_rng(seed)):
        def holds(epsilon, case=case):
            low, high = neighbours.tpr_bounds(case["fpr"], epsilon=epsilon, delta=case["delta"])
            return np.all((low - 1e-12 <= case["tpr"]) & (case["tpr"] <= high + 1e-12))

        for answer in answers(ps08.EPSILON):
            epsilon = answer(**case)
            if epsilon == math.inf:
                assert not holds(100.0)
            else:
                assert holds(epsilon) and (epsilon == 0 or not holds(epsilon - 1e-6))


def test_points_of_an_attack_on_a_mechanism_never_refute_its_promise():
    # Randomised response, and the Gaussian mechanism at the epsilon of each of its deltas.
    coin = math.e / (1 + math.e)
    assert ps08.least_epsilon(np.array([1 - coin]), np.array([coin]), 0.0) == pytest.approx(1)
    x = np.linspace(0.001, 0.999, 200)
    y = metrics.gaussian_tradeoff(x, mu=1.0)
    for epsilon in (0.5, 1.0, 2.0):
        delta = stats.norm.cdf(0.5 - epsilon) - math.exp(epsilon) * stats.norm.cdf(-0.5 - epsilon)
        assert ps08.least_epsilon(x, y, delta) <= epsilon
        assert ps08.least_epsilon(x, y, delta) > 0.98 * epsilon


def test_cases_of_epsilon_meet_every_line_and_both_ends():
    cases = ps08.epsilon_cases(np.random.default_rng(SEED))
    found = [ps08.least_epsilon(**case) for case in cases]
    assert math.inf in found and 0 in found
    with np.errstate(all="ignore"):
        alone = [[ps08.epsilon_with(lines=[line])(**case) for line in ps08.LINES]
                 for case in cases[:5]]
    best = {int(np.argmax(row)) for row in np.nan_to_num(alone, nan=0)}
    assert best == {0, 1, 2, 3}


# Wrong answers that nobody listed


def case_1(right):
    """An answer that knows the example of the task only."""
    return lambda **case: right


def above_the_quantile(method):
    """Who scores above a quantile of the non-members: right where no point lies between."""
    def wrong(members, others, fpr):
        if len(others) < 10 / fpr:
            return math.nan, math.nan
        threshold = np.quantile(others, 1 - fpr, method=method)
        return np.mean(members > threshold), np.mean(others > threshold)
    return wrong


def above_the_place(rounded):
    """The first non-member too many stands at floor(fpr n): right only if that is this place."""
    def wrong(members, others, fpr):
        if len(others) < 10 / fpr:
            return math.nan, math.nan
        too_many = np.sort(others)[::-1][rounded(round(fpr * len(others), 9))]
        return np.mean(members > too_many), np.mean(others > too_many)
    return wrong


def at_scores_of_members(members, others, fpr):
    if len(others) < 10 / fpr:
        return math.nan, math.nan
    rates = [(np.mean(members >= t), np.mean(others >= t)) for t in np.unique(members)]
    return max(((y, x) for y, x in rates if x <= fpr), default=(0.0, 0.0))


UNLISTED = {
    "8.1": [lambda predicted, labels, member: ps08.gap_accuracy(predicted, labels, member) * 1.01,
            lambda predicted, labels, member: ps08.gap_accuracy(predicted, labels, member[::-1]),
            case_1(0.8)],
    "8.2": [lambda logits, true: ps08.log_odds(logits, true) * 1.001,
            lambda logits, true: ps08.log_odds(logits[:, ::-1], true),
            lambda logits, true: np.clip(ps08.log_odds(logits, true), -500, 500),
            lambda logits, true: ps08.log_sum(np.where(true, logits, -1e3), true | True)
            - ps08.log_sum(np.where(true, -1e3, logits), true | True),
            lambda logits, true: ps08.in_the_precision_given(logits, true).astype(float) + 1e-7,
            lambda logits, true: ps08.log_odds(logits.astype(np.float16), true),
            lambda logits, true: ps08.log_odds(logits, true) / math.log(2)],
    "8.3": [lambda p, labels, floor: ps08.mentropy_score(p, labels, 1e-30),
            lambda p, labels, floor: ps08.mentropy_score(p, labels, floor) / math.log(2),
            lambda p, labels, floor: ps08.mentropy_score(p, labels, floor) / p.shape[1],
            lambda p, labels, floor: ps08.mentropy_score(np.maximum(p, 1e-5), labels, floor),
            lambda p, labels, floor: ps08.mentropy_score(p, labels[::-1], floor),
            ps08.mentropy_with(logs=lambda p, floor: (np.log(p + floor), np.log(1 - p + floor))),
            ps08.mentropy_with(logs=lambda p, floor: [np.log(np.where(x == 0, floor, x))
                                                      for x in (p, 1 - p)]),
            lambda p, labels, floor: ps08.mentropy_score(np.maximum(p, floor), labels, floor),
            lambda p, labels, floor: ps08.mentropy_score(np.clip(p, floor, 1 - floor), labels,
                                                         floor)],
    "8.4": [ps08.roc_with(lambda fpr, tpr: (fpr[1:-1], tpr[1:-1])),
            ps08.roc_with(lambda fpr, tpr: (fpr, np.minimum(1, 1.01 * tpr))),
            ps08.roc_with(lambda fpr, tpr: (np.append(fpr, 1), np.append(tpr, 1))),
            lambda members, others: ps08.roc_of_losses(members[np.isfinite(members)], others),
            lambda members, others: ps08.roc_of_losses(members.round(8), others.round(8))],
    "8.5": [ps08.auc_with(error=lambda *groups: 1.05 * ps08.null_error(*groups)),
            ps08.auc_with(error=ps08.error_with(ties=lambda t: t**2 - t)),
            ps08.auc_with(error=lambda *groups: ps08.null_error(*groups) * math.sqrt(2)),
            lambda members, others: ps08.auc_and_error(members, others)[::-1],
            lambda members, others: ps08.auc_and_error(members.round(5), others.round(5)),
            ps08.auc_with(auc=lambda above, equal: above + 0.45 * equal),
            ps08.auc_with(error=ps08.error_with(counted=lambda members, others: others))],
    "8.6": [lambda members, others, fpr: ps08.tpr_at(members, others, 0.05),
            lambda members, others, fpr: ps08.tpr_at(members, others, 1.1 * fpr),
            lambda members, others, fpr: ps08.tpr_at(others, members, fpr),
            lambda members, others, fpr: np.nan_to_num(ps08.tpr_at(members, others, fpr)),
            ps08.tpr_with(ps08.last_allowed, refuse=lambda m, n, fpr: n * fpr <= 10),
            ps08.tpr_with(ps08.last_allowed, refuse=lambda m, n, fpr: n * fpr < 9.9),
            above_the_quantile("linear"), above_the_quantile("lower"),
            above_the_place(round), above_the_place(math.ceil), at_scores_of_members],
    "8.7": [lambda found, members, alarms, others, prior, alpha:
            ps08.precision_limits(found, members, alarms, others, prior, 0.05),
            lambda found, members, alarms, others, prior, alpha:
            ps08.precision_limits(found, members, alarms, others, 0.01, alpha),
            lambda found, members, alarms, others, prior, alpha:
            ps08.precision_limits(found, members, alarms, others, prior, 0.9 * alpha),
            lambda found, members, alarms, others, prior, alpha:
            ps08.precision_limits(alarms, others, found, members, prior, alpha),
            lambda **case: ps08.precision_limits(**case)[::-1]],
    "8.8": [lambda fpr, tpr, delta: ps08.least_epsilon(fpr, tpr, 0.9 * delta),
            lambda fpr, tpr, delta: ps08.least_epsilon(fpr, tpr, delta) * 1.001,
            lambda fpr, tpr, delta: ps08.least_epsilon(fpr[:1], tpr[:1], delta),
            lambda fpr, tpr, delta: min(20, ps08.least_epsilon(fpr, tpr, delta)),
            ps08.epsilon_with(lines=ps08.LINES[:3]), ps08.epsilon_with(lines=ps08.LINES[1:]),
            ps08.epsilon_with(log=np.log2)],
}


@pytest.mark.parametrize(("key", "wrong"), [
    (key, wrong) for key, many in UNLISTED.items() for wrong in many])
def test_unlisted_mistakes_are_refused_without_a_name_and_shown(key, wrong):
    (exercise,) = (exercise for exercise in CODED if exercise.key == key)
    told = verdict(exercise, wrong)
    assert (told.status, told.mistake) == (WRONG, None)
    assert "it should give" in told.message


@pytest.mark.parametrize("exercise", CODED, ids=lambda exercise: exercise.key)
@pytest.mark.parametrize("strange", ["no", {"a": 1}, [[1], [2, 3]], object(), np.array(["x"])])
def test_strange_answers_are_wrong_and_no_crash(exercise, strange):
    assert verdict(exercise, lambda **case: strange).status == WRONG


def test_answers_may_be_lists_tuples_or_arrays():
    for exercise in CODED:
        for form in (lambda answer: np.asarray(answer).tolist(), np.asarray):
            told = verdict(exercise, lambda form=form, right=exercise.right, **case:
                           form(right(**case)))
            assert told.status == RIGHT, told.message


def test_logits_overwritten_on_the_way_are_told():
    def careless(logits, true):
        right = ps08.log_odds(logits, true)
        logits[true] = -np.inf
        return right

    assert verdict(ps08.LOG_ODDS, careless).mistake == "changes-its-input"


def test_hidden_inputs_vary_with_the_seed():
    for exercise in CODED:
        (part,) = exercise.parts
        one, two = (part.cases(np.random.default_rng(seed)) for seed in (1, 2))
        assert str([*map(exercise.right, *zip(*(c.values() for c in one), strict=True))]) != str(
            [*map(exercise.right, *zip(*(c.values() for c in two), strict=True))])


# What a learner reads


def test_coded_exercises_know_many_mistakes_and_names_are_new():
    assert all(9 <= len(exercise.mistakes) <= 12 for exercise in CODED)
    elsewhere = " ".join(path.read_text(encoding="utf-8") for path in
                         (ROOT / "solutions").glob("ps*/*.ipynb") if path.stem != NAME)
    assert not [e.function for e in CODED if f"def {e.function}(" in elsewhere]


def test_examples_in_the_tasks_are_true():
    assert tried_examples(SOLUTION, PROSE) == 26


def test_letter_to_the_board_has_its_numbers_right():
    letter, rubric = PROSE["answer-8-9"], ps08.VERDICTS.rubric
    a, b = SHOWN["report-a"], SHOWN["report-b"]
    coin = math.sqrt(0.25 / 50_000)
    assert "0.224 points" in letter and "0.224 points" in rubric and round(100 * coin, 3) == 0.224
    assert "3.6 of them" in letter and round(0.008 / coin, 1) == 3.6
    assert "3.6 of them" in a and "3.6 standard errors" in rubric
    assert (400 / 25_000 + 1) / 2 == 0.508
    allowed = (1 + neighbours.largest_advantage(2.5)) / 2
    assert round(allowed, 3) == 0.924 and "92.4%" in letter and "92.4%" in a and "92%" in rubric
    for text in (f"{0.76 * 0.76:.3f}", f"{0.24 * 0.76 + 0.76:.3f}"):  # the two extreme curves
        assert text in letter and text in b
    assert "0.58 to 0.94" in rubric
    low, high = ps08.precision_limits(380, 500, 120, 500, 0.01, 0.05)
    assert f"between {low:.1%} and {high:.1%}" in letter and f"{low:.1%} to {high:.1%}" in b
    assert f"{metrics.posterior(0.76, 0.24, 0.01):.1%} are" in letter
    assert 10 / 0.01 == 1000 and "at least 1000 are needed" in letter


def test_readings_of_the_afterword_are_those_of_its_cells():
    rows = np.array(re.findall(r"gap ([\d.]+); odds: AUC [\d.]+, (\d+) errors, TPR ([\d.]+); "
                               r"mentr: AUC [\d.]+, (\d+) errors, TPR ([\d.]+)",
                               SHOWN["attacks"]), dtype=float)
    assert rows.shape == (5, 5)
    gap, errors, tpr = 100 * rows[:, 0], rows[:, [1, 3]], 100 * rows[:, [2, 4]]
    reading = PROSE["attacks-reading"]
    assert f"about {gap.min():.0f} to {gap.max():.0f} people" in reading
    assert f"{errors.min():.0f} to {errors.max():.0f} standard errors" in reading
    assert f"find {tpr.min():.0f} to {tpr.max():.0f} members" in reading
    carried = np.array(re.findall(r"alarms (\d+), precision ([\d.]+) to ([\d.]+)",
                                  SHOWN["carried"]), dtype=float)
    alarms, low, high = carried.T
    reading = PROSE["carried-reading"]
    assert f"got {alarms.min():.0f} to {alarms.max():.0f}:" in reading
    assert f"at least {100 * low.min():.1f} to {100 * low.max():.1f}% are" in reading
    assert f"reach {100 * high.min():.0f} to {100 * high.max():.0f}%" in reading
    bounds = re.findall(r"the counted curve: (\S+); .* limits: ([\d.]+)", SHOWN["epsilon"])
    assert [whole for whole, _ in bounds] == ["inf"] * 5
    bounds = sorted(float(bound) for _, bound in bounds)
    assert f"below {bounds[0]:.2f} to {bounds[-1]:.2f}, with" in PROSE["epsilon-reading"]
    assert "error of 0.258" in PROSE["reports-intro"] and "deviation 0.258" in SHOWN["enumerated"]


def test_a_counted_curve_refutes_everything_even_on_a_model_that_knows_nothing():
    rng = np.random.default_rng(SEED)
    for _ in range(20):
        fpr, tpr = ps08.roc_of_losses(*rng.normal(size=(2, 1000)))
        assert ps08.least_epsilon(fpr, tpr, 1e-5) == math.inf


def test_afterword_works_with_the_learners_own_functions():
    cells = {cell["id"]: "".join(cell["source"]) for cell in SOLUTION["cells"]}
    assert "delete `ours.`" in PROSE["afterword"]
    namespace = verify.run_cells(SOLUTION)
    before = namespace["counts"], namespace["bound"], namespace["low"]
    used = set()
    for name in ("attacks", "carried", "epsilon", "enumerated", "report-b"):
        used |= set(re.findall(r"ours\.(\w+)", cells[name]))
        exec(cells[name].replace("ours.", ""), namespace)
    assert used == {exercise.function for exercise in CODED}
    assert namespace["counts"] == before[0]
    assert (namespace["bound"], namespace["low"]) == (pytest.approx(before[1]), before[2])
