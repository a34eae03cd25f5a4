"""Connected components of names by what ties them (union-find with path halving)."""

from __future__ import annotations

from collections.abc import Iterable


def components(names: Iterable[str], ties: Iterable[Iterable[str]]) -> dict[str, str]:
    """Return the smallest name of its component for each name."""
    parent = {name: name for name in names}

    def root(name: str) -> str:
        while parent[name] != name:
            parent[name] = parent[parent[name]]
            name = parent[name]
        return name

    for tied in ties:
        first, *others = sorted({root(name) for name in tied})
        for other in others:
            parent[other] = first
    return {name: root(name) for name in parent}
