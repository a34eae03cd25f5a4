"""What the assets are given: their settings, and the language model's door.

The model is an argument: `ask_from_environment()` is None where nobody configured an endpoint, and every stage works
without it.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

from dagster import ConfigurableResource

from pipelines.settings import Settings, from_environment
from warehouse.errors import InputError, Unavailable

Ask = Callable[[str], str]
"""A prompt in, the model's text out."""
Chat = Callable[[list[dict[str, Any]], list[dict[str, Any]]], dict[str, Any]]
"""A conversation and function tools in, the model's next message out."""


class SettingsResource(ConfigurableResource[Settings]):
    """The settings of a run, as JSON; empty: from TRACEROOM_INBOX, TRACEROOM_OUT, TRACEROOM_CONFIG."""

    document: str = ""

    def settings(self) -> Settings:
        """The settings as a record."""
        return Settings.model_validate_json(self.document) if self.document else from_environment()


def ask_from_environment() -> Ask | None:
    """The door to any OpenAI-compatible endpoint: TRACEROOM_MODEL names the model, TRACEROOM_MODEL_URL the endpoint
    (`http://127.0.0.1:8000/v1`), TRACEROOM_MODEL_KEY the key where it wants one. None where no model is named.

    Answers are asked for with temperature 0. The client itself tries twice again on a lost connection, 429 and 5xx.
    Raises `InputError` where half of it is configured; `ask` raises `Unavailable`.
    """
    model, url = os.environ.get("TRACEROOM_MODEL"), os.environ.get("TRACEROOM_MODEL_URL")
    if not model and not url:
        return None
    if not model or not url:
        absent = "TRACEROOM_MODEL_URL" if model else "TRACEROOM_MODEL"
        raise InputError("the language model is configured by half", absent, f"set {absent} too, or neither")
    return connect(url, model, os.environ.get("TRACEROOM_MODEL_KEY") or "none")


def connect(url: str, model: str, key: str, timeout_s: float = 120.0) -> Ask:
    """`ask` against the endpoint at `url`; a call waits at most `timeout_s` seconds."""
    import openai  # a second of import that a run without a model need not pay

    client = openai.OpenAI(base_url=url, api_key=key, timeout=timeout_s, max_retries=2)

    def ask(prompt: str) -> str:
        try:
            answer = client.chat.completions.create(
                model=model, temperature=0, messages=[{"role": "user", "content": prompt}])
        except openai.OpenAIError as error:
            what = f"the model {model!r} does not answer ({_said(error)})"
            raise Unavailable(what, url, "see TRACEROOM_MODEL_URL") from error
        return (answer.choices[0].message.content or "") if answer.choices else ""

    return ask


def chat(url: str, model: str, key: str, temperature: float | None = None, timeout_s: float = 300.0) -> Chat:
    """A conversation's next message by the endpoint at `url`: (messages, function tools) -> {"content", "reasoning", "calls":
    [{"id", "name", "arguments": text}], "model", "usage": counts as ATIF's metrics name them, or None}.

    The client itself tries four times again on a lost connection, 429 and 5xx. `ask` raises `InputError` where the endpoint
    refuses what it is asked (status 400), `Unavailable` where it does not answer.
    """
    import openai

    client = openai.OpenAI(base_url=url, api_key=key, timeout=timeout_s, max_retries=4)
    options: dict[str, Any] = {} if temperature is None else {"temperature": temperature}

    def ask(messages: list[dict[str, Any]], tools: list[dict[str, Any]]) -> dict[str, Any]:
        given = {**options, "model": model, "messages": messages, **({"tools": tools} if tools else {})}
        try:
            return _answered(client.chat.completions.create(**given).model_dump())
        except openai.BadRequestError as error:
            raise InputError(f"the model {model!r} refuses ({_said(error)})", url) from error
        except openai.OpenAIError as error:
            raise Unavailable(f"the model {model!r} does not answer ({_said(error)})", url, "see that it runs") from error

    return ask


def _answered(document: dict[str, Any]) -> dict[str, Any]:
    """What of a completion a policy takes; endpoints leave fields out, or set them to null."""
    choices = document.get("choices") or [{}]
    message = choices[0].get("message") or {}
    made = [(call.get("id"), call.get("function") or {}) for call in message.get("tool_calls") or ()]
    usage = document.get("usage") or {}
    cached = (usage.get("prompt_tokens_details") or {}).get("cached_tokens")
    thought = (usage.get("completion_tokens_details") or {}).get("reasoning_tokens")
    counts = {**{name: usage.get(name) for name in ("prompt_tokens", "completion_tokens")}, "cached_tokens": cached,
              "extra": {"reasoning_tokens": thought} if thought else None}
    return {
        "content": message.get("content") or "",
        "reasoning": message.get("reasoning_content") or message.get("reasoning"),
        "calls": [{"id": call_id, "name": function.get("name") or "", "arguments": function.get("arguments") or ""}
                  for call_id, function in made],
        "model": document.get("model"), "usage": {name: n for name, n in counts.items() if n is not None} or None}


def _said(error: Exception) -> str:
    return (str(error).splitlines() or [""])[0].rstrip(".")
