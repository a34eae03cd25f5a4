"""Exports whose services, traces and attributes are paths, names of devices and line ends: files of the inbox alone are
written."""

from __future__ import annotations

import json
from pathlib import Path

import orjson

from tests.attacks.report import Report
from tests.attacks.servers import HttpClient, command
from tests.extractors.formats.spans import batch, chat

NAMES = (
    "../../planted",
    "/tmp/planted-by-export",
    "..",
    ".",
    "",
    "a/b",
    "a\x00b",
    "a\nb",
    "con",
    "x" * 5_000,
    "\u202ename",
    "%2e%2e%2fplanted",
    "{}",
    "*",
)


def attack(folder: Path, share: float) -> Report:
    """Export spans of services of these names, and look at what was written where."""
    inbox, problems = folder / "deep" / "inbox", []
    with command("receive", "--inbox", inbox) as server, HttpClient(server) as client:
        for number, name in enumerate(NAMES):
            document = json.loads(orjson.dumps(batch(chat(number, [("user", f"hi {number}")], [("assistant", "hello")]))))
            for resource in document["resourceSpans"]:
                resource["resource"] = {
                    "attributes": [
                        {"key": key, "value": {"stringValue": name}}
                        for key in ("service.name", "service.namespace", "host.name")
                    ]
                }
            answer = client.send("POST", "/v1/traces", json.dumps(document), **{"X-Scope-OrgID": "../planted"})
            problems += [f"{name[:30]!r}: {answer.status}"] if answer.status not in (200, 400) else []
    written = [path for path in folder.rglob("*") if path.is_file()]
    problems += [f"{path} was written" for path in written if inbox not in path.parents]
    problems += [
        f"{path.name!r} is a name"
        for path in written
        if not path.name.replace("-", "").replace("_", "").replace(".", "").isalnum()
    ]
    problems += ["a file was planted"] if Path("/tmp/planted-by-export").exists() else []
    text = b"".join(path.read_bytes() for path in written if path.suffix in (".jsonl", ".json"))
    problems += (
        [f"{sum(f'hi {n}'.encode() in text for n in range(len(NAMES)))} of {len(NAMES)} exports are kept"]
        if written and not all(f"hi {n}".encode() in text for n in range(len(NAMES))) and text
        else []
    )
    return Report(len(NAMES), tuple(problems))


def test_an_export_writes_in_the_inbox(tmp_path: Path) -> None:
    assert attack(tmp_path, 0.01).problems == ()
