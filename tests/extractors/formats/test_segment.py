"""Analytics calls: the corrected clock, the names of each kind of call, people known by two ids, batches, duplicates."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import orjson
import polars as pl
import pytest

from extractors.inventory import SourceFile
from extractors.reading import Reading, read

CLOCKS = {"originalTimestamp": "2026-03-02T10:13:00.100Z", "sentAt": "2026-03-02T10:13:00.600Z",
          "receivedAt": "2026-03-02T10:15:00.600Z", "timestamp": "2026-03-02T10:15:00.100Z"}


def call(number: int, kind: str = "track", **fields: Any) -> dict[str, Any]:
    return {"type": kind, "messageId": f"m{number}", "anonymousId": "anon", **CLOCKS, **fields}


def read_all(tmp_path: Path, *calls: Any) -> Reading:
    path = tmp_path / "archive"
    path.write_bytes(b"\n".join(map(orjson.dumps, calls)))
    reading = read(SourceFile(path, path.name))
    assert reading.file.format == "segment"
    return reading


@pytest.mark.parametrize("missing, at, note", [
    ((), "10:15:00.100000", None), (("timestamp",), "10:15:00.100000", None),
    (("timestamp", "sentAt"), "10:15:00.600000", None),
    (("timestamp", "receivedAt"), "10:13:00.100000", '["client clock"]')])
def test_the_servers_clock(tmp_path: Path, missing: tuple[str, ...], at: str, note: str | None) -> None:
    event_rows = {name: value for name, value in call(1, event="Opened").items() if name not in missing}
    [event] = read_all(tmp_path, event_rows).events.to_dicts()
    assert event["happened_at"].strftime("%H:%M:%S.%f") == at and event["lossy"] == note


def test_each_kind_of_call(tmp_path: Path) -> None:
    reading = read_all(
        tmp_path, call(1, event="Ticket Opened", properties={"session_id": "s", "n": 1}),
        call(2, "page", category="Help", name="Contact", properties={"path": "/c"}), call(3, "screen", name="Home"),
        call(4, "identify", userId="ann", traits={"plan": "none"}), call(5, "group", groupId="g", traits={"size": 3}),
        call(6, "alias", previousId="old", userId="ann", anonymousId=None), {"type": "track", "messageId": "m7"}, 5)
    assert reading.events["tool"].to_list() == [
        "Ticket Opened", "page Help Contact", "screen Home", "identify", "group", "alias", "track"]
    assert orjson.loads(reading.events["arguments"][4]) == {"groupId": "g", "size": 3}
    assert reading.events["session_id"][0] == "s" and set(reading.events["kind"]) == {"business"}
    assert reading.decisions.filter(~pl.col("kept"))["reason"].to_list() == ["no_call"]


def test_somebody_is_one_person_before_and_after_they_say_who_they_are(tmp_path: Path) -> None:
    shared = {"anonymousId": "shared"}
    reading = read_all(tmp_path, call(1, event="a"), call(2, event="b", **shared), call(3, "identify", userId="ann"),
                       call(4, event="c", userId="bob", **shared), call(5, event="d", userId="cat", **shared))
    assert reading.events["name"].to_list() == ["ann", "shared", "ann", "bob", "cat"]


def test_batches_and_messages_sent_twice(tmp_path: Path) -> None:
    batch = {"batch": [call(1, event="a"), call(2, event="b")], "sentAt": CLOCKS["sentAt"]}
    reading = read_all(tmp_path, batch, batch["batch"][0], call(3, event="c", context={"sessionId": 17, "page": {"path": "/"}}))
    assert reading.events["tool"].to_list() == ["a", "b", "c"]
    assert reading.decisions.filter(~pl.col("kept"))["reason"].to_list() == ["duplicate_event"]
    assert reading.events["session_id"].to_list() == [None, None, "17"] and '\\"page\\"' in (reading.events["lossy"][2] or "")
