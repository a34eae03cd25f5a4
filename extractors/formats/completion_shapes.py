"""Where a record holds the request to a model and its answer, and a chat completion's answer in the one shape of the API.

In: a record of a gateway, a wrapper or a client. Out: its request and its response (`sides`), and a record shaped as
`{"request": {"messages": […]}, "response": {"choices": […]}}` (`exchanged`).
Sees: request and response under a name each, bodies as JSON text; flat records, whose own fields are the request (settings may
stand in an object next to the history); answers as a completion, choices, a message or several, parts, chunks of a stream, a
stream as text, plain text, or one of these inside an object. Does not see: an answer under a name that is not listed here.
"""

from __future__ import annotations

from typing import Any

from extractors.formats.chat import parts
from extractors.formats.format import Row
from extractors.formats.history import print_of
from extractors.formats.streams import chat_completion, is_chat, stream_events
from extractors.formats.values import object_of, objects_in, opened

_REQUEST = ("request", "request_body", "requestBody", "req")
_RESPONSE = ("response", "response_body", "responseBody", "res")
_HISTORY = ("messages", "contents", "prompt", "input")
_ANSWER = (*_RESPONSE, "completion", "choices", "output")
_SETTINGS = ("model_parameters", "modelParameters", "optional_params", "invocation_params", "parameters",
             "kwargs")
_INSIDE = ("completion", "output", "output_text", "generated_text", "text", "response", "answer")
_REASONS = ("finish_reason", "stop_reason", "done_reason")
_BEFORE = "~before"
"""Of a completion made of several messages: those before the last."""
_MOST_DEPTH = 4


def sides(value: Any) -> tuple[Row, Any]:
    """Return a record's request (empty if there is no request) and its response."""
    if not isinstance(value, dict):
        return {}, None
    request, response = object_of(_side(value, _REQUEST)), _side(value, _RESPONSE)
    if request:
        return request, response
    name = next((key for key in _HISTORY if _is_history(opened(value.get(key)))), None)
    if name is None:
        return {}, response
    settings: Row = next((opened(value[key]) for key in _SETTINGS if isinstance(opened(value.get(key)), dict)), {})
    history = opened(value[name])
    return {**settings, **value, **({"messages": history} if name == "prompt" else {name: history})}, _side(value, _ANSWER)


def exchanged(value: Any) -> Row:
    """Return a record with its request and response as the API of chat completions has them; {} for no object."""
    if not isinstance(value, dict):
        return {}
    request, response = value.get("request"), value.get("response")
    if not isinstance(request, dict) or not isinstance(request.get("messages"), list):
        request, response = sides(value)
    if isinstance(response, dict) and isinstance(response.get("choices"), list) and request is value.get("request"):
        return value
    messages, made = request.get("messages"), _completion(response)
    if isinstance(messages, list) and made is not None:
        messages, made = _apart(messages, made)
        request = {**request, "messages": messages}
    return {**value, "request": request, "response": response if made is None else made}


def is_flat(value: Any) -> bool:
    """Return whether a record holds messages and also their answer as a chat completion's."""
    if not isinstance(value, dict) or isinstance(value.get("request"), dict):
        return False
    request, answer = sides(value)
    messages = request.get("messages")
    return isinstance(messages, list) and _is_history(messages) and _completion(answer) is not None


def is_answered(value: Any) -> bool:
    """Return whether a record holds a model's answer, of any API, next to its messages."""
    return is_flat(value) or _is_other_api(sides(value)[1])


def _side(value: Row, names: tuple[str, ...]) -> Any:
    side = next((value[name] for name in names if value.get(name) is not None), None)
    if isinstance(side, dict) and isinstance(side.get("body"), (dict, str)):
        side = side["body"]
    return opened(side)


def _is_history(value: Any) -> bool:
    """Return whether a value is a list (also what is left of one) of messages, contents or items."""
    return isinstance(value, list) and all(
        isinstance(each, dict) and ("role" in each or "parts" in each or "type" in each) for each in value[:5])


def _completion(answer: Any, depth: int = 0) -> Row | None:
    """Return an answer as a completion with its choices; None for anything else, also another API's answer."""
    answer = opened(answer)
    if isinstance(answer, str):
        return _streamed(stream_events(answer)) or (_of_message({"content": answer}) if answer else None)
    if isinstance(answer, list):
        return _of_list(answer)
    if not isinstance(answer, dict) or depth >= _MOST_DEPTH:
        return None
    if isinstance(answer.get("choices"), list):
        return answer
    if (answer.get("type") == "message" and "role" in answer) or answer.get("object") == "response" or "candidates" in answer:
        return None   # Anthropic's, OpenAI Responses', Gemini's
    if isinstance(answer.get("message"), dict):
        return _of_message(answer["message"], answer)
    if "role" in answer or "tool_calls" in answer or isinstance(answer.get("content"), (str, list)):
        return _of_message(answer)
    inner = next((made for key in _INSIDE if (made := _completion(answer.get(key), depth + 1)) is not None), None)
    return None if inner is None else {**{key: answer[key] for key in ("usage", "model", "id", "created") if key in answer},
                                       **inner}


def _is_other_api(answer: Any) -> bool:
    """Return whether an answer is Anthropic's, of OpenAI's Responses, or Gemini's."""
    return isinstance(answer, dict) and (
        (answer.get("type") == "message" and "role" in answer) or answer.get("object") == "response" or "candidates" in answer)


def _of_message(message: Row, around: Row | None = None) -> Row:
    """Return a completion of one message; `around`: what says why it ended, and what it cost."""
    around = message if around is None else around
    reason = next((around[key] for key in _REASONS if around.get(key) is not None), None)
    facts = {key: around[key] for key in ("usage", "model", "id", "created") if around.get(key) is not None}
    return {**facts, "choices": [{"message": {**message, "role": message.get("role") or "assistant"}, "finish_reason": reason}]}


def _of_list(answer: list[Any]) -> Row | None:
    objects = objects_in(answer)
    if not objects or len(objects) < len(answer):
        return None
    if is_chat(objects):
        return _streamed(objects)
    if all("message" in each or "delta" in each or "finish_reason" in each for each in objects):
        return {"choices": [{**each, "message": {"role": "assistant", "content": each.get("text"), **object_of(
            each.get("message", each.get("delta")))}} for each in objects]}
    if all(isinstance(each.get("role"), str) for each in objects) and not any("parts" in each for each in objects):
        return {**_of_message(objects[-1]), _BEFORE: objects[:-1]}   # several turns: the last one is the answer
    if all(each.get("type") in ("text", "output_text") for each in objects):
        return _of_message({"content": objects})
    return None


def _streamed(events: list[Row]) -> Row | None:
    """Return the completion that the chunks of a stream make, None where they are none."""
    try:
        return chat_completion(events) if is_chat(events) else None
    except (AttributeError, KeyError, TypeError, ValueError):   # a damaged chunk
        return None


def _apart(messages: list[Any], made: Row) -> tuple[list[Any], Row]:
    """Return the messages without the answer, where the list ends with it, and the completion."""
    if _BEFORE in made:
        messages = [*messages, *made[_BEFORE]]
        made = {key: each for key, each in made.items() if key != _BEFORE}
    choices = made["choices"]
    answer = choices[0].get("message") if choices and isinstance(choices[0], dict) else None
    last = messages[-1] if messages else None
    if isinstance(last, dict) and last.get("role") == "assistant" and isinstance(answer, dict) and (
            [print_of(part) for part in parts(last)] == [print_of(part) for part in parts(answer)]):
        messages = messages[:-1]
    return messages, made
