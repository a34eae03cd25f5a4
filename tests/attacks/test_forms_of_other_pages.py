"""Forms sent to the browser's server by other pages: without origin, cookie or the form's own token; nothing is written."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from urllib.parse import quote

import pytest

from tests.attacks.hostile_run import GROUP, hostile_run
from tests.attacks.pages import on
from tests.attacks.report import Report

WRITING = {
    "/correct": {"kind": "outcome", "value": "failed", "why": "x", "by": "x"},
    "/check": {"do": "keep", "by": "x", "why": "x"},
    "/review": {"outcome": "failure", "by": "x"},
}


def attack(folder: Path, share: float) -> Report:
    """Send each form in every way that a page of another site can, then once as its own page does."""
    out = shutil.copytree(hostile_run(), folder / "out")
    server, problems, n_tried = on(out), [], 0
    own = f"http://127.0.0.1:{server.port}"
    session = json.loads(server.ask("/sessions.json")[2])[0]["session_id"]
    cookie, other = server.enter(), server.enter()
    token = _form_token(server.ask(f"/session?id={quote(session, safe='')}", Cookie=cookie)[2])
    wrong: list[dict[str, str]] = [
        {"Origin": "http://evil.example", "Cookie": cookie},
        {"Origin": "null", "Cookie": cookie},
        {"Origin": "", "Cookie": cookie},
        {"Origin": own},
        {"Origin": own, "Cookie": cookie.split("=")[0] + "=x.y"},
        {"Origin": own, "Cookie": other},
        {"Origin": f"{own}.evil.example", "Cookie": cookie},
        {"Origin": own.replace("127.0.0.1", "localhost"), "Cookie": cookie},
        {"Origin": own, "Cookie": cookie, "Content-Type": "text/plain"},
        {"Origin": own, "Cookie": cookie, "Content-Type": "application/json"},
    ]
    for path, fields in WRITING.items():
        form = {**fields, "id": session, "session": session, "back": "/"}
        for headers in wrong:
            n_tried += 1
            status, _, _ = server.ask(path, {**form, "form_token": token}, **headers)
            problems += [f"{path} with {headers}: {status}"] if status not in (401, 403, 415) else []
        for bad in ("", token[:-1], token.upper(), "0" * 64):
            n_tried += 1
            status, _, _ = server.ask(path, {**form, "form_token": bad}, Cookie=cookie)
            problems += [f"{path} with the token {bad!r}: {status}"] if status != 403 else []
        status, _, _ = server.ask(f"{path}?form_token={token}", Cookie=cookie)
        problems += [f"GET {path}: {status}"] if status not in (400, 404, 405) else []
    problems += (
        [f"written: {path}" for path in (out / "corrections").rglob("*.jsonl")] if (out / "corrections").exists() else []
    )
    status, _, text = server.ask(
        "/correct", {**WRITING["/correct"], "id": session, "back": "/", "form_token": token}, Cookie=cookie
    )
    problems += [f"its own page's form: {status} {text[-300:]}"] if status != 303 else []
    server.stop()
    return Report(n_tried, tuple(problems))


def _form_token(page: str) -> str:
    return page.partition('name="form_token" value="')[2].partition('"')[0]


@pytest.mark.slow
@pytest.mark.xdist_group(GROUP)
def test_only_a_page_of_its_own_writes(tmp_path: Path) -> None:
    assert attack(tmp_path, 0.01).problems == ()
