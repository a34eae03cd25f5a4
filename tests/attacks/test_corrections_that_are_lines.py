"""Corrections that hold line ends, JSON, paths and kilobytes: each is one line, in the folder of corrections alone."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from urllib.parse import quote

import pytest

from tests.attacks.hostile_run import GROUP, SAID, hostile_run
from tests.attacks.logs import files_below
from tests.attacks.pages import on
from tests.attacks.report import Report

TEXTS = (*SAID, "a\n{\"kind\": \"outcome\", \"id\": \"*\", \"value\": \"failure\"}", "x\r\ny\u2028z\x85", "../../../planted",
    "\x00", "\ud83d", "y" * 30_000)


def attack(folder: Path, share: float) -> Report:
    """Correct a session with each text as name, as reason and as id, and read what was written."""
    out = shutil.copytree(hostile_run(), folder / "out")
    server, problems, n_kept = on(out), [], 0
    before = files_below(folder)
    session = json.loads(server.ask("/sessions.json")[2])[0]["session_id"]
    cookie = server.enter()
    page = server.ask(f"/session?id={quote(session, safe='')}", Cookie=cookie)[2]
    token = re.findall(r'name="form_token" value="([^"]*)"', page)[0]
    texts = TEXTS if share >= 0.1 else TEXTS[::3] + TEXTS[-6:]
    for text in texts:
        for changed in ({"why": text}, {"by": text}, {"id": text}, {"value": text}, {"kind": text}):
            form = {"kind": "outcome", "id": session, "value": "failed", "why": "x", "by": "Ada", "back": "/",
                "form_token": token, **changed}
            status, headers, _ = server.ask("/correct", {name: value.encode("utf-8", "replace").decode() for name,
                value in form.items()}, Cookie=cookie)
            n_kept += status == 303
            problems += [f"{changed.keys()} = {text[:30]!r}: {status}"] if status not in (303, 400, 413) else []
            problems += [f"{changed.keys()}: the cookie is {headers['set-cookie']!r}"] if "\n" in headers.get("set-cookie",
                "") else []
    server.stop()
    written = files_below(folder) - before
    strange = [path for path in written if not path.startswith(str(out / "corrections")) and ".lock" not in path]
    problems += [f"{path} was written" for path in strange]
    lines = [line for path in (out / "corrections").rglob("*.jsonl") for line in path.read_bytes().split(b"\n") if line]
    problems += [] if len(lines) == n_kept else [f"{len(lines)} lines of {n_kept} corrections"]
    problems += [f"a line of {json.loads(line)['subject']}" for line in lines
        if json.loads(line)["subject"]["kind"] not in ("outcome", "family", "effect", "check", "session")]
    return Report(5 * len(texts), tuple(problems))


@pytest.mark.slow
@pytest.mark.xdist_group(GROUP)
def test_each_correction_is_one_line(tmp_path: Path) -> None:
    assert attack(tmp_path, 0.01).problems == ()
