"""Warehouses as lakes, for tests: a folder OUT whose URL names a catalog and a place for rows of its own."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import urlsplit

from pipelines.ingestion.ingest import ingest
from pipelines.settings import Settings
from tests.postgres import Postgres
from warehouse.lock import writing
from warehouse.store import Store


def in_files(folder: Path) -> str:
    """URL of a lake for one writer: catalog and rows as files."""
    return f"ducklake:{folder / 'catalog.ducklake'}?data={folder / 'rows'}"


def in_postgres(server: Postgres, data: Path | str) -> str:
    """URL of a new lake with its catalog on a server, whose password stands in PGPASSWORD."""
    address = urlsplit(server.database(scheme="postgres"))
    return f"ducklake:postgres://{server.user}@{server.host}:{server.port}{address.path}?data={data}"


def take_in(url: str | None, out: Path, logs: list[str]) -> dict[str, int]:
    """Ingest as the stage does, as one writer of several; without a URL, into a file."""
    settings = Settings(logs=tuple(logs), out=str(out), warehouse_url=url)
    settings.record_warehouse_url()
    with writing(settings.warehouse, "a test"), Store.open(settings.warehouse) as store:
        return ingest(store, settings)
