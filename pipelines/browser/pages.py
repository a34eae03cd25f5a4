"""The pages of the browser: each address, and what its template is given."""

from __future__ import annotations

import html
import json
import re
import tempfile
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from starlette.datastructures import QueryParams
from starlette.responses import FileResponse, PlainTextResponse, RedirectResponse, Response

from pipelines import progress
from pipelines.browser import (
    changes,
    companies,
    comparing,
    corrections,
    editing,
    episodes,
    policies,
    reviews,
    routines,
    shown,
    sites,
    trajectories,
    transferring,
    waterfall,
)
from pipelines.browser.comparing import Replayer, compared_steps
from pipelines.browser.framed import screenshot
from pipelines.browser.library import Library, audit_of, checks_of, evidence, find_environment, published_checks
from pipelines.inspection import searching, views
from pipelines.inspection.coverage import unknowns
from pipelines.trying import Workbench
from warehouse.errors import InputError, Missing
from warehouse.vocabulary import TERMS

Row = dict[str, Any]
_POLICY, _HEAD = re.compile('http-equiv="Content-Security-Policy" content="([^"]*)"'), 1000
"""The policy that the report states, and the characters of it that no log reaches."""


class Browser:
    """The pages on one folder. Each method of `PAGES` takes the query and gives the page's values, template first."""

    def __init__(self, out: Path) -> None:
        self.out = out
        self.library = Library(out)
        self.replayer = Replayer()
        self.workbench = Workbench(self.library)
        self.corrections = out / "corrections"
        self.reviews = out / "reviews.jsonl"
        self._report: tempfile.TemporaryDirectory[str] | None = None

    def overview(self, query: QueryParams) -> Row:
        return {"template": "overview", "numbers": self.library.once("overview", lambda: views.overview(self.library)),
                "rooms": sites.rooms(self.library), "has_company": companies.has_company(self.library),
                "has_work": routines.has_work(self.library),
                "largest": views.families(self.library, {}).rows[:8],
                "waiting": corrections.waiting(self.library, self.corrections),
                "is_running": (self.out / progress.NAME).is_file()}

    def company(self, query: QueryParams) -> Row:
        """Show the company whose exports the run has read, at an instant."""
        return {"template": "company", "query": query, **companies.company_at(self.library, query)}

    def work(self, query: QueryParams) -> Row:
        """Show the kinds of work that people did, one of them, or a piece of work."""
        return routines.work_page(self.library, query)

    def families(self, query: QueryParams) -> Row:
        return {"template": "families", "page": views.families(self.library, query, query.get("after")), "query": query,
                "filters": _given(query, ("words", "service"))}

    def family(self, query: QueryParams) -> Row:
        """One family: its sessions and its tasks."""
        row = views.family(self.library, _id(query))
        name = row["family"]
        wanted = {"family": name, "outcome": query.get("outcome", "")}
        return {"template": "family", "family": row, "tasks": searching.tasks(self.library, {"family": name}).rows[:10],
                "page": searching.sessions(self.library, wanted, query.get("after")), "filters": _given(wanted, wanted),
                "corrected": corrections.corrections_on(self.library, self.corrections, "family", [name]), "query": query}

    def sessions(self, query: QueryParams) -> Row:
        """List sessions by any word of theirs and by what became of them, with where the words occur."""
        page = searching.sessions(self.library, query, query.get("after"))
        ids = [row["session_id"] for row in page.rows]
        return {"template": "sessions", "page": page, "query": query, "filters": _given(query, searching.SESSION_FILTERS),
                "matches": searching.matches(self.library, ids, query.get("words", "")), "choices": self._choices(),
                "orders": list(searching.SESSION_ORDERS)}

    def _choices(self) -> Mapping[str, list[str]]:
        return self.library.once("choices", lambda: searching.choices(self.library))

    def session(self, query: QueryParams) -> Row:
        """One session as a conversation, with what each call changed; of a site page by page."""
        work = sites.find_work(self.library, _id(query), _whole(query.get("step", "0")))
        if work is not None:
            return {"template": "work", **work}
        row = views.session(self.library, _id(query))
        begin = _whole(query.get("from", "0"))
        rows = views.turns(self.library, row["session_id"], begin)
        shown_rows = rows[:views.TURNS]
        return {"template": "session", "session": row, "turns": shown_rows, "begin": begin,
                "next": rows[views.TURNS]["position"] if len(rows) > views.TURNS else None,
                "changes": changes.changes_of_calls(self.library, row["service"], shown_rows),
                "waterfall": waterfall.waterfall(shown_rows),
                "corrected": corrections.corrections_on(self.library, self.corrections, "outcome", [row["session_id"]])}

    def tasks(self, query: QueryParams) -> Row:
        return {"template": "tasks", "query": query, "page": searching.tasks(self.library, query, query.get("after")),
                "filters": _given(query, searching.TASK_FILTERS), "choices": self._choices(),
                "orders": list(searching.TASK_ORDERS), "standings": list(searching.STANDINGS)}

    def task(self, query: QueryParams) -> Row:
        """One task: its sessions, its rubric with the evidence, its audit."""
        row = sites.find_any_task(self.library, _id(query))
        checks = (published_checks(self.library, row["room"].name, row["task_id"]) if row.get("of_room") else
                  checks_of(self.library, row["task_id"]))
        ids = [name for check in checks for name in (check["check_id"], f"{row['task_id']}/{check['check_id']}")]
        ids += [line["id"] for line in corrections.waiting(self.library, self.corrections)
                if line["id"].startswith((f"{row['task_id']}/", f"{row['family']}/"))]
        ids += [check["provenance"]["added"] for check in checks if "added" in check["provenance"]]
        room = row["room"]
        return {"template": "task", "task": row, "checks": checks, "evidence": evidence(self.library, checks),
                "audit": audit_of(self.library, row["service"], row["task_id"]),
                "ways": trajectories.trajectories_of(self.library, room, row) if room else [],
                "episodes": trajectories.episodes_of(self.library, room.name, row["task_id"]) if room else [],
                "corrected": corrections.corrections_on(self.library, self.corrections, "check", ids)}

    def check(self, query: QueryParams) -> Row:
        """Change a check of a task, or add one: the form."""
        return editing.edit_page(self.library, _id(query), query.get("check", ""), query.get("kind", ""))

    def environment(self, query: QueryParams) -> Row:
        """One environment: its tools, what it can answer, who was played against it, its tasks."""
        room = sites.environment_of(self.library, _id(query))
        if room is not None:
            return {"template": "room", "environment": room}
        environment = find_environment(self.library, _id(query))
        return {"template": "environment", "environment": environment, "query": query,
                "unknowns": [row for row in self._unknowns() if row["service"] == environment["service"]],
                "filters": {"service": environment["service"]},
                "page": searching.tasks(self.library, {"service": environment["service"]}, query.get("after"))}

    def unknowns(self, query: QueryParams) -> Row:
        """Which log field would turn which unknown into an answer."""
        return {"template": "unknowns", "rows": self._unknowns()}

    def _unknowns(self) -> list[Row]:
        """As the command says them; made once for a published build."""
        return self.library.once("unknowns", lambda: self.library.with_store(lambda store: unknowns(store, self.out)))

    def replay(self, query: QueryParams) -> Row:
        """Replay a trajectory of a task, step by step in its environment."""
        task, way, messages, play = self._play(query, query.get("way", "solution"))
        steps = list(compared_steps(way, play))
        at = min(_whole(query.get("step", "0")) or len(steps), len(steps))
        make = steps[at - 1]["page"] if steps else None
        images = {step["place"]: image for step in steps[:at] if (image := screenshot(step["recorded"]))}
        sheets = sites.sheets_of_room(self.library, task["service"])
        in_chromium = bool(query.get("chromium")) and task.get("of_room") == "site"
        taken = self.replayer.pictures(task["task_id"], way, sheets) if in_chromium else []
        images |= {place: image for place, each in enumerate(taken[:at], 1) if each and (image := screenshot(each.png))}
        drawn = {place for place, each in enumerate(taken, 1) if each is not None and each.is_drawn}
        return {"template": "replay", "task": task, "way": way, "messages": messages, "steps": steps[:at], "at": at,
                "frame": make(sheets) if make is not None else None, "images": images, "drawn": drawn,
                "chromium": "yes" if in_chromium else "",
                "n_steps": len(steps), "play": play,
                "grade": comparing.grade(way, play),
                "ways": trajectories.trajectories_of(self.library, task["room"], task)}

    def compare(self, query: QueryParams) -> Row:
        """Compare two trajectories of a task: where they first differ, how the world ends, what each earns."""
        task, one, messages, play = self._play(query, query.get("way", "solution"))
        _, other, _, second = self._play(query, query.get("with", "solution"))
        lines = comparing.lines(list(compared_steps(one, play)), list(compared_steps(other, second)))
        grades = comparing.grade(one, play), comparing.grade(other, second)
        return {"template": "compare", "task": task, "messages": messages, "lines": lines, "kinds": comparing.KINDS,
                "sides": list(zip((one, other), (play, second), grades, strict=True)),
                "difference": comparing.first_difference(lines, one, other), "ends": comparing.ends(play, second),
                "checks": comparing.checks(*grades), "ways": trajectories.trajectories_of(self.library, task["room"], task)}

    def _play(self, query: QueryParams, name: str) -> tuple[Row, trajectories.TaskTrajectory, list[Row], Row]:
        task = sites.find_any_task(self.library, _id(query))
        if task["room"] is None:
            raise Missing(f"no room has task {task['task_id']}", hint="its page says why; build it with: traceroom run")
        way = trajectories.trajectory_of(self.library, task["room"], task, name)
        return task, way, *self.replayer.play(task["room"], task["task_id"], way)

    def rollouts(self, query: QueryParams) -> Row:
        """List results of policies, and of one environment the results of each at each task."""
        name = query.get("id", "")
        rows = trajectories.rolled_out(self.library)
        if name and name not in [row["environment"] for row in rows]:
            raise Missing.named("room that was rolled out in", name, [row["environment"] for row in rows])
        name = name or (rows[0]["environment"] if len(rows) == 1 else "")
        return {"template": "rollouts", "rooms": [row for row in rows if name in ("", row["environment"])], "room": name,
                "page": trajectories.policies_by_task(self.library, name, query.get("after")) if name else None}

    def episodes(self, query: QueryParams) -> Row:
        """List the episodes of rollouts, by policy, task, outcome, tool and tier."""
        offered = self._choices_of_episodes(query.get("id", ""))
        return {"template": "episodes", "query": query, "page": episodes.episodes(self.library, query, query.get("after")),
                "filters": _given(query, episodes.FILTERS), "choices": offered, "orders": list(episodes.ORDERS)}

    def policies(self, query: QueryParams) -> Row:
        """Compare two policies task by task, with paired intervals."""
        return {"template": "policies", **policies.comparison_page(self.library, query)}

    def transfer(self, query: QueryParams) -> Row:
        """Show how results in an environment compare with results on the real service."""
        return {"template": "transfer", **transferring.transfer_page(self.library, query)}

    def _choices_of_episodes(self, name: str) -> dict[str, list[str]]:
        return episodes.choices(episodes.all_episodes(self.library, name))

    def rejected(self, query: QueryParams) -> Row:
        return {
            "template": "rejected", "query": query, "funnel": self.library.once("funnel", lambda: views.funnel(self.library)),
            "page": views.rejected(self.library, query, query.get("after")),
            "filters": _given(query, ("stage", "reason", "words"))}

    def corrected(self, query: QueryParams) -> Row:
        """Return what persons corrected, and what became of it."""
        families = self.library.once("families", lambda: {
            row["family"] for row in self.library.rows("select family from mart.families")})
        return {"template": "corrections", "page": corrections.corrections(self.library, query.get("after")), "query": query,
                "families": families,
                "waiting": corrections.waiting(self.library, self.corrections)}

    def reviewed(self, query: QueryParams, reviewer: str = "") -> Row:
        """Show the next session to review, whole on one screen."""
        at, n_sampled, seed = (_whole(query.get(name, "0")) for name in ("at", "sample", "seed"))
        return {"template": "reviews", **reviews.review_page(self.library, self.reviews, reviewer, at, n_sampled, seed)}

    def progress(self, query: QueryParams) -> Row:
        """Show how far the run is that writes to this folder."""
        path = self.out / progress.NAME
        try:
            state = json.loads(path.read_text("utf-8"))
        except (OSError, ValueError):
            state = None
        return {"template": "progress", "state": state}

    def glossary(self, query: QueryParams) -> Row:
        """Define each word that pages, tables and commands share."""
        return {"template": "glossary", "terms": TERMS}

    def text(self, query: QueryParams) -> Response:
        """Return the whole of a message or an answer, as plain text."""
        row = self.library.row("select content, arguments_raw from core.turns where turn_id = $id", id=_id(query))
        if row is None:
            raise Missing(f"no turn {_id(query)!r}")
        return PlainTextResponse((row["arguments_raw"] if query.get("of") == "arguments" else row["content"]) or "",
                                 headers={"content-security-policy": "default-src 'none'; sandbox"})

    def event(self, query: QueryParams) -> Response:
        turn = views.turn_of(self.library, _id(query))
        if turn is None:
            raise Missing(f"event {_id(query)!r} is no turn of a session")
        return RedirectResponse(shown.turn_address(turn["session_id"], turn["position"]), 303)

    def report(self, query: QueryParams) -> Response:
        """Return the report on the same warehouse: its own policy lets its own script and style run, in an origin of its
        own."""
        from pipelines.reporting import report

        folder = self._report = self._report or tempfile.TemporaryDirectory(prefix="traceroom-report-")
        path = self.library.once("report", lambda: self.library.with_store(
            lambda store: report(store, Path(folder.name), self.out)))
        with path.open(encoding="utf-8") as file:
            match = _POLICY.search(file.read(_HEAD))
        policy = html.unescape(match[1]) if match else "default-src 'none'"
        return FileResponse(path, media_type="text/html", headers={
            "content-security-policy": f"{policy}; frame-ancestors 'none'; sandbox allow-scripts allow-downloads"})

    def close(self) -> None:
        """Close the warehouse, and take away what was made to be looked at."""
        self.library.close()
        if self._report is not None:
            self._report.cleanup()


PAGES: Mapping[str, Callable[[Browser, QueryParams], Row | Response]] = {
    "/": Browser.overview, "/company": Browser.company, "/work": Browser.work,
    "/families": Browser.families, "/family": Browser.family,
    "/sessions": Browser.sessions,
    "/session": Browser.session, "/tasks": Browser.tasks, "/task": Browser.task, "/check": Browser.check,
    "/environment": Browser.environment, "/replay": Browser.replay, "/compare": Browser.compare, "/rollouts": Browser.rollouts,
    "/episodes": Browser.episodes, "/policies": Browser.policies, "/transfer": Browser.transfer,
    "/unknowns": Browser.unknowns, "/rejected": Browser.rejected, "/corrections": Browser.corrected, "/text": Browser.text,
    "/event": Browser.event, "/reviews": Browser.reviewed, "/report": Browser.report, "/glossary": Browser.glossary,
    "/progress": Browser.progress}


def _given(wanted: Mapping[str, str], names: Iterable[str]) -> dict[str, str]:
    """Return the filters that an address sets, for links to the same list."""
    return {name: value for name in names if (value := wanted.get(name, ""))}


def _id(query: QueryParams) -> str:
    name = query.get("id", "")
    if not name:
        raise InputError("the address names nothing", hint="begin at /")
    return name


def _whole(text: str) -> int:
    if not text.isascii() or not text.isdecimal() or len(text) > 9:
        raise InputError(f"{text[:20]!r} is no number of a step", hint="begin at /")
    return int(text)
