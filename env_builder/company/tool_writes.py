"""Learn what an in-house tool writes: from its calls and the first changes of the acts that they brought about.

In: calls that worked, the tables that they name, arguments of yet unknown use. Out: the `act` of a plan, and the arguments that
it uses; None: something that they wrote has no explanation. Acts of another kind than most, or in another table than the call
names, are somebody else's.
A column takes an argument, else what a formula says that fits all acts: a constant, the acting person, the instant, a product
or difference of columns and arguments. Rows that an act adds to another table, one for each element of a list among the
arguments, are its lines. What follows from a write by triggers is no part of an act (`row_effects`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Protocol

from env_builder.company.formula_candidates import candidates, key_candidates, lookups
from env_builder.company.row_changes import RowAct, StreamChange
from env_builder.runtime.company import CompanyDesk, Undecided
from env_builder.runtime.office.formulas import Formula, Row, RowScope, Unanswered, evaluate, is_same
from env_builder.runtime.office.row_tables import ROW, keys, row_id, row_of, stored
from env_builder.runtime.office.row_writes import RowRules

MOST_FORMULAS = 6


class WritingCall(Protocol):
    """A call and what it brought about."""

    @property
    def arguments(self) -> dict[str, Any]: ...
    @property
    def act(self) -> RowAct | None: ...
    @property
    def desk(self) -> CompanyDesk: ...


def learn_act(rules: RowRules, calls: Sequence[WritingCall], tables: Sequence[str],
              unused: Sequence[str]) -> tuple[dict[str, Any], set[str]] | None:
    """Return the act of a tool and the names of the arguments that it uses, or None."""
    acting = [(call, call.act, table) for call, table in zip(calls, tables, strict=True) if call.act is not None]
    kinds = Counter(_kind(call, act.changes[0]) for call, act, table in acting if act.changes[0].table == table)
    if not kinds:
        return None
    kind = max(kinds, key=lambda own: kinds[own])
    acting = [(call, act, table) for call, act, table in acting
              if act.changes[0].table == table and _kind(call, act.changes[0]) == kind]
    act: dict[str, Any] = {"kind": kind, "values": None, "columns": [], "key": [], "lines": None}
    if kind == "delete":
        return act, set()
    samples = [(call, act.changes[0], _after(rules, call, act.changes[0])) for call, act, _ in acting]
    objects = [name for name in unused if _holds_values(rules, samples, name)]
    act["values"] = objects[0] if objects else None
    used = set(objects[:1])
    if kind == "insert":
        act["lines"] = _lines(rules, [(call, own) for call, own, _ in acting], unused)
        used |= {act["lines"]["argument"]} if act["lines"] else set()
    by_argument = _argument_columns(rules, samples, [name for name in unused if name not in used], kind)
    used |= set(by_argument)
    act["columns"] = [[column, [["argument", name]]] for name, column in by_argument.items()]
    others = _other_columns(rules, samples, act, kind)
    if others is None:
        return None
    act["columns"] += others
    if kind == "insert":
        act["key"] = _common_formulas(
            [(change.key, _scope(rules, call, {}, _without_key(rules, change)), change.table) for call, change, _ in samples],
            True, rules)
        return (act, used) if act["key"] else None
    return act, used


def _without_key(rules: RowRules, change: StreamChange) -> Row:
    return {column: value for column, value in change.values.items() if [column] != rules.tables[change.table]["key"]}


def _kind(call: WritingCall, change: StreamChange) -> str:
    if change.is_there is False:
        return "delete"
    return "update" if call.desk.exists(ROW, row_id(change.table, change.key)) else "insert"


def _after(rules: RowRules, call: WritingCall, change: StreamChange) -> Row:
    identifier = row_id(change.table, change.key)
    before = row_of(call.desk, rules.tables, change.table, change.key) if call.desk.exists(ROW, identifier) else {}
    return {**before, **change.values}


Samples = list[tuple[WritingCall, StreamChange, Row]]


def _is_stored(rules: RowRules, change: StreamChange, after: Row, column: str, value: Any) -> bool:
    kind = rules.tables[change.table]["types"].get(column)
    if kind is None or column not in after:
        return False
    try:
        return is_same(stored(value, kind), after[column])
    except Undecided:
        return False


def _holds_values(rules: RowRules, samples: Samples, name: str) -> bool:
    given = [(call.arguments[name], change, after) for call, change, after in samples if name in call.arguments]
    return bool(given) and all(isinstance(value, dict) and value and all(
        _is_stored(rules, change, after, column, own) for column, own in value.items()) for value, change, after in given)


def _argument_columns(rules: RowRules, samples: Samples, unused: Sequence[str], kind: str) -> dict[str, str]:
    """Return argument -> the column that it sets: one of its name, else one that changed to its value in every act."""
    own_columns: dict[str, str] = {}
    for name in unused:
        given = [(call.arguments[name], change, after) for call, change, after in samples if name in call.arguments]
        if not given or any(isinstance(value, (dict, list)) for value, _, _ in given):
            continue
        fits = [column for column in rules.tables[given[0][1].table]["types"] if column not in own_columns.values() and all(
            _is_stored(rules, change, after, column, value) for value, change, after in given)]
        changed = [column for column in fits if any(column in change.values for _, change, _ in given)]
        key = [str(value) == change.key for value, change, _ in given]
        if all(key) and kind == "update":
            continue
        named = [column for column in changed if column == name] or changed
        if named and (kind == "insert" or len(named) == 1 or named[0] == name):
            own_columns[name] = named[0]
    return own_columns


def _other_columns(rules: RowRules, samples: Samples, act: Mapping[str, Any], kind: str) -> list[list[Any]] | None:
    """Return the columns that a call does not name, with formulas; None: one of them has none."""
    named = {column for column, _ in act["columns"]}
    own_columns: list[list[Any]] = []
    columns = list(dict.fromkeys(column for _, change, _ in samples for column in change.values))
    for column in columns:
        cases = [(after.get(column), call, change) for call, change, after in samples
                 if not (act["values"] and column in call.arguments.get(act["values"], {}))]
        if column in named or not cases or (kind == "insert" and [column] == rules.tables[cases[0][2].table]["key"]):
            continue
        if kind == "update" and not any(column in change.values for _, _, change in cases):
            continue
        if all(value is None for value, _, _ in cases):
            continue
        formulas = _common_formulas([(value, _scope(rules, call, *_around(rules, call, change, act)), "")
                                     for value, call, change in cases], False, rules)
        if not formulas:
            return None
        own_columns.append([column, formulas])
    return own_columns


def _around(rules: RowRules, call: WritingCall, change: StreamChange, act: Mapping[str, Any]) -> tuple[Row, Row]:
    """Return the row before, and what the call's arguments make of it."""
    identifier = row_id(change.table, change.key)
    old = row_of(call.desk, rules.tables, change.table, change.key) if call.desk.exists(ROW, identifier) else {}
    values = dict(call.arguments.get(act["values"], {})) if act["values"] else {}
    return old, {**old, **values}


def _scope(rules: RowRules, call: WritingCall, old: Row, new: Row, line: Mapping[str, Any] | None = None) -> RowScope:
    arguments = call.arguments if line is None else {**call.arguments, "$line": line}
    at = call.act.at / 1e6 if call.act is not None else call.desk.now
    return RowScope({"new": new, "old": old, "target": old, "after": old, "actor": call.desk.accounts}, arguments, at,
                    lambda *_: (), lambda own: keys(call.desk, own),
                    lambda own, key: row_of(call.desk, rules.tables, own, key) if call.desk.exists(ROW, row_id(own, key))
                    else {})


def _common_formulas(cases: Iterable[tuple[Any, RowScope, str]], is_key: bool, rules: RowRules) -> list[Formula]:
    """Return the simplest formulas that give the value in every case: (value, scope, table of the key)."""
    formulas: list[Formula] | None = None
    for value, scope, table in cases:
        if formulas is None:
            formulas = list(_with_arguments(value, scope, table if is_key else "", rules))
        else:
            formulas = [formula for formula in formulas if _gives(formula, scope, value)]
    if not formulas:
        return []
    ranked = sorted(formulas, key=lambda formula: (
        formula[0] != "argument", formula[:2] != ["column", "actor"], formula[0] != "constant", len(str(formula).split())))
    first = ranked[0]
    size = len(str(first).split())
    return [formula for formula in ranked if formula[0] == first[0] and len(str(formula).split()) <= size][:MOST_FORMULAS]


def _with_arguments(value: Any, scope: RowScope, table: str, rules: RowRules) -> Iterator[Formula]:
    paths = list(_paths(scope.arguments))
    numbers = lookups(scope, [["argument", *path] for path in paths], rules.tables)
    if not table:
        yield from (formula for formula in numbers if _gives(formula, scope, value))
    numbers = [formula for formula in numbers if isinstance(evaluate(formula, scope), (int, float))]
    for path in paths:
        formula = ["argument", *path]
        if _gives(formula, scope, value):
            yield formula
        own = evaluate(formula, scope)
        if isinstance(own, (int, float)) and not isinstance(own, bool):
            numbers.append(formula)
    if table:
        yield from (formula for formula in key_candidates(
            table, RowScope({"new": scope.rows["new"]}, *scope[1:]), value))
        return
    for one in numbers:
        yield from ([word, one, two] for two in numbers for word in ("times", "plus", "minus")
                    if _gives([word, one, two], scope, value))
    if "new" in scope.rows:
        yield from candidates(RowScope({name: row for name, row in scope.rows.items() if name in ("new", "old", "actor")},
                                       *scope[1:]), value, {})


def _paths(value: Any) -> Iterator[list[Any]]:
    if isinstance(value, dict):
        for name, own in value.items():
            yield from ([name, *path] for path in _paths(own))
    elif not isinstance(value, list):
        yield []


def _gives(formula: Formula, scope: RowScope, value: Any) -> bool:
    try:
        return is_same(evaluate(formula, scope), value)
    except Unanswered:
        return False


def _lines(rules: RowRules, calls: list[tuple[WritingCall, RowAct]], unused: Sequence[str]) -> dict[str, Any] | None:
    """Return what the elements of a list among the arguments become, or None: no list becomes rows."""
    for name in unused:
        lists = [(call, act, call.arguments[name]) for call, act in calls if name in call.arguments]
        if not lists or not all(isinstance(own, list) and own and all(isinstance(line, dict) for line in own)
                                for _, _, own in lists):
            continue
        for table in dict.fromkeys(change.table for _, act, _ in lists for change in act.changes[1:]):
            added = [(call, act.changes[0], line, number, change)
                     for call, act, own in lists
                     for number, (line, change) in enumerate(zip(own, _added(call, act, table), strict=False), start=1)]
            if len(added) != sum(len(own) for _, _, own in lists):
                continue
            learnt = _line_columns(rules, added, table)
            if learnt is not None:
                return {"argument": name, "table": table, **learnt}
    return None


def _added(call: WritingCall, act: RowAct, table: str) -> list[StreamChange]:
    return [change for change in act.changes[1:] if change.table == table
            and not call.desk.exists(ROW, row_id(change.table, change.key))]


def _line_columns(rules: RowRules, added: list[tuple[WritingCall, StreamChange, Mapping[str, Any], int, StreamChange]],
                  table: str) -> dict[str, Any] | None:
    reference = next((column for column in rules.tables[table]["types"] if all(
        change.values.get(column) == root.key for _, root, _, _, change in added)), None)
    if reference is None:
        return None
    cases = [(change, _scope(rules, call, {}, {"number": number, "parent": root.key}, line), number)
             for call, root, line, number, change in added]
    columns = []
    for column in rules.tables[table]["types"]:
        if column == reference or [column] == rules.tables[table]["key"] or all(
                change.values.get(column) is None for change, _, _ in cases):
            continue
        formulas = _common_formulas([(change.values.get(column), scope, "") for change, scope, _ in cases], False, rules)
        if not formulas:
            return None
        columns.append([column, formulas])
    every = [(change.key, scope, table) for change, scope, _ in cases]
    first = [case for case, (_, _, number) in zip(every, cases, strict=True) if number == 1]
    key = _common_formulas(every, True, rules) or [
        formula for formula in _common_formulas(first, True, rules) if formula[0] == "following"]
    return {"reference": reference, "columns": columns, "key": key} if key else None
