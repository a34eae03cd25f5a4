"""The company whose exports a run has read, as it stood at an instant, for the browser's page.

Input: `core.versions`, `core.accounts`; an instant, a person, a class of records. Output: classes with their numbers of records
and fields, and the records of one class, field by field. What the exports do not tell of that instant has no value.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from env_builder.runtime.company import CompanyWorld
from pipelines.browser.library import Library
from pipelines.inspection.company import (
    StoredCompany,
    advice_rows,
    instant_of,
    require_records,
    sight_of,
    stored_company,
    summary_rows,
    world_rows,
)

Row = dict[str, Any]
LISTED = 50
"""Records on one page."""


def has_company(library: Library) -> bool:
    """Return whether the run read exports of apps."""
    return bool(library.once("has company", lambda: library.rows("select 1 from core.versions limit 1")))


def company_at(library: Library, query: Mapping[str, str]) -> Row:
    """Return the company at the instant `at`, as the person `as` could see it, with the records of the class `app`.

    Errors: Missing without a company or for an unknown person, InputError for no instant."""
    company: StoredCompany = library.once("company", lambda: library.with_store(stored_company))
    world: CompanyWorld = library.once("company's world", lambda: company.world)
    last = world.versions[-1].at
    instant = instant_of(query["at"]) if query.get("at") else last
    require_records(world, instant)
    person, app = query.get("as", ""), query.get("app", "")
    rows = list(world_rows(world, instant, person or None))
    first = next(version.at for version in world.versions if version.at > 0)
    return {"at": _written(instant), "first": _written(first), "last": _written(last), "person": person,
            "people": sorted(company.accounts), "classes": summary_rows(rows), "app": app, "advice": advice_rows(rows),
            **(_records(world, instant, person, query) if app else {"records": [], "after": None})}


def _records(world: CompanyWorld, instant: int, person: str, query: Mapping[str, str]) -> Row:
    """Return a page of the records of a class, newest first: id, and (field, value, known, since, who) of each field."""
    state, app = world.at(instant), query["app"]
    sight = sight_of(state, person or None)
    words = query.get("words", "").casefold()
    keys = [key for key in reversed(list(state.ids(app))) if (sight is None or sight.sees(app, key))
            and (not words or words in f"{key} {list(state.values(app, key).values())}".casefold())]
    begin = int(query["after"]) if query.get("after", "").isdecimal() else 0
    records = [{"id": key, "fields": [
        {"name": field.field, "value": field.value, "is_known": field.is_known, "actor": field.actor,
         "since": _written(field.at) if field.at > 0 else None} for field in state.get(app, key).values()]}
        for key in itertools.islice(keys, begin, begin + LISTED)]
    return {"records": records, "n_records": len(keys), "after": str(begin + LISTED) if begin + LISTED < len(keys) else None}


def _written(instant: int) -> str:
    return datetime.fromtimestamp(instant / 1_000_000, UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
