"""Write a row, and what triggers then write, by rules learnt from a change stream.

In: a desk, the tables, the rules (`effects` of inhouse.json: {"table", "event", "column", "slots"}; a slot: {"relation",
"column", "formulas", "when": groups of conditions}, made by `env_builder.company.row_effects`). Out: writes on the desk.
A slot whose formulas or conditions differ about what follows becomes undecided on the desk, and a table in which a row may be
new has undecided rows (`row_tables.UNSURE`). A column that is set to the value that it has brings about nothing, unless what
would follow adds up: then that is undecided too.
Does not see: effects of columns that nobody wrote while the stream was recorded; none is assumed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from ..company import UNDECIDED, CompanyDesk, Undecided
from .formulas import Formula, Row, RowScope, Unanswered, evaluate, holds
from .row_tables import ROW, UNSURE, Tables, key_value, keys, referring, row_id, row_of, stored

Slot = Mapping[str, Any]


class RowRules(NamedTuple):
    """What is known of a database."""

    tables: Tables
    effects: Sequence[Mapping[str, Any]]


class WrittenRow(NamedTuple):
    """The row of an act, before and after."""

    table: str
    key: str
    event: str
    old: Row
    new: Row
    columns: tuple[str, ...]
    """Columns that the call named."""
    arguments: Mapping[str, Any]


def write_row(desk: CompanyDesk, rules: RowRules, table: str, key: str, values: Row, arguments: Mapping[str, Any],
              follows: bool = True) -> None:
    """Set columns of a row, which exists from then on, and carry out what follows. Errors: Undecided."""
    identifier = row_id(table, key)
    is_new = not desk.exists(ROW, identifier)
    old = {} if is_new else row_of(desk, rules.tables, table, key)
    types = rules.tables[table]["types"]
    unknown = sorted(set(values) - set(types))
    if unknown:
        raise Undecided(f"what a write of the column {unknown[0]!r} of {table} does")
    if any(column in values and values[column] != old.get(column) for column in rules.tables[table]["key"]) and not is_new:
        raise Undecided(f"what a new key of a row of {table} brings about")
    kept = {column: _kept(desk, value, types[column]) for column, value in values.items()}
    filled = {**dict.fromkeys(types), **kept} if is_new else kept
    desk.write(ROW, identifier, **filled)
    if follows:
        new = {column: value for column, value in {**old, **filled}.items() if value is not UNDECIDED}
        carry_out(desk, rules, WrittenRow(table, key, "insert" if is_new else "update", old, new, tuple(kept), arguments))


def _kept(desk: CompanyDesk, value: Any, affinity: str) -> Any:
    try:
        return stored(value, affinity)
    except Undecided as gap:
        desk.doubt(str(gap))
        return UNDECIDED


def delete_row(desk: CompanyDesk, rules: RowRules, table: str, key: str, arguments: Mapping[str, Any]) -> None:
    """Delete a row, and carry out what follows. Errors: Undecided."""
    old = row_of(desk, rules.tables, table, key)
    desk.remove(ROW, row_id(table, key))
    carry_out(desk, rules, WrittenRow(table, key, "delete", old, old, (), arguments))


def carry_out(desk: CompanyDesk, rules: RowRules, written: WrittenRow, apart: frozenset[str] = frozenset()) -> None:
    """Write what follows from a write. `apart`: tables whose new rows the call itself made. Errors: Undecided."""
    slots: list[Slot] = []
    idle: list[Slot] = []
    for effect in rules.effects:
        if effect["table"] == written.table and effect["event"] == written.event and (
                not effect["column"] or effect["column"] in written.columns):
            is_idle = bool(effect["column"]) and written.old.get(effect["column"]) == written.new.get(effect["column"])
            if is_idle:
                idle += effect["slots"] if any(_adds_up(slot) for slot in effect["slots"]) else []
            else:
                slots += [slot for slot in effect["slots"] if slot not in slots]
    before: dict[tuple[str, str], Row] = {}
    done: set[str] = set()
    slots += [{**slot, "formulas": []} for slot in idle if slot not in slots]
    for slot in slots:
        if slot["relation"][0] == "somewhere":
            _blur(desk, rules, written, slot)
        elif slot["relation"][0] != "insert":
            for table, key in _targets(desk, rules, written, slot):
                _write_slot(desk, rules, written, slot, table, key, before)
        elif slot["relation"][1] not in apart | done:
            done.add(slot["relation"][1])
            _insert(desk, rules, written, [own for own in slots if own["relation"] == slot["relation"]])


def make_unsure(desk: CompanyDesk, rules: RowRules, tables: set[str], event: str) -> None:
    """Leave open every row of some tables, and of those in which something follows from such an event in them."""
    relations = [slot["relation"] for effect in rules.effects
                 if effect["table"] in tables and effect["event"] == event for slot in effect["slots"]]
    followed = {relation[2 if relation[0] == "via" else 1] for relation in relations if relation[0] != "self"}
    for table in sorted(tables | followed):
        if table in rules.tables:
            desk.write(UNSURE, table, rows=True, columns=list(rules.tables[table]["types"]))


def _blur(desk: CompanyDesk, rules: RowRules, written: WrittenRow, slot: Slot) -> None:
    """Make a column of a whole table undecided, unless the slot's conditions do not hold."""
    if _verdict(slot["when"], scope_of(desk, rules, written, {}, {}, "")) is not False:
        table = slot["relation"][1]
        columns = desk.value(UNSURE, table, "columns", ()) if desk.exists(UNSURE, table) else ()
        desk.write(UNSURE, table, columns=sorted({*columns, slot["column"]}))


def _adds_up(slot: Slot) -> bool:
    return slot["relation"][0] == "insert" or any(
        "target" in str(formula) and slot["column"] in str(formula) for formula in slot["formulas"])


def _targets(desk: CompanyDesk, rules: RowRules, written: WrittenRow, slot: Slot) -> Iterator[tuple[str, str]]:
    kind, *names = slot["relation"]
    if kind == "self":
        yield written.table, written.key
    elif kind == "via":
        key = written.new.get(names[0])
        if key is not None and desk.exists(ROW, row_id(names[1], str(key))):
            yield names[1], str(key)
    else:
        rows = referring(desk, rules.tables, names[0], names[1], written.key)
        yield from ((names[0], key) for key in rows)


def _write_slot(desk: CompanyDesk, rules: RowRules, written: WrittenRow, slot: Slot, table: str, key: str,
                before: dict[tuple[str, str], Row]) -> None:
    if not desk.exists(ROW, row_id(table, key)):
        return
    current = row_of(desk, rules.tables, table, key)
    scope = scope_of(desk, rules, written, before.setdefault((table, key), current), current, key)
    is_so = _verdict(slot["when"], scope)
    if is_so is False:
        return
    value = agreed(slot["formulas"], scope) if is_so else UNDECIDED
    if value is not UNDECIDED:
        value = stored(value, rules.tables[table]["types"].get(slot["column"], "any"))
    desk.write(ROW, row_id(table, key), **{slot["column"]: value})


def _insert(desk: CompanyDesk, rules: RowRules, written: WrittenRow, slots: list[Slot]) -> None:
    scope = scope_of(desk, rules, written, {}, {}, "")
    verdicts = [(slot, _verdict(slot["when"], scope)) for slot in slots]
    by_key = {verdict for slot, verdict in verdicts if not slot["column"]}
    if by_key <= {False}:
        return
    table = slots[0]["relation"][1]
    sure = [slot for slot, verdict in verdicts if verdict]
    key = agreed([formula for slot in sure if not slot["column"] for formula in slot["formulas"] or [["none"]]], scope)
    if True not in by_key or None in by_key or key is UNDECIDED or desk.exists(ROW, row_id(table, str(key))):
        desk.write(UNSURE, table, rows=True)
        return
    described = rules.tables[table]
    values: dict[str, Any] = dict.fromkeys(described["types"])
    values |= {slot["column"]: UNDECIDED for slot, verdict in verdicts if verdict is not False}
    values |= {slot["column"]: agreed(slot["formulas"], scope) for slot in sure}
    if len(described["key"]) == 1:
        values[described["key"][0]] = key_value(rules.tables, table, str(key))
    values.pop("", None)
    desk.write(ROW, row_id(table, str(key)), **values)


def scope_of(desk: CompanyDesk, rules: RowRules, written: WrittenRow, target: Row, after: Row, key: str) -> RowScope:
    """Return what a formula may name after a write; `key`: of the target."""
    new = row_of(desk, rules.tables, written.table, written.key) if desk.exists(ROW, row_id(written.table, written.key)) \
        else written.new

    def children(table: str, reference: str) -> list[Row]:
        referred = referring(desk, rules.tables, table, reference, key)
        rows: list[Row] = [row_of(desk, rules.tables, table, own) for own in referred]
        if any(len(row) < len(rules.tables[table]["types"]) for row in rows):
            raise Unanswered(f"a column of {table} is undecided")
        return rows

    return RowScope({"new": new, "old": written.old, "target": target, "after": after, "actor": desk.accounts},
                    written.arguments, desk.now, children, lambda table: keys(desk, table),
                    lambda table, key: row_of(desk, rules.tables, table, key) if desk.exists(ROW, row_id(table, key)) else {})


def agreed(formulas: Iterable[Formula], scope: RowScope) -> Any:
    """Return the value on which formulas agree, or `UNDECIDED`."""
    value: Any = UNDECIDED
    for formula in formulas:
        try:
            own = evaluate(formula, scope)
        except (Unanswered, Undecided):
            return UNDECIDED
        if isinstance(own, float):
            own = round(own, 9)
        if value is not UNDECIDED and own != value:
            return UNDECIDED
        value = own
    return value


def _verdict(groups: Iterable[Iterable[Any]], scope: RowScope) -> bool | None:
    """Return whether every group of conditions holds; None: unknown. The conditions of a group must agree."""
    verdicts = [{holds(condition, scope) for condition in group} for group in groups]
    if {False} in verdicts:
        return False
    return True if all(verdict == {True} for verdict in verdicts) else None
