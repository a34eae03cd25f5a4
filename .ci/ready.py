"""Set up ROOT/.venv: python ready.py ROOT STAMP. Standard library only, run by any Python from 3.11 to 3.13.

Two at once: the second waits for the first (a lock that the kernel frees when its holder dies). Interrupted: a mark
says that an installation was begun, the stamp is written last, and the next call begins with an empty environment.
"""

import fcntl
import importlib.util
import subprocess
import sys
from pathlib import Path


def main(root: Path, stamp: str) -> int:
    """Exit code: 0 ready, 2 not."""
    if importlib.util.find_spec("ensurepip") is None:
        version = f"{sys.version_info.major}.{sys.version_info.minor}"
        return fail(f"{sys.executable} has no venv module; install it (Debian: apt-get install python{version}-venv)")
    with (root / ".venv.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        stamped = root / ".venv" / "traceroom.stamp"
        if stamped.is_file() and stamped.read_text().strip() == stamp and (root / ".venv/bin/python").exists():
            return 0
        return install(root, stamped, stamp, lock.fileno())


def install(root: Path, stamped: Path, stamp: str, held: int) -> int:
    """Fill the environment from the lock, then the project itself, then write the stamp.

    What is started here inherits the file lock `held`: where this process is killed alone, the next call waits for the rest.
    """
    venv = root / ".venv"
    begun = venv / "traceroom.begun"
    python = venv / "bin" / "python"
    whole = works(python) and not begun.exists()
    log = root / ".venv.log"
    n_packages = sum("==" in line and not line.startswith((" ", "#")) for line in lines(root / "requirements.lock"))
    say(f"setting up .venv with {n_packages} locked packages (once, about a minute; what pip says is in {log})")
    pip = [str(python), "-m", "pip", "--disable-pip-version-check", "--no-input", "install", "--quiet"]
    steps = [
        [*pip, "--no-deps", "--require-hashes", "-r", str(root / "requirements.lock")],
        [*pip, "--no-deps", "--no-build-isolation", "--editable", str(root)],
    ]
    if not whole:
        steps.insert(0, [sys.executable, "-m", "venv", "--clear", str(venv)])
    with log.open("w") as out:
        for step in steps:
            if venv.is_dir():
                begun.touch()
            done = subprocess.run(step, stdout=out, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, pass_fds=(held,))
            if done.returncode:
                out.flush()
                sys.stderr.write("".join(f"    {line}\n" for line in lines(log)[-5:]))
                return fail(f"setting up .venv failed (all of it is in {log}); mend that and run the command again")
    stamped.write_text(stamp + "\n")
    begun.unlink()
    return 0


def works(python: Path) -> bool:
    """Whether an environment's interpreter starts, is one that we run on, and has pip."""
    try:
        check = "import sys, pip; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 13))"
        return subprocess.run([str(python), "-c", check], capture_output=True).returncode == 0
    except OSError:
        return False


def lines(path: Path) -> list[str]:
    """Lines of a text file."""
    return path.read_text(errors="replace").splitlines()


def say(text: str) -> None:
    """One line for the person who waits."""
    print(f"traceroom: {text}", file=sys.stderr, flush=True)


def fail(text: str) -> int:
    """Say what is wrong; exit code 2: it could not run."""
    say(text + ".")
    return 2


if __name__ == "__main__":
    try:
        sys.exit(main(Path(sys.argv[1]), sys.argv[2]))
    except KeyboardInterrupt:
        say("stopped; the same command begins again.")
        sys.exit(130)
