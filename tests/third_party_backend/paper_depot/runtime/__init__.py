"""Answer the tools of a depot of papers: shipped into environments, standard library only."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ..apps import App, DeliveringState, FileDelivery, Result, Start
from ..canonical import digest
from ..origins import origin_text

TOOLS = frozenset(("fetch_paper", "order_prints"))


class DepotApp(App):
    """A depot of papers."""

    answers = writes = TOOLS

    def __init__(self, name: str, papers: dict[str, dict[str, str]]) -> None:
        self.name = name
        self.papers = papers

    def reset(self, start: Start) -> DepotState:
        """Begin without orders."""
        return DepotState(self, ())


class DepotState(DeliveringState):
    """One episode: what was ordered."""

    def __init__(self, depot: DepotApp, orders: tuple[str, ...]) -> None:
        self._depot, self._orders = depot, orders
        self._files: tuple[FileDelivery, ...] = ()

    def call(self, tool: str, arguments: dict[str, Any], key: str | None = None) -> Result:
        """Hand a paper over, or order prints of it."""
        self._files = ()
        paper = self._depot.papers.get(str(arguments.get("number")))
        if tool not in TOOLS or paper is None:
            return Result("no such paper", True, "derived")
        if tool == "order_prints":
            self._orders = (*self._orders, arguments["number"])
        else:
            content = paper["text"].encode()
            url = f"/papers/{arguments['number']}"
            self._files = (FileDelivery(paper["name"], content, origin_text(self._depot.name, url, digest(content))),)
        return Result("done", False, "derived")

    def deliveries(self) -> tuple[FileDelivery, ...]:
        """Return the paper of the last call."""
        return self._files

    def snapshot(self) -> tuple[str, ...]:
        """Return the orders."""
        return self._orders

    def restore(self, snapshot: tuple[str, ...]) -> None:
        """Return to earlier orders."""
        self._orders = snapshot

    def fork(self) -> DepotState:
        """Return the same orders."""
        return DepotState(self._depot, self._orders)

    def difference(self) -> dict[str, Any]:
        """Return the orders."""
        return {"documents": {f"order/{place}": json.dumps(number) for place, number in enumerate(self._orders)},
                "write_calls": []}

    def read(self, name: tuple[str, str]) -> tuple[str | None, str | None]:
        """Return an order at the start and now."""
        return None, self.difference()["documents"].get("/".join(name))

    def may_write(self, tool: str) -> bool:
        """Return whether the tool writes."""
        return tool in TOOLS


def load(folder: Path, row: Mapping[str, Any]) -> DepotApp:
    """Load a depot from the app's folder."""
    return DepotApp(row["name"], json.loads((folder / "papers.json").read_text("utf-8")))
