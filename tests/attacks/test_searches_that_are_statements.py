"""Searches, filters, orders and ids of pages that would be SQL, patterns or numbers without end: they are words to look for."""

from __future__ import annotations

import json
import time
from pathlib import Path
from urllib.parse import urlencode

import pytest

from tests.attacks.hostile_run import GROUP, hostile_run
from tests.attacks.pages import on
from tests.attacks.report import Report
from warehouse.store import Store

TEXTS = ("' or '1'='1", "'; drop table core.sessions; --", "x' union select * from raw.people --", "$1", "{words}",
    "read_csv('/etc/passwd')",
         "%", "_", "\\", "%%%%%%%%", "(a+)+$", ".*", "[", "(?i)", "\x00", "''", '"', "a" * 4_000, "٪", "-1", "1e9", "9" * 40,
         "NaN", "desc; --",
         "session_id) --", "pg_read_file('/etc/passwd')", "' || (select getenv('HOME')) || '")
LISTED = {"/sessions": ("words", "outcome", "service", "family", "since", "until", "sort", "after", "format"),
          "/tasks": ("words", "family", "split", "service", "sort", "after"), "/families": ("words", "after", "service",
          "sort"),
          "/rejected": ("reason", "stage", "words", "after"), "/episodes": ("policy", "words", "after")}


def attack(folder: Path, share: float) -> Report:
    """Filter each list by each text, and count what comes; then look whether all tables are as they were."""
    server, problems, n_tried, begun = on(hostile_run()), [], 0, time.monotonic()
    all_of = {path: len(json.loads(server.ask(f"{path}.json")[2])) for path in LISTED}
    for path, names in LISTED.items():
        for name in names:
            for text in TEXTS if share >= 0.1 else TEXTS[::3]:
                n_tried += 1
                status, _, answer = server.ask(f"{path}.json?{urlencode({name: text})}")
                problems += [f"{path}, {name} = {text[:30]!r}: {status}"] if status not in (200, 400, 404) else []
                problems += [f"{path}, {name} = {text[:30]!r}: a file is read"] if "root:x" in answer else []
                n = len(json.loads(answer)) if status == 200 else 0
                is_pattern = name == "words" and text in ("' or '1'='1", ".*", "(a+)+$", "%%%%%%%%", "\x00")
                problems += [f"{path}, {name} = {text!r}: all {n} rows"] if is_pattern and n and n == all_of[path] else []
    server.stop()
    with Store.published(hostile_run() / "warehouse.duckdb") as store:
        n_sessions = store.read("select count(*) from core.sessions").item()
    problems += [] if n_sessions and n_sessions == all_of["/sessions"] else [f"{n_sessions} sessions are left"]
    seconds = (time.monotonic() - begun) / n_tried
    problems += [f"a search takes {seconds:.1f} s"] if seconds > 2 else []
    return Report(n_tried, tuple(problems))


@pytest.mark.slow
@pytest.mark.xdist_group(GROUP)
def test_a_search_is_words(tmp_path: Path) -> None:
    assert attack(tmp_path, 0.01).problems == ()
