"""What recorded calls teach of a company's Google Workspace."""

from __future__ import annotations

import hashlib
from typing import Any

from env_builder.company.calls import RecordedCall
from env_builder.company.conventions import learn
from env_builder.runtime.company import FieldVersion
from env_builder.runtime.office.calendar_events import TOOLS as CALENDAR
from tests.small_company import ADA, BEN, NEVER, NOON, desk_of, fields_of, mail_of, world_of


def call(at: float, tool: str, content: str, acting_for: str = ADA, is_error: bool = False, **arguments: Any) -> RecordedCall:
    return RecordedCall(round((NOON + at) * 1e6), acting_for, tool, arguments, content, is_error)


def sent(number: int, own: str) -> RecordedCall:
    return call(
        number * 100, "send_gmail_message", f"Email sent! Message ID: {own}", to=BEN, subject=f"Nr {number}", body="x"
    )


MAILS = world_of(*(mail_of(f"<{number}@x>", number * 100, ADA, [BEN], f"Nr {number}", "x") for number in range(6)))


def digest(number: int) -> str:
    return hashlib.sha1(f"msg:<{number}@x>".encode(), usedforsecurity=False).hexdigest()[:16]


def test_ids_that_follow_from_the_message_id_are_a_rule() -> None:
    learnt = learn([sent(number, digest(number)) for number in range(6)], MAILS)
    assert learnt["gmail"]["ids"] == {"algorithm": "sha1", "before": "msg:", "length": 16}


def test_one_id_that_fails_the_rule_leaves_single_ids() -> None:
    learnt = learn([sent(number, digest(number) if number else "0" * 16) for number in range(6)], MAILS)
    assert learnt["gmail"] == {"known_ids": {"0" * 16: "<0@x>", **{digest(n): f"<{n}@x>" for n in range(1, 6)}}}


def test_a_message_that_two_mails_fit_teaches_no_id() -> None:
    twins = world_of(mail_of("<1@x>", 100, ADA, [BEN], "Nr 1", "x"), mail_of("<2@x>", 101, ADA, [BEN], "Nr 1", "x"))
    assert learn([sent(1, "ab")], twins) == {}


def test_a_shown_message_teaches_its_id() -> None:
    shown = call(900, "get_gmail_message_content", f"Subject: Nr 3\nFrom:    {ADA}\n\n--- BODY ---\nx", BEN, message_id="id3")
    early = call(10, "get_gmail_message_content", f"Subject: Nr 4\nFrom:    {ADA}\n\n--- BODY ---\nx", BEN, message_id="id4")
    assert learn([shown, early], MAILS)["gmail"] == {"known_ids": {"id3": "<3@x>"}}


def test_searches_teach_whether_parts_of_words_match_and_when_days_begin() -> None:
    ids = [sent(number, f"id{number}") for number in range(6)]
    nothing = call(900, "search_gmail_messages", "No messages found for 'subject:n'.", query="subject:n")
    all_of_them = call(
        900,
        "search_gmail_messages",
        "\n".join(["Found 6 messages:", *(f"- ID: id{number}" for number in reversed(range(6)))]),
        query="subject:n",
    )
    assert learn([*ids, nothing], MAILS)["gmail"]["part_words"] is False
    assert learn([*ids, all_of_them], MAILS)["gmail"]["part_words"] is True
    assert "part_words" not in learn([*ids, nothing, all_of_them], MAILS)["gmail"]
    night = world_of(mail_of("<0@x>", -9 * 3600, ADA, [BEN], "Nr 0", "x"))
    told = [call(-9 * 3600, "send_gmail_message", "Email sent! Message ID: id0", to=BEN, subject="Nr 0", body="x")]
    found = call(900, "search_gmail_messages", "Found 1 messages:\n- ID: id0", query="after:2026/03/02")
    assert learn([*told, found], night)["gmail"]["midnight"] == 0


def test_changes_of_labels_teach_whether_the_labels_are_named() -> None:
    text = "Message labels updated successfully!\nMessage ID: a"
    for content, is_named in ((text, False), (f"{text}\nAdded labels: x", True)):
        learnt = learn([call(1, "modify_gmail_message_labels", content, message_id="a", add_label_ids=["x"])], MAILS)
        assert learnt["gmail"]["label_actions"] is is_named


def test_a_server_without_links_is_bare() -> None:
    calls = [call(number, "create_event", f"Successfully created event 'x' for {ADA}. ID: e{number}") for number in range(5)]
    assert learn(calls, MAILS) == {"gmail": {"label_actions": False}}
    assert learn(calls[:4], MAILS) == {}
    linked = call(9, "create_event", f"Successfully created event 'x' for {ADA}. Link: https://c.example/e")
    assert learn([*calls, linked], MAILS) == {}


def event_with_mail(number: int, subject: str) -> list[FieldVersion]:
    at, day = -5000 + number * 100, 86400 * number
    key = f"e{number}@google.com"
    event = fields_of(
        "cal",
        key,
        at,
        summary=f"Event {number}",
        location="Barn",
        description="",
        start=float(NOON + day),
        end=float(NOON + day + 900),
        organizer=ADA,
        status="CONFIRMED",
        sequence=0,
        attendees={ADA: "ACCEPTED", BEN: "NEEDS-ACTION"},
    )
    guest = fields_of("cal_guest", f"{key}|{BEN}", at, NEVER, answer="NEEDS-ACTION")
    guest += fields_of("cal_guest", f"{key}|{ADA}", at, answer="ACCEPTED")
    body = f"Event {number} in Barn"
    return [*event, *guest, *mail_of(f"<i{number}@x>", at, ADA, [BEN], subject.format(number=number), body)]


def test_invitations_have_the_text_that_most_exported_ones_have() -> None:
    world = world_of(
        *(event_with_mail(number, "Come: Event {number}" if number else "Event {number}!") for number in range(5))
    )
    assert learn([], world)["calendar_events"]["mails"] == {
        "invitation": {"subject": "Come: {summary}", "body": "{summary} in {location}"}
    }
    mixed = world_of(
        *(event_with_mail(number, "Come: Event {number}" if number % 2 else "Event {number}!") for number in range(4))
    )
    assert "calendar_events" not in learn([], mixed)


def test_an_answer_that_a_call_showed_is_known_at_that_instant() -> None:
    world = world_of(event_with_mail(1, "Come: Event {number}"))
    line = f'- "Event 1" (Starts: a, Ends: b) ID: e1 | Location: Barn | Attendees: {ADA}: ACCEPTED, {BEN}: TENTATIVE'
    learnt = learn([call(50, "get_events", f"Successfully retrieved 1 events:\n{line}")], world)
    assert learnt["calendar_events"]["shown"][f"e1@google.com|{BEN}"] == [[round((NOON + 50) * 1e6), "TENTATIVE"]]
    answer = CALENDAR["get_events"].answer(desk_of(world, at=50, conventions=learnt), {"event_id": "e1"})
    assert f"{BEN}: TENTATIVE" in answer
