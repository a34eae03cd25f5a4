"""A notebook whose sessions all start from the same state: numbers, authors and texts follow from what the session did."""

from __future__ import annotations

import json
import random
from functools import cache
from typing import Any

from env_builder import behaviour, world
from env_builder.behaviour import carried
from env_builder.rooms import rows_of
from env_builder.runtime.canonical import canonical
from env_builder.runtime.episode import EpisodeState
from env_builder.runtime.numbering import next_name
from env_builder.runtime.precedents import MOST_CALLS, PastCall
from env_builder.runtime.texts import shape_of
from env_builder.runtime.world import View, World
from warehouse.records import Session, Tool, Turn, empty, frame

WORDS = ("amber", "birch", "cedar", "dune", "ember", "fjord", "grove", "heath", "islet", "juniper")


class Notebook:
    """The real backend of one session."""

    def __init__(self, choose: random.Random) -> None:
        self.author = choose.choice(WORDS)
        self.level = choose.randrange(10, 90)
        self.notes: dict[int, dict[str, Any]] = {}

    def answer(self, tool: str, arguments: dict[str, Any]) -> Any:
        """Return what the real tool answers."""
        if tool == "sign_in":
            self.author = arguments["name"]
            return {"name": self.author}
        if tool == "fill":
            self.level += arguments["amount"]
            return {"level": self.level}
        if tool == "gauge":
            return {"level": self.level, "unit": "litre"}
        if tool == "add":
            number = len(self.notes) + 7
            self.notes[number] = {"note": number, "text": arguments["text"], "due": f"{arguments['due']}:00", "by": self.author}
            return self.notes[number]
        return self.notes[arguments["note"]]


def calls_of(choose: random.Random, book: Notebook) -> list[tuple[str, dict[str, Any]]]:
    """Return the calls of a session: who, then notes, readings and refills in any order."""
    calls: list[tuple[str, dict[str, Any]]] = [("sign_in", {"name": choose.choice(WORDS)})]
    for n_notes in range(choose.randrange(1, 5)):
        due = f"20{choose.randrange(20, 30)}-0{choose.randrange(1, 9)}-1{choose.randrange(0, 9)} 1{choose.randrange(0, 9)}:30"
        calls.append(("add", {"text": " ".join(choose.sample(WORDS, 3)), "due": due}))
        amount = choose.randrange(1, 9)
        calls += choose.sample([("gauge", {}), ("fill", {"amount": amount}), ("show", {"note": 7 + n_notes})], 2)
    return calls


def logged(n_sessions: int = 80) -> world.InducedWorld:
    """Return the world rebuilt from these sessions."""
    choose = random.Random(3)
    books = [Notebook(choose) for _ in range(n_sessions)]
    return rebuilt([[(tool, arguments, book.answer(tool, arguments)) for tool, arguments in calls_of(choose, book)]
                    for book in books])


def rebuilt(played: list[list[tuple[str, dict[str, Any], Any]]]) -> world.InducedWorld:
    """Return the world rebuilt from the calls and answers of sessions."""
    turns: list[dict[str, Any]] = []
    sessions: list[dict[str, Any]] = []
    for session, calls in enumerate(played):
        sessions.append({
            "session_id": f"s{session:03}", "source": "main", "service": "main", "started_at": None, "ended_at": None,
            "day": None, "n_messages": 0, "n_calls": len(calls), "identity": None, "format": "test"})
        for position, (tool, arguments, answer) in enumerate(calls):
            turns.append({
                "turn_id": f"{session}-{position}", "session_id": f"s{session:03}", "service": "main", "position": position,
                "happened_at": None, "kind": "call", "role": None, "content": json.dumps(answer),
                "call_id": None, "tool": tool, "arguments": canonical(arguments), "arguments_raw": None, "is_error": None,
                "requestor": None, "answered_at": None, "result_id": None, "latency_ms": None, "model": None})
    return world.build(frame(Session, sessions), frame(Turn, turns), empty(Tool), {})


built = cache(logged)
"""Not at import: every worker imports this file."""


@cache
def rule_of(tool: str) -> dict[str, Any] | None:
    steps = built().services["main"].steps
    return carried._rule([step for step in steps if step.call.tool == tool], carried.pasts(steps))


def episode() -> EpisodeState:
    rows = rows_of("main", built().facts, built().recorded, behaviour.induce(built(), empty(Tool)))
    return EpisodeState(World(rows.facts, rows.recorded), {row["tool"]: row for row in rows.programs}, View(None, frozenset()))


def past(*calls: tuple[str, dict[str, Any], Any]) -> tuple[PastCall, ...]:
    return tuple(PastCall(tool, canonical(arguments), None if answer is None else json.dumps(answer), False)
                 for tool, arguments, answer in calls)


def answer(tool: str, arguments: dict[str, Any], *calls: tuple[str, dict[str, Any], Any]) -> Any:
    content = carried.carried_answer(rule_of(tool) or {}, arguments, past(*calls))
    return None if content is None else json.loads(content)


SIGNED = ("sign_in", {"name": "cedar"}, {"name": "cedar"})
NEW = {"text": "one thing more", "due": "2031-01-02 10:30"}


def test_a_number_counts_on_from_the_latest_call_and_begins_where_all_sessions_begin() -> None:
    first = {"note": 7, "text": "one thing more", "due": "2031-01-02 10:30:00", "by": "cedar"}
    assert answer("add", NEW, SIGNED) == first
    assert answer("add", NEW, SIGNED, ("add", NEW, first)) == {**first, "note": 8}
    assert answer("add", NEW, SIGNED, ("add", NEW, {**first, "note": 41})) == {**first, "note": 42}


def test_an_unknown_answer_in_between_leaves_the_value_unknown() -> None:
    assert answer("add", NEW, SIGNED, ("add", NEW, None)) is None
    assert answer("add", NEW, SIGNED, ("erase", {}, {"ok": True})) is None, "no session shows what this tool does in between"
    assert answer("add", NEW) is None, "who writes is unknown before the session said so"


def test_arguments_of_a_shape_that_never_worked_are_not_answered() -> None:
    assert answer("add", {**NEW, "due": "2031-01-02T10:30:00Z"}, SIGNED) is None


def test_a_level_follows_the_latest_reading_and_what_was_added() -> None:
    reading = ("gauge", {}, {"level": 40, "unit": "litre"})
    assert answer("fill", {"amount": 5}, SIGNED, reading) == {"level": 45}
    assert answer("gauge", {}, SIGNED, reading, ("fill", {"amount": 5}, {"level": 45})) == {"level": 45, "unit": "litre"}
    assert answer("gauge", {}, SIGNED) is None, "each session begins at a level of its own"


def test_what_a_call_made_is_shown_by_the_number_that_it_got() -> None:
    made = {"note": 9, "text": "one thing more", "due": "2031-01-02 10:30:00", "by": "cedar"}
    other = {**made, "note": 10, "text": "another"}
    assert answer("show", {"note": 9}, SIGNED, ("add", NEW, made)) == made
    assert answer("show", {"note": 9}, SIGNED, ("add", NEW, made), ("add", NEW, other)) in (made, None)
    assert answer("show", {"note": 12}, SIGNED, ("add", NEW, made)) is None


def test_an_episode_answers_from_its_own_answers_and_from_those_it_was_told() -> None:
    state = episode()
    state.learn("sign_in", {"name": "heath"}, '{"name": "heath"}')
    first = json.loads(state.call("add", NEW).content)
    assert (first["note"], first["by"]) == (7, "heath")
    state.learn("add", NEW, json.dumps({**first, "note": 20}))
    assert json.loads(state.call("add", {"text": "two", "due": "2031-01-03 10:30"}).content)["note"] == 21


def test_the_past_that_is_remembered_ends_and_nothing_is_said_beyond_it() -> None:
    reading = ("gauge", {}, {"level": 40, "unit": "litre"})
    whole = past(SIGNED, *[reading] * MOST_CALLS)[-MOST_CALLS:]
    assert carried.carried_answer(rule_of("add") or {}, NEW, whole) is None


def test_names_and_shapes() -> None:
    assert [next_name(name) for name in (7, "9", "T-099", "T-9", "a1b")] == [8, "10", "T-100", "T-10", "a2b"]
    assert next_name("none") is None
    assert next_name(True) is None
    assert shape_of("2031-01-02T10:30Z") == "0000-00-00a00:00a"


def test_a_source_that_too_few_sessions_have_without_a_rare_argument_explains_nothing() -> None:
    played: list[list[tuple[str, dict[str, Any], Any]]] = []
    for session in range(carried.MINIMUM_SESSIONS):
        notes = [f"n{session}{number}" for number in range(9 if session else 1)]
        played.append([call for number, note in enumerate(notes) for call in (
            ("add", {}, {"note": note}),
            ("show", {"note": note, **({} if session else {"rare": True})}, {"text": f"{session} {number * 37 % 11}"}))])
    steps = rebuilt(played).services["main"].steps
    assert carried._rule([step for step in steps if step.call.tool == "show"], carried.pasts(steps)) is None


def letters(repeated: bool) -> list[list[tuple[str, dict[str, Any], Any]]]:
    """Return sessions that send letters; the time is that of the call, or the one that belongs to the text."""
    choose = random.Random(9)
    own: dict[str, str] = {}
    played: list[list[tuple[str, dict[str, Any], Any]]] = []
    for day in range(40):
        session: list[tuple[str, dict[str, Any], Any]] = []
        to = choose.choice(WORDS)
        for number in range(choose.randrange(1, 5)):
            text = " ".join(choose.sample(WORDS[:3] if day % 2 else WORDS, 2))
            second = f"{choose.randrange(10, 60)}.{choose.randrange(10 ** 5, 10 ** 6)}"
            at = f"2031-0{1 + day // 10}-{10 + day % 10} 10:{10 + number}:{second}"
            at = at if repeated else own.setdefault(text, at)
            session.append(("send", {"to": to, "text": text}, {"number": number + 1, "to": to, "text": text, "sent_at": at}))
        played.append(session)
    return played


def test_without_a_clock_in_the_log_the_first_call_of_an_episode_tells_a_time_and_later_ones_do_not() -> None:
    built_world = rebuilt(letters(repeated=True))
    rows = rows_of("main", built_world.facts, built_world.recorded, behaviour.induce(built_world, empty(Tool)))
    programs = {row["tool"]: row for row in rows.programs}
    latest = max(json.loads(step.call.content)["sent_at"] for step in built_world.services["main"].steps)
    new = {"to": "cedar", "text": "dune amber birch"}

    def begun(seed: int | None) -> EpisodeState:
        return EpisodeState(World(rows.facts, rows.recorded), programs, View(None, frozenset()), seed)

    state = begun(None)
    first = json.loads(state.call("send", new).content)
    assert (first["number"], first["text"], first["sent_at"] > latest) == (1, "dune amber birch", True)
    later = state.call("send", new)
    assert later.tier == "unknown" and "`fresh`" in later.content, "nobody knows how long the first call took"
    drawing = begun(7)
    one, other = (json.loads(drawing.call("send", new).content)["sent_at"] for _ in range(2))
    assert one < other, "times that may be drawn go on"
    assert begun(None).call("send", new).content == json.dumps(first), "each episode begins alike"


def test_a_time_that_belongs_to_what_is_named_is_not_that_of_the_call() -> None:
    steps = rebuilt(letters(repeated=False)).services["main"].steps
    assert "stamps" not in (carried._rule(steps, carried.pasts(steps)) or {})
