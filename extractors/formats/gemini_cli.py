"""Sessions of Gemini CLI: a document (`sessionId`, `projectHash`, `messages`), or its lines since the CLI appends them.

Sees prompts, answers with thoughts, calls with their results and whether they failed, models, token counts and times. Where
lines repeat a message (`id`), the last one counts. What the CLI itself said (`info`, `error`, `warning`) is a log event.
`logs.json`, which holds prompts alone, is read too. Does not see: the system prompt and the declared tools (in no file), what
the terminal showed of a result (`resultDisplay`), messages that a rewind took back (they are read).
"""

from __future__ import annotations

from typing import Any

from extractors.formats.chat import call_part, thought_part
from extractors.formats.format import Emit, Format, Head, LogRecord, LogRecords, Row, sample
from extractors.formats.instants import microseconds
from extractors.formats.provider_parts import gemini_parts
from extractors.formats.transcript import Transcript, written
from extractors.formats.values import as_list, dumped, object_of, objects_in, text_of

_SPEAKERS = {"user": "user", "gemini": "assistant"}
_FAILED = ("error", "cancelled")
_SESSION = {"sessionId", "projectHash"}


def claims(head: Head) -> bool:
    """Return whether the first object is a session, or lists a prompt of one."""
    first = head.first
    return head.is_json and (first.keys() >= _SESSION or (
        first.keys() >= {"sessionId", "messageId", "message", "timestamp"} and str(first.get("type")) in _SPEAKERS))


def read(records: LogRecords, emit: Emit) -> None:
    """One session a document; lines belong to the session that came before them."""
    transcripts: dict[str | None, Transcript] = {}
    session_id: str | None = None
    pending: dict[str, tuple[LogRecord, Row]] = {}
    for record in records:
        value = record.value
        with emit.guarded(record):
            if not isinstance(value, dict) or not value:
                emit.reject(record, "no_line", "the record is neither a session nor a message; leave it out or repair it")
                continue
            if value.get("sessionId") is not None and session_id != text_of(value["sessionId"]):
                _tell_all(pending, session_id, transcripts, emit)
                session_id = text_of(value["sessionId"])
            messages = objects_in(value.get("messages"))
            facts = {key: each for key, each in value.items() if key != "messages"}
            if value.keys() >= _SESSION or "$set" in value or "type" not in value:
                _transcript(transcripts, session_id, record, emit).log(dumped(facts), tool="session")
            elif "messageId" in value:   # of `logs.json`
                messages = [{**value, "id": value["messageId"], "content": value.get("message")}]
            else:
                messages = [value]
            for number, message in enumerate(messages):
                name = str(message.get("id", f"{record.record_id}/{number}"))
                if name in pending and pending[name][0] is not record:
                    emit.reject(pending[name][0], "replaced_message",
                                f"a later line tells message {name} again, and that one is read; no action needed")
                pending[name] = (record, message)
    _tell_all(pending, session_id, transcripts, emit)


def _transcript(transcripts: dict[str | None, Transcript], session_id: str | None, record: LogRecord, emit: Emit) -> Transcript:
    if session_id not in transcripts:
        transcripts[session_id] = Transcript.of(emit, record, object_of(record.value), emit.envelope.service(None), session_id)
    transcript = transcripts[session_id]
    transcript.record = record
    return transcript


def _tell_all(pending: dict[str, tuple[LogRecord, Row]], session_id: str | None, transcripts: dict[str | None, Transcript],
              emit: Emit) -> None:
    for record, message in pending.values():
        with emit.guarded(record):
            _message(_transcript(transcripts, session_id, record, emit), message)
    pending.clear()


def _message(transcript: Transcript, message: Row) -> None:
    role = _SPEAKERS.get(str(message.get("type")))
    shared: Row = {"happened_at": microseconds(message.get("timestamp")), "model": text_of(message.get("model"))}
    if role is None:
        transcript.log(message, tool=str(message.get("type")), **shared)
        return
    thoughts = [": ".join(text for key in ("subject", "description") if isinstance(text := each.get(key), str) and text)
                for each in objects_in(message.get("thoughts"))]
    rows = [thought_part(role, each) for each in thoughts if each]
    calls = objects_in(message.get("toolCalls"))
    content = as_list(message.get("content"))
    if any(content) or not calls:
        rows += gemini_parts(content or [""], role)
    rows += [{**call_part(role, text_of(each.get("id")), text_of(each.get("name")), each.get("args")),
              "happened_at": microseconds(each.get("timestamp"))} for each in calls]
    transcript.add_answer(rows, _usage(message.get("tokens")), **shared)
    for each in calls:
        _result(transcript, each)


def _result(transcript: Transcript, call: Row) -> None:
    """Emit what a call gave; nothing where it was not run to its end."""
    status, result = call.get("status"), call.get("result")
    if result is None and status not in _FAILED:
        return
    rows = gemini_parts(as_list(result), "user") if not isinstance(result, str) else []
    answers = [row for row in rows if row["kind"] == "result"]
    content = answers[0]["content"] if len(answers) == 1 else None if result is None else written(result)
    transcript.result(content, call.get("id"), tool=text_of(call.get("name")), is_error=status in _FAILED if status else None,
                      happened_at=microseconds(call.get("timestamp")))
    for row in rows:   # what came with the answer: a picture, a file's text
        if len(answers) == 1 and row["kind"] != "result":
            transcript.log(row["content"], tool="content of a result", lossy=row["lossy"] or None)


def _usage(stated: Any) -> Row | None:
    """Return the counts of an answer: thoughts are counted apart from the output, cached tokens inside the input."""
    counts = {name: value for name, value in object_of(stated).items() if type(value) is int}
    if "input" not in counts:
        return None
    usage = {"input_tokens": counts["input"], "output_tokens": counts.get("output", 0) + counts.get("thoughts", 0)}
    return usage | {ours: counts[name] for ours, name in (("cached_tokens", "cached"), ("reasoning_tokens", "thoughts"))
                    if counts.get(name)}


FORMAT = Format(name="gemini_cli", claims=claims, read=read, sample=sample("gemini_cli.json"), apart=False, rank=26)
