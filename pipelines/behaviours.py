"""What tools do: as induced, with the programs that people corrected and, where it is asked for, those that a model wrote.

In: the rebuilt world, the declared tools, settings. Out: behaviours, and verdicts.
"""

from __future__ import annotations

from typing import NamedTuple

import polars as pl

from env_builder.behaviour import asked, corrections, induce
from env_builder.world import World
from pipelines.answers import asking
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
    ask = asking(settings) if told.ask else None
    if ask is not None:
        found, more = asked.written(found, world, tools, ask, model)
        verdicts = pl.concat([verdicts, more])
    return Behaviours(found, verdicts)
