"""Anybody's table of feedback: long and wide rows, sessions and answers under many names, outcomes beside opinions."""

from __future__ import annotations

import csv
import io
from pathlib import Path
from typing import Any

import orjson
import polars as pl
import pytest

from extractors.formats import Head, recognise
from extractors.formats.feedback import FORMAT
from extractors.inventory import SourceFile
from extractors.reading import Reading, read


def read_all(tmp_path: Path, content: bytes) -> Reading:
    path = tmp_path / "opinions"
    path.write_bytes(content)
    reading = read(SourceFile(path, path.name))
    assert reading.file.format == "feedback", reading.file.format
    return reading


def feedback_rows(reading: Reading) -> list[tuple[Any, ...]]:
    return reading.events.select("kind", "session_id", "name", "value", "content").rows()


ROWS: list[tuple[dict[str, Any], list[tuple[Any, ...]]]] = [
    ({"Conversation ID": "c", "CSAT Score": 4, "Resolved?": "yes", "Comment": "ok", "Created At": "2026-03-02 10:15:00"},
     [("feedback", "c", "CSAT Score", "4", "ok"), ("feedback", "c", "Resolved?", "yes", None)]),
    ({"ticketId": 17, "thumbs_up": True, "thumbs_down": None}, [("feedback", "17", "thumbs_up", "true", None)]),
    ({"trace_id": "abc", "metric": "helpfulness", "score": 0.5, "explanation": "so"},
     [("feedback", "trace:abc", "helpfulness", "0.5", "so")]),
    ({"session": "s", "type": "csat", "value": 5}, [("feedback", "s", "csat", "5", None)]),
    ({"session": "s", "type": "billing", "rating": 5}, [("feedback", "s", "rating", "5", None)]),
    ({"chat_id": "s", "stars": 1, "status": "closed", "refund_amount": 12.5, "reopened": False},
     [("feedback", "s", "stars", "1", None), ("outcome", "s", "status", "closed", None),
      ("outcome", "s", "refund_amount", "12.5", None), ("feedback", "s", "reopened", "false", None)]),
    ({"case_id": "s", "rating": "", "feedback": "they never called me back"},
     [("feedback", "s", "comment", "they never called me back", "they never called me back")]),
    ({"thread_id": "s", "feedback": "good"}, [("feedback", "s", "feedback", "good", None)]),
    ({"session_id": "s", "question": "Did they tell you the refund status?", "answer": "no"},
     [("feedback", "s", "Did they tell you the refund status?", "no", None)]),
]


@pytest.mark.parametrize("row, expected", ROWS, ids=lambda each: str(each)[:50])
@pytest.mark.parametrize("layout", ["lines", "document", "wrapped"])
def test_rows_of_other_people(tmp_path: Path, row: dict[str, Any], expected: list[tuple[Any, ...]], layout: str) -> None:
    content = {"lines": orjson.dumps(row), "document": orjson.dumps([row], option=orjson.OPT_INDENT_2),
               "wrapped": orjson.dumps({"ratings": [row]}, option=orjson.OPT_INDENT_2)}[layout]
    assert feedback_rows(read_all(tmp_path, content)) == expected


def test_tables(tmp_path: Path) -> None:
    out = io.StringIO()
    writer = csv.writer(out)
    writer.writerow(["Ticket", "Submitted On", "NPS", "Would, you \"say\" it was helpful", "User ID"])
    writer.writerow(["t1", "2026-03-02", "9", "yes", "u"])
    writer.writerow(["t2", "", "", "", "u"])
    reading = read_all(tmp_path, out.getvalue().encode())
    prompt = 'Would, you "say" it was helpful'
    assert feedback_rows(reading) == [("feedback", "t1", "NPS", "9", None), ("feedback", "t1", prompt, "yes", None)]
    assert reading.events["happened_at"].dt.date().to_list() == [reading.events["happened_at"][0].date()] * 2
    assert reading.events["lossy"].to_list() == ['["User ID u"]'] * 2
    assert reading.decisions.filter(~pl.col("kept")).select("reason", "line").rows() == [("incomplete_feedback", 3)]
    parquet = tmp_path / "opinions.parquet"
    pl.DataFrame({"session_id": ["a"], "csat": [5]}).write_parquet(parquet)
    assert feedback_rows(read(SourceFile(parquet, parquet.name))) == [("feedback", "a", "csat", "5", None)]


def test_the_sample(data: Path) -> None:
    path = data / "format_samples/09_feedback/generic_feedback.jsonl"
    reading = read(SourceFile(path, path.name))
    assert reading.events.select("kind", "name", "value", "call_id").rows() == [
        ("feedback", "thumb", "true", "chatcmpl-g5"), ("feedback", "csat", "5", None),
        ("outcome", "ticket_status", "solved", None), ("outcome", "refund", "2490", "re_9001")]
    assert reading.events["lossy"].to_list() == ['["turn 2"]', '["scale [1,5]"]', None, '["currency EUR"]']
    assert reading.events["happened_at"].null_count() == 0


@pytest.mark.parametrize("folder, names", [("airline", ("kind", "value")), ("retail_desk", ("kind", "value")),
                                           ("human_desk", ("question", "answer"))])
def test_the_real_feedback(data: Path, folder: str, names: tuple[str, str]) -> None:
    """Every row with an answer is one feedback event, as written."""
    for path in sorted((data / folder / "feedback").iterdir()):
        rows = list(csv.DictReader(path.open(encoding="utf-8", newline="")))
        reading = read(SourceFile(path, path.name))
        read_rows = reading.events.select("session_id", "name", "value").rows()
        assert read_rows == [(row["session_id"], row[names[0]], row[names[1]]) for row in rows if row[names[1]]]
        assert set(reading.events["kind"]) == {"feedback"} and reading.events["lossy"].null_count() == len(read_rows)


OTHERS: list[dict[str, Any]] = [
    {"session_id": "s", "level": "info", "status": 200}, {"session_id": "s", "role": "user", "content": "score"},
    {"session_id": "s", "messages": [], "score": 1}, {"session_id": "s", "status": 200, "event": "request_failed"},
    {"id": "1", "traceId": "t", "name": "csat", "value": 5, "dataType": "NUMERIC"}, {"rating": 5, "comment": "no session"},
    {"session_id": "s", "score": {"a": 1}}]


@pytest.mark.parametrize("row", OTHERS, ids=str)
def test_what_is_something_else(row: dict[str, Any]) -> None:
    head = Head("lines", [row])
    assert not FORMAT.claims(head)
    log_format = recognise(head)
    assert log_format is None or log_format.name != "feedback"
