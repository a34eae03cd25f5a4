#!/usr/bin/env python3
"""How well success is told from the logs alone: discrimination, calibration, and tasks of middling difficulty.

    benchmarks/mining_outcomes.py DATA          a folder of real logs with a `truth` folder in it: airline, desks, office …

`truth/` is read here, for scoring alone; what is scored never sees it (read with privacy off). No label fits what
`success_auroc`, `ece_excess` and `brier_skill` score. Figures, all over sessions with a known outcome:

- `success_auroc` with `…_low`/`…_high`, the 95 % interval of a bootstrap over tasks; `…_undisputed` without labels in dispute;
  `coverage`: share of sessions that were given a probability; the others count in every figure with the mean of all that were;
- `ece_excess`: expected calibration error (10 equal bins) minus its mean over 200 draws of outcomes from the probabilities
  themselves; `brier_skill` against the true base rate; `success_ece` the plain error;
- `…_50`: the same after 50 sessions of one half of the tasks were reviewed, scored on the other half; mean of 5 seeds;
- beside it, on the same sessions: `majority_auroc` (mean of the votes, unweighed), `feedback_auroc` (feedback alone),
  `tfidf_auroc` (logistic regression on TF-IDF of all text, trained on true labels, 5 folds by task);
- where row changes are given, `…_no_rows` the same without them; `…_mute`, `…_mute_no_rows`: with and without them where no act
  says how it went (all are answered alike) and nobody gives feedback;
- `band_precision`: of the tasks taken for 20-80 % from three sessions each, with nothing else seen, the share whose other
  sessions say so; `band_precision_labels` the same from the true outcomes of these three; mean of 5 seeds. `rate_held`:
  share of these tasks of which the 90 % interval of the rate, told from the three sessions, holds the others' rate.

Where TRACEROOM_MODEL and TRACEROOM_MODEL_URL give a language model, all is mined and measured again with it (`NAME_asked`).
The last line on stdout is one JSON object.
"""

from __future__ import annotations

import json
import random
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

import polars as pl

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from benchmarks import asked, scoring  # noqa: E402 (a script of its own, from anywhere)
from env_builder.world import build  # noqa: E402
from extractors.outcomes import judge  # noqa: E402
from extractors.outcomes.rates import distribution, prior_of, rate_of  # noqa: E402
from extractors.tasks import goals_of  # noqa: E402
from pipelines.building.tasks import with_stances  # noqa: E402
from pipelines.building.worlds import configured_starts  # noqa: E402
from pipelines.running.stage import carry_out  # noqa: E402
from pipelines.settings import Settings  # noqa: E402
from pipelines.stages import STAGES  # noqa: E402
from warehouse.records import Feedback, frame  # noqa: E402
from warehouse.store import Store  # noqa: E402

SEEDS = range(5)
N_LABELS = 50
BAND = (0.2, 0.8)
LIKELY = 0.7
WITHOUT = {"airline": ("feedback",), "retail_desk": ("otlp",)}
"""Folders that are left: the true outcome itself, and the same sessions told again."""
DISPUTED = {"office": {f"banking/user_task_{n}" for n in (8, 9, 10)}}
"""Tasks whose labels are in dispute (the data's README)."""
_WITHOUT_MODEL = ("extract", "sessions")
_WITH_MODEL = (*_WITHOUT_MODEL, "world", "goals", "names")
"""Stages that a run carries out before anything is judged."""
REVIEW = "review"
"""Name of the feedback that carries the labels of `…_50`."""


class Made(NamedTuple):
    """What the logs of a data set give before anything is judged."""

    sessions: pl.DataFrame
    turns: pl.DataFrame
    feedback: pl.DataFrame
    row_changes: pl.DataFrame
    effects: pl.DataFrame
    starts_from: dict[str, str]
    goals: pl.DataFrame


class Truth(NamedTuple):
    """What is known of a session, for scoring."""

    good: bool
    task: str
    disputed: bool


def main() -> int:
    """Measure one data set and print its figures."""
    if len(sys.argv) != 2 or not (Path(sys.argv[1]) / "truth").is_dir():
        print(__doc__, file=sys.stderr)
        return 2
    data, began = Path(sys.argv[1]).resolve(), time.perf_counter()
    found = asked.both_ways(figures(data.name, data), lambda: figures(data.name, data, ask=True))
    found["seconds"] = round(time.perf_counter() - began, 1)
    for name, value in found.items():
        print(f"{name:32} {value:8.4f}", file=sys.stderr)
    print(json.dumps({"benchmark": "mining_outcomes", "data": data.name, "model": asked.model(), "figures": found}))
    return 0


def figures(name: str, data: Path, known: Made | None = None, ask: bool = False) -> dict[str, float]:
    """Return the figures of outcomes on the set `name` in the folder `data`; {} where its outcomes are not known.

    `known`: what its logs give, where the caller has it already; `ask`: with the language model.
    """
    if name == "shop_app":
        return _of_requests(data, known, ask)
    if name not in ("airline", "desks", "office", "retail_desk"):
        return {}
    made = known or prepared(data, WITHOUT.get(name, ()), ask=ask)
    truth = truth_of(data)
    found = _of_conversations(made, truth)
    if name == "airline" and (data.parent / "desks").is_dir():
        pooled = _judged(_pooled(data, ask))
        found |= _discrimination(truth, pooled, "success_auroc_pooled") | _calibration(truth, pooled, "_pooled")
    if name == "office":
        found |= _band(made, truth)
    return found


def prepared(data: Path | tuple[Path, ...], without: tuple[str, ...] = (), like: Made | None = None, ask: bool = False,
             ) -> Made:
    """Sessions, turns, feedback, row changes and effects of the logs in `data`, from an empty warehouse.

    `like`: the same logs but for words, whose tools do the same. `ask`: by a run in which the language model names goals.
    """
    paths = data if isinstance(data, tuple) else (data,)
    with tempfile.TemporaryDirectory() as scratch:
        settings = Settings(
            logs=tuple(str(path) for path in paths), out=f"{scratch}/out", image=False, without=without, privacy=False,
            configuration=asked.configuration(scratch) if ask else None)
        for stage in STAGES:
            if stage.name in (_WITH_MODEL if ask else _WITHOUT_MODEL):
                carry_out(stage, settings)
        with Store.open(settings.warehouse) as store:
            tables = [store.table(f"core.{name}") for name in ("sessions", "turns", "feedback", "row_changes")]
            tables[1] = with_stances(tables[1])
            if like:
                return Made(*tables, like.effects, like.starts_from, goals_of(*tables[:2], like.effects, like.starts_from))
            starts = configured_starts(store, settings)[1]
            world = build(*tables[:2], store.table("core.tools"), starts, tables[3])
            rows = [(name, tool, program["effect"]) for name, service in sorted(world.services.items())
                    for tool, program in sorted(service.programs.items())]
            effects = pl.DataFrame(rows, schema=["service", "tool", "effect"], orient="row")
            starts = {name: service.starts_from for name, service in world.services.items()}
            goals = store.table("mart.goals") if ask else goals_of(*tables[:2], effects, starts)
            return Made(*tables, effects, starts, goals)


def truth_of(data: Path) -> dict[str, Truth]:
    """Session -> what is known of it; a session without a task is a task of its own."""
    found = {}
    for row in map(json.loads, (data / "truth" / "sessions.jsonl").read_text("utf-8").splitlines()):
        task = f"{row.get('service', data.name)}/{row.get('task_id', row['session_id'])}"
        good = bool(row["success"]) if "success" in row else row["reward"] > 0.5
        disputed = task in DISPUTED.get(data.name, set()) or row.get("db_match", True) is None
        found[row["session_id"]] = Truth(good, task, disputed)
    return found


def _pooled(data: Path, ask: bool) -> Made:
    """Return the set with the other one of the same kind of desk; services of the same tools are one kind."""
    desks = data.parent / "desks"
    return prepared((data / "logs", data / "tools.json", desks / "logs", desks / "tools"), ask=ask)


def _judged(made: Made, labels: dict[str, bool] | None = None) -> dict[str, dict[str, Any]]:
    """Session -> its outcome; labels reach the judge as feedback that was reviewed."""
    feedback = made.feedback
    if labels:
        feedback = pl.concat([feedback, frame(Feedback, [
            {"feedback_id": f"review {session}", "session_id": session, "happened_at": None, "name": REVIEW,
             "value": "good" if good else "bad", "source": "main"} for session, good in sorted(labels.items())])])
    judged = judge(made.sessions, made.turns, feedback, made.effects, made.starts_from, (REVIEW,), made.goals, made.row_changes)
    return {row["session_id"]: row for row in judged.outcomes.iter_rows(named=True)}


def _of_conversations(made: Made, truth: dict[str, Truth]) -> dict[str, float]:
    judged = _judged(made)
    found = _discrimination(truth, judged, "success_auroc") | _calibration(truth, judged)
    found |= _with_labels(made, truth) | _baselines(made, truth, judged)
    if not made.row_changes.is_empty():
        found |= _rows(made, truth)
    if any(each.disputed for each in truth.values()):
        settled = {session: each for session, each in truth.items() if not each.disputed}
        found["success_auroc_undisputed"] = _discrimination(settled, judged, "x")["x"]
    return found


def _rows(made: Made, truth: dict[str, Truth]) -> dict[str, float]:
    """Return what row changes add, on the logs as they are and on logs in which no act says how it went."""
    acts = made.effects.filter(pl.col("effect") == "write").select("service", "tool", pl.lit(True).alias("acts"))
    act = pl.col("acts").fill_null(False) & (pl.col("kind") == "call")
    turns = made.turns.join(acts, on=["service", "tool"], how="left").with_columns(
        pl.when(act).then(pl.lit("taken")).otherwise("content").alias("content"),
        pl.when(act).then(None).otherwise("is_error").alias("is_error")).drop("acts")
    mute = made._replace(turns=turns, feedback=made.feedback.clear())
    bare = made.row_changes.clear()
    told = {"mute": mute, "mute_no_rows": mute._replace(row_changes=bare), "no_rows": made._replace(row_changes=bare)}
    found: dict[str, float] = {}
    for name, each in told.items():
        judged = _judged(each)
        found |= {f"success_auroc_{name}": _discrimination(truth, judged, "x")["x"],
                  f"success_ece_{name}": _calibration(truth, judged)["success_ece"]}
    return found


def _aligned(truth: dict[str, Truth], judged: dict[str, dict[str, Any]]) -> tuple[list[bool], list[float], list[str]]:
    """Outcome, probability and task of every session that is known, in one order; abstained: the mean of all that were not."""
    ids = sorted(s for s in truth if s in judged)
    told = [p for s in ids if (p := judged[s]["probability"]) is not None]
    mean = sum(told) / len(told) if told else 0.5
    chance = [mean if (p := judged[s]["probability"]) is None else p for s in ids]
    return [truth[s].good for s in ids], chance, [truth[s].task for s in ids]


def _discrimination(truth: dict[str, Truth], judged: dict[str, dict[str, Any]], name: str) -> dict[str, float]:
    good, chance, task = _aligned(truth, judged)
    low, high = scoring.interval(good, chance, task, scoring.auroc)
    n_told = sum(session in judged and judged[session]["probability"] is not None for session in truth)
    covered = {"coverage": n_told / len(truth)} if name == "success_auroc" else {}
    return {name: scoring.auroc(good, chance), f"{name}_low": low, f"{name}_high": high, **covered}


def _calibration(truth: dict[str, Truth], judged: dict[str, dict[str, Any]], suffix: str = "") -> dict[str, float]:
    good, chance, _ = _aligned(truth, judged)
    return {f"success_ece{suffix}": scoring.ece(good, chance), f"ece_excess{suffix}": scoring.ece_excess(good, chance),
            f"brier_skill{suffix}": scoring.brier_skill(good, chance)}


def _with_labels(made: Made, truth: dict[str, Truth]) -> dict[str, float]:
    """Means over the seeds: 50 sessions of one half of the tasks are reviewed, the other half is scored."""
    tasks = sorted({each.task for each in truth.values()})
    sums: dict[str, list[float]] = defaultdict(list)
    for seed in SEEDS:
        draw = random.Random(seed)
        shown = set(draw.sample(tasks, len(tasks) // 2))
        of_shown = sorted(session for session, each in truth.items() if each.task in shown)
        labels = {session: truth[session].good for session in draw.sample(of_shown, min(N_LABELS, len(of_shown)))}
        rest = {session: each for session, each in truth.items() if each.task not in shown}
        judged = _judged(made, labels)
        scored = _discrimination(rest, judged, "success_auroc") | _calibration(rest, judged)
        for name in ("success_auroc", "ece_excess", "brier_skill"):
            sums[f"{name}_50"].append(scored[name])
    return {name: sum(values) / len(values) for name, values in sums.items()}


def _baselines(made: Made, truth: dict[str, Truth], judged: dict[str, dict[str, Any]]) -> dict[str, float]:
    ids = sorted(session for session in truth if session in judged)
    good, task = [truth[session].good for session in ids], [truth[session].task for session in ids]
    votes = [json.loads(judged[session]["signals"]) for session in ids]
    found = {"majority_auroc": scoring.auroc(good, [sum(v["vote"] for v in each) / max(1, len(each)) for each in votes])}
    if any(v["name"] == "feedback" for each in votes for v in each):
        rated = [sum(v["vote"] for v in each if v["name"] == "feedback") for each in votes]
        found["feedback_auroc"] = scoring.auroc(good, rated)
    text = made.turns.filter(pl.col("content").is_not_null()).group_by("session_id").agg(pl.col("content").str.join("\n"))
    texts = dict(text.iter_rows())
    chance = scoring.trained_tfidf([texts.get(session, "") for session in ids], good, task)
    return {**found, "tfidf_auroc": scoring.auroc(good, chance)}


def _band(made: Made, truth: dict[str, Truth]) -> dict[str, float]:
    by_task: dict[str, list[str]] = defaultdict(list)
    for session in sorted(truth):
        by_task[truth[session].task].append(session)
    tasks = {task: ids for task, ids in by_task.items() if len(ids) >= 6}
    ours: list[tuple[int, int]] = []
    labels: list[tuple[int, int]] = []
    held: list[tuple[int, int]] = []
    for seed in SEEDS:
        draw = random.Random(seed)
        seen = {task: draw.sample(ids, 3) for task, ids in sorted(tasks.items())}
        chosen = sorted(session for ids in seen.values() for session in ids)
        judged = _judged(_only(made, chosen))
        rest = {task: [truth[s].good for s in ids if s not in seen[task]] for task, ids in tasks.items()}
        middling = {task for task, good in rest.items() if BAND[0] <= sum(good) / len(good) <= BAND[1]}
        chances = {task: [p for s in ids if (p := judged[s]["probability"]) is not None] for task, ids in seen.items()}
        ours.append(_hits(chances, middling))
        prior = prior_of(chances)
        told = {task: rate_of(probabilities, prior) for task, probabilities in chances.items()}
        held.append((sum(told[task].low <= sum(good) / len(good) <= told[task].high for task, good in rest.items()), len(rest)))
        labels.append(_hits({task: [float(truth[s].good) for s in ids] for task, ids in seen.items()}, middling))
    return {"band_precision": _ratio(ours), "band_n": sum(n for _, n in ours) / len(ours),
            "band_precision_labels": _ratio(labels), "band_base": len(middling) / len(tasks), "rate_held": _ratio(held)}


def _hits(chances: dict[str, list[float]], middling: set[str]) -> tuple[int, int]:
    prior = prior_of(chances)
    picked = {task for task, own in chances.items() if own and _mass(distribution(own, prior)) >= LIKELY}
    return len(picked & middling), len(picked)


def _mass(heights: list[float]) -> float:
    return sum(height for step, height in enumerate(heights) if BAND[0] <= (step + 0.5) / len(heights) <= BAND[1])


def _ratio(counts: Iterable[tuple[int, int]]) -> float:
    hits, n = (sum(each) for each in zip(*counts, strict=True))
    return hits / n if n else 0.0


def _only(made: Made, sessions: list[str]) -> Made:
    """Return the same, as if only these sessions had been logged."""
    kept = pl.col("session_id").is_in(sessions)
    return made._replace(
        sessions=made.sessions.filter(kept), turns=made.turns.filter(kept), feedback=made.feedback.filter(kept),
        goals=goals_of(made.sessions.filter(kept), made.turns.filter(kept), made.effects, made.starts_from))


def _of_requests(data: Path, known: Made | None, ask: bool) -> dict[str, float]:
    """Return an application's log without sessions: each case is scored by the session that most of its requests fell into."""
    made = known or prepared(data, ask=ask)
    found = _of_cases(made, data, "success_auroc")
    with tempfile.TemporaryDirectory() as scratch:
        bare = _without_status(data, Path(scratch))
        return found | _of_cases(prepared(bare, like=made), data, "success_auroc_no_status")


def _of_cases(made: Made, data: Path, name: str) -> dict[str, float]:
    of_request = dict(made.turns.select("call_id", "session_id").iter_rows())
    judged, truth, chances = _judged(made), {}, {}
    for row in map(json.loads, (data / "truth" / "cases.jsonl").read_text("utf-8").splitlines()):
        sessions = [of_request[request] for request in row["requests"] if request in of_request]
        best = max(sorted(set(sessions)), key=sessions.count)
        truth[row["ticket"]] = Truth(bool(row["success"]), row["ticket"], False)
        chances[row["ticket"]] = judged[best]
    return _discrimination(truth, chances, name) | _calibration(truth, chances, name.removeprefix("success_auroc"))


def _without_status(data: Path, folder: Path) -> Path:
    """Return a copy of the logs in which no request and no answer about a ticket says its status."""
    for file in sorted((data / "logs").iterdir()):
        with (folder / file.name).open("w", encoding="utf-8") as out:
            for row in map(json.loads, file.read_text("utf-8").splitlines()):
                if row["req"]["url"].startswith("/tickets"):
                    for body in (row["req"].get("body"), row["res"].get("body")):
                        if isinstance(body, dict):
                            body.pop("status", None)
                out.write(json.dumps(row) + "\n")
    return folder


if __name__ == "__main__":
    sys.exit(main())
