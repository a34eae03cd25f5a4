"""What a model was given, held once: most records of a log repeat the history of the one before and add a little.

In: messages of an input as JSON text or as a list of logged values, by conversation. Out: `History`, a chain of parts: what
two inputs share is one link, parsed, converted and fingerprinted once. A text that begins with a known one is parsed from there
on. What it sees: equal beginnings. What it does not see: a beginning that was rewritten (whitespace, other ids); that is parsed
anew.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import orjson

from extractors.formats.format import Row
from extractors.formats.overlap import Print, fingerprint
from extractors.formats.shortened import Shortened

_MOST_HELD = 1 << 26
"""Characters of known texts that are kept to compare with, over all conversations of a file."""
_BRANCHES = 4
_SHORT = 100
"""A list of this many characters may be spaces alone."""
_ELEMENT = 500
"""What a logged value counts for, in characters."""


def print_of(part: Row) -> Print:
    """What makes two parts the same part."""
    return fingerprint(part["kind"], part.get("role"), part.get("content"), part.get("tool"), part.get("arguments"))


class History:
    """Parts of an input after those of an `earlier` one. Reasoning has no print: what was thought may be left out later."""

    __slots__ = ("earlier", "first", "n_parts", "n_prints", "parts", "prints", "size")

    def __init__(self, parts: list[Row], earlier: History | None = None, size: int = 0) -> None:
        self.earlier = earlier
        self.parts = parts
        self.prints = [print_of(part) for part in parts if part["kind"] != "reasoning"]
        self.first: int = earlier.n_parts if earlier else 0
        self.n_parts: int = self.first + len(parts)
        self.n_prints: int = (earlier.n_prints if earlier else 0) + len(self.prints)
        self.size = size
        """How much of the logged text or list it stands for."""

    def since(self, known: History | None) -> list[History] | None:
        """The links after `known`, oldest first; None where it is no beginning of this one."""
        links: list[History] = []
        link: History | None = self
        while link is not None and link is not known:
            links.append(link)
            link = link.earlier
        return links[::-1] if link is known else None

    def beyond(self, n_prints: int) -> Iterator[tuple[int, Row]]:
        """Parts with their places in the input, without those up to the first `n_prints` that have a print."""
        links: list[History] = []
        link: History | None = self
        while link is not None and (link.n_prints > n_prints or n_prints == 0):
            links.append(link)
            link = link.earlier
        left = n_prints - (link.n_prints if link is not None else 0)
        for each in reversed(links):
            for i, part in enumerate(each.parts, start=each.first):
                if left <= 0:
                    yield i, part
                elif part["kind"] != "reasoning":
                    left -= 1


@dataclass(slots=True)
class _Branch:
    """A history that may go on: what it was read from, and the links that stand for it."""

    opening: Any
    known: Any
    """Text without its closing bracket, or list of values."""
    history: History
    root: History | None


class Histories:
    """Histories of the conversations of one file."""

    def __init__(self, shortened: Shortened | None = None) -> None:
        self._shortened = shortened
        self._numbered: dict[int, tuple[Any, History]] = {}
        self._branches: dict[Any, list[_Branch]] = {}
        self._held = 0

    def of(self, key: Any, messages: Any, parts_of: Callable[[Any], list[Row]], opening: Any = None,
           open_with: Callable[[], list[Row]] = list) -> History | None:
        """The history that `messages` (JSON text of a list, or a list) tell; None where the text is torn.

        `key`: of the conversation; `parts_of`: parts of one message; `opening`: instructions as logged, whose parts
        `open_with` gives.
        """
        reference = self._shortened.reference(messages) if self._shortened is not None and isinstance(messages, str) else None
        if reference is None:
            return self._of(key, messages, parts_of, opening, open_with)
        known, link = self._numbered.get(reference.base, (None, None))
        if link is not None and known == opening:
            found = _with_rest(link, reference.rest, parts_of)
        else:
            whole = self._shortened.text(messages) if self._shortened is not None else messages
            found = self._begin([], whole, parts_of, opening, open_with)
        if found is not None:
            self._numbered[reference.own] = opening, found
        return found

    def _of(self, key: Any, messages: Any, parts_of: Callable[[Any], list[Row]], opening: Any,
            open_with: Callable[[], list[Row]]) -> History | None:
        branches = self._branches.pop(key, [])
        self._branches[key] = branches   # the last to be dropped
        for branch in reversed(branches):
            if branch.opening == opening and type(branch.known) is type(messages):
                found = _gone_on(branch, messages, parts_of)
                if found is not None:
                    self._remember(branches, branch, found, messages)
                    return found
        return self._begin(branches, messages, parts_of, opening, open_with)

    def _begin(self, branches: list[_Branch], messages: Any, parts_of: Callable[[Any], list[Row]], opening: Any,
               open_with: Callable[[], list[Row]]) -> History | None:
        same = next((branch.root for branch in branches if branch.opening == opening and branch.root is not None), None)
        first = same or (History(open_with()) if opening is not None else None)
        values = messages
        if isinstance(messages, str):
            try:
                values = orjson.loads(messages)
            except orjson.JSONDecodeError:
                return None
        if not isinstance(values, list):
            values = [values] if isinstance(values, dict) else []
        found = History([part for value in values for part in parts_of(value)], first, _size(messages))
        self._remember(branches, _Branch(opening, messages[:0] if isinstance(messages, (str, list)) else [], found, first),
                       found, messages)
        return found

    def _remember(self, branches: list[_Branch], branch: _Branch, found: History, messages: Any) -> None:
        """Compare the next ones with this one; what is oldest goes where too much is held."""
        if branch.history is found and branch in branches:
            return
        known = messages[:found.size] if isinstance(messages, str) else messages
        if branch in branches and found.earlier is branch.history:
            self._held -= _weight(branch.known)
            branch.known, branch.history = known, found
        else:
            branches.append(_Branch(branch.opening, known, found, branch.root))
            if len(branches) > _BRANCHES:
                self._held -= _weight(branches.pop(0).known)
        self._held += _weight(known)
        while self._held > _MOST_HELD and len(self._branches) > 1:
            oldest = next(iter(self._branches))
            self._held -= sum(_weight(each.known) for each in self._branches.pop(oldest))


def _gone_on(branch: _Branch, messages: Any, parts_of: Callable[[Any], list[Row]]) -> History | None:
    """The history of `messages` as one that goes on from (a beginning of) the branch; None where nothing is shared."""
    text = isinstance(messages, str)
    begins = messages.startswith(branch.known) if text else messages[:len(branch.known)] == branch.known
    link = branch.history if begins else _common(branch, messages)
    if link is None or link.size == 0:
        return None
    rest = messages[link.size:]
    if text:
        return _with_rest(link, rest, parts_of, _size(messages))
    return History([part for value in rest for part in parts_of(value)], link, _size(messages)) if rest else link


def _with_rest(link: History, rest: str, parts_of: Callable[[Any], list[Row]], size: int = 0) -> History | None:
    """The history that goes on with the rest of a text, from the bracket that closed it on; None where nothing can go on so."""
    rest = rest.strip()
    if rest == "]":
        return link
    if rest[:1] != ",":
        return None
    try:
        values = orjson.loads("[" + rest[1:])
    except orjson.JSONDecodeError:
        return None
    return History([part for value in values for part in parts_of(value)], link, size)


def _common(branch: _Branch, messages: Any) -> History | None:
    """The longest link whose text or values `messages` begin with."""
    links = branch.history.since(branch.root) or []
    n_same = bisect_right(links, 0, key=lambda link: 0 if messages[:link.size] == branch.known[:link.size] else 1)
    return links[n_same - 1] if n_same else None


def _size(messages: Any) -> int:
    """Length of a list; of a text, up to its closing bracket; 0 where nothing can go on from it."""
    if not isinstance(messages, str):
        return len(messages) if isinstance(messages, list) else 0
    end = len(messages.rstrip()) - 1
    if end < 0 or messages[end] != "]" or (end < _SHORT and messages[:end].strip() == "["):
        return 0
    return end


def _weight(known: Any) -> int:
    return len(known) if isinstance(known, str) else len(known) * _ELEMENT
