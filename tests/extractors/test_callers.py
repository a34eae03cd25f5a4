"""Who calls becomes an argument where the outcome hangs on it, and only there."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import orjson

from tests.extractors.test_routes import turns_of
from tests.library import log


def told(folder: Path, lines: list[dict[str, Any]]) -> dict[str, bool]:
    """Tool -> are all its calls told with their caller? (some but not all would be neither)"""
    found: dict[str, set[bool]] = {}
    for tool, arguments in turns_of(folder, *lines).select("tool", "arguments").iter_rows():
        found.setdefault(tool, set()).add("caller" in orjson.loads(arguments))
    assert all(len(said) == 1 for said in found.values())
    return {tool: said.pop() for tool, said in found.items()}


def test_what_members_do_is_told_with_who_did_it_and_what_clerks_do_is_not(tmp_path: Path) -> None:
    found = told(tmp_path, list(log(3, 60)))
    assert {tool for tool, said in found.items() if said} == {"POST /loans", "POST /notes"} and len(found) > 6


def test_what_everybody_is_told_of_himself_is_told_with_who_asked(tmp_path: Path) -> None:
    def line(who: str, url: str, body: Any) -> dict[str, Any]:
        return {"req": {"method": "GET", "url": url, "user": {"id": who}}, "res": {"statusCode": 200, "body": body}}

    people = [f"p{n}" for n in range(6)]
    mine = [line(who, "/me", {"id": who, "age": n}) for n, who in enumerate(people)]
    news = [line(who, "/news", {"by": "p0", "text": "open"}) for who in people]
    assert told(tmp_path, [*mine, *news]) == {"GET /me": True, "GET /news": False}
