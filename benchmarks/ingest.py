#!/usr/bin/env python3
"""How fast logs are taken in, beside the bare parser and DuckDB's own reader, on the same generated files in the same run.

    benchmarks/ingest.py [--gb 1] [--rounds 3] [--formats completions,otlp,access_log,debezium] [--folder DIR]

Each measurement is a process of its own. In it, per format: reading the bytes; the parser alone in a bare loop (orjson; for the
access log a regular expression a line); DuckDB to a table of its own (`read_json`; for the access log, which is no JSON, its
line reader and `regexp_extract` to the same fields); Traceroom to committed tables (raw and core.events, ids settled; sessions
are another stage; privacy is off, its cost is measured by benchmarks/privacy.py). On one core and on all. Seconds are wall time
without imports. `over_parser`, `over_duckdb`, `two_core_speedup`, `growth_10x` and `again_share` are ratios of times within a
round, and medians over the rounds; `peak_memory_mb` is the largest sum of the resident sets of a Traceroom run's processes.
`processor_over_parser` and `processor_over_duckdb` are ratios of processor seconds on one core: load changes them little.
`<format>_` figures, and the worst of each without a prefix. The last line on stdout is one JSON object.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from benchmarks import corpora  # noqa: E402 (a script of its own, from anywhere)
from benchmarks.memory import Memory  # noqa: E402

_COMBINED = (r'^(\S+) (\S+) (\S+) \[([^\]]+)\] "(\S+) ([^ "]+) ([^"]+)" (\d{3}) (\S+) "((?:[^"\\]|\\.)*)" "((?:[^"\\]|\\.)*)"')
_NAMES = ["host", "identity", "name", "at", "method", "path", "protocol", "status", "n_bytes", "referer", "agent"]
_WORST = {"over_parser": max, "over_duckdb": max, "processor_over_parser": max, "processor_over_duckdb": max,
          "two_core_speedup": min, "peak_memory_mb": max, "growth_10x": max,
          "again_share": max}


def main() -> int:
    """Run the rounds and print the figures."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--gb", type=float, default=1.0)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--formats", default=",".join(corpora.LINES))
    parser.add_argument("--folder", default="")
    parser.add_argument("--measure", nargs="+", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.measure:
        what, n_cores, out, *paths = arguments.measure
        print(json.dumps(_measured(what, int(n_cores), Path(out), paths)))
        return 0
    names = arguments.formats.split(",")
    with tempfile.TemporaryDirectory(dir=arguments.folder or None) as scratch:
        rounds: dict[str, list[dict[str, float]]] = {name: [] for name in names}
        for name in names:
            for number in range(arguments.rounds):
                rounds[name].append(_round(name, Path(scratch), int(arguments.gb * 1e9)))
                print(f"{name} {number + 1}/{arguments.rounds}: {rounds[name][-1]}", file=sys.stderr)
            for path in Path(scratch).glob(f"{name}-*"):
                path.unlink()
    print(json.dumps({"benchmark": "ingest", "gb": arguments.gb, "n_cores": _n_cores(), "figures": _figures(rounds)}))
    return 0


def _round(name: str, scratch: Path, n_bytes: int) -> dict[str, float]:
    """One round over one format."""
    paths = [str(path) for path in corpora.write(name, scratch, n_bytes)]
    tenth = [str(path) for path in corpora.write(name, scratch, n_bytes // 10)]
    size, many = sum(Path(path).stat().st_size for path in paths) / 1e6, _n_cores()
    read, parser = _run("read", 1, paths), _run(f"parser_{name}", 1, paths)
    duckdb = {n: _run(f"duckdb_{name}", n, paths) for n in (1, many)}
    ours = {n: _run("traceroom", n, paths) for n in (1, many)}
    small = _run("traceroom", many, tenth)
    figures = {
        "read_mb_s": size / read["seconds"], "parser_mb_s": size / parser["seconds"],
        "duckdb_one_core_mb_s": size / duckdb[1]["seconds"], "duckdb_mb_s": size / duckdb[many]["seconds"],
        "one_core_mb_s": size / ours[1]["seconds"], "mb_s": size / ours[many]["seconds"],
        "processor_mb_s": size / ours[1]["processor"], "two_core_speedup": ours[1]["seconds"] / ours[many]["seconds"],
        "peak_memory_mb": max(each["peak_memory_mb"] for each in ours.values()),
        "growth_10x": ours[many]["seconds"] / small["seconds"], "again_share": ours[many]["again"] / ours[many]["seconds"]}
    if name == "completions":
        figures["over_parser"] = ours[1]["seconds"] / parser["seconds"]
        figures["processor_over_parser"] = ours[1]["processor"] / parser["processor"]
    else:
        figures["processor_over_duckdb"] = ours[1]["processor"] / duckdb[1]["processor"]
        figures["over_duckdb_one_core"] = ours[1]["seconds"] / duckdb[1]["seconds"]
        figures["over_duckdb"] = ours[many]["seconds"] / duckdb[many]["seconds"]
    return {key: round(value, 4) for key, value in figures.items()}


def _figures(rounds: dict[str, list[dict[str, float]]]) -> dict[str, float]:
    """Medians over the rounds with the format in front, and the worst over the formats."""
    medians = {
        name: {key: statistics.median(each[key] for each in runs) for key in runs[0]} for name, runs in rounds.items()}
    figures = {f"{name}_{key}": value for name, runs in medians.items() for key, value in runs.items()}
    for key, worst in _WORST.items():
        if values := [runs[key] for runs in medians.values() if key in runs]:
            figures[key] = worst(values)
    return {key: round(value, 3) for key, value in figures.items()}


def _run(what: str, n_cores: int, paths: list[str]) -> dict[str, float]:
    """Return a measurement in a process of its own, with the largest memory of it and its children."""
    with tempfile.TemporaryDirectory(dir=str(Path(paths[0]).parent)) as out:
        command = [sys.executable, __file__, "--measure", what, str(n_cores), out, *paths]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=ROOT)
        watch = Memory(process.pid)
        watch.start()
        printed, _ = process.communicate()
        watch.done.set()
        watch.join()
    if process.returncode:
        raise SystemExit(f"{what} failed")
    measured: dict[str, float] = json.loads(printed.splitlines()[-1])
    return {**measured, "peak_memory_mb": watch.most / 1e6}


def _n_cores() -> int:
    return len(os.sched_getaffinity(0))


def _measured(what: str, n_cores: int, out: Path, paths: list[str]) -> dict[str, float]:
    """Seconds of one measurement, in this process on so many cores."""
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:n_cores])
    if what == "traceroom":
        return _traceroom(out, paths)
    if what == "read":
        work: Callable[[], None] = lambda: _read(paths)   # noqa: E731 (one of four)
    elif what.startswith("parser"):
        work = (lambda: _matched(paths)) if what.endswith("access_log") else (lambda: _parsed(paths))
    else:
        work = lambda: _duckdb(out, paths, n_cores, what.endswith("access_log"))   # noqa: E731
    began, used = time.perf_counter(), time.process_time()
    work()
    return {"seconds": time.perf_counter() - began, "processor": time.process_time() - used}


def _read(paths: list[str]) -> None:
    for path in paths:
        with Path(path).open("rb", buffering=0) as file:
            while file.read(1 << 22):
                pass


def _parsed(paths: list[str]) -> None:
    import orjson

    loads = orjson.loads
    for path in paths:
        with Path(path).open("rb") as file:
            for line in file:
                loads(line)


def _matched(paths: list[str]) -> None:
    match = re.compile(_COMBINED.encode()).match
    for path in paths:
        with Path(path).open("rb") as file:
            for line in file:
                groups = match(line)
                assert groups is not None
                groups.groups()


def _duckdb(out: Path, paths: list[str], n_threads: int, text: bool) -> None:
    import duckdb

    with duckdb.connect(str(out / "peer.duckdb"), config={"threads": n_threads}) as connection:
        if text:
            connection.execute(
                f"create table log as select unnest(regexp_extract(line, '{_COMBINED}', {_NAMES})) from read_csv($paths, "
                "delim = chr(1), quote = '', escape = '', header = false, auto_detect = false, columns = {'line': 'varchar'})",
                {"paths": paths})
        else:
            connection.execute("create table log as select * from read_json($paths)", {"paths": paths})


def _traceroom(out: Path, paths: list[str]) -> dict[str, float]:
    from extractors.formats import registered
    from pipelines.ingestion.ingest import ingest
    from pipelines.settings import Settings
    from warehouse.lock import writing
    from warehouse.store import Store

    registered()
    settings, seconds, processor = Settings(logs=tuple(paths), out=str(out), privacy=False), [], []
    for _ in range(2):
        began, used = time.perf_counter(), time.process_time()
        with writing(settings.warehouse, "a benchmark"), Store.open(settings.warehouse) as store:
            counts = ingest(store, settings)
        seconds.append(time.perf_counter() - began)
        processor.append(time.process_time() - used)
        print(counts, file=sys.stderr)
    return {"seconds": seconds[0], "again": seconds[1], "processor": processor[0]}


if __name__ == "__main__":
    sys.exit(main())
