"""The Vercel AI SDK's spans."""

from __future__ import annotations

from tests.extractors.formats.spans import batch, dumped, read_batches, rows, span, words

META = {"ai.telemetry.metadata.sessionId": "s1"}


def test_results_of_both_shapes_and_their_errors() -> None:
    prompt = [{"role": "user", "content": "hi"}, {"role": "assistant", "content": [
        {"type": "reasoning", "text": "hm"}, {"type": "text", "text": "I look"}, {"type": "image", "image": "x"},
        {"type": "tool-call", "toolCallId": "a", "toolName": "look", "args": {"n": 1}},
        {"type": "tool-call", "toolCallId": "b", "toolName": "look", "input": '{"n":2}'}]},
        {"role": "tool", "content": [
            {"type": "tool-result", "toolCallId": "a", "toolName": "look", "result": {"x": 1}},
            {"type": "tool-result", "toolCallId": "b", "toolName": "look", "output": {"type": "error-text", "value": "no"}}]}]
    emit = read_batches(batch(span(1, {**META, "ai.operationId": "ai.streamText.doStream", "ai.prompt.messages": dumped(prompt),
                               "ai.response.text": "bye", "ai.response.finishReason": "length", "ai.usage.inputTokens": 4})))
    assert words(emit) == [
        ("message", "user", "hi"), ("message", "assistant", "I look"), ("call", "look", '{"n":1}'), ("call", "look", '{"n":2}'),
        ("result", None, '{"x":1}'), ("result", None, "no"), ("message", "assistant", "bye")]
    assert [each["is_error"] for each in rows(emit, "result")] == [None, True]
    assert rows(emit)[1]["lossy"][0].startswith("part image sha256:") and rows(emit, "reasoning")[0]["content"] == "hm"
    assert rows(emit)[-1]["lossy"] == ["finish_reason length"] and rows(emit)[-1]["usage"] == '{"input_tokens":4}'


def test_a_root_alone_tells_the_turn() -> None:
    expected = [("message", "system", "rules"), ("message", "user", "hi"), ("message", "assistant", "yo")]
    for prompt in ({"system": "rules", "prompt": "hi"}, {"system": "rules", "messages": [{"role": "user", "content": "hi"}]}):
        root = span(1, {**META, "ai.operationId": "ai.generateText", "ai.prompt": dumped(prompt), "ai.response.text": "yo"})
        assert words(read_batches(batch(root))) == expected


def test_a_torn_prompt_and_odd_values_are_kept() -> None:
    emit = read_batches(batch(span(1, {**META, "ai.operationId": "ai.generateText.doGenerate", "ai.prompt.messages": '[{"role"',
                               "ai.response.toolCalls": '["odd"]'}), span(2, {**META, "ai.operationId": "ai.embed"})))
    assert [each["content"] for each in rows(emit, "log")] == ['[{"role"', None]
    assert rows(emit)[0]["arguments"] == '"odd"' and rows(emit)[0]["lossy"] == ["call is no object"]
