"""Rubrics from a log with its own feedback: the sessions that it records, and sequences that nobody made, by their truth.

Each recorded session is graded in the room of a task of its own (of the truth's task, where the truth knows tasks). A probe
is good when what its successful writes were answered is what those of the intended sequence were: the real tools answered
both. Rates are of all good and all bad ones, whether they have a room or not.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

from fidelity_data import rows, sample, truth
from fidelity_sessions import sessions as steps_of
from rewards_data import PASSES, Place, RewardsOptions, Tally, places, play, whole

from env_builder.runtime.answers import failed, parse

UNGRADED = "around"
"""Probes that only look at what is beside what was asked for."""


def sessions(options: RewardsOptions) -> dict[str, float]:
    """Every recorded session; empty where no truth says how sessions went, or where it counts trials."""
    path = options.data / "truth" / "sessions.jsonl"
    labels = truth(options.data) if path.exists() else {}
    first = next(iter(labels.values()), {})
    if not {"success", "reward"} & first.keys() or "trial" in first:
        return {}
    chosen, tally, rooms, own = sample(labels, options.sample), Tally(), _rooms(options), {}
    for session_id, place in rooms.items():
        if session_id in labels:
            own.setdefault(_task(labels[session_id]), place)
    solvable, graded = set(), set()
    for session_id, steps in steps_of(options.data):
        if session_id not in chosen:
            continue
        row = labels[session_id]
        place, good = rooms.get(session_id) or own.get(_task(row)), _good(row)
        played = ((step.tool, step.arguments, step.content) for step in steps)
        reward = play(place, played) if place else None
        tally.add(good, reward, place is not None, f"session {session_id}")
        solvable |= {_task(row)} if good else set()
        graded |= {_task(row)} if reward is not None else set()
    print(tally.table(), file=sys.stderr)
    return {
        "false_accept": tally.rate("bad", "accept"), "n_bad_sessions": tally.n("bad"),
        "false_reject": tally.rate("good", "reject"), "n_good_sessions": tally.n("good"),
        "coverage": round(len(solvable & graded) / max(1, len(solvable)), 4), "n_tasks_with_a_success": len(solvable),
        "unscored": tally.share("unscored"), "without_room": tally.share("no room")}


def probes(options: RewardsOptions) -> dict[str, float]:
    """Every sequence of truth/probes.jsonl in the room of its session; empty where there are none."""
    path = options.data / "truth" / "probes.jsonl"
    if not path.exists():
        return {}
    by_task: dict[str, dict[str, list[dict[str, Any]]]] = {}
    for row in rows(path):
        by_task.setdefault(row["session_id"], {})[row["kind"]] = row["steps"]
    writes = {tool for row in truth(options.data).values() for tool, _ in row["intended"]}
    rooms, tally = _rooms(options), Tally()
    for session_id in sorted(sample(by_task, options.sample)):
        wanted = set(_omissions(by_task[session_id].get("intended", []), writes))
        for kind, steps in by_task[session_id].items():
            if kind != UNGRADED:
                place = rooms.get(session_id)
                reward = play(place, ((step["tool"], step["arguments"], "") for step in steps)) if place else None
                good = set(_omissions(steps, writes)) == wanted
                tally.add(good, reward, place is not None, f"{kind} of session {session_id}")
    print(tally.table(), file=sys.stderr)
    return {
        "probe_false_accept": tally.rate("bad", "accept"), "n_bad_probes": tally.n("bad"),
        "probe_false_reject": tally.rate("good", "reject"), "n_good_probes": tally.n("good"),
        "probe_coverage": tally.share("accept", "reject")}


def _rooms(options: RewardsOptions) -> dict[str, Place]:
    """Places of the run; both parts measure the same one."""
    return _of_run(whole(options))


@cache
def _of_run(out: Path) -> dict[str, Place]:
    return places(out)


def _omissions(steps: list[dict[str, Any]], writes: set[str]) -> Iterator[tuple[str, str, str]]:
    """(tool, arguments, answer) of the writes that worked."""
    for step in steps:
        if step["tool"] in writes and not failed(step["result"], parse(step["result"])):
            yield step["tool"], json.dumps(step["arguments"], sort_keys=True), step["result"]


def _good(row: dict[str, Any]) -> bool:
    return float(row.get("reward", row.get("success"))) > PASSES


def _task(row: dict[str, Any]) -> Any:
    return (row.get("service"), row["task_id"]) if "task_id" in row else row["session_id"]
