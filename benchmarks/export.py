#!/usr/bin/env python3
"""How fast the table of steps is written, beside polars writing the same rows to the same kind of files in the same run.

    benchmarks/export.py [--steps 1000000] [--rounds 3] [--built OUT]

Source: the sessions of a run (`--built`; else one over tests/logs/airline is made, with privacy off), told again under new ids
and with other digits in their texts until there are so many steps. Each measurement is a process of its own: Traceroom reads
turns, tasks and outcomes from disk and writes the table (`traceroom export trajectories`, without the warehouse's part); polars
holds the finished rows in memory and writes them with the same compression and row groups. `share_of_polars`: polars' seconds
by ours, median over the rounds; `mb_per_s`: of the rows as Arrow holds them; `peak_memory_mb`: most resident memory of
Traceroom's process, interpreter and all. The last line on stdout is one JSON object.
"""

from __future__ import annotations

import argparse
import json
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

import polars as pl  # noqa: E402 (a script of its own, from anywhere)

from env_builder.exports import DatasetSource, export  # noqa: E402
from env_builder.exports.steps import ROW_GROUP, file  # noqa: E402
from pipelines.building.datasets import source_of  # noqa: E402
from pipelines.building.environments import names_of  # noqa: E402
from warehouse.records import SPLITS  # noqa: E402
from warehouse.store import Store  # noqa: E402

_TABLES = ("tasks", "outcomes", "tools")


def main() -> int:
    """Run the rounds and print the figures."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--steps", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--built", default="")
    parser.add_argument("--measure", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.measure:
        what, scratch = options.measure
        print(json.dumps({"ours": _ours, "polars": _polars}[what](Path(scratch))))
        return 0
    with tempfile.TemporaryDirectory() as folder:
        scratch = Path(folder)
        _made(_built(options.built, scratch), scratch, options.steps)
        rounds = []
        for number in range(options.rounds):
            ours, polars = (_measured(what, scratch) for what in ("ours", "polars"))
            rounds.append({**ours, "share_of_polars": polars["seconds"] / ours["seconds"], "polars_seconds": polars["seconds"]})
            print(f"{number + 1}/{options.rounds}: {rounds[-1]}", file=sys.stderr)
    middle = {name: statistics.median(each[name] for each in rounds) for name in rounds[0]}
    print(json.dumps({"benchmark": "export", "figures": {
        "share_of_polars": round(middle["share_of_polars"], 3), "rows_per_s": round(middle["rows"] / middle["seconds"]),
        "mb_per_s": round(middle["mb"] / middle["seconds"], 1), "peak_memory_mb": max(each["peak_mb"] for each in rounds),
        "rows": int(middle["rows"]), "file_mb": middle["file_mb"], "seconds": round(middle["seconds"], 2),
        "polars_seconds": round(middle["polars_seconds"], 2)}}))
    return 0


def _built(out: str, scratch: Path) -> Path:
    """Return the folder of a run: as given, or made of the sample."""
    if out:
        return Path(out)
    made = scratch / "out"
    subprocess.run([sys.executable, "-m", "pipelines", "run", str(ROOT / "tests" / "logs" / "airline"), "--out", str(made),
                    "--no-image", "--privacy", "off"], cwd=ROOT, check=True, stdout=subprocess.DEVNULL)
    return made


def _made(out: Path, scratch: Path, n_steps: int) -> None:
    """Yield the source's tables, repeated, in the order in which exporters are given them."""
    with Store.published(out / "warehouse.duckdb") as store:
        services = store.read("select service from mart.tasks group by service order by count(*) desc, service")["service"]
        name = names_of(sorted(services))[services[0]]
        source = source_of(store, services[0], name, scratch)
        turns = source.turns.lazy().collect()
    n_own = turns.height + turns.filter(pl.col("kind") == "call")["content"].count()
    copies = range(-(-n_steps // n_own))
    source.tools.write_parquet(scratch / "tools.parquet")
    for name, table in (("tasks", source.tasks), ("outcomes", source.outcomes)):
        pl.concat([_told_again(table, copy) for copy in copies]).write_parquet(scratch / f"{name}.parquet")
    side = source.tasks.select(pl.col("session_ids").alias("session_id"), "split").explode("session_id").unique("session_id")
    placed = turns.join(side, on="session_id", maintain_order="left")
    pl.concat(
        [_told_again(placed.filter(pl.col("split") == each).drop("split"), copy).lazy()
         for each in sorted(SPLITS) for copy in copies]
    ).sink_parquet(scratch / "turns.parquet", row_group_size=20_480, compression="lz4")


def _told_again(table: pl.DataFrame, copy: int) -> pl.DataFrame:
    """Return the rows of a table under other ids, with other digits in their texts."""
    digits = [str((int(digit) * 7 + copy) % 10) for digit in "0123456789"]
    columns = [name for name in ("content", "arguments", "arguments_raw") if name in table.columns]
    ids = [name for name in ("turn_id", "result_id", "session_id", "task_id") if name in table.columns]
    lists = [name for name in ("session_ids", "succeeded_session_ids") if name in table.columns]
    return table.with_columns(
        *(pl.col(name).str.replace_many(list("0123456789"), digits).alias(name) for name in columns),
        *((pl.lit(f"{copy:05d}") + pl.col(name)).alias(name) for name in ids),
        *(pl.col(name).list.eval(pl.lit(f"{copy:05d}") + pl.element()).alias(name) for name in lists))


def _measured(what: str, scratch: Path) -> dict[str, float]:
    command = [sys.executable, __file__, "--measure", what, str(scratch)]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    figures: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return figures


def _ours(scratch: Path) -> dict[str, float]:
    tasks, outcomes, tools = (pl.read_parquet(scratch / f"{name}.parquet") for name in _TABLES)
    source = DatasetSource("steps", "0" * 64, tasks, pl.scan_parquet(scratch / "turns.parquet"), outcomes, tools)
    begun = time.perf_counter()
    written = export("trajectories", scratch / "written", source)
    seconds = time.perf_counter() - begun
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (1024 if sys.platform != "darwin" else 1024 * 1024)
    rows = [pl.read_parquet(path) for path in written.paths]
    return {"seconds": seconds, "rows": sum(each.height for each in rows), "peak_mb": round(peak, 1),
            "mb": round(sum(each.estimated_size("mb") for each in rows), 1),
            "file_mb": round(sum(path.stat().st_size for path in written.paths) / 1e6, 1)}


def _polars(scratch: Path) -> dict[str, float]:
    rows = {side: pl.read_parquet(file(scratch / "written", side)) for side in SPLITS}
    begun = time.perf_counter()
    for side, table in rows.items():
        table.write_parquet(scratch / f"peer.{side}.parquet", compression="zstd", compression_level=1, row_group_size=ROW_GROUP)
    return {"seconds": time.perf_counter() - begun}


if __name__ == "__main__":
    sys.exit(main())
