"""What a learner calls: check, hint, solution, progress; and `start`, which loses no work."""

import errno
import os
import threading
from pathlib import Path

import numpy as np
import pytest

from coursekit import build, checks, learn
from coursekit.checks.exercise import Exact, Exercise, Mistake

DOUBLE = Exercise(
    "9.1", "Twice", 2, function="double", right=lambda x: 2 * x,
    parts=(Exact(lambda rng: [{"x": 11.0}]),),
    mistakes=(Mistake("square", lambda x: x**2, "That is the square, not the double."),),
    hints=("Add it to itself.", "x + x."), lesson="Adding is enough.",
)
NO_HINTS = Exercise("9.2", "Half", 3, function="halve", right=lambda x: x / 2,
                    parts=(Exact(lambda rng: [{"x": 1.0}]),))
ESSAY = Exercise("9.3", "In words", 4, rubric="Names the adjacency.")
SET = {exercise.key: exercise for exercise in (DOUBLE, NO_HINTS, ESSAY)}

RELEASED = b'{"cells": [], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}\n' * 500


@pytest.fixture(autouse=True)
def course(tmp_path, monkeypatch):
    """A course folder with one problem set, ps09, whose exercise notebook is some 35 kB."""
    monkeypatch.setattr(checks, "problem_sets", lambda: ["ps09"])
    monkeypatch.setattr(checks, "exercises", lambda name: SET if checks.known(name) else None)
    monkeypatch.setattr(learn, "course_folder", lambda: tmp_path)
    source = tmp_path / "exercises" / "ps09-doubling" / "ps09-doubling.ipynb"
    source.parent.mkdir(parents=True)
    source.write_bytes(RELEASED)
    return tmp_path


def _notebook(*cells):
    """The globals of a notebook after these cells."""
    namespace = {"__name__": "__main__"}
    for cell in ("from coursekit.learn import check, hint, progress, solution", *cells):
        exec(cell, namespace)
    return namespace


# check, hint, solution, progress


@pytest.mark.parametrize(("cell", "printed"), [
    ("def double(x): return x + x",
     "✔ 9.1  Right.\nAdding is enough. Checked: the values agree with the closed form.\n"),
    ("def double(x): return x ** 2", "✘ 9.1  Not yet. (square)\nThat is the square, not the "
     'double.\nA hint is there when you want one: hint("9.1")\n'),
    ("def double(x): return y", "✘ 9.1  Not yet.\ndouble(x=11.0) stopped with NameError: name 'y' "
     'is not defined (line 1).\nA hint is there when you want one: hint("9.1")\n'),
    ("def double(x): raise NotImplementedError()",
     "○ 9.1  Not attempted.\ndouble still waits for your code.\n"),
    ("", "○ 9.1  Not attempted.\nThere is no function called double yet: run its cell first.\n"),
])
def test_check_prints_what_it_found_in_the_notebook_that_calls_it(cell, printed, capsys):
    _notebook(cell, 'check("9.1")')
    assert capsys.readouterr().out == printed


def test_check_finds_the_notebook_from_within_a_function_too(capsys):
    _notebook("def double(x): return 2 * x", 'def all_of_it(): check("9.1")', "all_of_it()")
    assert capsys.readouterr().out.startswith("✔ 9.1")


def test_check_looks_where_it_is_told_to_even_if_nothing_is_there(capsys):
    learn.check("9.1", namespace={"double": lambda x: 2 * x})
    assert capsys.readouterr().out.startswith("✔")
    _notebook("def double(x): return 2 * x", 'check("9.1", namespace={})')
    assert capsys.readouterr().out.startswith("○")


def test_check_and_progress_change_nothing_of_the_learners(capsys):
    notebook = _notebook("data = [1, 2]", "def double(x):\n    x += x\n    return x")
    before = dict(notebook)
    exec('check("9.1")\nprogress()', notebook)
    assert notebook == before and notebook["data"] == [1, 2]


def test_check_of_a_written_exercise(capsys):
    learn.check("9.3", namespace={})
    assert capsys.readouterr().out == (
        "✎ 9.3  Written answer.\nA person marks this one. What counts: Names the adjacency.\n")


@pytest.mark.parametrize("key", ["9.4", "9", 9, "09.1", "9.1.", "9.1 ", "7.1", 7.1, None, "", "x",
                                 "²", "²..1", "-9.1", ["9.1"], {}, "ps09", np.nan])
@pytest.mark.parametrize("ask", [learn.check, learn.hint, learn.solution])
def test_an_unknown_key_is_refused_with_a_sentence(ask, key):
    with pytest.raises(ValueError, match="There is no exercise") as refused:
        ask(key)
    assert str(refused.value).endswith(".")
    assert "9.1 to 9.3" in str(refused.value) or "ps09" in str(refused.value)


def test_a_key_without_quotes_is_understood(capsys):
    _notebook("def double(x): return 2 * x", "check(9.1)", "hint(9.1)")
    assert capsys.readouterr().out.startswith("✔ 9.1")


def test_hint(capsys):
    learn.hint("9.1")
    assert capsys.readouterr().out == (
        'Hint 1 of 2: Add it to itself.\nStill stuck? hint("9.1", 2)\n')
    for second in (2, 2.0):
        learn.hint("9.1", second)
        assert capsys.readouterr().out == "Hint 2 of 2: x + x.\n"
    for key in ("9.2", "9.3"):
        learn.hint(key)
        assert capsys.readouterr().out == f"Exercise {key} has no hints.\n"


@pytest.mark.parametrize("number", [0, 3, -1, 1.5, "1", None])
def test_a_hint_that_is_not_there_is_refused_with_a_sentence(number):
    with pytest.raises(ValueError, match=r"Exercise 9\.1 has hints 1 to 2, got"):
        learn.hint("9.1", number)


def test_solution_prints_the_answer_cell_without_its_marks(course, capsys):
    learn.solution("9.1")
    assert capsys.readouterr().out == (
        "The solutions are not in this copy of the course: ask your teacher.\n")
    path = course / "solutions" / "ps09-doubling" / "ps09-doubling.ipynb"
    path.parent.mkdir(parents=True)
    source = ("def double(x):\n    ### BEGIN SOLUTION\n    # Twice is a sum.\n    return x + x\n"
              "    ### END SOLUTION")
    path.write_text(build.dump({"cells": [
        {"cell_type": "code", "source": source.splitlines(True),
         "metadata": {"nbgrader": {"grade_id": "exercise-9-1"}}}], "metadata": {}}),
        encoding="utf-8")
    learn.solution("9.1")
    assert capsys.readouterr().out == "def double(x):\n    # Twice is a sum.\n    return x + x\n"
    with pytest.raises(ValueError, match=r"ps09-doubling\.ipynb has no cell for exercise 9\.2\."):
        learn.solution("9.2")


def test_progress_adds_up_the_points(capsys):
    _notebook("def double(x): return 2 * x", "def halve(x): return x", "progress()")
    assert capsys.readouterr().out == (
        "✔ 9.1  Twice (right)\n✘ 9.2  Half (wrong)\n✎ 9.3  In words (for a person to mark)\n"
        "ps09: 2 of 5 points, and 4 for a person to mark.\n")
    _notebook("def double(x): return x ** 2", "def halve(x): return x / 2", "progress('ps09')")
    out = capsys.readouterr().out
    assert "✘ 9.1  Twice (wrong: square)\n" in out and "ps09: 3 of 5 points" in out


def test_progress_without_a_problem_set(capsys):
    _notebook("progress()")
    assert "run its cells first" in capsys.readouterr().out
    learn.progress("ps09", namespace={})
    assert "ps09: 0 of 5 points" in capsys.readouterr().out
    with pytest.raises(ValueError, match=r"There is no problem set 'ps10'; there are: ps09\."):
        learn.progress("ps10", namespace={})


# start


def _is_clean(folder):
    """Nothing but notebooks is left behind."""
    return all(path.suffix == ".ipynb" and not path.name.startswith(".")
               for path in folder.iterdir())


def test_start_copies_the_problem_set_into_work(course):
    path = learn.start("ps09")
    assert path == course / "work" / "ps09-doubling" / "ps09-doubling.ipynb"
    assert path.read_bytes() == RELEASED
    assert os.access(path, os.W_OK) and path.stat().st_nlink == 1
    assert _is_clean(path.parent)


@pytest.mark.parametrize("written", [RELEASED, b"my own work", b""])
def test_start_never_touches_a_copy(course, written):
    path = learn.start("ps09")
    path.write_bytes(written)
    os.utime(path, ns=(10**18, 10**18))
    (course / "exercises" / "ps09-doubling" / "ps09-doubling.ipynb").write_bytes(b"a new edition")
    assert learn.start("ps09") == path
    assert path.read_bytes() == written and path.stat().st_mtime_ns == 10**18
    second = learn.start("ps09", fresh=True)
    assert second == path.with_name("ps09-doubling-2.ipynb")
    assert second.read_bytes() == b"a new edition"
    second.write_bytes(b"more of my work")
    third = learn.start("ps09", fresh=True)
    assert third == path.with_name("ps09-doubling-3.ipynb")
    assert second.read_bytes() == b"more of my work" and third.read_bytes() == b"a new edition"
    assert path.read_bytes() == written and path.stat().st_mtime_ns == 10**18
    assert _is_clean(path.parent)


def test_fresh_is_the_plain_copy_when_there_is_none():
    assert learn.start("ps09", fresh=True).name == "ps09-doubling.ipynb"


def test_start_leaves_a_link_of_the_learners_alone(course, tmp_path):
    folder = course / "work" / "ps09-doubling"
    folder.mkdir(parents=True)
    try:
        (folder / "ps09-doubling.ipynb").symlink_to(tmp_path / "not there")
    except OSError:
        pytest.skip("this system makes no symbolic links")
    learn.start("ps09")
    assert not (tmp_path / "not there").exists()


@pytest.mark.parametrize("fresh", [False, True])
def test_many_starts_at_once(fresh):
    """All get a whole copy: the same one, or one each."""
    together, paths = threading.Barrier(8), []

    def begin():
        together.wait()
        path = learn.start("ps09", fresh=fresh)
        paths.append((path, path.read_bytes()))

    threads = [threading.Thread(target=begin) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [content for _, content in paths] == [RELEASED] * 8
    assert len({path for path, _ in paths}) == (8 if fresh else 1)
    assert _is_clean(paths[0][0].parent)


def _no_links(source, target):
    raise OSError(errno.EPERM, "Operation not permitted")


@pytest.mark.parametrize("links", [True, False])
def test_work_that_appears_at_the_last_moment_is_kept(monkeypatch, links):
    """Another program puts a file there just before ours arrives."""
    link = os.link if links else _no_links

    def too_late(source, target):
        Path(target).write_bytes(b"mine")
        link(source, target)

    monkeypatch.setattr(os, "link", too_late)
    assert learn.start("ps09").read_bytes() == b"mine"


def test_start_on_a_disk_without_links(monkeypatch):
    monkeypatch.setattr(os, "link", _no_links)
    path = learn.start("ps09")
    assert path.read_bytes() == RELEASED
    path.write_bytes(b"mine")
    assert learn.start("ps09") == path and path.read_bytes() == b"mine"
    assert learn.start("ps09", fresh=True).name == "ps09-doubling-2.ipynb"
    assert _is_clean(path.parent)


@pytest.mark.parametrize("interruption", [OSError(errno.ENOSPC, "No space left on device"),
                                          KeyboardInterrupt()])
def test_a_half_written_copy_never_passes_for_work(monkeypatch, course, interruption):
    write = Path.write_bytes

    def half(path, content):
        write(path, content[: len(content) // 2])
        raise interruption

    monkeypatch.setattr(Path, "write_bytes", half)
    with pytest.raises(type(interruption)):
        learn.start("ps09")
    monkeypatch.setattr(Path, "write_bytes", write)
    assert list((course / "work" / "ps09-doubling").iterdir()) == []
    assert learn.start("ps09").read_bytes() == RELEASED


@pytest.mark.parametrize("name", ["ps10", "ps", "", "../x", "../exercises/ps09", "ps09/", "ps9",
                                  "*", "ps*", "ps0[9]", "/etc", "PS09", "ps09-doubling", None,
                                  9, []])
def test_an_unknown_problem_set_is_refused_and_nothing_is_made(course, name):
    with pytest.raises(ValueError, match=r"There is no problem set .*; there are: ps09\."):
        learn.start(name)
    assert not (course / "work").exists()


def test_exercises_that_are_not_there(course):
    (course / "exercises" / "ps09-doubling" / "ps09-doubling.ipynb").unlink()
    for folder in ("ps09-doubling", "."):
        (course / "exercises" / folder).rmdir()
        with pytest.raises(ValueError, match="exercises/ does not hold ps09: fetch the course"):
            learn.start("ps09")
    assert not (course / "work").exists()


@pytest.mark.parametrize("where", ["work", "work/ps09-doubling"])
def test_a_file_in_the_place_of_the_folder_is_left_alone(course, where):
    in_the_way = course / where
    in_the_way.parent.mkdir(exist_ok=True)
    in_the_way.write_bytes(b"my notes")
    with pytest.raises(ValueError, match="a file of that name is in the way"):
        learn.start("ps09")
    assert in_the_way.read_bytes() == b"my notes"


# The button


@pytest.fixture
def shown(monkeypatch):
    """What `start_button` displays: a list of (bundle, options)."""
    import IPython.display

    calls = []
    monkeypatch.setattr(IPython.display, "display",
                        lambda bundle, **options: calls.append((bundle, options)))
    return calls


def _press(bundle):
    """Click the button that a displayed bundle holds; return the text it shows then."""
    from ipywidgets.widgets import widget

    view = bundle["application/vnd.jupyter.widget-view+json"]
    button, answer = widget._instances[view["model_id"]].children
    button.click()
    return answer.value


def test_the_button_copies_when_it_is_pressed(course, shown):
    learn.start_button("ps09")
    (bundle, options), = shown
    assert bundle["text/plain"] == "In a terminal: coursekit start ps09"
    assert options == {"raw": True}
    assert not (course / "work").exists()
    path = "work/ps09-doubling/ps09-doubling.ipynb"
    pressed = _press(bundle)
    assert f'<a href="../{path}" target="_blank"' in pressed  # from notebooks/, without JupyterLab
    assert 'data-commandlinker-command="docmanager:open"' in pressed  # in JupyterLab
    assert f'data-commandlinker-args="{{&quot;path&quot;: &quot;{path}&quot;}}"' in pressed
    assert (course / path).read_bytes() == RELEASED
    (course / path).write_bytes(b"mine")
    assert f'href="../{path}"' in _press(bundle)
    assert (course / path).read_bytes() == b"mine"


def test_the_button_tells_why_it_cannot_copy(course, shown):
    learn.start_button("ps09")
    (course / "work").write_bytes(b"<my notes>")
    assert "a file of that name is in the way" in _press(shown[0][0])


def test_the_displayed_text_is_the_same_each_time(shown):
    learn.start_button("ps09")
    learn.start_button("ps09")
    (first, _), (second, _) = shown
    view = "application/vnd.jupyter.widget-view+json"
    assert {**first, view: None} == {**second, view: None}


# Where things are


def test_the_course_folder_holds_this_package(monkeypatch):
    monkeypatch.undo()
    assert (learn.course_folder() / "coursekit" / "learn.py").is_file()
    assert learn.course_folder() == Path(__file__).resolve().parents[1]


def test_no_two_exercises_share_a_function_or_progress_would_mix_up_their_sets():
    functions = [exercise.function for name in checks.problem_sets()
                 for exercise in checks.exercises(name).values() if exercise.function]
    assert len(functions) == len(set(functions))
