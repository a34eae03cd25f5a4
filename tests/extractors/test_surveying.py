"""What a folder of logs holds, group by group."""

from __future__ import annotations

import gzip
from pathlib import Path

import orjson
import pytest

from extractors import configuration, surveying
from extractors.formats import named
from extractors.inventory import discover
from extractors.reading import read
from extractors.surveying import survey
from pipelines.inspection.file_survey import write_configuration
from tests.extractors import envelopes
from warehouse.errors import InputError


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Two days of one format (one packed), an access log, an envelope of nobody's, and what no run reads."""
    talks = named("openai_sessions").sample()
    own, _ = envelopes.nested_events()
    for name, content in {"desk/1.jsonl.gz": gzip.compress(talks), "desk/2.jsonl": talks, "own/a.jsonl": own,
                          "own/b.jsonl": own,
                          "web/access.log": named("access_log").sample(), "web/README.md": b"# logs\n", "web/none.log": b"",
                          "truth/t.jsonl": talks}.items():
        (tmp_path / "logs" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "logs" / name).write_bytes(content)
    return tmp_path / "logs"


def test_files_of_one_folder_and_format_are_a_group(folder: Path) -> None:
    surveyed = survey(folder)
    groups = {group.name: (group.format, len(group.files)) for group in surveyed.groups}
    assert groups == {
        "desk/1.jsonl.gz …": ("openai_sessions", 2), "own/*.jsonl": ("mapped", 2), "web/access.log": ("access_log", 1)}
    assert {(each.name, each.reason) for each in surveyed.rejected} == {
        ("truth/t.jsonl", "truth_folder"), ("web/README.md", "not_a_log"), ("web/none.log", "empty_file")}


def test_rows_sessions_and_the_period_are_those_that_a_run_reads(folder: Path) -> None:
    for group in survey(folder).groups:
        if group.format == "mapped":
            continue
        readings = [read(file) for file in group.files]
        times = [at for each in readings for at in each.events["happened_at"].drop_nulls()]
        assert group.n_rows == sum(each.records.height for each in readings) > 0 and group.is_whole
        assert (group.first_at, group.last_at) == (min(times, default=None), max(times, default=None))
        assert group.n_sessions > 0


def test_of_many_files_some_are_read_and_the_counts_say_so(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(surveying, "_MOST_FILES", 1)
    assert {group.name: group.is_whole for group in survey(folder).groups}["own/*.jsonl"] is False


def test_the_written_mappings_read_their_own_files_alone(folder: Path) -> None:
    path = folder.parent / "found.toml"
    proposals = [(group.sniffed, [folder / (group.pattern or "")]) for group in survey(folder).groups]
    write_configuration(path, proposals)
    files, _ = discover([folder], configuration=configuration.load(path))
    formats = {file.relative: read(file).file.format for file in files}
    assert {name for name, log_format in formats.items() if log_format == "mapped"} == {"own/a.jsonl", "own/b.jsonl"}
    assert formats["desk/2.jsonl"] == "openai_sessions" and formats["web/access.log"] == "access_log"
    mapped = next(read(file) for file in files if file.relative == "own/a.jsonl")
    assert mapped.events.filter(kind="call").height > 0
    with pytest.raises(InputError, match="exists already"):
        write_configuration(path, proposals)


def test_envelopes_with_other_fields_are_groups_of_their_own(tmp_path: Path) -> None:
    for name, key in (("a.json", "alpha"), ("b.json", "beta")):
        (tmp_path / name).write_bytes(orjson.dumps([{key: {"x": 1}}]))
    surveyed = survey(tmp_path)
    assert [group.format for group in surveyed.groups] == ["unknown", "unknown"]
    assert [group.name for group in surveyed.groups] == ["a.json", "b.json"]
