#!/usr/bin/env python3
"""Whether what an agent sees, besides an answer's content, tells the recorded way from others.

    benchmarks/attacks_tier.py OUT/environments/NAME [--tasks N]

Of each published task whose known solution writes: the solution up to its first write call, then that call, and calls that
differ from it in one argument (another value that sessions gave there), each in an episode of its own of `traceroom serve`.
Calls that are answered with an error, as those whose answer is `unknown`, are left out. Features: the time to the reply, the
bytes of the reply without its content, how many names its result, its `_meta` and its headers have. `tier_auc`: the best area
under the curve of any feature and of boosted trees over all of them (five folds, whole tasks left out), with 1 - AUC where that
is more. `unknown_told`: share of the changed calls whose answer is `unknown`.

Sees: what a client on the same machine sees. Does not see: what the content tells. The last line on stdout is one JSON object.
Needs scikit-learn (`pip install traceroom[peers]`).
"""

from __future__ import annotations

import argparse
import http.client
import json
import socket
import subprocess
import sys
import tempfile
import time
import urllib.parse
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import GroupKFold, cross_val_predict

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from env_builder.runtime import Environment
from env_builder.runtime.canonical import canonical
from env_builder.runtime.files import rows_of

CHANGED = 20
"""Changed calls of a task."""
FOLDS = 5
Step = dict[str, Any]
Values = dict[tuple[str, str], list[Any]]
FEATURES = ("seconds", "bytes_beside", "n_names", "n_meta", "n_headers")
ROOT = Path(__file__).resolve().parent.parent


class SeenReply(NamedTuple):
    """What an agent sees of a reply, besides its content."""

    is_error: bool
    features: tuple[float, ...]


class Attempt(NamedTuple):
    """A call that was tried."""

    task: int
    is_recorded_way: bool
    reply: SeenReply


def main() -> int:
    """Play the calls, and print how well they are told apart."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("environment", type=Path)
    parser.add_argument("--tasks", type=int, default=100)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        journals = Path(scratch) / "journals.jsonl"
        process, url = served(options.environment, journals)
        try:
            figures = measured(options.environment, AgentClient(url), options.tasks)
        finally:
            process.terminate()
            process.wait()
        changed_tiers = [row["journal"][-1]["tier"] for row in rows_of(journals)][::2]
    figures["unknown_told"] = round(changed_tiers.count("unknown") / max(1, len(changed_tiers)), 4)
    print(json.dumps({"benchmark": "attacks_tier", "figures": figures}))
    return 0


def served(environment: Path, journals: Path) -> tuple[subprocess.Popen[str], str]:
    """Start a server of the environment; return its process and its URL."""
    process = subprocess.Popen([sys.executable, "-m", "pipelines", "serve", str(environment), "--port", "0",
                                "--journals", str(journals)], stderr=subprocess.PIPE, text=True, cwd=ROOT)
    assert process.stderr is not None
    line = next(line for line in process.stderr if "http://" in line)
    return process, next(word for word in line.split() if word.startswith("http://"))


def measured(folder: Path, agent: AgentClient, n_tasks: int) -> dict[str, Any]:
    """Return the figures of `n_tasks` tasks at most."""
    writes = Environment.load(folder).writes
    rewards = folder.parent.parent / "rewards" / folder.name
    solutions = list(rows_of(rewards / "solutions.jsonl"))
    values = values_of([*solutions, *rows_of(rewards / "sessions.jsonl")])
    attempts: list[Attempt] = []
    n_played = 0
    for row in solutions:
        steps = row["steps"]
        place = next((at for at, step in enumerate(steps) if step.get("tool") in writes), None)
        if place is None or n_played == n_tasks:
            continue
        for call in changed(steps[place], values):  # the known one as often, in turn: both meet the same machine
            other, own = (agent.reply_to(row["task_id"], steps[:place], each) for each in (call, steps[place]))
            attempts += [Attempt(n_played, False, other), Attempt(n_played, True, own)]
        n_played += 1
    pairs = [pair for pair in zip(attempts[::2], attempts[1::2], strict=True) if not any(each.reply.is_error for each in pair)]
    return {"tasks": n_played, "calls": 2 * len(pairs), **aucs([each for pair in pairs for each in pair])}


def values_of(rows: list[Step]) -> Values:
    """Return the values that sessions gave in each place, by (tool, argument)."""
    found: dict[tuple[str, str], dict[str, Any]] = defaultdict(dict)
    for step in (step for row in rows for step in row["steps"] if "tool" in step and isinstance(step["arguments"], dict)):
        for name, value in step["arguments"].items():
            found[step["tool"], name][canonical(value)] = value
    return {place: [each[text] for text in sorted(each)] for place, each in found.items()}


def changed(call: Step, values: Values) -> Iterator[Step]:
    """Yield calls with another value of one argument, spread over the values that sessions gave there, in turn by argument."""
    others = []
    for name, value in call["arguments"].items():
        there = [other for other in values.get((call["tool"], name), []) if canonical(other) != canonical(value)]
        step = max(1, len(there) // CHANGED)
        others += [(at, name, other) for at, other in enumerate(there[::step])]
    for _, name, other in sorted(others, key=lambda each: each[:2])[:CHANGED]:
        yield {"tool": call["tool"], "arguments": {**call["arguments"], name: other}}


class AgentClient:
    """An agent's connection to a server of the environment, one session an episode."""

    def __init__(self, url: str) -> None:
        parts = urllib.parse.urlsplit(url)
        self._connection = http.client.HTTPConnection(parts.hostname or "", parts.port)
        self._connection.connect()
        assert self._connection.sock is not None
        self._connection.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def reply_to(self, task_id: str, before: list[Step], call: Step) -> SeenReply:
        """Return what the reply to a call after other steps shows, in an episode of its own."""
        headers = {"Content-Type": "application/json", "Accept": "application/json"}
        hello = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "agent", "version": "1"}}
        _, _, given = self._post(f"/mcp?task={task_id}&talk=off", request("initialize", hello), headers)
        headers["Mcp-Session-Id"] = given["mcp-session-id"]
        for step in before:
            if "say" in step:
                self._post("/episode/say", {"text": step["say"]}, headers)
            else:
                self._post("/mcp", request("tools/call", {"name": step["tool"], "arguments": step["arguments"]}), headers)
        sent = request("tools/call", {"name": call["tool"], "arguments": call["arguments"]})
        seconds, data, given = self._post("/mcp", sent, headers)
        self._connection.request("DELETE", "/mcp", headers=headers)
        self._connection.getresponse().read()
        result = json.loads(data)["result"]
        content = {name: result[name] for name in ("content", "structuredContent") if name in result}
        beside = len(data) - len(json.dumps(content, separators=(",", ":")))
        return SeenReply(result["isError"], (seconds, float(beside), float(len(result)), float(len(result["_meta"])),
                                             float(len(given))))

    def _post(self, path: str, message: Step, headers: dict[str, str]) -> tuple[float, bytes, dict[str, str]]:
        body = json.dumps(message).encode()
        began = time.perf_counter()
        self._connection.request("POST", path, body, headers)
        response = self._connection.getresponse()
        data = response.read()
        return time.perf_counter() - began, data, {name.lower(): value for name, value in response.getheaders()}


def request(method: str, params: Step) -> Step:
    return {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}


def aucs(attempts: list[Attempt]) -> dict[str, Any]:
    """Return the AUC of each feature and of all together, and the best."""
    wanted = numpy.array([each.is_recorded_way for each in attempts])
    seen = numpy.array([each.reply.features for each in attempts])
    groups = numpy.array([each.task for each in attempts])
    scores = {name: seen[:, at] for at, name in enumerate(FEATURES)}
    median = {task: numpy.median(seen[groups == task, 0]) for task in set(groups)}
    scores["seconds_in_task"] = seen[:, 0] / numpy.array([median[task] for task in groups])
    columns = numpy.column_stack([*scores.values()])
    scores["all"] = cross_val_predict(HistGradientBoostingClassifier(random_state=0), columns, wanted, groups=groups,
                                      cv=GroupKFold(FOLDS), method="predict_proba")[:, 1]
    each = {f"auc_{name}": round(max(auc := float(roc_auc_score(wanted, score)), 1 - auc), 4) for name, score in scores.items()}
    return {"tier_auc": max(each.values()), **each}


if __name__ == "__main__":
    sys.exit(main())
