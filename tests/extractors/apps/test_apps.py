"""Readers of the exports of a company's apps."""

from __future__ import annotations

import base64
import io
import json
import tomllib
import zipfile
from pathlib import Path
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from env_builder.runtime.company import CompanyWorld
from extractors.apps.calendar import APP as CALENDAR
from extractors.apps.history import FieldChange, FieldSource, scalar_versions, set_versions
from extractors.apps.mail import APP as MAIL
from extractors.apps.version import AppVersion, ExportFile, UnreadPart
from tests.extractors.apps.exports import NAMES, all_apps, at, read_files, state_of

ROOT = Path(__file__).resolve().parents[3]
_USERS = [{"id": "U1", "profile": {"email": "ada@example.org"}}, {"id": "U2", "deleted": True, "profile": {}}]
_ROOM = {"id": "C1", "name": "hall", "created": 1000, "members": ["U1"], "topic": {"value": "", "last_set": 0}}


def slack(messages: list[dict[str, Any]], **room: Any) -> dict[str, Any]:
    return {"s/users.json": _USERS, "s/channels.json": [{**_ROOM, **room}], "s/hall/1970-01-01.json": messages}


def test_entry_points_name_every_app() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    points = project["project"]["entry-points"]["traceroom.apps"]
    assert points == {name: f"extractors.apps.{name}:APP" for name in NAMES}
    assert sorted(app.name for app in all_apps()) == sorted(NAMES)


def test_text_before_an_edit_is_unknown_and_after_it_known() -> None:
    files = slack([{"type": "message", "user": "U1", "text": "blue", "ts": "2000.000001",
                    "edited": {"user": "U1", "ts": "3000.000000"}}])
    before, after = (state_of(files, instant).get("slack", "C1/2000.000001") for instant in ("2500", "3000"))
    assert (before["text"].is_known, before["text"].value) == (False, None)
    assert (after["text"].is_known, after["text"].value, after["edited"].value) == (True, "blue", "3000.000000")
    assert not before["edited"].is_known


def test_a_deletion_that_an_event_reports_is_obeyed() -> None:
    old = {"type": "message", "user": "U1", "text": "secret word", "ts": "2000.000001"}
    gone = {"type": "message", "subtype": "message_deleted", "ts": "3000.000000", "deleted_ts": "2000.000001",
            "previous_message": old}
    for messages in ([gone], [old, gone], [gone, old]):
        files = slack(messages)
        before, after = (state_of(files, instant) for instant in ("2500", "3000"))
        message = before.get("slack", "C1/2000.000001")
        assert (message["user"].value, message["text"].is_known) == ("U1", False)
        assert list(after.ids("slack")) == []
        assert "secret word" not in json.dumps([version.value for version in after.world.versions])


def test_an_edit_that_an_event_reports_tells_the_text_before_it() -> None:
    now = {"type": "message", "user": "U1", "text": "green", "ts": "2000.000001", "edited": {"user": "U1", "ts": "4000.000000"}}
    change = {"type": "message", "subtype": "message_changed", "ts": "4000.000100", "message": now,
              "previous_message": {**now, "text": "blue", "edited": None}}
    texts = [state_of(slack([now, change]), instant).get("slack", "C1/2000.000001")["text"] for instant in ("3000", "4000")]
    assert [(text.value, text.is_known) for text in texts] == [("blue", True), ("green", True)]


def test_members_and_replies_of_later_are_absent() -> None:
    files = slack([{"type": "message", "subtype": "channel_join", "user": "U1", "text": "", "ts": "2000.000001"},
                   {"type": "message", "user": "U1", "text": "b", "ts": "4000.000001", "thread_ts": "2000.000001"}])
    early = state_of(files, "1500")
    assert early.get("slack_channel", "C1")["members"].value == []
    assert list(early.ids("slack")) == []
    later = state_of(files, "3000")
    assert later.get("slack_channel", "C1")["members"].value == ["U1"]
    assert list(later.ids("slack")) == ["C1/2000.000001"]


def test_a_member_who_wrote_and_is_not_listed_makes_members_unknown() -> None:
    state = state_of(slack([{"type": "message", "user": "U2", "text": "hi", "ts": "2000.000001"}]), "2500")
    assert not state.get("slack_channel", "C1")["members"].is_known
    assert state.get("slack_user", "U2")["deleted"].is_known is False
    assert state_of(slack([{"type": "message", "user": "U2", "text": "hi", "ts": "2000.000001"}]), "1999").get(
        "slack_user", "U2")["deleted"].value is False


def test_a_bad_message_is_rejected_and_the_rest_is_read() -> None:
    reading = read_files(slack([{"type": "message", "text": "no time", "user": "U1"},
                                {"type": "message", "text": "x", "user": "U1", "ts": "2000.5"}]))
    assert [(part.where, part.reason) for part in reading.unread] == [("0", "bad_row")]
    assert any(version.entity_class == "slack" for version in reading.versions)


def issue(**fields: Any) -> dict[str, Any]:
    changelog = {"total": 2, "histories": [
        {"id": "12", "created": "2026-01-03T10:00:00.000+0000", "author": {"accountId": "a1"}, "items": [
            {"field": "status", "fieldId": "status", "fromString": "Doing", "toString": "Done"},
            {"field": "resolution", "fieldId": "resolution", "fromString": None, "toString": "Fixed"}]},
        {"id": "11", "created": "2026-01-03T10:00:00.000+0000", "author": {"accountId": "a1"}, "items": [
            {"field": "status", "fieldId": "status", "fromString": "Open", "toString": "Doing"}]}]}
    return {"issues": [{"key": "K-1", "changelog": changelog, "fields": {
        "created": "2026-01-02T10:00:00.000+0000", "updated": "2026-01-04T10:00:00.000+0000", "issuetype": {"name": "Task"},
        "status": {"name": "Done"}, "resolution": {"name": "Fixed"}, "resolutiondate": "2026-01-03T10:00:00.000+0000",
        "project": {"key": "K"}, "labels": ["b", "c"], "creator": {"accountId": "a1"}, "customfield_9": {"value": "high"},
        "comment": {"total": 1, "comments": [{
            "id": "7", "author": {"accountId": "a1"}, "body": "last", "created": "2026-01-02T11:00:00.000+0000",
            "updated": "2026-01-04T10:00:00.000+0000"}]}, **fields}}]}


def test_fields_of_an_issue_follow_its_changelog_in_the_vendors_order() -> None:
    files = {"j/search.json": issue(), "j/field.json": [{"id": "customfield_9", "name": "How bad"}]}
    before = state_of(files, "2026-01-03T09:59:59Z").values("jira", "K-1")
    after = state_of(files, "2026-01-03T10:00:00Z").values("jira", "K-1")
    assert (before["status"], before["resolution"], before["resolved"]) == ("Open", None, None)
    assert (after["status"], after["resolution"], after["resolved"]) == ("Done", "Fixed", at("2026-01-03T10:00:00Z") / 1e6)
    assert before["updated"] == at("2026-01-02T11:00:00Z") / 1e6
    assert before["how_bad"] == "high"
    assert "watchers" not in before
    assert not state_of(files, "2026-01-03T10:00:00Z").get("jira_comment", "7")["body"].is_known


def test_a_cut_changelog_makes_what_came_before_it_unknown() -> None:
    files = {"j/search.json": issue()}
    files["j/search.json"]["issues"][0]["changelog"]["total"] = 5
    assert "status" not in state_of(files, "2026-01-02T12:00:00Z").values("jira", "K-1")
    assert state_of(files, "2026-01-03T10:00:00Z").values("jira", "K-1")["status"] == "Done"


def test_pages_have_the_body_of_their_version_and_gaps_are_unknown() -> None:
    def version(number: int, day: int, **more: Any) -> dict[str, Any]:
        return {"id": "9", "title": f"t{number}", "version": {"number": number, "when": f"2026-01-0{day}T00:00:00.000Z",
                "by": {"accountId": "a"}}, "body": {"storage": {"value": f"b{number}"}}, **more}

    last = version(4, 8, space={"key": "S"}, ancestors=[{"id": "1"}], history={"createdDate": "2026-01-01T00:00:00.000Z"},
                   metadata={"labels": {"results": [{"name": "x"}]}})
    files = {"c/9.json": last, "v/9.json": {"results": [version(1, 1), version(2, 3)]}}
    assert state_of(files, "2026-01-02").values("wiki", "9") | {"type": "page"} == {
        "author": "a", "created": at("2026-01-01") / 1e6, "status": "current", "space": "S", "parent": "1", "title": "t1",
        "body": "b1", "version": 1, "type": "page"}
    assert "body" not in state_of(files, "2026-01-05").values("wiki", "9")   # version 3 is missing
    assert state_of(files, "2026-01-08").values("wiki", "9")["body"] == "b4"


MBOX = b"""From 1@xxx Mon Mar 02 09:00:00 +0000 2026
X-GM-THRID: 255
X-Gmail-Labels: Inbox,Unread
From: =?utf-8?q?Zo=C3=AB?= <zoe@example.org>
To: ada@example.org,
 bob@example.org
Subject: a long
 subject
Date: Mon, 02 Mar 2026 09:00:00 +0000
Message-ID: <1@example.org>

>From now on we meet at ten.
>>From there on we see.

From 2@xxx Mon Mar 02 10:00:00 +0000 2026
X-Gmail-Labels: Sent
From: ada@example.org
To: zoe@example.org
Subject: Re: a long subject
Date: Mon, 02 Mar 2026 10:00:00 +0000
In-Reply-To: <1@example.org>
Message-ID: <2@example.org>

Fine.

From here the text goes on.
"""


def test_mails_are_unfolded_unescaped_and_threaded() -> None:
    state = state_of({"m/ada@example.org.mbox": MBOX}, "2026-03-03")
    first, second = (state.values("mail", f"<{number}@example.org>") for number in (1, 2))
    assert first["body"] == "From now on we meet at ten.\n>From there on we see."
    assert (first["name"], first["to"]) == ("Zoë", ["ada@example.org", "bob@example.org"])
    assert (first["subject"], first["thread"]) == ("a long subject", "00000000000000ff")
    assert second["body"] == "Fine.\n\nFrom here the text goes on."
    assert second["thread"] == "<1@example.org>"
    assert state.values("mailbox", "ada@example.org|<2@example.org>") == {"labels": ["SENT"]}
    assert not state.get("mailbox", "ada@example.org|<1@example.org>")["labels"].is_known


def test_gmail_and_maildir_messages_are_the_same_mail() -> None:
    text = base64.urlsafe_b64encode("Grüße".encode()).decode().rstrip("=")
    gmail = {"id": "1a", "threadId": "f1", "labelIds": ["INBOX"], "payload": {
        "mimeType": "text/plain", "body": {"data": text}, "headers": [
            {"name": "From", "value": "Z <z@example.org>"}, {"name": "Date", "value": "Mon, 02 Mar 2026 09:00:00 +0000"},
            {"name": "Message-ID", "value": "<1@example.org>"}, {"name": "Subject", "value": "s"},
            {"name": "Content-Type", "value": 'text/plain; charset="utf-8"'}]}}
    maildir = ("From: Z <z@example.org>\nDate: Mon, 02 Mar 2026 09:00:00 +0000\nMessage-ID: <1@example.org>\nSubject: s\n"
               "Content-Type: text/plain; charset=utf-8\nContent-Transfer-Encoding: 8bit\n\nGrüße\n").encode()
    state = state_of({"g/ada@example.org.json": gmail, "d/bob@example.org/cur/1.host:2,S": maildir}, "2026-03-03")
    assert list(state.ids("mail")) == ["<1@example.org>"]
    assert state.values("mail", "<1@example.org>")["body"] == "Grüße"
    assert state.values("mail", "<1@example.org>")["thread"] == "f1"
    assert sorted(state.ids("mailbox")) == ["ada@example.org|<1@example.org>", "bob@example.org|<1@example.org>"]


@given(st.lists(st.text(st.characters(codec="ascii", exclude_characters="\r\x00"), max_size=40), max_size=6))
def test_any_text_survives_an_mbox(lines: list[str]) -> None:
    text = "\n".join(" ".join(line.split("\n")) for line in lines).rstrip("\n")
    escaped = "\n".join(">" + line if line.lstrip(">").startswith("From ") else line for line in text.split("\n"))
    box = f"From a\nFrom: a@b.cd\nDate: Mon, 02 Mar 2026 09:00:00 +0000\nMessage-ID: <1@b>\n\n{escaped}\n\n"
    box += "From b\nFrom: a@b.cd\nDate: Mon, 02 Mar 2026 09:00:00 +0000\nMessage-ID: <2@b>\n\nx\n"
    rows = list(MAIL.read([ExportFile("a@b.cd.mbox", box.encode())]))
    bodies = {row.entity_id: row.value for row in rows if isinstance(row, AppVersion) and row.field == "body"}
    assert bodies == {"<1@b>": text, "<2@b>": "x"}


def event(method: str, sequence: int, stamp: str, start: str, answer: str = "NEEDS-ACTION", modified: str = "") -> str:
    return "\r\n".join((
        "BEGIN:VCALENDAR", *([f"METHOD:{method}"] if method else []), "BEGIN:VEVENT", "UID:e1", f"DTSTART:{start}",
        "DTEND;TZID=Europe/Berlin:20260401T130000", f"DTSTAMP:{stamp}", "CREATED:20260301T080000Z", f"SEQUENCE:{sequence}",
        f"LAST-MODIFIED:{modified or stamp}", "ORGANIZER:mailto:ada@example.org", "SUMMARY:Plan\\, with a long",
        "  title", f"ATTENDEE;PARTSTAT={answer}:mailto:bob@example.org", "STATUS:CONFIRMED", "BEGIN:VALARM",
        "SUMMARY:no", "END:VALARM", "END:VEVENT", "END:VCALENDAR", ""))


def invitation(number: int, date: str, calendar: str) -> str:
    return (f"From x\nFrom: ada@example.org\nTo: bob@example.org\nDate: {date}\nMessage-ID: <{number}@example.org>\n"
            f"Subject: i\nContent-Type: text/calendar; charset=utf-8; method=REQUEST\n\n{calendar}\n\n")


def test_events_move_with_their_invitations_and_answers_are_unknown() -> None:
    box = invitation(1, "Sun, 01 Mar 2026 08:00:00 +0000", event("REQUEST", 0, "20260301T080000Z", "20260401T100000Z"))
    box += invitation(2, "Mon, 02 Mar 2026 08:00:00 +0000", event("REQUEST", 1, "20260302T080000Z", "20260402T100000Z"))
    box += invitation(3, "Thu, 05 Mar 2026 08:00:00 +0000", event("CANCEL", 2, "20260305T080000Z", "20260402T100000Z"))
    files = {"m/ada@example.org.mbox": box.encode(), "c/ada@example.org.ics": event(
        "", 1, "20260302T080000Z", "20260402T100000Z", "ACCEPTED", "20260303T080000Z").encode()}
    first, moved, last = (state_of(files, f"2026-03-0{day}T09:00:00Z").get("cal", "e1") for day in (1, 2, 6))
    assert first["start"].value == at("2026-04-01T10:00:00Z") / 1e6
    assert first["summary"].value == "Plan, with a long title"
    assert first["end"].value == at("2026-04-01T11:00:00Z") / 1e6
    assert moved["start"].value == at("2026-04-02T10:00:00Z") / 1e6
    assert not first["attendees"].is_known and not moved["modified"].is_known
    assert (last["status"].value, moved["status"].value) == ("CANCELLED", "CONFIRMED")


def test_repeated_events_keep_their_rule_and_changed_occurrences() -> None:
    def calendar(*lines: str) -> str:
        made = ("DTSTAMP:20260301T080000Z", "CREATED:20260301T080000Z")
        return "\r\n".join(("BEGIN:VEVENT", "UID:e1", *lines, *made, "END:VEVENT"))

    series = calendar("DTSTART;TZID=Europe/Berlin:20260302T110000", "RRULE:FREQ=WEEKLY",
                      "EXDATE;TZID=Europe/Berlin:20260309T110000,20260316T110000")
    moved = calendar("RECURRENCE-ID;TZID=Europe/Berlin:20260406T110000", "DTSTART:20260407T100000Z")
    state = state_of({"c/ada@example.org.ics": f"BEGIN:VCALENDAR\r\n{series}\r\n{moved}\r\nEND:VCALENDAR".encode()},
                     "2026-03-02T00:00:00Z")
    fields = state.values("cal", "e1")
    assert (fields["recurrence"], fields["zone"], fields["more_dates"]) == ("FREQ=WEEKLY", "Europe/Berlin", False)
    assert fields["left_out"] == [at(f"2026-03-{day}T10:00:00Z") / 1e6 for day in ("09", "16")]
    assert state.values("cal", "e1/20260406T090000Z")["start"] == at("2026-04-07T10:00:00Z") / 1e6


def test_an_event_in_a_zone_that_nobody_knows_is_rejected() -> None:
    text = "BEGIN:VCALENDAR\r\nBEGIN:VEVENT\r\nUID:e1\r\nDTSTART;TZID=Moon/Base:20260302T110000\r\nEND:VEVENT\r\nEND:VCALENDAR"
    unread, = CALENDAR.read([ExportFile("c/ada@example.org.ics", text.encode())])
    assert isinstance(unread, UnreadPart)
    assert unread.where == "e1" and "Moon/Base" in unread.detail


def workbook(cells: str, shared: str = "") -> bytes:
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as archive:
        archive.writestr("xl/workbook.xml", '<workbook xmlns:r="r"><sheets><sheet name="T" r:id="i"/></sheets></workbook>')
        archive.writestr("xl/_rels/workbook.xml.rels", '<r><Relationship Id="i" Target="/xl/worksheets/a.xml"/></r>')
        archive.writestr("xl/sharedStrings.xml", f"<sst>{shared}</sst>")
        archive.writestr("xl/worksheets/a.xml", f"<worksheet><sheetData>{cells}</sheetData></worksheet>")
    return content.getvalue()


def test_workbooks_show_the_cells_of_each_revision() -> None:
    old = workbook('<row r="1"><c r="A1" t="s"><v>0</v></c><c r="C1"><v>2.0</v></c></row>',
                   "<si><r><t>a</t></r><r><t>b</t></r><rPh><t>no</t></rPh></si>")
    new = workbook('<row r="2"><c r="B2"><f>SUM(A1:A9)</f><v>3</v></c></row>')
    files = {"d/files.json": {"files": [{"id": "f", "name": "Plan", "createdTime": "2026-01-01T00:00:00Z",
             "owners": [{"emailAddress": "ada@example.org"}], "revisions": [
                 {"id": "1", "modifiedTime": "2026-01-01T00:00:00Z", "file": "r/1.xlsx"},
                 {"id": "2", "modifiedTime": "2026-01-02T00:00:00Z", "file": "r/2.xlsx"}]}]},
             "d/r/1.xlsx": old, "d/r/2.xlsx": new}
    assert state_of(files, "2026-01-01T12:00:00Z").values("sheet", "f")["!T"] == [["ab", "", "2"]]
    assert state_of(files, "2026-01-02T12:00:00Z").values("sheet", "f")["!T"] == [["", ""], ["", "=SUM(A1:A9)"]]
    del files["d/r/2.xlsx"]
    assert [(part.where, part.reason) for part in read_files(files).unread] == [("f/2", "missing_content")]


def test_pull_requests_follow_their_timeline() -> None:
    row = {"number": 5, "created_at": "2026-01-01T00:00:00Z", "updated_at": "2026-01-03T00:00:00Z", "title": "new", "body": "b",
           "closed_at": "2026-01-03T00:00:00Z", "state": "closed", "user": {"login": "ada"},
           "html_url": "https://github.com/o/r/pull/5", "labels": [],
           "pull_request": {"merged_at": "2026-01-03T00:00:00Z"}, "timeline": [
               {"event": "labeled", "id": 1, "created_at": "2026-01-01T00:00:00Z", "label": {"name": "x"}},
               {"event": "renamed", "id": 2, "created_at": "2026-01-02T00:00:00Z", "rename": {"from": "old", "to": "new"}},
               {"event": "unlabeled", "id": 3, "created_at": "2026-01-02T00:00:00Z", "label": {"name": "x"}},
               {"event": "commented", "id": 4, "created_at": "2026-01-02T00:00:00Z", "user": {"login": "bob"}, "body": "ok"},
               {"event": "merged", "id": 6, "created_at": "2026-01-03T00:00:00Z"},
               {"event": "closed", "id": 7, "created_at": "2026-01-03T00:00:00Z"}]}
    first, last = (state_of({"g/5.json": row}, f"2026-01-0{day}T12:00:00Z").values("gh", "r#5") for day in (1, 3))
    fields = ("title", "labels", "comments", "state", "merged")
    assert [first[name] for name in fields] == ["old", ["x"], 0, "open", False]
    assert [last[name] for name in fields] == ["new", [], 1, "closed", True]


def test_rows_follow_the_logs_positions_and_deletes() -> None:
    def change(operation: str, lsn: int, before: Any, after: Any) -> dict[str, Any]:
        return {"op": operation, "before": before, "after": after, "ts_ms": 1_767_225_600_000,
                "source": {"table": "t", "connector": "p", "lsn": lsn, "ts_ms": 1_767_225_600_000 + (lsn // 100) * 1000}}

    lines = [change("u", 12, {"no": 1, "v": "a"}, {"no": 1, "v": "b"}), change("c", 11, None, {"no": 1, "v": "a"}),
             change("d", 100, {"no": 1, "v": "b"}, None)]
    files = {"x/1.jsonl": "\n".join(map(json.dumps, lines)).encode(),
             "x/s.sql": b"create table t (no int primary key, v text);"}
    assert state_of(files, "2026-01-01T00:00:00Z").values("db", "t/1") == {"no": 1, "v": "b"}
    assert not state_of(files, "2026-01-01T00:00:01Z").exists("db", "t/1")


def test_tables_have_their_declared_columns_and_keys() -> None:
    statements = (b"create table t (no int primary key, -- the number, given\n v varchar(20) not null default 'a, b',"
                  b" p numeric(10,2), unique (v, p));")
    row = {"op": "c", "before": None, "after": {"no": 1, "v": "x", "p": 1.5}, "ts_ms": 1_767_225_600_000,
           "source": {"table": "t", "lsn": 1, "ts_ms": 1_767_225_600_000}}
    state = state_of({"x/s.sql": statements, "x/c.jsonl": json.dumps(row).encode()}, "2026-01-03T12:00:00Z")
    assert state.values("db_table", "t") == {"columns": {"no": "int", "v": "varchar(20)", "p": "numeric(10,2)"}, "key": ["no"]}


def test_repositories_and_logins_have_what_their_answers_show() -> None:
    row = {"number": 5, "title": "x", "state": "open", "created_at": "2026-01-02T12:00:00.250Z",
           "user": {"login": "a", "type": "Bot"}, "html_url": "https://github.com/o/r/issues/5", "timeline": []}
    state = state_of({"g/5.json": row}, "2026-01-03T12:00:00Z")
    assert state.values("gh_repo", "r") == {
        "full_name": "o/r", "address": "https://github.com/o/r", "digits": 3, "pull_members": [],
        "issue_members": sorted(set(row) - {"timeline"})}
    assert state.values("gh_user", "a") == {"type": "Bot"}
    assert not state_of({"g/5.json": row}, "2026-01-01T12:00:00Z").exists("gh_user", "a")


def test_a_file_that_nobody_reads_is_listed_with_the_reason() -> None:
    reading = read_files({"a/notes.bin": b"\x00\x01", "a/users.json": [{"accountId": "1", "displayName": "A"}]})
    assert [(part.path, part.reason) for part in reading.unread] == [("a/notes.bin", "no_reader")]
    assert reading.app_of == {"a/users.json": "jira"}


_CHANGES = st.lists(st.tuples(st.integers(1, 50), st.sampled_from("abc")), max_size=8)


@given(_CHANGES)
def test_a_whole_log_gives_back_every_state(changes: list[tuple[int, str]]) -> None:
    source = FieldSource("c", "i", "f", 0, "")
    log, value, states = [], "start", [(0, "start")]
    for sequence, (instant, after) in enumerate(sorted(changes, key=lambda change: change[0])):
        log.append(FieldChange(instant, sequence, value, after))
        value = after
        states.append((instant, value))
    world = CompanyWorld(scalar_versions(source, value, reversed(log)))
    for instant in range(52):
        field = world.at(instant).get("c", "i")["f"]
        assert (field.value, field.is_known) == ([state for since, state in states if since <= instant][-1], True)


@given(_CHANGES, st.sampled_from("xyz"))
def test_a_log_that_misses_the_last_change_claims_nothing_after_it(changes: list[tuple[int, str]], last: str) -> None:
    source, value, log = FieldSource("c", "i", "f", 0, ""), "start", []
    for sequence, (instant, after) in enumerate(sorted(changes, key=lambda change: change[0])):
        log.append(FieldChange(instant, sequence, value, after))
        value = after
    world = CompanyWorld(scalar_versions(source, last, log))
    if log:
        assert not world.at(60).get("c", "i")["f"].is_known


@given(st.lists(st.tuples(st.sampled_from("abcd"), st.booleans()), max_size=10))
def test_lists_are_undone_to_what_they_were(steps: list[tuple[str, bool]]) -> None:
    members: set[str] = {"a"}
    log, states = [], [set(members)]
    for number, (name, is_added) in enumerate(steps, start=1):
        if is_added == (name in members):
            continue
        members = members | {name} if is_added else members - {name}
        log.append(FieldChange(number, 0, [] if is_added else [name], [name] if is_added else []))
        states.append(set(members))
    versions = list(set_versions(FieldSource("c", "i", "f", 0, ""), sorted(members), log))
    assert [set(version.value) for version in versions] == states


def test_a_document_of_revisions_in_text_is_read_from_its_own_folder() -> None:
    files = {"d/files.json": {"files": [{"id": "f", "name": "Notes", "createdTime": "2026-01-01T00:00:00Z", "revisions": [
        {"id": "1", "modifiedTime": "2026-01-01T00:00:00Z", "file": "r/f/1.md"}]}]}, "d/r/f/1.md": b"# one\n"}
    assert state_of(files, "2026-01-02").values("sheet", "f")["text"] == "# one\n"


def test_an_mbox_with_carriage_returns_is_the_same() -> None:
    one, other = (state_of({"m/ada@example.org.mbox": box}, "2026-03-03") for box in (MBOX, MBOX.replace(b"\n", b"\r\n")))
    assert list(one.fields()) == list(other.fields())


_EXPORTS: dict[str, Any] = {
    "j/search.json": issue(), "m/ada@example.org.mbox": MBOX,
    "c/a.ics": event("", 1, "20260302T080000Z", "20260402T100000Z").encode(),
    "d/files.json": {"files": [{"id": "f", "createdTime": "2026-01-01T00:00:00Z", "revisions": [
        {"id": "1", "modifiedTime": "2026-01-01T00:00:00Z", "file": "1.xlsx"}]}]},
    "d/1.xlsx": workbook("<row><c><v>2</v></c></row>"),
    **slack([{"type": "message", "user": "U1", "text": "x", "ts": "2000.5"}])}


@given(st.sampled_from(sorted(_EXPORTS)), st.integers(0, 3000), st.binary(max_size=3), st.integers(0, 20))
def test_damaged_files_are_rejected_and_never_raise(path: str, where: int, new: bytes, n_lost: int) -> None:
    content = _EXPORTS[path] if isinstance(_EXPORTS[path], bytes) else json.dumps(_EXPORTS[path]).encode()
    files = dict(_EXPORTS)
    files[path] = content[:where % len(content)] + new + content[where % len(content) + n_lost:]
    reading = read_files(files)
    assert {*reading.app_of, *(part.path for part in reading.unread)} >= set(files)
    assert list(CompanyWorld(reading.versions).at(at("2026-03-03")).fields())


_NAMES = ("id", "ts", "key", "fields", "created", "version")
_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(_NAMES), inner, max_size=3))
_JSON = tuple(path for path in _EXPORTS if path.endswith(".json"))


@given(st.sampled_from(_JSON), _VALUES, st.data())
def test_values_of_another_shape_are_rejected_and_never_raise(path: str, value: Any, data: st.DataObject) -> None:
    files = {**_EXPORTS, path: json.loads(json.dumps(_EXPORTS[path]))}
    place: Any = files
    key: Any = path
    while isinstance(place[key], (dict, list)) and place[key] and data.draw(st.booleans()):
        place, key = place[key], data.draw(st.sampled_from(sorted(place[key]) if isinstance(place[key], dict)
                                                           else range(len(place[key]))))
    place[key] = value
    reading = read_files(files)
    assert {*reading.app_of, *(part.path for part in reading.unread)} >= set(files)
