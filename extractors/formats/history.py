"""What a model was given, held once: most records of a log repeat the history of the one before and add a little.

In: messages of an input as JSON text or as a list of logged values, by conversation. Out: `PromptHistory`, a chain of parts:
what two inputs share is one link, parsed, converted and fingerprinted once. A text that begins with a known one is parsed from
there on. Also how much of a conversation's history is already known (formats.md 0.3, rule 1), by messages, calls and
results. Does not see: a beginning that was rewritten (that is parsed again), call ids (providers rewrite them), times.

Lines of JSON that hold JSON text in strings, as OTLP attributes do, are made short before they are parsed (`Shortened`): the
known beginning of such a text becomes a reference, so a log that repeats the whole history in each record costs what is new in
it. References begin with a mark that is random for each file, so that no log can hold one. Sees equal bytes.
"""

from __future__ import annotations

import json
import re
import secrets
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import orjson

from extractors.formats.format import Row
from extractors.formats.otlp_span import plain
from extractors.formats.values import parsed_json

_MOST_HELD = 1 << 26
"""Characters of known texts that are kept to compare with, over all conversations of a file."""
_BRANCHES = 4
_SHORT = 100
"""A list of this many characters may be spaces alone."""
_ELEMENT = 500
"""What a logged value counts for, in characters."""
_VALUE = re.compile(rb'"gen_ai\.(?:(input\.messages|prompt)|system_instructions|tool\.definitions)"'
                    rb'\s*,\s*"value"\s*:\s*\{\s*"(?:stringValue|string_value)"\s*:\s*"')
"""Where a text begins; one whose name is in the group grows, the others are repeated as a whole."""
_REST = re.compile(rb'[^"\\]*+(?:\\.[^"\\]*+)*+"')
_HEAD = 96
_LONG = 400
_ALIKE = 8
Print = tuple[Any, ...]


def print_of(part: Row) -> Print:
    """Return what makes two parts the same part."""
    return fingerprint(part["kind"], part.get("role"), part.get("content"), part.get("tool"), part.get("arguments"))


class PromptHistory:
    """Parts of an input after those of an `earlier` one. Reasoning has no print: what was thought may be left out later."""

    __slots__ = ("earlier", "first", "n_parts", "n_prints", "parts", "prints", "size")

    def __init__(self, parts: list[Row], earlier: PromptHistory | None = None, size: int = 0) -> None:
        self.earlier = earlier
        self.parts = parts
        self.prints = [print_of(part) for part in parts if part["kind"] != "reasoning"]
        self.first: int = earlier.n_parts if earlier else 0
        self.n_parts: int = self.first + len(parts)
        self.n_prints: int = (earlier.n_prints if earlier else 0) + len(self.prints)
        self.size = size
        """How much of the logged text or list it stands for."""

    @property
    def all_prints(self) -> list[Print]:
        return [each for link in self.since(None) or () for each in link.prints]

    def since(self, earlier: PromptHistory | None) -> list[PromptHistory] | None:
        """Return the links after `known`, oldest first; None where it is no beginning of this one."""
        links: list[PromptHistory] = []
        link: PromptHistory | None = self
        while link is not None and link is not earlier:
            links.append(link)
            link = link.earlier
        return links[::-1] if link is earlier else None

    def beyond(self, n_prints: int) -> Iterator[tuple[int, Row]]:
        """Parts with their places in the input, without those up to the first `n_prints` that have a print."""
        links: list[PromptHistory] = []
        link: PromptHistory | None = self
        while link is not None and (link.n_prints > n_prints or n_prints == 0):
            links.append(link)
            link = link.earlier
        n_skipped = n_prints - (link.n_prints if link is not None else 0)
        for each in reversed(links):
            for i, part in enumerate(each.parts, start=each.first):
                if n_skipped <= 0:
                    yield i, part
                elif part["kind"] != "reasoning":
                    n_skipped -= 1


@dataclass(slots=True)
class _Branch:
    """A history that may go on: what it was read from, and the links that stand for it."""

    opening: Any
    source: Any
    """Text without its closing bracket, or list of values."""
    history: PromptHistory
    root: PromptHistory | None


class Histories:
    """Histories of the conversations of one file."""

    def __init__(self, shortened: Shortened | None = None) -> None:
        self._shortened = shortened
        self._numbered: dict[int, tuple[Any, PromptHistory]] = {}
        self._branches: dict[Any, list[_Branch]] = {}
        self._n_characters = 0

    def of(self, key: Any, messages: Any, parts_of: Callable[[Any], list[Row]], opening: Any = None,
           open_with: Callable[[], list[Row]] = list) -> PromptHistory | None:
        """Return the history that `messages` (JSON text of a list, or a list) tell; None where the text is torn.

        `key`: of the conversation; `parts_of`: parts of one message; `opening`: instructions as logged, whose parts
        `open_with` gives.
        """
        reference = self._shortened.reference(messages) if self._shortened is not None and isinstance(messages, str) else None
        if reference is None:
            branches = self._branches.pop(key, [])
            self._branches[key] = branches   # the last to be dropped
            for branch in reversed(branches):
                if branch.opening == opening and type(branch.source) is type(messages):
                    history = _gone_on(branch, messages, parts_of)
                    if history is not None:
                        self._remember(branches, branch, history, messages)
                        return history
            return self._begin(branches, messages, parts_of, opening, open_with)
        opening_before, link = self._numbered.get(reference.base, (None, None))
        if link is not None and opening_before == opening:
            history = _with_rest(link, reference.rest, parts_of)
        else:
            whole = self._shortened.text(messages) if self._shortened is not None else messages
            history = self._begin([], whole, parts_of, opening, open_with)
        if history is not None:
            self._numbered[reference.own] = opening, history
        return history

    def _begin(self, branches: list[_Branch], messages: Any, parts_of: Callable[[Any], list[Row]], opening: Any,
               open_with: Callable[[], list[Row]]) -> PromptHistory | None:
        same = next((branch.root for branch in branches if branch.opening == opening and branch.root is not None), None)
        first = same or (PromptHistory(open_with()) if opening is not None else None)
        values = messages
        if isinstance(messages, str):
            try:
                values = orjson.loads(messages)
            except orjson.JSONDecodeError:
                return None
        if not isinstance(values, list):
            values = [values] if isinstance(values, dict) else []
        history = PromptHistory([part for value in values for part in parts_of(value)], first, _size(messages))
        self._remember(branches, _Branch(opening, messages[:0] if isinstance(messages, (str, list)) else [], history, first),
                       history, messages)
        return history

    def _remember(self, branches: list[_Branch], branch: _Branch, history: PromptHistory, messages: Any) -> None:
        """Compare the next ones with this one; what is oldest goes where too much is held."""
        if branch.history is history and branch in branches:
            return
        source = messages[:history.size] if isinstance(messages, str) else messages
        if branch in branches and history.earlier is branch.history:
            self._n_characters -= _weight(branch.source)
            branch.source, branch.history = source, history
        else:
            branches.append(_Branch(branch.opening, source, history, branch.root))
            if len(branches) > _BRANCHES:
                self._n_characters -= _weight(branches.pop(0).source)
        self._n_characters += _weight(source)
        while self._n_characters > _MOST_HELD and len(self._branches) > 1:
            oldest = next(iter(self._branches))
            self._n_characters -= sum(_weight(each.source) for each in self._branches.pop(oldest))


def _gone_on(branch: _Branch, messages: Any, parts_of: Callable[[Any], list[Row]]) -> PromptHistory | None:
    """Return the history of `messages` as one that goes on from (a beginning of) the branch; None where nothing is shared."""
    text = isinstance(messages, str)
    link: PromptHistory | None = branch.history
    if not (messages.startswith(branch.source) if text else messages[:len(branch.source)] == branch.source):
        links = branch.history.since(branch.root) or []   # the longest link whose text or values they begin with
        n_same = bisect_right(links, 0, key=lambda link: 0 if messages[:link.size] == branch.source[:link.size] else 1)
        link = links[n_same - 1] if n_same else None
    if link is None or link.size == 0:
        return None
    rest = messages[link.size:]
    if text:
        return _with_rest(link, rest, parts_of, _size(messages))
    return PromptHistory([part for value in rest for part in parts_of(value)], link, _size(messages)) if rest else link


def _with_rest(link: PromptHistory, rest: str, parts_of: Callable[[Any], list[Row]], size: int = 0) -> PromptHistory | None:
    """Go on with the rest of a text, from the bracket that closed it on; None where nothing can go on so."""
    rest = rest.strip()
    if rest == "]":
        return link
    if rest[:1] != ",":
        return None
    values = parsed_json("[" + rest[1:])
    return None if values is None else PromptHistory([part for value in values for part in parts_of(value)], link, size)


def _size(messages: Any) -> int:
    """Length of a list; of a text, up to its closing bracket; 0 where nothing can go on from it."""
    if not isinstance(messages, str):
        return len(messages) if isinstance(messages, list) else 0
    end = len(messages.rstrip()) - 1
    if end < 0 or messages[end] != "]" or (end < _SHORT and messages[:end].strip() == "["):
        return 0
    return end


def _weight(source: Any) -> int:
    return len(source) if isinstance(source, str) else len(source) * _ELEMENT


def fingerprint(kind: str, role: str | None, content: str | None, tool: str | None, arguments: str | None) -> Print:
    """Return what makes two parts of a conversation the same part."""
    if kind == "call":
        return (kind, tool, canonical(arguments) or arguments)
    if kind == "result":
        return (kind, content)
    return (kind, "system" if role == "developer" else role, content or "")


def canonical(arguments: str | None) -> str | None:
    """Arguments as canonical JSON (sorted keys, no spaces, UTF-8); None: no JSON object, or nested deeper than 254 times."""
    if arguments is None:
        return None
    try:
        value = orjson.loads(arguments)
        if not isinstance(value, dict):
            return None
        text = orjson.dumps(value, option=orjson.OPT_SORT_KEYS).decode()
    except (orjson.JSONDecodeError, TypeError):
        return None
    if _LONG_NUMBER.search(arguments) is None:
        return text
    return json.dumps(json.loads(arguments), sort_keys=True, separators=(",", ":"), ensure_ascii=False)


_LONG_NUMBER = re.compile(r"\d{19}")
"""orjson rounds whole numbers beyond 64 bits; where there may be one, Python's json keeps every digit."""


def n_known(before: Sequence[Print], history: Sequence[Print]) -> int | None:
    """How many leading parts of `history` are `known` already; None: the two have nothing in common.

    A history that extends the known one, that is a part of it, or that was shortened or rewritten at its beginning
    (compaction) but still holds the known one's end.
    """
    if not before:
        return 0
    if list(history[:len(before)]) == list(before):
        return len(before)
    if list(before[:len(history)]) == list(history):
        return len(history)
    # how many parts the known one's end shares with the history up to each of its parts: the Z function, backwards
    parts: list[Print | None] = [*reversed(before), None, *reversed(history)]
    lengths = [0] * len(parts)
    begin = right = 0
    for i in range(1, len(parts)):
        k = min(right - i, lengths[i - begin]) if i < right else 0
        while i + k < len(parts) and parts[k] == parts[i + k]:
            k += 1
        lengths[i] = k
        if i + k > right:
            begin, right = i, i + k
    shared = lengths[:len(before):-1]
    best = max(shared, default=0)
    end = max((j for j, length in enumerate(shared, start=1) if length == best), default=0)
    if best > 1 or (best == 1 and is_telling(history[end - 1])):
        return end
    return None


def is_telling(part: Print) -> bool:
    """Whether one equal part alone shows that two histories are one conversation: no short phrase, no instructions."""
    return part[0] == "call" or (part[0] == "message" and part[1] == "assistant" and len(part[2]) >= 20)


class Reference(NamedTuple):
    """A shortened text: it goes on from text `base` (0: from none) with `rest`, and is itself text `own` (0: it is `base`)."""

    base: int
    own: int
    rest: str


@dataclass(slots=True, eq=False)
class _RepeatedText:
    """A text as it stands in the lines, escaped; of a list without its closing bracket. What it grows to takes its place."""

    raw: bytes
    number: int
    text: str | None = None


class Shortened:
    """Texts of one file that later ones may repeat."""

    def __init__(self) -> None:
        self._by_head: dict[bytes, list[_RepeatedText]] = {}
        self._numbers: dict[int, tuple[_RepeatedText, int]] = {}
        self._n_bytes = 0
        nonce = secrets.token_hex(8)
        self._mark = f"\0{nonce}\0"
        self._escaped_mark = f"\\u0000{nonce}\\u0000".encode()

    def line(self, content: bytes) -> bytes:
        """Return the line with references for what is known; the line itself where there is nothing to shorten."""
        while self._n_bytes > _MOST_HELD and self._by_head:
            self._n_bytes -= sum(len(each.raw) for each in self._by_head.pop(next(iter(self._by_head))))
        chunks: list[bytes] = []
        done = 0
        value = _VALUE.search(content)
        while value is not None:
            reference, after = self._refer(content, value.end(), value[1] is not None)
            if reference is not None:
                chunks += (content[done:value.end()], reference)
                done = after
            value = _VALUE.search(content, after)
        return b"".join((*chunks, content[done:])) if chunks else content

    def _refer(self, content: bytes, start: int, grows: bool) -> tuple[bytes | None, int]:
        """Return the reference for the beginning of the text at `start`, and where the rest of it begins."""
        head = content[start:start + _HEAD]
        alike = self._by_head.get(head, [])
        before = next((each for each in reversed(alike) if content.startswith(each.raw, start)), None)
        after = start + len(before.raw) if before is not None else start
        if not grows and before is not None and content[after:after + 1] == b'"':
            return b"%s%d\\u00000\\u0000" % (self._escaped_mark, before.number), after
        rest = _REST.match(content, after)
        end = rest.end() - 1 - grows if rest is not None else 0
        if end - start < _LONG or (grows and content[end:end + 1] != b"]"):
            return None, start
        base = before.number if before is not None and grows else 0
        own, raw, grown = len(self._numbers) + 1, content[start:end], before if grows else None
        if grown is None:
            grown = _RepeatedText(raw, own)
            alike = self._by_head.setdefault(head, [])
            alike.append(grown)
            self._n_bytes += len(raw)
            if len(alike) > _ALIKE:
                self._n_bytes -= len(alike.pop(0).raw)
        else:
            self._n_bytes += len(raw) - len(grown.raw)
            grown.raw, grown.number = raw, own
        self._numbers[own] = grown, len(raw)
        if not grows:
            return None, end
        return b"%s%d\\u0000%d\\u0000" % (self._escaped_mark, base, own), start if not base else after

    def reference(self, text: str) -> Reference | None:
        """Return what a shortened text says; None for any other text."""
        if not text.startswith(self._mark):
            return None
        base, own, rest = text[len(self._mark):].split("\0", 2)
        return Reference(int(base), int(own), rest)

    def text(self, shortened: str) -> str:
        """Return the whole text that a shortened one stands for; any other text as it is."""
        reference = self.reference(shortened)
        if reference is None:
            return shortened
        if not reference.base:
            return reference.rest
        before, length = self._numbers[reference.base]
        if reference.own:
            return str(orjson.loads(b'"%s"' % before.raw[:length])) + reference.rest
        if before.text is None:
            before.text = str(orjson.loads(b'"%s"' % before.raw))
        return before.text

    def value_of(self, value: Any) -> Any:
        """Return an AnyValue as a plain value, whole."""
        value_plain = plain(value)
        return self._whole(value_plain) if self._numbers else value_plain

    def _whole(self, value: Any) -> Any:
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, list):
            return [self._whole(each) for each in value]
        return {key: self._whole(each) for key, each in value.items()} if isinstance(value, dict) else value
