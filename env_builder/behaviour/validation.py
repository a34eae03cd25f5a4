"""What a tool's declared schema forbids, and how it words that: a `validate` rule, from the schema and the logged failures.

In: a service's steps, and its tools' declared schemas. Out: a rule for each tool whose schema demands something. A demand that
a logged call broke and worked all the same is none; a kind of demand that a service's calls broke, and were
never refused for, is not minded by that service. An argument is unexpected that no schema declares and no call that worked
had; it is minded by a tool that refused such calls alone. A wording is learnt from calls that broke one demand alone: that of
the tool itself, or the one that all tools of the service share; never one that calls which broke nothing were refused with too.
Sees: required and unexpected arguments, types and enumerations of the top level. Does not see: what stands inside objects and
lists, patterns, ranges, words that quote the whole call; of such it says nothing, and the environment `unknown`.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import polars as pl

from env_builder.behaviour import templates
from env_builder.behaviour.evidence import Induced, Rule, ToolEvidence, one_or_none
from env_builder.runtime.refusals import KINDS, Broken, broken, slots
from env_builder.runtime.schemas import TYPES, Schema
from env_builder.world.replay import LoggedStep

MINIMUM_SEEN = 2
"""Refusals from which on their common wording is believed."""
MINIMUM_NAMES = 2
"""Different arguments from which on a wording that repeats the name is believed of any."""
MINIMUM_TOOLS = 2
"""Tools from which on a wording that they share is believed of the others."""


class Refusal(NamedTuple):
    """A call that was refused for one demand alone."""

    tool: str
    broken: Broken
    content: str


def induce(evidence: ToolEvidence) -> Induced:
    """Induce the rule that looks at the arguments before all others but the answer on record."""
    return one_or_none(evidence.shared.demands.get(evidence.tool))


def rules(steps: Mapping[str, list[LoggedStep]], declared: pl.DataFrame) -> dict[str, Rule]:
    """Tool -> its `validate` rule, of the tools of one service. `declared`: `core.tools` that were declared."""
    parsed = {tool: _schema(json.loads(text))
              for tool, text in declared.select("tool", "input_schema").sort("tool").iter_rows()}
    worked, refused = Counter[str](), Counter[str]()
    for tool, schema in parsed.items():
        for step in steps.get(tool, ()):
            (refused if step.call.failed else worked).update({one.kind for one in broken(schema, step.call.arguments)})
    idle = {kind for kind in KINDS if worked[kind] and not refused[kind]}
    nothing: Schema = {"required": [], "types": {}, "values": {}}
    minded = {tool: schema | {kind: nothing[kind] for kind in idle} for tool, schema in parsed.items()}
    schemas = {tool: _borne_out(schema, steps.get(tool, [])) for tool, schema in minded.items()}
    for tool, expected in _expected(steps, declared).items():
        schemas[tool] = {**schemas.get(tool, nothing), "unexpected": expected}
    refusals = [one for tool, schema in schemas.items() for one in _refusals(tool, schema, steps.get(tool, []))]
    shared = list(_messages(refusals, False))
    own = {tool: list(_messages([one for one in refusals if one.tool == tool], True)) for tool in schemas}
    return {tool: {"rule": "validate", **schema, "messages": own[tool] + shared}
            for tool, schema in schemas.items() if any(schema.values())}


def _expected(steps: Mapping[str, list[LoggedStep]], declared: pl.DataFrame) -> dict[str, list[str]]:
    """Tool -> the arguments that its schema declares or calls that worked had, of tools that refused calls for another one."""
    names: dict[str, set[str]] = {tool: set(_fields(json.loads(text)))
                                  for tool, text in declared.select("tool", "input_schema").sort("tool").iter_rows()}
    for tool, own in steps.items():
        names.setdefault(tool, set()).update(*(step.call.arguments for step in own if not step.call.failed))
    return {tool: sorted(names[tool]) for tool, own in sorted(steps.items())
            if names[tool] and sum(not names[tool].issuperset(step.call.arguments) for step in own) >= MINIMUM_SEEN}


def _fields(declared: Any) -> dict[str, Any]:
    fields = declared.get("properties") if isinstance(declared, dict) else None
    return {name: field for name, field in fields.items() if isinstance(field, dict)} if isinstance(fields, dict) else {}


def _schema(declared: Any) -> Schema:
    fields = _fields(declared)
    required = declared.get("required") if isinstance(declared, dict) else None
    types = {name: [field["type"]] if isinstance(field["type"], str) else field["type"]
             for name, field in fields.items() if "type" in field}
    values = {name: field["enum"] for name, field in fields.items() if isinstance(field.get("enum"), list)}
    return {
        "required": sorted(name for name in required if isinstance(name, str)) if isinstance(required, list) else [],
        "types": {name: kinds for name, kinds in sorted(types.items())
                  if isinstance(kinds, list) and kinds and all(kind in TYPES for kind in kinds)},
        "values": dict(sorted(values.items()))}


def _borne_out(schema: Schema, steps: list[LoggedStep]) -> Schema:
    """Return the schema without the demands that a call which worked did not meet."""
    idle = {(one.kind, one.name) for step in steps if not step.call.failed for one in broken(schema, step.call.arguments)}
    return {
        "required": [name for name in schema["required"] if ("required", name) not in idle],
        **{kind: {name: limit for name, limit in schema[kind].items() if (kind, name) not in idle} for kind in KINDS[1:3]}}


def _refusals(tool: str, schema: Schema, steps: list[LoggedStep]) -> Iterator[Refusal]:
    failed = [(step.call.content, broken(schema, step.call.arguments)) for step in steps if step.call.failed]
    otherwise = {content for content, violations in failed if not violations}
    for content, violations in failed:
        one = violations[0] if len(violations) == 1 and content not in otherwise else None
        if one is not None and (one.kind != "unexpected" or one.name in content):   # else it may be about anything
            yield Refusal(tool, one, content)


def _messages(refusals: list[Refusal], own: bool) -> Iterator[dict[str, Any]]:
    """Yield the wordings that hold: of any argument where several repeat theirs, else of those in the log."""
    for kind in KINDS:
        alike = [one for one in refusals if one.broken.kind == kind]
        if not own and len({one.tool for one in alike}) < MINIMUM_TOOLS:
            continue
        names = sorted({one.broken.name for one in alike})
        whole = _template(alike) if len(names) >= MINIMUM_NAMES else None
        if whole is not None and ["argument", "name"] in whole["pieces"]:
            yield {"kind": kind, "names": None, **whole}
        elif own or kind == "unexpected":
            for name in names:
                template = _template([one for one in alike if one.broken.name == name])
                if template is not None:
                    yield {"kind": kind, "names": [name], **template}


def _template(refusals: list[Refusal]) -> dict[str, Any] | None:
    """Return the one wording of all these refusals; None where one says too little of what would change in it."""
    values = {slots(one.broken, one.tool)["value"] for one in refusals}
    is_free = refusals[0].broken.kind == "required" or (
        refusals[0].broken.kind == "unexpected" and not any(value in one.content for value in values for one in refusals))
    if len(refusals) < MINIMUM_SEEN or not (is_free or len(values) >= MINIMUM_SEEN):
        return None
    return templates.shared([({"argument": slots(one.broken, one.tool)}, one.content) for one in refusals])
