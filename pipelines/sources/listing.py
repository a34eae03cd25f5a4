"""What was pulled of a source, as rows to show. Asks no platform."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from typing import Any

from extractors.configuration import Pull, Source
from pipelines.sources.accounts import folder_of
from pipelines.sources.cursors import NAME


def rows_of(source: Source) -> list[dict[str, Any]]:
    """Return a row per stream of a source; one row where nothing was pulled yet."""
    pull, path = source.pull or Pull(platform=""), folder_of(source) / NAME
    shared = {"source": source.name, "platform": pull.platform, "project": pull.project or ""}
    rows: list[tuple[Any, ...]] = []
    if path.exists():
        with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as database:
            rows = database.execute(
                "select stream, s.ends_at, coalesce(w.cursor, s.last_cursor), s.pulled_at, coalesce(s.n_records, 0), "
                "w.until is not null from (select account, stream from streams union select account, stream from windows) "
                "left join streams s using (account, stream) left join windows w using (account, stream) "
                "order by stream, s.pulled_at").fetchall()
    if not rows:
        return [{**shared, "stream": "", "pulled_to": "", "cursor": "", "last_pull": "never", "records": 0, "state": "new"}]
    return [{**shared, "stream": stream, "pulled_to": _short(ends_at), "cursor": cursor or "", "last_pull": _short(pulled_at),
             "records": n_records, "state": "interrupted" if is_open else "complete"}
            for stream, ends_at, cursor, pulled_at, n_records, is_open in rows]


def _short(instant: str | None) -> str:
    return instant[:19].replace("T", " ") if instant else ""
