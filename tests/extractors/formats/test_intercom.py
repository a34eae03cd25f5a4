"""Intercom: what was said without markup, ratings once, what is no message, lists and webhooks."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import orjson
import polars as pl
import pytest

from extractors.inventory import SourceFile
from extractors.reading import Reading, read


def part(kind: str, body: str | None, author: str = "user", **fields: Any) -> dict[str, Any]:
    return {"part_type": kind, "body": body, "author": {"type": author, "id": f"{author}1"}, "created_at": 1772446510, **fields}


def conversation(*parts: dict[str, Any], **fields: Any) -> dict[str, Any]:
    return {"type": "conversation", "id": "215", "created_at": 1772446500, "state": "open",
            "source": {"body": "<p>Hello</p>", "author": {"type": "lead", "id": "l"}},
            "conversation_parts": {"conversation_parts": list(parts), "total_count": len(parts)}, **fields}


def read_all(tmp_path: Path, value: Any) -> Reading:
    path = tmp_path / "export.json"
    path.write_bytes(orjson.dumps(value, option=orjson.OPT_INDENT_2))
    reading = read(SourceFile(path, path.name))
    assert reading.file.format == "intercom"
    return reading


def test_parts(tmp_path: Path) -> None:
    picture = part("comment", '<p>see</p><img src="x.png">', "admin", attachments=[{"url": "https://x/a.pdf"}])
    reading = read_all(tmp_path, conversation(
        part("assignment", None, "admin"), part("note", "<p>rude customer</p>", "admin"), picture,
        part("close", "<p>Bye &amp; thanks</p>", "bot"), contacts={"contacts": [{"id": "c", "external_id": "ann"}]}))
    text = reading.events.filter(kind="message")
    assert text.select("role", "content", "position", "name").rows() == [
        ("user", "Hello", 0, "ann"), ("assistant", "see", 1, "ann"), ("assistant", "Bye & thanks", 2, "ann")]
    assert text["lossy"].to_list() == [None, '["img x.png","attachment https://x/a.pdf"]', None]
    assert reading.events.filter(kind="log").select("tool", "content").rows() == [
        ("assignment", None), ("note", "rude customer")]
    assert set(reading.events["session_id"]) == {"215"}


@pytest.mark.parametrize("agent, expected", [
    (5, [("conversation_rating", "5")]), (2, [("conversation_rating", "5"), ("ai_agent_rating", "2")]),
    (None, [("conversation_rating", "5")])])
def test_ratings(tmp_path: Path, agent: int | None, expected: list[tuple[str, str]]) -> None:
    reading = read_all(tmp_path, conversation(
        conversation_rating={"rating": 5, "remark": "", "created_at": 1772446589}, statistics={"count_reopens": 2},
        ai_agent={"rating": agent, "resolution_state": "assumed_resolution"}, custom_attributes={"session_id": "s"}))
    given = reading.events.filter(kind="feedback")
    assert given.select("name", "value").rows() == expected and given["content"].null_count() == given.height
    assert reading.events.filter(kind="outcome").select("session_id", "name", "value").rows() == [
        ("s", "resolution_state", "assumed_resolution"), ("s", "conversation_state", "open"), ("s", "reopened", "true")]


def test_a_conversation_nobody_rated_says_nothing_of_it(tmp_path: Path) -> None:
    reading = read_all(tmp_path, conversation(conversation_rating={"rating": None}))
    assert reading.events.filter(kind="feedback").is_empty()


def test_lists_webhooks_and_parts_that_were_left_out(tmp_path: Path) -> None:
    short = conversation(part("comment", "b"))
    short["conversation_parts"]["total_count"] = 9
    many = [conversation(), {**short, "id": "2"}, {"id": 3}]
    listed = read_all(tmp_path, {"type": "conversation.list", "conversations": many})
    assert set(listed.events["session_id"]) == {"215", "2", "3"}
    assert listed.decisions.filter(~pl.col("kept"))["reason"].to_list() == ["parts_left_out"]
    hook = read_all(tmp_path, {"type": "notification_event", "topic": "conversation.closed", "data": {"item": conversation()}})
    assert hook.events.filter(kind="message")["content"].to_list() == ["Hello"]
