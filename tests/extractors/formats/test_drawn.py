"""How an answer was drawn, parameters and tokens: taken where it is stated, never made up."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import orjson
import polars as pl
import pytest
from hypothesis import given

from extractors.formats.sampling import drawn, laid, sampling
from tests.extractors.formats.provider_reading import JSON, log


@pytest.mark.parametrize(("stated", "expected"), [
    (([1, 2], [3], [-0.5]), {"prompt_token_ids": [1, 2], "completion_token_ids": [3], "logprobs": [-0.5]}),
    ((None, None, {"content": [{"token": "a", "logprob": -1.5}, {"token": "b", "logprob": 0}]}), {"logprobs": [-1.5, 0]}),
    ((None, None, {"content": [{"token": "a"}]}), {}),
    (([], "3", [True]), {}),
    ((["1"], [1.5], {"content": None}), {}),
])
def test_tokens_are_taken_where_they_are_stated(stated: tuple[object, object, object], expected: dict[str, object]) -> None:
    assert drawn(*stated) == expected


@pytest.mark.parametrize(("places", "expected"), [
    (({"temperature": 0.2, "top_p": None, "max_completion_tokens": 5, "stop": "END", "messages": []},),
     {"temperature": 0.2, "max_tokens": 5, "stop_sequences": ["END"]}),
    (({"generationConfig": {"topK": 40, "maxOutputTokens": 9, "candidateCount": 1}},), {"top_k": 40, "max_tokens": 9, "n": 1}),
    (({"gen_ai.request.temperature": "0.5", "gen_ai.request.model": "m", "gen_ai.openai.request.seed": 7},
      {"temperature": 1, "seed": 8}), {"temperature": 0.5, "seed": 7}),
    (({"reasoning": {"effort": "low", "summary": None}, "tool_choice": "auto", "logit_bias": {"5": -1}},),
     {"reasoning_effort": "low", "tool_choice": "auto", "logit_bias": {"5": -1}}),
    (({"ls_temperature": 0, "ls_max_tokens": -1, "stop": "null", "top_p": True, "temperature_unit": "c", "seed": "inf"},),
     {"temperature": 0}),
    (({"stop_sequences": '["\\nDone:"]', "maxTokens": "256"},), {"stop_sequences": ["\nDone:"], "max_tokens": 256}),
    (({"stop": '{"arrayValue":{}}'}, None, "text"), None),
])
def test_parameters_have_one_name_in_every_providers_words(
    places: tuple[object, ...], expected: dict[str, object] | None
) -> None:
    assert sampling(*places) == ({} if expected is None else {"sampling": expected})


@given(JSON)
def test_any_value_states_parameters_or_none(stated: Any) -> None:
    parameters = sampling(stated, {"temperature": stated, "stop": stated, "seed": stated, "tool_choice": stated})
    assert orjson.loads(orjson.dumps(parameters)) == parameters and parameters.get("sampling", True)


def test_counts_tokens_and_parameters_lie_where_readers_look_for_them() -> None:
    usage = {"input_tokens": 3, "logprobs": [-0.5], "sampling": {"temperature": 1}}
    assert laid(usage, ["reasoning", "message", "call"]) == [
        {"input_tokens": 3}, {"logprobs": [-0.5], "sampling": {"temperature": 1}}, {"sampling": {"temperature": 1}}]
    assert laid(usage, ["log"]) == [usage] and laid(None, ["message"]) == [None] and laid(usage, []) == []


CHAT = {"model": "m", "created": 1772446502, "id": "c", "choices": [{
    "index": 0, "message": {"role": "assistant", "content": "hi"}, "finish_reason": "stop", "token_ids": [5, 6],
    "logprobs": {"content": [{"token": "h", "logprob": -0.5}, {"token": "i", "logprob": -0.25}]}}], "prompt_token_ids": [1]}
PROMPT = [{"role": "user", "content": "hello"}]
TIMES = {"start_time": "2026-03-02T10:15:02Z", "end_time": "2026-03-02T10:15:03Z"}
DRAWN = {"completion_token_ids": [5, 6], "logprobs": [-0.5, -0.25], "prompt_token_ids": [1]}


def _span(name: str, **attributes: object) -> dict[str, object]:
    kinds = {str: "stringValue", float: "doubleValue", int: "intValue"}
    return {"resourceSpans": [{"scopeSpans": [{"spans": [{
        "traceId": "a" * 32, "spanId": "b" * 16, "name": name, "startTimeUnixNano": "1772446502000000000",
        "endTimeUnixNano": "1772446503000000000", "attributes": [
            {"key": key, "value": {kinds[type(value)]: value}} for key, value in attributes.items()]}]}]}]}


LOGS: list[tuple[str, Any, dict[str, object]]] = [
    (
        "openai_completions",
        {"session_id": "s", "request": {"messages": PROMPT, "temperature": 0.7, "seed": 3}, "response": CHAT},
        {**DRAWN, "sampling": {"temperature": 0.7, "seed": 3}},
    ),
    (
        "anthropic_messages",
        {
            "session_id": "s",
            "request": {"messages": PROMPT, "max_tokens": 64, "top_k": 5},
            "response": {
                "type": "message",
                "role": "assistant",
                "model": "m",
                "content": [{"type": "thinking", "thinking": "hm"}, {"type": "text", "text": "hi"}],
            },
        },
        {"sampling": {"max_tokens": 64, "top_k": 5}},
    ),
    (
        "gemini",
        {
            "session_id": "s",
            "request": {"contents": [{"role": "user", "parts": [{"text": "hello"}]}], "generationConfig": {"temperature": 0.5}},
            "response": {
                "candidates": [
                    {
                        "content": {"role": "model", "parts": [{"text": "hi"}]},
                        "logprobsResult": {"chosenCandidates": [{"token": "hi", "tokenId": 9, "logProbability": -0.125}]},
                    }
                ]
            },
        },
        {"completion_token_ids": [9], "logprobs": [-0.125], "sampling": {"temperature": 0.5}},
    ),
    (
        "openai_responses",
        {
            "session_id": "s",
            "request": {"input": PROMPT, "temperature": 0.5, "max_output_tokens": 9},
            "response": {
                "object": "response",
                "id": "r",
                "output": [
                    {
                        "type": "message",
                        "role": "assistant",
                        "content": [{"type": "output_text", "text": "hi"}],
                        "prompt_token_ids": [1],
                        "generation_token_ids": [5, 6],
                        "generation_log_probs": [-0.5, -0.25],
                    }
                ],
            },
        },
        {**DRAWN, "sampling": {"temperature": 0.5, "max_tokens": 9}},
    ),
    (
        "otlp",
        _span(
            "chat m",
            **{
                "gen_ai.operation.name": "chat",
                "gen_ai.conversation.id": "s",
                "gen_ai.request.temperature": 0.5,
                "gen_ai.request.max_tokens": 64,
                "gen_ai.input.messages": '[{"role":"user","parts":[{"type":"text","content":"hello"}]}]',
                "gen_ai.output.messages": '[{"role":"assistant","parts":[{"type":"text","content":"hi"}]}]',
            },
        ),
        {"sampling": {"temperature": 0.5, "max_tokens": 64}},
    ),
    (
        "otlp",
        _span(
            "ai.generateText.doGenerate",
            **{
                "operation.name": "ai.generateText.doGenerate",
                "ai.operationId": "ai.generateText.doGenerate",
                "ai.prompt.messages": '[{"role":"user","content":"hello"}]',
                "ai.response.text": "hi",
                "ai.settings.maxOutputTokens": 12,
            },
        ),
        {"sampling": {"max_tokens": 12}},
    ),
    (
        "langfuse",
        {
            "id": "o",
            "trace_id": "t",
            "type": "GENERATION",
            **TIMES,
            "input": PROMPT,
            "output": "hi",
            "model_parameters": '{"temperature":"0.5","maxTokens":"inf"}',
        },
        {"sampling": {"temperature": 0.5}},
    ),
    (
        "langsmith",
        {
            "id": "o",
            "trace_id": "t",
            "run_type": "llm",
            "name": "ChatOpenAI",
            "dotted_order": "x",
            **TIMES,
            "inputs": {"messages": PROMPT},
            "outputs": CHAT,
            "extra": {"invocation_params": {"temperature": 0.5}},
        },
        {**DRAWN, "sampling": {"temperature": 0.5}},
    ),
    (
        "mini_swe_agent",
        {
            "trajectory_format": "mini-swe-agent-1",
            "messages": [*PROMPT, {"role": "assistant", "content": "hi", "extra": {"response": CHAT}}],
            "info": {"config": {"model": {"model_kwargs": {"temperature": 0.0}}}},
        },
        {**DRAWN, "sampling": {"temperature": 0.0}},
    ),
    (
        "atif",
        {
            "schema_version": "ATIF-v1.8",
            "session_id": "s",
            "agent": {"name": "a", "version": "1", "extra": {"temperature": 0.5}},
            "steps": [
                {"step_id": 1, "source": "user", "message": "hello"},
                {
                    "step_id": 2,
                    "source": "agent",
                    "message": "hi",
                    "reasoning_content": "hm",
                    "metrics": {"prompt_token_ids": [1], "completion_token_ids": [5, 6], "logprobs": [-0.5, -0.25]},
                },
            ],
        },
        {**DRAWN, "sampling": {"temperature": 0.5}},
    ),
    (
        "inspect",
        {
            "version": 2,
            "status": "success",
            "eval": {"task": "t", "model": "m", "model_generate_config": {"seed": 4}},
            "plan": {"config": {"top_p": 0.5}},
            "samples": [
                {
                    "id": "1",
                    "epoch": 1,
                    "messages": [{"id": "u", **PROMPT[0]}, {"id": "m", "role": "assistant", "content": "hi"}],
                    "events": [
                        {
                            "event": "model",
                            "config": {"temperature": 0.5},
                            "output": {
                                "choices": [
                                    {"message": {"id": "m", "role": "assistant", "content": "hi"}, "stop_reason": "stop"}
                                ]
                            },
                        }
                    ],
                }
            ],
        },
        {"sampling": {"temperature": 0.5, "top_p": 0.5, "seed": 4}},
    ),
]


@pytest.mark.parametrize(("name", "value", "usage"), LOGS, ids=[f"{name}-{i}" for i, (name, *_) in enumerate(LOGS)])
def test_readers_keep_how_an_answer_was_drawn(tmp_path: Path, name: str, value: Any, usage: dict[str, object]) -> None:
    reading, made = log(tmp_path, [value] if name not in ("atif", "inspect", "mini_swe_agent") else orjson.dumps(value))
    assert set(reading.events["format"]) == {name}
    [answer] = made.turns.filter(pl.col("role") == "assistant")["turn_id"].to_list()
    [event_rows] = reading.events.filter(event_id=answer)["usage"].to_list()
    assert orjson.loads(event_rows) == usage
