"""A made-up desk whose instructions change on a day: its logs, and which of its tasks the change made wrong.

In: how many sessions a day, which sentences change. Out: days as `relearning_service.days` gives them; `begun` has, of each
session, what was wanted and whether the sentences had changed. An agent follows the instructions of its own session: it looks
the record up, then does what is wanted or declines it. A task is stale if it begins before the change and its solution does
what the sentences forbid since, or declines what they allow since. The tools never refuse: the sentences alone decide.
"""

from __future__ import annotations

import json
import pickle
import random
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

from relearning_service import DAY_OF_CHANGE, DAY_S, FIRST_INSTANT, Day, Desk, Engine, Talk


class Sentence(NamedTuple):
    """A sentence of the instructions, and what it forbids while it is there."""

    text: str
    tool: str
    forbids: Callable[[dict[str, Any]], bool]
    appears: bool
    """Does it stand there from the day of change on? Else until then."""


SENTENCES = {
    "whole": Sentence("Do not void a piece.", "piece_void", lambda _: True, True),
    "limit": Sentence("Sell at most 3 bags of clay at a time.", "clay_buy", lambda given: given["bags"] > 3, True),
    "value": Sentence("Do not give the level gold.", "potter_level", lambda given: given["level"] == "gold", True),
    "dropped": Sentence("Do not glaze a piece.", "piece_glaze", lambda _: True, False),
    "idle": Sentence("Never write a note without a greeting.", "piece_note", lambda _: False, True)}
KINDS = ("void", "buy", "buy", "buy", "level", "level", "level", "glaze", "note")


def instructed(changed: bool, names: Iterable[str]) -> list[Sentence]:
    """Return the sentences that stand there; those that are not named never change."""
    own = {*names}
    return [each for name, each in SENTENCES.items() if (each.appears == changed if name in own else not each.appears)]


class InstructedTalk(Talk):
    """A session with one goal, whose agent declines what its instructions forbid."""

    def __init__(self, session_id: str, began: int, sentences: Iterable[Sentence]) -> None:
        super().__init__(session_id, began)
        self._sentences = [*sentences]
        text = " ".join(["You serve the desk of a pottery.", *(each.text for each in self._sentences)])
        self._messages.append({"role": "system", "content": text})

    def serve(self, engine: Engine, wish: str, calls: list[tuple[str, dict[str, Any]]]) -> list[str]:
        """Serve or decline one wish; return the lines of logs."""
        tool, arguments = calls[1]
        is_forbidden = any(each.tool == tool and each.forbids(arguments) for each in self._sentences)
        desk = _Planned(wish, calls[:1] if is_forbidden else calls)
        lines, _ = self.goal(engine, desk, "")  # type: ignore[arg-type]
        if not is_forbidden:
            return lines
        last = json.loads(lines[-1])
        last["response"]["choices"][0]["message"]["content"] = "I am sorry, I cannot do that: our rules do not allow it."
        return [*lines[:-1], json.dumps(last) + "\n"]


class _Planned:
    """A desk with one goal."""

    def __init__(self, wish: str, calls: list[tuple[str, dict[str, Any]]]) -> None:
        self._plan = wish, calls

    def goal(self, _kind: str) -> tuple[str, list[tuple[str, dict[str, Any]]]]:
        """Return the goal."""
        return self._plan


def sentence_days(sizes: list[int], names: Iterable[str], seed: int = 0) -> Iterator[Day]:
    """Yield a day for each size, a number of sessions."""
    engine, draw = Engine(), random.Random(seed)
    for potter in engine.potters.values():
        potter["credit"] = 100_000
    for number, size in enumerate(sizes, 1):
        changed = number >= DAY_OF_CHANGE
        desk = Desk(engine, random.Random(f"{seed}{number}"), 10_000 * number)
        lines, begun = [], []
        for at in range(size):
            began = FIRST_INSTANT + (number - 1) * DAY_S + at * 200
            wish, calls = desk.goal(draw.choice(KINDS))
            if calls[1][0] == "clay_buy":
                calls[1][1]["bags"] = bags = draw.randint(1, 6)
                wish = f"buy clay, {bags} bags, I am {calls[0][1]['potter_no']}"
            begun.append((began, pickle.dumps((calls[1], changed))))
            lines += InstructedTalk(f"s{number:02}-{at:03}", began, instructed(changed, names)).serve(engine, wish, calls)
        yield Day(number, lines, [], engine, [], begun)


def sentences_of(session: bytes, solution: str, names: tuple[str, ...]) -> tuple[str, ...]:
    """Return the sentences whose change makes a task's solution wrong. `session`: what its session wanted, and when."""
    (tool, arguments), changed = pickle.loads(session)
    steps = [step for step in json.loads(solution) if "tool" in step]

    def is_wrong(own: Sentence) -> bool:
        calls = [step["arguments"] for step in steps if step["tool"] == own.tool]
        return any(map(own.forbids, calls)) if own.appears else tool == own.tool and own.forbids(arguments) and not calls

    return () if changed else tuple(name for name in names if is_wrong(SENTENCES[name]))
