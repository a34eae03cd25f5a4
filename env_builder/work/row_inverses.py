"""Which calls of a company's own tools may bring a change of a row about, from the plans that recorded calls taught.

In: the content of inhouse.json, an act on a row. Out: proposals, as `inverses` has them. Of the columns that changed, those
that the call names are not known, as others may follow by triggers: small sets come first, and the trial tells. Does not see:
arguments that no row shows; lines of an insert.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import combinations
from typing import Any

from env_builder.runtime.company.world import PRESENT
from env_builder.runtime.office.row_tables import ROW
from env_builder.work.acts import ActCall, RecordAct

MOST_COLUMNS = 5
"""Columns that changed together of which all sets are tried."""


def row_proposals(learnt: Mapping[str, Any] | None, act: RecordAct) -> Iterator[list[ActCall]]:
    """Yield calls of the company's own tools that may do an act on a row."""
    if learnt is None or act.entity_class != ROW:
        return
    table, _, key = act.key.partition("/")
    kind = "delete" if act.is_gone else "insert" if act.is_new else "update"
    values = {column: value for column, value in act.after.items() if column != PRESENT}
    for tool, plan in learnt["tools"].items():
        if plan["act"] is None or plan["act"]["kind"] != kind:
            continue
        named = _table_arguments(plan, table)
        keyed = None if named is None else _key_arguments(learnt, plan, table, key, values if act.is_new else {})
        if named is None or keyed is None:
            continue
        for chosen in _sets(values) if kind == "update" else [values]:
            given = _value_arguments(plan, chosen)
            if given is not None and set(plan["required"]) <= {*named, *keyed, *given}:
                yield [ActCall(tool, {**named, **keyed, **given})]


def _sets(values: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    names = sorted(values)
    sizes = range(1, len(names) + 1) if len(names) <= MOST_COLUMNS else (len(names),)
    for size in sizes:
        for chosen in combinations(names, size):
            yield {name: values[name] for name in chosen}


def _table_arguments(plan: Mapping[str, Any], table: str) -> dict[str, Any] | None:
    source = plan["table"]
    if "constant" in source:
        return {} if source["constant"] == table else None
    if source["names"] is None:
        return {source["argument"]: table}
    word = next((word for word, own in source["names"].items() if own == table), None)
    return None if word is None else {source["argument"]: word}


def _key_arguments(learnt: Mapping[str, Any], plan: Mapping[str, Any], table: str, key: str,
                   values: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return the arguments that name the row; none of an insert. None: the tool's filters cannot name it."""
    if plan["act"]["kind"] == "insert":
        return {}
    keys = learnt["tables"][table]["key"] if table in learnt["tables"] else []
    given: dict[str, Any] = {}
    for each in plan["filters"]:
        if each.get("op") == "eq" and each.get("column") in ("$key", *(keys if len(keys) == 1 else ())):
            given[each["argument"]] = _as_kind(key, plan["arguments"].get(each["argument"], ()))
        elif each["form"] == "object" and len(keys) == 1:
            given[each["argument"]] = {keys[0]: key}
    return given or None


def _as_kind(key: str, kinds: Any) -> Any:
    return int(key) if "text" not in kinds and "number" in kinds and key.isdecimal() else key


def _value_arguments(plan: Mapping[str, Any], chosen: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return the arguments that set columns; None: the tool does not set all of them."""
    act = plan["act"]
    given: dict[str, Any] = {}
    rest = dict(chosen)
    for column, formulas in act["columns"]:
        for formula in formulas:
            if formula[0] == "argument" and column in rest:
                given[formula[1]] = rest.pop(column)
                break
        else:
            rest.pop(column, None)   # the tool sets it by itself
    if rest and not act["values"]:
        return None
    return {**given, **({act["values"]: rest} if act["values"] and rest else {})}
