"""People whose names are patterns, words of JSON, keys or nothing: only they are replaced, and no other text, key or number
is."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.attacks.report import Report
from tests.extractors.privacy.test_carrying import cleaned

NAMES = (
    ".*",
    "(a+)+$",
    "\\1",
    "[a-z]+",
    "%s",
    "{name}",
    "$1",
    "",
    " ",
    "e",
    "null",
    "true",
    "0",
    "id",
    "name",
    "content",
    "user",
    '"',
    "\\",
    "'; drop table x",
    "\n",
    "\u202e",
    "a" * 5_000,
    "order",
    "the",
    "status",
    "x" * 2,
    "{}",
    "[]",
    "<b>",
    "-",
    "=cmd",
)
TEXT = "The order ORD-1022 of the user has the status open; the town's name is Riga, and id 4711 is right. null true 0 [] {}"


def attack(folder: Path, share: float) -> Report:
    """Give a person each name in a record, beside a text and an answer that say nothing of anybody."""
    answer = json.dumps(
        {"order_id": "ORD-1022", "status": "open", "content": None, "ok": True, "n": 0, "items": [], "town": "Riga"}
    )
    problems = []
    for name in NAMES:
        for record in (
            {"customer": {"first_name": name, "last_name": name, "email": "ada@example.org"}},
            {"first_name": name, "last_name": "Zieliński"},
        ):
            made = cleaned(("result", json.dumps(record)), ("message", TEXT), ("result", answer))
            try:
                json.loads(made[0])
                same = json.loads(made[2])
            except ValueError as error:
                problems.append(f"{name[:20]!r}: what was JSON is none: {error}")
                continue
            problems += (
                [f"{name[:20]!r} changes {same}"]
                if same.keys() != json.loads(answer).keys() or same["order_id"] != "ORD-1022" or same["ok"] is not True
                else []
            )
            kept = sum(word in made[1] for word in TEXT.split())
            problems += (
                [f"{name[:20]!r} leaves {kept} of {len(TEXT.split())} words: {made[1][:80]}"]
                if kept < len(TEXT.split()) - 6
                else []
            )
    return Report(2 * len(NAMES), tuple(problems))


@pytest.mark.slow
def test_a_name_is_replaced_as_itself(tmp_path: Path) -> None:
    assert attack(tmp_path, 0.01).problems == ()
