"""A run's door to the model: what it said once to a prompt it says again.

Replies are kept under OUT/answers, a file a prompt, by model and prompt: the same log gives the same programs and names again,
and nobody is asked twice.
"""

from __future__ import annotations

import json
from pathlib import Path

from env_builder.runtime.canonical import digest
from pipelines.resources import Ask, ask_from_environment
from pipelines.settings import Settings, model_name


def asking(settings: Settings) -> Ask | None:
    """`ask` for a run with these settings, None where no model is configured. Raises InputError where half of one is."""
    ask = ask_from_environment()
    return None if ask is None else kept(ask, model_name(), Path(settings.out) / "answers")


def kept(ask: Ask, model: str, folder: Path) -> Ask:
    """The same door; what it said once to a prompt it says again."""
    def again(prompt: str) -> str:
        place = folder / f"{digest(model + chr(0) + prompt)}.json"
        if place.is_file():
            reply: str = json.loads(place.read_text("utf-8"))["reply"]
            return reply
        reply = ask(prompt)
        folder.mkdir(parents=True, exist_ok=True)
        beside = place.with_suffix(".part")
        beside.write_text(json.dumps({"model": model, "prompt": prompt, "reply": reply}, ensure_ascii=False, indent=1), "utf-8")
        beside.replace(place)
        return reply

    return again
