"""A kind of apps from another package: a notebook of lines, registered by its entry point."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from env_builder.backends import AppBackend


def write(folder: Path, content: Any, options: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Write the notebook's lines, [{"key", "text", "since"}], and return the descriptors of its tools."""
    (folder / "lines.json").write_text(json.dumps(content, sort_keys=True), "utf-8")
    key, text = {"type": "string"}, {"type": "string"}
    return [
        {"name": "read_line", "description": "Read a line.", "inputSchema": {
            "type": "object", "required": ["key"], "properties": {"key": key}}},
        {"name": "write_line", "description": "Write a line; an empty text removes it.", "inputSchema": {
            "type": "object", "required": ["key", "text"], "properties": {"key": key, "text": text}}}]


BACKEND = AppBackend("notebook", write, runtime=Path(__file__).parent / "runtime")
