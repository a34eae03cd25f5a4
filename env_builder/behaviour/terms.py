"""What refusals may compare: values that a call reaches, for the call as a whole and for each element of its lists.

In: scopes of calls that were refused and of calls that worked. Out: expressions with their values in all of them. Terms are
paths of the arguments and the document, what arguments select in these and one link away, rows that values name, lengths and
sums of lists, and the numbers that the tool's own fields are made of.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from env_builder.behaviour.examples import Expression
from env_builder.behaviour.guards import is_id
from env_builder.behaviour.joins import ways
from env_builder.runtime.expressions import Missing, Nowhere, Scope, value_of
from env_builder.runtime.linked import counted
from env_builder.runtime.tables import Table, scalars
from env_builder.world.features import features, is_number, together

NOWHERE, UNKNOWN = object(), object()
"""Stand where a path leads nowhere in what is known, and where something is not known."""
MAXIMUM_ROWS = 12
Position = tuple[list[str], Expression | None] | None
"""(list arguments, what the positions that do not count have), None: the call as a whole."""


class Term(NamedTuple):
    """An expression and its values, for each refused call and each that worked, at each of its positions."""

    expression: Expression
    bad: list[list[Any]]
    good: list[list[Any]]


def value(expression: Expression, scope: Scope) -> Any:
    """The value, or NOWHERE, or UNKNOWN."""
    try:
        return value_of(expression, scope)
    except Nowhere:
        return NOWHERE
    except Missing:
        return UNKNOWN


def scopes_of(scope: Scope, position: Position) -> list[Scope]:
    """The scopes of the positions that count; none where the arguments are no such lists."""
    if position is None:
        return [scope]
    try:
        return counted(*position, scope)
    except Missing:
        return []


def places(scopes: list[Scope], fields: dict[str, Any]) -> Iterator[Position]:
    """The call as a whole, then each of its lists; also without what the tool's fields keep from a list that was there.
    Of ways to leave positions out that leave out the same in all these calls, the first."""
    yield None
    guards: dict[str, list[Expression]] = {}
    for expression in fields.values():
        for names, guard in _kept(expression, None):
            guards.setdefault(str(names), []).append(guard)
    for names in (some for some in together(scopes[0].arguments) if len(some) == 1 or str(some) in str(fields)):
        seen: list[list[int]] = []
        for guard in (None, *guards.get(str(names), ())):
            left = [len(scopes_of(scope, (names, guard))) for scope in scopes]
            if left not in seen:
                seen.append(left)
                yield names, guard


def _kept(expression: Any, names: list[str] | None) -> Iterator[tuple[list[str], Expression]]:
    if isinstance(expression, list):
        if expression[:1] == ["rows"]:
            names = expression[1]
        if expression[:1] == ["first"] and names is not None:
            yield names, expression[1]
        for one in expression:
            yield from _kept(one, names)


def _thing(scope: Scope) -> str:
    """What the call speaks of: the ids in its document, or in its arguments where there is none."""
    return str([one for one in (scope.before or scope.arguments).values() if is_id(one)])


class Worked:
    """Calls that worked, and what they say, looked up once."""

    def __init__(self, scopes: list[Scope]) -> None:
        self._scopes = scopes
        self.things = [_thing(scope) for scope in scopes]
        """What each call speaks of."""
        self._at: dict[str, list[list[Scope]]] = {}
        self._values: dict[str, list[list[Any]]] = {}

    def at(self, position: Position) -> list[list[Scope]]:
        """The scopes of each call's positions."""
        if str(position) not in self._at:
            self._at[str(position)] = [scopes_of(scope, position) for scope in self._scopes]
        return self._at[str(position)]

    def values(self, expression: Expression, position: Position) -> Iterator[list[Any]]:
        """Its values at each call's positions, each looked up when it is asked for: most conditions fail in the first calls."""
        known = self._values.setdefault(f"{position}{expression}", [])
        for place, scopes in enumerate(self.at(position)):
            if place == len(known):
                known.append([value(expression, scope) for scope in scopes])
            yield known[place]


def measured(spoken: dict[str, Expression], position: Position, bad: list[list[Scope]], worked: Worked) -> list[Term]:
    """Terms of these expressions (by their text), of those with the same values everywhere the simplest."""
    found: dict[str, Term] = {}
    for _, e in sorted(spoken.items(), key=lambda item: (len(item[0]), item[0])):
        columns = [[value(e, scope) for scope in scopes] for scopes in bad]
        if any(seen is not UNKNOWN and seen is not NOWHERE for column in columns for seen in column):
            good = list(worked.values(e, position))
            found.setdefault(f"{_marks(columns)}{_marks(good)}", Term(e, columns, good))
    return list(found.values())


def _marks(columns: list[list[Any]]) -> str:
    return repr([["…" if seen is UNKNOWN else "-" if seen is NOWHERE else seen for seen in column] for column in columns])


def spread(term: Term, bad: list[list[Scope]], good: list[list[Scope]]) -> Term:
    """A term of the call as a whole, as each of its positions sees it."""
    return Term(term.expression, [column * len(scopes) for column, scopes in zip(term.bad, bad, strict=True)],
                [column * len(scopes) for column, scopes in zip(term.good, good, strict=True)])


def speaks_of(expression: Any, names: list[str]) -> bool:
    """Does the expression speak of one of these arguments?"""
    if not isinstance(expression, list):
        return False
    if expression[:1] == ["argument"] and expression[1:2] and expression[1] in names:
        return True
    return any(speaks_of(one, names) for one in expression)


def expressions(
    scope: Scope, position: Position, classes: tuple[str, ...], rows: Mapping[str, Table], numbers: list[Expression]
) -> Iterator[Expression]:
    """Expressions of one scope, the simplest first."""
    found = features(scope.before, scope.arguments, scope.look, classes, plain=True)
    yield from (expression for expression, _ in found)
    yield from (["length", e] for e, seen in found if isinstance(seen, list) and e[0] in ("argument", "before"))
    yield from numbers
    if position is not None:
        yield from _in_rows(scope, position[0], classes, rows)


def _in_rows(
    scope: Scope, names: list[str], classes: tuple[str, ...], rows: Mapping[str, Table]
) -> Iterator[Expression]:
    """What stands in rows that the values of this position name; a step may be named by an argument."""
    given: dict[tuple[str, ...], str] = {}
    for name in names:
        item = scope.arguments[name]
        given |= {(name, key): text for key, text in item.items() if isinstance(text, str) and text} if isinstance(
            item, dict) else {(name,): item} if isinstance(item, str) else {}
    steps = {text: name for name, text in sorted(scope.arguments.items(), reverse=True) if isinstance(text, str)}
    for entity in sorted(rows):
        columns = {
            key: sorted({path[0] for row in rows[entity].holding(text) for path, other in scalars(row)
                         if len(path) == 1 and other == text}) for key, text in given.items()}
        for keys in [[key] for key in sorted(given)] + [sorted(pair) for pair in _pairs(sorted(given))]:
            for by in ways(keys, columns)[:MAXIMUM_ROWS]:
                base: Expression = ["row", entity, [[column, ["argument", *key]] for column, key in by]]
                row = value(base, scope)
                for path, _ in scalars(row) if isinstance(row, dict) else ():
                    yield [*base, *(["argument", steps[step]] if step in steps else step for step in path)]


def _pairs(keys: list[tuple[str, ...]]) -> Iterator[tuple[tuple[str, ...], tuple[str, ...]]]:
    yield from ((one, other) for place, one in enumerate(keys) for other in keys[place + 1:])


def numbers_of(fields: dict[str, Any], arguments: dict[str, Any]) -> list[Expression]:
    """Numbers that the fields are computed from, and sums of numbers over lists of objects that were given."""
    found: dict[str, Expression] = {}
    for expression in fields.values():
        for one in _computed(expression):
            found.setdefault(str(one), one)
    for name, items in sorted(arguments.items()):
        if isinstance(items, list) and items and isinstance(items[0], dict):
            for key, seen in sorted(items[0].items()):
                if is_number(seen):
                    one = ["sum", ["rows", [name], ["argument", name, key]]]
                    found.setdefault(str(one), one)
    return list(found.values())


def _computed(expression: Any) -> Iterator[Expression]:
    """Numbers inside an expression, without those of the elements of its lists."""
    if isinstance(expression, list) and expression[:1] not in (["rows"], ["each"], ["constant"]):
        if expression[:1] in (["times"], ["minus"], ["plus"], ["sum"], ["total"], ["round"], ["absolute"]):
            yield expression
        for one in expression:
            yield from _computed(one)
