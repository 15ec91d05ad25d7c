"""Importing is quick and loads only what is needed: measured in interpreters of their own."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
HEAVY = {"numpy", "scipy", "matplotlib", "pandas", "sklearn", "torch", "IPython", "ipywidgets",
         "nbformat", "nbclient", "joblib"}
CHILD = """
import json, sys, time
before, start = set(sys.modules), time.perf_counter()
import {module}
seconds = time.perf_counter() - start
print(json.dumps([seconds, sorted({{name.split(".")[0] for name in set(sys.modules) - before}})]))
"""


def _import(module):
    """Seconds, and the packages that came with it, in a fresh interpreter."""
    run = subprocess.run([sys.executable, "-c", CHILD.format(module=module)], cwd=ROOT,
                         capture_output=True, text=True, check=True)
    seconds, packages = json.loads(run.stdout)
    return seconds, set(packages)


def test_the_package_imports_in_under_a_tenth_of_a_second_and_alone():
    """The best of five, so that a busy machine does not decide."""
    runs = [_import("coursekit") for _ in range(5)]
    assert min(seconds for seconds, _ in runs) < 0.1
    assert all("coursekit" in packages and not packages & HEAVY for _, packages in runs)


@pytest.mark.parametrize("module", ["coursekit.cli", "coursekit.build", "coursekit.notebooks"])
def test_the_command_line_loads_nothing_heavy(module):
    assert not _import(module)[1] & HEAVY


@pytest.mark.parametrize("module", ["coursekit.neighbours", "coursekit.mechanisms",
                                    "coursekit.learn", "coursekit.checks.evidence",
                                    "coursekit.people", "coursekit.linkage", "coursekit.anonymity",
                                    "coursekit.reconstruction", "coursekit.metrics"])
def test_chapters_without_models_load_neither_torch_nor_scikit_learn(module):
    packages = _import(module)[1]
    assert "numpy" in packages
    assert not packages & {"torch", "sklearn", "matplotlib", "pandas"}


def test_attacks_on_outputs_do_not_load_torch():
    assert not _import("coursekit.membership")[1] & {"torch", "matplotlib", "pandas"}


def test_learn_loads_scipy_only_with_a_problem_set():
    """A learner's first cell is quick; scipy comes with the first check."""
    assert not _import("coursekit.learn")[1] & (HEAVY - {"numpy"})
