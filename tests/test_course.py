"""course.py: what it makes, installs, repairs and refuses, with a pip that only takes notes.

The real processes run: `python course.py ...` on a copy of it, real virtual environments, real
kills. Only the modules `pip` and `coursekit` are stand-ins, found through PYTHONPATH.
"""

import http.server
import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
import venv
from pathlib import Path

import pytest

import course

ROOT = Path(__file__).parents[1]
posix = pytest.mark.skipif(os.name == "nt", reason="signals as POSIX has them")

TAKE_NOTES = """
import json, os, sys, time
with open(os.environ["NOTES"], "a") as notes:
    print(json.dumps([{name!r}, sys.prefix, os.getcwd(), *sys.argv[1:]]), file=notes)
with open(os.environ["NOTES"] + ".pid", "w") as note:
    print(os.getpid(), file=note)
if os.environ.get("HANG") == {name!r}:
    time.sleep(60)
if os.environ.get("FAIL", "nothing") in sys.argv:
    sys.exit(os.environ.get("WORDS", "pip's words"))
"""
MAKE_VENV = """
sys.path = [entry for entry in sys.path if entry != os.path.dirname(__file__)]
import venv
venv.create(sys.argv[-1])
"""


class Course:
    """A copy of course.py in a folder of its own, and notes of what it ran."""

    def __init__(self, folder):
        self.root = folder / "course"
        self.venv = self.root / ".venv"
        self.root.mkdir()
        shutil.copy(ROOT / "course.py", self.root)
        (self.root / "requirements.txt").write_text("numpy==2.4.6\ntorch==2.13.0\n")
        (self.root / "pyproject.toml").write_text("")
        stubs = folder / "stubs"
        for name in ("pip", "coursekit"):
            (stubs / name).mkdir(parents=True)
            (stubs / name / "__init__.py").touch()
            (stubs / name / "__main__.py").write_text(TAKE_NOTES.format(name=name))
        (stubs / "venv.py").write_text(TAKE_NOTES.format(name="venv") + MAKE_VENV)
        self.notes = folder / "notes"
        closed = "http://127.0.0.1:9"  # so that no index outside is ever asked
        outer = {k: v for k, v in os.environ.items() if not k.startswith(("CONDA", "PIP_"))}
        self.environ = {**outer, "PYTHONPATH": str(stubs), "NOTES": str(self.notes)}
        self.environ |= {"https_proxy": closed, "HTTPS_PROXY": closed, "PYTHONWARNINGS": ""}
        # The tests may run in a virtual environment: start from the Python that it was made of.
        self.python = Path(sys.base_prefix) / ("python.exe" if os.name == "nt" else "bin/python3")

    def start(self, *arguments, python=None, stdout=subprocess.PIPE, **environ):
        return subprocess.Popen(
            [python or self.python, self.root / "course.py", *arguments],
            env={**self.environ, **environ},
            cwd=self.root.parent,
            stdout=stdout,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )

    def run(self, *arguments, **options):
        """Exit code, what was printed, and the calls of pip, venv and coursekit."""
        self.notes.unlink(missing_ok=True)
        process = self.start(*arguments, **options)
        printed = process.communicate(timeout=30)[0]
        assert "Traceback" not in printed
        return process.returncode, printed, self.calls()

    def calls(self, name=None):
        if not self.notes.exists():
            return []
        calls = map(json.loads, self.notes.read_text().splitlines())
        return [call for call in calls if name in (None, call[0])]

    def interrupt_in(self, name, kill):
        """Kill the set-up while `name` is at work; return the exit code and what was printed."""
        printed = self.root.with_name("printed.txt")
        with open(printed, "w") as file:
            process = self.start("build", HANG=name, stdout=file)
        deadline = time.monotonic() + 20
        while not self.calls(name) and time.monotonic() < deadline:
            time.sleep(0.02)
        kill(process.pid)
        return process.wait(timeout=20), printed.read_text()


@pytest.fixture
def bare(tmp_path):
    if (Path(sys.base_prefix) / "conda-meta").is_dir():
        pytest.skip("needs a Python that is not conda's: course.py would set up the environment")
    return Course(tmp_path)


def kill_all(pid):
    os.killpg(pid, signal.SIGKILL)


def installed(calls):
    """What each pip call was asked to install, its options left out."""
    return [call[call.index("--no-user") + 1 :] for call in calls if call[0] == "pip"]


def test_first_call_makes_an_environment_and_installs_torch_alone_and_first(bare):
    code, printed, calls = bare.run("build", "--check")
    assert code == 0
    assert [call[0] for call in calls] == ["venv", "pip", "pip", "pip", "coursekit"]
    assert {call[1] for call in calls[1:]} == {str(bare.venv)}
    assert {call[2] for call in calls} == {str(bare.root)}
    assert installed(calls) == [
        ["--no-deps", "torch==2.13.0"],
        ["-r", str(bare.root / "requirements.txt")],
        ["--no-deps", "--no-build-isolation", "--editable", str(bare.root)],
    ]
    assert calls[-1] == ["coursekit", str(bare.venv), str(bare.root), "build", "--check"]
    assert "a minute or two" in printed


def test_later_calls_install_nothing_until_something_changed(bare):
    bare.run("build")
    kept = bare.venv / "kept"
    kept.touch()
    assert [call[0] for call in bare.run("verify")[2]] == ["coursekit"]
    with open(bare.root / "requirements.txt", "a") as file:
        file.write("# changed\n")
    assert [call[0] for call in bare.run("verify")[2]] == ["pip"] * 3 + ["coursekit"]
    assert kept.exists()


def test_what_an_installed_set_depends_on(tmp_path, monkeypatch):
    digests = set()
    for where in ("here", "moved"):
        monkeypatch.setattr(course, "ROOT", tmp_path / where)
        course.ROOT.mkdir()
        for name in ("requirements.txt", "pyproject.toml"):
            (course.ROOT / name).touch()
        digests |= {course.digest("3.10"), course.digest("3.11")}
        for name in ("requirements.txt", "pyproject.toml"):
            (course.ROOT / name).write_text("changed")
            digests.add(course.digest("3.11"))
    assert len(digests) == 8


def test_a_moved_folder_gets_coursekit_put_in_place_again(bare):
    bare.run("build")
    bare.root = bare.root.rename(bare.root.with_name("moved"))
    code, _, calls = bare.run("build")
    assert code == 0
    assert installed(calls)[-1][-1] == str(bare.root)
    assert calls[-1][1:3] == [str(bare.root / ".venv"), str(bare.root)]


def test_a_failing_pip_gives_a_sentence_and_the_next_call_starts_over(bare):
    code, printed, calls = bare.run("build", FAIL="torch==2.13.0")
    assert code == 1
    assert [call[0] for call in calls] == ["venv", "pip"]
    assert "pip's words" in printed
    assert "run the same command again" in printed
    half_done = bare.venv / "half-done"
    half_done.touch()
    code, _, calls = bare.run("build")
    assert code == 0 and not half_done.exists()
    assert [call[0] for call in calls] == ["venv", "pip", "pip", "pip", "coursekit"]


@posix
@pytest.mark.parametrize("moment", ["venv", "pip"])
def test_a_killed_set_up_is_repaired_by_the_next_call(bare, moment):
    bare.interrupt_in(moment, kill_all)
    if moment == "venv":  # however far it came
        venv.create(bare.venv)
    half_done = bare.venv / "half-done"
    half_done.touch()
    code, _, calls = bare.run("build")
    assert code == 0 and not half_done.exists()
    assert [call[0] for call in calls] == ["venv", "pip", "pip", "pip", "coursekit"]


@posix
def test_ctrl_c_gives_a_sentence_and_exit_code_130(bare):
    code, printed = bare.interrupt_in("pip", lambda pid: os.killpg(pid, signal.SIGINT))
    assert code == 130
    assert printed.rstrip().endswith("Stopped. Run the same command again to go on.")


@posix
def test_a_pip_that_a_killed_set_up_left_behind_is_waited_for(bare):
    bare.interrupt_in("pip", lambda pid: os.kill(pid, signal.SIGKILL))
    left_behind = int(bare.notes.with_name("notes.pid").read_text())
    waiting = bare.start("build")
    assert "waiting for it" in waiting.stdout.readline()
    time.sleep(1)
    assert len(bare.calls()) == 2  # the first set-up's venv and pip; none of the second
    os.kill(left_behind, signal.SIGKILL)
    waiting.communicate(timeout=20)
    assert waiting.returncode == 0
    assert [call[0] for call in bare.calls()[2:]] == ["venv", "pip", "pip", "pip", "coursekit"]


def test_a_venv_that_is_not_ours_is_left_alone(bare):
    venv.create(bare.venv)
    before = sorted(bare.venv.rglob("*"))
    code, printed, calls = bare.run("build")
    assert (code, calls) == (1, [])
    assert "leaves it alone" in printed
    assert sorted(bare.venv.rglob("*")) == before


def test_an_active_environment_is_used_and_never_emptied(bare, tmp_path):
    active = tmp_path / "active"
    venv.create(active)
    python = course.python_in(active)
    code, _, calls = bare.run("build", python=python, FAIL="-r")
    assert code == 1
    assert {call[1] for call in calls} == {str(active)}
    kept = active / "kept"
    kept.touch()
    code, _, calls = bare.run("build", python=python)
    assert code == 0
    assert [call[0] for call in calls] == ["pip", "pip", "pip", "coursekit"]
    assert kept.exists() and not bare.venv.exists()
    assert [call[0] for call in bare.run("build", python=python)[2]] == ["coursekit"]


def test_a_half_written_package_of_an_active_environment_is_installed_anew(bare, tmp_path):
    active = tmp_path / "active"
    venv.create(active)
    (active / course.STAMP).write_text(course.UNFINISHED)
    ask = "import sysconfig; print(sysconfig.get_path('purelib'))"
    python = course.python_in(active)
    site = Path(subprocess.check_output([python, "-I", "-c", ask], text=True).strip())
    for name, files in {
        "numpy": ["INSTALLER"],
        "torch": ["RECORD"],
        "coursekit": [],
        "complete": ["INSTALLER", "RECORD"],
        "somebody_elses": [],
    }.items():
        info = site / f"{name}-1.0.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
        for file in files:
            (info / file).write_text("pip")
    assert installed(bare.run("build", python=course.python_in(active))[2]) == [
        ["--no-deps", "--ignore-installed", "torch==2.13.0"],
        ["--no-deps", "--ignore-installed", "numpy==1.0"],
        ["-r", str(bare.root / "requirements.txt")],
        ["--no-deps", "--ignore-installed", "--no-build-isolation", "--editable", str(bare.root)],
    ]


@pytest.mark.parametrize(
    ("prefix", "active", "name", "inside"),
    [
        ("envs/course", "envs/course", "course", True),
        ("envs/course", None, None, True),  # its Python called by path
        ("envs/course", "", "base", True),  # likewise, while base is active
        ("", "", "base", False),
        ("", None, None, False),
        ("micro", "micro", "base", False),  # a base without a folder condabin
        ("system", None, None, False),
        ("system", "envs/course", "course", False),  # a system Python, called by path
    ],
)
def test_conda_environments_are_used_but_not_base(
    tmp_path, monkeypatch, prefix, active, name, inside
):
    for folder in ("conda-meta", "condabin", "envs/course/conda-meta", "micro/conda-meta"):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "system").mkdir()
    for attribute in ("prefix", "base_prefix"):
        monkeypatch.setattr(sys, attribute, str(tmp_path / prefix))
    monkeypatch.delenv("CONDA_PREFIX", raising=False)
    monkeypatch.delenv("CONDA_DEFAULT_ENV", raising=False)
    if name:
        monkeypatch.setenv("CONDA_PREFIX", str(tmp_path / active))
        monkeypatch.setenv("CONDA_DEFAULT_ENV", name)
    assert course.inside_an_environment() is inside


@pytest.mark.parametrize("missing", ["venv", "ensurepip"])
def test_a_python_without_venv_says_what_to_install(tmp_path, monkeypatch, missing):
    monkeypatch.setattr(course.util, "find_spec", lambda name: None if name == missing else name)
    with pytest.raises(SystemExit, match=r"apt install python3\.\d+-venv"):
        course.make_venv(tmp_path / "venv")
    assert not (tmp_path / "venv").exists()


@pytest.mark.parametrize("version", [(3, 9, 18), (3, 14, 0), (2, 7, 18)])
def test_an_unsupported_python_gets_a_sentence(monkeypatch, version):
    monkeypatch.setattr(sys, "version_info", version)
    monkeypatch.setattr(course, "set_up", lambda: pytest.fail("no set-up"))
    with pytest.raises(SystemExit, match=r"needs Python 3\.10, 3\.11, 3\.12 or 3\.13"):
        course.main(["lab"])


@pytest.mark.parametrize("version", [(3, 10, 0), (3, 13, 9)])
def test_a_supported_python_is_welcome(monkeypatch, capsys, version):
    monkeypatch.setattr(sys, "version_info", version)
    assert not course.main([])
    assert "python course.py lab" in capsys.readouterr().out


def test_an_unknown_command_is_refused_before_any_set_up(monkeypatch):
    monkeypatch.setattr(course, "set_up", lambda: pytest.fail("no set-up"))
    with pytest.raises(SystemExit) as refused:
        course.main(["lba"])
    assert "There is no `lba`" in str(refused.value)
    assert "python course.py lab" in str(refused.value)


def test_help_names_every_command():
    for verb in ("lab", "test", "test-environment", "bench", *course.TO_COURSEKIT):
        assert f"python course.py {verb} " in course.__doc__


# The index of PyTorch's CPU build


class Answers(http.server.BaseHTTPRequestHandler):
    def do_HEAD(self):
        if self.path == "/never":
            time.sleep(5)
        self.send_response(200 if self.path == "/here" else 403)
        self.end_headers()

    def log_message(self, *_):
        pass


def test_an_index_answers_or_not_within_seconds(monkeypatch):
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Answers) as server:
        server.daemon_threads = server.block_on_close = False
        threading.Thread(target=server.serve_forever, daemon=True).start()
        url = f"http://127.0.0.1:{server.server_port}"
        assert course.answers(f"{url}/here")
        assert not course.answers(f"{url}/forbidden")
        start = time.monotonic()
        assert not course.answers(f"{url}/never")
        assert time.monotonic() - start < 4.5
        server.shutdown()
    assert not course.answers(f"{url}/here")  # the port is closed now
    assert not course.answers("not a url")


@pytest.mark.parametrize(
    ("platform", "answered", "used"),
    [("linux", True, True), ("linux", False, False), ("darwin", True, False)],
)
def test_the_cpu_index_is_asked_for_torch_alone(tmp_path, monkeypatch, platform, answered, used):
    asked = []
    monkeypatch.setattr(sys, "platform", platform)
    monkeypatch.setattr(course, "answers", lambda url: answered)
    monkeypatch.setattr(course, "pip_install", lambda python, what, *rest: asked.append(rest))
    requirements = tmp_path / "requirements.txt"
    requirements.write_text("# torch==1.0\nnumpy==2.4.6\ntorch==2.13.0\n")
    course.install("python", requirements)
    index = ("--extra-index-url", course.TORCH_CPU_INDEX) if used else ()
    assert asked[0] == ("--no-deps", "torch==2.13.0", *index)
    assert course.TORCH_CPU_INDEX not in str(asked[1:])


@pytest.mark.parametrize(
    ("said", "reason"),
    [("Retrying (Retry(total=4", "a package index cannot be reached"), ("no space", "pip failed")],
)
def test_a_failed_install_says_why(bare, said, reason):
    code, printed, _ = bare.run("build", FAIL="--editable", WORDS=said)
    assert code == 1
    assert said in printed
    assert f"The set-up stopped at coursekit: {reason}. pip's own words are above." in printed


# lab, test, test-environment


@pytest.fixture
def became(monkeypatch):
    """The commands that course.py would have handed its process over to."""
    commands = []
    monkeypatch.setattr(course, "become", commands.append)
    return commands


@pytest.mark.parametrize("root", [True, False])
@pytest.mark.parametrize(
    ("platform", "display", "screen"),
    [("linux", "", False), ("linux", ":0", True), ("darwin", "", True), ("win32", "", True)],
)
def test_lab_suits_root_and_a_missing_screen(
    monkeypatch, became, capsys, root, platform, display, screen
):
    monkeypatch.setattr(sys, "platform", platform)
    monkeypatch.setattr(os, "geteuid", lambda: 0 if root else 1000, raising=False)
    monkeypatch.setattr(course, "in_a_container", lambda: False)
    monkeypatch.setenv("DISPLAY", display)
    monkeypatch.delenv("WAYLAND_DISPLAY", raising=False)
    course.lab("python", ["--port", "9999"])
    (command,) = became
    assert command[:3] == ["python", "-m", "jupyterlab"]
    assert command[-2:] == ["--port", "9999"]
    assert ("--allow-root" in command) is root
    assert ("--no-browser" in command) is not screen
    assert "the address below" in capsys.readouterr().out


def test_lab_opens_no_browser_in_a_container(monkeypatch, became):
    monkeypatch.setattr(course, "in_a_container", lambda: True)
    monkeypatch.setenv("DISPLAY", ":0")
    course.lab("python", [])
    assert "--no-browser" in became[0]


@pytest.mark.parametrize("verb", ["lab", "start"])
def test_the_course_commands_come_first_on_the_path(tmp_path, monkeypatch, became, verb):
    python = course.python_in(tmp_path)
    monkeypatch.setattr(course, "set_up", lambda: python)
    monkeypatch.setenv("PATH", "elsewhere")
    course.main([verb])
    assert os.environ["PATH"] == os.pathsep.join([str(Path(python).parent), "elsewhere"])
    assert became[0][0] == python


def test_test_runs_every_step_although_one_fails(monkeypatch, capsys):
    ran = []
    monkeypatch.setattr(course, "call", lambda command: ran.append(command) or 3 * (len(ran) == 2))
    monkeypatch.setenv("OMP_NUM_THREADS", "8")
    assert course.test("python", []) == 1
    assert [command[2] for command in ran] == ["ruff", "coursekit", "coursekit", "pytest"]
    assert os.environ["OMP_NUM_THREADS"] == "1"
    lines = capsys.readouterr().out.splitlines()[-4:]
    assert ["FAILED with exit code 3" in line for line in lines] == [False, True, False, False]
    assert [line.endswith("passed") for line in lines] == [True, False, True, True]


def test_test_passes_when_every_step_does(monkeypatch):
    monkeypatch.setattr(course, "call", lambda command: 0)
    monkeypatch.setenv("OMP_NUM_THREADS", "8")
    assert course.test("python", []) == 0


def test_test_with_arguments_is_pytest_with_those_alone(monkeypatch, became):
    monkeypatch.setenv("OMP_NUM_THREADS", "8")
    monkeypatch.setattr(course, "call", lambda command: pytest.fail("no other step"))
    course.test("python", ["-k", "neighbours"])
    assert became == [["python", "-m", "pytest", "-k", "neighbours"]]


def test_test_environment_installs_the_pins_of_environment_yml(monkeypatch, capsys):
    seen = {}

    def install(python, requirements):
        seen["lines"] = requirements.read_text().splitlines()
        seen["folder"] = requirements.parent

    monkeypatch.setattr(course, "make_venv", lambda folder: None)
    monkeypatch.setattr(course, "install", install)
    monkeypatch.setattr(course, "call", lambda command: 0)
    assert course.main(["test-environment"]) == 0
    pins = (ROOT / "requirements.txt").read_text("utf-8").splitlines()
    assert seen["lines"] == [pin for pin in pins if not pin.startswith("#")]
    assert not seen["folder"].exists()
    assert "installs and imports" in capsys.readouterr().out
    monkeypatch.setattr(course, "call", lambda command: 1)
    assert course.main(["test-environment"]) == 1
    assert "do not import" in capsys.readouterr().out


# bench


@pytest.fixture
def bench(bare):
    """A course with one benchmark, which takes notes of its arguments, and its requirements."""
    folder = bare.root / "benchmarks"
    folder.mkdir()
    (folder / "requirements.txt").write_text("torch==2.13.0\nopacus==1.6.0\n")
    (folder / "accounting.py").write_text(TAKE_NOTES.format(name="benchmark"))
    return bare


def test_bench_installs_into_an_environment_of_its_own(bench):
    code, _, calls = bench.run("bench", "accounting", "--check")
    own = str(bench.root / ".bench")
    assert code == 0
    assert [call[0] for call in calls] == ["venv", "pip", "pip", "pip", "benchmark"]
    assert {call[1] for call in calls[1:]} == {own}
    assert installed(calls) == [
        ["--no-deps", "torch==2.13.0"],
        ["-r", str(bench.root / "benchmarks/requirements.txt")],
        ["--no-deps", "--no-build-isolation", "--editable", str(bench.root)],
    ]
    assert calls[-1] == ["benchmark", own, str(bench.root), "--check"]
    assert not bench.venv.exists()


@pytest.mark.parametrize("changed", ["requirements.txt", "benchmarks/requirements.txt"])
def test_bench_installs_again_only_when_a_version_changed(bench, changed):
    bench.run("bench", "accounting")
    assert [call[0] for call in bench.run("bench", "accounting")[2]] == ["benchmark"]
    old = bench.root / ".bench/old"
    old.touch()
    with open(bench.root / changed, "a") as file:
        file.write("# changed\n")
    names = [call[0] for call in bench.run("bench", "accounting")[2]]
    assert names == ["venv", "pip", "pip", "pip", "benchmark"]
    assert not old.exists()


def test_bench_leaves_an_active_environment_alone(bench, tmp_path):
    active = tmp_path / "active"
    venv.create(active)
    before = sorted(active.rglob("*"))
    calls = bench.run("bench", "accounting", python=course.python_in(active))[2]
    assert {call[1] for call in calls[1:]} == {str(bench.root / ".bench")}
    assert sorted(active.rglob("*")) == before


def test_a_bench_that_failed_is_made_anew_and_one_not_ours_is_left_alone(bench):
    code, printed, calls = bench.run("bench", "accounting", FAIL="-r")
    assert (code, [call[0] for call in calls]) == (1, ["venv", "pip", "pip"])
    assert "stopped at the other packages" in printed
    assert len(bench.run("bench", "accounting")[2]) == 5
    for name in (course.OURS, course.STAMP):
        (bench.root / ".bench" / name).unlink()
    code, printed, calls = bench.run("bench", "accounting")
    assert (code, calls) == (1, [])
    assert "leaves it alone" in printed


@pytest.mark.parametrize("arguments", [[], ["speed"], ["../course"]])
def test_bench_names_the_benchmarks_there_are(monkeypatch, arguments):
    monkeypatch.setattr(course, "make_our_venv", lambda *_: pytest.fail("no set-up"))
    with pytest.raises(SystemExit, match=r"python course\.py bench accounting"):
        course.main(["bench", *arguments])


# What JupyterLab is told


def lab_config():
    from traitlets.config import PyFileConfigLoader

    return PyFileConfigLoader(str(ROOT / ".lab/jupyter_lab_config.py")).load_config()


def test_lab_lands_on_notebook_00_and_reads_no_news():
    config = lab_config().LabApp
    notebook = config.default_url.removeprefix("/lab/tree/")
    assert notebook == "notebooks/00_start_here.ipynb"
    assert (ROOT / notebook).is_file()
    assert config.news_url is None
    assert Path(config.app_settings_dir) == ROOT / ".lab/settings"


def test_lab_settings_are_ones_that_this_jupyterlab_knows():
    import jsonschema

    schemas = Path(sys.prefix, "share/jupyter/lab/schemas")
    settings = json.loads((ROOT / ".lab/settings/overrides.json").read_text("utf-8"))
    for plugin, values in settings.items():
        package, _, name = plugin.partition(":")
        schema = json.loads((schemas / package / f"{name}.json").read_text("utf-8"))
        assert set(values) <= set(schema["properties"]), plugin
        jsonschema.validate(values, schema)
    assert settings["@jupyterlab/apputils-extension:notification"]["fetchNews"] == "false"
    assert settings["@jupyterlab/toc-extension:registry"]["numberHeaders"] is True


def test_lab_saves_a_notebook_that_was_only_read_as_it_was():
    save = lab_config().FileContentsManager.pre_save_hook
    content = {"metadata": {"language_info": {"name": "python", "version": "3.12.1"}}, "cells": []}
    save(model={"type": "notebook", "content": content}, path="", contents_manager=None)
    assert content["metadata"]["language_info"] == {"name": "python"}
    save(model={"type": "file", "content": "text"}, path="", contents_manager=None)


def test_learners_do_not_see_the_graders_menus():
    page = json.loads((ROOT / ".lab/settings/page_config.json").read_text("utf-8"))
    assert page["disabledExtensions"]["@jupyter/nbgrader"] is True
