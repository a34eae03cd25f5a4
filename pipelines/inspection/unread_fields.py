"""Fields of the logs that no format read, for each source and format.

In: the settings of a run and its published warehouse. Out: one row for each source and format with fields that are not read.
Looks into one file of each, its beginning alone, and again where it is another file than last time; values are not shown, since
they are not pseudonymised.
"""

from __future__ import annotations

import contextlib
from typing import Any, NamedTuple

from extractors.field_uses import n_unread
from extractors.inventory import SourceFile, Stamp
from extractors.sniffing import field_readings
from pipelines.ingestion.listing import discovered
from pipelines.running.code import code_digest
from pipelines.running.stage import digest_of
from pipelines.settings import Settings
from warehouse.store import Store

_MOST = 24
"""Sources and formats that are looked into."""
Chosen = list[tuple[tuple[str, str], SourceFile]]
"""((source, format), file), by source and format."""


class UnreadFields(NamedTuple):
    """What no format read, and what that was seen in."""

    of: str
    """Digest of the files that were looked into, of the code and of the configuration."""
    rows: list[dict[str, Any]]
    """{"source", "format", "n", "fields"} for each source and format, by name; `fields`: the paths that are not read."""


def unread_fields(settings: Settings, before: tuple[str, list[dict[str, Any]]] | None = None) -> UnreadFields:
    """Return the fields that no format read. `before`: those of last time, which stay where the files are the same."""
    chosen: Chosen = sorted(_chosen(settings).items())[:_MOST]
    stamps = [(name, file.place, file.relative, _stamp(file)) for name, file in chosen]
    seen_in = digest_of([code_digest(__name__), settings.configured.model_dump(mode="json"), stamps])
    return UnreadFields(*before) if before and before[0] == seen_in else UnreadFields(seen_in, _unread(chosen))


def _stamp(file: SourceFile) -> Stamp | None:
    with contextlib.suppress(OSError):   # it was there when it was listed
        return file.stamp()
    return None


def _unread(chosen: Chosen) -> list[dict[str, Any]]:
    rows = []
    for (source, log_format), file in chosen:
        try:
            readings = field_readings(file)
        except OSError:   # it was there when it was listed
            continue
        if n := n_unread(readings):
            rows.append({"source": source, "format": log_format, "n": n,
                         "fields": [reading.path for reading in readings if not reading.read_as]})
    return rows


def _chosen(settings: Settings) -> dict[tuple[str, str], SourceFile]:
    """Return one file of each source and format, by the end of its path: the logs may have been moved since they were read."""
    with Store.published(settings.warehouse) as store:
        read = store.read("select path, source, format from raw.files where n_records > 0 and chunk = 0 order by path, format")
    files = {file.relative: file for file in discovered(settings)[0]}
    chosen: dict[tuple[str, str], SourceFile] = {}
    for path, source, log_format in read.iter_rows():
        if (source, log_format) in chosen:
            continue
        parts = path.split("/")
        ends = ("/".join(parts[start:]) for start in range(len(parts)))
        file = next((files[end] for end in ends if end in files), None)
        if file is not None:
            chosen[source, log_format] = file
    return chosen
