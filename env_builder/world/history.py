"""From the steps of all sessions to facts and answers on record, each with the interval over which it holds.

In: all steps, and the known consequences of write calls. Out: rows of facts and of recorded answers.
Where every session starts from the same state, what nearly all sessions saw before any relevant write call is that state. A
session that saw something else keeps its own view, which counts in a task if more than half of its sessions saw the same. Where
more sessions differ, they started from several states, and each keeps its own view.
Where sessions share one world, reads are laid out in time (`spans`), and a session's own first read counts for the tasks that
start with it. A record that a write call changes in an unknown way is unknown until the next read.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from copy import copy
from datetime import UTC, datetime
from functools import cached_property, partial
from typing import Any, NamedTuple

from env_builder.runtime.answers import Document, parsed
from env_builder.runtime.canonical import canonical, digest
from env_builder.runtime.files import Later
from env_builder.runtime.relevance import act_names, names
from env_builder.runtime.world import View, World
from env_builder.runtime.writing import Consequence, Unknowable, applied
from env_builder.world.beginnings import Beginnings, FirstLook
from env_builder.world.births import existing_since
from env_builder.world.changes import Feed
from env_builder.world.documents import Documents
from env_builder.world.hidden import QUIET, Link, differences, named, samples_of, spoken_of
from env_builder.world.replay import LoggedStep
from env_builder.world.spans import ABSENT, WHOLE, DocumentRead, Drift, Event, Pair, Touch, fields_of, from_birth, pairs, spans
from warehouse.records import Decision

CHANGING = frozenset(("changes", "answers", "reaches"))
"""How acts bear on what they are known to change (`relation`)."""


def unexplained(
    steps: list[LoggedStep], links: dict[str, list[Link]], also: dict[str, list[Consequence]], documents: Documents,
    relation: Mapping[str, Mapping[str, str]],
) -> dict[tuple[str, Link], frozenset[str]]:
    """(tool, link) -> fields of the records so named that its acts were seen to change in an unknown way; in a shared world."""
    tools_by_link: dict[tuple[str, Link], frozenset[str]] = {}
    for (tool, link), samples in samples_of(steps, links, True, documents, relation).items():
        if tool == QUIET:
            continue
        is_explained = any(one["class"] == link[0] for one in also.get(tool, ()))
        changed = (path for sample in samples for path, _, _ in differences(sample.there, sample.after))
        fields = frozenset(str(path[0]) for path in changed if path)
        if fields and not is_explained and relation[tool].get(link[0]) in CHANGING:
            tools_by_link[tool, link] = fields
    return tools_by_link


def touches(
    steps: list[LoggedStep], also: dict[str, list[Consequence]], documents: Documents,
    open_fields: dict[tuple[str, Link], frozenset[str]],
) -> dict[tuple[str, str], list[Touch]]:
    """When which record was touched, by every act that did not fail. `open_fields`: as `unexplained` says."""
    touches_by_name: dict[tuple[str, str], list[Touch]] = defaultdict(list)
    of_tool: dict[str, list[tuple[Link, frozenset[str]]]] = defaultdict(list)
    for (tool, link), fields in sorted(open_fields.items()):
        of_tool[tool].append((link, fields))
    for step in steps:
        at = step.call.called_at
        if not step.act or at is None:
            continue
        for link, fields in of_tool[step.call.tool]:
            other = named(link, step, documents)
            if other is not None:
                touches_by_name[other].append(Touch(at, fields, lambda part: None))
        mine: dict[tuple[str, str], list[Consequence]] = defaultdict(list)
        for one in also.get(step.call.tool, ()):
            name = named((one["class"], json.dumps(one["key"])), step, documents)
            if name is not None:
                mine[name].append(one)
        for name, consequences in mine.items():
            fields = frozenset(field for one in consequences for field in one.get("fields") or one["path"][:1])
            touches_by_name[name].append(Touch(at, fields, partial(_touched, step, spoken_of(step, documents), consequences)))
    return touches_by_name


def answer_touches(
    steps: list[LoggedStep], relation: Mapping[str, Mapping[str, str]], documents: Documents
) -> dict[tuple[str, str], list[Touch]]:
    """When acts of any session touched what shows no record, by question, as far as their tools are known to change it; and
    records of a class that they reach."""
    by_word: dict[tuple[str, str], set[tuple[str, str]]] = defaultdict(set)
    for step in steps:
        if not step.acting and not step.call.failed and step.call.tool not in documents.tools:
            for word in names(step.call.arguments) or ("",):
                by_word[step.call.tool, word].add((step.call.tool, step.call.key))
    keys: dict[str, set[str]] = defaultdict(set)
    for step in steps:
        if step.shown:
            keys[step.shown[0]].add(step.shown[1])
    questions: dict[str, set[tuple[str, str]]] = defaultdict(set)
    for own in by_word.values():
        for question in own:
            questions[question[0]].add(question)
    touches_by_question: dict[tuple[str, str], list[Touch]] = defaultdict(list)
    for step in steps:
        if not step.act or step.call.called_at is None:
            continue
        touch = Touch(step.call.called_at, frozenset((WHOLE,)), lambda part: None)
        words = act_names(step.call.arguments, step.call.content) | {""}
        for tool, how in relation.get(step.call.tool, {}).items():
            if how == "reaches" and tool in documents.classes:  # nobody knows which of the records it changes
                record = touch._replace(fields=documents.classes[tool].fields)
                for key in keys[tool]:
                    touches_by_question[tool, key].append(record)
            elif how in CHANGING:
                named = questions[tool] if how == "reaches" else set[tuple[str, str]]().union(
                    *(by_word[tool, word] for word in words))
                for question in named:
                    touches_by_question[question].append(touch)
    return touches_by_question


def _touched(
    step: LoggedStep, before: str | None, consequences: list[Consequence], there: dict[str, Any]
) -> dict[str, Any] | None:
    """Return a part of the document after the act; None where what the act did is not known."""
    if before is None:
        return None
    try:
        for one in consequences:
            there = applied(one, there, parsed(before), step.call.arguments, step.look)
    except Unknowable:
        return None
    return there


KEPT = 0.98
"""Share of acts from which a field counts as left alone by a tool."""
Row = dict[str, Any]
Name = tuple[str, str]


class History(NamedTuple):
    """What is known of one service's world, in rows without ids."""

    facts: list[Row]
    recorded: list[Row]
    decisions: list[Decision]


def facts(
    service: str, steps: list[LoggedStep], starts: dict[str, datetime | None], shared: bool,
    touches: dict[Name, list[Touch]] | None = None, feeds: dict[str, Feed] | None = None,
    answering: Collection[str] | None = None, records: SharedRecords | None = None,
) -> History:
    """All facts and answers on record. `starts`: when each session began; `touches`: hidden effects of acts, by record;
    `feeds`: row changes, by class; `answering`: tools whose answers are wanted, None: all; `records`: those of the same steps,
    where they were gone through before."""
    answers = _answers_of(steps, answering)
    if shared:
        shown = (records or SharedRecords(service, steps, starts, feeds or {})).touched(touches or {})
        rows = [row for name in sorted(shown.documents) for row in shown.rows(name)]
        rows += [row for _, feed in sorted((feeds or {}).items()) for row in _fed(service, feed)]
        return History(rows, _recorded(service, answers, starts, touches or {}), [])
    documents = documents_of(steps)
    rows = []
    recorded: list[Row] = []
    decisions: list[Decision] = []
    begun = beginnings(steps)
    for name, reads in sorted(documents.items()):
        fresh = [step for step in reads if not step.after and not step.act]
        for text, step, session in _views(name[0], begun, [(step.shown[2], step) for step in fresh if step.shown]):
            rows.append(_fact(service, name, text, None, None, session, "seen", step))
            if session:
                decisions.append(_outvoted(service, name, step))
    for name, reads in sorted(answers.items()):
        by_after: dict[tuple[tuple[str, str], ...], list[LoggedStep]] = defaultdict(list)
        for step in reads:
            by_after[step.after].append(step)
        for _, alike in sorted(by_after.items()):
            for _, step, session in _views(name[0], begun, [(step.call.content, step) for step in alike]):
                recorded.append(_answer(service, step, None, None, session))
                if session:
                    decisions.append(_outvoted(service, name, step))
    return History(rows, recorded, decisions)


def first_world(
    service: str, steps: list[LoggedStep], starts: dict[str, datetime | None], feeds: dict[str, Feed],
    answering: Collection[str], records: SharedRecords | None,
) -> World:
    """Return the world as an environment looks at it, before it is known what acts change besides what they show. `records`:
    those of a world that all sessions share: each is laid out in time when it is first looked at, and most never are."""
    if records is None or feeds:
        return base_of(facts(service, steps, starts, records is not None, None, feeds, answering, records))
    return FirstWorld(records, _lines(
        _recorded(service, _answers_of(steps, answering), starts, {}), "tool", "arguments", "after"))


def documents_of(steps: list[LoggedStep]) -> dict[Name, list[LoggedStep]]:
    """Return the steps that showed each record."""
    documents: dict[Name, list[LoggedStep]] = defaultdict(list)
    for step in steps:
        if step.shown:
            documents[step.shown[:2]].append(step)
    return documents


def _answers_of(steps: list[LoggedStep], answering: Collection[str] | None) -> dict[Name, list[LoggedStep]]:
    """Return the answers that are to be on record, by question. `answering`: of these tools, None: of all."""
    answers: dict[Name, list[LoggedStep]] = defaultdict(list)
    for step in steps:
        if (answering is None or step.call.tool in answering) and (not step.shown or step.act or step.after):
            answers[step.call.tool, step.call.key].append(step)
    return answers


def beginnings(steps: list[LoggedStep], of_cases: bool = True) -> Beginnings:
    """Return how alike sessions begin, by what they were told before they acted: records by class, other answers by tool.
    `of_cases`: what other cases foretell; else also what sessions of one case foretell each other."""
    return Beginnings(
        FirstLook(*place, step.call.session_id, text, step.call.witness if of_cases else None)
        for step in steps if not step.after for place, text in [
            (step.shown[:2], step.shown[2]) if step.shown and not step.act
            else ((step.call.tool, step.call.key), step.call.content)])


def _views(
    kind: str, begun: Beginnings, reads: list[tuple[str, LoggedStep]]
) -> list[tuple[str, LoggedStep, str | None]]:
    """(text, a step that showed it, None) for what (nearly) all sessions saw first, then each other session's own view."""
    first: dict[str, tuple[str, LoggedStep]] = {}
    for text, step in reads:
        first.setdefault(step.call.session_id, (text, step))
    if not first:
        return []
    counts = Counter(text for text, _ in {(text, step.call.witness) for text, step in first.values()})
    most = min(counts, key=lambda text: (-counts[text], text))
    alike = [step for text, step in first.values() if text == most]
    shown = min(alike, key=lambda step: (-len(step.effects), step.call.event_id))  # the one that tells most of what it did
    sure = begun.speak_for_all(kind, counts[most], counts.total())
    views: list[tuple[str, LoggedStep, str | None]] = [(most, shown, None)] if sure else []
    views += [(text, step, session) for session, (text, step) in sorted(first.items()) if not sure or text != most]
    return views


class SharedRecords:
    """The records of a world that all sessions share, each laid out in time by itself."""

    def __init__(
        self, service: str, steps: list[LoggedStep], starts: dict[str, datetime | None], feeds: dict[str, Feed],
    ) -> None:
        """Take what `facts` takes."""
        self._service, self._feeds = service, feeds
        self.documents = documents_of(steps)
        kept = _kept(self.documents)
        self._events: dict[Name, list[Event]] = {
            name: [*_looks([(step, step.shown[2]) for step in contents if step.shown], starts, kept)]
            for name, contents in self.documents.items()}

    @cached_property
    def _pairs(self) -> dict[Name, list[Pair]]:
        """The pairs of looks of each record, in order."""
        return {name: list(pairs(name[0], self._events[name], True)) for name in sorted(self._events)}

    @cached_property
    def _drift(self) -> Drift:
        return Drift([pair for each in self._pairs.values() for pair in each])

    @cached_property
    def _born(self) -> dict[Name, datetime]:
        return existing_since(self._events)

    def touched(self, touches: Mapping[Name, Iterable[Touch]]) -> SharedRecords:
        """Return the same records with what touched them, of which nothing is known here; the pairs of looks go with them."""
        other = copy(self)
        other._events = {name: _in_order([event for event in events if isinstance(event, DocumentRead)], touches[name])
                         if name in touches else events for name, events in self._events.items()}
        other._born = self._born  # looks alone tell it
        own = self._pairs
        other._pairs = {name: list(pairs(name[0], other._events[name], True)) if name in touches else own[name] for name in own}
        other._drift = Drift([pair for each in other._pairs.values() for pair in each])
        del self._pairs, other._pairs  # they are many, and not needed any more
        return other

    def rows(self, name: Name) -> list[Row]:
        """Return the facts of a record: its spans, then what each session saw of it first."""
        since = self._feeds[name[0]].since if name[0] in self._feeds else None  # from when the feed tells
        by_event = {step.call.event_id: step for step in self.documents[name]}
        rows: list[Row] = []
        for span in from_birth(spans(name[0], self._events[name], self._drift), self._born.get(name)):
            if since is not None:
                if span.since is not None and span.since >= since:
                    continue
                span = span._replace(until=since if span.until is None else min(span.until, since))
            step = by_event[span.event_id]
            rows.append(_fact(
                self._service, name, span.text, span.since, span.until, None, span.derivation, step, span.observed_at))
        return rows + [_fact(self._service, name, text, None, None, step.call.session_id, "seen", step)
                       for step, text in self._first_of(name)]

    def _first_of(self, name: Name) -> list[tuple[LoggedStep, str]]:
        """Return what sessions saw of a record before they did anything that matters to it."""
        return [(step, step.shown[2]) for step in _first_by(self.documents[name], lambda step: step.call.session_id)
                if step.shown and not step.after and not step.act]

    def first_looks(self) -> Iterator[tuple[Name, str, str]]:
        """Yield (record, session, text) of all that sessions saw so."""
        return ((name, step.call.session_id, text) for name in self.documents for step, text in self._first_of(name))

    def names(self) -> dict[Name, None]:
        """Return the records of which there are facts, in order."""
        return {name: None for name in sorted(self.documents) if self._first_of(name) or self.rows(name)}


class FirstWorld(World):
    """A world whose records are laid out in time when they are first looked at, and not for who saw them: that says it."""

    def __init__(self, records: SharedRecords, recorded: list[Row]) -> None:
        """Take the answers on record, as an environment has them."""
        super().__init__(Later(records.names(), lambda name: _lines(records.rows(name), "class", "key")), recorded)
        self._own = {(name, session): Document(text) for name, session, text in records.first_looks()}

    def document(self, name: Name, view: View) -> str | None:
        """Return the document as the one session of the view saw it first, else as it was at the view's instant."""
        (session,) = view.session_ids
        own = self._own.get((name, session))
        return super().document(name, view) if own is None else own


def _recorded(
    service: str, answers: dict[Name, list[LoggedStep]], starts: dict[str, datetime | None], touches: dict[Name, list[Touch]]
) -> list[Row]:
    """Return the answers on record of a world that all sessions share."""
    reads = {  # an answer after acts holds then alone, and one that shows a record is worked out from the record
        name: [step for step in contents if not step.acting and not step.after] for name, contents in answers.items()}
    touching: dict[Name, list[Event]] = {
        name: _in_order(_looks([(step, step.call.content) for step in contents], starts, {}), touches.get(name, ()))
        for name, contents in reads.items() if contents}
    # not every act that changes an answer is known to, so that what changes by itself is counted with all acts
    drift = Drift([pair for name, events in sorted(touching.items())
                   for pair in pairs(name[0], [event for event in events if isinstance(event, DocumentRead)], False)])
    rows: list[Row] = []
    for name, events in sorted(touching.items()):
        by_event = {step.call.event_id: step for step in reads[name]}
        rows += [_answer(service, by_event[span.event_id], span.since, span.until, None)
                 for span in spans(name[0], events, drift, False)]
    for _, contents in sorted(answers.items()):
        rows += [_answer(service, step, None, None, step.call.session_id)
                 for step in _first_by(contents, lambda step: (step.call.session_id, step.after))]
    return rows


def _in_order(looks: list[DocumentRead], touches: Iterable[Touch]) -> list[Event]:
    return sorted([*looks, *touches], key=lambda event: (event.at, isinstance(event, DocumentRead)))


def _fed(service: str, feed: Feed) -> Iterator[Row]:
    """Facts of a feed: each version until the next."""
    for key, versions in sorted(feed.versions.items()):
        for place, (at, text, change_id) in enumerate(versions):
            until = versions[place + 1][0] if place + 1 < len(versions) else None
            if text is not None and at != until:
                yield {
                    "service": service, "entity_class": feed.entity_class, "key": key, "value": text, "valid_from": at,
                    "valid_to": until, "session_id": None, "derivation": "row_change", "observed_at": at, "event_id": change_id}


def _kept(documents: dict[Name, list[LoggedStep]]) -> dict[str, frozenset[str]]:
    """Fields that each acting tool leaves as they were, in (nearly) all acts before which they were known."""
    n: Counter[str] = Counter()
    same: Counter[tuple[str, str]] = Counter()
    for reads in documents.values():
        for step in reads:
            if step.act and step.shown and step.before is not None:
                before, after = fields_of(step.before, True), fields_of(step.shown[2], True)
                n[step.call.tool] += 1
                same.update((step.call.tool, field) for field in before if before[field] == after.get(field, ABSENT))
    return {tool: frozenset(field for who, field in same if who == tool and same[who, field] >= KEPT * n[tool]) for tool in n}


def _looks(
    reads: list[tuple[LoggedStep, str]], starts: dict[str, datetime | None], kept: dict[str, frozenset[str]]
) -> list[DocumentRead]:
    looks = []
    for step, text in reads:
        at = step.call.called_at or starts.get(step.call.session_id)
        if at is not None:
            fields = kept.get(step.call.tool, frozenset()) if step.act else frozenset[str]()
            looks.append(DocumentRead(at, text, step.act, step.call.event_id, fields))
    return sorted(looks, key=lambda look: (look.at, look.event_id))


def _first_by(steps: list[LoggedStep], key: Callable[[LoggedStep], Any]) -> list[LoggedStep]:
    """Return the first step of each key, by key."""
    first: dict[Any, LoggedStep] = {}
    for step in steps:
        first.setdefault(key(step), step)
    return [step for _, step in sorted(first.items())]


def _fact(
    service: str, name: Name, text: str, since: datetime | None, until: datetime | None, session: str | None,
    derivation: str, step: LoggedStep, observed_at: datetime | None = None,
) -> Row:
    return {
        "service": service, "entity_class": name[0], "key": name[1], "value": text, "valid_from": since,
        "valid_to": until, "session_id": session, "derivation": derivation, "observed_at": observed_at or step.call.called_at,
        "event_id": step.call.event_id}


def _answer(service: str, step: LoggedStep, since: datetime | None, until: datetime | None, session: str | None) -> Row:
    effects = [{"class": name[0], "key": name[1], "value": text} for name, text in sorted(step.effects)]
    return {
        "service": service, "tool": step.call.tool, "arguments": step.call.key, "content": step.call.content,
        "is_error": step.call.failed, "valid_from": since, "valid_to": until, "session_id": session,
        "after": json.dumps(step.after), "effects": canonical(effects), "event_id": step.call.event_id}


def base_of(history: History) -> World:
    """Return the same as an environment looks at it."""
    return World(_lines(history.facts, "class", "key"), _lines(history.recorded, "tool", "arguments", "after"))


def _lines(rows: list[Row], *order: str) -> list[Row]:
    lines = [
        {**row, "class": row.get("entity_class"), "from": instant(row["valid_from"]), "to": instant(row["valid_to"]),
         "session": row["session_id"], "event": row["event_id"]} for row in rows]
    for line in lines:
        if "after" in line:
            line.update(after=json.loads(line["after"]), effects=json.loads(line["effects"]))
    keys = (*order, "session", "from", "event")
    return sorted(lines, key=lambda line: [("" if line[key] is None else str(line[key])) for key in keys])


def instant(at: datetime | None) -> str | None:
    """ISO instant in UTC, to the microsecond."""
    return None if at is None else at.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def identified(rows: list[Row], name: str) -> Iterator[Row]:
    """Yield the rows with an id made of all that they say, under this name."""
    for row in rows:
        yield {name: digest(canonical({field: str(value) for field, value in row.items()}))[:32], **row}


def _outvoted(service: str, name: Name, step: LoggedStep) -> Decision:
    return Decision(
        stage="world", subject=step.call.event_id, kept=True, reason="outvoted",
        detail=f"session {step.call.session_id} saw {name[0]} {name[1][:80]} of {service} otherwise than others; "
               "it counts in tasks where more than half of the sessions saw the same")
