"""How truly rooms answer is measured as the scorers that are not ours measure it, and its own judgements hold."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import ROOT

sys.path.insert(0, str(ROOT / "benchmarks"))
from fidelity_ceiling import Log
from fidelity_score import Call, Cassette, Clock

FIDELITY = ROOT / "benchmarks" / "fidelity.py"


def _call(tool: str, arguments: dict[str, object], content: str, at: str | None = None) -> Call:
    return Call("desk", "s", tool, arguments, content, content.startswith("Error"), at)


def test_a_clock_forgives_one_offset_and_nothing_else() -> None:
    clock = Clock()
    assert clock.same("made 2024-05-15T10:00:00, due 2024-05-20", "made 2024-05-15T10:00:00, due 2024-05-20")
    assert clock.same("made 2024-05-15T10:00:01", "made 2024-05-15T10:00:00")
    assert clock.same("made 2024-05-15T11:00:01", "made 2024-05-15T11:00:00")
    assert not clock.same("made 2024-05-15T11:00:02", "made 2024-05-15T11:00:00"), "another offset"
    assert not clock.same("made 2024-05-15T11:00:01 by 2", "made 2024-05-15T11:00:00 by 3")
    assert not Clock().same("2024-02-30", "2024-02-28"), "no day of the calendar"


def test_the_ceiling_counts_what_was_seen_and_no_more() -> None:
    log = Log([_call("show", {"id": "a7"}, '{"id": "a7", "owner": "u1", "state": "open", "note": "x"}'),
               _call("move", {"id": "b8", "to": "4"}, "Error: b8 holds 3, not 4")])
    shut = '{"id": "a7", "owner": "u1", "state": "shut", "note": "x"}'
    assert log.tells(_call("show", {"id": "a7"}, shut)), "the thing was seen, whatever became of it"
    assert log.tells(_call("move", {"id": "a7", "to": "4"}, shut))
    assert not log.tells(_call("show", {"id": "c9"}, shut.replace("a7", "c9").replace("u1", "u2")))
    assert not log.tells(_call("list", {"id": "a7"}, shut)), "a tool that was never called"
    assert log.tells(_call("move", {"id": "a7", "to": "9"}, "Error: a7 holds 5, not 9"))
    assert not log.tells(_call("show", {"id": "a7"}, "Error: a7 holds 5, not 9"))


def test_the_cassette_plays_the_latest_recording_before() -> None:
    tape = Cassette([_call("show", {"a": 1, "b": 2}, "new", "2024-02"), _call("show", {"b": 2, "a": 1}, "old", "2024-01")])
    assert tape.decision(_call("show", {"a": 1, "b": 2}, "old", "2024-01"), Clock()) == "exact"
    assert tape.decision(_call("show", {"a": 1, "b": 2}, "old", "2024-03"), Clock()) == "wrong"
    assert tape.decision(_call("show", {"a": 1, "b": 2}, "old", "2023-12"), Clock()) == "unknown"


def test_fidelity_says_what_it_wants(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, str(FIDELITY), str(tmp_path)], capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 2 and done.stdout == "" and "logs" in done.stderr


@pytest.mark.slow
def test_fidelity_agrees_with_the_scorer_that_is_not_ours(data: Path, tmp_path: Path) -> None:
    acceptance = data.parent / "acceptance"
    subprocess.run([sys.executable, acceptance / "split.py", data / "airline", tmp_path / "split", "trial"], check=True)
    build = tmp_path / "split" / "build"
    subprocess.run(
        [sys.executable, "-m", "pipelines", "run", build, "--out", tmp_path / "out", "--no-image", "--privacy", "off"],
        cwd=ROOT, check=True, capture_output=True)
    theirs = _figures([acceptance / "replay.py", tmp_path / "out", tmp_path / "split" / "held", build])
    ours = _figures([FIDELITY, data / "airline", "--built", tmp_path / "out"])
    assert ours["n_calls_exact"] == theirs["n_calls"] > 200
    assert (ours["calls_exact_bytes"], ours["sessions_exact"]) == (theirs["calls_exact"], theirs["sessions_exact"])
    assert ours["cassette_calls_exact"] < ours["calls_exact"] < ours["ceiling_calls_exact"] < 1


def _figures(command: list[object]) -> dict[str, float]:
    done = subprocess.run(list(map(str, [sys.executable, *command])), capture_output=True, text=True, cwd=ROOT, timeout=500,
                          check=False)
    assert done.returncode == 0, done.stderr
    figures: dict[str, float] = json.loads(done.stdout.splitlines()[-1])["figures"]
    return figures
