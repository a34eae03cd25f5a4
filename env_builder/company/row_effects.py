"""Learn what follows from a write to a row: columns and rows that triggers write.

In: the acts of a change stream. Out: rules, as data for `runtime.office.row_writes`: (table, event, column) -> slots. A slot is
a column of the row itself, of a row that it refers to, or of rows that refer to it, or a new row of a table; it has the
formulas that explain every change on record, and the conditions that tell the acts after which it changed from the others.
Formulas that are all right so far stay together: a desk takes the value on which they agree.
Sees: the acts of everybody, not of agents alone. A slot that nothing explains, or that was seen once, is kept without a
formula: after such a write its value is unknown. Does not see: effects of columns that nobody has written so far.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from env_builder.company.conditions import condition_of
from env_builder.company.formula_candidates import candidates, key_candidates
from env_builder.company.row_changes import MOST_CHANGES, RowAct, RowStore, StreamChange
from env_builder.runtime.office.formulas import Formula, Row, RowScope, Unanswered, evaluate, is_same

LEAST_ACTS = 2
"""Acts that must show a slot's change before it is explained."""
CHANCE = 10
"""Acts of which one alone showing a change is chance."""
MOST_VALUES = 12
"""Values of a text column that are told apart as causes."""
MOST_FORMULAS = 6
MOST_CASES = 200
"""Acts that are compared for a slot."""
Event = tuple[str, str, str]
"""(table, `update`, `insert` or `delete`, column or empty)."""


class Slot(NamedTuple):
    """What an act may change."""

    relation: tuple[str, ...]
    """("self",), ("via", column, table), ("children", table, reference), ("insert", table), or ("somewhere", table): rows of
    which nothing says how they follow from the row."""
    column: str
    """Empty: which key a new row has."""


class _Case(NamedTuple):
    """A slot in one act: what it became (nothing if it did not change), and the rows around it."""

    is_changed: bool
    value: Any
    scope: RowScope
    cause: Any
    """What the column was set to, whose write is the event."""
    results: list[Any]
    """What each candidate says; `_NO_VALUE` where it says nothing."""
    act: int
    """Number of the act."""
    n_alike: int = 1
    """Rows of the slot's table that the act changed."""


_NO_VALUE = object()
_Cases = dict[tuple[Event, Slot], tuple[list[Formula], list[_Case]]]
Rule = dict[str, Any]


def learn_effects(beginning: Iterable[StreamChange], acts: Iterable[RowAct], tables: Mapping[str, Any]) -> list[Rule]:
    """Return the rules of all events that were followed by something."""
    kept = [act for act in acts if len(act.changes) <= MOST_CHANGES]
    start = list(beginning)
    slots = _slots(start, kept, tables)
    cases = _cases(start, kept, slots, tables)
    rules: list[Rule] = []
    for event, of_event in slots.items():
        own = [slot for slot in of_event if not (_is_by_the_way(event, slot, cases) or _is_chance(cases[event, slot][1]))]
        learnt = [row for slot in own for row in _explained(slot, event, *cases[event, slot])]
        learnt.sort(key=lambda row: bool(row["when"]))
        if learnt:
            rules.append({"table": event[0], "event": event[1], "column": event[2], "slots": learnt})
    return rules


def _is_by_the_way(event: Event, slot: Slot, cases: _Cases) -> bool:
    """Return whether another column, written in all the acts in which the slot changed, brings the change about more surely."""
    acts, share = _changing(cases[event, slot][1])
    for (other, own), (_, own_cases) in cases.items():
        if own == slot and other[:2] == event[:2] and other != event:
            its_acts, its_share = _changing(own_cases)
            if acts <= its_acts and its_share > share:
                return True
    return False


def _is_chance(cases: list[_Case]) -> bool:
    """Return whether a slot changed in one of many acts alone: somebody else acted at that instant."""
    return len(_changing(cases)[0]) == 1 and len({case.act for case in cases}) >= CHANCE


def _changing(cases: list[_Case]) -> tuple[set[int], float]:
    """Return the acts in which a slot changed, and their share."""
    changed = {case.act for case in cases if case.is_changed}
    return changed, len(changed) / max(1, len({case.act for case in cases}))


def events_of(change: StreamChange, old: Row | None) -> list[Event]:
    """Return the events of an act's first change."""
    if change.is_there is False:
        return [(change.table, "delete", "")]
    if old is None:
        return [(change.table, "insert", "")]
    return [(change.table, "update", column) for column in change.values]


def _slots(beginning: list[StreamChange], acts: list[RowAct], tables: Mapping[str, Any]) -> dict[Event, list[Slot]]:
    """Return the slots that changed after each event, in the order in which they did."""
    store = _store(beginning)
    relations: dict[tuple[Event, str, str], list[set[tuple[str, ...]]]] = defaultdict(list)
    for act in acts:
        root = act.changes[0]
        old = store.row(root.table, root.key)
        store.apply(root)
        new = store.row(root.table, root.key) or old or {}
        for change in act.changes[1:]:
            before = store.row(change.table, change.key)
            fits: set[tuple[str, ...]] = {("insert", change.table)}
            if before is not None:
                fits = set(_relations(root, new, change, before))
            for event in events_of(root, old):
                key = tables.get(change.table, {}).get("key") if before is None else None
                own = [column for column in change.values if [column] != key]
                for column in (*own, *([""] if before is None else [])):
                    relations[event, change.table, column].append(fits)
            store.apply(change)
    slots: dict[Event, list[Slot]] = defaultdict(list)
    for (event, table, column), relation_sets in relations.items():
        common = set.intersection(*relation_sets) or {("somewhere", table)}
        slots[event].append(Slot(min(common, key=lambda relation: _rank(relation, event[0])), column))
    return slots


def _relations(root: StreamChange, new: Row, change: StreamChange, before: Row) -> Iterator[tuple[str, ...]]:
    if (root.table, root.key) == (change.table, change.key):
        yield ("self",)
    for column, value in new.items():
        if str(value) == change.key:
            yield ("via", column, change.table)
    for column, value in before.items():
        if str(value) == root.key:
            yield ("children", change.table, column)


def _rank(relation: tuple[str, ...], table: str) -> tuple[int, bool, str]:
    """Return the order of preference: the row itself first, then columns that are called after the table they refer to."""
    kinds = ("self", "insert", "via", "children", "somewhere")
    named = (relation[0] == "via" and is_named_after(relation[1], relation[2])) or (
        relation[0] == "children" and is_named_after(relation[2], table))
    return kinds.index(relation[0]), not named, str(relation)


def is_named_after(column: str, table: str) -> bool:
    """Return whether a column is called after a table."""
    stem = table.rstrip("s").casefold()
    return bool(stem) and (column.casefold().startswith(stem[:max(3, len(stem) - 2)]))


def _store(beginning: list[StreamChange]) -> RowStore:
    store = RowStore()
    for change in beginning:
        store.apply(change)
    return store


def _cases(beginning: list[StreamChange], acts: list[RowAct], slots: dict[Event, list[Slot]], tables: Mapping[str, Any],
           ) -> _Cases:
    """Return the candidates of each slot, and its cases over all acts of its event."""
    store = _store(beginning)
    history: _Cases = {
        (event, slot): ([], []) for event, of_event in slots.items() for slot in of_event}
    for number, act in enumerate(acts):
        root = act.changes[0]
        old = store.row(root.table, root.key)
        store.apply(root)
        new = store.row(root.table, root.key) or old or {}
        n_alike = Counter(change.table for change in act.changes[1:])
        pending = [(event, slot) for event in events_of(root, old) for slot in slots.get(event, ())]
        for change in act.changes[1:]:
            before = store.row(change.table, change.key)
            after = {**(before or {}), **change.values}
            for event, slot in list(pending):
                if _is_slot(slot, change, before, root, new):
                    pending.remove((event, slot))
                    if len(history[event, slot][1]) >= MOST_CASES:
                        continue
                    value = change.values[slot.column] if slot.column else change.key
                    scope = _scope(store, root, old, new, before or {}, {} if before is None else after,
                                   "" if before is None else change.key)
                    _add(history[event, slot], event, slot, scope, value, tables, number, n_alike[change.table])
            store.apply(change)
        for event, slot in pending:
            is_full = len(history[event, slot][1]) >= MOST_CASES
            for key, target in () if is_full else _targets(store, slot, root, new):
                scope = _scope(store, root, old, new, target, target, key)
                formulas, cases = history[event, slot]
                cases.append(_Case(False, target.get(slot.column), scope, new.get(event[2]), _results(formulas, scope), number))
    return history


def _is_slot(slot: Slot, change: StreamChange, before: Row | None, root: StreamChange, new: Row) -> bool:
    if slot.column and slot.column not in change.values:
        return False
    if before is None:
        return slot.relation == ("insert", change.table)
    if slot.relation[0] == "somewhere":
        return slot.relation[1] == change.table
    return slot.relation in set(_relations(root, new, change, before))


def _targets(store: RowStore, slot: Slot, root: StreamChange, new: Row) -> list[tuple[str, Row]]:
    """Return the rows that a slot means after an act, with their keys; a new row has none."""
    kind = slot.relation[0]
    if kind in ("insert", "somewhere"):
        return [("", {})]
    if kind == "self":
        return [(root.key, new)]
    if kind == "via":
        row = store.row(slot.relation[2], str(new.get(slot.relation[1])))
        return [] if row is None else [(str(new.get(slot.relation[1])), row)]
    rows = store.tables.get(slot.relation[1], {})
    return [(key, row) for key, row in rows.items() if str(row.get(slot.relation[2])) == root.key]


def _scope(store: RowStore, root: StreamChange, old: Row | None, new: Row, target: Row, after: Row, key: str) -> RowScope:
    tables = {table: {name: dict(row) for name, row in rows.items() if any(str(value) == key for value in row.values())}
              for table, rows in store.tables.items()}
    whole = {table: dict(rows) for table, rows in store.tables.items()}
    return RowScope({"new": dict(new), "old": dict(old or {}), "target": dict(target), "after": dict(after)}, {},
                    root.at / 1e6,
                    lambda table, reference: [row for row in tables.get(table, {}).values() if str(row.get(reference)) == key],
                    lambda table: whole.get(table, {}), lambda table, own: whole.get(table, {}).get(own, {}))


def _add(history: tuple[list[Formula], list[_Case]], event: Event, slot: Slot, scope: RowScope, value: Any,
         tables: Mapping[str, Any], number: int, n_alike: int) -> None:
    """Add a change of a slot. New candidates come from every change that none of the candidates so far explains."""
    formulas, cases = history
    if not any(_says(formula, scope, value) for formula in formulas):
        made = key_candidates(slot.relation[1], scope, value) if not slot.column else candidates(scope, value, tables)
        for formula in made:
            if formula not in formulas and _says(formula, scope, value):
                formulas.append(formula)
                for case in cases:
                    case.results.append(_result(formula, case.scope))
    cases.append(_Case(True, value, scope, scope.rows["new"].get(event[2]), _results(formulas, scope), number, n_alike))


def _results(formulas: list[Formula], scope: RowScope) -> list[Any]:
    return [_result(formula, scope) for formula in formulas]


def _result(formula: Formula, scope: RowScope) -> Any:
    try:
        return evaluate(formula, scope)
    except Unanswered:
        return _NO_VALUE


def _says(formula: Formula, scope: RowScope, value: Any) -> bool:
    return is_same(_result(formula, scope), value)


def _explained(slot: Slot, event: Event, formulas: list[Formula], cases: list[_Case]) -> list[Rule]:
    """Return a slot's rules: one for all acts, else one for each value that the column was set to."""
    joint = _rule(slot, event, formulas, cases, [])
    if joint["formulas"] or not event[2]:
        return [joint]
    causes = list(dict.fromkeys(case.cause for case in cases if isinstance(case.cause, str)))
    if not causes or len(causes) > MOST_VALUES or any(not isinstance(case.cause, str) for case in cases):
        return [joint]
    rules = []
    for cause in causes:
        of_cause = [case for case in cases if case.cause == cause]
        others = [other for other in causes if other != cause]
        condition = ["in", ["column", "new", event[2]], [cause], others]
        if any(case.is_changed for case in of_cause):
            rules.append(_rule(slot, event, formulas, of_cause, [[condition]]))
    return rules


def _rule(slot: Slot, event: Event, formulas: list[Formula], cases: list[_Case], when: list[Any]) -> Rule:
    changed = [case for case in cases if case.is_changed]
    right = [number for number in range(len(formulas)) if all(
        number < len(case.results) and is_same(case.results[number], case.value) for case in changed)]
    rule = {"relation": list(slot.relation), "column": slot.column, "formulas": [], "when": when}
    is_one_of_many = slot.relation[0] == "insert" and any(case.n_alike > 1 for case in changed)
    if len(changed) < LEAST_ACTS or not right or slot.relation[0] == "somewhere" or is_one_of_many:
        return rule
    right = _simplest(right, formulas)
    unchanged = [case for case in cases if not case.is_changed and not all(
        number < len(case.results) and is_same(case.results[number], case.value) for number in right)]
    if unchanged:
        condition = condition_of([case.scope for case in changed], [case.scope for case in unchanged], event[2], slot.column)
        if not condition:
            return rule
        rule["when"] = [*when, condition]
    return {**rule, "formulas": [formulas[number] for number in right]}


def _simplest(right: list[int], formulas: list[Formula]) -> list[int]:
    """Return the formulas of the fewest words; a constant counts as the simplest, as it explains every act with one value."""
    sizes = {number: len(str(formulas[number]).split()) for number in right}
    constant = [number for number in right if formulas[number][0] == "constant"]
    if constant:
        return constant
    least = min(sizes.values())
    return [number for number in right if sizes[number] == least][:MOST_FORMULAS]
