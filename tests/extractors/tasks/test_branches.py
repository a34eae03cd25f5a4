"""Branches: families part where sessions end in different work, and nowhere else."""

from __future__ import annotations

from typing import Any

import polars as pl
import pytest

from extractors.tasks import find, goals_of
from extractors.tasks.branches import branch_marks
from extractors.tasks.names import names_of, renamed
from tests.extractors.tasks.test_tasks import START, chances, frames
from warehouse.records import Correction, frame

EFFECTS = pl.DataFrame({"service": ["shop"] * 5, "tool": ["look", "swap", "refund", "note", "cancel"],
                        "effect": ["read", "write", "write", "write", "write"]})
FORM = "the lamp of order {} is not what I wanted"


def session(name: str, place: int, *tools: str, words: str = FORM, answer: str = "ok") -> tuple[str, list[tuple[Any, ...]]]:
    calls = [(tool, {"order": f"W{5000 + place}"}, answer) for tool in ("look", *tools)]
    return f"{name}{place:02}", [("user", words.format(f"W{5000 + place}")), *calls, ("assistant", "done")]


def desk(n_swapped: int = 14, n_refunded: int = 10, **more: int) -> list[tuple[str, list[tuple[Any, ...]]]]:
    rows = [session("swap", i, "swap", *(["note"] if i % 2 else [])) for i in range(n_swapped)]
    rows += [session("refund", i, "refund", *(["note"] if i % 2 else [])) for i in range(n_refunded)]
    rows += [session("cancel", i, "cancel", words="please cancel order {} today") for i in range(8)]
    rows += [session("nothing", i) for i in range(more.get("n_declined", 0))]
    return rows + [session("failed", i, "refund", answer="Error: down") for i in range(more.get("n_failed", 0))]


def families(*sessions: tuple[str, list[tuple[Any, ...]]]) -> dict[str, str]:
    heads, turns = frames(*sessions)
    return dict(goals_of(heads, turns, EFFECTS).select("session_id", "family").unique().iter_rows())


def test_one_form_that_ends_in_two_kinds_of_work_is_two_families() -> None:
    family = families(*desk())
    assert len({family[f"swap{i:02}"] for i in range(14)}) == len({family[f"refund{i:02}"] for i in range(10)}) == 1
    assert len({family["swap00"], family["refund00"], family["cancel00"]}) == 3


def test_declined_sessions_and_failed_calls_make_no_family_of_their_own() -> None:
    family = families(*desk(n_declined=3, n_failed=2))
    rest = {family[name] for name in family if name.startswith(("nothing", "failed"))}
    assert rest <= {family["swap00"], family["refund00"]}


def test_a_few_mistakes_part_nothing() -> None:
    family = families(*desk(n_swapped=40, n_refunded=4))
    of_form = {family[f"swap{i:02}"] for i in range(40)} | {family[f"refund{i:02}"] for i in range(4)}
    assert len(of_form) == 1


def test_more_nights_of_the_same_keep_every_family() -> None:
    few, many = families(*desk()), families(*desk(n_swapped=28, n_refunded=20))
    assert all(many[name] == family for name, family in few.items())


def test_families_do_not_depend_on_the_order_of_rows() -> None:
    assert families(*desk()) == families(*desk()[::-1])


@pytest.mark.parametrize(("work", "own_steps"), [
    pytest.param([["send"]] * 10 + [["send", "note"]] * 10, 1, id="a step that some add"),
    pytest.param([["send"]] * 10 + [["send", "pay"]] * 5 + [["pay"]] * 10, 1, id="both together as often"),
    pytest.param([["send"]] * 20 + [["pay"]] * 4, 1, id="too few"),
    pytest.param([["send"]] * 3 + [["pay"]] * 3, 1, id="too few sessions at all"),
    pytest.param([["open", "card", "book"]] * 10 + [["open", "bank", "book"]] * 10, 2, id="one choice of clicks"),
    pytest.param([["send"]] * 6 + [["pay"]] * 6 + [["a"], ["b"], ["c"], ["d"], ["e"]] * 2, 1, id="many other ends"),
])
def test_no_branches_are_seen_in(work: list[list[str]], own_steps: int) -> None:
    assert branch_marks([frozenset(tools) for tools in work], own_steps) == []


def test_clicks_part_by_several_steps_of_their_own() -> None:
    work = [frozenset(tools) for tools in [["open", "sum", "book"]] * 10 + [["open", "label", "send"]] * 8]
    assert branch_marks(work, 2) == ["book", "label"]


def test_branches_are_called_by_what_is_done_also_after_one_of_them_was_renamed() -> None:
    heads, turns = frames(*desk())
    goals = goals_of(heads, turns, EFFECTS)
    tools = EFFECTS.select("service", "tool")
    names = names_of(goals, tools)
    of_family = dict(names.families.select("family", "name").iter_rows())
    family = dict(goals.select("session_id", "family").iter_rows())
    assert (of_family[family["swap00"]], of_family[family["refund00"]]) == ("swap", "refund")
    assert len(set(of_family.values())) == len(of_family)
    corrected = frame(Correction, [Correction(
        correction_id="c1", happened_at=START, author="ann", why="clearer", kind="family", subject=family["swap00"],
        value='"exchange a lamp"', stands=True)])
    again, _ = renamed(goals, names, corrected)
    of_family = dict(again.families.select("family", "name").iter_rows())
    assert (of_family[family["swap00"]], of_family[family["refund00"]]) == ("exchange a lamp", "refund")


def test_the_table_of_families_counts_each_branch() -> None:
    heads, turns = frames(*desk())
    mined = find(heads, turns, chances(heads), EFFECTS, {})
    counts = dict(mined.families.select("family", "n_sessions").iter_rows())
    family = dict(mined.goals.select("session_id", "family").iter_rows())
    assert (counts[family["swap00"]], counts[family["refund00"]]) == (14, 10)
    assert set(mined.tasks["family"]) == set(counts)
