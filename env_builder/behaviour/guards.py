"""When a write rule may answer, learnt from calls that worked and by contrast with calls that failed.

A condition is kept where every call that worked meets it, and where it is either about what was seen to work (values of
fields and arguments that take few, values that stand in the document) or broken by a logged failure.
Sees: the conditions of runtime/writing.py. Does not see: what depends on other documents.
"""

from __future__ import annotations

import json
import re
from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable, Iterator
from itertools import combinations
from typing import Any

from env_builder.behaviour.examples import WriteExample
from env_builder.runtime.texts import form_of
from env_builder.runtime.writing import Guards, differs, is_alike, is_within, length_of
from env_builder.world.features import is_number

FEW_VALUES = 5
OPEN = 0.1
"""Share of records whose value no other has, from which values are expected that were not seen."""
MINIMUM_FORMAL, MOST_FORMS = 4, 3
"""Values of a text from which it can be seen to have forms, and how many forms it may have; each twice."""
_IS_FORMAL = re.compile(r".*0[^\w\s]0").match
MINIMUM_ROWS = 4
"""Different records that must have been seen: what fewer have in common is a coincidence."""
Failure = tuple[dict[str, Any], dict[str, Any]]
"""(document before, arguments) of a call that failed."""


def learn(examples: list[WriteExample], failures: list[Failure]) -> Guards:
    """All guards that the examples bear out."""
    names = sorted({name for example in examples for name in example.arguments})
    return {
        **of_arguments([example.arguments for example in examples], [given for _, given in failures]),
        "document": limits([example.before for example in examples], [before for before, _ in failures]),
        "lengths": few_values(
            [{name: length_of(value) for name, value in one.before.items() if isinstance(value, list)} for one in examples],
            [one.before for one in examples]),
        "within": [name for name in names if all(is_within(one.before, one.arguments.get(name)) for one in examples)],
        "alike": [
            pair for pair in combinations(names, 2)
            if all(is_alike(one.arguments.get(pair[0]), one.arguments.get(pair[1])) for one in examples)],
        "differs": list(_differs(examples, failures))}


def of_arguments(given: list[dict[str, Any]], failed: list[dict[str, Any]] | None = None) -> Guards:
    """Guards that speak of nothing but the arguments. `failed`: those of calls that failed."""
    names = sorted({name for arguments in given for name in arguments})
    return {
        "names": sorted({tuple(sorted(arguments)) for arguments in given}), "arguments": limits(given, failed or []),
        "items": {name: fields for name in names for fields in [_item_fields(given, name)] if fields},
        "forms": {name: forms for name in names for forms in [_forms(given, name)] if forms}}


def _forms(given: list[dict[str, Any]], name: str) -> list[str] | None:
    """Return the forms of a text that is always written in a few, with numbers that signs part: an amount, a time."""
    values = {arguments[name] for arguments in given if isinstance(arguments.get(name), str)}
    forms = Counter(map(form_of, values))
    is_formal = len(values) >= MINIMUM_FORMAL and len(forms) <= MOST_FORMS and all(map(_IS_FORMAL, forms))
    return sorted(forms) if is_formal and min(forms.values()) > 1 else None


def limits(worked: list[dict[str, Any]], failed: list[dict[str, Any]]) -> dict[str, list[Any]]:
    """Values of fields that take few. A number that was seen to vary says how many, and is no limit unless a failed call had
    one that was not seen to work."""
    return {
        name: values for name, values in few_values(worked).items()
        if len(values) < 2 or not all(map(is_number, values)) or any(row.get(name, values[0]) not in values for row in failed)}


def _item_fields(given: list[dict[str, Any]], name: str) -> list[list[str]] | None:
    """[fields that the objects of a list argument always have, ever have], None where it is no list of objects."""
    values: list[Any] = [arguments.get(name) for arguments in given]
    items = [item for value in values for item in (value if isinstance(value, list) else [value])]
    if not items or not all(isinstance(item, dict) for item in items):
        return None
    return [sorted(set.intersection(*map(set, items))), sorted(set().union(*items))]


def _differs(examples: list[WriteExample], failures: list[Failure]) -> Iterator[tuple[str, list[Any]]]:
    """Arguments that failed calls gave as the document had it, and calls that worked never did."""
    equal = {(name, path) for before, given in failures for path, leaf in _paths(before, ()) for name, value in given.items()
             if isinstance(value, str) and value == leaf}
    for name, path in sorted(equal, key=str):
        if all(differs(example.arguments.get(name), example.before, list(path)) for example in examples):
            yield name, list(path)


def _paths(value: Any, path: tuple[Any, ...]) -> Iterator[tuple[tuple[Any, ...], Any]]:
    if isinstance(value, dict):
        for name, item in value.items():
            yield from _paths(item, (*path, name))
    elif isinstance(value, list):
        for index in {0, len(value) - 1} if value else ():
            yield from _paths(value[index], (*path, index if index == 0 else -1))
    else:
        yield path, value


def few_values(
    rows: list[dict[str, Any]], named: list[dict[str, Any]] | None = None, ids: bool = False
) -> dict[str, list[Any]]:
    """Values of the fields that take few, by field. Rows whose `named` hold the same ids count once, and ids themselves are
    never few, unless `ids` asks for them."""
    allowed = {}
    things = [tuple(str(value) for value in row.values() if is_id(value)) for row in named or rows]
    n = len(set(things))
    several = n if n > 1 and not ids else len(rows)
    if several < MINIMUM_ROWS:
        return {}
    for name in sorted(set().union(*rows)):
        column = [row.get(name) for row in rows]
        if any(isinstance(value, dict | list) for value in column):
            continue
        kinds = {(type(value), value) for value in column}
        few = len(kinds) <= FEW_VALUES and several > 2 * len(kinds) and (ids or not any(is_id(value) for _, value in kinds))
        occurrences = zip(((type(value), value) for value in column), things if n > 1 else range(len(rows)), strict=True)
        if few and (ids or not is_open(occurrences, several)):
            allowed[name] = distinct(value for _, value in kinds)
    return allowed


def is_open(occurrences: Iterable[tuple[Hashable, Hashable]], n: int) -> bool:
    """Were so many values seen with one of `n` records only that others must be expected (Good and Turing's estimate)?"""
    having: dict[Hashable, set[Hashable]] = defaultdict(set)
    for value, entity in occurrences:
        having[value].add(entity)
    return sum(len(entities) == 1 for entities in having.values()) > OPEN * n


def is_id(value: Any) -> bool:
    """Return whether it looks like a name: letters and digits in one text."""
    return isinstance(value, str) and any(map(str.isdigit, value)) and any(map(str.isalpha, value))


def distinct(values: Iterable[Any]) -> list[Any]:
    """Each of the values once, in one order."""
    return [json.loads(text) for text in sorted({json.dumps(value, sort_keys=True) for value in values})]
