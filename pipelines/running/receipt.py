"""The report of the last run, cached in OUT while all that it depends on is unchanged: a night without news repeats it.

In: settings, the files that they name, and OUT. Out: the document that a run tells, or None where anything may have changed:
a file of the logs, the configuration, the code and the libraries of any stage, a variable of Traceroom's, the owner's key, what
is published, or one of the files that stages wrote; then the run looks into the warehouse, and decides by content. It is
written only after the run found that there is nothing left to do.
Sees names, sizes and times of files, as the ledger does. Does not see: lakes, repositories on servers; there it says nothing.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from extractors.workspaces.mirrors import is_address
from pipelines import progress
from pipelines.ingestion.listing import discovered
from pipelines.privacy.key_file import own_key_file
from pipelines.running.code import code_digest
from pipelines.settings import Settings
from pipelines.stages import STAGES
from warehouse.catalogs import catalog_of, published_path, url_of
from warehouse.lock import is_described

_TELLS = ("pipelines.commands.building", "pipelines.inspection.summary", "pipelines.inspection.unread_fields")
"""Modules that make what a run tells, besides its stages."""


def document(settings: Settings) -> dict[str, Any] | None:
    """Return the report of the last run; None if anything that it depends on may have changed."""
    try:
        kept = json.loads(settings.receipt.read_text("utf-8"))
        made: dict[str, Any] = kept["report"]
        return made if kept["rests_on"] == _rests_on(settings) else None
    except (OSError, ValueError, KeyError):
        return None


def unread(settings: Settings) -> tuple[str, list[dict[str, Any]]] | None:
    """Return what the last run saw the fields in that it found unread, and these; None where it left no report."""
    try:
        kept = json.loads(settings.receipt.read_text("utf-8"))
        return kept["unread_of"], kept["report"]["unread_fields"]
    except (OSError, ValueError, KeyError):
        return None


def keep(settings: Settings, made: dict[str, Any], unread_of: str) -> None:
    """Cache the report of a run after which no stage is stale. `unread_of`: what its unread fields were found in."""
    from pipelines.running.run import unchanged

    rests_on = _rests_on(settings)   # first: a file that grows from here on is seen by the next run
    path = settings.receipt
    if rests_on is None or unchanged(settings, check=False) is None:
        path.unlink(missing_ok=True)
        return
    draft = path.with_name(f"{path.name}.{os.getpid()}")
    with contextlib.suppress(OSError):   # the next run looks itself
        draft.write_text(json.dumps({"rests_on": rests_on, "report": made, "unread_of": unread_of}), "utf-8")
        draft.replace(path)


def _rests_on(settings: Settings) -> str | None:
    """Return a digest of everything that what a run tells is made from; None where that cannot be said."""
    is_going = (Path(settings.out) / progress.NAME).exists() or is_described(settings.warehouse)
    if is_going or settings.warehouse_url or url_of(settings.warehouse) or not catalog_of(settings.warehouse).is_published():
        return None
    if any(map(is_address, (*settings.repositories, *(each.path for each in settings.configured.repositories)))):
        return None
    files, rejected = discovered(settings)
    variables = {name: value for name, value in os.environ.items() if name.startswith("TRACEROOM_")}
    key_file = os.environ.get("TRACEROOM_KEY_FILE")
    key = Path(key_file) if key_file else own_key_file(os.environ)
    policy = settings.configured.privacy_policy
    parts = [
        code_digest(*(stage.work.partition(":")[0] if isinstance(stage.work, str) else stage.work.__module__
                      for stage in STAGES), *_TELLS),
        settings.model_dump(mode="json"), settings.configured.model_dump(mode="json"),
        {name: settings.value_of(name) for stage in STAGES for name in stage.reads}, variables, _stamp(key),
        _stamp(Path(settings.configuration or ".").parent / policy) if policy else None,
        _stamp(published_path(settings.warehouse)),
        [(each.place, each.relative, each.source.name, *each.stamp()) for each in files],
        sorted(rejected["subject"]), list(_written(settings))]
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode("utf-8", "surrogatepass")).hexdigest()


def _stamp(path: Path) -> tuple[int, int, int] | None:
    """Return what tells that a file is still the same one."""
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_size, status.st_mtime_ns, status.st_ino


def _written(settings: Settings) -> Iterator[tuple[str, int, int]]:
    """Yield each file that stages wrote into OUT, with its size and when it was last written."""
    for name in sorted({output for stage in STAGES for output in stage.outputs}):
        for folder, folders, names in os.walk(Path(settings.out) / name):
            folders.sort()
            for each in sorted(names):
                status = os.stat(f"{folder}/{each}")  # noqa: PTH116  of many files `Path` takes longer than the disk
                yield f"{folder}/{each}", status.st_size, status.st_mtime_ns
