"""Files to records: layouts, what is left and why, ids."""

from __future__ import annotations

import gzip
from datetime import UTC, datetime
from pathlib import Path

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from extractors import content
from extractors.inventory import SourceFile
from extractors.reading import Reading, read

SESSION = '{"session_id":"s%d","messages":[{"role":"user","content":"hello"}]}'


def reading_of(tmp_path: Path, text: str | bytes, name: str = "x.jsonl") -> Reading:
    path = tmp_path / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return read(SourceFile(path, name))


def test_records_point_to_their_bytes(tmp_path: Path) -> None:
    text = f"\n{SESSION % 1}\r\n  {SESSION % 2}\n\n{SESSION % 1}"
    reading = reading_of(tmp_path, text)
    assert reading.records["line"].to_list() == [2, 3, 5]
    raw = text.encode()
    for row in reading.records.iter_rows(named=True):
        chunk = raw[row["byte_offset"]:].lstrip()[:row["n_bytes"]]
        assert b"messages" in chunk and chunk.startswith(b"{") and chunk.endswith(b"}")
    assert reading.records["record_id"].n_unique() == 3


def test_bad_lines_cost_themselves_alone(tmp_path: Path) -> None:
    reading = reading_of(tmp_path, f'{SESSION % 1}\n{{"torn": \n[1,2]\n{{"messages": []}}\n{SESSION % 2}\n')
    assert reading.events["session_id"].to_list() == ["s1", "s2"]
    left = reading.decisions.filter(~pl.col("kept")).sort("line")
    assert left.select("line", "reason").rows() == [(2, "unreadable_record"), (3, "no_messages"), (4, "no_messages")]
    assert left["detail"][0].startswith("x.jsonl, line 2: ") and left["file_id"].n_unique() == 1
    assert reading.records.height == 5, "rows in = rows kept + rows in decisions"


@pytest.mark.parametrize(("name", "text", "reason"), [
    ("notes.md", "# A conversation", "not_a_log"), ("LICENSE", "MIT License, 1", "not_a_log"), ("e.jsonl", " \n", "empty_file"),
    ("traceroom.toml", "[gates]\n", "not_a_log"), ("x.bin", b"\x00\x01,\x02\n", "unknown_format"),
    ("x.json", '{"a": 1}', "unknown_format"), ("x.gz", b"\x1f\x8b\x08damaged", "unreadable_file"),
    ("x.txt", "plain words, and more", "unknown_format"),
    (f"{'0af' * 21}b.csv", "a,b\n1,2\n", "not_a_log")])
def test_what_is_no_log_is_left_with_a_reason(name: str, text: str | bytes, reason: str, tmp_path: Path) -> None:
    reading = reading_of(tmp_path, text, name)
    [decision] = reading.decisions.to_dicts()
    assert (decision["reason"], decision["kept"], decision["subject"]) == (reason, False, reading.file.file_id)
    assert name in decision["detail"] and reading.events.is_empty() and reading.records.is_empty()


def test_a_document_and_lines_and_gzip_say_the_same(tmp_path: Path) -> None:
    lines = f"{SESSION % 1}\n{SESSION % 2}\n"
    listed = f"[\n {SESSION % 1},\n {SESSION % 2}\n]"
    told = ["session_id", "kind", "role", "content", "event_id"]
    first = reading_of(tmp_path, lines)
    assert first.events.select(told).equals(reading_of(tmp_path, gzip.compress(lines.encode()), "y").events.select(told))
    assert first.events.select(told).equals(reading_of(tmp_path, listed, "z").events.select(told))
    assert first.events.select(told).equals(reading_of(tmp_path, "\ufeff" + lines, "bom").events.select(told))


def test_the_clock_and_the_path_reach_the_ledger_alone(tmp_path: Path) -> None:
    one = reading_of(tmp_path, SESSION % 1, "here/a.jsonl")
    path = tmp_path / "there.log"
    path.write_text(SESSION % 1)
    other = read(SourceFile(path, "there.log"), read_at=datetime(2001, 1, 1, tzinfo=UTC))
    assert one.events.equals(other.events) and one.records.equals(other.records)
    assert one.file.file_id == other.file.file_id and one.file.path != other.file.path
    assert other.file.read_at.year == 2001


def test_what_other_writers_write(tmp_path: Path) -> None:
    """NaN and lone surrogates are no JSON, but they are in logs."""
    reading = reading_of(tmp_path, '{"session_id":"s","cost":NaN,"messages":[{"role":"user","content":"a\\ud800b"}]}\n')
    assert reading.events["content"].to_list() == ["a?b"]


@pytest.mark.parametrize(("said", "expected"), [
    (b'"B\xe9la"', "B\ufffdla"), (b'"a\\ud800b"', "a?b"), (b'"x", "cost": -Infinity', "x"),
    (b'"x", "n": 123456789012345678901234567890, "m": NaN', "x")])
def test_what_is_not_taken_as_it_lies_there_is_said(said: bytes, expected: str, tmp_path: Path) -> None:
    line = b'{"session_id":"s","messages":[{"role":"user","content":%s}]}\n' % said
    reading = reading_of(tmp_path, SESSION.encode() % 1 + b"\n" + line)
    assert reading.events["content"].to_list() == ["hello", expected]
    [mended] = reading.decisions.filter(pl.col("reason") == "mended_record").to_dicts()
    assert mended["kept"] and mended["line"] == 2 and "column" in mended["detail"] and "UTF-8" in mended["detail"]


@pytest.mark.parametrize("encoding", ["utf-16", "utf-8-sig"])
def test_other_ways_to_write_the_same_text(encoding: str, tmp_path: Path) -> None:
    text = f"{SESSION % 1}\r\n{SESSION % 2}\r\n".replace("hello", "Éva, ça va?")
    plain, other = reading_of(tmp_path, text), reading_of(tmp_path, text.encode(encoding), "other.jsonl")
    told = ["session_id", "content", "event_id"]
    assert other.events.select(told).equals(plain.events.select(told)) and plain.events["content"][0] == "Éva, ça va?"
    torn = reading_of(tmp_path, b"\xff\xfe" + text.encode("utf-16-le")[:-3] + b"\xd8", "torn.jsonl")
    assert torn.decisions["reason"].to_list() == ["unreadable_file"]


@pytest.mark.parametrize("depth", [200, 600, 5000])
def test_a_value_too_deep_to_write_costs_its_record_alone(depth: int, tmp_path: Path) -> None:
    deep = '{"x":' * depth + "1" + "}" * depth
    line = '{"session_id":"s","messages":[{"role":"user","content":' + deep + "}]}"
    reading = reading_of(tmp_path, f"{SESSION % 1}\n{line}\n{SESSION % 2}")
    left = reading.decisions.filter(~pl.col("kept"))
    assert left.select("reason", "line").rows() == ([("unreadable_record", 2)] if depth > 254 else [])
    assert reading.events["session_id"].n_unique() == (2 if left.height else 3)


def test_a_damaged_first_session_does_not_hide_the_others(tmp_path: Path) -> None:
    damaged = '{"session_id":"s0","messages":[null,{"role":"user","content":"hello"},{"content":"?"}]}'
    reading = reading_of(tmp_path, f'{{"session_id":"x","messages":null}}\n{damaged}\n{SESSION % 1}\n')
    assert (reading.file.format, reading.events["session_id"].unique().sort().to_list()) == ("openai_sessions", ["s0", "s1"])
    assert reading.decisions.filter(~pl.col("kept"))["line"].to_list() == [1]
    assert reading_of(tmp_path, '{"messages":["a",{"role":"user"},"b"]}\n', "y").file.format == "unknown_format"


def test_a_tool_list_is_named_after_its_file(tmp_path: Path) -> None:
    text = '[{"name": "open_door", "parameters": {"type": "object"}}]'
    assert reading_of(tmp_path, text, "tools/desk.json").declarations["service"].to_list() == ["desk"]
    assert reading_of(tmp_path, text, "tools.json").declarations["service"].to_list() == [None]


TEXTS = st.text(st.characters(codec="utf-8", exclude_characters="\0\r"), max_size=8)


@given(fields=st.lists(st.lists(TEXTS, min_size=3, max_size=3), min_size=1, max_size=6))
def test_rows_of_a_table_point_to_their_bytes(fields: list[list[str]]) -> None:
    def quoted(row: list[str]) -> str:
        return ",".join('"' + field.replace('"', '""') + '"' for field in row)

    table = ("a,b,c\n" + "".join(quoted(row) + "\n" for row in fields)).encode()
    found = content.records_of(table, "table")
    assert [list(value.values()) for value in found.values or []] == fields
    for byte_offset, raw in zip(found.byte_offsets, found.contents, strict=True):
        assert table[byte_offset:][:len(raw)] == raw


def test_the_public_names_are_those_of_the_package() -> None:
    import extractors

    assert [getattr(extractors, name).__name__ for name in extractors.__all__] == extractors.__all__
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        extractors.nothing  # noqa: B018
