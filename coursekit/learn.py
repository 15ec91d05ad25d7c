"""What a learner calls in a problem set: check, hint, solution, progress; and start, to begin.

    from coursekit.learn import check, hint, progress, solution

`check("2.3")` looks at the functions of the notebook it is called in.
"""

import json
import os
import sys
import tempfile
import textwrap
from pathlib import Path

from coursekit import checks
from coursekit.checks.exercise import (
    CRASHED,
    NOT_ATTEMPTED,
    RIGHT,
    WRITTEN,
    WRONG,
    LocalSubject,
    seed_for,
)

SALT = "learner"  # a class that is graded uses another one, so that its inputs are new
MARKS = {RIGHT: "✔", WRONG: "✘", CRASHED: "✘", NOT_ATTEMPTED: "○", WRITTEN: "✎"}
WORDS = {RIGHT: "Right.", WRONG: "Not yet.", CRASHED: "Not yet.", NOT_ATTEMPTED: "Not attempted.",
         WRITTEN: "Written answer."}


def check(key, *, namespace=None):
    """Judge the answer to one exercise and print what was found.

    key: such as "2.3". namespace: where the functions are; by default the caller's own.
    Nothing of the learner's is changed; the same answer always gets the same verdict.
    """
    exercise = checks.find(key)
    verdict = _verdict(exercise, _caller() if namespace is None else namespace)
    named = f" ({verdict.mistake})" if verdict.mistake else ""
    print(f"{MARKS[verdict.status]} {exercise.key}  {WORDS[verdict.status]}{named}")
    print(_wrapped(verdict.message))
    if verdict.status in (WRONG, CRASHED) and exercise.hints:
        print(f'A hint is there when you want one: hint("{exercise.key}")')


def hint(key, number=1):
    """Print a hint for an exercise; the first by default, `hint("2.3", 2)` for the second."""
    exercise = checks.find(key)
    hints = exercise.hints
    if not hints:
        print(f"Exercise {exercise.key} has no hints.")
        return
    if number not in range(1, len(hints) + 1):
        raise ValueError(f"Exercise {exercise.key} has hints 1 to {len(hints)}, got {number!r}.")
    number = int(number)
    print(_wrapped(f"Hint {number} of {len(hints)}: {hints[number - 1]}"))
    if number < len(hints):
        print(f'Still stuck? hint("{exercise.key}", {number + 1})')


def solution(key):
    """Print our own answer to an exercise, from the solutions folder of the course."""
    from coursekit import build

    exercise = checks.find(key)
    path = problem_set_file(set_of(exercise.key), "solutions")
    if path is None:
        print("The solutions are not in this copy of the course: ask your teacher.")
        return
    print(build.solution_source(path, exercise.key))


def progress(problem_set=None, *, namespace=None):
    """Print a line for each exercise of the problem sets that the notebook has begun."""
    namespace = _caller() if namespace is None else namespace
    wanted = [problem_set] if problem_set else [
        name for name in checks.problem_sets()
        if any(exercise.function in namespace for exercise in checks.exercises(name).values())
    ]
    if not wanted:
        print("No exercise of a problem set is in this notebook yet: run its cells first.")
    for name in wanted:
        _progress(name, namespace)


def _progress(name, namespace):
    earned = 0
    exercises = checks.exercises(name)
    for exercise in exercises.values():
        verdict = _verdict(exercise, namespace)
        earned += exercise.points * (verdict.status == RIGHT)
        named = f": {verdict.mistake}" if verdict.mistake else ""
        print(f"{MARKS[verdict.status]} {exercise.key}  {exercise.title} ({verdict.status}{named})")
    coded = sum(exercise.points for exercise in exercises.values() if exercise.function)
    written = sum(exercise.points for exercise in exercises.values()) - coded
    print(f"{name}: {earned} of {coded} points, and {written} for a person to mark.")


def start(problem_set, *, fresh=False):
    """Copy a problem set into `work/`, where it is yours, and return the path of the copy.

    A copy that is there already is never touched. `fresh=True` puts a second one beside it.
    Raises ValueError if there is no such problem set, OSError if no copy can be written.
    """
    source = problem_set_file(checks.known(problem_set), "exercises")
    if source is None:
        raise ValueError(f"exercises/ does not hold {problem_set}: fetch the course again, or "
                         "make it from solutions/ with: coursekit build")
    folder = course_folder() / "work" / source.parent.name
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except (FileExistsError, NotADirectoryError):
        raise ValueError(f"{folder} cannot be made: a file of that name is in the way. It is "
                         "left as it is; give it another name, then start again.") from None
    path, number = folder / source.name, 2
    while not _place(source.read_bytes(), path) and fresh:
        path, number = folder / f"{source.stem}-{number}{source.suffix}", number + 1
    return path


def _place(content, path):
    """Put a whole file at `path`, in one step; False, and nothing done, if something is there."""
    with tempfile.TemporaryDirectory(dir=path.parent, prefix=".unfinished-") as folder:
        whole = Path(folder) / path.name
        whole.write_bytes(content)
        try:
            os.link(whole, path)  # unlike a rename, never replaces
        except OSError:  # something is there, or this disk knows no links
            return _place_plainly(content, path)
    return True


def _place_plainly(content, path):
    try:
        file = path.open("xb")
    except FileExistsError:
        return False
    with file:
        file.write(content)
    return True


def start_button(problem_set):
    """A button that copies a problem set into `work/` and shows the link to it.

    Without a running kernel the notebook shows a sentence with the command instead.
    """
    import html

    import ipywidgets
    from IPython.display import display

    button = ipywidgets.Button(description=f"Start {problem_set}", tooltip="copies it to work/")
    answer = ipywidgets.HTML()

    def copy(_):
        try:
            path = start(problem_set).relative_to(course_folder()).as_posix()
            # JupyterLab opens it in place; elsewhere the link leads there from notebooks/.
            opens = html.escape(json.dumps({"path": path}))
            answer.value = (
                f'<div class="jp-RenderedHTMLCommon">Yours: <a href="../{path}" target="_blank" '
                f'data-commandlinker-command="docmanager:open" data-commandlinker-args="{opens}">'
                f"{path}</a></div>")
        except (ValueError, OSError) as error:
            answer.value = html.escape(str(error))

    button.on_click(copy)
    box = ipywidgets.VBox([button, answer])
    bundle = box._repr_mimebundle_()
    bundle["text/plain"] = f"In a terminal: coursekit start {problem_set}"
    display(bundle, raw=True)


def course_folder():
    """The folder of the course: the one that holds this package and its exercises."""
    return Path(__file__).resolve().parent.parent


def problem_set_file(problem_set, folder):
    """Path of a problem set's notebook in `exercises` or `solutions`; None if it is not there."""
    return next(iter(sorted((course_folder() / folder).glob(f"{problem_set}-*/*.ipynb"))), None)


def set_of(key):
    """Name of the problem set that an exercise belongs to.

    >>> set_of("2.3")
    'ps02'
    """
    return f"ps{int(key.partition('.')[0]):02d}"


def _verdict(exercise, namespace):
    return exercise.check(LocalSubject(namespace), seed=seed_for(SALT, exercise.key))


def _wrapped(text):
    """Lines that fit a notebook's output; JupyterLab would break them inside words."""
    return textwrap.fill(text, 88, break_long_words=False, break_on_hyphens=False)


def _caller():
    return sys._getframe(2).f_globals
