"""Pull requests and issues of a repository as of an instant, and what an episode writes on them.

In: host.jsonl {"class": "pull_request" or "issue", "number", "from", "to", "value"}: what the log shows of each, from one event
to the next. Out: answers of the tools that list, get and comment. Nothing is visible that happened after the instant; without
an instant nothing is. A number below the highest one that the log does not show exists, and is unknown.

Standard library only.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from ..canonical import canonical
from ..records import Tier
from ..schemas import Schema, fields

PULL_REQUEST, ISSUE = "pull_request", "issue"
"""Classes of the entities."""
AUTHOR = "agent"
"""Who writes in an episode."""
MOST_LISTED = 100
FILE = "host.jsonl"
Name = tuple[str, str]
Written = Mapping[Name, str]
"""What an episode wrote: (class, number) -> JSON text; nobody changes it."""
NUMBER: Schema = {"type": "integer", "minimum": 1}
_LISTED = fields(state={"type": "string", "enum": ["open", "closed", "merged"]}, before=NUMBER)
_LATEST = f"the {MOST_LISTED} latest, or with `before` those of lower numbers"
_READS = {
    PULL_REQUEST: {
        "list_prs": (f"List pull requests: {_LATEST}.", _LISTED, False),
        "get_pr": ("Show a pull request with its comments and reviews.", fields("number", number=NUMBER), False)},
    ISSUE: {
        "list_issues": (f"List issues: {_LATEST}.", _LISTED, False),
        "get_issue": ("Show an issue with its comments.", fields("number", number=NUMBER), False)}}
_COMMENT = ("Comment on a pull request or an issue.",
            fields("number", "body", number=NUMBER, body={"type": "string", "minLength": 1}), True)
_WORDS = {PULL_REQUEST: "pull request", ISSUE: "issue"}


class InvalidCall(Exception):
    """A call that makes no sense in this workspace; its text is the answer."""

    tier: Tier = "derived"


class NotLogged(InvalidCall):
    """A call that asks for what the log does not show."""

    tier = "unknown"


class HostRecords:
    """What is known of the pull requests and issues of a repository, at any time."""

    def __init__(self, rows: Iterable[Mapping[str, Any]]) -> None:
        self._rows = [(instant_of(row["from"]), instant_of(row["to"]), (str(row["class"]), str(row["number"])),
                       canonical(row["value"])) for row in rows]
        kinds = {name[0] for _, _, name, _ in self._rows}
        self.tools: dict[str, tuple[str, Schema, bool]] = {
            name: tool for kind, tools in _READS.items() if kind in kinds for name, tool in tools.items()}
        """Tools for the classes that the log shows: name -> description, schema of the arguments, whether it writes."""
        if kinds:
            self.tools["comment"] = _COMMENT

    def at(self, instant: str | None) -> HostView:
        """Return what is visible at an instant."""
        now = instant_of(instant)
        return HostView({name: text for since, until, name, text in self._rows if _holds(since, until, now)}, instant)


class HostView:
    """The pull requests and issues at an instant; shared by episodes and changed by none."""

    def __init__(self, visible: Written, instant: str | None) -> None:
        self._visible = visible
        self._instant = instant

    def read(self, name: Name, written: Written) -> tuple[str | None, str | None]:
        """Return the JSON text of one at the start and now, None where there is none."""
        before = self._visible.get(name)
        return before, written.get(name, before)

    def listed(self, kind: str, written: Written, state: str | None = None, before: int | None = None) -> str:
        """List those of a class as a JSON array, the latest first."""
        rows = [json.loads(text) for (own, _), text in {**self._visible, **written}.items() if own == kind]
        if not rows:
            raise NotLogged(f"unknown: the log shows no {_WORDS[kind]} by then")
        chosen = sorted((row for row in rows if (state is None or row.get("state") == state)
                         and (before is None or row["number"] < before)), key=lambda row: -row["number"])
        return canonical([_summary(row) for row in chosen[:MOST_LISTED]])

    def shown(self, kind: str, number: int, written: Written) -> str:
        """Show one as JSON."""
        name = (kind, str(int(number)))
        text = self.read(name, written)[1]
        if text is None:
            other = next(each for each in _WORDS if each != kind)
            if self.read((other, name[1]), written)[1] is not None:
                raise InvalidCall(f"{name[1]} is no {_WORDS[kind]}; there is: {_WORDS[other]} {name[1]}")
            raise self._missing(int(number), written)
        return text

    def commented(self, number: int, body: str, written: Written) -> Written:
        """Return what is written with a comment more."""
        number = int(number)
        for kind in _WORDS:
            text = self.read((kind, str(number)), written)[1]
            if text is not None:
                row = json.loads(text)
                row["comments"] = [*row["comments"], self._signed(body=body)]
                return {**written, (kind, str(number)): canonical(row)}
        raise self._missing(number, written)

    def proposed(self, title: str, body: str, files: Sequence[str], written: Written) -> tuple[int, Written]:
        """Return the number of a new pull request, the next after all that are visible, and what is written with it."""
        number = self._highest(written) + 1
        row = self._signed(number=number, title=title, body=body, state="open", files=list(files), comments=[])
        return number, {**written, (PULL_REQUEST, str(number)): canonical(row)}

    def _signed(self, **values: Any) -> dict[str, Any]:
        when = {"created_at": self._instant} if self._instant is not None else {}
        return {**values, **when, "author": AUTHOR}

    def _highest(self, written: Written) -> int:
        return max((int(number) for _, number in (*self._visible, *written)), default=0)

    def _missing(self, number: int, written: Written) -> InvalidCall:
        if number > self._highest(written):
            return InvalidCall(f"there is no {number}; the latest is {self._highest(written)}")
        return NotLogged(f"unknown: the log does not show {number} by then")


def visible(rows: Iterable[Mapping[str, Any]], instants: Iterable[str | None]) -> list[Mapping[str, Any]]:
    """Return the rows of host.jsonl that are visible at one of the instants."""
    moments = {instant_of(instant) for instant in instants}
    return [row for row in rows if any(_holds(instant_of(row["from"]), instant_of(row["to"]), now) for now in moments)]


def _holds(since: datetime | None, until: datetime | None, now: datetime | None) -> bool:
    return now is not None and since is not None and since <= now and (until is None or now < until)


def _summary(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a list shows of one."""
    names = ("number", "title", "state", "author", "created_at", "checks")
    return {**{name: row[name] for name in names if name in row}, "n_comments": len(row["comments"])}


def instant_of(text: Any) -> datetime | None:
    """Return an instant in UTC, None where the text is none."""
    try:
        at = datetime.fromisoformat(text)
    except (TypeError, ValueError):
        return None
    return at if at.tzinfo is not None else at.replace(tzinfo=UTC)
