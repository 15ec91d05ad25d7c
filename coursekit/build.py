"""Exercises from solutions: `solutions/` is written by hand, `exercises/` is made from it.

The solution notebooks carry nbgrader's cell metadata and its `### BEGIN SOLUTION` marks, and what
is derived has the same sources as nbgrader's own release would; but no database is needed, and
the same solution always gives the same bytes.
"""

import hashlib
import json
import os
from pathlib import Path

BEGIN, END = "BEGIN SOLUTION", "END SOLUTION"  # anywhere in a line, as nbgrader finds them
STUBS = {
    "code": ("# YOUR CODE HERE", "raise NotImplementedError()"),
    "markdown": ("YOUR ANSWER HERE",),
}


class EditedByHand(RuntimeError):
    """An exercise differs from what was generated: somebody's work is in it."""


def derive(notebook):
    """The exercise notebook (a dict) of a solution notebook (a dict): no answers, no outputs."""
    cells = [_release(cell) for cell in notebook["cells"]]
    metadata = {key: value for key, value in notebook["metadata"].items() if key != "coursekit"}
    derived = {**notebook, "cells": cells, "metadata": metadata}
    metadata["coursekit"] = {"generated": fingerprint(derived)}
    return derived


def _release(cell):
    source = "".join(cell["source"])
    if cell["metadata"].get("nbgrader", {}).get("solution"):
        source = _without_solution(source, STUBS[cell["cell_type"]])
    elif BEGIN in source:
        raise ValueError(f"{BEGIN} stands in a cell that is not marked as a solution.")
    released = {**cell, "source": source.splitlines(keepends=True)}
    if cell["cell_type"] == "code":
        released |= {"execution_count": None, "outputs": []}
    return released


def _without_solution(source, stub):
    """Replace what stands between the marks by a stub at the same indentation; or else all."""
    kept, inside = [], False
    for line in source.split("\n"):
        if BEGIN in line:
            if inside:
                raise ValueError(f"{BEGIN} stands twice without {END}.")
            inside = True
            indent = line[: len(line) - len(line.lstrip())]
            kept += [indent + part for part in stub]
        elif END in line:
            if not inside:
                raise ValueError(f"{END} stands without {BEGIN}.")
            inside = False
        elif not inside:
            kept.append(line)
    if inside:
        raise ValueError(f"{BEGIN} stands without {END}.")
    return "\n".join(kept if BEGIN in source else stub)


def fingerprint(notebook):
    """A hash of what a learner may write: the kinds and sources of all cells."""
    cells = [(cell["cell_type"], "".join(cell["source"])) for cell in notebook["cells"]]
    return hashlib.sha256(json.dumps(cells).encode()).hexdigest()[:16]


def solution_source(path, key):
    """The source of the cell that answers exercise `key` in a solution notebook, marks left out."""
    for cell in load(path)["cells"]:
        if cell["metadata"].get("nbgrader", {}).get("grade_id") == grade_id(key):
            lines = "".join(cell["source"]).split("\n")
            return "\n".join(line for line in lines if BEGIN not in line and END not in line)
    raise ValueError(f"{path.name} has no cell for exercise {key}.")


def grade_id(key):
    """nbgrader's name for the answer cell of an exercise.

    >>> grade_id("2.3")
    'exercise-2-3'
    """
    return "exercise-" + key.replace(".", "-")


def build(root, *, check=False):
    """Write `exercises/` from `solutions/` and return the paths that changed, or would change.

    check: only compare, write nothing. Raises EditedByHand before anything is written if an
    exercise holds changes that its solution does not explain, ValueError if a solution is no
    notebook, its marks do not match, or there are no solutions at all.
    """
    root = Path(root)
    wanted = {}
    for source in sorted((root / "solutions").glob("ps*/*.ipynb")):
        target = root / "exercises" / source.parent.name / source.name
        try:
            wanted[target] = dump(derive(load(source)))
        except ValueError as error:
            raise ValueError(f"{source.relative_to(root)}: {error}") from None
    if not wanted:
        raise ValueError("solutions/ holds no problem set, so there is nothing to build from.")
    stale = [path for path, text in wanted.items() if _read(path) != text]
    orphans = sorted(set((root / "exercises").glob("ps*/*.ipynb")) - set(wanted))
    if check:
        return stale + orphans
    for path in stale + orphans:
        _refuse_if_edited(path, root)
    for path in stale:
        path.parent.mkdir(parents=True, exist_ok=True)
        _write(path, wanted[path])
    for path in orphans:
        path.unlink()
    return stale + orphans


def _write(path, text):
    """Replace the file in one step, so that a crash leaves the old exercise or the new one."""
    unfinished = path.with_name(f".{path.name}.unfinished")
    try:
        unfinished.write_text(text, encoding="utf-8", newline="\n")
        os.replace(unfinished, path)
    finally:
        unfinished.unlink(missing_ok=True)


def _refuse_if_edited(path, root):
    if not path.exists():
        return
    try:
        notebook = load(path)
        untouched = notebook["metadata"]["coursekit"]["generated"] == fingerprint(notebook)
    except (KeyError, ValueError, TypeError):
        untouched = False
    if not untouched:
        raise EditedByHand(
            f"{path.relative_to(root)} was edited by hand, so it is left as it is. Move your work "
            f"to work/ (or put the change into solutions/), then build again."
        )


def dump(notebook):
    """A notebook as text, the same bytes for the same content."""
    return json.dumps(notebook, indent=1, ensure_ascii=False, sort_keys=True) + "\n"


def load(path):
    """A notebook file as a dict, ValueError if it holds anything else."""
    notebook = json.loads(path.read_text(encoding="utf-8"))
    if not isinstance(notebook, dict) or not {"cells", "metadata"} <= notebook.keys():
        raise ValueError(f"{path.name} is no notebook.")
    return notebook


def _read(path):
    return path.read_text(encoding="utf-8", errors="replace") if path.exists() else None
