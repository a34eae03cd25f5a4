"""New tasks: sessions that went wrong as tasks, held against what was meant by the truth, and known solutions bound anew.

A failed session gives a task where a published one begins with it and its way is lent (`derived_from`). Its solution is right
when its writes are the truth's intended ones, call for call. Where no truth says what was meant, only counts are given.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from fidelity_data import rows, truth
from rewards_data import RewardsOptions, whole

from env_builder.runtime.canonical import canonical
from warehouse.store import Store

MOST_SHOWN = 20


def variants(options: RewardsOptions) -> dict[str, float]:
    """Figures of new tasks, of the run that other parts measure too."""
    out = whole(options)
    path = options.data / "truth" / "sessions.jsonl"
    labels = truth(options.data) if path.exists() else {}
    meant = {name: row for name, row in labels.items() if "intended" in row}
    return {**(_of_failures(out, meant) if meant else {}), **_counts(out)}


def _of_failures(out: Path, meant: dict[str, dict[str, Any]]) -> dict[str, float]:
    """How many failed sessions give a task, and of these how many solutions are what was meant."""
    writes = {tool for row in meant.values() for tool, _ in row["intended"]}
    failed = {name for name, row in meant.items() if not row["success"]}
    solved = {session_id: steps for session_id, steps in _solutions(out).items() if session_id in failed}
    right = 0
    for session_id, steps in sorted(solved.items()):
        done = [[step["tool"], step["arguments"]] for step in steps if step.get("tool") in writes]
        wanted = meant[session_id]["intended"]
        if sorted(map(canonical, done)) == sorted(map(canonical, wanted)):
            right += 1
        elif len(solved) - right <= MOST_SHOWN:
            print(f"session {session_id}: solved by {canonical(done)}, meant was {canonical(wanted)}", file=sys.stderr)
    return {"failures_as_tasks": round(len(solved) / max(1, len(failed)), 4), "n_failed_sessions": len(failed),
            "failure_solutions_right": round(right / max(1, len(solved)), 4), "n_failures_solved": len(solved)}


def _solutions(out: Path) -> dict[str, list[dict[str, Any]]]:
    """Session -> solution of the published task that begins with it and whose way is lent."""
    by_task: dict[str, list[dict[str, Any]]] = {}
    for room in sorted((out / "environments").iterdir()):
        steps = {row["task_id"]: row["steps"] for row in rows(out / "rewards" / room.name / "solutions.jsonl")}
        for task in rows(room / "tasks.jsonl"):
            if task["derived_from"] is not None:
                by_task |= dict.fromkeys(task["session_ids"], steps[task["task_id"]])
    return by_task


def _counts(out: Path) -> dict[str, float]:
    with Store.open(out / "warehouse.duckdb", write=False) as store:
        reasons = store.read(
            "select made_from, count(*) as n, count(*) filter (task_id in (select subject from mart.decisions where "
            "stage = 'verify' and kept)) as verified from mart.variants group by made_from")
        of_way = {way: (n, verified) for way, n, verified in reasons.iter_rows()}
        n_failed = store.read("select count(*) from mart.tasks where len(succeeded_session_ids) = 0").item()
        rejected = store.read(
            "select reason, count(*) as n from mart.decisions where stage = 'variants' and not kept group by all order by all")
        seconds = dict(store.read("select stage, seconds from raw.stages").iter_rows())
    print(rejected, file=sys.stderr)
    failures, generated = of_way.get("failure", (0, 0)), of_way.get("rebinding", (0, 0))
    return {"n_tasks_without_success": n_failed, "n_from_failures": failures[1], "n_rebound": generated[1],
            "rebound_verified": round(generated[1] / max(1, generated[0]), 4),
            "seconds_variants": round(seconds.get("variants", 0.0), 2), "seconds_all_stages": round(sum(seconds.values()), 2)}
