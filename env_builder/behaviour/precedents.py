"""Calls that are answered as in sessions that had been told the same and done the same since.

In: a service's steps. Out: the `precedent` rule of a tool. A call is held against the calls of all other sessions with the same
arguments in the same situation (runtime/precedents.py). If these were all answered alike, they foretell it, the more surely
the more of them there are and the more often sessions are answered so at all. How sure they must be is measured for each tool:
the least at which they foretell nearly all of its calls (leave one session out) to questions that sessions are answered
differently. Only where sessions begin anew. An answer that shows a record which the call may have changed is not given so.
Sees: states that one earlier answer and the calls since tell. Does not see: states that only several answers together tell, and
calls in between that do nothing but are not known to.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from itertools import groupby
from typing import NamedTuple

from env_builder.behaviour.evidence import NOTHING, Induced, Rule, ToolEvidence
from env_builder.runtime.precedents import PastCall, PastCalls, followed, situations
from env_builder.runtime.relevance import ids_in, names
from env_builder.world.beginnings import shrunk
from env_builder.world.replay import LoggedStep

SURE_ENOUGH = 0.97
"""Share of the foretold calls of a tool that must be foretold rightly."""
CUTS = (0.85, 0.9, 0.92, 0.94, 0.96)
"""How sure situations may have to be."""
EVEN = 0.5
"""Share that is foretold rightly where nothing is known."""
WEIGHT = 1.0
"""Sessions that the usual answer weighs as much as."""
MINIMUM_FORETOLD = 10
"""Calls of the service that must be foretold, at least."""
MINIMUM_KEPT = 2
"""Questions answered as before around calls of a tool, from which on it may be taken to do nothing."""
Outcome = tuple[str, bool]
"""(answer, whether it is a failure)."""
Sessions = dict[Outcome, set[str]]
"""Answer -> sessions that got it."""


class Example(NamedTuple):
    """A call of the log."""

    witness: str
    tool: str
    key: str
    outcome: Outcome
    situations: tuple[str, ...]


class Foretold(NamedTuple):
    """What other sessions say of a call."""

    outcome: Outcome
    sureness: float


def rules_by_tool(steps: list[LoggedStep]) -> dict[str, Rule]:
    """Return the rule of each tool whose calls other sessions foretell."""
    keeps = tools_that_keep(steps)
    examples = list(_examples(steps, {tool: frozenset(kept) for tool, kept in keeps.items()}))
    record = _Record(examples)
    cuts = _cuts(examples, record)
    barred = {(step.call.tool, step.call.content) for step in steps if step.acting and step.shown}
    rules: dict[str, Rule] = {}
    for tool, cut in cuts.items():
        rows = {name: outcome for name, outcome in record.sure(tool, cut) if (tool, outcome[0]) not in barred}
        answers = sorted(set(rows.values()))
        place = {outcome: index for index, outcome in enumerate(answers)}
        if rows:
            rules[tool] = {"rule": "precedent", "keeps": keeps[tool], "answers": [list(outcome) for outcome in answers],
                           "situations": {name: place[outcome] for name, outcome in sorted(rows.items())}}
    return rules


def tools_that_keep(steps: list[LoggedStep]) -> dict[str, list[str]]:
    """Return, by tool that is asked, the tools that are not needed to explain why an answer changed within a session.

    An act is one only if the tool's own questions were answered as before around some that worked: if acts of its tool ever
    name what the asked tool shows, around such acts.
    """
    n_kept: Counter[str] = Counter()
    kept_of: dict[str, _KeptAround] = {tool: _KeptAround(shown) for tool, shown in _shown_names(steps).items()}
    changed: set[frozenset[str]] = set()
    acts: dict[str, set[str]] = defaultdict(set)
    for _, session in groupby(steps, key=lambda step: step.call.session_id):
        last: dict[tuple[str, str], tuple[int, str]] = {}
        past: list[LoggedStep] = []
        for step in session:
            question = (step.call.tool, step.call.key)
            since, content = last.get(question, (len(past), step.call.content))
            between = frozenset(other.call.tool for other in past[since:])
            if content == step.call.content:
                n_kept.update(between)
                kept_of[step.call.tool].add(step, past[since:])
            else:
                changed.add(between)
            last[question] = len(past), step.call.content
            past.append(step)
            if step.acting and not step.call.failed:
                acts[step.call.tool] |= names(step.call.arguments)
    suspects = _suspects(changed, n_kept)
    quiet = {tool for tool, n in n_kept.items() if n >= MINIMUM_KEPT and tool not in suspects}
    return {reader: sorted(tool for tool in quiet if tool not in acts or own.keeps(tool, acts[tool]))
            for reader, own in kept_of.items()}


def _shown_names(steps: list[LoggedStep]) -> dict[str, frozenset[str]]:
    """Return what the answers of each tool name that not all of them name."""
    shown: dict[str, list[frozenset[str]]] = defaultdict(list)
    for step in steps:
        shown[step.call.tool].append(ids_in(step.call.content))
    return {tool: frozenset[str]().union(*own) - frozenset.intersection(*own) for tool, own in shown.items()}


class _KeptAround:
    """How often questions of one tool were answered as before around acts of others, and around such as name what it shows."""

    def __init__(self, shown: frozenset[str]) -> None:
        self._shown = shown
        self._n: Counter[str] = Counter()
        self._n_near: Counter[str] = Counter()

    def add(self, question: LoggedStep, between: list[LoggedStep]) -> None:
        """Count the acts that worked between two equal answers to a question."""
        acts = [step.call for step in between if step.acting and not step.call.failed]
        here = ids_in(question.call.content) | ids_in(question.call.key) if acts else frozenset()
        self._n.update({act.tool for act in acts})
        self._n_near.update({act.tool for act in acts if not here.isdisjoint(names(act.arguments))})

    def keeps(self, tool: str, named: set[str]) -> bool:
        """Return whether acts of a tool, which name these, are known to leave the answers alone."""
        near = not self._shown.isdisjoint(named)
        return (self._n_near if near else self._n)[tool] >= MINIMUM_KEPT


def _suspects(changed: set[frozenset[str]], n_kept: Counter[str]) -> set[str]:
    """Return few tools that explain all changes: of those before a change the one that was seen least where nothing changed."""
    suspects: set[str] = set()
    for tools in sorted(changed, key=lambda tools: (len(tools), sorted(tools))):
        if tools and suspects.isdisjoint(tools):
            suspects.add(min(tools, key=lambda tool: (n_kept[tool], tool)))
    return suspects


def _examples(steps: Iterable[LoggedStep], keeps: dict[str, frozenset[str]]) -> Iterator[Example]:
    for _, session in groupby(steps, key=lambda step: step.call.session_id):
        past: PastCalls = ()
        for step in session:
            call = step.call
            here = tuple(situations(call.tool, call.key, past, keeps[call.tool]))
            yield Example(call.witness, call.tool, call.key, (call.content, call.failed), here)
            past = followed(past, PastCall(call.tool, call.key, call.content, call.failed))


class _Record:
    """What sessions were answered, by question and by situation."""

    def __init__(self, examples: list[Example]) -> None:
        self._usual: dict[tuple[str, str], Sessions] = defaultdict(lambda: defaultdict(set))
        self._rows: dict[str, Sessions] = defaultdict(lambda: defaultdict(set))
        self._question: dict[str, tuple[str, str]] = {}
        for one in examples:
            self._usual[one.tool, one.key][one.outcome].add(one.witness)
            for name in one.situations:
                self._rows[name][one.outcome].add(one.witness)
                self._question[name] = (one.tool, one.key)

    def differs(self, one: Example) -> bool:
        """Are sessions answered this question differently?"""
        return len(self._usual[one.tool, one.key]) > 1

    def foretell(self, one: Example) -> list[Foretold]:
        """Return what other sessions say of a call, by situation."""
        return [each for name in one.situations if (each := self._foretold(name, one.witness)) is not None]

    def sure(self, tool: str, cut: float) -> Iterator[tuple[str, Outcome]]:
        """Yield each situation of a tool's calls that is sure enough, with the answer."""
        for name, (asked, _) in self._question.items():
            each = self._foretold(name, None) if asked == tool else None
            if each is not None and each.sureness >= cut:
                yield name, each.outcome

    def _foretold(self, name: str, without: str | None) -> Foretold | None:
        others = _without(self._rows[name], without)
        if len(others) != 1:
            return None
        ((outcome, n),) = others.items()
        usual = _without(self._usual[self._question[name]], without)
        return Foretold(outcome, (n + WEIGHT * usual[outcome] / sum(usual.values())) / (n + WEIGHT))


def _without(sessions: Sessions, session_id: str | None) -> dict[Outcome, int]:
    """Return how many sessions got each answer, without one of them."""
    counts = {outcome: len(ids) - (session_id in ids) for outcome, ids in sessions.items()}
    return {outcome: n for outcome, n in counts.items() if n}


def _cuts(examples: list[Example], record: _Record) -> dict[str, float]:
    """Return how sure situations must be for each tool, of tools where they ever are."""
    tried = [(one, record.foretell(one)) for one in examples if record.differs(one)]
    cuts: dict[str, float] = {}
    for cut in CUTS:
        n: Counter[str] = Counter()
        n_right: Counter[str] = Counter()
        for one, foretold in tried:
            outcomes = {each.outcome for each in foretold if each.sureness >= cut}
            if len(outcomes) == 1:
                n[one.tool] += 1
                n_right[one.tool] += outcomes == {one.outcome}
        if n.total() < MINIMUM_FORETOLD:
            break
        overall = shrunk(n_right.total(), n.total(), EVEN)
        for tool in n:
            if shrunk(n_right[tool], n[tool], overall) >= SURE_ENOUGH:
                cuts.setdefault(tool, cut)
    return dict(sorted(cuts.items()))


def induce(evidence: ToolEvidence) -> Induced:
    """Induce the rule that calls are answered as in sessions that were told and did the same."""
    rule = evidence.shared.precedents.get(evidence.tool)
    return Induced([rule]) if rule else NOTHING
