"""Lists that are known whole, beside the calls that may select from them.

In: all steps of a service. Out: for each call, what the questions that answer with lists were last known to answer at that
moment: in the same session with no act between, else (where every session begins anew, and before any act) what nearly all
sessions were answered. Sees: lists in answers (`runtime/lists.py`). Does not see: a list that acts changed since.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from itertools import groupby
from typing import NamedTuple

from env_builder.runtime.lists import Listing, read
from env_builder.runtime.world import SURE
from env_builder.world.calls import Call
from env_builder.world.replay import Step

MINIMUM_ELEMENTS = 2
MINIMUM_SESSIONS = 3
MOST_SOURCES = 12
"""Questions that are tried as sources, those of most sessions first."""
Question = tuple[str, str]
"""(tool, canonical arguments)"""


class Moment(NamedTuple):
    """A call, and what lists were known when it was made."""

    call: Call
    lists: dict[Question, str]


class Sources:
    """All calls of a service beside the lists known at their moment."""

    def __init__(self, steps: Iterable[Step], reset: bool) -> None:
        ordered = list(steps)
        self.arguments: dict[Question, dict[str, object]] = {}
        said: dict[Question, dict[str, str]] = defaultdict(dict)
        for step in ordered:
            if not step.acting and not step.call.failed and not step.after and _long(step.call.content):
                question = (step.call.tool, step.call.key)
                said[question].setdefault(step.call.session_id, step.call.content)
                self.arguments[question] = step.call.arguments
        often = sorted((-len(seen), question) for question, seen in said.items() if len(seen) >= MINIMUM_SESSIONS)
        self.questions = [question for _, question in often][:MOST_SOURCES]
        base = {question: text for question in self.questions for text in [_agreed(list(said[question].values()))]
                if reset and text is not None}
        self._moments: dict[str, list[Moment]] = defaultdict(list)
        for _, session in groupby(ordered, key=lambda step: step.call.session_id):
            self._follow(session, base)

    def moments(self, tool: str) -> list[Moment]:
        """The calls of a tool."""
        return self._moments[tool]

    def _follow(self, session: Iterable[Step], base: dict[Question, str]) -> None:
        known = base
        for step in session:
            question = (step.call.tool, step.call.key)
            self._moments[step.call.tool].append(Moment(step.call, known))
            if step.act:
                known = {}
            elif question in self.questions and not step.call.failed:
                known = {**known, question: step.call.content}


def _long(content: str) -> bool:
    found = listing(content)
    return found is not None and len(found.values) >= MINIMUM_ELEMENTS


def listing(content: str) -> Listing | None:
    """The list of a text."""
    return read(content) if content[:1] in ("[", "{", "-") else None


def _agreed(texts: list[str]) -> str | None:
    best = max(sorted(set(texts)), key=texts.count)
    return best if texts.count(best) >= SURE * len(texts) else None
