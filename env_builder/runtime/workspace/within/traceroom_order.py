"""A plug-in of pytest: tests run in an order that `TRACEROOM_ORDER` draws, files and classes each as one piece."""

from __future__ import annotations

import os
import random
from typing import Any


def pytest_collection_modifyitems(items: list[Any]) -> None:
    """Shuffle files, and within them classes and functions."""
    seed = os.environ.pop("TRACEROOM_ORDER", "")
    if not seed:
        return
    draw = random.Random(int(seed))
    ranks: dict[str, float] = {}
    for item in sorted(items, key=lambda each: each.nodeid):
        parts = item.nodeid.split("::")
        for n in range(1, len(parts) + 1):
            ranks.setdefault("::".join(parts[:n]), draw.random())
    items.sort(key=lambda each: [ranks["::".join(each.nodeid.split("::")[:n])]
                                 for n in range(1, len(each.nodeid.split("::")) + 1)])
