"""What a tool's declared schema forbids, and how it words that: a `validate` rule, from the schema and the logged failures.

In: a service's steps, and its tools' declared schemas. Out: a rule for each tool whose schema demands something. A demand that
a logged call broke and worked all the same is none; a kind of demand that a service's calls broke, and were
never refused for, is not minded by that service. A wording is learnt from calls that broke one demand alone: that of the tool
itself, or the one that all tools of the service share; never one that calls which broke nothing were refused with too.
Sees: required arguments, types and enumerations of the top level. Does not see: what stands inside objects and lists, patterns,
ranges, words that quote the whole call; of such it says nothing, and the room `unknown`.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterator
from typing import Any, NamedTuple

import polars as pl

from env_builder.behaviour import templates
from env_builder.runtime.canonical import canonical
from env_builder.runtime.validation import KINDS, TYPES, Broken, Schema, broken, slots
from env_builder.world import World
from env_builder.world.replay import Step

MINIMUM_SEEN = 2
"""Refusals from which on their common wording is believed."""
MINIMUM_NAMES = 2
"""Different arguments from which on a wording that repeats the name is believed of any."""
MINIMUM_TOOLS = 2
"""Tools from which on a wording that they share is believed of the others."""
Rule = dict[str, Any]


class Refusal(NamedTuple):
    """A call that was refused for one demand alone."""

    tool: str
    broken: Broken
    content: str


def rules(world: World, tools: pl.DataFrame) -> dict[tuple[str, str], Rule]:
    """(service, tool) -> its `validate` rule."""
    found: dict[tuple[str, str], Rule] = {}
    for name, service in sorted(world.services.items()):
        declared = tools.filter((pl.col("service") == name) & pl.col("declared"))
        steps: dict[str, list[Step]] = defaultdict(list)
        for step in service.steps:
            steps[step.call.tool].append(step)
        schemas = {tool: _schema(json.loads(text))
                   for tool, text in declared.select("tool", "input_schema").sort("tool").iter_rows()}
        schemas = _looked_at(schemas, steps)
        refusals = [one for tool, schema in schemas.items() for one in _refusals(tool, schema, steps[tool])]
        shared = list(_messages(refusals, False))
        for tool, schema in schemas.items():
            own = list(_messages([one for one in refusals if one.tool == tool], True))
            if any(schema.values()):
                found[name, tool] = {"rule": "validate", **schema, "messages": own + shared}
    return found


def _schema(declared: Any) -> Schema:
    """What of a JSON schema is looked at."""
    fields = declared.get("properties") if isinstance(declared, dict) else None
    fields = {name: field for name, field in fields.items() if isinstance(field, dict)} if isinstance(fields, dict) else {}
    required = declared.get("required") if isinstance(declared, dict) else None
    types = {name: [field["type"]] if isinstance(field["type"], str) else field["type"]
             for name, field in fields.items() if "type" in field}
    values = {name: field["enum"] for name, field in fields.items() if isinstance(field.get("enum"), list)}
    return {
        "required": sorted(name for name in required if isinstance(name, str)) if isinstance(required, list) else [],
        "types": {name: kinds for name, kinds in sorted(types.items())
                  if isinstance(kinds, list) and kinds and all(kind in TYPES for kind in kinds)},
        "values": dict(sorted(values.items()))}


def _looked_at(schemas: dict[str, Schema], steps: dict[str, list[Step]]) -> dict[str, Schema]:
    """The schemas as the service minds them."""
    worked, refused = Counter[str](), Counter[str]()
    for tool, schema in schemas.items():
        for step in steps[tool]:
            (refused if step.call.failed else worked).update({one.kind for one in broken(schema, step.call.arguments)})
    idle = {kind for kind in KINDS if worked[kind] and not refused[kind]}
    nothing: Schema = {"required": [], "types": {}, "values": {}}
    return {tool: _borne_out({kind: nothing[kind] if kind in idle else schema[kind] for kind in KINDS}, steps[tool])
            for tool, schema in schemas.items()}


def guarded(row: dict[str, Any], rule: Rule | None) -> dict[str, Any]:
    """A behaviour that looks at its arguments before all else but the answers on record, in all its versions."""
    if rule is None:
        return row
    program = json.loads(row["program"])
    for version in (program, *program.get("versions", ())):
        at = int(version["rules"][:1] == [{"rule": "recorded"}])
        version["rules"] = [*version["rules"][:at], rule, *version["rules"][at:]]
    return {**row, "program": canonical(program)}


def _borne_out(schema: Schema, steps: list[Step]) -> Schema:
    """The schema without the demands that a call which worked did not meet."""
    idle = {(one.kind, one.name) for step in steps if not step.call.failed for one in broken(schema, step.call.arguments)}
    return {
        "required": [name for name in schema["required"] if ("required", name) not in idle],
        **{kind: {name: said for name, said in schema[kind].items() if (kind, name) not in idle} for kind in KINDS[1:]}}


def _refusals(tool: str, schema: Schema, steps: list[Step]) -> Iterator[Refusal]:
    failed = [(step, broken(schema, step.call.arguments)) for step in steps if step.call.failed]
    otherwise = {step.call.content for step, found in failed if not found}
    for step, found in failed:
        if len(found) == 1 and step.call.content not in otherwise:
            yield Refusal(tool, found[0], step.call.content)


def _messages(refusals: list[Refusal], own: bool) -> Iterator[dict[str, Any]]:
    """The wordings that hold: of any argument where several were seen and each is repeated, else of those that were seen."""
    for kind in KINDS:
        alike = [one for one in refusals if one.broken.kind == kind]
        if not own and len({one.tool for one in alike}) < MINIMUM_TOOLS:
            continue
        names = sorted({one.broken.name for one in alike})
        whole = _template(alike) if len(names) >= MINIMUM_NAMES else None
        if whole is not None and ["argument", "name"] in whole["pieces"]:
            yield {"kind": kind, "names": None, **whole}
        elif own:
            for name in names:
                found = _template([one for one in alike if one.broken.name == name])
                if found is not None:
                    yield {"kind": kind, "names": [name], **found}


def _template(refusals: list[Refusal]) -> dict[str, Any] | None:
    """The one wording of all these refusals; None where one says too little of what would change in it."""
    values = {slots(one.broken, one.tool)["value"] for one in refusals}
    if len(refusals) < MINIMUM_SEEN or (refusals[0].broken.kind != "required" and len(values) < MINIMUM_SEEN):
        return None
    return templates.shared([({"argument": slots(one.broken, one.tool)}, one.content) for one in refusals])
