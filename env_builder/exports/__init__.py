"""Datasets for what trains on them: one module per consumer format, and the registry of them.

In: the tables of an environment. Out: files under `OUT/datasets/<environment>/`, split into train, validation and held-out, and
the leakage report of the split beside them.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from env_builder.exports.exporter import Exported, Exporter, Source
from env_builder.exports.registry import named, registered

__all__ = ["Exported", "Exporter", "Source", "export", "registered", "write_leakage"]

LEAKAGE = "leakage.json"


def export(name: str, out: Path, source: Source) -> Exported:
    """Write `source` with the exporter called `name` into the folder `out` (made where it is missing).

    Raises `Missing` for a name that no exporter has, with the names there are.
    """
    exporter = named(name)
    out.mkdir(parents=True, exist_ok=True)
    return exporter.write(out, source)


def write_leakage(out: Path, report: Mapping[str, Any]) -> Path:
    """Write what the sides of the split have in common as canonical JSON; gives the file's path."""
    out.mkdir(parents=True, exist_ok=True)
    path = out / LEAKAGE
    path.write_text(json.dumps(report, sort_keys=True, ensure_ascii=False, indent=1) + "\n", encoding="utf-8", newline="\n")
    return path
