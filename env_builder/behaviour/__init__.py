"""What each tool does, induced from its calls, as a program in our small language (docs/behaviour.md).

In: the world's services (effects, relations, steps). Out: one behaviour a tool, with what speaks for and against it.
Rules are tried in order: the answer on record, a constant, the document as known, a write explained field by field;
where none answers the room says `unknown`.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from functools import partial
from typing import Any, NamedTuple

import polars as pl

from env_builder.behaviour import (
    finds,
    makes,
    mentions,
    misses,
    parts,
    refusals,
    replays,
    selections,
    templates,
    validation,
    versions,
    writes,
)
from env_builder.behaviour.sources import Sources
from env_builder.runtime.canonical import canonical
from env_builder.runtime.programs import ACTING
from env_builder.runtime.tables import Table
from env_builder.world import Service, World, arithmetic
from env_builder.world.documents import frame_of
from env_builder.world.replay import Step
from env_builder.world.rows import tables
from warehouse.records import Behaviour, frame

MINIMUM_CONSTANT = 3


def induce(world: World, tools: pl.DataFrame) -> pl.DataFrame:
    """Behaviours of all services' tools: those that were called, and those that were only declared."""
    rows: list[dict[str, Any]] = []
    for name, service in sorted(world.services.items()):
        by_tool: dict[str, list[Step]] = defaultdict(list)
        for step in service.steps:
            by_tool[step.call.tool].append(step)
        things = finds.Things(service.steps, row_tables(service))
        looks = makes.Looks(service.steps, service.documents, service.starts_from == "shared")
        seen = Seen(things, looks, Sources(service.steps, service.starts_from == "reset"))
        rows += [_behaviour(service, tool, steps, seen) for tool, steps in sorted(by_tool.items())]
        declared = tools.filter(pl.col("service") == name)["tool"]
        rows += [_uncalled(name, tool) for tool in sorted(set(declared) - set(by_tool))]
    checks = validation.rules(world, tools)
    rows = [validation.guarded(row, checks.get((row["service"], row["tool"]))) for row in rows]
    return frame(Behaviour, rows).sort("service", "tool")


def row_tables(service: Service) -> dict[str, Table]:
    """Class of rows -> all that the service's tools showed."""
    shown = {tool: rule for tool, program in service.programs.items() for rule in program["rules"] if rule["rule"] == "rows"}
    return tables(service.calls, shown)


class Seen(NamedTuple):
    """What the log of a service showed."""

    things: finds.Things
    looks: makes.Looks
    sources: Sources


class Induced(NamedTuple):
    """Rules of one version of a tool, and what speaks for and against them."""

    rules: list[dict[str, Any]]
    n_against: int
    fidelity: float | None
    abstains: float | None


def _behaviour(service: Service, tool: str, steps: list[Step], seen: Seen) -> dict[str, Any]:
    """The program of a tool; of one that changed, the rules of its last version, and its earlier versions beside them."""
    known = service.programs[tool]
    explained = partial(_explained, service, tool) if known["rules"] and known["effect"] not in ("read", "pure") else None
    cuts = versions.versions(steps, explained)
    *earlier, last = [_induced(service, tool, part.steps, seen) for part in cuts]
    program = {**known, "rules": last.rules}
    if earlier:
        program["versions"] = [
            {"until": part.until, "rules": found.rules} for part, found in zip(cuts[:-1], earlier, strict=True)]
    fidelity, abstains = last.fidelity, last.abstains
    if fidelity is None and abstains is None:
        fidelity, abstains = replays.held_out(
            cuts[-1].steps, program, lambda half: _induced(service, tool, half, seen).rules if half else [])
    program["rules"] = _of_lists(tool, program["rules"], known["effect"], seen.sources)
    return {
        "service": service.name, "tool": tool, "effect": known["effect"], "program": canonical(program),
        "n_support": len(steps), "n_against": sum(found.n_against for found in (*earlier, last)),
        "fidelity": fidelity, "abstains": abstains,
    }


def _of_lists(tool: str, rules: list[dict[str, Any]], effect: str, sources: Sources) -> list[dict[str, Any]]:
    """The rules, with what is known from lists: arguments that must stand in one, and what is selected from one."""
    must = list(selections.unlisted(tool, sources, effect in ACTING))
    named = {rule["argument"] for rule in must}
    for rule in rules:
        if rule["rule"] == "text":  # what the list holds may be said of all that it holds
            values = {name: seen for name, seen in rule["when"]["values"].items() if name not in named}
            rule["when"] = {**rule["when"], "values": values}
    found = None
    if effect == "read" and all(rule["rule"] in ("recorded", "refuse", "rows", "nothing") for rule in rules):
        found = selections.induce(tool, sources)
    return [*rules[:1], *must, *rules[1:], *([found] if found else [])]


def _explained(service: Service, tool: str, steps: list[Step]) -> bool:
    around = writes.Around(service.programs[tool]["rules"][0], tuple(sorted(service.documents.classes)))
    return writes.induce(steps, around, checking=False) is not None


def _induced(service: Service, tool: str, steps: list[Step], seen: Seen) -> Induced:
    known = service.programs[tool]
    rules: list[dict[str, Any]] = [{"rule": "recorded"}]
    showing = known["rules"] or _shows(service, tool, steps)
    n_against, fidelity, abstains = 0, None, None
    speaks, refusal = service.documents.tools.get(tool), None
    if speaks is not None and speaks.argument is not None:
        kind = speaks.entity_class
        keys = frozenset(step.shown[1] for step in service.steps if step.shown and step.shown[0] == kind)
        refusal = refusals.induce(steps, kind, speaks.argument, keys, _unknown(service, kind))
        rules += [refusal] if refusal else []
    if known["effect"] == "constant" or (known["effect"] in ("outside", "unknown") and _constant(steps)):
        rules.append({"rule": "constant", "content": steps[0].call.content})
    elif known["effect"] == "pure":
        calculation = arithmetic.find([step.call for step in steps])
        rules += [{"rule": "arithmetic", **calculation._asdict()}] if calculation else []
    elif known["rules"] and known["effect"] == "read":
        rules += known["rules"]
    elif showing:
        around = writes.Around(
            showing[0], tuple(sorted(service.documents.classes)), seen.things.rows, service.starts_from == "reset", refusal,
            seen.things.closed(showing[0]["class"]))
        written = writes.induce(steps, around)
        if written:
            *before, rule = written.rules
            done = writes.done(rule, service.finals.get(rule["class"], {})) if rule["rule"] == "write" else {}
            rules += [*before, {**rule, "also": service.also.get(tool, []), **({"done": done} if done else {})}]
            n_against = written.n_against
            fidelity, abstains = writes.held_out(steps, around)
        else:
            rules += _shows(service, tool, steps)
    if all(rule["rule"] in ("recorded", "refuse", "rows", "shows") for rule in rules):
        sentence = templates.induce(steps)
        looks = known["effect"] != "write" and known["class"] is None
        rules += [sentence] if sentence else _found(service, steps, seen.things) if looks else []
        reads = known["effect"] == "read" and not sentence
        rules += [found for found in ((misses.induce(steps), parts.induce(steps)) if reads else ()) if found]
    made = makes.induce(steps, seen.looks, seen.things) if known["effect"] in ACTING else None
    rules += [made] if made else []
    if speaks is None and tool in service.also:
        rules.append({"rule": "changes", "also": service.also[tool]})
    return Induced(rules, n_against, fidelity, abstains)


def _found(service: Service, steps: list[Step], things: finds.Things) -> list[dict[str, Any]]:
    """Rules that find the thing of which the answers speak: in what is known of it, then in what others say of it."""
    rules = finds.induce(steps, things)
    return rules + mentions.induce(steps, things, [step for step in service.steps if step.shown], rules)


def _unknown(service: Service, kind: str) -> refusals.Unknown | None:
    """What the tools of a class say where there is no such thing."""
    speaking = {tool: known.argument for tool, known in service.documents.tools.items()
                if known.entity_class == kind and known.argument is not None}
    steps = [step for step in service.steps if step.call.tool in speaking]
    return refusals.unknown(steps, speaking, service.feeds.get(kind))


def _shows(service: Service, tool: str, steps: list[Step]) -> list[dict[str, Any]]:
    """Which thing the answers show, of a tool whose answers nothing explains: so that a real one is understood."""
    known = service.documents.tools.get(tool)
    frames = Counter(frame_of(step.call.content, step.shown[2]) for step in steps if step.shown)
    if known is None or not frames:
        return []
    before, after = max(sorted(frames), key=lambda frame: frames[frame])
    field = service.documents.classes[known.entity_class].self_field
    return [{
        "rule": "shows", "class": known.entity_class, "argument": known.argument, "field": field, "before": before,
        "after": after, "also": service.also.get(tool, []) if known.argument is None else []}]


def _constant(steps: list[Step]) -> bool:
    """Did it always give one answer, to several questions?"""
    asked = {step.call.key for step in steps}
    return len(asked) >= MINIMUM_CONSTANT and len({step.call.content for step in steps}) == 1


def _uncalled(service: str, tool: str) -> dict[str, Any]:
    program: dict[str, Any] = {
        "tool": tool, "effect": "unknown", "class": None, "relation": {}, "rules": [{"rule": "recorded"}]}
    return {
        "service": service, "tool": tool, "effect": "unknown", "program": canonical(program), "n_support": 0,
        "n_against": 0, "fidelity": None, "abstains": None,
    }
