"""The start page, families of tasks, and what was left."""

from __future__ import annotations

from typing import Any

from pipelines.browser.library import Library
from pipelines.browser.paging import SIZE, Paged, begins, paged
from pipelines.summary import ORDER
from warehouse.errors import Missing

Row = dict[str, Any]
_PUBLISHED = "exists (select 1 from mart.verdicts where stage = 'verify' and subject = task_id and kept)"


def overview(library: Library) -> Row:
    """Numbers, services, stages: what came of the logs."""
    return library.once("overview", lambda: _overview(library))


def _overview(library: Library) -> Row:
    counts = library.row(
        "select (select count(*) from core.sessions) as n_sessions, (select count(*) from core.turns where kind = 'call') as "
        "n_calls, (select count(*) from core.tools) as n_tools, (select count(*) from mart.families) as n_families, "
        "(select count(*) from mart.tasks) as n_tasks, (select count(*) from mart.verdicts where stage = 'verify' and kept) as "
        "n_published, (select count(*) from core.corrections where stands) as n_corrections")
    assert counts is not None
    funnel = library.rows("select stage, kept, reason, n from mart.funnel where stage != 'drift'")
    order = {stage: place for place, stage in enumerate(ORDER)}
    return {**counts, "services": _services(library),
            "going": library.row(
                "select count(*) filter (probability >= 0.9) as good, "
                "count(*) filter (probability > 0.1 and probability < 0.9) as open, "
                "count(*) filter (probability <= 0.1) as bad, count(*) filter (probability is null) as untold "
                "from mart.outcomes"),
            "drift": library.rows("select detail from mart.verdicts where stage = 'drift' order by subject limit 20"),
            "funnel": sorted(funnel, key=lambda row: (order.get(row["stage"], len(order)), row["stage"], not row["kept"]))}


def _services(library: Library) -> list[Row]:
    return library.rows(
        "select service, n_sessions, environment, coalesce(e.n_tasks, 0) as n_tasks, coalesce(e.n_tools, 0) as n_tools "
        "from (select service, count(*) as n_sessions from core.sessions group by service) "
        "left join mart.environments e using (service) order by n_sessions desc, service")


def families(library: Library, service: str = "", words: str = "", after: str | None = None) -> Paged:
    """A page of families, largest first."""
    wanted, told = ["true"], {}
    if service:
        wanted.append("f.service = $service")
        told["service"] = service
    if words:
        wanted.append("contains(lower(name || ' ' || sentence), $words)")
        told["words"] = words.lower()
    if key := begins(after, 2):
        wanted.append("(n_sessions < $n or (n_sessions = $n and family > $last))")
        told |= {"n": key[0], "last": key[1]}
    return paged(library.rows(
        "select f.*, name, sentence, written_by from mart.families f join mart.names using (family) "
        f"where {' and '.join(wanted)} order by n_sessions desc, family limit {SIZE + 1}", **told), ("n_sessions", "family"))


def family(library: Library, name: str) -> Row:
    """A family, or a kind of request that is no family by itself. Raises Missing."""
    found = library.row(
        "select n.*, f.* exclude (service, family), f.family is not null as is_family from mart.names n "
        "left join mart.families f using (family) where n.family = $id", id=name)
    if found is None:
        raise Missing(f"no family {name!r}", mend="look for it in the list of families")
    return found


def tasks(library: Library, family: str = "", service: str = "", after: str | None = None) -> Paged:
    """A page of tasks (those that were made new too) of a family or a service, by id."""
    wanted, told = ["true"], {}
    for name, value in (("family", family), ("service", service)):
        if value:
            wanted.append(f"{name} = ${name}")
            told[name] = value
    if key := begins(after, 1):
        wanted.append("task_id > $last")
        told["last"] = key[0]
    return paged(library.rows(
        f"select task_id, goal, split, rate, band, n_sessions, made_from, {_PUBLISHED} as is_published from ("
        "select task_id, service, family, goal, split, rate, band, len(session_ids) as n_sessions, null as made_from "
        "from mart.tasks union all select task_id, service, family, goal, split, null, null, len(session_ids), made_from "
        "from mart.variants where made_from != 'failure') "
        f"where {' and '.join(wanted)} order by task_id limit {SIZE + 1}", **told), ("task_id",))


def left(library: Library, stage: str = "", reason: str = "", after: str | None = None) -> Paged:
    """A page of what was left, by stage, reason and subject."""
    wanted, told = ["not kept"], {}
    for name, value in (("stage", stage), ("reason", reason)):
        if value:
            wanted.append(f"{name} = ${name}")
            told[name] = value
    if key := begins(after, 3):
        wanted.append("(stage, reason, subject) > ($stage_, $reason_, $subject_)")
        told |= {"stage_": key[0], "reason_": key[1], "subject_": key[2]}
    return paged(library.rows(
        "select stage, reason, subject, detail, path, line from mart.verdicts v left join raw.files f using (file_id) "
        f"where {' and '.join(wanted)} order by stage, reason, subject limit {SIZE + 1}", **told),
        ("stage", "reason", "subject"))
