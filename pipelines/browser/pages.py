"""The pages of the browser: each address, and what its template is given."""

from __future__ import annotations

import html
import re
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from starlette.datastructures import QueryParams
from starlette.responses import FileResponse, PlainTextResponse, RedirectResponse, Response

from extractors.formats.correction import ROLES
from pipelines.browser import changes, comparing, corrections, families, replays, rolled, sessions, shown, tasks, ways
from pipelines.browser.library import Library
from pipelines.unknowns import unknowns
from warehouse.errors import InputError, Missing

Row = dict[str, Any]
_POLICY, _HEAD = re.compile('http-equiv="Content-Security-Policy" content="([^"]*)"'), 1000
"""The policy that the report states, and the characters of it that no log reaches."""


class Browser:
    """The pages on one folder. Each method of `PAGES` takes the query and gives the page's values, template first."""

    def __init__(self, out: Path) -> None:
        self.out = out
        self.library = Library(out)
        self.rooms = replays.Rooms()
        self.corrections = out / "corrections"
        self._report: tuple[tempfile.TemporaryDirectory[str], Path] | None = None

    def overview(self, query: QueryParams) -> Row:
        """What came of the logs."""
        return {"template": "overview", "found": families.overview(self.library),
                "largest": families.families(self.library).rows[:8],
                "waiting": corrections.waiting(self.library, self.corrections)}

    def families(self, query: QueryParams) -> Row:
        """Families of tasks."""
        return {"template": "families", "page": families.families(
            self.library, query.get("service", ""), query.get("words", ""), query.get("after")), "query": query}

    def family(self, query: QueryParams) -> Row:
        """One family: its sessions and its tasks."""
        found = families.family(self.library, _id(query))
        name = found["family"]
        return {"template": "family", "family": found, "tasks": families.tasks(self.library, family=name).rows[:10],
                "page": sessions.sessions(
                    self.library, family=name, going=query.get("going", ""), after=query.get("after")),
                "said": corrections.said_of(self.library, self.corrections, "family", [name]), "query": query}

    def sessions(self, query: QueryParams) -> Row:
        """Sessions, newest first."""
        wanted = {name: query.get(name, "") for name in ("service", "family", "going", "words")}
        return {"template": "sessions", "page": sessions.sessions(self.library, **wanted, after=query.get("after")),
                "query": query, "going": list(sessions.GOING)}

    def session(self, query: QueryParams) -> Row:
        """One session as a conversation, with what changed beside each call."""
        found = sessions.session(self.library, _id(query))
        begin = _whole(query.get("from", "0"))
        rows = sessions.turns(self.library, found["session_id"], begin)
        shown_rows = rows[:sessions.TURNS]
        return {"template": "session", "session": found, "turns": shown_rows, "begin": begin,
                "next": rows[sessions.TURNS]["position"] if len(rows) > sessions.TURNS else None,
                "beside": changes.beside(self.library, found["service"], shown_rows),
                "said": corrections.said_of(self.library, self.corrections, "outcome", [found["session_id"]])}

    def tasks(self, query: QueryParams) -> Row:
        """Tasks of a family or a service."""
        return {"template": "tasks", "query": query, "page": families.tasks(
            self.library, query.get("family", ""), query.get("service", ""), query.get("after"))}

    def task(self, query: QueryParams) -> Row:
        """One task: its sessions, its rubric with the evidence, its audit."""
        found = tasks.task(self.library, _id(query))
        checks = tasks.rubric(self.library, found["task_id"])
        ids = [name for check in checks for name in (check["check_id"], f"{found['task_id']}/{check['check_id']}")]
        room = found["room"]
        return {"template": "task", "task": found, "checks": checks, "evidence": tasks.evidence(self.library, checks),
                "audit": tasks.audit(self.library, found["service"], found["task_id"]),
                "ways": ways.ways(self.library, room, found) if room else [],
                "episodes": rolled.of_task(self.library, room.name, found["task_id"]) if room else [],
                "said": corrections.said_of(self.library, self.corrections, "check", ids), "roles": ROLES}

    def environment(self, query: QueryParams) -> Row:
        """One environment: its tools, what it can answer, who was played against it, its tasks."""
        found = tasks.environment(self.library, _id(query))
        return {"template": "environment", "environment": found, "query": query,
                "unknowns": [row for row in self._unknowns() if row["service"] == found["service"]],
                "page": families.tasks(self.library, service=found["service"], after=query.get("after"))}

    def unknowns(self, query: QueryParams) -> Row:
        """Which log field would turn which unknown into an answer."""
        return {"template": "unknowns", "rows": self._unknowns()}

    def _unknowns(self) -> list[Row]:
        """As the command says them; made once for a published build."""
        return self.library.once("unknowns", lambda: self.library.with_store(
            lambda store: unknowns(store, self.out)))

    def replay(self, query: QueryParams) -> Row:
        """A way through a task, step by step in its room."""
        found, way, messages, play = self._play(query, query.get("way", "solution"))
        steps = list(replays.told(way, play))
        at = min(_whole(query.get("step", "0")) or len(steps), len(steps))
        return {"template": "replay", "task": found, "way": way, "messages": messages, "steps": steps[:at], "at": at,
                "n_steps": len(steps), "play": play, "grade": comparing.grade(way, play),
                "ways": ways.ways(self.library, found["room"], found)}

    def compare(self, query: QueryParams) -> Row:
        """Two ways through a task, side by side: where they first part, how the world ends, what each earns."""
        found, one, messages, play = self._play(query, query.get("way", "solution"))
        _, other, _, second = self._play(query, query.get("with", "solution"))
        lines = comparing.lines(list(replays.told(one, play)), list(replays.told(other, second)))
        grades = comparing.grade(one, play), comparing.grade(other, second)
        return {"template": "compare", "task": found, "messages": messages, "lines": lines, "kinds": comparing.KINDS,
                "sides": list(zip((one, other), (play, second), grades, strict=True)),
                "says": comparing.says(lines, one, other), "ends": comparing.ends(play, second),
                "checks": comparing.checks(*grades), "ways": ways.ways(self.library, found["room"], found)}

    def _play(self, query: QueryParams, name: str) -> tuple[Row, ways.Way, list[Row], Row]:
        found = tasks.task(self.library, _id(query))
        if found["room"] is None:
            raise Missing(f"no room has task {found['task_id']}", mend="its page says why; build it with: traceroom run")
        way = ways.way(self.library, found["room"], found, name)
        return found, way, *self.rooms.play(found["room"], found["task_id"], way)

    def rollouts(self, query: QueryParams) -> Row:
        """What policies came to, and of one room how each fared at each task."""
        name = query.get("id", "")
        found = rolled.rolled(self.library)
        if name and name not in [row["environment"] for row in found]:
            raise Missing.named("room that was rolled out in", name, [row["environment"] for row in found])
        name = name or (found[0]["environment"] if len(found) == 1 else "")
        return {"template": "rollouts", "rooms": [row for row in found if name in ("", row["environment"])], "room": name,
                "page": rolled.by_task(self.library, name, query.get("after")) if name else None}

    def left(self, query: QueryParams) -> Row:
        """What was left, and why."""
        return {"template": "left", "query": query, "funnel": families.overview(self.library)["funnel"], "page": families.left(
            self.library, query.get("stage", ""), query.get("reason", ""), query.get("after"))}

    def corrected(self, query: QueryParams) -> Row:
        """What persons corrected, and what became of it."""
        return {"template": "corrections", "page": corrections.corrections(self.library, query.get("after")), "query": query,
                "waiting": corrections.waiting(self.library, self.corrections)}

    def text(self, query: QueryParams) -> Response:
        """The whole of a message or an answer, as plain text."""
        row = self.library.row("select content, arguments_raw from core.turns where turn_id = $id", id=_id(query))
        if row is None:
            raise Missing(f"no turn {_id(query)!r}")
        return PlainTextResponse((row["arguments_raw"] if query.get("of") == "arguments" else row["content"]) or "",
                                 headers={"content-security-policy": "default-src 'none'; sandbox"})

    def event(self, query: QueryParams) -> Response:
        """Where an event stands."""
        turn = sessions.turn_of(self.library, _id(query))
        if turn is None:
            raise Missing(f"event {_id(query)!r} is no turn of a session")
        begin = turn["position"] // sessions.TURNS * sessions.TURNS
        return RedirectResponse(
            f"{shown.address('/session', id=turn['session_id'], **{'from': begin or None})}#t{turn['position']}", 303)

    def report(self, query: QueryParams) -> Response:
        """The report on the same warehouse: its own policy lets its own script and style run, in an origin of its own."""
        from pipelines.reporting import report

        path = self.library.once(
            "report", lambda: self.library.with_store(lambda store: report(store, self._folder(), self.out)))
        with path.open(encoding="utf-8") as file:
            told = _POLICY.search(file.read(_HEAD))
        policy = html.unescape(told[1]) if told else "default-src 'none'"
        return FileResponse(path, media_type="text/html", headers={
            "content-security-policy": f"{policy}; frame-ancestors 'none'; sandbox allow-scripts"})

    def _folder(self) -> Path:
        if self._report is None:
            folder = tempfile.TemporaryDirectory(prefix="traceroom-report-")
            self._report = folder, Path(folder.name)
        return self._report[1]

    def close(self) -> None:
        """Close the warehouse, and take away what was made to be looked at."""
        self.library.close()
        if self._report is not None:
            self._report[0].cleanup()


PAGES: Mapping[str, Callable[[Browser, QueryParams], Row | Response]] = {
    "/": Browser.overview, "/families": Browser.families, "/family": Browser.family, "/sessions": Browser.sessions,
    "/session": Browser.session, "/tasks": Browser.tasks, "/task": Browser.task, "/environment": Browser.environment,
    "/replay": Browser.replay, "/compare": Browser.compare, "/rollouts": Browser.rollouts,
    "/unknowns": Browser.unknowns, "/left": Browser.left, "/corrections": Browser.corrected, "/text": Browser.text,
    "/event": Browser.event, "/report": Browser.report}


def _id(query: QueryParams) -> str:
    name = query.get("id", "")
    if not name:
        raise InputError("the address names nothing", mend="begin at /")
    return name


def _whole(text: str) -> int:
    if not text.isascii() or not text.isdecimal() or len(text) > 9:
        raise InputError(f"{text[:20]!r} is no number of a step", mend="begin at /")
    return int(text)
