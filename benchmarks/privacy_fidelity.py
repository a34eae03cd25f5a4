"""How truly rooms with pseudonyms answer, beside rooms without: the same probes, told by the same key.

In: a data set with truth/probes.jsonl and its logs. Out: figures of benchmarks/fidelity.py for two builds of the same logs, and
how far they differ. What is asked and what the real tools answered go through the pseudonyms that the logs went through.
"""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import polars as pl
from fidelity_data import build, rows
from fidelity_probes import probes

from extractors.privacy import Cleaner, Finding, People, Policy, Pseudonyms
from pipelines.privacy.keys import owner_key
from warehouse.store import Store

FIGURES = (
    "answered", "exact_of_answered", "wrong", "writes_exact_of_answered", "state_exact", "hidden_exact", "errors_exact",
    "sequences_exact")
"""Shares that are compared."""


def fidelity(data: Path, scratch: Path, built: list[Path], n_sessions: int | None) -> dict[str, float]:
    """Figures without pseudonyms (`_off`), with them (`_on`), and the largest difference of two (`fidelity_difference`).

    `built`: what runs of the logs made before, with privacy off and on.
    """
    off, on = built or [
        build(data, scratch / f"built_{name}", "--exclude", "cdc", "--privacy", name).out for name in ("off", "on")]
    told = {"off": (data, off), "on": (_told_anew(data, off, scratch / "told"), on)}
    found = {}
    for name, (truth, out) in told.items():
        (scratch / name).mkdir()
        found[name] = probes(truth, scratch / name, n_sessions, out, False, None)
    both = [name for name in FIGURES if name in found["off"]]
    figures = {f"{name}_{side}": found[side][name] for name in both for side in found}
    return {**figures, "fidelity_difference": max(abs(found["off"][name] - found["on"][name]) for name in both)}


def _told_anew(data: Path, off: Path, place: Path) -> Path:
    """Return a copy of the truth with its probes told by pseudonyms. `off`: a build whose events are as they were logged."""
    shutil.copytree(data / "truth", place / "truth")
    asked = list(rows(data / "truth" / "probes.jsonl"))
    steps = [step for probe in asked for step in probe["steps"]]
    cleaner = _cleaner(off)
    arguments = cleaner.texts(pl.Series([json.dumps(step["arguments"], ensure_ascii=False) for step in steps], dtype=pl.String))
    results = cleaner.texts(pl.Series([step["result"] for step in steps], dtype=pl.String))
    for step, given, result in zip(steps, arguments, results, strict=True):
        step |= {"arguments": json.loads(given), "result": result}
    lines = (json.dumps(probe, ensure_ascii=False) + "\n" for probe in asked)
    (place / "truth" / "probes.jsonl").write_text("".join(lines), "utf-8")
    return place


def _cleaner(off: Path) -> Cleaner:
    """Return the pseudonyms that a run with this key gives to whom these logs know."""
    finding = Finding()
    with Store.open(off / "warehouse.duckdb", write=False) as store:
        finding.see(store.table("core.events"))
    return Cleaner(People(finding, Policy()), Pseudonyms(*owner_key(os.environ, lambda _: None)))
