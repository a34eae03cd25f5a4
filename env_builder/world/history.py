"""From the steps of all sessions to facts and answers on record, each with the span over which it holds.

Where every session begins anew, what (nearly) all sessions saw before any act that matters is what all of them begin from; a
session that saw otherwise keeps its own view, which counts in a task where more than half of its sessions saw the same. Where
sessions differ by more than that, they began from several states, and each keeps its own view.
Where sessions share one world, looks are laid out in time (`spans`), and a session's own first look counts for the tasks
that begin together with it.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any, NamedTuple

from env_builder.runtime.canonical import canonical, digest
from env_builder.runtime.world import SURE, World
from env_builder.world.changes import Feed
from env_builder.world.drift import Drift
from env_builder.world.replay import Step
from env_builder.world.spans import ABSENT, Event, Look, Span, Touch, fields_of, pairs, spans
from warehouse.records import Verdict

KEPT = 0.98
"""Share of acts from which a field counts as left alone by a tool."""
Row = dict[str, Any]
Name = tuple[str, str]


class History(NamedTuple):
    """What is known of one service's world, in rows without ids."""

    facts: list[Row]
    recorded: list[Row]
    verdicts: list[Verdict]


def facts(
    service: str, steps: list[Step], starts: dict[str, datetime | None], shared: bool,
    touches: dict[Name, list[Touch]] | None = None, feeds: dict[str, Feed] | None = None,
) -> History:
    """All facts and answers on record. `starts`: when each session began; `touches`: hidden effects of acts, by thing;
    `feeds`: row changes, by class."""
    documents: dict[Name, list[Step]] = defaultdict(list)
    answers: dict[Name, list[Step]] = defaultdict(list)
    for step in steps:
        if step.shown:
            documents[step.shown[:2]].append(step)
        if not step.shown or step.act or step.after:
            answers[step.call.tool, step.call.key].append(step)
    if shared:
        return _shared(service, documents, answers, starts, touches or {}, feeds or {})
    return _reset(service, documents, answers)


def _reset(
    service: str, documents: dict[Name, list[Step]], answers: dict[Name, list[Step]]
) -> History:
    found: list[Row] = []
    recorded: list[Row] = []
    verdicts: list[Verdict] = []
    for name, seen in sorted(documents.items()):
        fresh = [step for step in seen if not step.after and not step.act]
        for text, step, session in _views([(step.shown[2], step) for step in fresh if step.shown]):
            found.append(_fact(service, name, text, None, None, session, "seen", step))
            if session:
                verdicts.append(_outvoted(service, name, step))
    for name, seen in sorted(answers.items()):
        by_after: dict[tuple[tuple[str, str], ...], list[Step]] = defaultdict(list)
        for step in seen:
            by_after[step.after].append(step)
        for _, alike in sorted(by_after.items()):
            for _, step, session in _views([(step.call.content, step) for step in alike]):
                recorded.append(_answer(service, step, None, None, session))
                if session:
                    verdicts.append(_outvoted(service, name, step))
    return History(found, recorded, verdicts)


def _views(seen: list[tuple[str, Step]]) -> list[tuple[str, Step, str | None]]:
    """(text, a step that showed it, None) for what (nearly) all sessions saw first, then each other session's own view."""
    first: dict[str, tuple[str, Step]] = {}
    for text, step in seen:
        first.setdefault(step.call.session_id, (text, step))
    if not first:
        return []
    counts = Counter(text for text, _ in first.values())
    most = min(counts, key=lambda text: (-counts[text], text))
    alike = [step for text, step in first.values() if text == most]
    shown = min(alike, key=lambda step: (-len(step.effects), step.call.event_id))  # the one that tells most of what it did
    sure = counts[most] >= SURE * len(first)
    views: list[tuple[str, Step, str | None]] = [(most, shown, None)] if sure else []
    views += [(text, step, session) for session, (text, step) in sorted(first.items()) if not sure or text != most]
    return views


def _shared(
    service: str, documents: dict[Name, list[Step]], answers: dict[Name, list[Step]], starts: dict[str, datetime | None],
    touches: dict[Name, list[Touch]], feeds: dict[str, Feed],
) -> History:
    kept = _kept(documents)
    shown: dict[Name, list[Event]] = {}
    for name, seen in documents.items():
        looks = _looks([(step, step.shown[2]) for step in seen if step.shown], starts, kept)
        shown[name] = sorted([*looks, *touches.get(name, ())], key=lambda event: (event.at, isinstance(event, Look)))
    reads = {  # an answer after acts holds then alone, and one that shows a thing is worked out from the thing
        name: [step for step in seen if not step.acting and not step.after] for name, seen in answers.items()
    }
    told: dict[Name, list[Event]] = {
        name: [*_looks([(step, step.call.content) for step in seen], starts, {})] for name, seen in reads.items() if seen}
    found: list[Row] = []
    recorded: list[Row] = []
    drift = Drift([pair for name, events in sorted(shown.items()) for pair in pairs(name[0], events, True)])
    by_event = {step.call.event_id: step for seen in documents.values() for step in seen}
    for name, events in sorted(shown.items()):
        for span in _before_feed(spans(name[0], events, drift), feeds.get(name[0])):
            step = by_event[span.event_id]
            found.append(_fact(service, name, span.text, span.since, span.until, None, span.known, step, span.observed_at))
        found += [_fact(service, name, step.shown[2], None, None, step.call.session_id, "seen", step)
                  for step in _first_own(documents[name]) if step.shown]
    found += [row for _, feed in sorted(feeds.items()) for row in _fed(service, feed)]
    drift = Drift([pair for name, events in sorted(told.items()) for pair in pairs(name[0], events, False)])
    for name, events in sorted(told.items()):
        by_event = {step.call.event_id: step for step in reads[name]}
        recorded += [_answer(service, by_event[span.event_id], span.since, span.until, None)
                     for span in spans(name[0], events, drift, False)]
    for _, seen in sorted(answers.items()):
        recorded += [_answer(service, step, None, None, step.call.session_id) for step in _each_own(seen)]
    return History(found, recorded, [])


def _before_feed(found: list[Span], feed: Feed | None) -> list[Span]:
    """What looks say of the time before the feed begins."""
    if feed is None:
        return found
    return [
        span._replace(until=feed.since if span.until is None else min(span.until, feed.since))
        for span in found if span.since is None or span.since < feed.since]


def _fed(service: str, feed: Feed) -> Iterator[Row]:
    """Facts of a feed: each version until the next."""
    for key, versions in sorted(feed.versions.items()):
        for place, (at, text, change_id) in enumerate(versions):
            until = versions[place + 1][0] if place + 1 < len(versions) else None
            if text is not None and at != until:
                yield {
                    "service": service, "entity_class": feed.entity_class, "key": key, "value": text, "valid_from": at,
                    "valid_to": until, "session_id": None, "known": "row_change", "observed_at": at, "event_id": change_id}


def _kept(documents: dict[Name, list[Step]]) -> dict[str, frozenset[str]]:
    """Fields that each acting tool leaves as they were, in (nearly) all acts before which they were known."""
    n: Counter[str] = Counter()
    same: Counter[tuple[str, str]] = Counter()
    for seen in documents.values():
        for step in seen:
            if step.act and step.shown and step.before is not None:
                before, after = fields_of(step.before, True), fields_of(step.shown[2], True)
                n[step.call.tool] += 1
                same.update((step.call.tool, field) for field in before if before[field] == after.get(field, ABSENT))
    return {tool: frozenset(field for who, field in same if who == tool and same[who, field] >= KEPT * n[tool]) for tool in n}


def _looks(
    seen: list[tuple[Step, str]], starts: dict[str, datetime | None], kept: dict[str, frozenset[str]]
) -> list[Look]:
    looks = []
    for step, text in seen:
        at = step.call.called_at or starts.get(step.call.session_id)
        if at is not None:
            fields = kept.get(step.call.tool, frozenset()) if step.act else frozenset[str]()
            looks.append(Look(at, text, step.act, step.call.event_id, fields))
    return sorted(looks, key=lambda look: (look.at, look.event_id))


def _first_own(seen: list[Step]) -> list[Step]:
    """Each session's first look, where no act of its own that matters came before it."""
    first: dict[str, Step] = {}
    for step in seen:
        first.setdefault(step.call.session_id, step)
    return [step for _, step in sorted(first.items()) if not step.after and not step.act]


def _each_own(seen: list[Step]) -> list[Step]:
    """Each session's first answer after each set of acts."""
    first: dict[tuple[str, tuple[tuple[str, str], ...]], Step] = {}
    for step in seen:
        first.setdefault((step.call.session_id, step.after), step)
    return [step for _, step in sorted(first.items())]


def _fact(
    service: str, name: Name, text: str, since: datetime | None, until: datetime | None, session: str | None,
    known: str, step: Step, observed_at: datetime | None = None,
) -> Row:
    return {
        "service": service, "entity_class": name[0], "key": name[1], "value": text, "valid_from": since,
        "valid_to": until, "session_id": session, "known": known, "observed_at": observed_at or step.call.called_at,
        "event_id": step.call.event_id,
    }


def _answer(service: str, step: Step, since: datetime | None, until: datetime | None, session: str | None) -> Row:
    effects = [{"class": name[0], "key": name[1], "value": text} for name, text in sorted(step.effects)]
    return {
        "service": service, "tool": step.call.tool, "arguments": step.call.key, "content": step.call.content,
        "is_error": step.call.failed, "valid_from": since, "valid_to": until, "session_id": session,
        "after": json.dumps(step.after), "effects": canonical(effects), "event_id": step.call.event_id,
    }


def base_of(told: History) -> World:
    """The same as a room looks at it."""
    return World(_lines(told.facts, "class", "key"), _lines(told.recorded, "tool", "arguments", "after"))


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
    """The rows with an id made of all that they say, under this name."""
    for row in rows:
        yield {name: digest(canonical({field: str(value) for field, value in row.items()}))[:32], **row}


def _outvoted(service: str, name: Name, step: Step) -> Verdict:
    return Verdict(
        stage="world", subject=step.call.event_id, kept=True, reason="outvoted",
        detail=f"session {step.call.session_id} saw {name[0]} {name[1][:80]} of {service} otherwise than others; "
               "it counts in tasks where more than half of the sessions saw the same",
    )
