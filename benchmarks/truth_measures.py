"""What is measured on a build of a set, by the way that it was built in.

The ways of the figures are logs, feedback and reviews. Two sets more are built from changed logs: `single` has one session a
request, `attacked` has instructions inside of results.
"""

from __future__ import annotations

import contextlib
import json
import resource
from collections.abc import Callable
from pathlib import Path
from typing import Any

import truth_attacks
import truth_cases
import truth_effects
import truth_injections
import truth_outcomes
import truth_policies
import truth_precision
from truth_data import Built, Clock, DataSet, Job, MissingCommand, build, traceroom, truths

N_REVIEWS = 30
"""Reviews of a service in the way `reviews`."""
ATTACKED = ("office",)
"""Sets that are built again with instructions inside of results."""


def extra_ways(data: DataSet) -> list[str]:
    """Return the changed copies that a set is built from beside its logs."""
    single = data.kind in truth_outcomes.SINGLE or data.path.name in truth_outcomes.SINGLE
    return ["single"] * single + ["attacked"] * (data.path.name in ATTACKED)


def plain(job: Job, scratch: Path) -> dict[str, Any]:
    """Build from logs, with feedback if the way says so, and score everything; of a run that fails, what it had judged."""
    staged, out = job.staged(scratch), scratch / "out"
    try:
        built = build(staged, out)
    except SystemExit as error:
        judges = job.data.kind != "cases" and (out / "warehouse.duckdb").exists()
        return {"note": str(error)} | ({"outcomes": truth_outcomes.judged(out, job.data)} if judges else {})
    return scored(job, built)


def reviewed(job: Job, scratch: Path) -> dict[str, Any]:
    """Build from logs, answer the reviews that the product's own queue draws, build again, and score everything."""
    built = build(staged := job.staged(scratch), scratch / "out")
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
    staged = job.staged(scratch, "logs")
    truth_outcomes.thin(staged, job.data.path)
    truth_outcomes.judge_only(staged, scratch / "out")
    return {"outcomes": truth_outcomes.judged(scratch / "out", job.data)}


def attacked(job: Job, scratch: Path) -> dict[str, Any]:
    """Build from logs with instructions inside of results."""
    staged = job.staged(scratch, "logs")
    injections = truth_injections.inject(staged / "logs")
    return {"injections": truth_injections.injection_figures(build(staged, scratch / "out").out, injections)}


def scored(job: Job, built: Built) -> dict[str, Any]:
    """Score a build by everything that its set has a truth for."""
    row: dict[str, Any] = {"stages": built.seconds, "n_tasks": n_published(built.out)}
    if job.data.kind != "cases":
        row["outcomes"] = truth_outcomes.judged(built.out, job.data)
    if job.data.kind in ("zoo", "retail"):
        row |= truth_policies.graded(job.scorers, built.out, job.data)
    if effects := truth_effects.compared(job.scorers, built.out, job.data):
        row["effects"] = effects
    row["precision"] = truth_precision.stated_and_true(built.out, job.data, row)
    return row | (of_logs(job, built) if job.way == "logs" else {})


def of_logs(job: Job, built: Built) -> dict[str, Any]:
    """Return what is measured on builds from logs alone."""
    row: dict[str, Any] = {"attacks": truth_attacks.attacked(built.out, job.data)}
    if job.data.kind == "cases":
        row["cases"] = truth_cases.knowable(built.out, job.data)
    if job.data.kind == "trials":
        row["solutions"] = truth_attacks.solutions_right(built.out, job.data)
    if job.data.kind == "retail":
        row["recorded"] = truth_attacks.bad_accepted(built.out, job.data)
        row["audit"] = audit_seconds(built.out)
    return row


def audit_seconds(out: Path) -> dict[str, float]:
    """Verify all published environments again, as `traceroom verify` does, and return how long it took."""
    clock, before = Clock(), resource.getrusage(resource.RUSAGE_CHILDREN)
    for manifest in sorted(out.glob("environments/*/manifest.json")):
        with contextlib.suppress(SystemExit):  # an audit that finds something ends so, and took its time all the same
            traceroom("verify", str(manifest.parent), "--json")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return {"seconds": clock.seconds(), "cpu": round(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, 1)}


def n_published(out: Path) -> int:
    """Return the number of published tasks."""
    return sum(len(path.read_text("utf-8").splitlines()) for path in out.glob("environments/*/tasks.jsonl"))


MEASURES: dict[str, Callable[[Job, Path], dict[str, Any]]] = {
    "logs": plain, "feedback": plain, "reviews": reviewed, "single": single,
    "attacked": attacked}
