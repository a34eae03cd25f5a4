"""Copies of a set for the benchmark of scale: each with people of its own, and dealt to services with tools of their own."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

from benchmarks import scale_data
from tests.conftest import ROOT

SET = ROOT / "tests" / "logs" / "retail_desk"


def completions(folder: Path) -> list[dict[str, Any]]:
    """Every line of the copies."""
    return [json.loads(line) for path in sorted((folder / "logs").iterdir()) for line in path.read_text().splitlines()]


def sessions(rows: list[dict[str, Any]]) -> dict[str, str]:
    """Session -> its service."""
    return {row["metadata"]["session_id"]: row["metadata"]["app"] for row in rows}


def test_copies_have_sessions_of_their_own(tmp_path: Path) -> None:
    one = sessions(completions(scale_data.write(SET, tmp_path / "one", 1, 1)))
    three = sessions(completions(scale_data.write(SET, tmp_path / "three", 3, 1)))
    assert len(three) == 3 * len(one) and one.items() <= three.items()


def test_copies_are_dealt_to_services_with_tools_of_their_own(tmp_path: Path) -> None:
    folder = scale_data.write(SET, tmp_path / "dealt", 3, 1, 2)
    rows = completions(folder)
    assert set(sessions(rows).values()) == {"desk-0", "desk-1"}
    declared = Counter(tool["function"]["name"].rsplit("-", 1)[0] for tool in json.loads((folder / "tools.json").read_text()))
    n_tools = len(json.loads((SET / "tools.json").read_text()))
    assert declared == {"desk-0": n_tools, "desk-1": n_tools}
    called = {(row["metadata"]["app"], call["function"]["name"].rsplit("-", 1)[0]) for row in rows
              for choice in row["response"]["choices"] for call in choice["message"].get("tool_calls", [])}
    assert called == {("desk-0", "desk-0"), ("desk-1", "desk-1")}, "no service calls another's tools"
