"""The descriptors that agents get are those of the tools that answer."""

from __future__ import annotations

import importlib
import json
from pathlib import Path

import pytest

DESCRIPTORS = Path(__file__).parents[4] / "env_builder" / "company" / "descriptors"


@pytest.mark.parametrize("product", ["confluence", "slack"])
def test_each_tool_has_a_descriptor_of_its_server(product: str) -> None:
    module = importlib.import_module(f"env_builder.runtime.office.{product}")
    source, *rows = map(json.loads, (DESCRIPTORS / f"{module.SERVER}.jsonl").read_text().splitlines())
    assert source["licence"] == "MIT" and source["source"].startswith("https://github.com/") and source["commit"]
    assert {row["name"]: not row["annotations"]["readOnlyHint"] for row in rows} == {
        name: bool(tool.writes) for name, tool in module.TOOLS.items()}
    for row in rows:
        assert row["description"] and set(row["inputSchema"].get("required", ())) <= set(row["inputSchema"]["properties"])
