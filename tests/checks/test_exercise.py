"""Proof that an exercise judges what learners really write: right, wrong, broken and strange."""

import hashlib
import json
import math
import random

import numpy as np
import pytest
from scipy import stats

from coursekit import checks
from coursekit.checks.exercise import (
    CRASHED,
    NOT_ATTEMPTED,
    RIGHT,
    WRITTEN,
    WRONG,
    Exact,
    Exercise,
    Independent,
    Judged,
    Law,
    LocalSubject,
    Mistake,
    Randomness,
    Run,
    Separate,
    choice,
    randomness_mistakes,
    same,
    seed_for,
)

SEEDS = range(5)

# An exact exercise: the mean of values clipped to 0..1.


def clipped_mean(values):
    return float(np.mean(np.clip(values, 0, 1))) if len(values) else 0.0


MEAN = Exercise(
    "9.1", "A clipped mean", 2, function="clipped_mean", right=clipped_mean,
    parts=(Exact(lambda rng: [{"values": np.array([])}, {"values": np.array([-5.0, 0.5, 5.0])},
                              {"values": rng.normal(3, 3, 20)}]),),
    mistakes=(
        Mistake("forgot-clipping", lambda values: float(np.mean(values)) if len(values) else 0.0,
                "The values were not clipped before the mean was taken."),
        Mistake("clipped-late", lambda values: float(np.clip(np.mean(values), 0, 1))
                if len(values) else 0.0, "The mean was clipped, not the values."),
    ),
    lesson="Clip first.",
)


# A random exercise: Laplace noise of scale 8 on each coordinate.


def noisy(values, rng):
    return np.asarray(values) + rng.laplace(0, 8, len(values))


ZEROS = {"values": np.zeros(4)}
NOISY = Exercise(
    "9.2", "Noise", 3, function="noisy", right=noisy,
    parts=(
        Randomness(ZEROS), Separate(ZEROS),
        Law(ZEROS, stats.laplace(0, 8),
            {"factor-2": stats.laplace(0, 16), "gaussian": stats.norm(0, 8 * math.sqrt(2))},
            noise=lambda answers, case: answers.ravel(), shape=(4,), count=1000),
    ),
    mistakes=(
        Mistake("factor-2", lambda values, rng: values + rng.laplace(0, 16, len(values)),
                "The scale is twice what this adjacency needs."),
        Mistake("gaussian", lambda values, rng: values + rng.normal(0, 8 * 2**0.5, len(values)),
                "The noise is Gaussian, the mechanism is Laplace's."),
        Mistake("one-draw-for-all", lambda values, rng: values + rng.laplace(0, 8),
                "One draw serves all coordinates."),
        *randomness_mistakes(noisy, lambda values: values),
    ),
)


def judge(exercise, answer, seed=1):
    return exercise.check(LocalSubject({exercise.function: answer}), seed=seed)


# Exact


@pytest.mark.parametrize("seed", SEEDS)
def test_exact_accepts_right_answers_in_any_plain_form(seed):
    assert judge(MEAN, clipped_mean, seed).status == RIGHT

    def by_hand(values):
        return sum(min(max(v, 0), 1) for v in values) / max(len(values), 1)

    assert judge(MEAN, by_hand, seed).status == RIGHT
    assert judge(MEAN, lambda values: np.array(clipped_mean(values)), seed).status == RIGHT
    assert judge(MEAN, lambda values: np.float32(clipped_mean(values)), seed).status == WRONG


def test_exact_says_what_was_checked_and_why_it_matters():
    assert judge(MEAN, clipped_mean).message == (
        "Clip first. Checked: the values agree with the closed form.")


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("mistake", MEAN.mistakes)
def test_exact_names_a_listed_mistake(mistake, seed):
    verdict = judge(MEAN, mistake.wrong, seed)
    assert (verdict.status, verdict.mistake, verdict.message) == (WRONG, mistake.name,
                                                                  mistake.message)


def test_exact_names_nobody_for_a_mistake_that_is_not_listed():
    verdict = judge(MEAN, lambda values: clipped_mean(values) + 1e-6)
    assert (verdict.status, verdict.mistake) == (WRONG, None)
    assert verdict.message == ("clipped_mean(values=array([], dtype=float64)) gave 1e-06; "
                               "it should give 0.0.")


def test_exact_names_nobody_who_makes_a_mistake_on_some_cases_only():
    for size in (3, 20):
        verdict = judge(MEAN, lambda values, size=size: float(np.mean(values))
                        if len(values) == size else clipped_mean(values))
        assert (verdict.status, verdict.mistake) == (WRONG, None)


@pytest.mark.parametrize("strange", [
    "0.5", math.nan, math.inf, 10**400, 10**30, -(2**63), [0.5], [[0.5], [0.5, 1]], {"mean": 0.5},
    {0.5}, object(), b"0.5", 1j, (), [None], np.array([0.5, 0.5]), np.array(None), "", True,
])
def test_exact_survives_any_value(strange):
    verdict = judge(MEAN, lambda values: strange)
    assert (verdict.status, verdict.mistake) == (WRONG, None)
    assert "it should give 0.0" in verdict.message


def test_exact_draws_cases_afresh_from_the_seed():
    """An answer that knows the cases of one seed fails under another, and verdicts repeat."""
    known = {}

    def by_heart(values):
        return known.get(values.tobytes(), 0.0)

    for case in MEAN.parts[0].cases(np.random.default_rng(1)):
        known[case["values"].tobytes()] = clipped_mean(case["values"])
    assert judge(MEAN, by_heart, 1).status == RIGHT
    assert judge(MEAN, by_heart, 2).status == WRONG
    assert judge(MEAN, by_heart, 2) == judge(MEAN, by_heart, 2)


def test_exact_can_ignore_an_order_and_survives_what_cannot_be_ordered():
    exercise = Exercise("9.3", "Order", 1, function="f", right=lambda: [1, 2, 3],
                        parts=(Exact(lambda rng: [{}], tidy=sorted),))
    assert judge(exercise, lambda: (3, 1, 2)).status == RIGHT
    assert judge(exercise, lambda: [3, 1, 1]).status == WRONG
    assert judge(exercise, lambda: [3, "a"]).status == WRONG
    assert judge(exercise, lambda: 7).status == WRONG
    size = Exercise("9.3", "Size", 1, function="f", right=lambda: 2.0,
                    parts=(Exact(lambda rng: [{}], tidy=float),))
    assert judge(size, lambda: 2).status == RIGHT
    assert judge(size, lambda: 10**400).status == WRONG  # no float is as large


def test_exact_with_a_generator_compares_up_to_its_tolerance():
    """At an epsilon of 1e12 the noise is far below the tolerance, so the centre is seen exactly."""
    def total(values, epsilon, rng):
        return np.sum(values) + rng.laplace(0, 1 / epsilon)

    exercise = Exercise(
        "9.4", "A sum", 1, function="total", right=total,
        parts=(Exact(lambda rng: [{"values": rng.random(9), "epsilon": 1e12}], seeded=True,
                     tolerance=1e-6),),
        mistakes=(Mistake("mean", lambda values, epsilon, rng: np.mean(values), "The mean."),))

    def other_draws(values, epsilon, rng):
        return sum(values) - rng.exponential() / epsilon

    assert judge(exercise, other_draws).status == RIGHT
    assert judge(exercise, exercise.mistakes[0].wrong).mistake == "mean"


# Randomness, Separate and Law


@pytest.mark.parametrize("seed", SEEDS)
def test_random_parts_accept_right_answers(seed):
    assert judge(NOISY, noisy, seed).status == RIGHT

    def by_inversion(values, rng):
        u = rng.random(len(values)) - 0.5
        return [v - 8 * math.copysign(math.log1p(-2 * abs(p)), p)
                for v, p in zip(values, u, strict=True)]

    assert judge(NOISY, by_inversion, seed).status == RIGHT
    assert "below 1e-9" in judge(NOISY, by_inversion, seed).message


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("mistake", NOISY.mistakes)
def test_random_parts_name_a_listed_mistake(mistake, seed):
    verdict = judge(NOISY, mistake.wrong, seed)
    assert (verdict.status, verdict.mistake) == (WRONG, mistake.name)
    assert verdict.message


GENERATOR = np.random.default_rng(0)


@pytest.mark.parametrize(("answer", "name"), [
    (lambda values, rng: values + np.random.default_rng(3).laplace(0, 8, 4), "always-the-same"),
    (lambda values, rng: values + GENERATOR.laplace(0, 8, 4), "own-randomness"),
    (lambda values, rng: values + random.gauss(0, 8), "own-randomness"),
    (lambda values, rng: values, "always-the-same"),
    (lambda values, rng: np.full(4, math.nan), None),
    (lambda values, rng: "noise", None),
])
def test_randomness_names_where_the_noise_came_from(answer, name):
    assert judge(NOISY, answer).mistake == name


def test_randomness_notices_state_kept_between_calls():
    """A function that counts its calls ignores the seed: the same seed must give the same."""
    calls = []

    def counting(values, rng):
        calls.append(1)
        return values + len(calls)

    assert judge(NOISY, counting).mistake == "own-randomness"
    values_ignoring_seed = iter([1.0, 2, 3, 4] * 3)
    assert judge(NOISY, lambda values, rng: values + next(values_ignoring_seed)).mistake == (
        "own-randomness")


def test_separate_accepts_one_coordinate_and_no_coordinate():
    part = Separate({"values": np.zeros(1)})
    exercise = Exercise("9.5", "One", 1, function="noisy", right=noisy, parts=(part,))
    assert judge(exercise, noisy).status == RIGHT
    assert judge(exercise, lambda values, rng: np.array([])).status == RIGHT


def test_law_names_nobody_for_a_law_that_is_not_listed():
    verdict = judge(NOISY, lambda values, rng: values + rng.laplace(0, 30, len(values)))
    assert (verdict.status, verdict.mistake) == (WRONG, None)
    assert verdict.message == "4,000 draws do not follow the law that the exercise asks for."


def test_law_judges_at_the_rate_and_with_the_name_of_evidence():
    law = NOISY.parts[2]
    assert law.drawn() == 4000
    assert set(law.needed()) == {"factor-2", "gaussian"}
    assert 300 < law.needed()["factor-2"] < 400 and 1400 < law.needed()["gaussian"] < 1700
    assert "4,000 draws" in law.describe() and "2 wrong laws" in law.describe()


LAW_ONLY = Exercise("9.6", "Law", 1, function="noisy", right=noisy, parts=NOISY.parts[2:])


@pytest.mark.parametrize(("answer", "sentence"), [
    (lambda values, rng: rng.laplace(0, 8), r"shape \(\); expected shape \(4,\)"),
    (lambda values, rng: rng.laplace(0, 8, (4, 1)), r"shape \(4, 1\); expected shape \(4,\)"),
    (lambda values, rng: rng.laplace(0, 8, rng.integers(1, 9)), "of one shape each time"),
    (lambda values, rng: ["1", "2", "3", "4"], "'3', '4'.; expected finite numbers"),
    (lambda values, rng: [1.0, 2.0, 3.0, math.nan], "nan.; expected finite numbers"),
    (lambda values, rng: [1.0, 2.0, math.inf, 4.0], "inf, 4.0.; expected finite numbers"),
    (lambda values, rng: [10**400] * 4, "expected finite numbers"),
    (lambda values, rng: [1j] * 4, "expected finite numbers"),
    (lambda values, rng: {"noise": 1.0}, "expected finite numbers"),
    (lambda values, rng: None, "returned None: is a return missing"),
    (lambda values, rng: [None] * 4, "expected finite numbers"),
])
def test_law_tells_what_is_wrong_with_an_answer_that_is_no_sample(answer, sentence):
    verdict = judge(LAW_ONLY, answer)
    assert (verdict.status, verdict.mistake) == (WRONG, None)
    with pytest.raises(Judged, match=sentence):
        raise Judged(verdict)


def test_law_shows_the_value_that_is_not_finite():
    calls = iter(range(10_000))

    def seldom(values, rng):
        return np.full(4, math.inf) if next(calls) == 700 else noisy(values, rng)

    assert "array([inf, inf, inf, inf])" in judge(LAW_ONLY, seldom).message


def test_law_accepts_whole_numbers_and_booleans():
    coin = Exercise(
        "9.7", "Coin", 1, function="coin", right=lambda rng: rng.random() < 0.5,
        parts=(Law({}, stats.bernoulli(0.5), {"biased": stats.bernoulli(0.8)},
                   noise=lambda answers, case: answers, count=2000),))
    assert judge(coin, lambda rng: rng.random() < 0.5).status == RIGHT
    assert judge(coin, lambda rng: rng.integers(2)).status == RIGHT
    assert judge(coin, lambda rng: int(rng.integers(2))).status == RIGHT
    assert judge(coin, lambda rng: rng.random() < 0.8).status == WRONG


def test_noise_everywhere_is_asked_for_where_a_part_says_so():
    def half_noisy(values, rng):
        return np.array([rng.laplace(), 0.0])

    def exercise(everywhere):
        part = Randomness({"values": np.zeros(2)}, everywhere=everywhere, mistake="exact-in-places")
        mistake = Mistake("exact-in-places", half_noisy, "Some of the numbers carry no noise.")
        return Exercise("9.8", "Noise", 1, function="noisy", right=noisy, parts=(part,),
                        mistakes=(mistake,))

    assert judge(exercise(False), half_noisy).status == RIGHT
    assert judge(exercise(True), half_noisy).mistake == "exact-in-places"
    assert judge(exercise(True), lambda values, rng: rng.laplace(size=2)).status == RIGHT
    assert judge(exercise(True), lambda values, rng: values).mistake == "exact-in-places"


def test_independent_names_draws_that_hang_together():
    part = Independent({"values": np.zeros(3)}, stats.laplace(),
                       noise=lambda answers, case: answers)
    exercise = Exercise("9.9", "Noise", 1, function="noisy", right=noisy, parts=(part,))
    assert judge(exercise, lambda values, rng: rng.laplace(size=3)).status == RIGHT
    verdict = judge(exercise, lambda values, rng: np.sort(rng.laplace(size=3)))
    assert (verdict.status, verdict.mistake) == (WRONG, "not-independent")


def test_a_long_answer_is_told_where_it_differs_first():
    exercise = Exercise("9.7", "Long", 1, function="long", right=lambda: np.arange(50.0),
                        parts=(Exact(lambda rng: [{}]),))
    verdict = judge(exercise, lambda: np.where(np.arange(50) == 20, -1.0, np.arange(50)))
    assert "The first difference is at position 20: -1.0 for 20.0." in verdict.message


def test_what_numpy_settings_a_notebook_chose_does_not_matter():
    exercise = Exercise("9.7", "Ratio", 1, function="ratio", right=lambda x: np.inf,
                        parts=(Exact(lambda rng: [{"x": np.zeros(1)}]),))
    with np.errstate(all="raise"):
        assert judge(exercise, lambda x: (1 / x)[0]).status == RIGHT


def test_a_later_part_draws_from_another_seed():
    seen = []

    class Recorder:
        def run(self, function, arguments, *, seed=None, count=1):
            seen.append(seed)
            return LocalSubject({"noisy": noisy}).run(function, arguments, seed=seed, count=count)

    assert NOISY.check(Recorder(), seed=5).status == RIGHT
    assert seen == [5, 5, 6, 1005, 2005, 2005]


# What any part meets


def test_a_released_exercise_is_not_attempted():
    def clipped_mean(values):
        # YOUR CODE HERE
        raise NotImplementedError()

    verdict = judge(MEAN, clipped_mean)
    assert (verdict.status, verdict.message) == (
        NOT_ATTEMPTED, "clipped_mean still waits for your code.")


@pytest.mark.parametrize("namespace", [{}, {"clipped_mean": None}, {"clipped_mean": 3.0}])
def test_a_function_that_is_not_there_is_not_attempted(namespace):
    verdict = MEAN.check(LocalSubject(namespace), seed=1)
    assert verdict.status == NOT_ATTEMPTED
    assert verdict.message == "There is no function called clipped_mean yet: run its cell first."


def _cell(source):
    namespace = {"np": np}
    exec(compile(source, "<cell>", "exec"), namespace)
    return namespace["clipped_mean"]


@pytest.mark.parametrize(("body", "sentence"), [
    ("    return 1 / 0", "stopped with ZeroDivisionError: division by zero (line 2)."),
    ("    x = 1\n    return valuse", "NameError: name 'valuse' is not defined"),
    ("    raise SystemExit", "stopped with SystemExit (line 2)."),
    ("    raise SystemExit(3)", "stopped with SystemExit: 3 (line 2)."),
    ("    assert False", "stopped with AssertionError (line 2)."),
    ("    return clipped_mean(values)", "RecursionError"),
    ("    a = 1\n    return np.linalg.inv(np.zeros((2, 2)))",
     "LinAlgError: Singular matrix (line 3)."),
    ("    return len(5)", "TypeError: object of type 'int' has no len() (line 2)."),
])
def test_a_crash_is_told_with_the_line_of_the_cell(body, sentence):
    verdict = judge(MEAN, _cell(f"def clipped_mean(values):\n{body}\n"))
    assert (verdict.status, verdict.mistake) == (CRASHED, None)
    assert sentence in verdict.message


@pytest.mark.parametrize("answer", [
    lambda data: 0.0, lambda values, more: 0.0, lambda: 0.0, math.sqrt, int, _cell(
        "def clipped_mean(values, /):\n    return 0.0\n"),
])
def test_other_parameter_names_are_told_kindly(answer):
    verdict = judge(MEAN, answer)
    assert verdict.status == CRASHED
    assert verdict.message.startswith("clipped_mean could not be called: ")
    assert verdict.message.endswith("Keep the arguments of the exercise, with their names: values.")


def test_a_forgotten_rng_is_told_kindly():
    assert judge(NOISY, lambda values: values).message.endswith("with their names: values, rng.")
    letter = choice("9.8", "Letter", right="a", reasons={"b": "No."})
    assert judge(letter, lambda letter: "a").message.endswith("with their names: none at all.")


def test_ctrl_c_stops_the_check():
    def endless(values):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        judge(MEAN, endless)


def test_a_missing_return_is_told():
    verdict = judge(MEAN, lambda values: None)
    assert (verdict.status, verdict.mistake) == (WRONG, None)
    assert verdict.message == "clipped_mean returned None: is a return missing?"


def test_a_generator_is_told():
    verdict = judge(MEAN, lambda values: (value for value in values))
    assert verdict.status == WRONG
    assert "expected plain values such as numbers, lists or arrays" in verdict.message


def test_what_a_learner_prints_stays_silent(capsys):
    def chatty(values):
        print("here I am", values)
        return clipped_mean(values)

    assert judge(MEAN, chatty).status == RIGHT
    judge(MEAN, lambda values: print("x") or 1 / 0)
    assert capsys.readouterr() == ("", "")
    print("and then the printing goes on")
    assert capsys.readouterr().out == "and then the printing goes on\n"


def _clip_in_place(values):
    np.clip(values, 0, 1, out=values)
    return float(np.mean(values)) if len(values) else 0.0


def _barely(values):
    values += 1e-12
    return clipped_mean(values)


@pytest.mark.parametrize("answer", [_clip_in_place, _barely])
def test_a_changed_input_is_noticed_and_the_case_is_unharmed(answer):
    verdict = judge(MEAN, answer)
    assert (verdict.status, verdict.mistake) == (WRONG, "changes-its-input")
    assert verdict.message


def test_a_changed_list_and_dict_are_noticed():
    subject = LocalSubject({"f": lambda records: records.pop() and 1.0})
    for records in ([1, 2], {1: 2, "a": [3]}):
        case = {"records": records}
        if isinstance(records, dict):
            subject = LocalSubject({"f": lambda records: records["a"].append(1) or 1.0})
        assert subject.run("f", case).changed_input
        assert len(records) == 2 and case["records"] in ([1, 2], {1: 2, "a": [3]})


def test_an_answer_that_is_changed_later_counts_as_it_was_returned():
    kept = np.zeros(1)

    def reuse(rng):
        kept[0] += 1
        return kept

    values = LocalSubject({"f": reuse}).run("f", {}, seed=1, count=3).values
    assert [value[0] for value in values] == [1, 2, 3]


def test_one_generator_serves_the_calls_of_a_run():
    run = LocalSubject({"f": lambda rng: rng.random()}).run("f", {}, seed=4, count=3)
    assert run.values == tuple(np.random.default_rng(4).random(3))
    assert LocalSubject({"f": lambda: 2}).run("f", {}) == Run((2,), False)


def test_a_written_exercise_is_for_a_person():
    verdict = Exercise("9.9", "Essay", 2, rubric="Names the adjacency.").check(None, seed=1)
    assert (verdict.status, verdict.message) == (
        WRITTEN, "A person marks this one. What counts: Names the adjacency.")


def test_a_choice_gives_the_reason_and_never_the_letter():
    exercise = choice("9.8", "Letter", right="b", reasons={"a": "A is not it.", "c": "Nor is C."})
    assert exercise.function == "answer_9_8"
    for answer in ("b", "B", " b "):
        assert judge(exercise, lambda answer=answer: answer).status == RIGHT
    verdict = judge(exercise, lambda: "C")
    assert (verdict.status, verdict.mistake, verdict.message) == (WRONG, "chose-c", "Nor is C.")
    for answer in ("d", "", 2, ["b"], math.nan):
        verdict = judge(exercise, lambda answer=answer: answer)
        assert (verdict.status, verdict.mistake) == (WRONG, None)
        assert verdict.message.endswith("; answer with one of the letters a, b, c.")
        assert "'b'" not in verdict.message or answer == ["b"]


# Behind a sandbox


class FarAway:
    """A subject that sees plain data only: everything crosses as text, both ways."""

    def __init__(self, namespace):
        self._there = LocalSubject(namespace)

    def run(self, function, arguments, *, seed=None, count=1):
        call = json.loads(json.dumps([function, _packed(dict(arguments)), seed, count]))
        run = self._there.run(call[0], _unpacked(call[1]), seed=call[2], count=call[3])
        back = json.loads(json.dumps([_packed(list(run.values[:1000])), run.changed_input]))
        return Run((*_unpacked(back[0]), *run.values[1000:]), back[1])  # enough, and soon done


def _packed(value):
    if isinstance(value, (np.ndarray, np.generic)):
        assert value.dtype.kind in "biuf"
        return {"array": [value.tolist(), str(value.dtype), value.shape]}
    if isinstance(value, dict):
        assert all(isinstance(key, str) for key in value)
        return {"dict": {key: _packed(item) for key, item in value.items()}}
    if isinstance(value, (list, tuple)):
        return [_packed(item) for item in value]
    assert value is None or isinstance(value, (bool, int, float, str)), value
    return value


def _unpacked(value):
    if isinstance(value, list):
        return [_unpacked(item) for item in value]
    if isinstance(value, dict) and "array" in value:
        values, kind, shape = value["array"]
        return np.array(values, dtype=kind).reshape(shape)
    if isinstance(value, dict):
        return {key: _unpacked(item) for key, item in value["dict"].items()}
    return value


@pytest.mark.parametrize("exercise", [MEAN, NOISY])
def test_a_subject_may_live_behind_a_wire(exercise):
    answers = [exercise.right, *(mistake.wrong for mistake in exercise.mistakes)]
    for answer in answers:
        far = exercise.check(FarAway({exercise.function: answer}), seed=3)
        assert far.status == judge(exercise, answer, 3).status
        assert far.mistake == judge(exercise, answer, 3).mistake
    assert exercise.check(FarAway({}), seed=3).status == NOT_ATTEMPTED


@pytest.mark.parametrize("problem_set", checks.problem_sets())
def test_every_real_exercise_works_behind_a_wire(problem_set):
    """Its cases and our own answers are plain data."""
    for exercise in checks.exercises(problem_set).values():
        if exercise.function:
            verdict = exercise.check(FarAway({exercise.function: exercise.right}), seed=11)
            assert verdict.status == RIGHT, (exercise.key, verdict.message)


# Equality and seeds


@pytest.mark.parametrize(("a", "b"), [
    (1, 1.0), (True, 1), (np.int8(3), 3), (0.1 + 0.2, 0.3), ([1, 2], (1, 2)),
    ([1, 2], np.array([1, 2])),
    (math.nan, math.nan), (math.inf, math.inf), ([math.nan, 1], [math.nan, 1]), (None, None),
    ("a", "a"), (np.array("a"), "a"), (["a", 1], ("a", 1.0)), ([("a", 0.1 + 0.2)], [("a", 0.3)]),
    ([[1], [1, 2]], [[1], [1, 2]]), ([[1], [1, 2]], [np.array([1]), (1.0, 2.0)]),
    ({"a": [1, None]}, {"a": (1.0, None)}), ({1, 2}, {2, 1}), ([], ()), ([], np.zeros((0, 3))),
    (10**30, 10**30), (2**100, 2.0**100), (2**63, 2**63), ([2**100, 1], [2.0**100, 1.0]),
    (b"x", b"x"),
    (np.array(["x", "y"]), ["x", "y"]), (0, -0.0), (1e300, 1e300 * (1 + 1e-12)),
])
def test_same(a, b):
    assert same(a, b) is True
    assert same(b, a) is True


@pytest.mark.parametrize(("a", "b"), [
    (1, 2), (1, 1 + 1e-6), (None, 0), (None, np.zeros(3)), ("1", 1), (["1"], [1]),
    ([1, "a"], ["1", "a"]),
    (math.nan, 0), (math.inf, -math.inf), (math.inf, 1e308), ([1], 1), ([1], [[1]]), ([1, 2], [1]),
    ([1, 2, 3], [[1, 2, 3]] * 3), ([[1], [1, 2]], 3), ([[1], [1, 2]], [[1], [1, 3]]),
    ([[1], [1, 2]], [1, 2]), ({"a": 1}, {"b": 1}), ({"a": 1}, {"a": 1, "b": 2}),
    ({"a": 1}, [("a", 1)]),
    ({}, []), ([], [0]), ([], 0), ([], None), ("", []), ("ab", ["a", "b"]), (10**400, 1.0),
    (1j, 1.0), ({1}, {2}), (object(), 1), ([None, 1], [1, None]), (b"x", "x"),
    (np.zeros(3), np.zeros(4)),
])
def test_not_same(a, b):
    assert same(a, b) is False
    assert same(b, a) is False


def test_same_keeps_to_its_tolerance():
    assert same(1.0, 1.0 + 1e-10) and not same(1.0, 1.0 + 1e-10, 0)
    assert same(1000.0, 1000.9, 1e-3) and not same(1000.0, 1002.0, 1e-3)
    assert same(0.0, 9e-10) and not same(0.0, 2e-9)


@pytest.mark.parametrize(("salt", "key", "submission"), [
    ("learner", "2.3", ""), ("autumn", "1.1", "meera"), ("", "", ""),
])
def test_seed_for_is_48_bits_of_sha256(salt, key, submission):
    digest = hashlib.sha256(f"{salt}\x00{key}\x00{submission}".encode()).hexdigest()
    assert seed_for(salt, key, submission) == int(digest[:12], 16)


def test_seed_for_does_not_move():
    """Computed once by coreutils: printf 'learner\\0002.3\\000' | sha256sum | cut -c 1-12."""
    assert seed_for("learner", "2.3") == 0x6D6339E2804D


def test_an_answer_that_refuses_everything_is_wrong_and_shown():
    class Sealed:
        def __array__(self, *_, **__):
            raise RuntimeError("use detach")

        def __eq__(self, other):
            raise RuntimeError("not comparable")

        __hash__ = None

    assert not same(Sealed(), np.zeros(3), 1e-9) and not same(Sealed(), 1.0, 1e-9)
    told = judge(MEAN, lambda values: Sealed(), 0)
    assert told.status == WRONG and "Sealed" in told.message
