#!/usr/bin/env python3
"""Privacy in Machine Learning: set the course up and use it.

    python course.py lab                 open the course in JupyterLab
    python course.py start ps01          copy a problem set to work/, where you solve it
    python course.py test                prove the whole course; exit code 0 means all is well
    python course.py test -k neighbours  run pytest alone, with arguments of your own

For those who change the course:

    python course.py run                 run notebooks and keep their outputs
    python course.py build               make exercises/ from solutions/ (--check: only compare)
    python course.py verify              prove that the checks catch every listed mistake
    python course.py portable            re-run notebooks as other processors would
    python course.py test-environment    try environment.yml in a throw-away environment
    python course.py bench accounting    compare with other libraries, installed into .bench alone
    python course.py bench dp_sgd        the same for training
    python course.py bench ensemble      the same for shadow models
    python course.py bench releases      the same for anonymity and linkage

The first call installs everything into .venv (or into the conda or virtual environment that is
active) and takes a minute or two; later calls start at once. Further arguments are passed on.
"""

import contextlib
import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
import time
from functools import partial
from importlib import util
from pathlib import Path

ROOT = Path(__file__).resolve().parent
VENV = ROOT / ".venv"
BENCH = ROOT / ".bench"  # other people's libraries, for benchmarks/, stay out of the course's set
OURS = "made-by-course.py"  # only a .venv or .bench that holds this file is ever emptied
STAMP = "course-setup.stamp"
UNFINISHED = "unfinished"
TORCH_CPU_INDEX = "https://download.pytorch.org/whl/cpu"

TO_COURSEKIT = ("start", "run", "build", "verify", "portable")
PYTEST = (
    "-m pytest tests coursekit notebooks solutions -n 2 --dist loadscope"
    " --nbval --nbval-current-env --nbval-cell-timeout=120"
)
TESTS = {
    "ruff": "-m ruff check .",
    "build": "-m coursekit build --check",
    "verify": "-m coursekit verify",
    "pytest": PYTEST,
}


def say(text):
    print(text, flush=True)


def call(command, **options):
    """Run a command to its end and return its exit code; Ctrl-C reaches it as it reaches us."""
    with subprocess.Popen([str(part) for part in command], cwd=str(ROOT), **options) as process:
        try:
            return process.wait()
        except KeyboardInterrupt:
            process.wait()
            raise


def become(command):
    """Hand this process over to a command. Windows cannot do that, so there we wait for it."""
    os.chdir(ROOT)
    if os.name == "posix":
        os.execv(command[0], command)
    process = subprocess.Popen(command)
    while process.poll() is None:
        with contextlib.suppress(KeyboardInterrupt):  # it saw Ctrl-C too, and decides for itself
            process.wait()
    sys.exit(process.returncode)


# Which Python works for the course


def inside_an_environment():
    """True in a virtual environment, and in a conda environment other than base."""
    prefix = Path(sys.prefix)
    active = os.environ.get("CONDA_PREFIX") == sys.prefix and os.environ.get("CONDA_DEFAULT_ENV")
    if sys.prefix != sys.base_prefix:
        return True
    is_conda = (prefix / "conda-meta").is_dir()
    return is_conda and active != "base" and not (prefix / "condabin").is_dir()


def python_in(environment):
    return str(environment / ("Scripts/python.exe" if os.name == "nt" else "bin/python"))


def scripts_of(python):
    """The folder of `coursekit` and its like; conda on Windows keeps it beside its Python."""
    folder = Path(python).parent
    beside = folder / "Scripts"
    return str(beside if os.name == "nt" and beside.is_dir() else folder)


def version_of(python):
    """'3.11', say; nothing where that Python does not start or has no pip."""
    code = "import pip, sys; print(*sys.version_info[:2], sep='.')"
    with contextlib.suppress(OSError):
        return subprocess.run([python, "-c", code], capture_output=True, text=True).stdout.strip()
    return ""


def make_venv(folder, **options):
    if not (util.find_spec("venv") and util.find_spec("ensurepip")):
        sys.exit(
            "This Python cannot make virtual environments: its venv or ensurepip module is missing."
            f"\nOn Debian and Ubuntu, `sudo apt install python3.{sys.version_info[1]}-venv` brings"
            " them. Then run this again."
        )
    if call([sys.executable, "-m", "venv", "--prompt", "course", folder], **options) != 0:
        sys.exit(f"Making {folder} failed, for the reason given above. Run this again to retry.")


def make_our_venv(folder, **options):
    """Make .venv or .bench; where an earlier call was interrupted, empty it and make it anew."""
    if folder.exists() and not (folder / OURS).exists() and any(folder.iterdir()):
        sys.exit(
            f"{folder} exists, but course.py did not make it and leaves it alone.\n"
            "Activate it to work in it, or move it away; then run this again."
        )
    say(f"Making {folder.name}, an environment of the course's own ...")
    folder.mkdir(exist_ok=True)
    (folder / OURS).touch()
    try:
        for item in folder.iterdir():
            if item.is_dir() and not item.is_symlink():
                shutil.rmtree(item)
            elif item.name != OURS:
                item.unlink()
    except OSError as error:
        sys.exit(f"{folder} is in use ({error}). Close what uses it, then run this again.")
    make_venv(folder, **options)


# Installing


@contextlib.contextmanager
def taking_turns():
    """One set-up of this folder at a time, a pip that a killed one left behind included.

    Yields what a child process needs to hold the lock too. Windows has no such lock.
    """
    try:
        import fcntl
    except ImportError:
        yield {}
        return
    with open(__file__) as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say("Another set-up of this folder is still at work: waiting for it ...")
            fcntl.flock(lock, fcntl.LOCK_EX)
        except OSError:
            pass  # some network drives have no locks
        yield {"pass_fds": [lock.fileno()]}


def answers(url):
    """Whether a package index can be reached; asked once and briefly, through a proxy if set."""
    from urllib.request import Request, urlopen  # slow to import, and seldom needed

    try:
        urlopen(Request(url, method="HEAD"), timeout=3).close()
    except Exception:  # whatever went wrong, the index is of no use
        return False
    return True


def half_written():
    """Name and version of the packages here whose last files pip did not come to write."""
    from importlib.metadata import distributions

    return {
        (package.metadata["Name"] or "").lower().replace("_", "-"): package.version
        for package in distributions()
        if not (package.read_text("INSTALLER") and package.read_text("RECORD"))
    }


def pip_install(python, what, *arguments, **options):
    """Run pip, quietly unless somebody watches; a failure ends this program with a sentence."""
    say(f"Installing {what} ...")
    start, reason = time.monotonic(), "pip failed"
    quiet = [] if sys.stdout.isatty() else ["--quiet"]
    command = [python, "-m", "pip", *quiet, "--disable-pip-version-check", "install", "--no-user"]
    words = {"stderr": subprocess.PIPE, "text": True, "errors": "replace"}
    with subprocess.Popen([*command, *map(str, arguments)], cwd=ROOT, **words, **options) as pip:
        for line in pip.stderr:
            print(line, end="", file=sys.stderr, flush=True)
            if "Retrying (" in line:
                reason = "a package index cannot be reached"
    if pip.returncode != 0:
        sys.exit(
            f"\nThe set-up stopped at {what}: {reason}. pip's own words are above.\n"
            "What was downloaded is kept: run the same command again and it goes on from there."
        )
    say(f"    done in {time.monotonic() - start:.0f} s")


def install(python, requirements, broken=(), **options):
    """Install PyTorch, then everything else, then coursekit; put what is broken in place anew.

    PyTorch's CPU build spares Linux 3 GB of CUDA. But pip asks every index for every package, and
    that one is blocked in places: so ask it for PyTorch alone, and only if it answers.
    """
    pins = [line for line in requirements.read_text().splitlines() if "==" in line]
    torch = next(pin for pin in pins if pin.startswith("torch=="))
    use_index = sys.platform == "linux" and answers(TORCH_CPU_INDEX)
    index = ["--extra-index-url", TORCH_CPU_INDEX] if use_index else []
    pip = partial(pip_install, python, **options)

    def alone(name):
        return ["--no-deps", "--ignore-installed"] if name in broken else ["--no-deps"]

    pip("PyTorch, the largest package", *alone("torch"), torch, *index)
    for name in sorted({pin.split("==")[0] for pin in pins} & set(broken) - {"torch"}):
        pip(f"{name}, which was interrupted", *alone(name), f"{name}=={broken[name]}")
    pip("the other packages", "-r", requirements)
    pip("coursekit", *alone("coursekit"), "--no-build-isolation", "--editable", ROOT)


def digest(version):
    """A fingerprint of all that an installed set depends on."""
    files = [(ROOT / name).read_bytes() for name in ("requirements.txt", "pyproject.toml")]
    return hashlib.sha256(repr([files, version, str(ROOT)]).encode()).hexdigest()


def set_up():
    """Return a Python that has the whole locked set, having installed what is missing."""
    inside = inside_an_environment()
    environment = Path(sys.prefix) if inside else VENV
    python = sys.executable if inside else python_in(VENV)
    stamp = environment / STAMP

    with taking_turns() as options:
        if stamp.exists() and stamp.read_text() == digest(version_of(python)):
            return python
        say(f"Setting the course up in {environment}. The first time takes a minute or two.")
        interrupted = stamp.exists() and stamp.read_text() == UNFINISHED
        if not inside and (interrupted or not stamp.exists() or not version_of(python)):
            make_our_venv(VENV, **options)
        if inside and not version_of(python):
            call([python, "-m", "ensurepip"], **options)
        version = version_of(python)
        if not version:
            sys.exit(f"{python} has no pip. Install pip there, or leave that environment.")
        stamp.write_text(UNFINISHED)
        broken = half_written() if inside and interrupted else {}
        install(python, ROOT / "requirements.txt", broken, **options)
        stamp.write_text(digest(version))
    return python


# What it can do


def in_a_container():
    return Path("/.dockerenv").exists() or Path("/run/.containerenv").exists()


def lab(python, arguments):
    command = [python, "-m", "jupyterlab", "--config", str(ROOT / ".lab/jupyter_lab_config.py")]
    if hasattr(os, "geteuid") and os.geteuid() == 0:
        command.append("--allow-root")
    has_display = os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")
    if not in_a_container() and (sys.platform != "linux" or has_display):
        say("JupyterLab opens in your browser, or at the address below. Ctrl-C twice stops it.")
    else:
        command.append("--no-browser")
        say("No screen here: open the address below in a browser. Ctrl-C twice stops JupyterLab.")
    become([*command, *arguments])


def test(python, arguments):
    """Run every step, even after one has failed, then print how each went."""
    os.environ["OMP_NUM_THREADS"] = "1"  # two kernels with two threads each fight: 5 times slower
    if arguments:
        return become([python, "-m", "pytest", *arguments])
    report, failed = [], 0
    for name, command in TESTS.items():
        say(f"\n== {name}: python {command}")
        start = time.monotonic()
        code = call([python, *command.split()])
        failed += code != 0
        outcome = f"FAILED with exit code {code}" if code else "passed"
        report.append(f"{name:<8}{time.monotonic() - start:6.0f} s  {outcome}")
    say("\n" + "\n".join(report))
    return int(failed > 0)


def test_environment():
    """Install the pip part of environment.yml as conda would, and import what came of it."""
    lines = (ROOT / "environment.yml").read_text().split("- pip:\n")[1].splitlines()
    pins = [line.strip()[2:] for line in lines if "==" in line]
    modules = "jupyterlab, ipywidgets, numpy, scipy, matplotlib, sklearn, torch, joblib, coursekit"
    with tempfile.TemporaryDirectory() as folder:
        requirements = Path(folder, "requirements.txt")
        requirements.write_text("\n".join(pins))
        make_venv(Path(folder, "venv"))
        python = python_in(Path(folder, "venv"))
        install(python, requirements)
        code = call([python, "-I", "-c", f"import {modules}"])
    say("environment.yml: " + ("its packages do not import." if code else "installs and imports."))
    return code


def bench(arguments):
    """Run one of benchmarks/ in .bench, made anew when a version changed; .venv is not touched."""
    known = sorted(path.stem for path in (ROOT / "benchmarks").glob("[a-z]*.py"))
    if not arguments or arguments[0] not in known:
        sys.exit(f"Name a benchmark: python course.py bench {' or '.join(known)}")
    requirements, stamp = ROOT / "benchmarks/requirements.txt", BENCH / STAMP
    wanted = digest(sys.version + requirements.read_text())
    with taking_turns() as options:
        if not stamp.exists() or stamp.read_text() != wanted:
            make_our_venv(BENCH, **options)
            install(python_in(BENCH), requirements, **options)
            stamp.write_text(wanted)
    become([python_in(BENCH), str(ROOT / "benchmarks" / f"{arguments[0]}.py"), *arguments[1:]])


def main(arguments):
    if not (3, 10) <= sys.version_info[:2] < (3, 14):
        found = f"{sys.version.split()[0]} ({sys.executable})"
        sys.exit(f"The course needs Python 3.10, 3.11, 3.12 or 3.13; this is Python {found}.")
    verb, rest = (arguments[0], arguments[1:]) if arguments else ("help", [])
    if verb in ("help", "-h", "--help"):
        return say(__doc__)
    if verb == "test-environment":
        return test_environment()
    if verb == "bench":
        return bench(rest)
    if verb not in ("lab", "test", *TO_COURSEKIT):
        sys.exit(f"{__doc__}\nThere is no `{verb}`: the commands above are all.")
    python = set_up()
    os.environ["PATH"] = os.pathsep.join([scripts_of(python), os.environ.get("PATH", "")])
    if verb == "lab":
        return lab(python, rest)
    if verb == "test":
        return test(python, rest)
    become([python, "-m", "coursekit", verb, *rest])


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except KeyboardInterrupt:
        print("\nStopped. Run the same command again to go on.", file=sys.stderr)
        sys.exit(130)
