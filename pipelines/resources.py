"""What the assets are given: their settings, and the language model's door.

The model is an argument: `ask_from_environment()` is None where nobody configured an endpoint, and every stage works
without it.
"""

from __future__ import annotations

import os
from collections.abc import Callable

from dagster import ConfigurableResource

from pipelines.settings import Settings, from_environment
from warehouse.errors import InputError, Unavailable

Ask = Callable[[str], str]
"""A prompt in, the model's text out."""


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
            said = str(error).splitlines()[0].rstrip(".")
            raise Unavailable(f"the model {model!r} does not answer ({said})", url, "see TRACEROOM_MODEL_URL") from error
        return (answer.choices[0].message.content or "") if answer.choices else ""

    return ask
