#!/usr/bin/env python3
"""How many unscored episodes do the first calls of a shopping list make scoreable, and are they scored rightly?

    benchmarks/shopping.py ENGINES [--only NAME…] [--sessions N] [--episodes N] [--items N] [--jobs N]

    benchmarks/shopping.py ../shared/data/zoo/engine.py

ENGINES: the file of the zoo's engines, which are the real services (real_services.py). Each serves --sessions (300) sessions
and writes its logs; `traceroom run --privacy off` builds from them. The small policy of learning.py imitates the log's
sessions, good and bad, and plays --episodes (4) drawn episodes of each task; the engine's own scripted policies play the tasks
of their sessions. `pipelines.rollouts.shopping` lists what to ask, --items (20) at most; each item is asked of the engine,
brought into the state in which the session began; all answers before which the engine answered like the environment are
accepted; `traceroom run` builds again; and the unscored episodes are graded again by their journals.

`episodes_made_scoreable`: share of all unscored episodes that have a reward then, pooled over the services; `expected`: what
the list promises. `by_chance`: the same promise of as many items drawn at random, the mean of 20 draws. `scored_rightly`: share
of the newly scored ones whose reward (paid above 0.5) is the engine's verdict on the episode, played against the engine.
`moved`: episodes that were scored before and have another reward now. The last line on stdout is one JSON object. """

from __future__ import annotations

import argparse
import json
import random
import sys
import tempfile
from concurrent.futures import ProcessPoolExecutor
from datetime import UTC, datetime
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from learning_policy import Policy
from learning_training import choices_of, fitted, lexicon_of, logged, play, sft
from real_services import Real, Start, engines, record
from truth_data import PASSES, DataSet, Job, build, rows

from env_builder.runtime import Environment
from env_builder.runtime.bindings import Ask, Reply
from env_builder.runtime.trajectory import Recorder, journal
from pipelines.reviewing.answers import accept_answers
from pipelines.rollouts.asking import RealTools, answers_of
from pipelines.rollouts.shopping import MOST, needs_of, shopping_list

SEED, DRAWS = "7", 20
Row = dict[str, Any]


class Recorded:
    """An environment whose episodes are recorded as the product records them."""

    def __init__(self, environment: Environment) -> None:
        self._environment = environment

    def reset(self, task_id: str) -> Any:
        """Begin an episode."""
        begun = self._environment.reset(task_id)
        self.recorder = Recorder(self._environment)
        self.recorder.begin(begun.messages)
        self.recorder.turn()
        return begun

    def call(self, tool: str, arguments: Row) -> Any:
        """Pass a call on, as a turn of its own."""
        self.recorder.turn()
        return self.recorder.call(tool, arguments)

    def say(self, text: str) -> str | None:
        """Pass words on, as a turn of its own."""
        self.recorder.turn()
        return self.recorder.say(text)

    def finish(self) -> None:
        """End the episode."""
        self.recorder.finish()

    def grade(self) -> Any:
        """Return the environment's grade."""
        return self._environment.grade()


class Service:
    """The real service as a source of answers: `reset` brings it into the state of a session."""

    def __init__(self, starts: dict[str, Start]) -> None:
        self._starts = starts
        self._service: Any = None

    def reset(self, ask: Ask) -> Reply:
        """Take a copy of the service as it was when the session began."""
        self._service = self._starts[ask.arguments["session_ids"][0]].service.fork()
        return Reply("")

    def call(self, ask: Ask) -> str:
        """Return the engine's answer as it is."""
        return str(self._service.call(ask.tool, ask.arguments)[0])


def main() -> int:
    """Serve, build, play, ask, build again, and print the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("engines", type=Path)
    parser.add_argument("--only", nargs="+")
    parser.add_argument("--sessions", type=int, default=300)
    parser.add_argument("--episodes", type=int, default=4)
    parser.add_argument("--items", type=int, default=MOST)
    parser.add_argument("--jobs", type=int, default=2)
    options = parser.parse_args()
    names = [service.name for service in engines(options.engines).SERVICES if not options.only or service.name in options.only]
    if not names:
        parser.error("no such service is there")
    with ProcessPoolExecutor(options.jobs, get_context("spawn")) as pool:  # polars' threads do not outlive a fork
        services = list(pool.map(partial(measured, options=options), names))
    print(json.dumps({"benchmark": "shopping", "figures": figures(services), "services": services}))
    return 0


def measured(name: str, options: argparse.Namespace) -> Row:
    """Ask one service what its environment does not know, and count what that decides."""
    engine = engines(options.engines)
    with tempfile.TemporaryDirectory(prefix="shopping-") as scratch:
        starts = record(engine, name, Path(scratch), SEED, options.sessions)
        staged = Job(DataSet(Path(scratch) / "data" / name, "zoo"), "logs", Path(scratch)).staged(Path(scratch))
        out = build(staged, Path(scratch) / "out").out
        path = min((out / "environments").iterdir())
        scripts = list(rows(Path(scratch) / "data" / name / "truth" / "policies.jsonl"))
        episodes = [*played(path, options.episodes), *scripted(path, scripts)]
        listed = shopping_list(Environment.load(path), episodes, options.items)
        wanted = [{**item._asdict(), "tool_calls": list(item.tool_calls)} for item in listed.items]
        service = Service(starts)
        bound = {call["tool"]: service.call for item in wanted for call in item["tool_calls"]}
        answers = [row for row in answers_of(wanted, RealTools(bound, service.reset, True, 1.0), lambda _: None)
                   if "problem" not in row]
        file = Path(scratch) / "answers.jsonl"
        file.write_text("".join(json.dumps(row) + "\n" for row in answers), "utf-8")
        accepted = accept_answers(file, out / "answers.jsonl", "benchmark", datetime.now(UTC), accept_all=True)
        chance = by_chance(needs_of(Environment.load(path), episodes), options.items)
        build(staged, out)
        row = {"service": name, "episodes": listed.n_episodes, "unscored": listed.n_unscored, "items": len(wanted),
               "accepted": accepted.n_new, "differ": sum(each["differs"] is not None for each in answers),
               "expected": wanted[-1]["n_scoreable"] if wanted else 0, "by_chance": chance,
               **graded_again(path, episodes, engine, starts)}
    print(row, file=sys.stderr, flush=True)
    return row


def played(path: Path, n: int) -> list[Row]:
    """Let a policy that imitates the log play each task; return the trajectories."""
    datasets, environment = path.parent.parent / "datasets" / path.name, Environment.load(path)
    sessions = sft(datasets / "sft.train.jsonl")
    policy = Policy(lexicon_of(sessions))
    imitated = [(1.0, choices_of(session, policy))
                for _, session in logged(datasets / "trajectories.train.parquet", sessions[0].tools)]
    fitted(policy, imitated, 12, 0.3, 0)
    room, rng, trajectories = Recorded(environment), np.random.default_rng(0), []
    for task in environment.tasks:
        for attempt in range(n):
            play(policy, room, task.task_id, rng)  # type: ignore[arg-type]
            about = {"episode_id": f"{task.task_id}:{attempt}", "task_id": task.task_id, "seed": 0, "perturbations": []}
            trajectories.append(room.recorder.trajectory("clone", about, environment.grade()))
    return trajectories


def scripted(path: Path, scripts: list[Row]) -> list[Row]:
    """Let each script play the task of its session, if there is one; return the trajectories."""
    environment, trajectories = Environment.load(path), []
    tasks = {session_id: task.task_id for task in environment.tasks for session_id in task.session_ids}
    room = Recorded(environment)
    for number, script in enumerate(each for each in scripts if each["session_id"] in tasks):
        room.reset(tasks[script["session_id"]])
        for step in script["steps"]:
            if "say" in step:
                room.say(step["say"])
            else:
                room.call(step["tool"], step["arguments"])
        room.finish()
        about = {"episode_id": f"script:{number}", "task_id": tasks[script["session_id"]], "seed": 0, "perturbations": []}
        trajectories.append(room.recorder.trajectory(script["policy"], about, environment.grade()))
    return trajectories


def by_chance(needs: list[dict[str, Any]], n_items: int) -> float:
    """Return how many episodes as many items make scoreable that are drawn from all; the mean of some draws."""
    names, rng = sorted({name for each in needs for name in each}), random.Random(0)
    draws = [set(rng.sample(names, min(n_items, len(names)))) for _ in range(DRAWS)]
    return round(sum(bool(each) and each.keys() <= draw for each in needs for draw in draws) / DRAWS, 2)


def graded_again(path: Path, episodes: list[Row], engine: Any, starts: dict[str, Start]) -> Row:
    """Grade the episodes by today's environment, and the newly scored ones by the engine."""
    environment = Environment.load(path)
    sessions = {task.task_id: task.session_ids for task in environment.tasks}
    n_scored = n_right = n_moved = n_gone = 0
    for trajectory in episodes:
        about, moves = trajectory["extra"]["traceroom"], journal(trajectory)
        if about["task_id"] not in sessions:
            n_gone += 1
            continue
        reward = environment.grade_journal(about["task_id"], moves).reward
        if about["reward"] is not None:
            n_moved += reward != about["reward"]
        elif reward is not None:
            n_scored += 1
            n_right += (reward > PASSES) == real_verdict(engine, starts[sessions[about["task_id"]][0]], moves)
    return {"scored": n_scored, "right": n_right, "moved": n_moved, "task_gone": n_gone}


def real_verdict(engine: Any, start: Start, moves: list[Row]) -> bool:
    """Play an episode against the engine, and return whether it is a success there."""
    real = Real(engine, start)
    for move in moves:
        if move["kind"] == "call":
            real.call(move["tool"], move["arguments"])
        elif move["kind"] == "say":
            real.say(move["content"])
    return not real.verdict()


def figures(services: list[Row]) -> dict[str, float | int | None]:
    """Return the figures of all services."""
    total = {name: sum(row[name] for row in services) for name in services[0] if name != "service"}
    return {"episodes_made_scoreable": share(total["scored"], total["unscored"]),
            "expected": share(total["expected"], total["unscored"]), "by_chance": share(total["by_chance"], total["unscored"]),
            "scored_rightly": share(total["right"], total["scored"]), "moved": total["moved"], "task_gone": total["task_gone"],
            "unscored": total["unscored"], "episodes": total["episodes"]}


def share(part: float, whole: float) -> float | None:
    """Return a share, or None of nothing."""
    return round(part / whole, 4) if whole else None


if __name__ == "__main__":
    sys.exit(main())
