"""Sessions put together from real events: order, histories, formats, results."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import orjson
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from extractors.inventory import SourceFile, discover
from extractors.reading import read
from extractors.sessions import AssembledSessions, assemble
from warehouse.records import Decision, Session, Tool, Turn, frame_schema

LOGS = Path(__file__).parents[1] / "logs"
TABLES = ("sessions", "turns", "feedback", "row_changes", "tools", "decisions")


def assembled(*paths: Path, shuffle: int | None = None, only: tuple[str, ...] = ()) -> AssembledSessions:
    files, _ = discover(paths, only=only)
    if shuffle is not None:
        random.Random(shuffle).shuffle(files)
    readings = [read(each) for each in files]
    events = pl.concat([each.events for each in readings])
    if shuffle is not None:
        events = events.sample(fraction=1.0, shuffle=True, seed=shuffle)
    return assemble(events, pl.concat([each.declarations for each in readings]))


def written(folder: Path, **files: list[Any]) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    for name, rows in files.items():
        (folder / f"{name}.jsonl").write_bytes(b"".join(orjson.dumps(row) + b"\n" for row in rows))
    return folder


def completion(session_id: str, messages: list[Any], answer: Any, created: int, **more: Any) -> dict[str, Any]:
    answers = answer if isinstance(answer, list) else [answer]
    return {"metadata": {"session_id": session_id}, "created": created, "latency_ms": 1000, **more,
            "request": {"messages": messages}, "response": {"choices": [{"message": each} for each in answers]}}


def user(text: str) -> dict[str, Any]:
    return {"role": "user", "content": text}


def said(text: str) -> dict[str, Any]:
    return {"role": "assistant", "content": text}


def contents(turns: pl.DataFrame) -> list[str]:
    return turns.sort("session_id", "position")["content"].to_list()


@pytest.mark.parametrize("name", ["airline", "desks", "office", "human_desk", "retail_desk", "shop_app"])
def test_order_of_files_and_events_does_not_matter(name: str) -> None:
    first = assembled(LOGS / name)
    for seed in (1, 2):
        again = assembled(LOGS / name, shuffle=seed)
        for table in TABLES:
            assert getattr(first, table).equals(getattr(again, table)), table


@pytest.mark.parametrize("name", ["airline", "desks", "office", "human_desk", "retail_desk", "shop_app"])
def test_tables_are_typed_and_their_keys_resolve(name: str) -> None:
    made = assembled(LOGS / name)
    assert dict(made.sessions.schema) == frame_schema(Session) and dict(made.turns.schema) == frame_schema(Turn)
    assert dict(made.tools.schema) == frame_schema(Tool) and dict(made.decisions.schema) == frame_schema(Decision)
    assert made.sessions["session_id"].is_unique().all() and made.turns["turn_id"].is_unique().all()
    assert set(made.turns["session_id"]) == set(made.sessions["session_id"])
    assert made.decisions.select("stage", "subject", "reason").is_unique().all()
    counted = made.turns.group_by("session_id").agg(
        (pl.col("kind") == "message").sum().alias("n_messages"), (pl.col("kind") == "call").sum().alias("n_calls"),
        (pl.col("position").sort() == pl.int_range(pl.len())).all().alias("gapless"))
    both = made.sessions.join(counted, on="session_id", suffix="_counted")
    assert both["gapless"].all()
    assert (both["n_messages"] == both["n_messages_counted"]).all() and (both["n_calls"] == both["n_calls_counted"]).all()
    calls = made.turns.filter(pl.col("kind") == "call")
    assert calls["content"].null_count() == 0, "every call of the samples is answered"
    assert (calls["answered_at"].drop_nulls() >= calls.filter(pl.col("answered_at").is_not_null())["happened_at"]).all()
    known = made.tools.select("service", "tool")
    assert calls.join(known, on=["service", "tool"], how="anti").is_empty()


def test_a_session_in_two_formats_is_one_session() -> None:
    both = assembled(LOGS / "retail_desk")
    left = both.decisions.filter(~pl.col("kept"))
    assert both.sessions.height == left.height == 4 and set(left["reason"]) == {"duplicate_session"}
    assert all("openai_completions" in each and "otlp" in each for each in left["detail"])
    alone = {name: assembled(LOGS / "retail_desk", only=(name,)) for name in ("logs", "otlp")}
    told = ["session_id", "position", "kind", "role", "content", "tool", "arguments", "call_id"]
    assert alone["logs"].turns.select(told).equals(alone["otlp"].turns.select(told))
    assert both.sessions["n_calls"].sum() == 18 and both.feedback.height == 1


def test_times_of_completions_follow_from_created_and_latency() -> None:
    made = assembled(LOGS / "retail_desk", only=("logs",))
    exact = assembled(LOGS / "retail_desk", only=("otlp",))
    joined = made.turns.join(exact.turns, on=["session_id", "position"], suffix="_exact")
    off_ms = (joined["happened_at_exact"] - joined["happened_at"]).dt.total_milliseconds()
    assert off_ms.filter(joined["kind"] == "message").is_between(-1, 1001).all(), "created is cut to the second"
    assert made.sessions["started_at"].null_count() == 0
    assert (made.sessions["started_at"] == made.turns.group_by("session_id", maintain_order=True).agg(
        pl.col("happened_at").min())["happened_at"]).all()


@settings(max_examples=12, deadline=None)
@given(cut=st.integers(1, 40), grown=st.booleans())
def test_a_log_in_two_files_gives_the_same_sessions(cut: int, grown: bool, tmp_path_factory: pytest.TempPathFactory) -> None:
    """Rotated anywhere, or read again after it grew: the histories overlap and are told once."""
    lines = (LOGS / "retail_desk/logs/2026-03-02.jsonl").read_bytes().splitlines(keepends=True)
    cut = min(cut, len(lines) - 1)
    folder = tmp_path_factory.mktemp("rotated")
    (folder / "b.jsonl").write_bytes(b"".join(lines[:cut]))
    (folder / "a.jsonl").write_bytes(b"".join(lines if grown else lines[cut:]))
    whole = assembled(LOGS / "retail_desk/logs")
    parts = assembled(folder)
    told = [name for name in frame_schema(Turn) if name not in ("turn_id", "result_id")]
    assert parts.turns.select(told).equals(whole.turns.select(told))
    assert parts.sessions.equals(whole.sessions)


def test_a_grown_log_whose_old_records_belong_to_another_file(tmp_path: Path) -> None:
    """As the ledger keeps it: records that an earlier file gave stay with that file."""
    lines = (LOGS / "retail_desk/logs/2026-03-02.jsonl").read_bytes().splitlines(keepends=True)
    for cut in (1, 3, 7, 20):
        (tmp_path / "old").write_bytes(b"".join(lines[:cut]))
        (tmp_path / "new").write_bytes(b"".join(lines))
        old, new = (read(SourceFile(tmp_path / name, name)).events for name in ("old", "new"))
        kept = pl.concat([old, new.join(old, on="event_id", how="anti")])
        made, whole = assemble(kept), assemble(new)
        assert made.turns.equals(whole.turns) and made.sessions.equals(whole.sessions)


def test_a_shortened_history_goes_on(tmp_path: Path) -> None:
    """Compaction: the beginning is replaced by a summary, the end is still there."""
    long = "The third door stands open now, and the light behind it is on."
    first = [user("one"), said("two"), user("three")]
    log = written(tmp_path, log=[
        completion("s", first, said(long), 1_700_000_010),
        completion("s", [user("[summary]"), said(long), user("four")], said("five"), 1_700_000_020)])
    made = assembled(log)
    assert contents(made.turns) == ["one", "two", "three", long, "four", "five"]


def test_two_conversations_under_one_id_are_told_apart(tmp_path: Path) -> None:
    log = written(tmp_path, log=[
        completion("s", [user("open the door")], said("it is open, and the light is on"), 1_700_000_010),
        completion("s", [user("name this conversation")], said("a door"), 1_700_000_011),
        completion("s", [user("open the door"), said("it is open, and the light is on"), user("thanks")], said("gladly"),
                   1_700_000_012)])
    made = assembled(log)
    assert made.sessions["n_messages"].to_list() == [4, 2]
    assert made.sessions["session_id"][0] == "s" and made.sessions["session_id"][1].startswith("s~")
    decision = made.decisions.filter(pl.col("reason") == "shared_session_id")
    assert decision["subject"].to_list() == [made.sessions["session_id"][1]] and decision["kept"].all()


def test_a_retried_or_other_candidate_is_replaced_by_what_the_history_holds(tmp_path: Path) -> None:
    log = written(tmp_path, log=[
        completion("s", [user("a")], [said("first"), said("second")], 1_700_000_010),
        completion("s", [user("a"), said("second"), user("b")], said("c"), 1_700_000_020)])
    made = assembled(log)
    assert contents(made.turns) == ["a", "second", "b", "c"]
    assert made.decisions.filter(~pl.col("kept"))["reason"].to_list() == ["replaced_answer"]


def test_completions_without_a_session_id_are_joined_by_their_history(tmp_path: Path) -> None:
    rows = [completion("x", [user("a")], said("b"), 1_700_000_010),
            completion("x", [user("a")], said("other"), 1_700_000_011),
            completion("x", [user("a"), said("b"), user("c")], said("d"), 1_700_000_020)]
    for row in rows:
        del row["metadata"]
    made = assembled(written(tmp_path, log=rows))
    assert sorted(made.sessions["n_messages"]) == [2, 4]
    assert all(each.startswith("~") for each in made.sessions["session_id"])


def test_a_session_line_that_comes_twice_is_read_once(tmp_path: Path) -> None:
    row = {"session_id": "s", "messages": [user("a"), said("b")]}
    made = assembled(written(tmp_path, log=[row, row, {**row, "messages": [user("a"), said("b"), user("c")]}]))
    assert contents(made.turns) == ["a", "b", "c"]
    assert set(made.decisions.filter(~pl.col("kept"))["reason"]) == {"repeated_history"}


def test_identity_and_pause_cut_sessions_where_none_are_named(tmp_path: Path) -> None:
    def request(minute: int, who: str) -> dict[str, Any]:
        return {"time": 1_700_000_000_000 + minute * 60_000, "req": {"method": "GET", "url": "/doors/1", "user": {"id": who}},
                "res": {"statusCode": 200, "body": {"open": True}}, "responseTime": 5}

    log = written(tmp_path, log=[request(m, w) for m, w in [(0, "a"), (10, "b"), (29, "a"), (60, "a"), (61, "b")]])
    assert sorted(assembled(log).sessions["n_calls"]) == [1, 1, 1, 2]
    readings = [read(each).events for each in discover([log])[0]]
    assert sorted(assemble(readings[0], gap_minutes=90).sessions["n_calls"]) == [2, 3]


def test_feedback_on_a_session_that_is_not_there_waits_for_it(tmp_path: Path) -> None:
    log = written(tmp_path, feedback=[{"session_id": each, "kind": "solved", "value": "yes"} for each in ("s", "t")])
    alone = assembled(log)
    assert alone.feedback.is_empty() and alone.decisions["reason"].to_list() == ["unknown_session"] * 2
    made = assembled(written(tmp_path, log=[{"session_id": "s", "messages": [user("a"), said("b")]}]))
    assert made.feedback.select("session_id", "name", "value").rows() == [("s", "solved", "yes")]
    assert made.decisions.filter(~pl.col("kept"))["detail"][0].startswith("feedback on session t, ")


def test_requests_under_the_id_of_a_conversation_stay_beside_it(tmp_path: Path) -> None:
    asked = {"time": 1_700_000_000_000, "req": {"method": "GET", "url": "/doors/1"}, "sessionId": "s",
             "res": {"statusCode": 200, "body": {"open": True}}, "responseTime": 5}
    folder = written(tmp_path, talk=[{"session_id": "s", "messages": [user("a"), said("b")]}], requests=[asked, asked])
    made = assembled(folder)
    assert dict(made.sessions.select("session_id", "n_calls").iter_rows()) == {"s": 0, "s~requests": 2}
    assert made.sessions["session_id"].to_list() == made.turns["session_id"].unique().sort().to_list()
    assert made.decisions.filter(reason="shared_session_id")["subject"].to_list() == ["s~requests"]


@pytest.mark.parametrize(("logged", "kept"), [
    ('{"n": 12345678901234567890123, "a": "é"}', '{"a":"é","n":12345678901234567890123}'),
    ('{"b": 1.50, "a": [1]}', '{"a":[1],"b":1.5}'), ('{"x": NaN}', None), ("[1]", None),
    ('{"x":' * 600 + "1" + "}" * 600, None)])
def test_arguments_are_kept_to_the_digit_or_not_at_all(logged: str, kept: str | None, tmp_path: Path) -> None:
    call = {"id": "1", "type": "function", "function": {"name": "open_door", "arguments": logged}}
    row = {"session_id": "s", "messages": [user("a"), {"role": "assistant", "content": None, "tool_calls": [call]}]}
    [turn] = assembled(written(tmp_path, log=[row])).turns.filter(kind="call").to_dicts()
    assert (turn["arguments"], turn["arguments_raw"]) == (kept, logged)
