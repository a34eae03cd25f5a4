"""When acts touched things that they do not show, and what that did to them.

In: all steps, and the consequences of acts as far as they are known. Out: touches of each thing in order of time. Of an act
that was seen to change things so named, nobody knows how, what it touched is unknown until the next look.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Mapping
from functools import partial
from typing import Any

from env_builder.runtime.answers import parsed
from env_builder.runtime.effects import Consequence, Unknowable, applied
from env_builder.world.documents import Documents
from env_builder.world.hidden import Link, differences, links_of, named, samples_of, spoken_of
from env_builder.world.replay import Step
from env_builder.world.spans import Touch


def unexplained(
    steps: list[Step], also: dict[str, list[Consequence]], documents: Documents, relation: Mapping[str, Mapping[str, str]]
) -> dict[tuple[str, Link], frozenset[str]]:
    """(tool, link) -> fields of the things so named that its acts were seen to change, nobody knows how; in a shared world."""
    keys = {step.shown[:2] for step in steps if step.shown}
    found: dict[tuple[str, Link], frozenset[str]] = {}
    for (tool, link), samples in samples_of(steps, links_of(steps, keys, documents), True, documents, relation).items():
        known = any(one["class"] == link[0] for one in also.get(tool, ()))
        changed = (path for sample in samples for path, _, _ in differences(sample.there, sample.after))
        fields = frozenset(str(path[0]) for path in changed if path)
        if fields and not known and relation[tool].get(link[0]) == "changes":
            found[tool, link] = fields
    return found


def touches(
    steps: list[Step], also: dict[str, list[Consequence]], documents: Documents,
    open_fields: dict[tuple[str, Link], frozenset[str]],
) -> dict[tuple[str, str], list[Touch]]:
    """When which thing was touched, by every act that did not fail. `open_fields`: as `unexplained` says."""
    found: dict[tuple[str, str], list[Touch]] = defaultdict(list)
    of_tool: dict[str, list[tuple[Link, frozenset[str]]]] = defaultdict(list)
    for (tool, link), fields in sorted(open_fields.items()):
        of_tool[tool].append((link, fields))
    for step in steps:
        at = step.call.called_at
        if not step.act or at is None:
            continue
        for link, fields in of_tool[step.call.tool]:
            other = named(link, step, documents)
            if other is not None:
                found[other].append(Touch(at, fields, lambda part: None))
        mine: dict[tuple[str, str], list[Consequence]] = defaultdict(list)
        for one in also.get(step.call.tool, ()):
            name = named((one["class"], json.dumps(one["key"])), step, documents)
            if name is not None:
                mine[name].append(one)
        for name, consequences in mine.items():
            fields = frozenset(one["path"][0] for one in consequences)
            found[name].append(Touch(at, fields, partial(_touched, step, spoken_of(step, documents), consequences)))
    return found


def _touched(
    step: Step, before: str | None, consequences: list[Consequence], there: dict[str, Any]
) -> dict[str, Any] | None:
    """A part of the document after the act; None where what the act did is not known."""
    if before is None:
        return None
    try:
        for one in consequences:
            there = applied(one, there, parsed(before), step.call.arguments, step.look)
    except Unknowable:
        return None
    return there
