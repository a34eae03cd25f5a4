"""First looks: what a session was told before it may have changed anything."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from env_builder.world.calls import LoggedCall

Question = tuple[str, str]
"""(tool, canonical arguments)."""


def first_looks(calls: list[LoggedCall], suspects: set[str]) -> Iterator[LoggedCall]:
    """Yield the first call of each question, up to the first one that may have changed something."""
    questions: set[Question] = set()
    for call in calls:
        if (call.tool, call.key) not in questions:
            questions.add((call.tool, call.key))
            yield call
        if call.tool in suspects and not call.failed:
            return


def suspects_of(sessions: list[list[LoggedCall]]) -> set[str]:
    """Return the fewest tools that explain all answers which changed within a session."""
    changed: list[set[str]] = []
    n_changed, n_calm = Counter[str](), Counter[str]()
    for own in sessions:
        last: dict[Question, int] = {}
        for place, call in enumerate(own):
            if call.failed:
                continue
            question = call.tool, call.key
            if question in last:
                others = (other for other in own[last[question] + 1:place] if not other.failed)
                between = {other.tool for other in others if other.tool != call.tool}
                if own[last[question]].content != call.content:
                    changed.append(between)
                    n_changed.update(between)
                else:
                    n_calm.update(between)
            last[question] = place
    suspects: set[str] = set()
    while unexplained := Counter(tool for between in changed if not between & suspects for tool in between):
        blame = {tool: n * n_changed[tool] / (n_changed[tool] + n_calm[tool]) for tool, n in sorted(unexplained.items())}
        suspects.add(max(blame, key=lambda tool: blame[tool]))
    return suspects
