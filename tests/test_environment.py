"""environment.yml, pyproject.toml, requirements.txt and the running environment agree."""

import importlib.metadata
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
CONDA = yaml.safe_load((ROOT / "environment.yml").read_text("utf-8"))
PINS = [
    line
    for line in (ROOT / "requirements.txt").read_text("utf-8").splitlines()
    if line and not line.startswith("#")
]
SUPPORTED = ["3.10", "3.11", "3.12", "3.13"]
PLATFORMS = {
    "linux": {"sys_platform": "linux", "os_name": "posix", "platform_system": "Linux"},
    "darwin": {"sys_platform": "darwin", "os_name": "posix", "platform_system": "Darwin"},
    "win32": {"sys_platform": "win32", "os_name": "nt", "platform_system": "Windows"},
}


def declared():
    """Every requirement of pyproject.toml to run, to build and to test; not those of `bench`."""
    build = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["build-system"]["requires"]
    extras = [lines for name, lines in PROJECT["optional-dependencies"].items() if name != "bench"]
    return [*PROJECT["dependencies"], *build, *(line for extra in extras for line in extra)]


def locked(version, platform):
    """Name to exact version of what requirements.txt installs on one Python and platform."""
    where = {"python_version": version, "python_full_version": f"{version}.9"}
    where |= PLATFORMS[platform]
    pins = [Requirement(pin) for pin in PINS]
    chosen = [pin for pin in pins if pin.marker is None or pin.marker.evaluate(where)]
    names = [canonicalize_name(pin.name) for pin in chosen]
    assert len(names) == len(set(names)), "a package is pinned twice for one Python"
    return {name: str(pin.specifier)[2:] for name, pin in zip(names, chosen, strict=True)}


def pip_section():
    (section,) = [entry["pip"] for entry in CONDA["dependencies"] if isinstance(entry, dict)]
    return section


def test_every_pin_is_exact():
    for pin in PINS:
        (specifier,) = Requirement(pin).specifier
        assert specifier.operator == "==" and "*" not in specifier.version, pin


def test_environment_yml_has_the_pins_of_requirements_txt():
    index, *pins = pip_section()
    assert index == "--extra-index-url https://download.pytorch.org/whl/cpu"
    assert pins == PINS, "environment.yml must carry the lines of requirements.txt, in order"


def test_environment_yml_holds_nothing_relative():
    # mamba runs pip in another folder, where `-r requirements.txt` or `-e .` do not exist
    assert not [line for line in pip_section()[1:] if line.startswith(("-", ".", "/"))]


def test_environment_yml_uses_conda_forge_and_a_supported_python():
    assert CONDA["channels"] == ["conda-forge", "nodefaults"]
    python, pip, _ = CONDA["dependencies"]
    assert pip == "pip"
    assert python.removeprefix("python=") in SUPPORTED


def test_supported_pythons_agree():
    range_ = SpecifierSet(PROJECT["requires-python"])
    assert [v for v in map("3.{}".format, range(8, 20)) if v in range_] == SUPPORTED
    assert "(3, 10) <= sys.version_info[:2] < (3, 14)" in (ROOT / ".ci/run").read_text("utf-8")


@pytest.mark.parametrize("platform", PLATFORMS)
@pytest.mark.parametrize("version", SUPPORTED)
def test_every_declared_dependency_is_pinned_within_its_bounds(version, platform):
    pins = locked(version, platform)
    for line in declared():
        requirement = Requirement(line)
        pin = pins.get(canonicalize_name(requirement.name))
        assert pin is not None, f"{line} has no pin in requirements.txt"
        assert pin in requirement.specifier, f"{line}, but requirements.txt pins {pin}"


def test_the_bench_extra_is_pinned_by_itself_and_never_in_the_course():
    text = (ROOT / "benchmarks/requirements.txt").read_text("utf-8")
    lines = [line for line in text.splitlines() if not line.startswith("#")]
    # on these both must agree
    shared = {"joblib", "numpy", "scikit-learn", "scipy", "setuptools", "torch", "tqdm"}
    ours = {line for line in PINS if canonicalize_name(Requirement(line).name) in shared}
    assert ours == {line for line in lines if canonicalize_name(Requirement(line).name) in shared}
    own = {canonicalize_name(pin.name): pin for pin in map(Requirement, set(lines) - ours)}
    course = {canonicalize_name(Requirement(pin).name) for pin in PINS}
    for requirement in map(Requirement, PROJECT["optional-dependencies"]["bench"]):
        name = canonicalize_name(requirement.name)
        assert name not in course, f"{name} belongs into .bench, not into the course"
        (pin,) = own.pop(name).specifier
        assert pin.operator == "==" and pin.version in requirement.specifier, name
    assert not own, "everything else belongs to the extra"


def test_the_running_environment_is_the_locked_one():
    version, platform = "{}.{}".format(*sys.version_info), sys.platform
    for name, pin in locked(version, platform).items():
        found = importlib.metadata.version(name)
        assert found in SpecifierSet(f"=={pin}"), f"{name} is {found}, requirements.txt pins {pin}"


def test_nothing_of_cuda_is_pinned():
    names = {canonicalize_name(Requirement(pin).name) for pin in PINS}
    assert not [name for name in names if name.startswith(("nvidia", "cuda", "triton"))]


@pytest.mark.skipif(not shutil.which("git"), reason="needs git")
def test_no_file_names_a_package_registry():
    # Put together from parts, for this file must not name one either.
    hosts = ["pypi" + ".org", "python" + "hosted", "ana" + "conda.org", "repo.ana" + "conda.com"]
    hosts += ["npm" + "js.", "npm" + "js.org", "crates" + ".io", "registry" + ".yarnpkg"]
    patterns = [part for host in hosts for part in ("-e", host)]
    command = ["git", "grep", "--untracked", "-I", "-l", "-i", "-F", *patterns]
    found = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    if found.returncode == 128:
        pytest.skip("not a git checkout")
    assert found.returncode == 1, f"these name a package registry:\n{found.stdout}{found.stderr}"


@pytest.mark.skipif(os.name == "nt", reason="Binder's scripts are for bash")
@pytest.mark.parametrize("script", ["postBuild", ".ci/run"])
def test_shell_scripts_are_valid_and_executable(script):
    path = ROOT / script
    assert os.access(path, os.X_OK)
    assert path.read_bytes().startswith(b"#!/usr/bin/env bash\n")
    assert b"\nset -eu\n" in path.read_bytes()
    assert subprocess.run(["bash", "-n", path]).returncode == 0
