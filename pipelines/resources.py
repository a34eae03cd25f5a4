"""Access to the language model.

The model is an argument: `ask_from_environment()` is None if no endpoint is configured, and every stage works without it.
Replies are stored under OUT/answers, one file per prompt, by model and prompt: the same log gives the same programs and names
again, and no prompt is sent twice.
"""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from env_builder.runtime.canonical import digest
from pipelines.settings import Settings, model_name
from warehouse.errors import InputError, Unavailable

Ask = Callable[[str], str]
"""A prompt in, the model's text out."""
Chat = Callable[..., dict[str, Any]]
"""A conversation, function tools and further fields of the request in, the model's next message out."""


def ask_from_environment() -> Ask | None:
    """Connect to any OpenAI-compatible endpoint: TRACEROOM_MODEL names the model, TRACEROOM_MODEL_URL the endpoint
    (`http://127.0.0.1:8000/v1`), TRACEROOM_MODEL_KEY the key if it needs one. None if no model is named. The temperature is 0.
    The client itself retries twice on a lost connection, 429 and 5xx. Raises `InputError` if half of it is configured; `ask`
    raises `Unavailable`."""
    model, url = os.environ.get("TRACEROOM_MODEL"), os.environ.get("TRACEROOM_MODEL_URL")
    if not model and not url:
        return None
    if not model or not url:
        absent = "TRACEROOM_MODEL_URL" if model else "TRACEROOM_MODEL"
        raise InputError("the language model is configured by half", absent, f"set {absent} too, or neither")
    return connect(url, model, os.environ.get("TRACEROOM_MODEL_KEY") or "none")


def connect(url: str, model: str, key: str, timeout_s: float = 120.0) -> Ask:
    """Return `ask` for the endpoint at `url`; a call waits at most `timeout_s` seconds."""
    converse = chat(url, model, key, 0, timeout_s, max_retries=2)

    def ask(prompt: str) -> str:
        try:
            return str(converse([{"role": "user", "content": prompt}], [])["content"])
        except (InputError, Unavailable) as error:
            raise Unavailable(error.what, url, "see TRACEROOM_MODEL_URL") from error

    return ask


def chat(
    url: str, model: str, key: str, temperature: float | None = None, timeout_s: float = 300.0, max_retries: int = 4,
) -> Chat:
    """Return `ask` for conversations with the endpoint at `url`: (messages, function tools, further fields) -> the next message
    {"content", "reasoning", "calls": [{"id", "name", "arguments": text}], "model", "usage": counts as ATIF's metrics name them,
    or None, "document": the endpoint's answer as it came}. The client itself retries on a lost connection, 429 and 5xx. `ask`
    raises `InputError` if the endpoint rejects the request (status 400), `Unavailable` if it does not answer."""
    import openai  # a second of import that a run without a model need not pay

    client = openai.OpenAI(base_url=url, api_key=key, timeout=timeout_s, max_retries=max_retries)
    options: dict[str, Any] = {} if temperature is None else {"temperature": temperature}

    def ask(
        messages: list[dict[str, Any]], tools: list[dict[str, Any]], fields: dict[str, Any] | None = None,
    ) -> dict[str, Any]:
        further = {**({"tools": tools} if tools else {}), **(fields or {}), **options}
        conversation: Any = messages
        try:
            document = client.chat.completions.create(model=model, messages=conversation, extra_body=further).model_dump(
                warnings=False)  # of fields that are not as the specification has them
        except openai.BadRequestError as error:
            raise InputError(f"the model {model!r} refuses ({_first_line(error, key)})", url) from error
        except (openai.OpenAIError, ValueError, AttributeError) as error:   # the last two: what it answers is no JSON object
            what = f"the model {model!r} does not answer ({_first_line(error, key)})"
            raise Unavailable(what, url, "check that it runs") from error
        return _message_of(document)

    return ask


def _message_of(document: dict[str, Any]) -> dict[str, Any]:
    """Return the next message of a chat completion, with its counts, and token ids and log-probabilities if it has them."""
    choice = (document.get("choices") or [{}])[0]
    message = choice.get("message") or {}
    calls = [(call.get("id"), call.get("function") or {}) for call in message.get("tool_calls") or ()]
    usage = document.get("usage") or {}
    thought = (usage.get("completion_tokens_details") or {}).get("reasoning_tokens")
    logprobs = [each.get("logprob") for each in (choice.get("logprobs") or {}).get("content") or ()]
    counts = {
        **{name: usage.get(name) for name in ("prompt_tokens", "completion_tokens")},
        "cached_tokens": (usage.get("prompt_tokens_details") or {}).get("cached_tokens"),
        "prompt_token_ids": document.get("prompt_token_ids") or choice.get("prompt_token_ids"),
        "completion_token_ids": choice.get("token_ids"), "logprobs": logprobs or None,
        "extra": {"reasoning_tokens": thought} if thought else None}
    return {
        "content": _text_of(message.get("content")),
        "reasoning": _text_or_none(message.get("reasoning_content")) or _text_or_none(message.get("reasoning")),
        "calls": [{"id": _text_or_none(call_id), "name": function.get("name") or "",
                   "arguments": function.get("arguments") or ""} for call_id, function in calls],
        "model": _text_or_none(document.get("model")), "document": document,
        "usage": {name: n for name, n in counts.items() if isinstance(n, int | list | dict)} or None}


def _text_of(content: Any) -> str:
    """Return a message's content: a text, or the texts of its parts. TypeError: it is neither."""
    if isinstance(content, list):
        content = "".join(part["text"] for part in content if isinstance(part, dict) and isinstance(part.get("text"), str))
    if not isinstance(content, str | None):
        raise TypeError(f"the content is {type(content).__name__}, no text")
    return content or ""


def _text_or_none(value: Any) -> str | None:
    return value if isinstance(value, str) else None


def _first_line(error: Exception, key: str) -> str:
    """Return the first line of an error without the key, which an endpoint may repeat."""
    return (str(error).replace(key, "[secret]").splitlines() or [""])[0].rstrip(".")


def asking(settings: Settings) -> Ask | None:
    """Return `ask` for a run with these settings, None if no model is configured. Raises InputError if half of one is."""
    ask = ask_from_environment()
    return None if ask is None else kept(ask, model_name(), Path(settings.out) / "answers")


def kept(ask: Ask, model: str, folder: Path) -> Ask:
    """Return `ask` with a cache in `folder`: the reply to an earlier prompt is read from there."""
    def ask_once(prompt: str) -> str:
        path = folder / f"{digest(model + chr(0) + prompt)}.json"
        if path.is_file():
            with contextlib.suppress(ValueError, KeyError, TypeError, RecursionError):  # damaged: requested again
                return str(json.loads(path.read_text("utf-8"))["reply"])
        reply = ask(prompt)
        folder.mkdir(parents=True, exist_ok=True)
        draft = path.with_suffix(".part")
        draft.write_text(json.dumps({"model": model, "prompt": prompt, "reply": reply}, ensure_ascii=False, indent=1), "utf-8")
        draft.replace(path)
        return reply

    return ask_once
