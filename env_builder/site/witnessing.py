"""Requests of a server's log and changes of database rows in, what they add to a site's recorded pages out.

A form in a server's log that no recorded request is, is a write that somebody made unseen. Columns that hold a secret are left
out, and so are all that no place of a page has.
Sees: what the logs say of the site. Does not see: which of two forms to one path at one time was recorded; writes that a
server refused inside a page.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping
from datetime import datetime, timedelta
from http import HTTPStatus
from typing import Any
from urllib.parse import urlsplit

from env_builder.runtime.site.evidence import RowVersion, SiteEvidence, UnseenWrite

__all__ = ["changed_rows", "kept_columns", "unseen_writes"]

_WRITES = ("POST", "PUT", "PATCH", "DELETE")
_NEAR = timedelta(seconds=15)
"""How far a server's instant of a request, which may be its end, may be from the recorded one."""


def unseen_writes(accesses: Iterable[Mapping[str, Any]], recorded: Iterable[tuple[datetime, str, str]]) -> list[UnseenWrite]:
    """Return the forms of a server's log (rows of `core.events`) that are no recorded request (instant, method, url)."""
    own: dict[str, list[datetime]] = defaultdict(list)
    for at, method, url in sorted(recorded):
        own[f"{method} {urlsplit(url).path or '/'}"].append(at)
    unseen = []
    for row in sorted((row for row in accesses if row["happened_at"] is not None), key=lambda row: row["happened_at"]):
        method, _, path = str(row["tool"]).partition(" ")
        status = json.loads(row["value"] or "{}").get("status")
        if method not in _WRITES or not isinstance(status, int) or status >= HTTPStatus.BAD_REQUEST:
            continue
        same = own[str(row["tool"])]
        nearest = min(same, key=lambda at: abs(at - row["happened_at"]), default=None)
        if nearest is not None and abs(nearest - row["happened_at"]) <= _NEAR:
            same.remove(nearest)
        else:
            unseen.append(UnseenWrite(row["happened_at"], path))
    return unseen


def changed_rows(changes: Iterable[Mapping[str, Any]], is_secret: Callable[[str], bool]) -> list[RowVersion]:
    """Return the rows of a database as they were from each change on (rows of `core.row_changes`), without secrets.

    `is_secret`: whether the name of a column says so."""
    versions: list[RowVersion] = []
    whole: dict[tuple[str, str], dict[str, Any]] = {}
    for row in changes:
        before, after = json.loads(row["before"] or "null"), json.loads(row["after"] or "null")
        if row["happened_at"] is None or not (before or after):
            continue
        key = row["table_name"], str(row["key"] or (after or before).get("id"))
        if after is None:
            whole.pop(key, None)
        else:
            whole[key] = {**whole.get(key, before or {}), **after}
        kept = {name: value for name, value in whole[key].items() if not is_secret(name)} if after is not None else None
        versions.append(RowVersion(row["happened_at"], *key, kept))
    return versions


def kept_columns(evidence: SiteEvidence, used: Collection[str]) -> SiteEvidence:
    """Return evidence with the columns alone that sources use; `used`: their names of values."""
    is_used: dict[tuple[str, str], bool] = {}
    for table, column in {(each.table, column) for each in evidence.versions for column in each.values or ()}:
        names, shown = re.escape(f"{table}.{column}"), rf"{re.escape(table)}\.\S+ {re.escape(column)}"
        fits = re.compile(rf"next record {names}|record .* {names} .*|record .* {shown}(?: amount| when \d+)?")
        is_used[table, column] = any(fits.fullmatch(name) for name in used)
    versions = [each._replace(values={column: value for column, value in each.values.items() if is_used[each.table, column]}
                              if each.values is not None else None) for each in evidence.versions]
    tables = {table for (table, _), each in is_used.items() if each}
    return SiteEvidence([each for each in versions if each.table in tables], evidence.unseen)
