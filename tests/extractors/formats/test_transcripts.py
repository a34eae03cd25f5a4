"""Formats of agents' transcripts: what each one can carry beyond the sample session, and its awkward corners."""

from __future__ import annotations

import io
import json
import zipfile
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from extractors import content
from extractors.formats import Emit, LogRecord, named, recognise, registered
from extractors.formats.envelope import Envelope
from extractors.formats.format import Format, event_frame
from extractors.inventory import SourceFile
from extractors.reading import Reading, read

NAMES = ("adp", "atif", "inspect", "mini_swe_agent", "openhands", "openhands_v1", "swe_agent", "tau2_bench", "tau_bench", "xes",
         "ocel")
OURS = [each for each in registered() if each.name in NAMES]
KEYS = ["steps", "source", "message", "tool_calls", "observation", "results", "content", "class_", "function", "kwargs", "traj",
        "reward", "info", "simulations", "messages", "id", "history", "trajectory", "action", "thought", "role", "extra",
        "args", "kind", "llm_message", "tool_call", "events", "objects", "type", "attributes", "samples", "eval", "scores",
        "value"]
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.floats(allow_nan=False, allow_infinity=False)
    | st.sampled_from(["assistant", "tool", "user", "", "ActionEvent", "run", "api_action", "2026-03-02"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(KEYS), inner, max_size=5),
    max_leaves=25)


def reading(folder: Path, value: Any, name: str = "log") -> Reading:
    """Return what the public way reads of a file that holds `value`: JSON, or bytes as they are."""
    path = folder / name
    path.write_bytes(value if isinstance(value, bytes) else json.dumps(value).encode())
    return read(SourceFile(path, path.name))


def event_rows(log_reading: Reading, *columns: str) -> list[tuple[Any, ...]]:
    return log_reading.events.select(columns).rows()


@pytest.mark.parametrize("log_format", OURS, ids=lambda each: each.name)
def test_sample_is_recognised_and_loses_nothing(log_format: Format, tmp_path: Path) -> None:
    log_reading = reading(tmp_path, log_format.sample())
    assert [each.name for each in registered() if each.claims(content.head_of(log_format.sample()))] == [log_format.name]
    assert log_reading.file.format == log_format.name and log_reading.events.height >= 5
    assert log_reading.events["event_id"].is_unique().all()
    assert log_reading.decisions.filter(~pl.col("kept")).is_empty()
    assert set(log_reading.records["record_id"]) == set(log_reading.events["record_id"])


@pytest.mark.parametrize("log_format", OURS, ids=lambda each: each.name)
@given(values=st.lists(VALUES, min_size=1, max_size=3))
def test_any_json_becomes_events_or_a_reject(log_format: Format, values: list[Any]) -> None:
    emit = Emit("file", "main", log_format.name, Envelope())
    records = [LogRecord(f"{number:064d}", number, value) for number, value in enumerate(values, start=1)]
    log_format.read(iter(records), emit)
    spoken_of = {row["record_id"] for row in emit.events} | {record.record_id for record, _, _ in emit.rejects}
    assert event_frame(emit.events)["event_id"].is_unique().all()
    assert spoken_of == {record.record_id for record in records}


@pytest.mark.parametrize("log_format", [each for each in OURS if each.name != "xes"], ids=lambda each: each.name)
@given(data=st.data())
def test_a_damaged_sample_breaks_nothing(log_format: Format, data: st.DataObject) -> None:
    """One value somewhere inside the sample replaced by something else."""
    head = content.head_of(log_format.sample())
    assert head is not None
    value = content.records_of(log_format.sample(), head.layout, log_format.whole).value(0)[0]
    value = json.loads(json.dumps(value))
    place: Any = value
    while True:
        keys = list(place) if isinstance(place, dict) else list(range(len(place)))
        key = data.draw(st.sampled_from(keys))
        if not isinstance(place[key], (dict, list)) or not place[key] or data.draw(st.booleans()):
            break
        place = place[key]
    place[key] = data.draw(VALUES)
    emit = Emit("file", "main", log_format.name, Envelope())
    log_format.read(iter([LogRecord("0" * 64, 1, value)]), emit)
    assert event_frame(emit.events).height == len(emit.events)
    assert emit.events or emit.rejects


def test_atif_tells_subagents_apart_and_marks_what_was_copied(tmp_path: Path) -> None:
    step = {"step_id": 1, "source": "user", "message": [{"type": "text", "text": "go"}], "is_copied_context": True}
    prompt = {"step_id": 2, "source": "agent", "message": "", "reasoning_content": "hm", "model_name": "m",
             "metrics": {"prompt_tokens": 5, "completion_tokens": 2},
             "tool_calls": [{"tool_call_id": "c", "function_name": "f", "arguments": {"a": 1}}],
             "observation": {"results": [{"source_call_id": "c", "subagent_trajectory_ref": [{"trajectory_id": "t2"}]}]}}
    empty = {"step_id": 3, "source": "agent", "message": None, "observation": {"results": []}}
    inner = {"schema_version": "ATIF-v1.7", "trajectory_id": "t2", "session_id": "s", "agent": {"name": "sub"},
             "steps": [{"source": "user", "message": "inner"}]}
    log_reading = reading(tmp_path, {"schema_version": "ATIF-v1.8", "session_id": "s", "agent": {"name": "main"}, "notes": "n",
                               "steps": [step, prompt, empty], "subagent_trajectories": [inner]})
    assert event_rows(log_reading, "kind", "session_id", "position", "content") == [
        ("message", "s", 0, "go"), ("reasoning", "s", None, "hm"), ("call", "s", 1, None), ("result", "s", 2, None),
        ("log", "s", None, json.dumps(empty, separators=(",", ":"))), ("log", "s", None, "n"),
        ("message", "s/t2", 0, "inner")]
    assert (
        log_reading.events["lossy"].to_list()[0] == '["copied context"]'
        and "sub-agent" in log_reading.events["lossy"].to_list()[3]
    )
    assert log_reading.events["usage"].drop_nulls().to_list() == ['{"input_tokens":5,"output_tokens":2}']
    assert log_reading.events.filter(kind="reasoning")["usage"].item() is not None


def test_adp_reads_code_pages_and_capital_class_names(tmp_path: Path) -> None:
    items = [{"class_": "TextObservation", "content": "do it", "source": "user"},
             {"class_": "code_action", "language": "python", "content": "print(1)", "description": "I run it", "reward": 0.5},
             {"class_": "text_observation", "content": "1", "source": "environment"},
             {"class_": "web_observation", "html": "<p>", "url": "u", "viewport_size": None},
             {"class_": "MessageAction", "message": "done", "thoughts": "finished"},
             {"class_": "dance_move", "content": "?"}]
    log_reading = reading(tmp_path, {"schema_version": "1.0.0", "content": items, "details": {}})
    assert event_rows(log_reading, "kind", "role", "tool", "content") == [
        ("message", "user", None, "do it"), ("message", "assistant", None, "I run it"), ("call", "assistant", "python", None),
        ("outcome", None, None, None), ("result", None, None, "1"),
        ("result", None, None, '{"html":"<p>","url":"u","viewport_size":null}'), ("reasoning", "assistant", None, "finished"),
        ("message", "assistant", None, "done"), ("log", None, None, '{"class_":"dance_move","content":"?"}')]
    assert log_reading.events["session_id"].n_unique() == 1 and log_reading.events["session_id"][0].startswith("~")
    assert json.loads(log_reading.events["arguments"].drop_nulls().item()) == {"code": "print(1)"}


def test_swe_agent_of_old_without_demonstrations(tmp_path: Path) -> None:
    history = [{"role": "system", "content": "s"}, {"role": "user", "content": "shown", "is_demo": True},
               {"role": "user", "content": "fix it"},
               {"role": "assistant", "content": "look\n```\nls\n```", "thought": "look", "action": "ls\n"},
               {"role": "user", "content": "a.py", "message_type": "observation"},
               {"role": "assistant", "content": "done"}]
    log_reading = reading(tmp_path, {"environment": "e", "trajectory": [{"execution_time": 0.5}, {"execution_time": 0}],
                               "history": history, "info": {"exit_status": "submitted", "submission": "diff", "model_stats": {
                                   "tokens_sent": 7, "tokens_received": 3}}})
    assert event_rows(log_reading, "kind", "content") == [
        ("message", "s"), ("message", "fix it"), ("message", "look"), ("call", None), ("result", "a.py"), ("message", "done"),
        ("outcome", None), ("outcome", None)]
    call = log_reading.events.filter(kind="call").row(0, named=True)
    assert json.loads(call["arguments"]) == {"command": "ls\n"} and call["latency_ms"] == 500
    assert log_reading.events["usage"].drop_nulls().to_list() == ['{"input_tokens":7,"output_tokens":3}']
    alone = reading(tmp_path, {"trajectory": [{"action": "ls", "observation": "a", "thought": "t"}], "history": [], "info": {}})
    assert [row[0] for row in event_rows(alone, "kind")] == ["message", "call", "result"]


def test_mini_swe_agent_whose_actions_are_text(tmp_path: Path) -> None:
    messages = [{"role": "system", "content": "s"}, {"role": "user", "content": "fix"},
                {"role": "assistant", "content": "THOUGHT\n```bash\ncat a\n```"},
                {"role": "user", "content": "<returncode>1</returncode>\n<output>no</output>"},
                {"role": "assistant", "content": "```bash\ntrue\n```"}]
    bare = reading(tmp_path, messages)
    kinds = [("message",), ("message",), ("message",), ("call",), ("result",), ("message",), ("call",)]
    assert bare.file.format == "mini_swe_agent" and event_rows(bare, "kind") == kinds
    assert bare.events.filter(kind="result")["is_error"].to_list() == [True]
    assert "is_error inferred" in bare.events.filter(kind="result")["lossy"].item()
    stated = [*messages[:2], {"role": "assistant", "content": "x", "extra": {
        "actions": [{"command": "ls"}], "response": {"model": "m", "usage": {"prompt_tokens": 4, "completion_tokens": 1}}}},
        {"role": "user", "content": "a", "extra": {"returncode": 0, "timestamp": 1772446500.5}}]
    log_reading = reading(tmp_path, {"info": {"exit_status": "Submitted"}, "messages": stated,
                               "trajectory_format": "mini-swe-agent-2"})
    assert event_rows(log_reading, "kind", "is_error", "model")[2:] == [
        ("message", None, "m"), ("call", None, "m"), ("result", False, None), ("outcome", None, None)]
    assert log_reading.events["usage"].drop_nulls().to_list() == ['{"input_tokens":4,"output_tokens":1}']
    assert str(log_reading.events.filter(kind="result")["happened_at"].item()) == "2026-03-02 10:15:00.500000+00:00"


def test_chat_is_no_mini_swe_agent() -> None:
    chat = [{"role": "user", "content": "how do I list files?"}, {"role": "assistant", "content": "with ls"},
            {"role": "user", "content": "thanks"}]
    assert getattr(recognise(content.head_of(json.dumps(chat).encode())), "name", None) != "mini_swe_agent"


def test_tau_bench_marks_errors_and_drops_the_end(tmp_path: Path) -> None:
    traj = [{"role": "user", "content": "hi ###STOP###"}, {"role": "tool", "tool_call_id": "a", "content": "Error: no"},
            {"role": "user", "content": "###STOP###"}]
    log_reading = reading(tmp_path, [{"task_id": 1, "reward": 0.0, "info": {}, "traj": traj, "trial": 0},
                               {"task_id": 1, "reward": 0.0, "info": {}, "traj": [], "trial": 1}])
    assert event_rows(log_reading, "kind", "content", "is_error", "value") == [
        ("log", "###STOP###", None, None), ("message", "hi", None, None), ("result", "Error: no", True, None),
        ("log", "###STOP###", None, None), ("outcome", None, None, "0.0"), ("outcome", None, None, "0.0")]
    assert log_reading.events["session_id"].n_unique() == 2


def test_tau2_bench_reads_calls_of_the_user_and_messages_of_many_results(tmp_path: Path) -> None:
    messages = [{"role": "assistant", "content": "hello there", "timestamp": "2026-03-02T10:00:00"},
                {"role": "user", "content": None, "tool_calls": [
                    {"id": "u1", "name": "toggle", "arguments": {}, "requestor": "user"}]},
                {"role": "tool", "tool_messages": [
                    {"id": "u1", "role": "tool", "content": "on", "requestor": "user", "error": False},
                    {"id": "u2", "role": "tool", "content": "?", "requestor": "user", "error": True}]},
                {"role": "user", "content": "###TRANSFER### please"}]
    simulation = {"id": "x", "task_id": "t", "termination_reason": "max_steps", "messages": messages,
                  "reward_info": {"reward": 0.0}}
    log_reading = reading(tmp_path, {"info": {}, "tasks": [], "simulations": [simulation, {"id": "y", "messages": 3}]})
    assert event_rows(log_reading, "kind", "content", "requestor", "is_error")[:6] == [
        ("log", "hello there", None, None), ("call", None, "user", None), ("result", "on", "user", False),
        ("result", "?", "user", True), ("log", "###TRANSFER###", None, None), ("message", "please", None, None)]
    assert log_reading.events.filter(kind="outcome")["value"].to_list() == ["0.0", "max_steps"]
    assert event_rows(log_reading, "kind", "session_id", "content")[-1] == ("log", "y", '{"id":"y","messages":3}'), (
        "nothing vanishes"
    )
    alone = reading(tmp_path, simulation)
    assert alone.file.format == "tau2_bench" and alone.events["session_id"].unique().to_list() == ["x"]


def test_openhands_of_old_tells_exit_codes_counts_and_states(tmp_path: Path) -> None:
    call = {"id": "c", "function": {"name": "execute_bash", "arguments": "{\"command\": \"ls\"}"}}
    meta = {"function_name": "execute_bash", "tool_call_id": "c", "model_response": {
        "id": "r", "model": "m", "usage": {"prompt_tokens": 9, "completion_tokens": 1},
        "choices": [{"message": {"tool_calls": [call]}}]}}
    at = "2026-03-02T10:15:00.000000"
    events = [{"id": 0, "timestamp": at, "source": "agent", "action": "run", "args": {"command": "ls", "thought": "t"},
               "tool_call_metadata": meta},
              {"id": 1, "timestamp": at, "source": "agent", "cause": 0, "observation": "run", "content": "no",
               "extras": {"metadata": {"exit_code": 2}}, "tool_call_metadata": meta},
              {"id": 2, "timestamp": at, "source": "agent", "action": "finish",
               "args": {"final_thought": "bye", "thought": ""}},
              {"id": 3, "timestamp": at, "source": "environment", "observation": "agent_state_changed", "content": ""}]
    log_reading = reading(tmp_path, events)
    assert event_rows(log_reading, "kind", "tool", "call_id", "is_error") == [
        ("message", None, None, None), ("call", "execute_bash", "c", None), ("result", None, "c", True),
        ("call", "finish", "event 2", None), ("log", None, None, None)]
    assert log_reading.events.filter(kind="call")["arguments"].to_list() == ['{"command": "ls"}', '{"final_thought":"bye"}']
    assert log_reading.events["usage"].drop_nulls().to_list() == ['{"input_tokens":9,"output_tokens":1}']
    lines = reading(tmp_path, b"\n".join(json.dumps(each).encode() for each in events))
    assert event_rows(lines, "kind", "position") == event_rows(log_reading, "kind", "position")
    assert lines.events["session_id"].n_unique() == 1 and lines.events["session_id"][0]
    assert reading(tmp_path, events[0]).events["session_id"].unique().to_list() == [None], "an event alone names no session"


def packed(members: dict[str, Any], compression: int = zipfile.ZIP_DEFLATED) -> bytes:
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w", compression) as archive:
        for name, value in members.items():
            archive.writestr(name, value if isinstance(value, (str, bytes)) else json.dumps(value))
    return content.getvalue()


def test_openhands_conversations_packed_together(data: Path, tmp_path: Path) -> None:
    folder = data / "format_samples" / "06_transcripts" / "openhands_v1"
    members = {f"one/{path.relative_to(folder).as_posix()}": path.read_bytes() for path in sorted(folder.rglob("*.json"))}
    state = json.loads(members["one/base_state.json"])
    failed = {"kind": "AgentErrorEvent", "error": "e", "tool_name": "f"}
    members |= {"two/events/event-00002-b.json": json.dumps(failed).encode(),
                "two/events/event-00001-a.json": b'{"kind":"PauseEvent"}', "two/meta.txt": b"kept"}
    log_reading = reading(tmp_path, packed(dict(reversed(members.items()))))
    assert log_reading.file.format == "openhands_v1"
    one = log_reading.events.filter(session_id=state["id"])
    assert one["kind"].to_list().count("call") == 5 and one["is_error"].to_list().count(True) == 1
    assert one.filter(kind="message")["content"][0].startswith("You are the support agent")
    assert one["position"].drop_nulls().to_list() == list(range(one["position"].drop_nulls().len()))
    others = log_reading.events.filter(pl.col("session_id").is_null() | (pl.col("session_id") != state["id"]))
    assert others.select("kind", "content", "is_error").rows() == [
        ("log", '{"kind":"PauseEvent"}', None), ("result", "e", True), ("log", "kept", None)]


def inspect_header() -> dict[str, Any]:
    return {"version": 2, "status": "error", "eval": {"eval_id": "e", "task": "t", "model": "m"}}


def test_inspect_in_chunks_with_attachments_and_without_a_header(tmp_path: Path) -> None:
    long = "x" * 200
    message = {"id": "m2", "role": "assistant", "content": [
        {"type": "reasoning", "reasoning": "hm"}, {"type": "text", "text": "attachment://1"},
        {"type": "tool_use", "id": "w", "name": "web", "arguments": "{}", "result": "page"}]}
    model = {"event": "model", "timestamp": "2026-03-02T10:00:00Z", "completed": "2026-03-02T10:00:02Z", "output": {
        "choices": [{"message": {"id": "m2"}}], "usage": {"input_tokens": 3, "output_tokens": 4}}}
    members = {"_journal/start.json": inspect_header(), "samples/a_epoch_1/sample.json": {"id": "a", "epoch": 1, "uuid": "u"},
               "samples/a_epoch_1/messages/10.json": [message],
               "samples/a_epoch_1/messages/0.json": [{"role": "user", "content": "hi"}],
               "samples/a_epoch_1/events/0.json": [model, {"event": "info", "data": 1}],
               "samples/a_epoch_1/attachments/0.json": ["zero", long],
               "samples/b_epoch_2.json": "{\"id\": 7, \"epoch\": 2, \"messages\": [], \"scores\": {\"s\": {\"value\": NaN}}}"}
    log_reading = reading(tmp_path, packed(members))
    assert log_reading.file.format == "inspect" and log_reading.decisions.filter(~pl.col("kept")).is_empty()
    one = log_reading.events.filter(session_id="u")
    assert one.select("kind", "content").rows() == [
        ("message", "hi"), ("reasoning", "hm"), ("call", None), ("result", "page"), ("message", long),
        ("log", '{"event":"info","data":1}')]
    assert str(one["happened_at"][0]) == "2026-03-02 10:00:00+00:00" and str(one["happened_at"][1]).endswith("10:00:02+00:00")
    assert one["usage"].drop_nulls().to_list() == ['{"input_tokens":3,"output_tokens":4}']
    other = log_reading.events.filter(session_id="e/7/2")
    assert other["kind"].to_list() == ["log"] and json.loads(other["content"].item()) == {"id": 7, "epoch": 2, "target": None}
    empty = reading(tmp_path, packed({"header.json": inspect_header(), "samples/x.txt": ""}))
    assert event_rows(empty, "kind") == [("log",)] and '"status":"error"' in empty.events["content"].item()


def test_inspect_archives_say_what_the_document_says(data: Path) -> None:
    folder = data / "format_samples" / "06_transcripts"
    columns = ["session_id", "position", "happened_at", "kind", "role", "content", "tool", "arguments", "is_error", "usage"]
    tables = [read(SourceFile(folder / name, name)).events.select(columns)
              for name in ("inspect_log.json", "inspect_log.eval", "inspect_log_deflate.eval")]
    assert tables[0].height > 20 and tables[1].equals(tables[2])
    assert tables[0].equals(tables[1])


def test_a_named_format_that_does_not_fit_is_a_reject_and_no_failure(tmp_path: Path) -> None:
    for name in NAMES:
        emit = Emit("file", "main", name, Envelope())
        named(name).read(iter([LogRecord("0" * 64, 1, {"a": b"zip"})]), emit)
        assert emit.rejects or emit.events
