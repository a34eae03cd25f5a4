"""People and credentials in all that a run, its exports and releases store by default, and in what a killed run leaves."""

from __future__ import annotations

import json
import random
import re
import shutil
import time
from pathlib import Path

import pytest

from tests.attacks.originals import CREDENTIALS, logs_with_originals, traces_of_groups
from tests.attacks.report import Report, counted
from tests.attacks.runs import RUN, Run
from tests.attacks.servers import HttpClient, command
from tests.command_line import process

KILLS, EXTRACT_S = 8, 3.0
"""Kills in the stage that reads the logs, and the seconds within which they are."""


def everything_made(logs: Path, written: Path, **variables: str) -> None:
    """Run, release, pull, report, export, review and play, as people do."""
    out, registry = written / "out", ("--registry", written / "registry")

    def carried_out(*arguments: str | Path) -> str:
        done = process(*arguments, **variables)
        (written / "messages.log").open("a").write(done.stdout + done.stderr)
        assert done.returncode in (0, 1), done.stderr
        return done.stdout + done.stderr

    carried_out(*RUN, logs, "--out", out)
    carried_out("report", "--out", out)
    release = re.search(r"r-[0-9a-f]{16}", carried_out("release", "--out", out, *registry))
    assert release, "something is released"
    carried_out("pull", release.group(), *registry, "--to", written / "pulled")
    for form in ("sft", "dpo", "trajectories"):
        carried_out("export", "datasets", out, "--to", written / form, "--form", form)
    carried_out("review", out, "--export", written / "cases.jsonl")
    carried_out("show", "--rejected", "--out", out)
    room = min((out / "environments").iterdir())
    carried_out("rollout", room, "--policy", "oracle")
    with command("serve", room, "--journals", written / "journals.jsonl", **variables) as server, HttpClient(server) as client:
        client.open_session(f"?task={json.loads((room / 'tasks.jsonl').read_text().splitlines()[0])['task_id']}")
        client.send("GET", "/episode")
        client.send("POST", "/episode/say", json.dumps({"text": "Who am I?"}))
        client.send("DELETE", "/mcp")


def attack(folder: Path, share: float) -> Report:
    """Make everything from logs with originals, then kill runs while they read them; search all that is there."""
    logs, people = logs_with_originals(folder / "logs")
    sought, choose, written = (people, {*CREDENTIALS.values()}), random.Random(27), folder / "written"
    for name in ("temporary", "cache"):
        (written / name).mkdir(parents=True)
    variables = {"TMPDIR": str(written / "temporary"), "XDG_CACHE_HOME": str(written / "cache")}
    everything_made(logs, written, **variables)
    originals, credentials = traces_of_groups(written, *sought)
    n = counted(KILLS, share)
    for number in range(n):
        killed = folder / f"killed{number}"
        killed.mkdir()
        engine = {"TRACEROOM_WORKERS": "1"} if number % 2 else {"TRACEROOM_ENGINE": "process"}
        run = Run(folder, *RUN, logs, "--out", killed / "out", TMPDIR=str(killed), **engine)
        time.sleep(choose.uniform(0.2, 1) * EXTRACT_S)
        run.kill(whole_group=number % 3 == 0)
        for traces, more in zip((originals, credentials), traces_of_groups(killed, *sought), strict=True):
            traces += more
        shutil.rmtree(killed)
    figures = {"originals_left": float(len(originals)), "credentials_left": float(len(credentials))}
    return Report(n + 10, (*originals, *credentials), figures)


@pytest.mark.slow
def test_nothing_that_is_stored_has_originals(tmp_path: Path) -> None:
    assert attack(tmp_path, 0.2).problems == ()
