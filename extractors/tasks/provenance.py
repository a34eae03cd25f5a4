"""Where the arguments of calls come from, by value: what the user said, what an earlier answer held, what is always the same.

In: calls, their single values, and what was said. Out: `ORIGINS`, one row an argument's value, and `FACTS`, what the agent told
the user out of answers. A value often stands in several places; it is taken to come from the one that explains most values of
that argument in the service, and from the user where the user's words explain at least half as many.

Sees: values to the letter, but for case, leading marks, separators of thousands, and dates spelled out in English; sums,
differences, products and totals of numbers that were read, where several sessions reckon alike. Does not see: yes and no;
what was said in other words; answers of failed calls."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from typing import Any, NamedTuple

import polars as pl

from extractors.tasks.answers import reckonings, singles
from extractors.tasks.words import key_of, mentions, phrases_among, spellings, words_of
from warehouse.records import Memoize, recompute

ORIGINS = {"session_id": pl.String(), "turn_id": pl.String(), "tool": pl.String(), "path": pl.String(), "value": pl.String(),
           "source": pl.String(), "from_tool": pl.String(), "from_path": pl.String(), "from_turn": pl.String()}
"""source: one of `SOURCES`; from_tool, from_path: the answer read, or what was reckoned with; from_turn: the call."""
SOURCES = ("said", "read", "constant", "computed", "written", "unknown")
"""computed: out of numbers that were read, or by a tool that only reckons; written: a text of the agent."""
FACTS = {"session_id": pl.String(), "turn_id": pl.String(), "tool": pl.String(), "path": pl.String(), "value": pl.String()}
"""turn_id, tool, path: the answer that held the value that the agent reported."""
_TASKS = 8
"""Fewer tasks than this make nothing constant."""
_RECKONED = 3
"""Fewer sessions than this make no way of reckoning."""
_CONSTANT = 0.9
_TEXT = 4
"""A value of so many words is a text."""
_SHORT = 3
"""A shorter value without a digit, and a digit alone, is in any message and says nothing."""


class _Origin(NamedTuple):
    source: str
    tool: str = ""
    path: str = ""


_FROM_USER = _Origin("said")
_Argument = tuple[str, str, str]
"""service, tool, path."""


class _TracedValue(NamedTuple):
    """A value that a call was given, and where it may come from."""

    session_id: str
    turn_id: str
    argument: _Argument
    value: str
    origins: Mapping[_Origin, str]
    """Origin -> the call that was answered, "" where none."""


class Provenance(NamedTuple):
    """What `trace` gives."""

    origins: pl.DataFrame
    """Frame of `ORIGINS`, by session_id, turn_id and path."""
    facts: pl.DataFrame
    """Frame of `FACTS`, by session_id, turn_id and path."""


def trace(members: pl.DataFrame, turns: pl.DataFrame, calls: pl.DataFrame, values: pl.DataFrame,
          reckoners: frozenset[tuple[str, str]] = frozenset(), memoize: Memoize = recompute) -> Provenance:
    """Trace every value of the calls that did not fail. `members`: session_id, task, said, spoken, worded.

    `reckoners`: (service, tool) of tools that only compute; what is read from them is computed."""
    given: dict[str, list[tuple[str, str]]] = defaultdict(list)
    for turn, path, value in values.filter(pl.col("value") != "").unique().sort("turn_id", "path", "value").iter_rows():
        given[turn].append((path, value))
    traced_values: list[_TracedValue] = []
    facts: list[tuple[str, ...]] = []
    for session_id, service, typed, steps in _sessions(members, turns, calls):
        own = [given.get(step["turn_id"], []) if step["role"] == "call" else [] for step in steps]
        traced, reported = memoize(
            ["trace", typed, [[*step.values()] for step in steps], own], partial(_read, typed, steps, own))
        traced_values += [
            _TracedValue(session_id, turn, (service, tool, path), value, {_Origin(*each): by for *each, by in origins})
            for turn, tool, path, value, origins in traced]
        facts += [(session_id, *fact) for fact in reported]
    task_of = dict(members.select("session_id", "task").iter_rows())
    chosen = _Choice(traced_values, task_of, reckoners)
    rows = [(each.session_id, each.turn_id, *each.argument[1:], each.value, *chosen(each)) for each in traced_values]
    return Provenance(pl.DataFrame(rows, schema=ORIGINS, orient="row").sort("session_id", "turn_id", "path", "value"),
                      pl.DataFrame(facts, schema=FACTS, orient="row").unique().sort("session_id", "turn_id", "path", "value"))


class _Step(NamedTuple):
    position: int
    role: str
    """user, assistant or call."""
    turn_id: str
    tool: str
    content: str


def _read(typed: str, steps: list[dict[str, Any]], given: list[list[tuple[str, str]]]) -> list[Any]:
    """Of one session its values and the facts that it told, as JSON value; `given`: to each step."""
    session = _TracedSession(typed, [(_Step(**step), own) for step, own in zip(steps, given, strict=True)])
    return [list(session.traced()), list(session.reported())]


class _TracedSession:
    """One session in order: what was said and shown so far."""

    def __init__(self, typed: str, steps: list[tuple[_Step, list[tuple[str, str]]]]) -> None:
        self._steps = steps
        """Each with (path, value) of what it was given."""
        self._user_texts = [typed] if typed else []
        self._shown: dict[str, dict[tuple[str, str], str]] = defaultdict(dict)
        self._texts: list[tuple[str, str, set[str], str]] = []
        self._read: list[tuple[str, tuple[tuple[str, str], ...]]] = []
        self._values_of_turn: dict[str, tuple[tuple[str, str], ...]] = {}

    def traced(self) -> Iterator[list[Any]]:
        """turn_id, tool, path and value of what each call was given, with all places before it that hold it."""
        for step, given in self._steps:
            if step.role == "user":
                self._user_texts.append(step.content.lower())
            elif step.role == "call":
                for path, value in given:
                    origins = [[*origin, turn] for origin, turn in self._origins(value).items()]
                    yield [step.turn_id, step.tool, path, value, origins]
                self._show(step, {key_of(value) for _, value in given})

    def _origins(self, value: str) -> dict[_Origin, str]:
        origins: dict[_Origin, str] = {}
        spelled = spellings(value)
        if any(mentions(text, spelling) for text in self._user_texts for spelling in spelled):
            origins[_FROM_USER] = ""
        key = key_of(value)
        for (tool, path), turn in self._shown.get(key, {}).items():
            origins[_Origin("read", tool, path)] = turn
        for turn, tool, own, text in self._texts:
            if key not in own and any(mentions(text, spelling) for spelling in (value.lower(), key)):
                origins[_Origin("read", tool, "")] = turn
        if not origins:
            for path in reckonings(value, self._read):
                origins[_Origin("computed", "", path)] = ""
        return origins

    def _show(self, step: _Step, own: set[str]) -> None:
        """Keep what a call showed beyond what it was given."""
        values = singles(step.content)
        if values is None:
            self._texts.append((step.turn_id, step.tool, own, step.content.lower()))
            return
        self._read.append((step.tool, values))
        self._values_of_turn[step.turn_id] = values
        for path, value in values:
            if (key := key_of(value)) not in own:
                self._shown[key][step.tool, path] = step.turn_id

    def reported(self) -> Iterator[list[str]]:
        """List turn_id, tool, path, value of what the agent reported from answers, not from user or arguments; of texts, words
        with a digit."""
        messages = [step for step, _ in self._steps if step.role == "assistant"]
        if not messages:
            return
        calls = ((step, {value.lower() for _, value in given}) for step, given in self._steps if step.role == "call")
        shown = [(step, own, each) for step, own in calls for each in self._values_shown(step)]
        by_word: dict[str, set[str]] = defaultdict(set)
        for _, own, (_, value) in shown:
            lower = value.lower()
            is_telling = len(lower) >= _SHORT or (len(lower) > 1 and _has_digit(lower))
            if is_telling and lower not in own:
                by_word[lower.partition(" ")[0]].add(lower)
        last = {phrase: each.position for each in messages for phrase in phrases_among(each.content, by_word)}
        of_user = set[str]().union(*(phrases_among(text, by_word) for text in self._user_texts))
        for step, own, (path, value) in shown:
            lower = value.lower()
            if last.get(lower, -1) > step.position and lower not in of_user and lower not in own:
                yield [step.turn_id, step.tool, path, value]

    def _values_shown(self, step: _Step) -> Iterable[tuple[str, str]]:
        """Return (path, value) of what a call answered; of a text, its words with a digit."""
        return self._values_of_turn.get(step.turn_id) or (
            ("", word) for word in sorted({*words_of(step.content)}) if _has_digit(word))


def _has_digit(text: str) -> bool:
    return any(map(str.isdigit, text))


def _sessions(members: pl.DataFrame, turns: pl.DataFrame,
              calls: pl.DataFrame) -> Iterator[tuple[str, str, str, list[dict[str, Any]]]]:
    """session_id, service, what its user wrote elsewhere, its steps (fields of `_Step`)."""
    fine = calls.filter(~pl.col("failed")).select("session_id", "position", pl.lit("call").alias("role"), "turn_id", "tool",
                                                  pl.col("content").fill_null(""))
    words = turns.filter((pl.col("kind") == "message") & pl.col("role").is_in(["user", "assistant"])).select(
        "session_id", "position", "role", "turn_id", pl.lit("").alias("tool"), pl.col("content").fill_null(""))
    steps = pl.concat([fine, words]).sort("session_id", "position").group_by("session_id", maintain_order=True).agg(
        pl.struct(_Step._fields).alias("steps"))
    typed = pl.when(pl.col("worded") & ~pl.col("spoken")).then(pl.col("said").str.to_lowercase()).otherwise(pl.lit(""))
    own = members.select("session_id", "service", typed.alias("typed")).unique("session_id").join(steps, on="session_id")
    yield from own.sort("session_id").iter_rows()


class _Choice:
    """Which of its places a value comes from."""

    def __init__(self, traced_values: list[_TracedValue], task_of: Mapping[str, str],
                 reckoners: frozenset[tuple[str, str]]) -> None:
        self._reckoners = reckoners
        given: dict[_Argument, dict[str, set[str]]] = defaultdict(lambda: defaultdict(set))
        sessions: dict[tuple[_Argument, _Origin], set[str]] = defaultdict(set)
        for each in traced_values:
            given[each.argument][task_of[each.session_id]].add(each.value)
            for origin in each.origins:
                sessions[each.argument, origin].add(each.session_id)
        self._n = {key: len(names) for key, names in sessions.items()}
        self._constant: set[tuple[_Argument, str]] = set()
        for argument, by_task in given.items():
            alone = Counter(min(values) for values in by_task.values() if len(values) == 1)
            self._constant |= {(argument, value) for value, n in alone.items() if n >= max(_TASKS, _CONSTANT * len(by_task))}

    def __call__(self, value: _TracedValue) -> tuple[str, str, str, str]:
        """source, from_tool, from_path, from_turn."""
        if (value.argument, value.value) in self._constant:
            return "constant", "", "", ""
        n = {origin: self._n[value.argument, origin] for origin in value.origins}
        supported = {origin: count for origin, count in n.items() if origin.source != "computed" or count >= _RECKONED}
        if not supported:
            return ("written" if value.value.count(" ") >= _TEXT - 1 else "unknown"), "", "", ""
        best = min(supported, key=lambda origin: (-supported[origin], origin != _FROM_USER, origin))
        if _FROM_USER in supported and 2 * supported[_FROM_USER] >= supported[best]:
            best = _FROM_USER
        if best.source == "read" and (value.argument[0], best.tool) in self._reckoners:
            return "computed", best.tool, best.path, value.origins[best]
        return best.source, best.tool, best.path, value.origins[best]
