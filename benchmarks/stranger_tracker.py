"""A help desk's issue tracker (Roundup 2.6, MIT and ZPL), with scripted agents, as a stranger to `browser_room.py`.

    pip install roundup time-machine selectolax      (in an environment of its own)
    PYTHONPATH=benchmarks python benchmarks/stranger_tracker.py OUT [--sessions 140]

Differs from other data in its addresses (`issue12`, `issue?@template=item`), its forms (multipart, `@action` tells what a form
does, many forms post to one path), its logins (a box on every page that posts to the front page), and where messages stand (in
the address that a form leads to: `issue3?@ok_message=...`).
"""

from __future__ import annotations

import importlib
import random
import re
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from stranger_people import Job, Lost, Stage, Visitor, main

Row = dict[str, Any]
_ORIGIN, _BASE = "https://desk.hillside.test", "/support"
_PEOPLE = {"ada": "Ada Brandt", "boris": "Boris Klein", "chiara": "Chiara Rossi", "dmitri": "Dmitri Orlov", "edda": "Edda Lind"}
_LEADS = ("milan", "nora")
_STATUSES = ("deferred", "chatting", "need-eg", "in-progress", "testing", "resolved")
_PRIORITIES = ("critical", "urgent", "bug", "feature", "wish")
_THINGS = ("printer", "projector", "badge reader", "coffee machine", "laptop dock", "meeting room screen", "phone line",
           "mail filter", "backup job", "door lock", "scanner", "label maker", "web shop", "payroll export", "heating")
_FAULTS = ("does not start", "is slow since Monday", "shows a blank page", "lost its settings", "makes odd noises",
           "asks for a password", "drops the connection", "is out of paper sensors", "forgets the time", "needs an update")
_PLACES = ("in Hamburg", "on floor 3", "at the front desk", "in the warehouse", "in Lyon", "for the sales team", "in room B12")
_NOTES = ("customer called again", "waiting for a part", "tried a restart, no change", "sent the manual", "works for me",
          "escalated to the vendor", "needs a new cable", "seen it before, see last year", "photo would help",
          "will look tomorrow")


class Tracker:
    """The tracker's data, its people and what they are asked."""

    first_url = f"{_ORIGIN}{_BASE}/"

    def __init__(self, home: Path, out: Path, seed: int) -> None:
        self.home = home
        self._install()
        handler = importlib.import_module("roundup.cgi.wsgi_handler")
        self.stage = Stage(handler.RequestDispatcher(str(home), debug=False), home / "db", _ORIGIN, _BASE, out, seed)
        self._instances = importlib.import_module("roundup.instance")
        self.draw = random.Random(seed + 1)
        self._fill()

    def _install(self) -> None:
        shutil.rmtree(self.home, ignore_errors=True)
        self.home.parent.mkdir(parents=True, exist_ok=True)
        admin = [str(Path(sys.executable).parent / "roundup-admin"), "-i", str(self.home)]
        subprocess.run([*admin, "install", "classic", "sqlite"], check=True, capture_output=True)
        config = (self.home / "config.ini").read_text()
        for name, value in (("web", f"{_ORIGIN}{_BASE}/"), ("domain", "hillside.test"), ("host", "localhost"),
                            ("password_pbkdf2_default_rounds", "1000"), ("dynamic_compression", "no"),
                            ("name", "Hillside help desk"), ("debug", "yes")):
            config = re.sub(rf"(?m)^#?{name} =.*$", f"{name} = {value}", config)
        config = re.sub(r"(?m)^debug = yes$", "debug = no", config)
        config = re.sub(r"(?m)^(\[mail\](?:.*\n)*?)#?debug = no$", rf"\1debug = {self.home}/mail.txt", config)
        (self.home / "config.ini").write_text(config)
        subprocess.run([*admin, "initialise", "admin-secret"], check=True, capture_output=True)

    def _fill(self) -> None:
        database = self._instances.open(str(self.home)).open("admin")
        password = importlib.import_module("roundup.password").Password
        for name, full in _PEOPLE.items():
            database.user.create(username=name, realname=full, address=f"{name}@hillside.test", roles="User",
                                 password=password(f"pass-{name}-9", config=database.config))
        for word in ("hardware", "network", "accounts"):
            database.keyword.create(name=word)
        for _ in range(26):
            self._new_issue(database)
        database.commit()
        database.close()

    def _new_issue(self, database: Any) -> None:
        draw = self.draw
        message = database.msg.create(author="1", date=_now(), content=f"{draw.choice(_NOTES)}.", summary="report")
        database.issue.create(title=self._title(), priority=str(draw.randint(1, 5)), status="1", messages=[message],
                              assignedto=draw.choice([None, str(draw.randint(3, 2 + len(_PEOPLE)))]))

    def _title(self) -> str:
        draw = self.draw
        return f"{draw.choice(_THINGS)} {draw.choice(_FAULTS)} {draw.choice(_PLACES)}".capitalize()

    def is_known(self, url: str) -> bool:
        """Return whether an address is of a kind that people look at."""
        path = urlsplit(url).path.removeprefix(_BASE)
        is_page = re.fullmatch(r"/(issue\d*|user\d+|msg\d+|keyword\d+|)", path) is not None
        return is_page and "logout" not in url and "export" not in url

    def between(self) -> None:
        """Let mail from outside arrive: new issues, now and then."""
        if self.draw.random() < .35:
            database = self._instances.open(str(self.home)).open("admin")
            self._new_issue(database)
            database.commit()
            database.close()

    def rows(self) -> dict[tuple[str, str], Row]:
        """Return the rows of the database that people change."""
        found = {}
        with sqlite3.connect(self.home / "db" / "db") as connection:
            connection.row_factory = sqlite3.Row
            for table in ("_issue", "_msg", "_file", "_keyword", "_user", "issue_messages", "issue_keyword", "issue_nosy"):
                for place, row in enumerate(connection.execute(f"select * from {table} order by 1, 2")):
                    values = dict(row)
                    found[table, str(values.get("id", f"{values.get('nodeid')}-{values.get('linkid')}-{place}"))] = values
        connection.close()
        return found

    def log_in(self, user: str) -> Visitor:
        """Return somebody's browser."""
        return Visitor(self.stage, user)

    def enter(self, visitor: Visitor) -> None:
        """Log in, now and then with a wrong password first."""
        visitor.go(f"{_BASE}/")
        if visitor.is_broken and self.draw.random() < .06:
            self._log_in(visitor, "pass-9")
        self._log_in(visitor, f"pass-{visitor.user}-9")

    def _log_in(self, visitor: Visitor, password: str) -> None:
        form = visitor.form(__login_name="")
        visitor.send(form.filled(__login_name=visitor.user, __login_password=password, remember=None))

    def jobs(self, n: int) -> Iterator[Job | None]:
        """Yield what people are asked, as the data are by then."""
        makers = [self._status, self._status, self._assign, self._comment, self._report, self._raise, self._tag, self._export]
        for _ in range(n):
            yield self.draw.choice(makers)()

    def _issue(self, value: str, column: str = "_status") -> Row | None:
        """Return an issue of which a column has another value."""
        rows = [row for (table, _), row in self.rows().items() if table == "_issue" and str(row[column]) != value]
        return self.draw.choice(rows[-18:]) if rows else None

    def _of(self, number: Any) -> Row:
        return self.rows()["_issue", str(number)]

    def _job(self, kind: str, ask: str, slots: Row, do: Any, is_done: Any, note: str | None, slip: str | None = None) -> Job:
        channel = "requests" if kind == "export" else "desk"
        return Job(kind, self.draw.choice(list(_PEOPLE)), channel, self.draw.choice(_LEADS), ask, slots, do, is_done, note,
                   slip, self.draw.random() < .9)

    def _wrong(self, number: Any) -> tuple[Any, str | None]:
        """Return the number of the issue that somebody opens, mostly the right one, and the slip."""
        if self.draw.random() < .06:
            other = self._issue("-1")
            if other is not None and str(other["id"]) != str(number):
                return other["id"], "wrong issue"
        return number, None

    def _open(self, visitor: Visitor, number: Any) -> None:
        """Open an issue by the list, by its number, or by a search."""
        way = self.draw.random()
        if way < .5:
            visitor.follow("Show All")
            visitor.follow(href=f"issue{number}")
        elif way < .85:
            visitor.send(visitor.form(_at_action="show").filled(_at_number=str(number)))
        else:
            word = str(self._of(number)["_title"]).split()[0]
            visitor.send(visitor.form(_at_search_text="").filled(_at_search_text=word))
            visitor.follow(href=f"issue{number}")
        if self.draw.random() < .07:
            visitor.cookies.clear()
            visitor.go(visitor.url)
            self._log_in(visitor, f"pass-{visitor.user}-9")

    def _edit(self, visitor: Visitor, number: Any, **values: str) -> None:
        self._open(visitor, number)
        form = visitor.form(_at_action="edit", title="")
        chosen = {name: form.choices.get(name, {}).get(value, value) for name, value in values.items()}
        if self.draw.random() < .05 and "status" in chosen:
            visitor.send(form.filled(title=""))
            form = visitor.form(_at_action="edit", title="")
            chosen["title"] = str(self._of(number)["_title"])
        visitor.send(form.filled(**chosen))

    def _status(self) -> Job | None:
        to = self.draw.choice(_STATUSES)
        at = str(("unread", "deferred", "chatting", "need-eg", "in-progress", "testing", "done-cbb", "resolved").index(to) + 1)
        issue = self._issue(at)
        if issue is None:
            return None
        number, slip = self._wrong(issue["id"])
        value = to
        if slip is None and self.draw.random() < .05:
            value, slip = self.draw.choice([each for each in _STATUSES if each != to]), "wrong value"
        ask = self.draw.choice([f"please set issue {issue['id']} to {to}",
                                f"issue{issue['id']} should be {to} now, can you set it?",
                                f"can you set issue {issue['id']} ({issue['_title']}) to {to}?"])
        return self._job("status", ask, {"number": str(issue["id"]), "to": to},
                         lambda visitor: self._edit(visitor, number, status=value),
                         lambda: str(self._of(issue["id"])["_status"]) == at and slip is None,
                         f"issue {issue['id']} is {to}", slip)

    def _assign(self) -> Job | None:
        name = self.draw.choice(list(_PEOPLE))
        at = str(list(_PEOPLE).index(name) + 3)
        issue = self._issue(at, "_assignedto")
        if issue is None:
            return None
        number, slip = self._wrong(issue["id"])
        return self._job("assign", f"please give issue {issue['id']} to {name}", {"number": str(issue["id"]), "to": name},
                         lambda visitor: self._edit(visitor, number, assignedto=name),
                         lambda: str(self._of(issue["id"])["_assignedto"]) == at and slip is None,
                         f"{name} has issue {issue['id']} now", slip)

    def _comment(self) -> Job | None:
        issue, text = self._issue("-1"), self.draw.choice(_NOTES)
        if issue is None:
            return None
        number, slip = self._wrong(issue["id"])
        before = len(self.rows())
        return self._job("comment", f"please add a note to issue {issue['id']}: \"{text}\"",
                         {"number": str(issue["id"]), "text": text},
                         lambda visitor: self._edit(visitor, number, _at_note=text),
                         lambda: len(self.rows()) > before and slip is None, f"noted on issue {issue['id']}", slip)

    def _report(self) -> Job | None:
        title, priority = self._title(), self.draw.choice(_PRIORITIES)
        given = title
        slip = None
        if self.draw.random() < .08:
            given, slip = title.replace(" ", "  ", 1)[:-4], "cut title"

        def do(visitor: Visitor) -> None:
            visitor.follow(href="issue?@template=item")
            form = visitor.form(_at_action="new", title="")
            visitor.send(form.filled(title=given, priority=form.choices["priority"][priority], _at_note="reported in the chat"))

        return self._job("report", f"please open a new issue \"{title}\" with priority {priority}",
                         {"title": title, "priority": priority},
                         do, lambda: any(row.get("_title") == title for row in self.rows().values()), "opened it", slip)

    def _raise(self) -> Job | None:
        to = self.draw.choice(_PRIORITIES)
        at = str(_PRIORITIES.index(to) + 1)
        issue = self._issue(at, "_priority")
        if issue is None:
            return None
        number, slip = self._wrong(issue["id"])
        return self._job("priority", f"issue {issue['id']} needs another priority: {to}, please change it",
                         {"number": str(issue["id"]), "to": to},
                         lambda visitor: self._edit(visitor, number, priority=to),
                         lambda: str(self._of(issue["id"])["_priority"]) == at and slip is None, f"changed, it is {to}", slip)

    def _tag(self) -> Job | None:
        word, issue = self.draw.choice(("hardware", "network", "accounts")), self._issue("-1")
        if issue is None:
            return None
        number, slip = self._wrong(issue["id"])
        return self._job("tag", f"please tag issue {issue['id']} with the keyword {word}",
                         {"number": str(issue["id"]), "word": word},
                         lambda visitor: self._edit(visitor, number, keyword=word), lambda: slip is None, None, slip)

    def _export(self) -> Job | None:
        """Ask for a list as CSV, kept in a folder by its month."""
        month = self.stage.clock.now.strftime("%Y-%m")
        slip = "wrong folder" if self.draw.random() < .12 else None
        folder = "/srv/desk/lists/" + ("2025-12" if slip else month)
        name = f"open-issues-{self.stage.clock.now.strftime('%Y-%m-%d')}.csv"

        def do(visitor: Visitor) -> None:
            visitor.follow("Show All")
            answer = visitor.follow(href="@action=export_csv")
            self.stage.clock.wait(3)
            if "csv" not in (answer.header("content-type") or ""):
                raise Lost("no list came")
            disposition = re.search(r"filename=\"?([^\";]+)", answer.header("content-disposition") or "")
            saved = f"/home/{visitor.user}/Downloads/{disposition[1] if disposition else 'query.csv'}"
            self.stage.keep_file(visitor.user, "create", saved, answer.body)
            self.stage.clock.wait(9)
            self.stage.keep_file(visitor.user, "rename", saved, to=f"{folder}/{name}")

        return self._job("export", f"the list of issues of {month} as CSV into lists/{month}, please",
                         {"month": month, "name": name}, do, lambda: slip is None,
                         f"The list is in {folder.removeprefix('/srv/desk/')}:\n• {name}", slip)


def _now() -> Any:
    return importlib.import_module("roundup.date").Date(".")


if __name__ == "__main__":
    main(Tracker, __doc__ or "", 140)
