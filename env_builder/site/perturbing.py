"""How long the pages of a site took, and how often they failed by themselves: rows of perturbations.jsonl for browser tools.

In: recorded requests of a site's pages (rows of `core.events`). Out: a row for each tool that asks for pages. Sees: durations
as the browser or proxy wrote them, and statuses 502, 503, 504. Does not see: which tool asked (a link and an address take as
long), sessions that ran out, what depends on load or on the page.
"""

from __future__ import annotations

from http import HTTPStatus
from typing import Any

import polars as pl

from env_builder.perturbations import MINIMUM_TIMED, QUANTILES
from env_builder.site.recorded import FAULTS

TOOLS = ("browser_click", "browser_navigate", "browser_navigate_back", "browser_press_key")
"""Tools that mostly ask for a page."""


def perturbations_of_pages(events: pl.DataFrame) -> list[dict[str, Any]]:
    """Return the rows; none where pages neither have durations nor failed."""
    status = events["value"].str.json_path_match("$.status").cast(pl.Int64(), strict=False)
    timed = events.filter((pl.col("latency_ms") > 0).fill_null(False))["latency_ms"]
    failed = status.filter(status.is_in(sorted(FAULTS)))
    if not events.height or (len(timed) < MINIMUM_TIMED and not len(failed)):
        return []
    latency = [round(float(timed.quantile(at, "linear") or 0), 3) for at in QUANTILES] if len(timed) >= MINIMUM_TIMED else None
    counts = failed.value_counts(sort=True).sort("count", "value", descending=[True, False])
    faults = [{"content": [f"The page was not shown: the site answered {code} {HTTPStatus(code).phrase}."],
               "share": round(n / len(failed), 6)} for code, n in counts.iter_rows()]
    return [{"tool": tool, "n_calls": events.height, "n_timed": len(timed), "latency_ms": latency,
             "fault_rate": round(len(failed) / events.height, 6), "faults": faults} for tool in TOOLS]
