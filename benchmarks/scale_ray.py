#!/usr/bin/env python3
"""The same shards on one Ray worker and on two: chunks of logs, read as ingestion reads them, results brought back here.

    python-with-ray benchmarks/scale_ray.py LOGS [--rounds 3]

On a cluster of this machine, where this process only waits; the cluster's start, and a shard for each worker to load what it
needs, are not counted. Rounds with one worker and with two take turns. `ray_speedup` is the median over the rounds of wall
seconds with one over those with two: no more than there are free cores. The last line on stdout is one JSON object.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import time
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from extractors.chunks import Chunk, Log, RejectedFile, opened  # noqa: E402
from extractors.inventory import discover  # noqa: E402 (a script of its own, from anywhere)
from extractors.reading import read_chunk  # noqa: E402
from pipelines.running.engines.ray_tasks import RayExecutor  # noqa: E402

READ_AT = datetime(2026, 1, 1, tzinfo=UTC)


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("logs")
    parser.add_argument("--rounds", type=int, default=3)
    arguments = parser.parse_args()
    os.environ["PYTHONPATH"] = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])   # of the cluster's workers
    chunks = shards(arguments.logs)
    ratios = []
    for number in range(arguments.rounds):
        one, two = (seconds(chunks, n_workers) for n_workers in (1, 2))
        ratios.append(one / two)
        print(f"round {number + 1}: {one:.2f} s with one worker, {two:.2f} s with two", file=sys.stderr, flush=True)
    print(json.dumps({"n_shards": len(chunks), "ray_speedup": round(statistics.median(ratios), 2)}))
    return 0


def shards(logs: str) -> list[tuple[Log, Chunk]]:
    """All chunks of the logs."""
    chunks: list[tuple[Log, Chunk]] = []
    for source_file in discover([logs])[0]:
        opened_log = opened(source_file)
        if not isinstance(opened_log, RejectedFile):
            log, chunks = opened_log
            chunks += [(replace(log, document=None), chunk) for chunk in chunks if isinstance(chunk, Chunk)]
    return chunks


def seconds(chunks: list[tuple[Log, Chunk]], n_workers: int) -> float:
    """Wall seconds from the first shard given to the last one back, on workers that have loaded what they need."""
    executor = RayExecutor(n_workers)
    try:
        for loaded in [executor.submit(read_chunk, *chunks[0], READ_AT) for _ in range(4 * n_workers)]:
            loaded.result()
        began = time.perf_counter()
        for reading in [executor.submit(read_chunk, log, chunk, READ_AT) for log, chunk in chunks]:
            reading.result()
        return time.perf_counter() - began
    finally:
        executor.shutdown()


if __name__ == "__main__":
    sys.exit(main())
