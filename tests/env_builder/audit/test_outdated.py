"""Tasks whose known solution is answered otherwise by the rules of today: found where a rule that they meet changed."""

from __future__ import annotations

from typing import Any

import pytest

from env_builder.audit.outdated import OutdatedCall, changed_tools, outdated
from env_builder.runtime import Environment
from env_builder.runtime.apps.records import RecordsApp
from env_builder.runtime.records import Limits, Task
from env_builder.runtime.world import World

CHANGED_AT = "2026-03-10T08:00:00.000000Z"
BEFORE, AFTER = "2026-03-09T08:00:00.000000Z", "2026-03-11T08:00:00.000000Z"
OPEN, GONE = '{"box": "b1", "state": "open", "fee": 4}', '{"box": "b2", "state": "gone", "fee": 4}'
Rule = dict[str, Any]


def writes(state: str, document: dict[str, list[Any]] | None = None, before: str = "") -> Rule:
    """Return the rule of a tool that puts boxes into a state. `document`: values that it met before."""
    when = None if document is None else {
        "names": [["box"]], "arguments": {}, "document": document, "lengths": {}, "within": [], "alike": [], "differs": []}
    return {"rule": "write", "class": "box", "argument": "box", "before": before, "after": "",
            "style": {"ensure_ascii": True, "separators": [", ", ": "]}, "also": [],
            "fields": {"box": ["before", "box"], "state": ["constant", state], "fee": ["before", "fee"]},
            "order": ["box", "state", "fee"], "when": when}


def refuses(words: str) -> Rule:
    return {"rule": "check", "class": "box", "argument": "box", "when": {"names": [["box"]], "arguments": {}}, "messages": [
        {"pieces": [words], "over": [], "past": [], "when": [["among", [["before", "state"]], [["gone"]]]]}]}


def environment(then: list[Rule], now: list[Rule], recorded: list[dict[str, Any]] | None = None) -> Environment:
    """Return the environment of a tool that answered by the rules `then` until the change."""
    program = {"tool": "close", "effect": "write", "class": "box", "relation": {}, "takes": ["box"],
               "rules": [{"rule": "recorded"}, *now],
               "versions": [{"until": CHANGED_AT, "rules": [{"rule": "recorded"}, *then]}]}
    facts = [{"class": "box", "key": key, "value": text, "from": None, "to": None, "session": None}
             for key, text in (("b1", OPEN), ("b2", GONE))]
    app = RecordsApp("records", {"close": program}, World(facts, recorded or []))
    return Environment({"content_digest": ""}, [], [], [app], {})


def task(starts_at: str | None) -> Task:
    return Task("t", ("s",), "train", Limits(9, 9.0), "f", "", starts_at, (), {"turns": []}, {})


def first(room: Environment, box: str = "b1", starts_at: str | None = BEFORE) -> OutdatedCall | None:
    steps = [{"say": "Let me see."}, {"tool": "other", "arguments": {}}, {"tool": "close", "arguments": {"box": box}}]
    return outdated(room, [task(starts_at)], {"t": steps}).get("t")


def test_a_task_of_before_whose_solution_meets_the_changed_rule_is_outdated() -> None:
    room = environment([writes("closed")], [writes("shut")])
    assert changed_tools(room) == {"close": CHANGED_AT}
    call = first(room)
    assert call is not None and (call.tool, call.since) == ("close", CHANGED_AT)
    assert "closed" in call.then and "shut" in call.now
    assert first(room, starts_at=AFTER) is None, "it has the rules of today"
    assert first(room, starts_at=None) is None, "no clock"
    assert outdated(room, [task(BEFORE)], {"t": [{"tool": "other", "arguments": {}}]}) == {}


def test_what_was_answered_from_the_record_is_put_to_the_rules_of_today() -> None:
    row = {"tool": "close", "arguments": '{"box":"b1"}', "content": OPEN.replace("open", "closed"), "is_error": False,
           "session": "s", "after": [], "n_write_calls": 0, "from": BEFORE, "to": None, "documents": [
               ["box", "b1", OPEN.replace("open", "closed")]]}
    assert first(environment([], [writes("shut")], [row])) is not None
    assert first(environment([], [writes("closed")], [row])) is None
    assert first(environment([writes("closed")], [], [row])) is None, "today's rules do not answer: no evidence"


@pytest.mark.parametrize(("then", "now", "box"), [
    ([refuses("Error: gone"), writes("closed")], [refuses("Error: it has left"), writes("closed")], "b2"),
    ([refuses("Error: gone"), writes("closed")], [writes("closed")], "b2"),
    ([writes("closed")], [refuses("Error: gone"), writes("closed")], "b2"),
    ([writes("closed")], [writes("shut", {"fee": [5]})], "b1"),
], ids=["other words", "refused no more", "refused now", "values that today's rule has not met"])
def test_refusals_count_and_values_that_were_not_met_do_not_hide_a_change(then: list[Rule], now: list[Rule], box: str) -> None:
    room = environment(then, now)
    assert first(room, box) is not None
    if then[-1]["fields"] == now[-1]["fields"]:
        assert first(room, "b1") is None, "its own answer did not change"


def test_other_words_around_a_record_or_another_order_say_the_same() -> None:
    other = writes("closed", before="Done: ") | {"order": ["fee", "state", "box"]}
    assert first(environment([writes("closed")], [other])) is None


def test_a_refusal_of_what_is_not_known_counts_where_the_same_conditions_have_other_words() -> None:
    row = {"tool": "close", "arguments": '{"box":"b9"}', "content": "Error: gone", "is_error": True, "session": "s",
           "after": [], "n_write_calls": 0, "from": BEFORE, "to": None}
    then = [refuses("Error: gone"), writes("closed")]
    assert first(environment(then, [refuses("Error: it has left")], [row]), "b9") is not None
    assert first(environment(then, [refuses("Error: gone")], [row]), "b9") is None
    assert first(environment(then, [writes("closed")], [row]), "b9") is None, "no refusal was met since"


def test_a_refusal_in_words_that_the_tool_uses_no_more_is_outdated_until_its_last_one() -> None:
    rules = [refuses("Error: gone"), writes("closed")]
    room, solution = environment(rules, rules), {"t": [{"tool": "close", "arguments": {"box": "b2"}}]}
    ended = {("close", "Error: gone"): CHANGED_AT}
    assert outdated(room, [task(BEFORE)], solution, {}, ended)["t"] == ("close", CHANGED_AT, "Error: gone", "")
    assert outdated(room, [task(AFTER)], solution, {}, ended) == {}
    assert outdated(room, [task(BEFORE)], solution, {}, {("close", "Error: shut"): CHANGED_AT}) == {}
