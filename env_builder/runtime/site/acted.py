"""A list as it was last looked at and the acts on its entities since then in, the list as these acts leave it out.

What an act does was learnt for each form (`ActLaw`): cells of the entity's row that go by a posted field, the heading under
which the row stands, whether it goes to the start or the end of its run, and values that take it off the list. Ages in the row
count from the act. Where rows take turns in their attributes, they do so after the act. A heading that has lost its only row
goes. There is no list where an act's value was never posted, or the heading is not on the page.
Sees: posts that led on, to addresses that rows link to. Does not see: rows that acts add.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import lru_cache
from typing import Any, NamedTuple

from .aged import row_paths
from .ages import AgeFormat
from .trees import Element, Node, decode, encode
from .visits import SiteVisit, path_of

__all__ = ["ActLaw", "after_acts", "headings", "laws_of"]


class ActLaw(NamedTuple):
    """What a form does to the row of the entity that it is sent to."""

    cells: Mapping[str, tuple[str, Mapping[str, str]]]
    """Ordinals of children of the row: a field, and what the child is for each value of it, as JSON."""
    heading: tuple[str, Mapping[str, str]] | None
    """A field, and the heading for each value of it, as JSON; None: the row stays under its own."""
    side: str
    """`start` or `end` of the run, or `stay`."""
    gone: Mapping[str, Sequence[str]]
    """Fields, and values of which the row is not on the list."""

    @classmethod
    def of(cls, plain: Sequence[Any]) -> ActLaw:
        """Return the law that JSON holds."""
        cells, heading, side, gone = plain
        return cls({cell: (field, values) for cell, (field, values) in cells.items()},
                   (heading[0], heading[1]) if heading else None, side, gone)


@lru_cache(maxsize=1 << 10)
def laws_of(text: str) -> Mapping[str, ActLaw]:
    """Return the laws that JSON holds, by the route that is posted to."""
    return {route: ActLaw.of(plain) for route, plain in json.loads(text).items()}


def headings(nodes: Sequence[Node], paths: Sequence[str | None]) -> list[int]:
    """Return for each row the index of the last row before it that is about nothing, -1 without one."""
    last, under = -1, []
    for index, path in enumerate(paths):
        if path is None and isinstance(nodes[index], Element):
            last = index
        under.append(last)
    return under


def after_acts(value: str, url: str, acts: Sequence[SiteVisit], laws: Mapping[str, ActLaw], ages: AgeFormat | None,
               now: datetime) -> str | None:
    """Return a list after acts in order of time; None where they leave it unknown."""
    nodes = decode(value)
    stripes = _stripes(nodes, row_paths(nodes, url))
    for act in acts:
        law = laws.get(act.route)
        paths = row_paths(nodes, url)
        if law is None or (path := path_of(act.url)) not in paths:
            continue
        moved = _after(nodes, paths, paths.index(path), act, law)
        if moved is None:
            return None
        nodes, row = moved
        if row is not None and ages is not None and not _renew_ages(row, ages, (now - act.at).total_seconds()):
            return None
    if stripes:
        rows = [node for node, path in zip(nodes, row_paths(nodes, url), strict=True) if path and isinstance(node, Element)]
        for index, row in enumerate(rows):
            row.attributes = dict(stripes[index % 2])
    return encode(nodes)


def _stripes(nodes: Sequence[Node], paths: Sequence[str | None]) -> list[dict[str, str]]:
    """Return the attributes of every other row and of those between, where rows take turns; else nothing."""
    rows = [dict(node.attributes) for node, path in zip(nodes, paths, strict=True) if path and isinstance(node, Element)]
    takes_turns = len(rows) > 2 and rows[0] != rows[1] and all(row == rows[index % 2] for index, row in enumerate(rows))
    return rows[:2] if takes_turns else []


def _after(nodes: Sequence[Node], paths: Sequence[str | None], at: int, act: SiteVisit,
           law: ActLaw) -> tuple[list[Node], Element | None] | None:
    """Return the list after an act on the row at a place, and the row; None where it is unknown."""
    row, under = nodes[at], headings(nodes, paths)
    if not isinstance(row, Element):
        return None
    rest = [*nodes[:at], *nodes[at + 1:]]
    heading = nodes[under[at]] if under[at] >= 0 else None
    if any(act.arguments.get(field) in values for field, values in law.gone.items()):
        return _without_empty(rest, paths, at, heading), None
    for cell, (field, values) in law.cells.items():
        written = values.get(act.arguments.get(field, ""))
        if written is None or int(cell) >= len(row.children):
            return None
        row.children[int(cell)] = decode(written)[0]
    side = law.side
    if law.heading is not None and heading is not None:
        wanted = law.heading[1].get(act.arguments.get(law.heading[0], ""))
        if wanted is None:
            return None
        if wanted != encode([heading]):
            heading, side = next((node for index, node in enumerate(nodes) if paths[index] is None
                                  and encode([node]) == wanted), None), side if side != "stay" else "start"
            if heading is None:
                return None
    if side == "stay":
        rest.insert(at, row)
        return rest, row
    begin = next((index + 1 for index, node in enumerate(rest) if node is heading), 0)
    end = begin
    about = [path for index, path in enumerate(paths) if index != at]
    while end < len(rest) and about[end] is not None:
        end += 1
    rest.insert(begin if side == "start" else end, row)
    former = nodes[under[at]] if under[at] >= 0 else None
    if former is not heading and former is not None:
        rest = _without_empty(rest, paths, at, former)
    return rest, row


def _without_empty(rest: list[Node], paths: Sequence[str | None], at: int, heading: Node | None) -> list[Node]:
    """Return rows without the heading of the row that stood at a place, if that was its only one."""
    alone = at > 0 and paths[at - 1] is None and (at + 1 == len(paths) or paths[at + 1] is None)
    return [node for node in rest if node is not heading] if alone and heading is not None else rest


def _renew_ages(row: Element, ages: AgeFormat, age: float) -> bool:
    """Write the age of each text of a row that is one; return whether all could be."""
    for element in list(row.elements()):
        for index, child in enumerate(element.children):
            if isinstance(child, str) and ages.meant(text := child.strip()) is not None:
                written = ages.written(age)
                if written is None:
                    return False
                element.children[index] = child.replace(text, written)
    return True
