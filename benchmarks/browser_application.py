"""The same scripted play in a site induced from logs, and in the real application behind the same port.

    python -m venv APP && APP/bin/pip install django-oscar[sorl-thumbnail]==4.2.1 time-machine
    python benchmarks/browser_application.py OUT APP/bin/python

OUT is what `traceroom run` wrote of the portal's logs; the project of the application is in `portal_application/`. For each
published task, the records that the back office's pages show as of the task's start (read from the site's own pages: recorded,
else induced) fill the application's database, with its clock at that instant; then the known solution is played in both hosts
by roles and names of what was clicked. `verdicts_equal`: of compared plays, those with the same reward. Not compared, with the reason:
tasks about records that no page of the back office's shows whole. Prints one JSON object on its last line.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from browser_by_heart import KnownClick, known_clicks

from env_builder import Environment
from env_builder.runtime.apps import Start
from env_builder.runtime.apps.site import SiteApp
from env_builder.runtime.records import Task
from env_builder.runtime.site.port import PortAnswer, PortRequest, SitePort
from env_builder.runtime.site.trees import Element
from env_builder.site.application import Application

PROJECT = Path(__file__).parent / "portal_application"
PASSWORD = "sesame"
_NUMBER = re.compile(r"/dashboard/orders/(\d+)/")
Row = dict[str, Any]


class JournalPort(SitePort):
    """A port that writes down what it was asked for."""

    def __init__(self, port: SitePort) -> None:
        self._port = port
        self.journal: list[PortRequest] = []

    def ask(self, request: PortRequest) -> PortAnswer:
        self.journal.append(request)
        return self._port.ask(request)


class PortalRecords:
    """What the back office's pages show as of a task's start."""

    def __init__(self, site: SiteApp, numbers: Sequence[str]) -> None:
        self._site = site
        self._numbers = numbers
        self._staff = sorted({user for user in site.access.users if _works_in_back_office(site, user)})

    def as_of(self, task: Task) -> Row:
        """Return the rows of records.json."""
        state = self._site.reset(Start(task.starts_at, frozenset(task.session_ids), 0))
        login, orders = self._staff[0], []
        state.call("browser_navigate", {"url": "/dashboard/"})
        for label, text in (("Username", login), ("Password", self._site.access.passwords[login])):
            _use(state, "browser_type", label, text=text)
        _use(state, "browser_click", "Login", role="button")
        for number in self._numbers:
            result = state.call("browser_navigate", {"url": f"/dashboard/orders/{number}/"})
            page = state.browser.page
            if not result.is_error and result.tier != "unknown" and page is not None and (
                    row := order_of(page.tree, number)) is not None:
                orders.append(row)
        users = [{"login": user, "is_staff": user in self._staff} for user in sorted(self._site.access.passwords)]
        return {"at": task.starts_at, "users": users, "orders": orders}


def _use(state: Any, tool: str, label: str, role: str = "textbox", **arguments: Any) -> None:
    line = next((each for each in state.call("browser_snapshot", {}).content.splitlines()
                 if f'{role} "{label}' in each), "")
    if (ref := re.search(r"\[ref=(e\d+)\]", line)) is not None:
        state.call(tool, {"target": ref[1], **arguments})


def _works_in_back_office(site: SiteApp, login: str) -> bool:
    return login.endswith("@bookwell.test")


def order_of(page: Element, number: str) -> Row | None:
    """Return what a page of the back office shows of an order; None where something of it is not known."""
    tables = {}
    for table in (each for each in page.elements() if each.tag == "table"):
        rows = [[_text(cell) for cell in row.children if isinstance(cell, Element) and cell.tag in ("td", "th")]
                for row in table.elements() if row.tag == "tr"]
        tables[tuple(rows[0]) if rows else ()] = rows[1:]
    person = next(iter(_table(tables, "Email address")), None)
    about = next(iter(_table(tables, "Order Total")), None)
    lines = [row for row in _table(tables, "Line ID") if len(row) > 9 and row[2].startswith("#")]
    if person is None or about is None or len(about) < 4 or "[unknown]" in " ".join((*person, *about)):
        return None
    placed = _instant(about[1], about[2])
    if placed is None or not lines:
        return None
    return {"number": number, "name": person[0], "email": person[1], "total": _money(about[0]), "placed": placed,
            "status": about[3], "notes": [], "lines": [
                {"quantity": int(row[3]), "title": row[4], "upc": row[5], "status": row[6], "price": _money(row[9])}
                for row in lines if row[3].isdigit()]}


def _table(tables: Mapping[tuple[str, ...], list[list[str]]], heading: str) -> list[list[str]]:
    return next((rows for head, rows in tables.items() if heading in head), [])


def _text(element: Element) -> str:
    return " ".join("".join(_texts(element)).split())


def _texts(element: Element) -> Iterator[str]:
    for child in element.children:
        if isinstance(child, Element):
            yield from _texts(child)
        else:
            yield child


def _money(text: str) -> str:
    return re.sub(r"[^\d.]", "", text) or "0"


def _instant(day: str, time: str) -> str | None:
    """Return "7 Jan 2026" and "4:32 p.m." as an instant."""
    time = {"noon": "12 p.m.", "midnight": "12 a.m."}.get(time, time).replace(".", "").upper()
    for format_ in ("%d %b %Y %I:%M %p", "%d %b %Y %I %p", "%d %B %Y %I:%M %p", "%d %B %Y %I %p"):
        try:
            return datetime.strptime(f"{day} {time}".replace("SEPT", "SEP"), format_).replace(tzinfo=UTC).isoformat()
        except ValueError:
            continue
    return None


class ComparedHosts:
    """An environment of the portal's, and the application that stands in for its site."""

    def __init__(self, out: Path, python: Path) -> None:
        (folder,) = (out / "environments").glob("site-portal*")
        self.environment = Environment.load(folder)
        rows = map(json.loads, (out / "rewards" / folder.name / "solutions.jsonl").read_text("utf-8").splitlines())
        self._solutions: dict[str, list[Row]] = {row["task_id"]: row["steps"] for row in rows}
        (self._site,) = (app for app in self.environment.apps if isinstance(app, SiteApp))
        numbers = sorted(set(_NUMBER.findall((folder / "apps" / "site" / "visits.jsonl").read_text("utf-8"))))
        self._records = PortalRecords(self._site, numbers)
        self._python = python

    def compare(self) -> Row:
        """Return the figures."""
        reasons: Counter[str] = Counter()
        equal: list[bool] = []
        paid = n_orders = n_plays = n_whole = n_journals = 0
        with tempfile.TemporaryDirectory() as scratch:
            tables = Path(scratch) / "tables"
            tables.mkdir()
            self._fill(tables)
            for task in self.environment.tasks:
                clicks = known_clicks(self.environment, task.task_id, self._solutions[task.task_id])
                n_plays += 1
                if (reason := _not_compared(task, clicks)) is not None:
                    reasons[reason] += 1
                    continue
                records = self._records.as_of(task)
                if not any(row["number"] in task.goal for row in records["orders"]):
                    reasons["the order is not on record whole before the start"] += 1
                    continue
                n_orders += len(records["orders"])
                folder = Path(scratch) / task.task_id[:16]
                shutil.copytree(tables, folder)
                (folder / "records.json").write_text(json.dumps(records))
                self._fill(folder)
                own, own_journal, _ = self._play(task, clicks, None)
                real, real_journal, refused = self._play(task, clicks, folder)
                equal.append(own == real)
                paid += real == 1.0
                n_whole += not refused
                n_journals += own_journal == real_journal
                if own != real or own_journal != real_journal:
                    print(f"{task.goal.splitlines()[0]}: {own} | {real} {refused}\n  {own_journal}\n  {real_journal}")
        return {"plays": n_plays, "plays_compared": len(equal), "verdicts_equal": _share(sum(equal), len(equal)),
                "paid_by_application": paid, "plays_without_refusal": n_whole,
                "application_journals_equal": _share(n_journals, len(equal)),
                "records_per_play": round(n_orders / max(len(equal), 1)), "not_compared": dict(reasons)}

    def _fill(self, folder: Path) -> None:
        subprocess.run([self._python, "fill.py"], cwd=PROJECT, check=True, timeout=300,
                       env={"PATH": os.environ.get("PATH", ""), "TRACEROOM_FOLDER": str(folder)})

    def _play(self, task: Task, clicks: Sequence[KnownClick], folder: Path | None) -> tuple[float | None, list[Row], list[str]]:
        """Return reward, what was asked for (addresses, names of fields), and the calls that were refused."""
        environment, site = self.environment, self._site
        if folder is None:
            return *self._played(task, clicks),
        logins = {login: (password, PASSWORD) for login, password in site.access.passwords.items()}
        variables = {"TRACEROOM_FOLDER": "{folder}", "DJANGO_SETTINGS_MODULE": "settings", "PYTHONPATH": str(PROJECT)}
        command = ["env", *(f"{name}={value}" for name, value in variables.items()), str(self._python), "-m", "django",
                   "runserver", "{port}", "--noreload", "--insecure"]
        with Application(command, folder, site.origin, logins).started() as running:
            site.application = running.port
            try:
                return self._played(task, clicks)
            finally:
                site.application = None
                assert environment is self.environment

    def _played(self, task: Task, clicks: Sequence[KnownClick]) -> tuple[float | None, list[Row], list[str]]:
        environment = self.environment
        environment.reset(task.task_id)
        journal, refused = [], []
        for click in clicks:
            result = environment.call(click.tool, with_selector(click))
            if click.tool.startswith("browser_") and (url := re.search(r"Page URL: (\S+)", result.content)) is not None:
                journal.append(url[1])
            if result.is_error:
                refused.append(f"{click.tool}: {result.content[:120]}")
        environment.finish()
        return environment.grade().reward, journal, refused


def with_selector(click: KnownClick) -> Row:
    """Return the arguments of a call, with role, name and number instead of a ref."""
    if click.element is None:
        return dict(click.arguments)
    name = f"[name={json.dumps(click.element.name, ensure_ascii=False)}]" if click.element.name else ""
    return {**click.arguments, "target": f"role={click.element.role}{name} >> nth={click.element.place}"}


def _not_compared(task: Task, clicks: Sequence[KnownClick]) -> str | None:
    """Return why the records of a task's start are not enough for the application; None: they are."""
    addresses = [click.arguments.get("url", "") for click in clicks]
    if not any(address.startswith("/dashboard/") for address in addresses):
        return "customers' pages: products, stock and addresses are not filled in"
    goal = task.goal.splitlines()[0]
    if not re.search(r"\b100\d{3}\b", goal):
        return "reports and products: not every order and product is on record"
    return None


def _share(part: int, whole: int) -> float | None:
    return round(part / whole, 3) if whole else None


if __name__ == "__main__":
    figures = ComparedHosts(Path(sys.argv[1]), Path(sys.argv[2]).absolute()).compare()
    print(json.dumps({"benchmark": "browser_application", "figures": figures}))
