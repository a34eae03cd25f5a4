"""Names of families and sentences of goals: as mined, with what a model wrote where it is asked to."""

from __future__ import annotations

import polars as pl

from extractors.tasks.asked import reworded
from extractors.tasks.names import Names, names_of
from pipelines.answers import asking
from pipelines.settings import Settings, model_name
from warehouse.records import Verdict, empty


def naming(goals: pl.DataFrame, tools: pl.DataFrame, settings: Settings) -> tuple[Names, pl.DataFrame]:
    """(names, verdicts on what the model wrote). Raises InputError where half a model is configured."""
    mined = names_of(goals, tools)
    ask = asking(settings) if settings.configured.goals.ask else None
    return (mined, empty(Verdict)) if ask is None else reworded(goals, tools, mined, ask, model_name())
