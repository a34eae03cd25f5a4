"""Generated logs of any size, for benchmarks: invented content, the same bytes for the same size.

A support desk's model calls, in the shapes that gateways and instrumentations write them: each record holds the whole history
of its conversation. Also an access log and a database's changes. Conversations are interleaved as they are in production.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import orjson

_START = 1_772_446_502
_WORDS = (
    "please", "check", "the", "item", "and", "tell", "me", "when", "it", "ships", "because", "box", "came", "open", "yesterday",
    "lid", "is", "bent", "so", "want", "another", "one", "or", "my", "money", "back", "thank", "you", "very", "much", "for",
    "quick", "answer", "was", "kind", "of", "to", "look")
_TOOLS = [{"type": "function", "function": {
    "name": name, "description": f"Does {name} for one item of the shop. " + " ".join(_WORDS), "parameters": {
        "type": "object", "properties": {field: {"type": "string", "description": f"The {field} as it was told."}
                                         for field in ("item", "reason", "amount")}, "required": ["item"]}}}
    for name in ("find", "change", "return", "note", "price", "stock", "hold")]
_SYSTEM = "You are the desk of a shop. " + " ".join(_WORDS) * 16
_AT_ONCE = 40
_TURNS = 30


def write(name: str, folder: Path, n_bytes: int, n_files: int = 4) -> list[Path]:
    """Log files of format `name`, of `n_bytes` in all; files that are there already are taken."""
    paths = [folder / f"{name}-{n_bytes}-{i}.{ENDINGS[name]}" for i in range(n_files)]
    if not all(path.exists() for path in paths):
        folder.mkdir(parents=True, exist_ok=True)
        lines = LINES[name](random.Random(7))
        for path in paths:
            left = n_bytes // n_files
            with path.open("wb") as file:
                while left > 0:
                    line = next(lines)
                    file.write(line)
                    left -= len(line)
    return paths


def _text(chance: random.Random, n_words: int) -> str:
    return " ".join(chance.choices(_WORDS, k=n_words))


def _conversation(chance: random.Random, number: int) -> Iterator[tuple[str, list[Any], dict[str, Any]]]:
    """Yield the model calls of one conversation: session, history (grown in place), answer."""
    session = f"s-{number:08d}-{chance.randrange(16**8):08x}"
    history: list[Any] = [{"role": "system", "content": _SYSTEM}]
    for turn in range(_TURNS):
        if turn % 2 == 0:
            history.append({"role": "user", "content": _text(chance, 40)})
        call = {"id": f"call_{number}_{turn}", "type": "function", "function": {
            "name": chance.choice(_TOOLS)["function"]["name"],
            "arguments": orjson.dumps({"item": f"I-{chance.randrange(10**6)}", "reason": _text(chance, 6)}).decode()}}
        answer = {"role": "assistant", "content": None, "tool_calls": [call]} if turn % 2 == 0 else {
            "role": "assistant", "content": _text(chance, 60)}
        yield session, history, answer
        history.append(answer)
        if turn % 2 == 0:
            history.append({"role": "tool", "tool_call_id": call["id"], "content": orjson.dumps({
                "item": f"I-{chance.randrange(10**6)}", "state": "sent", "parts": [
                    {"part": f"P-{i}", "n": chance.randrange(9), "note": _text(chance, 12)} for i in range(6)]}).decode()})


def _interleaved(chance: random.Random) -> Iterator[tuple[int, str, list[Any], dict[str, Any]]]:
    """Model calls of conversations that run at the same time, with a running number."""
    open_ = [_conversation(chance, i) for i in range(_AT_ONCE)]
    begun, number = _AT_ONCE, 0
    while True:
        at = chance.randrange(_AT_ONCE)
        found = next(open_[at], None)
        if found is None:
            open_[at] = _conversation(chance, begun)
            begun += 1
            continue
        number += 1
        yield number, *found


def _completions(chance: random.Random) -> Iterator[bytes]:
    for number, session, history, answer in _interleaved(chance):
        at = _START + number // 5
        yield orjson.dumps({
            "ts": at, "session_id": session, "user_id": f"u-{session[2:10]}", "request": {
                "model": "desk-1", "messages": history, "tools": _TOOLS, "temperature": 0.2},
            "response": {"id": f"r-{number}", "object": "chat.completion", "created": at + 1, "model": "desk-1", "choices": [
                {"index": 0, "message": answer, "finish_reason": "stop"}],
                "usage": {"prompt_tokens": 900, "completion_tokens": 80, "total_tokens": 980}}, "latency_ms": 900}) + b"\n"


def _otlp(chance: random.Random) -> Iterator[bytes]:
    for number, session, history, answer in _interleaved(chance):
        began = (_START * 1000 + number * 200) * 1_000_000
        spans = [_span(number, 0, f"chat {number % 3}", began, 900, {
            "gen_ai.operation.name": "chat", "gen_ai.request.model": "desk-1", "gen_ai.conversation.id": session,
            "gen_ai.system_instructions": orjson.dumps([{"type": "text", "content": _SYSTEM}]).decode(),
            "gen_ai.input.messages": orjson.dumps([_parted(each) for each in history[1:]]).decode(),
            "gen_ai.output.messages": orjson.dumps([{**_parted(answer), "finish_reason": "stop"}]).decode(),
            "gen_ai.usage.input_tokens": 900, "gen_ai.usage.output_tokens": 80})]
        for call in answer.get("tool_calls", ()):
            spans.append(_span(number, 1, "execute_tool", began + 10**9, 20, {
                "gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": call["function"]["name"],
                "gen_ai.tool.call.id": call["id"], "gen_ai.conversation.id": session,
                "gen_ai.tool.call.arguments": call["function"]["arguments"]}))
        yield orjson.dumps({"resourceSpans": [{
            "resource": {"attributes": [_attribute("service.name", "desk")]},
            "scopeSpans": [{"scope": {"name": "desk"}, "spans": spans}]}]}) + b"\n"


def _parted(message: dict[str, Any]) -> dict[str, Any]:
    """Return a chat message in the parts model of the conventions."""
    if message["role"] == "tool":
        return {"role": "tool", "parts": [
            {"type": "tool_call_response", "id": message["tool_call_id"], "response": message["content"]}]}
    parts: list[Any] = [{"type": "text", "content": message["content"]}] if message["content"] else []
    for call in message.get("tool_calls", ()):
        parts.append({"type": "tool_call", "id": call["id"], "name": call["function"]["name"],
                      "arguments": orjson.loads(call["function"]["arguments"])})
    return {"role": message["role"], "parts": parts}


def _span(number: int, part: int, name: str, began: int, ms: int, attributes: dict[str, Any]) -> dict[str, Any]:
    return {"traceId": f"{number // 3 + 1:032x}", "spanId": f"{number * 2 + part + 1:016x}", "parentSpanId": "", "name": name,
            "kind": 3, "startTimeUnixNano": str(began), "endTimeUnixNano": str(began + ms * 1_000_000),
            "attributes": [_attribute(key, value) for key, value in attributes.items()], "status": {}}


def _attribute(key: str, value: Any) -> dict[str, Any]:
    return {"key": key, "value": {"intValue": str(value)} if isinstance(value, int) else {"stringValue": value}}


def _access(chance: random.Random) -> Iterator[bytes]:
    number = 0
    while True:
        number += 1
        second = number // 40
        yield (
            f"203.0.{number % 251}.{number * 7 % 253} - u{number % 5003} [02/Mar/2026:{second // 3600 % 24:02d}:"
            f"{second // 60 % 60:02d}:{second % 60:02d} +0000] "
            f'"GET /shop/{number * 13 % 99991}/items?page={number % 7} HTTP/1.1" '
            f'{chance.choice((200, 200, 200, 304, 404))} {chance.randrange(99999)} "https://shop.example/page/{number % 100}" '
            f'"Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/{number % 30 + 90}.0 '
            'Safari/537.36"\n').encode()


def _changes(chance: random.Random) -> Iterator[bytes]:
    number = 0
    while True:
        number += 1
        at = _START * 1000 + number
        row = {"id": number // 2, "name": f"name {number}", "state": chance.choice(("open", "paid", "sent")),
               "amount": chance.randrange(10000), "note": _text(chance, 8), "changed_at": at}
        yield orjson.dumps({
            "before": {**row, "state": "new"} if number % 2 else None, "after": row, "source": {
                "version": "3.2.0.Final", "connector": "postgresql", "name": "shop", "ts_ms": at, "ts_us": at * 1000,
                "snapshot": "false", "db": "shop", "sequence": '["1001","1002"]', "schema": "public", "table": "items",
                "txId": number, "lsn": 24023228 + number, "xmin": None},
            "transaction": None, "op": "u" if number % 2 else "c", "ts_ms": at + 150}) + b"\n"


LINES: dict[str, Callable[[random.Random], Iterator[bytes]]] = {
    "completions": _completions, "otlp": _otlp, "access_log": _access, "debezium": _changes}
ENDINGS = {"completions": "jsonl", "otlp": "jsonl", "access_log": "log", "debezium": "jsonl"}
