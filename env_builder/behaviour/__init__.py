"""What each tool does, induced from its calls, as a program in our small language (docs/behaviour.md).

In: the world's services (effects, relations, steps). Out: one behaviour a tool, with what speaks for and against it.
Rules are tried in the order of registry.py; where none answers, the tool answers `unknown`. Rules that a cassette beats on
held-out sessions (trials.py) are dropped: the tool then answers from the record alone.

A tool that began to answer or write differently has versions, each with the instant at which it ended. Two signs tell a change:
the form of its answers (arguments, fields, words; a tool with few answers: what it says) before and after an instant
have nothing in common; or no rule gives all its answers (one for writes, of other tools one that computes them from the
question and the records that it names), but one gives those before and another those after. Sees: tools with at least ten
calls in each version, and a clock. Does not see: a version that came back; a change that most calls do not meet; fields that
were renamed in records which were not read again since.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Hashable
from functools import partial
from typing import Any, NamedTuple

import polars as pl

from env_builder.behaviour import (
    always,
    answers,
    carried,
    chosen,
    conversions,
    edited,
    finds,
    precedents,
    standing,
    templates,
    trials,
    validation,
    writes,
)
from env_builder.behaviour.evidence import EvidenceFinders, Induced, Rule, ServiceEvidence, Sources, ToolEvidence
from env_builder.behaviour.forms import form_of
from env_builder.behaviour.registry import INDUCERS
from env_builder.runtime.canonical import canonical
from env_builder.runtime.programs import presumed_effect
from env_builder.world import InducedWorld, ServiceWorld
from env_builder.world.bends import MINIMUM_CALLS, bend
from env_builder.world.computed import MINIMUM_QUESTIONS, is_computed
from env_builder.world.history import instant
from env_builder.world.replay import LoggedStep
from warehouse.records import Behaviour, LearntProgram, frame

FINDERS = EvidenceFinders(always.sure_by_tool, precedents.rules_by_tool, carried.pasts, chosen.find)


class LearntBehaviours(NamedTuple):
    """What the tools do, and what of it another day need not learn again."""

    behaviours: pl.DataFrame
    programs: pl.DataFrame
    """Rows of the ledger (`raw.programs`) of today."""
    n_learnt: int
    """Tools whose program was learnt from the log, not taken from the ledger."""


def induce(world: InducedWorld, tools: pl.DataFrame) -> pl.DataFrame:
    """Behaviours of all services' tools: those that were called, and those that were only declared."""
    return learn(world, tools, standing.NO_LEDGER).behaviours


def learn(world: InducedWorld, tools: pl.DataFrame, ledger: standing.ProgramLedger) -> LearntBehaviours:
    """Return the same with the programs of the ledger where they stand (standing.py)."""
    rows: list[dict[str, Any]] = []
    programs: list[LearntProgram] = []
    n_learnt = 0
    for name, service in sorted(world.services.items()):
        by_tool: dict[str, list[LoggedStep]] = defaultdict(list)
        for step in service.steps:
            by_tool[step.call.tool].append(step)
        demands = validation.rules(by_tool, tools.filter((pl.col("service") == name) & pl.col("declared")))
        evidence = ServiceEvidence(service, demands, FINDERS)
        grounds = standing.Grounds(service, tools, ledger, by_tool, demands)
        current = grounds.standing(evidence)
        for tool, steps in sorted(by_tool.items()):
            behaviour = _taken_over(service, current[tool], len(steps)) if tool in current else (
                _behaviour(service, tool, steps, evidence))
            row = current.get(tool) or grounds.row(behaviour)
            rows.append(behaviour)
            programs += [row] if row else []
        n_learnt += len(by_tool) - len(current)
        declared = tools.filter(pl.col("service") == name)["tool"]
        rows += [_uncalled(name, tool, demands.get(tool)) for tool in sorted(set(declared) - set(by_tool))]
    return LearntBehaviours(frame(Behaviour, rows).sort("service", "tool"), frame(LearntProgram, programs), n_learnt)


def _taken_over(service: ServiceWorld, one: LearntProgram, n_support: int) -> dict[str, Any]:
    documented = service.programs[one.tool]
    figures = one.model_dump(include={
        "service", "tool", "n_against", "fidelity", "abstains", "cassette_fidelity", "cassette_abstains"})
    return {**figures, "effect": documented["effect"], "n_support": n_support,
            "program": canonical({**documented, **json.loads(one.learnt)})}


def _behaviour(service: ServiceWorld, tool: str, steps: list[LoggedStep], evidence: ServiceEvidence) -> dict[str, Any]:
    """Return the program of a tool; of one that changed, the rules of its last version, with its earlier versions."""
    documented = service.programs[tool]
    writes = documented["rules"] and presumed_effect(documented) not in ("read", "pure")
    explained = partial(_explained, service, tool) if writes else partial(_is_told, service, tool, evidence)
    few_prove = is_computed([step.call for step in steps])
    cuts = find_versions(steps, explained, MINIMUM_QUESTIONS if few_prove else MINIMUM_CALLS)
    earlier = [_induced(service, tool, part.steps, evidence) for part in cuts[:-1]]
    last = _induced(service, tool, cuts[-1].steps, evidence, evidence.sources)
    kept = {kind for kind, relation in documented["relation"].items() if relation == "keeps"}
    parts = {kind: fields for kind, fields in evidence.chosen.get(tool, {}).items() if kind in kept} if kept else {}
    program = {**documented, "rules": last.rules, **({"chosen": parts} if parts else {})}
    if earlier:
        program["versions"] = [
            {"until": part.until, "rules": part_induced.rules} for part, part_induced in zip(cuts[:-1], earlier, strict=True)]
    fidelity, abstains, cassette = last.fidelity, last.abstains, trials.on_cassette(cuts[-1].steps)
    if fidelity is None and abstains is None:
        held_out = trials.held_out(
            cuts[-1].steps, program, lambda half: _induced(service, tool, half, evidence).rules if half else [])
        if held_out is not None and held_out.is_beaten:
            program["rules"] = [rule for rule in program["rules"] if rule["rule"] not in trials.MEASURED]
        elif held_out is not None:
            fidelity, abstains, cassette = held_out.rules.exact, held_out.rules.abstains, held_out.cassette
    return {
        "service": service.name, "tool": tool, "effect": documented["effect"], "program": canonical(program),
        "n_support": len(steps), "n_against": sum(part_induced.n_against for part_induced in (*earlier, last)),
        "fidelity": fidelity, "abstains": abstains, "cassette_fidelity": cassette.exact, "cassette_abstains": cassette.abstains}


def _explained(service: ServiceWorld, tool: str, steps: list[LoggedStep]) -> bool:
    around = writes.WriteContext(service.programs[tool]["rules"][0], tuple(sorted(service.documents.classes)))
    return writes.write_rules(steps, around, checking=False) is not None


COMPUTING = (conversions.induce, templates.induce, answers.induce, answers.induce_unnamed)
"""Rules that give what a tool answers from the question, and records that it names."""


def _is_told(service: ServiceWorld, tool: str, shared: ServiceEvidence, steps: list[LoggedStep]) -> bool:
    evidence = ToolEvidence(service, tool, steps, shared)
    is_record = evidence.effect == "read" and bool(evidence.documented["rules"]) and not conversions.computes(evidence)
    return not is_record and any(induce_rule(evidence).rules for induce_rule in COMPUTING)


def _induced(
    service: ServiceWorld, tool: str, steps: list[LoggedStep], shared: ServiceEvidence, sources: Sources | None = None
) -> Induced:
    """Induce the rules of one version of a tool: every rule of the registry in turn sees those before it."""
    evidence = ToolEvidence(service, tool, steps, shared, sources)
    n_against, fidelity, abstains = 0, None, None
    for induce_rule in INDUCERS:
        induced = induce_rule(evidence)
        evidence.rules += induced.rules
        n_against += induced.n_against
        if induced.abstains is not None:
            fidelity, abstains = induced.fidelity, induced.abstains
    return Induced(edited.confirmed(finds.confirmed(evidence.rules)), n_against, fidelity, abstains)


def _uncalled(service: str, tool: str, demands: Rule | None) -> dict[str, Any]:
    program: dict[str, Any] = {
        "tool": tool, "effect": "unknown", "class": None, "relation": {},
        "rules": [{"rule": "recorded"}, *([demands] if demands else [])]}
    return {
        "service": service, "tool": tool, "effect": "unknown", "program": canonical(program), "n_support": 0,
        "n_against": 0, "fidelity": None, "abstains": None, "cassette_fidelity": None, "cassette_abstains": None}


REPEATED = 5
"""Calls that each form has at least, on the average: forms that hardly repeat tell nothing apart."""
FEW_ANSWERS = 3


class ToolVersion(NamedTuple):
    """Calls of one version."""

    until: str | None
    """ISO instant from which the next version holds; None: it is the last."""
    steps: list[LoggedStep]


def find_versions(
    steps: list[LoggedStep], explained: Callable[[list[LoggedStep]], bool] | None = None, fewest: int = MINIMUM_CALLS
) -> list[ToolVersion]:
    """Return the versions in order; one where nothing speaks for more. `explained`: does one rule explain these steps?
    `fewest`: calls that worked in which such a rule shows."""
    timed = sorted((step for step in steps if step.call.called_at), key=lambda step: (_when(step), step.call.event_id))
    if len(timed) != len(steps) or len(steps) < 2 * fewest:
        return [ToolVersion(None, steps)]
    worked = [step for step in timed if not step.call.failed]
    starts = list(map(_when, _apart(worked)))
    if not starts and explained is not None and not explained(steps):
        first = bend([not step.call.failed for step in timed], lambda begin, end: explained(timed[begin:end]), fewest)
        starts = [] if first is None else [_when(timed[first])]
    begins = [(step, _when(step)) for step in steps]
    return [
        ToolVersion(end, [step for step, at in begins if begin <= at and (end is None or at < end)])
        for begin, end in zip(["", *starts], [*starts, None], strict=True)]


def _when(step: LoggedStep) -> str:
    return instant(step.call.called_at) or ""


def _apart(worked: list[LoggedStep]) -> list[LoggedStep]:
    """First steps of versions whose answers have no form in common with those before."""
    few = len({step.call.content for step in worked}) <= FEW_ANSWERS and not any(step.shown for step in worked)
    forms: list[Hashable] = [step.call.content if few else form_of(step) for step in worked]
    last = {form: index for index, form in enumerate(forms)}
    starts: list[int] = []
    begin, reach = 0, -1
    for index, form in enumerate(forms):
        if index > reach and index - begin >= MINIMUM_CALLS and len(forms) - index >= MINIMUM_CALLS:
            before, after = set(forms[begin:index]), set(forms[index:])
            if REPEATED * len(before) <= index - begin and REPEATED * len(after) <= len(forms) - index:
                starts.append(index)
                begin = index
        reach = max(reach, last[form])
    return [worked[index] for index in starts if worked[index].call.called_at != worked[index - 1].call.called_at]
