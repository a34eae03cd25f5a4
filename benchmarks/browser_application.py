"""The same scripted play in a site induced from logs, and in the real application behind the same port.

    python -m venv APP && APP/bin/pip install django-oscar[sorl-thumbnail]==4.2.1 time-machine
    python benchmarks/browser_application.py OUT APP/bin/python [DATA]

OUT is what `traceroom run` wrote of the portal's logs; the project of the application is in `portal_application/`. For each
published task, the records that the back office's pages show as of the task's start (read from the site's own pages: recorded,
else induced) fill the application's database, with its clock at that instant; then the known solution is played in both hosts
by roles and names of what was clicked, and again without its last call. `verdicts_equal`: of these plays, those with the same
reward; `addresses_equal`: those whose page has the same address after each call; `application_journals_equal`: those that ask
for the same, in the same order, values of anti-forgery fields aside. Plays about customers' pages, products and
reports are counted with the reason why they are not compared. Does not see: notes that orders had before, requests of
scripts.
With DATA, the folder of the logs, the same plays run in Chromium too, over the induced site: `chromium_documents_equal` are
those after which the same documents have changed, which is what a verdict reads. Prints one JSON object on its last line.
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
from typing import Any, NamedTuple

from browser_by_heart import KnownClick, known_clicks
from browser_hosts import RecordedSite

from env_builder import Environment
from env_builder.runtime.apps import Start
from env_builder.runtime.apps.site import SiteApp
from env_builder.runtime.records import Task
from env_builder.runtime.site.browser import SiteBrowser
from env_builder.runtime.site.port import PortAnswer, PortRequest, SitePort
from env_builder.runtime.site.trees import Element
from env_builder.site.application import Application
from env_builder.site.chromium import ChromiumHost
from pipelines.running.run import run
from pipelines.settings import Settings

PROJECT = Path(__file__).parent / "portal_application"
PASSWORD = "sesame"
_TOKEN = re.compile("csrf|token", re.IGNORECASE)
_NUMBER = re.compile(r"/dashboard/orders/(\d+)/")
Row = dict[str, Any]


class HostPlay(NamedTuple):
    """What a play came to in one host."""

    reward: float | None
    addresses: list[str]
    """Of the page after each call."""
    refused: list[str]
    """Calls that were refused."""
    journal: list[Any]
    """Requests: method, address and form."""


class JournalPort(SitePort):
    """A port that writes down what it is asked for."""

    def __init__(self, port: SitePort) -> None:
        self._port = port
        self.journal: list[Any] = []

    def ask(self, request: PortRequest) -> PortAnswer:
        form = [(name, "" if _TOKEN.search(name) else value) for name, value in request.form or ()]
        self.journal.append((request.method, request.url, form))
        return self._port.ask(request)


class PortalRecords:
    """What the back office's pages show as of a task's start."""

    def __init__(self, site: SiteApp, numbers: Sequence[str]) -> None:
        self._site = site
        self._numbers = numbers
        self._staff = sorted(user for user in site.access.users if user.endswith("@bookwell.test"))

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
        pairs: list[tuple[HostPlay, HostPlay]] = []
        wrong: list[tuple[HostPlay, HostPlay]] = []
        n_records = 0
        with tempfile.TemporaryDirectory() as scratch:
            tables = Path(scratch) / "tables"
            tables.mkdir()
            self._fill(tables)
            for task in self.environment.tasks:
                clicks = known_clicks(self.environment, task.task_id, self._solutions[task.task_id])
                reason = _not_compared(task, clicks)
                records = self._records.as_of(task) if reason is None else {"orders": []}
                if reason is None and not any(row["number"] in task.goal for row in records["orders"]):
                    reason = "no page shows the order whole as of the start"
                if reason is not None:
                    reasons[reason] += 1
                    continue
                n_records += len(records["orders"])
                folder = Path(scratch) / task.task_id[:16]
                shutil.copytree(tables, folder)
                (folder / "records.json").write_text(json.dumps(records))
                self._fill(folder)
                for calls, kind in ((clicks, pairs), (clicks[:-1], wrong)):
                    kind.append((self._played(task, calls)._replace(journal=self._journal(task, calls)),
                                 self._play(task, calls, folder)))
                    if (differing := _differing(*kind[-1])) is not None:
                        print(f"{task.goal.splitlines()[0]}: {differing}")
        return {"application_plays": sum(reasons.values()) + len(pairs), "application_plays_compared": len(pairs),
                "verdicts_equal": _share(sum(one.reward == two.reward for one, two in pairs + wrong), len(pairs + wrong)),
                "addresses_equal": _share(sum(one.addresses == two.addresses for one, two in pairs + wrong),
                                          len(pairs + wrong)),
                "application_journals_equal": _share(sum(one.journal == two.journal for one, two in pairs + wrong),
                                                     len(pairs + wrong)),
                "paid_by_application": sum(two.reward == 1.0 for _, two in pairs),
                "unfinished_paid_by_application": sum(two.reward == 1.0 for _, two in wrong),
                "calls_refused_by_application": sum(len(two.refused) for _, two in pairs),
                "records_per_play": round(n_records / max(len(pairs), 1)), "not_compared": dict(reasons)}

    def in_chromium(self, data: Path) -> Row:
        """Return whether the same plays change the same in Chromium, with the logs' scripts and styles, as without a window."""
        files = RecordedSite(data / "logs" / "har").files
        equal: list[tuple[bool, bool]] = []
        with ChromiumHost() as host:
            for task in self.environment.tasks:
                clicks = known_clicks(self.environment, task.task_id, self._solutions[task.task_id])
                if _not_compared(task, clicks) is not None:
                    continue
                start = Start(task.starts_at, frozenset(task.session_ids), 0)
                own, real = self._site.reset(start), self._site.reset(start)
                chromium = host.open(real.port, self._site.origin, files=files, seed=0)
                addresses = [[_address(browser.call(click.tool, with_selector(click)).content) for click in clicks]
                             for browser in (own.browser, chromium)]
                chromium.close()
                equal.append((own.difference()["documents"] == real.difference()["documents"], addresses[0] == addresses[1]))
                if not all(equal[-1]):
                    print(f"{task.goal.splitlines()[0]}: {equal[-1]} {addresses}")
        return {"chromium_plays": len(equal), "chromium_documents_equal": _share(sum(one for one, _ in equal), len(equal)),
                "chromium_addresses_equal": _share(sum(two for _, two in equal), len(equal))}

    def _fill(self, folder: Path) -> None:
        subprocess.run([self._python, "fill.py"], cwd=PROJECT, check=True, timeout=300,
                       env={"PATH": os.environ.get("PATH", ""), "TRACEROOM_FOLDER": str(folder)})

    def _play(self, task: Task, clicks: Sequence[KnownClick], folder: Path) -> HostPlay:
        """Play in the application, with its data in a folder."""
        logins = {login: (password, PASSWORD) for login, password in self._site.access.passwords.items()}
        variables = {"TRACEROOM_FOLDER": "{folder}", "DJANGO_SETTINGS_MODULE": "settings", "PYTHONPATH": str(PROJECT)}
        command = ["env", *(f"{name}={value}" for name, value in variables.items()), str(self._python), "-m", "django",
                   "runserver", "{port}", "--noreload", "--insecure"]
        with Application(command, folder, self._site.origin, logins).started() as running:
            self._site.application = port = JournalPort(running.port)
            try:
                return self._played(task, clicks)._replace(journal=port.journal)
            finally:
                self._site.application = None

    def _played(self, task: Task, clicks: Sequence[KnownClick]) -> HostPlay:
        environment = self.environment
        environment.reset(task.task_id)
        addresses: list[str] = []
        refused: list[str] = []
        for click in clicks:
            result = environment.call(click.tool, with_selector(click))
            if click.tool.startswith("browser_") and (url := re.search(r"Page URL: (\S+)", result.content)) is not None:
                addresses.append(url[1])
            if result.is_error:
                refused.append(f"{click.tool}: {result.content[:120]}")
        environment.finish()
        return HostPlay(environment.grade().reward, addresses, refused, [])

    def _journal(self, task: Task, clicks: Sequence[KnownClick]) -> list[Any]:
        """Return what the same play asks the induced site for."""
        state = self._site.reset(Start(task.starts_at, frozenset(task.session_ids), 0))
        port = JournalPort(state.port)
        browser = SiteBrowser(port, self._site.origin, shelf=state.shelf)
        for click in clicks:
            if click.tool.startswith("browser_"):
                browser.call(click.tool, with_selector(click))
        return port.journal


def _differing(own: HostPlay, real: HostPlay) -> str | None:
    if own.reward == real.reward and own.addresses == real.addresses:
        asks = next((f"{one} | {two}" for one, two in zip(own.journal, real.journal, strict=False) if one != two), None)
        return asks if own.journal != real.journal else None
    place = next((f"{one} | {two}" for one, two in zip(own.addresses, real.addresses, strict=False) if one != two), "")
    return f"{own.reward} | {real.reward} {place} {real.refused[:1]}"


def application(data: Path, python: Path) -> Row:
    """Run the product over the portal's logs, and return the figures of what it published."""
    with tempfile.TemporaryDirectory() as scratch:
        run(Settings(logs=(str(data / "logs"),), out=scratch, image=False))
        hosts = ComparedHosts(Path(scratch), python.absolute())
        return hosts.compare() | hosts.in_chromium(data)


def _address(content: str) -> str | None:
    """Return the page's address, whatever its scheme."""
    found = re.search(r"Page URL: https?(://\S+)", content)
    return found[1] if found is not None else None


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
    compared = ComparedHosts(Path(sys.argv[1]), Path(sys.argv[2]).absolute())
    figures = compared.compare() | (compared.in_chromium(Path(sys.argv[3])) if sys.argv[3:] else {})
    print(json.dumps({"benchmark": "browser_application", "figures": figures}))
