"""Demonstrations: calls found for people's acts, what came before them, and their replay."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from env_builder.company.content import CompanyContent, descriptors
from env_builder.company.inverses import _cells
from env_builder.exports.chat import SFT
from env_builder.exports.steps import episodes
from env_builder.runtime.canonical import digest
from env_builder.runtime.company import CompanyDesk, CompanyWorld, FieldVersion
from env_builder.runtime.company.world import VersionLike
from env_builder.runtime.office.drive import TOOLS as DRIVE
from env_builder.work.demonstration_rows import (
    WorkTrajectory,
    asked_stretches,
    dataset_source,
    provenance_rows,
    trajectories,
)
from env_builder.work.demonstrations import Demonstration, DemonstrationFinder, DemonstrationStep
from env_builder.work.sameness import agrees
from env_builder.work.sides import sides_of
from env_builder.work.stretches import WorkHabits
from extractors.apps import installed_apps, record_kinds
from extractors.apps.version import AppVersion
from extractors.work.events import find_events
from tests.small_company import ADA, BEN, CLEO, NOON, desk_of, fields_of, mail_of, world_of
from warehouse.records import SPLITS, WorkEvent, WorkItem

PRODUCTS = ("gmail", "calendar_events", "drive", "slack")
MAILS = {"calendar_events": {"mails": {"invitation": {
    "subject": "Invitation: {summary}", "body": "{summary}\nWhen: {start}"}}}}
KINDS = [kind for app in installed_apps() for kind in app.kinds]
ACCOUNTS = {ADA: {"person": ADA, "slack_user": "U1"}, BEN: {"person": BEN, "slack_user": "U2"}, CLEO: {"person": CLEO}}


def acted(actor: str, versions: list[FieldVersion]) -> list[AppVersion]:
    """Return versions as an export has them, by an actor; parts of a record come from its source record."""
    first = versions[0].entity_id
    return [AppVersion(each.entity_class, each.entity_id, each.field, each.value, each.at, 0, actor, each.guessed_until, first)
            for each in versions]


def asked_and_met() -> list[AppVersion]:
    """Return: a customer asks, Ada invites Ben (which sends a mail), enters a row and answers; Ben writes later."""
    guests = {ADA: "ACCEPTED", BEN: "NEEDS-ACTION"}
    invitation = mail_of("<i1@mill.example>", 600, ADA, [BEN], "Invitation: Tasting", "Tasting\nWhen: 2026-03-03T09:00:00.000Z",
                         thread="f00d5eed00112233")
    event = fields_of("cal", "aaaabbbbccccdddd@google.com", 600, summary="Tasting", location="", description="",
                      start=NOON + 75_600.0, end=NOON + 79_200.0, organizer=ADA, status="CONFIRMED", sequence=0,
                      attendees=guests)
    answers = [version for address, answer in guests.items()
               for version in fields_of("cal_guest", f"aaaabbbbccccdddd@google.com|{address}", 600, answer=answer)]
    return [
        *acted("", fields_of("sheet", "file-1", -1e6, name="Tastings", owner=BEN, readers=[], **{"!Plan": [["Day", "Who"]]})),
        *acted("pat@far.example", mail_of("<q1@far.example>", 0, "pat@far.example", [ADA], "A tasting?",
                                          "Could we taste 12 loaves?", thread="0123456789abcdef")),
        *acted(ADA, invitation), *acted(ADA, event + answers),
        *acted(ADA, fields_of("sheet", "file-1", 700, **{"!Plan": [["Day", "Who"], ["2026-03-03", "Pat"]]})),
        *acted(ADA, mail_of("<a1@mill.example>", 800, ADA, ["pat@far.example"], "Re: A tasting?", "Tomorrow at nine.",
                            thread="0123456789abcdef", references=["<q1@far.example>"])),
        *acted(BEN, mail_of("<b1@mill.example>", 5000, BEN, [ADA], "Bread", "The secret is rye.")),
    ]


def finder_of(versions: list[AppVersion], conventions: Mapping[str, Any] = MAILS,
              products: tuple[str, ...] = PRODUCTS) -> tuple[DemonstrationFinder, list[WorkEvent]]:
    people: list[VersionLike] = list(world_of().versions)
    whole = sorted([*people, *versions], key=lambda version: version.at)
    events = find_events(versions, ACCOUNTS)
    shown = {"gmail": {"ids": {"algorithm": "sha256", "before": "", "length": 16}}, **conventions}
    return DemonstrationFinder(CompanyContent(whole, ACCOUNTS, shown, products), events, KINDS), events


def item_of(events: list[WorkEvent]) -> WorkItem:
    return WorkItem("item", tuple(event.ref for event in events if event.at > (NOON - 1) * 1e6), 1.0)


def written(demonstration: Demonstration) -> list[str]:
    return [step.tool for step in demonstration.steps if step.refs]


def test_what_follows_from_an_act_gets_no_call() -> None:
    finder, events = finder_of(asked_and_met())
    demonstration = finder.find(item_of(events))
    assert demonstration is not None
    assert written(demonstration) == ["create_event", "append_sheet_row", "send_gmail_message", "send_gmail_message"]
    assert [ref for ref in demonstration.followed if "<i1@mill.example>" in ref]
    assert demonstration.people == [ADA, BEN]
    assert finder.end_of(demonstration) == []


def test_without_the_rule_of_invitations_the_mail_is_a_call_of_its_own() -> None:
    finder, events = finder_of(asked_and_met(), {})
    demonstration = finder.find(item_of(events))
    assert demonstration is not None
    assert written(demonstration).count("send_gmail_message") == 3
    assert finder.end_of(demonstration) == []


def test_looks_show_the_request_and_nothing_of_later() -> None:
    finder, events = finder_of(asked_and_met())
    demonstration = finder.find(item_of(events))
    assert demonstration is not None
    looks = [step for step in demonstration.steps if step.person == ADA and not step.refs]
    assert any("Could we taste 12 loaves?" in step.content for step in looks)
    assert any("Row  1: ['Day', 'Who']" in step.content for step in looks)
    assert not any("rye" in step.content or "Tomorrow" in step.content for step in looks)
    assert demonstration.openings[ADA] == "A tasting?\nCould we taste 12 loaves?"


def test_a_call_left_out_of_the_replay_shows_in_its_end() -> None:
    finder, events = finder_of(asked_and_met())
    demonstration = finder.find(item_of(events))
    assert demonstration is not None
    kept = tuple(step for step in demonstration.steps if step.tool != "append_sheet_row")
    assert finder.end_of(demonstration._replace(steps=kept)) == ["sheet !Plan"]
    other = tuple(step._replace(arguments={**step.arguments, "body": "Never."}) if step.tool == "send_gmail_message" else step
                  for step in demonstration.steps)
    assert "mail body" in finder.end_of(demonstration._replace(steps=other))


def test_an_act_that_no_tool_does_is_missed_with_its_reason() -> None:
    finder, events = finder_of(asked_and_met(), products=("gmail", "calendar_events"))
    demonstration = finder.find(item_of(events))
    assert demonstration is not None
    assert [(act.entity_class, act.reason) for act in demonstration.missed] == [
        ("sheet", "no tool offers it: append_sheet_row")]
    assert finder.end_of(demonstration) == ["sheet !Plan"]


def test_answers_in_chats_find_the_message_that_the_episode_made() -> None:
    channel = acted("", fields_of("slack_channel", "C1", -1e6, name="mill", kind="channel", private=False,
                                  members=["U1", "U2"]))
    users = [version for user, address in (("U1", ADA), ("U2", BEN))
             for version in acted("", fields_of("slack_user", user, -1e6, name=address[:3], real_name="", email=address))]
    first, reply = f"{NOON}.000000", f"{NOON + 60}.000000"
    posts = [
        *acted("U2", fields_of("slack", f"C1/{first}", 0, channel="C1", ts=first, user="U2", text="Flour?", deleted=False)),
        *acted("U1", fields_of("slack", f"C1/{reply}", 60, channel="C1", ts=reply, user="U1", text="In bin 4.", deleted=False,
                               thread_ts=first)),
    ]
    finder, events = finder_of([*channel, *users, *posts])
    demonstration = finder.find(item_of(events))
    assert demonstration is not None
    assert [step.arguments.get("thread_ts") for step in demonstration.steps if step.refs] == [None, first]
    assert finder.end_of(demonstration) == []


def test_datasets_hold_each_persons_calls_and_where_they_come_from(tmp_path: Path) -> None:
    finder, events = finder_of(asked_and_met())
    demonstration = finder.find(item_of(events))
    assert demonstration is not None
    found = [each._replace(success=0.8) for each in trajectories([(demonstration, finder.end_of(demonstration))])]
    assert [(each.person, each.reaches) for each in found] == [(ADA, True), (BEN, True)]
    rows = [row for row in provenance_rows(found) if row["refs"]]
    assert rows[0]["tool"] == "create_event" and rows[0]["refs"] == ["cal:aaaabbbbccccdddd@google.com#1772453400000000"]
    exported = SFT.write(tmp_path, dataset_source(descriptors(finder.content), found))
    text = "".join(path.read_text("utf-8") for path in exported.paths)
    assert "create_event" in text and "Could we taste 12 loaves?" in text


def test_a_stretch_is_an_episode_of_its_own_with_what_was_asked_then() -> None:
    again = mail_of("<q2@far.example>", 900, "pat@far.example", [ADA], "Re: A tasting?", "Make it 14 loaves.",
                    thread="0123456789abcdef", references=["<a1@mill.example>"])
    rows = [["Day", "Who"], ["2026-03-03", "Pat"]]
    versions = [each for each in asked_and_met() if each.at < (NOON + 5000) * 1_000_000]
    versions += acted("", fields_of("sheet", "file-2", -1e6, name="Guests", owner=BEN, readers=[], **{"!Plan": [["Who"]]}))
    versions += acted(BEN, fields_of("sheet", "file-2", 850, **{"!Plan": [["Who"], ["Pat"]]}))
    versions += acted("pat@far.example", again)
    versions += acted(ADA, fields_of("sheet", "file-1", 1000, **{"!Plan": [*rows, ["d", "14"]]}))
    finder, events = finder_of(versions)
    item = item_of(events)
    asked = asked_stretches([item], events, CompanyWorld(versions), WorkHabits(events, record_kinds(), ACCOUNTS))
    ada = [each for each in asked["item"] if each.person == ADA]
    assert [each.opening for each in ada] == ["A tasting?\n\nCould we taste 12 loaves?", "Re: A tasting?\n\nMake it 14 loaves."]
    demonstration = finder.find(item)
    assert demonstration is not None
    whole = [step for step in demonstration.steps if step.person == ADA]
    parts = [each for each in trajectories([(demonstration, [])], asked) if each.person == ADA]
    assert [each.goal for each in parts] == [each.opening for each in ada]
    assert [each.task_id for each in parts] == [digest(each.name) for each in ada] and parts[0].name != parts[1].name
    assert [step for each in parts for step in each.steps] == whole, "no step is lost, and none is there twice"
    assert [step.tool for step in parts[1].steps if step.refs] == ["append_sheet_row"]


@pytest.mark.parametrize(("reaches", "success", "is_published", "reward", "source"), [
    (True, 0.6, True, 1.0, "rubric"), (True, 0.6, False, 0.6, "outcome"), (True, None, False, None, None),
    (False, 0.9, True, None, None)])
def test_only_what_reaches_its_end_has_a_label(reaches: bool, success: float | None, is_published: bool, reward: float | None,
                                               source: str | None) -> None:
    step = DemonstrationStep(NOON * 1_000_000, ADA, "get_events", {}, "none", False, "program", ("cal:1#2",))
    path = WorkTrajectory("item", ADA, "Look.", (step,), reaches, "", task_id="t1", success=success)
    rows = episodes(dataset_source([], [path], ["t1"] if is_published else ["t2"])).to_dicts()
    assert [(row["final"], row["label_source"], row["good"]) for row in rows] == [(reward, source, reward is not None)]


@given(st.lists(st.integers(0, 30), min_size=1, max_size=40))
def test_nothing_of_train_ends_after_something_of_another_side(ends: list[int]) -> None:
    sides = sides_of((str(number), at) for number, at in enumerate(ends))
    order = [SPLITS.index(sides[str(number)]) for number, _ in sorted(enumerate(ends), key=lambda each: each[1])]
    assert order == sorted(order) and order[-1] == 2, "the latest is held out"
    assert all(sides[str(one)] == sides[str(other)] for one, at in enumerate(ends) for other, same in enumerate(ends)
               if at == same)


CELL = st.sampled_from(["", "a", "b", "12", "=A1"])
TABLE = st.lists(st.lists(CELL, min_size=1, max_size=4), max_size=5)


@given(TABLE, TABLE)
def test_calls_on_cells_make_the_other_table(before: list[list[str]], after: list[list[str]]) -> None:
    desk: CompanyDesk = desk_of(world_of(fields_of("sheet", "f", -10, name="F", owner=ADA, readers=[], **{"!My tab": before})))
    for use in _cells("f", "My tab", before, after):
        DRIVE[use.tool].answer(desk, use.arguments)
    assert agrees(after, desk.value("sheet", "f", "!My tab"))


def test_a_text_that_was_edited_later_shows_in_no_look_before() -> None:
    channel = acted("", fields_of("slack_channel", "C1", -1e6, name="mill", kind="channel", private=False,
                                  members=["U1", "U2"]))
    users = [version for user, address in (("U1", ADA), ("U2", BEN))
             for version in acted("", fields_of("slack_user", user, -1e6, name=address[:3], real_name="", email=address))]
    first, reply, edited = f"{NOON}.000000", f"{NOON + 60}.000000", round((NOON + 900) * 1e6)
    posts = [
        *acted("U2", [each._replace(guessed_until=edited) if each.field == "text" else each for each in fields_of(
            "slack", f"C1/{first}", 0, channel="C1", ts=first, user="U2", text="Flour? (edited)", deleted=False)]),
        *acted("U1", fields_of("slack", f"C1/{reply}", 60, channel="C1", ts=reply, user="U1", text="In bin 4.", deleted=False,
                               thread_ts=first)),
    ]
    finder, events = finder_of([*channel, *users, *posts])
    demonstration = finder.find(item_of(events))
    assert demonstration is not None
    assert not [step for step in demonstration.steps if step.person == ADA and not step.refs and "edited" in step.content]
    assert [step.lossy for step in demonstration.steps if step.refs] == [("edited_later",), ()]


def test_what_no_tool_offers_happens_as_recorded_only_beside_an_act_with_calls() -> None:
    def joined(at: float) -> list[AppVersion]:
        stamp = f"{NOON + 60}.000000"
        return [
            *acted("", fields_of("slack_channel", "C1", -1e6, name="mill", kind="channel", private=False, members=["U2"])),
            *acted("", fields_of("slack_user", "U1", -1e6, name="ada", real_name="", email=ADA)),
            *acted("U1", fields_of("slack_channel", "C1", at, members=["U1", "U2"])),
            *acted("U1", fields_of("slack", f"C1/{stamp}", 60, channel="C1", ts=stamp, user="U1", text="Hello", deleted=False))]

    for at, n_missed, lossy in ((59.7, 0, ("more_as_recorded",)), (50, 1, ())):
        finder, events = finder_of(joined(at))
        demonstration = finder.find(item_of(events))
        assert demonstration is not None
        assert len(demonstration.missed) == n_missed
        assert [step.lossy for step in demonstration.steps if step.refs] == [lossy]
        assert bool(finder.end_of(demonstration)) == bool(n_missed)
