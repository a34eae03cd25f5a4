"""Tasks of work that the tools can do: tried as the company stands at their beginning, what no tool does left out."""

from __future__ import annotations

from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from env_builder.company.rooms import CompanyTask, shortened, write_company
from env_builder.runtime.company import CompanyWorld
from env_builder.runtime.environment import Environment
from env_builder.verify import verify
from env_builder.work.publishing import WorkRoom
from env_builder.work.replaying import in_place
from env_builder.work.sides import sides_of
from env_builder.work.solving import solved_tasks
from extractors.apps import record_kinds
from extractors.apps.version import AppVersion
from tests.env_builder.work.test_demonstrations import ACCOUNTS, acted, finder_of
from tests.small_company import ADA, NOON, fields_of, mail_of
from warehouse.records import SPLITS, WorkItem

ROWS = st.lists(st.lists(st.sampled_from("abcd"), min_size=2, max_size=2), max_size=6, unique_by=tuple)


@given(ROWS, ROWS)
def test_a_change_of_the_table_it_was_made_in_gives_what_it_gave(before: list[list[str]], after: list[list[str]]) -> None:
    assert in_place(before, before, after) == after


@given(ROWS, st.lists(st.sampled_from("xyz"), min_size=2, max_size=2))
def test_a_new_row_and_a_row_that_changed_keep_what_others_wrote_meanwhile(rows: list[list[str]], new: list[str]) -> None:
    assert in_place([*rows, ["o", "o"]], rows, [*rows, new]) in ([*rows, ["o", "o"], new], [*rows, new, ["o", "o"]])
    if rows:
        assert in_place([["o", "o"], *rows], rows, [new, *rows[1:]]) == [["o", "o"], new, *rows[1:]]


def orders() -> list[AppVersion]:
    """Return eight orders by mail; of each Ada enters a row, which is changed once, and answers."""
    rows: list[list[str]] = [["Who", "Loaves", "State"]]
    versions = acted("", fields_of("sheet", "file-1", -1e6, name="Orders", owner=ADA, readers=[], **{"!All": rows}))
    for number in range(8):
        at, count, who, thread = 9_000 * number, 11 + 7 * number, f"pat{number}@far.example", f"{number:016x}"
        versions += acted(who, mail_of(f"<q{number}@far.example>", at, who, [ADA], "An order", f"Please send {count} loaves.",
                                       thread=thread))
        for state in ("open", "sent"):
            new = [who, str(count), state]
            rows = [*(row for row in rows if row[0] != who), new]
            at += 60
            versions += acted(ADA, fields_of("sheet", "file-1", at, **{"!All": rows}))
        answer = f"{count} loaves are on the way."
        versions += acted(ADA, mail_of(f"<a{number}@mill.example>", at + 60, ADA, [who], "Re: An order", answer, thread=thread,
                                       references=[f"<q{number}@far.example>"]))
    return versions


def test_what_people_did_is_done_with_tools_as_the_company_stood_and_the_audit_holds(tmp_path: Path) -> None:
    versions = orders()
    finder, events = finder_of(versions)
    begins = [(NOON + 9_000 * number) * 1_000_000 for number in range(8)]
    items = [WorkItem(f"order {number}", tuple(event.ref for event in events if begin <= event.at < begin + 9_000_000_000), 1.0,
                      "send loaves", 0.9) for number, begin in enumerate(begins)]
    room = WorkRoom(CompanyWorld(versions), events, record_kinds(), ACCOUNTS)
    published = room.publish(items)
    sides = sides_of((item.item_id, begin) for item, begin in zip(items, begins, strict=True))
    tasks = [each for each in solved_tasks(room, finder, published.verified, sides) if isinstance(each, CompanyTask)]
    assert len(tasks) == len(items), (published.decisions, tasks)
    assert {task.split for task in tasks} == {*SPLITS}
    write_company("mill", finder.content, tasks, tmp_path / "whole", tmp_path / "whole rewards")
    environment = Environment.load(tmp_path / "whole", tmp_path / "whole rewards")
    short = [shortened(environment, task) for task in tasks]
    assert [len(task.solution) for task in tasks] == [3] * 8 and {len(task.solution) for task in short} <= {2, 3}
    write_company("mill", finder.content, short, tmp_path / "tried", tmp_path / "tried rewards")
    verified = verify(tmp_path / "tried", tmp_path / "tried rewards")
    assert set(verified.task_ids) == {task.task_id for task in tasks}, verified.decisions.to_dicts()
