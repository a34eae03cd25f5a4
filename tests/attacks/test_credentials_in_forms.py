"""A password that was typed into a form, with tokens and secrets around it: nothing that a run stores holds it, privacy off."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from pipelines.running.run import run
from pipelines.settings import Settings
from tests.attacks.report import Report

PASSWORD, KEY = "Tr0ub4dor-und-3", "AKIAIOSFODNN7EXAMPLE"


def entry(number: int) -> dict[str, Any]:
    """Return what a browser kept of a form that was sent."""
    form = f"user=ada&password={PASSWORD}&csrfmiddlewaretoken=f0rg3ry{number}"
    return {
        "startedDateTime": f"2026-01-0{number + 1}T10:00:00Z", "time": 20,
        "request": {"method": "POST", "url": f"https://shop.example/login?token={PASSWORD}", "queryString": [],
                    "headers": [{"name": "x-session-id", "value": f"s{number}"}],
                    "postData": {"mimeType": "application/x-www-form-urlencoded", "text": form}},
        "response": {"status": 200, "headers": [], "content": {
            "mimeType": "application/json", "text": json.dumps({"csrf_token": f"f0rg3ry{number}", "key": KEY})}}}


def attack(folder: Path, share: float) -> Report:
    """Build from forms that were sent, with privacy off and on, and search every file for what was typed."""
    log = folder / "logs" / "pages.har"
    log.parent.mkdir()
    log.write_text(json.dumps({"log": {"version": "1.2", "entries": [entry(number) for number in range(6)]}}))
    broken = log.with_name("broken.jsonl")
    broken.write_text(f'{{"messages": [], "password": "{PASSWORD}", \n' * 3)
    problems = []
    for privacy in (False, True):
        out = folder / f"out-{privacy}"
        run(Settings(logs=(str(log.parent),), out=str(out), image=False, privacy=privacy))
        paths = [path for path in sorted(out.rglob("*")) if path.is_file()]
        assert privacy or any(b"ada" in path.read_bytes() for path in paths)
        problems += [f"{path.name}: {secret}" for path in paths for secret in (PASSWORD, "f0rg3ry", KEY)
                     if secret.encode() in path.read_bytes()]
    return Report(6 * 4, tuple(problems), {"credentials_left": float(len(problems))})


@pytest.mark.slow
def test_no_credential_of_a_form_is_stored(tmp_path: Path) -> None:
    assert attack(tmp_path, 0.01).problems == ()
