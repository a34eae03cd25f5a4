"""Colleagues of a task: they answer what they answered, after their time, once, and to nothing else."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from tempfile import mkdtemp
from typing import Any, NamedTuple

from hypothesis import given, settings
from hypothesis import strategies as st

from env_builder.company.rooms import CompanyTask, write_company
from env_builder.runtime.company import CompanyWorld
from env_builder.runtime.environment import Environment
from env_builder.runtime.grading import grade
from env_builder.runtime.office.colleagues import WAIT
from env_builder.runtime.rubrics import ParsedRubric
from env_builder.verify import verify
from env_builder.work.publishing import WorkRoom
from env_builder.work.solving import solved_tasks
from extractors.apps import record_kinds
from extractors.apps.version import AppVersion
from tests.env_builder.work.test_demonstrations import ACCOUNTS, acted, finder_of
from tests.small_company import ADA, BEN, CLEO, NOON, fields_of, mail_of
from warehouse.records import WorkItem

N_ORDERS, APART, HOUR = 8, 9_000, 3_600
UNANSWERED = 5
"""The order that Ben never answered."""
Step = dict[str, Any]


def orders() -> list[AppVersion]:
    """Return eight orders by mail; Ada asks Ben of each, who answers an hour later; she enters a row and answers."""
    rows: list[list[str]] = [["Who", "Loaves"]]
    versions = acted("", fields_of("sheet", "file-1", -1e6, name="Orders", owner=ADA, readers=[], **{"!All": rows}))
    for number in range(N_ORDERS):
        at, count, who = APART * number, 11 + 7 * number, f"pat{number}@far.example"
        versions += acted(who, mail_of(f"<q{number}@far.example>", at, who, [ADA], "An order", f"Please send {count} loaves.",
                                       thread=f"{number:016x}"))
        versions += acted(ADA, mail_of(f"<b{number}@mill.example>", at + 60, ADA, [BEN], "Fine?", f"{count} loaves for {who}?",
                                       thread=f"{100 + number:016x}"))
        if number != UNANSWERED:
            versions += acted(BEN, mail_of(
                f"<y{number}@mill.example>", at + 60 + HOUR, BEN, [ADA], "Re: Fine?", "approved", thread=f"{100 + number:016x}",
                references=[f"<b{number}@mill.example>"]))
        rows = [*rows, [who, str(count)]]
        versions += acted(ADA, fields_of("sheet", "file-1", at + HOUR + 120, **{"!All": rows}))
        versions += acted(ADA, mail_of(f"<a{number}@mill.example>", at + HOUR + 180, ADA, [who], "Re: An order",
                                       f"{count} loaves are on the way.", thread=f"{number:016x}",
                                       references=[f"<q{number}@far.example>"]))
    return versions


class Mill(NamedTuple):
    environment: Environment
    tasks: list[CompanyTask]
    folder: Path


@cache
def mill(goes_on: bool = False) -> Mill:
    versions = orders()
    finder, events = finder_of(versions)
    begins = [(NOON + APART * number) * 1_000_000 for number in range(N_ORDERS)]
    items = [WorkItem(f"order {number}", tuple(event.ref for event in events if begin <= event.at < begin + APART * 1_000_000),
                      1.0, "send loaves", 0.9) for number, begin in enumerate(begins)]
    room = WorkRoom(CompanyWorld(versions), events, record_kinds(), ACCOUNTS)
    published = room.publish(items)
    refs = {item.item_id: item.refs for item in items} if goes_on else None
    tasks = [each for each in solved_tasks(room, finder, published.verified, goes_on=refs) if isinstance(each, CompanyTask)]
    assert len(tasks) == N_ORDERS, published.decisions
    folder = Path(mkdtemp())
    write_company("mill", finder.content, tasks, folder / "room", folder / "rewards")
    return Mill(Environment.load(folder / "room", folder / "rewards"), tasks, folder)


def play(task: CompanyTask, steps: list[Step], goes_on: bool = False) -> float | None:
    environment = mill(goes_on).environment
    environment.reset(task.task_id)
    for step in steps:
        environment.call(step["tool"], step["arguments"])
    environment.finish()
    return grade(ParsedRubric.read(dict(task.rubric or {})), environment.episode()).reward


def ask(text: str, to: str = BEN) -> Step:
    return {"tool": "send_gmail_message", "arguments": {"to": to, "subject": "Fine?", "body": text}}


def wait(minutes: int) -> Step:
    return {"tool": WAIT, "arguments": {"minutes": minutes}}


def answers() -> list[str]:
    """Return who wrote the mails of the episode that Ada did not write."""
    documents = mill().environment.episode().difference["documents"]
    return [name for name, text in documents.items() if name.startswith("mail/") and f'"sender":"{ADA}"' not in text]


def test_tasks_that_wait_for_an_answer_are_earned_and_hold_in_the_audit() -> None:
    tasks = mill().tasks
    assert [step["tool"] == WAIT for step in tasks[0].solution] == [False, True, False, False]
    assert [play(task, list(task.solution)) for task in tasks] == [1.0] * N_ORDERS
    verified = verify(mill().folder / "room", mill().folder / "rewards")
    assert set(verified.task_ids) == {task.task_id for task in tasks}, verified.decisions.to_dicts()


def test_who_acts_before_the_answer_or_answers_in_its_place_gets_nothing() -> None:
    task = mill().tasks[0]
    asked, waited, *rest = task.solution
    assert play(task, [asked, *rest, waited]) == play(task, [asked, *rest]) == 0.0
    assert play(task, [asked, rest[0], waited, *rest]) == play(task, [asked, rest[0], rest[1], waited]) == 0.0
    assert play(task, [waited, asked, *rest]) == 0.0   # nobody answers what was not asked yet
    assert play(task, [asked, ask("approved", to=ADA), *rest]) == 0.0
    assert play(task, [asked, wait(59), *rest]) == 0.0 < play(task, [asked, wait(59), wait(59), *rest])


def test_nobody_answers_what_nobody_answered_whoever_is_asked() -> None:
    tasks = mill().tasks
    assert tasks[UNANSWERED].colleagues is None
    for task in (tasks[0], tasks[UNANSWERED]):
        count = 11 + 7 * tasks.index(task)
        mill().environment.reset(task.task_id)
        for step in (ask(f"{count} loaves?", to=CLEO), ask("Hello?"), ask("All fine, everything?"), wait(20_000)):
            mill().environment.call(step["tool"], step["arguments"])
        assert answers() == []   # another person, or words that do not tell what is asked
        mill().environment.call(**ask(f"{count} loaves for pat{tasks.index(task)}@far.example?"))
        mill().environment.call(**wait(20_000))
        assert len(answers()) == (task is tasks[0])


def test_an_answer_is_in_the_thread_of_this_episode_at_its_time() -> None:
    environment = mill().environment
    environment.reset(mill().tasks[0].task_id)
    environment.call(**ask("Are 11 loaves fine for pat0@far.example?"))
    assert environment.call(**wait(600)).content == "It is now 2026-03-02T13:00:02Z."
    found = environment.call("search_gmail_messages", {"query": f"from:{BEN}"}).content
    assert found.count("- ID:") == 1 and answers() == ["mail/<y0@mill.example>"]
    environment.call(**wait(600))
    assert answers() == ["mail/<y0@mill.example>"]


@settings(max_examples=25, deadline=None)
@given(st.lists(st.sampled_from([ask("11 loaves?"), ask("loaves?", to=CLEO), ask("approved", to=ADA), wait(7), wait(61)]),
                max_size=7), st.integers(0, 7))
def test_an_answer_comes_once_an_hour_after_its_ask_and_forks_go_on_alike(steps: list[Step], place: int) -> None:
    environment = mill().environment
    environment.reset(mill().tasks[0].task_id)
    fork, asked_at, now = environment, None, 0
    for number, step in enumerate(steps):
        fork = environment.fork() if number == place else fork
        for each in {id(fork): fork, id(environment): environment}.values():
            each.call(**step)
        now += 60 * step["arguments"]["minutes"] if step["tool"] == WAIT else 1
        asked_at = now if asked_at is None and step == ask("11 loaves?") else asked_at
    assert fork.episode().difference == environment.episode().difference
    assert len(answers()) <= 1
    if asked_at is None or now + len(steps) < asked_at + HOUR:
        assert answers() == []
    elif now >= asked_at + HOUR:
        assert len(answers()) == 1


def test_where_the_world_goes_on_the_next_work_begins_but_nothing_of_the_own_one_happens() -> None:
    task = mill(True).tasks[0]
    assert play(task, list(task.solution), goes_on=True) == 1.0
    assert {mail for name in task.own or () for mail in re.findall(r"<\w+@", name)} == {"<q0@", "<b0@", "<y0@", "<a0@"}
    for goes_on in (False, True):
        environment = mill(goes_on).environment
        environment.reset(mill(goes_on).tasks[0].task_id)
        environment.call(WAIT, {"minutes": APART // 60 + 5})
        shown = environment.call("search_gmail_messages", {"query": "subject:order"}).content
        assert ("pat1" in shown or "2 messages" in shown) == goes_on, shown
    verified = verify(mill(True).folder / "room", mill(True).folder / "rewards")
    assert set(verified.task_ids) == {task.task_id for task in mill(True).tasks}, verified.decisions.to_dicts()
