#!/usr/bin/env python3
"""Score environments that stand for a real service, from files that any system can write. Standard library alone.

    python3 score.py FOLDER…                one JSON object per folder, and all of them on the last line
    python3 score.py FOLDER… --table        a Markdown table: a row per figure, a column per system

FOLDER: the files that README.md describes, of one system and one service. A system's column pools the counts of its services
before it divides; rank correlation and regret, which cannot be pooled, are the mean and the worst. A file that is not there
makes its figures null: nothing is estimated. Raises SystemExit with one sentence for a row that lacks a field.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

FIELDS = {
    "answers": ("tool", "changed_fields", "refused", "answer"),
    "verdicts": ("task_id", "policy", "truth", "reward"),
    "attacks": ("attack", "task_id", "reward"),
    "throughput": ("activity", "per_second", "n_cores")}
ANSWERS = ("exact", "wrong", "unknown")
MOST_FIELDS = 5
"""Calls that changed as many fields or more are one group."""
PAID_ABOVE = 0.5
N_WORST = 5
Row = dict[str, Any]
Figures = dict[str, Any]


def main() -> int:
    """Score the folders and print what was measured."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", nargs="+", type=Path)
    parser.add_argument("--table", action="store_true")
    options = parser.parse_args()
    systems = score_systems(options.folders)
    if options.table:
        print(table(systems))
        return 0
    for name, figures in systems.items():
        print(f"{name}: {json.dumps(figures)}", file=sys.stderr)
    print(json.dumps({"benchmark": "scoreboard", "systems": systems}))
    return 0


def score_systems(folders: Iterable[Path]) -> dict[str, Figures]:
    """Return the figures of each system, pooled over its folders."""
    services: dict[str, list[tuple[Row, dict[str, list[Row]]]]] = defaultdict(list)
    for folder in folders:
        system = json.loads((folder / "system.json").read_text("utf-8"))
        files = {name: list(read(folder / f"{name}.jsonl", fields)) for name, fields in FIELDS.items()}
        services[system["system"]].append((system, files))
    return {name: score_system(services[name]) for name in sorted(services)}


def read(path: Path, fields: tuple[str, ...]) -> Iterator[Row]:
    """Yield the rows of a file; none if it is not there."""
    if not path.exists():
        return
    for number, line in enumerate(path.read_text("utf-8").splitlines(), 1):
        row = json.loads(line)
        missing = [name for name in fields if name not in row]
        if missing:
            raise SystemExit(f"{path}, line {number}: no field {missing[0]!r} (hint: README.md lists the fields of each file)")
        yield row


def score_system(services: list[tuple[Row, dict[str, list[Row]]]]) -> Figures:
    """Return the figures of one system."""
    pooled = {name: [row for _, files in services for row in files[name]] for name in FIELDS}
    transfers = [correlate(files["verdicts"]) for _, files in services if files["verdicts"]]
    correlations = [each for each, _ in transfers if each is not None]
    return {
        "services": sorted(system["service"] for system, _ in services),
        "versions": sorted({str(system.get("version", "")) for system, _ in services}),
        "truth": sorted({str(system.get("truth", "not stated")) for system, _ in services}),
        **score_answers(pooled["answers"]), **score_rewards(pooled["verdicts"]),
        "spearman": _mean(correlations), "n_spearman": len(correlations),
        "choosing_regret": max((regret for _, regret in transfers), default=None),
        **score_attacks(pooled["attacks"]),
        "throughput": {row["activity"]: [row["per_second"], row["n_cores"]] for row in pooled["throughput"]},
        "fails": failures(pooled)}


def score_answers(rows: list[Row]) -> Figures:
    """Return shares of calls that were answered as the real tools do: of all, of refusals, and by number of changed fields."""
    groups: dict[str, list[Row]] = {"exact": rows, "exact_refusals": [row for row in rows if row["refused"]]}
    for number in range(MOST_FIELDS + 1):
        name = f"exact_fields_{number}" + ("_or_more" if number == MOST_FIELDS else "")
        groups[name] = [row for row in rows if not row["refused"] and _group(row["changed_fields"]) == number]
    groups["exact_fields_not_stated"] = [row for row in rows if not row["refused"] and row["changed_fields"] is None]
    n = Counter(row["answer"] for row in rows)
    by_tool = _by(rows, "tool")
    whole = [tool for tool, calls in by_tool.items() if all(row["answer"] == "exact" for row in calls)]
    return {"n_calls": len(rows), **{name: _share(calls) for name, calls in groups.items()},
            **{f"n_{name}": len(calls) for name, calls in groups.items()},
            "wrong": _ratio(n["wrong"], len(rows)), "unknown": _ratio(n["unknown"], len(rows)),
            "n_tools": len(by_tool), "tools_all_exact": _ratio(len(whole), len(by_tool))}


def score_rewards(rows: list[Row]) -> Figures:
    """Return how often what is paid is right, and what is right is paid. An episode without a reward counts in `unscored`
    alone."""
    n = Counter((bool(row["truth"]), _is_paid(row["reward"])) for row in rows)
    right, liars, rejected = n[True, True], n[False, True], n[True, False]
    return {"n_episodes": len(rows), "reward_precision": _ratio(right, right + liars),
            "reward_recall": _ratio(right, right + rejected), "false_accepts": liars if rows else None,
            "false_rejects": rejected if rows else None, "unscored": _ratio(n[True, None] + n[False, None], len(rows))}


def correlate(rows: list[Row]) -> tuple[float | None, float | None]:
    """Return the rank correlation (Spearman 1904, ties at their mean rank) of the policies' rates by reward with their true
    rates, over scored episodes, and the true rate that is lost by choosing the best by reward. None where a side does not
    vary."""
    scored = _by([row for row in rows if row["reward"] is not None], "policy")
    paid = [sum(bool(_is_paid(row["reward"])) for row in plays) / len(plays) for plays in scored.values()]
    true = [sum(bool(row["truth"]) for row in plays) / len(plays) for plays in scored.values()]
    if not scored:
        return None, None
    best = [rate for rate, reward in zip(true, paid, strict=True) if reward == max(paid)]
    return _pearson(_ranks(paid), _ranks(true)), round(max(true) - sum(best) / len(best), 4)


def score_attacks(rows: list[Row]) -> Figures:
    """Return how many attempts to be paid without the work there were, of how many kinds, and how many were paid."""
    return {"n_attacks": len(rows), "n_kinds_of_attack": len({row["attack"] for row in rows}),
            "attacks_paid": sum(bool(_is_paid(row["reward"])) for row in rows) if rows else None}


def failures(pooled: dict[str, list[Row]]) -> list[str]:
    """Return sentences on what fails most: reasons for unknown answers, tools, policies, attacks."""
    reasons = Counter(row["reason"] for row in pooled["answers"] if row.get("reason"))
    lines = [f"unknown, {reason}: {n} of {len(pooled['answers'])} calls" for reason, n in sorted(reasons.items())]
    for tool, calls in sorted(_by(pooled["answers"], "tool").items(), key=lambda item: (_share(item[1]), item[0]))[:N_WORST]:
        if (_share(calls) or 0) < 1:
            n = Counter(row["answer"] for row in calls)
            lines.append(f"tool `{tool}`: {n['unknown']} unknown, {n['wrong']} wrong of {len(calls)}")
    for policy, plays in sorted(_by(pooled["verdicts"], "policy").items()):
        n = Counter((bool(row["truth"]), _is_paid(row["reward"])) for row in plays)
        if n[False, True] or n[True, False]:
            lines.append(f"policy `{policy}`: {n[False, True]} paid wrongly, {n[True, False]} rejected wrongly of {len(plays)}")
    for attack, plays in sorted(_by(pooled["attacks"], "attack").items()):
        n_paid = sum(bool(_is_paid(row["reward"])) for row in plays)
        if n_paid:
            lines.append(f"attack `{attack}`: {n_paid} paid of {len(plays)}")
    return lines


def table(systems: dict[str, Figures]) -> str:
    """Return the figures as a Markdown table; an empty cell was not measured."""
    names = list(dict.fromkeys(name for figures in systems.values() for name in figures if not name.startswith("n_exact")))
    rows = [[name, *(_cell(figures, name) for figures in systems.values())] for name in names if name != "fails"]
    lines = [["figure", *systems], ["---"] * (len(systems) + 1), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def _cell(figures: Figures, name: str) -> str:
    value = figures.get(name)
    if isinstance(value, dict):
        return "; ".join(f"{key} {rate:g} ({n_cores} cores)" for key, (rate, n_cores) in value.items())
    if isinstance(value, list):
        return ", ".join(map(str, value))
    n = figures.get(f"n_{name}")
    return "" if value is None else f"{value} of {n}" if name.startswith("exact") and n else str(value)


def _group(n_fields: int | None) -> int | None:
    return None if n_fields is None else min(n_fields, MOST_FIELDS)


def _is_paid(reward: float | bool | None) -> bool | None:
    return None if reward is None else reward > PAID_ABOVE


def _by(rows: Iterable[Row], field: str) -> dict[str, list[Row]]:
    groups: dict[str, list[Row]] = defaultdict(list)
    for row in rows:
        groups[row[field]].append(row)
    return groups


def _share(calls: list[Row]) -> float | None:
    for row in calls:
        if row["answer"] not in ANSWERS:
            raise SystemExit(f"answer {row['answer']!r} of {row['tool']} is none of {', '.join(ANSWERS)} (hint: see README.md)")
    return _ratio(sum(row["answer"] == "exact" for row in calls), len(calls))


def _ratio(part: int, whole: int) -> float | None:
    return round(part / whole, 4) if whole else None


def _mean(values: list[float]) -> float | None:
    return round(sum(values) / len(values), 4) if values else None


def _ranks(values: list[float]) -> list[float]:
    """Return mean ranks from 0."""
    return [sum(other < value for other in values) + (sum(other == value for other in values) - 1) / 2 for value in values]


def _pearson(one: list[float], other: list[float]) -> float | None:
    mean, other_mean = sum(one) / len(one), sum(other) / len(other)
    products = sum((x - mean) * (y - other_mean) for x, y in zip(one, other, strict=True))
    spread = sum((x - mean) ** 2 for x in one) * sum((y - other_mean) ** 2 for y in other)
    return round(products / spread ** 0.5, 4) if spread else None


if __name__ == "__main__":
    sys.exit(main())
