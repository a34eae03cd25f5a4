"""Users: what was said before the agent's first move, and afterwards, of every shape of session."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import polars as pl

from env_builder.users import led_by_solution, scripts, solutions
from warehouse.records import Task, Turn, frame

START = datetime(2026, 3, 2, tzinfo=UTC)


def turn(position: int, role: str, content: str | None = None, session_id: str = "s", **more: Any) -> dict[str, Any]:
    empty: dict[str, Any] = dict.fromkeys(Turn.model_fields)
    return {
        **empty,
        "turn_id": f"{session_id}{position}",
        "session_id": session_id,
        "service": "main",
        "position": position,
        "kind": "call" if "tool" in more else "message",
        "role": role,
        "content": content,
        "happened_at": START + timedelta(minutes=position),
        **more,
    }


def task(
    task_id: str = "t", good: tuple[str, ...] = (), sessions: tuple[str, ...] = ("s",), **more: Any
) -> dict[str, Any]:
    return {
        "task_id": task_id,
        "service": "main",
        "family": "f",
        "slots": "{}",
        "goal": "g",
        "session_ids": list(sessions),
        "segment_of": None,
        "derived_from": None,
        "starts_at": None,
        "succeeded_session_ids": list(good),
        "split": "train",
        "difficulty": None,
        **more,
    }


def script(turns: list[dict[str, Any]], **more: Any) -> tuple[list[Any], list[Any], list[Any]]:
    tasks, given_turns = frame(Task, [task(**more)]), frame(Turn, turns)
    row = scripts(tasks, given_turns).row(0, named=True)
    return (
        json.loads(row["opening"]),
        json.loads(row["script"])["turns"],
        json.loads(solutions(tasks, given_turns)["solution"][0]),
    )


def test_a_plain_session() -> None:
    opening, user, steps = script(
        [
            turn(0, "system", "Be kind."),
            turn(1, "user", "Hello"),
            turn(2, "assistant", None, tool="look", arguments='{"n":1}'),
            turn(3, "assistant", "It is blue."),
            turn(4, "user", "Thanks"),
            turn(5, "assistant", "Bye"),
            turn(6, "user", "Bye"),
        ]
    )
    assert opening == [{"role": "system", "content": "Be kind."}, {"role": "user", "content": "Hello"}]
    assert user == ["Thanks", "Bye"]
    assert steps == [{"tool": "look", "arguments": {"n": 1}}, {"say": "It is blue."}, {"say": "Bye"}]


def test_a_solution_keeps_the_fields_of_arguments_in_the_agents_order() -> None:
    raw = '{"who": "E1", "scope": {"system": "crm", "rights": ["read"]}}'
    own = turn(2, "assistant", None, tool="grant", arguments='{"scope":{"rights":["read"],"system":"crm"},"who":"E1"}')
    given_turns = frame(Turn, [turn(1, "user", "Hello"), own | {"arguments_raw": raw}, turn(3, "assistant", "Done")])
    text = solutions(frame(Task, [task()]), given_turns)["solution"][0]
    assert '{"arguments":{"who":"E1","scope":{"system":"crm","rights":["read"]}},"tool":"grant"}' in text
    other = frame(Turn, [turn(1, "user", "Hello"), own | {"arguments_raw": "{'who': 'E1'}"}])
    text = solutions(frame(Task, [task()]), other)["solution"][0]
    assert '"arguments":{"scope":{"rights":["read"],"system":"crm"},"who":"E1"}' in text


def test_a_greeting_belongs_to_the_opening() -> None:
    opening, user, steps = script(
        [
            turn(0, "assistant", "How can I help?"),
            turn(1, "user", "Hello"),
            turn(2, "assistant", "Hi"),
            turn(3, "user", "Bye"),
        ]
    )
    assert [message["content"] for message in opening] == ["How can I help?", "Hello"]
    assert (user, steps) == (["Bye"], [{"say": "Hi"}])


def test_a_call_before_the_user_speaks_is_a_move() -> None:
    opening, user, steps = script(
        [
            turn(0, "system", "x"),
            turn(1, "assistant", "", tool="look", arguments="{}"),
            turn(2, "user", "Hello"),
            turn(3, "user", "Anyone?"),
            turn(4, "assistant", "Yes"),
        ]
    )
    assert [message["role"] for message in opening] == ["system"]
    assert user == ["Hello\nAnyone?"] and steps == [{"tool": "look", "arguments": {}}, {"say": "Yes"}]


def test_calls_of_the_user_and_broken_arguments_are_no_steps() -> None:
    _, _, steps = script(
        [
            turn(0, "user", "Hello"),
            turn(1, "user", "on", tool="press", arguments="{}", requestor="user"),
            turn(2, "assistant", "", tool="look", arguments=None),
            turn(3, "assistant", " "),
            turn(4, "assistant", "Done"),
        ]
    )
    assert steps == [{"say": "Done"}]


def test_a_failed_call_that_a_later_one_puts_right_is_no_step_of_the_solution() -> None:
    _, _, steps = script(
        [
            turn(0, "user", "Hello"),
            turn(1, "assistant", "Error: no such hut", tool="paint", arguments='{"at": "hut9"}'),
            turn(2, "assistant", "painted", tool="paint", arguments='{"at": "hut77"}'),
            turn(3, "assistant", "Error: no such key", tool="lock", arguments='{"key": "k1"}'),
            turn(4, "assistant", "Error: no paint left", tool="paint", arguments='{"at": "hut78"}'),
            turn(5, "assistant", "Done"),
        ]
    )
    assert [step.get("arguments") for step in steps] == [{"at": "hut77"}, {"key": "k1"}, {"at": "hut78"}, None]


def test_the_best_good_session_gives_the_words_and_none_gives_none() -> None:
    turns = [turn(0, "user", "one", "s"), turn(0, "user", "two", "r"), turn(1, "assistant", "ok", "r")]
    assert script(turns, good=("r",), sessions=("r", "s"))[0] == [{"role": "user", "content": "two"}]
    assert script(turns, sessions=("nowhere",)) == ([], [], [])


def test_a_later_segment_begins_where_its_task_does() -> None:
    turns = [
        turn(0, "user", "first"),
        turn(1, "assistant", "done"),
        turn(2, "user", "second"),
        turn(3, "assistant", "too"),
    ]
    opening, user, steps = script(turns, sessions=(), segment_of="s", starts_at=START + timedelta(minutes=2))
    assert (opening, user, steps) == ([{"role": "user", "content": "second"}], [], [{"say": "too"}])


def test_rows_in_are_rows_out_in_any_order() -> None:
    turns = frame(Turn, [turn(0, "user", "a"), turn(1, "assistant", "b"), turn(2, "user", "c")])
    tasks = frame(Task, [task("b"), task("a")])
    one, two = scripts(tasks, turns), scripts(tasks.reverse(), turns.sample(fraction=1.0, shuffle=True, seed=3))
    assert one.equals(two) and one["task_id"].to_list() == ["a", "b"]
    assert scripts(tasks.clear(), turns).height == 0 and isinstance(one, pl.DataFrame)


def test_messages_without_words_are_no_turns_of_the_user() -> None:
    turns = [turn(0, "user", "a"), turn(1, "assistant", "b"), turn(2, "user", None), turn(3, "user", "c"),
             turn(4, "assistant", "d"), turn(5, "user", None), turn(6, "assistant", None), turn(7, "user", "e")]  # fmt: skip
    opening, user_turns, _ = script(turns)
    assert [each["content"] for each in opening] == ["a"] and user_turns == ["c", "e"]


def test_the_session_of_the_known_solution_leads() -> None:
    turns = [turn(0, "user", "Open door 7", "a"), turn(1, "assistant", "It is open.", "a"),
             turn(0, "user", "Open door 8", "b"), turn(1, "assistant", "Door 8 is open.", "b")]
    tasks = frame(Task, [task(sessions=("a", "b"), good=("a", "b"))])
    rubrics = pl.DataFrame({"task_id": tasks["task_id"], "solution": ['[{"say":"Door 8 is open."}]']})
    led = led_by_solution(tasks, frame(Turn, turns), rubrics)
    assert led["succeeded_session_ids"].to_list() == [["b", "a"]]
    other = rubrics.with_columns(pl.lit("[]").alias("solution"))
    assert led_by_solution(tasks, frame(Turn, turns), other)["succeeded_session_ids"].to_list() == [["a", "b"]]
