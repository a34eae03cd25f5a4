"""A plug-in of pytest: tests run in an order that is drawn, and the process ends when they are done.

`TRACEROOM_ORDER`: the seed of the order; files, and classes in them, stay together. Threads that a test left behind do not
hold the end up: they would for ever where a test failed half way.
"""

from __future__ import annotations

import os
import random
import sys
from typing import Any

import pytest
import traceroom_ask  # type: ignore[import-not-found]  # it lies beside it in the sandbox


def pytest_collection_modifyitems(items: list[Any]) -> None:
    """Shuffle files, and within them classes and functions."""
    seed = os.environ.pop("TRACEROOM_ORDER", "")
    if not seed:
        return
    draw = random.Random(int(seed))
    ranks: dict[str, float] = {}
    for item in sorted(items, key=lambda each: each.nodeid):
        for part in _parts(item):
            ranks.setdefault(part, draw.random())
    items.sort(key=lambda each: [ranks[part] for part in _parts(each)])


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: Any) -> None:
    """Say for which test answers are reported."""
    traceroom_ask.Current.test = item.nodeid


@pytest.hookimpl(trylast=True)
def pytest_unconfigure(config: Any) -> None:
    """End the process, as reports are written."""
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(_Status.code)


class _Status:
    code = 0


def pytest_sessionfinish(exitstatus: int) -> None:
    """Keep what the process is to end with."""
    _Status.code = int(exitstatus)


def _parts(item: Any) -> list[str]:
    """Return the file, each class and the test itself."""
    names = item.nodeid.split("::")
    return ["::".join(names[:n]) for n in range(1, len(names) + 1)]
