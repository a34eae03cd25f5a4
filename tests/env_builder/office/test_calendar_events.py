"""Calendar tools answer over the events that a person is invited to, and mail the guests."""

from __future__ import annotations

import re
from typing import Any

import pytest

from env_builder.runtime.company import CompanyDesk, FieldVersion, ProductRefusal
from env_builder.runtime.office.calendar_events import TOOLS
from tests.small_company import ADA, BEN, CLEO, NEVER, NOON, desk_of, fields_of, is_open, world_of

TEXTS = {
    "calendar_events": {
        "mails": {
            "invitation": {"subject": "Invitation: {summary} @ {start_date}", "body": "{start} {location}"},
            "update": {"subject": "Moved: {summary}", "body": "{start}"},
        }
    }
}
DAY = {"time_min": "2026-03-02T13:00:00Z", "time_max": "2026-03-03"}


def event(key: str, at: float, start: float, answers: dict[str, str], guesses: int = 0, **more: Any) -> list[FieldVersion]:
    values = {
        "summary": "Tasting",
        "location": "Barn",
        "description": "",
        "organizer": ADA,
        "status": "CONFIRMED",
        "sequence": 0,
        "start": NOON + start,
        "end": NOON + start + 1800,
        **more,
    }
    versions = fields_of("cal", f"{key}@google.com", at, **values) + fields_of(
        "cal", f"{key}@google.com", at, NEVER, attendees=answers
    )
    for guest, answer in answers.items():
        versions += fields_of("cal_guest", f"{key}@google.com|{guest}", at, guesses if guest == BEN else 0, answer=answer)
    return versions


def ask(desk: CompanyDesk, tool: str, **arguments: Any) -> str:
    return TOOLS[tool].answer(desk, arguments)


WORLD = world_of(
    event("e2", -50, 7200, {ADA: "ACCEPTED", BEN: "DECLINED"}),
    event("e1", -40, 5400, {ADA: "ACCEPTED"}),
    event("e3", 50, 5400, {ADA: "ACCEPTED"}),
    event("e4", -50, 5400, {CLEO: "ACCEPTED"}, organizer=CLEO),
    event("e5", -50, 5400, {ADA: "ACCEPTED"}, status="CANCELLED"),
)


def test_events_are_shown_by_their_beginning_with_the_answers_of_guests() -> None:
    assert ask(desk_of(WORLD), "get_events", **DAY).splitlines() == [
        f"Successfully retrieved 2 events from calendar 'primary' for {ADA}:",
        '- "Tasting" (Starts: 2026-03-02T13:30:00.000Z, Ends: 2026-03-02T14:00:00.000Z) ID: e1 | Location: Barn | '
        f"Attendees: {ADA}: ACCEPTED",
        '- "Tasting" (Starts: 2026-03-02T14:00:00.000Z, Ends: 2026-03-02T14:30:00.000Z) ID: e2 | Location: Barn | '
        f"Attendees: {ADA}: ACCEPTED, {BEN}: DECLINED",
    ]
    assert ask(desk_of(WORLD), "get_events", time_min="2026-03-02T14:30:00Z").startswith(
        "No events found in calendar 'primary'"
    )
    assert ask(desk_of(WORLD), "get_events", **DAY, query="oats").startswith("No events")


def test_an_answer_that_nobody_knows_leaves_the_event_open_alone() -> None:
    world = world_of(
        event("e1", -50, 5400, {ADA: "ACCEPTED", BEN: "NEEDS-ACTION"}, NEVER), event("e2", -50, 90000, {ADA: "ACCEPTED"})
    )
    assert is_open(TOOLS, desk_of(world), "get_events", **DAY)
    assert "ID: e2" in ask(desk_of(world), "get_events", time_min="2026-03-03T12:00:00Z")
    seen = {"calendar_events": {"shown": {f"e1@google.com|{BEN}": [[round((NOON + 9) * 1e6), "NEEDS-ACTION"]]}}}
    assert f"{BEN}: NEEDS-ACTION" in ask(desk_of(world, conventions=seen), "get_events", **DAY)
    assert is_open(TOOLS, desk_of(world, conventions=seen, at=20), "get_events", **DAY)


def test_an_invitation_is_a_mail_with_the_text_of_exported_ones() -> None:
    desk = desk_of(WORLD, conventions=TEXTS)
    answer = ask(
        desk,
        "create_event",
        summary="Sowing",
        start_time="2026-03-02T15:00:00Z",
        end_time="2026-03-02T16:00:00Z",
        attendees=[BEN, "rye@farm.example"],
        location="Field",
    )
    event_id = answer.rpartition("ID: ")[2]
    assert answer == f"Successfully created event 'Sowing' for {ADA}. ID: {event_id}"
    (key,) = desk.own("mail")
    mail = desk.record("mail", key)
    assert mail is not None and (mail["to"], mail["subject"], mail["body"]) == (
        [BEN, "rye@farm.example"],
        "Invitation: Sowing @ 2026-03-02",
        "2026-03-02T15:00:00.000Z Field",
    )
    assert sorted(desk.own("mailbox")) == [f"{ADA}|{key}", f"{BEN}|{key}"]
    assert f"{BEN}: NEEDS-ACTION" in ask(desk, "get_events", event_id=event_id)
    desk.n_acts += 1
    ask(desk, "modify_event", event_id=event_id, start_time="2026-03-02T15:30:00Z")
    record = desk.record("cal", f"{event_id}@google.com")
    assert record is not None and (record["sequence"], record["start"]) == (1, NOON + 12600.0)
    assert [(desk.record("mail", own) or {})["subject"] for own in desk.own("mail")][-1] == "Moved: Sowing"


def test_without_exported_invitations_no_mail_is_made_up() -> None:
    desk = desk_of(WORLD)
    ask(
        desk, "create_event", summary="x", start_time="2026-03-02T15:00:00Z", end_time="2026-03-02T16:00:00Z", attendees=[BEN]
    )
    assert not desk.own("mail")


def test_a_guest_answers_and_changes_nothing_else() -> None:
    desk = desk_of(WORLD, BEN)
    ask(desk, "modify_event", event_id="e2", attendees=[{"email": BEN, "responseStatus": "accepted"}])
    assert f"{BEN}: ACCEPTED" in ask(desk, "get_events", event_id="e2")
    assert is_open(TOOLS, desk, "modify_event", event_id="e2", summary="Mine")
    assert is_open(TOOLS, desk, "delete_event", event_id="e2")


def test_a_cancelled_event_and_events_of_others_are_not_found() -> None:
    desk = desk_of(WORLD)
    ask(desk, "delete_event", event_id="e1")
    for event_id in ("e1", "e3", "e4", "e5"):
        with pytest.raises(ProductRefusal, match="Not Found"):
            ask(desk, "get_events", event_id=event_id)
    assert is_open(TOOLS, desk, "get_events", calendar_id=BEN)


DAILY = {"recurrence": "FREQ=DAILY;COUNT=4", "zone": "Europe/Berlin", "left_out": [], "more_dates": False}
WEEK = {"time_min": "2026-03-02T00:00:00Z", "time_max": "2026-03-09T00:00:00Z"}


def daily(start: int = -3600, **more: Any) -> CompanyDesk:
    return desk_of(world_of(event("e1", -50, start, {ADA: "ACCEPTED", BEN: "NEEDS-ACTION"}, **{**DAILY, **more})))


def shown(desk: CompanyDesk, **arguments: Any) -> list[tuple[str, str]]:
    """Return when the events of a week begin, and their ids."""
    return re.findall(r"Starts: (\S+?),.*? ID: (\S+)", ask(desk, "get_events", **{**WEEK, **arguments}))


def test_a_repeated_event_is_shown_by_its_occurrences() -> None:
    days = [(f"2026-03-0{day}T11:00:00.000Z", f"e1_2026030{day}T110000Z") for day in (2, 3, 4, 5)]
    assert shown(daily()) == days
    assert shown(daily(), max_results=2) == days[:2]
    assert shown(daily(), time_min="2026-03-04T11:15:00Z") == days[2:]
    assert shown(daily(left_out=[NOON - 3600 + 86400])) == [days[0], *days[2:]]
    assert shown(daily(), event_id=days[1][1]) == days[1:2]
    assert shown(daily(-43200, whole_day=True, end=NOON + 43200, zone=None))[1] == ("2026-03-03", "e1_20260303")


@pytest.mark.parametrize("more", [{"recurrence": "FREQ=HOURLY"}, {"more_dates": True}, {"zone": "Nowhere/Else"}])
def test_repeated_events_that_are_not_worked_out_are_open(more: dict[str, Any]) -> None:
    assert is_open(TOOLS, daily(**more), "get_events", **WEEK)


def test_a_changed_occurrence_is_an_event_of_its_own() -> None:
    desk = daily()
    moved = {"start_time": "2026-03-06T08:00:00Z", "end_time": "2026-03-06T09:00:00Z"}
    ask(desk, "modify_event", event_id="e1_20260303T110000Z", **moved)
    ask(desk, "delete_event", event_id="e1_20260304T110000Z")
    changed = ("2026-03-06T08:00:00.000Z", "e1_20260303T110000Z")
    assert shown(desk) == [
        *((f"2026-03-0{day}T11:00:00.000Z", f"e1_2026030{day}T110000Z") for day in (2, 5)), changed]
    assert shown(desk, event_id=changed[1]) == [changed]
    for gone in ("e1_20260304T110000Z", "e1_20260307T110000Z", "e1_20261399", "e1_x"):
        with pytest.raises(ProductRefusal, match="Not Found"):
            ask(desk, "get_events", event_id=gone)
    ask(desk, "delete_event", event_id="e1")
    assert shown(desk) == []



@pytest.mark.parametrize("times", [("2026-03-02T15:00:00Z", "2026-03-02T14:00:00Z"), ("noon", "2026-03-02T14:00:00Z")])
def test_impossible_times_are_refused(times: tuple[str, str]) -> None:
    with pytest.raises(ProductRefusal):
        ask(desk_of(WORLD), "create_event", summary="x", start_time=times[0], end_time=times[1])
