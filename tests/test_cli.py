"""The command line: exit codes, and sentences instead of tracebacks."""

import subprocess
import sys
from pathlib import Path

import pytest

import coursekit.verify
from coursekit import build, checks, cli, learn, notebooks

ROOT = Path(__file__).resolve().parents[1]
SOLUTION = {"metadata": {}, "nbformat": 4, "nbformat_minor": 5, "cells": [
    {"cell_type": "markdown", "id": "a", "metadata": {}, "source": ["# A problem set"]}]}


@pytest.fixture
def course(tmp_path, monkeypatch):
    """A course folder with the problem set ps09, built."""
    monkeypatch.setattr(checks, "problem_sets", lambda: ["ps09"])
    monkeypatch.setattr(learn, "course_folder", lambda: tmp_path)
    path = tmp_path / "solutions" / "ps09-set" / "ps09-set.ipynb"
    path.parent.mkdir(parents=True)
    path.write_text(build.dump(SOLUTION), encoding="utf-8")
    build.build(tmp_path)
    return tmp_path


def _run(capsys, *arguments):
    """Exit code, and what was printed to each stream."""
    code = cli.main([*arguments])
    return (code, *capsys.readouterr())


def test_start(course, capsys):
    copy = Path("work/ps09-set/ps09-set.ipynb")
    assert _run(capsys, "start", "ps09") == (0, f"Yours: {copy}\n", "")
    (course / copy).write_bytes(b"mine")
    assert _run(capsys, "start", "ps09") == (0, f"Yours: {copy}\n", "")
    second = copy.with_name("ps09-set-2.ipynb")
    assert _run(capsys, "start", "ps09", "--fresh") == (0, f"Yours: {second}\n", "")
    assert (course / copy).read_bytes() == b"mine"


@pytest.mark.parametrize("name", ["ps10", "", "../x", "*"])
def test_start_of_an_unknown_problem_set(course, capsys, name):
    assert _run(capsys, "start", name) == (
        1, "", f"coursekit: There is no problem set {name!r}; there are: ps09.\n")


def test_start_that_cannot_write(course, capsys):
    (course / "work").write_bytes(b"my notes")
    code, out, err = _run(capsys, "start", "ps09")
    assert (code, out) == (1, "") and "a file of that name is in the way" in err


def test_build(course, capsys):
    assert _run(capsys, "build") == (0, "exercises: 0 changed\n", "")
    assert _run(capsys, "build", "--check") == (0, "exercises: 0 differ\n", "")
    exercise = course / "exercises" / "ps09-set" / "ps09-set.ipynb"
    exercise.unlink()
    name = exercise.relative_to(course)
    assert _run(capsys, "build", "--check") == (
        1, f"{name}: differs from its solution\nexercises: 1 differ\n", "")
    assert not exercise.exists()
    assert _run(capsys, "build") == (0, f"{name}: written\nexercises: 1 changed\n", "")
    assert exercise.exists()


def test_build_refuses_work_done_by_hand(course, capsys):
    exercise = course / "exercises" / "ps09-set" / "ps09-set.ipynb"
    exercise.write_bytes(b"mine")
    code, out, err = _run(capsys, "build")
    assert (code, out, exercise.read_bytes()) == (1, "", b"mine")
    assert err == (f"coursekit: {exercise.relative_to(course)} was edited by hand, so it is left "
                   "as it is. Move your work to work/ (or put the change into solutions/), then "
                   "build again.\n")


@pytest.mark.parametrize(("arguments", "wanted"), [(["ps09"], ["ps09"]), ([], [])])
@pytest.mark.parametrize(("problems", "code"), [([], 0), (["one"], 1)])
def test_verify(monkeypatch, arguments, wanted, problems, code):
    """What it finds is proved in test_verify.py."""
    asked = []
    monkeypatch.setattr(coursekit.verify, "verify", lambda names: asked.append(names) or problems)
    assert cli.main(["verify", *arguments]) == code
    assert asked == [wanted]


def test_verify_of_an_unknown_problem_set(course, capsys):
    assert _run(capsys, "verify", "ps10") == (
        1, "", "coursekit: There is no problem set 'ps10'; there are: ps09.\n")


def test_run(monkeypatch, capsys):
    asked = []
    monkeypatch.setattr(notebooks, "run", asked.append)
    assert cli.main(["run", "a.ipynb", "b.ipynb"]) == 0
    assert asked == [[Path("a.ipynb"), Path("b.ipynb")]]
    monkeypatch.undo()
    assert _run(capsys, "run", "a.txt") == (
        1, "", "coursekit: paths must be notebooks (.ipynb), got a.txt.\n")
    assert _run(capsys, "run", "not-there.ipynb") == (
        1, "", "coursekit: There is no notebook not-there.ipynb.\n")


def test_run_of_a_notebook_that_fails(monkeypatch, capsys):
    def fail(paths):
        raise notebooks.NotebookError("a cell 3 failed: ZeroDivisionError: division by zero")

    monkeypatch.setattr(notebooks, "run", fail)
    assert _run(capsys, "run", "a.ipynb") == (
        1, "", "coursekit: a cell 3 failed: ZeroDivisionError: division by zero\n")


def test_portable(course, monkeypatch):
    asked, moved = [], []
    monkeypatch.setattr(notebooks, "portable", lambda paths: asked.append(paths) or moved)
    (course / "notebooks").mkdir()
    (course / "notebooks" / "01.ipynb").write_text("{}")
    assert cli.main(["portable"]) == 0
    assert asked.pop() == [course / "notebooks" / "01.ipynb",
                           course / "solutions" / "ps09-set" / "ps09-set.ipynb"]
    moved.append("a cell moved")
    assert cli.main(["portable", "x.ipynb"]) == 1
    assert asked.pop() == [Path("x.ipynb")]


@pytest.mark.parametrize("arguments", [[], ["grad"], ["start"], ["start", "a", "b"], ["run"],
                                       ["build", "--force"], ["--nonsense"]])
def test_a_command_that_is_none_is_told_the_usage(capsys, arguments):
    with pytest.raises(SystemExit) as stopped:
        cli.main(arguments)
    assert stopped.value.code == 2
    out, err = capsys.readouterr()
    assert out == "" and err.startswith("usage: coursekit") and "error: " in err


def test_help_lists_the_commands(capsys):
    with pytest.raises(SystemExit) as stopped:
        cli.main(["--help"])
    assert stopped.value.code == 0
    out = capsys.readouterr().out
    assert all(name in out for name in ("start", "build", "verify", "run", "portable"))


def test_the_module_is_the_command():
    """As a user types it; the exit code comes through and nothing looks like a crash."""
    run = subprocess.run([sys.executable, "-m", "coursekit", "start", "ps99"], cwd=ROOT,
                         capture_output=True, text=True)
    assert run.returncode == 1 and run.stdout == ""
    assert run.stderr.startswith("coursekit: There is no problem set 'ps99'; there are: ps01")
    assert "Traceback" not in run.stderr
