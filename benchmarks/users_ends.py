"""Play the log's agents against the scripted users of their tasks: does the share that ends well agree with the log's?

In: OUT of a run. Each agent of a task's sessions makes its recorded steps, good and bad ones alike, but it knows of the user
only what the user has said in this episode: a call waits for each value that only the user can tell, and the agent asks for it
by the argument's name, `TRIES` times at most; without it the call is not made. Before its recorded words it says `BEFORE`, so
that no recorded reply fits and the user has to answer what it hears. In the log a session ended well if its probability is at
least .5. Out: shares over the scored episodes, and their paired difference with a 95 % interval over sessions (bootstrap);
`values_heard`: of the values that only the user could tell, those that it told with both switches on.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from env_builder.runtime import Environment
from env_builder.runtime.canonical import canonical
from env_builder.users import values_of

BEFORE = "Thank you for your patience."
TRIES = 2
SEEDS = 1, 2, 3
LIVELY = "habits", "wordings"
N_SAMPLES = 2000


class LoggedSession(NamedTuple):
    """What an agent of the log did in a task, and whether that ended well."""

    task_id: str
    steps: list[dict[str, Any]]
    is_good: bool


def ends(out: Path, most: int) -> dict[str, Any]:
    """Return the figures; of each environment at most so many sessions."""
    plain, lively, logged = [], [], []
    values: Counter[str] = Counter()
    for path in sorted((out / "environments").iterdir()):
        environment = Environment.load(path)
        sessions = sorted(sessions_of(out / "rewards" / path.name), key=canonical)
        for session in sessions[:most]:
            without = _rewards(environment, session, (), Counter())
            with_habits = _rewards(environment, session, LIVELY, values)
            if None not in (*without, *with_habits):
                plain.append(np.mean([reward == 1.0 for reward in without]))
                lively.append(np.mean([reward == 1.0 for reward in with_habits]))
                logged.append(float(session.is_good))
    if not logged:
        return {"n_ended": 0}
    shares = {"ends_well_log": logged, "ends_well": lively, "ends_well_off": plain}
    return {**{name: _mean(values) for name, values in shares.items()},
            "ends_well_difference": _mean(lively, logged), "ends_well_interval": _interval(lively, logged),
            "ends_well_difference_off": _mean(plain, logged), "ends_well_interval_off": _interval(plain, logged),
            "values_heard": round(values["heard"] / values["needed"], 4) if values["needed"] else None,
            "n_values": values["needed"], "n_ended": len(logged)}


def sessions_of(rewards: Path) -> Iterator[LoggedSession]:
    """Yield the sessions of an environment's published tasks: known solutions, and all others."""
    for line in (rewards / "solutions.jsonl").read_text("utf-8").splitlines():
        row = json.loads(line)
        yield LoggedSession(row["task_id"], row["steps"], True)
    for line in (rewards / "sessions.jsonl").read_text("utf-8").splitlines():
        row = json.loads(line)
        if row["probability"] is not None:
            yield LoggedSession(row["task_id"], row["steps"], row["probability"] >= 0.5)


def _rewards(
    environment: Environment, session: LoggedSession, switches: tuple[str, ...], values: Counter[str]
) -> list[float | None]:
    return [_played(environment, session, seed, switches, values) for seed in (SEEDS if switches else SEEDS[:1])]


def _played(
    environment: Environment, session: LoggedSession, seed: int, switches: tuple[str, ...], values: Counter[str]
) -> float | None:
    """Return the reward of one episode. `values`: counts those that the calls need of the user, and those that it tells."""
    environment.reset(session.task_id, seed=seed, perturbations=switches)
    task = next(one for one in environment.tasks if one.task_id == session.task_id)
    before = "\n".join(message["content"] for message in task.opening if message["role"] == "user").casefold()
    tellable = "\n".join(task.user_turns).casefold()
    heard, shown, needed = [before], list[str](), dict[str, bool]()
    for step in session.steps:
        if "say" in step:
            heard.append((environment.say(f"{BEFORE} {step['say']}") or "").casefold())
            continue
        own = {value: name for name, value in values_of(canonical(step["arguments"]))
               if value in tellable and value not in before and not any(value in text for text in shown)}
        for value, name in own.items():
            for _ in range(TRIES):
                if not any(value in text for text in heard):
                    heard.append((environment.say(f"Could you tell me the {name.replace('_', ' ')}?") or "").casefold())
            needed[value] = any(value in text for text in heard)
        if all(needed[value] for value in own):
            shown.append(environment.call(step["tool"], step["arguments"]).content.casefold())
    environment.finish()
    values.update(needed=len(needed), heard=sum(needed.values()))
    return environment.grade().reward


def _mean(values: list[Any], less: Sequence[float] = (0.0,)) -> float:
    return round(float(np.mean(values) - np.mean(less)), 4)


def _interval(ours: list[Any], logged: list[float]) -> list[float]:
    """Return the 95 % interval of the mean paired difference, by resampled sessions."""
    differences = np.array(ours) - np.array(logged)
    rng = np.random.default_rng(0)
    means = rng.choice(differences, (N_SAMPLES, len(differences))).mean(axis=1)
    return [round(float(each), 4) for each in np.quantile(means, (0.025, 0.975))]
