"""Tables of what people did in pages: the target of each event is kept whole, what was typed into a password's field is not."""

from __future__ import annotations

from pathlib import Path

import orjson
import pytest

from extractors.inventory import SourceFile
from extractors.reading import read
from tests.extractors.formats.accounts import problems_of

TARGET = {"title": "Sign in", "url": "https://desk.example/login", "tag": "INPUT", "id": "i1", "name": "who", "text": "Go",
          "href": "/next", "xpath": "/html[1]/input[1]"}


@pytest.mark.parametrize("time", ["at", "ts", "timestamp", "Event Time"])
@pytest.mark.parametrize("typed", ["value", "input", "what was typed"])
def test_a_recorder_s_table_keeps_targets_and_loses_typed_passwords(time: str, typed: str, tmp_path: Path) -> None:
    path = tmp_path / "events.csv"
    columns = [time, "user", "event", *TARGET, "type", typed]
    rows = [["2026-03-02T10:00:00.250Z", "ruth", "type", *TARGET.values(), kind, text] for kind, text in (
        ("text", "Lyon"), ("password", "hush-77"), ("password", "*******"), ("Password", "4711"))]
    path.write_text("\n".join(",".join(row) for row in [columns, *rows]) + "\n")
    reading = read(SourceFile(path, path.name))
    assert reading.file.format == "event_table" and not problems_of(reading)
    kept = [orjson.loads(each) for each in reading.events["arguments"]]
    cut = {**TARGET, "text": "[secret]", typed: "[secret]"}   # `text` is where some recorders put what was typed
    assert kept == [{**TARGET, "type": "text", typed: "Lyon"}, {**cut, "type": "password"}, {**cut, "type": "password"},
                    {**cut, "type": "Password"}]
    assert reading.events["tool"].to_list() == ["type"] * 4 and reading.events["name"].to_list() == ["ruth"] * 4
    assert reading.events["happened_at"][0].isoformat() == "2026-03-02T10:00:00.250000+00:00"


def test_a_row_that_gives_nothing_is_kept_without_what_was_typed(tmp_path: Path) -> None:
    path = tmp_path / "events.csv"
    rows = ["at,user,event,type,keys", *["2026-03-02T10:00:00Z,ruth,click,text,a"] * 9,
            "2026-03-02T10:00:01Z,ruth,,password,hush-77"]
    path.write_text("\n".join(rows) + "\n")
    reading = read(SourceFile(path, path.name))
    assert reading.file.format == "event_table" and reading.quarantine.height == 1
    kept = reading.quarantine.row(0, named=True)
    assert any(b"[secret]" in each and b"hush" not in each for each in kept.values() if isinstance(each, bytes))
