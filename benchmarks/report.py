"""How long the report takes, how large it is, and how soon a browser paints it: 1,000 sessions against 100,000.

    .venv/bin/python -m benchmarks.report [--sessions 100000]

Warehouses are made by `report_warehouse` (as many families, tools and reasons in both). Time to write is that of a process
that has everything to load; paint is Chromium's own `first-contentful-paint`, and the end of loading, from a file: medians of
five.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from benchmarks.report_warehouse import fill
from tests.browser import DESKTOP, chromium

_PAINT = """() => new Promise(done => new PerformanceObserver(list => done(list.getEntries()[0].startTime))
    .observe({type: "paint", buffered: true}))"""


def main() -> None:
    """Measure, and print the figures as the last line."""
    asked = argparse.ArgumentParser(description=__doc__)
    asked.add_argument("--sessions", type=int, default=100_000)
    n = asked.parse_args().sessions
    with tempfile.TemporaryDirectory() as folder:
        small, large = (measured(Path(folder) / str(size), size) for size in (1_000, n))
    for size, told in ((1_000, small), (n, large)):
        print(f"{size:>9,} sessions: {told}", file=sys.stderr)
    print(json.dumps({"benchmark": "report", "figures": {
        "n_sessions": n, **large, "bytes_against_1000": round(large["page_bytes"] / small["page_bytes"], 3)}}))


def measured(out: Path, n_sessions: int) -> dict[str, Any]:
    """Return {"write_s", "page_bytes", "first_paint_ms", "loaded_ms"} of the report on so many sessions."""
    fill(out, n_sessions)
    began = time.perf_counter()
    subprocess.run([sys.executable, "-m", "pipelines", "report", "--out", str(out)], check=True, capture_output=True)
    write_s = time.perf_counter() - began
    page = out / "report" / "index.html"
    paint, loaded = painted(page)
    return {"write_s": round(write_s, 2), "page_bytes": page.stat().st_size, "first_paint_ms": round(paint),
            "loaded_ms": round(loaded)}


def painted(path: Path, rounds: int = 5) -> tuple[float, float]:
    """Milliseconds to the first paint of content, and to the end of loading."""
    from playwright.sync_api import sync_playwright

    paints, loads = [], []
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium(), args=["--no-sandbox", "--disable-gpu"])
        for _ in range(rounds):
            page = browser.new_page(viewport=DESKTOP)
            page.goto(path.as_uri(), wait_until="load")
            paints.append(page.evaluate(_PAINT))
            loads.append(page.evaluate("performance.getEntriesByType('navigation')[0].loadEventEnd"))
            page.close()
        browser.close()
    return statistics.median(paints), statistics.median(loads)


if __name__ == "__main__":
    main()
