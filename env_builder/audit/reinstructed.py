"""Tasks that a changed sentence of the instructions made wrong: good sessions of their family act otherwise since.

In: the tasks of a log that a session did well, with its instructions and the tools that it called; and the sentences of
instructions that came or went. Out: by family, the tools that decide. Each family's tasks are laid out in time. Where those up
to an instant call a tool and none does since, or the other way round, beyond chance, and a sentence stands in the instructions
of all on one side and of none on the other, tasks that begin before show another right outcome than today's. Where this does
not hold of a family, it may of the part that a sentence names: requests that have a word of it ("gold"), or more, or less, of
what it counts ("at most 3 bags"). The same evidence is required of the part. Sees: five such tasks since the change, users'
words. Does not see: a condition that the sentence states in other words than the users, on an amount without a noun, or on a
record; two conditions at once; which of several sentences that changed together decides; what agents say; instructions that no
session shows. Such tasks keep the instructions of their own session.
Whether a tool may write, so that the outcome is another one, is for the caller to say.
"""

from __future__ import annotations

import operator
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import product
from typing import Any, NamedTuple

from env_builder.runtime.records import Task
from env_builder.runtime.user import stated, telling

FEWEST = 5
"""Tasks of a family since the change that sessions did well, at least."""
BY_CHANCE = 1e-7


class ServedTask(NamedTuple):
    """A task that a session did well."""

    family: str
    starts_at: str
    tools: frozenset[str]
    """Tools that the session called."""
    instructions: str
    """Those that the session began with, with single spaces between words."""
    request: str = ""
    """All that the user said."""


class NamedPart(NamedTuple):
    """The part of a family that a sentence names."""

    word: str = ""
    """One that the request has; empty: it counts something."""
    counted: str = ""
    """What is counted, without a plural's s."""
    limit: int = 0
    is_above: bool = True
    """More than the limit? Else less."""
    is_included: bool = True
    """The limit itself too?"""

    def holds(self, request: str) -> bool:
        """Return whether a request is of this part; False where it does not say."""
        if self.word:
            return self.word in telling(request)
        return any((n == self.limit and self.is_included) or (n != self.limit and (n > self.limit) == self.is_above)
                   for noun, n in _counts(request) if noun == self.counted)

    def __str__(self) -> str:
        """Return it in words."""
        if self.word:
            return f'requests with "{self.word}"'
        relation = {(True, True): "at least", (True, False): "more than", (False, True): "at most", (False, False): "less than"}
        return f"requests of {relation[self.is_above, self.is_included]} {self.limit} {self.counted}"


class Reinstructed(NamedTuple):
    """What good sessions of a family do otherwise."""

    tool: str
    last: str
    """ISO instant at which the last of those began that do as before."""
    since: str
    """ISO instant at which the first of the others began."""
    sentence: str
    is_said: bool
    """Does the sentence stand in the instructions since? Else it did before."""
    is_called: bool
    """Do they call the tool since? Else they did before."""
    part: NamedPart | None = None
    """The requests of the family that it decides; None: all."""

    def speaks_against(self, task: Task, steps: Iterable[Mapping[str, Any]]) -> bool:
        """Return whether a known solution does what is not done since. `task`: one of the family."""
        calls = any(step.get("tool") == self.tool for step in (*task.prefix, *steps))
        is_before = task.starts_at is not None and task.starts_at <= self.last
        return is_before and calls != self.is_called and (self.part is None or self.part.holds(_request_of(task)))


def reinstructed(served: Iterable[ServedTask], sentences: Collection[str]) -> dict[str, list[Reinstructed]]:
    """Return the changes of each family. `sentences`: those that came or went, with single spaces between words."""
    families: dict[str, list[ServedTask]] = defaultdict(list)
    for one in served if sentences else ():
        families[one.family].append(one)
    changes: dict[str, list[Reinstructed]] = {}
    for family, tasks in sorted(families.items()):
        in_time = sorted(tasks, key=lambda each: each.starts_at)
        tools = sorted(frozenset[str]().union(*(each.tools for each in in_time)))
        own = [_of_tool(in_time, tool, is_called, sentences) or _of_part(in_time, tool, is_called, sentences)
               for tool in tools for is_called in (False, True)]
        changes[family] = [each for each in own if each is not None]
    return changes


def _of_part(in_time: list[ServedTask], tool: str, is_called: bool, sentences: Collection[str]) -> Reinstructed | None:
    """Return the change of a part of the family that one of the sentences names, of several the largest."""
    sized: list[tuple[int, Reinstructed]] = []
    for sentence in sorted(sentences):
        for part in _parts_named(sentence):
            own = [each for each in in_time if part.holds(each.request)]
            change = _of_tool(own, tool, is_called, [sentence]) if len(own) < len(in_time) else None
            sized += [(len(own), change._replace(part=part))] if change is not None else []
    return max(sized, key=operator.itemgetter(0), default=(0, None))[1]


def _parts_named(sentence: str) -> Iterator[NamedPart]:
    """Yield the parts of a family that a sentence may be about."""
    for word in sorted(telling(sentence)):
        yield NamedPart(word)
    for noun, limit in sorted(_counts(sentence)):
        for is_above, is_included in product((True, False), repeat=2):
            yield NamedPart("", noun, limit, is_above, is_included)


def _counts(text: str) -> Iterator[tuple[str, int]]:
    """Yield what a text counts: noun, number."""
    for kind, value in stated(text):
        if kind == "count":
            number, _, noun = value.partition(" ")
            yield noun, int(number)


def _request_of(task: Task) -> str:
    return "\n".join([*(message["content"] for message in task.opening if message["role"] == "user"), *task.user_turns])


def _of_tool(in_time: list[ServedTask], tool: str, is_called: bool, sentences: Collection[str]) -> Reinstructed | None:
    """Return the change since which all call the tool (`is_called`), or none does."""
    last = last_beyond_chance([(tool in each.tools) != is_called for each in in_time], FEWEST, BY_CHANCE)
    if last is None:
        return None
    before, since = in_time[:last + 1], in_time[last + 1:]
    for sentence in sorted(sentences, key=lambda each: (-len(telling(each) & telling(tool.replace("_", " "))), each)):
        then, now = ([sentence in each.instructions for each in part] for part in (before, since))
        if (all(now) and not any(then)) or (all(then) and not any(now)):
            return Reinstructed(tool, before[-1].starts_at, since[0].starts_at, sentence, all(now), is_called)
    return None


def last_beyond_chance(hits: Sequence[bool], fewest: int, by_chance: float) -> int | None:
    """Return the place of the last hit, where chance does not explain that so many, at least `fewest`, follow without one."""
    if True not in hits:
        return None
    last = max(place for place, hit in enumerate(hits) if hit)
    n_after = len(hits) - 1 - last
    missed = (hits[:last].count(False) + 1) / (last + 2)
    return last if n_after >= fewest and missed ** n_after < by_chance else None
