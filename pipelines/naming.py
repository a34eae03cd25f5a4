"""Names of families and sentences of goals: as mined, as a model wrote them where it is asked to, as persons corrected them."""

from __future__ import annotations

import polars as pl

from extractors.tasks.asked import reworded
from extractors.tasks.names import Names, names_of
from extractors.tasks.renamed import renamed
from pipelines.answers import asking
from pipelines.settings import Settings, model_name


def naming(
    goals: pl.DataFrame, tools: pl.DataFrame, settings: Settings, corrections: pl.DataFrame
) -> tuple[Names, pl.DataFrame]:
    """(names, verdicts on what the model wrote and persons corrected). Raises InputError where half a model is configured."""
    mined = names_of(goals, tools)
    ask = asking(settings) if settings.configured.goals.ask else None
    if ask is None:
        return renamed(goals, mined, corrections)
    written, said = reworded(goals, tools, mined, ask, model_name())
    found, corrected = renamed(goals, written, corrections)
    return found, pl.concat([said, corrected])
