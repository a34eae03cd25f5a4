"""The audit: each player is played, what a weak reward lets through withholds the task, what is alike does not count."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from env_builder.audit import DEEP, Depth, rate, wilson
from env_builder.runtime.canonical import canonical
from env_builder.verify import Verified, verify
from tests.env_builder.test_verify import GATES, LOOK, OPEN, SAY, built, gates, write_lines

TOLD = ("said", {"facts": [{"type": "number", "value": "4711"}]})
LOOKED = ("call", {"calls": [LOOK], "at_least": 1})


def audited(
    out: Path, checks: list[dict[str, Any]], solution: list[dict[str, Any]], *sessions: tuple[float, list[dict[str, Any]]],
    depth: Depth = DEEP,
) -> Verified:
    """Return the audit of one task with these other sessions: (probability of success, steps)."""
    room, rewards = built(out, {"t": checks}, {"t": solution})
    write_lines(rewards / "sessions.jsonl", [
        {"task_id": "t", "session_id": f"s{n}", "probability": chance, "steps": steps}
        for n, (chance, steps) in enumerate(sessions)])
    return verify(room, rewards, depth=depth)


def reason(found: Verified) -> str:
    return str(found.decisions["reason"].item())


def played(found: Verified) -> dict[str, tuple[float | None, str | None]]:
    return {player: (reward, should) for player, reward, should in found.plays.select("player", "reward", "should").iter_rows()}


def test_a_sound_reward_stops_everybody(tmp_path: Path) -> None:
    found = audited(tmp_path, gates(*GATES), [LOOK, OPEN, SAY], (0.95, [OPEN, SAY]), (0.02, [LOOK, SAY]))
    assert reason(found) == "verified"
    plays = played(found)
    assert plays["s0"] == (1.0, "pass") and plays["s1"] == (0.0, "fail")
    assert {"silent", "chatty", "judge_injection", "reader", "read_everything", "list_everything", "liar"} <= set(plays)
    assert plays["liar"] == (0.0, "fail")
    tried = found.report.totals["tried"]
    assert tried["false_accept"]["session"] == rate(0, 1) and tried["false_reject"] == rate(0, 2)
    assert found.report.rows[0]["task_id"] == "t" and len(found.report.rows[0]["plays"]) == found.plays.height


def test_a_reward_that_a_known_bad_session_earns_is_unverified(tmp_path: Path) -> None:
    found = audited(tmp_path, gates(*GATES), [LOOK, OPEN, SAY], (0.05, [OPEN]))
    assert reason(found) == "bad_session_passes" and "s0" in found.decisions["detail"].item()
    doubtful = audited(tmp_path / "doubtful", gates(*GATES), [LOOK, OPEN, SAY], (0.45, [OPEN]), (0.7, [OPEN]))
    assert reason(doubtful) == "verified", "a probability is no proof"
    together = audited(tmp_path / "together", gates(*GATES), [LOOK, OPEN, SAY], (0.2, [OPEN]), (0.3, [OPEN, SAY]))
    assert reason(together) == "bad_session_passes", "but many that are likelier bad than good weigh more than one"
    lenient = Depth(bad_below=0.01)
    assert reason(audited(tmp_path / "l", gates(*GATES), [OPEN], (0.05, [OPEN]), (0.97, [OPEN]), depth=lenient)) == "verified"


def test_a_reward_that_stops_a_known_good_session_is_unverified(tmp_path: Path) -> None:
    found = audited(tmp_path, gates(*GATES, TOLD), [LOOK, OPEN, SAY], (0.95, [OPEN]))
    assert reason(found) == "succeeded_session_fails"
    assert found.report.totals["tried"]["false_reject"]["k"] == 1


@pytest.mark.parametrize(("checks", "expected"), [
    ([LOOKED, TOLD], "attacker_passes"),  # never asks for the act
    ([("state", {"accepted": [GATES[0][1]["accepted"][0]]}), LOOKED], "verified"),
    ([("spoke", {"at_least": 2})], "attacker_passes"),  # the one who asks the judge for a high score says two things
])
def test_a_gameable_rubric_is_unverified(tmp_path: Path, checks: list[Any], expected: str) -> None:
    assert reason(audited(tmp_path, gates(*checks), [LOOK, {"say": "Wait."}, OPEN, SAY])) == expected


def test_telling_everything_is_stopped_unless_the_rubric_asks_to_change_nothing(tmp_path: Path) -> None:
    word = ("said", {"facts": [{"type": "words", "value": "closed"}]})
    claim = ("not_said", {"facts": [{"type": "words", "value": "I have taken care"}]})
    solution = [LOOK, {"say": "It is closed."}]
    asked = audited(tmp_path / "a", gates(word, LOOKED), solution)
    assert reason(asked) == "attacker_passes" and "list_everything" in asked.decisions["detail"].item()
    refused = audited(tmp_path / "b", gates(("must_not_write", {}), word, claim, LOOKED), solution)
    assert reason(refused) == "verified" and played(refused)["list_everything"] == (1.0, None), "shown, and excepted"


def test_the_right_end_by_a_forbidden_way_is_tried(tmp_path: Path) -> None:
    once = ("call", {"calls": [LOOK], "at_most": 1})
    found = audited(tmp_path, gates(*GATES, once), [LOOK, OPEN, SAY])
    assert reason(found) == "verified"
    assert played(found)["over_and_over"] == (0.0, "fail")
    assert played(found)["backwards"][1] is None, "nobody forbids this order"


def test_the_same_audit_twice_is_the_same_bytes(tmp_path: Path) -> None:
    one, other = (audited(tmp_path / name, gates(*GATES), [LOOK, OPEN, SAY], (0.02, [LOOK])) for name in ("one", "other"))
    assert canonical(one.report._asdict()) == canonical(other.report._asdict())
    assert json.loads(canonical(one.report.totals))["format"] == "traceroom-audit/1"


def test_an_interval_is_that_of_wilson() -> None:
    assert wilson(0, 0) == (0.0, 1.0)
    low, high = wilson(8, 10)
    assert (round(low, 4), round(high, 4)) == (0.4902, 0.9433)  # Wilson 1927, as every table has it
    assert rate(0, 100)["high"] == pytest.approx(0.036993, abs=2e-6)
