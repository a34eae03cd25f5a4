#!/usr/bin/env python3
"""Forgetting one person of many: how long it takes, what is left of them, and whether anybody else is touched.

    benchmarks/erasure.py ../shared/data/retail_desk [--copies 7] [--until datasets] [--subject ID] [--folder DIR]
                          [--privacy on]

Copies of the set's logs (benchmarks/scale_data.py; seven are 11,200 sessions) are built up to a stage, without images; where
that is the last one, it is released as well, over the gates that are red, which are named. Then a customer with as many
sessions as the median one is forgotten, and the logs, which lie where they lay, are read again, each a byte longer.

The last line on stdout is one JSON object. `seconds`: of forgetting, `cpu_seconds` of the processor; `originals_left`: files
below the folder (warehouse, registry, all) in whose bytes the customer's id or e-mail address stands afterwards, with
`--privacy on` also under a pseudonym (off by default, so that the originals would stand there); `read_back`: events that tell
of them after the logs were read again;
`unrelated_changed`: rows of sessions, turns, row changes, goals, outcomes, tasks, facts and answers on record that speak of
none of their sessions, and are other or gone, of `n_unrelated`; `n_sessions`, `n_gone`: all and theirs; `n_releases`: that
held them.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

import polars as pl

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from benchmarks import scale_data  # noqa: E402 (a script of its own, from anywhere)
from extractors.privacy import KINDS  # noqa: E402
from pipelines.erasing.forgetting import forget  # noqa: E402
from pipelines.privacy import guard as privacy  # noqa: E402
from pipelines.releases.releasing import registry_of, release  # noqa: E402
from pipelines.running.stage import carry_out  # noqa: E402
from pipelines.settings import Settings  # noqa: E402
from pipelines.stages import STAGES  # noqa: E402
from warehouse.store import Store  # noqa: E402

_ID = re.compile(r"\b[a-z]+_[a-z]+_\d{4,}\b")
_MAIL = re.compile(r"[\w.]+@[\w.]+\w")
_OF_SESSIONS = {"core.sessions": "session_id", "core.turns": "session_id", "mart.goals": "session_id",
                "mart.outcomes": "session_id", "mart.facts": "event_id", "mart.recorded": "event_id",
                "core.row_changes": "change_id", "mart.tasks": "task_id"}


def main() -> int:
    """Build, forget, look, and print the figures."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("data", type=Path)
    parser.add_argument("--copies", type=int, default=7)
    parser.add_argument("--until", default=STAGES[-1].name, choices=[stage.name for stage in STAGES])
    parser.add_argument("--subject")
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--privacy", choices=("on", "off"), default="off")
    arguments = parser.parse_args()
    os.environ["TRACEROOM_KEY"] = "the key of a benchmark, nobody's"
    with tempfile.TemporaryDirectory(dir=arguments.folder) as scratch:
        logs = scale_data.write(arguments.data.resolve(), Path(scratch, "logs"), arguments.copies)
        settings = Settings(logs=(str(logs),), out=str(Path(scratch, "out")), image=False,
                            privacy=arguments.privacy == "on")
        _build(settings, arguments.until)
        figures = _measured(settings, logs, arguments.subject)
    print(json.dumps({"benchmark": "erasure", "data": arguments.data.name, "figures": {
        **figures, "copies": arguments.copies, "privacy": int(arguments.privacy == "on")}}))
    return 0


def _build(settings: Settings, until: str) -> None:
    for stage in STAGES:
        report = carry_out(stage, settings)
        print(f"{stage.name}: {report.seconds:.1f} s", file=sys.stderr, flush=True)
        if stage.name == until:
            break
    with Store.open(settings.warehouse) as store:
        store.publish()
    if until == STAGES[-1].name:
        made = release(settings, registry_of(settings))
        if red := [each.gate for each in made.judged if each.red]:
            made = release(settings, registry_of(settings), accepted=red)
        print(f"{made.state}, over {red}", file=sys.stderr)


def _measured(settings: Settings, logs: Path, subject: str | None) -> dict[str, float]:
    with Store.open(settings.warehouse, write=False) as store:
        originals = _originals(store)
        stored_id = {original: stored for stored, original in originals.items()}
        stored = stored_id.get(subject, subject) if subject else _somebody(store, originals)
        who, words = originals.get(stored, stored), _words(store, stored)
        words += [originals[word] for word in words if word in originals]
        before, n_sessions = _unrelated(store, words), store.count("core.sessions")
    began, used = time.perf_counter(), time.process_time()
    done = forget(settings, registry_of(settings), who)
    seconds, cpu_seconds = time.perf_counter() - began, time.process_time() - used
    remaining = _remaining(Path(settings.out), words)
    print(f"{who} ({len(words)} values): {done.rows}; left: {remaining}", file=sys.stderr)
    with Store.open(settings.warehouse, write=False) as store:
        after = {table: set(_hashes(store, table)["hash"]) for table in before}
    changed = sum(len(rows - after[table]) for table, rows in before.items())
    return {"seconds": round(seconds, 2), "cpu_seconds": round(cpu_seconds, 2), "originals_left": len(remaining),
            "unrelated_changed": changed, "read_back": _read_back(settings, logs, words), "n_sessions": n_sessions,
            "n_gone": done.n_sessions, "n_releases": len(done.releases), "n_unrelated": sum(map(len, before.values()))}


def _originals(store: Store) -> dict[str, str]:
    """Pseudonym -> what it stands for, of the people that the warehouse knows; empty without privacy."""
    if privacy.held_policy(store) in (None, privacy.OFF):
        return {}
    owner = privacy.owner_of(store)
    made = owner.pseudonyms()
    return {made.of(kind, value): value for kind, value in privacy.stored_people(store, owner) if kind in KINDS}


def _somebody(store: Store, originals: dict[str, str]) -> str:
    """Return a customer with as many sessions as the median one; with privacy, one of those whose original is known."""
    rows = store.read("select distinct session_id, arguments from core.turns where arguments is not null order by all")
    counts = Counter(name for _, name in {
        (session, name) for session, text in rows.iter_rows() for name in _ID.findall(text)
                      if not originals or name in originals})
    ranked = sorted(counts, key=lambda name: (counts[name], name))
    return ranked[len(ranked) // 2]


def _words(store: Store, who: str) -> list[str]:
    """Their id, and the e-mail addresses of what was logged under it."""
    rows = store.read("select after from core.row_changes where starts_with(after, $begin)",
                      begin='{"user_id":"' + who + '"')["after"].drop_nulls()
    return [who, *sorted({mail for text in rows for mail in _MAIL.findall(text)})]


def _unrelated(store: Store, words: list[str]) -> dict[str, set[str]]:
    """Hashes of rows that tell of none of their sessions, by table."""
    condition = " or ".join(f"contains(lower(to_json(t)::varchar), '{word.lower()}')" for word in words)
    theirs = store.read(f"select distinct session_id from core.turns t where {condition}")["session_id"].to_list()
    events = store.read("select turn_id as id from core.turns where list_contains($s, session_id) union all "
                        "select result_id from core.turns where list_contains($s, session_id)", s=theirs)["id"].to_list()
    digests = {}
    for table, column in _OF_SESSIONS.items():
        rows = _hashes(store, table).filter(~pl.col(column).is_in([*theirs, *events]))
        if "session_ids" in rows.columns:
            rows = rows.filter(pl.col("session_ids").list.set_intersection(theirs).list.len() == 0)
        spoken = store.read(f"select {', '.join(store.key(table))} from {table} t where {condition}")
        digests[table] = set(rows.join(spoken, on=list(store.key(table)), how="anti")["hash"])
    return digests


def _hashes(store: Store, table: str) -> pl.DataFrame:
    """Return a table with the digest of each row."""
    return store.read(f"select *, md5(to_json(t)::varchar) as hash from {table} t")


def _remaining(out: Path, words: list[str]) -> list[str]:
    """Files in whose bytes one of the words stands."""
    files = [path for path in out.rglob("*") if path.is_file()]
    return [path.name for path in files if any(word.encode() in path.read_bytes() for word in words)]


def _read_back(settings: Settings, logs: Path, words: list[str]) -> int:
    """Events that tell of them after all logs were opened again, as if they had been written just now."""
    for path in logs.rglob("*"):
        if path.suffix == ".jsonl":
            with path.open("a") as lines:
                lines.write("\n")
    carry_out(STAGES[0], settings)
    condition = " or ".join(f"contains(lower(to_json(t)::varchar), '{word.lower()}')" for word in words)
    with Store.open(settings.warehouse, write=False) as store:
        return int(store.read(f"select count(*) as n from core.events t where {condition}").item())


if __name__ == "__main__":
    sys.exit(main())
