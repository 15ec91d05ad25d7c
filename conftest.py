"""What every test runs under: one thread, this checkout's coursekit, and no network.

pytest-xdist's workers and the kernels of nbval inherit the environment set here. It is set on
import, before any of them starts. A test that has to reach the network (it installs something)
passes `networked_environment` to its subprocess.
"""

import os
import shutil
import tempfile
from pathlib import Path

import pytest

from coursekit.notebooks import FIXED_ENVIRONMENT

HERE = Path(__file__).resolve().parent
OFFLINE = HERE / "tests" / "offline"

# Imported here, it would cut off pytest itself.
collect_ignore = ["tests/offline"]


# Each kernel finds the guard first, then this checkout's coursekit.
OURS = [str(OFFLINE), str(HERE)]
GIVEN = [folder for folder in os.environ.get("PYTHONPATH", "").split(os.pathsep)
         if folder and folder not in OURS]

os.environ.update(FIXED_ENVIRONMENT)
os.environ["PYTHONPATH"] = os.pathsep.join(OURS + GIVEN)


def pytest_configure(config):
    """Name the file in which refused calls are written down; workers write in the same one."""
    if not hasattr(config, "workerinput"):
        folder = tempfile.mkdtemp(prefix="course-offline-")
        os.environ["COURSE_OFFLINE_RECORD"] = os.path.join(folder, "asked-for")


def pytest_unconfigure(config):
    """Remove that file, at the very end."""
    if not hasattr(config, "workerinput"):
        shutil.rmtree(Path(os.environ["COURSE_OFFLINE_RECORD"]).parent)


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session):
    """A notebook that asked for the network and swallowed the refusal fails the whole run."""
    if not hasattr(session.config, "workerinput") and _asked_for():
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_terminal_summary(terminalreporter):
    """List what was asked of the network."""
    asked_for = _asked_for()
    if asked_for:
        terminalreporter.section("The network was asked for", red=True)
        terminalreporter.line("\n".join(asked_for))


def _asked_for():
    record = Path(os.environ["COURSE_OFFLINE_RECORD"])
    return record.read_text(encoding="utf-8").splitlines() if record.exists() else []


@pytest.fixture
def networked_environment():
    """An environment for a subprocess that may use the network: nothing of ours is on its path."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(GIVEN)}
    environment.pop("COURSE_OFFLINE_RECORD")
    return environment
