"""A file nobody knows: the proposed mapping, unedited, reads it as it is meant; files that are known are named."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from extractors.configuration import load
from extractors.formats import registered
from extractors.inventory import discover
from extractors.reading import Reading, read
from extractors.sessions import assemble
from extractors.sniffing import Sniffed, sniff
from tests.extractors import envelopes
from tests.extractors.envelopes import Told
from warehouse.errors import Unreadable


def read_as_proposed(folder: Path, content: bytes) -> tuple[Sniffed, Reading]:
    """Return what a user gets who writes the proposal to a file and runs with it."""
    log, configuration = folder / "export.dat", folder / "traceroom.toml"
    log.write_bytes(content)
    found = sniff(log)
    assert found.format is None and found.certainty == "unknown", found.claimed_by
    configuration.write_text(found.snippet)
    files, _ = discover([log], configuration=load(configuration))
    return found, read(files[0])


def told(reading: Reading) -> Told:
    rows = reading.events.filter(pl.col("kind") != "log").to_dicts()
    return [(row["kind"], row["session_id"], row["tool"] or row["role"], row["content"] if row["kind"] in ("message", "result")
             else row["arguments"]) for row in rows]


@pytest.mark.parametrize("envelope", envelopes.ALL, ids=lambda each: each.__name__)
def test_the_proposed_mapping_reads_it_unedited(envelope: Callable[[], tuple[bytes, Told]], tmp_path: Path) -> None:
    content, meant = envelope()
    found, reading = read_as_proposed(tmp_path, content)
    assert told(reading) == meant
    assert reading.decisions.filter(~pl.col("kept")).is_empty() and reading.events.filter(kind="log").is_empty()
    assert reading.events["happened_at"].null_count() <= reading.events.filter(kind="result").height
    assert found.mapped is not None and found.mapped.events.height == reading.events.height


@pytest.mark.parametrize("envelope", [envelopes.nested_events, envelopes.audit_of_tools, envelopes.calls_inside_messages,
                                      envelopes.words_of_the_house], ids=lambda each: each.__name__)
def test_calls_get_their_results_and_errors(envelope: Callable[[], tuple[bytes, Told]], tmp_path: Path) -> None:
    _, reading = read_as_proposed(tmp_path, envelope()[0])
    turns = assemble(reading.events).turns.filter(kind="call")
    assert turns.height >= 3 and turns["result_id"].null_count() == 0
    failing = {envelopes.audit_of_tools: 1, envelopes.words_of_the_house: 1}.get(envelope, 0)
    assert turns["is_error"].fill_null(False).sum() == failing


def test_facts_beside_what_is_told(tmp_path: Path) -> None:
    requests = read_as_proposed(tmp_path, envelopes.request_log_with_odd_names()[0])[1].events
    assert json.loads(requests["value"][3]) == {"status": 503, "body": {"id": 3}}
    assert requests["latency_ms"].to_list() == [250.0 * (i + 1) for i in range(6)] and requests["call_id"][2] == "r2"
    asked = read_as_proposed(tmp_path, envelopes.two_sides_in_a_row()[0])[1].events
    assert asked.filter(role="assistant")["usage"][1] == '{"input_tokens":10,"output_tokens":7}'
    assert asked["usage"].null_count() == 6 and asked["model"].drop_nulls().unique().to_list() == ["m-1"]
    threads = read_as_proposed(tmp_path, envelopes.list_in_a_document()[0])[1].events
    assert threads["name"].unique().sort().to_list() == [f"a{c}@example.com" for c in range(3)]
    assert str(threads["happened_at"][0]) == "2026-03-02 09:00:00+00:00" and threads["position"].to_list()[:4] == [0, 1, 2, 0]


@pytest.mark.parametrize("log_format", [each for each in registered() if each.name != "mapped"], ids=lambda each: each.name)
def test_what_is_known_is_named(log_format: Any, tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_bytes(log_format.sample())
    found = sniff(path)
    known = read(discover([path])[0][0]).file.format
    assert found.format == (known if known != "unknown_format" else None) and not found.note, "as a run reads it"
    if found.reading is not None:
        assert found.certainty == ("general" if log_format.rank >= 60 else "certain")
        assert found.reading.events.height + found.reading.declarations.height > 0


def test_a_log_line_is_nobodys_message(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_bytes(envelopes.lines({"ts": f"2026-03-02T10:00:0{i}Z", "level": "info", "msg": "worker started", "pid": i}
                                     for i in range(8)))
    assert sniff(path).fields == {}
    path.write_bytes(envelopes.lines({"a": i, "b": [i]} for i in range(8)))
    assert sniff(path).fields == {} and sniff(path).format is None


def test_packed_empty_missing_and_damaged_files(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_bytes(gzip.compress(envelopes.flat_chat_rows()[0]))
    assert sniff(path).fields["session_id"] == "chatRef"
    path.write_bytes(gzip.compress(envelopes.flat_chat_rows()[0])[:-20])
    assert sniff(path).format is None
    path.write_bytes(b"")
    assert "empty" in sniff(path).note
    with pytest.raises(Unreadable, match="nowhere"):
        sniff(tmp_path / "nowhere")


def test_a_long_file_is_looked_at_by_its_beginning(tmp_path: Path) -> None:
    path = tmp_path / "log"
    content = envelopes.flat_chat_rows()[0]
    path.write_bytes(content * (6_000_000 // len(content)))
    found = sniff(path)
    assert not found.is_whole and found.fields["content"] == "said"
    path.write_bytes(content)
    assert sniff(path).is_whole


SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8) | st.sampled_from(
    ["user", "bot", "tool_call", "GET", "/a/b", "2026-03-02T10:00:00Z", "a b c d", '{"a": 1}', "ok", "1772446500"])
RECORDS = st.recursive(SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(
    st.sampled_from(["role", "content", "tool", "args", "id", "messages", "type", "at", "result", "url", "method", "rating",
                     "a.b", ""]), inner, max_size=5), max_leaves=15)


@given(records=st.lists(RECORDS, min_size=1, max_size=6))
def test_any_records_can_be_looked_at(records: list[Any], tmp_path_factory: pytest.TempPathFactory) -> None:
    path = tmp_path_factory.mktemp("any") / "log"
    path.write_bytes(envelopes.lines(records))
    found = sniff(path)
    if found.fields:
        configuration = path.parent / "traceroom.toml"
        configuration.write_text(found.snippet)
        assert load(configuration).sources[0].format == "mapped", "what is proposed can be used"
