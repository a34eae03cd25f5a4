"""Conversations as agent frameworks keep them: a list of a framework's own messages in each record.

In: records (a line each, or one document) that hold such a list under a name that frameworks use (`messages`,
`channel_values.messages` of a checkpoint, `events`, `steps`, `conversations` …), or are a message each. Out: one session a
record, or one of all messages that name the same thread; a record that repeats a session with more messages goes on with it.
Sees messages of LangChain and LangGraph (dumped with `type` and `data`, as constructors, or flat), Pydantic AI, the AI SDK
(messages of its UI and of its models), AutoGen, Google ADK, smolagents, the Assistants API (with run steps), Bedrock's
Converse, LlamaIndex's blocks, ShareGPT, and calls that stand in a text between tags (`<tool_call>`).
Does not see: branches of a checkpoint; what a picture or a file says (named in `lossy` by type and hash). A message of no
known shape is kept as its JSON text.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from extractors.formats.chat import (
    SPOKEN,
    call_part,
    emit_parts,
    hashed,
    log_part,
    message_part,
    result_part,
    text,
    thought_part,
)
from extractors.formats.format import Emit, Format, Head, LogRecord, LogRecords, RejectedRecord, Row, sample
from extractors.formats.instants import microseconds
from extractors.formats.model_payloads import paired, parts_of
from extractors.formats.provider_parts import anthropic_parts, gemini_parts
from extractors.formats.ratings import rate
from extractors.formats.tool_list import declare_all
from extractors.formats.transcript import nameless
from extractors.formats.values import first_of, object_of, objects_in, parsed_json, text_of, written

_PATHS = (("messages",), ("channel_values", "messages"), ("checkpoint", "channel_values", "messages"), ("values", "messages"),
          ("state", "messages"), ("output", "messages"), ("outputs", "messages"), ("result", "messages"), ("data", "messages"),
          ("events",), ("steps",), ("conversations",), ("conversation",), ("chat_history",), ("history",))
"""Where a record may hold its messages."""
_STATES = frozenset({"values", "channel_values", "checkpoint"})
"""Fields of a record that is a thread's state at one time."""
_THREAD = (("thread",), ("configurable",), ("config", "configurable"), ("metadata",))
"""Where a record may name its thread, and the names there."""
_THREAD_ID = ("thread_id", "threadId", "session_id", "sessionId", "id")
_TIMES = ("timestamp", "created_at", "createdAt", "time", "at")
_SDK_CALLS = ("input", "args", "rawInput")
_SIGNS = frozenset({"parts", "blocks", "toolInvocations", "object", "source", "author", "lc"})
"""Fields by which a message with a role may be a framework's."""
_TAGGED = re.compile(r"<(tool_call|tool_response)>\s*(.*?)\s*</\1>", re.DOTALL)
Read = Callable[[Row], list[Row]]


@dataclass(frozen=True)
class FrameworkMessages:
    """One framework's messages."""

    applies: Callable[[Row], bool]
    """Whether a message is one of them, and of no other."""
    read: Read
    """Parts of a message, in order."""


def dialect_of(messages: Iterable[Any]) -> FrameworkMessages | None:
    """Return whose messages these are: the first dialect that one of them is of; None: of none here."""
    objects = [each for each in messages if isinstance(each, dict) and not _is_plain(each)]
    return next((each for each in _DIALECTS if any(map(each.applies, objects))), None) if objects else None


def _is_plain(message: Row) -> bool:
    """Return whether a message has a role and a text alone, so that no dialect needs to look at it."""
    content = message.get("content")
    is_text = content is None or (isinstance(content, str) and "<tool_call>" not in content)
    return is_text and "role" in message and _SIGNS.isdisjoint(message)


def messages_in(value: Any) -> list[Any]:
    """Return the messages that a record holds, an empty list where it holds none."""
    if isinstance(value, list):
        return value
    for path in _PATHS:
        inner = value
        for name in path:
            inner = object_of(inner).get(name)
        if isinstance(inner, list) and inner:
            return inner
    return []


def claims(head: Head) -> bool:
    """Return whether one of the first records holds messages of a framework, or is one."""
    if not head.is_json or "trajectory_format" in head.first:
        return False
    return dialect_of(head.objects) is not None or any(dialect_of(messages_in(value)) is not None for value in head.objects)


def read(records: LogRecords, emit: Emit) -> None:
    """One session a record; records that are messages themselves are one session, or one for each thread that they name."""
    threads: dict[str, list[LogRecord]] = {}
    for record in records:
        if messages_in(record.value):
            with emit.guarded(record):
                _tell(record, record.value, messages_in(record.value), emit)
        else:
            threads.setdefault(_stated_name(record.value, emit) or "", []).append(record)
    for messages in threads.values():
        _tell_each(messages, emit)


def _tell_each(records: list[LogRecord], emit: Emit) -> None:
    """Tell messages that are a record each."""
    dialect, position = dialect_of(record.value for record in records), 0
    name = _session_name(records[0], records[0].value, emit)
    for record in records:
        with emit.guarded(record):
            if dialect is None:
                raise RejectedRecord("no_messages", "the record holds no messages of a framework; leave it out or repair it")
            fixed = {"session_id": name, "service": emit.envelope.service(record.value)}
            position = emit_parts(emit, record, _parts({}, [record.value], dialect.read), position, None, fixed)


def _tell(record: LogRecord, value: Any, messages: list[Any], emit: Emit) -> None:
    """Tell the conversation that a record holds. Its time is that of its first part; of a thread's state that of its last,
    which made the state."""
    dialect = dialect_of(messages)
    if dialect is None and not any("role" in each for each in objects_in(messages)):
        raise RejectedRecord("no_messages", "the record holds no list of a framework's messages; leave it out or repair it")
    fixed: Row = {"session_id": _session_name(record, value, emit),
                  "service": emit.envelope.service(value) or text_of(object_of(value).get("appName")),
                  "name": emit.envelope.identity(value), "model": object_of(value).get("model")}
    if not isinstance(fixed["model"], str):
        fixed["model"] = None
    position, parts = 0, _parts(value, messages, dialect.read if dialect else _common)
    timed = len(parts) - 1 if not _STATES.isdisjoint(object_of(value)) else 0
    for place, part in enumerate(parts):
        if place == timed and part.get("happened_at") is None:
            part["happened_at"] = emit.envelope.time(value) or microseconds(first_of(object_of(value), _TIMES))
        emit.event(record, place=place, position=position, **{**fixed, **part})
        position += part["kind"] in SPOKEN
    rate(emit, record, value, fixed["session_id"])
    declare_all(object_of(value).get("tools"), emit, fixed["service"])


def _parts(value: Any, messages: list[Any], read_message: Read) -> list[Row]:
    """Return the parts of all messages, each with its message's time; results without an id belong to the calls before."""
    rows: list[Row] = []
    for message in [*_instructions(value), *_with_steps(value, messages)]:
        if not isinstance(message, dict):
            rows.append(log_part("message", message))
            continue
        instant = microseconds(first_of(message, _TIMES))
        parts = _of_step(message) if message.get("object") == "thread.run.step" else read_message(message)
        rows += [part if instant is None or part.get("happened_at") is not None else {**part, "happened_at": instant}
                 for part in parts]
    return paired(rows)


def _instructions(value: Any) -> list[Row]:
    """Instructions in a field next to the messages."""
    system = first_of(object_of(value), ("system", "system_prompt", "instructions"))
    return [{"role": "system", "content": system, "type": "system"}] if isinstance(system, str) else []


def _with_steps(value: Any, messages: list[Any]) -> list[Any]:
    """Return the messages of a thread with the steps of its runs between them, by when they were created."""
    steps = [step for name in ("run_steps", "runSteps") for step in objects_in(object_of(value).get(name))
             if step.get("object") == "thread.run.step"]
    if not steps:
        return messages
    return sorted([*objects_in(messages), *steps], key=lambda each: microseconds(each.get("created_at")) or 0)


def _session_name(record: LogRecord, value: Any, emit: Emit) -> str:
    """Return the session as logged, else a name made of the record's hash."""
    is_message = dialect_of([value]) is not None
    return _stated_name(value, emit) or (None if is_message else written(object_of(value).get("id"))) or nameless(record)


def _stated_name(value: Any, emit: Emit) -> str | None:
    """Return the session as logged under any of the frameworks' names."""
    stated = emit.envelope.session_id(value)
    for path in _THREAD if stated is None else ():
        inner = value
        for name in path:
            inner = object_of(inner).get(name)
        stated = stated or first_of(object_of(inner), _THREAD_ID)
    return written(stated)


def _common(message: Row) -> list[Row]:
    """Read a message as what models are asked with reads it."""
    return parts_of(message, "user")


def _is_langchain(message: Row) -> bool:
    if message.get("lc") == 1:
        return isinstance(message.get("kwargs"), dict)
    is_kind = message.get("type") in ("human", "ai", "AIMessageChunk")
    return is_kind and (isinstance(message.get("data"), dict) or "content" in message)


def _is_pydantic(message: Row) -> bool:
    parts = objects_in(message.get("parts"))
    return message.get("kind") in ("request", "response") and any("part_kind" in each for each in parts)


def _pydantic(message: Row) -> list[Row]:
    """Read a request or a response of Pydantic AI, part by part."""
    rows = [{**_pydantic_part(part), "happened_at": microseconds(part.get("timestamp"))}
            for part in objects_in(message.get("parts"))]
    model = message.get("model_name")
    return [{**row, "model": model} if isinstance(model, str) else row for row in rows]


def _pydantic_part(part: Row) -> Row:
    kind, content = part.get("part_kind"), part.get("content")
    if kind == "system-prompt":
        return message_part("system", written(content))
    if kind in ("user-prompt", "text"):
        words, lossy = text(content) if isinstance(content, list) else (written(content), [])
        return message_part("user" if kind == "user-prompt" else "assistant", words, lossy)
    if kind in ("tool-call", "builtin-tool-call"):
        return call_part("assistant", written(part.get("tool_call_id")), written(part.get("tool_name")), part.get("args"))
    if kind in ("tool-return", "builtin-tool-return", "retry-prompt"):
        if kind == "retry-prompt" and not part.get("tool_name"):
            return message_part("user", written(content))
        is_error = True if kind == "retry-prompt" else None
        return result_part(written(part.get("tool_call_id")), written(part.get("tool_name")), written(content), is_error)
    return thought_part("assistant", written(content)) if kind == "thinking" else log_part(f"part {kind}", part)


def _is_sdk_model(message: Row) -> bool:
    return any(each.get("type") in ("tool-call", "tool-result") for each in objects_in(message.get("content")))


def _is_sdk_ui(message: Row) -> bool:
    return "role" in message and (bool(objects_in(message.get("toolInvocations"))) or any(
        isinstance(each.get("type"), str) and (each["type"].startswith("tool-") or each["type"] in (
            "dynamic-tool", "step-start") or (each["type"] in ("text", "reasoning") and "text" in each))
        for each in objects_in(message.get("parts"))))


def _sdk_ui(message: Row) -> list[Row]:
    """Read a message of the AI SDK's UI: its parts in order, else its text and its calls."""
    role = message.get("role")
    parts = message.get("parts")
    if not isinstance(parts, list):
        parts = [{"type": "text", "text": message.get("content")},
                 *({"type": "tool-invocation", "toolInvocation": each} for each in objects_in(message.get("toolInvocations")))]
    return [row for part in objects_in(parts) for row in _sdk_part(part, role)] or [message_part(role, None)]


def _sdk_part(part: Row, role: Any) -> Iterator[Row]:
    kind = written(part.get("type")) or ""
    if kind == "text":
        yield message_part(role, written(part.get("text")))
    elif kind == "reasoning":
        yield thought_part(role, written(part.get("text", part.get("reasoning"))))
    elif kind.startswith("tool-") or kind == "dynamic-tool":
        call = object_of(part.get("toolInvocation")) if kind == "tool-invocation" else part
        name = call.get("toolName") or kind.removeprefix("tool-")
        call_id = written(call.get("toolCallId"))
        given = next((call[key] for key in _SDK_CALLS if key in call), None)
        yield call_part(role or "assistant", call_id, written(name), given)
        is_error = call.get("state") == "output-error" or call.get("isError") is True
        if is_error or "output" in call or "result" in call:
            yield result_part(call_id, None, written(first_of(call, ("output", "result", "errorText"))), is_error)
    elif kind in ("file", "image"):
        yield message_part(role, None, [hashed(kind, part)])
    elif kind != "step-start":
        yield log_part(f"part {kind}", part)


def _is_autogen(message: Row) -> bool:
    return isinstance(message.get("source"), str) and isinstance(message.get("type"), str) and (
        message["type"].endswith(("Message", "Event"))) and "content" in message


def _autogen(message: Row) -> list[Row]:
    """Read a message or an event of AutoGen."""
    role = "user" if message["source"].lower() in ("user", "user_proxy", "human") else "assistant"
    content, kind = message["content"], message["type"]
    if isinstance(content, list) and content and all(isinstance(each, dict) for each in content):
        if all("call_id" in each for each in content):
            return [result_part(written(each["call_id"]), written(each.get("name")), written(each.get("content")),
                                bool(each["is_error"]) if "is_error" in each else None) for each in content]
        if all("arguments" in each and "name" in each for each in content):
            return [call_part("assistant", written(each.get("id")), written(each["name"]), each["arguments"])
                    for each in content]
    if kind == "ThoughtEvent":
        return [thought_part(role, written(content))]
    if kind.endswith("SummaryMessage"):
        return [log_part(kind, content)]   # says again what the calls gave
    words, lossy = text(content) if isinstance(content, list) else (written(content), [])
    return [message_part(role, words, lossy)]


def _is_adk(message: Row) -> bool:
    return isinstance(message.get("author"), str) and isinstance(object_of(message.get("content")).get("parts"), list)


def _adk(message: Row) -> list[Row]:
    """Read an event of Google's ADK: a content of parts, and who wrote it."""
    content = object_of(message.get("content"))
    parts = content.get("parts")
    role = "user" if message.get("author") == "user" else "assistant"
    return gemini_parts(parts, role) if isinstance(parts, list) else [log_part("event", message)]


_SHARED_ROLES = {"human": "user", "user": "user", "gpt": "assistant", "assistant": "assistant", "chatgpt": "assistant",
                 "model": "assistant", "bing": "assistant", "bard": "assistant", "system": "system"}
_SHARED_CALLS = ("function_call", "function-call", "tool_call")
_SHARED_RESULTS = ("observation", "function_response", "function-response", "tool", "tool_response")


def _is_shared(message: Row) -> bool:
    who = message.get("from")
    return isinstance(who, str) and "value" in message and who.lower() in (*_SHARED_ROLES, *_SHARED_CALLS, *_SHARED_RESULTS)


def _shared(message: Row) -> list[Row]:
    """Read a turn of ShareGPT: `from` and `value`."""
    who, value = message["from"].lower(), message["value"]
    if who in _SHARED_CALLS:
        return [_json_call(value) or message_part("assistant", written(value))]
    if who in _SHARED_RESULTS:
        return [result_part(None, None, written(value), None)]
    return _tagged({"role": _SHARED_ROLES.get(who, who), "content": value})


def _json_call(value: Any) -> Row | None:
    """Return the call that JSON text spells: a name and arguments; None: it spells none."""
    call = parsed_json(value) if isinstance(value, str) else value
    if not isinstance(call, dict) or not isinstance(call.get("name"), str):
        return None
    return call_part("assistant", written(call.get("id")), call["name"], first_of(call, ("arguments", "parameters", "args")))


def _is_tagged(message: Row) -> bool:
    content = message.get("content")
    return message.get("role") == "assistant" and isinstance(content, str) and any(
        kind == "tool_call" and _json_call(inner) is not None for kind, inner in _TAGGED.findall(content))


def _tagged(message: Row) -> list[Row]:
    """Read a message whose text holds calls or results between tags; any other as usual."""
    content, role = message.get("content"), message.get("role")
    if not isinstance(content, str) or not _TAGGED.search(content) or role == "system":
        return _common(message)
    rows, done = list[Row](), 0
    for match in _TAGGED.finditer(content):
        rows += _words(content[done:match.start()], role)
        call = _json_call(match[2]) if match[1] == "tool_call" else None
        rows.append(call if call is not None else result_part(None, None, match[2], None)
                    if match[1] == "tool_response" else message_part(role, match[0]))
        done = match.end()
    return [*rows, *_words(content[done:], role)]


def _words(words: str, role: Any) -> list[Row]:
    return [message_part(role, words.strip())] if words.strip() else []


def _is_step(message: Row) -> bool:
    return "role" not in message and "observations" in message and "tool_calls" in message


def _step(message: Row) -> list[Row]:
    """Read a step of smolagents: the task, or what the model wrote, its calls and what they gave."""
    if isinstance(message.get("system_prompt"), str) and "task" not in message:
        return [message_part("system", message["system_prompt"])]
    if "task" in message:
        return [message_part("user", written(message["task"]))]
    rows = _words(written(message.get("model_output")) or "", "assistant")
    calls = [object_of(each) for each in message.get("tool_calls") or ()]
    for call in calls:
        function = object_of(call.get("function")) or call
        arguments = function.get("arguments")
        if function.get("name") == "final_answer":   # smolagents' own: what it says to the user
            answer = first_of(object_of(arguments), ("answer",)) if isinstance(arguments, dict) else arguments
            return [*rows, *_words(written(answer) or "", "assistant")]
        rows.append(call_part("assistant", written(call.get("id")), written(function.get("name")),
                              arguments if isinstance(arguments, dict) else {"input": arguments}))
    given = first_of(message, ("observations", "action_output", "error"))
    if calls and given is not None:
        rows.append(result_part(written(calls[-1].get("id")), None, written(given), True if message.get("error") else None))
    return rows or [log_part("step", message)]


def _is_thread(message: Row) -> bool:
    return message.get("object") == "thread.message"


def _thread(message: Row) -> list[Row]:
    words, lossy = text(message.get("content"))
    return [message_part(message.get("role"), words, lossy)]


def _of_step(step: Row) -> list[Row]:
    """Read a run's step: calls with what they gave; one that made a message says nothing more."""
    rows: list[Row] = []
    for call in objects_in(object_of(step.get("step_details")).get("tool_calls")):
        kind = written(call.get("type")) or "tool"
        function = object_of(call.get(kind))
        rows.append(call_part("assistant", written(call.get("id")), written(function.get("name")) or kind,
                              function.get("arguments", {"input": function.get("input")})))
        if (output := first_of(function, ("output", "outputs", "results"))) is not None:
            rows.append(result_part(written(call.get("id")), None, written(output), None))
    return rows


def _is_converse(message: Row) -> bool:
    blocks = objects_in(message.get("content"))
    return "role" in message and any("type" not in each and ("toolUse" in each or "toolResult" in each) for each in blocks)


def converse_message(message: Row) -> Row:
    """Return a message of Bedrock's Converse as Anthropic writes it."""
    return {"role": message.get("role"), "content": [_converse_block(each) for each in objects_in(message.get("content"))]}


def _converse_block(block: Row) -> Row:
    use, result = object_of(block.get("toolUse")), object_of(block.get("toolResult"))
    if use:
        return {"type": "tool_use", "id": use.get("toolUseId"), "name": use.get("name"), "input": use.get("input")}
    if result:
        content = [each["text"] if "text" in each else written(each.get("json")) for each in objects_in(result.get("content"))
                   if "text" in each or "json" in each]
        return {"type": "tool_result", "tool_use_id": result.get("toolUseId"), "content": "\n".join(map(str, content)),
                "is_error": result.get("status") == "error"}
    thought = object_of(object_of(block.get("reasoningContent")).get("reasoningText")).get("text")
    if thought is not None:
        return {"type": "thinking", "thinking": thought}
    return {"type": "text", "text": block["text"]} if "text" in block else {"type": next(iter(block), "block"), **block}


def _is_blocks(message: Row) -> bool:
    return "role" in message and any("block_type" in each for each in objects_in(message.get("blocks")))


def _llama(message: Row) -> list[Row]:
    """Read a message of LlamaIndex: blocks, and further fields of the provider."""
    extra, blocks = object_of(message.get("additional_kwargs")), objects_in(message.get("blocks"))
    words = "".join(written(each.get("text")) or "" for each in blocks if each.get("block_type") == "text")
    own = [{"type": "tool-call", "toolCallId": each.get("tool_call_id"), "toolName": each.get("tool_name"),
            "input": each.get("tool_kwargs")} for each in blocks if each.get("block_type") == "tool_call"]
    shown = {"role": message.get("role"), "content": words, "tool_calls": [*own, *(extra.get("tool_calls") or ())] or None,
             "tool_call_id": extra.get("tool_call_id"), "name": extra.get("name")}
    lossy = [hashed(each["block_type"], each) for each in blocks
             if each.get("block_type") not in ("text", "tool_call", "thinking")]
    rows = _common({key: each for key, each in shown.items() if each is not None})
    if rows:
        rows[0]["lossy"] = [*rows[0]["lossy"], *lossy]
    return rows


_DIALECTS = (
    FrameworkMessages(_is_langchain, _common), FrameworkMessages(_is_pydantic, _pydantic),
    FrameworkMessages(_is_sdk_model, _common), FrameworkMessages(_is_sdk_ui, _sdk_ui),
    FrameworkMessages(_is_autogen, _autogen), FrameworkMessages(_is_adk, _adk), FrameworkMessages(_is_shared, _shared),
    FrameworkMessages(_is_thread, _thread),
    FrameworkMessages(_is_converse, lambda each: anthropic_parts(converse_message(each))),
    FrameworkMessages(_is_blocks, _llama), FrameworkMessages(_is_step, _step), FrameworkMessages(_is_tagged, _tagged))
FORMAT = Format(name="framework_messages", claims=claims, read=read, sample=sample("framework_messages.jsonl"), apart=False,
                rank=40)
