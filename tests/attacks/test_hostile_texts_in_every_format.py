"""Hostile texts in every field of every format: NUL, half characters, escapes, directions, templates; each file is read."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.attacks.fuzz import TEXTS
from tests.attacks.logs import changed_sample, samples, unread
from tests.attacks.report import Report


def replaced(hostile: str) -> Any:
    """Return what replaces each text of a value."""
    return lambda leaf: hostile if isinstance(leaf, str) else leaf


def mixed(hostile: str) -> Any:
    """Return what adds to each text of a value, so that it stays what it is."""
    return lambda leaf: f"{leaf}{hostile}" if isinstance(leaf, str) else leaf


def attack(folder: Path, share: float) -> Report:
    """Replace each text of each sample, and add to each."""
    texts = TEXTS if share >= 0.1 else ("", "\0", "\ud800", "\u202e", "[" * 500)
    n_tried, problems = unread(samples(share), lambda path: (
        (f"{work.__name__} {text[:10]!r}", changed_sample(path, work(text))) for text in texts for work in (replaced, mixed)),
        folder)
    return Report(n_tried, tuple(problems))


def test_no_text_stops_the_reading_of_a_format(tmp_path: Path) -> None:
    assert attack(tmp_path, 0.01).problems == ()
