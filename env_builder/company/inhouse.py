"""Learn a company's own tools from recorded calls and the change streams of its databases.

In: recorded calls, the company's world, who has which accounts, the names of tools that are implemented. Out: the content of
inhouse.json (`runtime.office.inhouse`), or None where nothing was learnt.
A plan of a tool is proposed from its calls (`tool_plans`) and kept if, carried out at the instants of the calls, it gives
their answers: at least `LEAST_EXACT` of them, and at most `MOST_WRONG` of the others wrongly.
Does not see: tools whose answers are not about rows of a change stream.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from typing import Any, NamedTuple

from env_builder.company.call_acts import acts_of
from env_builder.company.calls import RecordedCall
from env_builder.company.row_changes import RowAct, StreamChange, row_changes, split_acts
from env_builder.company.row_effects import learn_effects
from env_builder.company.tool_plans import ToolCall, complete_plan, proposed_plans
from env_builder.runtime.company import CompanyDesk, CompanyWorld, DeskStart, PersonSight, ProductRefusal, Undecided
from env_builder.runtime.office.formulas import is_same
from env_builder.runtime.office.inhouse import answer_call
from env_builder.runtime.office.row_tables import ROW, row_id
from env_builder.runtime.office.row_writes import RowRules

TABLE = "db_table"
"""Class of the records that describe tables (`extractors.apps.rows`)."""
LEAST_EXACT, MOST_WRONG = 3, 0.02
MOSTLY = 0.5
"""Share of a tool's calls that worked and that acts follow, from which on it is taken for a tool that writes."""
_TYPES = {"text": "string", "flag": "boolean", "number": "number", "object": "object", "list": "array", "nothing": "null"}
MOST_CALLS = 300
"""Calls of a tool that teach."""


class _Score(NamedTuple):
    exact: int
    n_wrong: int


class _EverySight(PersonSight):
    """Rows of tables are for everybody."""

    def __init__(self) -> None:
        self.address = ""

    def sees(self, entity_class: str, entity_id: str) -> bool:
        return True


def induce(calls: Sequence[RecordedCall], world: CompanyWorld, accounts: Mapping[str, Mapping[str, str]],
           implemented: Collection[str]) -> dict[str, Any] | None:
    """Return what was learnt of the tools that are not implemented."""
    rows = CompanyWorld(version for version in world.versions if version.entity_class == ROW)
    beginning, acts = split_acts(row_changes(rows))
    tables = describe_tables(world, [*beginning, *(change for act in acts for change in act.changes)])
    if not tables:
        return None
    rules = RowRules(tables, learn_effects(beginning, acts, tables))
    own = sorted((call for call in calls if call.tool not in implemented), key=lambda call: call.at)
    act_of = acts_of(own, acts)
    by_tool: dict[str, list[tuple[RecordedCall, RowAct | None]]] = defaultdict(list)
    for number, call in enumerate(own):
        if len(by_tool[call.tool]) < MOST_CALLS:
            by_tool[call.tool].append((call, act_of.get(number)))
    tools = {}
    for tool, of_tool in sorted(by_tool.items()):
        n_acts = sum(act is not None for _, act in of_tool)
        n_worked = sum(not call.is_error for call, _ in of_tool)
        orders = ((True, False) if n_acts >= MOSTLY * n_worked else (False, True)) if n_acts else (False,)
        for is_writing in orders:
            plan = _best(rules, [_tool_call(call, act, is_writing, rows, accounts) for call, act in of_tool])
            if plan is not None:
                tools[tool] = plan
                break
    _share_names(tools)
    _share_letters(tools)
    described = [descriptor_of(tool, plan) for tool, plan in tools.items()]
    return {"tables": rules.tables, "effects": rules.effects, "tools": tools, "descriptors": described} if tools else None


def descriptor_of(tool: str, plan: Mapping[str, Any]) -> dict[str, Any]:
    """Return an MCP descriptor of a tool: its arguments as recorded calls have them. No words of the real one are known."""
    properties: dict[str, Any] = {}
    for name, kinds in plan["arguments"].items():
        types = sorted({_TYPES[kind] for kind in kinds})
        properties[name] = {"type": types[0] if len(types) == 1 else types}
        if name == plan["table"].get("argument") and plan["table"]["names"]:
            properties[name]["enum"] = sorted(plan["table"]["names"])
    return {"name": tool, "description": f"{tool}: a tool of the company's own, known from recorded calls.",
            "inputSchema": {"type": "object", "properties": properties, "required": list(plan["required"])},
            "annotations": {"readOnlyHint": plan["act"] is None}}


def _share_letters(tools: Mapping[str, dict[str, Any]]) -> None:
    """Where a tool's answers do not tell how it writes letters beyond ASCII, take what all that tell have in common."""
    styles = [plan["style"] for plan in tools.values() if plan["style"]["format"] == "json"]
    clear = {own for style in styles if len(style["ascii"]) == 1 for own in style["ascii"]}
    for style in styles:
        style["ascii"] = sorted(clear) if len(clear) == 1 else style["ascii"]


def _share_names(tools: Mapping[str, dict[str, Any]]) -> None:
    """Give all tools the words that any of them accepts for tables in an argument of one name."""
    words: dict[str, dict[str, str]] = defaultdict(dict)
    sources = [plan["table"] for plan in tools.values() if plan["table"].get("names")]
    for source in sources:
        words[source["argument"]].update(source["names"])
    for source in sources:
        source["names"] = dict(sorted(words[source["argument"]].items()))


def describe_tables(world: CompanyWorld, changes: Sequence[StreamChange]) -> dict[str, dict[str, Any]]:
    """Return columns with types, and the key, of each table: as declared, else as its rows show."""
    values: dict[str, dict[str, list[Any]]] = defaultdict(lambda: defaultdict(list))
    keys: dict[str, list[tuple[str, dict[str, Any]]]] = defaultdict(list)
    for change in changes:
        keys[change.table].append((change.key, change.values))
        for column, value in change.values.items():
            values[change.table][column].append(value)
    state = world.at(2**61)
    tables = {}
    for table, columns in values.items():
        declared = state.values(TABLE, table)
        stated = {name: affinity(kind) or _shown_type(columns.get(name, ()))
                  for name, kind in declared.get("columns", {}).items()}
        names = [name for name in stated if name in columns] + [name for name in columns if name not in stated]
        types = {name: stated.get(name) or _shown_type(columns[name]) for name in names}
        key = declared.get("key") or [name for name in names if all(
            name not in row or str(row[name]) == own for own, row in keys[table])][:1]
        tables[table] = {"types": types, "key": list(key)}
    return tables


def affinity(declared: str) -> str | None:
    """Return the affinity of a declared type; None: the values of the column say it."""
    kind = declared.casefold()
    if re.search(r"int|serial", kind):
        return "integer"
    if re.search(r"char|clob|text|uuid|enum|date|time", kind):
        return "text"
    return "real" if re.search(r"real|floa|doub", kind) else None


def _shown_type(values: Sequence[Any]) -> str:
    kinds = {type(value) for value in values if value is not None}
    if kinds == {str}:
        return "text"
    if kinds == {int}:
        return "integer"
    if not kinds or not kinds <= {int, float}:
        return "any"
    whole = [value for value in values if isinstance(value, float) and value.is_integer()]
    return "real" if whole else "numeric" if int in kinds else "any"


def _tool_call(call: RecordedCall, act: RowAct | None, is_writing: bool, rows: CompanyWorld,
               accounts: Mapping[str, Mapping[str, str]]) -> ToolCall:
    """Return a call with its act, or without if somebody else is taken to have acted, and a desk just before both."""
    at = call.at if act is None else act.at - 1 if is_writing else min(call.at, act.at - 1)
    state = rows.at(at)
    start = DeskStart(state, call.acting_for, accounts, _EverySight())
    return ToolCall(call.arguments, call.content, call.is_error, act if is_writing else None, CompanyDesk(start))


def _best(rules: RowRules, calls: list[ToolCall]) -> dict[str, Any] | None:
    """Return the plan that gives most of the recorded answers, or None."""
    best: tuple[_Score, dict[str, Any]] | None = None
    for proposed in proposed_plans(rules, calls):
        plan = complete_plan(rules, proposed, calls)
        if plan is None:
            continue
        score = _score(rules, plan, calls)
        if score.exact >= LEAST_EXACT and score.n_wrong <= MOST_WRONG * len(calls) and (
                best is None or score.exact > best[0].exact):
            best = score, plan
        if score.exact == len(calls):
            break
    return None if best is None else best[1]


def _writes_as_logged(plan: Mapping[str, Any], desk: CompanyDesk, call: ToolCall) -> bool:
    """Return whether a call changed what the stream says, as far as the plan tells; nothing where the stream has no act."""
    if call.act is None:
        return plan["act"] is None or not any(kind == ROW for kind, _ in desk.changed())
    return all(not desk.is_known(ROW, row_id(change.table, change.key), column)
               or is_same(desk.value(ROW, row_id(change.table, change.key), column), value)
               for change in call.act.changes[:1] for column, value in change.values.items())


def _score(rules: RowRules, plan: Mapping[str, Any], calls: list[ToolCall]) -> _Score:
    exact = n_wrong = 0
    for call in calls:
        desk = call.desk.fork()
        try:
            answer, is_error = answer_call(rules, plan, desk, call.arguments), False
        except ProductRefusal as refused:
            answer, is_error = str(refused), True
        except Undecided:
            continue
        is_exact = answer == call.content and is_error == call.is_error and _writes_as_logged(plan, desk, call)
        exact, n_wrong = exact + is_exact, n_wrong + (not is_exact)
    return _Score(exact, n_wrong)
