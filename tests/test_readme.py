"""The README promises: each link leads somewhere, its code runs, its numbers are the notebooks'."""

import base64
import doctest
import json
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")
LINKS = re.findall(r"\]\(([^)#]+)", README)
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))


def cells(path):
    return json.loads(path.read_text(encoding="utf-8"))["cells"]


@pytest.mark.parametrize("link", sorted({link for link in LINKS if "//" not in link}))
def test_link_leads_somewhere(link):
    assert (ROOT / link).is_file()


def test_code_in_the_readme_runs():
    result = doctest.testfile(str(ROOT / "README.md"), module_relative=False)
    assert result.attempted >= 4
    assert result.failed == 0


def test_picture_is_a_figure_of_notebook_01():
    (picture,) = (ROOT / "docs").glob("*.png")
    assert f"docs/{picture.name}" in LINKS
    shown = [
        base64.b64decode("".join(output["data"]["image/png"]))
        for cell in cells(ROOT / "notebooks/01_neighbouring_datasets.ipynb")
        for output in cell.get("outputs", [])
        if "image/png" in output.get("data", {})
    ]
    assert picture.read_bytes() in shown


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_minutes_in_every_map_are_those_of_the_notebook(path):
    said = re.search(r"about (\d+) minutes", "".join(cells(path)[0]["source"]))[1]
    course_map = "".join(
        "".join(cell["source"]) for cell in cells(ROOT / "notebooks/00_start_here.ipynb")
    )
    for text in (README, course_map):
        (row,) = (line for line in text.splitlines() if line.startswith(f"| {path.stem[:2]} |"))
        assert row.rstrip("| ").endswith(f"| {said}")


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_promise_is_the_same_in_both_maps(path):
    if path.stem.startswith("00"):
        return
    course_map = "".join(
        "".join(cell["source"]) for cell in cells(ROOT / "notebooks/00_start_here.ipynb")
    )
    (row,) = (line for line in README.splitlines() if line.startswith(f"| {path.stem[:2]} |"))
    assert row.split("|")[3].strip() in course_map
