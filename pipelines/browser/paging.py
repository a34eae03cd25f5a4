"""Pages of long lists by key: the next page begins after the last row of this one, so the last page is as fast as the first.

In: the rows that a query gives in the order of a key, one more than a page, and where the page began. Out: the page, and where
the next one begins.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Sequence
from typing import Any, NamedTuple

from warehouse.errors import InputError

Row = dict[str, Any]
SIZE = 50
"""Rows of a page."""


class Paged(NamedTuple):
    """A page of a list."""

    rows: list[Row]
    after: str | None
    """Where the next page begins; None: this is the last."""


def begins(after: str | None, n_parts: int) -> list[Any]:
    """The key that a page begins after; empty: from the beginning. Raises InputError where it is none."""
    if not after:
        return []
    try:
        key = json.loads(base64.urlsafe_b64decode(after.encode()))
    except ValueError:
        key = None
    if not isinstance(key, list) or len(key) != n_parts or not all(isinstance(part, str | int | float) for part in key):
        raise InputError("this is no beginning of a page", mend="begin with the first page")
    return key


def paged(rows: Sequence[Row], columns: Sequence[str], size: int = SIZE) -> Paged:
    """A page of rows, of which one more than a page was asked for; `columns`: the key."""
    if len(rows) <= size:
        return Paged(list(rows), None)
    shown = list(rows[:size])
    key = [part if isinstance(part := shown[-1][name], str | int | float) else str(part) for name in columns]
    return Paged(shown, base64.urlsafe_b64encode(json.dumps(key).encode()).decode())
