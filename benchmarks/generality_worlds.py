#!/usr/bin/env python3
"""Whether the way to begin of services is found, and how logs that mix two worlds are split and answered.

    benchmarks/generality_worlds.py DATA… [--other FOLDER] [--only NAME…]

DATA: as for generality.py. Mixtures are made from each set whose logs are sessions of messages, one a line: half of its
sessions (every second one by their order in the log) stay as they are, and in the other half each text and number of an answer
that no argument of a call of the log ever has becomes another one, the same one every time: a second tenant under the same
ids. `--other`: a folder with sets of the same names (other seeds of a service), mixed with those of DATA as they are.

    begins_right   share of the sets, each service of the zoo one, whose way to begin is found (`BEGINS`; SOURCE.md of the zoo)
    worlds_found   share of the mixtures that are split
    worlds_ari     adjusted Rand index of the found worlds against the true ones, over the sessions that were given one; the
                   lowest of the mixtures that were split
    worlds_told    share of the sessions with calls that were given a world, in those mixtures
    worlds_split   sets that are not mixed and were split all the same
    worlds_wrong   wrong answers of all calls: probes in the rooms of their sessions (`--other`, sets with probes), the worst
                   mixture

The last line on stdout is one JSON object.
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import io
import json
import math
import shutil
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from fidelity_data import build
from fidelity_probes import play_all
from fidelity_score import share
from generality_fuzz import sessions_of

from pipelines.running.stage import carry_out
from pipelines.settings import Settings
from pipelines.stages import STAGES
from warehouse.store import Store

BEGINS = {
    **dict.fromkeys(("GorillaFileSystem", "MessageAPI", "TicketAPI", "VehicleControlAPI", "telecom", "travel", "workbench",
                     "airline", "desks", "office"), "reset"),
    "retail_desk": "shared", "shop_app": "shared"}
"""How the sessions of a set begin, by its README; of a set of the zoo its SOURCE.md says it."""
ANEW = "each begins from the same state"
MOSTLY = 0.5
"""Share of the relabelled sessions whose answers must have become others."""
FIRST_STAGES = ("extract", "sessions", "world")


def main() -> int:
    """Read every set and every mixture, and print the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path, nargs="+")
    parser.add_argument("--other", type=Path)
    parser.add_argument("--only", nargs="+")
    options = parser.parse_args()
    folders = [each for folder in options.data for each in (
        [folder] if (folder / "logs").is_dir() else sorted(path.parent for path in folder.glob("*/logs")))]
    chosen = [each.resolve() for each in folders if not options.only or each.name in options.only]
    rows = [row for each in chosen for row in measure(each, options.other)]
    print(json.dumps({"benchmark": "generality_worlds", "figures": figures(rows), "sets": rows}))
    return 0


def measure(data: Path, other: Path | None) -> list[dict[str, Any]]:
    """Return the row of a set, and of each mixture that it is in."""
    rows: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory(prefix="worlds-") as scratch, contextlib.redirect_stderr(io.StringIO()):
        services, worlds, _ = found_in(data / "logs", Path(scratch) / "own", data / "traceroom.toml")
        expected = begins_of(data)
        rows.append({"set": data.name, "is_mixed": False, "is_split": bool(worlds), "begins": services, "expected": expected,
                     "is_right": None if expected is None else set(services.values()) == {expected}})
        second = relabelled_half(data / "logs", Path(scratch) / "second")
        if second:
            rows.append(_mixture(f"{data.name}, relabelled", Path(scratch) / "second", second, Path(scratch) / "mixed"))
        if other is not None and (other / data.name / "logs").is_dir():
            rows.append(_of_two(data, other / data.name, Path(scratch)))
    for row in rows:
        print(json.dumps(row), file=sys.__stderr__, flush=True)
    return rows


def found_in(logs: Path, out: Path, configuration: Path) -> tuple[dict[str, str], dict[str, str], list[str]]:
    """Return (how each service begins, session -> its world, all sessions with calls)."""
    configured = {"configuration": str(configuration)} if configuration.exists() else {}
    settings = Settings(logs=(str(logs),), out=str(out), privacy=False, **configured)
    for stage in STAGES:
        if stage.name in FIRST_STAGES:
            carry_out(stage, settings)
    return tables_of(out)


def tables_of(out: Path) -> tuple[dict[str, str], dict[str, str], list[str]]:
    """Return the same of what was built."""
    with Store.open(out / "warehouse.duckdb", write=False) as store:
        return (dict(store.read("select service, starts_from from mart.services order by all").iter_rows()),
                dict(store.read("select session_id, world from mart.worlds order by all").iter_rows()),
                store.read("select session_id from core.sessions where n_calls > 0 order by all")["session_id"].to_list())


def begins_of(data: Path) -> str | None:
    """Return how the sessions of a set begin; None: nobody says."""
    source = data / "SOURCE.md"
    text = source.read_text("utf-8") if source.exists() else ""
    return BEGINS.get(data.name) or (("reset" if ANEW in text else "shared") if "sessions over" in text else None)


def relabelled_half(logs: Path, target: Path) -> set[str]:
    """Write the logs with every second session relabelled; return these sessions: none if the logs are no such sessions, or
    if answers are no JSON."""
    sessions = sessions_of(logs)
    if not all("messages" in record and "session_id" in record for session in sessions for record in session):
        return set()
    given = {text for session in sessions for record in session for text in _given(record)}
    chosen = {str(session[0]["session_id"]) for session in sessions[1::2]}
    changed: set[str] = set()
    target.mkdir()
    with (target / "log.jsonl").open("w", encoding="utf-8") as lines:
        for record in (record for session in sessions for record in session):
            if str(record["session_id"]) in chosen:
                messages = [_relabelled(message, given) for message in record["messages"]]
                changed.update([str(record["session_id"])] if messages != record["messages"] else [])
                record = {**record, "messages": messages}
            lines.write(json.dumps(record) + "\n")
    return chosen if len(changed) >= MOSTLY * len(chosen) else set()


def _given(record: Mapping[str, Any]) -> Iterable[str]:
    for message in record["messages"]:
        for call in (call for call in message.get("tool_calls") or () if isinstance(call, dict)):
            function = call.get("function")
            arguments = (function if isinstance(function, dict) else call).get("arguments", call.get("args"))
            with contextlib.suppress(ValueError):
                yield from map(str, _leaves(json.loads(arguments) if isinstance(arguments, str) else arguments))


def _leaves(value: Any) -> Iterable[Any]:
    if isinstance(value, dict | list):
        for each in value.values() if isinstance(value, dict) else value:
            yield from _leaves(each)
    else:
        yield value


def _relabelled(message: dict[str, Any], given: set[str]) -> dict[str, Any]:
    if message.get("role") != "tool" or not isinstance(message.get("content"), str):
        return message
    try:
        document = json.loads(message["content"])
    except ValueError:
        return message
    return {**message, "content": json.dumps(_other(document, given))} if isinstance(document, dict | list) else message


def _other(value: Any, given: set[str]) -> Any:
    """Return a value of a second tenant: as long as it is no name that calls give."""
    if isinstance(value, dict):
        return {name: _other(each, given) for name, each in value.items()}
    if isinstance(value, list):
        return [_other(each, given) for each in value]
    if str(value) in given or value is None or isinstance(value, bool):
        return value
    if isinstance(value, int | float):
        return round(value * 1.5 + 1, 2) if isinstance(value, float) else value * 3 + 1
    return "".join(sorted(value, key=lambda sign: hashlib.sha256(f"{value}{sign}".encode()).digest()))


def _mixture(name: str, logs: Path, second: set[str], out: Path) -> dict[str, Any]:
    _, worlds, sessions = found_in(logs, out, Path("none"))
    return _row(name, worlds, sessions, {session: str(session in second) for session in sessions})


def _of_two(data: Path, other: Path, scratch: Path) -> dict[str, Any]:
    """Mix a set with another one of the same service, and play the probes of both."""
    mixed = scratch / "two"
    true: dict[str, str] = {}
    for place, each in enumerate((data, other)):
        shutil.copytree(each / "logs", mixed / "logs" / str(place))
        true |= {row["session_id"]: str(place) for row in _rows(each / "truth" / "sessions.jsonl")}
    (mixed / "truth").mkdir()
    for name in ("probes.jsonl", "sessions.jsonl"):
        both = [(each / "truth" / name).read_text("utf-8") for each in (data, other)]
        (mixed / "truth" / name).write_text("".join(both), "utf-8")
    shutil.copy(data / "truth" / "tools.jsonl", mixed / "truth")
    configuration = data / "traceroom.toml"
    arguments = ["--config", str(configuration)] if configuration.exists() else []
    made = build(mixed / "logs", scratch / "two-out", *arguments)
    _, worlds, sessions = tables_of(made.out)
    played = play_all(mixed, made.out, None).count("all")
    return {**_row(f"{data.name}, two seeds", worlds, sessions, true),
            **{name: played[name] for name in ("n", "exact", "wrong", "tellable")}}


def _rows(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


def _row(name: str, worlds: Mapping[str, str], sessions: list[str], true: Mapping[str, str]) -> dict[str, Any]:
    told = sorted(set(worlds) & set(true))
    return {"set": name, "is_mixed": True, "is_split": bool(told), "n_sessions": len(sessions), "n_told": len(told),
            "ari": round(adjusted_rand([true[each] for each in told], [worlds[each] for each in told]), 4) if told else None}


def adjusted_rand(true: list[str], found: list[str]) -> float:
    """Return the agreement of two partitions, 0 by chance and 1 if they are equal (Hubert and Arabie 1985)."""
    pairs, of_true, of_found = (
        sum(math.comb(n, 2) for n in Counter(each).values()) for each in (list(zip(true, found, strict=True)), true, found))
    expected, most = of_true * of_found / math.comb(len(true), 2), (of_true + of_found) / 2
    return 1.0 if most == expected else (pairs - expected) / (most - expected)


def figures(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the figures of all sets and mixtures."""
    begun = [row["is_right"] for row in rows if row.get("is_right") is not None]
    mixed = [row for row in rows if row["is_mixed"]]
    split = [row for row in mixed if row["is_split"]]
    return {
        "begins_right": share(sum(begun), len(begun)), "worlds_found": share(len(split), len(mixed)),
        "worlds_ari": min((row["ari"] for row in split), default=None),
        "worlds_told": share(sum(row["n_told"] for row in split), sum(row["n_sessions"] for row in split)),
        "worlds_split": sum(row["is_split"] for row in rows if not row["is_mixed"]),
        "worlds_wrong": max((share(row["wrong"], row["n"]) for row in mixed if "wrong" in row), default=None)}


if __name__ == "__main__":
    sys.exit(main())
