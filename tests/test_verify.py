"""`coursekit verify` passes on a sound problem set and reports each planted fault."""

import copy
import math
from dataclasses import replace

import joblib
import numpy as np
import pytest
from scipy import stats

from coursekit import build, checks, cli, learn
from coursekit.checks.exercise import (
    Exact,
    Exercise,
    Law,
    Mistake,
    Randomness,
    Separate,
    choice,
    randomness_mistakes,
    seed_for,
)
from coursekit.verify import SALTS_FOR_MISTAKES, notebook_problems, verify, verify_exercise


def double(x):
    return 2 * x


def noisy(values, rng):
    return values + rng.laplace(0, 8, len(values))


ZEROS = {"values": np.zeros(4)}
SENTENCE = "That is not what was asked for."
EXACT = Exercise(
    "9.1", "Twice", 2, function="double", right=double,
    parts=(Exact(lambda rng: [{"x": float(x)} for x in rng.integers(3, 99, 5)]),),
    mistakes=(Mistake("square", lambda x: x**2, SENTENCE),
              Mistake("half", lambda x: x / 2, SENTENCE)),
    others=(lambda x: x + x,), hints=("Add it to itself.", "x + x."), lesson="Adding is enough.",
)
RANDOM = Exercise(
    "9.2", "Noise", 3, function="noisy", right=noisy,
    parts=(
        Randomness(ZEROS), Separate(ZEROS),
        Law(ZEROS, stats.laplace(0, 8), {"factor-2": stats.laplace(0, 16)},
            noise=lambda answers, case: answers.ravel(), shape=(4,), count=1000),
    ),
    mistakes=(
        Mistake("factor-2", lambda values, rng: values + rng.laplace(0, 16, len(values)), SENTENCE),
        Mistake("one-draw-for-all", lambda values, rng: values + rng.laplace(0, 8), SENTENCE),
        *randomness_mistakes(noisy, lambda values: values),
    ),
    others=(lambda values, rng: values + rng.exponential(8, 4) - rng.exponential(8, 4),),
    hints=("Draw with rng.",),
)
LETTER = choice("9.3", "Letter", right="b", reasons={"a": SENTENCE, "c": SENTENCE},
                hints=("Read again.",))
ESSAY = Exercise("9.4", "In words", 4, rubric="Names the adjacency.")
SET = {exercise.key: exercise for exercise in (EXACT, RANDOM, LETTER, ESSAY)}


def _with_law(**changes):
    *others, law = RANDOM.parts
    return replace(RANDOM, parts=(*others, replace(law, **changes)))


def _with_mistake(exercise, *mistakes):
    return replace(exercise, mistakes=(*exercise.mistakes, *mistakes))


def _in_place(x):
    x += x
    return x


# Exercises


@pytest.mark.parametrize("exercise", SET.values(), ids=SET)
def test_a_sound_exercise_has_no_problems(exercise):
    row = verify_exercise(exercise)
    assert row.problems == ()
    assert row.caught == tuple(mistake.name for mistake in exercise.mistakes)


def test_the_row_tells_what_was_proved():
    """The draws are Chernoff's, between Laplace laws of scale 8 and 16, one law being listed."""
    row = verify_exercise(RANDOM)
    assert (row.key, row.listed, row.others, row.drawn) == ("9.2", 4, 1, 4000)
    s = np.linspace(0.01, 0.99, 9801)
    log_rho = (math.log(2) - np.log(s / 8 + (1 - s) / 16) - s * math.log(16)
               - (1 - s) * math.log(32))
    exactly = np.min((math.log(1e6) + s * math.log(2 / 1e-9)) / -log_rho)
    assert exactly <= row.needed <= exactly + 2


# One of the two classes that verify tries draws below this first, the other above.
MIDWAY = np.mean([np.random.default_rng(seed_for(salt, "9.1")).random()
                  for salt in SALTS_FOR_MISTAKES])
ARRAYS = Exact(lambda rng: [{"x": rng.random(3)}])
FAULTS = {
    "law too near": (
        _with_law(wrong={"factor-2": stats.laplace(0, 8.01)}),
        "9.2: blind to factor-2: 4,000 draws, "),
    "law that is the right one": (
        _with_law(wrong={"factor-2": stats.laplace(0, 8)}),
        "9.2: blind to factor-2: 4,000 draws, inf needed."),
    "too few draws": (_with_law(count=92), "9.2: blind to factor-2: 368 draws, 371 needed."),
    "law of no mistake": (
        _with_law(wrong={"factor-2": stats.laplace(0, 16), "factor-3": stats.laplace(0, 24)}),
        "9.2: the law factor-3 belongs to no listed mistake."),
    "right law that is not ours": (
        _with_law(right=stats.laplace(0, 14)), "9.2: our own answer is refused (salt 'right-0')"),
    "separate without its mistake": (
        replace(RANDOM, mistakes=tuple(m for m in RANDOM.mistakes if m.name != "one-draw-for-all")),
        "9.2: no listed mistake is called one-draw-for-all."),
    "no check of the generator": (
        replace(RANDOM, parts=RANDOM.parts[1:]), "9.2: the mistake own-randomness is not caught"),
    "no cases": (replace(EXACT, parts=(Exact(lambda rng: []),)),
                 "9.1: the mistake square is not caught under its name."),
    "tolerance too wide": (replace(EXACT, parts=(replace(EXACT.parts[0], tolerance=1e4),)),
                           "9.1: the mistake half is not caught under its name."),
    "a case that hides a mistake": (
        replace(EXACT, parts=(Exact(lambda rng: [{"x": 2.0}]),)),
        "9.1: the mistake square is not caught under its name."),
    "a case that hides a mistake from one class": (
        replace(EXACT, parts=(Exact(lambda rng: [{"x": 2.0 if rng.random() < MIDWAY else 5.0}]),)),
        "9.1: the mistake square is not caught under its name."),
    "no parts": (replace(EXACT, parts=()), "9.1: it has no check at all."),
    "caught under another name": (
        _with_mistake(EXACT, Mistake("power", lambda x: x * x, SENTENCE)),
        "9.1: the mistake power is not caught under its name."),
    "a mistake that is right": (
        _with_mistake(EXACT, Mistake("sum", lambda x: x + x, SENTENCE)),
        "9.1: the mistake sum is not caught under its name."),
    "a mistake that crashes": (
        _with_mistake(EXACT, Mistake("crash", lambda x: x / 0, SENTENCE)),
        "9.1: the mistake crash is not caught under its name."),
    "a right answer is refused": (
        replace(EXACT, others=(double, lambda x: 2 * x + 1e-6)),
        "9.1: right answer 2 is refused (salt 'right-0'): double(x="),
    "a right answer is refused now and then": (
        replace(EXACT, others=(lambda x: 2 * x + (x > 70),)),
        "9.1: right answer 1 is refused (salt"),
    "our own answer is refused": (
        replace(EXACT, right=_in_place, parts=(ARRAYS,)),
        "9.1: our own answer is refused (salt 'right-0'): Your function changed the array"),
    "no mistakes": (replace(EXACT, mistakes=()), "9.1: it lists no mistake."),
    "no others": (replace(EXACT, others=()), "9.1: no right answer written another way is tried."),
    "no hints": (replace(EXACT, hints=()), "9.1: a hint is missing or empty."),
    "empty hint": (replace(EXACT, hints=("Add.", " ")), "9.1: a hint is missing or empty."),
    "empty message": (
        _with_mistake(EXACT, Mistake("more", lambda x: x + 1, "")),
        "9.1: the mistake more needs a sentence for the learner."),
    "two of a name": (
        _with_mistake(EXACT, Mistake("half", lambda x: x / 2, SENTENCE)),
        "9.1: two mistakes share a name."),
    "no rubric": (replace(ESSAY, rubric=""), "9.4: a written exercise needs a rubric."),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_planted_fault_is_reported(fault):
    exercise, sentence = FAULTS[fault]
    problems = verify_exercise(exercise).problems
    assert any(problem.startswith(sentence) for problem in problems), problems


# Notebooks


def _cell(kind, source, **role):
    role = {"schema_version": 3, "grade": False, "solution": False, "locked": False, "task": False,
            **role}
    cell = {"cell_type": kind, "id": role["grade_id"], "metadata": {"nbgrader": role},
            "source": source.splitlines(True)}
    return cell | ({"execution_count": None, "outputs": []} if kind == "code" else {})


def _answer(key, source):
    marks = source.replace("BEGIN", "### BEGIN SOLUTION").replace("END", "### END SOLUTION")
    return _cell("code", marks, grade_id=build.grade_id(key), solution=True)


def _check(key, points):
    return _cell("code", f'check("{key}")', grade_id="check-" + key.replace(".", "-"), grade=True,
                 points=points)


SOLUTION = {"metadata": {}, "nbformat": 4, "nbformat_minor": 5, "cells": [
    _cell("code", "from coursekit.learn import check\nimport numpy as np", grade_id="setup"),
    _answer("9.1", "def double(x):\n    BEGIN\n    return 2 * x\n    END\n"),
    _check("9.1", 2),
    _answer("9.2", "def noisy(values, rng):\n    BEGIN\n"
                   "    return values + rng.laplace(0, 8, len(values))\n    END\n"),
    _check("9.2", 3),
    _answer("9.3", "def answer_9_3():\n    BEGIN\n    return 'b'\n    END\n"),
    _check("9.3", 1),
    _cell("markdown", "Because.", grade_id="exercise-9-4", solution=True, grade=True, points=4),
]}
DOUBLE, DOUBLE_CHECK, ESSAY_CELL = 1, 2, 7


@pytest.fixture
def course(tmp_path, monkeypatch):
    """A course folder with the sound problem set ps09, verified in this process."""
    monkeypatch.setattr(checks, "problem_sets", lambda: ["ps09"])
    monkeypatch.setattr(checks, "exercises", lambda name: SET if checks.known(name) else None)
    monkeypatch.setattr(learn, "course_folder", lambda: tmp_path)
    _write(tmp_path, SOLUTION)
    with joblib.parallel_config(backend="sequential"):
        yield tmp_path


def _write(course, solution, released=None):
    released = build.derive(solution) if released is None else released
    for folder, notebook in (("solutions", solution), ("exercises", released)):
        path = course / folder / "ps09-set" / "ps09-set.ipynb"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(build.dump(notebook), encoding="utf-8")


def _changed(change):
    notebook = copy.deepcopy(SOLUTION)
    change(notebook["cells"])
    return notebook


def _wrong_answer(cells):
    cells[DOUBLE] = _answer("9.1", "def double(x):\n    BEGIN\n    return x ** 2\n    END\n")


def _answer_outside_the_marks(cells):
    cells[DOUBLE] = _answer("9.1", "def double(x):\n    return 2 * x\n    BEGIN\n    END\n")


def _answer_told_in_another_cell(cells):
    cells.append(_cell("code", "double = lambda x: x + x", grade_id="extra"))


def _drop_check(cells):
    del cells[DOUBLE_CHECK]


def _drop_answer(cells):
    cells[DOUBLE]["metadata"]["nbgrader"]["grade_id"] = "something-else"


def _drop_essay(cells):
    del cells[ESSAY_CELL]


def _wrong_points(cells):
    cells[DOUBLE_CHECK]["metadata"]["nbgrader"]["points"] = 3


def _no_points(cells):
    del cells[DOUBLE_CHECK]["metadata"]["nbgrader"]["points"]


def _wrong_essay_points(cells):
    cells[ESSAY_CELL]["metadata"]["nbgrader"]["points"] = 1


def _check_of_another(cells):
    cells[DOUBLE_CHECK]["source"] = ['check("9.2")']


def _same_ids(cells):
    cells.append(copy.deepcopy(cells[0]))


def _crash(cells):
    cells[0]["source"].append("\n1 / 0")


def _exit(cells):
    cells[0]["source"].append("\nraise SystemExit")


def _bad_syntax(cells):
    cells[0]["source"].append("\nfor")


NOTEBOOK_FAULTS = [
    (_wrong_answer, ["solutions/ps09: exercise 9.1 is wrong, it should be right: " + SENTENCE]),
    (_answer_outside_the_marks,
     ["exercises/ps09: exercise 9.1 is right, it should be not attempted: "]),
    (_answer_told_in_another_cell,
     ["exercises/ps09: exercise 9.1 is right, it should be not attempted: "]),
    (_drop_check, ["{}/ps09: exercise 9.1 lacks its answer cell or its check cell."]),
    (_drop_answer, ["{}/ps09: exercise 9.1 lacks its answer cell or its check cell."]),
    (_drop_essay, ["{}/ps09: exercise 9.4 lacks its answer cell or its check cell."]),
    (_wrong_points, ["{}/ps09: exercise 9.1 should be worth 2 points in the notebook."]),
    (_no_points, ["{}/ps09: exercise 9.1 should be worth 2 points in the notebook."]),
    (_wrong_essay_points, ["{}/ps09: exercise 9.4 should be worth 4 points in the notebook."]),
    (_check_of_another, ['{}/ps09: the check cell of exercise 9.1 does not call check("9.1").']),
    (_same_ids, ["{}/ps09: two cells share a grade_id."]),
    (_crash, ["{}/ps09: it stops with ZeroDivisionError: division by zero"]),
    (_exit, ["{}/ps09: it stops with SystemExit: "]),
    (_bad_syntax, ["{}/ps09: it stops with SyntaxError: "]),
]


def test_sound_notebooks_have_no_problems(course):
    assert notebook_problems("ps09", SET) == []


@pytest.mark.parametrize(("change", "sentences"), NOTEBOOK_FAULTS)
def test_a_fault_in_the_notebook_is_reported_and_nothing_else(course, change, sentences):
    _write(course, _changed(change))
    if "{}" in sentences[0]:
        sentences = [sentences[0].format(folder) for folder in ("solutions", "exercises")]
    problems = notebook_problems("ps09", SET)
    assert len(problems) == len(sentences), problems
    for problem, sentence in zip(problems, sentences, strict=True):
        assert problem.startswith(sentence)


def test_a_released_notebook_that_holds_the_answers_is_reported(course):
    _write(course, SOLUTION, released=SOLUTION)
    assert [problem.split(":")[1] for problem in notebook_problems("ps09", SET)] == [
        f" exercise 9.{number} is right, it should be not attempted" for number in (1, 2, 3)]


def test_a_missing_notebook_is_reported(course):
    (course / "exercises" / "ps09-set" / "ps09-set.ipynb").unlink()
    assert notebook_problems("ps09", SET) == ["ps09: exercises holds no notebook of it."]


# The whole


def test_verify_prints_the_table(course, capsys):
    assert verify() == []
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split() == ["exercise", "mistakes", "others", "draws", "needed"]
    assert lines[1].split() == ["9.1", "Twice", "2/2", "1", "exact"]
    assert lines[2].strip() == "square, half"
    assert lines[3].split() == ["9.2", "Noise", "4/4", "1", "4,000", "371"]
    assert lines[4].strip() == "factor-2, one-draw-for-all, own-randomness, always-the-same"
    assert lines[5].split()[:3] == ["9.3", "Letter", "2/2"]
    assert lines[7].split() == ["9.4", "In", "words", "written"]
    assert lines[-1] == "4 exercises, 8 mistakes caught by name, 0 problems."


def test_a_planted_blind_check_fails_the_command(course, monkeypatch, capsys):
    assert cli.main(["verify", "ps09"]) == 0
    monkeypatch.setitem(SET, "9.2", _with_law(wrong={"factor-2": stats.laplace(0, 8.01)}))
    assert cli.main(["verify", "ps09"]) == 1
    out = capsys.readouterr().out
    assert "PROBLEM 9.2: blind to factor-2: 4,000 draws, " in out
    assert "PROBLEM 9.2: the mistake factor-2 is not caught under its name." in out
    assert out.endswith("2 problems.\n")


def test_a_fault_in_a_notebook_fails_the_command(course, capsys):
    _write(course, _changed(_wrong_points))
    assert cli.main(["verify"]) == 1
    assert "PROBLEM solutions/ps09: exercise 9.1 should be worth" in capsys.readouterr().out


def test_an_unknown_problem_set_is_refused(course):
    with pytest.raises(ValueError, match=r"There is no problem set 'ps10'; there are: ps09\."):
        verify(["ps10"])
