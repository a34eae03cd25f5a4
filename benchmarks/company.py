"""Measure how well a company's world of an instant is rebuilt from the exports of its apps.

    python benchmarks/company.py ../shared/data/company

The folder holds `exports/`, which alone the product sees, and `truth/`, which alone this script reads: `changes.jsonl` has
every change of every field, `items.jsonl` what each piece of work brought about (`want`), `people.jsonl` the ids of people.
`fields_*`: every field of every record that existed when every twelfth piece of work began, against the truth; a record that
did not exist yet counts as wrong. `leaks`: values that successful work brought about, and that the world already shows when
that work begins. The baseline is a snapshot: the last state, without records that were created later.
The rows are those of `traceroom show world --json`; one instant is read through the command itself and must be the same.
Prints a table, and one JSON object on the last line.
"""

from __future__ import annotations

import json
import resource
import statistics
import subprocess
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

from company_truth import CompanyTruth, same_value

from env_builder.people import LOGIN, find_people
from env_builder.runtime.company import CompanyState, CompanyWorld
from pipelines.inspection.company import instant_of, read_exported, world_of, world_rows

_EVERY = 12
_REPEATS = 15
Fields = dict[tuple[str, str], dict[str, tuple[Any, bool]]]
"""(app, id) -> field -> value, known"""


def main(folder: Path) -> dict[str, Any]:
    """Measure, print a table, return the figures."""
    before_mb, started = _memory_mb(), time.perf_counter()
    reading = read_exported([folder / "exports"])
    world = world_of(reading)
    seconds, megabytes = time.perf_counter() - started, _memory_mb() - before_mb
    truth = CompanyTruth(folder / "truth")
    instants = [instant_of(item["opened_at"]) for item in sorted(truth.items, key=lambda item: item["item_id"])[::_EVERY]]
    views: dict[str, Callable[[int], Fields]] = {"as_of": lambda at: fields_of(world, at), "naive": Snapshot(world).fields}
    scores = {name: score_fields(view, truth, instants, show=name == "as_of") for name, view in views.items()}
    leaks = {name: count_leaks(view, truth) for name, view in views.items()}
    n_unread = sum(1 for part in reading.unread if not part.where and part.reason in ("no_reader", "unknown_format"))
    figures = {
        **{f"{name}": round(value, 5) for name, value in scores["as_of"].items()},
        **{f"{name}_naive": round(value, 5) for name, value in scores["naive"].items()},
        "leaks": leaks["as_of"][0], "leaks_naive": leaks["naive"][0], "leaks_of": leaks["as_of"][1],
        "files": len(reading.app_of) + sum(1 for part in reading.unread if not part.where), "files_unread": n_unread,
        "files_with_reason": sum(1 for part in reading.unread if not part.where) - n_unread,
        "rows_rejected": sum(1 for part in reading.unread if part.where), "instants": len(instants),
        "versions": len(world.versions), "state_ms": round(state_ms(world, instants), 2),
        **score_people(world, folder / "truth"),
        "load_mb": round(megabytes, 1), "load_seconds": round(seconds, 2),
        "command_agrees": command_agrees(folder / "exports", world, instants[0])}
    for name, value in figures.items():
        print(f"{name:24} {value}")
    return figures


def _memory_mb() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def fields_of(world: CompanyWorld, instant: int) -> Fields:
    """Return every field of an instant."""
    fields: Fields = defaultdict(dict)
    for row in world_rows(world, instant):
        fields[row["app"], row["id"]][row["field"]] = (row["value"], row["known"])
    return fields


class Snapshot:
    """The baseline: the last state on record, without what was created later."""

    def __init__(self, world: CompanyWorld) -> None:
        self._born: dict[tuple[str, str], int] = {}
        for version in world.versions:
            self._born.setdefault((version.entity_class, version.entity_id), version.at)
        last = world.at(2**61)
        self._last = {key: {field: (last.guess(*key, field), True) for field in last.get(*key)} for key in self._born}

    def fields(self, instant: int) -> Fields:
        """Return the fields of the last state of what existed."""
        return {key: fields for key, fields in self._last.items() if self._born[key] <= instant}


def score_fields(view: Callable[[int], Fields], truth: CompanyTruth, instants: list[int], show: bool) -> dict[str, float]:
    """Return the shares of fields that are claimed, and of these that are exact."""
    n, claimed, exact = Counter[str](), Counter[str](), Counter[str]()
    wrong: Counter[tuple[str, str]] = Counter()
    for instant in instants:
        fields, true = view(instant), truth.at(instant)
        for (app, key), true_fields in true.items():
            own = fields.get((app, key))
            for field, true_value in true_fields.items():
                value, known = (None, True) if own is None else own.get(field, (None, True))
                n[app] += 1
                if known:
                    claimed[app] += 1
                    is_exact = own is not None and same_value(app, field, true_value, value, truth)
                    exact[app] += is_exact
                    wrong[app, field] += not is_exact
        for (app, key), own in fields.items():
            if app in truth.fields_of and (app, key) not in true:
                extra = [field for field, (_, known) in own.items() if known and field in truth.fields_of[app]]
                claimed[app] += len(extra)
                wrong[app, "(did not exist)"] += len(extra)
    if show:
        for app in sorted(n):
            print(f"{app:15} n {n[app]:8,}  claimed {claimed[app] / n[app]:.4f}  exact {exact[app] / max(1, claimed[app]):.5f}")
        print("wrong most often:", {f"{app}.{field}": count for (app, field), count in wrong.most_common(8) if count})
    n_claimed = sum(claimed.values())
    return {"fields_exact": sum(exact.values()) / n_claimed, "fields_claimed": n_claimed / sum(n.values())}


def count_leaks(view: Callable[[int], Fields], truth: CompanyTruth) -> tuple[int, int]:
    """Return how many intended values of successful work are visible when it begins, of those that were not true yet."""
    leaks = n = 0
    for item in truth.items:
        if not item["success"] or not item["want"]:
            continue
        instant = instant_of(item["opened_at"])
        true, fields = truth.at(instant), view(instant)
        for app, key, field, value in item["want"]:
            name = field.rstrip("~+")
            if truth.meets(app, field, value, true.get((app, key), {}).get(name)):
                continue   # it was so before the work
            n += 1
            own = fields.get((app, key), {}).get(name)
            leaks += own is not None and truth.meets(app, field, value, truth.translate(app, name, own[0]))
    return leaks, n


def score_people(world: CompanyWorld, truth: Path) -> dict[str, float]:
    """Return how many accounts are given to the right person and to a wrong one, as a share and a count."""
    classes = {"slack": ("slack_user",), "account": ("jira_user", "wiki_user"), "login": (LOGIN,), "crm": ("users",)}
    true = {row["mail"]: row for row in map(json.loads, (truth / "people.jsonl").read_text("utf-8").splitlines())}
    right = wrong = 0
    for person in find_people(world.at(2**61)):
        row = true.get(person.address)
        for kind, names in classes.items():
            own = next((person.accounts[name] for name in names if name in person.accounts), None)
            if own is not None and not (row and kind in row.get("unseen", ())):
                right += row is not None and row.get(kind) == own
                wrong += row is None or row.get(kind) != own
    n = sum(kind in row and kind not in row.get("unseen", ()) for row in true.values() for kind in classes)
    return {"people_right": round(right / n, 4), "people_wrong": wrong}


def state_ms(world: CompanyWorld, instants: list[int]) -> float:
    """Return the median milliseconds of the processor for a state that was never asked for, one record read."""
    times = []
    for instant in (instants * _REPEATS)[:max(_REPEATS, len(instants))]:
        started = time.process_time()
        state: CompanyState = world.at(instant)
        next(state.ids("jira"), None)
        times.append((time.process_time() - started) * 1000)
    return statistics.median(times)


def command_agrees(exports: Path, world: CompanyWorld, instant: int) -> bool:
    """Return whether the command prints the rows of an instant."""
    at = datetime.fromtimestamp(instant / 1_000_000).astimezone().isoformat()
    command = [sys.executable, "-m", "pipelines", "show", "world", "--logs", str(exports), "--at", at, "--json"]
    printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    return [json.loads(line) for line in printed] == [json.loads(json.dumps(row)) for row in _rows(world, instant)]


def _rows(world: CompanyWorld, instant: int) -> Iterator[dict[str, Any]]:
    return world_rows(world, instant)


if __name__ == "__main__":
    print(json.dumps(main(Path(sys.argv[1]))))
