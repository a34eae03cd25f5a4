"""Connected components of names by what ties them (union-find with path halving)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping


def components(names: Iterable[str], ties: Iterable[Iterable[str]], epochs: Mapping[str, int] | None = None) -> dict[str, str]:
    """Return the first name of its component for each name: of the earliest of the `epochs`, where they are given, and among
    equals the smallest."""
    parent = {name: name for name in names}

    def root(name: str) -> str:
        while parent[name] != name:
            parent[name] = parent[parent[name]]
            name = parent[name]
        return name

    for tied in ties:
        first, *others = sorted({root(name) for name in tied}, key=lambda name: ((epochs or {}).get(name, 0), name))
        for other in others:
            parent[other] = first
    return {name: root(name) for name in parent}
