"""Requests to tools: templates, arguments, answers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import orjson
import polars as pl

from extractors.inventory import SourceFile
from extractors.reading import read
from extractors.sessions import assemble

LOG = Path(__file__).parents[1] / "logs/shop_app/logs/2026-03-03.ndjson"


def turns_of(folder: Path, *lines: dict[str, Any]) -> pl.DataFrame:
    path = folder / "requests.ndjson"
    path.write_bytes(b"\n".join(orjson.dumps({"time": 1_700_000_000_000 + i, **line}) for i, line in enumerate(lines)))
    return assemble(read(SourceFile(path, path.name)).events).turns


def test_arguments_answer_and_error(tmp_path: Path) -> None:
    asked = {"method": "POST", "url": "/doors/17?doors_1=x&side=left&side=right", "user": {"id": "u"},
             "body": {"z": 1, "a": None}}
    answer = {"statusCode": 409, "body": {"z": "late", "a": [1.0, "ü"]}}
    [turn] = turns_of(tmp_path, {"req": asked, "res": answer, "responseTime": 250}).to_dicts()
    assert turn["tool"] == "POST /doors/{doors_1}"
    assert orjson.loads(turn["arguments"]) == {
        "doors_1": "17", "query_doors_1": "x", "side": ["left", "right"], "z": 1, "a": None}
    assert turn["content"] == '{"status":409,"body":{"z":"late","a":[1.0,"ü"]}}' and turn["is_error"] is True
    assert (turn["answered_at"] - turn["happened_at"]).total_seconds() == 0.25


def test_what_was_not_captured_is_not_made_up(tmp_path: Path) -> None:
    [turn] = turns_of(tmp_path, {"req": {"method": "GET", "url": "/doors"}, "res": {"statusCode": 200}}).to_dicts()
    assert turn["content"] == '{"status":200}' and turn["arguments"] == "{}" and turn["is_error"] is False


def test_a_real_day_of_a_back_office() -> None:
    events = read(SourceFile(LOG, LOG.name)).events
    made = assemble(events)
    logged = [orjson.loads(line) for line in LOG.read_bytes().splitlines()]
    assert made.turns.height == len(logged)
    assert set(made.sessions["identity"]) == {row["req"]["user"]["id"] for row in logged}
    assert not made.tools["tool"].str.contains(r"\d{3}").any(), "no id stays in a tool's name"
    assert sorted(made.turns["content"]) == sorted(
        orjson.dumps({"status": row["res"]["statusCode"], "body": row["res"]["body"]}).decode() for row in logged)


def test_what_an_access_log_alone_states_stays_in_the_events(tmp_path: Path) -> None:
    line = 'h - {} [02/Mar/2026:10:{}:03 +0000] "GET /a/17?b=1 HTTP/1.1" 404 {} "http://x/" "agent"\n'
    path = tmp_path / "access.log"
    path.write_text("".join(line.format(*each) for each in [("ann", 15, 5), ("ann", 20, 6), ("-", 20, 7), ("ann", 59, 8)]))
    made = assemble(read(SourceFile(path, path.name)).events)
    assert set(made.turns["content"]) == {'{"status":404}'} and made.turns["is_error"].all()
    assert set(made.turns["arguments"]) == {'{"a_1":"17","b":"1"}'} and set(made.turns["tool"]) == {"GET /a/{a_1}"}
    assert sorted(made.sessions.select("identity", "n_calls").rows()) == [("ann", 1), ("ann", 2), ("h", 1)]


def test_requests_of_one_second_keep_their_order(tmp_path: Path) -> None:
    path = tmp_path / "access.log"
    path.write_text("".join(f'h - - [02/Mar/2026:10:15:03 +0000] "GET /{name} HTTP/1.1" 200 5\n' for name in "hgfedcba"))
    assert [tool[-1] for tool in assemble(read(SourceFile(path, path.name)).events).turns["tool"]] == list("hgfedcba")
