"""What a model was asked and answered, and what a tool was given and gave, out of the wrappings that tracing stores it in.

In: input and output of a span, as a value or as JSON text (of JSON text …). Out: parts (the fields that
`extractors.formats.chat.parts` gives), candidate answers, declared tools; arguments and results of tools.
Sees: requests and answers of OpenAI (chat, completions and Responses), Anthropic, Gemini, LangChain generations, state with
`messages`, arguments of a function (`args`, `kwargs`), one value under one key, transcripts (`system: …`, `user: …` in one
text). Messages of OpenAI chat, LangChain (`lc: 1` constructors, `{type: human|ai|tool …}`, with and without `data`), Anthropic
blocks, parts of OpenTelemetry and pydantic-ai, Gemini contents, items of OpenAI Responses. Python's notation (`{'a': None}`) in
arguments; a tool's result is kept as it was logged. Content that was masked, cut off or put elsewhere keeps its text and says
so in `lossy`: it is distinguished from content that is empty (`""`) and from content that was not captured (None).
Does not see: what an image or a sound says (named in `lossy`), what an object was that Python printed otherwise. What is in no
known wrapping, and a message of no known shape, is kept as its JSON text.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable
from typing import Any

import orjson

from extractors.formats import chat, otlp_parts
from extractors.formats.chat import message_part
from extractors.formats.format import Row
from extractors.formats.provider_parts import anthropic_parts, gemini_parts, responses_parts
from extractors.formats.values import object_of, written

UNKNOWN = "message of no known shape"
"""Note on a message that is kept as its JSON text."""
ROLES = {"human": "user", "ai": "assistant", "AIMessageChunk": "assistant", "model": "assistant", "bot": "assistant",
         "chatbot": "assistant"}
"""Roles of other vendors, as ours."""
_CLASSES = {"HumanMessage": "user", "AIMessage": "assistant", "SystemMessage": "system", "ToolMessage": "tool",
            "FunctionMessage": "function"}
_OWN_ROLES = ("system", "developer", "user", "assistant", "tool", "function")
_LANGCHAIN = ("human", "ai", "system", "tool", "function", "chat", "developer", "AIMessageChunk")
_MOST_WRAPPINGS = 3
_OWN_BLOCKS = ("tool_use", "server_tool_use", "mcp_tool_use", "tool_result", "mcp_tool_result", "web_search_tool_result",
               "thinking", "redacted_thinking", "tool-call", "tool-result")
_TEXTS = ("input_text", "output_text")
_BLOCKS = (*_OWN_BLOCKS, *_TEXTS, "text", "image", "image_url", "document", "refusal", "input_image", "file")
_SYSTEM = ("system", "instructions", "systemInstruction", "system_instruction", "system_instructions")
_INPUT_KEYS = ("messages", "contents", "input", "input_messages", "prompt", "new_message", "inputs", "args", "kwargs")
_ANSWERED = ("message", "output", "outputs", "content", "messages")
_ONLY_TEXTS = ("text", "result", "response", "answer")
_TRANSCRIPT = re.compile(r"^(system|developer|user|assistant|tool|human|ai|model): ", re.MULTILINE)
_WITHHELD = re.compile(
    r"\s*(<[^<>]{0,80}truncated[^<>]{0,80}>|[\[<(*]{1,3}(?:redacted|masked|scrubbed|hidden)[^\])>*]{0,80}[\])>*]{1,3})\s*",
    re.IGNORECASE)
_LONGEST_MARK = 400
_CUT_OFF = re.compile(r'\s*(\[\s*)?\{\s*"')
_PRINTED = re.compile(r"(\w+\()?role='\w+',? content=")
_REASONS = ("finish_reason", "finishReason", "stop_reason")
_REFERENCE = re.compile(r"(weave|wandb-artifact|s3|gs)://\S+|https://\S+[?&]X-Amz-\S+")


def loaded(value: Any) -> Any:
    """Return what JSON text says, also where JSON text holds JSON text; any other value as it is."""
    for _ in range(_MOST_WRAPPINGS):
        if not isinstance(value, str) or (value[:1] not in ('{', '[', '"') and value[:1].strip()):
            return value
        try:
            value = orjson.loads(value)
        except orjson.JSONDecodeError:
            return value
    return value


def parts_of(value: Any, role: str) -> list[Row]:
    """Parts of a message or a list of messages; `role` is whose they are where they do not say."""
    if value is None:
        return []
    if isinstance(value, str):
        return [message_part(role, value)]
    if isinstance(value, list):
        if value and all(isinstance(each, list) for each in value):     # a batch; each conversation has its own answer
            return parts_of(value[0], role)
        if value and all(isinstance(each, dict) and "role" not in each and (
                each.get("type") in _BLOCKS or _is_sdk_call(each)) for each in value):
            return _blocks({"role": role}, value)
        return paired([part for each in value for part in parts_of(each, role)])
    if not isinstance(value, dict):
        return [message_part(role, written(value), [UNKNOWN])]
    kind = value.get("type")
    if value.get("lc") == 1 and isinstance(value.get("kwargs"), dict):
        path = value.get("id")
        name = str(path[-1]) if isinstance(path, list) and path else ""
        return _langchain(value["kwargs"], _CLASSES.get(name.removesuffix("Chunk"), value["kwargs"].get("type", role)))
    if isinstance(kind, str) and kind in _LANGCHAIN and isinstance(value.get("data"), dict):
        return _langchain(value["data"], kind)
    if isinstance(kind, str) and kind in _LANGCHAIN and "content" in value and "role" not in value:
        return _langchain(value, kind)
    if isinstance(parts := value.get("parts"), list):   # OpenTelemetry's, or Gemini's, which have no type
        role = _role(value.get("role"), role)
        is_typed = any(isinstance(each, dict) and "type" in each for each in parts)
        return otlp_parts.message_parts({**value, "role": role}) if is_typed else gemini_parts(parts, role)
    if isinstance(kind, str) and (kind in ("message", "reasoning") or kind.endswith(("_call", "_call_output"))):
        return responses_parts({"role": role, **value} if kind == "message" else value)
    if "role" in value:
        return _chat(value)
    return _blocks({"role": role}, [value]) if kind in _BLOCKS else [message_part(role, written(value), [UNKNOWN])]


def paired(parts: list[Row]) -> list[Row]:
    """Return the parts, with results that name no call given the id of the oldest call that is not answered."""
    if all(part["kind"] != "result" or part.get("call_id") for part in parts):
        return parts
    answered = {part.get("call_id") for part in parts if part["kind"] == "result"}
    waiting = [part for part in parts if part["kind"] == "call" and part.get("call_id") not in answered]
    for part in parts:
        if part["kind"] == "result" and not part.get("call_id"):
            call = next((each for each in waiting if part.get("tool") in (None, each.get("tool"))), None)
            if call is not None:
                waiting.remove(call)
                part["call_id"] = call.get("call_id")
    return parts


def _role(value: Any, role: str) -> str:
    return ROLES.get(value, value) if isinstance(value, str) else role


def _chat(value: Row) -> list[Row]:
    """Read a message with a role, as OpenAI writes it or with blocks in it."""
    value = {**value, "role": _role(value.get("role"), "user")}
    if "content" not in value and isinstance(value.get("text"), str):
        value["content"] = value["text"]
    extra = value.get("additional_kwargs")
    if isinstance(extra, dict) and extra.get("tool_calls") and not value.get("tool_calls"):
        value["tool_calls"] = extra["tool_calls"]
    if value["role"] not in _OWN_ROLES and isinstance(extra, dict):     # LangChain.js names a tool's message after the tool
        value.update(role="tool", name=value["role"])
    content = value.get("content")
    if isinstance(content, list) and any(isinstance(each, dict) and each.get("type") in _OWN_BLOCKS for each in content):
        calls = [part for part in chat.parts({**value, "content": None}) if part["kind"] == "call"]
        return _blocks(value, content, calls)
    rows = list(chat.parts(value))
    if isinstance(content, str) and content == "" and not rows:
        rows = [message_part(value["role"], "")]
    if value["role"] == "tool" and rows[0].get("tool") is None:
        rows[0]["tool"] = value.get("tool_name")
    return rows


def _langchain(value: Row, kind: Any) -> list[Row]:
    role = _role(kind, "user")
    shown = {**value, "role": value.get("role", "user") if role == "chat" else role}
    calls = [*(value.get("tool_calls") or ()), *(value.get("invalid_tool_calls") or ())]
    content = value.get("content")
    if calls and isinstance(content, list):     # the same calls stand among the blocks
        content = [each for each in content if object_of(each).get("type") not in ("tool_use", "function_call")]
    shown.update(content=content or "" if calls and not content else content, tool_calls=calls or None)
    rows = _chat(shown)
    if role == "tool" and value.get("status") in ("error", "success"):
        for part in rows:
            if part["kind"] == "result":
                part["is_error"] = value["status"] == "error"
    return rows


def _blocks(owner: Row, blocks: list[Any], calls: Iterable[Row] = ()) -> list[Row]:
    """Parts of a message of blocks; `calls` that its blocks do not hold come after them."""
    rows = [part for part in anthropic_parts({"role": owner["role"], "content": [_block(each) for each in blocks]})
             if part["kind"] != "message" or part["content"] is not None or part["lossy"]]
    call_ids = {part.get("call_id") for part in rows if part["kind"] == "call"}
    return [*rows, *(call for call in calls if call.get("call_id") is None or call["call_id"] not in call_ids)]


def _is_sdk_call(value: Any) -> bool:
    """Return whether it is a call of the AI SDK, which states no type where it lists an answer's calls."""
    return isinstance(value, dict) and "toolCallId" in value and "toolName" in value and ("input" in value or "args" in value)


def _block(block: Any) -> Any:
    """Return a block of the AI SDK or of OpenAI as one of Anthropic's."""
    kind = block.get("type") if isinstance(block, dict) else None
    if kind in _TEXTS:
        return {"type": "text", "text": block.get("text")}
    if kind == "tool-call" or (kind is None and _is_sdk_call(block)):
        return {"type": "tool_use", "id": block.get("toolCallId"), "name": block.get("toolName"),
                "input": block.get("input", block.get("args"))}
    if kind == "tool-result":
        output = block.get("output", block.get("result"))
        given = output if isinstance(output, dict) and isinstance(output.get("type"), str) and "value" in output else {
            "type": "", "value": output}
        return {"type": "tool_result", "tool_use_id": block.get("toolCallId"), "content": written(given["value"]),
                "is_error": given["type"].startswith("error") or block.get("isError") is True}
    return block


def prompt_parts(value: Any) -> list[Row]:
    """Parts of the input of a model, instructions first."""
    if (text := _instead(value, "user")) is not None:
        return [text]
    inner = loaded(value)
    if isinstance(inner, str):
        return _transcript(inner) or [message_part("user", inner)]
    return [] if is_collapsed(inner) else paired(_prompt_parts(inner))


def is_collapsed(value: Any) -> bool:
    """Return whether an object is what is left of a list of messages that a client made an object of: names of fields alone.

    Each message of two fields became a pair: of `[{"content": …, "role": …}]` is left `{"content": "role"}`.
    """
    return value in ({"content": "role"}, {"role": "content"})


def listed(value: Any) -> tuple[Any, Any] | None:
    """Instructions beside the messages of an input, and the messages: a list or its JSON text; None where there is none."""
    if isinstance(value, str) and value.startswith('[{"'):
        return None, value
    inner = loaded(value)
    if isinstance(inner, dict) and "role" not in inner:
        messages = next((inner[key] for key in ("messages", "contents") if isinstance(inner.get(key), list)), None)
        instructions = _instruction_values(inner)
    else:
        messages, instructions = inner, []
    if isinstance(messages, list) and messages and isinstance(messages[0], list):
        messages = messages[0]
    is_list = isinstance(messages, list) and bool(messages) and all(isinstance(each, dict) for each in messages)
    return (instructions or None, messages) if is_list else None


def of_message(value: Any) -> list[Row]:
    """Parts of one message of an input, each saying where its content is not what was said."""
    return [noted(part) for part in ([] if _is_declaration(value) else parts_of(value, "user"))]


def of_instructions(values: list[Any]) -> list[Row]:
    """Parts of instructions beside the messages."""
    return [noted(part) for value in values for part in _instructions(value)]


def noted(part: Row) -> Row:
    """Return the part, saying where its content is not what was said."""
    reason = withheld(part.get("content"))
    return {**part, "lossy": [*part["lossy"], reason]} if reason and reason not in part["lossy"] else part


def answer_parts(value: Any) -> list[list[Row]]:
    """Candidate answers of a model, each with its parts; none where no answer was captured."""
    if value is None:
        return []
    if (text := _instead(value, "assistant")) is not None:
        return [[text]]
    inner = loaded(value)
    if isinstance(inner, str) and not isinstance(printed := literal(inner), dict):
        return [[message_part("assistant", inner)]]
    if isinstance(inner, str):
        inner = printed if "role" in printed else {"text": inner}
    return [paired(each) for each in _candidates(inner, value) if each]


def instructed(value: Any) -> list[Row]:
    """Instructions that an answer repeats (OpenAI Responses), as system messages."""
    inner = object_of(loaded(value))
    given = inner.get("instructions") if inner.get("object") == "response" else None
    return _instructions(given) if given else []


def declared(value: Any) -> list[Any]:
    """Tools that a request declares, in the shapes that `extractors.formats.tool_list` reads."""
    if isinstance(value, str) and '"function' not in value and '"tools' not in value:
        return []
    inner = loaded(value)
    if isinstance(inner, list):     # some integrations put them among the messages
        return [each["content"] for each in inner if _is_declaration(each)]
    if not isinstance(inner, dict):
        return []
    places = (inner, inner.get("config"), inner.get("invocation_params"), inner.get("kwargs"))
    tools: list[Any] = next((place[key] for place in places if isinstance(place, dict) for key in ("tools", "functions")
                             if isinstance(place.get(key), list)), [])
    flat: list[Any] = []
    for each in tools:
        tool = object_of(each)
        grouped = tool.get("function_declarations", tool.get("functionDeclarations"))
        flat += grouped if isinstance(grouped, list) else [each]
    return flat


def withheld(text: str | None) -> str | None:
    """Why `text` is not what was said: masked, cut off, elsewhere; None where nothing speaks against it."""
    if text is None or len(text) > _LONGEST_MARK:
        return None
    if (mark := _WITHHELD.fullmatch(text)) is not None:
        return "truncated" if "truncat" in mark[1].lower() else "masked"
    return "content elsewhere" if _REFERENCE.fullmatch(text) else None


def is_cut_off(value: Any) -> bool:
    """Whether `value` is JSON text that ends too early: a limit on lengths cut it."""
    return isinstance(value, str) and value.rstrip()[-1:] not in ("}", "]") and _CUT_OFF.match(value) is not None


def _instead(value: Any, role: str) -> Row | None:
    """Return a message in the place of content that was masked, cut off, or is elsewhere."""
    reason = withheld(value) if isinstance(value, str) else None
    return message_part(role, value, [reason]) if reason is not None else None


def _instruction_values(inner: Row) -> list[Any]:
    return [place[key] for place in (inner, object_of(inner.get("config"))) for key in _SYSTEM if place.get(key)]


def _prompt_parts(inner: Any) -> list[Row]:
    if isinstance(inner, list):
        rows = [part for each in inner if not _is_declaration(each) for part in parts_of(literal(loaded(each)), "user")]
        for part in rows:   # what Python printed of a message: `role='user' content=…`
            if part["kind"] == "message" and _PRINTED.match(part["content"] or ""):
                part["lossy"] = [*part["lossy"], UNKNOWN]
        return rows
    if not isinstance(inner, dict) or "role" in inner or inner.get("lc") == 1:
        return parts_of(inner, "user")
    system = [part for value in _instruction_values(inner) for part in _instructions(value)]
    given = next((inner[key] for key in _INPUT_KEYS if inner.get(key)), None)
    if given is not None:
        return system + (_prompt_parts(given) if isinstance(given, (list, dict)) else prompt_parts(given))
    if len(inner) == 1 and isinstance(only := next(iter(inner.values())), str):
        return prompt_parts(only)
    return system or parts_of(inner, "user") if inner else []


def _instructions(value: Any) -> list[Row]:
    """System instructions, however they are written, as system messages."""
    return [{**part, "role": "system"} if part["kind"] == "message" else part for part in parts_of(loaded(value), "system")]


def _candidates(inner: Any, value: Any) -> list[list[Row]]:
    if isinstance(inner, dict):
        choices, generations = inner.get("choices"), inner.get("generations")
        if isinstance(choices, list):
            return [_finished(_choice(each), each) for each in choices]
        if isinstance(generations, list):
            first = generations[0] if generations and isinstance(generations[0], list) else generations
            return [_generation(each) for each in first]
        if isinstance(inner.get("candidates"), list):
            return [_finished(parts_of(each.get("content") if isinstance(each, dict) else each, "assistant"), each)
                    for each in inner["candidates"]]
        if "role" not in inner and inner.get("lc") != 1 and inner.get("type") not in ("ai", "AIMessageChunk"):
            return _unwrapped(inner, value)
        return [_finished(parts_of(inner, "assistant"), inner)]
    if isinstance(inner, list) and inner and all(
            isinstance(each, dict) and each.get("object") == "chat.completion.chunk" for each in inner):
        return [_joined(inner)]
    return [_finished(parts_of(inner, "assistant"), inner[-1] if isinstance(inner, list) and inner else None)]


def _unwrapped(inner: Row, value: Any) -> list[list[Row]]:
    """Return an answer under a key; where no key is known, the JSON as text: a structured answer is an answer."""
    for key in _ANSWERED:
        inner_value = inner.get(key)
        if isinstance(inner_value, (dict, list)) and inner_value:
            if key == "messages" and isinstance(inner_value, list):   # of a state, what came after all that no model wrote
                others = (i for i, each in enumerate(inner_value) if not _is_answer(each))
                inner_value = inner_value[max(others, default=-1) + 1:]
            return [_finished(parts, inner) for parts in _candidates(loaded(inner_value), inner_value)]
        if isinstance(inner_value, str):
            return [_finished([message_part("assistant", inner_value)], inner)]
    only = next(iter(inner.values())) if len(inner) == 1 else None
    if isinstance(only, str) and next(iter(inner)) in _ONLY_TEXTS and not isinstance(value, str):
        return [[message_part("assistant", only)]]
    text = value if isinstance(value, str) else written(inner)
    return [[message_part("assistant", text)]] if inner else []


def _is_answer(value: Any) -> bool:
    parts = parts_of(value, "assistant")
    return not any(part["kind"] == "result" or (part["kind"] == "message" and part["role"] in (
        "user", "system", "developer", "result")) for part in parts)


def _choice(choice: Any) -> list[Row]:
    if not isinstance(choice, dict):
        return parts_of(choice, "assistant")
    message_value = choice.get("message", choice.get("delta", choice.get("text")))
    return parts_of({"role": "assistant", **message_value} if isinstance(message_value, dict) else message_value, "assistant")


def _generation(generation: Any) -> list[Row]:
    if not isinstance(generation, dict):
        return parts_of(generation, "assistant")
    message_value = generation["message"] if isinstance(generation.get("message"), dict) else generation.get("text")
    return _finished(parts_of(message_value, "assistant"), generation.get("generation_info"))


def _finished(parts: list[Row], owner: Any) -> list[Row]:
    """Return the parts, with a note where the answer was cut off."""
    places = (owner.get(key) for key in _REASONS) if isinstance(owner, dict) else ()
    reason = next((each for each in places if each is not None), None)
    if parts and isinstance(reason, str) and reason.lower() in ("length", "max_tokens", "incomplete"):
        parts[-1]["lossy"] = [*parts[-1]["lossy"], "finish_reason length"]
    return parts


def _joined(chunks: list[Row]) -> list[Row]:
    """Return the answer that the chunks of a stream say together."""
    answer: Row = {"role": "assistant", "content": None}
    calls: dict[Any, Row] = {}
    for choice in (each for chunk in chunks for each in chunk.get("choices") or () if not each.get("index")):
        delta = choice.get("delta") or {}
        if isinstance(delta.get("content"), str):
            answer["content"] = (answer["content"] or "") + delta["content"]
        for call in delta.get("tool_calls") or ():
            function = call.get("function") or {}
            whole = calls.setdefault(call.get("index", len(calls)), {"id": None, "function": {"name": None, "arguments": ""}})
            whole["id"] = whole["id"] or call.get("id")
            whole["function"]["name"] = whole["function"]["name"] or function.get("name")
            whole["function"]["arguments"] += function.get("arguments") or ""
    return parts_of({**answer, "tool_calls": list(calls.values())}, "assistant")


def _is_declaration(value: Any) -> bool:
    content = object_of(object_of(value).get("content"))
    return content.get("type") == "function" and isinstance(content.get("function"), dict)


def _transcript(text: str) -> list[Row]:
    """Messages of a text that writes them one below the other, empty where it is no such text."""
    marks = list(_TRANSCRIPT.finditer(text))
    if not marks or marks[0].start() != 0 or marks[0][1] not in ("system", "developer", "user", "human"):
        return []
    rows: list[Row] = []
    for mark, end in zip(marks, [*(each.start() for each in marks[1:]), len(text) + 1], strict=True):
        content, role = text[mark.end():end - 1], ROLES.get(mark[1], mark[1])
        if role == "tool":
            rows.append({"kind": "result", "call_id": None, "content": content, "lossy": ["transcript"]})
        elif content != "None":
            rows.append(message_part(role, content, ["transcript"]))
    return rows


def arguments(value: Any) -> Any:
    """Arguments of a tool's run: out of `{"input": …}`, and of Python's notation where it is used."""
    inner = literal(loaded(value))
    if isinstance(inner, dict) and len(inner) == 1 and isinstance(inner.get("input"), (str, dict)):
        parsed = literal(loaded(inner["input"]))
        return parsed if isinstance(parsed, dict) else inner
    if isinstance(inner, dict) and set(inner) == {"args", "kwargs"} and not inner["args"]:
        return inner["kwargs"]
    return inner


def result(value: Any) -> Row:
    """Return result of a tool's run: `content`, and `call_id`, `is_error` where a tool's message says them."""
    inner = loaded(value)
    if isinstance(inner, dict) and len(inner) == 1 and (key := next(iter(inner))) in ("output", "result", "outputs"):
        value = inner[key]
        inner = loaded(value)
    if isinstance(inner, dict) and (inner.get("lc") == 1 or inner.get("type") == "tool" or inner.get("role") == "tool"):
        parts = parts_of(inner, "tool")
        if len(parts) == 1 and parts[0]["kind"] == "result":
            return parts[0]
    return {"content": written(value)}


def literal(value: Any) -> Any:
    """Return a structure that Python's notation spells (`{'a': None}`); anything else as it is."""
    if not isinstance(value, str) or value[:1] not in ("{", "["):
        return value
    try:
        parsed = ast.literal_eval(value)
        orjson.dumps(parsed)
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        return value
    return parsed if isinstance(parsed, (dict, list)) else value
