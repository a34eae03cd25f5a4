"""What changed in the logs reaches the person: in the summary, in `show`, and as a warning that holds nothing up."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from pipelines.quality.rules import WARNINGS, broken, offenders
from tests.command_line import called
from tests.conftest import once
from tests.pipelines.conftest import Traceroom
from warehouse.store import Store

FIRST_DAY_OF_THE_NEW_NAME = 8


def write_days(folder: Path, is_renamed: bool) -> Path:
    """Twelve days of twenty sessions, a call each; its argument has another name from some day on, if it is renamed."""
    folder.mkdir()
    for day in range(1, 13):
        name = "door_number" if is_renamed and day >= FIRST_DAY_OF_THE_NEW_NAME else "door"
        lines = []
        for number in range(20):
            call = {"id": f"call_{number}", "type": "function", "function": {
                "name": "open_door", "arguments": json.dumps({name: f"D-{number:03}", "slowly": number % 2 == 0})}}
            at = f"2026-03-{day:02}T10:{number:02}:00Z"
            lines.append(json.dumps({"session_id": f"s-{day}-{number}", "ts": at, "messages": [
                {"role": "user", "content": f"Open door {number}, please."},
                {"role": "assistant", "content": None, "tool_calls": [call]},
                {"role": "tool", "tool_call_id": call["id"], "content": json.dumps({"opened": f"D-{number:03}"})},
                {"role": "assistant", "content": "It is open."}]}))
        (folder / f"2026-03-{day:02}.jsonl").write_text("\n".join(lines) + "\n")
    return folder


@pytest.fixture(scope="session")
def renamed(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, list[str]]]:
    def make(folder: Path) -> None:
        folder.mkdir()
        done = called("run", "--no-image", "--json", write_days(folder / "logs", True), "--out", folder / "out")
        assert done.returncode == 0, done.stderr
        (folder / "printed.json").write_text(done.stdout)

    folder = once(tmp_path_factory, "renamed", make)
    return folder / "out", json.loads((folder / "printed.json").read_text())


def test_a_renamed_argument_is_in_the_summary(renamed: tuple[Path, dict[str, list[str]]]) -> None:
    [sentence] = renamed[1]["changed"]
    assert "arguments of open_door: door is called door_number since 2026-03-08" in sentence
    assert renamed[1]["checks_failed"] == []


def test_show_says_what_changed(renamed: tuple[Path, dict[str, list[str]]], traceroom: Traceroom) -> None:
    done = traceroom("show", "--out", renamed[0])
    assert done.returncode == 0 and "Changed in the logs" in done.stderr
    assert "door is called door_number since 2026-03-08" in done.stderr
    [row] = json.loads(traceroom("show", "--out", renamed[0], "--stage", "drift", "--json").stdout)
    assert row == {"stage": "drift", "kept": True, "reason": "renamed", "n": 1}
    assert "Changed in the logs" not in traceroom("show", "--out", renamed[0], "--stage", "sessions").stderr


def test_the_warning_shows_it_and_no_rule_breaks(renamed: tuple[Path, dict[str, list[str]]]) -> None:
    with Store.published(renamed[0] / "warehouse.duckdb") as store:
        assert broken(store) == []
        assert offenders(store, WARNINGS[0])["detail"].to_list() == renamed[1]["changed"]


def test_logs_that_did_not_change_say_nothing(tmp_path: Path, traceroom: Traceroom) -> None:
    done = traceroom("run", "--no-image", "--json", write_days(tmp_path / "logs", False), "--out", tmp_path / "out")
    made = json.loads(done.stdout)
    assert made["changed"] == [] and made["n_sessions"] == 240
    assert "Changed in the logs" not in traceroom("show", "--out", tmp_path / "out").stderr
