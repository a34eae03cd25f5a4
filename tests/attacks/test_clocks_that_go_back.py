"""A clock that goes back three years, and forward fifty, between two nights: the same results come of the same logs, and all
is read."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.attacks.logs import conversation
from tests.attacks.report import Report
from tests.command_line import process
from tests.conftest import lacking
from tests.pipelines.conftest import files, tables

YEAR_S = 365 * 86_400
CLOCK = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <sys/time.h>
#include <time.h>
static long shift(void) { char *text = getenv("SHIFT_S"); return text ? atol(text) : 0; }
int clock_gettime(clockid_t which, struct timespec *at) {
    static int (*real)(clockid_t, struct timespec *);
    if (!real) real = dlsym(RTLD_NEXT, "clock_gettime");
    int result = real(which, at);
    if (which == CLOCK_REALTIME || which == 5) at->tv_sec += shift();
    return result;
}
int gettimeofday(struct timeval *at, void *zone) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    at->tv_sec = now.tv_sec;
    at->tv_usec = now.tv_nsec / 1000;
    return 0;
}
time_t time(time_t *at) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    if (at) *at = now.tv_sec;
    return now.tv_sec;
}
"""


def shifting_clock(folder: Path) -> Path:
    """Return a library that shifts a process's clock by SHIFT_S seconds."""
    compiler = shutil.which("cc")
    if compiler is None:
        lacking("no C compiler is there (cc), for a clock that can be set")
    (folder / "clock.c").write_text(CLOCK)
    subprocess.run([compiler, "-shared", "-fPIC", "-o", folder / "clock.so", folder / "clock.c", "-ldl"], check=True)
    library = folder / "clock.so"
    told = subprocess.run(
        [sys.executable, "-c", "import time; print(time.time())"],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "LD_PRELOAD": str(library), "SHIFT_S": str(YEAR_S)},
    )
    assert float(told.stdout) > time.time() + YEAR_S / 2, "the clock is not shifted"
    return library


def attack(folder: Path, share: float) -> Report:
    """Run two nights on an honest clock, then again with the second, and the first, at another time; touch files likewise."""
    problems, results, clock = [], [], shifting_clock(folder)
    shifts = ((0, 0), (0, -3 * YEAR_S), (50 * YEAR_S, 0)) if share >= 0.1 else ((0, 0), (YEAR_S, -3 * YEAR_S))
    for number, nights in enumerate(shifts):
        logs, out = folder / f"logs{number}", folder / f"out{number}"
        logs.mkdir()
        for night, shift in enumerate(nights):
            path = logs / f"{night}.jsonl"
            path.write_bytes(b"".join(conversation(10 * night + each, f"text {night} {each}") for each in range(3)))
            os.utime(path, (1_700_000_000 + shift, 1_700_000_000 + shift))
            done = process(
                "run",
                "--no-image",
                "--privacy",
                "off",
                logs,
                "--out",
                out,
                cwd=Path("/"),
                LD_PRELOAD=str(clock),
                SHIFT_S=str(shift),
            )
            problems += (
                [f"{nights}, night {night}: {done.stderr[-400:]}"] if done.returncode > 1 or "mistake" in done.stderr else []
            )
        stored = tables(out)
        texts = set(stored["core.turns"]["content"].drop_nulls())
        problems += [
            f"{nights}: text {night} {each} is not read"
            for night in range(2)
            for each in range(3)
            if f"text {night} {each}" not in texts
        ]
        results.append(
            (json.dumps({name: stored[name].to_dicts() for name in ("core.turns", "core.sessions")}, default=str), files(out))
        )
    problems += [
        f"with {nights} other results" for nights, result in zip(shifts[1:], results[1:], strict=True) if result != results[0]
    ]
    return Report(2 * len(shifts), tuple(problems))


@pytest.mark.slow
def test_the_clock_does_not_reach_the_results(tmp_path: Path) -> None:
    assert attack(tmp_path, 0.01).problems == ()
