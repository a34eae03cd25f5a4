"""A small made-up service, a pottery's desk, whose 20 rules can each become another one on a day; its logs, and its true
answers.

In: how many sessions a day, which rules change, a seed. Out: lines of logs by the day on which they arrive, the engine as it
stands at the end of each day, and probes: calls whose answer depends on one rule. Whoever builds sees the lines alone. The
rules are of kinds that programs hold (fields that a write sets, by an argument or always; wordings of refusals; a factor; a
mark before a text). Not among them is what a full build of such logs does not learn before any change either: sums onto a
field (credit, months, points), fees by a number, limits of arguments, refusals by a sum. So the rules were chosen with sight of
what a build learnt: `learnt_before` is no measure of what can be learnt.
"""

from __future__ import annotations

import copy
import json
import pickle
import random
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from typing import Any, NamedTuple

RULES: dict[str, tuple[Any, Any]] = {
    "glaze_factor": (40, 45), "silver_months": (6, 8), "gold_months": (12, 18), "block_discount": (0, 1),
    "rush_cone": ("07", "08"),
    "lit_status": ("burning", "heating"), "lit_fee": (4, 5), "out_status": ("fetched", "gone"),
    "early_text": ("Error: the piece is not burnt yet", "Error: the kiln is still closed"),
    "void_status": ("void", "dropped"), "void_fee": (0, 3), "glazed_status": ("glazed", "coated"), "glazed_cone": ("04", "05"),
    "rush_fee": (12, 15), "rush_text": ("Error: only before the kiln", "Error: the kiln is on"),
    "gold_discount": (10, 15), "silver_discount": (5, 7), "basic_months": (1, 2), "block_level": ("blocked", "paused"),
    "note_mark": ("", "desk: ")}
"""Rule -> what it says before the change and after it."""
DAY_OF_CHANGE = 10
FIRST_INSTANT = int(datetime(2026, 3, 1, 8, tzinfo=UTC).timestamp())
DAY_S = 86_400
GOALS_A_SESSION = 3
KINDS = ("weigh", "add", "light", "light", "fetch", "fetch_early", "void", "glaze", "rush", "rush_late", "extend", "top_up",
         "level", "level", "level", "block", "note", "quote", "add", "buy")
FIRST = ("Ada", "Bo", "Cyd", "Dov", "Eli", "Fay", "Gus", "Hal", "Ivy", "Jo")
LAST = ("Ash", "Birch", "Cedar", "Elm", "Fir", "Hazel", "Larch", "Oak")
N_PIECES = 400
"""Pieces that stand there when the logs begin."""
N_PER_RULE = 6
"""Probes of each rule."""
LATE_EVERY = 6
"""Of the sessions of the day of change, each so-manieth has its last exchanges in the next day's file."""


class Step(NamedTuple):
    """A call and its true answer."""

    tool: str
    arguments: dict[str, Any]
    answer: str


class Probe(NamedTuple):
    """Calls of which the last is looked at, and the field of its answer that the rule decides (None: all of it)."""

    rule: str
    steps: list[Step]
    field: str | None


class Day(NamedTuple):
    """What arrives on a day."""

    number: int
    lines: list[str]
    late: list[str]
    """Lines of sessions of the day before that arrive only now, and are to be read with this day's."""
    engine: Engine
    """The service at the end of the day."""
    late_pieces: list[str]
    """Tickets whose last change, on the day of change, stands in lines that arrive the day after."""
    begun: list[tuple[int, bytes]]
    """When each session began, in seconds, and the service as it stood then, pickled."""

    @property
    def ends_at(self) -> str:
        """ISO instant by which all of the day has happened."""
        return datetime.fromtimestamp(FIRST_INSTANT + self.number * DAY_S - 3600, UTC).isoformat().replace("+00:00", "Z")


class Engine:
    """The service: potters and pieces, and tools by name. Answers are JSON or a sentence."""

    def __init__(self, n_potters: int = 80) -> None:
        self.changed: frozenset[str] = frozenset()
        names = [f"{first} {last}" for last in LAST for first in FIRST][:n_potters]
        self.potters: dict[str, dict[str, Any]] = {
            f"P{1001 + at}": {"potter_no": f"P{1001 + at}", "name": name, "level": "basic", "discount": 0,
                              "credit": 60 + at * 7 % 40, "months": 3 + at % 9, "points": at % 5}
            for at, name in enumerate(names)}
        self.pieces: dict[str, dict[str, Any]] = {
            f"T{1001 + at}": {"ticket": f"T{1001 + at}", "potter_no": f"P{1001 + at % n_potters}", "shelves": 1 + at % 4,
                              "cone": "06", "status": "queued", "fee": 5 * (1 + at % 4), "note": ""} for at in range(N_PIECES)}

    def rule(self, name: str) -> Any:
        """Return what the rule says now."""
        return RULES[name][name in self.changed]

    def call(self, tool: str, arguments: dict[str, Any]) -> Step:
        """Answer a call."""
        answer = getattr(self, f"_{tool}")(**arguments)
        return Step(tool, arguments, answer if isinstance(answer, str) else json.dumps(answer))

    def _kiln_quote(self, shelves: int) -> Any:
        return {"quote": shelves * 7}

    def _glaze_grams(self, kilos: int) -> Any:
        return {"grams": kilos * self.rule("glaze_factor")}

    def _potter(self, potter_no: str) -> Any:
        return self.potters.get(potter_no, "Error: unknown potter number")

    def _piece(self, ticket: str) -> Any:
        return self.pieces.get(ticket, "Error: unknown ticket")

    def _piece_add(self, ticket: str, potter_no: str, shelves: int, cone: str) -> Any:
        self.potters[potter_no]["points"] += 2
        self.pieces[ticket] = {
            "ticket": ticket, "potter_no": potter_no, "shelves": shelves, "cone": cone,
            "status": "queued", "fee": shelves * 5, "note": ""}
        return self.pieces[ticket]

    def _piece_light(self, ticket: str) -> Any:
        return self._set(ticket, status=self.rule("lit_status"), fee=self.rule("lit_fee"))

    def _piece_fetch(self, ticket: str) -> Any:
        if self.pieces[ticket]["status"] not in RULES["lit_status"]:
            return self.rule("early_text")
        return self._set(ticket, status=self.rule("out_status"))

    def _piece_void(self, ticket: str) -> Any:
        return self._set(ticket, status=self.rule("void_status"), fee=self.rule("void_fee"))

    def _piece_glaze(self, ticket: str) -> Any:
        return self._set(ticket, status=self.rule("glazed_status"), cone=self.rule("glazed_cone"))

    def _piece_rush(self, ticket: str) -> Any:
        if self.pieces[ticket]["status"] != "queued":
            return self.rule("rush_text")
        return self._set(ticket, fee=self.rule("rush_fee"), cone=self.rule("rush_cone"))

    def _potter_block(self, potter_no: str) -> Any:
        self.potters[potter_no].update(level=self.rule("block_level"), discount=self.rule("block_discount"))
        return self.potters[potter_no]

    def _piece_note(self, ticket: str, text: str) -> Any:
        return self._set(ticket, note=self.rule("note_mark") + text)

    def _set(self, ticket: str, **fields: Any) -> Any:
        self.pieces[ticket].update(fields)
        return self.pieces[ticket]

    def _potter_extend(self, potter_no: str, months: int) -> Any:
        self.potters[potter_no]["months"] += months
        return self.potters[potter_no]

    def _potter_pay_in(self, potter_no: str, amount: int) -> Any:
        self.potters[potter_no]["credit"] += amount
        return self.potters[potter_no]

    def _clay_buy(self, potter_no: str, bags: int) -> Any:
        if bags * 8 > self.potters[potter_no]["credit"]:
            return "Error: credit too low"
        self.potters[potter_no]["credit"] -= bags * 8
        return self.potters[potter_no]

    def _potter_level(self, potter_no: str, level: str) -> Any:
        discounts = {"basic": 0, "silver": self.rule("silver_discount"), "gold": self.rule("gold_discount")}
        months = {"basic": self.rule("basic_months"), "silver": self.rule("silver_months"), "gold": self.rule("gold_months")}
        self.potters[potter_no].update(level=level, discount=discounts[level], months=months[level])
        return self.potters[potter_no]


class Desk:
    """Who acts on the service: makes the calls of a goal, with arguments drawn at random."""

    def __init__(self, engine: Engine, draw: random.Random, first_ticket: int, kept: Iterable[str] = ()) -> None:
        self._engine, self._draw, self._next = engine, draw, first_ticket
        self.used = set(kept)
        """Things that no further call may name: those that its calls named, and others that must stay as they are."""

    def goal(self, kind: str) -> tuple[str, list[tuple[str, dict[str, Any]]]]:
        """Return (what the user wants, the calls for it)."""
        draw = self._draw
        potter = self._one(self._engine.potters)
        if kind == "add":
            self._next += 1
            ticket, shelves = f"T{self._next}", draw.randint(1, 4)
            self.used.add(ticket)
            more = {"shelves": shelves, "cone": draw.choice(("04", "07", "08"))}
            return (f"put my piece {ticket} on {shelves} shelves, I am {potter}", [
                ("potter", {"potter_no": potter}), ("piece_add", {"ticket": ticket, "potter_no": potter, **more}),
                ("potter", {"potter_no": potter})])
        if kind in ("light", "fetch", "fetch_early", "void", "note", "glaze", "rush", "rush_late"):
            return self._of_piece(kind)
        if kind in ("extend", "top_up", "buy", "level", "block"):
            return self._of_potter(kind, potter)
        number = draw.randint(2, 40)
        return {
            "quote": (f"what would {number} shelves cost", [("kiln_quote", {"shelves": number})]),
            "weigh": (f"how many grams of glaze for {number} kilos", [("glaze_grams", {"kilos": number})]),
        }[kind]

    def _of_piece(self, kind: str) -> tuple[str, list[tuple[str, dict[str, Any]]]]:
        lit = RULES["lit_status"]
        states = {"fetch": lit, "note": ("queued", *lit), "rush_late": lit}.get(kind, ("queued",))
        there = {key: row for key, row in self._engine.pieces.items() if row["status"] in states and key not in self.used}
        if not there:
            return self.goal("light" if kind in ("fetch", "rush_late") else "add")
        ticket = self._one(there)
        words = {"light": "start the kiln for", "fetch": "I come for", "fetch_early": "may I have",
                 "glaze": "glaze", "rush": "hurry with",
                 "rush_late": "hurry with", "void": "forget about", "note": "write a note on"}[kind]
        tool = {"fetch_early": "piece_fetch", "rush_late": "piece_rush"}.get(kind, f"piece_{kind}")
        texts = ("mind the handle", "blue glaze", "gift", "two parts", "thin rim")
        more = {"text": self._draw.choice(texts)} if kind == "note" else {}
        own = {"ticket": ticket}
        return f"{words} {ticket}", [("piece", own), (tool, {**own, **more}), ("piece", own)]

    def _of_potter(self, kind: str, potter: str) -> tuple[str, list[tuple[str, dict[str, Any]]]]:
        draw = self._draw
        credit = self._engine.potters[potter]["credit"]
        tool, more, words = {
            "extend": ("potter_extend", {"months": draw.randint(1, 12)}, "extend my time"),
            "top_up": ("potter_pay_in", {"amount": draw.randint(20, 60)}, "pay in some money"),
            "buy": ("clay_buy", {"bags": max(1, min(draw.randint(1, 5), credit // 9))}, "buy clay"),
            "level": ("potter_level", {"level": draw.choice(("basic", "silver", "gold"))}, "another level"),
            "block": ("potter_block", {}, "block my number"),
        }[kind]
        value = next(iter(more.values()), "now")
        own = {"potter_no": potter}
        return f"{words}, {value}, I am {potter}", [("potter", own), (tool, {**own, **more}), ("potter", own)]

    def _one(self, things: Iterable[str]) -> str:
        thing = self._draw.choice(sorted({*things} - self.used or {*things}))
        self.used.add(thing)
        return thing


class Talk:
    """A session: what was spoken so far, and its lines of logs, one for each answer of the agent."""

    def __init__(self, session_id: str, began: int) -> None:
        self._session_id, self._at = session_id, began
        self._messages: list[dict[str, Any]] = []
        self._n = 0

    def goal(self, engine: Engine, desk: Desk, kind: str, at: int | None = None) -> tuple[list[str], str | None]:
        """Carry out a goal, from the instant `at`; return (lines, ticket of the piece that a call named last)."""
        self._at = at or self._at
        wish, calls = desk.goal(kind)
        self._messages.append({"role": "user", "content": f"Hello, {wish}, please."})
        lines = []
        for tool, arguments in calls:
            name = f"call_{self._session_id}_{self._n}"
            asked = {"role": "assistant", "content": None, "tool_calls": [{
                "id": name, "type": "function", "function": {"name": tool, "arguments": json.dumps(arguments)}}]}
            lines.append(self._line(asked, "tool_calls"))
            answer = engine.call(tool, arguments).answer
            self._messages += [asked, {"role": "tool", "tool_call_id": name, "name": tool, "content": answer}]
        refused = any(message["role"] == "tool" and message["content"].startswith("Error")
                      for message in self._messages[-2 * len(calls):])
        said = {"role": "assistant", "content": "I am sorry, that does not work." if refused else "That is done."}
        lines.append(self._line(said, "stop"))
        self._messages += [said, {"role": "user", "content": "All right." if refused else "Thank you, that is right."}]
        return lines, calls[-1][1].get("ticket")

    def _line(self, message: dict[str, Any], reason: str) -> str:
        self._n += 1
        self._at += 4
        return json.dumps({
            "id": f"chatcmpl-{self._session_id}-{self._n}", "created": self._at, "latency_ms": 900,
            "metadata": {"session_id": self._session_id, "app": "pottery"},
            "request": {"model": "desk-1", "messages": self._messages},
            "response": {"choices": [{"index": 0, "message": message, "finish_reason": reason}]}}) + "\n"


def days(sizes: list[int], changed: Iterable[str], seed: int = 0) -> Iterator[Day]:
    """Yield a day for each size, a number of sessions. From the day of change on, the rules `changed` say something else."""
    engine, draw = Engine(), random.Random(seed)
    arriving: list[str] = []
    pieces: list[str] = []
    for number, size in enumerate(sizes, 1):
        engine.changed = frozenset(changed) if number >= DAY_OF_CHANGE else frozenset()
        begins = FIRST_INSTANT + (number - 1) * DAY_S
        kinds = [KINDS[at % len(KINDS)] for at in range(size * GOALS_A_SESSION)]
        draw.shuffle(kinds)
        lines, talks, begun = [], [], []
        for at in range(size):
            talk = Talk(f"s{seed}{number:02}{at:03}", begins + at * (36_000 // size))
            begun.append((begins + at * (36_000 // size), pickle.dumps(engine)))
            desk = Desk(engine, draw, 20_000 + number * 1000 + at * 4, pieces)
            for kind in kinds[at * GOALS_A_SESSION:(at + 1) * GOALS_A_SESSION]:
                lines += talk.goal(engine, desk, kind)[0]
            talks.append((talk, desk))
        late: list[str] = []
        for at, (talk, desk) in enumerate(talks[::LATE_EVERY] if number == DAY_OF_CHANGE else []):
            made, ticket = talk.goal(engine, desk, ("void", "note", "light")[at % 3], begins + 43_200 + at * 60)
            late += made
            pieces += [ticket] if ticket else []
        yield Day(number, lines, arriving, copy.deepcopy(engine), list(pieces), begun)
        arriving = late


def probes_of(engine: Engine, rules: Iterable[str], kept: Iterable[str] = (), seed: int = 1) -> Iterator[Probe]:
    """Yield probes of the rules: the true answers are those of the engine as it stands, and each probe leaves it so."""
    for rule in rules:
        desk = Desk(engine, random.Random(f"{seed}{rule}"), 90_000, kept)
        n_made = 0
        for _ in range(40 * N_PER_RULE):
            kind, field, last = PROBED[rule]
            calls = desk.goal(kind)[1][:last + 1]
            answers = []
            for changed in (engine.changed ^ {rule}, engine.changed):   # it must be the rule that decides
                copied = copy.deepcopy(engine)
                copied.changed = changed
                steps = [copied.call(tool, arguments) for tool, arguments in calls]
                answers.append(seen(steps[-1].answer, field))
            if len(calls) == last + 1 and answers[0] != answers[1]:
                yield Probe(rule, steps, field)
                n_made += 1
                if n_made == N_PER_RULE:
                    break


def seen(answer: str, field: str | None) -> Any:
    """Return what a rule decides of an answer: a field; of another answer, such as a refusal, all of it."""
    if field is None:
        return answer
    try:
        document = json.loads(answer)
    except ValueError:
        return answer
    return document.get(field) if isinstance(document, dict) else answer


PROBED: dict[str, tuple[str, str | None, int]] = {
    "glaze_factor": ("weigh", "grams", 0), "silver_months": ("level", "months", 1), "gold_months": ("level", "months", 1),
    "block_discount": ("block", "discount", 1), "rush_cone": ("rush", "cone", 1),
    "lit_status": ("light", "status", 1), "lit_fee": ("light", "fee", 1), "out_status": ("fetch", "status", 1),
    "early_text": ("fetch_early", None, 1), "void_status": ("void", "status", 1), "void_fee": ("void", "fee", 1),
    "glazed_status": ("glaze", "status", 1), "glazed_cone": ("glaze", "cone", 1), "rush_fee": ("rush", "fee", 1),
    "rush_text": ("rush_late", None, 1), "gold_discount": ("level", "discount", 1), "silver_discount": ("level", "discount", 1),
    "basic_months": ("level", "months", 1), "block_level": ("block", "level", 1), "note_mark": ("note", "note", 1)}
"""Rule -> the goal whose calls meet it, the field that it decides, and which of the calls shows it."""
