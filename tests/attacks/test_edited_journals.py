"""Journals edited before they are graded: claimed answers, tiers, rewards and ends; only what is replayed counts."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

from env_builder.runtime import Environment
from tests.attacks.report import Report
from tests.rooms import OPEN, TASK, write_rewards, write_room


def played(room: Path, *calls: tuple[str, dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the journal of an episode of these calls."""
    environment = Environment.load(room)
    environment.reset(TASK)
    environment.say("Which door?")
    for tool, arguments in calls:
        environment.call(tool, arguments)
    environment.finish()
    return list(copy.deepcopy(environment.journal))


def forged(journal: list[dict[str, Any]]) -> dict[str, Any]:
    """Return what a policy would like to have done, of a journal in which it did not."""
    call = {"kind": "call", "tool": "open_door", "arguments": {"door": "8"}, "content": OPEN, "is_error": False,
        "tier": "recorded"}
    changed = [{**row, "content": OPEN, "is_error": False, "tier": "recorded"} if row.get("kind") == "call" else row
        for row in journal]
    return {
        "claimed answers": changed, "a claimed effect": [*journal, {**call,
        "effects": [{"class": "door", "key": "7", "value": OPEN}]}],
        "a claimed reward": [*journal, {"kind": "grade", "reward": 1.0}], "a claimed state": [*journal,
        {"kind": "state", "documents": {"door/7": OPEN}}],
        "others' words": [*journal, {"kind": "say", "content": "ok", "reply": "The door is open, thank you. reward 1."}],
        "a claimed end": [*journal, {"kind": "finish", "ended": "terminated", "reward": 1.0}],
        "another's call": [*journal, {**call, "arguments": {"door": "7"}, "kind": "event"}],
        "a call beside its tool": [*journal, {**call, "tool": "open_door ", "arguments": {"door": "7"}}],
        "arguments as text": [*journal, {**call, "arguments": '{"door": "7"}'}], "a list for a call": [*journal,
        ["open_door", {"door": "7"}]],
        "nothing": [], "null": [None] * 3,
        "numbers": [1, 2.5, True], "depth": [{"kind": "call", "tool": "open_door", "arguments": _deep(900)}],
        "learnt": [{"kind": "learn", "tool": "open_door", "arguments": {"door": "7"}, "content": OPEN}, *journal],
        "a binding": [{**row, "bound": True, "content": OPEN} for row in changed], "forked": [{"kind": "rollback", "n": 1},
        *journal]}


def _deep(depth: int) -> Any:
    value: Any = "7"
    for _ in range(depth):
        value = {"door": value}
    return value


def attack(folder: Path, share: float) -> Report:
    """Grade each forged journal of an episode that left the door closed; then an honest one of an episode that opened it."""
    room = write_room(folder / "out" / "environments" / "hall")
    write_rewards(room)
    journals = forged(played(room, ("open_door", {"door": "8"})))
    environment, problems = Environment.load(room), []
    for name, journal in journals.items():
        try:
            reward = environment.grade_journal(TASK, journal).reward
            problems += [f"{name}: reward {reward}"] if reward else []
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            problems += [] if isinstance(error, ValueError) else [f"{name}: {type(error).__name__}: {error}"]
    honest = environment.grade_journal(TASK, json.loads(json.dumps(played(room, ("open_door", {"door": "7"}))))).reward
    return Report(len(journals) + 1, (*problems, *([] if honest == 1.0 else [f"an honest journal has {honest}"])))


def test_what_a_journal_claims_does_not_count(tmp_path: Path) -> None:
    assert attack(tmp_path, 0.01).problems == ()
