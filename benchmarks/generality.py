#!/usr/bin/env python3
"""Hold rooms of services that nobody developed on against a cassette of the same log, and against what the log could tell.

    benchmarks/generality.py DATA… [--only NAME…] [--jobs N] [--before CHECKOUT]

DATA: data sets (folders with logs/ and truth/), or folders of such. What a set holds says how it is played:

    truth/probes.jsonl          call sequences that the real tools answered, in the rooms of their sessions
    truth/sessions.jsonl        every fifth session held out (acceptance/split.py … session) and told after it was asked for
    truth/probes_random.jsonl   besides, calls at random and scripted ways to act (generality_desk.py)

Each set is built from its logs alone (`traceroom run --privacy off`). The cassette plays the latest recording of exactly this
call; the ceiling is fidelity_ceiling.py. Every call counts: a session without a room and an `unknown` are not exact. Figures
are named for the DATA that a set came from. `write_calls_explained`: writes that work, of tools with at least one such call
that a program answered exactly, not a recording. --before: a checkout whose build of the desk is timed beside.

The last line on stdout is one JSON object: `figures`; `services`, a row per set; `worse`, the tools for which the cassette is
better (exact one-sided sign test on the calls that only one of the two got, p < .05 over the number of tools).
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import math
import sys
import tempfile
from collections import Counter, defaultdict
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from fidelity_data import Built, build, sample, split, truth
from fidelity_probes import play_all
from fidelity_replay import live
from fidelity_score import Call, Tally, share
from fidelity_sessions import sessions
from generality_desk import at_random, policies, seconds_share

from env_builder.runtime.answers import failed, parse
from warehouse.store import Store

Builder = Callable[..., Built]
LEVEL = 0.05
TOOL_COUNTS = "n", "won", "lost"
COUNTS = ("n", "exact", "wrong", "unknown", "tellable", "cassette_exact", "cassette_wrong")


def main() -> int:
    """Build and play every set, and print the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path, nargs="+")
    parser.add_argument("--only", nargs="+")
    parser.add_argument("--sample", type=int, help="play this many sessions of each set only")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--before", type=Path)
    options = parser.parse_args()
    sets = chosen_sets(options.data, options.only)
    if not sets:
        parser.error("no folder with logs/ and truth/ is there; name a data set")
    with ProcessPoolExecutor(options.jobs) as workers:
        services = list(workers.map(partial(measure, n_sessions=options.sample), sets))
    for service in services if options.before else ():
        if service["desk"]:
            with tempfile.TemporaryDirectory(prefix="generality-") as scratch:
                logs = next(data / "logs" for _, data in sets if data.name == service["set"])
                service["desk"] |= seconds_share(logs, options.before.resolve(), Path(scratch))
    worse = cassette_is_better([tool for service in services for tool in service["tools"]])
    figures = assemble(services) | {"worse_than_cassette": len(worse)}
    for name, value in figures.items():
        print(f"{name:36} {value}", file=sys.stderr)
    print(json.dumps({"benchmark": "generality", "data": [each.name for _, each in sets], "figures": figures, "worse": worse,
                      "services": [{**each, "tools": len(each["tools"])} for each in services]}))
    return 0


def chosen_sets(data: list[Path], only: list[str] | None) -> list[tuple[str, Path]]:
    """Return (name of the DATA it came from, folder) of each set, or of those with these names."""
    return [(folder.resolve().name, each) for folder in data for each in _sets(folder.resolve())
            if not only or each.name in only]


def _sets(folder: Path) -> list[Path]:
    """Return the folder, or the sets inside of it."""
    own = [folder] if (folder / "logs").is_dir() else sorted(each.parent for each in folder.glob("*/logs"))
    return [each for each in own if (each / "truth" / "sessions.jsonl").exists()]


def measure(grouped: tuple[str, Path], n_sessions: int | None, build: Builder = build) -> dict[str, Any]:
    """Build a set, play it, and return its counts, in all and by tool."""
    group, data = grouped
    is_probed = (data / "truth" / "probes.jsonl").exists()
    with tempfile.TemporaryDirectory(prefix="generality-") as scratch, contextlib.redirect_stderr(io.StringIO()):
        tally, made = (_probed if is_probed else _held_out)(data, Path(scratch), n_sessions, build)
        begins, desk = _begins(made.out), {}
        if (data / "truth" / "probes_random.jsonl").exists():
            desk = {**at_random(data, made.out, n_sessions), **policies(data, made.out), "peak_memory_mb": made.peak_memory_mb}
    count = tally.count("all")
    row = {"set": data.name, "group": group, "begins": begins, **{name: count[name] for name in COUNTS},
           "refused_as_success": tally.count("error as success")["n"], "writes": _writes(tally), "desk": desk,
           "tools": [{"set": data.name, "tool": name.removeprefix("tool "), **{part: own[part] for part in TOOL_COUNTS}}
                     for name in tally.names("tool ") if (own := tally.count(name))["n"]]}
    print(f"{data.name}: {row['exact']} of {row['n']} exact, {row['wrong']} wrong; cassette {row['cassette_exact']}, "
          f"ceiling {row['tellable']}", file=sys.stderr)
    return row


def _writes(tally: Tally) -> dict[str, int]:
    """Count writes that work, those of tools that a program answered at least once, and tools of either kind."""
    tools = {name: tally.count(f"write of {name}")["n"] for name in map(_plain, tally.names("write of "))}
    explained = {name for name in map(_plain, tally.names("program of ")) if tally.count(f"program of {name}")["exact"]}
    return {"n": sum(tools.values()), "explained": sum(tools[name] for name in explained), "tools": len(tools),
            "tools_explained": len(explained)}


def _plain(name: str) -> str:
    return name.split(" of ", 1)[1]


def _probed(data: Path, scratch: Path, n_sessions: int | None, build: Builder) -> tuple[Tally, Built]:
    """Play the probes in the rooms of their sessions."""
    made = _built(data, scratch, build)
    return play_all(data, made.out, n_sessions), made


def _held_out(data: Path, scratch: Path, n_sessions: int | None, build: Builder) -> tuple[Tally, Built]:
    """Play held-out sessions in an open room, each answer told after it was asked for."""
    source, target = split(data, scratch, "session")
    made = _built(source, scratch, build)
    labels = truth(target)
    chosen = sample(labels, n_sessions)
    service = next(iter(_begins(made.out)))
    played = [
        Call(labels[session_id].get("service", service), session_id, step.tool, step.arguments, step.content,
             failed(step.content, parse(step.content)))
        for session_id, steps in sessions(target) if session_id in chosen for step in steps if step.tool is not None]
    return live(played, made.out, data), made


def _built(data: Path, scratch: Path, build: Builder = build) -> Built:
    configuration = data / "traceroom.toml"
    logs = [data / "logs", *(each for name in ("tools", "tools.json") if (each := data / name).exists())]
    arguments = ["--config", str(configuration)] if configuration.exists() else []
    return build(logs[0], scratch / "out", *map(str, logs[1:]), *arguments)


def _begins(out: Path) -> dict[str, str]:
    with Store.open(out / "warehouse.duckdb", write=False) as store:
        return dict(store.read("select service, starts_from from mart.services order by service").iter_rows())


def cassette_is_better(tools: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the tools on which the cassette is better beyond chance (sign test with Bonferroni's correction)."""
    worse = []
    for tool in tools:
        n = tool["won"] + tool["lost"]
        chance = sum(math.comb(n, k) for k in range(tool["lost"], n + 1)) / 2 ** n
        if tool["lost"] > tool["won"] and chance < LEVEL / len(tools):
            worse.append({**tool, "chance": chance})
    return sorted(worse, key=lambda tool: (tool["set"], tool["tool"]))


def assemble(services: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the figures by group: pooled shares, and the worst service's share of wrong answers."""
    groups: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for service in services:
        groups[service["group"]].append(service)
    figures: dict[str, Any] = {}
    for name, own in sorted(groups.items()):
        count = Counter[str]()
        for service in own:
            count.update({part: service[part] for part in COUNTS})
        figures |= {
            f"wrong_{name}": max(share(each["wrong"], each["n"]) for each in own),
            f"exact_{name}": share(count["exact"], count["n"]), f"cassette_{name}": share(count["cassette_exact"], count["n"]),
            f"ceiling_{name}": share(count["tellable"], count["n"]),
            f"of_ceiling_{name}": share(count["exact"], count["tellable"]),
            f"write_calls_explained_{name}": _explained(own)}
        for service in own:
            figures |= service["desk"]
    return figures | {"write_calls_explained": _explained(services)}


def _explained(services: list[dict[str, Any]]) -> float:
    return share(sum(each["writes"]["explained"] for each in services), sum(each["writes"]["n"] for each in services))


if __name__ == "__main__":
    sys.exit(main())
