"""Calendars: ICS files, and the invitations, updates, cancellations and answers inside mails (iTIP).

Sees: the states of an event that invitations carry, with the instants of their mails; the last state on record. Cancelled
events vanish from calendars and remain in the mails alone.
Does not see, and says so: when a guest answered, unless the answer is a mail in the export; changes without an invitation.
A repeated event is one record with its rule; an occurrence that was changed is one of its own, "<UID>/<when it was to begin>".
`cal_guest` ("<event>|<address>") has each guest's answer on its own: one guest's change leaves the others known.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any, NamedTuple
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from extractors.apps.version import BEGINNING, NEVER_KNOWN, AppRow, AppVersion, CompanyApp, ExportFile, bad_row, epoch
from warehouse.records import RecordKind

EVENT, GUEST = "cal", "cal_guest"
_FOLD = re.compile(r"\r?\n[ \t]")
_PROPERTY = re.compile(r'([\w-]+)((?:;[\w-]+=(?:"[^"]*"|[^";:]*)(?:,(?:"[^"]*"|[^";:]*))*)*):(.*)', re.DOTALL)
_PARAMETER = re.compile(r';([\w-]+)=("[^"]*"|[^;]*)')
_ESCAPE = re.compile(r"\\([\\;,nN])")
_PLAIN = {"SUMMARY": "summary", "LOCATION": "location", "DESCRIPTION": "description"}
_ERRORS = (ValueError, KeyError, TypeError, OverflowError)


class _Component(NamedTuple):
    """A VEVENT."""

    method: str
    """Of the calendar it is in: REQUEST, CANCEL, REPLY; empty in an export."""
    received: int
    """When its mail was sent; 0 in an export."""
    fields: dict[str, Any]
    answers: dict[str, str]
    """Guest's address -> PARTSTAT."""
    sequence: int
    stamped: int
    """DTSTAMP: when this state was written."""
    created: int
    modified: int
    record: str


def claims(file: ExportFile, siblings: frozenset[str]) -> bool:
    """Return whether a file is a calendar."""
    return file.content[:200].lstrip(b"\xef\xbb\xbf \r\n").upper().startswith(b"BEGIN:VCALENDAR")


def read(files: list[ExportFile]) -> Iterator[AppRow]:
    """Versions of events."""
    sent: dict[str, list[_Component]] = {}
    last: dict[str, _Component] = {}
    for file in files:
        for uid, component in _components(file):
            if isinstance(component, Exception):
                yield bad_row(file, uid, component)
            elif file.at or component.method in ("REQUEST", "CANCEL", "REPLY"):
                sent.setdefault(uid, []).append(component)
            elif uid not in last or _rank(component, file) > _rank(last[uid], file):
                last[uid] = component
    for uid in sorted({*sent, *last}):
        yield from _event(uid, sorted(sent.get(uid, ()), key=lambda each: (each.sequence, each.stamped)), last.get(uid))


def _rank(component: _Component, file: ExportFile) -> tuple[int, int, int]:
    return component.sequence, component.modified, sum(answer != "NEEDS-ACTION" for answer in component.answers.values())


def _components(file: ExportFile) -> Iterator[tuple[str, _Component | Exception]]:
    lines = _FOLD.sub("", file.content.decode("utf-8", "replace")).splitlines()
    method, depth = "", 0
    block: list[str] = []
    for line in lines:
        upper = line.strip().upper()
        if upper.startswith("METHOD:"):
            method = upper[7:].strip()
        elif upper == "BEGIN:VEVENT":
            block, depth = [], 1
        elif upper == "END:VEVENT" and depth:
            depth = 0
            try:
                uid, component = _component(block, method, file)
                yield uid, component
            except _ERRORS as error:
                yield next((line.strip()[4:] for line in block if line.upper().startswith("UID:")), ""), error
        elif depth and upper.startswith(("BEGIN:", "END:")):
            depth += 1 if upper.startswith("BEGIN:") else -1
        elif depth == 1:
            block.append(line)


def _component(lines: list[str], method: str, file: ExportFile) -> tuple[str, _Component]:
    values: dict[str, tuple[dict[str, str], str]] = {}
    answers: dict[str, str] = {}
    left_out: list[float | None] = []
    for line in lines:
        match = _PROPERTY.match(line)
        if match is None:
            continue
        name = match[1].upper()
        parameters = {key.upper(): value.strip('"') for key, value in _PARAMETER.findall(match[2])}
        if name == "ATTENDEE":
            answers[_address(match[3])] = parameters.get("PARTSTAT", "NEEDS-ACTION").upper()
        elif name == "EXDATE":
            left_out.extend(_seconds((parameters, each)) for each in match[3].split(","))
        else:
            values[name] = (parameters, match[3])
    uid = values["UID"][1].strip()
    if "RECURRENCE-ID" in values:
        uid = f"{uid}/{_stamp(values['RECURRENCE-ID'])}"
    fields: dict[str, Any] = {field: _text(values[name][1]) if name in values else "" for name, field in _PLAIN.items()}
    fields["start"], fields["end"] = _seconds(values.get("DTSTART")), _seconds(values.get("DTEND"))
    fields["organizer"] = _address(values["ORGANIZER"][1]) if "ORGANIZER" in values else None
    fields["status"] = values["STATUS"][1].strip().upper() if "STATUS" in values else "CONFIRMED"
    if _is_day(values.get("DTSTART")):
        fields["whole_day"] = True
    if "RRULE" in values or "RDATE" in values:
        fields["recurrence"] = values["RRULE"][1].strip() if "RRULE" in values else ""
        fields["zone"] = values["DTSTART"][0].get("TZID")
        fields["left_out"] = left_out
        fields["more_dates"] = "RDATE" in values
    sequence = int(values["SEQUENCE"][1]) if "SEQUENCE" in values else 0
    stamped = _micros(values.get("DTSTAMP"))
    modified = _micros(values.get("LAST-MODIFIED")) or stamped
    return uid, _Component(method, file.at, fields, answers, sequence, stamped, _micros(values.get("CREATED")), modified,
                           f"{file.path}#{uid}")


def _address(value: str) -> str:
    return re.sub(r"(?i)^mailto:", "", value.strip()).lower()


def _text(value: str) -> str:
    return _ESCAPE.sub(lambda match: "\n" if match[1] in "nN" else match[1], value)


def _seconds(value: tuple[dict[str, str], str] | None) -> float | None:
    """Return DTSTART and the like in seconds; times without a zone are taken as UTC."""
    if value is None:
        return None
    parameters, text = value[0], value[1].strip()
    if len(text) == 8:
        return datetime.strptime(text, "%Y%m%d").replace(tzinfo=UTC).timestamp()
    at = datetime.strptime(text.rstrip("Z"), "%Y%m%dT%H%M%S")
    zone: Any = UTC
    if not text.endswith("Z") and "TZID" in parameters:
        try:
            zone = ZoneInfo(parameters["TZID"])
        except (ZoneInfoNotFoundError, ValueError):
            raise ValueError(f"the time zone {parameters['TZID']!r} has no IANA name; export with names of that list") from None
    return at.replace(tzinfo=zone).timestamp()


def _is_day(value: tuple[dict[str, str], str] | None) -> bool:
    return value is not None and len(value[1].strip()) == 8


def _stamp(value: tuple[dict[str, str], str]) -> str:
    """Return which occurrence of a repeated event a RECURRENCE-ID means, as ids of occurrences write it, in UTC."""
    form = "%Y%m%d" if _is_day(value) else "%Y%m%dT%H%M%SZ"
    return datetime.fromtimestamp(_seconds(value) or 0, UTC).strftime(form)


def _micros(value: tuple[dict[str, str], str] | None) -> int:
    return int((_seconds(value) or 0) * 1_000_000)


def _event(uid: str, sent: list[_Component], last: _Component | None) -> Iterator[AppVersion]:
    """Yield the versions of one event."""
    states = [each for each in sent if each.method != "REPLY"]
    replies = [each for each in sent if each.method == "REPLY"]
    first = states[0] if states else last
    if first is None:
        return
    at_first = first.stamped or first.received
    born = first.created or at_first
    organizer = first.fields["organizer"]
    record = first.record
    if born < at_first and (first.sequence or not states):   # it had states without an invitation
        born_doubt = at_first if first.sequence else BEGINNING
    else:
        born_doubt = BEGINNING
    yield AppVersion(EVENT, uid, "created", epoch(born), born, 0, organizer, BEGINNING, record)
    before: dict[str, Any] = {}
    previous_sequence = -1
    steps = [*states, *([last] if last is not None and (not states or last.sequence > states[-1].sequence) else [])]
    for step in steps:
        is_first = previous_sequence < 0
        at = born if is_first else (step.stamped if step in states else step.modified) or step.received
        fields = {**step.fields, "sequence": step.sequence}
        if step.method == "CANCEL":
            fields = {**before, "status": "CANCELLED", "sequence": step.sequence}
        doubt = born_doubt if is_first else BEGINNING
        for field, value in fields.items():
            if is_first or before.get(field, _MISSING) != value:
                yield AppVersion(EVENT, uid, field, value, at, step.sequence, organizer, doubt, step.record)
        before, previous_sequence = fields, step.sequence
    yield from _answers(uid, born, states, replies, last, organizer, record)


_MISSING = object()


def _answers(uid: str, born: int, states: list[_Component], replies: list[_Component], last: _Component | None,
             organizer: str | None, record: str) -> Iterator[AppVersion]:
    """Yield the versions of the guests' answers and of `modified`: known where mails explain the last state."""
    first = states[0] if states else last
    if first is None:
        return
    changes = sorted([(each.stamped or each.received, each) for each in (*states[1:], *replies)], key=lambda each: each[0])
    answers = dict(first.answers)
    log = [(born, dict(answers))]
    touched = [born]
    for at, each in changes:
        if each.method == "REPLY":
            answers.update(each.answers)
        elif each.method == "REQUEST":   # an update carries the answers of its moment
            answers = dict(each.answers)
        log.append((at, dict(answers)))
        touched.append(at)
    is_whole = last is not None and answers == last.answers and (
        last.modified <= touched[-1] or bool(replies)) and all(state == log[0][1] for _, state in log if not replies)
    replied = {(each.stamped or each.received, guest) for each in replies for guest in each.answers}
    ends = [*log, *([(max(last.modified, born), last.answers)] if last is not None else [])]
    yield from _guests(uid, ends, replied, record)
    for at, state in log:
        doubt = BEGINNING if is_whole else NEVER_KNOWN
        yield AppVersion(EVENT, uid, "attendees", state, at, 0, organizer, doubt, record)
    for at in touched:
        yield AppVersion(EVENT, uid, "modified", epoch(at), at, 0, organizer, BEGINNING if is_whole else NEVER_KNOWN, record)
    if last is not None and not is_whole:
        at = max(last.modified, born)
        yield AppVersion(EVENT, uid, "attendees", last.answers, at, 1, organizer, BEGINNING, last.record)
        yield AppVersion(EVENT, uid, "modified", epoch(last.modified), at, 1, organizer, BEGINNING, last.record)


def _guests(uid: str, log: list[tuple[int, dict[str, str]]], replied: set[tuple[int, str]],
            record: str) -> Iterator[AppVersion]:
    """Yield each guest's answers: known between two records that agree, or up to the guest's own reply."""
    for index, (at, state) in enumerate(log):
        after_at, after = log[index + 1] if index + 1 < len(log) else (at, state)
        for guest, answer in state.items():
            is_known = after.get(guest, answer) == answer or (after_at, guest) in replied
            yield AppVersion(GUEST, f"{uid}|{guest}", "answer", answer, at, index, None,
                             BEGINNING if is_known else NEVER_KNOWN, record)


APP = CompanyApp("calendar", claims, read, rank=45, advice=(
    (EVENT, "attendees", "Google Calendar push notifications, or the replies in the organizer's mailbox"),
), kinds=(
    RecordKind(EVENT, texts=("summary", "description", "location"), people=("attendees",),
               follows=("modified", "sequence", "created")),
    RecordKind(GUEST, part_of=EVENT),
))
