"""Zendesk: tickets however they are wrapped, comments, ratings given and only offered, metrics."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import orjson
import pytest

from extractors.inventory import SourceFile
from extractors.reading import Reading, read


def ticket(number: int = 1, **fields: Any) -> dict[str, Any]:
    return {"id": number, "status": "open", "requester_id": 42, "via": {"channel": "chat"}, "description": "It <broke>",
            "created_at": "2026-03-02T10:15:00Z", "updated_at": "2026-03-02T11:00:00Z", **fields}


def read_all(tmp_path: Path, content: bytes) -> Reading:
    path = tmp_path / "tickets"
    path.write_bytes(content)
    reading = read(SourceFile(path, path.name))
    assert reading.file.format == "zendesk"
    return reading


@pytest.mark.parametrize("wrapped", [
    [{"ticket": ticket(), "metric_set": {"reopens": 2}}], [{**ticket(), "metric_set": {"reopens": 2}}],
    [{"tickets": [ticket()], "metric_sets": [{"ticket_id": 7}, {"ticket_id": 1, "reopens": 2}]}]])
def test_wrappings(tmp_path: Path, wrapped: list[dict[str, Any]]) -> None:
    for content in (orjson.dumps(wrapped[0]), orjson.dumps(wrapped, option=orjson.OPT_INDENT_2)):
        reading = read_all(tmp_path, content)
        assert reading.events.select("kind", "session_id", "name", "value", "content").rows() == [
            ("message", "1", "42", None, "It <broke>"), ("outcome", "1", "ticket_status", "open", None),
            ("outcome", "1", "reopened", "true", None), ("business", "1", None, None, None)]
        assert reading.events["lossy"][2] == '["reopens 2"]' and '"reopens":2' in reading.events["arguments"][3]


def test_comments(tmp_path: Path) -> None:
    comments = [{"author_id": 42, "html_body": "<p>Hi &amp; help</p>", "public": True, "created_at": "2026-03-02T10:15:00Z"},
                {"author_id": 7, "body": "angry one", "public": False},
                {"author_id": 7, "plain_body": "a < b", "attachments": [{"content_url": "https://x/a.png"}]}]
    reading = read_all(tmp_path, orjson.dumps({"ticket": ticket(external_id="s"), "comments": comments}))
    assert reading.events.select("kind", "role", "content", "lossy").rows()[:3] == [
        ("message", "user", "Hi & help", None), ("log", None, "angry one", None),
        ("message", "assistant", "a < b", '["attachment https://x/a.png"]')]
    assert set(reading.events["session_id"]) == {"s"}


@pytest.mark.parametrize("rating, expected", [
    ({"score": "good", "comment": "fine", "reason": "No reason provided"}, [("satisfaction_rating", "good", "fine")]),
    ({"score": "bad"}, [("satisfaction_rating", "bad", None)]), ({"score": "offered"}, []), ({"score": "unoffered"}, []),
    (None, [])])
def test_ratings(tmp_path: Path, rating: Any, expected: list[Any]) -> None:
    reading = read_all(tmp_path, orjson.dumps(ticket(satisfaction_rating=rating)))
    assert reading.events.filter(kind="feedback").select("name", "value", "content").rows() == expected


def test_surveys(tmp_path: Path) -> None:
    answers = [{"type": "rating_scale", "rating": 4, "rating_category": "good"}, {"type": "open_ended", "value": "quick"},
               {"type": "rating_scale", "rating": None}]
    reading = read_all(tmp_path, orjson.dumps(ticket(survey_responses=[{"answers": answers}])))
    assert reading.events.filter(kind="feedback").select("name", "value", "content", "lossy").rows() == [
        ("survey_rating", "4", "quick", '["rating_category good"]')]
