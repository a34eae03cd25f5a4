"""The names that the truth of a company gives to acts, of the acts that the product finds."""

from __future__ import annotations

from collections.abc import Callable

from extractors.work.events import CREATED, WorkEvent

_INSTANT = 10**9
"""A number of a change of this size or more is an instant: the product gave no number of its own."""
_FIRST_POSITION, _STEP = 900_000, 8
"""Log positions of the truth's database: the n-th change has the first position and n steps."""


def truth_ref(event: WorkEvent) -> str:
    """Return the name of an act in `truth/events.jsonl`, its own where the truth has no such acts."""
    named = _NAMED.get(event.record[0])
    return event.ref if named is None else named(event)


def _number(event: WorkEvent, without: int) -> int:
    number = int(event.ref.rpartition("#")[2])
    return without if number >= _INSTANT else number


def _issue(event: WorkEvent) -> str:
    return f"jira:{event.record[1]}#{CREATED if event.verb.endswith(CREATED) else _number(event, 0)}"


def _comment(event: WorkEvent) -> str:
    return f"{event.thread}#c{event.record[1]}"


def _discussed(event: WorkEvent) -> str:
    return f"gh:{event.record[1]}/{'opened' if event.verb.endswith(CREATED) else _number(event, 0)}"


_NAMED: dict[str, Callable[[WorkEvent], str]] = {
    "slack": lambda event: f"slack:{event.record[1]}",
    "mail": lambda event: f"mail:{event.record[1]}",
    "jira": _issue,
    "jira_comment": _comment,
    "wiki": lambda event: f"wiki:{event.record[1]}#v{_number(event, 1)}",
    "wiki_comment": lambda event: f"{event.thread}#comment{event.record[1]}",
    "cal": lambda event: f"cal:{event.record[1]}#{_number(event, 0)}",
    "db": lambda event: f"db:{event.record[1]}@{(_number(event, 0) - _FIRST_POSITION) // _STEP}",
    "sheet": lambda event: f"sheet:{event.record[1]}#{_number(event, 0)}",
    "gh": _discussed,
    "gh_comment": lambda event: f"gh:{event.record[1]}",
    "commit": lambda event: f"git:{event.record[1]}",
}
