"""Fields of the logs that no format read, for each source and format.

In: the settings of a run and its published warehouse. Out: one row for each source and format with fields that are not read.
Looks into one file of each, its beginning alone; values are not shown, since they are not pseudonymised.
"""

from __future__ import annotations

from typing import Any

from extractors.field_uses import n_unread
from extractors.inventory import SourceFile
from extractors.sniffing import field_readings
from pipelines.ingestion.listing import discovered
from pipelines.settings import Settings
from warehouse.store import Store

_MOST = 24
"""Sources and formats that are looked into."""


def unread_fields(settings: Settings) -> list[dict[str, Any]]:
    """Return {"source", "format", "n", "fields"} for each source and format, by name; `fields`: the paths that are not read."""
    rows = []
    for (source, log_format), file in sorted(_chosen(settings).items())[:_MOST]:
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
