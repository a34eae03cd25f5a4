"""Lists that a call makes of the list that was there: something at its end, or some of its objects changed.

In: examples, the path of the list in the document before, and `explain` for what is inside. Out: an expression or None.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from env_builder.behaviour.examples import NOTHING, Example, Expression, fits, same, values
from env_builder.runtime.expressions import Scope, positions
from env_builder.world.features import together

MAXIMUM_ITEMS = 3
Change = tuple[dict[str, Any], Example, dict[str, Any]]
"""(object before, example of what it became, the arguments at the last position)."""
Explain = Callable[[list[Example], list[str]], Expression | None]


def extended(examples: list[Example], hint: list[str], explain: Explain) -> Expression | None:
    """The list as it was with something at its end: one item for each that was there, or a fixed number of items."""
    grown = [_grown(example, hint) for example in examples]
    found = [pair for pair in grown if pair is not None]
    if len(found) < len(examples):
        return None
    if all(len(old) == len(extra) for old, extra in found) and any(len(old) > 1 for old, _ in found):
        items = [
            example._replace(before=item, after=new)
            for example, (old, extra) in zip(examples, found, strict=True) for item, new in zip(old, extra, strict=True)
        ]
        each = explain(items, []) if items else None
        return each and ["concat", ["before", *hint], ["each", ["before", *hint], each]]
    return _append(examples, [extra for _, extra in found], hint, explain)


def _grown(example: Example, hint: list[str]) -> tuple[list[Any], list[Any]] | None:
    """(the list as it was, what came to its end), or None where it is not a list that grew at its end."""
    (old,) = values(["before", *hint], [example])
    after = example.after
    if not isinstance(old, list) or not isinstance(after, list) or not same(after[: len(old)], old):
        return None
    return old, after[len(old):]


def _append(examples: list[Example], extra: list[list[Any]], hint: list[str], explain: Explain) -> Expression | None:
    lengths = {len(items) for items in extra}
    n = lengths.pop()
    if lengths or not 0 < n <= MAXIMUM_ITEMS:
        return None
    items = []
    for index in range(n):
        inner = [example._replace(after=new[index]) for example, new in zip(examples, extra, strict=True)]
        expression = explain(inner, [])
        if expression is None:
            return None
        items.append(expression)
    return ["append", ["before", *hint], *items]


def replaced(examples: list[Example], hint: list[str], explain: Explain) -> Expression | None:
    """The list of objects as it was, with those changed that an argument names, position by position."""
    first = examples[0]
    (rows,) = values(["before", *hint], [first])
    if not hint or not isinstance(rows, list) or not rows or not isinstance(first.after, list):
        return None
    for names in together(first.arguments):
        for key in names:
            wanted = first.arguments[key][0]
            for field in [field for row in rows if isinstance(row, dict) for field in row if same(row[field], wanted)][:1]:
                found = _replaced_by(examples, hint, names, key, field, explain)
                if found is not None and fits(found, examples):
                    return found
    return None


def _replaced_by(
    examples: list[Example], hint: list[str], names: list[str], key: str, field: str, explain: Explain
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


def _changed(
    example: Example, hint: list[str], names: list[str], key: str, field: str
) -> list[Change] | None:
    """The change at each position; None where the list changed in another way."""
    (rows,) = values(["before", *hint], [example])
    after = example.after
    if rows is NOTHING or not isinstance(after, list) or len(rows) != len(after):
        return None
    if not all(isinstance(example.arguments.get(name), list) for name in names):
        return None
    if len({len(example.arguments[name]) for name in names}) != 1:
        return None
    found: dict[int, Change] = {}
    for scope in positions(names, Scope(example.before, example.arguments)):
        places = [place for place, row in enumerate(rows) if isinstance(row, dict) and row.get(field) == scope.arguments[key]
                  and place not in found]
        if not places or not isinstance(after[places[0]], dict):
            return None
        new = example._replace(arguments=scope.arguments, after=after[places[0]])
        found[places[0]] = (rows[places[0]], new, scope.last)
    kept = all(same(old, new) for place, (old, new) in enumerate(zip(rows, after, strict=True)) if place not in found)
    return list(found.values()) if kept else None
