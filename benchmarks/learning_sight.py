"""What the small agent of learning.py sees of an episode, as features that name no domain.

In: the user's words, the tools' schemas, its own acts, the tools' answers. Out: features of the moment, for the choice of the
next act; values seen so far (spans of the user's words, fields of answers, what a schema lists) with features of where
and how each was seen, for filling a slot by copying.
Sees no task, rubric, solution or state of the room: an `Episode` is fed by a log's messages and by a room's answers alike.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import Any, NamedTuple

LONGEST_SPAN = 4
"""Words of a span of the user's words that can be copied."""
_WORD = re.compile(r"[#\w][\w@.\-+'%/]*\w|\w")
_CUT = re.compile(r"[,;:!?()\"\n]+|\.(?=\s|$)")
_SENTENCE = re.compile(r"(?<=[.?!])\s+")
_DIGIT = re.compile(r"\d")
_SHAPES = ((re.compile(r"[A-Z]+"), "A"), (re.compile(r"[a-z]+"), "a"), (re.compile(r"\d+"), "9"))


class Value(NamedTuple):
    """Something that can be copied."""

    value: Any
    """As JSON has it: a string, a number, a truth value."""
    features: frozenset[str]
    """What is known of it whatever it is copied to."""
    places: set[int]
    """Numbers of the answers that hold it; of the user's sentences, below 0."""


class Seen:
    """All that is known of a value."""

    __slots__ = ("as_json", "marks", "places", "sources", "value")

    def __init__(self, as_json: Any) -> None:
        self.as_json = as_json
        self.sources: set[str] = set()
        """Paths of answers, shapes of the user's words."""
        self.marks: set[str] = set()
        self.places: set[int] = set()
        self.value: Value | None = None
        """Made when it is asked for."""


def words(text: str) -> list[str]:
    """Words in their order, without marks about them."""
    return _WORD.findall(text)


@lru_cache(maxsize=65536)
def shape(text: str) -> str:
    """Return what a text looks like: runs of capitals, small letters and digits as one sign each."""
    for pattern, sign in _SHAPES:
        text = pattern.sub(sign, text)
    return text[:24]


class Episode:
    """What was seen and done so far."""

    def __init__(self, tools: list[dict[str, Any]]) -> None:
        self.schemas = {tool["name"]: tool.get("parameters") or tool.get("inputSchema") or {} for tool in tools}
        self.acts: list[str] = ["begin"]
        self.said = ""
        """All that the user said, in small letters."""
        self.seen: dict[str, Seen] = {}
        """By the value's text."""
        self._bag: dict[str, None] = {}
        self._open: dict[str, list[str]] = {}
        """What the user said that holds a digit -> words before it; while no call was given it."""
        self._last_words: list[str] = []
        self._answer: set[str] = set()
        self._used: dict[str, dict[str, int]] = {}
        """Slot's name -> value as text -> number of the call that gave it last."""
        self._n_answers = self._n_sentences = self._n_calls = 0

    def hear(self, text: str) -> None:
        """Take in what the user says."""
        self.said += f"\n{text.lower()}"
        for seen in self.seen.values():
            seen.value = None
        self._last_words = [word.lower() for word in words(text) if not _DIGIT.search(word)]
        self._bag |= dict.fromkeys(self._last_words)
        ranks: dict[str, dict[str, int]] = {}
        for sentence in _SENTENCE.split(text):
            self._n_sentences += 1
            for segment in _CUT.split(sentence):
                self._segment(words(segment), ranks)

    def _segment(self, found: list[str], ranks: dict[str, dict[str, int]]) -> None:
        """Spans of words with no mark between them."""
        small = [word.lower() for word in found]
        for start in range(len(found)):
            before = small[max(0, start - 6):start]
            marks = {f"left={before[-1] if before else '^'}", *(f"near={word}" for word in before if word.isalpha())}
            if _DIGIT.search(found[start]):
                self._open.setdefault(found[start], before)
            for end in range(start + 1, min(start + LONGEST_SPAN, len(found)) + 1):
                span = " ".join(found[start:end])
                look = shape(span)
                alike = ranks.setdefault(look, {})
                rank = alike.setdefault(span, len(alike))
                right = f"right={small[end] if end < len(found) else '$'}"
                self._see(span, f"user:{look}", {*marks, right, f"rank={rank}"}, -self._n_sentences)

    def do(self, act: str, tool: str | None = None, arguments: dict[str, Any] | None = None) -> None:
        """Take in what the agent does: a tool call, or a phrase."""
        self.acts.append(act)
        self._last_words, self._answer = [], set()
        if tool is not None:
            self._n_calls += 1
            for name, given in (arguments or {}).items():
                for value in given if isinstance(given, list) else [given]:
                    self._used.setdefault(name, {})[text_of(value)] = self._n_calls
                    for word in words(text_of(value)):
                        self._open.pop(word, None)

    def answered(self, tool: str, content: str) -> None:
        """Take in a tool's answer."""
        self._n_answers += 1
        leaves, self._answer = read(tool, content)
        for value, source, marks in leaves:
            self._see(value, source, marks, self._n_answers)

    def _see(self, value: Any, source: str, marks: Iterable[str], place: int) -> None:
        key = text_of(value)
        seen = self.seen.get(key)
        if seen is None:
            seen = self.seen[key] = Seen(value)
        seen.sources.add(source)
        seen.marks.update(marks)
        seen.places.add(place)
        seen.value = None

    def value(self, key: str) -> Value:
        """Return what was seen, as it can be copied now."""
        seen = self.seen[key]
        if seen.value is None:
            features = (*(f"from={source}" for source in seen.sources), *self._resolved(key, seen.marks))
            seen.value = Value(seen.as_json, frozenset(features), seen.places)
        return seen.value

    def _resolved(self, key: str, marks: Iterable[str]) -> Iterator[str]:
        """Yield marks, with what stands beside a value compared to what the user said."""
        yield "said" if key.lower() in self.said else "not said"
        inner = []
        for mark in marks:
            kind, bar, rest = mark.partition("|")
            if not bar:
                yield mark
                continue
            name, _, value = rest.partition("=")
            if kind == "beside":
                yield f"beside {name} said={value in self.said}"
            else:
                inner.append(f"{name} {value}" in self.said)
        if inner:
            yield "within said=" + ("all" if all(inner) else "some" if any(inner) else "none")

    def moment(self) -> set[str]:
        """Features for the choice of the next act."""
        last, before = self.acts[-1], self.acts[-2] if len(self.acts) > 1 else ""
        found = {f"last={last}", f"last2={before}>{last}", f"n={min(len(self.acts), 20)}"}
        for act in dict.fromkeys(self.acts):
            found |= {f"done={act}", f"done={act} last={last}", f"times={act}:{min(self.acts.count(act), 3)}"}
        for word in self._bag:
            found |= {f"word={word}", f"word={word} last={last}"}
        found |= {f"reply={word} last={last}" for word in self._last_words or ["-"]}
        found |= {f"{mark} last={last}" for mark in self._answer}
        found |= {f"n open={min(len(self._open), 3)} last={last}"}
        for word in {word for near in self._open.values() for word in near} or {"-"}:
            found |= {f"open={word}", f"open={word} last={last}"}
        return found

    def about(self, value: Value, slot: str, chosen: dict[str, str]) -> list[str]:
        """Features of a value for a slot, beside its own: what it was used for, and what else this act is about."""
        key = text_of(value.value)
        used = self._used.get(slot, {}).get(key)
        found = ["new here" if used is None else "used last here" if used == self._n_calls else "used here"]
        if any(key in given for name, given in self._used.items() if name != slot):
            found.append("used elsewhere")
        if key in chosen.values():
            found.append("chosen in this act")
        together = [name for name, other in chosen.items() if other in self.seen and self.seen[other].places & value.places]
        found += [f"together with {name}" for name in together] or ["together with nothing"]
        if self._n_answers in value.places:
            found.append("in the last answer")
        telling = [mark for mark in value.features if mark.startswith(("beside", "within")) or mark.endswith("said")]
        found.append("&".join(sorted([*telling, *found])))
        if len(key) < 25 and not _DIGIT.search(key):
            found.append(f"is={key.lower()}")
        return found


@lru_cache(maxsize=4096)
def read(tool: str, content: str) -> tuple[list[tuple[Any, str, frozenset[str]]], set[str]]:
    """(value, source, marks) of each field of an answer; features of the answer as a whole."""
    try:
        document = json.loads(content)
    except ValueError:
        document = content
    if not isinstance(document, dict | list):
        return [(document, f"{tool}:", frozenset())], {f"answer={shape(str(document))}"}
    short = {f"{key}={value}" for key, value in document.items() if isinstance(value, str) and len(value) < 25
             and not _DIGIT.search(value)} if isinstance(document, dict) else set()
    return [(value, f"{tool}:{path}", marks) for path, value, marks in _leaves(document, "", frozenset())], short


def text_of(value: Any) -> str:
    """Return a value as text: a string as it is, anything else as JSON."""
    return value if isinstance(value, str) else json.dumps(value)


def _leaves(node: Any, path: str, beside: frozenset[str]) -> Iterator[tuple[str, Any, frozenset[str]]]:
    """(path with keys that hold digits as *, value, marks of what stands beside it) of each leaf."""
    if isinstance(node, dict):
        marks = frozenset(_marks(node))
        for key, value in node.items():
            step = "*" if _DIGIT.search(key) and isinstance(value, dict) else key
            if step == "*":
                yield f"{path}.^", key, frozenset(_marks(value))
            yield from _leaves(value, f"{path}.{step}", marks)
    elif isinstance(node, list):
        for value in node:
            yield from _leaves(value, f"{path}[]", beside)
    elif node is not None:
        yield path, node, beside


def _marks(node: dict[str, Any]) -> Iterator[str]:
    """Yield what an object says beside each of its values: truths as they are, words to be compared with the user's."""
    for key, value in node.items():
        if isinstance(value, bool):
            yield f"beside {key}={value}"
        elif isinstance(value, str) and len(value) > 2 and not value.isdigit():
            yield f"beside|{key}={value.lower()}"
        elif isinstance(value, dict) and len(value) < 12:
            for name, inner in value.items():
                if isinstance(inner, str):
                    yield f"within|{name.lower()}={inner.lower()}"
