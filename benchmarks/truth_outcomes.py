"""Probabilities of success held against the truth: discrimination by service, and what a high probability is worth.

No constant is fitted to a service by this benchmark, so "leave one service out" is the plain mean over the services: whoever
chooses rules must choose them without the service that is reported. A session without a probability counts as its service's
base rate (the true share of good sessions), so abstaining on all gives .5.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import scoring
from truth_data import DataSet, rows, truths
from truth_policies import share

from pipelines.running.stage import carry_out
from pipelines.settings import Settings
from pipelines.stages import STAGES
from warehouse.store import Store

HIGH = 0.9
FEWEST = 10
"""Sessions of a high probability that a service must have to be the worst one."""
SINGLE = ("trials", "retail", "desks")
"""Kinds and names of the sets that are thinned to one session a request."""


def judged(out: Path, data: DataSet) -> list[dict[str, Any]]:
    """Return a row per service: how probabilities separate good sessions from bad ones."""
    good = truths(data.path)
    with Store.open(out / "warehouse.duckdb", write=False) as store:
        outcomes = store.read("select service, session_id, probability from core.sessions left join mart.outcomes using "
                              "(session_id) order by session_id")
    by_service: dict[str, list[tuple[bool, float | None]]] = {}
    for service, session_id, probability in outcomes.iter_rows():
        if session_id in good:
            by_service.setdefault(service, []).append((good[session_id], probability))
    return [{"service": service, **_separation(own)} for service, own in sorted(by_service.items())]


def _separation(sessions: list[tuple[bool, float | None]]) -> dict[str, Any]:
    base = sum(good for good, _ in sessions) / len(sessions)
    high = [good for good, chance in sessions if chance is not None and chance >= HIGH]
    both = 0 < base < 1
    chances = [base if chance is None else chance for _, chance in sessions]
    return {"auroc": round(scoring.auroc([good for good, _ in sessions], chances), 4) if both else None,
            "n_sessions": len(sessions), "n_judged": sum(chance is not None for _, chance in sessions),
            "n_good": sum(good for good, _ in sessions), "n_high": len(high), "n_high_good": sum(high)}


def mean_auroc(services: Iterable[dict[str, Any]]) -> float | None:
    """Return the plain mean over services that have good and bad sessions."""
    values = [each["auroc"] for each in services if each["auroc"] is not None]
    return round(sum(values) / len(values), 4) if values else None


def worst_high(services: Iterable[dict[str, Any]]) -> float | None:
    """Return the smallest share of good among sessions of a high probability, over services that have enough of them."""
    values = [each["n_high_good"] / each["n_high"] for each in services if each["n_high"] >= FEWEST]
    return round(min(values), 4) if values else None


def coverage(services: list[dict[str, Any]]) -> float | None:
    """Return the share of sessions that have a probability, over all services together."""
    return share(sum(each["n_judged"] for each in services), sum(each["n_sessions"] for each in services))


def thin(staged: Path, data: Path) -> Counter[str]:
    """Keep one session a request in the staged logs: the first by the hash of its id. Return the counts of sessions."""
    first: dict[str, str] = {}
    for row in rows(data / "truth" / "sessions.jsonl"):
        request = row.get("task_id") or [row.get("user_id"), row.get("kinds"), row.get("slots")]
        key, session_id = json.dumps([row.get("service"), request], sort_keys=True), row["session_id"]
        first[key] = min(first.get(key, session_id), session_id, key=lambda name: hashlib.sha256(name.encode()).hexdigest())
    kept, n = set(first.values()), Counter[str]()
    for file in sorted((staged / "logs").glob("*.jsonl")):
        lines = file.read_text("utf-8").splitlines(keepends=True)
        kept_lines = [line for line in lines if _session_of(json.loads(line)) in kept]
        n.update(kept=len(kept_lines), read=len(lines))
        file.write_text("".join(kept_lines), "utf-8")
    return n


def _session_of(row: dict[str, Any]) -> str:
    return row["session_id"] if "session_id" in row else row["metadata"]["session_id"]


def judge_only(staged: Path, out: Path) -> None:
    """Carry out the stages up to the outcomes, and no more."""
    inputs = [str(staged / name) for name in ("logs", "tools", "tools.json") if (staged / name).exists()]
    settings = Settings(logs=tuple(inputs), out=str(out), image=False, privacy=False)
    for stage in STAGES:
        carry_out(stage, settings)
        if stage.name == "outcomes":
            return
