"""Rewards with what persons and policies add to them: files by the id or the name of a family, and the model that is asked."""

from __future__ import annotations

import polars as pl

from env_builder.rewards import Rewards, mine
from env_builder.rewards.corrections import corrections_of
from env_builder.rewards.persons import Said, read
from pipelines.answers import asking
from pipelines.settings import Settings, rubrics
from warehouse.records import Remember
from warehouse.store import Store


def rewards_of(
    store: Store, settings: Settings, sessions: pl.DataFrame, turns: pl.DataFrame, played: pl.DataFrame, effects: pl.DataFrame,
    corrections: pl.DataFrame, remember: Remember,
) -> Rewards:
    """What `mine` gives; `corrections`: what persons said of checks.

    Raises InputError where a file of a person cannot be read, or half a model is configured.
    """
    told = settings.configured.rewards
    ask = asking(settings) if told.ask else None
    tasks = store.table("mart.tasks")
    corrected = corrections_of(corrections)
    return mine(
        tasks, sessions, turns, store.table("mart.outcomes"), played, effects, said(store, settings), ask, corrected, remember)


def said(store: Store, settings: Settings) -> list[Said]:
    """What persons say, each by the id of the family; a file may be called by a family's name."""
    names: dict[str, list[str]] = {}
    for family, name in store.read("select distinct family, name from mart.names order by all").iter_rows():
        names.setdefault(name, []).append(family)
    return [each._replace(family=family) for each in read(rubrics(settings.configured.rewards.rubrics))
            for family in names.get(each.family, [each.family])]
