"""What is measured on a build of a set, by the way that it was built in."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import truth_effects
import truth_outcomes
import truth_policies
from truth_data import Built, DataSet, Job, MissingCommand, build, stage, traceroom, truths

N_REVIEWS = 30
"""Reviews of a service in the way `reviews`."""


def extra_ways(data: DataSet) -> list[str]:
    """Return the changed copies that a set is built from beside its logs."""
    return ["single"] if data.kind in truth_outcomes.SINGLE or data.path.name in truth_outcomes.SINGLE else []


def plain(job: Job, scratch: Path) -> dict[str, Any]:
    """Build from logs, with feedback if the way says so, and score everything."""
    return scored(job, build(stage(job.data.path, job.way, scratch / "in"), scratch / "out"))


def reviewed(job: Job, scratch: Path) -> dict[str, Any]:
    """Build from logs, answer the reviews that the product's own queue draws, build again, and score everything."""
    built = build(staged := stage(job.data.path, job.way, scratch / "in"), scratch / "out")
    if not answer_reviews(built.out, truths(job.data.path), scratch / "reviews.jsonl"):
        raise MissingCommand("the review queue is empty")
    return scored(job, build(staged, built.out))


def answer_reviews(out: Path, good: dict[str, bool], file: Path) -> int:
    """Answer the first reviews of the queue from the truth, import them, and return their number."""
    traceroom("review", str(out), "--export", str(file), "--limit", str(N_REVIEWS))
    cases = [case for case in map(json.loads, file.read_text("utf-8").splitlines()) if case.get("session_id") in good]
    answers = [{**case, "right": good[case["session_id"]], "reviewer": "benchmark"} for case in cases[:N_REVIEWS]]
    file.write_text("".join(json.dumps(answer) + "\n" for answer in answers), "utf-8")
    if answers:
        traceroom("review", str(out), "--import", str(file))
    return len(answers)


def single(job: Job, scratch: Path) -> dict[str, Any]:
    """Judge the outcomes of one session a request."""
    staged = stage(job.data.path, "logs", scratch / "in")
    truth_outcomes.thin(staged, job.data.path)
    truth_outcomes.judge_only(staged, scratch / "out")
    return {"outcomes": truth_outcomes.judged(scratch / "out", job.data)}


def scored(job: Job, built: Built) -> dict[str, Any]:
    """Score a build by everything that its set has a truth for."""
    row: dict[str, Any] = {"stages": built.seconds, "n_tasks": n_published(built.out)}
    if job.data.kind != "cases":
        row["outcomes"] = truth_outcomes.judged(built.out, job.data)
    if job.data.kind in ("zoo", "retail"):
        row |= truth_policies.graded(job.scorers, built.out, job.data)
    if effects := truth_effects.compared(job.scorers, built.out, job.data):
        row["effects"] = effects
    return row


def n_published(out: Path) -> int:
    """Return the number of published tasks."""
    return sum(len(path.read_text("utf-8").splitlines()) for path in out.glob("environments/*/tasks.jsonl"))


MEASURES: dict[str, Callable[[Job, Path], dict[str, Any]]] = {
    "logs": plain, "feedback": plain, "reviews": reviewed, "single": single}
