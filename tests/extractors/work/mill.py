"""A made-up mill whose people do two kinds of work: sacks are lent, and millstones are repaired."""

from __future__ import annotations

from collections.abc import Iterator

from extractors.apps.version import AppVersion, all_of
from extractors.work.events import WorkEvent, find_events
from extractors.work.items import WorkItem

ACCOUNTS = {"ada@mill.example": {"slack_user": "U1", "jira_user": "j1"},
            "ben@mill.example": {"slack_user": "U2", "jira_user": "j2"}}
ROLES = {"ada@mill.example": "Grinding", "ben@mill.example": "Store"}
DAY = 86_400_000_000
_COLOURS = ("red", "green", "brown", "white", "black", "golden")


class Mill:
    """Work as versions of fields, piece after piece."""

    def __init__(self) -> None:
        self.versions: list[AppVersion] = []
        self._rows: list[list[str]] = [["Colour", "Sacks", "State"]]
        self._pieces: list[list[str]] = []
        self._number = 0

    def lend(self, day: int, *lent: int, asked: int, state: str = "out", ends: bool = True, last: str = "great, thanks") -> int:
        """Lend `asked` sacks; the table gets `lent`, one after another. Return the number of the piece."""
        at, colour = day * DAY, _COLOURS[day % len(_COLOURS)]
        piece = self._begin()
        self._message(at, f"could I borrow {asked} {colour} sacks", "U1", None)
        for number, n in enumerate(lent):
            row = [colour, str(n), state]
            self._rows = [*self._rows[:-1], row] if number else [*self._rows, row]
            sequence = self._number + number
            self.versions.append(AppVersion("sheet", "f1", "!Loans", self._rows, at + 1000 * (number + 1), sequence, "j2"))
            piece.append(f"sheet:f1#{sequence}")
            self._number += 1
        if ends:
            self._message(at + 5000, "lent them, enjoy", "U2", piece[0].split("#")[0].split("/")[1])
            self._message(at + 6000, last, "U1", piece[0].split("#")[0].split("/")[1])
        return len(self._pieces) - 1

    def repair(self, day: int, ends: bool = True) -> int:
        """Repair a millstone, with a ticket. Return the number of the piece."""
        at, key = day * DAY + 7, f"FIX-{day}"
        self._begin().append(f"jira:{key}#{at}")
        fields = [("summary", "millstone wobbles badly"), ("project", "FIX"), ("status", "Waiting")]
        self.versions += all_of("jira", key, fields, at, actor="j1")
        for number, status in enumerate(("Grinding", "Repaired") if ends else ("Grinding",)):
            sequence = 10 * day + number + 1
            self.versions.append(AppVersion("jira", key, "status", status, at + 100 * sequence, sequence, "j2"))
            self._pieces[-1].append(f"jira:{key}#{sequence}")
        return len(self._pieces) - 1

    def work(self) -> tuple[list[WorkEvent], list[WorkItem]]:
        """Return the acts, and the pieces as they are."""
        events = find_events(sorted(self.versions, key=lambda version: (version.at, version.sequence)), ACCOUNTS)
        return events, [WorkItem(str(number), tuple(refs), 1.0) for number, refs in enumerate(self._pieces)]

    def _begin(self) -> list[str]:
        self._pieces.append([])
        self._number += 1
        return self._pieces[-1]

    def _message(self, at: int, text: str, user: str, thread: str | None) -> None:
        ts = f"{at}.0"
        self.versions += self._fields(ts, at, text, user, thread)
        self._pieces[-1].append(f"slack:C1/{ts}#{at}")

    @staticmethod
    def _fields(ts: str, at: int, text: str, user: str, thread: str | None) -> Iterator[AppVersion]:
        fields = [("channel", "C1"), ("ts", ts), ("user", user), ("text", text), *([("thread_ts", thread)] if thread else [])]
        yield from all_of("slack", f"C1/{ts}", fields, at, actor=user)


def usual_mill(n: int = 12) -> Mill:
    """Return a mill with so many pieces of each kind, all of which went well."""
    mill = Mill()
    for day in range(1, n + 1):
        mill.lend(day, 10 + day, asked=10 + day)
        mill.repair(day)
    return mill
