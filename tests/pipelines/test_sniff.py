"""`traceroom sniff`: the mapping on stdout can be run with as it is; talk is on stderr."""

from __future__ import annotations

import json
from pathlib import Path

from tests.conftest import SAMPLE, traceroom
from tests.extractors import envelopes


def test_what_it_prints_is_a_configuration_to_run_with(tmp_path: Path) -> None:
    log, configuration = tmp_path / "log.jsonl", tmp_path / "traceroom.toml"
    content, meant = envelopes.nested_events()
    log.write_bytes(content)
    found = traceroom("sniff", log, "--events", "2")
    assert found.returncode == 0 and "unknown, lines" in found.stderr and "find_parcel" in found.stderr
    assert found.stdout.startswith("[[sources]]")
    configuration.write_text(found.stdout)
    done = traceroom("run", log, "--out", tmp_path / "out", "--no-image", "--config", configuration)
    assert "unknown_format" not in done.stderr and done.returncode in (0, 1), done.stderr
    shown = traceroom("show", "--out", tmp_path / "out", "--stage", "sessions", "--json")
    assert sum(row["n"] for row in json.loads(shown.stdout) if row["reason"] == "assembled") == 3, shown.stdout
    assert len(meant) == 12


def test_a_known_format_is_named_and_a_missing_file_is_a_sentence(tmp_path: Path) -> None:
    found = json.loads(traceroom("sniff", SAMPLE / "logs" / "sessions.jsonl", "--json").stdout)
    assert (found["format"], found["certainty"], found["configuration"]) == ("openai_sessions", "certain", None)
    assert found["events"]["message"] > 100 and found["left"] == [] and found["first"][0]["kind"] == "message"
    missing = traceroom("sniff", tmp_path / "nowhere")
    assert missing.returncode == 2 and "cannot be read" in missing.stderr and missing.stdout == ""
