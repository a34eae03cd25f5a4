"""A team's tickets and wiki (Trac 1.6, BSD), with scripted people, as a stranger to `browser_room.py`.

    pip install trac time-machine selectolax      (in an environment of its own)
    PYTHONPATH=benchmarks python benchmarks/stranger_plan.py OUT [--sessions 120]

Differs from other data in that there is no page to log in at (the header `Authorization` names the user), in forms that
know several works by a choice (`action=resolve`), in buttons that decide (`preview`, `submit`), in pages of a wiki, which are
called by words, and in answers that lead to a part of a page (`/ticket/12#comment:3`).
"""

from __future__ import annotations

import base64
import importlib
import random
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from stranger_people import Job, Stage, Visitor, main

Row = dict[str, Any]
_ORIGIN = "https://plan.northfield.test"
_PEOPLE = ("agnes", "bruno", "carla", "detlef", "elif")
_LEADS = ("ines", "jonas")
_PRIORITIES = ("blocker", "critical", "major", "minor", "trivial")
_RESOLUTIONS = ("fixed", "invalid", "wontfix", "duplicate", "worksforme")
_THINGS = ("Invoice footer", "Map view", "Night import", "Address check", "Price list", "Login page", "Search box",
           "Mail digest", "Upload form", "Year report", "Label print", "Cart total", "Phone export", "Menu order", "Photo crop")
_FAULTS = ("cuts long names", "fails on Safari", "takes a minute", "shows old data", "forgets the filter", "is not translated",
           "crashes without a date", "rounds wrongly", "sends twice", "ignores the time zone")
_NOTES = ("seen again today", "cannot reproduce it", "needs a decision", "half done, rest tomorrow", "blocked by the vendor",
          "customer waits for this", "tested on staging", "see the log of last night")


class Plan:
    """The application's data, its people and what they are asked."""

    first_url = f"{_ORIGIN}/report/1"

    def __init__(self, home: Path, out: Path, seed: int) -> None:
        """Create the application's folder and its tickets."""
        self.home = home
        shutil.rmtree(home, ignore_errors=True)
        home.parent.mkdir(parents=True, exist_ok=True)
        admin = [str(Path(sys.executable).parent / "trac-admin"), str(home)]
        subprocess.run([*admin, "initenv", "Northfield plan", "sqlite:db/trac.db"], check=True, capture_output=True)
        for person in _PEOPLE:
            for right in ("TICKET_ADMIN", "WIKI_MODIFY"):
                subprocess.run([*admin, "permission", "add", person, right], check=True, capture_output=True)
        self._dispatch = importlib.import_module("trac.web.main").dispatch_request
        self.stage = Stage(self._answered, home / "db", _ORIGIN, "", out, seed)
        self.draw = random.Random(seed + 1)
        environment = importlib.import_module("trac.env").open_environment(str(home), use_cache=True)
        self._environment = environment
        self.stage.reset = lambda: environment.shutdown()
        for _ in range(24):
            self._new_ticket()

    def _answered(self, environ: Row, start: Any) -> Any:
        environ["trac.env_path"] = str(self.home)
        if authorization := environ.get("HTTP_AUTHORIZATION"):
            environ["REMOTE_USER"] = base64.b64decode(authorization[6:]).decode().partition(":")[0]
        return self._dispatch(environ, start)

    def _summary(self) -> str:
        return f"{self.draw.choice(_THINGS)} {self.draw.choice(_FAULTS)}"

    def _new_ticket(self) -> None:
        ticket = importlib.import_module("trac.ticket.model").Ticket(self._environment)
        ticket.populate({"summary": self._summary(), "description": f"{self.draw.choice(_NOTES)}.", "reporter": "outside",
                         "priority": self.draw.choice(_PRIORITIES), "component": "component1", "type": "defect",
                         "owner": self.draw.choice(_PEOPLE), "status": "new"})
        ticket.insert()

    def is_known(self, url: str) -> bool:
        """Return whether an address is of a kind that people look at."""
        parts = urlsplit(url)
        kinds = ("/ticket/", "/report", "/wiki/SupportRota", "/newticket")
        return parts.path.startswith(kinds) and "format=" not in parts.query

    def between(self) -> None:
        """Let a ticket come in from outside, now and then."""
        if self.draw.random() < .3:
            self._new_ticket()

    def rows(self) -> dict[tuple[str, str], Row]:
        """Return the rows of the database that people change."""
        found = {}
        with sqlite3.connect(self.home / "db" / "trac.db") as connection:
            connection.row_factory = sqlite3.Row
            for table, keys in (
                    ("ticket", ("id",)), ("ticket_change", ("ticket", "time", "field")), ("wiki", ("name", "version"))):
                for row in connection.execute(f"select * from {table} where 1 order by 1, 2"):
                    if table != "wiki" or row["author"] != "trac":
                        found[table, "-".join(str(row[key]) for key in keys)] = dict(row)
        connection.close()
        return found

    def log_in(self, user: str) -> Visitor:
        """Return somebody's browser, which sends name and password with each request."""
        return Visitor(self.stage, user, True, (user, f"key-of-{user}-5"))

    def enter(self, visitor: Visitor) -> None:
        """Begin at the front page."""
        visitor.go("/")

    def jobs(self, n: int) -> Iterator[Job | None]:
        """Yield what people are asked, as the data are by then."""
        makers = [self._resolve, self._resolve, self._reassign, self._comment, self._report, self._priority, self._rota]
        for _ in range(n):
            yield self.draw.choice(makers)()

    def _ticket(self, **other: str) -> Row | None:
        """Return a ticket that is not closed, of which these columns have other values."""
        rows = [row for (table, _), row in self.rows().items() if table == "ticket" and row["status"] != "closed" and all(
            row[name] != value for name, value in other.items())]
        return self.draw.choice(rows[-15:]) if rows else None

    def _of(self, number: int) -> Row:
        return self.rows()["ticket", str(number)]

    def _job(self, kind: str, ask: str, slots: Row, do: Any, is_done: Any, note: str | None, slip: str | None = None) -> Job:
        return Job(kind, self.draw.choice(_PEOPLE), "team", self.draw.choice(_LEADS), ask, slots, do, is_done, note, slip)

    def _wrong(self, number: int) -> tuple[int, str | None]:
        other = self._ticket(id="") if self.draw.random() < .07 else None
        return (other["id"], "wrong ticket") if other is not None and other["id"] != number else (number, None)

    def _open(self, visitor: Visitor, number: int) -> None:
        if self.draw.random() < .5:
            visitor.follow(href="/report")
            visitor.follow(href="/report/1")
            visitor.follow(href=f"/ticket/{number}")
        else:
            visitor.send(visitor.form(q="").filled(q=f"#{number}"))

    def _edit(self, visitor: Visitor, number: int, **values: str) -> None:
        self._open(visitor, number)
        form = visitor.form(action="leave", view_time="")
        if self.draw.random() < .15:
            visitor.send(form.filled(**values, preview="Preview"))
            form = visitor.form(view_time="")
        visitor.send(form.filled(**values, submit="Submit changes"))

    def _resolve(self) -> Job | None:
        ticket, how = self._ticket(), self.draw.choice(_RESOLUTIONS)
        if ticket is None:
            return None
        number, slip = self._wrong(ticket["id"])
        given = how
        if slip is None and self.draw.random() < .06:
            given, slip = self.draw.choice([each for each in _RESOLUTIONS if each != how]), "wrong resolution"
        ask = self.draw.choice([f"please close #{ticket['id']} as {how}", f"ticket {ticket['id']} can be closed as {how}"])
        return self._job("resolve", ask, {"number": ticket["id"], "to": how},
                         lambda visitor: self._edit(visitor, number, action="resolve", action_resolve_resolve_resolution=given),
                         lambda: self._of(ticket["id"])["resolution"] == how, f"#{ticket['id']} is closed", slip)

    def _reassign(self) -> Job | None:
        name = self.draw.choice(_PEOPLE)
        ticket = self._ticket(owner=name)
        if ticket is None:
            return None
        number, slip = self._wrong(ticket["id"])
        return self._job("reassign", f"#{ticket['id']} should go to {name}, please", {"number": ticket["id"], "to": name},
                         lambda visitor: self._edit(visitor, number, action="reassign", action_reassign_reassign_owner=name),
                         lambda: self._of(ticket["id"])["owner"] == name, f"{name} has it", slip)

    def _comment(self) -> Job | None:
        ticket, text = self._ticket(), self.draw.choice(_NOTES)
        if ticket is None:
            return None
        number, slip = self._wrong(ticket["id"])
        return self._job("comment", f"please write to ticket #{ticket['id']}: {text}", {"number": ticket["id"], "text": text},
                         lambda visitor: self._edit(visitor, number, comment=text), lambda: slip is None, "done", slip)

    def _priority(self) -> Job | None:
        to = self.draw.choice(_PRIORITIES)
        ticket = self._ticket(priority=to)
        if ticket is None:
            return None
        number, slip = self._wrong(ticket["id"])
        return self._job("priority", f"priority of #{ticket['id']} is {to} from now on, please update it",
                         {"number": ticket["id"], "to": to},
                         lambda visitor: self._edit(visitor, number, field_priority=to),
                         lambda: self._of(ticket["id"])["priority"] == to, None, slip)

    def _report(self) -> Job | None:
        summary, to = self._summary(), self.draw.choice(_PRIORITIES)
        given, slip = (summary[:-3], "cut summary") if self.draw.random() < .08 else (summary, None)

        def do(visitor: Visitor) -> None:
            visitor.follow(href="/newticket")
            form = visitor.form(action="create", field_summary="")
            visitor.send(form.filled(field_summary=given, field_priority=to, submit="Create ticket"))

        return self._job("report", f"new ticket please: \"{summary}\", priority {to}", {"summary": summary, "priority": to},
                         do, lambda: any((row.get("summary"), row.get("priority")) == (summary, to)
                                         for row in self.rows().values()),
                         "it is there", slip)

    def _rota(self) -> Job | None:
        """Ask for a line more on a page of the wiki."""
        day, name = self.stage.clock.now.strftime("%Y-%m-%d"), self.draw.choice(_PEOPLE)
        page = self.draw.choice(["SupportRota", "ReleaseNotes", "OpenQuestions"])
        line = f"{day}: {name}" if page == "SupportRota" else f"{day}: {self.draw.choice(_NOTES)}"
        given, slip = (line[:-2], "cut line") if self.draw.random() < .08 else (line, None)

        def do(visitor: Visitor) -> None:
            visitor.go(f"/wiki/{page}")
            visitor.go(f"/wiki/{page}?action=edit")
            form = visitor.form(action="edit", text="")
            text = dict(form.values)["text"]
            visitor.send(form.filled(text=f"{text.strip()}\n * {given}\n".lstrip(), comment="a line", save="Submit changes"))

        return self._job("rota", f"please add to the wiki page {page}: {line}", {"page": page, "line": line}, do,
                         lambda: any(f"* {line}\n" in str(row.get("text")).replace("\r", "") for row in self.rows().values()),
                         "added", slip)


if __name__ == "__main__":
    main(Plan, __doc__ or "", 120)
