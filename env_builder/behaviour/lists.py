"""Lists that a call makes: of the list that was there, or of a list of objects it was given, joined with rows of other tools.

In: examples whose value after is a list, the path of the list in the document before, and `explain` for what is inside. Out: an
expression, or None. Of the list that was there: something at its end, or some of its objects changed. Of a list given: each
object with more fields, or a new object of them; a field is copied, kept from the list that was there, or read in a row by one
or two columns. What comes to the end of another list then may be computed from sums over such lists. Sees: columns that hold
the values given. Does not see: rows that no answer listed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from itertools import combinations, islice, product
from typing import Any

from env_builder.behaviour.examples import NOTHING, Expression, WriteExample, best, fits, same, values
from env_builder.runtime.expressions import Scope, positions
from env_builder.runtime.tables import Table, scalars
from env_builder.world.features import is_number, together

MAXIMUM_ITEMS = 3
Change = tuple[dict[str, Any], WriteExample, dict[str, Any]]
"""(object before, example of what it became, the arguments at the last position)."""
Explain = Callable[[list[WriteExample], list[str]], Expression | None]


def extended(examples: list[WriteExample], hint: list[str], explain: Explain) -> Expression | None:
    """Return the list as it was with something at its end: one item for each that was there, or a fixed number of items."""
    pairs = _grown(examples, hint)
    if pairs is None:
        return None
    if all(len(old) == len(extra) for old, extra in pairs) and any(len(old) > 1 for old, _ in pairs):
        items = [example._replace(before=item, after=new) for example, (old, extra) in zip(examples, pairs, strict=True)
                 for item, new in zip(old, extra, strict=True)]
        each = explain(items, []) if items else None
        return each and ["concat", ["before", *hint], ["each", ["before", *hint], each]]
    n, *others = {len(extra) for _, extra in pairs}
    if others or not 0 < n <= MAXIMUM_ITEMS:
        return None
    added = [explain([one._replace(after=extra[index]) for one, (_, extra) in zip(examples, pairs, strict=True)], [])
             for index in range(n)]
    return None if None in added else ["append", ["before", *hint], *added]


def _grown(examples: list[WriteExample], hint: list[str]) -> list[tuple[list[Any], list[Any]]] | None:
    """Return (the list as it was, what came to its end) of each example, or None where one is not a list that grew so."""
    pairs: list[tuple[list[Any], list[Any]]] = []
    for old, one in zip(values(["before", *hint], examples), examples, strict=True):
        if not isinstance(old, list) or not isinstance(one.after, list) or not same(one.after[: len(old)], old):
            return None
        pairs.append((old, one.after[len(old):]))
    return pairs


def replaced(examples: list[WriteExample], hint: list[str], explain: Explain) -> Expression | None:
    """Return the list of objects as it was, with those changed that an argument names, position by position."""
    first = examples[0]
    (rows,) = values(["before", *hint], [first])
    if not hint or not isinstance(rows, list) or not rows or not isinstance(first.after, list):
        return None
    for names in together(first.arguments):
        for key in names:
            wanted = first.arguments[key][0]
            for field in [field for row in rows if isinstance(row, dict) for field in row if same(row[field], wanted)][:1]:
                replacement = _replaced_by(examples, hint, names, key, field, explain)
                if replacement is not None and fits(replacement, examples):
                    return replacement
    return None


def _replaced_by(
    examples: list[WriteExample], hint: list[str], names: list[str], key: str, field: str, explain: Explain
) -> Expression | None:
    inner: list[Change] = []
    for example in examples:
        changed = _changed(example, hint, names, key, field)
        if changed is None:
            return None
        inner += changed
    if not inner or any(list(old) != list(one.after) for old, one, _ in inner):
        return None
    changes = []
    for name in inner[0][0]:
        if all(name in old and same(old[name], one.after[name]) for old, one, _ in inner):
            continue
        expression = explain([one._replace(after=one.after[name]) for _, one, _ in inner], [])
        if expression is None:  # a loop may leave its last element where each had its own
            last = explain([one._replace(after=one.after[name], arguments=end) for _, one, end in inner], [])
            expression = last and ["last", last]
        if expression is None:
            return None
        changes.append([name, expression])
    return ["replace", ["before", *hint], field, names, ["argument", key], changes]


def _changed(example: WriteExample, hint: list[str], names: list[str], key: str, field: str) -> list[Change] | None:
    """Return the change at each position; None where the list changed in another way."""
    (rows,) = values(["before", *hint], [example])
    after = example.after
    if rows is NOTHING or not isinstance(after, list) or len(rows) != len(after):
        return None
    if not all(isinstance(example.arguments.get(name), list) for name in names):
        return None
    if len({len(example.arguments[name]) for name in names}) != 1:
        return None
    changes: dict[int, Change] = {}
    for scope in positions(names, Scope(example.before, example.arguments)):
        places = [place for place, row in enumerate(rows) if isinstance(row, dict) and row.get(field) == scope.arguments[key]
                  and place not in changes]
        if not places or not isinstance(after[places[0]], dict):
            return None
        new = example._replace(arguments=scope.arguments, after=after[places[0]])
        changes[places[0]] = (rows[places[0]], new, scope.last)
    kept = all(same(old, new) for place, (old, new) in enumerate(zip(rows, after, strict=True)) if place not in changes)
    return list(changes.values()) if kept else None


MINIMUM_COMPUTED = 8
"""Examples that a computed amount must stand on: of the many that are tried, some fit fewer by chance."""
SAMPLES = 6
"""Elements from which candidates are made."""
MAXIMUM_CANDIDATES = 200


def mapped(examples: list[WriteExample], hint: list[str]) -> Expression | None:
    """One item for each object of a list argument."""
    for name in sorted(examples[0].arguments):
        inner = _elements(examples, name)
        if inner is None:
            continue
        given = ["argument", name]
        extra = list(dict.fromkeys(field for one in inner for field in one.after if field not in one.arguments[name]))
        expressions = {field: e for field in extra for e in [_field(inner, name, field, hint)] if e}
        if len(expressions) == len(extra):
            whole: Expression = ["rows", [name], ["with", given, [[field, expressions[field]] for field in extra]]]
            if extra and fits(whole, examples):
                return whole
        fields = list(inner[0].after)
        missing = [field for field in fields if field not in expressions]
        expressions |= {field: e for field in missing for e in [_field(inner, name, field, hint)] if e}
        if len(expressions) >= len(fields):
            whole = ["rows", [name], ["object", [[field, expressions[field]] for field in fields]]]
            if fits(whole, examples):
                return whole
    return None


def _elements(examples: list[WriteExample], name: str) -> list[WriteExample] | None:
    """Return an example for each object of the argument, None where the value after is no list of one object for each."""
    item_examples: list[WriteExample] = []
    for one in examples:
        given, after = one.arguments.get(name), one.after
        if not isinstance(given, list) or not isinstance(after, list) or len(given) != len(after) or not given:
            return None
        if not all(isinstance(item, dict) for item in (*given, *after)):
            return None
        scopes = positions([name], Scope(one.before, one.arguments))
        item_examples += [
            one._replace(arguments=scope.arguments, after=item) for scope, item in zip(scopes, after, strict=True)]
    return item_examples


def _field(inner: list[WriteExample], name: str, field: str, hint: list[str]) -> Expression | None:
    targets = [one._replace(after=one.after[field]) for one in inner if field in one.after]
    if len(targets) < len(inner):
        return None
    for copied in sorted(targets[0].arguments[name]):
        if fits(["argument", name, copied], targets):
            return ["argument", name, copied]
    candidates = list(_looked_up(targets, name))
    common: set[str] | None = None
    for one in targets:
        (there,) = values(["before", *hint], [one])
        if isinstance(there, list) and there and all(isinstance(row, dict) for row in there):
            here = set.intersection(set(one.arguments[name]), *(set(row) for row in there))
            common = here if common is None else common & here
    by = [[key, ["argument", name, key]] for key in sorted(common or ())]  # what the list had for the same element
    kept: Expression | None = ["at", ["match", ["before", *hint], by], field] if by else None
    row = best(candidates, targets)
    if kept and row and fits(["agree", row, kept], targets):  # either may be known where the other is not
        return ["agree", row, kept]
    candidates_for_field = [e for e in (row, _kept_or(targets, kept, candidates)) if e]
    return best(candidates_for_field, targets) if candidates_for_field else None


def _looked_up(targets: list[WriteExample], name: str) -> Iterator[Expression]:
    """Yield the field in a row that columns name, for the values of this element; a step may be named by an argument."""
    tried: set[str] = set()
    step = max(1, len(targets) // SAMPLES)
    for one in targets[::step][: 2 * SAMPLES]:
        given: dict[tuple[str, ...], str] = {
            (name, key): text for key, text in one.arguments[name].items() if isinstance(text, str) and text}
        for candidate in (candidate for base in named_rows(one.rows, given) for candidate in _paths(base, one)):
            if str(candidate) not in tried and len(tried) < MAXIMUM_CANDIDATES:
                tried.add(str(candidate))
                yield candidate


def named_rows(
    rows: Mapping[str, Table], given: Mapping[tuple[str, ...], str | int], most: int | None = None
) -> Iterator[Expression]:
    """Yield rows named by one or two columns that hold the texts `given`, by path of the argument; `most` ways of each."""
    for entity in sorted(rows):
        columns = {
            path: sorted({column[0] for row in rows[entity].holding(text) for column, other in scalars(row)
                          if len(column) == 1 and other == text}) for path, text in given.items()}
        for paths in (paths for n in (1, 2) for paths in combinations(sorted(given), n)):
            several = (by for by in product(*(columns[path] for path in paths)) if len(set(by)) == len(by))
            for by in islice(several, most):
                yield ["row", entity, [[column, ["argument", *path]] for column, path in zip(by, paths, strict=True)]]


def _paths(base: Expression, one: WriteExample) -> Iterator[Expression]:
    """Paths of the row that lead to the value after, and those where an argument names the step."""
    (row,) = values(base, [one])
    named = {value: key for key, value in sorted(one.arguments.items(), reverse=True) if isinstance(value, str)}
    if isinstance(row, dict):
        for path, value in scalars(row):
            if same(value, one.after):
                yield [*base, *(["argument", named[step]] if step in named else step for step in path)]
                yield [*base, *path]


def in_row(examples: list[WriteExample]) -> Expression | None:
    """Return what stands in the row that one or two arguments name."""
    candidates = (expression for one in examples[:SAMPLES] for expression, value in row_values(one) if same(value, one.after))
    return best(islice(candidates, MAXIMUM_CANDIDATES), examples)


def row_values(one: WriteExample) -> Iterator[tuple[Expression, Any]]:
    """Yield (expression, value) of what stands in the rows that one or two arguments name."""
    given: dict[tuple[str, ...], str | int] = {
        (name,): value for name, value in one.arguments.items()
        if isinstance(value, str | int) and not isinstance(value, bool) and value != ""}
    for base in named_rows(one.rows, given, MAXIMUM_ITEMS):
        (row,) = values(base, [one])
        yield from (([*base, *path], value) for path, value in (scalars(row) if isinstance(row, dict) else ()))


def _kept_or(targets: list[WriteExample], kept: Expression | None, candidates: list[Expression]) -> Expression | None:
    """Return what the list had, where it had it (and, it may be, where an argument is as before), else a row."""
    if kept is None:
        return None
    guards = [kept, *(["same", ["argument", given], ["before", own], kept] for given, own in _comparable(targets[0]))]
    right = [guard for guard in guards if all(value is NOTHING or same(value, one.after)
                                              for value, one in zip(values(guard, targets), targets, strict=True))]
    return best((["first", guard, candidate] for guard in right for candidate in candidates), targets)


def _comparable(one: WriteExample) -> list[tuple[str, str]]:
    """Arguments and fields of the document that are texts, those of one name first."""
    texts = [(given, own) for given, value in one.arguments.items() if isinstance(value, str)
             for own, other in one.before.items() if isinstance(other, str)]
    return sorted(texts, key=lambda pair: (pair[0] != pair[1], pair))


def grown(examples: list[WriteExample], hint: list[str], others: dict[str, Expression], explain: Any) -> Expression | None:
    """Return the list as it was, with one object at its end where a number that `others` and the document give is not zero."""
    pairs = _grown(examples, hint)
    if pairs is None:
        return None
    extra = [more for _, more in pairs]
    longer = [(one, more[0]) for one, more in zip(examples, extra, strict=True) if len(more) == 1 and isinstance(more[0], dict)]
    alike = len({tuple(item) for _, item in longer}) == 1 and not any(len(more) > 1 for more in extra)
    if len(examples) < MINIMUM_COMPUTED or not alike:
        return None
    fields: list[list[Any]] = []
    number: Expression | None = None
    for field in longer[0][1]:
        inner = [one._replace(after=item[field]) for one, item in longer]
        if all(is_number(one.after) for one in inner):
            number = explained = best(_amounts(inner, others), inner)
        else:
            explained = explain(inner, [])
        if explained is None:
            return None
        fields.append([field, explained])
    if number is None:
        return None
    shapes: list[Expression] = [
        [how, ["before", *hint], number, ["object", fields]] for how in ("append_unless_zero", "append_above")]
    right = [shape for shape in shapes if fits(shape, examples)]  # where both are, no example was below zero
    return ["agree", *right] if len(right) > 1 else right[0] if right else None


def _amounts(inner: list[WriteExample], others: dict[str, Expression]) -> Iterator[Expression]:
    """Numbers that sums over the new and the old lists give, times the length of a list; differences times a constant."""
    new = [["sum", ["rows", names, e]] for names, e in elements_of(others)]
    before = inner[0].before
    old: list[Expression] = [
        ["total", ["before", name], field] for name, rows in before.items() if isinstance(rows, list) and rows
        and all(isinstance(row, dict) for row in rows)
        for field, value in rows[0].items() if is_number(value)]
    lengths: list[Expression] = [["length", ["before", name]] for name, rows in before.items() if isinstance(rows, list)]
    bases: list[Expression] = [*new, *(["minus", one, other] for one in new for other in old)]
    yield from bases
    yield from (["times", base, length] for base in bases for length in lengths)
    for given, value in inner[0].arguments.items():
        for own, other in before.items():
            if is_number(value) and is_number(other) and value != other:
                factor = inner[0].after / (value - other)
                whole = int(factor) if factor == int(factor) else factor
                yield ["times", ["minus", ["argument", given], ["before", own]], ["constant", whole]]


def elements_of(fields: dict[str, Expression]) -> Iterator[tuple[list[str], Expression]]:
    """(list arguments, expression of a field of each item) in lists that the call makes anew."""
    for _, expression in sorted(fields.items()):
        if expression[0] == "rows":
            items = expression[2][2] if expression[2][0] == "with" else expression[2][1]
            yield from ((expression[1], e) for _, e in items)
