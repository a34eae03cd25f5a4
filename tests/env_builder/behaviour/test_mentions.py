"""Names told from other things that mention them."""

from __future__ import annotations

import json

import pytest

from env_builder.behaviour import finds
from env_builder.behaviour.evidence import Rule, ShownRecords
from env_builder.runtime.episode import EpisodeState, Program
from env_builder.runtime.world import View, World
from env_builder.world.replay import LoggedStep
from tests.env_builder.world.calls import call

N = 16
OWNERS = [f"kay_odell_{n}" if n % 2 else f"kim_marsh_{n}" for n in range(N)]


def boat(n: int, owner: str | None = None) -> LoggedStep:
    text = json.dumps({"owner": owner or OWNERS[n], "berth": {"port": f"P{n}", "metres": n % 3}})
    return LoggedStep(call("look", {"boat": f"B{n}"}, text, position=n), (), ("look", f"B{n}", text), False, False, None, ())


def who(n: int, owner: str | None = None) -> LoggedStep:
    given, family, _ = OWNERS[n].split("_")
    asked = {"given": given.title(), "family": family.upper(), "port": f"P{n}"}
    content = f'{{"ok":"yes","id":"{owner or OWNERS[n]}"}}' if owner != "" else "Error: nobody of that name"
    return LoggedStep(call("who", asked, content, position=100 + n), (), None, False, False, None, ())


def learnt(boats: list[LoggedStep], asked: list[LoggedStep]) -> list[Rule]:
    return finds.mention_rules(asked, ShownRecords(boats, {}), boats, [])


def test_tells_a_name_by_its_words_and_what_stands_beside_it() -> None:
    boats = [boat(n) for n in range(N)]
    (rule,) = learnt(boats, [who(n) for n in range(12)])
    assert rule["by"] == [[["owner"], "family", "words"], [["owner"], "given", "words"], [["berth", "port"], "port"]]
    facts = [{"class": "look", "key": step.shown[1], "value": step.shown[2], "session": None, "from": None, "to": None}
             for step in boats if step.shown]
    program: Program = {"tool": "who", "effect": "read", "class": None, "relation": {}, "rules": [rule]}
    looks: Program = {"tool": "look", "effect": "read", "class": "look", "relation": {}, "rules": [
        {"rule": "document", "class": "look", "argument": "boat", "before": "", "after": ""}]}
    room = EpisodeState(World(facts, []), {"who": program, "look": looks}, View(None, frozenset()))
    last = who(N - 1).call
    assert room.call("who", last.arguments) == (last.content, False, "derived")
    assert room.call("who", {**last.arguments, "port": "P3"}).content == who(3).call.content
    assert room.call("who", {**last.arguments, "port": "P2"}).tier == "unknown", "another one's port"
    assert room.call("who", {**last.arguments, "family": "odell marsh"}).tier == "unknown"
    room.learn("look", {"boat": "B99"}, json.dumps({"owner": "kay_odell_99", "berth": {"port": f"P{N - 1}"}}))
    assert room.call("who", last.arguments).tier == "unknown", "two of that name at one port"


@pytest.mark.parametrize("other", ["kim_marsh_777", ""])
def test_says_nothing_where_the_log_was_told_otherwise(other: str) -> None:
    boats = [boat(n) for n in range(N)]
    assert learnt(boats, [who(n) for n in range(N)])
    assert learnt(boats, [who(n, other if n % 4 == 0 else None) for n in range(N)]) == []


def test_counts_only_what_had_been_seen_before_it_was_asked() -> None:
    late = [step._replace(call=step.call._replace(position=500)) for step in map(boat, range(N))]
    assert learnt(late, [who(n) for n in range(N)]) == []
