"""Logs whose field names would be configuration: `sniff --write` writes what parses as it was meant, with no key of the log's
making."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path

import pytest

from extractors import configuration
from tests.attacks.report import Report
from tests.command_line import called

KEYS = (
    'x"]\n[release]\nregistry = "/planted',
    "a.b",
    'a"b',
    "a'b",
    "a\nb",
    "a\\",
    "",
    " ",
    "[[sources]]",
    "#",
    "=",
    "a = 1",
    "__class__",
    "\u202eyek",
    "\x00",
    "é" * 50,
    "}",
    '"""',
    "'''",
    "privacy",
    "a\tb",
    "\ud7ff",
    "${HOME}",
    "{0}",
)


def attack(folder: Path, share: float) -> Report:
    """Write logs of an unknown format with each key in each place, and propose a mapping."""
    problems, n_tried = [], 0
    for number, key in enumerate(KEYS if share >= 0.1 else KEYS[:4]):
        for place in ("text", "who", "when"):
            n_tried += 1
            names = {"text": "body", "who": "speaker", "when": "at"} | {place: key}
            log, written = folder / f"{number}{place}.jsonl", folder / f"{number}{place}.toml"
            log.write_text(
                "".join(
                    json.dumps(
                        {
                            "thread": f"t{n // 2}",
                            names["who"]: "customer" if n % 2 else "bot",
                            names["text"]: f"hello {n}, my lamp is broken",
                            names["when"]: f"2026-01-01T00:00:{n:02}Z",
                        }
                    )
                    + "\n"
                    for n in range(10)
                )
            )
            done = called("sniff", log, "--write", written)
            problems += (
                [f"{key!r}: {done.stderr[-200:]}"] if done.returncode > 1 or "mistake in Traceroom" in done.stderr else []
            )
            if written.exists():
                try:
                    made = tomllib.loads(written.read_text("utf-8"))
                    configuration.load(written)
                except Exception as error:
                    problems.append(f"{key!r}, {place}: {type(error).__name__}: {str(error)[:150]}")
                    continue
                problems += [f"{key!r}: it has {sorted(made)}"] if set(made) - {"sources"} else []
    return Report(n_tried, tuple(problems))


@pytest.mark.slow
def test_a_proposed_mapping_holds_what_was_meant(tmp_path: Path) -> None:
    assert attack(tmp_path, 0.01).problems == ()
