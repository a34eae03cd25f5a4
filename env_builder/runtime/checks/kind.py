"""What a kind of check is, and what it is given.

A kind is a subclass of `CheckKind`: its sentence, a JSON Schema of its parameters (in the words of `schemas.py`), how they are
prepared once a rubric and how an episode is judged. It gets an `EpisodeView`: the episode, indexed once for all checks of a
rubric. A kind is deterministic, reads nothing but what it is handed, and runs nothing of the agent's text.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from copy import copy
from typing import Any, Generic, Literal, NamedTuple, TypeVar

from ..answers import parsed
from ..canonical import canonical
from ..ends import EndState, end_state
from ..records import Episode
from ..words import LONGEST_TEXT, Fact, bare, heard_in

V = TypeVar("V")
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


class Once(Generic[V]):
    """A property that is worked out when it is first asked for: `functools.cached_property`, without the lock that it takes
    before Python 3.12."""

    def __init__(self, work: Callable[[Any], V]) -> None:
        self._work = work
        self.__doc__ = work.__doc__

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    def __get__(self, holder: Any, owner: type) -> V:
        value: V = self._work(holder)
        holder.__dict__[self._name] = value
        return value


class CheckResult(NamedTuple):
    """What a check finds in an episode."""

    passed: bool | None
    """None: nobody can say (a judge that failed): the check is unscored."""
    evidence: Any
    """JSON value."""
    depends_on_unknown: bool = False
    """Could answers that the environment did not know have made it the other verdict?"""
    share: float | None = None
    """How far it has come, 0 to 1, where that is more than yes or no: for shaping alone."""


class CheckKind(ABC):
    """A kind of check: all that depends on the kind's name. A package's own kind is a subclass (docs/rewards.md)."""

    description: str
    """When it holds, in one sentence."""
    parameters: Schema
    """JSON Schema of its parameters: other parameters are refused."""
    policy_form: str | None = None
    """How a model that reads a policy writes the parameters; empty: allowed, but not shown to it; None: not allowed."""
    stops: Literal["end", "path"] | None = None
    """What a gate of this kind stops, for the audit: a wrong end, whatever led to it, or a forbidden path to the right end."""
    demands_no_change = False
    """Does it say outright that the right answer changes nothing?"""
    asks_model = False
    """Does it ask a model about its `criteria`?"""

    def prepare(self, parameters: Parameters) -> Any:
        """Return what `judge` takes, once a rubric. ValueError with one sentence where the parameters mean nothing."""
        return parameters

    @abstractmethod
    def judge(self, prepared: Any, view: EpisodeView) -> CheckResult:
        """Return what the check finds in an episode. Never raises, whatever the journal holds."""

    def essential(self, prepared: Any, view: EpisodeView) -> dict[str, Any]:
        """Return the episode's difference without what the check permits besides the right end: for the audit, which must
        know when an altered solution ends as the solution does."""
        return view.episode.difference

    def is_lost(self, prepared: Any, view: EpisodeView) -> bool:
        """Return whether the check fails whatever the agent may still do (see `grading.lost`)."""
        return False

    def nested(self, parameters: Parameters) -> list[dict[str, Any]]:
        """Return the checks within, as a rubric writes them."""
        return []

    def schema(self, of_kind: list[Schema]) -> Schema:
        """Return the published schema of its parameters; `of_kind`: which parameters each kind's checks take."""
        return {"description": self.description, **self.parameters}

    def fails(self, prepared: Any, view: EpisodeView) -> bool:
        """Return whether the check fails whatever the unknown answers were."""
        result = self.judge(prepared, view)
        return result.passed is False and not result.depends_on_unknown


class IgnoredParts(NamedTuple):
    """What of an end state does not count, and a name for it."""

    key: str
    parameters: Parameters

    @classmethod
    def of(cls, parameters: Parameters) -> IgnoredParts:
        """Return the part of a check's parameters that says so: its `ignored_…`."""
        named = {name: value for name, value in parameters.items() if name.startswith("ignored_")}
        return cls(canonical(named), named)


class EpisodeView:
    """An episode, indexed once for all checks of a rubric."""

    def __init__(self, episode: Episode, ask: Ask | None = None, seed: int = 0) -> None:
        self.episode = episode
        self.ask = ask
        """A model to ask, for judges; None where there is none."""
        self.seed = seed
        self.calls: list[tuple[int, Row]] = []
        """(place in the journal, row) of every call."""
        self.done: dict[str, list[int]] = {}
        """By tool, places of the calls that were done: what failed is not, but a read that had no answer here was
        asked for."""
        self.matched: dict[str, list[int]] = {}
        """By pattern, as text, places of the steps that match it, of those that were asked for (patterns.py)."""
        self.messages: list[tuple[int, str]] = []
        """(place in the journal, text) of every word of the agent that is more than blank."""
        calls, done = self.calls, self.done
        for place, row in enumerate(episode.journal):
            kind = row.get("kind")
            if kind == "call" and isinstance(tool := row.get("tool"), str):
                calls.append((place, row))
                if not row.get("is_error") or row.get("tier") == "unknown":
                    done.setdefault(tool, []).append(place)
            elif kind == "say" and isinstance(text := row.get("content"), str) and text.strip():
                self.messages.append((place, text))
        self.unknown_writes = [row for row in episode.unknown_writes
                       if isinstance(row.get("tool"), str) and isinstance(row.get("arguments"), dict)]
        """Calls that may have changed something that nobody knows here. A tool that is not there changes nothing, nor does
        a call whose arguments are no JSON object: no way to go unscored."""
        self._acted = bool(episode.difference.get("write_calls"))
        self._heard: frozenset[Fact] | None = None
        """Facts that the agent told the user, as `forms_of` names them, once they were looked for."""
        self._ends: dict[str, EndState] = {}

    def was_refused(self, row: Row) -> bool:
        """Return whether a call is a write without an answer here that was surely refused: too late, or it names nothing."""
        return (row.get("tier") == "unknown" and row.get("tool") in self.episode.writes
                and row not in self.episode.unknown_writes)

    def without_unknown(self, unknown_writes: list[Row]) -> EpisodeView:
        """Return the view in which only these unknown calls may have changed something."""
        twin = copy(self)
        twin.unknown_writes = unknown_writes
        return twin

    @Once
    def words(self) -> str:
        """All that the agent told the user."""
        return "\n".join([text for _, text in self.messages])

    @Once
    def bare(self) -> str:
        """Return the agent's words as `hints_of` names what they have to hold."""
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
        return sorted({*self.trace, *(place for place, _ in self.messages)})

    @Once
    def squeezed(self) -> str:
        return squeezed(self.words[:LONGEST_TEXT])

    @Once
    def plain(self) -> str:
        """Return the agent's words in small letters, parted by single blanks."""
        return f" {' '.join(self.words.casefold().split())} "

    @Once
    def given(self) -> tuple[frozenset[str], frozenset[str]]:
        """All fields that arguments of calls name, and all names that stand in them as texts or whole numbers."""
        names: set[str] = set()
        values: set[str] = set()
        for _, row in self.calls:
            _gather(row.get("arguments"), "", DEEPEST, names, values)
        return frozenset(names), frozenset(values)

    def end(self, loose: IgnoredParts) -> EndState:
        key = loose.key if self._acted else ""
        reached = self._ends.get(key)
        if reached is None:
            reached = self._ends[key] = end_state(self.episode.difference, loose.parameters)
        return reached

    def document(self, name: str) -> tuple[str | None, str | None]:
        """JSON text of the document `class/key` at the episode's beginning and at its end, None where it is not known."""
        before, after = self.episode.look(name) if self.episode.look else (None, None)
        changed = self.episode.difference.get("documents", {})
        return before, changed.get(name, after)

    @staticmethod
    def answer(row: Row) -> Any:
        """Return what a call was answered: the JSON value where it is an object or a list, else the text."""
        content = row.get("content")
        value = parsed(content) if isinstance(content, str) else None
        return content if value is None else value

    def leans(self, ignored_tools: Iterable[str] = ()) -> bool:
        """May something that counts have changed without the environment knowing?"""
        if not self.unknown_writes:
            return False
        counts = self.episode.writes.difference(ignored_tools)
        return any(row["tool"] in counts for row in self.unknown_writes)


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
    """Return the letters and digits alone, in small letters."""
    return "".join(filter(str.isalnum, text.casefold()))


def clip(items: list[Any]) -> list[Any]:
    """As many of them as evidence holds."""
    return items if len(items) <= LONGEST_EVIDENCE else items[:LONGEST_EVIDENCE]
