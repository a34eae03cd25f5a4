"""What of a registry may go: old releases by policy, then contents that no release has.

Never the promoted release, never a pinned one, never one of the `keep` that were promoted last. A release that was never
promoted (it waits for approval, or somebody was quicker) stays for `days`; so do contents that nobody names, for whoever is
about to name them. A withdrawn release keeps its manifest and its tombstone: whoever has it must be able to learn that.
"""

from __future__ import annotations

import time
from typing import NamedTuple

from pipelines.releases.registry import Registry
from warehouse.errors import Overtaken

KEEP = 10
"""Promoted releases that are kept, the promoted one among them."""
DAYS = 7.0
"""How long something that nobody names is kept."""


class Collected(NamedTuple):
    """What went, or would."""

    releases: list[str]
    n_objects: int
    n_bytes: int
    """Of the objects."""


def collect(registry: Registry, keep: int = KEEP, days: float = DAYS, dry: bool = False, now: float | None = None) -> Collected:
    """Take away what may go; `dry` only counts. Raises Overtaken where what was about to go was promoted meanwhile."""
    now = time.time() if now is None else now
    with registry.place.held():
        there = registry.place.names("")
        gone = _old(registry, keep, now - days * 86400, {name: each.written_at for name, each in there.items()})
        for release in gone if not dry else ():
            if release == registry.current():
                raise Overtaken(f"{release} was promoted meanwhile", registry.where, "collect again")
            registry.place.remove_folder(release)
        kept = registry.reachable(gone if dry else ())
        left = {name: each.n_bytes for name, each in there.items()
                if name.startswith("objects/") and name not in kept and each.written_at < now - days * 86400}
        if not dry:
            registry.place.remove(sorted(left))
    return Collected(gone, len(left), sum(left.values()))


def _old(registry: Registry, keep: int, before: float, written: dict[str, float]) -> list[str]:
    """Releases that may go, sorted."""
    listed = registry.listed()
    promoted = [each for each in listed if each.state in ("promoted", "earlier")]
    last = {each.release for each in promoted[:max(keep, 1)]}
    return sorted(
        each.release for each in listed
        if each.state in ("earlier", "waiting") and not each.pins and each.release not in last
        and (each.state == "earlier" or written.get(f"{each.release}/manifest.json", before) < before))
