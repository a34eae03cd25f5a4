"""Arguments of tools that are deep, giant, no numbers or not the recorded type: each call is answered, and its journal
replays alike."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from env_builder.runtime import Environment
from tests.attacks.report import Report
from tests.rooms import TASK, write_rewards, write_room


def deep(depth: int) -> Any:
    """Return a value of great depth."""
    value: Any = "7"
    for _ in range(depth):
        value = [value]
    return value


VALUES: tuple[Any, ...] = (
    float("nan"),
    float("inf"),
    1e308,
    -0.0,
    10**400,
    10**5_000,
    True,
    None,
    "",
    "7" * 100_000,
    "\ud800",
    "\x00",
    {"__proto__": {"door": "7"}},
    {"__class__": "x"},
    [["7"]],
    {"": ""},
    {"a" * 10_000: 1},
    {str(n): n for n in range(5_000)},
    "７",
    "Ⅶ",
    "٧",
    "7\u0000",
    "7\n",
    {"door": "7", "Door": "8"},
    b"7".decode(),
    list(range(10_000)),
)


def attack(folder: Path, share: float) -> Report:
    """Call with each value, grade, and grade the journal again after it went through JSON."""
    room = write_room(folder / "out" / "environments" / "hall")
    write_rewards(room)
    problems, values = [], [*VALUES, deep(50), deep(400), deep(900)]
    for value in values:
        environment = Environment.load(room)
        environment.reset(TASK)
        try:
            environment.call("open_door", {"door": value})
            environment.call("read_sign", {"at": value, str(value)[:50]: value} if not isinstance(value, list) else value)
            environment.finish()
            reward = environment.grade().reward
            again = environment.grade_journal(TASK, json.loads(json.dumps(list(environment.journal)))).reward
        except (ValueError, TypeError) as error:
            again = reward = None
            problems += (
                [f"{str(value)[:40]!r}: {type(error).__name__}: {str(error)[:100]}"] if isinstance(error, TypeError) else []
            )
        except Exception as error:
            problems.append(
                f"{type(value).__name__}: {type(error).__name__}: {str(error)[:100]}"
            )
            continue
        is_right = value == "7"
        problems += (
            [f"{str(value)[:40]!r} earns {reward}, and then {again}"] if reward != again or (reward and not is_right) else []
        )
    return Report(len(values), tuple(problems))


def test_every_argument_is_answered(tmp_path: Path) -> None:
    assert attack(tmp_path, 0.01).problems == ()
