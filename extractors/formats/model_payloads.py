"""What a model was asked and answered, out of the wrappings that tracing stores it in.

In: input and output of a span, as a value or as JSON text. Out: parts (`extractors.formats.message_parts`), candidate answers,
declared tools.
Sees: requests and answers of OpenAI (chat, completions and Responses), Anthropic, Gemini, LangChain generations, state with
`messages`, arguments of a function (`args`, `kwargs`), one value under one key, transcripts (`system: …`, `user: …` in one
text). What stands in no known wrapping is kept as its JSON text. Content that was masked, cut off or put elsewhere keeps its
text and says so in `lossy`: it is told apart from content that is empty (`""`) and from content that was not captured (None).
"""

from __future__ import annotations

import re
from typing import Any

from extractors.formats.format import Row
from extractors.formats.message_parts import ROLES, UNKNOWN, loaded, message, paired, told, written
from extractors.formats.tool_payloads import literal

_SYSTEM = ("system", "instructions", "systemInstruction", "system_instruction", "system_instructions")
_SAID = ("messages", "contents", "input", "input_messages", "prompt", "new_message", "inputs", "args", "kwargs")
_ANSWERED = ("message", "output", "outputs", "content", "messages")
_TEXTS = ("text", "result", "response", "answer")
_TRANSCRIPT = re.compile(r"^(system|developer|user|assistant|tool|human|ai|model): ", re.MULTILINE)
_WITHHELD = re.compile(
    r"\s*(<[^<>]{0,80}truncated[^<>]{0,80}>|[\[<(*]{1,3}(?:redacted|masked|scrubbed|hidden)[^\])>*]{0,80}[\])>*]{1,3})\s*",
    re.IGNORECASE)
_LONGEST_MARK = 400
_CUT_OFF = re.compile(r'\s*(\[\s*)?\{\s*"')
_PRINTED = re.compile(r"(\w+\()?role='\w+',? content=")
_REASONS = ("finish_reason", "finishReason", "stop_reason")
_REFERENCE = re.compile(r"(weave|wandb-artifact|s3|gs)://\S+|https://\S+[?&]X-Amz-\S+")


def asked(value: Any) -> list[Row]:
    """Parts of the input of a model, instructions first."""
    if (text := _instead(value)) is not None:
        return [text]
    inner = loaded(value)
    if isinstance(inner, str):
        return _transcript(inner) or [message("user", inner)]
    return paired(_asked(inner, value))


def listed(value: Any) -> tuple[Any, Any] | None:
    """Instructions beside the messages of an input, and the messages (JSON text of a list, or a list); None where it holds no
    list of them.
    """
    if isinstance(value, str) and value.startswith('[{"'):
        return None, value
    inner = loaded(value)
    if isinstance(inner, dict) and "role" not in inner:
        held = next((inner[key] for key in ("messages", "contents") if isinstance(inner.get(key), list)), None)
        beside = [place[key] for place in (inner, inner.get("config")) if isinstance(place, dict)
                  for key in _SYSTEM if place.get(key)]
    else:
        held, beside = inner, []
    if isinstance(held, list) and held and isinstance(held[0], list):
        held = held[0]
    return (beside or None, held) if isinstance(held, list) and held and all(isinstance(each, dict) for each in held) else None


def of_message(value: Any) -> list[Row]:
    """Parts of one message of an input, each saying where its content is not what was said."""
    return [noted(part) for part in ([] if _is_declaration(value) else told(value, "user"))]


def of_instructions(values: list[Any]) -> list[Row]:
    """Parts of instructions beside the messages."""
    return [noted(part) for value in values for part in _instructions(value)]


def noted(part: Row) -> Row:
    """The part, saying where its content is not what was said."""
    reason = withheld(part.get("content"))
    return {**part, "lossy": [*part["lossy"], reason]} if reason and reason not in part["lossy"] else part


def answers(value: Any) -> list[list[Row]]:
    """Candidate answers of a model, each with its parts; none where no answer was captured."""
    if value is None:
        return []
    if (text := _instead(value)) is not None:
        return [[{**text, "role": "assistant"}]]
    inner = loaded(value)
    if isinstance(inner, str) and not isinstance(printed := literal(inner), dict):
        return [[message("assistant", inner)]]
    if isinstance(inner, str):
        inner = printed if "role" in printed else {"text": inner}
    found = [each for each in _candidates(inner, value) if each]
    return [paired(each) for each in found]


def instructed(value: Any) -> list[Row]:
    """Instructions that an answer repeats (OpenAI Responses), as system messages."""
    inner = loaded(value)
    given = inner.get("instructions") if isinstance(inner, dict) and inner.get("object") == "response" else None
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
    found: list[Any] = next((place[key] for place in places if isinstance(place, dict) for key in ("tools", "functions")
                             if isinstance(place.get(key), list)), [])
    flat: list[Any] = []
    for each in found:
        grouped = each.get("function_declarations", each.get("functionDeclarations")) if isinstance(each, dict) else None
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


def _instead(value: Any) -> Row | None:
    """A message in the place of content that was masked, cut off, or is elsewhere."""
    reason = withheld(value) if isinstance(value, str) else None
    return message("user", value, [reason]) if reason is not None else None


def _asked(inner: Any, value: Any) -> list[Row]:
    if isinstance(inner, list):
        found = [part for each in inner if not _is_declaration(each) for part in told(literal(loaded(each)), "user")]
        return [{**part, "lossy": [*part["lossy"], UNKNOWN]} if _is_printed(part) else part for part in found]
    if not isinstance(inner, dict) or "role" in inner or inner.get("lc") == 1:
        return told(inner, "user")
    system = [part for place in (inner, inner.get("config")) if isinstance(place, dict)
              for key in _SYSTEM if place.get(key) for part in _instructions(place[key])]
    for key in _SAID:
        if inner.get(key):
            said = inner[key]
            return system + (_asked(loaded(said), said) if isinstance(said, (list, dict)) else asked(said))
    if len(inner) == 1 and isinstance(only := next(iter(inner.values())), str):
        return asked(only)
    return system or told(inner, "user") if inner else []


def _instructions(value: Any) -> list[Row]:
    """System instructions, however they are written, as system messages."""
    return [{**part, "role": "system"} if part["kind"] == "message" else part for part in told(loaded(value), "system")]


def _candidates(inner: Any, value: Any) -> list[list[Row]]:
    if isinstance(inner, dict):
        choices, generations = inner.get("choices"), inner.get("generations")
        if isinstance(choices, list):
            return [_finished(_choice(each), each) for each in choices]
        if isinstance(generations, list):
            first = generations[0] if generations and isinstance(generations[0], list) else generations
            return [_generation(each) for each in first]
        if isinstance(inner.get("candidates"), list):
            return [_finished(told(each.get("content") if isinstance(each, dict) else each, "assistant"), each)
                    for each in inner["candidates"]]
        if "role" not in inner and inner.get("lc") != 1 and inner.get("type") not in ("ai", "AIMessageChunk"):
            return _unwrapped(inner, value)
        return [_finished(told(inner, "assistant"), inner)]
    if isinstance(inner, list) and _are_chunks(inner):
        return [_joined(inner)]
    return [_finished(told(inner, "assistant"), inner[-1] if isinstance(inner, list) and inner else None)]


def _unwrapped(inner: Row, value: Any) -> list[list[Row]]:
    """An answer under a key; where no key is known, the JSON as text: a structured answer is an answer."""
    for key in _ANSWERED:
        said = inner.get(key)
        if isinstance(said, (dict, list)) and said:
            if key == "messages" and isinstance(said, list):
                said = said[_last_asked(said) + 1:]
            return [_finished(parts, inner) for parts in _candidates(loaded(said), said)]
        if isinstance(said, str):
            return [_finished([message("assistant", said)], inner)]
    only = next(iter(inner.values())) if len(inner) == 1 else None
    if isinstance(only, str) and next(iter(inner)) in _TEXTS and not isinstance(value, str):
        return [[message("assistant", only)]]
    text = value if isinstance(value, str) else written(inner)
    return [[message("assistant", text)]] if inner else []


def _last_asked(messages: list[Any]) -> int:
    """Place of the last message of a state that no model wrote."""
    kinds = [[part["role"] if part["kind"] == "message" else part["kind"] for part in told(each, "assistant")]
             for each in messages]
    return max((i for i, each in enumerate(kinds) if any(kind in ("user", "system", "developer", "result") for kind in each)),
               default=-1)


def _choice(choice: Any) -> list[Row]:
    if not isinstance(choice, dict):
        return told(choice, "assistant")
    said = choice.get("message", choice.get("delta", choice.get("text")))
    return told({"role": "assistant", **said} if isinstance(said, dict) else said, "assistant")


def _generation(generation: Any) -> list[Row]:
    if not isinstance(generation, dict):
        return told(generation, "assistant")
    said = generation["message"] if isinstance(generation.get("message"), dict) else generation.get("text")
    return _finished(told(said, "assistant"), generation.get("generation_info"))


def _finished(parts: list[Row], owner: Any) -> list[Row]:
    """The parts, with a note where the answer was cut off."""
    places = (owner.get(key) for key in _REASONS) if isinstance(owner, dict) else ()
    reason = next((each for each in places if each is not None), None)
    if parts and isinstance(reason, str) and reason.lower() in ("length", "max_tokens", "incomplete"):
        parts[-1]["lossy"] = [*parts[-1]["lossy"], "finish_reason length"]
    return parts


def _are_chunks(values: list[Any]) -> bool:
    return bool(values) and all(isinstance(each, dict) and each.get("object") == "chat.completion.chunk" for each in values)


def _joined(chunks: list[Row]) -> list[Row]:
    """The answer that the chunks of a stream say together."""
    said: dict[str, Any] = {"role": "assistant", "content": None}
    calls: dict[Any, Row] = {}
    for choice in (each for chunk in chunks for each in chunk.get("choices") or () if not each.get("index")):
        delta = choice.get("delta") or {}
        if isinstance(delta.get("content"), str):
            said["content"] = (said["content"] or "") + delta["content"]
        for call in delta.get("tool_calls") or ():
            function = call.get("function") or {}
            whole = calls.setdefault(call.get("index", len(calls)), {"id": None, "function": {"name": None, "arguments": ""}})
            whole["id"] = whole["id"] or call.get("id")
            whole["function"]["name"] = whole["function"]["name"] or function.get("name")
            whole["function"]["arguments"] += function.get("arguments") or ""
    return told({**said, "tool_calls": list(calls.values())}, "assistant")


def _is_printed(part: Row) -> bool:
    """Whether a message is what Python printed of one: `role='user' content=…`."""
    return part["kind"] == "message" and _PRINTED.match(part["content"] or "") is not None


def _is_declaration(value: Any) -> bool:
    content = value.get("content") if isinstance(value, dict) else None
    return isinstance(content, dict) and content.get("type") == "function" and isinstance(content.get("function"), dict)


def _transcript(text: str) -> list[Row]:
    """Messages of a text that writes them one below the other, empty where it is no such text."""
    marks = list(_TRANSCRIPT.finditer(text))
    if not marks or marks[0].start() != 0 or marks[0][1] not in ("system", "developer", "user", "human"):
        return []
    found: list[Row] = []
    for mark, end in zip(marks, [*(each.start() for each in marks[1:]), len(text) + 1], strict=True):
        said, role = text[mark.end():end - 1], ROLES.get(mark[1], mark[1])
        if role == "tool":
            found.append({"kind": "result", "call_id": None, "content": said, "lossy": ["transcript"]})
        elif said != "None":
            found.append(message(role, said, ["transcript"]))
    return found
