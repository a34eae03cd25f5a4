"""How long the browser's pages take: 1,000 sessions against 100,000, over HTTP on loopback.

    .venv/bin/python -m benchmarks.browser [--sessions 100000]

Warehouses are those of `report_warehouse`. Each page is asked for once before (`first_ms`: the slowest of these), then seven
times: the median in milliseconds. `slowest_ms` is the slowest page's median at the larger size, `growth` the most that a page's
time grew by. The report is measured by `benchmarks/report.py`.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import tempfile
import time
from pathlib import Path

from starlette.testclient import TestClient

from benchmarks.report_warehouse import fill
from pipelines.browser.app import application
from pipelines.browser.guard import AccessGuard

PAGES = {
    "overview": "/", "families": "/families", "families by words": "/families?words=kind%2039", "family": "/family?id=f7",
    "failed of a family": "/family?id=f7&outcome=failed",
    "sessions": "/sessions", "sessions by words": "/sessions?words=number%2099",
    "sessions by two words": "/sessions?words=tool_77+thing", "sessions by a rare word": "/sessions?words=q99999",
    "sessions by tool": "/sessions?tool=tool_7&sort=most+calls+first",
    "sessions of a family": "/sessions?family=f7", "failed sessions": "/sessions?outcome=failed", "session": "/session?id=s500",
    "tasks": "/tasks?service=front", "task": "/task?id=t500", "environment": "/environment?id=front", "left": "/rejected",
    "left by stage": "/rejected?stage=tasks", "corrections": "/corrections"}


def main() -> None:
    """Measure, and print the figures as the last line."""
    asked = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    asked.add_argument("--sessions", type=int, default=100_000)
    n = asked.parse_args().sessions
    with tempfile.TemporaryDirectory() as folder:
        small, large = (measured(Path(folder) / str(size), size) for size in (1_000, n))
    for name in PAGES:
        print(f"{name:>22}: {small[name][1]:7.1f} ms, with {n:,} sessions {large[name][1]:7.1f} (first {large[name][0]:.0f})",
              file=sys.stderr)
    growth = {name: large[name][1] / small[name][1] for name in PAGES}
    print(json.dumps({"benchmark": "browser", "figures": {
        "n_sessions": n, "first_ms": round(max(times[0] for times in large.values())),
        "slowest_ms": round(max(times[1] for times in large.values()), 1), "growth": round(max(growth.values()), 2),
        "pages_ms": {name: round(times[1], 1) for name, times in large.items()}}}))


def measured(out: Path, n_sessions: int, rounds: int = 7) -> dict[str, tuple[float, float]]:
    """Page -> (milliseconds of the first time, median of the others)."""
    fill(out, n_sessions)
    with TestClient(application(out, AccessGuard("a token of the benchmark", False)), base_url="http://127.0.0.1") as client:
        return {name: _times(client, path, rounds) for name, path in PAGES.items()}


def _times(client: TestClient, path: str, rounds: int) -> tuple[float, float]:
    times = []
    for _ in range(rounds + 1):
        began = time.perf_counter()
        answer = client.get(path)
        times.append((time.perf_counter() - began) * 1000)
        assert answer.status_code == 200, f"{path}: {answer.status_code}: {answer.text[-300:]}"
    return times[0], statistics.median(times[1:])


if __name__ == "__main__":
    main()
