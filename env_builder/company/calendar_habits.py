"""What mails and recorded calls teach of a company's calendar.

In: recorded calls, the world of all events and mails. Out: `mails` (invitation, update, cancellation -> subject and body, with
the event's values as `{name}`), `shown` ("<event>|<address>" -> [instant, answer] of what calls showed of a guest).
Sees: a mail of the organizer at the second at which the event was made, changed or cancelled, whose subject has the event's
title. A text counts where most of these mails have it. Does not see: mails whose texts name other values.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from typing import Any

from env_builder.company.calls import RecordedCall
from env_builder.runtime.company import CompanyWorld
from env_builder.runtime.office.calendar_events import CANCELLATION, EVENT, INVITATION, UPDATE, event_key, mail_values
from env_builder.runtime.office.mailboxes import MAIL

_SHARE = .8
_LINE = re.compile(r"ID: (\S+) \| .*?Attendees: (.*)$", re.MULTILINE)
_NAMES = ("summary", "location", "description", "start", "end", "start_date", "end_date", "start_minute", "end_minute")


def learn_calendar(calls: Sequence[RecordedCall], world: CompanyWorld) -> dict[str, Any]:
    """Return what calls and mails teach of the product `calendar_events`."""
    learnt: dict[str, Any] = {}
    counts: dict[str, Counter[tuple[str, str]]] = defaultdict(Counter)
    mails = _mails(world)
    for kind, organizer, at, event in _steps(world):
        for subject, body in mails.get((organizer, at), ()):
            if event.get("summary") and str(event["summary"]) in subject:
                counts[kind][_template(subject, event), _template(body, event)] += 1
    most = {kind: count.most_common(1)[0] for kind, count in sorted(counts.items())}
    common = {kind: {"subject": text[0], "body": text[1]} for kind, (text, n) in most.items()
              if n >= _SHARE * counts[kind].total()}
    if common:
        learnt["mails"] = common
    shown: dict[str, list[list[Any]]] = defaultdict(list)
    for call in calls:
        if call.tool == "get_events" and not call.is_error:
            for event_id, guests in _LINE.findall(call.content):
                for guest in guests.split(", "):
                    address, _, answer = guest.partition(": ")
                    shown[f"{event_key(event_id, world.ids.get(EVENT, ()))}|{address}"].append([call.at, answer])
    return learnt | ({"shown": {key: sorted(rows) for key, rows in sorted(shown.items())}} if shown else {})


def _mails(world: CompanyWorld) -> dict[tuple[str, int], list[tuple[str, str]]]:
    """Return (sender, second) -> subject and body of the mails sent then."""
    state = world.at(2**61)
    mails: dict[tuple[str, int], list[tuple[str, str]]] = defaultdict(list)
    for key in state.ids(MAIL):
        values = state.values(MAIL, key)
        mails[str(values.get("sender") or "").lower(), int(values.get("date") or 0)].append(
            (str(values.get("subject") or ""), str(values.get("body") or "")))
    return mails


def _steps(world: CompanyWorld) -> Iterator[tuple[str, str, int, dict[str, Any]]]:
    """Yield what happened to events: kind, organizer, second, and the event's values right after."""
    values: dict[str, dict[str, Any]] = defaultdict(dict)
    order: dict[tuple[str, int], str] = {}
    after: dict[tuple[str, int], dict[str, Any]] = {}
    for version in world.versions:
        if version.entity_class != EVENT:
            continue
        event, step = values[version.entity_id], (version.entity_id, version.at // 1_000_000)
        if not event:
            order[step] = INVITATION
        event[version.field] = version.value
        if version.field == "status" and version.value == "CANCELLED":
            order[step] = CANCELLATION
        order.setdefault(step, UPDATE)
        after[step] = dict(event)
    for (key, second), kind in order.items():
        yield kind, str(after[key, second].get("organizer") or ""), second, after[key, second]


def _template(text: str, event: dict[str, Any]) -> str:
    """Return a text with the event's values as names; the longest value first."""
    text = text.replace("{", "{{").replace("}", "}}")
    values = mail_values(event)
    marks = {}
    for number, name in enumerate(sorted(_NAMES, key=lambda each: (-len(values[each]), _NAMES.index(each)))):
        if values[name]:
            marks[f"\0{number}\0"] = f"{{{name}}}"
            text = text.replace(values[name], f"\0{number}\0")
    for mark, name in marks.items():
        text = text.replace(mark, name)
    return text
