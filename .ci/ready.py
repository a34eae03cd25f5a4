"""Set up ROOT/.venv: python ready.py ROOT HASH LEVEL. Standard library only, run by any Python from 3.11 to 3.13.

LEVEL `run` installs requirements.lock, `dev` requirements-dev.lock, which holds all of the first. Two processes at once: the
second waits for the first (the kernel frees the file lock when its holder dies). Interrupted: a mark says that an installation
was begun, the stamp is written last, and the next call starts with an empty environment.
"""

import fcntl
import importlib.util
import re
import subprocess
import sys
from pathlib import Path

LOCKS = {"run": "requirements.lock", "dev": "requirements-dev.lock"}
PACKAGE = re.compile(r"(?:Collecting |Processing .*/|Requirement already satisfied: )([\w.-]+?)(?:==|-)\d.*\(from -r")
"""How pip names a package that it has come to."""
EVERY = 20
"""Packages between two lines of progress where the output is no terminal."""


def main(root: Path, wanted: str, level: str) -> int:
    """Return the exit code: 0 ready, 2 not."""
    if importlib.util.find_spec("ensurepip") is None:
        version = f"{sys.version_info.major}.{sys.version_info.minor}"
        return fail(f"{sys.executable} has no venv module; install it (Debian: apt-get install python{version}-venv)")
    with (root / ".venv.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        stamp = root / ".venv" / "traceroom.stamp"
        ready = stamp.read_text().split() if stamp.is_file() else []
        if ready in ([wanted, level], [wanted, "dev"]) and (root / ".venv/bin/python").exists():
            return 0
        return install(root, level, stamp, wanted, lock.fileno())


def install(root: Path, level: str, stamp: Path, wanted: str, lock: int) -> int:
    """Fill the environment from the level's lock, then install the project itself, then write the stamp.

    Child processes inherit the file `lock`: if this process is killed alone, the next call waits for its children.
    """
    venv = root / ".venv"
    begun = venv / "traceroom.begun"
    python = venv / "bin" / "python"
    log = root / ".venv.log"
    requirements = root / LOCKS[level]
    n_packages = len(re.findall(r"^[A-Za-z0-9]\S*==", requirements.read_text(), re.M))
    what = "commands" if level == "run" else "the tests"
    say(f"setting up .venv for {what}: {n_packages} packages of {requirements.name} (once, about a minute; log: {log})")
    pip = [str(python), "-m", "pip", "--disable-pip-version-check", "--no-input", "install", "--progress-bar", "off"]
    steps = [
        [*pip, "--no-deps", "--require-hashes", "-r", str(requirements)],
        [*pip, "--quiet", "--no-deps", "--no-build-isolation", "--editable", str(root)],
    ]
    if not works(python) or begun.exists():
        steps.insert(0, [sys.executable, "-m", "venv", "--clear", str(venv)])
    with log.open("w") as out:
        for step in steps:
            if venv.is_dir():
                begun.touch()
            if run(step, out, n_packages, lock):
                sys.stderr.write("".join(f"    {line}\n" for line in log.read_text(errors="replace").splitlines()[-5:]))
                return fail(f"setting up .venv failed (full output: {log}); fix that and run the command again")
    stamp.write_text(f"{wanted} {level}\n")
    begun.unlink()
    return 0


def run(command, out, n_packages: int, lock: int) -> int:
    """Run a step, copy its output to the log, and show which package of how many it has come to; return its exit code."""
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, pass_fds=(lock,), text=True,
        errors="replace")
    number, is_terminal = 0, sys.stderr.isatty()
    for line in process.stdout:
        out.write(line)
        out.flush()
        n_packages -= line.startswith("Ignoring ")   # of another platform
        if package := PACKAGE.match(line):
            number += 1
            text = f"package {number} of {n_packages}: {package[1]}"
            if is_terminal:
                sys.stderr.write(f"\r\x1b[Ktraceroom: {text}")
            elif number % EVERY == 0:
                say(text)
        elif line.startswith("Installing collected packages"):
            say(("\r\x1b[K" if is_terminal else "") + f"installing {number} packages")
    if is_terminal and number:
        sys.stderr.write("\r\x1b[K")
    return process.wait()


def works(python: Path) -> bool:
    """Return whether an environment's interpreter starts, is a supported version, and has pip."""
    try:
        check = "import sys, pip; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 13))"
        return subprocess.run([str(python), "-c", check], capture_output=True).returncode == 0
    except OSError:
        return False


def say(text: str) -> None:
    """Print one line for the person who waits."""
    print(f"traceroom: {text}", file=sys.stderr, flush=True)


def fail(text: str) -> int:
    """Print what is wrong and return exit code 2: it could not run."""
    say(text + ".")
    return 2


if __name__ == "__main__":
    try:
        sys.exit(main(Path(sys.argv[1]), sys.argv[2], sys.argv[3]))
    except KeyboardInterrupt:
        say("stopped; the same command starts again.")
        sys.exit(130)
