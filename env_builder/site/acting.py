"""Learn what a form does to the row of the entity that it is sent to, in lists that other people look at too.

In: pages with a list, each with the last look at the same list and what was posted since then. Out: for each list and form, the
cells that go by a posted field, the heading that the row stands under, the end of the run that it goes to, and the values of
fields that take it off the list. A field is believed where its values say nine of ten cells, fewer values than half of the
examples, more than had stayed as they were. Texts that are ages are left to `ages`.
Does not see: acts that nobody recorded, which count as exceptions; rows that acts add; what an act does to other rows.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from env_builder.runtime.site.acted import headings, laws_of
from env_builder.runtime.site.aged import row_paths
from env_builder.runtime.site.ages import AgeFormat
from env_builder.runtime.site.sources import SiteSource, SourceContext
from env_builder.runtime.site.trees import Element, Node, decode, encode
from env_builder.runtime.site.visits import Place, SiteVisit, Value, path_of, rows_of

__all__ = ["act_laws", "posted_fields"]

_LEAST, _AGREED, _ENDS = 3, 0.9, 0.75
"""Acts on rows of a list, share of cells that a field says, and share of rows that stand at the same end."""
_Example = tuple[str, str, str]
"""What a cell or heading was, the values posted (JSON), and what it is."""


class _RowActs:
    """Rows before and after acts of one form."""

    def __init__(self) -> None:
        self.n = 0
        self.sides: Counter[str] = Counter()
        self.cells: dict[int, list[tuple[str, Mapping[str, str], str]]] = defaultdict(list)
        self.heads: list[tuple[str, Mapping[str, str], str]] = []
        self.gone: dict[tuple[str, str], list[bool]] = defaultdict(list)

    def law(self) -> list[Any] | None:
        """Return the law as JSON, None without one that enough examples show."""
        if self.n < _LEAST:
            return None
        cells = {f"{cell}": list(law) for cell, each in sorted(self.cells.items()) if (law := _field(each)) is not None}
        heading = _field(self.heads)
        side = next((side for side in ("stay", "start", "end") if self.sides[side] >= _ENDS * self.sides["all"]), None)
        gone: dict[str, list[str]] = defaultdict(list)
        for (field, value), results in sorted(self.gone.items()):
            if len(results) > 1 and all(results):
                gone[field].append(value)
        n_gone = sum(map(all, self.gone.values()))
        if side is None or not (cells or heading or side != "stay" or n_gone):
            return None
        return [cells, list(heading) if heading is not None else None, side, dict(gone)]


def _field(examples: Sequence[tuple[str, Mapping[str, str], str]]) -> tuple[str, dict[str, str]] | None:
    """Return the field by whose values something goes, and what it is for each; None where it stays as it was."""
    n_same = sum(before == after for before, _, after in examples)
    if n_same == len(examples):
        return None
    best: tuple[int, int, str, dict[str, str]] | None = None
    for field in sorted({name for _, posted, _ in examples for name in posted}):
        by_value: dict[str, Counter[str]] = defaultdict(Counter)
        for _, posted, after in examples:
            by_value[posted.get(field, "")][after] += 1
        n_right = sum(max(each.values()) for each in by_value.values())
        if n_right >= _AGREED * len(examples) and n_right > n_same and len(by_value) <= len(examples) / 2:
            candidate = (-len(by_value), n_right, field, {value: max(each, key=lambda text: each[text])
                                                      for value, each in by_value.items()})
            best = max(best, candidate, key=lambda each: each[:2]) if best is not None else candidate
    return None if best is None else best[2:]


def act_laws(visits: Iterable[tuple[SiteVisit, SourceContext]], alike: Mapping[tuple[str, Value, Place], Mapping[str, Place]],
             ages: AgeFormat | None) -> dict[tuple[str, Value, Place], tuple[str, str]]:
    """Return for each list that acts change the places alike, and the laws of each form, both as JSON."""
    of_lists: dict[tuple[str, Value, Place], dict[str, _RowActs]] = defaultdict(lambda: defaultdict(_RowActs))
    for visit, context in visits:
        for place, value in visit.values.items():
            if not value or len(rows_of(value) or ()) < 2:
                continue
            key = visit.route, visit.kind, place
            look = context.list_look(place, json.dumps(alike.get(key, {})))
            if look is not None and (acts := context.acts_since(look[0])):
                before = look[0].values[look[1]]
                if before and rows_of(before) is not None:
                    _count(of_lists[key], _nodes(before, visit.url), _nodes(value, visit.url), acts, ages)
    laws = {key: {route: law for route, each in sorted(by_route.items()) if (law := each.law()) is not None}
            for key, by_route in of_lists.items()}
    return {key: (json.dumps(alike.get(key, {})), json.dumps(each)) for key, each in laws.items() if each}


def _nodes(value: str, url: str) -> tuple[list[Node], list[str | None]]:
    nodes = decode(value)
    return nodes, row_paths(nodes, url)


def _count(by_route: dict[str, _RowActs], before: tuple[list[Node], list[str | None]],
           after: tuple[list[Node], list[str | None]], acts: Sequence[SiteVisit], ages: AgeFormat | None) -> None:
    touched = [act for act in acts if path_of(act.url) in before[1]]
    n_acts = Counter(path_of(act.url) for act in touched)
    for act in touched:
        path = path_of(act.url)
        if n_acts[path] > 1:
            continue
        rows = by_route[act.route]
        posted = {name: value for name, value in act.arguments.items() if name.startswith("form ") and "*" not in name}
        rows.n += 1
        for each in posted.items():
            rows.gone[each].append(path not in after[1])
        if path in after[1]:
            _compare(rows, before, after, path, posted, ages, is_alone=len(touched) == 1)


def _compare(rows: _RowActs, before: tuple[list[Node], list[str | None]], after: tuple[list[Node], list[str | None]],
             path: str, posted: Mapping[str, str], ages: AgeFormat | None, *, is_alone: bool) -> None:
    at, now = before[1].index(path), after[1].index(path)
    row, renewed = before[0][at], after[0][now]
    if not isinstance(row, Element) or not isinstance(renewed, Element):
        return
    if len(row.children) == len(renewed.children):
        for index, (old, new) in enumerate(zip(row.children, renewed.children, strict=True)):
            texts = encode([old]), encode([new])
            if ages is None or not any(map(ages.is_in, texts)):
                rows.cells[index].append((texts[0], posted, texts[1]))
    heads = [_heading(each, index) for each, index in ((before, at), (after, now))]
    if None not in heads:
        rows.heads.append((heads[0] or "", posted, heads[1] or ""))
    if is_alone:
        rows.sides.update(["all", *_sides(before[1], after[1], path, at, now)])


def _heading(rows: tuple[list[Node], list[str | None]], at: int) -> str | None:
    index = headings(*rows)[at]
    return encode([rows[0][index]]) if index >= 0 else None


def _sides(before: Sequence[str | None], after: Sequence[str | None], path: str, at: int, now: int) -> Iterator[str]:
    """Yield what the place of a row after an act may be: as it was, or an end of its run."""
    if now == 0 or after[now - 1] is None:
        yield "start"
    if now + 1 == len(after) or after[now + 1] is None:
        yield "end"
    kept = {each for each in before if each is not None and each in after}
    orders = [[each for each in side if each in kept] for side in (before, after)]
    if orders[0].index(path) == orders[1].index(path):
        yield "stay"


def posted_fields(sources: Iterable[SiteSource]) -> dict[str, list[str]]:
    """Return the fields that laws of acts need, by the route that they are posted to."""
    fields: dict[str, set[str]] = defaultdict(set)
    for text in {source[2] for source in sources if source[0] == "rows acted"}:
        for route, law in laws_of(text).items():
            fields[route].update([*(field for field, _ in law.cells.values()), *law.gone,
                                  *([law.heading[0]] if law.heading is not None else [])])
    return {route: sorted(each) for route, each in sorted(fields.items())}
