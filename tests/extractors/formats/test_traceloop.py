"""Traceloop's flat attributes."""

from __future__ import annotations

from tests.extractors.formats.spans import batch, dumped, read_batches, rows, span, words

SESSION = {"traceloop.association.properties.session_id": "s1"}


def test_indices_are_numbers_and_contents_may_be_parts() -> None:
    prompt = {f"gen_ai.prompt.{i}.{key}": value for i in range(12) for key, value in
             {"role": "user", "content": f"{i}" if i != 3 else dumped([{"type": "text", "text": "three"}])}.items()}
    prompt["gen_ai.prompt.4.content"] = '[{"no": "type"}]'
    emit = read_batches(batch(span(1, {**SESSION, **dict(reversed(prompt.items())), "gen_ai.completion.0.content": "yo",
                               "gen_ai.completion.0.finish_reason": "length", "gen_ai.usage.prompt_tokens": 5})))
    text = [f"{i}" for i in range(12)]
    text[3:5] = ["three", '[{"no": "type"}]']
    assert words(emit) == [*(("message", "user", each) for each in text), ("message", "assistant", "yo")]
    assert rows(emit)[-1]["lossy"] == ["finish_reason length"] and rows(emit)[-1]["usage"] == '{"input_tokens":5}'


def test_what_a_tool_was_called_with() -> None:
    tool = {**SESSION, "traceloop.span.kind": "tool", "traceloop.entity.name": "look"}
    for given, expected in (({"args": [], "kwargs": {"n": 1}}, '{"n":1}'), ({"inputs": {"n": 1}, "input_str": "x"}, '{"n":1}'),
                            ({"args": [1], "kwargs": {}}, '{"args":[1],"kwargs":{}}'), ("text", "text")):
        value = given if isinstance(given, str) else dumped(given)
        emit = read_batches(batch(span(1, {**tool, "traceloop.entity.input": value, "traceloop.entity.output": "7"})))
        assert [(each.get("arguments"), each.get("content")) for each in rows(emit)] == [(expected, None), (None, "7")]


def test_later_versions_write_the_conventions() -> None:
    emit = read_batches(batch(span(1, {**SESSION, "traceloop.workflow.name": "w", "gen_ai.operation.name": "chat",
                               "gen_ai.input.messages": '[{"role":"user","parts":[{"type":"text","content":"hi"}]}]'})))
    assert words(emit) == [("message", "user", "hi")] and rows(emit)[0]["session_id"] == "s1"
