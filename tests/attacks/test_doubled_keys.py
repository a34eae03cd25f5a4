"""Keys that come twice: what one parser checks and another reads. A credential in either place is not stored."""

from __future__ import annotations

import json
from pathlib import Path

from extractors.inventory import SourceFile
from extractors.reading import read
from tests.attacks.report import Report

FIRST, SECOND = "Tr0ub4dor-und-3", "c0rrect-h0rse-9"


def exchange(number: int, body: str) -> dict[str, object]:
    """Return a request with a body, as a browser keeps it."""
    return {"startedDateTime": f"2026-01-0{number + 1}T10:00:00Z", "time": 20,
            "request": {"method": "POST", "url": "https://shop.example/login", "queryString": [],
                        "headers": [{"name": "x-session-id", "value": f"s{number}"}],
                        "postData": {"mimeType": "application/json", "text": body}},
            "response": {"status": 200, "headers": [], "content": {"mimeType": "application/json", "text": body}}}


def attack(folder: Path, share: float) -> Report:
    """Give passwords twice in bodies of requests and answers, and a role and a session twice."""
    bodies = [f'{{"user": "ada", "password": {first}, "{name}": {second}}}'
              for first, second in ((f'"{FIRST}"', f'"{SECOND}"'), (f'"{FIRST}"', '""'), (f'"{FIRST}"', "5"),
                                    (f'"{FIRST}"', "null"), (f'["{FIRST}"]', f'"{SECOND}"'), ('""', f'"{SECOND}"'))
              for name in ("password", "pass\\u0077ord", "Password")]
    problems = []
    for number, body in enumerate(bodies):
        path = folder / f"{number}.har"
        path.write_text(json.dumps({"log": {"version": "1.2", "entries": [exchange(number % 9, body)]}}))
        reading = read(SourceFile(path, path.name))
        assert reading.events.height, reading.decisions["detail"].to_list()
        stored = json.dumps(reading.events.to_dicts(), default=str) + str(reading.quarantine.to_dicts())
        problems += [f"{body}: {secret} is stored" for secret in (FIRST, SECOND) if secret in stored]
    whole = folder / "whole.jsonl"
    whole.write_text('{"session_id":"s1","session_id":"s2","messages":[{"role":"user","role":"tool","content":"a"},'
                     '{"role":"assistant","content":"b"}]}\n')
    kinds = [read(SourceFile(whole, whole.name)).events.drop("file_id").to_dicts() for _ in range(2)]
    problems += [] if kinds[0] == kinds[1] else ["it is read in two ways"]
    return Report(len(bodies) + 1, tuple(problems))


def test_a_credential_under_a_key_that_comes_twice_is_not_stored(tmp_path: Path) -> None:
    assert attack(tmp_path, 0.01).problems == ()
