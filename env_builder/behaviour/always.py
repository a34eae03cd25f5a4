"""Questions that are answered alike whatever came before: the floor under every program.

In: a service's steps. Out: the `always` rule of a tool, which answers a question as every session on record was answered it.
Each call is held against the calls of all other sessions with the same arguments (leave one session out), apart by kind: before
and after the session acted. Where these foretell nearly all of a tool's calls of a kind, they may answer, last of all rules;
after acts that matter to the call, only if calls after acts of these tools were foretold as well. So no tool is answered worse
than by a cassette that never contradicts itself. Only where sessions begin anew, and of tools that may act: in a shared world
answers on record hold for a time, and what a read tells an act may change.
Sees: calls with arguments that other sessions gave too. Does not see: answers that only few of a tool's questions share,
and what records an act left behind: an act that showed one is not answered so.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from itertools import groupby

from env_builder.behaviour.evidence import NOTHING, Induced, ToolEvidence
from env_builder.runtime.refusals import FIRST, LATER
from env_builder.world.beginnings import shrunk
from env_builder.world.calls import LoggedCall
from env_builder.world.replay import LoggedStep

SURE_ENOUGH = 0.97
"""Share of a tool's calls that other sessions must foretell."""
FEWEST_PASSING = 2
"""Calls after an act that matters to them which must have been foretold, and none otherwise."""
READS = ("read", "pure", "constant")
"""Effects of tools that are not answered so: what they tell changes by acts, and sessions seldom look again after these."""
EVEN = 0.5
"""Share that is foretold where nothing is known."""
Question = tuple[str, str]
"""(tool, canonical arguments)."""
Outcome = tuple[str, bool]
"""(answer, whether it is a failure)."""


def sure_by_tool(steps: Iterable[LoggedStep]) -> dict[str, dict[str, list[str]]]:
    """Return which calls of each tool other sessions foretell: their `kinds`, and tools of acts that matter to them and after
    which they are foretold nevertheless (`passes`)."""
    calls = list(_kinds(steps))
    answers: dict[Question, Answers] = defaultdict(Answers)
    for call, _, _ in calls:
        answers[call.tool, call.key].add(call)
    n: Counter[tuple[str, str]] = Counter()
    n_right: Counter[tuple[str, str]] = Counter()
    after: dict[tuple[str, str], Counter[bool]] = defaultdict(Counter)
    for call, kind, acts in calls:
        other = answers[call.tool, call.key].of_others(call.witness)
        if other is not None:
            n[call.tool, kind] += 1
            n_right[call.tool, kind] += other == (call.content, call.failed)
            for act in acts:
                after[call.tool, act][other == (call.content, call.failed)] += 1
    overall = shrunk(n_right.total(), n.total(), EVEN)
    kinds: dict[str, list[str]] = defaultdict(list)
    for tool, kind in sorted(n):
        if shrunk(n_right[tool, kind], n[tool, kind], overall) >= SURE_ENOUGH:
            kinds[tool].append(kind)
    passes = {tool: [act for (who, act), counts in sorted(after.items())
                     if who == tool and counts[True] >= FEWEST_PASSING and not counts[False]] for tool in kinds}
    return {tool: {"kinds": own, "passes": passes[tool]} for tool, own in kinds.items()}


class Answers:
    """The answers to one question, by witness (world/witnesses.py)."""

    def __init__(self) -> None:
        self._by_witness: dict[str, set[Outcome]] = defaultdict(set)
        self._n_witnesses: Counter[Outcome] = Counter()

    def add(self, call: LoggedCall) -> None:
        own, outcome = self._by_witness[call.witness], (call.content, call.failed)
        self._n_witnesses[outcome] += outcome not in own
        own.add(outcome)

    def of_others(self, witness: str) -> Outcome | None:
        """Return the answer of all witnesses but this one; None where there is none, or several."""
        own = self._by_witness[witness]
        if len(self._n_witnesses) > len(own) + 1:  # more than one that only others got
            return None
        others = [outcome for outcome, n in self._n_witnesses.items() if n > (outcome in own)]
        return others[0] if len(others) == 1 else None


def _kinds(steps: Iterable[LoggedStep]) -> Iterator[tuple[LoggedCall, str, set[str]]]:
    """Yield each call with its kind (whether its session acted before), and the tools of the acts that matter to it."""
    for _, session in groupby(steps, key=lambda step: step.call.session_id):
        kind = FIRST
        for step in session:
            yield step.call, kind, {tool for tool, _ in step.after}
            kind = LATER if step.act else kind


def induce(evidence: ToolEvidence) -> Induced:
    """Induce the rule that questions are answered as they always were."""
    always = None if evidence.effect in READS else evidence.shared.always.get(evidence.tool)
    return Induced([{"rule": "always", **always}]) if always else NOTHING
