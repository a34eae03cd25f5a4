"""Scoring of answers: exact, wrong or unknown, counted by whatever sets calls apart.

An answer is exact when its bytes are the real tool's; dates and times may differ by one offset that holds through a session
(a tool that stamps the clock), and nothing else may.
"""

from __future__ import annotations

import json
import re
from collections import Counter, defaultdict
from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Any, NamedTuple

_INSTANT = re.compile(r"\d{4}-\d{2}-\d{2}(?:[T ]\d{2}:\d{2}(?::\d{2}(?:\.\d{1,6})?)?(?:Z|[+-]\d{2}:?\d{2})?)?")


class Call(NamedTuple):
    """A real tool's answer to a call."""

    service: str
    session_id: str
    tool: str
    arguments: dict[str, Any]
    content: str
    is_error: bool
    at: str | None = None
    """ISO instant of the call, None where the log has no clock."""

    @property
    def key(self) -> str:
        """The arguments, whatever their order."""
        return json.dumps(self.arguments, sort_keys=True)


class Clock:
    """The one offset by which a session's dates and times may differ."""

    def __init__(self) -> None:
        self.offset: timedelta | None = None

    def same(self, content: str, real: str) -> bool:
        """Is the answer the real one, but for the offset?"""
        if content == real:
            return True
        if _INSTANT.sub("·", content) != _INSTANT.sub("·", real):
            return False
        for ours, theirs in zip(_INSTANT.findall(content), _INSTANT.findall(real), strict=True):
            if ours == theirs:
                continue
            apart = _apart(ours, theirs)
            if apart is None or len(ours) != len(theirs) or (self.offset is not None and apart != self.offset):
                return False
            self.offset = apart
        return True


def _apart(one: str, other: str) -> timedelta | None:
    try:
        return datetime.fromisoformat(one) - datetime.fromisoformat(other)
    except (ValueError, TypeError):
        return None


class Decision(NamedTuple):
    """What became of one call."""

    exact: bool
    """But for the clock's offset."""
    bytes_exact: bool
    unknown: bool
    is_error: bool
    """What was answered says that the call failed."""
    cassette: str
    """exact, wrong or unknown: what the latest recording of the same call says."""
    tellable: bool
    """Could the log have told?"""

    @property
    def name(self) -> str:
        """exact, wrong or unknown."""
        return "unknown" if self.unknown else "exact" if self.exact else "wrong"


def whole(decisions: list[Decision]) -> Decision:
    """Return the decision on a sequence of calls: exact where all are, unknown where one is and none is wrong."""
    names = {each.name for each in decisions}
    taped = {each.cassette for each in decisions}
    worst = next((name for name in ("wrong", "unknown") if name in taped), "exact")
    return Decision(
        names == {"exact"}, all(each.bytes_exact for each in decisions), names == {"unknown", "exact"} or names == {"unknown"},
        False, worst, all(each.tellable for each in decisions))


class Tally:
    """Decisions of calls, counted under names."""

    def __init__(self) -> None:
        self._counts: dict[str, Counter[str]] = defaultdict(Counter)

    def add(self, decision: Decision, names: Iterable[str]) -> None:
        """Count a decision under each of the names."""
        for name in names:
            count = self._counts[name]
            count["n"] += 1
            count[decision.name] += 1
            count["bytes"] += decision.bytes_exact and not decision.unknown
            count["cassette_" + decision.cassette] += 1
            count["tellable"] += decision.tellable
            count["won"] += decision.name == "exact" != decision.cassette
            count["lost"] += decision.cassette == "exact" != decision.name

    def count(self, name: str) -> Counter[str]:
        """n, exact, wrong, unknown, bytes, tellable, cassette_exact, cassette_wrong, cassette_unknown; `won` and `lost`: exact
        here and not on the cassette, and the reverse."""
        return self._counts[name]

    def names(self, prefix: str) -> list[str]:
        """Return the names that begin so, sorted."""
        return sorted(name for name in self._counts if name.startswith(prefix))

    def table(self) -> str:
        """One line a name."""
        lines = [f"{'':44} {'n':>6} {'exact':>6} {'wrong':>6} {'unkn.':>6}   {'cassette':>8} {'ceiling':>7}"]
        for name, count in sorted(self._counts.items()):
            exact, wrong, unknown, tape, could = (
                share(count[part], count["n"]) for part in ("exact", "wrong", "unknown", "cassette_exact", "tellable"))
            lines.append(f"{name[:44]:44} {count['n']:6} {exact:6.3f} {wrong:6.3f} {unknown:6.3f}   {tape:8.3f} {could:7.3f}")
        return "\n".join(lines)

    def answered(self, name: str, figure: str = "") -> dict[str, float]:
        """How much was answered, and how much of that exactly; beside the cassette and the ceiling."""
        count = self._counts[name]
        n, n_answered = count["n"], count["exact"] + count["wrong"]
        taped = count["cassette_exact"] + count["cassette_wrong"]
        return {
            f"answered{figure}": share(n_answered, n), f"exact_of_answered{figure}": share(count["exact"], n_answered),
            f"wrong{figure}": share(count["wrong"], n), f"n_calls{figure}": n,
            f"cassette_answered{figure}": share(taped, n),
            f"cassette_exact_of_answered{figure}": share(count["cassette_exact"], taped),
            f"ceiling_answered{figure}": share(count["tellable"], n)}

    def of_all(self, name: str, figure: str) -> dict[str, float]:
        """Exact of all calls; beside the cassette and the ceiling."""
        count = self._counts[name]
        return {
            figure: share(count["exact"], count["n"]), f"cassette_{figure}": share(count["cassette_exact"], count["n"]),
            f"ceiling_{figure}": share(count["tellable"], count["n"]), f"n_{figure}": count["n"]}

    def of_answered(self, name: str, figure: str) -> dict[str, float]:
        """Exact of what was answered, and of how many."""
        count = self._counts[name]
        n_answered, taped = count["exact"] + count["wrong"], count["cassette_exact"] + count["cassette_wrong"]
        return {figure: share(count["exact"], n_answered), f"cassette_{figure}": share(count["cassette_exact"], taped),
                f"n_{figure}": n_answered}


def share(part: float, whole: float) -> float:
    """Return a quotient of counts to four digits; 0 where there is nothing to count."""
    return round(part / whole, 4) if whole else 0.0


class Cassette:
    """The plain peer: exactly the calls on record, the latest before."""

    def __init__(self, calls: Iterable[Call] = ()) -> None:
        self._taped: dict[tuple[str, str, str], list[tuple[str, str]]] = defaultdict(list)
        for call in calls:
            self.add(call)

    def add(self, call: Call) -> None:
        """Record a call."""
        self._taped[call.service, call.tool, call.key].append((call.at or "", call.content))

    def decision(self, call: Call, clock: Clock) -> str:
        """exact, wrong or unknown: the latest recording before the call's instant (any, where there is no clock)."""
        recordings = [
            (at, text) for at, text in self._taped.get((call.service, call.tool, call.key), ())
            if call.at is None or at <= call.at]
        if not recordings:
            return "unknown"
        latest = max(enumerate(recordings), key=lambda each: (each[1][0], each[0]))[1][1]
        return "exact" if clock.same(latest, call.content) else "wrong"
