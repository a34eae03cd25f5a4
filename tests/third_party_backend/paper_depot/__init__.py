"""A kind of apps from another package that hands over files: a depot of papers, registered by its entry point."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from env_builder.backends import AppBackend


def write(folder: Path, content: Any, options: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Write the papers, {number: {"name", "text"}}, and return the descriptors of the tools."""
    (folder / "papers.json").write_text(json.dumps(content, sort_keys=True), "utf-8")
    schema = {"type": "object", "required": ["number"], "properties": {"number": {"type": "string"}}}
    return [{"name": "fetch_paper", "description": "Download a paper.", "inputSchema": schema},
            {"name": "order_prints", "description": "Order prints of a paper.", "inputSchema": schema}]


BACKEND = AppBackend("paper_depot", write, runtime=Path(__file__).parent / "runtime")
