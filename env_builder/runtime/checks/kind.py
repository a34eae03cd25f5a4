"""What a kind of check is, and what it is given.

A kind is a `Kind`: a sentence, a description of its parameters (JSON Schema of the words in `schemas.py`), a function that
prepares parameters once a rubric, and one that judges an episode. It is handed a `Seen`: the episode, indexed once for all
checks of a rubric. A kind is deterministic, reads nothing but what it is handed, and runs nothing of the agent's text.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from ..answers import parsed
from ..canonical import canonical
from ..ends import EndState, end_state
from ..kept import Once
from ..records import Episode
from ..words import LONGEST_TEXT, Fact, bare, heard_in

Parameters = dict[str, Any]
Schema = dict[str, Any]
Row = dict[str, Any]
Ask = Callable[[str], str]
"""A prompt in, a model's text out."""

LONGEST_EVIDENCE = 20
"""Items of a list that evidence holds."""
LARGEST = 10**40
"""Size from which a number is nobody's key."""
DEEPEST = 32
"""Levels of an argument that are searched for names."""


class Found(NamedTuple):
    """What a check finds in an episode."""

    passed: bool | None
    """None: nobody can say (a judge that failed): the check is unscored."""
    evidence: Any
    """JSON value."""
    swayed: bool = False
    """Could answers that the room did not know have made it the other verdict?"""
    share: float | None = None
    """How far it has come, 0 to 1, where that is more than yes or no: for shaping alone."""


class Kind(NamedTuple):
    """A kind of check."""

    says: str
    """When it holds."""
    parameters: Schema
    """JSON Schema of its parameters: other parameters are refused."""
    judge: Callable[[Any, Seen], Found]
    """(prepared parameters, episode) -> what it finds. Never raises, whatever the journal holds."""
    prepare: Callable[[Parameters], Any] = lambda parameters: parameters
    """Parameters that the description allows -> what `judge` takes. ValueError with one sentence where they mean nothing."""


class Loose(NamedTuple):
    """What of an end state does not count, and a name for it."""

    key: str
    parameters: Parameters

    @classmethod
    def of(cls, parameters: Parameters) -> Loose:
        """The part of a check's parameters that says so: `masked`, `aside`."""
        named = {name: value for name, value in parameters.items() if name in ("masked", "aside")}
        return cls(canonical(named), named)


class Seen:
    """An episode, indexed once for all checks of a rubric."""

    def __init__(self, episode: Episode, ask: Ask | None = None, seed: int = 0) -> None:
        self.episode = episode
        self.ask = ask
        """A model to ask, for judges; None where there is none."""
        self.seed = seed
        self.calls: list[tuple[int, Row]] = []
        """(place in the journal, row) of every call."""
        self.done: dict[str, list[int]] = {}
        """By tool, places of the calls that were done: what failed is not, but a look-up that the room had no answer to was
        asked for."""
        self.matched: dict[str, list[int]] = {}
        """By pattern, as text, places of the steps that match it, of those that were asked for (patterns.py)."""
        self.said: list[tuple[int, str]] = []
        """(place in the journal, text) of every word of the agent that is more than blank."""
        calls, done = self.calls, self.done
        for place, row in enumerate(episode.journal):
            kind = row.get("kind")
            if kind == "call" and isinstance(tool := row.get("tool"), str):
                calls.append((place, row))
                if not row.get("is_error") or row.get("tier") == "unknown":
                    if tool in done:
                        done[tool].append(place)
                    else:
                        done[tool] = [place]
            elif kind == "say" and isinstance(text := row.get("content"), str) and text.strip():
                self.said.append((place, text))
        self.leaned = [row for row in episode.leaned
                       if isinstance(row.get("tool"), str) and isinstance(row.get("arguments"), dict)]
        """Calls that may have changed something that the room does not know. A tool that is not there changes nothing, nor does
        a call whose arguments are no JSON object: no way to go unscored."""
        self._acted = bool(episode.difference.get("acts"))
        self._heard: frozenset[Fact] | None = None
        """Facts that the agent told the user, as `forms_of` names them, once they were looked for."""
        self._ends: dict[str, EndState] = {}

    @Once
    def words(self) -> str:
        """All that the agent told the user."""
        return "\n".join([text for _, text in self.said])

    @Once
    def bare(self) -> str:
        """The agent's words as `hints_of` names what they have to hold."""
        return bare(self.words)

    def hears(self, forms: frozenset[Fact], hints: tuple[str, ...]) -> bool:
        """Did the agent tell the user one of these facts? Its words are searched where they hold a hint of one."""
        if self._heard is None:
            words = self.bare
            if not any(map(words.__contains__, hints)):
                return False
            self._heard = heard_in(self.words)
        return not forms.isdisjoint(self._heard)

    @Once
    def trace(self) -> list[int]:
        """Places of all calls that were done, in order."""
        return sorted(place for places in self.done.values() for place in places)

    @Once
    def spoken(self) -> list[int]:
        """Places of all calls that were done and of all words, in order."""
        return sorted({*self.trace, *(place for place, _ in self.said)})

    @Once
    def squeezed(self) -> str:
        """Letters and digits of the agent's words."""
        return squeezed(self.words[:LONGEST_TEXT])

    @Once
    def plain(self) -> str:
        """The agent's words in small letters, parted by single blanks."""
        return f" {' '.join(self.words.casefold().split())} "

    @Once
    def given(self) -> tuple[frozenset[str], frozenset[str]]:
        """All fields that arguments of calls name, and all names that stand in them as texts or whole numbers."""
        names: set[str] = set()
        values: set[str] = set()
        for _, row in self.calls:
            _gather(row.get("arguments"), "", DEEPEST, names, values)
        return frozenset(names), frozenset(values)

    def end(self, loose: Loose) -> EndState:
        """The end state that was reached."""
        key = loose.key if self._acted else ""
        found = self._ends.get(key)
        if found is None:
            found = self._ends[key] = end_state(self.episode.difference, loose.parameters)
        return found

    def document(self, name: str) -> tuple[str | None, str | None]:
        """JSON text of the document `class/key` at the episode's beginning and at its end, None where it is not known."""
        before, after = self.episode.look(name) if self.episode.look else (None, None)
        changed = self.episode.difference.get("documents", {})
        return before, changed.get(name, after)

    @staticmethod
    def answer(row: Row) -> Any:
        """What a call was answered: the JSON value where it is an object or a list, else the text."""
        content = row.get("content")
        value = parsed(content) if isinstance(content, str) else None
        return content if value is None else value

    def leans(self, aside: Iterable[str] = ()) -> bool:
        """May something that counts have changed without the room knowing?"""
        if not self.leaned:
            return False
        counts = self.episode.writes.difference(aside)
        return any(row["tool"] in counts for row in self.leaned)


def _gather(value: Any, name: str, depth: int, names: set[str], values: set[str]) -> None:
    """Put the fields of a JSON value into `names`, and its fields, texts and whole numbers into `values`."""
    if isinstance(value, str):
        names.add(name)
        values.add(value)
    elif isinstance(value, dict) and depth:
        names.update(map(str, value))
        values.update(map(str, value))
        for inner, item in value.items():
            _gather(item, str(inner), depth - 1, names, values)
    elif isinstance(value, list) and depth:
        for item in value:
            _gather(item, name, depth - 1, names, values)
    else:
        names.add(name)
        if type(value) is int and abs(value) < LARGEST:
            values.add(str(value))


def squeezed(text: str) -> str:
    """The letters and digits alone, in small letters."""
    return "".join(filter(str.isalnum, text.casefold()))


def clip(items: list[Any]) -> list[Any]:
    """As many of them as evidence holds."""
    return items if len(items) <= LONGEST_EVIDENCE else items[:LONGEST_EVIDENCE]
