#!/usr/bin/env python3
"""How much of planted people is found, what is left of them in what is published, what it costs, and what it breaks.

    benchmarks/privacy.py DATA [--only PART …] [--people 300] [--rounds 3] [--sample N] [--built OFF ON]

Seeded people (names, e-mail, telephone, card, account, address, id, key) are planted beside a copy of DATA's logs, half of
them in fields of a tool's results and in texts, half in texts alone: re-cased, misspelt, in other formats, in JSON inside of
JSON, in URLs, errors, compound ids and row changes (privacy_people.py). PART:

    recall      `recall_structured`, `recall_unstructured`: share of the planted values of which no stored text of a warehouse
                into which all was read holds the original, by kind on stderr; `n_planted`: those that one without privacy
                holds; `privacy_cost`: seconds of reading with privacy over those without, median over rounds
    published   all is run and released; `originals_left`: planted values of fields, and e-mail addresses of DATA's logs, that
                a byte search finds in anything below OUT, inside databases, Parquet and images too (privacy_published.py);
                `n_originals` sought; `n_releases`: 0 where a gate refused it
    fidelity    (not by default; DATA with truth/probes.jsonl) figures of benchmarks/fidelity.py without pseudonyms and with
                them, and `fidelity_difference` (privacy_fidelity.py); --sample N: of N sessions; --built: two runs made before

The key is TRACEROOM_KEY, else one for measuring alone. The last line on stdout is one JSON object.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import statistics
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from privacy_fidelity import fidelity
from privacy_people import Planted, plant
from privacy_published import left_in

from pipelines.ingestion.ingest import ingest
from pipelines.releases.registry import Registry
from pipelines.releases.releasing import release
from pipelines.running.run import run
from pipelines.settings import Settings
from warehouse.lock import writing
from warehouse.store import Store

PARTS = ("recall", "published", "fidelity")
_MAIL = re.compile(rb"[A-Za-z][\w.+-]*@[\w-]+(?:\.[\w-]+)+")


def main() -> int:
    """Plant, measure each part, and print the figures."""
    asked = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    asked.add_argument("data", type=Path)
    asked.add_argument("--only", nargs="+", choices=PARTS, default=PARTS[:2])
    asked.add_argument("--people", type=int, default=300)
    asked.add_argument("--rounds", type=int, default=3)
    asked.add_argument("--sample", type=int)
    asked.add_argument("--built", type=Path, nargs=2, default=[])
    told = asked.parse_args()
    os.environ.setdefault("TRACEROOM_KEY", "a key for measuring alone")
    figures: dict[str, float] = {}
    with tempfile.TemporaryDirectory() as folder:
        scratch = Path(folder)
        logs = scratch / "logs"
        shutil.copytree(told.data, logs, ignore=shutil.ignore_patterns("truth"))
        planted = plant(logs, told.people)
        if "recall" in told.only:
            figures |= _recall(logs, scratch, planted, told.rounds)
        if "published" in told.only:
            figures |= _published(logs, scratch / "published", planted)
        if "fidelity" in told.only:
            figures |= fidelity(told.data.resolve(), scratch, told.built, told.sample)
    print(json.dumps({"benchmark": "privacy", "data": told.data.resolve().name,
                      "figures": {name: round(value, 4) for name, value in figures.items()}}))
    return 0


def _recall(logs: Path, scratch: Path, planted: list[Planted], n_rounds: int) -> dict[str, float]:
    on, off = [], []
    for number in range(n_rounds):
        off.append(_read(logs, scratch / f"off{number}", False))
        on.append(_read(logs, scratch / f"on{number}", True))
    cost = statistics.median(one / other for one, other in zip(on, off, strict=True))
    return {**_figures(scratch / "on0", scratch / "off0", planted), "privacy_cost": cost}


def _published(logs: Path, out: Path, planted: list[Planted]) -> dict[str, float]:
    """Run and release, as a person does, and search all of it."""
    settings = Settings(logs=(str(logs),), out=str(out), privacy=True).checked()
    run(settings)
    released = release(settings, Registry(str(settings.releases)), "a benchmark", "a benchmark")
    print(f"release: {released.state}; red: {[each.gate for each in released.judged if each.red]}", file=sys.stderr)
    mails = {each.decode() for path in logs.rglob("*") if path.is_file() for each in _MAIL.findall(path.read_bytes())}
    originals = {each.value for each in planted if each.side == "structured"} | mails
    found = left_in(out, originals)
    for name, values in list(found.items())[:20]:
        print(f"{name}: {values[:5]}", file=sys.stderr)
    return {"originals_left": len({value for values in found.values() for value in values}), "n_originals": len(originals),
            "n_releases": int(released.release is not None)}


def _read(logs: Path, out: Path, private: bool) -> float:
    """Seconds of reading into an empty warehouse."""
    settings = Settings(logs=(str(logs),), out=str(out), privacy=private)
    out.mkdir()
    began = time.perf_counter()
    with writing(settings.warehouse, "a benchmark"), Store.open(settings.warehouse) as store:
        ingest(store, settings)
    return time.perf_counter() - began


def _texts(out: Path) -> str:
    with Store.open(out / "warehouse.duckdb", write=False) as store:
        rows = store.read("select content, arguments, value, name, session_id, tool from core.events")
    return "\n".join(each for name in rows.columns for each in rows[name].drop_nulls().unique())


def _figures(on: Path, off: Path, planted: list[Planted]) -> dict[str, Any]:
    """Of what stands in the warehouse without privacy, what share does not with it."""
    before, text = _texts(off), _texts(on)
    planted = [each for each in planted if each.value in before]
    figures: dict[str, Any] = {"n_planted": len(planted)}
    for side in sorted({each.side for each in planted}):
        left = Counter(each.kind for each in planted if each.side == side and each.value in text)
        n = Counter(each.kind for each in planted if each.side == side)
        figures[f"recall_{side}"] = 1 - left.total() / n.total()
        for kind in sorted(n):
            some = [each.value for each in planted if (each.side, each.kind) == (side, kind) and each.value in text][:4]
            print(f"{side:<12} {kind:<18} {n[kind]:>5}  {1 - left[kind] / n[kind]:.4f}  {some or ''}", file=sys.stderr)
    return figures


if __name__ == "__main__":
    sys.exit(main())
