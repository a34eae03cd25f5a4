"""Fields of the logs that no format read, for each source and format.

In: the settings of a run and its published warehouse. Out: one row for each source and format with fields that are not read.
Looks into one file of each, its beginning alone; values are not shown, since they are not pseudonymised.
"""

from __future__ import annotations

from typing import Any

from extractors.field_uses import n_unread
from extractors.sniffing import field_readings
from pipelines.ingestion.ingest import discovered
from pipelines.settings import Settings
from warehouse.store import Store

_MOST = 24
"""Sources and formats that are looked into."""


def unread_fields(settings: Settings) -> list[dict[str, Any]]:
    """Return {"source", "format", "n", "fields"} for each source and format, by name; `fields`: the paths that are not read."""
    with Store.published(settings.warehouse) as store:
        chosen = store.read("select source, format, min(path) as path from raw.files where n_records > 0 group by all "
                            "order by source, format").head(_MOST).to_dicts()
    files = {file.place: file for file in discovered(settings)[0]}
    rows = []
    for each in chosen:
        try:
            readings = field_readings(files[each["path"]]) if each["path"] in files else []
        except OSError:   # it was there when it was read
            continue
        if n := n_unread(readings):
            rows.append({"source": each["source"], "format": each["format"], "n": n,
                         "fields": [reading.path for reading in readings if not reading.read_as]})
    return rows
