"""Figures of mining both ways: without a language model, and beside them with the one that TRACEROOM_MODEL names.

With a model the same logs are mined again under `[goals] ask = true`, and measured again; nothing is copied over. Without, that
is said.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import polars as pl


def model() -> str | None:
    """Name of the model, None where none is given."""
    return os.environ.get("TRACEROOM_MODEL") or None


def configuration(folder: str) -> str:
    """Return a configuration file in `folder` that lets the model name families and word goals."""
    place = Path(folder) / "asked.toml"
    place.write_text("[goals]\nask = true\n", "utf-8")
    return str(place)


def both_ways(figures: Mapping[str, Any], variant: Callable[[], Mapping[str, Any]]) -> dict[str, Any]:
    """Return the figures, and each of `asked()` as `NAME_asked`, where a model is given; tells stderr where none is."""
    if model() is None:
        print("no model was given; with TRACEROOM_MODEL and TRACEROOM_MODEL_URL each figure stands beside its NAME_asked",
              file=sys.stderr)
        return dict(figures)
    return {**figures, **{_named(name): value for name, value in variant().items()}}


def of_names(names: pl.DataFrame, sentences: pl.DataFrame) -> dict[str, float]:
    """How much the model wrote: its share of the kinds' names (`names_written`) and of the goals' sentences."""
    kinds = names.filter(pl.col("kinds").list.len() == 1)
    return {name: round(1 - frame["written_by"].null_count() / max(1, frame.height), 4)
            for name, frame in (("names_written", kinds), ("sentences_written", sentences))}


def _named(name: str) -> str:
    stem = name.removesuffix("_interval")
    return f"{stem}_asked" if stem == name else f"{stem}_asked_interval"
