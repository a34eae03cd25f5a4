"""What else could stand at a place of a call's arguments: values that a careless agent might take.

In: the room's calls on record, its known records and its tools' schemas; what the agent was shown. Out: other values, the
likeliest mistakes first: what it was shown of the same shape, other records of the class, what others gave there.
Sees: names (keys of known records, words with a digit that the agent was shown), texts, numbers, truths, lists.
Does not see: what a value means, so that another way to write the same counts as another; free text (eight words and more on
average) is left alone, for two good sessions never write it the same way.
"""

from __future__ import annotations

import json
import re
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from copy import copy
from functools import lru_cache
from typing import Any, NamedTuple

from env_builder.runtime.answers import parsed
from env_builder.runtime.canonical import canonical, digest
from env_builder.runtime.relevance import ids
from env_builder.runtime.world import World

Path = tuple[str | int, ...]
Place = tuple[str | None, ...]
"""A path with None for every element of a list."""
FREE_TEXT_WORDS = 8
"""Mean number of words from which an argument's values count as free text."""
MOST_VALUES = 400
"""Values of one place that are kept."""
_LETTERS, _DIGIT = re.compile(r"[^\W\d_]+"), re.compile(r"\d")


class Arrivals(NamedTuple):
    """When calls came into the log, by number of their epoch, and up to which epoch the attackers of each task draw calls."""

    calls: Mapping[tuple[str, str], int]
    """(tool, canonical arguments) -> the first epoch with such a call."""
    reach: Mapping[str, int]
    """Task id -> the last epoch that counts; of a task that is not here, all count."""


class Plausible:
    """Values on record in a room, by where they stood."""

    def __init__(self, world: World, tools: Iterable[Mapping[str, Any]]) -> None:
        self._world = world
        self._schemas: dict[str, Any] = {tool["name"]: tool.get("inputSchema") or {} for tool in tools}
        self._hashes: dict[str, list[str]] = {}
        self._texts: dict[str, list[str]] = {}
        self._calls: dict[str, list[dict[str, Any]]] = {}
        self._arrived: Mapping[tuple[str, str], int] = {}
        self.reach: int | None = None
        """The last epoch whose `calls` count; None: all."""
        self._rings: dict[tuple[str, int | None], tuple[list[str], list[dict[str, Any]]]] = {}
        """(tool, reach) -> hashes of the calls up to there, and the calls; shared by all reaches."""
        self._observed: dict[str, dict[Place, dict[str, Any]]] = {}
        self._shapes: dict[str, list[dict[str, Any]]] = {}
        self._class_of: dict[str, str] = {}
        self._keys: dict[str, list[str]] = {}
        for kind, key in sorted(self._world.facts):
            self._class_of.setdefault(key, kind)
            self._keys.setdefault(kind, []).append(key)
        self._key_of = {key.casefold(): key for key in self._class_of}
        self._keys = {kind: sorted(keys, key=digest)[:MOST_VALUES] for kind, keys in self._keys.items()}

    def up_to(self, reach: int | None, arrived: Mapping[tuple[str, str], int]) -> Plausible:
        """Return the same, with `calls` up to an epoch alone: calls of later nights displace none. None: with all calls."""
        values = copy(self)   # what was computed before is shared
        values.reach, values._arrived = reach, arrived
        return values

    def calls(self, tool: str, start: str) -> Iterator[dict[str, Any]]:
        """Arguments of the tool's calls on record, from a ring in the order of their hashes: those after `start` first.

        A call that is new to the record displaces none but what comes after it. Where no call of the tool is old enough, the
        ring has all."""
        if (tool, self.reach) not in self._rings:
            self._rings[tool, self.reach] = self._ring(tool)
        hashes, calls = self._rings[tool, self.reach]
        first = bisect_left(hashes, start)
        return (calls[(first + step) % len(calls)] for step in range(len(calls)))

    def _ring(self, tool: str) -> tuple[list[str], list[dict[str, Any]]]:
        calls, reach = self._on_record(tool), self.reach
        near = range(len(calls)) if reach is None else [
            place for place, text in enumerate(self._texts[tool]) if self._arrived.get((tool, text), 0) <= reach]
        places = near or range(len(calls))
        return [self._hashes[tool][place] for place in places], [calls[place] for place in places]

    def _on_record(self, tool: str) -> list[dict[str, Any]]:
        if tool not in self._calls:
            by_hash = sorted((digest(text), text) for text in self._world.questions.get(tool, ()))
            self._hashes[tool] = [name for name, _ in by_hash]
            self._texts[tool] = [text for _, text in by_hash]
            self._calls[tool] = [json.loads(text) for text in self._texts[tool]]
        return self._calls[tool]

    def shapes(self, tool: str) -> list[dict[str, Any]]:
        """Shapes of the tool's arguments, as on record and as its schema asks for them: null for each value; sorted."""
        if tool not in self._shapes:
            wanted = self._schemas.get(tool, {}).get("required") or list(self._schemas.get(tool, {}).get("properties") or {})
            shapes = {canonical(shape): shape for shape in map(_blank, [dict.fromkeys(wanted), *self._on_record(tool)])}
            self._shapes[tool] = [shapes[text] for text in sorted(shapes)]
        return self._shapes[tool]

    def named(self, words: Iterable[str]) -> list[str]:
        """Return the keys of the known records that these words, in lower case, name."""
        return [self._key_of[word] for word in words if word in self._key_of]

    def fitting(self, tool: str, place: Place, words: Collection[str]) -> list[Any]:
        """Values seen there that these words, in lower case, say."""
        return [value for value in self.observed(tool, place) if str(value).casefold() in words]

    def class_of(self, text: str) -> str | None:
        """Return the class of the record of this name, None if there is no such record."""
        return self._class_of.get(text)

    def observed(self, tool: str, place: Place) -> list[Any]:
        """Values that the tool's calls on record had there, by a fixed order that says nothing."""
        if tool not in self._observed:
            by_place: dict[Place, dict[str, Any]] = defaultdict(dict)
            for arguments in self._on_record(tool):
                for path, value in leaves(arguments):
                    by_place[place_of(path)].setdefault(canonical(value), value)
            self._observed[tool] = {where: {text: values[text] for text in sorted(values, key=digest)[:MOST_VALUES]}
                                for where, values in by_place.items()}
        return list(self._observed[tool].get(place, {}).values())

    def is_free(self, tool: str, place: Place) -> bool:
        """Is it free text?"""
        words = [len(value.split()) if isinstance(value, str) else 0 for value in self.observed(tool, place)]
        return bool(words) and sum(words) >= FREE_TEXT_WORDS * len(words)

    def is_name(self, value: Any, shown: Iterable[str]) -> bool:
        """Return whether the value names an entity."""
        text = str(value)
        return isinstance(value, str | int) and not isinstance(value, bool) and (
            self.class_of(text) is not None or (any(map(str.isdigit, text)) and text in shown))

    def others(self, tool: str, path: Path, value: Any, shown: Sequence[str]) -> Iterator[Any]:
        """Other values for this place, the likeliest mistakes first, each once. `shown`: words that the agent saw."""
        place, taken = place_of(path), {canonical(value)}
        for other in self._candidates(tool, place, value, shown):
            text = canonical(other)
            if text not in taken:
                taken.add(text)
                yield other

    def _candidates(self, tool: str, place: Place, value: Any, shown: Sequence[str]) -> Iterator[Any]:
        observed = [other for other in self.observed(tool, place) if type(other) is type(value)]
        if self.is_name(value, shown) and isinstance(value, str):
            own = self._class_of.get(value)
            yield from (word for word in shown if own is None and alike(word, value))
            yield from (word for word in shown if own is not None and self._class_of.get(word) == own)
            yield from observed[:MOST_VALUES // 2]
            yield from self._keys.get(own, ()) if own is not None else ()
        elif isinstance(value, bool):
            yield not value
        else:
            schema = self._schemas.get(tool, {})
            for name in place:
                inner = schema.get("items") if name is None else (schema.get("properties") or {}).get(name)
                schema = inner if isinstance(inner, dict) else {}
            choices = schema.get("enum")
            yield from (list(choices) if isinstance(choices, list) else [])
            yield from observed
            if isinstance(value, int | float):
                yield from (value + 1, value * 2)

    def is_optional(self, tool: str, name: str) -> bool:
        """May the argument be left out, as the schema or a call on record says?"""
        schema = self._schemas.get(tool, {})
        if name in schema.get("required", ()):
            return False
        return name in (schema.get("properties") or {}) or any(name not in arguments for arguments in self._on_record(tool))


def leaves(value: Any, path: Path = ()) -> Iterator[tuple[Path, Any]]:
    """(path, scalar) of a JSON value, in its order."""
    if isinstance(value, dict):
        for name, item in value.items():
            yield from leaves(item, (*path, name))
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from leaves(item, (*path, index))
    else:
        yield path, value


def _blank(value: Any) -> Any:
    """Return the JSON value with null for each scalar."""
    if isinstance(value, dict):
        return {name: _blank(item) for name, item in value.items()}
    return [_blank(item) for item in value] if isinstance(value, list) else None


def place_of(path: Path) -> Place:
    """Return the path with None for every element of a list."""
    return tuple(None if isinstance(step, int) else step for step in path)


def put(value: Any, path: Path, new: Any) -> Any:
    """Return the JSON value with `new` at a path."""
    if not path:
        return new
    if isinstance(value, dict):
        return {name: put(item, path[1:], new) if name == path[0] else item for name, item in value.items()}
    return [put(item, path[1:], new) if index == path[0] else item for index, item in enumerate(value)]


def shown_in(texts: Iterable[str]) -> list[str]:
    """Words with a digit that these texts show, in a fixed order."""
    shown: set[str] = set()
    for text in texts:
        value = parsed(text)
        shown |= ids(text if value is None else value)
    return sorted(shown, key=digest)


def alike(one: str, other: str) -> bool:
    """Have two words the same shape: as many digits in the same places among letters and signs?"""
    return one == other or _shape(one) == _shape(other)


@lru_cache(16384)
def _shape(word: str) -> str:
    return _DIGIT.sub("9", _LETTERS.sub("a", word))
