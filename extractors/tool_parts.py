"""Tools that do what one of their arguments says, as a tool for each of its values: an entry point with an action or a method.

In: turns. Out: turns whose calls of such a tool have the name of its part (`warehouse.records.part_name`). An argument
decides if the names of the other fields of a call and of its answer predict its value much better than the commonest value
does (Goodman and Kruskal's lambda, leave-one-out). Values that are methods of HTTP decide by their standard; if some values
are verbs of reading and others are not, a weaker prediction is enough. A value with a digit names an entity, and decides
nothing. A second argument may decide a part further.

Does not see: arguments inside of others, or without a few short values; a language (a statement, a command line); actions that
are given and answer the same.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import orjson
import polars as pl

from warehouse.records import part_name

MOST_CALLS = 3000
"""Calls of a tool that are looked at: those whose ids come first, whatever their order."""
FEWEST_CALLS, FEWEST_OF_VALUE, FEWEST_SESSIONS = 20, 3, 2
"""Calls that worked of a tool, and of a value, and sessions with a value, from which it counts."""
MOST_VALUES, CALLS_PER_VALUE = 60, 4
"""Values of an argument that decides, and calls for each on the average, at least."""
GIVEN, OF_COUNTED = 0.95, 0.8
"""Share of the calls that have the argument, and whose value counts."""
SPARED, SPARED_BY_VERBS = 0.7, 0.3
"""Share of the mistakes of naming the commonest value that the fields spare, from which the argument decides."""
_VALUE = re.compile(r"[A-Za-z_][\w.:/ -]{0,39}")
_ARGUMENT = re.compile(r"[A-Za-z_]\w*")
_METHODS = frozenset(("get", "head", "options", "post", "put", "patch", "delete"))
"""RFC 9110, 9.3; RFC 5789."""
_LOOKS = re.compile(
    r"(?i)(?:.*[^a-z])?(?:get|list|find|search|read|look|lookup|show|fetch|view|query|check|count|describe)(?:[^a-z].*)?")
_DEEPEST = 2

Form = tuple[frozenset[str], frozenset[str]]
"""Names of the fields that a call is given, and that its answer has."""


class DecidedCall(NamedTuple):
    """A call that worked."""

    session_id: str
    arguments: dict[str, Any]
    answer: Any
    """The answer as JSON value; None if it is not JSON."""


class DecidingArgument(NamedTuple):
    """An argument of a tool (or of a part of it) that decides what is done."""

    service: str
    tool: str
    argument: str
    values: frozenset[str]


def in_parts(turns: pl.DataFrame) -> pl.DataFrame:
    """Return the turns with the parts of tools as their tools."""
    return applied(decisions(turns.lazy()), turns)


def applied(deciding: Iterable[DecidingArgument], turns: pl.DataFrame) -> pl.DataFrame:
    """Name the calls of some turns by these decisions, in their order."""
    for service, tool, argument, values in deciding:
        value = pl.col("arguments").str.json_path_match(f"$.{argument}")
        is_part = ((pl.col("kind") == "call") & (pl.col("service") == service) & (pl.col("tool") == tool)
                   & value.is_in(sorted(values)))
        names = {value: part_name(tool, argument, value) for value in sorted(values)}
        turns = turns.with_columns(
            pl.when(is_part.fill_null(False)).then(value.replace_strict(names, default=None)).otherwise("tool").alias("tool"))
    return turns


def decisions(turns: pl.LazyFrame) -> list[DecidingArgument]:
    """Return what decides, of a tool before its parts."""
    return [each for service, tool, calls in _calls(turns) for each in _decisions(service, tool, calls)]


def _calls(turns: pl.LazyFrame) -> Iterator[tuple[str, str, list[DecidedCall]]]:
    """Yield each tool with enough calls."""
    made = turns.filter((pl.col("kind") == "call") & pl.col("tool").is_not_null() & pl.col("arguments").is_not_null())
    own = ["service", "tool"]
    chosen = made.select(*own, "turn_id").filter(
        (pl.len().over(own) >= FEWEST_CALLS) & (pl.col("turn_id").rank("ordinal").over(own) <= MOST_CALLS)).collect()
    if chosen.is_empty():
        return
    columns = "session_id", "arguments", "content", "is_error"
    rows = made.join(chosen.lazy().select("turn_id"), on="turn_id", how="semi").select(*own, "turn_id", *columns).collect()
    for (service, tool), group in rows.sort(*own, "turn_id").group_by(own, maintain_order=True):
        calls = [call for row in group.select(columns).iter_rows() if (call := _read(*row)) is not None]
        yield str(service), str(tool), calls


def _read(session_id: str, arguments: str, content: str | None, is_error: bool | None) -> DecidedCall | None:
    """Return a call that worked, None for another one."""
    given, answer = _parsed(arguments), _parsed(content)
    if is_error or content is None or not isinstance(given, dict) or _has_failed(answer):
        return None
    return DecidedCall(session_id, given, answer)


def _has_failed(answer: Any) -> bool:
    """Return whether an answer says so by a field of errors, or by a flag that comes first."""
    return isinstance(answer, dict) and (any(answer.get(name) for name in ("error", "errors")) or next(
        iter(answer.values()), None) is False)


def _parsed(text: str | None) -> Any:
    try:
        return orjson.loads(text or "")
    except orjson.JSONDecodeError:
        return None


def _decisions(
    service: str, tool: str, calls: list[DecidedCall], taken: frozenset[str] = frozenset(),
) -> Iterator[DecidingArgument]:
    """Yield the argument that decides best of a tool, and what decides further of its parts."""
    if len(calls) < FEWEST_CALLS:
        return
    candidates = [(spared, argument, values) for argument in sorted({name for call in calls for name in call.arguments} - taken)
                  if (values := _values(calls, argument)) and (spared := _spared(calls, argument, values))]
    if not candidates:
        return
    _, argument, values = max(candidates, key=lambda each: (each[0], each[1]))
    yield DecidingArgument(service, tool, argument, values)
    for value in sorted(values):
        own = [call for call in calls if call.arguments.get(argument) == value]
        yield from _decisions(service, part_name(tool, argument, value), own, taken | {argument})


def _values(calls: list[DecidedCall], argument: str) -> frozenset[str]:
    """Return the values of an argument that may decide; none where they are other than a few short names."""
    values = [call.arguments.get(argument) for call in calls]
    counts = Counter(value for value in values if isinstance(value, str) and _VALUE.fullmatch(value))
    sessions: dict[str, set[str]] = defaultdict(set)
    for call, value in zip(calls, values, strict=True):
        sessions[str(value)].add(call.session_id)
    frequent = [n for value, n in counts.items() if n >= FEWEST_OF_VALUE and len(sessions[value]) >= FEWEST_SESSIONS]
    is_few = 2 <= len(counts) <= min(MOST_VALUES, len(calls) // CALLS_PER_VALUE)
    counts_enough = counts.total() >= GIVEN * len(calls) and sum(frequent) >= OF_COUNTED * len(calls)
    n_named = sum(any(map(str.isdigit, value)) for value in counts)   # a value with a digit names a thing, not a deed
    is_fit = _ARGUMENT.fullmatch(argument) and is_few and counts_enough and len(frequent) > 1 and 2 * n_named <= len(counts)
    return frozenset(counts) if is_fit else frozenset()


def _spared(calls: list[DecidedCall], argument: str, values: frozenset[str]) -> float:
    """Return how well fields tell the value, 0 where not well enough for it to decide what is done."""
    if values and {value.lower() for value in values} <= _METHODS:
        return 1.0
    made = [(str(call.arguments.get(argument)), _form(call, argument)) for call in calls]
    n_of_value, n_of_form = Counter(value for value, _ in made), defaultdict[Form, Counter[str]](Counter)
    for value, form in made:
        n_of_form[form][value] += 1
    base = len(made) - max(n_of_value.values())
    spared = (base - sum(_is_mistaken(value, n_of_form[form]) for value, form in made)) / base if base else 0.0
    n_looks = sum(_LOOKS.fullmatch(value) is not None for value in values)
    return spared if spared >= (SPARED_BY_VERBS if 0 < n_looks < len(values) else SPARED) else 0.0


def _is_mistaken(value: str, alike: Counter[str]) -> bool:
    """Return whether the other calls with the same fields tell another value."""
    others = max((n for other, n in alike.items() if other != value), default=0)
    return alike[value] - 1 <= others


def _form(call: DecidedCall, argument: str) -> Form:
    """Return the fields of a call; one that has the value's own name is what was asked for, not another form."""
    given = {name: value for name, value in call.arguments.items() if name != argument}
    answered = (name.replace(f".{call.arguments.get(argument)}", ".*") for name in _names(call.answer, _DEEPEST))
    return frozenset(_names(given, _DEEPEST)), frozenset(answered)


def _names(value: Any, depth: int, path: str = "") -> Iterator[str]:
    """Yield the paths of the fields that have a value; of a list, those of its first element."""
    if isinstance(value, list):
        yield f"{path}[]"
        yield from _names(value[0] if value else None, depth, f"{path}[]")
    elif isinstance(value, dict) and depth:
        for name, member in value.items():
            if member not in (None, "", {}, []):
                yield f"{path}.{name}"
                yield from _names(member, depth - 1, f"{path}.{name}")
