"""Every committed notebook keeps every rule of `notebook_rules`; each violation is a sentence."""

import functools
from pathlib import Path

import notebook_rules as rules
import pytest

ROOT = Path(__file__).resolve().parents[1]
LECTURES = sorted(ROOT.glob("notebooks/*.ipynb"))
SOLUTIONS = sorted(ROOT.glob("solutions/*/*.ipynb"))

read = functools.cache(rules.read)


def refuse(violations):
    violations = list(violations)
    assert not violations, "\n" + "\n".join(violations)


def test_there_are_lectures_and_solutions_to_check():
    assert LECTURES and SOLUTIONS


@pytest.mark.parametrize("rule", rules.BOTH + rules.LECTURE, ids=lambda rule: rule.__name__)
@pytest.mark.parametrize("path", LECTURES, ids=lambda path: path.stem)
def test_lecture(path, rule):
    refuse(rule(read(path)))


@pytest.mark.parametrize("rule", rules.BOTH, ids=lambda rule: rule.__name__)
@pytest.mark.parametrize("path", SOLUTIONS, ids=lambda path: path.stem)
def test_solution(path, rule):
    refuse(rule(read(path)))


@pytest.mark.parametrize("rule", rules.SET, ids=lambda rule: rule.__name__)
def test_set_of_lectures(rule):
    refuse(rule([read(path) for path in LECTURES]))
