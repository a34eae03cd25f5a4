"""A warehouse that is cut off or overwritten: each command says so in one sentence and destroys nothing."""

from __future__ import annotations

import random
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.attacks.report import Report, counted
from tests.attacks.runs import RUN, Run, Wanted

Damage = Callable[[bytes, random.Random], bytes]


def _flipped(content: bytes, choose: random.Random) -> bytes:
    changed = bytearray(content)
    for _ in range(400):
        at = choose.randrange(12_288, len(changed))
        changed[at] ^= 1 << choose.randrange(8)
    return bytes(changed)


def _overwritten(content: bytes, choose: random.Random) -> bytes:
    at, n = choose.randrange(4_096, len(content) // 2), 300_000
    return content[:at] + choose.randbytes(n) + content[at + n:]


DAMAGES: dict[str, Damage] = {
    "empty": lambda content, choose: b"", "text": lambda content, choose: b"these are no tables\n" * 900,
    "cut in the middle": lambda content, choose: content[:choose.randrange(20_000, len(content) - 20_000)],
    "cut in the head": lambda content, choose: content[:choose.randrange(1, 12_288)],
    "zeros in the head": lambda content, choose: bytes(4_096) + content[4_096:],
    "noise in the head": lambda content, choose: choose.randbytes(8_192) + content[8_192:],
    "bits flipped": _flipped, "noise in the middle": _overwritten,
    "zeros at the end": lambda content, choose: content[:len(content) // 2] + bytes(len(content) - len(content) // 2)}
FILES = ("warehouse.duckdb", "warehouse.published.duckdb", "warehouse.duckdb.wal")


def commands(out: Path, logs: Path) -> dict[str, tuple[str | Path, ...]]:
    """Return the commands that open a warehouse."""
    folder = ("--out", out)
    return {"run": (*RUN, logs, *folder), "show": ("show", *folder), "release": ("release", *folder),
            "forget": ("forget", "--subject", "mia_li_3668", *folder), "report": ("report", *folder),
            "review": ("review", out)}


def contents(out: Path, damaged: Path) -> dict[str, bytes]:
    """Return the files of a folder but those that every command may write: the damaged one's, and locks."""
    return {path.relative_to(out).as_posix(): path.read_bytes() for path in sorted(out.rglob("*"))
            if path.is_file() and path != damaged and path.suffix not in (".lock", ".wal")
            and path.parent.name != "report"}


def problems_of(out: Path, damaged: Path, name: str, run: Run) -> list[str]:
    """Name what is wrong with how a command took a damaged file."""
    before = contents(out, damaged)
    code = run.end()
    text, failures = "".join(run.lines), [line for line in run.lines if line.startswith("✗")]
    after = contents(out, damaged)
    changed = sorted(path for path in before.keys() | after.keys() if before.get(path) != after.get(path))
    problems = []
    if code not in (0, 1, 2) or "Traceback" in text or "mistake in Traceroom" in text:
        problems.append(f"{name}: exit code {code}: {text[-500:]}")
    elif code == 2 and (len(failures) != 1 or "warehouse" not in failures[0] or ";" not in failures[0]):
        problems.append(f"{name}: {text[-500:]}")
    if code == 2 and changed:
        problems.append(f"{name}: it failed and changed {changed[:4]}")
    return problems


def attack(folder: Path, share: float, wanted: Wanted | None = None) -> Report:
    """Damage each file in each way, and run each command on it."""
    wanted, choose, problems = wanted or Wanted(folder / "wanted"), random.Random(27), []
    cases = [(file, damage, command) for file in FILES for damage in DAMAGES for command in commands(folder, folder)]
    chosen = sorted(choose.sample(cases, counted(len(cases), share)), key=cases.index)
    for file, damage, command in chosen:
        out = wanted.copy_former(folder / "out")
        damaged = out / file
        content = damaged.read_bytes() if damaged.exists() else choose.randbytes(400_000)
        damaged.write_bytes(DAMAGES[damage](content, choose))
        run = Run(folder, *commands(out, wanted.logs)[command], TRACEROOM_ENGINE="process")
        problems += problems_of(out, damaged, f"{file}, {damage}, {command}", run)
        shutil.rmtree(out)
    return Report(len(chosen), tuple(problems))


@pytest.mark.slow
def test_a_damaged_warehouse_is_named(tmp_path: Path, wanted: Wanted) -> None:
    assert attack(tmp_path, 0.015, wanted).problems == ()
