"""Measure how well a company's world of an instant is rebuilt from the exports of its apps.

    python benchmarks/company.py ../shared/data/company [SCORER]

The folder holds `exports/`, which alone the product sees, and `truth/`, which alone this script reads: `changes.jsonl` has
every change of every field, `items.jsonl` what each piece of work brought about (`want`), `people.jsonl` the ids of people.
`fields_*`: every field of every record that existed when every twelfth piece of work began, against the truth; a record that
did not exist yet counts as wrong. `leaks`: values that successful work brought about, and that the world already shows when
that work begins. The baseline is a snapshot: the last state, without records that were created later.
The rows are those of `traceroom show world --json`; one instant is read through the command itself and must be the same.
`reads_*`, `writes_*`, `looks_after_*` and `people_*` are what the scorer counts of the rows of `traceroom show answers` and
`show people`; `induced_tools_*` of the calls of tools that no public server declares. `tool_leaks`: answers that show the
future (`env_builder.company.leaks`), when every 36th piece of work begins.
Prints a table, and one JSON object on the last line.
"""

from __future__ import annotations

import importlib.util
import json
import resource
import statistics
import subprocess
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, Protocol

from company_truth import CompanyTruth, same_value

from env_builder.company.calls import RecordedCall
from env_builder.company.leaks import FutureWords, leaks_of, tried_calls
from env_builder.people import LOGIN, find_people
from env_builder.runtime.company import CompanyDesk, CompanyState, CompanyWorld
from env_builder.runtime.office.company import PRODUCTS, CompanyEpisode, CompanySuite, tools_of
from pipelines.inspection.company import (
    CallsRow,
    answer_rows,
    company_at,
    instant_of,
    world_rows,
)

_EVERY = 12
_REPEATS = 15
Fields = dict[tuple[str, str], dict[str, tuple[Any, bool]]]
"""(app, id) -> field -> value, known"""


class Scorer(Protocol):
    """The scorer of answers and of people, `company_score.py`."""

    def probes(self, truth: str, answers: list[dict[str, Any]]) -> dict[str, dict[str, float]]:
        """Return the shares of exact and wrong answers by kind."""

    def items(self, truth: str, predicted: list[dict[str, Any]]) -> dict[str, float]:
        """Return how well acts are joined to pieces of work."""

    def people(self, truth: str, found: list[dict[str, Any]]) -> dict[str, int]:
        """Return how many accounts are right and wrong, and how many there are."""

    def same(self, want: str, got: str, at: float, made: list[str]) -> bool:
        """Return whether two answers are equal but for what only the act could make."""

    def ep(self, instant: str) -> float:
        """Return an instant as seconds."""


def load_scorer(path: Path) -> Scorer:
    """Load the scorer from its file."""
    spec = importlib.util.spec_from_file_location("company_score", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module  # type: ignore[return-value]


def main(folder: Path, scorer_path: Path) -> dict[str, Any]:
    """Measure, print a table, return the figures."""
    before_mb, started = _memory_mb(), time.perf_counter()
    company = company_at([folder / "exports"], "")
    world = company.world
    seconds, megabytes = time.perf_counter() - started, _memory_mb() - before_mb
    app = company.app
    scorer = load_scorer(scorer_path)
    truth = CompanyTruth(folder / "truth")
    instants = [instant_of(item["opened_at"]) for item in sorted(truth.items, key=lambda item: item["item_id"])[::_EVERY]]
    views: dict[str, Callable[[int], Fields]] = {"as_of": lambda at: fields_of(world, at), "naive": Snapshot(world).fields}
    scores = {name: score_fields(view, truth, instants, show=name == "as_of") for name, view in views.items()}
    leaks = {name: count_leaks(view, truth) for name, view in views.items()}
    n_unread = sum(1 for part in company.unread if not part.where and part.reason in ("no_reader", "unknown_format"))
    figures = {
        **{f"{name}": round(value, 5) for name, value in scores["as_of"].items()},
        **{f"{name}_naive": round(value, 5) for name, value in scores["naive"].items()},
        "leaks": leaks["as_of"][0], "leaks_naive": leaks["naive"][0], "leaks_of": leaks["as_of"][1],
        "files": sum(path.is_file() for path in (folder / "exports").rglob("*")), "files_unread": n_unread,
        "files_with_reason": sum(1 for part in company.unread if not part.where) - n_unread,
        "rows_rejected": sum(1 for part in company.unread if part.where), "instants": len(instants),
        "versions": len(world.versions), "state_ms": round(state_ms(world, instants), 2),
        **score_people(world, folder / "truth", scorer), **score_probes(app, folder / "truth", scorer),
        **tool_leaks(app, company.calls, folder / "truth", sorted(truth.items, key=lambda item: item["item_id"])[::_EVERY * 3]),
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


def tool_leaks(app: CompanySuite, calls: Sequence[RecordedCall], truth: Path, items: list[dict[str, Any]]) -> dict[str, float]:
    """Return how many answers show the future, of the calls tried when pieces of work began, as the person who began them."""
    people = map(json.loads, (truth / "people.jsonl").read_text("utf-8").splitlines())
    mails = {row["person"]: row["mail"] for row in people}
    words, shown, n = FutureWords(app.world, calls), Counter[str](), 0
    for item in items:
        start = app.start_of(item["opened_at"], mails[item["people"][0]])
        tried = tried_calls(app, start, calls, words)
        wanted = [str(value) for _, _, _, value in item["want"] if isinstance(value, str)]
        n += len(tried)
        shown.update(f"{leak.tool}: {leak.shown}" for leak in leaks_of(app, start, tried, words, wanted))
    print("shown of the future:", dict(shown.most_common(8)))
    return {"tool_leaks": shown.total(), "tool_leaks_of": n}


def score_people(world: CompanyWorld, truth: Path, scorer: Scorer) -> dict[str, float]:
    """Return how many accounts are given to the right person, as a share, and how many to a wrong one."""
    classes = {"slack": ("slack_user",), "account": ("jira_user", "wiki_user"), "login": (LOGIN,)}
    rows, apps = [], {"person", *(name for names in classes.values() for name in names)}
    for person in find_people(world.at(2**61)):
        accounts = {kind: next((person.accounts[name] for name in names if name in person.accounts), None)
                    for kind, names in classes.items()}
        tables = [account for name, account in person.accounts.items() if name not in apps]
        accounts["crm"] = tables[0] if len(tables) == 1 else None
        rows.append({"ids": {"mail": person.address, **accounts}})
    score = scorer.people(str(truth), rows)
    return {"people_right": round(score["right"] / score["of"], 4), "people_wrong": score["wrong"]}


def score_probes(app: CompanySuite, truth: Path, scorer: Scorer) -> dict[str, float]:
    """Return the shares of exact and of wrong answers to calls that are in no log, and what a call and a fork cost."""
    probes = [json.loads(line) for line in (truth / "probes.jsonl").read_text("utf-8").splitlines()]
    rows = [CallsRow.model_validate(probe) for probe in probes]
    answers = list(answer_rows(app, rows))
    figures: dict[str, float] = {}
    for kind, name in (("read", "reads"), ("write", "writes"), ("after", "looks_after")):
        score = scorer.probes(str(truth), answers)[kind]
        figures |= {f"{name}_exact": score["exact"], f"{name}_wrong": score["wrong"]}
    public = set(tools_of(PRODUCTS))
    n, exact, wrong = Counter[str](), Counter[str](), Counter[str]()
    given = {row["probe_id"]: row["answers"] for row in answers}
    for probe in probes:
        for call, answer in zip(probe["calls"], given[probe["probe_id"]], strict=True):
            right = scorer.same(call["answer"], answer["content"], scorer.ep(probe["at"]), probe["made"])
            right = right and answer["is_error"] == call["is_error"]
            n[call["tool"]] += 1
            exact[call["tool"]] += right and answer["tier"] != "unknown"
            wrong[call["tool"]] += not right and answer["tier"] != "unknown"
    for tool in sorted(n):
        print(f"{tool:34} n {n[tool]:4}  exact {exact[tool] / n[tool]:.3f}  wrong {wrong[tool] / n[tool]:.3f}")
    induced = [tool for tool in n if tool not in public]
    n_induced = sum(n[tool] for tool in induced)
    return {**figures, "induced_tools_exact": round(sum(exact[tool] for tool in induced) / max(1, n_induced), 4),
            "induced_tools_wrong": round(sum(wrong[tool] for tool in induced) / max(1, n_induced), 4),
            **costs(app, rows)}


def costs(app: CompanySuite, rows: list[CallsRow]) -> dict[str, float]:
    """Return the median milliseconds of the processor of a call, and the median microseconds of a fork after it."""
    calls, forks = [], []
    for row in rows:
        episode = CompanyEpisode(app, CompanyDesk(app.start_of(row.at, row.acting_for)))
        for call in row.calls:
            started = time.process_time()
            episode.call(call.tool, call.arguments)
            calls.append((time.process_time() - started) * 1000)
            started_ns = time.perf_counter_ns()
            episode.fork()
            forks.append((time.perf_counter_ns() - started_ns) / 1000)
    return {"call_p50_ms": round(statistics.median(calls), 3), "fork_p50_us": round(statistics.median(forks), 2)}


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
    data = Path(sys.argv[1])
    usual = data.resolve().parents[1] / "acceptance" / "company_score.py"
    print(json.dumps(main(data, Path(sys.argv[2]) if len(sys.argv) > 2 else usual)))
