"""An entity that happened on another day does so wherever a task shows it, and nowhere else."""

from __future__ import annotations

import json
from datetime import date
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from env_builder.runtime.apps import Start
from env_builder.runtime.apps.files import FilesApp
from env_builder.runtime.canonical import digest
from env_builder.runtime.site.layout import shown_text
from env_builder.runtime.site.occasions import MovedDay, Occasions
from env_builder.runtime.site.routes import SiteRoutes
from env_builder.site.agreement import days_in
from env_builder.site.honeypots import older_issue
from env_builder.site.parsing import parse

DAY = MovedDay(date(2026, 1, 9), date(2026, 1, 31))
ROUTES = SiteRoutes({"/things/": "/things/", **{f"/things/{number}/": "/things/{things_1}/" for number in (7, 8)},
                     **{f"/things/{number}/sheet": "/things/{things_1}/sheet" for number in (7, 8)}})


@pytest.mark.parametrize(("text", "shown"), [
    ("9 Jan 2026, 8:23 a.m.", "31 Jan 2026, 11:59 p.m."), ("Jan. 9, 2026, noon", "Jan. 31, 2026, 11:59 p.m."),
    ("2026-01-09T08:23:11", "2026-01-31T23:59:59"), ("January 9th, 2026", "January 31st, 2026"),
    ("due 2026-01-09", "due 2026-01-31"), ("2026-01-09_thing.pdf", "2026-01-31_thing.pdf"),
    ("09 JAN 2026 08:23", "31 JAN 2026 23:59"), ("19 Jan 2026", "19 Jan 2026"), ("9 Jan 2026, 8 items", "31 Jan 2026, 8 items"),
    ("9 Jan 2025", "9 Jan 2025"), ("12026-01-09", "12026-01-09")])
def test_a_day_and_its_time_in_the_form_in_which_they_stand(text: str, shown: str) -> None:
    assert DAY.shown(text) == shown


@given(st.dates(date(1990, 1, 1), date(2090, 1, 1)), st.dates(date(1990, 1, 1), date(2090, 1, 1)), st.text(max_size=20))
def test_only_that_day_moves(before: date, after: date, around: str) -> None:
    moved = MovedDay(before, after)
    for form in ("%Y-%m-%d", "%d %B %Y", *(["%b %d, %Y"] if before.month != 5 else [])):   # May is short as a whole
        assert moved.shown(f"on {before.strftime(form)}.") == f"on {_written(after, form)}."
    other = date(before.year, before.month, before.day % 28 + 1)
    text = f"{other.isoformat()} {other.strftime('%d %B %Y')}"
    assert other == before or moved.shown(text) == text
    assert days_in(f"{around} {before.isoformat()} {after.strftime('%d %B %Y')}") >= {before, after}


def _written(day: date, form: str) -> str:
    return day.strftime(form.replace("%d", str(day.day)) if "%Y-" not in form else form)


def test_an_entity_shows_its_other_day_on_its_pages_in_lists_and_files() -> None:
    def path_of(method: str, url: str) -> tuple[str, tuple[str, ...]] | None:
        route = ROUTES.route(method, url)
        return None if route is None else (route.path, tuple(ROUTES.parameters(route, url).values()))

    rows = [{"tasks": ["t"], "entity": ["7"], "from": "2026-01-09", "to": "2026-01-31"}]
    occasions = Occasions(rows, path_of)
    page = parse("<nav><a href='/things/'>All</a></nav><p>Made 9 Jan 2026</p><table>" + "".join(
        f"<tr><td><a href='/things/{number}/'>Thing</a></td><td>9 Jan 2026, 10:00</td></tr>" for number in (7, 8)) + "</table>")
    shown = occasions.page("t", page, "/things/")
    assert [shown_text(row) for row in shown.elements() if row.tag == "tr"] == [
        "/things/7/ Thing 31 Jan 2026, 23:59", "/things/8/ Thing 9 Jan 2026, 10:00"]
    assert "Made 9 Jan 2026" in shown_text(shown), "what leads to nothing stays"
    assert occasions.page("t", page, "/things/") is shown and occasions.page("other", page, "/things/") is page
    own = parse("<h1>Thing</h1><p>9 Jan 2026</p>")
    assert "31 Jan 2026" in shown_text(occasions.page("t", own, "/things/7/"))
    assert occasions.page("t", own, "/things/8/") is own
    assert occasions.content("t", b"of 2026-01-09", "/things/7/sheet") == b"of 2026-01-31"
    assert occasions.content("t", b"of 2026-01-09", "/things/8/sheet") == b"of 2026-01-09"
    assert occasions.content(None, b"of 2026-01-09", "/things/7/sheet") == b"of 2026-01-09"


def test_an_older_issue_has_other_amounts() -> None:
    assert older_issue(b"in all 12.50 of 3 things, 9.99") == b"in all 22.50 of 3 things, 1.99"
    assert older_issue(b"nothing to pay") is None and older_issue(b"\0 12.50") is None


def test_files_of_a_task_are_there_for_it_alone(tmp_path: Path) -> None:
    rows = [{"path": "a.txt", "hash": digest(b"a"), "size": 1, "mode": "0644", "from": None, "to": None},
            {"path": "b.txt", "hash": digest(b"b"), "size": 1, "mode": "0644", "from": None, "to": None, "tasks": ["t"]}]
    (tmp_path / "tree.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    app = FilesApp("files", tmp_path, {})
    assert app.reset(Start(None, task_id="t")).paths() == ["a.txt", "b.txt"]
    assert app.reset(Start(None)).paths() == app.reset(Start(None, task_id="u")).paths() == ["a.txt"]
