"""Ratings inside the records of conversations, and tables of tickets with a status."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import orjson
import pytest

from extractors.formats import named
from extractors.formats.ratings import ratings_of
from tests.extractors.formats.platforms import events, read_platform_log, sample_values
from tests.extractors.formats.provider_reading import rejected_reasons
from tests.extractors.formats.test_shapes import SHAPES, read_shape

MESSAGES = [{"role": "user", "content": "go"}, {"role": "assistant", "content": "done"}]


@pytest.mark.parametrize(("record", "expected"), [
    ({"thumbs": "up"}, [("thumbs", "up", None)]), ({"metadata": {"csat_score": 4, "csat_comment": "fine"}}, [
        ("csat_score", "4", "fine")]),
    ({"user_feedback": {"rating": 2, "comment": "slow"}}, [("rating", "2", "slow")]),
    ({"scores": {"helpfulness": 0.5, "tone": 1}}, [("helpfulness", "0.5", None), ("tone", "1", None)]),
    ({"scores": '{"helpfulness": 0.5}'}, [("helpfulness", "0.5", None)]),
    ({"scores": [{"name": "good", "value": 1, "comment": "yes"}]}, [("good", "1", "yes")]),
    ({"feedback": [{"key": "user_score", "score": 0}]}, [("user_score", "0", None)]),
    ({"feedback_stats": {"user_score": {"n": 1, "avg": 1.0, "values": {}}, "tag": {"n": 1, "avg": None, "values": {"bad": 1}}}},
     [("user_score", "1.0", None), ("tag", "bad", None)]),
    ({"ticket_status": "solved", "resolved": False}, [("ticket_status", "solved", None), ("resolved", "false", None)]),
    ({"status": "success", "model": "m", "quality": "hd", "score_id": 7, "rating_scale": 5, "thumbs": None, "n": 1}, []),
    ({"feedback_stats": {"user_score": {"n": 0, "avg": None, "values": {}}}}, [])])
def test_ratings_of_any_shape(record: dict[str, Any], expected: list[tuple[str, str, str | None]]) -> None:
    assert list(ratings_of(record)) == expected


@pytest.mark.parametrize("record", [
    {"session_id": "s", "messages": MESSAGES, "thumbs": "down"},
    {"session_id": "s", "messages": MESSAGES[:1], "response": "done", "metadata": {"thumbs": "down"}},
    {"session_id": "s", "request": {"messages": MESSAGES[:1]}, "response": {"choices": [{"message": MESSAGES[1]}]},
     "thumbs": "down"},
    {"session_id": "s", "request": {"messages": MESSAGES[:1]}, "response": {
        "type": "message", "role": "assistant", "content": "done"}, "thumbs": "down"}])
def test_a_rating_in_a_record_is_feedback_on_its_session_once(record: dict[str, Any], tmp_path: Path) -> None:
    (tmp_path / "log").write_bytes((orjson.dumps(record) + b"\n") + orjson.dumps({**record, "id": "again"}))
    reading, made = read_shape(tmp_path / "log")
    assert rejected_reasons(reading) == []
    assert made.feedback.select("session_id", "name", "value").rows() == [("s", "thumbs", "down")]


def test_platforms_runs_carry_ratings() -> None:
    runs = sample_values(named("langsmith"))
    rated = [{**run, "feedback_stats": {"user_score": {"n": 1, "avg": 1.0, "values": {}}}} for run in runs]
    [opinion] = events(read_platform_log("langsmith", *rated), "feedback")
    assert (opinion["name"], opinion["value"]) == ("user_score", "1.0") and opinion["session_id"]
    rows = [{**row, "metadata": {"thumbs": "up"}} for row in sample_values(named("langfuse"))]
    assert {row["name"] for row in events(read_platform_log("langfuse", *rows), "feedback")} == {"thumbs"}


def test_a_table_of_tickets_with_a_status_tells_outcomes(tmp_path: Path) -> None:
    reading, _ = read_shape(SHAPES / "tickets_with_status.csv")
    assert reading.file.format == "feedback" and rejected_reasons(reading) == []
    outcomes = reading.events.filter(kind="outcome").select("session_id", "name", "value").rows()
    assert outcomes == [("c-4", "status", "solved"), ("c-5", "status", "reopened"), ("c-6", "status", "closed")]
    for other in ("case_id,activity,time,status\n1,open,2026-03-02T10:15:00Z,done\n",
                  "session_id,host,status\ns,h,200\n"):   # steps of cases, and answers of servers
        (tmp_path / "other.csv").write_text(other)
        assert read_shape(tmp_path / "other.csv")[0].file.format != "feedback"
