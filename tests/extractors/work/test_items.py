"""Acts of a small made-up company, and what any grouping of them must keep."""

from __future__ import annotations

from itertools import pairwise
from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st

from extractors.work.events import WorkEvent
from extractors.work.grouping import grouped
from extractors.work.items import ONE_ACT, TALK, find_items
from extractors.work.listed import listed_records
from extractors.work.rows import row_threads
from extractors.work.sweeps import find_sweeps
from warehouse.records import ActChange

HOUR = 3_600_000_000


def said(ref: str, at: int, actor: str, text: str, thread: str = "", told: tuple[str, ...] = ()) -> WorkEvent:
    record = ("talk", ref)
    return WorkEvent(f"talk:{ref}#1", at, record, "talk created", actor, "", thread or f"talk:{ref}", told, (text,), (), "r")


def test_talk_without_effects_makes_no_task() -> None:
    acts = [said("1", HOUR, "ann@x.example", "lunch?"), said("2", 2 * HOUR, "bob@x.example", "yes", "talk:1")]
    items = find_items(acts)
    assert [item.refs for item in items] == [("talk:1#1", "talk:2#1")]
    assert items[0].reason == TALK


def test_a_lone_act_says_so() -> None:
    assert [item.reason for item in find_items([said("1", HOUR, "ann@x.example", "lunch?")])] == [ONE_ACT]


def test_nothing_gives_no_items() -> None:
    assert find_items([]) == []


def changed(key: str, at: int, actor: str, field: str, before: object, after: object) -> WorkEvent:
    return WorkEvent(f"job:{key}#{at}", at, ("job", key), f"job {field}", actor, "", f"job:{key}", (), (),
                     (ActChange(field, before, after),), "r")


def test_one_value_given_to_several_records_is_one_sweep() -> None:
    ann, bob = "ann@x.example", "bob@x.example"
    minute = HOUR // 60
    acts = [changed("A-1", 10 * minute, ann, "tags", ["old"], ["old", "r7"]),
            changed("A-2", 20 * minute, ann, "tags", [], ["r7"]), changed("A-2", 25 * minute, bob, "state", "open", "shut"),
            changed("A-3", 30 * minute, ann, "tags", [], ["r7"]), changed("A-4", 40 * HOUR, bob, "tags", [], ["r7"])]
    assert find_sweeps(acts) == [[0, 1, 3]]
    sweep = {acts[number].ref for number in (0, 1, 3)}
    assert any(sweep <= set(item.refs) for item in find_items(acts))


def test_what_many_give_or_a_machine_does_is_no_sweep() -> None:
    shut = [changed(f"A-{number}", number * HOUR, f"{'ab'[number % 2]}@x.example", "state", "open", "shut")
            for number in range(10)]
    assert not find_sweeps(shut)
    assert not find_sweeps([changed(f"A-{number}", number, "robot:7", "tags", [], ["r7"]) for number in range(5)])


def test_a_row_that_became_another_keeps_its_name() -> None:
    lamp, desk, got = ["lamp", "4", "ordered"], ["desk", "9", "ordered"], ["lamp", "4", "here"]
    tables = [[], [lamp], [lamp, desk], [got, desk], [got, ["desk", "9", "here"]]]
    acts = [changed("f", number, "ann@x.example", "!Things", before, after)
            for number, (before, after) in enumerate(pairwise(tables))]
    names = row_threads(acts)
    assert names[0] == names[2] != names[1] == names[3]


rows_of_tables = st.lists(st.lists(st.lists(st.sampled_from("abc"), min_size=1, max_size=3), max_size=4), max_size=6)


@given(rows_of_tables)
def test_each_row_name_is_of_an_act_that_wrote_a_row(tables: list[list[list[str]]]) -> None:
    acts = [changed("f", number, "ann@x.example", "!T", before, after)
            for number, (before, after) in enumerate(zip([[], *tables], tables, strict=False))]
    names = row_threads(acts)
    assert all(any(name.startswith(f"row {act.ref} ") for act in acts[:number + 1]) for number, name in names.items())


def test_records_treated_and_records_named_are_compared() -> None:
    ann = "ann@x.example"
    acts = [changed("A-1", 1, ann, "tags", [], ["r7"]), changed("A-2", 2, ann, "tags", [], ["r7"]),
            said("1", 3, ann, "r7 brings A-2, A-3 and A-999")]
    listed = listed_records(acts, {"job": {"A-1", "A-2", "A-3"}})
    assert listed is not None and (listed.unnamed, listed.untreated) == ({"A-1"}, {"A-3"})
    assert listed_records(acts[1:], {"job": {"A-1", "A-2", "A-3"}}) is None


acts = st.lists(st.tuples(st.integers(0, 90 * 24), st.sampled_from("abc"), st.sampled_from(["lamp K77", "desk", "ok Q12"]),
                          st.sampled_from(["", "talk:0", "talk:3"]), st.booleans()), max_size=25)


@settings(max_examples=40, deadline=None)
@given(acts, st.integers(0, 99))
def test_each_act_is_in_one_item_in_any_order(rows: list[tuple[int, str, str, str, bool]], seed: int) -> None:
    events = [said(str(number), hour * HOUR, f"{who}@x.example" if known else "", text, thread, ("a@x.example",))
              for number, (hour, who, text, thread, known) in enumerate(rows)]
    items = find_items(events)
    refs = [ref for item in items for ref in item.refs]
    assert len(refs) == len(set(refs))
    assert all(item.item_id == item.refs[0] and 0 <= item.probability <= 1 for item in items)
    mixed = list(events)
    Random(seed).shuffle(mixed)
    assert find_items(mixed) == items


def test_one_strong_tie_does_not_glue_two_groups() -> None:
    sizes = dict.fromkeys(range(6), 1)
    inside = [(0, 1, 0.9), (1, 2, 0.9), (0, 2, 0.9), (3, 4, 0.9), (4, 5, 0.9), (3, 5, 0.9)]
    groups = grouped(sizes, [*inside, (2, 3, 0.95)], 0.5)
    assert groups[0] == groups[1] and groups[4] == groups[5] and groups[0] != groups[5]
