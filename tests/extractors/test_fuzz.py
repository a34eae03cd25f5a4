"""Whatever a file holds: no crash, no hang, no record without a trace, and memory within bounds."""

from __future__ import annotations

import subprocess
import sys
import time
import zlib
from pathlib import Path
from typing import Any

import orjson
import pytest

from tests.extractors import mutations

ROOT = Path(__file__).resolve().parents[2]
PEAK_MIB = 1500


def read_damaged(*arguments: object, timeout_s: float) -> dict[str, Any]:
    done = subprocess.run([sys.executable, "-m", "tests.extractors.mutations", *map(str, arguments)], cwd=ROOT,
                          capture_output=True, text=True, timeout=timeout_s, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    found: dict[str, Any] = orjson.loads(done.stdout.splitlines()[-1])
    return found


def assert_unharmed(found: dict[str, Any]) -> None:
    shown = "\n\n".join(f"{each['number']} {each['what']}\n{each['problem']}" for each in found["wrong"][:12])
    assert not found["wrong"], f"{len(found['wrong'])} of {found['count']} files:\n{shown}"
    assert found["peak_mib"] < PEAK_MIB, found


def test_the_same_seed_gives_the_same_damage_at_any_time(monkeypatch: pytest.MonkeyPatch) -> None:
    originals = [("a", b'{"a": {"b": [1, "two"]}}\n{"c": 12}\n'), ("b", b"x,y\n1,2\n")]
    first = [mutations.mutated(7, number, originals) for number in range(200)]
    later = time.time() + 86_400
    monkeypatch.setattr(time, "time", lambda: later)
    assert first == [mutations.mutated(7, number, originals) for number in range(200)]
    assert len({zlib.crc32(held) for _, held in first}) > 120, "and no two alike, or few"
    assert len({step for what, _ in first for step in what.split(" > ")[1:]}) >= 11


@pytest.mark.slow
def test_300_damaged_files_do_no_harm() -> None:
    assert_unharmed(read_damaged(1, 0, 300, timeout_s=550))


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_5000_damaged_files_do_no_harm(data: Path) -> None:
    found = read_damaged(2, 0, 5_000, data / "format_samples", timeout_s=1700)
    assert_unharmed(found)
    assert found["count"] == 5_000 and found["slowest"][0] < mutations.TIMEOUT_S
