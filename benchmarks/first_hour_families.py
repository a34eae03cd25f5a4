"""Do names of families describe what their members share?

`measure(folders)` mines the goals of each folder of logs, and names their kinds. `names_shared`: share of names of kinds with
two members or more whose every content word (four letters or more) occurs in at least half of the members, or names a tool.
Words are compared by their first five letters. `worst_log`: the lowest share of one folder. Does not see whether a name is
good English.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import polars as pl

from extractors.inventory import discover
from extractors.reading import read
from extractors.sessions import assemble
from extractors.tasks import goals_of
from extractors.tasks.names import names_of, spoken

ROOT = Path(__file__).resolve().parent.parent
LOGS = ("airline", "lamp_shop", "human_desk", "shop_app", "office")
_WORD = re.compile(r"[^\W\d_]{4,}")


def measure(folders: list[Path] | None = None) -> dict[str, Any]:
    """Return {"names_shared", "n_names", "worst_log", "names": log -> name -> its words that few members hold}."""
    names: dict[str, dict[str, list[str]]] = {}
    for folder in folders or [ROOT / "tests" / "logs" / name for name in LOGS]:
        names[folder.name] = names_in(folder)
    shares = {log: sum(not words for words in own.values()) / len(own) for log, own in names.items() if own}
    every = [words for own in names.values() for words in own.values()]
    return {"names_shared": round(sum(not words for words in every) / len(every), 4), "n_names": len(every),
            "worst_log": round(min(shares.values()), 4), "names": names}


def names_in(folder: Path) -> dict[str, list[str]]:
    """Return name -> its content words that fewer than half of the members hold and no tool has in its name."""
    files, _ = discover([folder])
    readings = [read(file) for file in files]
    made = assemble(pl.concat([r.events for r in readings]), pl.concat([r.declarations for r in readings]))
    effects = made.tools.select("service", "tool", pl.lit("write").alias("effect"))
    goals = goals_of(made.sessions, made.turns, effects)
    calls = made.turns.filter(pl.col("kind") == "call").select(
        "session_id", "position", "tool", pl.lit("unknown").alias("effect"))
    named = names_of(goals, made.tools, calls)
    tools = {word for tool in made.tools["tool"] for word in _begins(f"{tool} {spoken(tool)}")}
    by_kind = dict(goals.group_by("kind").agg("goal").iter_rows())
    few = {}
    for kind, name in named.families.filter(pl.col("kinds").list.len() == 1).select("family", "name").iter_rows():
        members = [_begins(goal) for goal in by_kind.get(kind, ())]
        if len(members) > 1:
            few[name] = sorted(word for word in _begins(name) - tools if 2 * sum(word in own for own in members) < len(members))
    return few


def _begins(text: str) -> set[str]:
    return {word[:5] for word in _WORD.findall(re.sub(r"(?<=[a-z0-9])(?=[A-Z])", " ", text).lower().replace("_", " "))}
