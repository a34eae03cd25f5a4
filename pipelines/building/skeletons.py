"""Skeleton environments of services that were declared (an OpenAPI document, a tool list) before anything was logged.

In: the warehouse of a run without a session. Out: OUT/unverified/<name>, whose tools answer as `env_builder.skeleton` says, and
a decision on each. With the first session of any service they go: that service is then built from its logs.
"""

from __future__ import annotations

import polars as pl

from env_builder import bundle, skeleton
from env_builder.bundle import Bundle
from pipelines.privacy import guard as privacy
from pipelines.settings import Settings
from warehouse.records import Decision, frame
from warehouse.store import Store


def declared_services(store: Store) -> pl.Series:
    """Return the services that were declared, where nothing was logged; none otherwise."""
    return store.read("select distinct service from core.tools where not exists (from core.sessions) order by all")["service"]


def write_skeletons(store: Store, settings: Settings, names: dict[str, str]) -> pl.DataFrame:
    """Write a directory for each of these services; return the decisions. `names`: service -> folder."""
    decisions = []
    for service, name in names.items():
        tools = store.table("core.tools", "service = $service", service=service)
        rows = skeleton.rows_of(tools)
        about = skeleton.coverage_of(rows)
        tasks, rubrics = store.table("mart.tasks").clear(), store.table("mart.rubrics").clear()
        scripts = pl.DataFrame(schema={"task_id": pl.String(), "opening": pl.String(), "script": pl.String()})
        place = settings.unverified / name
        bundle.write_room(Bundle(
            name, service, "shared", rows, skeleton.described(tools), tasks, scripts, rubrics, 0, about, [],
            privacy=privacy.stated(store)), place, {"skip_reason": "nothing of it is verified"})
        decisions.append(Decision(
            stage="environments", subject=name, kept=False, reason="only_declared",
            detail=f"No log shows {service}: nothing is known or verified. Its {tools.height} tools are listed, and "
            f"{about['assumed']['n_tools']} answer by an example of their document (tier assumed); give logs of its sessions."))
    return frame(Decision, decisions)
