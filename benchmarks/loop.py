#!/usr/bin/env python3
"""A month in production, with the loop on and off: does a policy that is trained on what it did yesterday get better?

    benchmarks/loop.py ENGINES [--only NAME…] [--nights 30] [--base 150] [--sessions 20] [--every 3] [--rounds 10] [--seeds 2]
                       [--customers 100] [--jobs 2]

    benchmarks/loop.py ../shared/data/zoo/engine.py --only gym_classes shop_refunds it_access

ENGINES: the file of the zoo's engines, the real services (real_services.py). A service serves --base sessions by its agents;
`traceroom run --privacy off` builds from these logs, and the small policy of learning.py learns from the datasets and in the
environment. Then, each day, --sessions customers come, every other one is served by the policy, with drawn choices, the others
by the service's own agents; what both did is written as logs, the policy's with its name as the model. With the loop on,
every --every days `traceroom run` goes over all logs, and a new policy is trained from what it published; with the loop off the
first policy goes on. The service changes twice: after a third of the nights its answers are written in another style, after two
thirds the write tool that is called most has another name, and the old one is refused.

At the end both policies serve the same --customers new customers on forks of the service, with their likeliest choices; the
engine judges. `loop_gain`: success with the loop on minus off, mean over services and seeds, with an interval (95 %) by a
bootstrap over customers; `on`, `off`: the rates; `first`: the first policy's, before the service changed. `nights` in
each row: success of each day's drawn episodes, loop on and off. The last line on stdout is one JSON object.
"""

from __future__ import annotations

import argparse
import datetime
import hashlib
import json
import random
import sys
import tempfile
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from itertools import product
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from learning_policy import Policy
from learning_training import choices_of, fitted, lexicon_of, play, practised, sft
from real_services import Real, Start, engines
from truth_data import traceroom

from env_builder.runtime import Environment

STYLES = {"json": "envelope", "envelope": "json", "http": "json", "repr": "json", "flag": "json", "yaml": "json", "csv": "json"}
"""How answers are written -> how they are written after the first change; sentences become JSON too."""
SUFFIX = "_v2"
NO_FORMAT = "applog"
"""Logs that are in no standard format: a person would have to say what is what."""
DRAWS = 2_000
RATE = 0.1
Floats = NDArray[np.float64]


class Desk:
    """A service in production: its customers, its own agents, its logs."""

    def __init__(self, engine: Any, name: str, seed: int) -> None:
        self.engine, self.service_class = engine, next(each for each in engine.SERVICES if each.name == name)
        self.base = self.service_class(str(seed))
        self.rng = random.Random(f"{name}/{seed}/loop")
        self.new_name: dict[str, str] = {}
        self.n_writes: Counter[str] = Counter()
        self._day = self.base.today
        self.n_sessions = 0

    def next_day(self) -> datetime.datetime:
        """Let a night pass; return when the desk opens."""
        self._day += datetime.timedelta(days=1)
        if self.base.world == "living":
            self.base.now = datetime.datetime.combine(self._day, datetime.time())
            self.base.night()
        return datetime.datetime.combine(self._day, datetime.time(7))

    def restyle(self) -> None:
        """Write answers in another style from now on."""
        style = STYLES.get(self.base.style, "json")
        self.base.style_now = lambda: style

    def rename(self) -> None:
        """Give the write tool that is called most another name; agents who call the old one are refused."""
        old = max(self.n_writes, key=lambda tool: (self.n_writes[tool], tool))
        self.new_name = {old: old + SUFFIX}
        self.base.tools = {**self.base.tools, old + SUFFIX: self.base.tools[old]}
        shown = self.base.schema
        self.base.schema = lambda: (tool for tool in shown() if tool["name"] not in self.new_name)

    def customer(self, rng: random.Random, when: datetime.datetime, on_fork: bool = False) -> Visit:
        """Return the next customer."""
        service = self.base.fork() if on_fork or self.base.world != "living" else self.base
        service.now = when
        who, goals, ident, _ = self.engine.plan(service, rng)
        return Visit(self, service, who, goals, ident, rng, when)


class Visit:
    """A customer at the desk, served by an agent of the service or by a policy (`learning_training.play`)."""

    def __init__(self, desk: Desk, service: Any, who: Any, goals: list[Any], ident: Any, rng: random.Random,
                 when: datetime.datetime) -> None:
        self._desk, self._service, self._who, self._goals, self._ident, self._rng = desk, service, who, goals, ident, rng
        self._start = Start(service.fork(), goals, ident[0], ident[2])
        self._real = Real(desk.engine, self._start, service)
        self._trace = desk.engine.Trace(service, rng, when)
        self._thanked = False

    def serve_by_script(self) -> None:
        """Let one of the service's own agents serve, of any quality."""
        qualities = self._desk.engine.QUALITIES
        call, new_name = self._trace.call, self._desk.new_name
        self._trace.call = lambda tool, arguments: call(new_name.get(tool, tool), arguments)
        self._desk.engine.serve(self._trace, self._rng.choices(list(qualities), list(qualities.values()))[0], self._who,
                                self._goals, self._ident)
        for event in self._trace.events:
            tool = self._service.tools.get(event.get("tool"))
            if tool is not None and tool.effect != "read":
                self._desk.n_writes[event["tool"]] += 1

    def lines(self, model: str) -> list[str]:
        """Return the session as the service logs it."""
        self._desk.n_sessions += 1
        session_id = hashlib.sha1(f"{self._desk.base.name}/{self._desk.n_sessions}".encode()).hexdigest()[:16]
        log = getattr(self._desk.engine, f"log_{self._service.fmt}")
        number = 1000 + self._desk.base.people().index(self._who)
        rows = log(self._service, session_id, f"u{number}", self._trace.events)
        return [json.dumps(row, ensure_ascii=False).replace('"desk-small-2"', json.dumps(model)) + "\n" for row in rows]

    def reset(self, _: str) -> Any:
        """Begin: the customer says all that it wants."""
        self._trace.user(". Also, ".join(goal.ask for goal in self._goals))
        return argparse.Namespace(
            tools=list(self._service.schema()), messages=[{"role": "user", "content": self._trace.events[-1]["text"]}])

    def call(self, tool: str, arguments: dict[str, Any]) -> Any:
        """Call a tool by its name of today."""
        if tool in self._desk.new_name:
            error = self._desk.engine.ToolError("invalid", f"unknown tool {tool}")
            content, flag = self._desk.engine.render(self._service.style_now(), None, error)
            self._trace.add("call", tool=tool, arguments=arguments, result=content, is_error=flag, changes=[])
        else:
            self._trace.call(tool, arguments)
        content = str(self._trace.events[-1]["result"])
        old_name = {new: old for old, new in self._desk.new_name.items()}
        self._real.note_call(old_name.get(tool, tool), arguments, content)
        return argparse.Namespace(content=content)

    def say(self, text: str) -> str | None:
        """Say something to the customer and return the answer."""
        self._trace.say(text)
        self._real.say(text)
        question, answer, _ = self._ident
        if question and question in text:
            self._trace.user(answer)
        elif any(confirm in text for confirm in self._desk.engine.CONFIRM):
            takes_back = any(goal.kind.endswith("taken back") for goal in self._goals)
            self._trace.user("Hm, no. I changed my mind, leave it as it is." if takes_back else "Yes please")
        elif "?" in text and "lse" not in text:
            self._trace.user(". Also, ".join(goal.ask for goal in self._goals))
        elif self._thanked:
            return None
        else:
            self._thanked = True
            self._trace.user(self._rng.choice(self._desk.engine.THANKS))
        return str(self._trace.events[-1]["text"])

    def finish(self) -> None:
        """End the visit."""

    def grade(self) -> Any:
        """Return the engine's verdict as a grade."""
        return argparse.Namespace(reward=float(not self._real.verdict()))


def main() -> int:
    """Live the months and print the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("engines", type=Path)
    parser.add_argument("--only", nargs="+")
    for name, value in {"nights": 30, "base": 150, "sessions": 20, "every": 3, "rounds": 10, "seeds": 2, "customers": 100,
                        "jobs": 2}.items():
        parser.add_argument(f"--{name}", type=int, default=value)
    options = parser.parse_args()
    services = [each for each in engines(options.engines).SERVICES if each.fmt != NO_FORMAT]
    names = [each.name for each in services if not options.only or each.name in options.only]
    if not names:
        parser.error("no such service is there")
    months = list(product(names, range(options.seeds)))
    with ProcessPoolExecutor(options.jobs, get_context("spawn")) as pool:  # polars' threads do not outlive a fork
        rows = list(pool.map(partial(month, options=options), months))
    print(json.dumps({"benchmark": "loop", "figures": figures(rows), "months": [
        {name: value for name, value in row.items() if name not in ("gains",)} for row in rows]}))
    return 0


def month(of: tuple[str, int], options: argparse.Namespace) -> dict[str, Any]:
    """Live one month twice, with the loop on and off, and serve the same customers at the end."""
    name, seed = of
    ends = {loop: lived(name, seed, loop, options) for loop in (True, False)}
    on, off = (np.array(ends[loop]["last"]) for loop in (True, False))
    row = {"service": name, "seed": seed, "on": float(on.mean()), "off": float(off.mean()), "first": ends[False]["first"],
           "nights": [ends[loop]["nights"] for loop in (True, False)], "gains": (on - off).tolist()}
    print(f"{name}, seed {seed}: first {row['first']:.2f}, on {row['on']:.2f}, off {row['off']:.2f}", file=sys.stderr,
          flush=True)
    return row


def lived(name: str, seed: int, is_on: bool, options: argparse.Namespace) -> dict[str, Any]:
    """Return the success of a month's days, of its first policy at first, and of its last policy on the last customers."""
    desk = Desk(engines(options.engines), name, seed)
    with tempfile.TemporaryDirectory(prefix="loop-") as scratch:
        logs, out, nights = Path(scratch) / "logs", Path(scratch) / "out", []
        logs.mkdir()
        day_of_base = desk.next_day()
        write(logs / "base.jsonl", serve_day(desk, day_of_base, options.base, None, 0)[0])
        policy = trained(logs, out, seed, options)
        first = float(np.mean(last_served(desk, policy, options.customers)))
        for night in range(1, options.nights + 1):
            when = desk.next_day()
            if night == options.nights // 3:
                desk.restyle()
            if night == 2 * options.nights // 3:
                desk.rename()
            lines, success = serve_day(desk, when, options.sessions, policy, night)
            nights.append(round(success, 3))
            write(logs / f"night-{night:02}.jsonl", lines)
            if is_on and night % options.every == 0:
                policy = trained(logs, out, seed + night, options) or policy
        return {"nights": nights, "first": first, "last": last_served(desk, policy, options.customers)}


def serve_day(desk: Desk, when: datetime.datetime, n: int, policy: Policy | None, night: int) -> tuple[list[str], float]:
    """Serve a day's customers, every other one by the policy; return the logs and the policy's success."""
    lines, success = [], [0.0] * (policy is None)
    draw = np.random.default_rng(night)
    for number in range(n):
        visit = desk.customer(desk.rng, when + datetime.timedelta(minutes=number * 600 / n))
        if policy is not None and number % 2:
            success.append(play(policy, visit, "", draw).reward)  # type: ignore[arg-type]
            lines += visit.lines(f"policy-{night}")
        else:
            visit.serve_by_script()
            lines += visit.lines("desk-small-2")
    return lines, float(np.mean(success))


def last_served(desk: Desk, policy: Policy | None, n: int) -> list[float]:
    """Return the success with each of the same customers, on forks of the service as it is now."""
    rng, when = random.Random(f"{desk.base.name}/last"), desk.base.now
    visits = [desk.customer(rng, when, on_fork=True) for _ in range(n)]
    return [play(policy, visit, "", None).reward if policy else 0.0 for visit in visits]  # type: ignore[arg-type]


def trained(logs: Path, out: Path, seed: int, options: argparse.Namespace) -> Policy | None:
    """Build from all logs and return a policy that learnt from what is published; None if nothing is."""
    traceroom("run", str(logs), "--out", str(out), "--no-image", "--json", "--privacy", "off")
    paths = sorted((out / "environments").iterdir()) if (out / "environments").is_dir() else []
    if not paths or not (out / "datasets" / paths[0].name / "sft.train.jsonl").exists():
        return None
    room = Environment.load(paths[0])
    room.remember()
    sessions = sft(out / "datasets" / paths[0].name / "sft.train.jsonl")
    policy = Policy(lexicon_of(sessions))
    fitted(policy, [(1.0, choices_of(session, policy)) for session in sessions], 12, 0.3, seed)
    train = sorted(task.task_id for task in room.tasks if task.split == "train")
    if train and options.rounds:
        practised(policy, room, train, options.rounds, min(16, len(train)), 8, RATE, seed)
    return policy


def write(path: Path, lines: list[str]) -> None:
    """Write lines."""
    path.write_text("".join(lines), "utf-8")


def figures(rows: list[dict[str, Any]]) -> dict[str, float | int]:
    """Return the figures over all months."""
    gains = np.concatenate([row["gains"] for row in rows])
    rng = np.random.default_rng(0)
    draws = rng.multinomial(len(gains), np.full(len(gains), 1 / len(gains)), DRAWS) / len(gains)
    low, high = np.quantile(draws @ gains, [0.025, 0.975])
    return {"loop_gain": round(float(gains.mean()), 4), "loop_gain_low": round(float(low), 4),
            "loop_gain_high": round(float(high), 4), "n_months": len(rows), "n_customers": len(gains),
            **{name: round(float(np.mean([row[name] for row in rows])), 4) for name in ("on", "off", "first")}}


if __name__ == "__main__":
    sys.exit(main())
