"""A conversation whose events come as files of their own: told once and whole, however often it was read while it grew."""

from __future__ import annotations

import shutil
from pathlib import Path

from tests.extractors.test_bundles import write_conversation
from tests.pipelines.ingestion import TABLES, held, ingest


def differing(one: Path, other: Path) -> list[str]:
    a, b = held(one), held(other)
    return [table for table in TABLES if not a[table].equals(b[table])]


def test_a_conversation_that_grows_is_what_one_run_over_it_gives(tmp_path: Path) -> None:
    logs = tmp_path / "logs"
    for n_events in (1, 3, 3, 5):
        write_conversation(logs / "a", "one", n_events)
        write_conversation(logs / "b", "two", 2)
        ingest(tmp_path / "grown", logs)
    ingest(tmp_path / "once", logs)
    assert differing(tmp_path / "grown", tmp_path / "once") == []
    events = held(tmp_path / "grown")["core.events"]
    assert sorted(events.filter(kind="message").group_by("session_id").len().rows()) == [("one", 5), ("two", 2)]


def test_a_copy_is_counted_and_outlives_what_it_was_copied_from(tmp_path: Path) -> None:
    logs, out = tmp_path / "logs", tmp_path / "out"
    write_conversation(logs / "a", "one", 2)
    ingest(out, logs)
    shutil.copytree(logs / "a", logs / "b")
    write_conversation(logs / "a", "one", 3)
    ingest(out, logs)
    messages = held(out)["core.events"].filter(kind="message")
    assert sorted(messages["content"]) == ["one says 0", "one says 0", "one says 1", "one says 1", "one says 2"]
    assert messages["file_id"].n_unique() == 2, "both folders are there, and sessions are joined by what they share"
