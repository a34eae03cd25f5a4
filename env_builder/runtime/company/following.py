"""What follows in other apps from what an episode wrote, by rules that change streams taught.

In: a desk after a call, what it held before, and rules (`env_builder/company/cross_effects.py`). Out: writes on the desk.
A rule, as JSON: {"act": {"kind", "event", "fields", "conditions"}, "effect": {"kind", "event", "id", "fields"}}. Kind: the
class of a record, for rows `<class>/<table>`. Event: `new` or `changed` (then `fields` of the act all changed). Conditions:
field -> value that the record had after every such act on record. `id` and each of an effect's `fields`: the formulas that
gave the recorded values; where they differ now, or there are none, the field is open.
Formulas, as lists: ["const", value], ["field", name] of the act's record, ["id"] and ["key"] (what follows a `/` in it) of that
record, ["at"] (seconds), ["stamp"] (seconds as a text with six digits), ["actor", class of accounts], ["part", field, pattern]
(the first part of a text that matches), ["text", template] with `{$id}`, `{$key}` and `{name}` of a field.
Sees: one step; what follows from an effect is not followed. Does not see: the delay, which was seconds.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from .desk import UNDECIDED, CompanyDesk, Undecided

TABLED = "db"
"""Class of records that are rows, with ids `<table>/<key>`."""
ACROSS = "across_apps"
"""Name of the rules among a company's conventions."""
_SLOT = re.compile(r"\{([^{}]+)\}")
Formula = Sequence[Any]
Rule = Mapping[str, Any]


class ActScope(NamedTuple):
    """What a formula may name."""

    entity_id: str
    fields: Mapping[str, Any]
    """Of the act's record, after the act."""
    at: float
    actor: Mapping[str, str]
    """Class of accounts -> id, of who acted."""


def kind_of(entity_class: str, entity_id: str) -> str:
    """Return the kind of a record."""
    return f"{entity_class}/{entity_id.partition('/')[0]}" if entity_class == TABLED else entity_class


def evaluate(formula: Formula, scope: ActScope) -> Any:
    """Return a formula's value; `UNDECIDED` where the scope has none."""
    kind = formula[0]
    if kind == "const":
        return formula[1]
    if kind == "field":
        return scope.fields.get(formula[1], UNDECIDED)
    if kind == "actor":
        return scope.actor.get(formula[1], UNDECIDED)
    if kind == "part":
        match = re.search(rf"(?<!\w){formula[2]}(?!\w)", str(scope.fields.get(formula[1], "")))
        return UNDECIDED if match is None else match[0]
    if kind == "text":
        return _filled(str(formula[1]), scope)
    return {"id": scope.entity_id, "key": scope.entity_id.partition("/")[2] or scope.entity_id, "at": scope.at,
            "stamp": f"{scope.at:.6f}"}[kind]


def _filled(template: str, scope: ActScope) -> Any:
    values = {name: scope.fields.get(name, UNDECIDED) for name in _SLOT.findall(template) if not name.startswith("$")}
    values |= {"$id": evaluate(["id"], scope), "$key": evaluate(["key"], scope)}
    if UNDECIDED in values.values():
        return UNDECIDED
    return _SLOT.sub(lambda slot: str(values.get(slot[1], slot[0])), template)


def agreed(formulas: Sequence[Formula], scope: ActScope) -> Any:
    """Return the value on which formulas agree, or `UNDECIDED`."""
    values = [evaluate(formula, scope) for formula in formulas]
    return values[0] if values and all(value == values[0] for value in values) else UNDECIDED


def follow(desk: CompanyDesk, before: CompanyDesk, rules: Sequence[Rule]) -> None:
    """Write what follows from what a call wrote. `before`: the desk before the call."""
    for entity_class, entity_id in desk.written_since(before):
        if not desk.is_there(entity_class, entity_id):
            continue
        kind = kind_of(entity_class, entity_id)
        is_new = not before.is_there(entity_class, entity_id)
        for rule in rules:
            act = rule["act"]
            if act["kind"] != kind or (act["event"] == "new") != is_new:
                continue
            if not is_new and any(_value(desk, entity_class, entity_id, field) == _value(before, entity_class, entity_id, field)
                                  for field in act["fields"]):
                continue
            fields = {name: value for name in desk.fields(entity_class, entity_id)
                      if (value := _value(desk, entity_class, entity_id, name)) is not UNDECIDED}
            if all(name in fields and fields[name] == value for name, value in act["conditions"].items()):
                _carry_out(desk, rule["effect"], ActScope(entity_id, fields, desk.now, desk.accounts))


def _value(desk: CompanyDesk, entity_class: str, entity_id: str, field: str) -> Any:
    try:
        return desk.value(entity_class, entity_id, field)
    except Undecided:
        return UNDECIDED


def _carry_out(desk: CompanyDesk, effect: Mapping[str, Any], scope: ActScope) -> None:
    entity_class, _, table = effect["kind"].partition("/")
    values = {name: agreed(formulas, scope) for name, formulas in effect["fields"].items()}
    own = ActScope("", {name: value for name, value in values.items() if value is not UNDECIDED}, scope.at, scope.actor)
    ids = {agreed([formula], own if formula[0] == "text" and effect["event"] == "new" else scope) for formula in effect["id"]}
    entity_id = next(iter(ids)) if len(ids) == 1 else UNDECIDED
    if effect["event"] == "new":
        key = desk.made_id(f"effect/{effect['kind']}") if entity_id is UNDECIDED else str(entity_id)
        desk.write(entity_class, key if not table or key.startswith(table + "/") else f"{table}/{key}", **values)
        return
    if entity_id is UNDECIDED or not desk.is_there(entity_class, str(entity_id)):
        return   # nothing on record tells what follows then
    desk.write(entity_class, str(entity_id), **values)
