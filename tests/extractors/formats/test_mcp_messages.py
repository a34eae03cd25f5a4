"""MCP logs: ids by session and side, batches, protocol errors, cancellations, calls asked again, bare and wrapped messages."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import orjson
import polars as pl
import pytest

from extractors.content import head_of
from extractors.formats import Emit, Head, LogRecord, recognise
from extractors.formats.envelope import Envelope
from extractors.formats.mcp_messages import FORMAT
from extractors.inventory import SourceFile
from extractors.reading import Reading, read
from extractors.sessions import AssembledSessions, assemble


def written(tmp_path: Path, records: list[Any]) -> tuple[Reading, AssembledSessions]:
    path = tmp_path / "log.jsonl"
    path.write_bytes(b"\n".join(each if isinstance(each, bytes) else orjson.dumps(each) for each in records))
    reading = read(SourceFile(path, path.name))
    assert reading.file.format == "mcp"
    return reading, assemble(reading.events, reading.declarations)


def message(number: Any, method: str | None = None, **fields: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": number, **({"method": method} if method else {}), **fields}


def call(number: Any, tool: str, **fields: Any) -> dict[str, Any]:
    return message(number, "tools/call", params={"name": tool, **fields})


def text_result(number: Any, text: str, **fields: Any) -> dict[str, Any]:
    return message(number, result={"content": [{"type": "text", "text": text}], **fields})


def calls(made: AssembledSessions) -> list[tuple[Any, ...]]:
    return made.turns.sort("session_id", "position").select("tool", "arguments", "content", "is_error").rows()


def test_the_edge_file(data: Path) -> None:
    path = data / "format_samples/10_edge/mcp_errors_cancel_batch.jsonl"
    reading = read(SourceFile(path, path.name))
    made = assemble(reading.events, reading.declarations)
    assert calls(made) == [
        ("nope", "{}", '{"code":-32602,"message":"Unknown tool: nope"}', True), ("slow", "{}", None, None),
        ("a", "{}", "part 1", False), ("b", "{}", "B", False)]
    assert made.turns["call_id"].to_list() == ["1", "1", '"1"', "2"]
    notes = dict(reading.events.filter(kind="call").select("tool", "lossy").rows())
    assert notes["slow"] == '["cancelled"]' and notes["a"] is None
    assert 'part resource_link {\\"type\\":\\"resource_link\\",\\"uri\\":\\"file:///x\\"' in "".join(
        reading.events.filter(kind="result")["lossy"].drop_nulls())
    logged = reading.events.filter(kind="log")["tool"].to_list()
    assert logged == ["notifications/cancelled", "elicitation/create", "elicitation/create answer"]
    assert set(reading.records["record_id"]) == set(reading.events["record_id"]), "nothing vanishes"


def test_messages_without_any_wrapping(tmp_path: Path) -> None:
    """The server asks with the same id as the host: an answer goes to the request that it looks like."""
    reading, made = written(
        tmp_path,
        [
            call(7, "draw", arguments={"n": 1}),
            message(7, "elicitation/create", params={"message": "Sure?"}),
            message(7, result={"action": "accept", "content": {}}),
            text_result(7, "drawn"),
            message(8, "ping"),
            message(8, result={}),
        ],
    )
    assert calls(made) == [("draw", '{"n":1}', "drawn", False)]
    assert reading.events["happened_at"].null_count() == reading.events.height
    assert reading.events.filter(kind="log")["tool"].to_list() == [
        "elicitation/create", "elicitation/create answer", "ping", "ping answer"]


@pytest.mark.parametrize("names", [("outgoing", "incoming"), ("client", "server"), (">>", "<<")])
@pytest.mark.parametrize("as_text", [False, True])
def test_any_words_for_the_two_sides(tmp_path: Path, names: tuple[str, str], as_text: bool) -> None:
    def wrapped(second: int, side: str, inner: Any) -> dict[str, Any]:
        return {"timestamp": f"2026-03-02T10:15:{second:02}Z", "direction": side, "sessionId": "s",
                "message": orjson.dumps(inner).decode() if as_text else inner}

    host, server = names
    reading, made = written(tmp_path, [
        wrapped(0, host, call(1, "draw")), wrapped(1, server, message(1, "roots/list")),
        wrapped(2, host, message(1, result={"roots": []})), wrapped(4, server, text_result(1, "drawn", isError=True))])
    assert calls(made) == [("draw", "{}", "drawn", True)]
    assert made.sessions["session_id"].to_list() == ["s"]
    assert reading.events.filter(kind="call")["latency_ms"].to_list() == [4000.0]


def test_a_call_that_is_asked_again_with_more_input_is_one_call(tmp_path: Path) -> None:
    asks = {"resultType": "input_required", "inputRequests": [{"id": "q"}], "content": []}
    reading, made = written(tmp_path, [
        call(1, "pay", arguments={"sum": 5}), message(1, result=asks),
        call(2, "pay", arguments={"sum": 5}, inputResponses=[{"id": "q"}]), text_result(2, "paid", resultType="complete"),
        call(3, "pay", arguments={"sum": 5}), text_result(3, "paid again")])
    assert calls(made) == [("pay", '{"sum":5}', "paid", False), ("pay", '{"sum":5}', "paid again", False)]
    assert reading.events.filter(kind="log")["tool"].to_list() == ["input_required", "tools/call"]


def test_structured_content_pictures_and_embedded_text(tmp_path: Path) -> None:
    picture = {"type": "image", "data": "AAAA", "mimeType": "image/png"}
    embedded = {"type": "resource", "resource": {"uri": "file:///a", "text": "inside"}}
    reading, made = written(tmp_path, [
        call(1, "a"), message(1, result={"content": [], "structuredContent": [1, 2]}),
        call(2, "b"), text_result(2, "shown", structuredContent={"more": 1}),
        call(3, "c"), message(3, result={"content": [embedded, picture]}), call(4, "d"), message(4, result=None)])
    assert [row[2] for row in calls(made)] == ["[1,2]", "shown", "inside", "null"]
    lossy = reading.events.filter(kind="result")["lossy"].to_list()
    assert lossy[0] is None and 'structuredContent {\\"more\\":1}' in lossy[1] and "part image sha256:" in lossy[2]


def test_lines_of_text_that_end_in_a_message() -> None:
    prompt, answered = (orjson.dumps(each).decode() for each in (call(1, "draw"), text_result(1, "drawn")))
    lines = ["2026-03-02T10:15:00.000Z [shop] [info] Server started",
             f"2026-03-02T10:15:01.000Z [shop] [info] Message from client: {prompt}",
             f"2026-03-02T10:15:03.500Z [shop] [info] Message from server: {answered}"]
    assert FORMAT.claims(Head("text", [], None, lines)) and not FORMAT.claims(Head("text", [], None, lines[:1]))
    emit = Emit("file", "main", "mcp", Envelope())
    FORMAT.read([LogRecord(f"{number:064d}", number, line) for number, line in enumerate(lines)], emit)
    events = emit.frame()
    assert calls(assemble(events)) == [("draw", "{}", "drawn", False)]
    assert events.filter(kind="call")["latency_ms"].item() == 2500.0
    assert events.filter(kind="log")["content"].to_list() == [lines[0]]


def test_results_nobody_asked_for_and_tools_of_every_page(tmp_path: Path) -> None:
    def page(tool: str) -> dict[str, Any]:
        return message(1, result={"tools": [{"name": tool, "inputSchema": {"type": "object"}}], "nextCursor": "n"})

    reading, _ = written(tmp_path, [
        {"msg": message(0, "initialize", params={})}, {"msg": message(0, result={"serverInfo": {"name": "shelf"}})},
        {"msg": page("one")}, {"msg": page("two")}, {"msg": text_result(9, "late")}])
    assert reading.declarations.select("service", "tool").rows() == [("shelf", "one"), ("shelf", "two")]
    late = reading.events.filter(pl.col("content") == "late")
    assert late.select("kind", "call_id", "service").rows() == [("result", "9", "shelf")]


def test_a_lone_tool_list_stays_a_tool_list() -> None:
    head = head_of(orjson.dumps(message(1, result={"tools": [{"name": "a", "inputSchema": {}}]})))
    log_format = recognise(head) if head is not None else None
    assert log_format is not None and log_format.name == "tool_list"


def test_json_between_other_words_and_servers_that_number_alike(tmp_path: Path) -> None:
    """What a host's log writes before and after a message: its side, its server, its metadata."""
    def line(second: int, server: str, side: str, inner: dict[str, Any]) -> str:
        words = f"2026-03-02T10:00:0{second}.000Z [{server}] [info] Message from {side}: "
        return words + orjson.dumps(inner).decode() + " { metadata: undefined }\n"

    lines = [line(0, "pond", "client", call(1, "look")), line(1, "hill", "client", call(1, "look")),
             line(2, "pond", "server", text_result(1, "water")), line(3, "hill", "server", text_result(1, "grass"))]
    (tmp_path / "mcp.log").write_text("".join(lines))
    reading = read(SourceFile(tmp_path / "mcp.log", "mcp.log"))
    results = reading.events.filter(kind="result").select("service", "content", "latency_ms").sort("service").rows()
    assert reading.file.format == "mcp" and [row[:2] for row in results] == [("hill", "grass"), ("pond", "water")]
    assert reading.events.filter(kind="call")["latency_ms"].to_list() == [2000.0, 2000.0]
