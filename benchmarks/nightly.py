#!/usr/bin/env python3
"""What a night costs: logs that grow by a hundredth, nights without news, a night with another rubric.

    benchmarks/nightly.py LOGS… [--nights 30] [--measured 3] [--share 0.01] [--services 1] [--first N] [--beside] [--folder DIR]
                          e.g. ../shared/data/retail_desk/logs

The sessions of LOGS (files of JSON lines that name their session) are put in order of their first line. A base is built of all
but the last `--nights` hundredths (`--share`); then each night brings a file with the next hundredth, and `traceroom run` goes
over all of it, in a process of its own. The last `--measured` nights are run one by one, and what comes before them arrives
together, as after days of rest; 0: each. Then a night without news, and a full build of the same logs into an empty folder,
with which the grown one must agree table by table and file by file: it is given the ledger of epochs of the nights, without
which it would be a build of one epoch (docs/decisions.md); then a night on which a file has another name, and one on which
a person writes a rubric. With `--services N` sessions are dealt to N services by their names, each with tools of its own
name, and on one more night the news is of one service alone. With `--first N` only the first N sessions count. With `--beside`
the last night and the full build run at the same time: a machine on which others work slows both alike, so that the shares can
be read, each stage's too. All with `--privacy off`: the pseudonyms of a night do not know whom the next one names.

The last line on stdout is one JSON object. `incremental_share`: seconds of a night with a hundredth of new sessions over those
of a full build, the mean of the measured ones, and `incremental_cpu_share` the same of processor seconds, which a busy machine
does not change; `idle_share`, `renamed_share`, `rubric_share`, `one_service_share`: of the other nights,
`idle_cpu_share` and so on in processor seconds; `looked_cpu_share`: of a night with no news on which nothing remembers what the
last one told, so that every stage is asked. `deploy_share`: processor seconds of a night after another release, whose copy of
the sources differs in a docstring that no stage imports (a page of the browser; compiled, as an installation is), and
`deploy_computes` how many stages it computed; `startup_cpu_s`: of the command's start and help. `share_<stage>`: a
night's seconds of the stage over the full build's; `rubric_rebuilds_world`: was anything below the rewards computed on the
night of the rubric; `equal`: is the grown result the full build's.

What stays of the base and of each night: `heldout_in_train`, how many of the base's `n_heldout` held-out tasks have a session
in train on a later night, `train_in_heldout` of its train tasks the other way; `ids_moved`: tasks, clusters (families of
goals) and groups (components of the split) whose id the next night has no more, though sessions of theirs are there, but for
groups that became part of an older one, which is what tying is; `tied_across_sides`: sessions that are on no side in the end,
since what they name is on several.
"""

from __future__ import annotations

import argparse
import compileall
import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

import polars as pl

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from pipelines.running.code import PACKAGES  # noqa: E402
from warehouse.store import Store  # noqa: E402

BELOW_REWARDS = {"sessions", "world", "goals", "names", "outcomes", "tasks"}
"""Stages that no rubric has anything to say to."""
CLOCKED = ("raw.schema_version", "raw.stages", "raw.locations", "raw.partitions", "raw.audits", "raw.cache")
"""Tables that tell of runs and places, and nothing of logs."""
RUBRIC = """[[checks]]
kind = "spoke"
says = "The agent speaks twice at least."
role = "diagnostic"
parameters = { at_least = 2 }
"""


class Night(NamedTuple):
    """What a run took."""

    name: str
    seconds: float
    cpu: float
    """Processor seconds, of all its processes."""
    stages: dict[str, float]
    """Seconds of the stages that were computed."""
    n_sessions: int


class Placed(NamedTuple):
    """Where the sessions are after a night."""

    task_of: dict[str, str]
    side_of: dict[str, str]
    family_of: dict[str, str]
    group_of: dict[str, str]
    n_tied: int
    """Sessions on no side."""


def main() -> int:
    """Run the nights and print their figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("logs", nargs="+", type=Path)
    parser.add_argument("--nights", type=int, default=30)
    parser.add_argument("--measured", type=int, default=3)
    parser.add_argument("--share", type=float, default=0.01)
    parser.add_argument("--services", type=int, default=1)
    parser.add_argument("--first", type=int)
    parser.add_argument("--beside", action="store_true")
    parser.add_argument("--folder", type=Path)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=given.folder) as scratch:
        figures = measured(given, Path(scratch))
    print(json.dumps({"benchmark": "nightly", "n_nights": given.nights, "n_services": given.services, "figures": figures}))
    return 0


def measured(given: argparse.Namespace, scratch: Path) -> dict[str, Any]:
    """Figures of all nights."""
    inbox, out = scratch / "logs", scratch / "out"
    inbox.mkdir()
    sessions = list(sessions_of(given.logs, given.services))[:given.first]
    new = max(1, round(given.share * len(sessions)))
    n_measured = given.measured or given.nights
    arrivals = [sessions[:len(sessions) - given.nights * new]]
    rest = sessions[len(arrivals[0]):]
    together = (given.nights - n_measured) * new
    arrivals += [rest[:together]] if together else []
    arrivals += [rest[at:at + new] for at in range(together, len(rest), new)]
    nights, placed = [], []
    with ThreadPoolExecutor(1) as other:
        for number, arrived in enumerate(arrivals):
            (inbox / f"night-{number:02}.jsonl").write_text("".join(line for lines in arrived for line in lines), "utf-8")
            is_news, is_last = number >= len(arrivals) - n_measured, number == len(arrivals) - 1
            full_run = None
            if is_last and given.beside:   # the night adds its epoch to what the ledger was before, and so does the full build
                kept = shutil.copytree(out, scratch / "before", ignore=shutil.ignore_patterns("environments", "datasets"))
                full_run = other.submit(run, "full", [inbox], scratch / "full", ("--ledger", str(kept)))
            nights.append(run("news" if is_news else "base", [inbox], out))
            placed.append(placed_in(out))
    last = {"idle": run("idle", [inbox], out)}
    (out / ".receipt.json").unlink(missing_ok=True)
    last["looked"] = run("looked", [inbox], out)
    last["deploy"] = run("deploy", [inbox], out, root=another_release(scratch / "release"))
    full = full_run.result() if full_run else run("full", [inbox], scratch / "full", ("--ledger", str(out)))
    apart = different(out, scratch / "full")
    (inbox / "night-00.jsonl").rename(inbox / "renamed.jsonl")  # only now: a decision names the file that a chunk was read from
    last["renamed"] = run("renamed", [inbox], out)
    last["rubric"] = run("rubric", [inbox], out, ("--config", str(rubric(out, scratch))))
    if given.services > 1:
        run("rubric gone", [inbox], out)
        one_more(inbox, sessions)
        last["one_service"] = run("one service", [inbox], out)
    news = [night for night in nights if night.name == "news"]
    table([*nights, *last.values(), full])
    for name in apart:
        print(f"differs: {name}", file=sys.stderr)
    return {**figures_of(news, last, full, apart), **stayed(placed)}


def figures_of(news: list[Night], last: dict[str, Night], full: Night, apart: list[str]) -> dict[str, Any]:
    """Return what is printed."""
    def share(nights: list[Night], of: float = full.seconds) -> float:
        return round(sum(night.seconds for night in nights) / len(nights) / of, 4)

    stages = {f"share_{stage}": round(sum(night.stages.get(stage, 0.0) for night in news) / len(news) / seconds, 3)
              for stage, seconds in full.stages.items() if seconds > 0.01}
    return {
        "incremental_share": share(news),
        "incremental_cpu_share": round(sum(night.cpu for night in news) / len(news) / full.cpu, 4),
        "worst_share": max(share([night]) for night in news),
        **{f"{name}_share": share([night]) for name, night in last.items()},
        **{f"{name}_cpu_share": round(night.cpu / full.cpu, 4) for name, night in last.items()},
        "deploy_share": round(last["deploy"].cpu / full.cpu, 4), "deploy_computes": len(last["deploy"].stages),
        "startup_cpu_s": round(cpu_of([sys.executable, "-m", "pipelines", "--help"], ROOT)[0], 2),
        "rubric_rebuilds_world": bool(BELOW_REWARDS & last["rubric"].stages.keys()),
        "idle_computes": len(last["idle"].stages), "equal": not apart, "n_measured": len(news),
        "seconds_full": round(full.seconds, 2), "cpu_full": round(full.cpu, 2), "n_sessions": full.n_sessions, **stages}


def placed_in(out: Path) -> Placed:
    """Read where the sessions are."""
    with Store.published(out / "warehouse.duckdb") as store:
        rows = store.read("select unnest(session_ids) as session_id, task_id, split from mart.tasks").rows()
        families = store.read("select distinct session_id, family from mart.goals")
        groups = store.read("select session_id, component from raw.sides")
        n_tied = store.read("select count(*) from mart.decisions where reason = 'tied_across_sides'").item()
    return Placed({session: task for session, task, _ in rows}, {session: side for session, _, side in rows},
                  dict(families.iter_rows()), dict(groups.iter_rows()), n_tied)


def stayed(placed: list[Placed]) -> dict[str, Any]:
    """Return what moved from the base to later nights, and from each night to the next."""
    base, later = placed[0], placed[1:]

    def crossed(side: str, other: str) -> int:
        return len({base.task_of[session] for session, was in base.side_of.items() if was == side
                    for night in later if night.side_of.get(session) == other})

    steps = list(zip(placed, later, strict=False))
    moved = {
        "tasks": sum(n_moved(one.task_of, two.task_of) for one, two in steps),
        "clusters": sum(n_moved(one.family_of, two.family_of) for one, two in steps),
        "groups": sum(n_moved(one.group_of, two.group_of, are_merged=True) for one, two in steps)}
    held_out = {base.task_of[session] for session, side in base.side_of.items() if side == "held_out"}
    return {"heldout_in_train": crossed("held_out", "train"), "train_in_heldout": crossed("train", "held_out"),
            "n_heldout": len(held_out), "ids_moved": sum(moved.values()),
            **{f"ids_moved_{kind}": n for kind, n in moved.items()}, "tied_across_sides": placed[-1].n_tied}


def n_moved(before: dict[str, str], after: dict[str, str], are_merged: bool = False) -> int:
    """Count the ids of `before` that are gone though sessions of theirs have one. `are_merged`: not those whose sessions have
    ids that were there before."""
    there, was = {*after.values()}, {*before.values()}
    gone = {name for session, name in before.items()
            if name not in there and session in after and not (are_merged and after[session] in was)}
    return len(gone)


def sessions_of(logs: list[Path], n_services: int) -> Iterator[list[str]]:
    """Yield the lines of each session, sessions in order of their first line; each dealt to a service where there are
    several."""
    by_entity: dict[str, list[str]] = {}
    for path in sorted(each for log in logs for each in ([log] if log.is_file() else log.rglob("*.jsonl"))):
        for line in path.read_text("utf-8").splitlines(keepends=True):
            row = json.loads(line)
            place = row.get("metadata", row)
            name = str(place.get("session_id", len(by_entity)))
            if n_services > 1:
                service = f"desk-{int(hashlib.sha256(name.encode()).hexdigest(), 16) % n_services}"
                place["app" if "app" in place else "service"] = service
                line = json.dumps(with_tools_of(service, row)) + "\n"
            by_entity.setdefault(name, []).append(line)
    yield from by_entity.values()


def with_tools_of(service: str, row: Any) -> Any:
    """Return the same record, with every tool named after the service: services with the same tools are judged as one."""
    if isinstance(row, list):
        return [with_tools_of(service, each) for each in row]
    if not isinstance(row, dict):
        return row
    is_tools = isinstance(row.get("name"), str) and (row.keys() & {"arguments", "parameters"} or row.get("role") == "tool")
    named = {"name": f"{service}-{row['name']}"} if is_tools else {}
    return {name: with_tools_of(service, value) for name, value in row.items()} | named


def one_more(inbox: Path, sessions: list[list[str]]) -> None:
    """Write a file with the last session of the first service once more, under another name."""
    lines = next(lines for lines in reversed(sessions) if '"desk-0"' in lines[0])
    row = json.loads(lines[0])
    name = row.get("metadata", row)["session_id"]
    other = hashlib.sha256(name.encode()).hexdigest()[:len(name)]
    (inbox / "one-more.jsonl").write_text("".join(lines).replace(name, other), "utf-8")


def run(name: str, logs: list[Path], out: Path, options: Sequence[str] = (), root: Path = ROOT) -> Night:
    """One run of the command, timed with its start and imports. `root`: the sources that it runs."""
    cpu, seconds, printed = cpu_of(
        [sys.executable, "-m", "pipelines", "run", *map(str, logs), "--out", str(out), "--no-image", "--json",
         "--privacy", "off", *options], root)
    made = json.loads(printed)
    computed = {stage["stage"]: stage["seconds"] for stage in made["stages"] if stage["computed"]}
    return Night(name, seconds, cpu, computed, made["n_sessions"])


def cpu_of(command: list[str], root: Path) -> tuple[float, float, str]:
    """Processor seconds of a command over the sources in `root`, its seconds, and what it printed. Its sources are compiled
    once, as those of an installation are, and not by every command."""
    variables = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    with tempfile.TemporaryFile("w+") as printed, tempfile.TemporaryFile("w+") as errors:
        began = time.perf_counter()
        process = subprocess.Popen(command, stdout=printed, stderr=errors, cwd=root, env=variables | {"PYTHONPATH": str(root)})
        _, status, used = os.wait4(process.pid, 0)   # its own processor seconds, and those of processes that it waited for
        seconds = time.perf_counter() - began
        process.returncode = os.waitstatus_to_exitcode(status)
        for file in (printed, errors):
            file.seek(0)
        if process.returncode:
            raise SystemExit(errors.read())
        return used.ru_utime + used.ru_stime, seconds, printed.read()


def another_release(folder: Path) -> Path:
    """Return a copy of the sources in which a page of the browser has another docstring, compiled as an installation is."""
    for package in PACKAGES:
        shutil.copytree(ROOT / package, folder / package, ignore=shutil.ignore_patterns("__pycache__"))
    page = folder / "pipelines" / "browser" / "pages.py"
    page.write_text(page.read_text("utf-8").replace('"""', '"""Another release. ', 1), "utf-8")
    compileall.compile_dir(folder, quiet=2)
    return folder


def rubric(out: Path, scratch: Path) -> Path:
    """Return A configuration whose folder of rubrics holds a person's check on the family with the most tasks."""
    with Store.published(out / "warehouse.duckdb") as store:
        family = store.read("select family from mart.tasks group by family order by count(*) desc, family limit 1").item()
    folder = scratch / "rubrics"
    folder.mkdir()
    (folder / f"{family}.toml").write_text(RUBRIC, "utf-8")
    configuration = scratch / "traceroom.toml"
    configuration.write_text(f'[rewards]\nrubrics = "{folder}"\n', "utf-8")
    return configuration


def different(one: Path, other: Path, same_files: bool = True) -> list[str]:
    """Tables and files that are not the same, but for clocks and places. `same_files`: do both have the same log files? Else
    which file, and where in it, a record was read from is no difference either."""
    with Store.published(one / "warehouse.duckdb") as first_store, Store.published(other / "warehouse.duckdb") as right:
        names = first_store.read("select schema_name || '.' || table_name as name from duckdb_tables() order by all")["name"]
        left_out = CLOCKED if same_files else (*CLOCKED, "raw.files")
        apart = [name for name in names if name not in left_out and not compared(first_store, name, same_files).equals(
            compared(right, name, same_files))]
    return apart + sorted(name for name, _ in files(one) ^ files(other))


def compared(store: Store, name: str, same_files: bool) -> pl.DataFrame:
    """Return a table without clocks and paths, and where the files are others without what names a file or a place in one."""
    rows = store.table(name).drop("read_at", "path", strict=False)
    if same_files:
        return rows
    if name == "mart.decisions":   # that a file was read
        rows = rows.join(store.table("raw.files").select(subject="file_id"), on="subject", how="anti", maintain_order="left")
    return rows.drop("file_id", "line", "byte_offset", strict=False)


def files(out: Path) -> set[tuple[str, str]]:
    """(path, sha256) of every exported file."""
    folders = [out / name for name in ("environments", "rewards", "unverified", "datasets")]
    return {(str(path.relative_to(out)), hashlib.sha256(path.read_bytes()).hexdigest())
            for folder in folders for path in folder.rglob("*") if path.is_file()}


def table(nights: list[Night]) -> None:
    """Seconds of each night by stage, on stderr."""
    stages = list(nights[-1].stages)
    print("night".ljust(12) + "sessions  seconds      cpu  " + "  ".join(stages), file=sys.stderr)
    for night in nights:
        cells = (f"{night.stages.get(stage, 0.0):.2f}".rjust(len(stage)) for stage in stages)
        print(f"{night.name:12}{night.n_sessions:8}{night.seconds:9.2f}{night.cpu:9.2f}  " + "  ".join(cells), file=sys.stderr)


if __name__ == "__main__":
    sys.exit(main())
