"""Answer tools of a service whose sessions are of several worlds: the kind `worlds`.

In: the files of a `records` app, which hold what no world or what all of them tell, and for each world a folder with the same
files and `sessions.jsonl`. Out: an app whose tasks begin in the world of their sessions. An open episode begins in all worlds
at once: it answers what they agree on, or what holds for all sessions where none of them tells otherwise, and what was learnt
tells which of them it is. Where nearly all sessions (`SURE`) are of
one world, it begins there, until what was learnt tells another one.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from ..files import rows_of
from ..records import Result
from ..world import SURE
from . import App, AppState, Name, Start, records
from .records import RecordsApp

_OPEN = "unknown: worlds answer this call differently, and it is not known yet which of them the session is of"


class SessionsApp(NamedTuple):
    """One world: its app, and the sessions of it."""

    app: RecordsApp
    session_ids: frozenset[str]


class WorldsApp(App):
    """A world for each group of sessions, and one for those that no world is known of."""

    def __init__(self, common: RecordsApp, worlds: Sequence[SessionsApp]) -> None:
        self.name = common.name
        self.common = common
        self.worlds = tuple(worlds)
        n_sessions = sum(len(world.session_ids) for world in worlds)
        has_usual = any(len(world.session_ids) >= SURE * n_sessions for world in worlds)
        self._usual = [-1 if has_usual and len(world.session_ids) < SURE * n_sessions else 0 for world in worlds]
        """What the worlds begin with in an open episode (`OpenState`)."""
        self.answers: Collection[str] = common.answers
        self.writes = common.writes.union(*(world.app.writes for world in worlds))
        self.unclear = common.unclear

    def reset(self, start: Start) -> AppState:
        if not start.session_ids:
            return OpenState([world.app.reset(start) for world in self.worlds], self.common.reset(start), self._usual)
        own = [world for world in self.worlds if start.session_ids <= world.session_ids]
        return own[0].app.reset(start) if own else self.common.reset(start)

    def next_episode(self, state: AppState, start: Start, from_reset: bool) -> AppState:
        """Reset every world: the next session may be of another one. What was learnt in one world stays known there."""
        begun = self.reset(start)
        if isinstance(state, OpenState) and isinstance(begun, OpenState) and len(state.possible) == 1:
            own = next(number for number, each in enumerate(state.states) if each is state.possible[0])
            begun.states[own] = self.worlds[own].app.next_episode(state.states[own], start, from_reset)
        return begun

    def id_forms(self, tools: Iterable[Mapping[str, Any]]) -> frozenset[str]:
        descriptors = list(tools)
        return self.common.id_forms(descriptors).union(*(world.app.id_forms(descriptors) for world in self.worlds))


class OpenState(AppState):
    """An episode of a world that is not known: the same calls in each of them."""

    def __init__(self, states: Sequence[AppState], common: AppState, scores: Sequence[int] | None = None) -> None:
        self.states = list(states)
        self._common = common
        """What holds for all sessions, of whatever world."""
        self._scores = list(scores or [0] * len(states))
        """How often a world foretold what was learnt where another one did not, less how often it was the other way round; one
        less for a world that hardly any session is of."""
        self._last: tuple[str, str, list[Result]] | None = None

    @property
    def possible(self) -> list[AppState]:
        """Return the states of the worlds that foretold most."""
        most = max(self._scores)
        return [state for state, score in zip(self.states, self._scores, strict=True) if score == most]

    def call(self, tool: str, arguments: dict[str, Any], key: str | None = None) -> Result:
        results, common = [state.call(tool, arguments, key) for state in self.states], self._common.call(tool, arguments, key)
        self._last = tool, json.dumps(arguments, sort_keys=True), results
        possible = {id(state) for state in self.possible}
        own = [result for state, result in zip(self.states, results, strict=True) if id(state) in possible]
        unknown = next((result for result in own if result.tier == "unknown"), None)
        if unknown is not None:
            holds = common.tier != "unknown" and all(result[:2] == common[:2] for result in own if result.tier != "unknown")
            return common if holds else unknown
        return own[0] if all(result[:2] == own[0][:2] for result in own) else Result(_OPEN, True, "unknown")

    def learn(self, tool: str, arguments: dict[str, Any], content: str, passing: bool = False) -> None:
        if self._last is not None and self._last[:2] == (tool, json.dumps(arguments, sort_keys=True)) and not passing:
            foretold = [None if result.tier == "unknown" else result.content == content for result in self._last[2]]
            if True in foretold and False in foretold:
                self._scores = [score + {True: 1, False: -1, None: 0}[was_right]
                                for score, was_right in zip(self._scores, foretold, strict=True)]
        self._last = None
        for state in (*self.states, self._common):
            state.learn(tool, arguments, content, passing)

    def snapshot(self) -> Any:
        return tuple([state.snapshot() for state in (*self.states, self._common)])

    def restore(self, snapshot: Any) -> None:
        for state, own in zip((*self.states, self._common), snapshot, strict=True):
            state.restore(own)

    def fork(self) -> OpenState:
        return OpenState([state.fork() for state in self.states], self._common.fork(), self._scores)

    def difference(self) -> dict[str, Any]:
        return self.possible[0].difference()

    def read(self, name: Name) -> tuple[str | None, str | None]:
        """Return the entity where all possible worlds agree on it."""
        texts = {state.read(name) for state in self.possible}
        return texts.pop() if len(texts) == 1 else (None, None)

    def may_write(self, tool: str) -> bool:
        return any(state.may_write(tool) for state in self.possible)

    def is_simulated_write(self, tool: str) -> bool:
        return any(state.is_simulated_write(tool) for state in self.possible)

    def names_known(self, tool: str, key: str) -> bool | None:
        answers = {state.names_known(tool, key) for state in self.possible}
        return answers.pop() if len(answers) == 1 else None

    @property
    def refused(self) -> tuple[tuple[str, str], ...]:
        refused, *others = (state.refused for state in self.possible)
        return tuple(call for call in refused if all(call in other for other in others))

    def close(self) -> None:
        for state in (*self.states, self._common):
            state.close()

    def examples(self, tool: str, arguments: dict[str, Any]) -> list[tuple[str, str]]:
        return self.possible[0].examples(tool, arguments)

    def bind(self, bound: dict[str, Any]) -> None:
        for state in (*self.states, self._common):
            state.bind(bound)


def load(folder: Path, row: Mapping[str, Any]) -> WorldsApp:
    """Load the app from its folder, and its worlds from theirs."""
    worlds = []
    for path in row["worlds"]:
        session_ids = frozenset(own["session_id"] for own in rows_of(folder / path / "sessions.jsonl"))
        worlds.append(SessionsApp(records.load(folder / path, row), session_ids))
    return WorldsApp(records.load(folder, row), worlds)
