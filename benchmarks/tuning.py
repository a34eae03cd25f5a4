#!/usr/bin/env python3
"""What arrives on the real tools of a gain that was made in the environment alone?

    benchmarks/tuning.py ENGINES [--only NAME…] [--sessions N] [--seeds N] [--rounds N] [--weak] [--perturbed] [--jobs N]
                         [--matrix FOLDER]

    benchmarks/tuning.py ../shared/data/zoo/engine.py

ENGINES: the file of the zoo's engines, which are the real services (real_services.py). Each service serves --sessions (600)
sessions and writes its logs; `traceroom run --privacy off` builds from the logs alone. The small policy of learning.py imitates
all train sessions of the log, good and bad (`cloned`). Another one imitates `sft.train.jsonl` (`sft`), contrasts sessions
(`offline`), and plays tasks of `train` in the environment with group-relative advantages (`online`, after each third of
--rounds (30)). Each is scored on the tasks that are not in train, with its likeliest choices: in the environment by the reward
(paid above 0.5; not graded is 0), and at the real service, where the same user speaks, the engine's tools answer from the state
in which the session began, and the engine judges the end. With --weak a third as many of the log's sessions as usual are served
well: the logs of a weak agent. With --perturbed the episodes of `online` have perturbations.

`gain_transferred`: real success of the last `online` minus that of `cloned`, over the same in the environment, pooled over
services, seeds and tasks; its interval (95 %) by a bootstrap over tasks. `online_transferred`: the same against `sft`;
`total_transferred`: against the policy before it learnt. `tuning_regret`: true success that is lost by taking, of each service
and seed, the stage that is best in the environment, not the one that is best at the real service; the mean.
`paid_wrongly`: share of episodes that the environment pays and the real service does not; `refused_wrongly` the other way
round. --matrix writes each service's results as a recorded matrix, the stages of a seed as checkpoints of one policy, for
`traceroom transfer`. `judge_agreement`: share of the engine's own scripts that are judged as the engine judges them. The last
line on stdout is one JSON object.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from learning_policy import Policy
from learning_training import choices_of, contrasted, fitted, lexicon_of, logged, play, practised, sft
from real_services import Real, Start, agreement, engines, record
from truth_data import PASSES, DataSet, Job, build, rows

from env_builder.runtime import Environment
from pipelines.rollouts.matrix import write_matrix
from pipelines.rollouts.transfer import PLACES, PlacedResult

PARTS = 3
STAGES = ("untrained", "cloned", "sft", "offline", *(f"online_{number}" for number in range(1, PARTS + 1)))
LAST = STAGES[-1]
RATE = 0.1
"""Of `online`: chosen by the curve of rewards on train."""
DRAWS = 2_000
SEED = "7"
PERTURBATIONS = ("faults", "pages", "rebound", "shuffled", "wordings")
GOOD_QUALITIES = ("perfect", "retry")
Floats = NDArray[np.float64]


class Refused(NamedTuple):
    """An episode that the environment refuses and the real service pays."""

    gates: str
    """Kinds of the gates that stop it, empty where it is not graded."""
    is_founded: bool
    """Whether the agent made all calls that the engine's agents make before they refuse."""


class Life(NamedTuple):
    """What `live` gives."""

    success: list[list[Floats]]
    """By place, stage and task."""
    unscored: float
    refused: list[Refused]


class Tuned(NamedTuple):
    """A service's policies: success by (place, stage, seed, task)."""

    name: str
    success: Floats
    """Place 0 is the environment, 1 the real service."""
    unscored: float
    """Share of the last stage's episodes that the environment does not grade."""
    refused: list[Refused]
    """Episodes that the environment refuses and the real service pays."""
    agreement: tuple[int, int]


class RealPlace:
    """The environment's user and tasks, with the tools of the real service."""

    def __init__(self, path: Path, engine: Any, starts: dict[str, Start]) -> None:
        self._environment, self._engine, self._starts = Environment.load(path), engine, starts
        self._sessions = {task.task_id: task.session_ids for task in self._environment.tasks}
        self.real = Real(engine, next(iter(starts.values())))

    def reset(self, task_id: str) -> Any:
        """Begin the episode from the state in which the task's first session began."""
        self.real = Real(self._engine, self._starts[self._sessions[task_id][0]])
        return self._environment.reset(task_id)

    def call(self, tool: str, arguments: dict[str, Any]) -> Any:
        """Return the real tool's answer. The environment is called too, since its user may react to calls."""
        result = self._environment.call(tool, arguments)
        return result._replace(content=self.real.call(tool, arguments))

    def say(self, text: str) -> str | None:
        """Say it to the user."""
        self.real.say(text)
        return self._environment.say(text)

    def finish(self) -> None:
        """End the episode."""
        self._environment.finish()

    def grade(self) -> Any:
        """Return the engine's verdict as a grade."""
        return argparse.Namespace(reward=float(not self.real.verdict()), is_founded=self.real.is_founded())


class Perturbed:
    """The environment with all perturbations on, each episode with a seed of its own."""

    def __init__(self, environment: Environment) -> None:
        self._environment, self._seed = environment, 0

    def reset(self, task_id: str) -> Any:
        """Begin the next episode."""
        self._seed += 1
        return self._environment.reset(task_id, self._seed, perturbations=PERTURBATIONS)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._environment, name)


def main() -> int:
    """Serve, build, learn, and print the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("engines", type=Path)
    parser.add_argument("--only", nargs="+")
    parser.add_argument("--sessions", type=int, default=600)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--rounds", type=int, default=30)
    parser.add_argument("--weak", action="store_true")
    parser.add_argument("--perturbed", action="store_true")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--matrix", type=Path)
    options = parser.parse_args()
    names = [service.name for service in engines(options.engines).SERVICES if not options.only or service.name in options.only]
    if not names:
        parser.error("no such service is there")
    with ProcessPoolExecutor(options.jobs, get_context("spawn")) as pool:  # polars' threads do not outlive a fork
        tuned = list(pool.map(partial(tune, options=options), names))
    for each in tuned if options.matrix else ():
        options.matrix.mkdir(parents=True, exist_ok=True)
        write_matrix(options.matrix / f"{each.name}.jsonl", placed(each))
    print(json.dumps({"benchmark": "tuning", "figures": figures(tuned), "services": [service_row(each) for each in tuned]}))
    return 0


def placed(tuned: Tuned) -> list[PlacedResult]:
    """Return the results of all stages but the first, each seed's as checkpoints of one policy."""
    return [PlacedResult(f"seed {seed} {STAGES[stage]}", f"t{task}", 0, PLACES[place], bool(success),
                         checkpoint_of=f"seed {seed}", step=stage)
            for (place, stage, seed, task), success in np.ndenumerate(tuned.success) if stage]


def tune(name: str, options: argparse.Namespace) -> Tuned:
    """Serve and build one service, let policies learn, and score them in both places."""
    engine = engines(options.engines)
    if options.weak:
        engine.QUALITIES = weakened(engine.QUALITIES)
    with tempfile.TemporaryDirectory(prefix="tuning-") as scratch:
        starts = record(engine, name, Path(scratch), SEED, options.sessions)
        data = Path(scratch) / "data" / name
        judged = agreement(engine, starts, rows(data / "truth" / "policies.jsonl"))[:2]
        out = build(Job(DataSet(data, "zoo"), "logs", Path(scratch)).staged(Path(scratch)), Path(scratch) / "out").out
        path = min((out / "environments").iterdir())
        task_ids = sorted(task.task_id for task in Environment.load(path).tasks
                          if task.split != "train" and task.session_ids and task.session_ids[0] in starts)
        real, lives = RealPlace(path, engine, starts), []
        for seed in range(options.seeds):
            lives.append(live(path, real, task_ids, seed, options))
            rates = zip(STAGES, *lives[-1].success, strict=True)
            print(f"{name}, seed {seed}: " + "; ".join(f"{stage} {paid.mean():.2f} ({true.mean():.2f})"
                                                       for stage, paid, true in rates), file=sys.stderr, flush=True)
    success = np.array([each.success for each in lives]).transpose(1, 2, 0, 3)
    refused = [episode for each in lives for episode in each.refused]
    return Tuned(name, success, float(np.mean([each.unscored for each in lives])), refused, judged)


def weakened(qualities: dict[str, int]) -> dict[str, int]:
    """Return the engine's mix of agents with a third of the good ones."""
    return {name: share // 3 if name in GOOD_QUALITIES else share for name, share in qualities.items()}


def live(path: Path, real: RealPlace, task_ids: list[str], seed: int, options: argparse.Namespace) -> Life:
    """Return how one policy fares in both places while it learns."""
    datasets, room = path.parent.parent / "datasets" / path.name, Environment.load(path)
    room.remember()
    practice = Perturbed(room) if options.perturbed else room
    sessions = sft(datasets / "sft.train.jsonl")
    policy = Policy(lexicon_of(sessions))
    imitated = [(1.0, choices_of(session, policy)) for session in sessions]
    contrasts = [(session.reward, choices_of(session, policy))
                 for _, session in logged(datasets / "trajectories.train.parquet", sessions[0].tools)]
    clone = policy.copy()
    fitted(clone, [(1.0, choices) for _, choices in contrasts], 12, 0.3, seed)
    train = sorted(task.task_id for task in room.tasks if task.split == "train")
    success: list[list[Floats]] = [[], []]
    refused = list[Refused]()
    unscored = 0.0
    for stage in STAGES:
        if stage == "sft":
            fitted(policy, imitated, 12, 0.3, seed)
        elif stage == "offline":
            contrasted(policy, contrasts, 2, 0.05, 0.5, seed)
        elif stage not in ("untrained", "cloned"):
            n_tasks = min(16, len(train))
            practised(policy, practice, train, options.rounds // PARTS, n_tasks, 8, RATE,  # type: ignore[arg-type]
                      seed * PARTS + STAGES.index(stage))
        grades = []
        for place, where in enumerate((room, real)):
            grades.append([graded(clone if stage == "cloned" else policy, where, task_id) for task_id in task_ids])
            success[place].append(np.array([float((grade.reward or 0.0) > PASSES) for grade in grades[-1]]))
        refused += [Refused(gates_of(grade), true.is_founded) for grade, true in zip(*grades, strict=True)
                    if (grade.reward or 0.0) <= PASSES < true.reward]
        unscored = float(np.mean([grade.reward is None for grade in grades[0]]))
    return Life(success, unscored, refused)


def graded(policy: Policy, where: Any, task_id: str) -> Any:
    """Return the grade of an episode with the likeliest choices."""
    play(policy, where, task_id, None)
    return where.grade()


def gates_of(grade: Any) -> str:
    """Return the kinds of the gates that stop an episode."""
    return " ".join(sorted({check.kind for check in grade.checks if check.role == "gate" and check.passed is False}))


def service_row(tuned: Tuned) -> dict[str, Any]:
    """Return what is printed of a service: success by stage in both places."""
    rates = tuned.success.mean(axis=(2, 3)).round(4)
    return {"service": tuned.name, "n_tasks": tuned.success.shape[3], "unscored": round(tuned.unscored, 4),
            "environment": dict(zip(STAGES, rates[0].tolist(), strict=True)),
            "real": dict(zip(STAGES, rates[1].tolist(), strict=True)),
            "disagree": round(float((tuned.success[0] != tuned.success[1]).mean()), 4)}


def figures(tuned: list[Tuned]) -> dict[str, Any]:
    """Return the figures over all services, each task counting once."""
    pooled = np.concatenate([each.success.mean(axis=2) for each in tuned], axis=2)   # place, stage, task
    rng = np.random.default_rng(0)
    n_tasks = pooled.shape[2]
    draws = rng.multinomial(n_tasks, np.full(n_tasks, 1 / n_tasks), DRAWS) / n_tasks
    shares: dict[str, Any] = {}
    for name, before in (("gain_transferred", "cloned"), ("online_transferred", "sft"), ("total_transferred", "untrained")):
        gains = pooled[:, STAGES.index(LAST)] - pooled[:, STAGES.index(before)]
        sampled = gains @ draws.T
        shares |= {name: ratio(gains.mean(axis=1)), f"{name}_low": quantile(sampled, 0.025),
                   f"{name}_high": quantile(sampled, 0.975),
                   f"{name.split('_')[0]}_environment": round(float(gains[0].mean()), 4),
                   f"{name.split('_')[0]}_real": round(float(gains[1].mean()), 4)}
    regrets = [regret(each.success[:, 1:, seed].mean(axis=2)) for each in tuned for seed in range(each.success.shape[2])]
    paid, true = np.concatenate([each.success.reshape(2, -1) for each in tuned], axis=1)
    refused = [one for each in tuned for one in each.refused]
    n_right, n_all = (sum(each.agreement[part] for each in tuned) for part in range(2))
    return {**shares, "tuning_regret": round(float(np.mean(regrets)), 4), "tuning_regret_worst": round(float(max(regrets)), 4),
            "paid_wrongly": round(float((paid > true).mean()), 4),
            "refused_wrongly": round(float((paid < true).mean()), 4),
            "refused_founded": round(sum(one.is_founded for one in refused) / len(paid), 4),
            "refused_by": dict(sorted(Counter(one.gates for one in refused).items())),
            "n_tasks": n_tasks, "n_services": len(tuned), "judge_agreement": round(n_right / n_all, 4)}


def ratio(gains: Floats) -> float | None:
    """Return the real gain over the gain in the environment, or None without one."""
    return round(float(gains[1] / gains[0]), 4) if gains[0] > 0 else None


def quantile(gains: Floats, share: float) -> float | None:
    """Return a quantile of the ratios of (place, draw); draws without a gain in the environment have none."""
    ratios = gains[1][gains[0] > 0] / gains[0][gains[0] > 0]
    return round(float(np.quantile(ratios, share)), 4) if len(ratios) else None


def regret(rates: Floats) -> float:
    """Return the best real rate minus the real rate of the best in the environment, of several such their mean."""
    return float(rates[1].max() - rates[1][rates[0] == rates[0].max()].mean())


if __name__ == "__main__":
    sys.exit(main())
