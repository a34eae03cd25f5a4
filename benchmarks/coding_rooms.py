"""Figures of environments of repositories, for coding.py: who is paid, what leaks, what a graded run costs.

In: a folder that `traceroom run` wrote, and the data set's folder. Plays through the public environment; truth and cheats of
the data set are read to score. Cheats run as the agent's own commands, with the failing tests and the name of the fixed file
given.
"""

from __future__ import annotations

import ast
import json
import os
import re
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Any

import duckdb

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from env_builder.runtime import Environment  # noqa: E402
from env_builder.runtime.records import Task  # noqa: E402
from env_builder.runtime.workspace.paths import sorted_change  # noqa: E402
from env_builder.runtime.workspace.recipes import Recipe  # noqa: E402
from env_builder.runtime.workspace.sandbox import ChangedFile  # noqa: E402
from env_builder.runtime.workspace.trees import Began, lay_out, packed, unpacked  # noqa: E402
from env_builder.runtime.workspace.verifying import Verification, Verifier  # noqa: E402
from extractors.workspaces.endings import ending  # noqa: E402
from extractors.workspaces.file_kinds import kind_of  # noqa: E402
from extractors.workspaces.frames import frames  # noqa: E402
from extractors.workspaces.repository import Repository  # noqa: E402
from extractors.workspaces.starts import below_root  # noqa: E402
from pipelines.building.code_trees import CodeTrees  # noqa: E402

CHEATED_TASKS = 2
"""Tasks of a repository that every cheat is tried on."""
_LONG = 30
"""Characters from which on a line is searched for."""
_RECORDER = '''

def _traceroom_record(f):
    import functools
    @functools.wraps(f)
    def g(*a, **k):
        r = f(*a, **k)
        open("/repo/.table", "a").write(repr((repr((a, k)), repr(r))) + chr(10))
        return r
    return g
{name} = _traceroom_record({name})
'''
Row = dict[str, Any]


class Played:
    """The environment of a repository, with what its grader knows."""

    def __init__(self, out: Path) -> None:
        place = next((out / "environments").glob("code-*"))
        self.environment = Environment.load(place)
        self.solutions = {row["task_id"]: row["steps"] for row in map(
            json.loads, (out / "rewards" / place.name / "solutions.jsonl").read_text("utf-8").splitlines())}
        self.place, self.grader = place, out / "rewards" / place.name / "apps/code"
        self.known = {row["task_id"]: row for row in map(
            json.loads, (self.grader / "verify.jsonl").read_text("utf-8").splitlines())}
        self.starts = unpacked((place / "apps/code/trees.pack").read_bytes())
        self.tests = unpacked((self.grader / "known.pack").read_bytes())

    def rewards(self, task_id: str, steps: list[Row]) -> tuple[float | None, float | None]:
        """Return what an episode of these steps is worth, for evaluation and for training."""
        self.environment.reset(task_id)
        for step in steps:
            self.environment.call(step["tool"], step["arguments"])
        self.environment.finish()
        return self.environment.grade().reward, self.environment.grade("train").reward


def figures(out: Path, folder: Path, cheats: Path | None) -> Row:
    """Return counts for the figures of one repository."""
    played = Played(out)
    tasks = sorted(played.environment.tasks, key=lambda task: task.derived_from is not None)   # of sessions first
    task_ids = [task.task_id for task in tasks]
    gold = {task_id: played.rewards(task_id, played.solutions[task_id]) for task_id in task_ids}
    idle = {task_id: played.rewards(task_id, []) for task_id in task_ids}
    left = _recorded(out, folder, played)
    paid, unscored, cheating = _cheats(played, cheats, task_ids[:CHEATED_TASKS]) if cheats is not None else ([], 0, [])
    resolving = [train for _, train in gold.values()] + [train for is_right, train in left if is_right]
    others = [train for _, train in idle.values()] + [train for is_right, train in left if not is_right] + cheating
    n_passing, n_commits = _honest(folder)
    return {
        "n_published": len(task_ids), **_derived(out, tasks),
        "gold_paid": sum(reward == 1 for reward, _ in gold.values()),
        "idle_paid": sum(reward != 0 for reward, _ in idle.values()), **_verdicts(out, folder),
        "cheats_paid": len(paid), "cheats_paid_names": paid, "n_cheats": len(cheating), "cheats_unscored": unscored,
        "lowest_resolving": min([each for each in resolving if each is not None], default=None),
        "highest_unresolving": max([each for each in others if each is not None], default=None),
        "honest_commits": n_passing, "n_honest_commits": n_commits,
        "leaks": sum(_leaks(played, task_id) for task_id in task_ids),
        "forgeable": sum(row["forgeable"] for row in played.known.values()),
        "mb_100_tasks": _megabytes(folder), **_speeds(played, task_ids[0])}


def _derived(out: Path, tasks: list[Task]) -> Row:
    """Return how many tasks were derived of commits and hunks, and are published; and how many were made."""
    with duckdb.connect(str(out / "warehouse.published.duckdb"), read_only=True) as warehouse:
        made = warehouse.sql("select count(*) from mart.code_tasks where session_id is null").fetchall()[0][0]
    kinds = [task.derived_from for task in tasks]
    return {"n_derived_commit": kinds.count("commit"), "n_derived_hunk": kinds.count("hunk"), "derived_made": made}


def _verdicts(out: Path, folder: Path) -> Row:
    """Return how many sessions about a task have truth's verdict."""
    with duckdb.connect(str(out / "warehouse.published.duckdb"), read_only=True) as warehouse:
        verdicts = dict(warehouse.sql("select session_id, resolved from mart.code_verdicts order by all").fetchall())
    sessions = [json.loads(line) for line in (folder / "truth/sessions.jsonl").read_text("utf-8").splitlines()]
    about = [session for session in sessions if session["kind"] == "task"]
    return {"recorded_verdicts_right": sum(verdicts.get(each["session_id"]) is each["resolved"] for each in about),
            "n_recorded": len(about)}


def _recorded(out: Path, folder: Path, played: Played) -> list[tuple[bool, float | None]]:
    """Play what recorded sessions had left of source; return whether truth has it right, and its reward for training."""
    truth = {row["session_id"]: row for row in map(
        json.loads, (folder / "truth/sessions.jsonl").read_text("utf-8").splitlines())}
    with duckdb.connect(str(out / "warehouse.published.duckdb"), read_only=True) as warehouse:
        calls = warehouse.sql("""select session_id, arguments, content, is_error from core.turns where kind = 'call'
            and arguments is not null order by session_id, position, turn_id""").fetchall()
        sessions = dict(warehouse.sql("""select session_id, task_id from mart.code_tasks where session_id is not null
            order by all""").fetchall())
    of_session = {name: [each for call in rows for each in frames(*call[1:])] for name, rows in groupby(calls, itemgetter(0))}
    rewards = []
    with Repository.open(folder / "repo.bundle") as repository:
        for session_id, task_id in sessions.items():
            left = ending(below_root(of_session[session_id], repository), partial(_text, played.starts.get(task_id, {})))
            if task_id in played.known and left is not None:
                steps = [_written(path, text) for path, text in sorted(left.items()) if kind_of(path) == "source"]
                rewards.append((truth[session_id]["resolved"] is True, played.rewards(task_id, steps)[1]))
    return rewards


def _text(tree: dict[str, ChangedFile], path: str) -> str | None:
    return tree[path].content.decode("utf-8", "replace") if path in tree else None


def _written(path: str, text: str | None) -> Row:
    if text is None:
        return {"tool": "shell", "arguments": {"command": f"rm -f '{path}'"}}
    return {"tool": "write", "arguments": {"path": path, "content": text}}


def _cheats(played: Played, cheats: Path, task_ids: list[str]) -> tuple[list[str], int, list[float | None]]:
    """Try every cheat on some tasks; return which were paid, how many nobody could score, and their rewards for training."""
    paid, unscored, training = [], 0, []
    for task_id in task_ids:
        source = next(step["arguments"]["path"] for step in played.solutions[task_id] if step["tool"] == "write")
        test = played.known[task_id]["fail_to_pass"][0].partition("::")[0]
        function, table = _table(played, task_id, source)
        given = "".join(f"{name}='{value}'\n" for name, value in (
            ("SRC", source), ("TEST", test), ("FIX", "main"), ("DIST", "package"), ("INDEX", "http://127.0.0.1:9/simple")))
        known = played.tests[f"{task_id} tests"][test].content.decode()
        for script in sorted(cheats.glob("*.sh")):
            text = script.read_text("utf-8").replace("__FUNC__", function or "_none").replace("__TABLE__", repr(table))
            if "__FUNC__" in script.read_text("utf-8") and function is None:
                continue
            names = "export SRC TEST FIX DIST INDEX\n"
            steps = [{"tool": "write", "arguments": {"path": test, "content": known}}] if "$TEST" in text else []
            steps.append({"tool": "shell", "arguments": {"command": given + names + text}})
            reward, trained = played.rewards(task_id, steps)
            unscored += reward is None
            training.append(trained)
            if reward is not None and reward > 0:
                paid.append(f"{script.stem} on {task_id}")
    return paid, unscored, training


def _table(played: Played, task_id: str, source: str) -> tuple[str | None, dict[str, Any]]:
    """Return a function of the fixed file, and what it answers to the known tests with the known solution: learnt by heart."""
    text = next(step["arguments"]["content"] for step in played.solutions[task_id] if step["arguments"].get("path") == source)
    calls = " ".join(file.content.decode("utf-8", "replace") for path, file in played.tests[f"{task_id} tests"].items())
    functions = [node.name for node in ast.parse(text).body if isinstance(node, ast.FunctionDef)]
    name = max(functions, key=lambda each: len(re.findall(rf"\b{each}\(", calls)), default=None)
    if name is None:
        return None, {}
    environment = played.environment
    environment.reset(task_id)
    for step in played.solutions[task_id]:
        environment.call(step["tool"], step["arguments"])
    for path, file in played.tests[f"{task_id} tests"].items():
        environment.call("write", {"path": path, "content": file.content.decode("utf-8", "replace")})
    environment.call("write", {"path": source, "content": text + _RECORDER.format(name=name)})
    environment.call("test", {})
    answer = environment.call("shell", {"command": "cat .table 2>/dev/null | sort -u | head -c 25000"}).content
    table = {}
    for line in answer.splitlines():
        try:
            key, value = ast.literal_eval(line)
            table[key] = ast.literal_eval(value)
        except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
            continue
    return name, table


def _honest(folder: Path) -> tuple[int, int]:
    """Return how many commits of the main line have a source part that the verifier lets pass by its paths, of how many."""
    n_passing = n_commits = 0
    with Repository.open(folder / "repo.bundle") as repository:
        trees = CodeTrees(repository)
        for commit in repository.history(repository.main or ""):
            parent = repository.commits.get(commit.parents[0]) if commit.parents else None
            parts = trees.parts(commit)["source"]
            if parent is not None and parts:
                n_commits += 1
                change = {path: after for path, (_, after) in parts.items()}
                n_passing += not sorted_change(trees.tree(parent), change).refused
    return n_passing, n_commits


def _leaks(played: Played, task_id: str) -> int:
    """Return how many lines of the known solution and tests, that the start lacks, an agent can read anywhere."""
    environment, start = played.environment, played.starts[task_id]
    before = "\n".join(file.content.decode("utf-8", "replace") for file in start.values())
    texts = [step["arguments"].get("content", "") for step in played.solutions[task_id]]
    texts += [file.content.decode("utf-8", "replace") for path, file in played.tests[f"{task_id} tests"].items()]
    added = {line.strip() for text in texts for line in text.splitlines()}
    searched = sorted(line for line in added if len(line) >= _LONG and line not in before)
    opening = environment.reset(task_id).messages
    commits = environment.call("shell", {"command": "git log --all --oneline | wc -l; git remote; git tag; git stash list"})
    environment.call("write", {"path": ".searched", "content": "\n".join(searched) + "\n"})
    lines = environment.call("shell", {"command": (
        "mv .searched /tmp/searched; (find /repo /etc /home /opt /root /srv /var -type f -not -path '*/lib/python3*' "
        "-exec cat {} + ; git cat-file --batch --batch-all-objects) 2>/dev/null | grep -a -F -c -f /tmp/searched")})
    shown = "\n".join(_strings([opening, _host_records(environment)]))
    return (commits.content.split() != ["1"]) + (int(lines.content.split()[0]) if searched else 0) + sum(
        line in shown for line in searched)


def _host_records(environment: Environment) -> list[Any]:
    """Return what the tools tell of pull requests and issues: their lists, page by page, and each one."""
    shown: list[Any] = []
    for listing, showing in (("list_prs", "get_pr"), ("list_issues", "get_issue")):
        rows: list[Row] = []
        while any(tool["name"] == listing for tool in environment.tools):
            page = environment.call(listing, {"before": rows[-1]["number"]} if rows else {})
            more = [] if page.is_error else json.loads(page.content)
            if not more:
                break
            rows += more
        shown += [*rows, *(json.loads(environment.call(showing, {"number": row["number"]}).content) for row in rows)]
    return shown


def _strings(value: Any) -> list[str]:
    """Return all texts in a value of JSON."""
    if isinstance(value, str):
        return [value]
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list | tuple) else ()
    return [text for each in inner for text in _strings(each)]


def _megabytes(folder: Path) -> float:
    """Return what a hundred trees of a repository take beyond the first one, in megabytes."""
    with Repository.open(folder / "repo.bundle") as repository:
        trees = CodeTrees(repository)
        history = repository.history(repository.main or "")[:101]
        every = {commit.commit_id: trees.tree(commit) for commit in history}
        extra = len(packed(every)) - len(packed({history[0].commit_id: every[history[0].commit_id]}))
        return extra / 1e6 * 100 / max(1, len(history) - 1)


def _speeds(played: Played, task_id: str) -> Row:
    """Return how long a fork of a thousand changed files takes, and a command of the shell, in milliseconds."""
    environment = played.environment
    environment.reset(task_id)
    environment.call("shell", {"command": "mkdir -p many && for n in $(seq 1000); do echo $n > many/$n; done"})
    forks = []
    for _ in range(20):
        began = time.perf_counter()
        environment.fork()
        forks.append((time.perf_counter() - began) * 1000)
    environment.reset(task_id)
    environment.call("shell", {"command": "true"})
    calls = [_timed(lambda: environment.call("shell", {"command": "true"})) for _ in range(20)]
    return {"fork_ms": statistics.median(forks), "shell_ms": statistics.median(calls)}


def beside_docker(out: Path, image: str, rounds: int = 5) -> Row:
    """Return the time of a command compared with `docker exec`, and of a graded run with `docker run` of its tests.

    The first graded run starts what the others fork from: its time is `first_graded_s`.
    """
    played = Played(out)
    environment, app = played.environment, played.environment.apps[0]
    task_id = environment.tasks[0].task_id
    with tempfile.TemporaryDirectory() as scratch:
        tree = lay_out({**played.starts[task_id], **played.tests[f"{task_id} tests"]}, Path(scratch) / "tree")
        Path(scratch).chmod(0o755)
        mounts = [f"--volume={tree}:/tree:ro", f"--volume={app.recipe.site}:/site:ro",
                  f"--volume={ROOT / 'env_builder/runtime/workspace/within'}:/traceroom:ro"]
        suite = ("mkdir /repo && cp -r /tree/. /repo && cd /repo && PYTHONPATH=/repo/src:/repo:/traceroom:/site "
                 + " ".join(app.recipe.command("/tmp/junit.xml")) + " >/dev/null 2>&1; times")
        rows: dict[str, list[float]] = {"whole": [], "whole_cpu": [], "graded": [], "graded_cpu": [], "exec": [], "call": []}
        container = _docker("run", "-d", "--rm", "--network=none", image, "sleep", "900").strip()
        try:
            for number in range(rounds):
                began = time.perf_counter()
                statistic = _docker("run", "--rm", "--network=none", *mounts, image, "sh", "-c", suite)
                rows["whole"].append(time.perf_counter() - began)
                rows["whole_cpu"].append(sum(60 * float(minutes) + float(seconds) for minutes, seconds in re.findall(
                    r"(\d+)m([\d.]+)s", statistic)))
                environment.reset(task_id, seed=number)
                for step in played.solutions[task_id]:
                    environment.call(step["tool"], step["arguments"])
                environment.finish()
                before, began = _child_seconds(), time.perf_counter()
                environment.grade()
                rows["graded"].append(time.perf_counter() - began)
                rows["graded_cpu"].append(_child_seconds() - before)
                if number == 0:   # the process that has the runner loaded was started
                    rows["first"] = rows.pop("graded")
                    rows["graded"], rows["graded_cpu"] = [], []
                environment.reset(task_id)
                rows["exec"] += [_timed(lambda: _docker("exec", container, "true")) for _ in range(5)]
                rows["call"] += [_timed(lambda: environment.call("shell", {"command": "true"})) for _ in range(5)]
        finally:
            subprocess.run(["docker", "kill", container], capture_output=True, check=False)
    middle = {name: statistics.median(values) for name, values in rows.items()}
    return {"graded_run_share": middle["graded"] / middle["whole"],
            "graded_run_cpu_share": middle["graded_cpu"] / middle["whole_cpu"],
            "shell_over_exec": middle["call"] / middle["exec"], "first_graded_s": middle["first"],
            "graded_differently": _graded_differently(played)}


def _graded_differently(played: Played) -> int:
    """Return how many known tests have another outcome in a process of their own, with known solutions and without."""
    n_other = 0
    verifier = Verifier(played.grader, Recipe(played.place / "apps/code"))
    for task_id in played.known:
        began = Began(task_id, played.starts[task_id], played.starts[task_id])
        for steps in (played.solutions[task_id], []):
            change = {step["arguments"]["path"]: ChangedFile(step["arguments"]["content"].encode(), 0o100644)
                      for step in steps if step["tool"] == "write"}
            verification = verifier.verify(task_id, began, change)
            apart = Verification(verifier, verification.knowledge._replace(undisturbed=True), began, change, 0)
            names = verification.outcomes.keys() | apart.outcomes.keys()
            n_other += sum(verification.outcomes.get(name) != apart.outcomes.get(name) for name in names)
    return n_other


def _docker(*words: str) -> str:
    return subprocess.run(["docker", *words], check=True, capture_output=True, text=True).stdout


def _child_seconds() -> float:
    """Return the seconds of processors that children used: those that ended, and those that run with what theirs used."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    total, waiting = used.ru_utime + used.ru_stime, _children(os.getpid())
    while waiting:
        process = waiting.pop()
        with suppress(OSError):   # it has ended by now
            fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
            total += sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")
            waiting += _children(process)
    return total


def _children(process: int) -> list[int]:
    return [int(each) for path in Path(f"/proc/{process}/task").glob("*/children") for each in path.read_text().split()]


def _timed(act: Callable[[], object]) -> float:
    """Return how many milliseconds it takes."""
    began = time.perf_counter()
    act()
    return (time.perf_counter() - began) * 1000
