"""Answer the calendar tools of google_workspace_mcp over the events of a desk's person.

In: a desk, arguments; events (`cal`, by UID), each guest's answer (`cal_guest`, "<UID>|<address>"). Out: the server's texts, as
calls show them: an event's line has its place and its guests.
Effects: an event with guests sends them an invitation, its change an update, its end a cancellation, with the texts that
exported mails have (`mails` of the conventions; without any on record no mail is sent).
Repeated events are shown and changed by their occurrences ("<id>_20260408T100000Z"); a changed one becomes an event of its own.
Sees: events that the person organizes or is invited to. Does not see: calendars of others; whether guests may change an event;
how a new time of a whole series moves occurrences that were changed before.
"""

from __future__ import annotations

import re
from collections.abc import Container, Iterable, Iterator
from datetime import UTC, datetime
from itertools import islice
from typing import Any, NamedTuple
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from ..company import CompanyDesk, ProductRefusal, Undecided
from .mailboxes import MAIL, MAILBOX, NewMail, send
from .recurrence import Recurrence
from .tools import OfficeTool

SERVER, PRODUCT = "google-workspace-mcp", "calendar_events"
EVENT, GUEST = "cal", "cal_guest"
_GOOGLE = "@google.com"
_MOST = 25
_PLAIN = ("summary", "location", "description")
_OF_SERIES = (*_PLAIN, "organizer", "status", "sequence", "created", "whole_day")
"""What a changed occurrence has of its series."""
_INSTANCE = re.compile(r"(.+)_(\d{8}(?:T\d{6}Z)?)")
INVITATION, UPDATE, CANCELLATION = "invitation", "update", "cancellation"
Arguments = dict[str, Any]


class EventTime(NamedTuple):
    """When an event takes place, or one occurrence of a repeated one. Instants in seconds."""

    start: float
    key: str
    """The event's UID."""
    end: float
    stamp: str = ""
    """Which occurrence it is: when it begins, as ids write it; empty for an event that is not repeated."""


def list_calendars(desk: CompanyDesk, arguments: Arguments) -> str:
    """Answer `list_calendars`: the person's own calendar alone, as the exports hold no others."""
    return f'Successfully listed 1 calendars for {desk.address}:\n- "{desk.address}" (Primary) (ID: {desk.address})'


def get_events(desk: CompanyDesk, arguments: Arguments) -> str:
    """Answer `get_events`. Errors: ProductRefusal, Undecided."""
    calendar = _own_calendar(desk, arguments)
    if arguments.get("event_id"):
        times = [_time(desk, str(arguments["event_id"]))]
    else:
        begin = _seconds(arguments["time_min"]) if arguments.get("time_min") else desk.now
        end = _seconds(arguments["time_max"]) if arguments.get("time_max") else float("inf")
        most = int(arguments.get("max_results") or _MOST)
        times = _between(desk, (begin, end), str(arguments.get("query") or ""), most)[:most]
    if not times:
        return f"No events found in calendar '{calendar}' for {desk.address} for the specified time range."
    return "\n".join([f"Successfully retrieved {len(times)} events from calendar '{calendar}' for {desk.address}:",
                      *(_line(desk, at) for at in times)])


def create_event(desk: CompanyDesk, arguments: Arguments) -> str:
    """Answer `create_event`; the guests get an invitation. Errors: ProductRefusal."""
    _own_calendar(desk, arguments)
    summary = str(arguments.get("summary") or "")
    begin, end = _seconds(arguments["start_time"]), _seconds(arguments["end_time"])
    if end < begin:
        raise ProductRefusal("Error: The specified time range is empty.")
    own = desk.made_id("event", 26)
    answers = {address: answer or "NEEDS-ACTION" for address, answer in _guests(arguments.get("attendees"))}
    answers = dict(sorted({**answers, desk.address: "ACCEPTED"}.items()))
    now = float(int(desk.now))
    desk.write(EVENT, own + _GOOGLE, summary=summary, location=str(arguments.get("location") or ""),
               description=str(arguments.get("description") or ""), start=begin, end=end, organizer=desk.address,
               status="CONFIRMED", sequence=0, attendees=answers, created=now, modified=now)
    for address, answer in answers.items():
        desk.write(GUEST, f"{own}{_GOOGLE}|{address}", answer=answer)
    _notify(desk, own + _GOOGLE, INVITATION)
    return f"Successfully created event '{summary}' for {desk.address}. ID: {own}"


def modify_event(desk: CompanyDesk, arguments: Arguments) -> str:
    """Answer `modify_event`: changes by the organizer, and a guest's own answer. Errors: ProductRefusal, Undecided."""
    _own_calendar(desk, arguments)
    key = _event(desk, str(arguments["event_id"]))
    changes: dict[str, Any] = {name: str(arguments[name]) for name in _PLAIN if arguments.get(name) is not None}
    changes |= {field: _seconds(arguments[name]) for name, field in (("start_time", "start"), ("end_time", "end"))
                if arguments.get(name)}
    guests = None if arguments.get("attendees") is None else _guests(arguments["attendees"])
    if not changes and guests is None:
        raise ProductRefusal("Error: No fields provided to modify the event.")
    if desk.value(EVENT, key, "organizer") != desk.address:
        own = [answer for address, answer in guests or () if address == desk.address and answer]
        if changes or not own:
            desk.doubt("whether guests may change this event is not on record")
            _change(desk, key, changes, guests)
            _notify(desk, key, UPDATE)
        for answer in own[:1]:
            desk.write(GUEST, f"{key}|{desk.address}", answer=answer)
    else:
        _change(desk, key, changes, guests)
        _notify(desk, key, UPDATE)
    desk.acted()
    summary = desk.value(EVENT, key, "summary")
    return f"Successfully modified event '{summary}' (ID: {_id_of(key)}) for {desk.address}."


def delete_event(desk: CompanyDesk, arguments: Arguments) -> str:
    """Answer `delete_event`: the organizer cancels it. Errors: ProductRefusal, Undecided."""
    calendar = _own_calendar(desk, arguments)
    key = _event(desk, str(arguments["event_id"]))
    if desk.value(EVENT, key, "organizer") != desk.address:
        desk.doubt("how this calendar takes a guest's removal of an event is not on record")
        desk.write(GUEST, f"{key}|{desk.address}", answer="DECLINED")
    desk.write(EVENT, key, status="CANCELLED", modified=float(int(desk.now)),
               sequence=int(desk.value(EVENT, key, "sequence") or 0) + 1)
    _notify(desk, key, CANCELLATION)
    return f"Successfully deleted event (ID: {arguments['event_id']}) from calendar '{calendar}' for {desk.address}."


def _change(desk: CompanyDesk, key: str, changes: dict[str, Any], guests: list[tuple[str, str]] | None) -> None:
    """Write the organizer's changes; a new time raises the sequence; guests who stay keep their answers."""
    is_moved = any(name in changes and changes[name] != desk.value(EVENT, key, name) for name in ("start", "end"))
    values = {**changes, "modified": float(int(desk.now)), "sequence": int(desk.value(EVENT, key, "sequence") or 0) + is_moved}
    if guests is not None:
        before = guests_of(desk, key)
        named = {**dict(guests), desk.address: "ACCEPTED"}
        values["attendees"] = dict.fromkeys(sorted(named), "NEEDS-ACTION")
        for address, answer in named.items():
            if answer or address not in before:
                desk.write(GUEST, f"{key}|{address}", answer=answer or "NEEDS-ACTION")
    desk.write(EVENT, key, **values)


def _own_calendar(desk: CompanyDesk, arguments: Arguments) -> str:
    calendar = str(arguments.get("calendar_id") or "primary")
    if calendar.lower() not in ("primary", desk.address):
        desk.doubt(f"the exports do not tell who may read the calendar {calendar!r}")
    return calendar


def _id_of(key: str, stamp: str = "") -> str:
    """Return the id that the server shows of an event, or of one occurrence."""
    uid, _, changed = key.partition("/")
    return "_".join(filter(None, (uid.removesuffix(_GOOGLE), stamp or changed)))


def event_key(event_id: str, keys: Container[str]) -> str:
    """Return the UID of the event with an id of Google's."""
    return event_id + _GOOGLE if event_id + _GOOGLE in keys else event_id


def _event(desk: CompanyDesk, event_id: str) -> str:
    """Return the key of an event that the person may change, by Google's id; an occurrence becomes an event of its own.

    Errors: ProductRefusal, Undecided."""
    at = _time(desk, event_id)
    return _apart(desk, at) if at.stamp else at.key


def _time(desk: CompanyDesk, event_id: str) -> EventTime:
    """Return the event that the person sees by Google's id, or the occurrence. Errors: ProductRefusal, Undecided."""
    key = _shown_key(desk, event_id)
    if key is not None:
        return EventTime(desk.value(EVENT, key, "start") or 0, key, desk.value(EVENT, key, "end") or 0)
    match = _INSTANCE.fullmatch(event_id)
    series = _shown_key(desk, match[1]) if match else None
    if match is None or series is None:
        raise ProductRefusal("Error: Not Found")
    own = f"{series}/{match[2]}"
    if desk.exists(EVENT, own):
        if not desk.sees(EVENT, own) or desk.value(EVENT, own, "status") == "CANCELLED":
            raise ProductRefusal("Error: Not Found")
        return EventTime(desk.value(EVENT, own, "start") or 0, own, desk.value(EVENT, own, "end") or 0)
    begin = _stamp_seconds(match[2])
    at = next(_times(desk, series, (begin, begin + 1)), None) if desk.value(EVENT, series, "recurrence") is not None else None
    if at is None or at.stamp != match[2]:
        raise ProductRefusal("Error: Not Found")
    return at


def _shown_key(desk: CompanyDesk, event_id: str) -> str | None:
    return next((key for key in (event_id + _GOOGLE, event_id) if desk.exists(EVENT, key) and desk.sees(EVENT, key)
                 and desk.value(EVENT, key, "status") != "CANCELLED"), None)


def _apart(desk: CompanyDesk, at: EventTime) -> str:
    """Write one occurrence of a repeated event as an event of its own, and return its key. Errors: Undecided."""
    key = f"{at.key}/{at.stamp}"
    values = {field: desk.value(EVENT, at.key, field) for field in _OF_SERIES}
    answers = {guest: answer_of(desk, at.key, guest) for guest in guests_of(desk, at.key)}
    desk.write(EVENT, key, **values, start=at.start, end=at.end, attendees=answers, modified=float(int(desk.now)))
    for guest, answer in answers.items():
        desk.write(GUEST, f"{key}|{guest}", answer=answer)
    return key


def _between(desk: CompanyDesk, span: tuple[float, float], query: str, most: int) -> list[EventTime]:
    """Return the events that overlap a stretch of time and have a text, by their beginnings, then by id; of a repeated event
    no more than `most` occurrences. Errors: Undecided."""
    own = desk.where(EVENT, "organizer", desk.address)
    matching: list[EventTime] = []
    for key in dict.fromkeys((*desk.with_member(EVENT, "attendees", desk.address), *own)):
        if not desk.sees(EVENT, key) or (key not in own and desk.address not in guests_of(desk, key)):
            continue
        start = desk.value(EVENT, key, "start")
        if start is None or start >= span[1] or not (times := list(islice(_times(desk, key, span), most))):
            continue
        series = key.partition("/")[0]
        if "CANCELLED" in {desk.value(EVENT, each, "status") for each in (key, series) if desk.exists(EVENT, each)}:
            continue
        texts = " ".join(str(desk.value(EVENT, key, name) or "") for name in _PLAIN) if query else ""
        if query.casefold() in texts.casefold():
            matching += times
    return sorted(matching)


def _times(desk: CompanyDesk, key: str, span: tuple[float, float]) -> Iterator[EventTime]:
    """Yield when an event takes place within a stretch of time: once, or by its rule, without the occurrences that were left
    out or are events of their own. Errors: Undecided."""
    start = float(desk.value(EVENT, key, "start"))
    lasts = float(desk.value(EVENT, key, "end") or start) - start
    rule = desk.value(EVENT, key, "recurrence")
    if rule is None:
        if start + lasts > span[0]:
            yield EventTime(start, key, start + lasts)
        return
    if desk.value(EVENT, key, "more_dates"):
        raise Undecided(f"the repeated event {key} has further dates, which are not worked out")
    left_out = set(desk.value(EVENT, key, "left_out") or ())
    first = datetime.fromtimestamp(start, _zone(desk.value(EVENT, key, "zone")))
    form = "%Y%m%d" if desk.value(EVENT, key, "whole_day") else "%Y%m%dT%H%M%SZ"
    for begin in Recurrence.read(rule, first).occurrences(first):
        at = begin.timestamp()
        if at >= span[1]:
            return
        stamp = begin.astimezone(UTC).strftime(form)
        if at + lasts > span[0] and at not in left_out and not desk.exists(EVENT, f"{key}/{stamp}"):
            yield EventTime(at, key, at + lasts, stamp)


def _zone(name: str | None) -> ZoneInfo | Any:
    try:
        return ZoneInfo(name) if name else UTC
    except (ZoneInfoNotFoundError, ValueError):
        raise Undecided(f"the time zone {name!r} of a repeated event is not known here") from None


def _stamp_seconds(stamp: str) -> float:
    try:
        return datetime.strptime(stamp, "%Y%m%dT%H%M%SZ" if "T" in stamp else "%Y%m%d").replace(tzinfo=UTC).timestamp()
    except ValueError:
        raise ProductRefusal("Error: Not Found") from None


def guests_of(desk: CompanyDesk, key: str) -> list[str]:
    """Return the addresses of an event's guests, in their order."""
    return sorted(desk.last_known(EVENT, key, "attendees") or {})


def answer_of(desk: CompanyDesk, key: str, address: str) -> str:
    """Return a guest's answer; where the exports do not tell it, calls may have shown it then, or the same before and after.

    Errors: Undecided."""
    guest = f"{key}|{address}"
    if not desk.is_known(GUEST, guest, "answer"):
        rows = desk.convention(PRODUCT, "shown", {}).get(guest, ())
        now, begun = desk.now * 1_000_000, (desk.changed_at(GUEST, guest, "answer") or 0) * 1_000_000
        before = [answer for at, answer in rows if begun <= at <= now][-1:] or [desk.last_known(GUEST, guest, "answer")]
        after = [answer for at, answer in rows if at >= now][:1]
        if before == after:
            return str(after[0])
    answer = desk.value(GUEST, guest, "answer")
    return str(desk.value(EVENT, key, "attendees")[address] if answer is None else answer)


def _line(desk: CompanyDesk, at: EventTime) -> str:
    key = at.key
    begin, end = map(_day_text if desk.value(EVENT, key, "whole_day") else instant_text, (at.start, at.end))
    summary, location = desk.value(EVENT, key, "summary"), desk.value(EVENT, key, "location") or ""
    guests = ", ".join(f"{address}: {answer_of(desk, key, address)}" for address in guests_of(desk, key))
    return (f'- "{summary}" (Starts: {begin}, Ends: {end}) ID: {_id_of(key, at.stamp)} | Location: {location} | '
            f"Attendees: {guests}")


def _day_text(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d")


def _notify(desk: CompanyDesk, key: str, kind: str) -> None:
    """Send the mail that Google sends to the guests of an event."""
    text = desk.convention(PRODUCT, "mails", {}).get(kind)
    to = [address for address in guests_of(desk, key) if address != desk.address]
    if text is None or not to:
        return
    values = mail_values({name: desk.value(EVENT, key, name) for name in (*_PLAIN, "start", "end")})
    send(desk, NewMail(to, (), (), text["subject"].format_map(values), text["body"].format_map(values), (), None), kind)


def mail_values(event: dict[str, Any]) -> dict[str, str]:
    """Return what the text of an invitation may name of an event, by name."""
    values = {name: str(event.get(name) or "") for name in _PLAIN}
    for name in ("start", "end"):
        at = datetime.fromtimestamp(float(event.get(name) or 0), UTC)
        values |= {name: instant_text(at.timestamp()), f"{name}_date": at.strftime("%Y-%m-%d"),
                   f"{name}_minute": at.strftime("%Y-%m-%d %H:%M")}
    return values


def instant_text(seconds: float) -> str:
    """Return an instant as the server writes it."""
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _seconds(text: Any) -> float:
    """Return the seconds of an RFC 3339 instant or a date; UTC without a zone. Errors: ProductRefusal."""
    try:
        at = datetime.fromisoformat(str(text))
    except ValueError:
        raise ProductRefusal("Error: Bad Request") from None
    return (at if at.tzinfo else at.replace(tzinfo=UTC)).timestamp()


def _guests(value: Any) -> list[tuple[str, str]]:
    """Return guests with their answers, empty where the call states none."""
    parts: Iterable[Any] = value.split(",") if isinstance(value, str) else value or ()
    guests = []
    for part in parts:
        row = part if isinstance(part, dict) else {"email": part}
        state = str(row.get("responseStatus") or "")
        guests.append((str(row.get("email", "")).strip().lower(), {"needsAction": "NEEDS-ACTION"}.get(state, state.upper())))
    return [guest for guest in guests if guest[0]]


_WRITTEN = (EVENT, GUEST, MAIL, MAILBOX)
TOOLS: dict[str, OfficeTool] = {
    "list_calendars": OfficeTool(list_calendars),
    "get_events": OfficeTool(get_events),
    "create_event": OfficeTool(create_event, writes=_WRITTEN),
    "modify_event": OfficeTool(modify_event, writes=_WRITTEN),
    "delete_event": OfficeTool(delete_event, writes=_WRITTEN),
}
