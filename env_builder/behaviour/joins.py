"""Lists that a call makes of a list of objects it was given, joined with rows that other tools listed; and what that costs.

In: examples whose value after is a list. Out: an expression, or None. An item is the object given with more fields, or a new
object of them; a field is copied, kept from the list that was there, or looked up in a row by one or two columns. What comes
to the end of another list then may be computed from sums over such lists.
Sees: columns that hold the values given. Does not see: rows that no answer listed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import permutations
from typing import Any, TypeVar

from env_builder.behaviour.examples import NOTHING, Example, Expression, best, fits, same, values
from env_builder.runtime.expressions import Scope, positions
from env_builder.runtime.tables import scalars

MINIMUM_COMPUTED = 8
"""Examples that a computed amount must stand on: of the many that are tried, some fit fewer by chance."""
SAMPLES = 6
"""Elements from which candidates are made."""
MAXIMUM_CANDIDATES = 200
Key = TypeVar("Key")


def mapped(examples: list[Example], hint: list[str]) -> Expression | None:
    """One item for each object of a list argument."""
    for name in sorted(examples[0].arguments):
        inner = _elements(examples, name)
        if inner is None:
            continue
        given = ["argument", name]
        extra = list(dict.fromkeys(field for one in inner for field in one.after if field not in one.arguments[name]))
        known = {field: e for field in extra for e in [_field(inner, name, field, hint)] if e}
        if len(known) == len(extra):
            whole: Expression = ["rows", [name], ["with", given, [[field, known[field]] for field in extra]]]
            if extra and fits(whole, examples):
                return whole
        fields = list(inner[0].after)
        known |= {field: e for field in fields if field not in known for e in [_field(inner, name, field, hint)] if e}
        if len(known) >= len(fields):
            whole = ["rows", [name], ["object", [[field, known[field]] for field in fields]]]
            if fits(whole, examples):
                return whole
    return None


def _elements(examples: list[Example], name: str) -> list[Example] | None:
    """An example for each object of the argument, None where the value after is no list of one object for each."""
    found: list[Example] = []
    for one in examples:
        given, after = one.arguments.get(name), one.after
        if not isinstance(given, list) or not isinstance(after, list) or len(given) != len(after) or not given:
            return None
        if not all(isinstance(item, dict) for item in (*given, *after)):
            return None
        scopes = positions([name], Scope(one.before, one.arguments))
        found += [one._replace(arguments=scope.arguments, after=item) for scope, item in zip(scopes, after, strict=True)]
    return found


def _field(inner: list[Example], name: str, field: str, hint: list[str]) -> Expression | None:
    targets = [one._replace(after=one.after[field]) for one in inner if field in one.after]
    if len(targets) < len(inner):
        return None
    for copied in sorted(targets[0].arguments[name]):
        if fits(["argument", name, copied], targets):
            return ["argument", name, copied]
    candidates = list(_looked_up(targets, name))
    kept, row = _kept(targets, name, field, hint), best(candidates, targets)
    if kept and row and fits(["agree", row, kept], targets):  # either may be known where the other is not
        return ["agree", row, kept]
    found = [e for e in (row, _kept_or(targets, kept, candidates)) if e]
    return best(found, targets) if found else None


def _looked_up(targets: list[Example], name: str) -> Iterator[Expression]:
    """The field in a row that columns name, for the values of this element; a step may be named by an argument."""
    seen: set[str] = set()
    step = max(1, len(targets) // SAMPLES)
    for one in targets[::step][: 2 * SAMPLES]:
        given = {key: value for key, value in one.arguments[name].items() if isinstance(value, str) and value}
        for entity in sorted(one.rows):
            columns = {
                key: sorted({path[0] for row in one.rows[entity].holding(value) for path, other in scalars(row)
                             if len(path) == 1 and other == value}) for key, value in given.items()}
            for n in (1, 2):
                for keys in permutations(sorted(given), n):
                    if n == 2 and keys[0] > keys[1]:
                        continue
                    for by in ways(keys, columns):
                        base: Expression = ["row", entity, [[column, ["argument", name, key]] for column, key in by]]
                        for candidate in _paths(base, one):
                            if str(candidate) not in seen and len(seen) < MAXIMUM_CANDIDATES:
                                seen.add(str(candidate))
                                yield candidate


def ways(keys: Iterable[Key], columns: dict[Key, list[str]]) -> list[list[tuple[str, Key]]]:
    """All ways in which the values of these keys may be columns of one row."""
    found: list[list[tuple[str, Key]]] = [[]]
    for key in keys:
        found = [[*way, (column, key)] for way in found for column in columns[key] if all(column != used for used, _ in way)]
    return found


def _paths(base: Expression, one: Example) -> Iterator[Expression]:
    """Paths of the row that lead to the value after, and those where an argument names the step."""
    (row,) = values(base, [one])
    named = {value: key for key, value in sorted(one.arguments.items(), reverse=True) if isinstance(value, str)}
    if isinstance(row, dict):
        for path, value in scalars(row):
            if same(value, one.after):
                yield [*base, *(["argument", named[step]] if step in named else step for step in path)]
                yield [*base, *path]


def _kept(targets: list[Example], name: str, field: str, hint: list[str]) -> Expression | None:
    """What the list had for the same element."""
    shared = _shared_fields(targets, name, hint)
    return ["at", ["match", ["before", *hint], [[key, ["argument", name, key]] for key in shared]], field] if shared else None


def _kept_or(targets: list[Example], kept: Expression | None, candidates: list[Expression]) -> Expression | None:
    """What the list had, where it had it (and, it may be, where an argument is as before), else a row."""
    if kept is None:
        return None
    guards = [kept, *(["same", ["argument", given], ["before", own], kept] for given, own in _comparable(targets[0]))]
    right = [guard for guard in guards if not _wrong(guard, targets)]
    return best((["first", guard, candidate] for guard in right for candidate in candidates), targets)


def _shared_fields(targets: list[Example], name: str, hint: list[str]) -> list[str]:
    """Fields that the objects given have in common with those that were there."""
    common: set[str] | None = None
    for one in targets:
        (there,) = values(["before", *hint], [one])
        if isinstance(there, list) and there and all(isinstance(row, dict) for row in there):
            here = set.intersection(set(one.arguments[name]), *(set(row) for row in there))
            common = here if common is None else common & here
    return sorted(common or ())


def _comparable(one: Example) -> list[tuple[str, str]]:
    """Arguments and fields of the document that are texts, those of one name first."""
    texts = [(given, own) for given, value in one.arguments.items() if isinstance(value, str)
             for own, other in one.before.items() if isinstance(other, str)]
    return sorted(texts, key=lambda pair: (pair[0] != pair[1], pair))


def _wrong(expression: Expression, targets: list[Example]) -> bool:
    return any(value is not NOTHING and not same(value, one.after)
               for value, one in zip(values(expression, targets), targets, strict=True))


def grown(examples: list[Example], hint: list[str], others: dict[str, Expression], explain: Any) -> Expression | None:
    """The list as it was, with one object at its end where a number that `others` and the document give is not zero."""
    extra: list[list[Any]] = []
    for one in examples:
        (there,) = values(["before", *hint], [one])
        if not isinstance(there, list) or not isinstance(one.after, list) or not same(one.after[: len(there)], there):
            return None
        extra.append(one.after[len(there):])
    longer = [(one, more[0]) for one, more in zip(examples, extra, strict=True) if len(more) == 1 and isinstance(more[0], dict)]
    alike = len({tuple(item) for _, item in longer}) == 1 and not any(len(more) > 1 for more in extra)
    if len(examples) < MINIMUM_COMPUTED or not alike:
        return None
    fields: list[list[Any]] = []
    number: Expression | None = None
    for field in longer[0][1]:
        inner = [one._replace(after=item[field]) for one, item in longer]
        found = explain(inner, []) if not _numeric(inner) else None
        if found is None and _numeric(inner):
            number = found = best(_amounts(inner, others), inner)
        if found is None:
            return None
        fields.append([field, found])
    if number is None:
        return None
    shapes: list[Expression] = [
        [how, ["before", *hint], number, ["object", fields]] for how in ("append_unless_zero", "append_above")]
    right = [shape for shape in shapes if fits(shape, examples)]  # where both are, no example was below zero
    return ["agree", *right] if len(right) > 1 else right[0] if right else None


def _numeric(inner: list[Example]) -> bool:
    return all(isinstance(one.after, int | float) and not isinstance(one.after, bool) for one in inner)


def _amounts(inner: list[Example], others: dict[str, Expression]) -> Iterator[Expression]:
    """Numbers that sums over the new and the old lists give, times the length of a list; differences times a constant."""
    new = [["sum", ["rows", names, e]] for names, e in elements_of(others)]
    before = inner[0].before
    old: list[Expression] = [
        ["total", ["before", name], field] for name, rows in before.items() if isinstance(rows, list) and rows
        and all(isinstance(row, dict) for row in rows)
        for field, value in rows[0].items() if isinstance(value, int | float) and not isinstance(value, bool)]
    lengths: list[Expression] = [["length", ["before", name]] for name, rows in before.items() if isinstance(rows, list)]
    bases: list[Expression] = [*new, *(["minus", one, other] for one in new for other in old)]
    yield from bases
    yield from (["times", base, length] for base in bases for length in lengths)
    for given, value in inner[0].arguments.items():
        for own, other in before.items():
            if all(isinstance(one, int | float) and not isinstance(one, bool) for one in (value, other)) and value != other:
                factor = inner[0].after / (value - other)
                whole = int(factor) if factor == int(factor) else factor
                yield ["times", ["minus", ["argument", given], ["before", own]], ["constant", whole]]


def elements_of(fields: dict[str, Expression]) -> Iterator[tuple[list[str], Expression]]:
    """(list arguments, expression of a field of each item) in lists that the call makes anew."""
    for _, expression in sorted(fields.items()):
        if expression[0] == "rows":
            items = expression[2][2] if expression[2][0] == "with" else expression[2][1]
            yield from ((expression[1], e) for _, e in items)
