"""Acts: one for each change that an export shows, by whom, and what is new in it."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from extractors.apps.version import AppVersion, all_of
from extractors.work.events import find_events
from warehouse.records import WorkEvent

ACCOUNTS = {"ada@mill.example": {"slack_user": "U1", "jira_user": "j1"}, "ben@mill.example": {"slack_user": "U2"}}


def message(ts: str, at: int, text: str, thread: str | None = None) -> list[AppVersion]:
    fields = [("channel", "C1"), ("ts", ts), ("user", "U1"), ("text", text), *([("thread_ts", thread)] if thread else [])]
    return list(all_of("slack", f"C1/{ts}", fields, at, actor="U1", record=f"slack/{ts}"))


def test_an_answer_has_the_thread_of_what_it_answers_and_tells_whom_it_names() -> None:
    first, answer = find_events([*message("1.0", 5, "is it done?"), *message("2.0", 6, "ask <@U2>", "1.0")], ACCOUNTS)
    assert (first.thread, answer.thread) == ("slack:C1/1.0", "slack:C1/1.0")
    assert answer.actor == "ada@mill.example" and answer.addressees == ("ben@mill.example",)
    assert answer.place == "slack_channel:C1" and answer.verb == "slack created"


def test_the_changes_of_one_number_are_one_act_and_counters_are_none() -> None:
    issue = list(all_of("jira", "A-1", [("summary", "mend it"), ("status", "To Do"), ("updated", 1.0)], 5, actor="j1"))
    moved = list(all_of("jira", "A-1", [("status", "Done"), ("priority", "High"), ("updated", 2.0)], 9, sequence=7, actor="j1"))
    counted = list(all_of("jira", "A-1", [("updated", 3.0)], 11, sequence=8))
    created, change = find_events([*issue, *moved, *counted], ACCOUNTS)
    assert created.verb == "jira created" and change.verb == "jira priority status" and change.ref == "jira:A-1#7"
    assert [(each.before, each.after) for each in change.changes] == [("To Do", "Done"), (None, "High")]


def test_what_a_new_record_got_at_once_from_its_maker_belongs_to_its_making() -> None:
    issue = list(all_of("jira", "A-1", [("summary", "mend it")], 5, actor="j1"))
    label = AppVersion("jira", "A-1", "labels", ["mill"], 5, 7, "j1")
    robot = AppVersion("jira", "A-1", "priority", "High", 5, 8, "robot")
    created, ruled = find_events([*issue, label, robot], ACCOUNTS)
    assert [change.field for change in created.changes] == ["summary", "labels"]
    assert (created.verb, ruled.verb, ruled.actor) == ("jira created", "jira priority", "robot")


def test_what_is_new_in_a_table_is_its_new_row() -> None:
    rows = [["Date", "What"], ["Monday", "sacks"]]
    first = AppVersion("sheet", "f", "!Orders", rows, 5, 1)
    second = AppVersion("sheet", "f", "!Orders", [*rows, ["Tuesday", "flour"]], 6, 2)
    assert [event.texts for event in find_events([first, second], {})][1] == ("Tuesday | flour",)


def test_a_mailbox_is_part_of_the_act_that_is_its_mail() -> None:
    fields = [("sender", "ada@mill.example"), ("to", ["ben@mill.example"]), ("thread", "t")]
    mail = list(all_of("mail", "<m>", fields, 5, record="r"))
    box = list(all_of("mailbox", "ben@mill.example|<m>", [("labels", ["INBOX"])], 5, record="r"))
    assert [event.record for event in find_events([*mail, *box], ACCOUNTS)] == [("mail", "<m>")]


def test_an_answer_to_an_invitation_is_the_guests_act() -> None:
    guests = {"ada@mill.example": "ACCEPTED", "ben@mill.example": "NEEDS-ACTION"}
    invited = list(all_of("cal", "e", [("summary", "Tasting"), ("attendees", guests)], 5, actor="ada@mill.example"))
    answered = AppVersion("cal", "e", "attendees", {**guests, "ben@mill.example": "DECLINED"}, 9, 1, "ada@mill.example")
    assert [event.actor for event in find_events([*invited, answered], ACCOUNTS)] == ["ada@mill.example", "ben@mill.example"]


@given(st.lists(st.tuples(st.integers(1, 9), st.sampled_from("abc"), st.sampled_from(["x", "y", "z"])), max_size=20))
def test_every_change_of_a_value_is_in_exactly_one_act(rows: list[tuple[int, str, str]]) -> None:
    versions = sorted((AppVersion("thing", key, "note", value, at) for at, key, value in rows), key=lambda row: row.at)
    events = find_events(versions, {})
    assert len({event.ref for event in events}) == len(events)
    assert [event.at for event in events] == sorted(event.at for event in events)
    for key in "abc":
        values = [version.value for version in versions if version.entity_id == key]
        assert _last(events, key) == (values[-1] if values else None)


def _last(events: list[WorkEvent], key: str) -> str | None:
    values = [change.after for event in events if event.record[1] == key for change in event.changes]
    return str(values[-1]) if values else None
