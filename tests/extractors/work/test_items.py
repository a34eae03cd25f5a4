"""Acts of a small made-up company, and what any grouping of them must keep."""

from __future__ import annotations

from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st

from extractors.work.events import WorkEvent
from extractors.work.grouping import grouped
from extractors.work.items import ONE_ACT, TALK, find_items

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
