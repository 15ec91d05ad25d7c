"""What holds for every problem set from the second on: points, mistakes, what a learner reads."""

import json
from pathlib import Path

import pytest

from coursekit import checks
from coursekit.checks.exercise import RIGHT, WRONG, LocalSubject
from coursekit.learn import check

ROOT = Path(__file__).resolve().parents[2]
SETS = {name: checks.exercises(name) for name in checks.problem_sets() if name > "ps01"}
CODED = [e for exercises in SETS.values() for e in exercises.values() if e.function]
WORDS = {7: "seven", 8: "eight", 9: "nine", 10: "ten"}
FEW = {"2.1", "3.1", "5.1"}  # a choice of a few answers, each wrong one with a name


def set_of(exercise):
    return f"ps{int(exercise.key.split('.')[0]):02d}"


def prose_of(name):
    (path,) = (ROOT / "solutions").glob(f"{name}-*/*.ipynb")
    cells = json.loads(path.read_text("utf-8"))["cells"]
    return {c["id"]: "".join(c["source"]) for c in cells if c["cell_type"] == "markdown"}


@pytest.mark.parametrize("name", SETS)
def test_points_are_those_of_the_first_cell(name):
    prose, exercises = prose_of(name), list(SETS[name].values())
    coded = [exercise for exercise in exercises if exercise.function]
    points, written = (sum(e.points for e in part) for part in (
        coded, [e for e in exercises if not e.function]))  # fmt: skip
    head = f"**Points** {points + written}: {points} for the {WORDS[len(coded)]}"
    assert head in prose["title"] and f"and {written} for the written one" in prose["title"]
    for exercise in exercises:
        task = prose["task-" + exercise.key.replace(".", "-")]
        unit = "point" if exercise.points == 1 else "points"
        assert task.startswith(f"## {exercise.key} {exercise.title} ({exercise.points} {unit})")


@pytest.mark.parametrize("exercise", CODED, ids=lambda exercise: exercise.key)
def test_a_learner_reads_the_name_of_the_mistake_and_its_sentence(exercise, capsys):
    assert len(exercise.mistakes) >= 8 or exercise.key in FEW
    mistake = exercise.mistakes[0]
    check(exercise.key, namespace={exercise.function: mistake.wrong})
    told = " ".join(capsys.readouterr().out.split())
    assert f"✘ {exercise.key} Not yet. ({mistake.name})" in told
    assert " ".join(mistake.message.split()) in told


SEEDS = {"ps04": 4, "ps05": 15, "ps06": 6, "ps07": 4, "ps08": 10, "ps09": 4}
NAMED = ("ps07", "ps08", "ps09")  # sets whose mistakes are told apart by every seed


@pytest.mark.parametrize("exercise", [e for e in CODED if set_of(e) in SEEDS],
                         ids=lambda exercise: exercise.key)  # fmt: skip
def test_every_seed_accepts_the_right_answers_and_names_the_mistakes(exercise):
    name = set_of(exercise)
    for seed in range(SEEDS[name]):
        for answer in (exercise.right, *exercise.others):
            told = exercise.check(LocalSubject({exercise.function: answer}), seed=seed)
            assert told.status == RIGHT, (seed, told.message)
        for mistake in exercise.mistakes if name in NAMED else ():
            told = exercise.check(LocalSubject({exercise.function: mistake.wrong}), seed=seed)
            assert (told.status, told.mistake) == (WRONG, mistake.name), (seed, told.message)
