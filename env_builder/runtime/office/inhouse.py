"""Tools of a company's own that only recorded calls show, over the rows of its databases.

In: inhouse.json of the app's folder ({"tables", "effects", "tools"}, made by `env_builder.company.inhouse`), and a desk.
Out: `OfficeTool`s. A tool's plan says which argument names the table, which select rows, what the tool writes, and the shape
of its answer; the plan was kept because it gives the recorded answers.
What the recorded calls do not show is `Undecided`: another argument, a value of another kind, a table, column or word that no
call named and the database does not have, a refusal whose reason they do not tell.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any, NamedTuple

from ..company import UNDECIDED, CompanyDesk, ProductRefusal, Undecided
from .formulas import Row, holds
from .row_tables import ROW, UNSURE, referring, row_id, row_of
from .row_writes import RowRules, WrittenRow, agreed, carry_out, delete_row, make_unsure, scope_of, write_row
from .selecting import page_of, selected
from .shapes import AnswerView, written
from .tools import OfficeTool

INHOUSE = "inhouse.json"
Plan = Mapping[str, Any]
_KINDS = {str: "text", bool: "flag", int: "number", float: "number", dict: "object", list: "list", type(None): "nothing"}


def tools_from(learnt: Mapping[str, Any]) -> dict[str, OfficeTool]:
    """Return the tools that were learnt, by name."""
    rules = RowRules(learnt["tables"], learnt["effects"])
    return {name: OfficeTool(partial(answer_call, rules, plan), (ROW, UNSURE) if plan["act"] is not None else ())
            for name, plan in learnt["tools"].items()}


def _tables_written(rules: RowRules, plan: Plan, arguments: Mapping[str, Any]) -> set[str]:
    """Return the tables in which a call writes rows itself, as far as its arguments tell."""
    try:
        tables = {table_of(rules, plan, arguments)}
    except Undecided:
        tables = set(rules.tables)
    lines = plan["act"].get("lines")
    return tables | ({lines["table"]} if lines else set())


class CallOutcome(NamedTuple):
    """What a call did and selected, before it is written down."""

    table: str
    rows: list[Row]
    """Of the page, with all their columns."""
    total: int
    start: int


def answer_call(rules: RowRules, plan: Plan, desk: CompanyDesk, arguments: dict[str, Any]) -> str:
    """Answer a call by a plan. Errors: ProductRefusal, Undecided."""
    try:
        outcome = outcome_of(rules, plan, desk, arguments)
    except Undecided as gap:
        if plan["act"] is None:
            raise
        desk.doubt(str(gap))
        make_unsure(desk, rules, _tables_written(rules, plan, arguments), plan["act"]["kind"])
        desk.acted()
        raise
    return written(plan["answer"], plan["style"], view_of(desk, rules, plan, outcome, arguments))


def outcome_of(rules: RowRules, plan: Plan, desk: CompanyDesk, arguments: dict[str, Any]) -> CallOutcome:
    """Carry out a call by a plan. Errors: ProductRefusal, Undecided."""
    _check(plan, arguments)
    table = table_of(rules, plan, arguments)
    act = plan["act"]
    if act is not None and act["kind"] == "insert":
        key = _insert(desk, rules, act, table, arguments)
        desk.acted()
        return CallOutcome(table, [_whole(desk, rules, table, key)], 1, 0)
    matches = selected(desk, rules.tables, plan, table, arguments)
    if not plan["one"]:
        start, page = page_of(matches, plan["paging"], arguments)
        return CallOutcome(table, [_whole(desk, rules, table, key) for key in page], len(matches), start)
    if not matches:
        raise _missing(plan, arguments)
    if len(matches) > 1:
        raise Undecided("what the tool does where several rows fit")
    _refuse(desk, rules, plan, table, matches[0], arguments)
    row = _whole(desk, rules, table, matches[0])
    if act is not None and act["kind"] == "delete":
        delete_row(desk, rules, table, matches[0], arguments)
        desk.acted()
        return CallOutcome(table, [row], 1, 0)
    if act is not None:
        _update(desk, rules, act, table, matches[0], arguments)
        desk.acted()
    return CallOutcome(table, [_whole(desk, rules, table, matches[0])], 1, 0)


def kind_of(value: Any) -> str:
    """Return the kind of a JSON value, as plans name it."""
    return _KINDS[type(value)]


def _check(plan: Plan, arguments: Mapping[str, Any]) -> None:
    for name, value in arguments.items():
        if kind_of(value) not in plan["arguments"].get(name, ()):
            raise Undecided(f"what the tool makes of {name!r} as {value!r}")
    missing = [name for name in plan["required"] if name not in arguments]
    if missing:
        raise Undecided(f"what the tool says without {missing[0]!r}")


def table_of(rules: RowRules, plan: Plan, arguments: Mapping[str, Any]) -> str:
    """Return the table that a call means. Errors: Undecided."""
    source = plan["table"]
    if "constant" in source:
        return str(source["constant"])
    name = arguments.get(source["argument"])
    if not isinstance(name, str):
        raise Undecided(f"what the tool says of {name!r}")
    table = name if source["names"] is None else source["names"].get(name)
    if table not in rules.tables:
        raise Undecided(f"what the tool says of {name!r}")
    return str(table)


def _missing(plan: Plan, arguments: Mapping[str, Any]) -> Exception:
    none = plan["none"]
    if none is None:
        return Undecided("what the tool says of a row that is not there")
    view = AnswerView({}, (), (), arguments, 0, 0, lambda *_: (), lambda _: None)
    return ProductRefusal(written(none["shape"], none["style"], view))


def _refuse(desk: CompanyDesk, rules: RowRules, plan: Plan, table: str, key: str, arguments: Mapping[str, Any]) -> None:
    if not plan["refusals"]:
        return
    row = row_of(desk, rules.tables, table, key)
    scope = scope_of(desk, rules, WrittenRow(table, key, "", row, row, (), arguments), row, row, key)
    for refusal in plan["refusals"]:
        verdicts = {holds(condition, scope) for condition in refusal["when"]}
        if verdicts == {True}:
            view = AnswerView(row, (), (), arguments, 1, 0, lambda *_: (), lambda _: None)
            raise ProductRefusal(written(refusal["shape"], refusal["style"], view))
        if verdicts != {False}:
            raise Undecided("whether the tool refuses this")


def _update(desk: CompanyDesk, rules: RowRules, act: Plan, table: str, key: str, arguments: Mapping[str, Any]) -> None:
    old = row_of(desk, rules.tables, table, key)
    values = dict(arguments.get(act["values"], {})) if act["values"] else {}
    scope = scope_of(desk, rules, WrittenRow(table, key, "update", old, {**old, **values}, (), arguments), old, old, key)
    for column, formulas in act["columns"]:
        if all(formula[0] == "argument" and formula[1] not in arguments for formula in formulas):
            continue   # the call leaves the column as it is
        values[column] = _decided(agreed(formulas, scope), column)
    write_row(desk, rules, table, key, values, arguments)


def _decided(value: Any, column: str) -> Any:
    if value is UNDECIDED:
        raise Undecided(f"what the tool writes into {column!r}")
    return value


def _insert(desk: CompanyDesk, rules: RowRules, act: Plan, table: str, arguments: Mapping[str, Any]) -> str:
    values = dict(arguments.get(act["values"], {})) if act["values"] else {}
    scope = scope_of(desk, rules, WrittenRow(table, "", "insert", {}, values, (), arguments), {}, {}, "")
    key = str(_decided(agreed(act["key"], scope), "key"))
    if desk.exists(ROW, row_id(table, key)):
        raise Undecided("which key the new row gets")
    for column, formulas in act["columns"]:
        if column not in values:
            usable = [formula for formula in formulas if formula[0] != "argument" or formula[1] in arguments]
            values[column] = _decided(agreed(usable, scope), column) if usable else None
    for column in rules.tables[table]["key"][:1] if len(rules.tables[table]["key"]) == 1 else ():
        values.setdefault(column, key)
    write_row(desk, rules, table, key, values, arguments, follows=False)
    lines = act["lines"]
    for number, line in enumerate(arguments.get(lines["argument"], ()) if lines else (), start=1):
        _insert_line(desk, rules, lines, key, number, line, arguments)
    row = row_of(desk, rules.tables, table, key)
    carry_out(desk, rules, WrittenRow(table, key, "insert", {}, row, (), arguments),
              frozenset([lines["table"]] if lines else []))
    return key


def _insert_line(desk: CompanyDesk, rules: RowRules, lines: Plan, parent: str, number: int, line: Mapping[str, Any],
                 arguments: Mapping[str, Any]) -> None:
    table = lines["table"]
    head = {"number": number, "parent": parent}
    scope = scope_of(desk, rules, WrittenRow(table, "", "insert", {}, head, (), {**arguments, "$line": line}), {}, {}, "")
    key = str(_decided(agreed(lines["key"], scope), "key"))
    values = {column: _decided(agreed(formulas, scope), column) for column, formulas in lines["columns"]}
    write_row(desk, rules, table, key, {**values, lines["reference"]: parent}, arguments, follows=False)


def _whole(desk: CompanyDesk, rules: RowRules, table: str, key: str) -> Row:
    row = row_of(desk, rules.tables, table, key)
    if len(row) < len(rules.tables[table]["types"]):
        raise Undecided(f"a column of {table} {key} after what the episode did")
    return row


def view_of(desk: CompanyDesk, rules: RowRules, plan: Plan, outcome: CallOutcome, arguments: Mapping[str, Any]) -> AnswerView:
    """Return what the answer of a call may show. Errors: Undecided."""
    table, rows = outcome.table, outcome.rows
    shows = plan["shows"]
    columns = list(rules.tables[table]["types"]) if shows is None else shows.get(table)
    chosen = arguments.get(plan["fields"]) if plan["fields"] else None
    columns = columns if chosen is None else chosen
    if columns is None or any(not isinstance(name, str) or name not in rules.tables[table]["types"] for name in columns):
        raise Undecided(f"which columns of {table} the tool shows")

    def children(child: str, reference: str, row: Row) -> list[Row]:
        key = str(row[rules.tables[table]["key"][0]])
        return [_whole(desk, rules, child, own) for own in referring(desk, rules.tables, child, reference, key)]

    first = rows[0] if len(rows) == 1 else {}
    scope = scope_of(desk, rules, WrittenRow(table, "", "", first, first, (), arguments), first, first, "")
    return AnswerView(first if plan["one"] else {}, rows, tuple(columns), arguments, outcome.total, outcome.start, children,
                      lambda formula: _decided(agreed([formula], scope), "answer"), table,
                      lambda other, key: _whole(desk, rules, other, key) if desk.exists(ROW, row_id(other, key)) else {})
