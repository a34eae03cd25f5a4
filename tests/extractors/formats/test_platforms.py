"""What holds for every tracing platform: recognised by nobody else, nothing vanishes, no damage breaks it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import orjson
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from extractors.formats import named, registered
from extractors.formats.format import event_frame
from extractors.sessions import assemble
from tests.extractors.formats.platforms import NAMES, events, head, read_platform_log, reading_of, reasons, sample_values, story

TEXTS = ["", "tool", "[{", '{"messages": [{"role": "user", "content": "x"}]}', '"x"', "<masked>",
         "system: a\nuser: b", "2026-03-02"]
NUMBERS = st.integers(-5, 2**60) | st.floats(allow_nan=False, allow_infinity=False)
SCALARS = st.none() | st.booleans() | NUMBERS | st.sampled_from(TEXTS)
VALUES = st.recursive(SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(
    st.sampled_from(["messages", "role", "content", "parts", "type", "tool_calls", "function", "choices", "id", "data",
                     "output", "kwargs", "lc", "input", "generations", "text", "name"]), inner, max_size=4), max_leaves=12)


@pytest.mark.parametrize("name", NAMES)
def test_a_sample_is_claimed_by_its_format_alone(name: str) -> None:
    assert [each.name for each in registered() if each.claims(head(named(name).sample()))] == [name]


@pytest.mark.parametrize("name", NAMES)
def test_nothing_of_a_sample_vanishes_and_nothing_is_left(name: str) -> None:
    emit = read_platform_log(name, *sample_values(named(name)))
    assert {row["record_id"] for row in emit.events} == {f"{i:064d}" for i in range(len(sample_values(named(name))))}
    assert emit.rejects == [] and event_frame(emit.events)["event_id"].is_unique().all()


@pytest.mark.parametrize("name", NAMES)
@given(data=st.data())
def test_damage_breaks_nothing_and_loses_nothing(name: str, data: st.DataObject) -> None:
    """One value somewhere inside the records replaced by something else; each record is still told of."""
    values = sample_values(named(name))
    place: Any = values
    while True:
        keys = list(place) if isinstance(place, dict) else list(range(len(place)))
        key = data.draw(st.sampled_from(keys))
        if not isinstance(place[key], (dict, list)) or not place[key] or data.draw(st.integers(0, 3)) == 0:
            break
        place = place[key]
    place[key] = data.draw(VALUES)
    emit = read_platform_log(name, *values)
    rows = {row["record_id"] for row in emit.events} | {record.record_id for record, _, _ in emit.rejects}
    assert rows == {f"{i:064d}" for i in range(len(values))}
    assert event_frame(emit.events)["event_id"].is_unique().all()


@pytest.mark.parametrize("name", [name for name in NAMES if name not in ("langfuse_scores", "langsmith_feedback")])
def test_the_order_of_records_does_not_matter(name: str) -> None:
    values = sample_values(named(name))
    assert story(read_platform_log(name, *values)) == story(read_platform_log(name, *reversed(values))) != []


@pytest.mark.parametrize("name", NAMES)
def test_a_record_sent_again_counts_once(name: str) -> None:
    values = sample_values(named(name))
    if name in ("langfuse_scores", "langsmith_feedback"):
        return
    once, twice = read_platform_log(name, *values), read_platform_log(name, *values, *values)
    assert story(once) == story(twice)
    assert len(set(reasons(twice)) & {"replaced_span", "duplicate_trace"}) > 0


def test_traces_of_frameworks_give_their_conversations(data: Path) -> None:
    """Real traces, one a framework: what users, models and tools said, in order, without the spans around."""
    expected = {
        "agno-2025-06-11": "system user call result assistant", "autogen-2025-06-06": "system user assistant",
        "beeai-2025-08-01": "system user assistant assistant assistant", "crewai-2025-07-11": "system user assistant",
        "google-adk-2025-08-28": "system user call result assistant", "google-gemini-2025-08-01": "user assistant",
        "langgraph-js-2025-10-30": "user call result assistant",
        "langgraph-python-2025-08-22": "user user call result assistant",
        "llamaindex-2025-06-05": "user assistant", "openai-agents-2025-09-30": "system user call result assistant",
        "pydantic-ai-with-gemini-2025-12-24": "user assistant"}
    read_rows = {}
    for path in sorted((data / "framework_traces" / "logs").glob("*.json")):
        reading = reading_of(path)
        assert reading.file.format == "langfuse" and reading.decisions.filter(~pl.col("kept")).is_empty()
        rows = reading.events.filter(pl.col("position").is_not_null())
        assert rows["session_id"].n_unique() == 1 and rows["position"].to_list() == list(range(rows.height))
        read_rows[path.stem] = " ".join(row["role"] if row["kind"] == "message" else row["kind"] for row in rows.to_dicts())
        assert not any("not captured" in note for note in rows["lossy"].drop_nulls())
    assert read_rows == expected


def run(number: int, kind: str, parent: int | None, name: str, inputs: Any, outputs: Any) -> dict[str, Any]:
    return {"id": f"r{number}", "trace_id": "r0", "parent_run_id": f"r{parent}" if parent is not None else None,
            "dotted_order": str(number), "run_type": kind, "name": name, "inputs": inputs, "outputs": outputs,
            "error": None, "status": "success", "start_time": f"2026-03-02T10:00:0{number}",
            "end_time": f"2026-03-02T10:00:0{number}.5",
            "extra": {"metadata": {"thread_id": "s"}} if number == 0 else {}}


def test_an_agent_inside_a_tool_is_a_session_of_its_own() -> None:
    call = {"role": "assistant", "content": None, "tool_calls": [
        {"id": "c", "type": "function", "function": {"name": "research", "arguments": '{"topic":"x"}'}}]}
    prompt = [{"role": "system", "content": "boss"}, {"role": "user", "content": "go"}]
    emit = read_platform_log(
        "langsmith", run(0, "chain", None, "root", {"input": "go"}, {"output": "done"}),
        run(1, "llm", 0, "model", {"messages": prompt}, {"choices": [{"message": call}]}),
        run(2, "tool", 0, "research", {"input": "{'topic': 'x'}"}, {"output": "found"}),
        run(3, "llm", 2, "model", {"messages": [{"role": "user", "content": "x?"}]}, {"choices": [
            {"message": {"role": "assistant", "content": "found"}}]}),
        run(4, "llm", 0, "model", {"messages": [*prompt, call, {"role": "tool", "tool_call_id": "c", "content": "found"}]},
            {"choices": [{"message": {"role": "assistant", "content": "done"}}]}))
    assert story(emit, "s") == [("system", "boss"), ("user", "go"), ("research", '{"topic":"x"}'),
                                          ("-", "found", False), ("assistant", "done")]
    assert story(emit, "s~r2") == [("user", "x?"), ("assistant", "found")]
    assert {row["session_id"] for row in events(emit, "link")} == {"s"}


def test_documents_of_many_shapes_are_one_conversation() -> None:
    """A page of the API, rows, and a list of runs tell what the records alone tell."""
    for name, wrap in (("langfuse", lambda values: {"data": values, "meta": {"cursor": None}}),
                       ("langsmith", lambda values: {"runs": values}), ("openai_agents", lambda values: {"data": values}),
                       ("logfire", lambda values: {"columns": [], "rows": values})):
        values = sample_values(named(name))
        assert story(read_platform_log(name, wrap(values))) == story(read_platform_log(name, *values)) != []
        assert named(name).claims(head(wrap(values)))


def test_agents_side_by_side_are_told_apart_by_their_instructions() -> None:
    def ask(number: int, system: str, *texts: str) -> dict[str, Any]:
        *history, answer = texts
        roles = ["user", "assistant"] * len(history)
        messages = [{"role": "system", "content": system},
                    *({"role": role, "content": text} for role, text in zip(roles, history, strict=False))]
        return run(number, "llm", 0, "model", {"messages": messages}, {"choices": [
            {"message": {"role": "assistant", "content": answer}}]})

    emit = read_platform_log("langsmith", run(0, "chain", None, "root", {"input": "plan a trip"}, {"output": "final"}),
                ask(1, "You name talks.", "plan a trip", "A trip"), ask(2, "You plan.", "plan a trip", "A plan, with a hotel"),
                ask(3, "You criticise.", "A plan, with a hotel", "The hotel costs too much"),
                ask(4, "You plan.", "plan a trip", "A plan, with a hotel", "The hotel costs too much", "final"),
                ask(5, "You sell.", "plan a trip", "A plan, with a hotel", "The hotel costs too much", "final", "buy", "sold"))
    assert story(emit, "s") == [
        ("system", "You plan."), ("user", "plan a trip"), ("assistant", "A plan, with a hotel"),
        ("user", "The hotel costs too much"), ("assistant", "final"), ("user", "buy"), ("assistant", "sold")]
    assert story(emit, "s~r1") == [("system", "You name talks."), ("user", "plan a trip"), ("assistant", "A trip")]
    assert [text for _, text in story(emit, "s~r3")] == ["You criticise.", "A plan, with a hotel", "The hotel costs too much"]


def test_traces_without_a_session_go_on_from_each_other() -> None:
    """Three turns, a trace each, that repeat the history; and somebody else who says the same words at first."""
    def turn(trace: str, number: int, *texts: str) -> dict[str, Any]:
        *history, answer = texts
        messages = [{"role": role, "content": text} for role, text in zip(["user", "assistant"] * 3, history, strict=False)]
        return {"id": f"o{number}", "trace_id": trace, "type": "GENERATION", "name": "model", "level": "DEFAULT",
                "start_time": f"2026-03-02 10:00:0{number}.000000", "end_time": f"2026-03-02 10:00:0{number}.500000",
                "input": orjson.dumps(messages).decode(), "output": answer}

    one, two, three = "Which lantern do you mean exactly?", "That one is sold out until May.", "Good bye, and thank you!"
    emit = read_platform_log("langfuse", turn("a", 1, "hi", one), turn("x", 2, "hi", "Hello there, what can I do for you?"),
                turn("b", 3, "hi", one, "red", two), turn("c", 4, "hi", one, "red", two, "bye", three))
    links = [(row["session_id"], row["value"]) for row in events(emit, "link")]
    assert links == [("trace:a", "trace:b"), ("trace:a", "trace:c")]
    made = assemble(event_frame(emit.events))
    rows = {row["session_id"]: row["n_messages"] for row in made.sessions.to_dicts()}
    assert rows == {"trace:a": 6, "trace:x": 2}
