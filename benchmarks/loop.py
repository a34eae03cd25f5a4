#!/usr/bin/env python3
"""A month in production: does a policy that is trained on what it did yesterday keep up with a service that changes?

    benchmarks/loop.py ENGINES [--only NAME…] [--seeds N…] [--nights 30] [--base 300] [--sessions 20] [--every 3]
                       [--rounds 6] [--customers 100] [--jobs 2]
    benchmarks/loop.py --merge FILE…

    benchmarks/loop.py ../shared/data/zoo/engine.py

ENGINES: the file of the zoo's engines, the real services (real_services.py). A service serves --base sessions by its agents,
--sessions a day; `traceroom run --privacy off` builds from these logs, and the small policy (loop_policy.py) learns from the
datasets (the trajectories, each by its chance that it is good and by its age) and in the environment. Then, each day,
--sessions customers come, every other one is served by the policy, with drawn choices, the others by the service's own agents;
what both did is written as logs, the policy's with its name as the model. With the loop on, every --every days `traceroom run`
goes over all logs, and a new policy is trained from what it published; with the loop off the first policy goes on. The service
changes twice (loop_changes.py), after a third of the nights and after two: a rule for who may have what becomes stricter, and
the write tool that is called most gets another name and is refused by its old one; in seeds that are odd the other way round.

Before the first change, before the second, and at the end both policies serve the same --customers new customers on forks of
the service, with their likeliest choices; the engine judges. `loop_gain`: success at the end with the loop on minus off, mean
over services and seeds, with an interval (95 %) by a bootstrap over these pairs. `gain_before`: the same before the service
changed; `gain_rule`, `gain_name`: when only this had changed. `met_*` the same of customers whose wish meets the change.
`relearner`: success of a policy that imitates as many sessions as the last one could, all good, of the service as it is at the
end: what a perfect loop could teach this policy. `drawn_on`, `drawn_off`: success of the days' drawn episodes.

`failures_become_tasks`: of the sessions of the nights before a build that failed by the engine's verdict, the share that has a
published task after it by another session, or is a case in `traceroom review`; `failures_published`, `failures_in_review`:
each alone; `failures_believed`: those whose published task takes the failure itself for right; `failures` counts reasons why
a task is not published. `good_published`: by what was right to do, sessions that went well by the engine's verdict and have a
published task after the next build, of how many. --merge: figures of several runs, from the last lines that they printed.
The last line on stdout is one JSON object.
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
from collections.abc import Iterable
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from itertools import product
from multiprocessing import get_context
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from learning_policy import Choice, Policy
from learning_training import Session, choices_of, fitted, logged, play, practised
from loop_changes import RULES, change_rule, rename
from loop_policy import learner_of, plain
from real_services import Real, Start, engines
from truth_data import traceroom

from env_builder.runtime import Environment
from pipelines.reviewing.queue import queue
from warehouse.store import Store

HALF = 6
"""Nights after which a session counts half in training."""
EPOCHS = 6
DRAWS = 2_000
RATE = 0.1
RATE_OF_IMITATION = 0.3
SEED_OF_CUSTOMERS = "customers"
Floats = NDArray[np.float64]


class Desk:
    """A service in production: its customers, its own agents, its logs."""

    def __init__(self, engine: Any, name: str, seed: int) -> None:
        self.engine, self.service_class = engine, next(each for each in engine.SERVICES if each.name == name)
        self.base = self.service_class(str(seed))
        self.rng = random.Random(f"{name}/{seed}/loop")
        self.new_name: dict[str, str] = {}
        self.reason = ""
        """With which the new rule declines; empty before it is there."""
        self.n_writes: Counter[str] = Counter()
        self.n_sessions = 0
        self._day = self.base.today

    def next_day(self) -> datetime.datetime:
        """Let a night pass; return when the desk opens."""
        self._day += datetime.timedelta(days=1)
        if self.base.world == "living":
            self.base.now = datetime.datetime.combine(self._day, datetime.time())
            self.base.night()
        return datetime.datetime.combine(self._day, datetime.time(7))

    def change(self, what: str) -> None:
        """Change the service: its `rule`, or the `name` of the write tool that is called most."""
        if what == "rule":
            self.reason = change_rule(self.base)
        else:
            old = max(self.n_writes, key=lambda tool: (self.n_writes[tool], tool))
            self.new_name = {old: rename(self.base, old)}

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
        self._when = when
        self._start = Start(service.fork(), goals, ident[0], ident[2])
        self._real = Real(desk.engine, self._start, service)
        self._trace = desk.engine.Trace(service, rng, when)
        self._thanked = False
        self.session_id = ""

    @property
    def meets(self) -> set[str]:
        """Changes that the customer's wish is about."""
        by_rule = self._desk.reason and any(goal.refuse == self._desk.reason for goal in self._goals)
        by_name = any(tool in self._desk.new_name for goal in self._goals for tool, _ in goal.act)
        return {*(["rule"] if by_rule else []), *(["name"] if by_name else [])}

    @property
    def right(self) -> str:
        """What is right to do about the wish: `act`, `refuse`, `tell`, or `several` of these."""
        found = {"refuse" if goal.refuse else "act" if goal.act else "tell" for goal in self._goals}
        return found.pop() if len(found) == 1 else "several"

    def twin(self) -> Visit:
        """Return the same customer at a fork of the service."""
        service = self._service.fork()
        return Visit(self._desk, service, self._who, self._goals, self._ident, random.Random(str(self._when)), self._when)

    def serve_by_script(self, quality: str | None = None) -> None:
        """Let one of the service's own agents serve, of any quality or of this one."""
        qualities = self._desk.engine.QUALITIES
        call, new_name = self._trace.call, self._desk.new_name
        self._trace.call = lambda tool, arguments: call(new_name.get(tool, tool), arguments)
        self._desk.engine.serve(self._trace, quality or self._rng.choices(list(qualities), list(qualities.values()))[0],
                                self._who, self._goals, self._ident)
        old_name = {new: old for old, new in new_name.items()}
        for event in self._trace.events:
            if event["kind"] == "call":
                name = old_name.get(event["tool"], event["tool"])
                self._real.note_call(name, event["arguments"], str(event["result"]))
                tool = self._service.tools.get(name)
                if tool is not None and tool.effect == "write":
                    self._desk.n_writes[name] += 1
            elif event["kind"] == "assistant":
                self._real.say(event["text"])

    def session(self) -> Session:
        """Return what happened as a session of a dataset."""
        return Session(self._desk.engine.messages(self._service, self._trace.events, "call"), list(self._service.schema()), 1.0)

    def lines(self, model: str) -> list[str]:
        """Return the session as the service logs it."""
        self._desk.n_sessions += 1
        self.session_id = hashlib.sha1(f"{self._desk.base.name}/{self._desk.n_sessions}".encode()).hexdigest()[:16]
        log = getattr(self._desk.engine, f"log_{self._service.fmt}")
        number = 1000 + self._desk.base.people().index(self._who)
        lines = log(self._service, self.session_id, f"u{number}", self._trace.events)
        return [json.dumps(row, ensure_ascii=False).replace('"desk-small-2"', json.dumps(model)) + "\n" for row in lines]

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


class Month:
    """A month of one service: the days, the builds, and both policies on the same customers."""

    def __init__(self, name: str, seed: int, options: argparse.Namespace, scratch: Path) -> None:
        self.desk, self._seed, self._options = Desk(engines(options.engines), name, seed), seed, options
        self._logs, self._out = scratch / "logs", scratch / "out"
        self._logs.mkdir()
        self.drawn: list[tuple[float, float]] = []
        self.failures: Counter[str] = Counter()
        self.good: Counter[str] = Counter()
        self._new: list[tuple[str, str, bool]] = []
        """Of each session since the last build: id, what was right to do, and whether it went well."""

    def lived(self) -> dict[str, Any]:
        """Live the month; return what both policies did at each look, and what became of failures."""
        options, order = self._options, ("rule", "name") if self._seed % 2 == 0 else ("name", "rule")
        for night in range(1 - -(-options.base // options.sessions), 1):
            self._serve(night, None, None)
        first = policy = self._trained(0)
        if first is None:
            raise SystemExit(f"nothing is published of {self.desk.base.name}")
        looks = {}
        for night in range(1, options.nights + 1):
            for number, what in enumerate(order, start=1):
                if night == number * options.nights // 3:
                    looks[order[number - 2] if number > 1 else "before"] = self._look(policy, first)
                    self.desk.change(what)
            self._serve(night, policy, first)
            if night % options.every == 0:
                policy = self._trained(night) or policy
        looks["end"] = self._look(policy, first)
        looks["relearner"] = self._look(self._relearner(), first)
        return {"looks": looks, "drawn": self.drawn, "failures": dict(self.failures),
                "good": dict(self.good)}

    def _serve(self, night: int, policy: Policy | None, first: Policy | None) -> None:
        """Serve a day's customers, every other one by the policy, and on a fork by the first one; write the logs."""
        when, lines = self.desk.next_day(), []
        on, off = np.random.default_rng(night + 1000), np.random.default_rng(night + 1000)
        for number in range(self._options.sessions):
            visit = self.desk.customer(self.desk.rng, when + datetime.timedelta(minutes=number * 600 / self._options.sessions))
            if policy is not None and first is not None and number % 2:
                was = play(first, visit.twin(), "", off).reward  # type: ignore[arg-type]
                self.drawn.append((play(policy, visit, "", on).reward, was))  # type: ignore[arg-type]
                lines += visit.lines(f"policy-{night}")
            else:
                visit.serve_by_script()
                lines += visit.lines("desk-small-2")
            self._new.append((visit.session_id, visit.right, bool(visit.grade().reward)))
        (self._logs / f"{when:%Y-%m-%d}.jsonl").write_text("".join(lines), "utf-8")

    def _look(self, policy: Policy, first: Policy) -> list[tuple[float, float, list[str]]]:
        """Return of each of the same customers, on forks: success of both policies, and the changes that it meets."""
        when, found = self.desk.base.now, []
        for number in range(self._options.customers):
            visit = self.desk.customer(random.Random(f"{SEED_OF_CUSTOMERS} {number}"), when, on_fork=True)
            twin = visit.twin()
            success = [play(one, place, "", None).reward for one, place in ((policy, visit), (first, twin))]  # type: ignore[arg-type]
            found.append((success[0], success[1], sorted(visit.meets)))
        return found

    def _trained(self, night: int) -> Policy | None:
        """Build from all logs and return a policy that learnt from what is published; None if nothing is."""
        traceroom("run", str(self._logs), "--out", str(self._out), "--no-image", "--json", "--privacy", "off")
        self._count(night)
        paths = sorted((self._out / "environments").iterdir()) if (self._out / "environments").is_dir() else []
        if not paths:
            return None
        sessions, weights = self._released(self._out / "datasets" / paths[0].name / "trajectories.train.parquet")
        if not sessions:
            return None
        policy, imitated = imitating(sessions, weights, self._seed + night)
        room = Environment.load(paths[0])
        room.remember()
        train = sorted(task.task_id for task in room.tasks if task.split == "train")
        for number in range(self._options.rounds if train else 0):
            seed = 100 * (self._seed + night) + number
            practised(policy, room, train, 1, min(16, len(train)), 8, RATE, seed)
            fitted(policy, imitated, 1, RATE_OF_IMITATION, seed)
        return policy

    def _released(self, path: Path) -> tuple[list[Session], list[float]]:
        """Return the sessions that call tools of today alone, and what each weighs: how likely it is good, and how new."""
        tools = list(self.desk.base.schema())
        offered = {tool["name"] for tool in tools}
        ends = pl.read_parquet(path).group_by("task_id", "episode_id").agg(pl.col("happened_at").max()).sort(
            "task_id", "episode_id")["happened_at"].to_list()
        known = [(session, chance_and_age(session.reward, max(ends) - end))
                 for (_, session), end in zip(logged(path, tools), ends, strict=True) if called(session) <= offered]
        return [session for session, _ in known], [weight for _, weight in known]

    def _count(self, night: int) -> None:
        """Note what became of the sessions since the last build; of failures only after the first one."""
        with Store.open(self._out / "warehouse.duckdb", write=False) as store:
            tasks = {row.pop("session_id"): row for row in store.read(
                "select unnest(session_ids) as session_id, succeeded_session_ids as good, coalesce(v.kept, false) as kept, "
                "coalesce(v.reason, r.reason, '') as reason from mart.tasks left join mart.decisions v on v.subject = task_id "
                "and v.stage = 'verify' left join mart.decisions r on r.subject = task_id and r.stage = 'rewards' "
                "order by task_id").iter_rows(named=True)}
            listed = {item.session_id for item in queue(store, 1_000_000)}
        for session_id, right, is_good in self._new:
            task = tasks.get(session_id, {"kept": False, "good": (), "reason": "no task"})
            if is_good:
                self.good += Counter([right, *([f"{right}, published"] if task["kept"] else [])])
            elif night > 0:
                self.failures += Counter(["n", fate(session_id, task["kept"], task["good"], task["reason"]),
                                          *(["in_review"] if session_id in listed else [])])
        self._new = []

    def _relearner(self) -> Policy:
        """Return a policy that imitates good sessions of the service as it is now."""
        rng, sessions = random.Random("customers of the relearner"), []
        for _ in range(self._options.base):
            visit = self.desk.customer(rng, self.desk.base.now, on_fork=True)
            visit.serve_by_script("perfect")
            sessions.append(visit.session())
        return imitating(sessions, [1.0] * len(sessions), self._seed)[0]


def imitating(sessions: list[Session], weights: list[float], seed: int) -> tuple[Policy, list[tuple[float, list[Choice]]]]:
    """Return a policy that imitates these sessions, and the choices that it learnt."""
    shorter = plain(sessions)
    policy = learner_of(shorter)
    imitated = [(weight, choices_of(session, policy)) for session, weight in zip(shorter, weights, strict=True)]
    fitted(policy, imitated, EPOCHS, RATE_OF_IMITATION, seed)
    return policy, imitated


def fate(session_id: str, is_published: bool, good: Iterable[str], reason: str) -> str:
    """Return what became of a session that failed. `good`: sessions that its task's reward takes for good."""
    if not is_published:
        return f"not published: {reason}"
    return "published" if set(good) - {session_id} else "believed"


def chance_and_age(chance: float, age: datetime.timedelta) -> float:
    """Return what a session weighs in training."""
    return chance * 0.5 ** (age / datetime.timedelta(days=HALF))


def called(session: Session) -> set[str]:
    """Return the names of the tools that were called."""
    return {call["function"]["name"] for message in session.messages for call in message.get("tool_calls") or ()}


def main() -> int:
    """Live the months and print the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("engines", type=Path, nargs="?")
    parser.add_argument("--only", nargs="+", choices=sorted(RULES), default=sorted(RULES))
    parser.add_argument("--seeds", nargs="+", type=int, default=[0, 1])
    parser.add_argument("--merge", nargs="+", type=Path)
    for name, value in {"nights": 30, "base": 300, "sessions": 20, "every": 3, "rounds": 6, "customers": 100,
                        "jobs": 2}.items():
        parser.add_argument(f"--{name}", type=int, default=value)
    options = parser.parse_args()
    if options.merge:
        months = [row for path in options.merge for row in json.loads(path.read_text("utf-8").splitlines()[-1])["months"]]
    elif options.engines is None:
        parser.error("name the file of the engines, or --merge")
    else:
        with ProcessPoolExecutor(options.jobs, get_context("spawn")) as pool:  # polars' threads do not outlive a fork
            months = list(pool.map(partial(month, options=options), product(options.only, options.seeds)))
    print(json.dumps({"benchmark": "loop", "figures": figures(months), "services": services(months),
                      **({} if options.merge else {"months": months})}))
    return 0


def month(of: tuple[str, int], options: argparse.Namespace) -> dict[str, Any]:
    """Live one month."""
    name, seed = of
    with tempfile.TemporaryDirectory(prefix="loop-") as scratch:
        row = {"service": name, "seed": seed, **Month(name, seed, options, Path(scratch)).lived()}
    print(f"{name}, seed {seed}: " + "; ".join(
        f"{look} on {pairs[:, 0].mean():.2f} off {pairs[:, 1].mean():.2f}" for look, own in row["looks"].items()
        for pairs in [np.array([each[:2] for each in own])]), file=sys.stderr, flush=True)
    return row


class Gain(NamedTuple):
    """On minus off over pairs, with its interval."""

    mean: float | None
    low: float | None
    high: float | None
    n: int


def gain(pairs: list[Any]) -> Gain:
    """Return the mean of on minus off over (on, off, …), with an interval by a bootstrap over the pairs."""
    if not pairs:
        return Gain(None, None, None, 0)
    gains = np.array([each[0] - each[1] for each in pairs])
    rng = np.random.default_rng(0)
    means = rng.multinomial(len(gains), np.full(len(gains), 1 / len(gains)), DRAWS) @ gains / len(gains)
    low, high = np.quantile(means, [0.025, 0.975])
    return Gain(*(round(float(value), 4) for value in (gains.mean(), low, high)), len(gains))


def figures(months: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the figures over all months."""
    looks = {look: [pair for row in months for pair in row["looks"].get(look, ())]
             for look in ("before", "rule", "name", "end", "relearner")}
    end = looks["end"]
    total = gain(end)
    shown: dict[str, Any] = {"loop_gain": total.mean, "loop_gain_low": total.low, "loop_gain_high": total.high,
                             "on": rate(end, 0), "off": rate(end, 1), "relearner": rate(looks["relearner"], 0),
                             "before": rate(looks["before"], 0), "n_months": len(months), "n_customers": len(end)}
    kinds = {"before": looks["before"], "rule": looks["rule"], "name": looks["name"],
             **{f"met_{what}": [pair for pair in end if what in pair[2]] for what in ("rule", "name")},
             "met_none": [pair for pair in end if not pair[2]]}
    for name, pairs in kinds.items():
        own = gain(pairs)
        shown |= {f"gain_{name}": own.mean, f"gain_{name}_low": own.low, f"gain_{name}_high": own.high, f"n_{name}": own.n}
    shown["met"] = round(float(np.mean([bool(pair[2]) for pair in end])), 4)
    drawn = [pair for row in months for pair in row["drawn"]]
    failures: Counter[str] = sum((Counter(row["failures"]) for row in months), Counter())
    good: Counter[str] = sum((Counter(row.get("good", {})) for row in months), Counter())
    n = max(1, failures["n"])
    return {**shown, "drawn_on": rate(drawn, 0), "drawn_off": rate(drawn, 1), "n_failures": failures["n"],
            "failures_become_tasks": round((failures["published"] + failures["in_review"]) / n, 4),
            **{f"failures_{name}": round(failures[name] / n, 4) for name in ("published", "in_review", "believed")},
            "failures": {name: count for name, count in failures.most_common() if ":" in name},
            "good_published": {right: [good[f"{right}, published"], count] for right, count in sorted(good.items())
                               if "," not in right}}


def rate(pairs: list[Any], side: int) -> float | None:
    """Return the success of one side of pairs."""
    return round(float(np.mean([pair[side] for pair in pairs])), 4) if pairs else None


def services(months: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return what is printed of each month: success with the loop on and off at each look."""
    return [{"service": row["service"], "seed": row["seed"],
             **{look: [rate(pairs, 0), rate(pairs, 1)] for look, pairs in row["looks"].items()}} for row in months]


if __name__ == "__main__":
    sys.exit(main())
