"""What tools do: as induced, with the programs that people corrected and, where it is asked for, those that a model wrote.

In: the rebuilt world, the declared tools, settings. Out: behaviours, and verdicts. A model's replies are kept under
OUT/answers by model and prompt, so that the same log gives the same programs again, and nobody is asked twice.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import NamedTuple

import polars as pl

from env_builder.behaviour import asked, corrections, induce
from env_builder.runtime.canonical import digest
from env_builder.world import World
from pipelines.resources import Ask, ask_from_environment
from pipelines.settings import Settings, model_name, programs
from pipelines.worlds import configuration_of


class Behaviours(NamedTuple):
    """What the stage writes."""

    behaviours: pl.DataFrame
    verdicts: pl.DataFrame


def behaviours(world: World, tools: pl.DataFrame, settings: Settings) -> Behaviours:
    """Behaviours of all tools. Raises InputError where a program of the folder is none, or half a model is configured."""
    model = model_name()
    told = configuration_of(settings).behaviour
    found, verdicts = corrections.corrected(induce(world, tools), world, programs(told.programs))
    ask = ask_from_environment() if told.ask else None
    if ask is not None:
        found, more = asked.written(found, world, tools, kept(ask, model, Path(settings.out) / "answers"), model)
        verdicts = pl.concat([verdicts, more])
    return Behaviours(found, verdicts)


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
