"""Lists after write calls: never wrong under any conventions of paging, silent where rows or edits are not known."""

from __future__ import annotations

import json
from random import Random
from typing import Any, NamedTuple

import pytest

from env_builder.behaviour.edited import ListCase, edited_rule
from env_builder.runtime.edited import Edited, answered_after

KINDS = ("red", "blue")
Row = dict[str, Any]


class Convention(NamedTuple):
    """How a service shows its list."""

    place: str = "page"
    first: int = 1
    by: str = "page"
    size: int = 4
    limit: bool = False
    field: str | None = "boats"
    counts: str | None = "total"
    descending: bool = False
    is_odd: bool = False
    """Does a booking leave boats with odd numbers in the list?"""


class Harbour:
    """A real service: boats that are free, booked by one call and returned by another."""

    def __init__(self, convention: Convention) -> None:
        self.convention = convention
        self.boats: dict[int, Row] = {n: {"boat": n, "kind": KINDS[n % 2], "berth": f"B{n * 7 % 23}"} for n in range(40, 60)}
        self.booked: dict[int, int] = {500 + n: n for n in (43, 46, 51)}

    def free(self, arguments: Row) -> str:
        how, taken = self.convention, set(self.booked.values())
        rows = [{"boat": n, "berth": boat["berth"]} for n, boat in sorted(self.boats.items(), reverse=how.descending)
                if boat["kind"] == arguments["kind"] and not (n in taken and not (how.is_odd and n % 2))]
        size = arguments.get("limit", how.size) if how.limit else how.size
        at = arguments.get(how.place, how.first) - how.first
        start = at * size if how.by == "page" else at
        counted = {None: {}, "total": {"total": len(rows)}, "pages": {"pages": -(-len(rows) // size)},
                   "more": {"more": start + size < len(rows)}}[how.counts]
        shown = rows[start:start + size]
        return json.dumps(shown if how.field is None else {**counted, how.field: shown})

    def write(self, tool: str, arguments: Row) -> Edited:
        if tool == "book":
            number = 600 + len(self.booked)
            self.booked[number] = arguments["boat"]
            return Edited(tool, {"argument": arguments, "answer": {"booking": number}, "before": None})
        boat = self.booked.pop(arguments["booking"])
        before = {"booking": arguments["booking"], **self.boats[boat]}
        return Edited(tool, {"argument": arguments, "answer": {"ok": True}, "before": before})

    def question(self, random: Random) -> Row:
        arguments: Row = {"kind": random.choice(KINDS)}
        if random.random() < 0.5:
            at = random.randrange(3)
            arguments[self.convention.place] = self.convention.first + at * (
                1 if self.convention.by == "page" else self.convention.size)
        return arguments | ({"limit": random.choice((2, 3, 5))} if self.convention.limit and random.random() < 0.5 else {})


def session(convention: Convention, random: Random, answers: list[tuple[Row, str]]) -> list[ListCase]:
    """Return what a session is answered after each of up to two write calls."""
    harbour, writes, cases = Harbour(convention), list[Edited](), list[ListCase]()
    for _ in range(random.randint(1, 2)):
        if random.random() < 0.6:
            free = sorted(set(harbour.boats) - set(harbour.booked.values()))
            writes.append(harbour.write("book", {"boat": random.choice(free)}))
        else:
            writes.append(harbour.write("return", {"booking": random.choice(sorted(harbour.booked))}))
        question = harbour.question(random)
        cases.append(ListCase(question, harbour.free(question), answers, list(writes)))
    return cases


def begun(convention: Convention, random: Random, n: int) -> list[tuple[Row, str]]:
    harbour = Harbour(convention)
    questions = [harbour.question(random) for _ in range(n)]
    distinct = {json.dumps(question, sort_keys=True): question for question in questions}
    return [(question, harbour.free(question)) for question in distinct.values()]


CONVENTIONS = {
    "pages": Convention(), "pages from zero": Convention(first=0, counts="pages"), "offsets": Convention("offset", 0, "row"),
    "limits": Convention("offset", 0, "row", limit=True, counts="more"), "a bare list": Convention(field=None, counts=None),
    "falling": Convention(descending=True, counts="more")}


@pytest.mark.parametrize("name", CONVENTIONS)
@pytest.mark.parametrize("seed", range(3))
def test_lists_after_write_calls_are_exact_or_unknown(name: str, seed: int) -> None:
    convention, random = CONVENTIONS[name], Random(seed)
    answers = begun(convention, random, 40)
    cases = [case for _ in range(40) for case in session(convention, random, answers)]
    rule = edited_rule(cases, answers, {"return": ["booking", "booking"]}, True)
    assert rule is not None and set(rule["edits"]) == {"book", "return"}
    rule = json.loads(json.dumps(rule))
    asked = [case for _ in range(60) for case in session(convention, random, answers)]
    replies = [(answered_after(rule, case.arguments, case.answers, case.writes), case.content) for case in asked]
    assert all(text in (None, content) for text, content in replies)
    assert sum(text is not None for text, _ in replies) > 0.6 * len(replies)


def test_a_list_that_some_bookings_leave_alone_has_no_rule() -> None:
    convention, random = Convention(is_odd=True), Random(1)
    answers = begun(convention, random, 40)
    cases = [case for _ in range(40) for case in session(convention, random, answers)]
    rule = edited_rule(cases, answers, {"return": ["booking", "booking"]}, True)
    assert rule is None or "book" not in rule["edits"]


def test_lists_that_no_session_shows_before_a_write_call_have_no_rule() -> None:
    convention, random = Convention(counts="total"), Random(1)
    cases = [case for _ in range(4) for case in session(convention, random, begun(convention, random, 40))]
    assert edited_rule(cases, [], {}, True) is None


def test_a_page_whose_last_row_no_answer_shows_is_unknown() -> None:
    convention = Convention(counts=None)
    harbour = Harbour(convention)
    answers = [({"kind": kind}, harbour.free({"kind": kind})) for kind in KINDS]
    random = Random(5)
    cases = [case for _ in range(40) for case in session(convention, random, begun(convention, random, 40))]
    rule = edited_rule(cases, cases[0].answers, {}, True)
    assert rule is not None
    rule["begun"] = []
    write = harbour.write("book", {"boat": 40})
    assert answered_after(rule, {"kind": "red"}, answers, [write]) is None
    assert answered_after(rule, {"kind": "blue"}, answers, [write]) is not None, "a boat of another kind"
    unknown = write._replace(tool="sink")
    assert answered_after(rule, {"kind": "blue"}, answers, [unknown]) is None, "no session shows what it does to the list"


def test_a_call_that_may_have_been_refused_counts_either_way() -> None:
    convention, random = Convention(), Random(2)
    answers = begun(convention, random, 40)
    cases = [case for _ in range(40) for case in session(convention, random, answers)]
    rule = edited_rule(cases, answers, {"return": ["booking", "booking"]}, True)
    assert rule is not None
    harbour = Harbour(convention)
    write = harbour.write("book", {"boat": 42})
    maybe = Edited("book", {"argument": {"boat": 42}, "answer": None, "before": None}, False)
    asked = {"kind": "red"}
    assert answered_after(rule, asked, answers, [write, maybe]) == harbour.free(asked), "it is gone either way"
    assert answered_after(rule, asked, answers, [maybe]) is None
