"""What an online exporter gets: a built environment and its grader, cut to the tasks that may be trained on."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import Any, NamedTuple

from warehouse.errors import Unavailable

Row = dict[str, Any]


class Kit(NamedTuple):
    """A room and its grader, as directories, and what is known of them."""

    name: str
    """Of the environment."""
    room: Path
    """The room's side, as `environments/NAME` is laid out, its runtime in it, cut for training."""
    grader: Path
    """The grader's side, as `rewards/NAME`."""
    digest: str
    """Content digest of what is exported: the same in every consumer's export of the same selection."""
    tasks: list[Row]
    """Rows of `tasks.jsonl`, by task_id, each with its `split`."""
    tools: list[Row]
    """MCP descriptors."""
    figures: Row
    """What the published environment says of its fidelity and audit."""


def cut(environment: Path, rewards: Path, splits: Collection[str], out: Path) -> Kit:
    """A copy of the environment in `out` that holds the tasks of `splits` alone."""
    raise Unavailable("rooms cannot be cut for training here", str(environment), "serve it with: traceroom serve")
