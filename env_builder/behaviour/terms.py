"""What refusals may compare, and which comparisons hold in refused calls and in no call that worked.

In: scopes of calls that were refused and of calls that worked. Out: terms (expressions with their values in all of them) for
the call as a whole and for each element of its lists; conditions over these (runtime/linked.py), and where they hold in the
refused calls. Terms are paths of the arguments and the document, what arguments select in these and one link away, rows that
values name, lengths and sums of lists, and the numbers that the tool's own fields are made of. A comparison must have been
decided in some calls that worked. Sees: two values at a time. Does not see: conditions that hold together alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import permutations, product
from typing import Any, NamedTuple

from env_builder.behaviour.examples import Expression
from env_builder.behaviour.guards import is_id, is_open
from env_builder.behaviour.lists import named_rows
from env_builder.runtime.expressions import NoValue, Nowhere, Scope, compiled
from env_builder.runtime.refusals import Condition, counted
from env_builder.runtime.tables import Table, scalars
from env_builder.world.features import Feature, features, is_number, together

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
    """Return the value, or NOWHERE, or UNKNOWN."""
    try:
        return compiled(expression)(scope)
    except Nowhere:
        return NOWHERE
    except NoValue:
        return UNKNOWN


def scopes_of(scope: Scope, position: Position) -> list[Scope]:
    """Return the scopes of the positions that count; none where the arguments are no such lists."""
    if position is None:
        return [scope]
    try:
        return counted(*position, scope)
    except NoValue:
        return []


def places(scopes: list[Scope], fields: dict[str, Any]) -> Iterator[Position]:
    """Yield the call as a whole, then each of its lists; also without what the tool's fields keep from a list that was there.
    Of ways to leave positions out that leave out the same in all these calls, the first."""
    yield None
    guards: dict[str, list[Expression]] = {}
    for expression in fields.values():
        for names, guard in _kept(expression, None):
            guards.setdefault(str(names), []).append(guard)
    for names in (some for some in together(scopes[0].arguments) if len(some) == 1 or str(some) in str(fields)):
        counts: list[list[int]] = []
        for guard in (None, *guards.get(str(names), ())):
            remaining = [len(scopes_of(scope, (names, guard))) for scope in scopes]
            if remaining not in counts:
                counts.append(remaining)
                yield names, guard


def _kept(expression: Any, names: list[str] | None) -> Iterator[tuple[list[str], Expression]]:
    if isinstance(expression, list):
        if expression[:1] == ["rows"]:
            names = expression[1]
        if expression[:1] == ["first"] and names is not None:
            yield names, expression[1]
        for one in expression:
            yield from _kept(one, names)


class Worked:
    """Calls that worked, and what they say, looked up once."""

    def __init__(self, scopes: list[Scope]) -> None:
        self._scopes = scopes
        self.things = [str([one for one in (scope.before or scope.arguments).values() if is_id(one)]) for scope in scopes]
        """What each call speaks of."""
        self._at: dict[str, list[list[Scope]]] = {}
        self._features: dict[tuple[int, tuple[str, ...]], list[Feature]] = {}
        self._values: dict[str, list[list[Any]]] = {}

    def at(self, position: Position) -> list[list[Scope]]:
        if str(position) not in self._at:
            self._at[str(position)] = [scopes_of(scope, position) for scope in self._scopes]
        return self._at[str(position)]

    def features(self, scope: Scope, classes: tuple[str, ...]) -> list[Feature]:
        """Features of a scope of `at` that are plain."""
        name = id(scope), classes   # it lives as long as this does
        if name not in self._features:
            self._features[name] = features(scope.before, scope.arguments, scope.look, classes, plain=True)
        return self._features[name]

    def values(self, expression: Expression, position: Position) -> Iterator[list[Any]]:
        """Its values at each call's positions, each looked up when it is asked for: most conditions fail in the first calls."""
        values_so_far = self._values.setdefault(f"{position}{expression}", [])
        for place, scopes in enumerate(self.at(position)):
            if place == len(values_so_far):
                values_so_far.append([value(expression, scope) for scope in scopes])
            yield values_so_far[place]


def measured(spoken: dict[str, Expression], position: Position, bad: list[list[Scope]], worked: Worked) -> list[Term]:
    """Terms of these expressions (by their text), of those with the same values everywhere the simplest."""
    terms: dict[str, Term] = {}
    for _, e in sorted(spoken.items(), key=lambda item: (len(item[0]), item[0])):
        columns = [[value(e, scope) for scope in scopes] for scopes in bad]
        if any(entry is not UNKNOWN and entry is not NOWHERE for column in columns for entry in column):
            good = list(worked.values(e, position))
            terms.setdefault(f"{_marks(columns)}{_marks(good)}", Term(e, columns, good))
    return list(terms.values())


def _marks(columns: list[list[Any]]) -> str:
    return repr([["…" if value is UNKNOWN else "-" if value is NOWHERE else value for value in column] for column in columns])


def spread(term: Term, bad: list[list[Scope]], good: list[list[Scope]]) -> Term:
    """Return a term of the call as a whole, as each of its positions sees it."""
    return Term(term.expression, [column * len(scopes) for column, scopes in zip(term.bad, bad, strict=True)],
                [column * len(scopes) for column, scopes in zip(term.good, good, strict=True)])


def speaks_of(expression: Any, names: list[str]) -> bool:
    """Return whether the expression reads one of these arguments."""
    if not isinstance(expression, list):
        return False
    if expression[:1] == ["argument"] and expression[1:2] and expression[1] in names:
        return True
    return any(speaks_of(one, names) for one in expression)


def expressions(
    scope: Scope, position: Position, classes: tuple[str, ...], rows: Mapping[str, Table], numbers: list[Expression]
) -> Iterator[Expression]:
    """Expressions of one scope, the simplest first."""
    all_features = features(scope.before, scope.arguments, scope.look, classes, plain=True)
    yield from (expression for expression, _ in all_features)
    yield from (["length", e] for e, value in all_features if isinstance(value, list) and e[0] in ("argument", "before"))
    yield from numbers
    if position is not None:
        yield from _in_rows(scope, position[0], rows)


def _in_rows(scope: Scope, names: list[str], rows: Mapping[str, Table]) -> Iterator[Expression]:
    """Yield what stands in rows that the values of this position name; a step may be named by an argument."""
    given: dict[tuple[str, ...], str] = {}
    for name in names:
        item = scope.arguments[name]
        given |= {(name, key): text for key, text in item.items() if isinstance(text, str) and text} if isinstance(
            item, dict) else {(name,): item} if isinstance(item, str) else {}
    steps = {text: name for name, text in sorted(scope.arguments.items(), reverse=True) if isinstance(text, str)}
    for base in named_rows(rows, given, MAXIMUM_ROWS):
        row = value(base, scope)
        for path, _ in scalars(row) if isinstance(row, dict) else ():
            yield [*base, *(["argument", steps[step]] if step in steps else step for step in path)]


def numbers_of(fields: dict[str, Any], arguments: dict[str, Any]) -> list[Expression]:
    """Numbers that the fields are computed from, and sums of numbers over lists of objects that were given."""
    numbers: dict[str, Expression] = {}
    for expression in fields.values():
        for one in _computed(expression):
            numbers.setdefault(str(one), one)
    for name, items in sorted(arguments.items()):
        if isinstance(items, list) and items and isinstance(items[0], dict):
            for key, value in sorted(items[0].items()):
                if is_number(value):
                    one = ["sum", ["rows", [name], ["argument", name, key]]]
                    numbers.setdefault(str(one), one)
    return list(numbers.values())


def _computed(expression: Any) -> Iterator[Expression]:
    """Numbers inside an expression, without those of the elements of its lists."""
    if isinstance(expression, list) and expression[:1] not in (["rows"], ["each"], ["constant"]):
        if expression[:1] in (["times"], ["minus"], ["plus"], ["sum"], ["total"], ["round"], ["absolute"]):
            yield expression
        for one in expression:
            yield from _computed(one)


MINIMUM_CONTRAST = 3
"""Calls that worked in which a condition must have been told."""
MAXIMUM_NUMBERS = 40
MAXIMUM_VALUES = 3
COMPUTED = ("sum", "total", "times", "minus", "plus", "round", "absolute", "length")
Compare = Callable[[Any, Any], bool | None]
Truth = list[list[bool | None]]
"""Does a condition hold (None: that is not known), for each refused call at each of its positions?"""


def conditions(terms: list[Term], others: list[Term], things: list[str]) -> Iterator[tuple[Condition, Truth]]:
    """(condition, where it holds in the refused calls), each with one of `terms` at least. `things`: what each of the
    calls that worked speaks of."""
    for term in terms:
        yield from _one_of(term, things)
    texts, more = (
        [term for term in some if term.expression[0] == "argument" and _any(term.bad, str)] for some in (terms, others))
    holders, wider = ([term for term in some if _any(term.bad, dict | list)] for some in (terms, others))
    yield from _compared("strange", [*product(texts, [*holders, *wider]), *product(more, holders)], is_strange)
    numbers, rest = (
        sorted((term for term in some if _any(term.bad, int | float)), key=lambda term: (
            term.expression[0] not in COMPUTED, len(str(term.expression))))[:MAXIMUM_NUMBERS] for some in (terms, others))
    pairs = [*permutations(numbers, 2), *product(numbers, rest), *product(rest, numbers)]
    yield from _compared("less", pairs, is_less)
    once = [(one, other) for one, other in pairs if str(one.expression) < str(other.expression)]
    yield from _compared("differ", once, _differs)


def _any(columns: list[list[Any]], kind: Any) -> bool:
    return any(isinstance(value, kind) and not isinstance(value, bool) for column in columns for value in column)


def _compared(kind: str, pairs: Iterable[tuple[Term, Term]], compare: Compare) -> Iterator[tuple[Condition, Truth]]:
    for one, other in pairs:
        n_told = 0
        for first_column, right in zip(one.good, other.good, strict=True):
            outcomes = list(map(compare, first_column, right))
            if True in outcomes:
                break
            if False in outcomes:
                n_told += any(a is not NOWHERE and b is not NOWHERE and outcome is False
                              for a, b, outcome in zip(first_column, right, outcomes, strict=True))
        else:
            truth = [list(map(compare, first_column, right)) for first_column, right in zip(one.bad, other.bad, strict=True)]
            if n_told >= MINIMUM_CONTRAST and any(True in outcomes for outcomes in truth):
                yield [kind, one.expression, other.expression], truth


def is_less(one: Any, other: Any) -> bool | None:
    """Is one number below the other? None where either is none, or not known."""
    if one is NOWHERE or other is NOWHERE:
        return False
    return one < other if is_number(one) and is_number(other) else None


def _differs(one: Any, other: Any) -> bool | None:
    if one is NOWHERE or other is NOWHERE:
        return False
    return None if one is UNKNOWN or other is UNKNOWN else bool(one != other)


def is_strange(one: Any, other: Any) -> bool | None:
    """Return whether the object or list lacks the text; None where it is neither, or unknown."""
    if one is NOWHERE or other is NOWHERE:
        return False
    return one not in other if isinstance(other, dict | list) and isinstance(one, str) else None


def _one_of(term: Term, things: list[str]) -> Iterator[tuple[Condition, Truth]]:
    """Yield the term, where it takes few values, has one that it had in refused calls and in none that worked."""
    good = [value for column in term.good for value in column]
    plain = [value for column in term.bad for value in column if is_word(value)]
    values = sorted({value for value in plain if value not in good}, key=str)
    n_told = sum(any(is_word(value) for value in column) for column in term.good)
    if 0 < len(values) <= MAXIMUM_VALUES and n_told >= MINIMUM_CONTRAST and not _is_open(term, things):
        truth: Truth = [[is_word(value) and value in values if value is not UNKNOWN else None for value in column]
                        for column in term.bad]
        yield ["among", [term.expression], [[value] for value in values]], truth


def _is_open(term: Term, things: list[str]) -> bool:
    """Were so many values seen with one record only that others must be expected (Good and Turing's estimate)?"""
    occurrences = [(str(one), thing) for thing, column in zip(things, term.good, strict=True) for one in column
            if one is not NOWHERE and one is not UNKNOWN]
    return is_open(occurrences, len({thing for _, thing in occurrences}))


def is_word(value: Any) -> bool:
    """Is it a value of few: no id, no number, no list?"""
    return isinstance(value, bool) or (isinstance(value, str) and not any(map(str.isdigit, value)))
