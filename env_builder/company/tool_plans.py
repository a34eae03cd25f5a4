"""Propose plans of an in-house tool (`runtime.office.inhouse`) from its recorded calls.

In: calls with their desks and the acts that they brought about. Out: plans without answers, one for each way in which the calls
may name a table; `complete_plan` adds what the tool writes, the shape of its answers and its refusals.
Which rows a call means is read from its answer and its act; what an argument is for follows from the columns of these rows.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from env_builder.company.answer_shapes import has_part, shape_of, shown_columns, style_of
from env_builder.company.conditions import condition_of
from env_builder.company.row_changes import RowAct
from env_builder.company.tool_writes import learn_act
from env_builder.runtime.company import CompanyDesk, ProductRefusal, Undecided
from env_builder.runtime.office.formulas import RowScope
from env_builder.runtime.office.inhouse import CallOutcome, kind_of, outcome_of, table_of, view_of
from env_builder.runtime.office.row_tables import ROW, row_id, row_of
from env_builder.runtime.office.row_writes import RowRules
from env_builder.runtime.office.selecting import KEY, OPERATIONS, RowTest, passes, selected
from env_builder.runtime.office.shapes import AnswerView

WORDS = {"=": "eq", "==": "eq", "eq": "eq", "is": "eq", "equals": "eq", "!=": "ne", "<>": "ne", "ne": "ne", ">": "gt",
         "gt": "gt", ">=": "ge", "gte": "ge", "ge": "ge", "min": "ge", "<": "lt", "lt": "lt", "<=": "le", "lte": "le",
         "le": "le", "max": "le", "in": "in", "contains": "contains", "ilike": "contains", "like": "contains",
         "icontains": "contains", "startswith": "starts"}
"""Words for operations, as query notations have them; a plan holds those alone that recorded calls confirm."""
_BOUNDS = ((re.compile(r"^(?:min|from|since|after|start)_?|_?(?:min|from|since|after|gte|start)$"), "ge"),
           (re.compile(r"^(?:max|to|until|before|end)_?|_?(?:max|to|until|before|lte|end)$"), "le"))
_LIMIT = re.compile(r"^(?:limit|max_?results|page_?size|per_?page|count|top|size|max_?rows|n)$", re.IGNORECASE)
_OFFSET = re.compile(r"^(?:offset|skip|start|start_?at)$", re.IGNORECASE)
_PAGE = re.compile(r"^(?:page|page_?number)$", re.IGNORECASE)
LEAST_SHOWN = 0.1
"""Share of the answers that show a row of a table which the tool is about."""
_SPELLINGS: tuple[Callable[[str], str], ...] = (
    lambda table: re.sub(r"ies$", "y", table) if table.endswith("ies") else table.removesuffix("s"),
    lambda table: table.removesuffix("s"), lambda table: table.removesuffix("es"),
    lambda table: table.removesuffix("s").title().replace("_", ""), lambda table: table.title().replace("_", ""), str.upper,
    str.lower, str.title, lambda table: table.replace("_", "-"), lambda table: table.replace("_", "-").removesuffix("s"))
"""How a tool may spell the names of tables."""
Plan = dict[str, Any]


class ToolCall(NamedTuple):
    """A recorded call of one tool."""

    arguments: dict[str, Any]
    content: str
    is_error: bool
    act: RowAct | None
    desk: CompanyDesk
    """Just before the call. Nobody may change it: work on a fork."""


def proposed_plans(rules: RowRules, calls: Sequence[ToolCall]) -> list[Plan]:
    """Return plans with what says which table a call means; those first whose tables most answers show."""
    worked = [call for call in calls if not call.is_error]
    if not worked:
        return []
    names = sorted({name for call in calls for name in call.arguments})
    base: Plan = {"arguments": {name: sorted({kind_of(call.arguments[name]) for call in worked if name in call.arguments})
                          for name in names},
            "required": [name for name in names if all(name in call.arguments for call in worked)],
            "filters": [], "orders": [], "paging": _paging(names), "one": True, "shows": None, "fields": None, "none": None,
            "refusals": [], "act": None, "answer": None, "style": None}
    plans: list[tuple[int, Plan]] = []
    for source in _table_sources(rules, worked, names):
        plan = {**base, "table": source}
        n_shown = sum(bool(_rows_in(rules, plan, call)) for call in worked)
        if n_shown < LEAST_SHOWN * len(worked) and not _names_rows(rules, plan, worked):
            continue
        fields = [name for name in names if _lists_columns(rules, plan, worked, name)]
        plan["fields"] = fields[0] if fields else None
        used = {source.get("argument"), plan["fields"], *(plan["paging"][word] for word in ("limit", "offset", "page"))}
        unused = [name for name in names if name not in used]
        plans.append((n_shown, {**plan, "unused": unused}))
    return [plan for _, plan in sorted(plans, key=lambda row: -row[0])]


def complete_plan(rules: RowRules, proposed: Plan, calls: Sequence[ToolCall]) -> Plan | None:
    """Return a plan with filters, act, answer and refusals, or None if the calls contradict it."""
    plan = {**{name: value for name, value in proposed.items() if name != "unused"}, "filters": []}
    worked = [call for call in calls if not call.is_error]
    tables = [table_of(rules, plan, call.arguments) for call in worked]
    if any(call.act for call in worked):
        learnt = learn_act(rules, worked, tables, proposed["unused"])
        if learnt is None:
            return None
        plan["act"], written = learnt
    else:
        written = set()
    if plan["act"] is None or plan["act"]["kind"] != "insert":
        for name in proposed["unused"]:
            if name not in written:
                spec = _filter(rules, plan, worked, tables, name)
                if spec is not None:
                    plan["filters"].append(spec)
    plan["orders"] = _orders(rules, plan, worked)
    return _with_answers(rules, plan, worked, [call for call in calls if call.is_error])


def _paging(names: list[str]) -> dict[str, Any]:
    first = {word: next((name for name in names if pattern.match(name)), None)
             for word, pattern in (("limit", _LIMIT), ("offset", _OFFSET), ("page", _PAGE))}
    return {**first, "default": None, "most": 0, "first": 1}


def _table_sources(rules: RowRules, calls: Sequence[ToolCall], names: list[str]) -> Iterator[dict[str, Any]]:
    for name in names:
        values = [call.arguments.get(name) for call in calls]
        if not all(isinstance(value, str) for value in values):
            continue
        if all(value in rules.tables for value in values):
            yield {"argument": name, "names": None}
        else:
            meant = {str(value): table for value in values for table in rules.tables if _stem(str(value)) == _stem(table)}
            if set(meant) == set(values):
                spelled = [form for form in _SPELLINGS if all(form(table) == value for value, table in meant.items())]
                others = {spelled[0](table): table for table in rules.tables} if spelled else {}
                yield {"argument": name, "names": {**others, **meant}}
    roots = {call.act.changes[0].table for call in calls if call.act}
    for table in roots if len(roots) == 1 else () if roots else rules.tables:
        yield {"constant": table}


def _stem(name: str) -> str:
    return re.sub(r"ies$", "y", re.sub(r"[^a-z0-9]+", "", name.casefold())).rstrip("s")


def _rows_in(rules: RowRules, plan: Plan, call: ToolCall) -> list[str]:
    """Return the keys of the rows of the plan's table that the act or the answer of a call shows."""
    table = table_of(rules, plan, call.arguments)
    if call.act is not None:
        root = call.act.changes[0]
        return [root.key] if root.table == table else []
    try:
        value = json.loads(call.content)
    except ValueError:
        return []
    columns, types = rules.tables[table]["key"], rules.tables[table]["types"]
    rows: dict[str, None] = {}
    for own in _objects(value):
        shown = {name: each for name, each in own.items() if name in types and not isinstance(each, (dict, list))}
        if len(shown) >= 2 and columns and all(shown.get(column) is not None for column in columns):
            key = "/".join(str(shown[column]) for column in columns)
            if _is_row(call.desk, table, key, shown):
                rows[key] = None
        elif len(own) >= 2:
            rows.update(dict.fromkeys(_renamed_rows(call.desk, table, own, types)))
    return list(rows)


def _renamed_rows(desk: CompanyDesk, table: str, shown: Mapping[str, Any], types: Mapping[str, Any]) -> Iterator[str]:
    """Yield the key of the row that an object shows under other names: it has the key, and another value of the row."""
    scalars = [value for value in shown.values() if isinstance(value, (str, int)) and not isinstance(value, bool)]
    for value in scalars:
        identifier = row_id(table, str(value))
        if desk.exists(ROW, identifier):
            row = {column: desk.value(ROW, identifier, column) for column in types}
            same = [name for name, own in shown.items() if name in row and row[name] == own]
            if len(same) >= 1 and len([own for own in scalars if own in row.values()]) >= 2:
                yield str(value)
                return


def _is_row(desk: CompanyDesk, table: str, key: str, shown: Mapping[str, Any]) -> bool:
    identifier = row_id(table, key)
    return desk.exists(ROW, identifier) and all(desk.value(ROW, identifier, name) == own for name, own in shown.items())


def _objects(value: Any) -> Iterator[dict[str, Any]]:
    if isinstance(value, dict):
        yield value
        value = list(value.values())
    if isinstance(value, list):
        for own in value:
            yield from _objects(own)


def _names_rows(rules: RowRules, plan: Plan, calls: Sequence[ToolCall]) -> bool:
    """Return whether a column has the value of an argument in every call, so that it may name the row of an answer in text."""
    for call in calls:
        table = table_of(rules, plan, call.arguments)
        scalars = {value for value in call.arguments.values() if isinstance(value, str)}
        if not any(call.desk.exists(ROW, row_id(table, value)) or any(
                call.desk.where(ROW, column, value) for column in rules.tables[table]["types"]) for value in scalars):
            return False
    return True


def _lists_columns(rules: RowRules, plan: Plan, calls: Sequence[ToolCall], name: str) -> bool:
    given = [call for call in calls if name in call.arguments]
    return bool(given) and all(
        isinstance(call.arguments[name], list) and call.arguments[name] and all(
            isinstance(own, str) and own in rules.tables[table_of(rules, plan, call.arguments)]["types"]
            for own in call.arguments[name]) for call in given)


def _filter(rules: RowRules, plan: Plan, calls: Sequence[ToolCall], tables: list[str], name: str) -> dict[str, Any] | None:
    """Return what an argument filters by, or None: it selects nothing."""
    given = [(call, table) for call, table in zip(calls, tables, strict=True) if name in call.arguments]
    values = [call.arguments[name] for call, _ in given]
    if all(isinstance(value, dict) for value in values):
        return _object_filter(rules, given, name)
    if all(isinstance(value, list) for value in values):
        return _triples(values, name)
    if any(isinstance(value, (dict, list)) for value in values):
        return None
    matches = [(call, table, _rows_in(rules, plan, call)) for call, table in given]
    for column in _column_order(rules, tables, name):
        rows = [row for call, table, keys in matches for row in _rows_or_named(rules, call, table, keys, column,
                                                                             call.arguments[name])]
        if rows and all(row is not None and row[0] == row[1] for row in rows):
            is_key = all(rules.tables[table]["key"] == [column] for table in tables)
            return {"argument": name, "form": "column", "column": KEY if is_key else column, "op": "eq"}
    return _bound(rules, matches, name)


def _rows_or_named(rules: RowRules, call: ToolCall, table: str, keys: list[str], column: str,
                   value: Any) -> list[tuple[Any, Any] | None]:
    """Return (value of the column, value of the argument) of the rows of a call; of the row that it names if none is shown."""
    if column == KEY:
        if keys:
            return [(key, str(value)) for key in keys]
        return [(value, value)] if call.desk.exists(ROW, row_id(table, str(value))) or not _is_text(call) else [None]
    own = column
    if own not in rules.tables[table]["types"]:
        return [None]
    if not keys and call.act is None:
        same = call.desk.where(ROW, own, value)
        return [(value, value)] if any(identifier.startswith(table + "/") for identifier in same) or not _is_text(call) \
            else [None]
    return [(call.desk.value(ROW, row_id(table, key), own), value) if call.desk.exists(ROW, row_id(table, key)) else None
            for key in keys]


def _is_text(call: ToolCall) -> bool:
    return not call.content.startswith(("{", "["))


def _column_order(rules: RowRules, tables: list[str], name: str) -> list[str]:
    """Return columns that an argument may mean: the key, one of its name, those of a similar name, the others."""
    columns = list(dict.fromkeys(column for table in tables for column in rules.tables[table]["types"]))
    same = [column for column in columns if column == name]
    close = [column for column in columns if column != name and (_stem(column) in _stem(name) or _stem(name) in _stem(column))]
    return [*same, KEY, *close, *(column for column in columns if column not in (*same, *close))]


def _object_filter(rules: RowRules, given: list[tuple[ToolCall, str]], name: str) -> dict[str, Any] | None:
    words = {}
    joints = set()
    for call, table in given:
        for column, own in call.arguments[name].items():
            if isinstance(own, dict):
                words.update({word: WORDS.get(word.lstrip("$").casefold()) for word in own})
            elif column not in rules.tables[table]["types"]:
                head, joint, word = column.rpartition("__")
                if joint and head in rules.tables[table]["types"]:
                    joints.add(joint)
                    words[word] = WORDS.get(word)
    if None in words.values():
        return None
    base = {"argument": name, "ops": words}
    return {**base, "form": "suffix", "joint": joints.pop()} if joints else {**base, "form": "object"}


def _triples(values: list[Any], name: str) -> dict[str, Any] | None:
    rows = [row for value in values for row in value]
    if rows and all(isinstance(row, list) and len(row) == 3 for row in rows):
        words = {row[1]: WORDS.get(str(row[1]).casefold()) for row in rows}
        return None if None in words.values() else {"argument": name, "form": "triples", "names": None, "ops": words}
    if rows and all(isinstance(row, dict) and len(row) == 3 and list(row) == list(rows[0]) for row in rows):
        names = list(rows[0])
        words = {row[names[1]]: WORDS.get(str(row[names[1]]).casefold()) for row in rows}
        return None if None in words.values() else {"argument": name, "form": "triples", "names": names, "ops": words}
    return None


def _bound(rules: RowRules, matches: list[tuple[ToolCall, str, list[str]]], name: str) -> dict[str, Any] | None:
    """Return a filter by an order or a part of a text, as far as the argument's name and all shown rows say so."""
    tables = [table for _, table, _ in matches]
    for op in ("ge", "le", "contains"):
        pattern = next((own for own, word in _BOUNDS if word == op), None)
        if pattern is not None and not pattern.search(name):
            continue
        stem = pattern.sub("", name) if pattern is not None else name
        for column in _column_order(rules, tables, stem or name):
            if column == KEY or any(column not in rules.tables[table]["types"] for table in tables):
                continue
            if all(_passes(call, table, key, RowTest(column, op, call.arguments[name]))
                   for call, table, keys in matches for key in keys) and any(keys for _, _, keys in matches):
                return {"argument": name, "form": "column", "column": column, "op": op}
    return None


def _passes(call: ToolCall, table: str, key: str, test: RowTest) -> bool:
    try:
        return test.op in OPERATIONS and passes(call.desk.value(ROW, row_id(table, key), test.column), test)
    except Undecided:
        return False


def _orders(rules: RowRules, plan: Plan, calls: Sequence[ToolCall]) -> list[list[Any]]:
    """Return the orders that all recorded lists have: those of keys and of the stream first."""
    simple: list[list[Any]] = [["stream"], ["key"], ["number"], ["stream", "backwards"]]
    lists = [(call, keys) for call in calls if call.act is None and len(keys := _rows_in(rules, plan, call)) > 1]
    columns = list(dict.fromkeys(column for table in rules.tables for column in rules.tables[table]["types"]))
    for orders in (simple, [["column", column, is_descending] for column in columns for is_descending in (False, True)]):
        kept = [order for order in orders if all(_has_order(rules, plan, call, keys, order) for call, keys in lists)]
        if kept:
            return kept if lists else simple[:3]
    return []


def _has_order(rules: RowRules, plan: Plan, call: ToolCall, keys: list[str], order: list[Any]) -> bool:
    table = table_of(rules, plan, call.arguments)
    if order[0] == "column" and order[1] not in rules.tables[table]["types"]:
        return False
    try:
        matches = selected(call.desk, rules.tables, {**plan, "orders": [order]}, table, call.arguments)
    except Undecided:
        return False
    return [key for key in matches if key in keys] == keys


def _with_answers(rules: RowRules, plan: Plan, worked: list[ToolCall], refused: list[ToolCall]) -> Plan | None:
    style = style_of(call.content for call in worked)
    if style is None:
        return None
    for is_one in (True, False):
        own = {**plan, "one": is_one or plan["act"] is not None, "style": style}
        if not own["one"]:
            _learn_pages(rules, own, worked)
        samples = _samples(rules, own, worked)
        if len(samples) < max(1, 0.9 * len(worked)):
            continue
        if style["format"] == "json":
            _learn_columns(rules, own, samples, style["sort"])
            samples = _samples(rules, own, worked)
        references = {table: [column for column, kind in described["types"].items() if kind != "real"]
                      for table, described in rules.tables.items()}
        shape = _shape(samples, style, references)
        if shape is not None and not (own["one"] and has_part(shape, "rows") and plan["act"] is None):
            return _with_refusals(rules, {**own, "answer": shape}, worked, refused)
    return None


def _shape(samples: list[tuple[ToolCall, CallOutcome, AnswerView]], style: dict[str, Any],
           references: dict[str, list[str]]) -> list[Any] | None:
    """Return one shape for all tables, else one for each."""
    shape = shape_of([(call.content, view) for call, _, view in samples], style, references)
    if shape is not None:
        return shape
    tables = {outcome.table: shape_of([(call.content, view) for call, own, view in samples if own.table == outcome.table],
                                      style, references) for _, outcome, _ in samples}
    return None if len(tables) == 1 or None in tables.values() else ["tables", tables]


def _samples(rules: RowRules, plan: Plan, calls: Sequence[ToolCall]) -> list[tuple[ToolCall, CallOutcome, AnswerView]]:
    samples = []
    for call in calls:
        desk = call.desk.fork()
        try:
            outcome = outcome_of(rules, plan, desk, call.arguments)
            samples.append((call, outcome, view_of(desk, rules, plan, outcome, call.arguments)))
        except (Undecided, ProductRefusal):
            continue
    return samples


def _learn_pages(rules: RowRules, plan: Plan, calls: Sequence[ToolCall]) -> None:
    """Set how many rows a page has without a limit, and how many the longest answer shows."""
    paging = plan["paging"] = {**plan["paging"], "most": 2**30, "default": None}
    full: set[int] = set()
    most = 0
    for call in calls:
        shown = len(_rows_in(rules, plan, call))
        most = max(most, shown)
        if paging["limit"] in call.arguments or paging["page"] in call.arguments:
            continue
        try:
            matches = selected(call.desk, rules.tables, plan, table_of(rules, plan, call.arguments), call.arguments)
        except Undecided:
            continue
        if len(matches) > shown:
            full.add(shown)
    plan["paging"] = {**paging, "default": full.pop() if len(full) == 1 else None, "most": most}


def _learn_columns(rules: RowRules, plan: Plan, samples: list[tuple[ToolCall, CallOutcome, AnswerView]],
                   is_sorted: bool) -> None:
    """Set which columns the tool shows, where these are not all in the table's order."""
    shows: dict[str, list[str]] = {}
    for call, outcome, view in samples:
        if not (plan["fields"] and plan["fields"] in call.arguments):
            columns = shown_columns(json.loads(call.content), view)
            if columns is not None:
                shows.setdefault(outcome.table, columns)
    if any(sorted(columns) != sorted(rules.tables[table]["types"]) if is_sorted else
           columns != list(rules.tables[table]["types"]) for table, columns in shows.items()):
        plan["shows"] = shows


def _with_refusals(rules: RowRules, plan: Plan, worked: list[ToolCall], refused: list[ToolCall]) -> Plan:
    """Add what the tool says where no row fits, and refusals whose reason a column or an argument tells."""
    missing, others = [], []
    reading = {**plan, "act": None, "none": {"shape": ["text", []], "style": {"format": "text"}}}
    for call in refused:
        try:
            outcome_of(rules, reading, call.desk, call.arguments)
        except ProductRefusal:
            missing.append(call)
        except Undecided:
            continue
        else:
            others.append(call)
    if missing:
        plan["none"] = _refusal_shape([(call.content, AnswerView({}, (), (), call.arguments, 0, 0, lambda *_: (),
                                                                 lambda _: None)) for call in missing])
    if others and plan["one"]:
        plan["refusals"] = _reasons(rules, plan, worked, others)
    return plan


def _refusal_shape(samples: list[tuple[str, AnswerView]]) -> dict[str, Any] | None:
    style = style_of(content for content, _ in samples)
    shape = None if style is None else shape_of(samples, style, {})
    return None if shape is None else {"shape": shape, "style": style}


def _reasons(rules: RowRules, plan: Plan, worked: list[ToolCall], refused: list[ToolCall]) -> list[dict[str, Any]]:
    accepted = [scope for call in worked if (scope := _scope(rules, plan, call)) is not None]
    groups: list[list[ToolCall]] = []
    for call in refused:
        for group in groups:
            if _refusal_shape([_sample(rules, plan, own) for own in (*group, call)]) is not None:
                group.append(call)
                break
        else:
            groups.append([call])
    reasons = []
    for group in groups:
        scopes = [scope for call in group if (scope := _scope(rules, plan, call)) is not None]
        shape = _refusal_shape([_sample(rules, plan, call) for call in group])
        when = condition_of(scopes, accepted, "", "") if scopes and accepted and len(scopes) == len(group) >= 2 else []
        if when and shape is not None:
            reasons.append({"when": when, **shape})
        else:
            reasons.append({"when": [["in", ["column", "new", "$none"], [], []]], "shape": ["text", []],
                            "style": {"format": "text"}})
    return reasons


def _row(rules: RowRules, plan: Plan, call: ToolCall) -> dict[str, Any] | None:
    table = table_of(rules, plan, call.arguments)
    try:
        matches = selected(call.desk, rules.tables, plan, table, call.arguments)
    except Undecided:
        return None
    return row_of(call.desk, rules.tables, table, matches[0]) if len(matches) == 1 else None


def _sample(rules: RowRules, plan: Plan, call: ToolCall) -> tuple[str, AnswerView]:
    row = _row(rules, plan, call) or {}
    return call.content, AnswerView(row, (row,), (), call.arguments, 1, 0, lambda *_: (), lambda _: None)


def _scope(rules: RowRules, plan: Plan, call: ToolCall) -> RowScope | None:
    row = _row(rules, plan, call)
    if row is None:
        return None
    arguments = {name: value for name, value in call.arguments.items() if not isinstance(value, (dict, list))}
    return RowScope({"new": row, "argument": arguments}, arguments, call.desk.now, lambda *_: (), lambda _: ())
