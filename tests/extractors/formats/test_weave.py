"""Weave: ops that ask models, exceptions, references, feedback beside its calls."""

from __future__ import annotations

from typing import Any

from tests.extractors.formats.platforms import events, read_platform_log, reasons, story


def call(number: int, op: str, inputs: Any, output: Any, parent: str | None = "k0", **fields: Any) -> dict[str, Any]:
    return {"id": f"k{number}", "op_name": f"weave:///team/project/op/{op}:v1", "parent_id": parent, "trace_id": "t",
            "inputs": inputs, "output": output, "exception": None, "started_at": f"2026-03-02T10:00:0{number}Z",
            "attributes": {}, "summary": {},
            "ended_at": f"2026-03-02T10:00:0{number}.500000Z", "thread_id": "s", "project_id": "team/project", **fields}


ASK = {"self": "<client>", "model": "m", "messages": [{"role": "user", "content": "q"}]}


def test_an_op_is_a_model_by_its_name_and_a_tool_as_it_was_called() -> None:
    answer = {"choices": [{"message": {"role": "assistant", "tool_calls": [
        {"id": "c", "function": {"name": "look_up", "arguments": '{"a":1}'}}]}}]}
    emit = read_platform_log(
        "weave",
        call(0, "turn", {"question": "q"}, None, None),
        call(1, "openai.chat.completions.create", ASK, answer),
        call(2, "look_up", {"a": 1}, None, exception="Traceback\n  x\nTimeout: late"),
    )
    assert story(emit) == [("user", "q"), ("look_up", '{"a":1}'), ("-", "Timeout: late", True)]
    assert any("Traceback" in row["arguments"] for row in events(emit, "log"))


def test_what_lies_behind_a_reference_is_told_apart_from_an_answer() -> None:
    emit = read_platform_log("weave", call(1, "messages.create", ASK, "weave:///team/project/object/answer:abc", None))
    assert story(emit)[-1] == ("assistant", "weave:///team/project/object/answer:abc")
    assert emit.events[1]["lossy"] == ["content elsewhere"]


def test_feedback_inside_and_beside_its_call_counts_once() -> None:
    def opinion(own: str, kind: str, payload: Any) -> dict[str, Any]:
        return {"id": own, "weave_ref": "weave:///team/project/call/k0", "feedback_type": kind, "payload": payload,
                "creator": "u", "created_at": "2026-03-02T11:00:00Z"}

    thumb = opinion("f1", "wandb.reaction.1", {"emoji": "👎"})
    given = [thumb, opinion("f2", "wandb.annotation.tone", {"value": 3}), opinion("f3", "wandb.note.1", {"note": "slow"})]
    emit = read_platform_log(
        "weave", call(0, "turn", {"question": "q"}, "a", None, summary={"weave": {"feedback": [thumb]}}), *given
    )
    assert [(row["name"], row["value"], row["session_id"], row["call_id"]) for row in events(emit, "feedback")] == [
        ("reaction", "👎", "s", "k0"), ("tone", "3", "s", "k0"), ("note", "slow", "s", "k0")]
    assert reasons(emit) == ["duplicate_feedback"]
    alone, calls = read_platform_log("weave", *given), read_platform_log("weave", call(0, "turn", {"question": "q"}, "a", None))
    assert {row["session_id"] for row in alone.events} == {"trace:k0"}
    assert ("s", "trace:k0") in {(row["session_id"], row["value"]) for row in events(calls, "link")}
