"""Shards on Ray, as a program of its own: `FOLDER` takes a worker's death, `OUT LOGS` what is read; the last line is JSON."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

from pipelines.ingestion import readers
from pipelines.running.engines.ray_tasks import RayExecutor
from tests.pipelines.ingestion import digest, ingest


def square(folder: str, number: int) -> int:
    """Return a number's square, from a worker that dies of 3 the first time it sees it."""
    died = Path(folder, "died")
    if number == 3 and not died.exists():
        died.touch()
        os.kill(os.getpid(), 9)
    if number == 5:
        raise ValueError("five")
    return number * number


def main(folder: str, out: str, logs: str) -> None:
    """Both, one after the other."""
    executor = RayExecutor(2)
    shards = [executor.submit(square, folder, number) for number in range(6)]
    told = [str(shard.exception() or shard.result()) for shard in shards]
    executor.shutdown()
    readers._ENOUGH = 0
    ingest(Path(out), logs)
    print(json.dumps({"squares": told, "digest": digest(Path(out))}))


if __name__ == "__main__":
    main(*sys.argv[1:])
