"""Answers that sessions got which had been told the same and done the same since: `precedent` rules (docs/behaviour.md).

In: a rule, a call, and the session's calls before it. Out: (answer, whether it fails), or None. A session stands in a situation
towards each question that it was answered: the question, the answer, and the calls since then that may have done something.
The rule has the situations in which sessions on record were answered this call alike.
Sees: what a session was told itself. Does not see: what nobody told it, such as what it began with.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

from .canonical import canonical, digest

LENGTH = 16
"""Digits of a situation's digest that are kept: among millions of situations two rarely share them."""
MOST_CALLS = 64
"""Calls of a session that are looked at, the latest ones."""


class PastCall(NamedTuple):
    """A call of the session with its answer."""

    tool: str
    key: str
    """Canonical arguments."""
    content: str | None
    """None: nobody knows the answer."""
    failed: bool


PastCalls = tuple[PastCall, ...]


def followed(past: PastCalls, call: PastCall) -> PastCalls:
    """Return the latest calls after one more."""
    return (*past[1 - MOST_CALLS:], call)


def situations(tool: str, key: str, past: PastCalls, keeps: frozenset[str]) -> Iterator[str]:
    """Yield the situations in which a call is made, from the last answer back. `keeps`: tools that do nothing to what others
    show."""
    questions: set[tuple[str, str]] = set()
    since: list[list[str]] = []
    for call in reversed(past):
        question = (call.tool, call.key)
        if question not in questions:
            questions.add(question)
            if call.content is not None:
                yield digest(canonical([tool, key, *question, call.content, since]))[:LENGTH]
        if call.tool not in keeps and not call.failed:
            since.append([call.tool, call.key])


def precedent(rule: dict[str, Any]) -> Callable[[Iterable[str]], tuple[str, bool] | None]:
    """Return the rule as a function of situations: the one answer that those on record had, None where they had several."""
    rows: dict[str, int] = rule["situations"]
    answers = [(content, is_error) for content, is_error in rule["answers"]]

    def find(here: Iterable[str]) -> tuple[str, bool] | None:
        places = {rows[each] for each in here if each in rows}
        return answers[places.pop()] if len(places) == 1 else None

    return find
