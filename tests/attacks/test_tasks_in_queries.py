"""Tasks, seeds and perturbations in a session's address: paths, patterns, injections and numbers without end give 400."""

from __future__ import annotations

import json
from pathlib import Path
from urllib.parse import quote

import pytest

from tests.attacks.halls import GROUP, hall
from tests.attacks.report import Report
from tests.attacks.servers import HELLO
from tests.rooms import TASK

TASKS = ("../../../etc/passwd", "*", "%", "' or '1'='1", TASK[:1] + "' --", "[a-f]", "$(id)", "--config=/etc/passwd", "\x00",
    "a" * 100_00, "..",
         "{{7*7}}", "\ud7ff", "true", "0", "null")
SEEDS = ("-1", "1e9", "9" * 30, "0x10", "NaN", "١", "1 2", "", "1;2", "[]", "9" * 10_000)
OTHERS = ("perturbations=../../x", "perturbations=latency,latency,x", "perturbations=" + "faults," * 500, "talk=evil",
    "talk=on&talk=off",
          "seed=1&seed=2", "bind=python:os:system", "ask=1", "container=1", "journals=/tmp/planted", "config=/etc/passwd",
          "host=0.0.0.0",
          "per_client=9", "at=9999-99-99", "task", "=", "&&&&", "task=%zz", "%00=1")


def attack(folder: Path, share: float) -> Report:
    """Open sessions under each address."""
    problems, hello, n_before = [], json.dumps(HELLO), 0
    queries = [*(f"task={quote(task)}" for task in TASKS), *(f"task={TASK}&seed={quote(seed)}" for seed in SEEDS), *OTHERS]
    with hall().client() as client:
        for query in queries:
            answer = client.send("POST", f"/mcp?{query}", hello)
            if answer.status == 200:  # what does not matter is not read, and never means a task of another name
                session = {"Mcp-Session-Id": answer.headers["mcp-session-id"]}
                problems += [f"{query[:60]}: it is somebody's task"] if query.startswith("task=") and "&" not in query and (
                    "instructions" in answer.json["result"]) else []
                client.send("DELETE", "/mcp", **session)
            elif answer.status != 400:
                problems.append(f"{query[:60]}: {answer.status} {answer.body[:100]!r}")
        n_before = client.health()["episodes"]
    problems += [f"{n_before} episodes are open"] if n_before > 64 else []
    problems += ["a file was written"] if Path("/tmp/planted").exists() else []
    return Report(len(queries), (*problems, *hall().trouble()))


@pytest.mark.xdist_group(GROUP)
def test_what_an_address_says_is_checked(tmp_path: Path) -> None:
    assert attack(tmp_path, 0.01).problems == ()
