"""The same conversation from two logs is one session; what only looks alike is not."""

from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path
from typing import Any

import orjson
import polars as pl
import pytest

from benchmarks.first_hour_twice_data import NIGHTS, Conversation, Log, night
from extractors.inventory import discover
from extractors.reading import read
from extractors.sessions import AssembledSessions, assemble
from extractors.tasks.splits import choose_sides

T0 = 1_772_446_500.0
RESULT = '{"order_id": "#W11", "items": [{"name": "lamp", "price": 12.5}, {"name": "chair"}], "status": "delivered"}'


def talk(name: str, at: float = T0, order: str = "W11", ids: str = "none", agrees: str = "Yes, please do.", pace: float = 7.0
         ) -> Conversation:
    call = {"id": f"call_{name}_{int(at)}_0123456789", "type": "function",
            "function": {"name": "get_order", "arguments": f'{{"order_id": "#{order}"}}'}}
    messages: list[dict[str, Any]] = [
        {"role": "user", "content": f"Hello, the lamp of my order #{order} arrived broken and I would like to send it back."},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": call["id"], "name": "get_order", "content": RESULT.replace("W11", order)},
        {"role": "assistant", "content": f"I see the lamp in #{order}. Shall I open a return for it, paid back to your card?"},
        {"role": "user", "content": agrees},
        {"role": "assistant", "content": "Done. You get a label by mail."}]
    return Conversation(name, tuple(messages), tuple(at + pace * n for n in range(6)), ids)


def short(name: str, at: float) -> Conversation:
    messages = {"role": "user", "content": "Are you there?"}, {"role": "assistant", "content": "Yes, how can I help?"}
    return Conversation(name, messages, (at, at + 2), "none")


def events_of(folder: Path, talks: list[Conversation], log: Log = NIGHTS["plain"]) -> pl.DataFrame:
    logs = night(talks, log)
    for name, lines in (("chat", logs.chat), ("spans", logs.spans)):
        (folder / f"{name}.jsonl").write_bytes(b"".join(orjson.dumps(line) + b"\n" for _, line in lines))
    return pl.concat([read(each).events for each in discover([folder])[0]])


def made_of(folder: Path, talks: list[Conversation], log: Log = NIGHTS["plain"]) -> AssembledSessions:
    return assemble(events_of(folder, talks, log))


def in_doubt(made: AssembledSessions) -> int:
    return made.sessions["alike"].drop_nulls().len()


@pytest.mark.parametrize("name", list(NIGHTS))
def test_what_two_logs_tell_without_a_common_id_is_one_session(name: str, tmp_path: Path) -> None:
    made = made_of(tmp_path, [talk("a"), talk("b", T0 + 400, "W12", agrees="No, forget it.")], NIGHTS[name])
    assert made.sessions.height == 2 and in_doubt(made) == 0
    assert made.decisions.filter(reason="same_conversation", kept=False).height == 2
    calls = made.turns.filter(kind="call").sort("arguments")
    assert calls["content"].str.contains('"status": "delivered"').to_list() == [True, True]
    assert made.turns.filter(role="system").height == 2 and made.turns["happened_at"].null_count() == 0


def test_other_ids_in_the_second_log_do_not_keep_a_conversation_apart(tmp_path: Path) -> None:
    made = made_of(tmp_path, [talk("one-0123456789", ids="other")])
    session = made.sessions.row(0, named=True)
    assert made.sessions.height == 1 and len(session["other_session_ids"]) == 1


def test_feedback_on_the_id_of_either_log_is_on_the_one_session(tmp_path: Path) -> None:
    events = events_of(tmp_path, [talk("one-0123456789", ids="other")])
    names = sorted(events.drop_nulls("session_id")["session_id"].unique())
    assert len(names) == 2
    row = events.filter(kind="message").head(1).with_columns(
        kind=pl.lit("feedback"), name=pl.lit("thumbs"), value=pl.lit("up"), call_id=pl.lit(None, pl.String()))
    thumbs = [row.with_columns(event_id=pl.lit(f"f{n}"), session_id=pl.lit(name)) for n, name in enumerate(names)]
    made = assemble(pl.concat([events, *thumbs]))
    assert made.feedback["session_id"].to_list() == made.sessions["session_id"].to_list() * 2


def test_equal_words_at_other_times_stay_apart(tmp_path: Path) -> None:
    talks = [talk("real"), *(short(f"s{n}", T0 + 611.0 * n) for n in range(8))]
    made = made_of(tmp_path, talks)
    spoken = made.sessions.filter(n_messages=3)
    assert spoken.height == 16   # nothing yet tells how far the two clocks are apart: kept, reported and tied
    assert in_doubt(made) == 16 and spoken["alike"].n_unique() == 8


def test_equal_words_are_paired_by_time_once_other_conversations_tell_how_far_the_clocks_are_apart(tmp_path: Path) -> None:
    talks = [*(talk(f"r{n}", T0 + 333.0 * n, f"W2{n}") for n in range(6)), *(short(f"s{n}", T0 + 611.0 * n) for n in range(8))]
    made = made_of(tmp_path, talks, replace(NIGHTS["plain"], shift=4.0))
    assert made.sessions.height == 14 and in_doubt(made) == 0
    pairs = made.sessions.filter(n_messages=3)
    assert pairs["other_session_ids"].list.len().to_list() == [1] * 8


def test_a_request_that_is_sent_again_seconds_later_is_another_session(tmp_path: Path) -> None:
    ids = "other"
    talks = [*(talk(f"r{n}", T0 + 333.0 * n, f"W2{n}", ids) for n in range(6)), talk("first", T0 + 50, ids=ids),
             talk("again", T0 + 55, ids=ids)]
    made = made_of(tmp_path, talks)
    assert made.sessions.height == 8
    ids = pl.col("other_session_ids").list.concat(pl.concat_list("session_id")).alias("ids")
    names = made.sessions.select("started_at", ids)
    starts = names.filter(pl.col("ids").list.contains("first") | pl.col("ids").list.contains("again"))["started_at"].sort()
    assert starts.diff().drop_nulls().dt.total_seconds().to_list() == [5]


def test_two_users_who_begin_alike_in_one_second_are_two_sessions(tmp_path: Path) -> None:
    talks = [talk("a", ids="other"), talk("b", ids="other", agrees="No, wait. I keep it.")]
    made = made_of(tmp_path, talks)
    assert made.sessions.height == 2 and in_doubt(made) == 0


def test_a_fork_stays_apart_and_on_the_split_of_its_origin(tmp_path: Path) -> None:
    origin = talk("origin-0123456789", ids="same")
    ends = {"role": "user", "content": "Rather send a new one."}, {"role": "assistant", "content": "It is sent."}
    fork = replace(origin, name="fork-0123456789", begins=4, messages=(*origin.messages[:4], *ends))
    made = made_of(tmp_path, [origin, fork])
    assert made.sessions.height == 2 and made.sessions["alike"].n_unique() == 1 and in_doubt(made) == 2
    assert made.decisions.filter(reason="maybe_same_conversation").height == 2


def test_a_conversation_that_is_taken_up_after_hours_stays_apart(tmp_path: Path) -> None:
    origin = talk("origin-0123456789", ids="same")
    later = origin.times[-1] + 4 * 3600
    resumed = replace(origin, name="later-0123456789", begins=6, times=(*origin.times, later, later + 3), messages=(
        *origin.messages, {"role": "user", "content": "Is it done?"}, {"role": "assistant", "content": "It is on its way."}))
    made = made_of(tmp_path, [origin, resumed])
    assert sorted(made.sessions["session_id"]) == ["later-0123456789", "origin-0123456789"]


def test_the_order_of_events_changes_nothing(tmp_path: Path) -> None:
    talks = [*(talk(f"r{n}", T0 + 333.0 * n, f"W2{n}") for n in range(6)), short("s", T0 + 5), talk("again", T0 + 6, "W20")]
    events = events_of(tmp_path, talks)
    made = assemble(events)
    for seed in range(3):
        order = list(range(events.height))
        random.Random(seed).shuffle(order)
        again = assemble(events[order])
        assert again.sessions.equals(made.sessions) and again.turns.equals(made.turns)
        assert again.decisions.equals(made.decisions)


def test_sessions_that_may_be_one_are_on_one_split_also_across_services() -> None:
    members = pl.DataFrame([
        {"task": f"t{n}", "service": ("x", "y")[n % 2], "family": "f", "session_id": f"s{n}", "identity": f"u{n}",
         "started_at": None, "words": f"s{n}", "alike": f"a{n // 2}"} for n in range(60)],
        schema_overrides={"started_at": pl.Datetime("us", "UTC")})
    calls = pl.DataFrame(schema={"turn_id": pl.String, "session_id": pl.String, "acts": pl.Boolean, "failed": pl.Boolean})
    values = pl.DataFrame(schema={"turn_id": pl.String, "path": pl.String, "value": pl.String})
    sides = choose_sides(members, calls, values).tasks.join(members.select("task", "alike"), on="task")
    assert sides.group_by("alike").agg(pl.col("split").n_unique())["split"].max() == 1


def test_runs_of_one_log_without_a_clock_that_end_earlier_or_later_stay_apart(tmp_path: Path) -> None:
    messages = talk("a").messages
    rows = [{"session_id": f"run-{n}-0123456789", "messages": messages[:n]} for n in (2, 4, 6)]
    (tmp_path / "runs.jsonl").write_bytes(b"".join(orjson.dumps(row) + b"\n" for row in rows))
    assert assemble(read(discover([tmp_path])[0][0]).events).sessions.height == 3
