#!/usr/bin/env python3
"""Whether an environment in shards answers as the whole one, what loading it takes, and what a night changes of it.

    benchmarks/sharding.py LOGS… [--first 300] [--probed 60] [--shard-mb 0.1] [--share 0.01] [--folder DIR]
                           e.g. ../shared/data/retail_desk/logs

The first `--first` sessions of LOGS (as nightly.py orders them) are built twice: with whole files, and with shards of
`--shard-mb`. Both environments are asked the same. The calls of the `--probed` sessions that come next, which neither was built
from, are made in an open room as of the last task's start: first in their order, then each with an argument left out, with one
that names nothing, and with one that another session gave, for every argument; then in their order once more. The calls of the
known solution of each published task are made in the task's room in the same way. An answer is its text, whether it fails, and
where it comes from; what an episode changed, and its grade, are compared at its end. Then a night brings `--share` more
sessions. All with `--privacy off`.

The last line on stdout is one JSON object:

    sharded_equal             are all answers, changes and grades the same; n_probes, n_different
    n_shards                  shards of the environment before the night
    load_ms, sharded_load_ms  processor milliseconds until it has played a task, in a process of its own; of nine the median
    peak_mb, sharded_peak_mb  megabytes that loading it and playing the task adds to what the process holds at its start
    n_read, n_rows            rows that are read for a task; rows of the environment
    stranger_…                the same with one more call, of the last tool, whose arguments name nothing
    shards_unchanged          share of the shards before the night that are there byte for byte after it; bytes_unchanged
"""

from __future__ import annotations

import argparse
import json
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from benchmarks.nightly import run, sessions_of  # noqa: E402
from env_builder.runtime import Environment  # noqa: E402
from env_builder.runtime.canonical import canonical  # noqa: E402
from env_builder.runtime.files import NAMED_BY, rows_of  # noqa: E402
from env_builder.runtime.shards import FOLDER  # noqa: E402
from warehouse.store import Store  # noqa: E402

NOWHERE = "nowhere-to-be-found"
Call = tuple[str, dict[str, Any]]
EPISODE = """
import json, re, sys, time
from env_builder.runtime import Environment
from env_builder.runtime.shards import Shards
n_read, read = 0, Shards.rows
def counted(shards, name):
    global n_read
    rows = read(shards, name)
    n_read += len(rows)
    return rows
Shards.rows = counted
def peak():
    return int(re.search(r"VmHWM:\\s+(\\d+)", open("/proc/self/status").read())[1]) / 1024
before, began = peak(), time.process_time()
environment = Environment.load_room(sys.argv[1])
environment.reset(sys.argv[2])
for step in json.loads(sys.argv[3]):
    environment.call(step["tool"], step["arguments"]) if "tool" in step else environment.say(step["say"])
figures = [time.process_time() - began, peak() - before, n_read]
tool, arguments = next((step["tool"], step["arguments"]) for step in reversed(json.loads(sys.argv[3])) if "tool" in step)
environment.call(tool, dict.fromkeys(arguments, "nowhere-to-be-found"))
environment.episode()
print(json.dumps([*figures, time.process_time() - began, peak() - before, n_read]))
"""


def main() -> int:
    """Build, ask, and print the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("logs", nargs="+", type=Path)
    parser.add_argument("--first", type=int, default=300)
    parser.add_argument("--probed", type=int, default=60)
    parser.add_argument("--shard-mb", type=float, default=0.1)
    parser.add_argument("--share", type=float, default=0.01)
    parser.add_argument("--folder", type=Path)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=given.folder) as scratch:
        figures = measured(given, Path(scratch))
    print(json.dumps({"benchmark": "sharding", "figures": figures}))
    return 0


def measured(given: argparse.Namespace, scratch: Path) -> dict[str, Any]:
    """Return all figures."""
    sessions = list(sessions_of(given.logs, 1))
    n_base = min(given.first, len(sessions) - given.probed)
    inbox, out, whole, others = (scratch / name for name in ("logs", "out", "whole", "others"))
    for folder, name, own in ((inbox, "base", sessions[:n_base]), (others, "probed", sessions[n_base:n_base + given.probed])):
        folder.mkdir()
        (folder / f"{name}.jsonl").write_text("".join(line for lines in own for line in lines), "utf-8")
    config = scratch / "traceroom.toml"
    config.write_text(f"[environments]\nshard_mb = {given.shard_mb}\n", "utf-8")
    run("whole", [inbox], out)
    shutil.copytree(out, whole, ignore=shutil.ignore_patterns("warehouse*", "datasets"))
    run("shards", [inbox], out, ("--config", str(config)))
    run("probed", [others], scratch / "held")
    (room,) = (out / "environments").iterdir()
    figures = answers(whole / "environments" / room.name, room, calls_of(scratch / "held")) | loading(whole, out, room.name)
    before = shards_of(room)
    n_new = max(1, round(given.share * n_base))
    news = sessions[n_base:n_base + n_new]
    (inbox / "night.jsonl").write_text("".join(line for lines in news for line in lines), "utf-8")
    run("night", [inbox], out, ("--config", str(config)))
    return figures | {"n_sessions": n_base, "n_new": n_new, **unchanged(before, shards_of(room))}


def calls_of(out: Path) -> list[list[Call]]:
    """Return the calls of each session that a run read."""
    with Store.published(out / "warehouse.duckdb") as store:
        turns = store.read("select session_id, tool, arguments from core.turns where kind = 'call' and arguments is not null "
                           "order by session_id, position")
    by_session: dict[str, list[Call]] = defaultdict(list)
    for session, tool, arguments in turns.iter_rows():
        by_session[session].append((tool, json.loads(arguments)))
    return list(by_session.values())


def answers(whole: Path, sharded: Path, sessions: list[list[Call]]) -> dict[str, Any]:
    """Ask both environments the same, and return whether they answer alike."""
    rooms = [Environment.load(folder) for folder in (whole, sharded)]
    episodes: list[tuple[str | None, list[Call]]] = [(None, calls) for calls in sessions]
    episodes += [(row["task_id"], [(step["tool"], step["arguments"]) for step in row["steps"] if "tool" in step])
                 for row in rows_of(whole.parent.parent / "rewards" / whole.name / "solutions.jsonl")]
    values = given_values(calls for _, calls in episodes)
    at = max(task.starts_at or "" for task in rooms[0].tasks) or None
    n_probes = n_different = 0
    for number, (task_id, calls) in enumerate(episodes):
        probes = [*calls, *changed(calls, values, number), *calls]
        own, other = (list(asked(room, task_id, at, probes)) for room in rooms)
        n_probes += len(own)
        n_different += sum(one != two for one, two in zip(own, other, strict=True))
    return {"sharded_equal": not n_different, "n_probes": n_probes, "n_different": n_different,
            "n_episodes": len(episodes), "n_shards": json.loads((sharded / "manifest.json").read_bytes())["shards"]["n"]}


def given_values(sessions: Iterable[list[Call]]) -> dict[tuple[str, str], list[Any]]:
    """Return what was given for each argument, by tool and name."""
    values: dict[tuple[str, str], list[Any]] = defaultdict(list)
    for tool, arguments in (call for calls in sessions for call in calls):
        for name, value in arguments.items():
            values[tool, name].append(value)
    return values


def changed(calls: list[Call], values: dict[tuple[str, str], list[Any]], number: int) -> Iterator[Call]:
    """Yield each call with one argument left out, one that names nothing, and one that others gave."""
    for tool, arguments in calls:
        for name, value in arguments.items():
            yield tool, {each: own for each, own in arguments.items() if each != name}
            yield tool, arguments | {name: NOWHERE if isinstance(value, str) else [NOWHERE]}
            others = values[tool, name]
            yield tool, arguments | {name: others[(7 * number + 3) % len(others)]}


def asked(room: Environment, task_id: str | None, at: str | None, probes: list[Call]) -> Iterator[Any]:
    """Yield the answers of one episode, what it changed, and its grade."""
    room.reset(task_id, at=at if task_id is None else None)
    for tool, arguments in probes:
        yield room.call(tool, arguments)
    yield canonical(room.difference())
    yield None if task_id is None else room.grade()


def loading(whole: Path, out: Path, name: str) -> dict[str, Any]:
    """Return what it takes until an environment has played one task."""
    solutions = list(islice(rows_of(whole / "rewards" / name / "solutions.jsonl"), 9))
    figures: dict[str, Any] = {}
    for of, folder in (("", whole), ("sharded_", out)):
        room, runs = folder / "environments" / name, []
        for each in solutions:
            command = [sys.executable, "-c", EPISODE, str(room), each["task_id"], json.dumps(each["steps"])]
            runs.append(json.loads(subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout))
        medians = list(map(statistics.median, zip(*runs, strict=True)))
        for when, (seconds, peak, n_read) in (("", medians[:3]), ("stranger_", medians[3:])):
            figures |= {f"{when}{of}load_ms": round(1000 * seconds, 1), f"{when}{of}peak_mb": round(peak, 1),
                        f"{when}n_read": n_read}
    files = (out / "environments" / name / file for file in NAMED_BY)
    return figures | {"n_rows": sum(1 for file in files for _ in rows_of(file))}


def shards_of(room: Path) -> dict[str, tuple[str, int]]:
    """sha256 and bytes of each shard of an environment."""
    files = json.loads((room / "manifest.json").read_bytes())["files"]
    return {path: (own, (room / path).stat().st_size) for path, own in files.items()
            if path.startswith(f"{FOLDER}/") and path.count("/") == 2}


def unchanged(before: dict[str, tuple[str, int]], after: dict[str, tuple[str, int]]) -> dict[str, float]:
    """Return the share of shards that are there byte for byte after a night."""
    same = {path: own for path, own in before.items() if after.get(path) == own}
    for path in sorted(before.keys() - same.keys()):
        print(f"{'changed' if path in after else 'gone'}: {path}", file=sys.stderr)
    n_bytes, n_same = (sum(size for _, size in each.values()) for each in (before, same))
    return {"shards_unchanged": round(len(same) / len(before), 4), "bytes_unchanged": round(n_same / n_bytes, 4)}


if __name__ == "__main__":
    sys.exit(main())
