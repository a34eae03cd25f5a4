"""Tasks that a changed rule made wrong are withheld, each with its reason; the change is named once, with their number."""

from __future__ import annotations

import polars as pl
import pytest

from env_builder.audit import Depth, report
from env_builder.audit.targets import service_targets
from env_builder.verify import PLAYS, AuditedRoom, Verified, _TaskRows
from pipelines.building.decisions import RULE_CHANGED
from pipelines.building.outdated import without_outdated
from tests.env_builder.audit.test_outdated import AFTER, BEFORE, CHANGED_AT, environment, task, writes
from warehouse.records import Decision, frame


def verified(starts: dict[str, str], changed: bool) -> Verified:
    """Return what is left of verified tasks that each close a box at its instant."""
    room = environment([writes("closed")], [writes("shut" if changed else "closed")])
    room.tasks = tuple(task(at)._replace(task_id=name) for name, at in starts.items())
    solutions = {name: [{"tool": "close", "arguments": {"box": "b1"}}] for name in starts}
    decisions = [Decision(stage="verify", subject=name, kept=True, reason="verified", detail="It holds.") for name in starts]
    decisions.append(Decision(stage="verify", subject="x", kept=False, reason="attacker_passes", detail="It does not hold."))
    side = _TaskRows({}, solutions, {}, service_targets(room, {}))
    verification = Verified(list(starts), frame(Decision, decisions), pl.DataFrame(schema=PLAYS), report({}, {}, Depth()), {})
    return without_outdated(verification, AuditedRoom(room, side), "hall")  # type: ignore[arg-type]


def rows(one: Verified, stage: str) -> list[tuple[str, bool, str]]:
    return one.decisions.filter(pl.col("stage") == stage).select("subject", "kept", "reason").rows()


def test_tasks_of_before_are_withheld_and_the_change_is_named() -> None:
    one = verified({"a": BEFORE, "b": AFTER, "c": BEFORE}, True)
    assert one.task_ids == ["b"]
    assert rows(one, "verify") == [("a", False, RULE_CHANGED), ("b", True, "verified"), ("c", False, RULE_CHANGED),
                                   ("x", False, "attacker_passes")]
    assert rows(one, "drift") == [(f"hall/rules of close/{CHANGED_AT}", True, RULE_CHANGED)]
    details = dict(one.decisions.select("subject", "detail").iter_rows())
    assert "calls close, which answers otherwise since 2026-03-10" in details["a"]
    assert details[f"hall/rules of close/{CHANGED_AT}"].endswith("tasks withheld for it: 2.")


@pytest.mark.parametrize("starts", [{}, {"a": BEFORE, "b": AFTER}])
def test_a_change_that_touches_no_task_withholds_none(starts: dict[str, str]) -> None:
    one = verified(starts, False)
    assert one.task_ids == list(starts) and [kept for _, kept, _ in rows(one, "verify")] == [True] * len(starts) + [False]
    assert rows(one, "drift") == []
