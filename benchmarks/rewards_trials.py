"""Leave one trial out: rubrics from the other trials of each task, graded on the sessions of the one left out.

Of the sessions that are built from, which were good is given as an expert's word (a review, see docs/configuration.md), written
from the truth of these sessions alone. A left-out session is played in a room of its task, an unverified one included; there it
is unscored, as for everybody.
"""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path
from typing import Any

from fidelity_data import build, rows, sample, truth
from fidelity_sessions import Step, sessions
from rewards_data import PASSES, RewardsOptions, Tally, places, play

REVIEW = "resolved"
CONFIGURATION = f'[outcomes]\nreviews = ["{REVIEW}"]\n'


def trials(options: RewardsOptions) -> dict[str, float]:
    """Every session graded by the rubric of the other trials; empty where the truth knows no trials."""
    path = options.data / "truth" / "sessions.jsonl"
    labels = truth(options.data) if path.exists() else {}
    if not labels or "trial" not in next(iter(labels.values())):
        return {}
    chosen = sample({str(row["task_id"]) for row in labels.values()}, options.sample)
    recorded = dict(sessions(options.data))
    tally = Tally()
    for trial in sorted({row["trial"] for row in labels.values()}):
        held_out = {name: row for name, row in labels.items() if row["trial"] == trial and str(row["task_id"]) in chosen}
        others = {name: row for name, row in labels.items() if row["trial"] != trial}
        out = _built(options, trial, others)
        _grade(out, held_out, others, recorded, tally)
    print(tally.table(), file=sys.stderr)
    return {
        "n_false_accept": tally.n("bad", "accept"), "n_bad": tally.n("bad", "accept", "reject"),
        "n_false_reject": tally.n("good", "reject"), "n_good": tally.n("good", "accept", "reject"),
        "coverage": tally.share("accept", "reject"), "n_unscored": tally.n("bad", "unscored") + tally.n("good", "unscored")}


def _built(options: RewardsOptions, trial: int, others: dict[str, dict[str, Any]]) -> Path:
    """Return what a run makes of the logs of the other trials and of what is known of them."""
    folder = f"without_trial_{trial}"
    if options.built is not None and (options.built / folder).is_dir():
        return options.built / folder
    source = options.scratch / folder
    (source / "logs").mkdir(parents=True)
    (source / "feedback").mkdir()
    for path in sorted((options.data / "logs").glob("*.jsonl")):
        own = [row for row in rows(path) if row["session_id"] in others]
        (source / "logs" / path.name).write_text("".join(f"{json.dumps(row)}\n" for row in own), "utf-8")
    if (options.data / "tools.json").exists():
        shutil.copy(options.data / "tools.json", source)
    words = "".join(f"{name},{REVIEW},{'yes' if row['reward'] > PASSES else 'no'}\n" for name, row in others.items())
    (source / "feedback" / "expert.csv").write_text(f"session_id,kind,value\n{words}", "utf-8")
    configuration = options.scratch / f"{folder}.toml"
    configuration.write_text(CONFIGURATION, "utf-8")
    return build(source, options.scratch / f"{folder}.out", "--config", str(configuration)).out


def _grade(
    out: Path, held_out: dict[str, dict[str, Any]], others: dict[str, dict[str, Any]], recorded: dict[str, list[Step]],
    tally: Tally
) -> None:
    """Play the left-out sessions, each in the first room that a session of its task begins together with."""
    rooms: dict[Any, Any] = {}
    for session_id, place in places(out).items():
        if session_id in others:
            rooms.setdefault(others[session_id]["task_id"], place)
    for session_id, row in sorted(held_out.items()):
        place = rooms.get(row["task_id"])
        reward = play(place, ((step.tool, step.arguments, step.content) for step in recorded[session_id])) if place else None
        tally.add(row["reward"] > PASSES, reward, place is not None, f"task {row['task_id']} session {session_id}")
