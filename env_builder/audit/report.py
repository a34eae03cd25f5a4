"""The audit as it ships with the rewards: a row a task, and the rates over all of them.

In: what came of each task. Out: rows of audit.jsonl ({"task_id", "rubric_id", "reason", "plays": [{"player", "kind", "reward",
"should", "says"}]}) and audit.json: how often what should fail got through (`false_accept`), and how often what should pass
did not (`false_reject`), with Wilson's 95 % interval; of all tasks that were tried, and of those that hold.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from env_builder.audit.plays import PASSES, Play
from env_builder.audit.rates import rate

if TYPE_CHECKING:
    from env_builder.audit import Audited, Depth

FORMAT = "traceroom-audit/1"


class Report(NamedTuple):
    """What ships."""

    rows: list[dict[str, Any]]
    """Rows of audit.jsonl, sorted by task_id."""
    totals: dict[str, Any]
    """audit.json."""


def report(found: Mapping[str, Audited], rubric_ids: Mapping[str, str | None], depth: Depth) -> Report:
    """The report on the tasks of `found`."""
    rows = [{
        "task_id": task_id, "rubric_id": rubric_ids[task_id],
        "reason": audited.failure.reason if audited.failure else "verified",
        "plays": [play._asdict() for play in audited.plays],
    } for task_id, audited in sorted(found.items()) if task_id in rubric_ids]
    holding = [audited for audited in found.values() if audited.failure is None]
    tried = {"n_tasks": len(rows), **totals(play for audited in found.values() for play in audited.plays)}
    held = {"n_tasks": len(holding), **totals(play for audited in holding for play in audited.plays)}
    return Report(rows, {
        "format": FORMAT, "passes_above": PASSES, "depth": depth._asdict(), "tried": tried, "published": held})


def totals(plays: Iterable[Play]) -> dict[str, Any]:
    """Rates by kind of player, and a table of what each attacker and operator came to."""
    played = list(plays)
    right = [play for play in played if play.should == "pass" and play.reward is not None]
    accepts = {}
    for kind in ("session", "attacker", "mutant"):
        wrong = [play for play in played if play.kind == kind and play.should == "fail" and play.reward is not None]
        accepts[kind] = rate(sum(play.passed for play in wrong), len(wrong))
    return {
        "false_accept": accepts, "false_reject": rate(sum(not play.passed for play in right), len(right)),
        "players": {name: _counts([play for play in played if play.kind != "session" and play.player == name])
                    for name in sorted({play.player for play in played if play.kind != "session"})}}


def _counts(plays: list[Play]) -> dict[str, int]:
    """How many were played, were the solution in other words, could not be scored, and got through though they should not."""
    return {"n": len(plays), "alike": sum(play.should is None for play in plays),
            "unscored": sum(play.should is not None and play.reward is None for play in plays),
            "passed": sum(play.should == "fail" and play.passed for play in plays)}
