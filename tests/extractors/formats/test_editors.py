"""Sessions of coding agents in editors and terminals: Cursor's store, Copilot's changes, Gemini CLI, printed streams."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any

import orjson

from extractors.inventory import SourceFile
from extractors.reading import Reading, read
from extractors.sessions import assemble
from tests.extractors.formats.provider_reading import rejected_reasons


def read_lines(folder: Path, *values: Any) -> Reading:
    path = folder / "log.jsonl"
    path.write_bytes(b"".join(orjson.dumps(each) + b"\n" for each in values))
    return read(SourceFile(path, path.name))


def turns_of(reading: Reading) -> list[tuple[Any, ...]]:
    turns = assemble(reading.events, reading.declarations).turns.sort("session_id", "position")
    return [(row["session_id"], row["tool"] or row["role"], row["content"]) for row in turns.to_dicts()]


def cursor_store(path: Path, values: dict[str, Any]) -> Reading:
    with sqlite3.connect(path) as store:
        store.execute("pragma journal_mode = wal")   # as Cursor writes it
        store.execute("create table ItemTable (key text unique, value blob)")
        store.execute("insert into ItemTable values ('cursorAuth/accessToken', 'a-token-of-nobody')")
        store.execute("create table cursorDiskKV (key text unique, value blob)")
        store.executemany("insert into cursorDiskKV values (?, ?)", ((key, orjson.dumps(each)) for key, each in values.items()))
    store.close()
    return read(SourceFile(path, path.name))


def test_conversations_of_cursors_store_are_read_in_their_order_and_its_credentials_never(tmp_path: Path) -> None:
    reading = cursor_store(tmp_path / "state.vscdb", {
        "composerData:c1": {"modelConfig": {"modelName": "m"}, "fullConversationHeadersOnly": [
            {"bubbleId": each} for each in ("b1", "b2", "b3")]},
        "bubbleId:c1:b3": {"type": 2, "text": "on its way", "createdAt": "2026-03-02T10:15:03.000Z"},
        "bubbleId:c1:b1": {"type": 1, "text": "where is it?", "createdAt": "2026-03-02T10:15:00.000Z"},
        "bubbleId:c1:b2": {"type": 2, "text": "", "toolFormerData": {
            "name": "find", "toolCallId": "t", "rawArgs": '{"n":1}', "status": "error", "result": "no such order"}},
        "composerData:c2": {"conversation": [{"type": 1, "bubbleId": "x", "text": "hi"}]},
        "bubbleId:gone:b9": {"type": 1, "text": "of a conversation that was deleted"}})
    assert turns_of(reading) == [
        ("c1", "user", "where is it?"), ("c1", "find", "no such order"), ("c1", "assistant", "on its way"),
        ("c2", "user", "hi")]
    assert reading.events.filter(kind="result")["is_error"].to_list() == [True]
    assert set(reading.events.filter(session_id="c1")["model"]) == {"m"}
    assert "deleted" in reading.events.filter(kind="log")["content"].str.join("").item()
    assert "a-token-of-nobody" not in reading.events.write_json()


def test_a_store_without_conversations_keeps_none_of_its_bytes(tmp_path: Path) -> None:
    reading = cursor_store(tmp_path / "state.vscdb", {"checkpointId:1": {}})
    assert reading.quarantine.is_empty() and reading.events["kind"].to_list() == ["log"]


def test_a_chat_of_copilot_is_what_its_changes_make_of_it(tmp_path: Path) -> None:
    request = {"message": {"text": "go"}, "response": [{"value": "wait"}], "timestamp": 1772446500000}
    answer = {"kind": "toolInvocationSerialized", "toolId": "find", "toolCallId": "t", "isComplete": True,
              "resultDetails": {"input": '{"n":1}', "output": [{"value": "found"}], "isError": False}}
    reading = read_lines(
        tmp_path, {"kind": 0, "v": {"sessionId": "s", "requests": []}}, {"kind": 2, "k": ["requests"], "v": [request]},
        {"kind": 2, "k": ["requests", 0, "response"], "v": [answer, {"value": "done"}], "i": 0},
        {"kind": 1, "k": ["requests", 0, "vote"], "v": 0}, {"kind": 1, "k": ["requests", 7, "vote"], "v": 0})
    assert turns_of(reading) == [("s", "user", "go"), ("s", "find", "found"), ("s", "assistant", "done")]
    assert reading.events.filter(kind="feedback").select("name", "value").rows() == [("vote", "down")]
    assert sorted(set(rejected_reasons(reading))) == ["joined_line", "malformed_record"]


def test_a_result_of_copilot_may_be_a_tree_of_elements(tmp_path: Path) -> None:
    inner = {"type": 1, "children": [{"type": 2, "text": "lamps"}]}
    tree = {"node": {"type": 1, "children": [{"type": 2, "text": "two "}, inner]}}
    chat = {"requesterUsername": "u", "requests": [{"message": "how many?", "response": [], "result": {"metadata": {
        "toolCallRounds": [{"response": "", "thinking": {"text": "count"}, "toolCalls": [
            {"id": "c", "name": "count", "arguments": "{}"}]}, {"response": "Two.", "toolCalls": []}],
        "toolCallResults": {"c": {"content": [{"value": tree}]}}, "sessionId": "s"}}}]}
    reading = read_lines(tmp_path, chat)
    assert turns_of(reading) == [("s", "user", "how many?"), ("s", "count", "two lamps"), ("s", "assistant", "Two.")]
    assert reading.events.filter(kind="reasoning")["content"].to_list() == ["count"]


def test_what_a_sub_agent_did_is_a_session_of_its_own(tmp_path: Path) -> None:
    def message(role: str, content: Any, parent: str | None = None) -> dict[str, Any]:
        return {"type": role, "message": {"role": role, "content": content}, "parent_tool_use_id": parent, "session_id": "s"}

    reading = read_lines(
        tmp_path, {"type": "system", "subtype": "init", "session_id": "s", "model": "m", "tools": ["Task"]},
        message("assistant", [{"type": "tool_use", "id": "t1", "name": "Task", "input": {}}]),
        message("assistant", [{"type": "text", "text": "I look."}], "t1"),
        message("user", [{"type": "tool_result", "tool_use_id": "t1", "content": "seen", "is_error": True}]),
        {"type": "result", "subtype": "error_max_turns", "is_error": True, "session_id": "s"})
    assert turns_of(reading) == [("s", "Task", "seen"), ("s~t1", "assistant", "I look.")]
    assert reading.events.filter(kind="outcome").select("name", "value").rows() == [("run", "error_max_turns")]


def test_an_answer_in_several_lines_has_the_token_counts_of_its_last_line_once(tmp_path: Path) -> None:
    def line(text: str, n_tokens: int) -> dict[str, Any]:
        message = {"id": "m", "role": "assistant", "content": [{"type": "text", "text": text}],
                   "usage": {"input_tokens": 7, "output_tokens": n_tokens}}
        return {"type": "assistant", "message": message, "session_id": "s"}

    usages = read_lines(tmp_path, line("I look.", 2), line("It is on its way.", 9)).events.sort("position")["usage"].to_list()
    assert orjson.loads(usages[0]) == {"input_tokens": 7, "output_tokens": 9} and usages[1] is None


def test_a_call_of_gemini_cli_that_was_cancelled_has_an_error_and_one_that_waits_none(tmp_path: Path) -> None:
    calls = [{"id": "a", "name": "look", "args": {}, "status": "cancelled"},
             {"id": "b", "name": "look", "args": {}, "status": "awaiting_approval"}]
    reading = read_lines(tmp_path, {"sessionId": "s", "projectHash": "h", "messages": [
        {"id": "1", "type": "user", "content": "go"}, {"id": "2", "type": "gemini", "content": "", "toolCalls": calls}]})
    results = reading.events.filter(kind="result").select("call_id", "is_error").rows()
    assert results == [("a", True)] and reading.events.filter(kind="call").height == 2


def test_an_end_of_a_run_that_does_not_say_how_is_a_log_line(tmp_path: Path) -> None:
    begin = {"type": "system", "subtype": "init", "session_id": "a"}
    ends = [{"type": "result", "subtype": subtype, "result": "done", "session_id": "a"} for subtype in ("success", None, "")]
    assert read_lines(tmp_path, begin, *ends).events["kind"].to_list() == ["log", "outcome", "log", "log"]
