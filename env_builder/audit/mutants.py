"""Mutants: the known solution with one thing changed that a right reward must notice.

In: the solution, replayed, and what else could stand in its calls. Out: journals, each by one operator:
`dropped` (an act is left out), `doubled` (done twice: as it was, or with another value), `added` (another act that works is
done too), `swapped` (another thing of the same kind is acted on), `argument` (another value, an element more or less, an
optional argument left out). Which of many possible mutants are played is decided by hashes: the same ones each time.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain, islice, zip_longest
from typing import Any, Literal, NamedTuple

from env_builder.audit.plays import Journal, Replayed, Row, call
from env_builder.audit.values import Path, Plausible, alike, leaves, place_of, put, shown_in
from env_builder.runtime.canonical import canonical, digest

Operator = Literal["dropped", "doubled", "added", "swapped", "argument"]
OPERATORS: tuple[Operator, ...] = ("dropped", "doubled", "added", "swapped", "argument")
Changes = Iterator[tuple[dict[str, Any], str]]
"""Changed arguments, and what was changed."""
TRIES = 6
"""Calls that are tried for each act that is to be added."""


class Mutant(NamedTuple):
    """One change of the solution."""

    operator: Operator
    place: int
    """Where in the journal."""
    rows: Journal
    says: str


class Maker:
    """Makes the mutants of one task."""

    def __init__(self, solved: Replayed, values: Plausible) -> None:
        self._solved = solved
        self._values = values
        heard = [message["content"] for message in solved.task.opening if message["role"] == "user"]
        answers = [row["content"] for row in solved.journal if row["kind"] == "call" and row["tool"] not in solved.writes]
        self.shown = shown_in([*heard, *solved.task.user_turns, *answers])

    def mutants(self, most: int) -> Iterator[Mutant]:
        """At most `most` with other values by each operator an act (one less of the doubled), and `most` added ones; every act
        dropped, and doubled as it is."""
        journal = self._solved.journal
        for place in self._solved.acts:
            row, before, after = journal[place], journal[:place], journal[place + 1:]
            yield Mutant("dropped", place, [*before, *after], "")
            yield Mutant("doubled", place, [*before, row, call(row["tool"], row["arguments"]), *after], "")
            for arguments, says in islice(chain(self._swapped(row), self._changed(row)), most - 1):
                yield Mutant("doubled", place, [*before, row, call(row["tool"], arguments), *after], f"again with {says}")
            both: tuple[tuple[Operator, Changes], ...] = (("swapped", self._swapped(row)), ("argument", self._changed(row)))
            for operator, changes in both:
                for arguments, says in islice(changes, most):
                    yield Mutant(operator, place, [*before, call(row["tool"], arguments), *after], says)
        for row in islice(self.added(), most):
            says = f"{row['tool']} {canonical(row['arguments'])}"[:120]
            yield Mutant("added", len(journal), [*journal, row], says)

    def added(self) -> Iterator[Row]:
        """Acts beyond the solution's that work at its end and change something."""
        _, end = self._solved.before(len(self._solved.journal))
        there = end.difference()
        tools = sorted(self._solved.writes, key=lambda tool: digest(f"{self._solved.task.task_id} {tool}"))
        tried = chain.from_iterable(zip_longest(*(islice(self._acts(tool), TRIES) for tool in tools)))
        for row in (row for row in tried if row is not None):
            room = end.fork()
            if not room.call(row["tool"], row["arguments"]).is_error and room.difference() != there:
                yield row

    def _acts(self, tool: str) -> Iterator[Row]:
        """Calls of the tool on record, as they are and then at what the agent was shown; each task begins elsewhere."""
        for arguments in self._values.calls(tool, digest(f"{self._solved.task.task_id} {tool}")):
            yield call(tool, arguments)
            turned = self._turned(arguments)
            if turned != arguments:
                yield call(tool, turned)

    def _turned(self, arguments: dict[str, Any]) -> dict[str, Any]:
        """The arguments with the names that the agent was shown in the place of those of the same shape."""
        for path, value in leaves(arguments):
            if isinstance(value, str) and (near := [word for word in self.shown if alike(word, value)]):
                arguments = put(arguments, path, near[int(digest(value)[:4], 16) % len(near)])
        return arguments

    def _swapped(self, row: Row) -> Changes:
        return self._instead(row, [(path, value) for path, value in leaves(row["arguments"]) if self._names(value)])

    def _changed(self, row: Row) -> Changes:
        """Other values in turn with other lists and without optional arguments."""
        tool, arguments = row["tool"], row["arguments"]
        plain = [(path, value) for path, value in leaves(arguments)
                 if not self._names(value) and not self._values.is_free(tool, place_of(path))]
        ways = (self._instead(row, plain), self._lists(arguments), self._without(tool, arguments))
        yield from (one for one in chain.from_iterable(zip_longest(*ways)) if one is not None)

    def _names(self, value: Any) -> bool:
        return self._values.is_name(value, self.shown)

    def _instead(self, row: Row, spots: Iterable[tuple[Path, Any]]) -> Changes:
        """The arguments with another value at one of the spots; every spot once before any twice."""
        def at(path: Path, value: Any) -> Changes:
            for other in self._values.others(row["tool"], path, value, self.shown):
                yield put(row["arguments"], path, other), f"{'.'.join(map(str, path))}: {canonical(other)}"[:120]

        ordered = sorted(spots, key=lambda spot: digest(canonical([self._solved.task.task_id, list(spot[0])])))
        ways = zip_longest(*(at(path, value) for path, value in ordered))
        yield from (one for one in chain.from_iterable(ways) if one is not None)

    def _lists(self, arguments: dict[str, Any]) -> Changes:
        """Lists with an element less, and with one more."""
        for name, value in arguments.items():
            if not isinstance(value, list) or not value:
                continue
            if len(value) > 1:
                yield arguments | {name: value[1:]}, f"{name} without its first"
            more = next((word for word in self.shown if isinstance(value[0], str) and word not in value
                         and alike(word, value[0])), value[0])
            yield arguments | {name: [*value, more]}, f"{name} with {canonical(more)} more"

    def _without(self, tool: str, arguments: dict[str, Any]) -> Changes:
        for name in sorted(arguments):
            if self._values.is_optional(tool, name):
                yield {other: value for other, value in arguments.items() if other != name}, f"without {name}"
