"""The command `report`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.markup import escape

from pipelines.commands.building import Json, Out
from pipelines.screen import data, say


def report(
    out: Out = "out",
    to: Annotated[Path | None, typer.Option(
        help="Folder to write index.html into; OUT/report where none is named.", show_default=False)] = None,
    json: Json = False,
) -> None:
    """Write one page on what was made of the logs: readable offline, the same bytes for the same warehouse."""
    from pipelines import summary
    from pipelines.reporting import report as write
    from warehouse.store import Store

    settings = summary.out_of(out)
    with Store.published(settings.warehouse) as store:
        page = write(store, to or settings.report)
    size = page.stat().st_size
    say(f"[bold]{escape(str(page))}[/]  {size:,} bytes: open it in a browser")
    if json:
        data({"path": str(page), "n_bytes": size})
