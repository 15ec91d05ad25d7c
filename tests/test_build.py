"""Exercises made from solutions: nbgrader's own sources, the same bytes, and nobody's work lost."""

import copy
import json
import os
from pathlib import Path

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output

from coursekit import build

ROOT = Path(__file__).resolve().parents[1]
SOLUTIONS = sorted((ROOT / "solutions").glob("ps*/*.ipynb"))


def _role(grade_id, **changes):
    return {"nbgrader": {"schema_version": 3, "grade": False, "solution": True, "locked": False,
                         "task": False, "grade_id": grade_id, **changes}}


def _notebook(*cells):
    """A small solution notebook as a dict; its cell names do not change from call to call."""
    notebook = new_notebook(cells=list(cells), metadata={
        "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"}})
    for number, cell in enumerate(notebook.cells):
        cell.id = f"cell-{number}"
    return json.loads(nbformat.writes(notebook))


CELLS = (
    new_markdown_cell("# Problem set\n\nWork — with care.\n"),
    new_code_cell("import numpy as np", execution_count=1, metadata={"tags": ["setup"]}),
    new_code_cell(
        'def f(x):\n    """Doc."""\n    ### BEGIN SOLUTION\n    y = 2 * x\n\n    return y\n'
        "    ### END SOLUTION\n\n\ndef g(x):\n    if x:\n        ### BEGIN SOLUTION\n"
        "        return 1\n        ### END SOLUTION\n    return 0\n", execution_count=2,
        metadata=_role("exercise-1-1")),
    new_code_cell("secret = 42\nsecret", execution_count=3, metadata=_role("exercise-1-2"),
                  outputs=[new_output("stream", text="42\n")]),
    new_code_cell("    ## BEGIN SOLUTION here\n    x = 1\n    # ... END SOLUTION\nx\x0c = 2\u2028",
                  metadata=_role("exercise-1-3")),
    new_code_cell('check("1.1")', execution_count=4, outputs=[new_output("stream", text="Right.")],
                  metadata=_role("check-1-1", grade=True, solution=False, locked=True, points=2)),
    new_markdown_cell("Our model answer.\nIn two lines.",
                      metadata=_role("exercise-1-4", grade=True, points=3)),
    new_markdown_cell("Because\n### BEGIN SOLUTION\nit is so\n### END SOLUTION\n(say why)",
                      metadata=_role("exercise-1-5", grade=True, points=3)),
    new_markdown_cell("The end."),
)
MADE = _notebook(*CELLS)


def _sources(notebook):
    return [(cell["cell_type"], "".join(cell["source"])) for cell in notebook["cells"]]


# What is derived


@pytest.mark.filterwarnings("default")  # nbgrader's own imports warn
@pytest.mark.parametrize("solution", [MADE, *SOLUTIONS],
                         ids=["made", *(path.stem for path in SOLUTIONS)])
def test_sources_are_those_of_nbgraders_release(solution):
    """Its own preprocessors, in the order of `nbgrader generate_assignment`."""
    from nbgrader.preprocessors import (
        CheckCellMetadata,
        ClearHiddenTests,
        ClearMarkScheme,
        ClearOutput,
        ClearSolutions,
        IncludeHeaderFooter,
        LockCells,
    )

    solution = solution if isinstance(solution, dict) else build.load(solution)
    released = nbformat.from_dict(copy.deepcopy(solution))
    for cell in released.cells:
        cell.source = "".join(cell.source)
    for step in (IncludeHeaderFooter, LockCells, ClearSolutions, ClearOutput, CheckCellMetadata,
                 ClearHiddenTests, ClearMarkScheme, CheckCellMetadata):
        released, _ = step().preprocess(released, {})
    derived = build.derive(solution)
    assert _sources(derived) == _sources(released)
    for ours, theirs in zip(derived["cells"], released.cells, strict=True):
        assert ours["id"] == theirs.id
        if ours["cell_type"] == "code":
            assert (ours["outputs"], ours["execution_count"]) == ([], None)
            assert (theirs.outputs, theirs.execution_count) == ([], None)


def test_what_is_derived_word_for_word():
    sources = [source for _, source in _sources(build.derive(MADE))]
    stub = "# YOUR CODE HERE\nraise NotImplementedError()"
    assert sources[2] == (
        'def f(x):\n    """Doc."""\n    # YOUR CODE HERE\n    raise NotImplementedError()\n\n\n'
        "def g(x):\n    if x:\n        # YOUR CODE HERE\n        raise NotImplementedError()\n"
        "    return 0\n")
    assert sources[3] == stub
    assert sources[6:8] == ["YOUR ANSWER HERE", "Because\nYOUR ANSWER HERE\n(say why)"]
    assert "42" not in build.dump(build.derive(MADE)) and "Right." not in str(sources)


def test_derive_leaves_the_solution_alone_and_gives_a_valid_notebook():
    before = copy.deepcopy(MADE)
    derived = build.derive(MADE)
    assert before == MADE
    nbformat.validate(nbformat.reads(build.dump(derived), as_version=4))
    metadata = [cell["metadata"] for cell in derived["cells"]]
    assert metadata == [cell["metadata"] for cell in MADE["cells"]]


def test_the_same_solution_gives_the_same_bytes():
    shuffled = json.loads(json.dumps(dict(reversed(MADE.items()))))
    assert build.dump(build.derive(MADE)) == build.dump(build.derive(shuffled))
    text = build.dump(build.derive(MADE))
    assert text.endswith("}\n") and not text.endswith("\n\n") and "—" in text
    # nbformat would write the same, so opening and saving it in JupyterLab shows no difference.
    assert nbformat.writes(nbformat.reads(text, as_version=4)) + "\n" == text


@pytest.mark.parametrize(("source", "sentence"), [
    ("### BEGIN SOLUTION\nx = 1", "BEGIN SOLUTION stands without END SOLUTION"),
    ("x = 1\n### END SOLUTION", "END SOLUTION stands without BEGIN SOLUTION"),
    ("### BEGIN SOLUTION\n### BEGIN SOLUTION\n### END SOLUTION",
     "BEGIN SOLUTION stands twice without END SOLUTION"),
    ("### BEGIN SOLUTION\n### END SOLUTION\n### END SOLUTION", "END SOLUTION stands without"),
])
@pytest.mark.parametrize("make", [new_code_cell, new_markdown_cell])
def test_marks_that_do_not_match_are_refused(make, source, sentence):
    with pytest.raises(ValueError, match=sentence):
        build.derive(_notebook(make(source, metadata=_role("exercise-1-1"))))


@pytest.mark.parametrize("make", [new_code_cell, new_markdown_cell])
def test_a_solution_in_a_cell_that_is_not_marked_as_one_is_refused(make):
    """nbgrader refuses it too; released as it is, it would give the answer away."""
    for metadata in ({}, _role("check-1-1", solution=False, grade=True)):
        cell = make("### BEGIN SOLUTION\nx = 1\n### END SOLUTION", metadata=metadata)
        with pytest.raises(ValueError, match="in a cell that is not marked as a solution"):
            build.derive(_notebook(cell))


def test_solution_source_leaves_the_marks_out(tmp_path):
    path = tmp_path / "ps01.ipynb"
    path.write_text(build.dump(MADE), encoding="utf-8")
    assert build.solution_source(path, "1.1") == (
        'def f(x):\n    """Doc."""\n    y = 2 * x\n\n    return y\n\n\n'
        "def g(x):\n    if x:\n        return 1\n    return 0\n")
    assert build.solution_source(path, "1.4") == "Our model answer.\nIn two lines."
    with pytest.raises(ValueError, match=r"ps01\.ipynb has no cell for exercise 1\.9"):
        build.solution_source(path, "1.9")


# Building


@pytest.fixture
def course(tmp_path):
    """Two solutions, and the exercises built from them."""
    for name in ("ps01-first", "ps02-second"):
        path = tmp_path / "solutions" / name / f"{name}.ipynb"
        path.parent.mkdir(parents=True)
        path.write_text(build.dump(MADE), encoding="utf-8")
    build.build(tmp_path)
    return tmp_path


def _exercise(course, name="ps01-first"):
    return course / "exercises" / name / f"{name}.ipynb"


def _change_solution(course, name="ps01-first"):
    changed = copy.deepcopy(MADE)
    changed["cells"][0]["source"] = ["# A new title"]
    path = course / "solutions" / name / f"{name}.ipynb"
    path.write_text(build.dump(changed), encoding="utf-8")


def _state(folder):
    return {path.relative_to(folder): (path.read_bytes(), path.stat().st_mtime_ns)
            for path in sorted(folder.rglob("*")) if path.is_file()}


def test_build_writes_what_is_missing_or_stale_and_nothing_else(course):
    assert _exercise(course).read_text(encoding="utf-8") == build.dump(build.derive(MADE))
    before = _state(course)
    assert build.build(course) == []
    assert _state(course) == before
    _change_solution(course, "ps02-second")
    assert build.build(course) == [_exercise(course, "ps02-second")]
    assert "# A new title" in _exercise(course, "ps02-second").read_text(encoding="utf-8")
    after = _state(course)
    assert [path for path in after if after[path] != before.get(path)] == [
        Path("exercises/ps02-second/ps02-second.ipynb"),
        Path("solutions/ps02-second/ps02-second.ipynb")]
    assert build.build(course) == []


def test_check_compares_and_writes_nothing(course):
    assert build.build(course, check=True) == []
    _change_solution(course)
    _exercise(course, "ps02-second").unlink()
    orphan = course / "exercises" / "ps03-gone" / "ps03-gone.ipynb"
    orphan.parent.mkdir()
    orphan.write_bytes(_exercise(course).read_bytes())
    before = _state(course)
    differ = [_exercise(course), _exercise(course, "ps02-second"), orphan]
    assert build.build(course, check=True) == differ
    assert _state(course) == before


def test_an_exercise_whose_solution_is_gone_is_removed(course):
    path = course / "solutions" / "ps02-second" / "ps02-second.ipynb"
    path.unlink()
    assert build.build(course) == [_exercise(course, "ps02-second")]
    assert not _exercise(course, "ps02-second").exists()


def _edit_source(notebook):
    notebook["cells"][2]["source"] = ["def f(x):\n", "    return 2 * x\n"]


def _edit_a_space(notebook):
    notebook["cells"][0]["source"][-1] += " "


def _add_cell(notebook):
    notebook["cells"].append({"cell_type": "markdown", "id": "n", "metadata": {}, "source": ["my"]})


def _drop_cell(notebook):
    del notebook["cells"][1]


def _change_kind(notebook):
    notebook["cells"][0] = {**notebook["cells"][0], "cell_type": "raw"}


def _move_text_to_the_next_cell(notebook):
    first, second = notebook["cells"][:2]
    second["source"] = [*first["source"], *second["source"]]
    first["source"] = []


def _drop_fingerprint(notebook):
    del notebook["metadata"]["coursekit"]


def _drop_metadata(notebook):
    del notebook["metadata"]


def _no_cells(notebook):
    notebook["cells"] = 3


EDITS = [_edit_source, _edit_a_space, _add_cell, _drop_cell, _change_kind,
         _move_text_to_the_next_cell, _drop_fingerprint, _drop_metadata, _no_cells]
BROKEN = [b"", b"{", b"[]", b"null", b"3", b"\xff\xfe my notes", b'{"metadata": []}']


@pytest.mark.parametrize("stale", [True, False], ids=["stale", "fresh"])
@pytest.mark.parametrize("edit", [*EDITS, *BROKEN])
def test_an_exercise_edited_by_hand_stops_everything(course, edit, stale):
    path = _exercise(course, "ps02-second")
    if isinstance(edit, bytes):
        path.write_bytes(edit)
    else:
        notebook = build.load(path)
        edit(notebook)
        path.write_text(build.dump(notebook), encoding="utf-8")
    if stale:
        for name in ("ps01-first", "ps02-second"):
            _change_solution(course, name)
    before = _state(course)
    with pytest.raises(build.EditedByHand, match=r"ps02-second\.ipynb was edited by hand"):
        build.build(course)
    assert _state(course) == before
    assert path in build.build(course, check=True)


def test_an_orphan_edited_by_hand_is_kept(course):
    path = _exercise(course, "ps02-second")
    notebook = build.load(path)
    _edit_source(notebook)
    path.write_text(build.dump(notebook), encoding="utf-8")
    (course / "solutions" / "ps02-second" / "ps02-second.ipynb").unlink()
    before = _state(course)
    with pytest.raises(build.EditedByHand):
        build.build(course)
    assert _state(course) == before


def test_outputs_alone_are_nobodys_work(course):
    """A learner ran the released notebook in place and wrote nothing: it may be built again."""
    path = _exercise(course)
    notebook = build.load(path)
    notebook["cells"][5] |= {"execution_count": 7, "outputs": [
        {"output_type": "stream", "name": "stdout", "text": ["Not attempted.\n"]}]}
    path.write_text(json.dumps(notebook), encoding="utf-8")
    assert build.build(course, check=True) == [path]
    assert build.build(course) == [path]
    assert path.read_text(encoding="utf-8") == build.dump(build.derive(MADE))


def test_a_copy_without_solutions_keeps_its_exercises(course):
    for path in (course / "solutions").glob("*/*.ipynb"):
        path.unlink()
    before = _state(course)
    for check in (True, False):
        with pytest.raises(ValueError, match="solutions/ holds no problem set"):
            build.build(course, check=check)
    assert _state(course) == before


@pytest.mark.parametrize("text", ["{}", "[]", "3", '{"cells": []}'])
def test_a_file_that_is_no_notebook_is_refused(course, text):
    path = course / "solutions" / "ps02-second" / "ps02-second.ipynb"
    path.write_text(text, encoding="utf-8")
    for act in (lambda: build.load(path), lambda: build.build(course)):
        with pytest.raises(ValueError, match=r"ps02-second\.ipynb is no notebook\.$"):
            act()


@pytest.mark.parametrize("text", ["{", json.dumps(_notebook(new_code_cell(
    "### BEGIN SOLUTION", metadata=_role("exercise-1-1"))))])
def test_a_broken_solution_is_named_and_nothing_is_written(course, text):
    _change_solution(course, "ps01-first")
    path = course / "solutions" / "ps02-second" / "ps02-second.ipynb"
    path.write_text(text, encoding="utf-8")
    before = _state(course)
    with pytest.raises(ValueError, match=r"ps02-second\.ipynb: "):
        build.build(course)
    assert _state(course) == before


def test_an_interrupted_write_leaves_the_old_exercise(course, monkeypatch):
    _change_solution(course)
    before = _state(course)
    write = Path.write_text

    def half(path, text, **options):
        write(path, text[:100], **options)
        raise KeyboardInterrupt

    monkeypatch.setattr(Path, "write_text", half)
    with pytest.raises(KeyboardInterrupt):
        build.build(course)
    monkeypatch.undo()
    assert _state(course) == before

    def refuse(source, target):
        raise PermissionError("in use")

    monkeypatch.setattr(os, "replace", refuse)
    with pytest.raises(PermissionError):
        build.build(course)
    assert _state(course) == before
    monkeypatch.undo()
    assert build.build(course) == [_exercise(course)]


def test_grade_id():
    assert build.grade_id("12.10") == "exercise-12-10"
