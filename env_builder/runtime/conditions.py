"""Tools as they are in production: they take time, now and then one fails by itself, sessions run out, and long listings
come in pages. Off unless a rollout asks for it.

Goes in: rows of conditions.jsonl, a seed, and what is switched on. Comes out, for the n-th step of an episode: a failure in the
place of an answer, or none; and how long the tool takes. The same seed, step and call give the same. Nobody waits: the time is
told, and whoever plays may sleep.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable
from typing import Any

from . import guises
from .canonical import canonical
from .pages import page
from .records import Result
from .renaming import Renaming

SWITCHES = ("expiry", "faults", "fresh", "latency", "pages", *guises.SWITCHES)
"""`fresh` lets tools answer that draw names at random or read a clock: with names and times of this episode's own."""


class Conditions:
    """What an episode draws from."""

    def __init__(self, rows: Iterable[dict[str, Any]] = (), seed: int = 0, switches: Iterable[str] = ()) -> None:
        self._rows = {row["tool"]: row for row in rows}
        self.seed = seed
        self.switches = tuple(sorted(switches))
        unknown = sorted(set(self.switches) - set(SWITCHES))
        if unknown:
            raise ValueError(f"no condition {unknown[0]!r} to switch on; there are: {', '.join(SWITCHES)}")

    def switched(self, seed: int, switches: Iterable[str]) -> Conditions:
        """The same tools, for another episode."""
        switches = tuple(switches)
        if seed == self.seed and switches == self.switches:
            return self
        return Conditions(self._rows.values(), seed, switches)

    def answer(
        self, journal: list[dict[str, Any]], tool: str, arguments: dict[str, Any],
        call: Callable[[str, dict[str, Any]], Result],
    ) -> tuple[Result, dict[str, Any]]:
        """What `call` answers, or the failure that keeps the call from getting there; and what was drawn, for the journal."""
        step = len(journal)
        fault = self.fault(step, tool, arguments)
        expired = None if fault else self.expired(journal, tool, arguments)
        took = self.latency_ms(step, tool, arguments)
        result = fault or expired or call(tool, arguments)
        page = None if fault or expired else self.page(tool, arguments, result, lambda others: call(tool, others))
        drawn = {**({"fault": True} if fault else {}), **({"expired": True} if expired else {}),
                 **({"paged": True} if page else {}), **({} if took is None else {"latency_ms": took})}
        return page or result, drawn

    def fault(self, step: int, tool: str, arguments: dict[str, Any]) -> Result | None:
        """The failure that this call meets, or None. Its tier is `induced`: the text is the log's, its hour is drawn."""
        row = self._rows.get(tool)
        if "faults" not in self.switches or row is None or not row["faults"]:
            return None
        draw = self._draw("fault", step, tool, arguments)
        if draw.random() >= row["fault_rate"]:
            return None
        return _told(draw, row["faults"], arguments)

    def expired(self, journal: list[dict[str, Any]], tool: str, arguments: dict[str, Any]) -> Result | None:
        """The refusal that this call meets because the session has run out since it was last renewed, or None.

        `journal`: the steps before it; those refused so have `expired`.
        """
        for renewing, row in self._rows.items() if "expiry" in self.switches else ():
            expiry = row.get("expiry")
            if expiry is None or tool not in expiry["tools"]:
                continue
            since = max((at for at, step in enumerate(journal) if _renews(step, renewing)), default=-1)
            steps = [step for step in journal[since + 1:] if step.get("tool") in expiry["tools"]]
            life = sum(not step["is_error"] for step in steps)
            hazard = dict(map(tuple, expiry["hazards"])).get(life, expiry["beyond"])
            draw = self._draw("expiry", len(journal), tool, arguments)
            if any(step.get("expired") for step in steps) or draw.random() < hazard:
                return _told(draw, expiry["messages"], arguments)
        return None

    def passes(self, tool: str, arguments: dict[str, Any], content: str) -> bool:
        """Is it a failure that passed by itself wherever it was seen? Then it says nothing of the call."""
        return any(_text(each["content"], arguments) == content for each in self._rows.get(tool, {}).get("faults", ()))

    def page(
        self, tool: str, arguments: dict[str, Any], result: Result, ask: Callable[[dict[str, Any]], Result]
    ) -> Result | None:
        """The page that the real tool would give in the place of `result`, or None. `ask`: the room."""
        turning = self._rows.get(tool, {}).get("pages") if "pages" in self.switches else None
        return page(turning, arguments, result, ask, self.seed) if turning else None

    def guise(self, ids: Callable[[], frozenset[str]]) -> guises.Guise | None:
        """What the agent sees in the place of the room's names and orders; `ids`: forms of the world's ids."""
        if not set(self.switches) & set(guises.SWITCHES):
            return None
        places = {tool: row["shuffled"] for tool, row in self._rows.items() if "shuffled" in row}
        renaming = Renaming(ids(), self.seed) if "rebound" in self.switches else None
        return guises.Guise(self.seed, renaming, places if "shuffled" in self.switches else {})

    def latency_ms(self, step: int, tool: str, arguments: dict[str, Any]) -> float | None:
        """Milliseconds that this call takes, None where that is switched off or was never seen."""
        quantiles = self._rows.get(tool, {}).get("latency_ms")
        if "latency" not in self.switches or not quantiles:
            return None
        place = self._draw("latency", step, tool, arguments).random() * (len(quantiles) - 1)
        low = int(place)
        took: float = quantiles[low] + (place - low) * (quantiles[low + 1] - quantiles[low])
        return round(took, 3)

    def _draw(self, what: str, step: int, tool: str, arguments: dict[str, Any]) -> random.Random:
        return random.Random(canonical([self.seed, what, step, tool, arguments]))


def _renews(step: dict[str, Any], renewing: str) -> bool:
    """Was the tool that renews called, and did it work, as far as anybody knows?"""
    return step.get("tool") == renewing and (not step["is_error"] or step["tier"] == "unknown")


def _told(draw: random.Random, messages: list[dict[str, Any]], arguments: dict[str, Any]) -> Result:
    parts = draw.choices([each["content"] for each in messages], [each["share"] for each in messages])[0]
    return Result(_text(parts, arguments), True, "induced")


def _text(parts: list[Any], arguments: dict[str, Any]) -> str:
    return "".join(part if isinstance(part, str) else str(arguments.get(part[0], "")) for part in parts)
