"""Tasks of a company's work: from the words that asked to a rubric that pays the work itself and nothing less."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

import pytest
from hypothesis import given
from hypothesis import strategies as st

from env_builder.runtime.company import CompanyWorld
from env_builder.runtime.company.parts import difference_of, parts_of
from env_builder.work.attacks import ATTACKS
from env_builder.work.orders import UsualOrders, waited_for
from env_builder.work.publishing import WorkPublished, WorkRoom
from env_builder.work.replaying import patched
from extractors.apps import record_kinds
from extractors.apps.version import AppVersion, all_of
from extractors.work.events import find_events
from warehouse.records import ActChange, WorkEvent, WorkItem

ADA, BEN, CLEO = "ada@mill.example", "ben@mill.example", "cleo@mill.example"
ACCOUNTS = {ADA: {"slack_user": "U1", "jira_user": "j1"}, BEN: {"slack_user": "U2", "jira_user": "j2"},
            CLEO: {"slack_user": "U3", "jira_user": "j3"}}
HEAD = ["What", "How many", "Ticket"]
THINGS = ["sacks", "flour", "salt", "yeast", "sieves", "scales", "brooms", "aprons", "lamps", "ropes"]
WRONG, BAD = "lamps", 8
"""The piece of work whose row does not say what was asked."""


def message(channel: str, at: int, user: str, text: str, thread: str | None = None) -> Iterator[AppVersion]:
    ts = f"{at}.000000"
    fields = [("channel", channel), ("ts", ts), ("user", user), ("text", text), *([("thread_ts", thread)] if thread else [])]
    yield from all_of("slack", f"{channel}/{ts}", fields, at * 1_000_000, actor=user, record=f"slack/{ts}")


def work(number: int, thing: str, rows: list[list[str]]) -> Iterator[AppVersion]:
    """Ada asks in the channel; Ben writes a ticket, asks Cleo, adds a row, closes the ticket and says so."""
    begin, count, key = 10_000 * (number + 1), 11 + 7 * number, f"T-{number}"
    yield from message("C1", begin, "U1", f"please get {count} {thing}")
    fields = [("project", "T"), ("summary", f"{thing} {count}"), ("status", "To Do"), ("assignee", "j2"), ("reporter", "j2")]
    yield from all_of("jira", key, fields, (begin + 10) * 1_000_000, actor="j2", record=f"jira/{key}")
    yield from message("C1", begin + 20, "U2", f"<@U3> fine? {key}", f"{begin}.000000")
    yield from message("C1", begin + 30, "U3", "yes", f"{begin}.000000")
    rows.append([thing, str(count + (thing == WRONG)), key])
    yield AppVersion("sheet", "f", "!Things", [HEAD, *rows], (begin + 40) * 1_000_000, number + 2, "U2")
    yield AppVersion("jira", key, "status", "Done", (begin + 50) * 1_000_000, number + 1, "j2")
    yield from message("C1", begin + 60, "U2", f"{count} {thing} are here", f"{begin}.000000")


@cache
def mill() -> tuple[WorkRoom, list[WorkEvent], list[WorkItem], WorkPublished]:
    rows: list[list[str]] = []
    versions = [AppVersion("sheet", "f", "!Things", [HEAD], 1_000_000, 1, "U2")]
    versions += [AppVersion("sheet", "g", "!Others", [HEAD, ["a", "1", ""]], 1_000_000, 1, "U2")]
    versions += [*message("C2", 2, "U3", "good morning")]
    for number, thing in enumerate(THINGS):
        versions += work(number, thing, rows)
    events = find_events(versions, ACCOUNTS)
    items = [WorkItem(f"w{number}", tuple(event.ref for event in events if event.at // 10_000_000_000 == number + 1), 1.0,
                      "get things") for number in range(len(THINGS))]
    room = WorkRoom(CompanyWorld(versions), events, record_kinds(), ACCOUNTS)
    return room, events, items, room.publish(items)


def test_the_request_is_the_opening_and_the_asked_person_the_role() -> None:
    task = mill()[3].verified[0].task
    assert (task.opening, task.person, task.starts_at) == ("please get 11 sacks", BEN, 10_000_000_000)
    assert [act.verb for act in task.own] == ["jira created", "slack created", "sheet !Things", "jira status", "slack created"]
    assert [act.actor for act in task.replies] == [CLEO]


def test_each_rubric_pays_its_own_records_and_every_check_says_where_it_is_from() -> None:
    room, events, items, published = mill()
    of_item = {item.item_id: [event for event in events if event.ref in item.refs] for item in items}
    for work_done in published.verified:
        assert room.accepts(work_done, of_item[work_done.task.item_id])
        assert work_done.n_apps == 3
        refs = {act.ref for act in (*work_done.task.acts, work_done.task.request)}
        assert all(check["provenance"]["acts"] and refs >= set(check["provenance"]["acts"])
                   for check in work_done.rubric["checks"])
        kinds = {check["kind"] for check in work_done.rubric["checks"]}
        assert kinds == {"record", "bounded", "preceded", "judge"}
        assert len({check["check_id"] for check in work_done.rubric["checks"]}) == len(work_done.rubric["checks"])


def test_work_that_set_another_value_than_its_request_is_no_example() -> None:
    published = mill()[3]
    assert [(decision.item_id, decision.reason) for decision in published.decisions
            if decision.reason.startswith("not_as")] == [(f"w{BAD}", "not_as_asked")]
    assert {work_done.task.item_id for work_done in published.verified} == {
        f"w{number}" for number in range(len(THINGS)) if number != BAD}


def test_no_attack_gets_the_reward() -> None:
    room, _, _, published = mill()
    assert set(published.attacks) == {*ATTACKS} - {"tell_secret"}, "nothing is there to tell"
    assert not published.passed
    assert all(not room.passing_attacks(work_done) for work_done in published.verified)


@pytest.mark.parametrize("left_out", ["jira status", "sheet !Things", "jira created"])
def test_work_that_lacks_a_step_is_not_paid(left_out: str) -> None:
    room, _, _, published = mill()
    for work_done in published.verified:
        assert not room.accepts(work_done, [act for act in work_done.task.acts if act.verb != left_out])


def test_work_before_the_approval_is_not_paid() -> None:
    room, _, _, published = mill()
    for work_done in published.verified:
        order = [act.ref for act in work_done.task.acts]
        place = order.index(work_done.task.replies[0].ref)
        early = [*work_done.task.acts[:place], work_done.task.acts[place + 1], work_done.task.acts[place],
                 *work_done.task.acts[place + 2:]]
        assert not room.pays(work_done, early) and room.pays(work_done, work_done.task.acts)


def test_an_order_that_a_kind_seldom_has_is_not_demanded() -> None:
    room, _, _, published = mill()
    tasks = [work_done.task for work_done in published.verified]
    asked = tasks[0]
    reply, name = waited_for(asked, room.habits)[0]
    unasked = [task._replace(acts=task.own, replies=()) for task in tasks[1:]]
    assert UsualOrders([asked, *unasked[:2]], room.habits).is_usual(asked, reply, name)
    assert not UsualOrders([asked, *unasked], room.habits).is_usual(asked, reply, name)


def test_a_bad_piece_of_work_makes_no_task() -> None:
    room, _, items, _ = mill()
    published = room.publish([items[0]._replace(success=0.1), items[1]._replace(reason="not_one_item")])
    assert not published.verified
    assert [decision.reason for decision in published.decisions] == ["not_known_good", "not_one_item"]


tables = st.lists(st.lists(st.sampled_from(["a", "b", "1", "2.50"]), min_size=1, max_size=3), max_size=4)


@given(tables, tables, tables)
def test_a_change_of_a_table_brings_its_own_rows_alone(now: list[list[str]], before: list[list[str]], after: list[list[str]]
                                                       ) -> None:
    lost, got = difference_of(before, after)
    value = patched(now, ActChange("!t", before, after))
    gone, come = difference_of(now, value)
    assert sorted(gone) <= sorted(lost) or set(gone) <= set(lost)
    assert set(come) <= set(got) | set(parts_of(after))
    assert patched(before, ActChange("!t", before, after)) == after


@given(tables, tables)
def test_equal_values_have_no_difference_and_others_have_it_both_ways(first: list[list[str]], second: list[list[str]]) -> None:
    assert difference_of(first, first) == ([], [])
    assert difference_of(first, second) == difference_of(second, first)[::-1]
