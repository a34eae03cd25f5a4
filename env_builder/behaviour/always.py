"""Questions that are answered alike whatever came before: the floor under every program.

In: a service's steps. Out: the `always` rule of a tool, which answers a question as every session on record was answered it.
Each call is held against the calls of all other sessions with the same arguments (leave one session out), apart by kind: before
and after the session acted. Where these foretell nearly all of a tool's calls of a kind, they may answer, last of all rules.
So no tool is answered worse than by a cassette that never contradicts itself. Only where sessions begin anew, and of tools that
may act: in a shared world answers on record hold for a time, and what a read tells an act may change.
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
READS = ("read", "pure", "constant")
"""Effects of tools that are not answered so: what they tell changes by acts, and sessions seldom look again after these."""
EVEN = 0.5
"""Share that is foretold where nothing is known."""
Question = tuple[str, str]
"""(tool, canonical arguments)."""
Outcome = tuple[str, bool]
"""(answer, whether it is a failure)."""


def kinds_by_tool(steps: Iterable[LoggedStep]) -> dict[str, list[str]]:
    """Return the kinds of each tool's calls that other sessions foretell."""
    calls = list(_kinds(steps))
    outcomes: dict[Question, dict[str, set[Outcome]]] = defaultdict(lambda: defaultdict(set))
    for call, _ in calls:
        outcomes[call.tool, call.key][call.session_id].add((call.content, call.failed))
    n: Counter[tuple[str, str]] = Counter()
    n_right: Counter[tuple[str, str]] = Counter()
    for call, kind in calls:
        by_session = outcomes[call.tool, call.key]
        others = {answer for session_id, own in by_session.items() if session_id != call.session_id for answer in own}
        if len(others) == 1:
            n[call.tool, kind] += 1
            n_right[call.tool, kind] += (call.content, call.failed) in others
    overall = shrunk(n_right.total(), n.total(), EVEN)
    kinds: dict[str, list[str]] = defaultdict(list)
    for tool, kind in sorted(n):
        if shrunk(n_right[tool, kind], n[tool, kind], overall) >= SURE_ENOUGH:
            kinds[tool].append(kind)
    return kinds


def _kinds(steps: Iterable[LoggedStep]) -> Iterator[tuple[LoggedCall, str]]:
    """Yield each call with its kind: whether its session acted before."""
    for _, session in groupby(steps, key=lambda step: step.call.session_id):
        kind = FIRST
        for step in session:
            yield step.call, kind
            kind = LATER if step.act else kind


def induce(evidence: ToolEvidence) -> Induced:
    """Induce the rule that questions are answered as they always were."""
    begins_anew = evidence.service.starts_from == "reset"
    kinds = evidence.shared.always.get(evidence.tool) if begins_anew and evidence.effect not in READS else None
    return Induced([{"rule": "always", "kinds": kinds}]) if kinds else NOTHING
