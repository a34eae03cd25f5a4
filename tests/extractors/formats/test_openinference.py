"""OpenInference in OTLP."""

from __future__ import annotations

from typing import Any

import orjson

from tests.extractors.formats.spans import TRACE, batch, read_batches, rows, span, words

LLM = {"openinference.span.kind": "LLM", "session.id": "s1"}


def flat(name: str, messages: list[dict[str, Any]]) -> dict[str, Any]:
    return {f"llm.{name}_messages.{i}.message.{key}": value for i, each in enumerate(messages) for key, value in each.items()}


def test_more_than_ten_messages_stay_in_order() -> None:
    prompt = [{"role": "user" if i % 2 else "assistant", "content": f"{i}"} for i in range(23)]
    shuffled = dict(sorted(flat("input", prompt).items(), key=lambda item: item[0][::-1]))
    assert [each["content"] for each in rows(read_batches(batch(span(1, {**LLM, **shuffled}))))] == [f"{i}" for i in range(23)]


def test_contents_are_read_once_beside_the_calls() -> None:
    call = {"tool_call.id": "c1", "tool_call.function.name": "look", "tool_call.function.arguments": '{"n":1}'}
    answer = {"role": "assistant", **{f"tool_calls.0.{key}": value for key, value in call.items()},
              "contents.0.message_content.type": "reasoning", "contents.0.message_content.text": "hm",
              "contents.1.message_content.type": "text", "contents.1.message_content.text": "I look",
              "contents.2.message_content.type": "image", "contents.2.message_content.image.image.url": "x",
              "contents.3.message_content.type": "tool_use", **{f"contents.3.{key}": value for key, value in call.items()}}
    emit = read_batches(batch(span(1, {**LLM, **flat("output", [answer]), "llm.finish_reason": "length"})))
    assert words(emit) == [("message", "assistant", "I look"), ("call", "look", '{"n":1}')]
    assert [each["content"] for each in rows(emit, "reasoning")] == ["hm"]
    assert rows(emit)[0]["lossy"][0].startswith("part image sha256:") and rows(emit)[1]["lossy"] == ["finish_reason length"]


def test_a_request_that_was_logged_as_a_whole() -> None:
    request = orjson.dumps({"model": "m", "messages": [{"role": "user", "content": "hi"}]}).decode()
    for prompt in ({"input.value": request}, {"input.value": "hi"}, {"llm.prompts.0.prompt.text": "hi", "input.value": "{}"}):
        emit = read_batches(batch(span(1, {**LLM, **prompt, "llm.choices.0.completion.text": "yo"})))
        assert words(emit) == [("message", "user", "hi"), ("message", "assistant", "yo")]


def test_judgements_are_on_what_their_span_links_to() -> None:
    judged = {"openinference.span.kind": "EVALUATOR"}
    link = [{"traceId": TRACE, "spanId": f"{1:016x}"}]
    emit = read_batches(batch(
        span(1, {**LLM, **flat("output", [{"role": "assistant", "content": "yo"}])}),
        span(2, {**judged, "annotations.0.annotation.name": "tone", "annotations.0.annotation.label": "kind",
                 "annotations.1.annotation.name": "length", "annotations.1.annotation.score": 0.5}, trace="b" * 32,
             links=link),
        span(3, {**judged, "trace.evaluations.0.evaluation.name": "whole", "trace.evaluations.0.evaluation.score": 1},
             links=link),
        span(4, {**judged, "session.id": "s9", "session.annotations.0.annotation.name": "csat",
                 "session.annotations.0.annotation.score": 5, "session.annotations.0.annotation.explanation": "good"},
             trace="c" * 32)))
    assert [(each["name"], each["value"], each["call_id"], each["session_id"], each["content"])
            for each in rows(emit, "feedback")] == [
        ("tone", "kind", f"{1:016x}", "s1", None), ("length", "0.5", f"{1:016x}", "s1", None), ("whole", "1", None, "s1", None),
        ("csat", "5", None, "s9", "good")]


def test_an_agent_alone_and_a_retriever() -> None:
    agent = {"openinference.span.kind": "AGENT", "session.id": "s1", "input.value": "hi", "output.value": "yo"}
    emit = read_batches(
        batch(span(1, agent), span(2, {"openinference.span.kind": "RETRIEVER", "input.value": "q", "metadata": "m"}))
    )
    assert words(emit) == [("message", "user", "hi"), ("message", "assistant", "yo")]
    [other] = rows(emit, "log")
    assert other["arguments"] == '{"openinference.span.kind":"RETRIEVER","metadata":"m"}' and other["lossy"] == ["contents"]
