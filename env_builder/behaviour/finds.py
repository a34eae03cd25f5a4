"""Tools that answer with what is known of a thing they were not given the name of: found by what stands in it.

In: the calls of a tool that worked, all things and rows that the log showed. Out: `find` rules, one for each set of
arguments. A thing is a candidate where its key or values stand in the answer and every argument in one of its fields;
fields and template are those that all examples with a known thing share.
Sees: equal values in fields of objects. Does not see: a search by a part of a value, or for several things.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from itertools import product
from typing import Any

from env_builder.behaviour.guards import few_values
from env_builder.behaviour.templates import shared
from env_builder.runtime.answers import parsed
from env_builder.runtime.tables import ROWS, Table, agreed, scalars
from env_builder.world.replay import Step

MINIMUM_FOUND = 5
"""Different questions whose thing is known: fewer may be chance."""
MAXIMUM_WAYS = 64
WORD = re.compile(r"[^\s\"',{}\[\]:]+")
Path = tuple[str, ...]
By = tuple[tuple[Path, str], ...]
Rule = dict[str, Any]


class Things:
    """All documents and rows that a service's log showed."""

    def __init__(self, steps: Iterable[Step], rows: dict[str, Table]) -> None:
        texts: dict[tuple[str, str], dict[str, None]] = defaultdict(dict)
        for step in steps:
            if step.shown:
                texts[step.shown[:2]][step.shown[2]] = None
        self.rows = rows
        self.documents = {name: [parsed(text) for text in seen] for name, seen in sorted(texts.items())}
        self.classes = sorted({name[0] for name in self.documents})
        self._closed: dict[str, tuple[str, ...]] = {}

    def named(self, entity_class: str, content: str) -> Iterator[tuple[str, Any]]:
        """(key, latest document) of things whose key is a word of the answer."""
        for word in dict.fromkeys(WORD.findall(content)):
            if (entity_class, word) in self.documents:
                yield word, self.documents[entity_class, word][-1]

    def closed(self, entity_class: str) -> tuple[str, ...]:
        """Fields that take few values in all things of the class."""
        if entity_class not in self._closed:
            self._closed[entity_class] = tuple(few_values(
                [one[-1] for (kind, _), one in self.documents.items() if kind == entity_class]))
        return self._closed[entity_class]

    def stable(self, entity_class: str, paths: Iterable[Path]) -> bool:
        """Did these fields of each thing of the class always hold the same?"""
        wanted = set(paths)
        return all(
            len({tuple(sorted((path, str(value)) for path, value in scalars(one) if path in wanted)) for one in seen}) == 1
            for (kind, _), seen in self.documents.items() if kind == entity_class)


def induce(steps: list[Step], things: Things) -> list[Rule]:
    """`find` rules of one tool."""
    by_names: dict[tuple[str, ...], dict[str, Step]] = defaultdict(dict)
    for step in steps:
        if not step.call.failed and step.call.arguments:
            by_names[tuple(sorted(step.call.arguments))][step.call.key] = step
    found: list[Rule] = []
    for _, asked in sorted(by_names.items()):
        examples = [asked[key] for key in sorted(asked)]
        if len(examples) >= MINIMUM_FOUND:
            rules = (rule for entity in (*things.classes, *sorted(things.rows)) for rule in _rule(examples, entity, things))
            found += [rule for rule in [next(rules, None)] if rule]
    return found


def _rule(examples: list[Step], entity: str, things: Things) -> Iterator[Rule]:
    ways = _row_ways if entity.endswith(ROWS) else _thing_ways
    common: set[By] | None = None
    for step in examples:
        here = ways(step, entity, things)
        if here:
            common = here if common is None else common & here
    for by in sorted(common or (), key=lambda by: (sum(len(path) for path, _ in by), by)):
        hits = [(step, hit) for step in examples for hit in [_hit(step, entity, by, things)] if hit]
        template = shared([({"before": hit, "argument": step.call.arguments}, step.call.content) for step, hit in hits])
        if len(hits) < MINIMUM_FOUND or template is None:
            continue
        said = [tuple(piece[1:]) for piece in template["pieces"] if isinstance(piece, list) and piece[0] == "before"]
        if said:
            paths = [path for path, _ in by] + [path[1:] for path in said if path[0] == "document"]
            stable = not entity.endswith(ROWS) and things.stable(entity, paths)
            yield {"rule": "find", "class": entity, "by": [[list(path), name] for path, name in by], "stable": stable,
                   **template}


def _thing_ways(step: Step, entity: str, things: Things) -> set[By]:
    """Fields of the thing that the answer names, one for each argument, in which the arguments stand."""
    found: set[By] = set()
    for _, document in things.named(entity, step.call.content):
        found |= _ways(step.call.arguments, dict(scalars(document)))
    return found


def _row_ways(step: Step, entity: str, things: Things) -> set[By]:
    """Columns in which the arguments stand together in some row."""
    rows = things.rows[entity].holding(next(iter(step.call.arguments.values())))
    return set().union(*(_ways(step.call.arguments, dict(scalars(row))) for row in rows))


def _ways(arguments: dict[str, Any], fields: dict[Path, Any]) -> set[By]:
    names = sorted(arguments)
    options = [
        [path for path, value in fields.items() if type(value) is type(arguments[name]) and value == arguments[name]]
        for name in names]
    ways = product(*options)
    return {
        tuple(zip(way, names, strict=True)) for way, _ in zip(ways, range(MAXIMUM_WAYS), strict=False)
        if len(set(way)) == len(way)}


def _hit(step: Step, entity: str, by: By, things: Things) -> dict[str, Any] | None:
    """The thing that the rule would speak of, as the slots of its template see it."""
    wanted = [(path, step.call.arguments[name]) for path, name in by]
    if entity.endswith(ROWS):
        row = agreed(things.rows[entity].found(wanted))
        return None if row is None else {"key": "", "document": row}
    for key, document in things.named(entity, step.call.content):
        if Table([document]).found(wanted):
            return {"key": key, "document": document}
    return None
