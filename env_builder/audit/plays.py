"""Plays against one task: journals that share their beginning with the known solution, each played from where they part.

In: the room, a task, its rubric and the journal of its solution. Out: episodes as a grader's replay makes them.
A journal is a list of rows; those of the solution are taken over as they are (`is`), so that a play begins at the room as it
stood before the first act that differs, and only acts are carried out again: what the solution looked up keeps its answer.
Sees: the end state, acts and words of a play. Does not see: that a look-up would have answered otherwise after another
act; so whatever gets through is played once more as a whole (`whole`), and only then counts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Literal, NamedTuple

from env_builder.runtime import Environment
from env_builder.runtime.answers import parse
from env_builder.runtime.canonical import canonical
from env_builder.runtime.ends import EndState, end_state, unreached
from env_builder.runtime.records import Episode, Task

Row = dict[str, Any]
Journal = Sequence[Row]
Kind = Literal["solution", "session", "attacker", "mutant"]
PASSES = 0.5
"""Reward above which a play has got through."""
VALUES = 3
"""Values that sessions known to be good must have given in one place before any other counts as no mistake."""


class GradedPlay(NamedTuple):
    """Who tried what on a task, and what it was worth."""

    player: str
    kind: Kind
    reward: float | None
    """None: unscored, the room cannot tell."""
    should: Literal["pass", "fail"] | None
    """What a right reward does with it; None: unknown, or it is the solution in other words."""
    description: str = ""
    """What it did."""

    @property
    def passed(self) -> bool:
        """Did it get through?"""
        return self.reward is not None and self.reward > PASSES


def call(tool: str, arguments: Mapping[str, Any]) -> Row:
    """Return a step of a journal that is yet to be played."""
    return {"kind": "call", "tool": tool, "arguments": dict(arguments)}


def say(text: str) -> Row:
    """Words of a journal."""
    return {"kind": "say", "content": text, "reply": None}


def journal_of(steps: Iterable[Mapping[str, Any]]) -> list[Row]:
    """Return the journal that a solution's or a session's steps ({"tool", "arguments"} | {"say"}) ask for."""
    return [say(step["say"]) if "say" in step else call(step["tool"], step["arguments"]) for step in steps]


def play_through(environment: Environment, task_id: str, steps: Iterable[Mapping[str, Any]]) -> None:
    """Play an episode of these steps in the environment to its end, as an agent would."""
    environment.reset(task_id, seed=0)
    for row in journal_of(steps):
        if row["kind"] == "say":
            environment.say(row["content"])
        else:
            environment.call(row["tool"], row["arguments"])
    environment.finish()


class Replayed:
    """The known solution, played as the grader plays it, and the room as it stood before each of its acts."""

    def __init__(
        self, environment: Environment, task: Task, journal: Journal, presumed_reads: frozenset[str],
        essential: Callable[[Episode], Mapping[str, Any]] = lambda episode: episode.difference,
    ) -> None:
        self._essential = essential
        """Gives what of an episode's difference counts."""
        self.environment = environment
        self.task = task
        self.writes = environment.writes
        self.presumed_reads = presumed_reads
        """Those of `writes` that look like reads, without proof."""
        twin = environment.replaying(task.task_id)
        self._forks: list[tuple[int, Environment]] = [(0, twin.fork())]
        idle: set[int] = set()
        for row in journal:
            if row["kind"] == "say":
                twin.say(row["content"])
            elif row["kind"] == "call":
                place, before = len(twin.journal), None
                if row["tool"] in self.writes:
                    self._forks.append((place, twin.fork()))
                    before = twin.difference() if row["tool"] in environment.explained else None
                twin.call(row["tool"], row["arguments"])
                if before is not None and twin.difference() == before:
                    idle.add(place)
        self._forks.append((len(twin.journal), twin))
        self.journal: list[Row] = list(twin.journal)
        self._idle = {id(self.journal[place]) for place in idle}
        """Rows of calls that are known to have changed nothing there: a click on a link, a text typed into a field."""
        self.episode = twin.episode()
        self._right = [self.episode]
        self._loose: dict[str, list[str]] | None = None

    @property
    def acts(self) -> list[int]:
        """Places in the journal of the write calls that worked; presumed reads are none."""
        return [place for place, row in enumerate(self.journal)
                if row["kind"] == "call" and not self.has_read(row) and not row["is_error"]]

    def reads(self, tool: str) -> bool:
        """Return whether the tool is proven or presumed to read only."""
        return tool not in self.writes or tool in self.presumed_reads

    def has_read(self, row: Row) -> bool:
        """Return whether a call of the solution is proven or presumed to have read only."""
        return self.reads(row["tool"]) or id(row) in self._idle

    @property
    def known_good(self) -> Sequence[Episode]:
        """Return the episodes of other sessions that are known to be good."""
        return self._right[1:]

    def before(self, place: int) -> tuple[int, Environment]:
        """(where it stands, the room there): the last one kept at or before this place of the journal; a fork."""
        at, room = next((at, room) for at, room in reversed(self._forks) if at <= place)
        return at, room.fork()

    def play(self, rows: Journal) -> Episode:
        """Return the episode of these rows."""
        shared = 0
        while shared < min(len(rows), len(self.journal)) and rows[shared] is self.journal[shared]:
            shared += 1
        start, room = self.before(shared)
        own_rows = {id(row) for row in self.journal}
        played = list(rows[:start])
        for row in rows[start:]:
            own = id(row) in own_rows
            if row["kind"] == "say" or (own and row["tool"] not in self.writes):
                played.append(row)
            else:
                result = room.call(row["tool"], row["arguments"])
                played.append(call(row["tool"], row["arguments"]) | result._asdict())
        return room.episode()._replace(journal=tuple(played))

    def whole(self, rows: Journal) -> Episode:
        """Return the episode of these rows, every one played."""
        return self.environment.replay(self.task.task_id, rows)

    def accept(self, episode: Episode) -> None:
        """Take the end of a session that is known to be good for as right as the solution's."""
        self._right.append(episode)
        self._loose = None

    def ends_just_so(self, episode: Episode) -> bool:
        """Return whether it ends just as the solution does, words included, except for downloads that were not used."""
        own, other = self.episode.difference, episode.difference
        loaded = {origin for each in (self.episode, episode) for _, origin in each.received if origin is not None}
        one, two = own["documents"], other["documents"]
        apart = {name for name in one.keys() | two.keys() if one.get(name) != two.get(name) or (name in one) != (name in two)}
        return own["write_calls"] == other["write_calls"] and all(
            (name in one) != (name in two) and _origin(one.get(name) or two.get(name)) in loaded for name in apart)

    def is_right(self, episode: Episode) -> bool:
        """Return whether it ends like the solution or a session that is known to be good, whatever the rubric says of it."""
        if self._loose is None:
            values_of: dict[tuple[str, str, str], set[str]] = {}
            for row in (row for episode in self._right for row in episode.journal):
                given = row.get("arguments")
                if row["kind"] == "call" and row["tool"] in self.writes and not row["is_error"] and isinstance(given, dict):
                    for name, value in given.items():
                        others = canonical({other: each for other, each in given.items() if other != name})
                        values_of.setdefault((row["tool"], name, others), set()).add(canonical(value))
            loose: dict[str, set[str]] = {}
            for (tool, name, _), values in values_of.items():
                if len(values) >= VALUES:
                    loose.setdefault(tool, set()).add(name)
            self._loose = {tool: sorted(names) for tool, names in sorted(loose.items())}
            self._ends = [end_state(self._essential(right), {"ignored_arguments": self._loose}) for right in self._right]
        reached: EndState = end_state(self._essential(episode), {"ignored_arguments": self._loose})
        return any(not unreached(end, reached) and not unreached(reached, end) for end in self._ends)


def _origin(document: str | None) -> Any:
    value = parse(document or "null")
    return value.get("origin") if isinstance(value, dict) else None
