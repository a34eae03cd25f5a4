"""From a finished build to a promoted release: judged by every gate, put into the registry, promoted.

A gate that is red leaves the registry as it was, and the promoted release in its place. Where approval is asked for, the
release is put and waits. A build that is what is promoted already changes nothing.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, Literal, NamedTuple

from pipelines.gates import GATES, Build, Judged, judge
from pipelines.releases.making import Draft, make, same
from pipelines.releases.registry import Registry
from pipelines.settings import Settings
from warehouse.errors import GateFailed, InputError, Missing, Overtaken
from warehouse.lock import writing
from warehouse.store import Store


class Released(NamedTuple):
    """What became of a build."""

    release: str | None
    """Id of the release; None: a gate is red, and there is none."""
    state: Literal["promoted", "waiting", "stands", "refused"]
    """stands: the promoted release is this build already."""
    before: str | None
    """The release that was promoted when it began."""
    judged: list[Judged]


def registry_of(settings: Settings, address: str | None = None) -> Registry:
    """The registry that is named: by hand, by the configuration, else OUT/releases. Raises InputError, Unavailable."""
    return Registry(address or settings.configured.release.registry or str(settings.releases))


def release(
    settings: Settings, registry: Registry, why: str = "", by: str | None = None, accepted: Iterable[str] = (),
    waiting: Callable[[str], None] | None = None,
) -> Released:
    """Release what OUT holds. Raises TraceroomError; Overtaken where another release was promoted meanwhile."""
    accepted = tuple(accepted)
    _known(accepted)
    with (writing(settings.warehouse, "a release", waiting), Store.published(settings.warehouse) as store,
          tempfile.TemporaryDirectory() as scratch):
        before = registry.current()
        draft = make(store, settings, before, Path(scratch))
        build = _build(store, settings, registry, before, draft)
        judged = judge(build, accepted)
        if any(each.red for each in judged):
            return Released(None, "refused", before, judged)
        if build.promoted and same(build.promoted, draft.manifest):
            return Released(before, "stands", before, judged)
        made = registry.put(draft.manifest | {"gates": _told(judged)}, draft.files)
    if settings.configured.release.approval:
        return Released(made, "waiting", before, judged)
    registry.promote(made, before, why or "every gate holds", by)
    return Released(made, "promoted", before, judged)


def approve(registry: Registry, name: str, why: str, by: str | None = None) -> tuple[str, str | None]:
    """Promote a release that waits, or go back to one that was promoted before; gives it and what it took the place of: itself,
    where it is promoted already and nothing is done.

    Raises Missing, ReleaseBroken, Overtaken (another one was promoted since it was made).
    """
    release, before = registry.named(name), registry.current()
    was_promoted = {row["to"] for row in registry.promotions()}
    made_after = registry.manifest(release)["predecessor"]
    if release != before and release not in was_promoted and made_after != before:
        raise Overtaken(f"it was made after {made_after or 'nothing'}, and {before or 'nothing'} is promoted now", release,
                        "release again, so that the gates compare it with that")
    registry.promote(release, before, why or "approved", by)
    return release, before


def refusal(judged: Iterable[Judged], before: str | None) -> GateFailed:
    """The error of a build that gates hold up."""
    red = [each.gate for each in judged if each.red]
    stands = f"{before} stays promoted" if before else "nothing is promoted"
    return GateFailed(f"{', '.join(red)}: {stands}", "release", "mend what the rows above say, or see docs/releases.md")


def _build(store: Store, settings: Settings, registry: Registry, before: str | None, draft: Draft) -> Build:
    if before is None:
        return Build(store, settings, draft.files, None, frozenset(), frozenset())
    drift = frozenset((row["subject"], row["reason"]) for row in registry.rows(before, "about/drift.jsonl"))
    known = frozenset(each.sha256 for each in registry.files(before))
    return Build(store, settings, draft.files, registry.manifest(before), drift, known)


def _told(judged: Iterable[Judged]) -> dict[str, Any]:
    return {each.gate: {"level": each.level, "n": each.rows.height, **({"accepted": True} if each.accepted else {})}
            for each in judged}


def _known(accepted: Iterable[str]) -> None:
    acceptable = {gate.name for gate in GATES if gate.acceptable}
    for name in accepted:
        if name in {gate.name for gate in GATES} - acceptable:
            raise InputError("this gate cannot be accepted: what it finds is broken", name, "mend what it finds")
        if name not in acceptable:
            raise Missing.named("gate", name, acceptable)
