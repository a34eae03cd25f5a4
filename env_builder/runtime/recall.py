"""What of a log's answers still answers a call: after the acts of an episode that matter to it.

In: a question, the acts so far. Out: the answer on record, None where there is none, or where an act may have changed it.
"""

from __future__ import annotations

from typing import Any

from .acts import FEW, UNKNOWN
from .answers import parsed
from .canonical import canonical
from .looks import Looking
from .relevance import listed_in, names
from .taught import UNTAUGHT
from .world import Name, Row, agreed_on

ONLY_KEEPS = {"keeps"}
"""What is seen of acts and a tool where none of them ever matters to it."""


class Recalling(Looking):
    """An episode that is asked what was asked before; `Room` is one."""

    __slots__ = ()

    def said(self, tool: str) -> list[tuple[dict[str, Any], str]]:
        """(arguments, answer) of the tool's calls that the real one answered in this session."""
        return self._taught.said.get(tool, [])

    def answered(self, tool: str, arguments: dict[str, Any]) -> list[tuple[dict[str, Any], str]]:
        """(arguments, answer) of all known questions to the tool; none where an act of the episode matters to this one."""
        if self.after(tool, arguments) != []:
            return []
        asked = dict.fromkeys((*self._world.asked.get(tool, ()), *(key for who, key in self._taught.answers if who == tool)))
        told = ((key, self._told((tool, key), [])) for key in asked)
        return [(parsed(key), row["content"]) for key, row in told if row is not None]

    def shown(self, tool: str, arguments: dict[str, Any]) -> str | None:
        """What the question is known to answer now, None where it is not on record or fails."""
        row = self.recorded(tool, canonical(arguments), arguments)
        return None if row is None or row["is_error"] else str(row["content"])

    def recorded(self, tool: str, key: str, arguments: dict[str, Any]) -> Row | None:
        """The answer on record, after the acts of this episode that matter to it."""
        if not self.acts and self._taught is UNTAUGHT:
            return self._world.answer((tool, key), self.view, [])
        after = self.after(tool, arguments)
        if after is None:
            return None
        row = self._told((tool, key), after) or (self._repeated((tool, key), after) if after else None)
        return None if row is None or (self.acts and self._outdated(tool, row)) else row

    def _outdated(self, tool: str, row: Row) -> bool:
        """Did an act since then name something that the answer shows, of a tool that is known to change such answers?"""
        if self._programs.get(tool, UNKNOWN).get("class") is not None:
            return False
        shown = listed_in(row["content"])
        return any(
            self._programs.relation(act.tool, tool) == "changes" and [act.tool, act.key] not in row["after"]
            for act in (self._acts_naming(shown, row.get("acts", 0)) if shown else ()) if not act.names.isdisjoint(shown))

    def _told(self, question: Name, after: list[list[str]]) -> Row | None:
        """What was answered to the question after just these acts."""
        taught = self._taught.answers.get(question)
        if taught is None:
            return self._world.answer(question, self.view, after)
        taught = [row for row in taught if row["after"] == after]
        own = [row for row in taught if row["session"] is None]
        if own:
            return own[-1]
        found = self._world.answer(question, self.view, after)
        if found is not None or not taught:
            return found
        return agreed_on(taught + self._world.told_once(question, after))

    def _repeated(self, question: Name, after: list[list[str]]) -> Row | None:
        """What a call that was made several times over answers once more, where making it again changed nothing before."""
        own = list(question)
        others = [act for act in after if act != own]
        for n in range(len(after) - len(others) - 1, 0, -1):
            last, before = (self._told(question, sorted(others + [own] * count)) for count in (n, n - 1))
            if last is not None:
                return last if before is not None and before["content"] == last["content"] else None
        return None

    def examples(self, tool: str, arguments: dict[str, Any]) -> list[tuple[str, str]]:
        """(canonical arguments, answer) of the nearest calls on record."""
        near = self._world.nearest(tool, canonical(arguments))
        return [(asked, self._world.answers[tool, asked][0]["content"]) for asked in near]

    def after(self, tool: str, arguments: dict[str, Any]) -> list[list[str]] | None:
        """The acts so far that matter to this call, sorted; None where one of them was not answered."""
        if not self.acts:
            return []
        bearing = self._programs.bearing
        if len(self.acts) <= FEW and {bearing(act.tool, tool) for act in self.acts} == ONLY_KEEPS:
            return []
        words = names(arguments)
        relevant = [act for act in self._acts_naming(words) if act.matters(bearing(act.tool, tool), words)]
        return sorted([act.tool, act.key] for act in relevant) if all(act.known for act in relevant) else None
