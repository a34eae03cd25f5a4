"""What the log could have told: an upper bound on any reading of it, by script.

In: the calls of the log, and later ones as they are learnt. A call can be told where its tool was ever called and
- the same call was answered the same, or the tool only ever says this, or
- it fails with a message that the tool was seen to give (values of the call, numbers and ids may differ; where all rows are
  known from a database's changes, a message that any tool was seen to give), or
- a thing that it names was shown before, with mostly the fields that the answer shows, or
- every element of the answer (each object of a list, each line of a text) was shown before or is made of what was.
Numbers may always be computed. It does not say that the log proves the value at that instant, so it is generous where
things drift; and it is a bound on calls alone: which of them a world that keeps changing has made stale is not counted.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import Any

from fidelity_score import Call

ALIKE = 0.6
"""Share of fields in common above which two objects show the same kind of thing."""
LONGEST_NUMBER = 7
"""Digits from which on a number is taken for a name."""
_WORD = re.compile(r"[^\W_]+(?:[_\-.@/][^\W_]+)*|#\w+")
_NUMBER = re.compile(r"[-+]?\d+(?:[.,]\d+)*")


class Log:
    """All that was seen so far of one or more services."""

    def __init__(self, calls: Iterable[Call] = ()) -> None:
        self._answers: dict[tuple[str, str, str], set[str]] = defaultdict(set)
        self._texts: dict[tuple[str, str], set[str]] = defaultdict(set)
        self._failures: dict[tuple[str, str], set[str]] = defaultdict(set)
        self.errors: set[tuple[str, str, str]] = set()
        """(service, tool, message) of all failures."""
        self._shown: dict[str, set[frozenset[str]]] = defaultdict(set)
        self._elements: set[str] = set()
        self._words: set[str] = set()
        self._complete = False
        for call in calls:
            self.add(call)

    def add(self, call: Call) -> None:
        """Take in a call and its answer."""
        tool = (call.service, call.tool)
        self._answers[*tool, call.key].add(call.content)
        self._texts[tool].add(call.content)
        if call.is_error:
            self.errors.add((*tool, call.content))
            self._failures[tool].add(_mould(call.content, call.arguments))
            return
        value = _parsed(call.content)
        self._take(value if value is not None else call.content, _scalars(call.arguments))

    def row(self, key: str, document: Any) -> None:
        """Take in a row of a database as a change of it shows it: what has no row is not there."""
        self._complete = True
        self._take(document, {_plain(key)})

    def _take(self, value: Any, named: set[str]) -> None:
        for each in _objects(value):
            fields = frozenset(each)
            for name in named | {_plain(item) for item in each.values() if _names(item)}:
                self._shown[name].add(fields)
            self._elements.add(json.dumps(each, sort_keys=True))
        for leaf in _leaves(value):
            self._words.update(_words(leaf))
            self._elements.update(_lines(leaf))

    def tells(self, call: Call) -> bool:
        """Could the log have told this answer?"""
        tool = (call.service, call.tool)
        if tool not in self._texts:
            return False
        if call.content in self._answers.get((*tool, call.key), ()) or self._texts[tool] == {call.content}:
            return True
        if call.is_error:
            mould = _mould(call.content, call.arguments)
            return mould in self._failures[tool] or (self._complete and any(
                mould in moulds for (service, _), moulds in self._failures.items() if service == call.service))
        value = _parsed(call.content)
        words = {word for leaf in _leaves(call.arguments) for word in _words(leaf)}
        if isinstance(value, dict) and self._shows(value, _scalars(call.arguments)):
            return True
        if isinstance(value, list):
            return all(self._holds(item, words) for item in value)
        if value is not None:
            return all(self._made_of(leaf, words) for leaf in _leaves(value))
        return all(line in self._elements or self._made_of(line, words) for line in _lines(call.content))

    def _shows(self, value: dict[str, Any], named: set[str]) -> bool:
        """Was a thing that the call names shown with mostly these fields?"""
        shown = [fields for name in named for fields in self._shown.get(name, ())]
        return any(len(each) > 2 and any(_alike(frozenset(each), fields) for fields in shown)
                   for each in (value, *value.values()) if isinstance(each, dict))

    def _holds(self, item: Any, words: set[str]) -> bool:
        if isinstance(item, dict):
            return json.dumps(item, sort_keys=True) in self._elements
        return all(self._made_of(leaf, words) for leaf in _leaves(item))

    def _made_of(self, text: str, words: set[str]) -> bool:
        return all(word in self._words or word in words or _computed(word) for word in _words(text))


def _computed(word: str) -> bool:
    return bool(_NUMBER.fullmatch(word)) and len(word) < LONGEST_NUMBER


def _alike(one: frozenset[str], other: frozenset[str]) -> bool:
    return len(one & other) > ALIKE * len(one | other)


def _mould(message: str, arguments: dict[str, Any]) -> str:
    """Return the message without what differs from call to call: values of the call, numbers, words with a digit."""
    for value in sorted(map(str, _leaves(arguments)), key=len, reverse=True):
        if len(value) > 2:
            message = message.replace(value, "·")
    return re.sub(r"·+", "·", re.sub(r"\S*\d\S*", "·", message))


def _parsed(content: str) -> Any:
    if content[:1] not in "{[" or not content:
        return None
    try:
        return json.loads(content)
    except ValueError:
        return None


def _objects(value: Any) -> Iterator[dict[str, Any]]:
    if isinstance(value, dict):
        yield value
    for item in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from _objects(item)


def _names(item: Any) -> bool:
    """May the value name a thing? Numbers and words with a digit may."""
    return isinstance(item, str | int) and any(map(str.isdigit, str(item)))


def _leaves(value: Any) -> Iterator[str]:
    if isinstance(value, dict | list):
        for item in value.values() if isinstance(value, dict) else value:
            yield from _leaves(item)
    elif value is not None and not isinstance(value, bool):
        yield str(value)


def _scalars(arguments: dict[str, Any]) -> set[str]:
    return {_plain(leaf) for leaf in _leaves(arguments)}


def _plain(value: Any) -> str:
    """Return a name without signs around it: an address drops them."""
    return re.sub(r"^\W+|\W+$", "", str(value))


def _words(text: str) -> list[str]:
    return [_plain(word) for word in _WORD.findall(text)]


def _lines(text: str) -> list[str]:
    return [line.strip() for line in text.splitlines() if line.strip()]
