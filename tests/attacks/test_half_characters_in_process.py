"""Half an emoji in words, arguments and a model's answer in this process: what the journal holds can be written as UTF-8."""

from __future__ import annotations

import json
from pathlib import Path

from env_builder.runtime import Environment
from tests.attacks.report import Report
from tests.rooms import TASK, write_room

HALVES = ("\ud800", "\udfff", "ok \ud83d", "\ude00\ud83d")


def attack(folder: Path, share: float) -> Report:
    """Play each half character in an episode, and write the journal down."""
    environment, problems = Environment.load_room(write_room(folder / "hall")), []
    environment.live(lambda _: json.dumps({"content": "\ud83d", "is_error": False}))
    for half in HALVES:
        environment.reset(TASK)
        environment.say(half)
        environment.call("read_sign", {"at": half, half: [{"deep": half}]})
        environment.call(half, {})
        replayed = environment.replay(TASK, environment.journal)
        try:
            text = json.dumps(environment.journal, ensure_ascii=False).encode()
            environment.state_hash()
        except UnicodeEncodeError as error:
            problems.append(f"{half!a}: {error}")
        else:
            whole = [row.get("content") for row in replayed.journal] == [row.get("content") for row in json.loads(text)]
            problems += [] if len(json.loads(text)) == 3 and (whole or "model" in str(text)) else [f"{half!a}: replay differs"]
    return Report(3 * len(HALVES), tuple(problems))


def test_half_characters_never_reach_a_journal(tmp_path: Path) -> None:
    assert attack(tmp_path, 0.01).problems == ()


def test_two_halves_that_belong_together_are_one_character(tmp_path: Path) -> None:
    environment = Environment.load_room(write_room(tmp_path / "hall"))
    environment.reset(TASK)
    environment.say("\ud83d\ude00")
    assert environment.journal[0]["content"] == "😀"
