"""What an open room was told by the real tools, beside what its world knows.

Goes in: answers, and what they showed. Comes out: the same for the calls, and the sessions, that come after.
"""

from __future__ import annotations

from typing import Any

from .answers import parse
from .implied import Origin
from .tables import Table, rows_in
from .world import Name, Row


class Taught:
    """What an open room was told by the real tools."""

    def __init__(self) -> None:
        self.answers: dict[Name, list[Row]] = {}
        """(tool, canonical arguments) -> answers, each after the acts that mattered to it; the latest last."""
        self.documents: dict[Name, tuple[str, int]] = {}
        """Thing -> its text, and how many acts came before that."""
        self.begun: dict[Name, str] = {}
        """Thing -> its text before any act that matters to it."""
        self.tables: dict[str, Table] = {}
        """Class of rows -> those that answers showed."""
        self.made: dict[Name, Origin] = {}
        """Thing -> the call that made it."""
        self.implied: dict[str, Table] = {}
        """Class of things -> parts of them that things made from them showed."""
        self.said: dict[str, list[tuple[dict[str, Any], str]]] = {}
        """Tool -> (arguments, answer) of its calls of this session that worked."""

    def copy(self) -> Taught:
        """The same, independent from here on."""
        twin = Taught()
        twin.answers = {name: list(rows) for name, rows in self.answers.items()}
        twin.documents, twin.begun = dict(self.documents), dict(self.begun)
        twin.said = {tool: list(said) for tool, said in self.said.items()}
        twin.made = dict(self.made)
        twin.tables = {name: table.copy() for name, table in self.tables.items()}
        twin.implied = {name: table.copy() for name, table in self.implied.items()}
        return twin

    def trace(self, origin: Origin | None, shown: dict[Name, Any]) -> None:
        """Note what a call made (`origin`, where its tool makes things), and what the things that it shows tell of others."""
        made = origin.made() if origin else None
        if origin is not None and made is not None:
            self.made[made] = origin
        for name, document in shown.items():
            for kind, row in self.made[name].rows(document) if name in self.made else ():
                self.implied.setdefault(kind, Table()).add(row)

    def add_rows(self, rules: list[dict[str, Any]], arguments: dict[str, Any], answered: Any) -> None:
        """Take in the rows that an answer shows, by its tool's rules."""
        for rule in rules:
            table = self.tables.setdefault(rule["class"], Table())
            for row in rows_in(rule, arguments, answered):
                table.add(row)

    def see(self, shown: dict[Name, str], n_acts: int, untouched: bool) -> None:
        """Take in things that a look showed after so many acts. `untouched`: none of these matters to them."""
        for name, text in shown.items():
            self.documents[name] = (text, n_acts)
            self.tables.setdefault(name[0], Table()).add({"key": name[1], "document": parse(text)})
            if untouched:
                self.begun[name] = text

    def begin_anew(self) -> None:
        """Forget what acts made of things; what was answered speaks for another session from now on."""
        self.documents = {name: (text, 0) for name, text in self.begun.items()}
        for rows in self.answers.values():
            if rows[-1]["session"] is None:
                rows[:] = [{**row, "session": "", "acts": 0} for row in rows]
        self.said, self.made = {}, {}


UNTAUGHT = Taught()
"""What a room was told before anybody tells it anything; shared by all, and so never changed."""
