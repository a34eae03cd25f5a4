"""Which records an answered write call may have moved, of a class that nobody looked at around its tool."""

from __future__ import annotations

import json
from typing import Any

import pytest

from env_builder.runtime.episode import EpisodeState
from env_builder.runtime.world import View, World

ORDER: dict[str, Any] = {"order": "#W1", "owner": "ann_1", "address1": "12 Elm Street", "zip1": "98101", "item": "8887766"}
PRODUCT = {"product": "P55", "item": "8887766"}


def reader(name: str) -> dict[str, Any]:
    return {"tool": name, "effect": "read", "class": name, "relation": {}, "rules": [
        {"rule": "document", "class": name, "argument": "id", "before": "", "after": ""}]}


SHOWS = {"rule": "shows", "class": "order", "argument": None, "field": "order", "before": "", "after": ""}


def episode(answer: dict[str, Any], *rules: dict[str, Any]) -> EpisodeState:
    known = (("order", "W1", ORDER), ("product", "P55", PRODUCT), ("person", "ann_1", {"name": "Ann"}))
    facts = [{"class": kind, "key": key, "value": json.dumps(value), "from": None, "to": None, "session": None}
             for kind, key, value in known]
    place = {"tool": "place", "effect": "write", "class": None, "relation": {"product": "keeps"},
             "rules": [{"rule": "recorded"}, *rules]}
    programs = {**{kind: reader(kind) for kind, *_ in known}, "place": place}
    state = EpisodeState(World(facts, []), programs, View(None, frozenset()))
    arguments = {"caller": answer["owner"], "product": "P55"}
    state.call("place", arguments)
    state.learn("place", arguments, json.dumps(answer))
    return state


@pytest.mark.parametrize(("answer", "is_known"), [
    ({"order": "#W2", "owner": "bob_2", "address1": "9 Oak Lane", "zip1": "10115", "item": "1112233"}, True),
    ({"order": "#W2", "owner": "bob_2", "address1": "9 Oak Lane", "zip1": "98101", "item": "1112233"}, True),
    ({"order": "#W2", "owner": "bob_2", "address1": "12 Elm Street", "zip1": "10115", "item": "1112233"}, True),
    ({"order": "#W2", "owner": "ann_1", "address1": "9 Oak Lane", "zip1": "10115", "item": "1112233"}, False)],
    ids=["fields", "a zip", "a street", "the owner"])
def test_only_what_names_something_links_two_records(answer: dict[str, Any], is_known: bool) -> None:
    shown = episode(answer).call("order", {"id": "W1"})
    assert (shown.tier != "unknown") is is_known


def test_a_call_that_tells_one_record_of_a_class_leaves_the_others() -> None:
    placed = {"order": "#W2", "owner": "ann_1", "address1": "9 Oak Lane", "zip1": "10115", "item": "1112233"}
    state = episode(placed, SHOWS)
    assert state.call("order", {"id": "W1"}).tier == "derived"
    assert json.loads(state.call("order", {"id": "#W2"}).content) == placed
