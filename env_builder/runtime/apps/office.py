"""Load an app of the kind `office`: a product that is implemented, over entities as they were at any instant.

In: versions.jsonl of the app's folder, rows {"class", "key", "value", "from", "to"} (the entity was so from one ISO instant
until another; null: ever), who the agent is (identities.py), and the option `app` of the manifest's row: the product's name.
Out: the product's app. Its module is in `office`, with the functions `descriptors(prefix)`, `app(name, history, users, row)`,
or `load(folder, row, users)` if its files are others.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ..files import rows_of
from . import App, Name
from .identities import SessionUsers

KIND, COMPANY = "office", "company"
PRODUCTS = ("chat", COMPANY)
"""Modules of the package `office`."""
VERSIONS = "versions.jsonl"


class EntityHistory:
    """Entities of an app over time."""

    def __init__(self, rows: list[dict[str, Any]]) -> None:
        self._rows = rows

    def at(self, instant: str | None) -> dict[Name, dict[str, Any]]:
        """Return the entities that are there at an instant, as they are then; without a clock the latest."""
        return {(row["class"], row["key"]): row["value"] for row in self._rows if (
            row["to"] is None if instant is None else
            (row["from"] or "") <= instant and (row["to"] is None or instant < row["to"]))}


def product(row: Mapping[str, Any]) -> Any:
    """Return the module that a row of the manifest names. ValueError: there is none."""
    name = row.get("app")
    if name not in PRODUCTS:
        raise ValueError(f"no office app {name!r}; there are: {', '.join(PRODUCTS)}")
    return importlib.import_module(f"..office.{name}", __package__)


def load(folder: Path, row: Mapping[str, Any]) -> App:
    """Load the app from its folder. ValueError: no such product."""
    module, users = product(row), SessionUsers.of_app(folder, row)
    if hasattr(module, "load"):
        return module.load(folder, row, users)  # type: ignore[no-any-return]
    app: App = module.app(row["name"], EntityHistory(list(rows_of(folder / VERSIONS))), users, row)
    return app
