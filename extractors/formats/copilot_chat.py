"""Chats of GitHub Copilot in VS Code: exported (`Chat: Export Chat…`), stored (`chatSessions/*.json`), or as the lines of
changes that newer versions store (`{"kind": 0, "v": …}`).

Sees questions, answers with the rounds of calls that the agent made, results, thoughts, the model, times, thumbs. Of a chat
without rounds the shown answer is read: its texts, its tools with arguments and results. Edits, references, commands and
progress are log events. Does not see: the system prompt and declared tools, the texts of attached files, undone requests.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

from extractors.formats.format import Emit, Format, Head, LogRecord, LogRecords, RejectedRecord, Row, sample
from extractors.formats.instants import microseconds
from extractors.formats.transcript import Transcript, written
from extractors.formats.values import dumped, list_under, number_of, object_of, objects_in, opened, text_of, word_of

_TOOL = ("toolInvocationSerialized", "toolInvocation")
_TEXT = (None, "markdownContent", "markdownVuln")
_VOTES = {0: "down", 1: "up"}
_SET, _PUSH, _DELETE = 1, 2, 3


def claims(head: Head) -> bool:
    """Return whether the first object is a chat, or a line that holds one to be changed."""
    first = head.first
    return head.is_json and (_is_chat(first) or (first.get("kind") == 0 and _is_chat(first.get("v"))))


def _is_chat(value: Any) -> bool:
    return isinstance(value, dict) and isinstance(value.get("requests"), list) and not {
        "requesterUsername", "responderUsername", "sessionId"}.isdisjoint(value)


def read(records: LogRecords, emit: Emit) -> None:
    """One session a chat; lines of changes are joined to the chat that they change."""
    state: Any = None
    begins: LogRecord | None = None
    for record in records:
        with emit.guarded(record):
            value = record.value
            if isinstance(value, dict) and value.get("kind") == 0 and "v" in value:
                _tell(begins, state, emit)
                state, begins = copy.deepcopy(value["v"]), record   # a record stays as it is
            elif isinstance(value, dict) and isinstance(value.get("k"), list) and begins is not None:
                _change(state, copy.deepcopy(value))
                emit.reject(record, "joined_line",
                            "the line changes a chat that an earlier line begins, and is in its events; no action needed")
            elif _is_chat(value):
                _chat(record, value, emit)
            else:
                raise RejectedRecord("no_chat", "the record is no chat with requests; leave it out or export it again")
    _tell(begins, state, emit)


def _tell(record: LogRecord | None, state: Any, emit: Emit) -> None:
    if record is not None:
        with emit.guarded(record):
            _chat(record, state, emit)


def _change(state: Any, change: Row) -> None:
    """Carry out one change: set, extend (from `i` on) or delete what the path leads to. Errors: those of a wrong path."""
    *above, last = change["k"]
    for key in above:
        state = state[key]
    if change.get("kind") == _SET:
        state[last] = change.get("v")
    elif change.get("kind") == _DELETE:
        del state[last]
    elif change.get("kind") == _PUSH:
        items = state[last] if isinstance(state, list) else state.setdefault(last, [])
        if isinstance(change.get("i"), int):
            del items[change["i"]:]
        items.extend(change.get("v") or ())


def _chat(record: LogRecord, value: Row, emit: Emit) -> None:
    requests = list_under(value, "requests")
    if not requests:
        raise RejectedRecord("no_requests", "the chat holds no requests; leave it out")
    stated = next((name for each in objects_in(requests) if (name := word_of(_metadata(each).get("sessionId")))), None)
    transcript = Transcript.of(emit, record, value, emit.envelope.service(value), text_of(value.get("sessionId")) or stated)
    for number, request in enumerate(requests):
        _request(transcript, number, request, word_of(value.get("requesterUsername")))


def _metadata(request: Row) -> Row:
    return object_of(object_of(request.get("result")).get("metadata"))


def _request(transcript: Transcript, number: int, request: Row, who: str | None) -> None:
    """Tell a question and what came of it."""
    message, result = request["message"], object_of(request.get("result"))
    sent, took = microseconds(request.get("timestamp")), number_of(object_of(result.get("timings")).get("totalElapsed"))
    latency = took if took is not None and 0 <= took < 1e10 else None
    answered = sent if sent is None or latency is None else sent + int(latency * 1000)
    lossy = [f"attached {each.get('name')}" for each in objects_in(object_of(request.get("variableData")).get("variables"))]
    transcript.message("user", message.get("text") if isinstance(message, dict) else message, happened_at=sent, name=who,
                       lossy=lossy)
    shared: Row = {"happened_at": answered, "latency_ms": latency, "model": text_of(request.get("modelId"))}
    rounds = objects_in(_metadata(request).get("toolCallRounds"))
    shown = [each for each in request.get("response") or () if isinstance(each, (dict, str))]
    if rounds:
        _rounds(transcript, rounds, object_of(_metadata(request).get("toolCallResults")), shown, shared)
    else:
        _shown(transcript, shown, shared)
    for part in shown:
        kind = part.get("kind") if isinstance(part, dict) else None
        if kind not in (*_TEXT, *_TOOL, "inlineReference", "thinking"):
            transcript.log(part, tool=str(kind), happened_at=answered)
    if result.get("errorDetails"):
        transcript.log(result["errorDetails"], tool="error", happened_at=answered)
    if request.get("isCanceled") is True:
        transcript.log("the request was cancelled", tool="cancelled", happened_at=answered)
    if (vote := request.get("vote")) is not None:
        answer = written(vote) if (choice := number_of(vote)) is None else _VOTES.get(int(choice))
        transcript.add({"kind": "feedback", "name": "vote", "value": answer, "happened_at": answered,
                        "content": written(request.get("voteDownReason")), "call_id": text_of(request.get("responseId"))})


def _rounds(transcript: Transcript, rounds: list[Row], results: Row, shown: list[Any], shared: Row) -> None:
    """Tell the answers of the model one by one, each with its calls and their results."""
    for each in rounds:
        thought = each.get("thinking")
        transcript.reasoning(object_of(thought).get("text", thought if isinstance(thought, str) else None), **shared)
        if each.get("response"):
            transcript.message("assistant", each["response"], **shared)
        calls = objects_in(each.get("toolCalls"))
        for call in calls:
            transcript.call(call.get("name"), call.get("arguments"), call.get("id"), **shared)
        for call in calls:
            if (result := results.get(str(call.get("id")))) is not None:
                transcript.result(_result_text(result), call.get("id"), tool=text_of(call.get("name")), is_error=None,
                                  happened_at=shared["happened_at"])
    if not any(each.get("response") for each in rounds) and (text := _text_of(shown)):
        transcript.message("assistant", text, **shared)


def _result_text(result: Any) -> Any:
    """Return the texts of a result: of its parts, and of the trees of elements that some parts are."""
    parts = object_of(result).get("content")
    if not isinstance(parts, list):
        return written(result)
    values = [object_of(part).get("value", part) for part in parts]
    return "".join(each if isinstance(each, str) else "".join(_texts_in(each)) or dumped(each) for each in values)


def _texts_in(value: Any) -> Iterator[str]:
    """Yield the texts of a tree of elements, in order."""
    if isinstance(value, dict):
        if isinstance(value.get("text"), str):
            yield value["text"]
        yield from _texts_in(value.get("node"))
        yield from _texts_in(value.get("children"))
    elif isinstance(value, list):
        for each in value:
            yield from _texts_in(each)


def _shown(transcript: Transcript, shown: list[Any], shared: Row) -> None:
    """Tell an answer as it was shown: texts, and the tools between them."""
    texts: list[Any] = []
    for part in [*shown, None]:
        kind = part.get("kind") if isinstance(part, dict) else None
        if part is not None and kind not in (*_TOOL, "thinking"):
            texts.append(part)
            continue
        if text := _text_of(texts):
            transcript.message("assistant", text, **shared)
        texts = []
        if kind == "thinking":
            transcript.reasoning(written(part.get("value")), **shared)
        elif kind in _TOOL:
            _tool(transcript, part, shared)


def _tool(transcript: Transcript, part: Row, shared: Row) -> None:
    details, call_id = part.get("resultDetails"), text_of(part.get("toolCallId"))
    given = object_of(details).get("input", part.get("toolSpecificData"))
    transcript.call(part.get("toolId"), opened(given), call_id, lossy=[] if given is not None else ["arguments not captured"],
                    **shared)
    outputs = object_of(details).get("output")
    values = [each.get("value") for each in objects_in(outputs)]
    texts = [each for each in values if isinstance(each, str)]
    content = "".join(texts) if values and len(texts) == len(values) else written(values or details)
    if part.get("isComplete") is not False:
        flag = object_of(details).get("isError")
        transcript.result(content, call_id, tool=text_of(part.get("toolId")),
                          is_error=flag if isinstance(flag, bool) else None, happened_at=shared["happened_at"],
                          lossy=[] if details is not None else ["result not captured"])


def _text_of(shown: list[Any]) -> str:
    """Return the texts of an answer, with the names of what it refers to in their places."""
    texts = []
    for part in shown:
        kind = part.get("kind") if isinstance(part, dict) else None
        if isinstance(part, str):
            texts.append(part)
        elif kind in _TEXT:
            content = part.get("value", part.get("content"))
            texts.append(content if isinstance(content, str) else str(object_of(content).get("value") or ""))
        elif kind == "inlineReference":
            named = object_of(part.get("inlineReference"))
            texts.append(str(part.get("name") or named.get("name") or str(named.get("path", "")).rpartition("/")[2]))
    return "".join(texts).strip()


FORMAT = Format(name="copilot_chat", claims=claims, read=read, sample=sample("copilot_chat.json"), apart=False, rank=26)
