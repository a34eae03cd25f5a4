"""Where sessions begin anew: what nearly all saw holds for everybody, what they differ in for each alone."""

from __future__ import annotations

from typing import Any

import pytest

from env_builder.runtime.episode import EpisodeState
from env_builder.runtime.world import View
from env_builder.world import documents, effects, history, replay
from env_builder.world.effects import Declared
from tests.env_builder.world.calls import call

NOBODY = View(None, frozenset())
NEWS = {"tool": "news", "effect": "read", "class": None, "relation": {}, "rules": [{"rule": "recorded"}]}


def room(n_one: int, n_other: int, view: View = NOBODY) -> EpisodeState:
    calls = [call("news", {"of": "today"}, "it rains", f"s{n}") for n in range(n_one)]
    calls += [call("news", {"of": "today"}, "it snows", f"t{n}") for n in range(n_other)]
    found = documents.find(calls)
    programs = replay.skeletons(calls, found, effects.find(calls, found, shared=False, declared={"news": Declared("read")}),
                                 shared=False)
    programs = {tool: {**program, "rules": [{"rule": "recorded"}]} for tool, program in programs.items()}
    told = history.facts("main", list(replay.steps(calls, found, programs)), {}, shared=False)
    return EpisodeState(history.base_of(told), programs or {"news": NEWS}, view)


def says(played: EpisodeState, **arguments: Any) -> str:
    return played.call("news", arguments or {"of": "today"}).tier


@pytest.mark.parametrize(("n_other", "tier"), [(0, "recorded"), (1, "recorded"), (3, "unknown"), (9, "unknown")])
def test_answers_what_nearly_all_sessions_saw(n_other: int, tier: str) -> None:
    assert says(room(9, n_other)) == tier


def test_a_task_has_its_own_session_s_answer() -> None:
    assert room(9, 9, View(None, frozenset(["t1"]))).call("news", {"of": "today"}).content == "it snows"


def test_one_session_that_was_told_otherwise_does_not_speak_for_the_next() -> None:
    played = room(9, 0)
    played.learn("news", {"of": "today"}, "it snows")
    assert played.call("news", {"of": "today"}).content == "it snows"
    assert played.next_episode(NOBODY, from_reset=True).call("news", {"of": "today"}).content == "it rains"


def test_what_other_sessions_were_told_counts_where_they_agree() -> None:
    played = room(0, 0)
    for content, tier in (("a", "unknown"), ("a", "recorded"), ("b", "recorded"), ("a", "unknown")):
        played = played.next_episode(NOBODY, from_reset=True)
        assert played.call("news", {"of": "tomorrow"}).tier == tier
        played.learn("news", {"of": "tomorrow"}, content)
