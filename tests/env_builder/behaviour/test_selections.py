"""Searches in a list that another question answers whole: found from examples, held to questions that nobody asked."""

from __future__ import annotations

import json
from collections.abc import Callable
from itertools import product
from typing import Any

import pytest

from env_builder.behaviour import selections
from env_builder.behaviour.evidence import Sources
from env_builder.runtime.episode import EpisodeState
from env_builder.runtime.lists import read
from env_builder.runtime.rules import RULES
from env_builder.runtime.world import View, World
from env_builder.world.replay import LoggedStep
from tests.env_builder.world.calls import call

PEOPLE = ("ana", "bo", "cy")
WORDS = ("Red boat", "blue kite", "red sail", "Old rope", "new boat hook", "kite string", "rope ladder", "blue paint", "tar")
NOTES = [{"note": f"N-{n}", "text": text, "by": PEOPLE[n % 3], "at": f"2031-03-{10 + 2 * n:02}T0{n}:30:00", "size": n * 7 % 5,
          "tags": [PEOPLE[(n + 1) % 3], "x"]} for n, text in enumerate(WORDS)]
SEARCHES: dict[str, tuple[list[dict[str, Any]], Callable[..., list[dict[str, Any]]]]] = {
    "text": ([{"query": word} for word in ("red", "kite", "boat", "Rope", "blue", "tar", "zebra", "OLD", "new")],
             lambda query: [note for note in NOTES if query.lower() in str(note["text"]).lower()]),
    "owner": ([{"by": one, "least": n} for one in PEOPLE for n in range(5)],
              lambda by, least: [note for note in NOTES if note["by"] == by and int(str(note["size"])) >= least]),
    "days": ([{"since": f"2031-03-{a}", "until": f"2031-03-{b}"} for a, b in product((10, 14, 17), (15, 19, 23, 26))],
             lambda since, until: [note for note in NOTES if since <= str(note["at"])[:10] <= until]),
    "latest": ([{"n": n} for n in range(1, 9)], lambda n: NOTES[::-1][:n]),
    "tagged": ([{"tag": one, "n": n} for one in PEOPLE for n in (1, 2, 3)],
               lambda tag, n: [note for note in NOTES if tag in note["tags"]][-n:]),
    "largest": ([{"by": one, "n": n} for one in PEOPLE for n in (1, 2, 3)], lambda by, n: sorted(
        (note for note in NOTES if note["by"] == by), key=lambda note: -int(str(note["size"])))[:n]),
}


def steps(tool: str, asked: list[dict[str, Any]], write: Callable[[Any], str] = json.dumps) -> list[LoggedStep]:
    found = SEARCHES[tool][1]
    calls = [call("all", {}, write(NOTES), f"a{n}") for n in range(3)]
    calls += [call(tool, one, write(found(**one)), f"s{n}") for n, one in enumerate(asked)]
    return [LoggedStep(each, (), None, False, False, None, ()) for each in calls]


def answers(rule: dict[str, Any], tool: str, arguments: dict[str, Any], write: Callable[[Any], str] = json.dumps) -> str | None:
    on_record = {"tool": "all", "arguments": "{}", "content": write(NOTES), "is_error": False, "session": None, "after": [],
                 "from": None, "to": None, "effects": []}
    room = EpisodeState(World([], [on_record]), {}, View(None, frozenset()))
    found = RULES[rule["rule"]](rule, tool)("", arguments, room)
    return None if found is None else found.content


@pytest.mark.parametrize("tool", SEARCHES)
def test_answers_what_nobody_asked(tool: str) -> None:
    questions, search = SEARCHES[tool]
    seen = [one for n, one in enumerate(questions) if n % 3 != 1]
    rule = selections.select_rule(tool, Sources(steps(tool, seen), reset=True))
    assert rule is not None
    said = [(answers(rule, tool, one), json.dumps(search(**one))) for one in questions]
    assert all(ours in (theirs, None) for ours, theirs in said), [one for one in said if one[0] != one[1]]
    assert sum(ours is not None for ours, _ in said) >= len(questions) - 1


def test_is_silent_where_the_list_is_not_whole() -> None:
    hidden = [*steps("owner", SEARCHES["owner"][0]), *steps("text", [])]
    cut = call("all", {}, json.dumps(NOTES[2:]))
    short = [step._replace(call=cut._replace(session_id=step.call.session_id)) if step.call.tool == "all" else step
             for step in hidden]
    assert selections.select_rule("owner", Sources(hidden, reset=True)) is not None
    assert selections.select_rule("owner", Sources(short, reset=True)) is None


def test_refuses_what_is_not_in_the_list() -> None:
    wanted = [("N-1", "ok"), ("N-2", "ok"), ("N-3", "ok"), ("M-7", "no note M-7"), ("n1", "no note n1"), ("K", "no note K")]
    seen = steps("text", []) + [
        LoggedStep(call("drop", {"note": note}, content, f"d{note}"), (), None, False, False, None, ())
        for note, content in wanted]
    (rule,) = selections.unlisted_rules("drop", Sources(seen, reset=True), acts=False)
    assert (rule["argument"], rule["path"], rule["source"]) == ("note", ["note"], ["all", {}])
    assert answers(rule, "drop", {"note": "N-99"}) == "no note N-99"
    assert answers(rule, "drop", {"note": "N-5"}) is None


@pytest.mark.parametrize("content", [
    "- a: 1\n  b: 'it''s'\n- a: 2\n  b: plain text that is\n    folded", '{"n": 2, "of": ["a", "b"]}',
    "[{'a': 1.5}, {'a': None}]", "- general\n- '12'", '[\n  {\n    "a": [\n      1\n    ]\n  }\n]'])
def test_reads_lists_in_every_notation(content: str) -> None:
    found = read(content)
    assert found is not None and len(found.values) in (1, 2)


@pytest.mark.parametrize("content", ['{"a": 1}', '[1,  2]', "- a: 1\ntail", "text", '{"n": 3, "of": ["a", "b"]}'])
def test_reads_no_list_where_it_would_be_written_otherwise(content: str) -> None:
    found = read(content)
    assert found is None or content.startswith("- ")
