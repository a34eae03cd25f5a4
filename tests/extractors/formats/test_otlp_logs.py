"""OTLP log records."""

from __future__ import annotations

from tests.extractors.formats.spans import TRACE, log, logs, read_batches, rows, words

CALLS = [{"id": "c1", "type": "function", "function": {"name": "look", "arguments": "{}"}}]


def test_a_message_a_line_and_each_event_points_at_its_own_line() -> None:
    emit = read_batches(logs(log("gen_ai.user.message", {"content": "hi"})),
                logs(log("gen_ai.choice", {"index": 0, "finish_reason": "stop", "message": {"content": "one"}})),
                logs(log("gen_ai.choice", {"index": 1, "finish_reason": "length", "message": {"content": "two"}})),
                logs(log("gen_ai.user.message", {"content": "hi"}, number=2)),
                logs(log("gen_ai.assistant.message", {"content": "one"}, number=2)),
                logs(log("gen_ai.tool.message", '{"id": "c9", "content": "orphan"}', number=2)),
                logs(log("gen_ai.choice", {"message": {"tool_calls": CALLS}}, number=2)))
    assert words(emit) == [("message", "user", "hi"), ("message", "assistant", "one"), ("message", "assistant", "two"),
                           ("result", None, "orphan"), ("call", "look", "{}")]
    assert [each["record_id"][-1] for each in rows(emit)] == ["1", "2", "3", "6", "7"]
    assert rows(emit)[2]["lossy"] == ["finish_reason length", "candidate 1"]
    repeated = [each for each in rows(emit, "log") if each["lossy"] == ["told by other records"]]
    assert [each["record_id"][-1] for each in repeated] == ["4", "5"] and not emit.rejects
    assert {each["session_id"] for each in repeated} == {f"trace:{TRACE}"}


def test_the_name_of_an_event_may_be_an_attribute_and_its_body_text() -> None:
    emit = read_batches(logs(log(None, "hi", {"event.name": "gen_ai.user.message"}),
                     log(None, {"message": "plain"}, {"event.name": "gen_ai.choice"})))
    assert words(emit) == [("message", "user", "hi"), ("message", "assistant", "plain")]


def test_an_applications_records_are_log_events_of_their_trace() -> None:
    emit = read_batches(logs(log(None, "stock is low", {"sku": "x", "left": 3}, severityText="WARN"),
                     log("order.placed", {"id": 7}, traceId="", spanId=""),
                     log("gen_ai.user.message", {"content": "?"}, spanId="")))
    assert [(each["tool"], each["content"], each["arguments"], each["session_id"]) for each in emit.events] == [
        (None, "stock is low", '{"sku":"x","left":3,"severity":"WARN"}', f"trace:{TRACE}"),
        ("order.placed", '{"id":7}', '{"body":{"id":7}}', None),
        ("gen_ai.user.message", '{"content":"?"}', '{"body":{"content":"?"}}', f"trace:{TRACE}")]
    assert not emit.rejects


def test_an_evaluation_is_feedback_on_its_span() -> None:
    emit = read_batches(logs(log("gen_ai.evaluation.result", None, {
        "gen_ai.evaluation.name": "tone", "gen_ai.evaluation.score.label": "kind",
        "gen_ai.evaluation.explanation": "because"})))
    [given] = rows(emit, "feedback")
    assert (given["name"], given["value"], given["content"], given["call_id"]) == ("tone", "kind", "because", f"{1:016x}")
    assert given["session_id"] == f"trace:{TRACE}" and given["happened_at"] == 1_772_446_501_000_000


def test_details_of_an_inference_in_the_body() -> None:
    body = {"gen_ai.input.messages": [{"role": "user", "parts": [{"type": "text", "content": "hi"}]}],
            "gen_ai.output.messages": [{"role": "assistant", "parts": [{"type": "text", "content": "yo"}]}]}
    emit = read_batches(logs(log("gen_ai.client.inference.operation.details", body)))
    assert words(emit) == [("message", "user", "hi"), ("message", "assistant", "yo")]
    assert {each["happened_at"] for each in rows(emit)} == {1_772_446_501_000_000} and rows(emit)[1]["latency_ms"] is None


def test_equal_span_ids_of_two_traces_are_two_spans() -> None:
    trace = "b" * 32
    emit = read_batches(logs(log("gen_ai.user.message", "one"), log("gen_ai.choice", "1"),
                     log("gen_ai.user.message", "two", traceId=trace), log("gen_ai.choice", "2", traceId=trace)))
    assert {(each["session_id"], each["content"]) for each in rows(emit)} == {
        (f"trace:{TRACE}", "one"), (f"trace:{TRACE}", "1"), (f"trace:{trace}", "two"), (f"trace:{trace}", "2")}
    assert len({each["event_id"] for each in emit.events}) == 4


def test_a_repeated_history_of_messages_is_held_once() -> None:
    text, records = [], []
    for number in range(1, 40):
        text.append(("gen_ai.user.message", f"question {number}"))
        records += [log(name, content, number=number) for name, content in text]
        records.append(log("gen_ai.choice", f"answer {number}", number=number))
        text.append(("gen_ai.assistant.message", f"answer {number}"))
    emit = read_batches(*(logs(each) for each in records))
    assert words(emit) == [("message", "user" if i % 2 else "assistant", f"{'question' if i % 2 else 'answer'} {(i + 1) // 2}")
                           for i in range(1, 79)]
    assert len({each["record_id"] for each in rows(emit)}) == 78, "each part points at the line that told it first"
