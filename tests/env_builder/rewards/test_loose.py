"""What counts as free text: long values, and short ones that every agent makes up anew."""

from __future__ import annotations

import json
from typing import Any

import polars as pl
from hypothesis import given
from hypothesis import strategies as st

from env_builder.rewards.loose import free_text
from warehouse.records import Task, Turn, frame

EFFECTS = pl.DataFrame(
    [("main", "pay", "write"), ("main", "look", "read")], schema=["service", "tool", "effect"], orient="row",
).with_columns(presumed="effect", counted="effect")
TASKS = 4


def masked(asked: str, *payments: list[dict[str, Any]], order: list[int] | None = None) -> dict[str, list[str]]:
    """Free arguments where in each of `TASKS` tasks a user says `asked` and one session each makes one of `payments`."""
    empty, turns, tasks = dict.fromkeys(Turn.model_fields), [], []
    for task in range(TASKS):
        names = [f"{task}-{n}" for n in range(len(payments))]
        tasks.append({**dict.fromkeys(Task.model_fields), "task_id": str(task), "service": "main", "family": "f", "slots": "{}",
                      "goal": "g", "split": "train", "session_ids": names, "succeeded_session_ids": names})
        for name, calls in zip(names, payments, strict=True):
            shared = {**empty, "session_id": name, "service": "main"}
            said = {"turn_id": f"{name}u", "position": 0, "kind": "message", "role": "user", "content": asked}
            turns.append(shared | said)
            turns += [shared | {"turn_id": f"{name}{n}", "position": n + 1, "kind": "call", "role": "assistant", "tool": "pay",
                                "content": "paid", "arguments": json.dumps(call).replace("TASK", str(task))}
                      for n, call in enumerate(calls)]
    turns = [turns[n] for n in order] if order else turns
    return free_text(frame(Turn, turns), frame(Task, tasks), EFFECTS)["main"].ignored_arguments


def test_what_every_agent_words_anew_is_free_and_what_it_was_told_is_not() -> None:
    dinner, lunch = {"to": "AB1", "label": "dinner"}, {"to": "AB1", "label": "lunch"}
    assert masked("Pay AB1 please.", [dinner], [lunch]) == {"pay": ["label"]}
    assert masked("Pay AB1 for lunch, or was it dinner?", [dinner], [lunch]) == {}, "the user named both"
    assert masked("Pay AB1 please.", [dinner], [dinner]) == {}, "all choose the same: it follows from the task"
    assert masked("Pay AB1 please.", [dinner, lunch]) == {}, "one session a task: nobody else to disagree"
    assert masked("Pay.", [{"sum": 3}], [{"sum": 4}]) == {}, "a number that is worked out is right or wrong"
    assert masked("The lamp is broken, pay AB1.", [{"to": "AB1", "why": "lamp broken"}] * 2) == {"pay": ["why"]}, "a quote"
    assert masked("The lamp is broken, pay AB1.", [{"to": "AB1", "why": "lamp 7"}] * 2) == {}, "it names something"
    assert masked("Pay AB1.", [{"to": "AB1", "why": "lamp broken"}] * 2) == {}, "nobody said so"
    floor = {"to": "AB1", "why": "the lamp on floor 3 broke"}
    assert masked("The lamp on floor 3 broke, pay AB1.", [floor] * 2) == {"pay": ["why"]}, "a sentence may have a number"
    path = [{"path": "/accounts/AB15/payments"}], [{"path": "/accounts/AB16/payments"}]
    assert masked("Pay them.", *path) == {"pay": ["path"]} and masked("Pay AB15 or AB16.", *path) == {}, "a name in it"
    assert masked("Pay.", [{"note": "one two three four five six seven eight"}]) == {"pay": ["note"]}, "long text"


@given(st.permutations(range(TASKS * 4)))
def test_the_order_of_turns_does_not_matter(order: list[int]) -> None:
    payments = ([{"to": "AB1", "label": "dinner"}], [{"to": "AB1", "label": "lunch"}])
    assert masked("Pay AB1 please.", *payments, order=order) == {"pay": ["label"]}


def test_a_statement_is_no_free_text_however_long() -> None:
    statements = [f"UPDATE doors SET state = 'open', by = 'desk' WHERE door = {n} AND locked = 1" for n in range(3)]
    assert masked("Open it.", *([{"sql": text}] for text in statements)) == {}
    assert masked("Mail.", *([{"body": f"<p>Dear guest, your door number = {n} is open for you now</p>"}] for n in range(3))
                  ) == {"pay": ["body"]}, "markup is text"


def test_a_key_that_each_call_draws_anew_is_free_and_one_that_is_shown_is_not() -> None:
    drawn = [[{"to": "AB1", "key": "9f3aTASK77c0"}], [{"to": "AB1", "key": "b41dTASK02ee"}]]
    assert masked("Pay AB1.", *drawn) == {"pay": ["key"]}
    assert masked("Pay AB1.", *([{"to": "AB1", "key": "9f3a77c0ee"}] for _ in range(2))) == {}, "always the same"


def test_an_instant_that_the_agent_works_out_is_no_key() -> None:
    def paid(*keys: str) -> dict[str, list[str]]:
        return masked("Pay AB1 on Friday at ten.", [{"to": "AB1", "key": key} for key in keys])

    assert paid("9f3aTASK77c0", "b41dTASK02ee") == {"pay": ["key"]}
    assert paid("2026-03-1TASKT10:00Z", "2026-03-2TASKT09:30Z") == {}, "it is right or wrong"
