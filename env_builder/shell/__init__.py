"""The kind `shell`: a repository's files in which commands run, made from trees and a recipe.

In: `WorkspaceContent`. Out: the folder of an app: recipe.json, site.pack, trees.pack, starts.jsonl, and host.jsonl
where pull requests or issues are known. What answers calls is `env_builder.runtime.workspace`, which such an app takes with it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from env_builder import bundle
from env_builder.backends import AppBackend
from env_builder.runtime import workspace
from env_builder.runtime.workspace.host import FILE as HOST
from env_builder.runtime.workspace.host import HostRecords
from env_builder.runtime.workspace.recipes import PACK, RECIPE
from env_builder.runtime.workspace.trees import Tree, packed
from env_builder.runtime.workspace.workspace import descriptors

Row = dict[str, Any]


class WorkspaceStart(NamedTuple):
    """What a session begins with."""

    session_id: str
    tree: str
    """Name of a tree."""
    committed: str
    """Name of the tree that its git has committed."""
    instant: str | None = None


class WorkspaceContent(NamedTuple):
    """What a workspace is made of."""

    recipe: Row
    """A row of recipe.json (`Recipe`)."""
    trees: Mapping[str, Tree]
    starts: Sequence[WorkspaceStart]
    site: Tree
    """The packages."""
    host: Sequence[Mapping[str, Any]] = ()
    """Rows of host.jsonl: pull requests and issues over time."""


def _write(folder: Path, content: WorkspaceContent, options: Mapping[str, Any]) -> list[Row]:
    bundle.write_json(folder / RECIPE, content.recipe)
    if content.site:
        (folder / PACK).write_bytes(packed({"site": content.site}))
    (folder / "trees.pack").write_bytes(packed(content.trees))
    bundle.write_lines(folder / "starts.jsonl", sorted((start._asdict() for start in content.starts),
                                                       key=lambda row: str(row["session_id"])))
    if content.host:
        host = sorted(map(dict, content.host), key=lambda row: (row["class"], row["number"], row["from"]))
        bundle.write_lines(folder / HOST, host)
    return descriptors(options.get("prefix", ""), HostRecords(content.host))


SHELL = AppBackend("shell", _write, Path(workspace.__file__).parent)
