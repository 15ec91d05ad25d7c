"""Problem set 09: its answers against the package and closed forms, and what a learner reads."""

import contextlib
import io
import itertools
import json
import math
import re
from pathlib import Path

import numpy as np
import pytest
from scipy import special, stats

from coursekit import ensemble, membership, metrics, verify
from coursekit.checks import ps09
from coursekit.checks.exercise import CRASHED, RIGHT, WRONG, LocalSubject
from tests.checks.tasks import tried_examples

ROOT = Path(__file__).resolve().parents[2]
NAME = "ps09-shadow-models"
SOLUTION = json.loads((ROOT / "solutions" / NAME / f"{NAME}.ipynb").read_text(encoding="utf-8"))
SOURCES = {cell["id"]: "".join(cell["source"]) for cell in SOLUTION["cells"]}
PROSE = {cell["id"]: "".join(cell["source"]) for cell in SOLUTION["cells"]
         if cell["cell_type"] == "markdown"}
SHOWN = {cell["id"]: "".join("".join(output.get("text", "")) for output in cell["outputs"])
         for cell in SOLUTION["cells"] if cell["cell_type"] == "code"}
BEFORE_AFTERWORD = {"cells": SOLUTION["cells"][: list(SOURCES).index("afterword")]}
SEED = 20_240


def verdict(exercise, answer, seed=SEED):
    return exercise.check(LocalSubject({exercise.function: answer}), seed=seed)


def answers(exercise):
    return (exercise.right, *exercise.others)


# 9.1


def test_halves_are_exact_and_an_odd_record_is_the_seconds():
    for answer in answers(ps09.PAIRED_HALVES):
        for records in (10, 11):
            found = np.asarray(answer(6, records, np.random.default_rng(SEED)), dtype=bool)
            assert np.all(found[::2].sum(axis=1) == 5) and np.all(found.sum(axis=0) == 3)
            assert np.array_equal(found[1::2], ~found[::2])


def test_one_call_of_the_package_is_no_answer():
    def halves(models, records, rng):
        return ensemble.paired_membership(models, records, rng=rng)

    def one_more(models, records, rng):
        return halves(models, records + records % 2, rng)[:, :records]

    def fixed(**case):
        return membership.lira_online(*case.values(), variance="fixed")

    for exercise, wrong in ((ps09.PAIRED_HALVES, halves), (ps09.PAIRED_HALVES, one_more),
                            (ps09.ONE_SIDED, lambda **case: membership.lira_offline(
                                *case.values())), (ps09.FIXED_SPREAD, fixed)):
        assert verdict(exercise, wrong).status in (WRONG, CRASHED)
    assert ps09.halves_fault(halves(6, 10, np.random.default_rng(SEED)), 6, 10) is None
    assert verdict(ps09.FIXED_SPREAD, fixed).mistake == "divides-by-number"


@pytest.mark.parametrize(("given", "name"), [
    (lambda half: np.concatenate([half, ~half[::-1]]), "complements-at-the-end"),
    (lambda half: np.where(ps09.interleaved(half, ~half), 1, -1), None),
    (lambda half: ps09.interleaved(half, ~half) * 0.5, None),
    (lambda half: ps09.interleaved(~half, half), "larger-half-first")])
def test_wrong_designs_are_told_what_they_are(given, name):
    half = ps09.some_halves(8, 61, np.random.default_rng(SEED))
    found, detail = ps09.halves_fault(given(half), 16, 61)
    assert found == name and (name or "True or False" in detail)


def test_halves_of_four_records_are_the_six_codes_and_all_as_likely():
    halves = np.array([row for row in itertools.product((0, 1), repeat=4) if sum(row) == 2])
    assert sorted(ps09.which_half(halves).tolist()) == list(range(6))
    assert ps09.which_half(np.array([[1, 1, 1, 0], [0, 0, 0, 0]])).tolist() == [-1, -1]
    for answer in answers(ps09.PAIRED_HALVES):
        rng = np.random.default_rng(SEED)
        drawn = np.array([answer(2, 4, rng)[0] for _ in range(3000)])
        counts = np.bincount(ps09.which_half(drawn), minlength=6)
        assert stats.chisquare(counts).pvalue > 1e-9


@pytest.mark.parametrize(("wrong", "codes"), [
    (ps09.one_of_each_neighbour, [5, 6, 9, 10]), (ps09.rotated_blocks, [3, 6, 9, 12])])
def test_listed_laws_of_halves_are_those_of_the_mistakes(wrong, codes):
    drawn = ps09.which_half(wrong(3000, 4, np.random.default_rng(SEED)))
    expected = np.zeros(6)
    expected[ps09.which_codes(codes)] = 3000 / len(codes)
    counts = np.bincount(drawn, minlength=6)
    assert np.all(counts[expected == 0] == 0)
    assert stats.chisquare(counts[expected > 0], expected[expected > 0]).pvalue > 1e-9


def test_unlisted_halves_are_refused():
    def first_always_has_record_0(models, records, rng):
        first = ps09.some_halves(models // 2, records, rng)
        first = np.where(first[:, :1], first, ~first)
        return ps09.interleaved(first, ~first)

    def second_pair_follows_the_first(models, records, rng):
        first = ps09.some_halves(models // 2, records, rng)
        first[1::2] = ~first[::2][:len(first[1::2])]
        return ps09.interleaved(first, ~first)

    for wrong in (first_always_has_record_0, second_pair_follows_the_first):
        assert verdict(ps09.PAIRED_HALVES, wrong).status == WRONG


@pytest.mark.parametrize("strange", [
    "no", 3, [[0, 1], [1]], np.zeros((16, 60, 1)), {"first": [0] * 60}, np.full((16, 60), None),
    np.zeros((60, 16), bool), np.full((16, 60), "x")])
def test_strange_halves_are_told_their_form(strange):
    told = verdict(ps09.PAIRED_HALVES, lambda models, records, rng: strange)
    assert (told.status, told.mistake) == (WRONG, None)
    assert "rows" in told.message and "columns" in told.message


def test_sizes_of_coin_tosses_scatter_as_the_lesson_says():
    sizes = np.random.default_rng(SEED).binomial(600, 0.5, 20_000)
    assert sizes.std() == pytest.approx(math.sqrt(600) / 2, rel=0.05)


# 9.2 to 9.5: the package's LiRA


@pytest.mark.parametrize("seed", range(10))
def test_own_spreads_and_ratio_together_are_the_packages_online_attack(seed):
    for case in ps09.fixed_cases(np.random.default_rng(seed)):
        shadows = case["shadow_signals"], case["shadow_membership"]
        expected = membership.lira_online(case["signal"], *shadows)
        for moments, ratio in zip(answers(ps09.IN_AND_OUT), answers(ps09.LIRA), strict=True):
            parts = map(np.asarray, moments(*shadows))
            np.testing.assert_allclose(ratio(case["signal"], *parts), expected, rtol=1e-9)


@pytest.mark.parametrize("seed", range(10))
def test_one_sided_score_is_the_packages_offline_attack_but_for_one_less(seed):
    for case in ps09.offline_cases(np.random.default_rng(seed)):
        count = (~case["shadow_membership"]).sum(axis=0)
        expected = membership.lira_offline(*case.values()) * np.sqrt((count - 1) / count)
        for answer in answers(ps09.ONE_SIDED):
            np.testing.assert_allclose(answer(**case), expected, rtol=1e-9)


def within(groups):
    """Root of the mean square within groups of an analysis of variance."""
    return math.sqrt(sum(((group - group.mean()) ** 2).sum() for group in groups)
                     / sum(len(group) - 1 for group in groups))


@pytest.mark.parametrize("seed", range(10))
def test_shared_spread_is_that_within_the_records(seed):
    for case in ps09.fixed_cases(np.random.default_rng(seed)):
        signals, inside = case["shadow_signals"].T, case["shadow_membership"].T
        expected = 0.0
        for sign, side in ((1, inside), (-1, ~inside)):
            groups = [row[these] for row, these in zip(signals, side, strict=True)]
            law = stats.norm([group.mean() for group in groups], within(groups))
            expected = expected + sign * law.logpdf(case["signal"])
        for answer in answers(ps09.FIXED_SPREAD):
            np.testing.assert_allclose(answer(**case), expected, rtol=1e-9)


def test_divisors_leave_the_order_to_paired_shadows():
    rng = np.random.default_rng(SEED)
    case = {"signal": rng.normal(size=50), "shadow_signals": rng.normal(size=(8, 50)),
            "shadow_membership": ps09.paired_halves(8, 50, rng)}
    for ours, theirs in ((ps09.one_sided_score, membership.lira_offline(*case.values())),
                         (ps09.fixed_spread_score,
                          membership.lira_online(*case.values(), variance="fixed"))):
        assert np.array_equal(np.argsort(ours(**case)), np.argsort(theirs))
        assert not np.allclose(ours(**case), theirs)


def test_cases_hold_unequal_numbers_of_shadows_and_blanks():
    rng = np.random.default_rng(SEED)
    for case in [*ps09.fixed_cases(rng)[1:], *ps09.offline_cases(rng)[2:]]:
        counts = case["shadow_membership"].sum(axis=0)
        assert len(set(counts.tolist())) > 1 and counts.min() >= 2
        assert (len(case["shadow_membership"]) - counts).min() >= 2
    assert any(np.isnan(case["shadow_signals"]).any() for case in ps09.offline_cases(rng))


def test_lesson_on_spreads_of_few():
    rng = np.random.default_rng(SEED)
    for n, said in ((4, "0.80"), (2, "0.56")):
        mean = math.sqrt(2 / n) * math.exp(math.lgamma(n / 2) - math.lgamma((n - 1) / 2))
        assert f"{mean:.2f}" == said and said in ps09.IN_AND_OUT.lesson
        assert rng.normal(size=(100_000, n)).std(axis=1).mean() == pytest.approx(mean, abs=0.01)


def test_lesson_on_a_wider_out():
    x = np.linspace(0, 60, 601)
    equal, wider = (ps09.lira_log_ratio(x, 3.0, 1.0, 0.0, spread) for spread in (1.0, 2.0))
    assert np.all(np.diff(equal) > 0)
    assert 0 < np.argmax(wider) < 600 and np.all(np.diff(wider[np.argmax(wider):]) < 0)
    assert wider[-1] < 0


def test_lesson_on_one_side_and_two():
    one = stats.norm.cdf(1.5 / math.sqrt(2))
    two = one**2 + (1 - one) ** 2
    assert f"{one:.3f}" in ps09.ONE_SIDED.lesson and f"{two:.3f}" in ps09.ONE_SIDED.lesson
    rng, records, models = np.random.default_rng(SEED), 4000, 400  # shadows enough to know OUT
    middle, inside = rng.normal(0, 3, records), np.arange(records) % 2 == 0
    shadows = middle + rng.normal(size=(models, records)), np.zeros((models, records), dtype=bool)
    signal = middle + 1.5 * inside + rng.normal(size=records)
    wrong = {mistake.name: mistake.wrong for mistake in ps09.ONE_SIDED.mistakes}
    for score, expected in ((ps09.one_sided_score, one), (wrong["two-sided-density"], two)):
        assert metrics.auc(score(signal, *shadows), inside) == pytest.approx(expected, abs=0.04)


def test_shared_means_make_a_threshold_and_the_logs_of_the_spreads_change_no_order():
    rng, records = np.random.default_rng(SEED), 4000
    inside = np.arange(records) % 2 == 0
    known = np.arange(16)[:, None] % 2 == np.zeros(records)
    middle, width = rng.normal(0, 3, records), rng.uniform(0.5, 1.5, records)
    def draw(members):
        return middle + 1.5 * members + width * rng.normal(size=np.shape(members))
    signal, signals = draw(inside), draw(known)
    wrong = {mistake.name: mistake.wrong for mistake in ps09.FIXED_SPREAD.mistakes}
    right = metrics.auc(ps09.fixed_spread_score(signal, signals, known), inside)
    shared = wrong["one-mean-for-all"](signal, signals, known)
    assert metrics.auc(shared, inside) == pytest.approx(metrics.auc(signal, inside), abs=0.02)
    assert metrics.auc(signal, inside) < right - 0.1
    forgotten = wrong["spread-term-forgotten"](signal, signals, known)
    assert metrics.auc(forgotten, inside) == pytest.approx(right)  # moves all scores alike


# 9.6


@pytest.mark.parametrize("seed", range(5))
def test_attack_table_is_a_row_for_each_shadow_and_record(seed):
    for case in ps09.table_cases(np.random.default_rng(seed)):
        logits, y, known, target = case.values()
        p = special.softmax(logits, axis=2)
        expected = [(np.sort(p[i, j])[::-1], y[j], known[i, j]) for i in range(len(logits))
                    for j in range(len(y)) if i != target]
        for answer in answers(ps09.ATTACK_TABLE):
            rows, classes, labels = answer(**case)
            np.testing.assert_allclose(rows, [row for row, *_ in expected], atol=1e-12)
            assert np.all(np.asarray(classes) == [c for _, c, _ in expected])
            assert np.all(np.asarray(labels) == [label for *_, label in expected])


def test_nothing_of_the_target_is_in_the_table():
    case = ps09.table_cases(np.random.default_rng(SEED))[2]
    poisoned = {**case, "logits": case["logits"].copy(), "membership": case["membership"].copy()}
    poisoned["logits"][case["target"]] = np.nan
    poisoned["membership"][case["target"]] ^= True
    for answer in answers(ps09.ATTACK_TABLE):
        for before, after in zip(answer(**case), answer(**poisoned), strict=True):
            np.testing.assert_array_equal(before, after)


def test_table_serves_the_packages_features():
    case = ps09.table_cases(np.random.default_rng(SEED))[2]
    rows, *_ = ps09.attack_table(**case)
    shadows = np.delete(case["logits"], case["target"], axis=0)
    theirs = membership.ShadowAttack(features="top-3")._features(shadows, case["y"])
    np.testing.assert_allclose(np.log(rows[:, :3]), theirs.reshape(-1, 3))


# 9.7


@pytest.mark.parametrize("seed", range(5))
def test_threshold_and_rates_are_the_packages(seed):
    for case in ps09.rates_cases(np.random.default_rng(seed)):
        others = case["shadow_scores"][~case["shadow_membership"]]
        for answer in answers(ps09.SHADOW_RATES):
            threshold, tpr, fpr = answer(**case)
            assert np.mean(others > threshold) <= case["fpr"]
            below = others[others < threshold]
            assert not below.size or np.mean(others > below.max()) > case["fpr"]
            above = np.nextafter(threshold, np.inf)
            at = metrics.rates(case["scores"], case["membership"], threshold=above)
            assert (tpr, fpr) == (pytest.approx(at.tpr), pytest.approx(at.fpr))
            if case["fpr"] * len(others) >= 1:
                found = membership.Threshold(fpr=case["fpr"]).fit(
                    case["shadow_scores"], case["shadow_membership"])
                assert found.values[None] == above


def test_some_share_is_met_exactly_and_lost_in_floating_point():
    cases = ps09.rates_cases(np.random.default_rng(SEED))
    counts = [(~case["shadow_membership"]).sum() for case in cases]
    assert (cases[1]["fpr"], counts[1]) == (0.29, 100) and 0.29 * 100 < 29
    assert np.count_nonzero(ps09.right_threshold(np.arange(100.0), 0.29) < np.arange(100)) == 29
    for case in cases[1:]:
        threshold, *_ = ps09.shadow_rates(**case)
        for side in (case["membership"], ~case["membership"]):
            assert threshold in case["scores"][side]
    assert any(len(np.unique(case["shadow_scores"])) < 20 for case in cases[1:])


# 9.8


@pytest.mark.parametrize("seed", range(5))
def test_rmia_has_the_order_and_the_beaten_strangers_of_the_package(seed):
    for case in ps09.rmia_cases(np.random.default_rng(seed)):
        logs = [np.log(case[name]) for name in ("p", "shadow_p", "population_p",
                                                "population_shadow_p")]
        theirs = membership.rmia(logs[0], logs[1], case["shadow_membership"], *logs[2:],
                                 a=case["a"])
        n = len(case["population_p"])
        for answer in answers(ps09.RMIA):
            scores = np.asarray(answer(**case))
            assert np.array_equal(np.argsort(scores), np.argsort(theirs))
            np.testing.assert_array_equal(np.floor(scores * (n + 1)), np.floor(theirs * (n + 1)))


def test_lesson_on_the_order_and_the_scale_of_ratios():
    case = {**ps09.rmia_cases(np.random.default_rng(SEED))[2], "a": 1.0}
    outside = np.nanmean(np.where(case["shadow_membership"], np.nan, case["shadow_p"]), axis=0)
    scores, n = ps09.rmia_score(**case), len(case["population_p"])
    assert np.array_equal(np.argsort(scores), np.argsort(case["p"] / outside))
    larger = ps09.rmia_score(**case | {name: 10 * case[name] for name in ("p", "population_p")})
    np.testing.assert_array_equal(np.floor(larger * (n + 1)), np.floor(scores * (n + 1)))


def test_some_record_beats_all_and_one_is_level():
    case = ps09.rmia_cases(np.random.default_rng(SEED))[0]
    assert [math.floor(5 * score) for score in ps09.rmia_score(**case)] == [3, 1, 3]
    for case in ps09.rmia_cases(np.random.default_rng(SEED))[1:]:
        n = len(case["population_p"])
        assert math.floor(max(ps09.rmia_score(**case)) * (n + 1)) >= n - 2


# Wrong answers that nobody listed


def visible_only(exercise, cases):
    """Right on the example of the task, the first of the cases, and wrong on all others."""
    shown = cases(np.random.default_rng(0))[0]

    def wrong(**case):
        alike = all(np.array_equal(case[name], shown[name], equal_nan=name != "y"
                                   and np.asarray(shown[name]).dtype.kind == "f")
                    for name in shown)
        return exercise.right(**shown) if alike else np.zeros(3)
    return wrong


def tenth(exercise, name, factor=1.1):
    return lambda **case: exercise.right(**case | {name: np.asarray(case[name]) * factor})


UNLISTED = {
    "9.2": [lambda signals, membership: np.array(ps09.in_and_out(signals, membership)) * 1.01,
            visible_only(ps09.IN_AND_OUT, ps09.sides_cases),
            ps09.sides_with(spread=lambda kept, axis: np.nanmax(kept, axis)
                            - np.nanmin(kept, axis))],
    "9.3": [tenth(ps09.LIRA, name) for name in ("signal", "mean_in", "spread_in", "mean_out",
                                                "spread_out")] + [
        lambda **case: np.clip(ps09.lira_log_ratio(**case), -50, 50),
        visible_only(ps09.LIRA, ps09.ratio_cases)],
    "9.4": [tenth(ps09.ONE_SIDED, "signal"), ps09.offline_with(lambda z, s: 1.1 * z),
            ps09.offline_with(lambda z, s: np.minimum(z, 8)),
            ps09.offline_with(mean=lambda s, m: s.mean(axis=0)),
            ps09.offline_with(mean=lambda s, m: np.nanmedian(ps09.masked(s, ~m), axis=0)),
            visible_only(ps09.ONE_SIDED, ps09.offline_cases)],
    "9.5": [tenth(ps09.FIXED_SPREAD, "signal"),
            ps09.fixed_with(lambda s, m: np.multiply(1.1, ps09.pooled(s, m))),
            lambda **case: np.asarray(ps09.fixed_spread_score(**case)) / math.log(2),
            visible_only(ps09.FIXED_SPREAD, ps09.fixed_cases)],
    "9.6": [ps09.table_with(lambda z: ps09.falling(special.softmax(0.9 * z, axis=-1))),
            ps09.table_with(lambda z: np.round(ps09.falling(special.softmax(z, axis=-1)), 4)),
            lambda **case: (*ps09.attack_table(**case)[:2], ~ps09.attack_table(**case)[2]),
            ps09.table_with(lambda z: ps09.falling(ps09.overflowing(
                z - z.max(axis=(1, 2), keepdims=True)))),
            ps09.table_with(lambda z: ps09.falling(special.softmax(np.clip(z, -700, 700), -1))),
            lambda **case: ps09.attack_table(**case | {"y": case["y"][::-1]})],
    "9.7": [lambda **case: ps09.shadow_rates(**case | {"fpr": 0.9 * case["fpr"]}),
            lambda **case: ps09.shadow_rates(**case | {"fpr": 0.1}),
            *(ps09.rates_with(cut=lambda others, f, method=method: np.quantile(
                others, 1 - f, method=method)) for method in ("lower", "higher", "weibull")),
            lambda **case: np.multiply([1, 1.01, 1], ps09.shadow_rates(**case)),
            lambda **case: np.multiply([1, 1, 1.1], ps09.shadow_rates(**case)),
            lambda **case: ps09.shadow_rates(**case | {
                "shadow_scores": case["shadow_scores"][:1],
                "shadow_membership": case["shadow_membership"][:1]})],
    "9.8": [tenth(ps09.RMIA, "p"), tenth(ps09.RMIA, "population_p"),
            lambda **case: ps09.rmia_score(**case | {"a": 0.9 * case["a"]}),
            ps09.rmia_with(score=lambda beaten, r, n: (beaten + 0.5) / (n + 1)),
            visible_only(ps09.RMIA, ps09.rmia_cases)],
}


@pytest.mark.parametrize(("key", "wrong"), [
    (key, wrong) for key, many in UNLISTED.items() for wrong in many])
def test_unlisted_mistakes_are_refused_without_a_name_and_shown(key, wrong):
    (exercise,) = (exercise for exercise in ps09.EXERCISES if exercise.key == key)
    told = verdict(exercise, wrong)
    assert (told.status, told.mistake) == (WRONG, None)
    assert "it should give" in told.message


def test_answers_may_be_lists_or_arrays():
    for exercise in (ps09.PAIRED_HALVES, ps09.IN_AND_OUT, ps09.LIRA, ps09.RMIA):
        for form in (list, lambda answer: np.asarray(answer, dtype=float).tolist()):
            told = verdict(exercise, lambda form=form, right=exercise.right, **case:
                           form(right(**case)))
            assert told.status == RIGHT, told.message
    as_array = verdict(ps09.SHADOW_RATES, lambda **case: np.array(ps09.shadow_rates(**case)))
    assert as_array.status == RIGHT
    assert verdict(ps09.LIRA, lambda **case: ps09.lira_log_ratio(**case)[:, None]).status == WRONG


def test_a_changed_input_is_told():
    def blanks_in_place(signal, shadow_signals, shadow_membership):
        shadow_signals[shadow_membership] = np.nan
        return (signal - np.nanmean(shadow_signals, axis=0)) / np.nanstd(shadow_signals, axis=0)

    assert verdict(ps09.ONE_SIDED, blanks_in_place).mistake == "changes-its-input"


# What a learner reads


def test_examples_in_the_tasks_are_true():
    assert tried_examples(BEFORE_AFTERWORD, PROSE) == 32


def test_spreads_of_their_own_would_give_what_the_fifth_task_says():
    case = ps09.fixed_cases(np.random.default_rng(SEED))[0]
    assert membership.lira_online(*case.values()).tolist() == pytest.approx([4.5, -3.125])
    assert "4.5 and −3.125" in PROSE["task-9-5"]


def test_excerpts_are_from_the_reports_that_the_afterword_makes():
    parts = re.findall(r"```text\n(.*?)```", PROSE["task-9-9"], re.DOTALL)
    for part, whole, lines in zip(parts, ("report-a", "report-b"), (6, 10), strict=True):
        shown = SHOWN[whole].splitlines()
        assert len(part.splitlines()) == lines
        assert all(line in shown for line in part.splitlines())
    assert "VOID" in SHOWN["report-a"] and "VOID" not in SHOWN["report-b"]
    assert SHOWN["report-b"].count("DOUBT:") == 3 and "doubts: 0" in SHOWN["report-honest"]


def number(cell, pattern):
    (found,) = re.findall(pattern, SHOWN[cell])
    return found


def test_colleague_and_reply_have_their_numbers_right():
    task, reply, rubric = PROSE["task-9-9"], PROSE["answer-9-9"], ps09.REPORT.rubric
    blind = number("report-a", r"blind baseline: AUC ([\d.]+)")
    loss, found = number("report-a", r"(?m)^loss +([\d.]+) .*?– +([\d.]+)")
    assert loss == max(re.findall(r"(?m)^\w.*?  ([\d.]+) \(", SHOWN["report-a"])) < blind
    assert f"AUC {blind}; the best attack reaches {loss}." in reply
    assert f"(AUC {blind}) than any attack ({loss})" in rubric
    assert f"finds {float(found):.0%} of them at 10% FPR, and its AUC of {loss}" in task
    fair = number("report-fair", r"loss attack ([\d.]+) \(([\d.]+) to ([\d.]+)\)")
    assert "loss attack then has AUC {}, {} to {}".format(*fair) in reply
    assert "void: False" in SHOWN["report-fair"] and float(fair[1]) > 0.5
    area, low, high, found = number(
        "report-b", r"(?m)^loss +([\d.]+) \(([\d.]+) to ([\d.]+)\) +– +([\d.]+)")
    assert f"AUC {area} ({low} to {high}) and {float(found):.1%} of the members" in reply
    assert f"AUC {area} ({low} to {high}), {float(found):.1%} of members" in rubric
    assert {f"{float(x):.2f}" for x in re.findall(r"LiRA, \w+ +([\d.]+)", SHOWN["report-b"])} == {
        "0.61"}
    assert "about 0.61" in task and "0.61 is no upper limit" in reply and "LiRA's 0.61" in rubric
    target, shadows = number("report-b", r"accuracy on members is ([\d.]+) for the target and "
                                         r"([\d.]+)")
    assert f"right for {float(target):.1%} of its members, they for {float(shadows):.1%}" in reply
    rare, half = number("report-b", r"a member: ([\d.]+%) where 1% .*? ([\d.]+%) where 50%")
    for text in (reply, rubric):
        assert f"{half} holds" in text and f"it is {rare}" in text
    assert f"chance of {half}" in task
    honest = {name: (float(area), float(rate)) for name, area, rate in re.findall(
        r"(?m)^(.*?) +AUC ([\d.]+), TPR at 10% FPR ([\d.]+)$", SHOWN["report-honest"])}
    assert f"LiRA reaches {max(area for area, _ in honest.values()):.3f}" in reply
    assert honest["loss"] == (float(area), float(found))
    assert all(honest[name][1] > 2 * honest["loss"][1] for name in honest if name != "loss")
    assert "more than twice as many members at 10% FPR" in PROSE["next"]
    assert metrics.LEAST_FALSE / 0.01 == 1000 and "1,000 non-members" in reply
    for report in ("report-a", "report-b"):
        assert "500 members, 500 non-members" in SHOWN[report]


def test_readings_of_the_afterword_hold():
    rows = {}
    for line in SHOWN["few"].splitlines():
        numbers = np.array(re.findall(r"(0\.\d+) (0\.\d+) \(", line), dtype=float)
        rows[line[:21].strip()] = numbers.T  # AUC and TPR of three worlds
    signal_auc, signal_tpr = rows["bare signal"]
    own, one = ([rows[f"{name:19}{count:2}".strip()] for count in (8, 32)]
                for name in ("own_spreads", "fixed_spread_score"))
    ratio = one[0][1] / own[0][1]
    assert 1.95 < ratio.min() and ratio.max() < 5 and "two to five times" in PROSE["few-reading"]
    ahead = own[1][1] > one[1][1]
    assert ahead.any() and not ahead.all() and np.all(own[1][0] > one[1][0])
    assert np.all(signal_auc > 0.7) and np.all((signal_tpr > 0.013) & (signal_tpr < 0.025))
    low, high = map(float, number("thresholds", r"wanted 1%: FPR ([\d.]+) to ([\d.]+)"))
    assert (round(500 * low), round(500 * high)) == (1, 9) and "one to nine" in PROSE["table-intro"]
    shokri = np.array(re.findall(r"AUC ([\d.]+)", SHOWN["table"]), dtype=float)
    assert np.all((0 < shokri - signal_auc) & (shokri - signal_auc < 0.06))
    rmia = np.array(re.findall(r"([\d.]+) for a = ", SHOWN["rmia"]), dtype=float).reshape(3, 3)
    assert np.all(rmia[:, 0] > shokri + 0.04) and np.all(np.diff(rmia) < 0)
    first, second = SHOWN["sides"].splitlines()
    assert first == "one-sided 0.856, two-sided 0.753"
    two = np.array(re.findall(r"(0\.\d+) (0\.\d+) \(", second), dtype=float).T
    lost = rows["one_sided_score    32"] - two
    assert np.all((lost[0] > 0.09) & (lost[0] < 0.15))
    assert np.all(lost[1] > rows["one_sided_score    32"][1] / 3)


def test_afterword_works_with_the_learners_own_functions():
    assert "delete `ours.`" in PROSE["afterword"]
    namespace = verify.run_cells(BEFORE_AFTERWORD)
    printed = []
    for source in (lambda name: SOURCES[name], lambda name: SOURCES[name].replace("ours.", "")):
        with contextlib.redirect_stdout(io.StringIO()) as out:
            for name in ("worlds", "found", "few", "thresholds", "table", "rmia"):
                exec(source(name).replace("range(3)", "range(1)"), namespace)
        printed.append(out.getvalue())
    assert printed[0] == printed[1] and "RMIA: AUC" in printed[0]
    assert printed[0].splitlines()[1] == SHOWN["few"].splitlines()[0][:len(
        printed[0].splitlines()[1])]
