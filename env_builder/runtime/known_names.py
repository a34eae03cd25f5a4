"""Which entities exist as far as the log tells: to say of a call that nobody knows the answer to whether it names any of them.

In: facts and answers on record. Out: the naming arguments of each tool, and whether a call names what exists. An argument
*names* if nearly all values of its successful calls stand in answers of other tools, are all that another tool was asked for,
or are keys of entities, and they differ. Of numbers, answers do not count: amounts stand there too, once they were written.
A call whose naming argument, or argument with a few values to choose from, has a value that is found nowhere is surely refused:
it changes nothing, whatever the tool would say. So is one with an argument that no successful call of the tool has, if the
service refuses such calls on record (`REFUSED`). A call whose naming arguments all exist is one that may well have worked.

Sees: values as whole words of answers. Does not see: entities that exist and that no session met; refusals for other reasons.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from typing import Any

from .answers import parse

FEWEST = 5
"""Different values of an argument from which it can be seen to name."""
NEARLY_ALL = 0.95
"""Share of these that must be known from elsewhere."""
MANY_TIMES = 6
"""Times that each value of an argument was given on average, from which on its values are a list to choose from."""
REFUSED = 3
"""Different refused calls with arguments that no successful call of the tool has, from which a service refuses all of them."""
_WORD = re.compile(r"[^\s,;:\"'()\[\]{}<>|=]+")
_NUMBER = re.compile(r"[+-]?\d{1,15}(?:\.\d+)?")

Row = Mapping[str, Any]


class KnownNames:
    """All that the log names, by the tools that showed it."""

    def __init__(self, keys: Iterable[str], answers: Mapping[tuple[str, str], Iterable[Row]]) -> None:
        """`keys`: of entities; `answers`: (tool, canonical arguments) -> rows of recorded.jsonl."""
        self._keys = frozenset(keys)
        self._shown_by: dict[str, set[str]] = defaultdict(set)
        self._given: dict[tuple[str, str], Counter[str]] = defaultdict(Counter)
        self._asked_alone: dict[str, set[str]] = defaultdict(set)
        self._arguments: set[tuple[str, str]] = set()
        refused: list[tuple[str, Any]] = []
        for (tool, arguments), rows in answers.items():
            for row in rows:
                if row["is_error"]:
                    refused.append((tool, parse(arguments)))
                    continue
                for word in _WORD.findall(row["content"]):
                    self._shown_by[word.strip(".")].add(tool)
                asked = parse(arguments)
                self._arguments.update((tool, str(name)) for name in asked)
                for name, value in _scalars(asked):
                    self._given[tool, name][value] += 1
                    if len(asked) == 1:
                        self._asked_alone[value].add(tool)
        self._tools = {tool for tool, _ in self._arguments}
        self._refuses_foreign = sum(bool(self._foreign(tool, asked)) for tool, asked in refused) >= REFUSED
        self._naming: dict[str, frozenset[str]] = defaultdict(frozenset)
        self._choices: dict[tuple[str, str], frozenset[str]] = {}
        for (tool, name), counts in self._given.items():
            n_known = sum(self._is_known(value, tool) for value in counts)
            if len(counts) >= FEWEST and n_known >= NEARLY_ALL * len(counts):
                self._naming[tool] |= {name}
            elif counts.total() >= MANY_TIMES * len(counts) and not any(map(_is_quantity, counts)):
                self._choices[tool, name] = frozenset(counts)

    def strangers(self, tool: str, arguments: Any) -> list[str] | None:
        """Return the values that should be known and are found nowhere, sorted; or the names of arguments that are refused.

        None if the call names nothing, or if another of its values, or an argument's name, was never seen: nobody can say then.
        """
        if self._refuses_foreign and (foreign := self._foreign(tool, arguments)):
            return foreign
        naming, given = self._naming.get(tool, frozenset()), _scalars(arguments)
        named = {value for name, value in given if name in naming}
        others = {value for name, value in given if value not in self._choices.get((tool, name), (value,))}
        strangers = sorted(value for value in named | others if not self._is_shown(value))
        if strangers or not named:
            return strangers or None
        doubted = any(
            value not in self._given[tool, name] and not self._is_shown(value) and not self._is_within(tool, name, value)
            for name, value in given)
        return None if doubted or any((tool, str(name)) not in self._arguments for name in arguments) else []

    def _foreign(self, tool: str, arguments: Any) -> list[str]:
        """Return the names of arguments that no successful call of the tool has, sorted; none if no call has any."""
        names = map(str, arguments) if isinstance(arguments, Mapping) and tool in self._tools else ()
        return sorted(name for name in names if (tool, name) not in self._arguments)

    def _is_shown(self, value: str) -> bool:
        return value in self._keys or value in self._shown_by or value in self._asked_alone

    def _is_known(self, value: str, tool: str) -> bool:
        elsewhere = self._asked_alone.get(value, set()) | (set() if _is_quantity(value) else self._shown_by.get(value, set()))
        return value in self._keys or bool(elsewhere - {tool})

    def _is_within(self, tool: str, name: str, value: str) -> bool:
        """Return whether it is a number between numbers that the argument took in calls that worked."""
        counts = self._given[tool, name]
        if not (_is_quantity(value) and counts and all(map(_is_quantity, counts))):
            return False
        numbers = sorted(map(float, counts))
        return numbers[0] <= float(value) <= numbers[-1]


def _is_quantity(value: str) -> bool:
    return _NUMBER.fullmatch(value) is not None


def _scalars(arguments: Any) -> list[tuple[str, str]]:
    """(name, value) of the arguments that are one word or a whole number; lists of such count as several."""
    values = []
    for name, value in arguments.items() if isinstance(arguments, Mapping) else ():
        for item in value if isinstance(value, list) else [value]:
            if isinstance(item, str | int) and not isinstance(item, bool) and not any(map(str.isspace, str(item))):
                values.append((str(name), str(item)))
    return values
