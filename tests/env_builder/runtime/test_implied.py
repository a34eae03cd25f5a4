"""What a thing tells of those it was made from."""

from __future__ import annotations

import pytest

from env_builder.runtime.canonical import canonical
from env_builder.runtime.episode import EpisodeState, Program
from env_builder.runtime.world import View, World

MADE, SHOWN = '{"case":"C1"}', '{"case":"C1","from":"kim@example.org"}'
AT_ONCE = {"session": None, "from": None, "to": None, "event": "e"}


def rooms(told: bool) -> EpisodeState:
    """Return a room in which a case was opened and looked at: on record, or told."""
    of_person = ["row", "person[]", [["key", ["argument", "caller"]]], "document", "mail"]
    makes = {"rule": "makes", "class": "case", "key": ["before", "case"], "order": ["case", "from"], "style": {},
             "fields": {"case": ["before", "case"], "from": of_person}}
    finds = {"rule": "find", "class": "person", "by": [[["mail"], "mail"]], "stable": True, "pieces": [["before", "key"]],
             "form": "plain", "numbers": ["as_given"]}
    shows = {"rule": "document", "class": "case", "argument": "case", "before": "", "after": ""}
    programs: dict[str, Program] = {
        tool: {"tool": tool, "effect": effect, "class": kind, "relation": {}, "rules": [rule]}
        for tool, effect, kind, rule in (
            ("open", "write", None, makes), ("see", "read", "case", shows), ("who", "read", None, finds))}
    if not told:
        opened = {**AT_ONCE, "tool": "open", "arguments": canonical({"caller": "p7"}), "content": MADE, "is_error": False,
                  "after": [], "effects": []}
        case = {**AT_ONCE, "class": "case", "key": "C1", "value": SHOWN}
        return EpisodeState(World([case], [opened]), programs, View(None, frozenset()))
    room = EpisodeState(World([], []), programs, View(None, frozenset()))
    room.learn("open", {"caller": "p7"}, MADE)
    room.learn("see", {"case": "C1"}, SHOWN)
    return room


@pytest.mark.parametrize("told", [False, True])
def test_who_opened_a_case_is_the_one_whose_mail_it_shows(told: bool) -> None:
    room = rooms(told)
    assert room.call("who", {"mail": "kim@example.org"}) == ("p7", False, "derived")
    assert room.call("who", {"mail": "kit@example.org"}).tier == "unknown"
    assert room.call("see", {"case": "p7"}).tier == "unknown"


def test_another_who_opened_from_the_same_address_leaves_it_open() -> None:
    room = rooms(told=True)
    twin = room.fork()
    twin.learn("open", {"caller": "p8"}, MADE.replace("C1", "C2"))
    twin.learn("see", {"case": "C2"}, SHOWN.replace("C1", "C2"))
    assert twin.call("who", {"mail": "kim@example.org"}).tier == "unknown"
    assert room.call("who", {"mail": "kim@example.org"}).content == "p7"
