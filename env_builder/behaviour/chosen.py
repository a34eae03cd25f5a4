"""Which parts of other records an act chose between two looks at these: of what it was seen to keep, and of what not.

In: a service's steps. Out: tool -> class -> field -> values. A part is an object inside a document under a key, or in a list,
that an argument of the act names by the key or by a value of the part. Of an act that keeps a class as it was (`relation`), an
environment asks whether the part that it chooses has only such values (`runtime/programs.py`); else nobody saw what such a
choice does to the record. Sees: fields that take few words. Does not see: parts that calls name by numbers, or by their place.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from env_builder.behaviour.guards import FEW_VALUES, distinct
from env_builder.runtime.answers import parsed
from env_builder.runtime.relevance import chosen_fields, parts_by_name, texts_in
from env_builder.world.calls import order_of
from env_builder.world.replay import LoggedStep

Name = tuple[str, str]
Scoped = tuple[str, Name]
"""(session, or "" in a shared world; record)."""
Field = tuple[str, str, str]
"""(acting tool, class, field)."""
Kept = dict[str, dict[str, dict[str, list[object]]]]


def find(steps: Iterable[LoggedStep], shared: bool) -> Kept:
    """Return the values of parts that acts chose, of every tool and class of which one was ever chosen; those alone after which
    the record was looked at again."""
    log = _Log()
    for step in sorted(steps, key=lambda step: order_of(step.call)) if shared else steps:
        scope = "" if shared else step.call.session_id
        if step.act:
            log.act(scope, step)
        if step.shown:
            log.look(scope, step.shown)
    kept: Kept = defaultdict(lambda: defaultdict(dict))
    for (tool, entity_class, field), values in sorted(log.kept.items()):
        if len(log.values[entity_class, field]) <= FEW_VALUES:
            kept[tool][entity_class][field] = distinct(values)
    return kept


class _Log:
    """Parts of the records as last looked at, and what was chosen of them since."""

    def __init__(self) -> None:
        self.kept: dict[Field, list[object]] = defaultdict(list)
        self.values: dict[tuple[str, str], set[object]] = defaultdict(set)
        """(class, field) -> all values that parts were shown with."""
        self._holding: dict[tuple[str, str], dict[Name, dict[str, object]]] = defaultdict(dict)
        """(scope, word) -> record -> the part of it that the word names."""
        self._words: dict[Scoped, tuple[str, ...]] = {}
        self._open: dict[Scoped, set[tuple[Field, object]]] = defaultdict(set)

    def act(self, scope: str, step: LoggedStep) -> None:
        """Note what the call chooses of records that were looked at."""
        for word in texts_in(step.call.arguments):
            for name, part in self._holding.get((scope, word), {}).items():
                for field, value in chosen_fields(part):
                    place = (step.call.tool, name[0], field)
                    self.kept[place] += ()
                    self._open[scope, name].add((place, value))

    def look(self, scope: str, shown: tuple[str, str, str]) -> None:
        """Count what was chosen of the record since it was last looked at."""
        name, parts = (shown[0], shown[1]), parts_by_name(parsed(shown[2]))
        for place, value in self._open.pop((scope, name), ()):
            if value not in self.kept[place]:
                self.kept[place].append(value)
        for word in self._words.get((scope, name), ()):
            self._holding[scope, word].pop(name, None)
        for word, part in parts.items():
            self._holding[scope, word][name] = part
            for field, value in chosen_fields(part):
                self.values[name[0], field].add(value)
        self._words[scope, name] = tuple(parts)
