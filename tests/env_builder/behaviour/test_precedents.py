"""A pump whose sessions each begin in a state of their own: what a session was told and did tells what comes next."""

from __future__ import annotations

import json
import random
from functools import cache
from typing import Any

from env_builder import behaviour, world
from env_builder.behaviour import precedents
from env_builder.rooms import rows_of
from env_builder.runtime.canonical import canonical
from env_builder.runtime.episode import EpisodeState
from env_builder.runtime.precedents import PastCall, situations
from env_builder.runtime.world import View, World
from env_builder.world import documents, effects, replay
from env_builder.world.replay import LoggedStep
from tests.env_builder.world.calls import call
from warehouse.records import Session, Tool, Turn, empty, frame

SPEEDS = ("slow", "fast", "off")


class Pump:
    """The real backend of one session."""

    def __init__(self, choose: random.Random) -> None:
        self.speed, self.serial = choose.choice(SPEEDS), str(choose.randrange(100, 999))

    def answer(self, tool: str) -> str:
        """Return what the real tool says."""
        if tool == "turn":
            self.speed = SPEEDS[(SPEEDS.index(self.speed) + 1) % len(SPEEDS)]
        texts = {"gauge": f"The pump runs {self.speed}.", "turn": f"Turned to {self.speed}!", "plate": f"No. {self.serial}"}
        return texts[tool]


def logged(n_sessions: int = 60) -> world.InducedWorld:
    """Return the world rebuilt from sessions of two to eight calls."""
    choose = random.Random(7)
    turns: list[dict[str, Any]] = []
    sessions: list[dict[str, Any]] = []
    for session in range(n_sessions):
        pump, n_calls = Pump(choose), choose.randrange(2, 9)
        sessions.append({
            "session_id": f"s{session:03}", "source": "main", "service": "main", "started_at": None, "ended_at": None,
            "day": None, "n_messages": 0, "n_calls": n_calls, "identity": None, "format": "test"})
        for position in range(n_calls):
            tool = choose.choice(("gauge", "turn", "plate"))
            turns.append({
                "turn_id": f"{session}-{position}", "session_id": f"s{session:03}", "service": "main", "position": position,
                "happened_at": None, "kind": "call", "role": None, "content": pump.answer(tool), "call_id": None, "tool": tool,
                "arguments": canonical({}), "arguments_raw": None, "is_error": None, "requestor": None, "answered_at": None,
                "result_id": None, "latency_ms": None, "model": None})
    return world.build(frame(Session, sessions), frame(Turn, turns), empty(Tool), {})


built = cache(logged)
"""Not at import: every worker imports this file."""


@cache
def rules() -> dict[str, precedents.Rule]:
    return precedents.rules_by_tool(built().services["main"].steps)


def episode() -> EpisodeState:
    rows = rows_of("main", built().facts, built().recorded, behaviour.induce(built(), empty(Tool)))
    return EpisodeState(World(rows.facts, rows.recorded), {row["tool"]: row for row in rows.programs}, View(None, frozenset()))


def test_sessions_foretell_what_depends_on_what_was_told() -> None:
    assert {"gauge", "turn"} <= rules().keys()
    assert "plate" not in rules(), "each session has another number: nothing that was told foretells it"
    assert rules()["gauge"]["keeps"] == ["gauge", "plate"]


def test_a_rule_holds_only_situations_in_which_all_were_answered_alike() -> None:
    told = PastCall("gauge", "{}", "The pump runs off.", False)
    for since, speed in (((), "off"), (("turn",), "slow"), (("turn", "turn"), "fast"), (("turn", "plate"), "slow")):
        past = (told, *(PastCall(tool, "{}", None, False) for tool in since))
        rows = rules()["gauge"]["situations"]
        found = {rows[name] for name in situations("gauge", "{}", past, frozenset(rules()["gauge"]["keeps"])) if name in rows}
        assert [rules()["gauge"]["answers"][place] for place in found] in ([[f"The pump runs {speed}.", False]], [])


def test_an_episode_answers_by_what_it_was_told_and_nothing_else() -> None:
    for speed, other in (("off", "slow"), ("slow", "fast")):
        state = episode()
        assert state.call("turn", {}).tier == "unknown", "nobody knows in which state the session begins"
        state = episode()
        state.call("gauge", {})
        state.learn("gauge", {}, f"The pump runs {speed}.")
        assert state.call("turn", {})[:2] == (f"Turned to {other}!", False)
        assert state.call("gauge", {}).content == f"The pump runs {other}."


def test_the_next_episode_knows_nothing_of_it() -> None:
    state = episode()
    state.call("gauge", {})
    state.learn("gauge", {}, "The pump runs off.")
    following = state.next_episode(View(None, frozenset()), from_reset=True)
    assert following.past() == ()
    assert following.call("turn", {}).tier == "unknown"


def test_a_snapshot_takes_what_was_told_back() -> None:
    state = episode()
    before = state.snapshot()
    state.learn("gauge", {}, "The pump runs off.")
    told = state.snapshot()
    state.restore(before)
    assert state.past() == ()
    state.restore(told)
    assert state.call("turn", {}).content == "Turned to slow!"


def test_the_rule_is_data() -> None:
    assert json.loads(json.dumps(rules())) == rules()
    assert precedents.rules_by_tool(built().services["main"].steps) == rules()


def berths(moored: str, n_sessions: int = 4) -> list[LoggedStep]:
    """List the free berths, moor a ship at one, and list them again, in each session."""
    calls = [each for n in range(n_sessions) for each in (
        call("free", {"quay": "east"}, '{"berths": ["B-11", "B-12"]}', f"s{n}", 0),
        call("moor", {"ship": f"S-9{n}", "at": moored}, canonical({"ship": f"S-9{n}", "tug": n}), f"s{n}", 1),
        call("free", {"quay": "east"}, '{"berths": ["B-11", "B-12"]}', f"s{n}", 2))]
    calls += [call("free", {"quay": "west"}, '{"berths": ["B-21"]}', "t", 0),
              call("moor", {"ship": "S-99", "at": "B-21"}, canonical({"ship": "S-99", "tug": 1}), "t", 1)]
    shown = documents.find(calls)
    programs = replay.skeletons(calls, shown, effects.find(calls, shown, False, {}), False)
    programs["moor"]["effect"] = "write"
    return list(replay.steps(calls, shown, programs))


def test_an_act_leaves_a_list_alone_only_if_acts_that_name_its_rows_did() -> None:
    assert "moor" not in precedents.tools_that_keep(berths("B-77"))["free"], "nobody knows what becomes of a berth in the list"
    assert "moor" in precedents.tools_that_keep(berths("B-12"))["free"]
