"""A run, forgetting, a release, a report and a server at once on one folder: all end well, with what one after the other gives.

One of them is stopped while it holds the lock, and killed: the others name it, wait for it, and go on when it is gone.
"""

from __future__ import annotations

import json
import random
import re
import shutil
import signal
from pathlib import Path

import pytest

from tests.attacks.report import Report, counted
from tests.attacks.runs import RUN, Run, Wanted
from tests.attacks.servers import HttpClient, command
from tests.pipelines.conftest import files, tables
from warehouse.store import Store

TIMES = 6
_ID = re.compile(r"\b[a-z]+_[a-z]+_\d{4}\b")
_TABLES = ("core.sessions", "core.turns", "mart.tasks", "mart.outcomes", "mart.rubrics", "mart.environments")


def somebody(out: Path) -> str:
    """Return somebody of whom a few sessions tell, under the name that is stored."""
    with Store.published(out / "warehouse.duckdb") as store:
        texts = store.read("select arguments from core.turns where arguments is not null")["arguments"]
        people = set(store.read("select identity from core.sessions where identity is not null")["identity"])
    ids = [name for text in texts for name in _ID.findall(text) if not name.startswith(("credit_", "gift_", "certificate_"))]
    return min(sorted(set(ids) - people), key=ids.count)


class AtOnce:
    """Commands that begin at the same time on one folder."""

    def __init__(self, folder: Path, wanted: Wanted) -> None:
        self.folder, self.wanted = folder, wanted
        self.who = somebody(wanted.former)
        self.words: dict[str, tuple[str | Path, ...]] = {
            "run": (*RUN, wanted.logs), "forget": ("forget", "--subject", self.who), "release": ("release",),
            "report": ("report",), "show": ("show",)}
        one_by_one = wanted.copy_former(folder / "one_by_one")
        for name in ("forget", "run", "run"):
            run = self.started(name, one_by_one)
            code = run.end()
            assert code == 0, run.lines
        self.files = files(one_by_one)
        self.tables = {name: rows for name, rows in tables(one_by_one).items() if name in _TABLES}

    def started(self, name: str, out: Path) -> Run:
        """Start a command."""
        return Run(self.folder, *self.words[name], "--out", out, TRACEROOM_ENGINE="process")

    def problems(self, out: Path) -> list[str]:
        """Name what differs, after one more run, from one command after the other."""
        last = self.started("run", out)
        if code := last.end():
            return [f"exit code {code}: {''.join(last.lines)[-400:]}"]
        found, written = tables(out), files(out)
        return [*(name for name, rows in self.tables.items() if not rows.equals(found[name])),
                *sorted(name for name in self.files.keys() | written.keys() if self.files.get(name) != written.get(name))]


def all_at_once(work: AtOnce, out: Path, choose: random.Random) -> list[str]:
    """Begin every command in some order beside a server; return what is wrong."""
    room = min((out / "environments").iterdir())
    task_id = json.loads((room / "tasks.jsonl").read_text("utf-8").splitlines()[0])["task_id"]
    with command("serve", room, "--journals", out.with_name("journals.jsonl")) as server:
        runs = {name: work.started(name, out) for name in choose.sample([*work.words], len(work.words))}
        with HttpClient(server) as client:
            client.open_session(f"?task={task_id}")
            statuses = {client.send("POST", "/episode/say", json.dumps({"text": "Hello?"})).status,
                        client.send("DELETE", "/mcp").status}
        problems = [f"the server answered {statuses}"] if statuses != {200} else []
        for name, run in runs.items():
            code, text = run.end(), "".join(run.lines)
            if code not in ((0, 1) if name == "release" else (0,)) or "Traceback" in text:
                problems.append(f"{name}: exit code {code}: {text[-400:]}")
    return problems + work.problems(out)


def behind_one_that_stands_still(work: AtOnce, out: Path, name: str) -> list[str]:
    """Stop a run that holds the lock, begin another command, and kill the run once it is named."""
    first = work.started("run", out)
    assert first.reach("world"), first.lines
    first.send(signal.SIGSTOP)
    second = work.started(name, out)
    named = second.reach_line(lambda line: f"process {first.pid} " in line)
    first.kill(whole_group=False)
    code, text = second.end(), "".join(second.lines)
    problems = [] if named else [f"{name} does not name who holds the lock: {text[-300:]}"]
    problems += [f"{name}: exit code {code}: {text[-400:]}"] if code not in (0, 1) or "Traceback" in text else []
    return problems


def attack(folder: Path, share: float, wanted: Wanted | None = None) -> Report:
    """Let commands run at once, and behind a stopped one."""
    wanted, choose = wanted or Wanted(folder / "wanted"), random.Random(27)
    work, problems, n = AtOnce(folder, wanted), [], counted(TIMES, share)
    for number in range(n):
        out = wanted.copy_former(folder / f"out{number}")
        problems += all_at_once(work, out, choose)
        shutil.rmtree(out)
        out = wanted.copy_former(folder / f"stopped{number}")
        name = ("run", "forget", "release")[number % 3]
        problems += behind_one_that_stands_still(work, out, name)
        if name == "forget":
            problems += work.problems(out)
        shutil.rmtree(out)
    return Report(n * (len(work.words) + 3), tuple(problems), {"kills_unequal": float(len(problems))})


@pytest.mark.slow
def test_commands_at_once_wait_for_each_other(tmp_path: Path, wanted: Wanted) -> None:
    assert attack(tmp_path, 0.1, wanted).problems == ()
