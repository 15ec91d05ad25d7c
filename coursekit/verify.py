"""The proof that the exercises are sound, and their checks neither blind nor unfair.

For every exercise: our answer earns full marks, and so do right answers written another way; the
released notebook earns nothing; each listed mistake fails under its own name; and each random
check draws enough to rule its mistakes out.
"""

import contextlib
import io
import textwrap
from dataclasses import dataclass

from coursekit import build, checks
from coursekit.checks.exercise import (
    NOT_ATTEMPTED,
    RIGHT,
    WRONG,
    Independent,
    Law,
    LocalSubject,
    Separate,
    seed_for,
)
from coursekit.learn import problem_set_file

SALTS_FOR_RIGHT = tuple(f"right-{number}" for number in range(5))
SALTS_FOR_MISTAKES = ("learner", "another class")


@dataclass(frozen=True)
class Row:
    """A line of the table: what was proved of one exercise, and the problems found."""

    key: str
    title: str
    caught: tuple = ()
    listed: int = 0
    others: int = 0
    drawn: int = 0
    needed: float = 0
    problems: tuple = ()


def verify(problem_sets=None):
    """Prove the exercises, print the table, and return the problems found (none: an empty list)."""
    from joblib import Parallel, delayed

    names = list(problem_sets or checks.problem_sets())
    keys = [key for name in names for key in checks.exercises(name)]
    rows = Parallel(n_jobs=2)(delayed(_row_of_key)(key) for key in keys)
    print(table(rows))
    problems = [problem for row in rows for problem in row.problems]
    for name in names:
        problems += notebook_problems(name, checks.exercises(name))
    for problem in problems:
        print(f"PROBLEM {problem}")
    caught = sum(len(row.caught) for row in rows)
    print(f"{len(rows)} exercises, {caught} mistakes caught by name, {len(problems)} problems.")
    return problems


def _row_of_key(key):
    return verify_exercise(checks.find(key))


def verify_exercise(exercise):
    """Prove one exercise; the row lists the mistakes caught and every problem as a sentence."""
    if not exercise.function:
        problem = f"{exercise.key}: a written exercise needs a rubric."
        return Row(exercise.key, exercise.title, problems=() if exercise.rubric else (problem,))
    laws = [(part, part.needed()) for part in exercise.parts if isinstance(part, Law)]
    caught = tuple(mistake.name for mistake in exercise.mistakes if _is_caught(exercise, mistake))
    problems = [*_hygiene(exercise), *_unfair(exercise), *_blind(exercise, laws)]
    problems += [f"{exercise.key}: the mistake {mistake.name} is not caught under its name."
                 for mistake in exercise.mistakes if mistake.name not in caught]
    return Row(
        exercise.key, exercise.title, caught, len(exercise.mistakes), len(exercise.others),
        drawn=min((law.drawn() for law, _ in laws), default=0),
        needed=max((n for _, needed in laws for n in needed.values()), default=0),
        problems=tuple(problems),
    )


def _hygiene(exercise):
    names = [mistake.name for mistake in exercise.mistakes]
    if not exercise.parts:
        yield f"{exercise.key}: it has no check at all."
    if not exercise.mistakes:
        yield f"{exercise.key}: it lists no mistake."
    if not exercise.others:
        yield f"{exercise.key}: no right answer written another way is tried."
    if not exercise.hints or not all(hint.strip() for hint in exercise.hints):
        yield f"{exercise.key}: a hint is missing or empty."
    if len(set(names)) < len(names):
        yield f"{exercise.key}: two mistakes share a name."
    for part in exercise.parts:
        if isinstance(part, (Separate, Independent)) and part.mistake not in names:
            yield f"{exercise.key}: no listed mistake is called {part.mistake}."
    for mistake in exercise.mistakes:
        if len(mistake.message.split()) < 5:
            yield f"{exercise.key}: the mistake {mistake.name} needs a sentence for the learner."


def _unfair(exercise):
    for number, answer in enumerate((exercise.right, *exercise.others)):
        for salt in SALTS_FOR_RIGHT:
            verdict = _judge(exercise, answer, salt)
            if verdict.status != RIGHT:
                which = f"right answer {number}" if number else "our own answer"
                yield f"{exercise.key}: {which} is refused (salt {salt!r}): {verdict.message}"
                break


def _is_caught(exercise, mistake):
    verdicts = [_judge(exercise, mistake.wrong, salt) for salt in SALTS_FOR_MISTAKES]
    return all(verdict.status == WRONG and verdict.mistake == mistake.name for verdict in verdicts)


def _blind(exercise, laws):
    names = {mistake.name for mistake in exercise.mistakes}
    for law, needed in laws:
        for name, draws in needed.items():
            if name not in names:
                yield f"{exercise.key}: the law {name} belongs to no listed mistake."
            if draws > law.drawn():
                yield f"{exercise.key}: blind to {name}: {law.drawn():,} draws, {draws:,} needed."


def _judge(exercise, answer, salt):
    subject = LocalSubject({exercise.function: answer})
    return exercise.check(subject, seed=seed_for(salt, exercise.key))


def notebook_problems(name, exercises):
    """What is wrong with the two notebooks of a problem set, as sentences."""
    problems = []
    for folder, wanted in (("solutions", RIGHT), ("exercises", NOT_ATTEMPTED)):
        path = problem_set_file(name, folder)
        if path is None:
            problems.append(f"{name}: {folder} holds no notebook of it.")
            continue
        notebook = build.load(path)
        problems += [f"{folder}/{name}: {problem}" for problem in _cells(notebook, exercises)]
        try:
            namespace = run_cells(notebook)
        except (Exception, SystemExit) as error:
            problems.append(f"{folder}/{name}: it stops with {type(error).__name__}: {error}")
            continue
        for key, exercise in exercises.items():
            if exercise.function:
                verdict = exercise.check(LocalSubject(namespace), seed=seed_for("learner", key))
                if verdict.status != wanted:
                    problems.append(f"{folder}/{name}: exercise {key} is {verdict.status}, "
                                    f"it should be {wanted}: {verdict.message}")
    return problems


def run_cells(notebook):
    """Run the code cells of a notebook here, in order and silently; return its namespace."""
    namespace = {"__name__": "__main__"}
    for cell in notebook["cells"]:
        if cell["cell_type"] == "code":
            with contextlib.redirect_stdout(io.StringIO()):
                exec("".join(cell["source"]), namespace)
    return namespace


def _cells(notebook, exercises):
    """Each exercise needs an answer cell and a cell that checks it, with nbgrader's metadata."""
    graded = [cell for cell in notebook["cells"] if "nbgrader" in cell["metadata"]]
    roles = {cell["metadata"]["nbgrader"]["grade_id"]: cell for cell in graded}
    if len(roles) < len(graded):
        yield "two cells share a grade_id."
    for key, exercise in exercises.items():
        answer = roles.get(build.grade_id(key))
        marked = roles.get("check-" + key.replace(".", "-")) if exercise.function else answer
        if answer is None or marked is None:
            yield f"exercise {key} lacks its answer cell or its check cell."
        elif marked["metadata"]["nbgrader"].get("points") != exercise.points:
            yield f"exercise {key} should be worth {exercise.points} points in the notebook."
        elif exercise.function and f'check("{key}")' not in "".join(marked["source"]):
            yield f"the check cell of exercise {key} does not call check(\"{key}\")."


def table(rows):
    """The rows as text: an exercise a line, and under it the mistakes caught, by name."""
    lines = [f"{'':5}{'exercise':44}{'mistakes':>9}{'others':>8}{'draws':>9}{'needed':>8}"]
    for row in rows:
        if not row.listed:
            lines.append(f"{row.key:5}{row.title:44}{'written':>9}")
            continue
        random = f"{row.drawn:>9,}{row.needed:>8,}" if row.drawn else f"{'exact':>9}"
        lines.append(f"{row.key:5}{row.title:44}{f'{len(row.caught)}/{row.listed}':>9}"
                     f"{row.others:>8}{random}")
        lines += textwrap.wrap(", ".join(row.caught), 92, initial_indent=" " * 7,
                               subsequent_indent=" " * 7, break_on_hyphens=False)
    return "\n".join(lines)
