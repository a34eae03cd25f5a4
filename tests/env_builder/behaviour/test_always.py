"""Questions that are answered alike whatever came before, and after which acts nobody can say so."""

from __future__ import annotations

from env_builder.behaviour import always
from env_builder.runtime.episode import EpisodeState
from env_builder.runtime.world import View, World
from env_builder.world.replay import LoggedStep
from tests.env_builder.world.calls import call


def answered_always(after: str | None, n: int = 4) -> dict[str, dict[str, list[str]]]:
    """Return what is sure of a tool that other sessions asked alike, where something came before it."""
    asked = [call("book", {"room": "R-1"}, "full", f"s{place}") for place in range(40 + n)]
    return always.sure_by_tool([LoggedStep(each, ((after, "{}"),) if after and place >= 40 else (), None, True, True, None, ())
                                for place, each in enumerate(asked)])


def test_what_was_always_answered_holds_after_acts_that_were_seen_to_leave_it() -> None:
    assert answered_always("tidy")["book"]["passes"] == ["tidy"]
    assert answered_always("tidy", 1)["book"]["passes"] == [], "seen too seldom"
    rows = [{"tool": tool, "arguments": '{"room":"R-1"}', "content": "full", "is_error": True, "session": session, "from": None,
             "to": None, "after": [], "effects": []} for tool, session in (("book", "s1"), ("free", None), ("tidy", None))]
    rows[1:] = [{**row, "is_error": False} for row in rows[1:]]
    acts = {"effect": "write", "class": None, "relation": {}, "rules": [{"rule": "recorded"}]}
    book = {**acts, "tool": "book", "rules": [{"rule": "always", "kinds": ["first", "later"], "passes": ["tidy"]}]}
    for before, tier in (("tidy", "derived"), ("free", "unknown")):
        programs = {"book": book, **{tool: {**acts, "tool": tool} for tool in ("free", "tidy")}}
        played = EpisodeState(World([], rows), programs, View(None, frozenset()))
        played.call(before, {"room": "R-1"})
        assert played.call("book", {"room": "R-1"}).tier == tier
