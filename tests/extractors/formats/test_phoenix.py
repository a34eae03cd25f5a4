"""What Phoenix exports."""

from __future__ import annotations

from pathlib import Path

import orjson
import polars as pl
import pytest

from extractors.content import head_of
from extractors.formats import Format, phoenix_annotations, phoenix_spans, registered
from extractors.inventory import SourceFile
from extractors.reading import Reading, read
from tests.extractors.formats.spans import read_batches, rows

SPANS = phoenix_spans.FORMAT


def reading(path: Path) -> Reading:
    return read(SourceFile(path, path.name))


@pytest.fixture
def folder(data: Path) -> Path:
    return data / "format_samples/02_openinference"


def test_pages_rows_and_lines_tell_the_same(folder: Path, tmp_path: Path) -> None:
    lines = [orjson.loads(line) for line in (folder / "phoenix_rest_spans.jsonl").read_bytes().splitlines()]
    (tmp_path / "page.json").write_bytes(orjson.dumps({"data": lines, "next_cursor": None}))
    table = pl.read_parquet(folder / "phoenix_spans_dataframe.parquet")
    table.with_columns(pl.col("start_time", "end_time").dt.to_string()).write_csv(tmp_path / "rows.csv")
    lists = ["attributes.llm.input_messages", "attributes.llm.output_messages", "attributes.llm.tools"]
    rows = [{key: orjson.loads(value) if key in lists and value else value for key, value in row.items()}
             for row in table.to_dicts()]
    (tmp_path / "rows.jsonl").write_bytes(b"".join(orjson.dumps(row, default=str) + b"\n" for row in rows))
    told_by = ["kind", "role", "content", "tool", "arguments", "call_id", "is_error", "happened_at", "usage", "model"]
    expected = reading(folder / "phoenix_rest_spans.jsonl").events.filter(pl.col("kind") != "link").select(told_by)
    assert expected.height == 19
    written = [tmp_path / name for name in ("page.json", "rows.csv", "rows.jsonl")]
    for path in (folder / "phoenix_spans_dataframe.parquet", *written):
        made = reading(path)
        assert made.file.format == "phoenix_spans" and made.decisions.filter(~pl.col("kept")).is_empty(), path
        assert made.events.filter(pl.col("kind") != "link").select(told_by).equals(expected), path


def test_each_span_says_its_session_to_annotations(folder: Path) -> None:
    links = reading(folder / "phoenix_rest_spans.jsonl").events.filter(pl.col("kind") == "link")
    sessions = dict(links.select("value", "session_id").rows())
    given = reading(folder / "phoenix_span_annotations.jsonl").events
    assert given.height == 2 and {sessions[each] for each in given["session_id"]} == {"sess_7f3a2c"}
    assert given.select("name", "value", "call_id").rows() == [
        ("user_thumb", "1.0", "3cff8e338ae89246"), ("csat", "5.0", "7029e6ecdd23f71d")]


def test_annotations_of_all_kinds_and_none() -> None:
    note = {"id": "1", "name": "note", "annotator_kind": "HUMAN", "result": {"explanation": "odd"}, "trace_id": "a" * 32}
    session = {"name": "csat", "annotator_kind": "LLM", "result": {"label": "good"}, "session_id": "s1"}
    emit = read_batches(
        {"data": [note, session]}, {"name": "x"}, 7, {**note, "result": None}, log_format=phoenix_annotations.FORMAT
    )
    assert [(each["session_id"], each["name"], each["value"], each["content"], each["call_id"]) for each in emit.events] == [
        ("trace:" + "a" * 32, "note", None, "odd", None), ("s1", "csat", "good", None, None),
        ("trace:" + "a" * 32, "note", None, None, None)]
    assert [record.line for record, _, _ in emit.rejects] == [2, 3]


def test_an_empty_column_says_nothing() -> None:
    row = {"context.span_id": "1" * 16, "context.trace_id": "2" * 32, "span_kind": "TOOL", "name": "look", "start_time": None,
           "status_code": "UNSET", "attributes.input.value": '{"n":1}', "attributes.tool.name": "",
           "attributes.x": float("nan")}
    [call] = rows(read_batches(row, log_format=SPANS), "call")
    assert (call["tool"], call["arguments"], call["happened_at"]) == ("look", '{"n":1}', None)
    assert [record.line for record, _, _ in read_batches(7, None, log_format=SPANS).rejects] == [1, 2]


@pytest.mark.parametrize("log_format", [SPANS, phoenix_annotations.FORMAT], ids=lambda each: each.name)
def test_only_its_own_sample_is_claimed(log_format: Format) -> None:
    assert [each.name for each in registered() if log_format.claims(head_of(each.sample()))] == [log_format.name]
