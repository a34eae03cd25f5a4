"""Numbers that come out of others: sums, differences and products of two that were read, and the total of what one path held.

Does not see: three numbers at once, and small whole numbers, which come out of anything.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence

_LEAST = 100.0
"""A smaller whole number comes out of anything."""

_MOST = 80
"""Numbers that are looked at, the latest."""

Read = tuple[str, Sequence[tuple[str, str]]]
"""Tool, and (path, value) of what it answered."""


def reckonings(value: str, answers: Sequence[Read]) -> Iterator[str]:
    """How a number comes out of numbers in answers, as `tool path + tool path`; nothing for what is no number."""
    wanted = _number(value)
    if wanted is None or (wanted.is_integer() and abs(wanted) < _LEAST):
        return
    names = _named(answers)
    if wanted in names and " total of " in names[wanted]:
        yield names[wanted]
    for number, name in names.items():
        rest, more = round(wanted - number, 6), round(number - wanted, 6)
        if rest in names and number <= rest:
            yield " + ".join(sorted((name, names[rest])))
        if more in names:
            yield f"{name} - {names[more]}"
        if number > 1 and (factor := round(wanted / number, 6)) in names and 1 < factor <= number:
            yield " * ".join(sorted((name, names[factor])))


def _named(answers: Sequence[Read]) -> dict[float, str]:
    """Number -> the tool and path that showed it, the latest first."""
    names: dict[float, str] = {}
    for tool, held in reversed(answers):
        by_path: dict[str, list[float]] = defaultdict(list)
        for path, value in held:
            if (number := _number(value)) is not None:
                by_path[path].append(number)
        for path, numbers in by_path.items():
            for number in numbers:
                names.setdefault(number, f"{tool} {path.removeprefix('.')}")
            if len(numbers) > 1:
                names.setdefault(round(sum(numbers), 6), f"{tool} total of {path.removeprefix('.')}")
    return dict(list(names.items())[:_MOST])


def _number(value: str) -> float | None:
    if not (value[-1:].isdecimal() and value.removeprefix("-")[:1].isdecimal() and len(value) < 16):
        return None
    try:
        return round(float(value), 6)
    except ValueError:
        return None
