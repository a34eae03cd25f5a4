"""README's first screen: its two commands are run as they stand there."""

from __future__ import annotations

import json
import os
import re
import resource
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.conftest import ROOT

README = (ROOT / "README.md").read_text("utf-8")
FIRST_SCREEN = README[: README.index("\n## ")] if "\n## " in README else README


def commands() -> list[str]:
    """Return the command lines of the first screen, without their comments."""
    lines = re.findall(r"^```sh\n(.*?)^```", FIRST_SCREEN, re.M | re.S)
    return [line.split("#")[0].strip() for block in lines for line in block.splitlines() if line.split("#")[0].strip()]


def run(command: str, folder: Path, **environment: str) -> tuple[subprocess.CompletedProcess[str], float]:
    """Run a command line in a folder by a shell, as a reader would; with the seconds of a processor that it took."""
    began = _of_children()
    done = subprocess.run(
        ["sh", "-c", command], cwd=folder, env={**_plain_environment(), **environment}, capture_output=True, text=True,
        timeout=900, check=False,
    )  # fmt: skip
    return done, _of_children() - began


def _of_children() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _plain_environment() -> dict[str, str]:
    """Return this environment without what an active virtual environment or a running test adds to it."""
    added = ("PYTHONPATH", "VIRTUAL_ENV", "TRACEROOM_CI", "TRACEROOM_PYTHON")
    kept = {name: value for name, value in os.environ.items() if name not in added and not name.startswith("PYTEST")}
    return {**kept, "PATH": os.pathsep.join(
        folder for folder in os.environ.get("PATH", "").split(os.pathsep) if not folder.startswith(str(ROOT)))}


def checkout(folder: Path) -> Path:
    """Return a copy of what git would give a reader: the files of this checkout that are not ignored."""
    listed = subprocess.run(
        ["git", "-c", f"safe.directory={ROOT}", "ls-files", "--cached", "--others", "--exclude-standard", "-z"],
        cwd=ROOT, capture_output=True, text=True, check=True,
    ).stdout  # fmt: skip
    for name in filter(None, listed.split("\0")):
        if (ROOT / name).is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, folder / name)
    return folder


@pytest.fixture
def linked(tmp_path: Path) -> Path:
    """Return a checkout that uses this one's packages, where they are what the lock says."""
    if not (ROOT / ".venv" / "traceroom.stamp").exists():
        pytest.skip("this .venv was not set up by ./traceroom; the fresh one is tested with --all")
    # Made ready from here first: through the link, a changed lock would install the copy into this checkout's .venv.
    subprocess.run([ROOT / ".ci" / "ready", ROOT, "dev"], check=True, capture_output=True, timeout=900)
    folder = checkout(tmp_path)
    (folder / ".venv").symlink_to(ROOT / ".venv")
    return folder


def test_there_are_exactly_two_and_they_are_the_ones_that_are_meant() -> None:
    assert commands() == ["./traceroom run tests/logs/lamp_shop --out out", "./test"]
    assert len(FIRST_SCREEN.splitlines()) <= 30


def test_the_first_makes_verified_environments_and_starts_at_once_again(linked: Path) -> None:
    first, at_first = run(f"{commands()[0]} --json", linked)
    assert first.returncode == 0, first.stderr
    assert "setting up" not in first.stderr
    assert "\n  ./traceroom show --out out --rejected " in first.stderr, "what to do next can be typed as it stands"
    made = json.loads(first.stdout)
    assert made["n_sessions"] == 90
    assert made["n_published"] >= 15
    for room in made["environments"]:
        assert (linked / room["path"] / "manifest.json").is_file()
        assert (linked / room["rewards"] / "rewards.json").is_file()
    again, seconds = run(f"{commands()[0]} --json", linked)
    assert again.returncode == 0, again.stderr
    assert seconds < at_first / 2  # all that is left of it is starting, which a slow disk makes longer
    assert json.loads(again.stdout)["n_published"] == made["n_published"]


@pytest.mark.slow
def test_the_second_passes_what_it_is_given_to_the_tests(linked: Path) -> None:
    """The tests themselves are what is running now; this is the way to them: lint, types, one test."""
    if (ROOT / ".mypy_cache").is_dir():   # what ./test has looked at already
        shutil.copytree(ROOT / ".mypy_cache", linked / ".mypy_cache", symlinks=True)
    done, _ = run(f"{commands()[1]} -n 0 tests/test_readme.py -k exactly_two", linked)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "All checks passed!" in done.stdout
    assert "no issues found" in done.stdout
    assert re.search(r"^1 passed", done.stdout.splitlines()[-1])
    (linked / "warehouse" / "wrong.py").write_text('"""Wrong."""\n\nnumber: int = "one"\n')
    done, _ = run(f"{commands()[1]} -n 0 tests/test_readme.py -k exactly_two", linked)
    assert done.returncode != 0
    assert "Incompatible types in assignment" in done.stdout


def test_it_is_told_when_there_is_no_python(tmp_path: Path) -> None:
    folder = checkout(tmp_path / "here")
    tools = tmp_path / "tools"
    tools.mkdir()
    for name in ("sh", "dirname", "cat", "cut", "sha256sum", "shasum", "env"):
        if found := shutil.which(name):
            (tools / name).symlink_to(found)
    old = tools / "python3"
    old.write_text("#!/bin/sh\nexit 1\n")
    old.chmod(0o755)
    done, _ = run("./traceroom --help", folder, PATH=str(tools))
    assert done.returncode == 2
    assert done.stderr.strip() == (
        "traceroom: no Python 3.11, 3.12 or 3.13 was found; install one (Debian: apt-get install python3 python3-venv) "
        "or name it in TRACEROOM_PYTHON.")


WITHOUT_VENV = """#!/bin/sh
if [ "$1" = -c ]; then exec {python} "$@"; fi
exec {python} -c '
import importlib.util, runpy, sys
find = importlib.util.find_spec
importlib.util.find_spec = lambda name, *more: None if name == "ensurepip" else find(name, *more)
sys.argv = sys.argv[1:]
runpy.run_path(sys.argv[0], run_name="__main__")' "$@"
"""


def test_it_is_told_when_python_has_no_venv(tmp_path: Path) -> None:
    """As on a Debian without python3-venv, where the module that puts pip into an environment is absent."""
    folder = checkout(tmp_path / "here")
    python = tmp_path / "python"
    python.write_text(WITHOUT_VENV.format(python=sys.executable))
    python.chmod(0o755)
    done, _ = run("./traceroom --help", folder, TRACEROOM_PYTHON=str(python))
    assert done.returncode == 2
    assert re.fullmatch(
        r"traceroom: \S+ has no venv module; install it \(Debian: apt-get install python3\.1\d-venv\)\.\n", done.stderr)
    assert not (folder / ".venv").exists()


@pytest.mark.slow
def test_on_a_fresh_checkout_both_set_themselves_up(tmp_path: Path) -> None:
    """One that is killed halfway, then two at once, then the main job, then the main job again."""
    folder = checkout(tmp_path / "fresh")
    killed = subprocess.Popen(
        ["./traceroom", "--help"], cwd=folder, env=_plain_environment(), stderr=subprocess.PIPE, start_new_session=True)
    assert killed.stderr and b"setting up .venv" in killed.stderr.readline()
    time.sleep(8)
    os.killpg(killed.pid, signal.SIGKILL)
    killed.communicate()
    assert not (folder / ".venv" / "traceroom.stamp").exists()
    both = [
        subprocess.Popen(["./traceroom", "--help"], cwd=folder, env=_plain_environment(), text=True,
                         stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        for _ in range(2)
    ]  # fmt: skip
    told = [process.communicate(timeout=600) for process in both]
    assert [process.returncode for process in both] == [0, 0], told
    assert sorted("setting up" in stderr for _, stderr in told) == [False, True]
    first, at_first = run(f"{commands()[0]} --json", folder)
    assert first.returncode == 0, first.stderr
    assert json.loads(first.stdout)["n_published"] >= 15
    again, seconds = run(commands()[0], folder)
    assert again.returncode == 0, again.stderr
    assert seconds < at_first / 2  # all that is left of it is starting, which a slow disk makes longer
    assert "setting up" not in again.stderr
