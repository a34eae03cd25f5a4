"""Which programs of tools stand from one arrival of logs to the next, and which are learnt again.

To learn a program takes a search; to see that it still answers as the tool does takes a look at what came since. In: a
service's world, and the ledger of programs that were learnt (`raw.programs`), with the epoch of each. Out: the tools whose
program stands. A program stands unless

- its service has fewer than `ENOUGH_SESSIONS`, or its tool fewer than `ENOUGH_CALLS`: a small log is learnt from as a whole;
- the tool's calls grew by half since, and were fewer than `FULL_CALLS` then: more examples teach little;
- what came since refutes it: of the tool's latest `MOST_JUDGED` calls of later epochs it answers two otherwise (more than it
  ever answered otherwise, by share), or lets one through that was refused;
- what it rests on changed: the code, the tool's schema, effect and relations, those of tools that it names, the classes of
  records, what its calls change besides, states that nothing leaves, and the forms in which the tool answers (`FORM_CALLS`
  calls each: a new refusal, a new field);
- a rule of it is judged by no call alone (`JUDGED`): one that searches rows or looks at other calls. One that finds a record by
  its values is judged by the records that a call's answer names, and by whether these values ever changed.

It is learnt from all calls then, as a whole. A program just learnt has nothing after it and rests on what is so: it stands, so
that a build with the nights' ledger gives what the nights gave. Sees: answers that a program gives with what the call's session
was shown before it. Does not see: a change that only shows in records which no session looked at first; a better rule that
more than `FULL_CALLS` calls would teach where the old one errs in none; how many calls the figures of fidelity, which are those
of the day it was learnt, would count today.
"""

from __future__ import annotations

import json
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import polars as pl

from env_builder.behaviour import finds
from env_builder.behaviour.evidence import Rule, ServiceEvidence
from env_builder.behaviour.forms import form_of
from env_builder.behaviour.trials import Malformed, TrialCall, known_before, replies
from env_builder.runtime.canonical import canonical, digest
from env_builder.world import ServiceWorld
from env_builder.world.calls import order_of
from env_builder.world.replay import LoggedStep
from warehouse.records import LearntProgram

ENOUGH_SESSIONS = 400
ENOUGH_CALLS = 40
FULL_CALLS = 200
GROWTH = 1.5
MOST_JUDGED = 200
FORM_CALLS = 5
JUDGED = frozenset({
    "recorded", "validate", "refuse", "check", "constant", "arithmetic", "document", "create", "write", "answer", "text",
    "value", "rows", "shows"})
"""Rules that speak of the arguments and of records that they name, or that never answer what is not on record."""
LEARNT = ("rules", "chosen", "versions")
"""What of a program is learnt; the rest follows from the world of the day."""


class ProgramLedger(NamedTuple):
    """What was learnt before."""

    code: str
    """Digest of the code that learns."""
    epochs: Mapping[str, int]
    """Session -> the epoch that it was sealed with."""
    programs: Mapping[tuple[str, str], LearntProgram]
    """(service, tool) -> its program."""

    def epoch_of(self, session_id: str) -> int:
        """Return the epoch of a session, or of the session of which an opening was made one; 0: it is in none."""
        return self.epochs.get(session_id) or self.epochs.get(session_id.rpartition("~")[0], 0)


NO_LEDGER = ProgramLedger("", {}, {})


class Grounds:
    """What the programs of one service rest on."""

    def __init__(self, service: ServiceWorld, tools: pl.DataFrame, ledger: ProgramLedger,
                 by_tool: Mapping[str, list[LoggedStep]], demands: Mapping[str, Any]) -> None:
        self._service, self._ledger, self._by_tool, self._demands = service, ledger, by_tool, demands
        declared = tools.filter(pl.col("service") == service.name).sort(pl.all())
        self._schemas: dict[str, list[str | None]] = defaultdict(list)
        for tool, schema in declared.select("tool", "input_schema").iter_rows():
            self._schemas[tool].append(schema)
        epochs = {step.call.session_id: ledger.epoch_of(step.call.session_id) for step in service.steps}
        self.epoch = max(epochs.values(), default=0)
        self.is_large = len({session for session, epoch in epochs.items() if epoch and "~" not in session}) >= ENOUGH_SESSIONS
        self._epochs = epochs

    def standing(self, evidence: ServiceEvidence) -> dict[str, LearntProgram]:
        """Return the programs that stand, by tool. `evidence`: all records and rows that were ever shown."""
        if not self.is_large:
            return {}
        likely = {tool: one for tool in self._by_tool
                  if (one := self._ledger.programs.get((self._service.name, tool))) and self._rests(one)}
        later: dict[str, list[TrialCall]] = defaultdict(list)
        for each in known_before(self._service.steps, lambda step: step.call.tool in likely and (
                self._epochs[step.call.session_id] > likely[step.call.tool].epoch)):
            later[each.step.call.tool].append(each)
        return {tool: one for tool, one in likely.items() if not self._refuted(one, later[tool], evidence)}

    def row(self, behaviour: Mapping[str, Any]) -> LearntProgram | None:
        """Return the row of the ledger for a behaviour that was learnt just now; None: it does not stand on another day."""
        tool, program = behaviour["tool"], json.loads(behaviour["program"])
        learnt = canonical({name: program[name] for name in LEARNT if name in program})
        if not self.is_large or behaviour["n_support"] < ENOUGH_CALLS or not _is_judged(program):
            return None
        return LearntProgram(
            service=self._service.name, tool=tool, epoch=self.epoch, n_examples=behaviour["n_support"],
            grounds=self._grounds(tool, learnt), learnt=learnt,
            **{name: behaviour[name] for name in (
                "n_against", "fidelity", "abstains", "cassette_fidelity", "cassette_abstains")})

    def _rests(self, one: LearntProgram) -> bool:
        """Return whether what a program rests on is as it was, and its examples are not many more."""
        n_now = len(self._by_tool[one.tool])
        has_grown = one.n_examples < FULL_CALLS and n_now >= GROWTH * one.n_examples
        return n_now >= ENOUGH_CALLS and not has_grown and one.grounds == self._grounds(one.tool, one.learnt)

    def _grounds(self, tool: str, learnt: str) -> str:
        service = self._service
        named = {word for word in re.findall(r'"((?:[^"\\]|\\.)*)"', learnt) if word in service.programs} | {tool}
        forms = Counter(map(form_of, self._by_tool[tool]))
        return digest(repr([
            self._ledger.code, service.starts_from, [canonical(service.programs[name]) for name in sorted(named)],
            self._schemas[tool], canonical(self._demands.get(tool)), sorted(service.documents.classes),
            service.documents.tools.get(tool), service.also.get(tool), canonical(service.finals), sorted(service.feeds),
            sorted(repr(one) for one, n in forms.items() if n >= FORM_CALLS)]))

    def _refuted(self, one: LearntProgram, later: Iterable[TrialCall], evidence: ServiceEvidence) -> bool:
        program = {**self._service.programs[one.tool], **json.loads(one.learnt)}
        calls = sorted(later, key=lambda each: (self._epochs[each.step.call.session_id], order_of(each.step.call)))
        calls = calls[-MOST_JUDGED:]
        searches = _finds(program)
        if any(rule["stable"] != finds.is_stable(rule, evidence.records) for rule in searches):
            return True
        against = [each.step.call.failed for each in calls for rule in searches
                   if finds.contradicts(rule, each.step, evidence.records)]
        n_passed = sum(against)
        n_otherwise = len(against) - n_passed
        try:
            for each, reply in replies(calls, program, evidence.rows):
                n_otherwise += reply is not None and reply.content != each.step.call.content
                n_passed += reply is not None and each.step.call.failed and not reply.is_error
        except Malformed:
            return True
        expected = len(calls) * one.n_against / one.n_examples
        return n_otherwise - expected >= 2 or n_passed > expected


def _finds(program: Mapping[str, Any]) -> list[Rule]:
    """Return the rules that find records and are judged by single calls."""
    return [] if program.get("versions") else [rule for rule in program["rules"] if finds.is_judged(rule)]


def _is_judged(program: Mapping[str, Any]) -> bool:
    rules = [*program["rules"], *(rule for version in program.get("versions", ()) for rule in version["rules"])]
    searches = _finds(program)
    return all(rule in searches or (rule["rule"] in JUDGED and "taught" not in rule and rule.get("found") in (None, *searches))
               for rule in rules)
