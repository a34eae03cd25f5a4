#!/usr/bin/env python3
"""Fill Traceroom's column of the scoreboard, and write its page.

    benchmarks/scoreboard_traceroom.py DATA… [--only NAME…] [--scorers DIR] [--files FOLDER] [--page FILE] [--jobs N]

    benchmarks/scoreboard_traceroom.py ../shared/data/retail_desk ../shared/data/zoo --page docs/scoreboard.md

DATA: data sets with truth/probes.jsonl and truth/policies.jsonl, or folders of such. Each is built from its logs alone by
`traceroom run --privacy off`; then its probes (calls that the real tools answered), its scripted policies (graded by the
scorer `verdicts.py`, as in transfer.py) and the attacks of truth_attacks.py are played, and the known solutions are timed
on one core. The files of benchmarks/scoreboard/README.md are written, and benchmarks/scoreboard/score.py scores them: it
needs nothing of ours. `changed_fields` of a write call is counted in the real answers: the leaves in which its answer, or
else the first later one, differs from the last one before it of the same record; null where no two answers show the same
record. The last line on stdout is one JSON object.
"""

from __future__ import annotations

import argparse
import ast
import json
import statistics
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
sys.path.insert(0, str(Path(__file__).resolve().parent / "scoreboard"))

from score import score_systems, table
from transfer import graded_pairs
from truth_attacks import Published, attacks, is_refusal, published, reward_of
from truth_data import DataSet, Job, build, data_sets, rows, scorers_beside, true_writes

from env_builder.runtime import Environment
from env_builder.runtime.answers import failed, parse

SYSTEM = "Traceroom"
PEERS = ("EnvSimBench", "SynthTools", "Word2World", "DreamGym", "Simia")
"""Published systems that stand for services. Their columns are empty until somebody fills them."""
ROUNDS = 5
PAGE = """# Scoreboard

How truly an environment represents a real service, and how truly its reward pays. `benchmarks/scoreboard_traceroom.py`
writes this page. The data format and the scorer are neutral and need nothing of Traceroom:
[how to fill a column](../benchmarks/scoreboard/README.md). Empty cells are not measured on these services; figures of papers,
on other services, are not comparable.

{table}

`exact_fields_N`: calls that change N fields in the real service. `exact_fields_not_stated`: write calls after which no real
answer shows the record. Calls whose session has no published task count as unknown. These are development figures: the rules
were corrected with sight of these services.

## What fails

{fails}
"""
Row = dict[str, Any]
Step = dict[str, Any]


def main() -> int:
    """Build, play, score, and write the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path, nargs="+")
    parser.add_argument("--only", nargs="+")
    parser.add_argument("--scorers", type=Path)
    parser.add_argument("--files", type=Path)
    parser.add_argument("--page", type=Path)
    parser.add_argument("--jobs", type=int, default=2)
    options = parser.parse_args()
    sets = [each for each in data_sets(options.data, options.only) if each.kind in ("zoo", "retail")]
    if not sets:
        parser.error("no data set with truth/policies.jsonl is there")
    scorers = (options.scorers or scorers_beside(sets[0].path)).resolve()
    with tempfile.TemporaryDirectory() as scratch:
        files = options.files or Path(scratch)
        with ProcessPoolExecutor(options.jobs) as workers:
            folders = list(workers.map(partial(fill, files=files, scorers=scorers), sets))
        systems = score_systems(folders)
    if options.page:
        options.page.write_text(page(systems), "utf-8")
    print(json.dumps({"benchmark": "scoreboard", "figures": systems[SYSTEM]}))
    return 0


def fill(data: DataSet, files: Path, scorers: Path) -> Path:
    """Build a set, write its files into a folder of its name, and return the folder."""
    folder = files / data.path.name
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="scoreboard-") as scratch:
        out = build(Job(data, "logs", scorers).staged(Path(scratch)), Path(scratch) / "out").out
        (folder / "system.json").write_text(json.dumps({
            "system": SYSTEM, "version": version("traceroom"), "service": data.path.name,
            "truth": "answers: the real tools; success: scripted policies, run on the real tools"}) + "\n", "utf-8")
        write(folder / "answers.jsonl", answers(out, data))
        write(folder / "verdicts.jsonl", verdicts(out, data, scorers))
        write(folder / "attacks.jsonl", attempts(out, data))
        write(folder / "throughput.jsonl", throughput(list(published(out, data.path))))
    return folder


def answers(out: Path, data: DataSet) -> Iterator[Row]:
    """Yield a row per call of the set's probes. Calls of a session without a task are unknown."""
    sequences: dict[str, list[list[Step]]] = defaultdict(list)
    for probe in rows(data.path / "truth" / "probes.jsonl"):
        sequences[probe["session_id"]].append(probe["steps"])
    writes, places = true_writes(data.path), dict[str, tuple[Environment, str]]()
    for task in published(out, data.path):
        for session_id in task.session_ids:
            places.setdefault(session_id, (task.environment, task.task_id))
    for session_id in sorted(sequences):
        for steps in sequences[session_id]:
            given = play(*places[session_id], steps) if session_id in places else ["unknown"] * len(steps)
            for number, (step, answer) in enumerate(zip(steps, given, strict=True)):
                is_refused = is_refusal_of(step["result"])
                yield {"tool": f"{data.path.name}.{step['tool']}", "refused": is_refused, "answer": answer,
                       "reason": None if session_id in places else "no task of its session is published",
                       "changed_fields": 0 if is_refused or step["tool"] not in writes else changed_fields(steps, number)}


def play(environment: Environment, task_id: str, steps: list[Step]) -> list[str]:
    """Call the steps from the start of the task and return exact, wrong or unknown for each."""
    environment.reset(task_id, seed=0)
    results = [(environment.call(step["tool"], step["arguments"]), step["result"]) for step in steps]
    return ["unknown" if result.tier == "unknown" else "exact" if result.content == real else "wrong"
            for result, real in results]


def is_refusal_of(content: str) -> bool:
    """Return whether a real answer refuses the call."""
    return failed(content, parse(content)) or is_refusal(content)


def changed_fields(steps: list[Step], number: int) -> int | None:
    """Count the leaves that the call changed, as far as the real answers show the same record before and after it."""
    before = [leaves(step["result"]) for step in steps[:number]]
    for step in steps[number:]:
        after = leaves(step["result"])
        same = [each for each in before if is_same_record(each, after)]
        if same:
            return sum(same[-1].get(path) != after.get(path) for path in same[-1].keys() | after.keys())
    return None


def leaves(content: str) -> dict[str, Any]:
    """Return path -> value of an answer that is JSON or a Python literal; {} of any other."""
    value = parse(content)
    if value is None:
        try:
            value = ast.literal_eval(content)
        except (ValueError, SyntaxError, MemoryError, RecursionError):
            return {}
    return dict(_leaves(value, "")) if isinstance(value, dict | list | tuple) else {}


def _leaves(value: Any, path: str) -> Iterator[tuple[str, Any]]:
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list | tuple) else None
    if inner is None:
        yield path, value
        return
    for name, each in inner:
        yield from _leaves(each, f"{path}/{name}")


def is_same_record(one: dict[str, Any], other: dict[str, Any]) -> bool:
    """Return whether two answers show one record: at least half of the leaves of both are equal."""
    n_equal = sum(one[path] == other[path] for path in one.keys() & other.keys())
    return n_equal > 0 and 2 * n_equal >= max(len(one), len(other))


def verdicts(out: Path, data: DataSet, scorers: Path) -> Iterator[Row]:
    """Yield a row per play of a scripted policy: the reward, and the true success."""
    for paid, real in zip(*[iter(graded_pairs(scorers, out, data))] * 2, strict=True):
        yield {"task_id": paid.task_id, "policy": paid.policy, "truth": bool(real.success),
               "reward": None if paid.success is None else float(paid.success)}


def attempts(out: Path, data: DataSet) -> Iterator[Row]:
    """Yield a row per attempt of an attack on a published task."""
    for task in published(out, data.path):
        for name, plays in attacks(task).items():
            yield from ({"attack": name, "task_id": task.task_id, "reward": reward_of(task, steps)} for steps in plays)


def throughput(tasks: list[Published]) -> Iterator[Row]:
    """Yield the median speed of known solutions, from reset to grade, over rounds on one core; the first round is not timed."""
    if not tasks:
        return
    seconds = [_seconds(tasks) for _ in range(ROUNDS + 1)][1:]
    yield {"activity": "episodes", "per_second": round(len(tasks) / statistics.median(seconds), 1), "n_cores": 1}


def _seconds(tasks: list[Published]) -> float:
    began = time.perf_counter()
    for task in tasks:
        reward_of(task, task.solution)
    return time.perf_counter() - began


def write(path: Path, lines: Iterable[Row]) -> None:
    """Write rows as JSON lines."""
    path.write_text("".join(json.dumps(row) + "\n" for row in lines), "utf-8")


def page(systems: dict[str, Any]) -> str:
    """Return the scoreboard as a page."""
    columns = systems | {name: {} for name in PEERS}
    fails = "\n".join(f"- {line}" for line in systems[SYSTEM]["fails"]) or "- nothing in these files"
    return PAGE.format(table=table(columns), fails=fails)


if __name__ == "__main__":
    sys.exit(main())
