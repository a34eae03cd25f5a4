"""What every registered format keeps to, ours and anybody's: its `sample()` is all that it takes to be held to it.

`pytest tests/extractors/formats/test_contract.py -n 0 -k otlp` holds one format to it.
"""

from __future__ import annotations

import gzip
import os
import random
import subprocess
import sys
from pathlib import Path
from typing import Any

import orjson
import polars as pl
import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st

from extractors import content
from extractors.configuration import Source
from extractors.formats import Format, Head, registered
from extractors.inventory import SourceFile
from extractors.reading import Reading, read
from extractors.sessions import assemble
from tests.extractors.formats.accounts import accounted_for, problems_of

ROOT = Path(__file__).resolve().parents[3]
FORMATS = registered()
HEADS: dict[str, Head] = {each.name: head for each in FORMATS if (head := content.head_of(each.sample())) is not None}
JSON = ("lines", "document", "table")
IN_JSON = [each for each in FORMATS if HEADS[each.name].layout in JSON]
IN_TEXT = [each for each in FORMATS if HEADS[each.name].layout == "text"]
BY_LINE = [each for each in FORMATS if not each.whole and HEADS[each.name].layout in ("lines", "text")]
OPEN_ENDED = [each for each in BY_LINE if HEADS[each.name].layout == "text" or HEADS[each.name].document is None]
"""Formats whose sample may be followed by one more line."""
every = pytest.mark.parametrize("log_format", FORMATS, ids=lambda each: each.name)
KEYS = ["messages", "request", "response", "choices", "message", "role", "content", "tool_calls", "function", "name",
        "arguments", "session_id", "value", "kind", "op", "source", "before", "after", "payload", "req", "res", "url",
        "method", "headers", "type", "data", "events", "items", "output", "input", "action", "status", "span_id", "trace_id",
        "tools", "resourceSpans", "scopeSpans", "spans", "attributes", "key", "parts", "user", "body", "time", "id"]
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.floats(allow_nan=False, allow_infinity=False)
    | st.sampled_from(["assistant", "tool", "c", "gen_ai.input.messages", "2026-03-02", "", "/a?b=1", "{\"a\": [", "é"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(KEYS), inner, max_size=5), max_leaves=25)


def reading(folder: Path, content: bytes, log_format: str | None = None, name: str = "held.log") -> Reading:
    """Return what the bytes give; `log_format`: as if the configuration named it."""
    path = folder / name
    path.write_bytes(content)
    return read(SourceFile(path, name, Source(format=log_format)))


def event_rows(log_reading: Reading) -> pl.DataFrame:
    """Events without what depends on the rest of the file."""
    return log_reading.events.drop("file_id").sort("event_id")


def rejected_rows(log_reading: Reading) -> pl.DataFrame:
    return log_reading.decisions.filter(~pl.col("kept"))


def assert_accounted(log_reading: Reading) -> None:
    """Nothing vanishes."""
    problems = problems_of(log_reading)
    assert not problems, problems


@every
def test_the_sample_is_claimed_by_its_format_alone(log_format: Format, tmp_path: Path) -> None:
    assert [each.name for each in FORMATS if each.claims(HEADS[log_format.name])] == [log_format.name]
    assert reading(tmp_path, log_format.sample()).file.format == log_format.name


@every
def test_the_sample_reads_whole_and_typed(log_format: Format, tmp_path: Path) -> None:
    log_reading = reading(tmp_path, log_format.sample())
    assert_accounted(log_reading)
    assert log_reading.file.n_records == log_reading.records.height > 0 and log_reading.records["record_id"].is_unique().all()
    assert log_reading.events.height + log_reading.declarations.height > 0
    assert set(log_reading.events["format"]) <= {log_format.name} and set(log_reading.events["record_id"]) <= set(
        log_reading.records["record_id"])
    made = assemble(log_reading.events, log_reading.declarations)
    assert made.turns.select("session_id", "position").is_unique().all()


@every
def test_the_same_bytes_anywhere_and_packed_say_the_same(log_format: Format, tmp_path: Path) -> None:
    content = log_format.sample()
    first = reading(tmp_path, content)
    again = reading(tmp_path, content, name="elsewhere.data")
    assert first.file.file_id == again.file.file_id
    for other in (again, reading(tmp_path, gzip.compress(content), name="a.gz"),
                  reading(tmp_path, zstandard.compress(content), name="a.zst")):
        assert other.file.format == log_format.name
        assert event_rows(first).equals(event_rows(other)) and set(first.records["record_id"]) == set(
            other.records["record_id"]
        )
        assert first.declarations.drop("file_id", "service").equals(other.declarations.drop("file_id", "service"))


@pytest.mark.parametrize("log_format", BY_LINE, ids=lambda each: each.name)
def test_records_that_come_twice_keep_their_ids_apart(log_format: Format, tmp_path: Path) -> None:
    first = log_format.sample().splitlines(keepends=True)[0]
    log_reading = reading(tmp_path, first * 5, log_format.name)
    assert log_reading.records["record_id"].is_unique().all() and log_reading.events["event_id"].is_unique().all()


@every
def test_a_cut_anywhere_costs_what_was_cut(log_format: Format, tmp_path: Path) -> None:
    """A format of lines gives its whole lines and a decision for the rest, a document one decision; nothing else is lost."""
    content, layout = log_format.sample(), HEADS[log_format.name].layout
    first = content.find(b"\n") + 1
    cuts = sorted(random.Random(len(content)).sample(range(1, len(content)), min(25, len(content) - 1)))
    for cut in [*cuts, len(content) - 1]:
        log_reading = reading(tmp_path, content[:cut])
        assert_accounted(log_reading)
        if log_format.whole or layout not in ("lines", "text") or (layout == "lines" and not 0 < first < len(content)):
            same = content[:cut].strip() == content.strip()
            assert same or rejected_rows(log_reading).height or layout in ("text", "table"), f"cut at {cut}: not a word of it"
        elif cut >= first and log_reading.file.format == log_format.name and layout == "lines":
            _whole_lines(log_reading, content[:cut], tmp_path, log_format)


def _whole_lines(log_reading: Reading, log_bytes: bytes, tmp_path: Path, log_format: Format) -> None:
    end = log_bytes.rfind(b"\n") + 1
    whole = reading(tmp_path, log_bytes[:end], log_format.name, "whole")
    records = set(whole.records["record_id"])
    assert records <= set(log_reading.records["record_id"])
    torn = set(log_reading.records["record_id"]) - records
    if torn and rejected_rows(log_reading).filter(reason="unreadable_record", line=1 + log_bytes.count(b"\n")).height:
        assert event_rows(whole).equals(event_rows(log_reading)), "the whole lines say what they say without the torn one"
    else:
        assert not torn or content.parsed(log_bytes[end:])[1] is None, "what is no whole record has a decision"


@pytest.mark.parametrize("log_format", OPEN_ENDED, ids=lambda each: each.name)
def test_a_record_of_something_else_does_not_vanish(log_format: Format, tmp_path: Path) -> None:
    content, layout = log_format.sample(), HEADS[log_format.name].layout
    strange = {"lines": b'{"zz_unheard_of": {"deep": ["said nowhere else"]}}', "text": b"said nowhere else, by nobody"}
    plain = reading(tmp_path, content.rstrip(b"\n") + b"\n", log_format.name)
    log_reading = reading(tmp_path, content.rstrip(b"\n") + b"\n" + strange[layout] + b"\n", log_format.name)
    assert_accounted(log_reading)
    new = set(log_reading.records["record_id"]) - set(plain.records["record_id"])
    assert len(new) == 1 and new <= accounted_for(log_reading)


@pytest.mark.parametrize("log_format", IN_JSON, ids=lambda each: each.name)
@settings(max_examples=10)   # of each format
@given(values=st.lists(VALUES, min_size=1, max_size=4), document=st.booleans())
def test_any_json_becomes_events_or_a_reject(log_format: Format, values: list[Any], document: bool,
                                             tmp_path_factory: pytest.TempPathFactory) -> None:
    folder = tmp_path_factory.mktemp("any", numbered=True)
    content = orjson.dumps(values) if document else b"\n".join(map(orjson.dumps, values))
    assert_accounted(reading(folder, content, log_format.name))


@pytest.mark.parametrize("log_format", IN_TEXT, ids=lambda each: each.name)
@settings(max_examples=10)   # of each format
@given(text=st.text(min_size=1))
def test_any_text_becomes_events_or_a_reject(log_format: Format, text: str, tmp_path_factory: pytest.TempPathFactory) -> None:
    folder = tmp_path_factory.mktemp("any", numbered=True)
    assert_accounted(reading(folder, text.encode("utf-8", "replace"), log_format.name))


@pytest.mark.parametrize("log_format", [each for each in IN_JSON if HEADS[each.name].layout != "table"],
                         ids=lambda each: each.name)
@settings(max_examples=10)   # of each format
@given(data=st.data())
def test_a_damaged_record_breaks_nothing(log_format: Format, data: st.DataObject,
                                         tmp_path_factory: pytest.TempPathFactory) -> None:
    """One value somewhere inside a real record replaced by something else."""
    head, lines = HEADS[log_format.name], log_format.sample().splitlines()
    whole = head.layout == "document" or head.document is not None
    value = orjson.loads(log_format.sample() if whole else data.draw(st.sampled_from(lines)))
    place: Any = value
    while isinstance(place, (dict, list)) and place:
        keys = list(place) if isinstance(place, dict) else list(range(min(len(place), 4)))
        key = data.draw(st.sampled_from(keys))
        if not isinstance(place[key], (dict, list)) or not place[key] or data.draw(st.booleans()):
            place[key] = data.draw(VALUES)
            break
        place = place[key]
    folder = tmp_path_factory.mktemp("damaged", numbered=True)
    assert_accounted(reading(folder, orjson.dumps(value), log_format.name))


POND = '''
from extractors.formats import Format

def claims(head):
    return head.layout == "lines" and "pond" in head.first and "ripple" in head.first

def read(records, emit):
    for record in records:
        with emit.guarded(record):
            emit.event(record, "message", session_id=str(record.value["pond"]), role="user",
                       content=str(record.value["ripple"]))

FORMAT = Format(name="pond", claims=claims, read=read, rank=RANK,
                sample=lambda: b'{"pond": "a", "ripple": "hello"}\\n{"pond": "a", "ripple": "again"}\\n')
'''


def installed(folder: Path, source: str) -> dict[str, str]:
    """Return an environment in which somebody's package with the format `pond` is installed."""
    package = folder / "pond_format-1.0.dist-info"
    package.mkdir()
    (folder / "pond_format.py").write_text(source)
    (package / "METADATA").write_text("Metadata-Version: 2.1\nName: pond-format\nVersion: 1.0\n")
    (package / "entry_points.txt").write_text("[traceroom.formats]\npond = pond_format:FORMAT\n")
    return {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), str(folder)])}


def contract(folder: Path, source: str, tests: str) -> subprocess.CompletedProcess[str]:
    """Hold the format `pond`, and the others beside it, to all of the above."""
    return subprocess.run(
        [sys.executable, "-m", "pytest", str(Path(__file__).resolve()), "-n", "0", "-k", f"{tests} and not somebody",
         "-p", "no:cacheprovider", f"--basetemp={folder / 'base'}"],
        cwd=ROOT, env=installed(folder, source), capture_output=True, text=True, timeout=300, check=False)


def test_somebody_elses_pond_format_is_found_and_held_to_the_same(tmp_path: Path) -> None:
    done = contract(tmp_path, POND.replace("RANK", "10"), "pond")
    assert done.returncode == 0 and done.stdout.startswith("......."), done.stdout[-3000:]


@pytest.mark.parametrize(("right", "wrong", "failing"), [
    ('head.layout == "lines" and', "True or", "claimed_by_its_format_alone"),
    ("with emit.guarded(record):", "if isinstance(record.value, dict) and 'pond' in record.value:", "does_not_vanish")])
def test_somebody_elses_pond_format_that_grabs_or_loses_is_told_so(right: str, wrong: str, failing: str,
                                                                   tmp_path: Path) -> None:
    done = contract(tmp_path, POND.replace("RANK", "99").replace(right, wrong), "(pond or alone)")
    assert done.returncode == 1 and failing in done.stdout, done.stdout[-3000:]
