"""Nights in which two logs keep the same conversations: OpenAI chat rows of one client, OTLP spans of another.

In: the chat rows of a desk (`logs/*.jsonl`, full history each). Out: for each kind of night the two files' lines, and which
conversation each line is of. A third of the conversations has the same ids in both logs, a third other ids, a third none.
Among them are conversations that only look alike: short ones with the same words at other times, a request sent again seconds
later, two users who begin with the same words in the same second, a fork, and a conversation that is taken up again (with ids:
without any, it is the same conversation that goes on). Where a log has days for times, nothing tells which of several
conversations with the same words is which (`is_common`): those must be reported.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

Message = dict[str, Any]


@dataclass(frozen=True)
class Conversation:
    """What happened: messages with the second at which each came."""

    name: str
    messages: tuple[Message, ...]
    times: tuple[float, ...]
    ids: str
    """`same`, `other` or `none`: those of the second log."""
    begins: int = 0
    """First message that is of this conversation alone; requests before it are another's."""
    is_common: bool = False
    """Another conversation of the same day has the same words."""


@dataclass(frozen=True)
class Night:
    """Lines of the two files, each with the name of its conversation."""

    chat: list[tuple[str, dict[str, Any]]]
    spans: list[tuple[str, dict[str, Any]]]


@dataclass(frozen=True)
class Log:
    """How the second log differs from the first; `by_day`: the first has days for times."""

    has_results: bool = True
    longest: int | None = None
    has_instructions: bool = True
    shift: float = 0.0
    by_day: bool = False
    per_request: bool = False


NIGHTS: dict[str, Log] = {
    "plain": Log(), "without_results": Log(has_results=False), "cut_texts": Log(longest=80),
    "without_instructions": Log(has_instructions=False), "seconds_off": Log(shift=7.0), "zone_off": Log(shift=7200.0),
    "by_day": Log(by_day=True), "per_request": Log(per_request=True)}
_INSTRUCTIONS = {"role": "system", "content": "You are the agent of a desk. Keep to its policy; verify who is writing."}


def conversations(desk: Path, most: int) -> list[Conversation]:
    """Return the first conversations of the desk, whole."""
    last: dict[str, dict[str, Any]] = {}
    times: dict[str, list[float]] = {}
    for row in _rows(desk):
        name = row["metadata"]["session_id"]
        if name not in last and len(last) == most:
            break
        n_before = len(times.setdefault(name, []))
        ends, begins = row["created"], row["created"] - row["latency_ms"] / 1000
        times[name] += [begins] * (len(row["request"]["messages"]) - n_before) + [float(ends)]
        last[name] = row
    return [Conversation(name, (*row["request"]["messages"], row["response"]["choices"][0]["message"]), tuple(times[name]),
                         ("same", "other", "none")[number % 3]) for number, (name, row) in enumerate(last.items())]


def lookalikes(real: list[Conversation]) -> list[Conversation]:
    """Return conversations that look like others and are not."""
    start = real[0].times[0]
    made: list[Conversation] = []
    ids = ("same", "other", "none")
    for n in range(24):   # a templated bot: the same few words, at other times
        texts = "Are you there?", "Yes, I am here. How can I help you today?"
        made.append(_spoken(f"ping{n}", start + 611.0 * n, texts, ids[n % 3]))
    for n, origin in enumerate(real[5:14]):   # the same request again, seconds later: while the first goes on, or after it
        lasts = origin.times[-1] - origin.times[0] if origin.ids == "none" else 0.0
        made.append(_again(origin, f"again{n}", lasts + 4.0 + n))
    for n in range(6):   # two users, the same words in the same second
        for who, asks in (("a", "It is the blue lamp that I send back."), ("b", "I never got an invoice.")):
            made.append(_spoken(f"twin{n}{who}", start + 907.0 * n + 5, (
                f"Good morning, I need help with an order please ({n})", f"Of course, what is it about? I am agent {who}.",
                asks, "Thank you, I see what to do.", "Fine, that is all.", "You are welcome."), ids[n % 3]))
    for n, origin in enumerate(real[20:26]):   # a fork: the same beginning with its ids, another end
        half = len(origin.messages) // 2
        while origin.messages[half - 1]["role"] != "assistant" or origin.messages[half - 1].get("tool_calls"):
            half += 1
        texts = "Let us try another way, please.", "Then I look for something else."
        made.append(_longer(origin, f"fork{n}", half, 60.0, texts))
    for n, origin in enumerate(each for each in real[30:39] if each.ids != "none"):   # taken up again after hours
        made.append(_longer(origin, f"resumed{n}", len(origin.messages), 4 * 3600.0, (
            "I am back, is it done by now?", "It is on its way since this noon.")))
    return made


def night(everything: list[Conversation], log: Log) -> Night:
    """Write the conversations as two logs keep them."""
    ordered = sorted(everything, key=lambda each: (each.times[0], each.name))
    chat = sorted(((each.name, row) for each in ordered for row in _chat(each)), key=lambda each: each[1]["created"])
    if log.by_day:
        chat = [(name, {**row, "created": row["created"] // 86400 * 86400, "latency_ms": 0}) for name, row in chat]
    return Night(chat, [(each.name, line) for each in ordered for line in _spans(each, log)])


def _rows(desk: Path) -> Iterator[dict[str, Any]]:
    for path in sorted((desk / "logs").glob("*.jsonl")):
        with path.open() as lines:
            yield from map(json.loads, lines)


def _spoken(name: str, at: float, texts: tuple[str, ...], ids: str) -> Conversation:
    messages = [{"role": ("user", "assistant")[n % 2], "content": text} for n, text in enumerate(texts)]
    return Conversation(name, tuple(messages), tuple(at + 9.0 * n for n in range(len(texts))), ids, is_common=len(texts) == 2)


def _again(origin: Conversation, name: str, later: float) -> Conversation:
    renewed = _with_call_ids(origin.messages, lambda call_id: _hashed(name, call_id))
    return replace(origin, name=name, messages=renewed, times=tuple(time + later for time in origin.times), is_common=True)


def _longer(origin: Conversation, name: str, length: int, pause: float, texts: tuple[str, str]) -> Conversation:
    more = ({"role": "user", "content": texts[0]}, {"role": "assistant", "content": texts[1]})
    begins = origin.times[length - 1] + pause
    return replace(origin, name=name, messages=(*origin.messages[:length], *more),
                   times=(*origin.times[:length], begins, begins + 3), begins=length)


def _with_call_ids(messages: tuple[Message, ...], renamed: Callable[[str], str]) -> tuple[Message, ...]:
    made = []
    for message in messages:
        if message.get("tool_calls"):
            message = {**message, "tool_calls": [{**call, "id": renamed(call["id"])} for call in message["tool_calls"]]}
        if "tool_call_id" in message:
            message = {**message, "tool_call_id": renamed(message["tool_call_id"])}
        made.append(message)
    return tuple(made)


def _chat(talk: Conversation) -> Iterator[dict[str, Any]]:
    has_ids = talk.ids != "none"
    messages = (_INSTRUCTIONS, *talk.messages)
    for n, message in enumerate(messages):
        if message["role"] == "assistant" and n > talk.begins:
            at = talk.times[n - 1]
            named = {"id": f"chatcmpl-{_hashed(talk.name, str(n))}", "metadata": {"session_id": talk.name}} if has_ids else {}
            yield {**named, "created": int(at), "latency_ms": round(1000 * max(at - talk.times[max(n - 2, 0)], 0)),
                   "request": {"model": "desk-agent", "messages": list(messages[:n])},
                   "response": {"choices": [{"index": 0, "message": message}]}}


def _spans(talk: Conversation, log: Log) -> Iterator[dict[str, Any]]:
    """One line of OTLP: a span a request, with what is new in it; or a line a request with the whole history, a trace each."""
    messages, times, begins_at = talk.messages, talk.times, talk.begins
    if talk.ids != "same":
        messages = _with_call_ids(messages, lambda call_id: _hashed("other", talk.name, call_id))
    if log.has_instructions:
        messages, times, begins_at = (_INSTRUCTIONS, *messages), (times[0], *times), begins_at + 1
    spans: list[dict[str, Any]] = []
    first = 0
    for n, message in enumerate(messages):
        if message["role"] != "assistant" or n < begins_at:
            continue
        new = messages[0 if log.per_request else first:n]
        begins, ends = (_clock(times[max(n - 1, 0)] + 0.3, log), _clock(times[n] + 0.2, log))
        attributes = [("gen_ai.operation.name", "chat"), ("gen_ai.request.model", "desk-agent"),
                      ("gen_ai.input.messages", json.dumps([part for each in new if (part := _parts(each, log))])),
                      ("gen_ai.output.messages", json.dumps([_parts(message, log)]))]
        if talk.ids == "same":
            attributes.append(("gen_ai.conversation.id", talk.name))
        elif talk.ids == "other" and not log.per_request:
            attributes.append(("gen_ai.conversation.id", _hashed("renamed", talk.name)))
        trace = _hashed("trace", talk.name, str(n) if log.per_request else "")
        spans.append({"traceId": trace, "spanId": _hashed("span", talk.name, str(n))[:16], "name": "chat desk-agent", "kind": 3,
                      "startTimeUnixNano": str(begins), "endTimeUnixNano": str(max(begins, ends)),
                      "attributes": [{"key": key, "value": {"stringValue": value}} for key, value in attributes]})
        first = n + 1
    for group in [[span] for span in spans] if log.per_request else [spans]:
        yield {"resourceSpans": [{"resource": {"attributes": [{"key": "service.name", "value": {"stringValue": "desk"}}]},
                                  "scopeSpans": [{"scope": {"name": "desk"}, "spans": group}]}]}


def _clock(seconds: float, log: Log) -> int:
    return int((seconds + log.shift) * 1_000_000) * 1_000


def _parts(message: Message, log: Log) -> dict[str, Any] | None:
    """Return a message in the shape of the semantic conventions; None: this log does not keep it."""
    def cut(text: str) -> str:
        return text if log.longest is None or len(text) <= log.longest else text[:log.longest] + "…"

    if message["role"] == "tool":
        return {"role": "tool", "parts": [{"type": "tool_call_response", "id": message["tool_call_id"],
                                           "response": cut(message["content"])}]} if log.has_results else None
    parts: list[dict[str, Any]] = [{"type": "text", "content": cut(message["content"])}] if message.get("content") else []
    parts += [{"type": "tool_call", "id": call["id"], "name": call["function"]["name"],
               "arguments": json.loads(call["function"]["arguments"])} for call in message.get("tool_calls") or ()]
    return {"role": message["role"], "parts": parts, **({"finish_reason": "stop"} if message["role"] == "assistant" else {})}


def _hashed(*words: str) -> str:
    return hashlib.sha256("\0".join(words).encode()).hexdigest()[:32]
