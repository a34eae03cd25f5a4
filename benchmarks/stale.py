#!/usr/bin/env python3
"""Tasks that a change of the service made wrong: whether the nights after it still publish them.

    benchmarks/stale.py [--rules NAME…] [--sizes 45,80,32] [--renamed TOOL…] [--nights 3] [--folder DIR]
    benchmarks/stale.py --sentences [NAME…] [--sizes …] [--nights 3] [--folder DIR]

The logs are those of a made-up service (relearning_service.py), with `--sizes` sessions on each of the first nine days, on
the tenth, and on each day after. On the tenth, its rules (`--rules`: only these) become others, and the tools `--renamed` get
another name. The first nine days arrive at once, then each night brings a day, and `traceroom run` goes over all of it. Every
other session has a person's review. After each night the known solution of each task that is published, or withheld for a
change (reason `rule_changed`), is put to the service itself as it stood when the task begins, by the rules of then and of
now. The task is stale if a call is answered otherwise.

With --sentences the tools stay as they are, and sentences of the agents' instructions come or go on that day, each of which
forbids something (stale_sentences.py): `whole` (a family of tasks), `limit` and `value` (a part of one), `dropped` (allowed
since), `idle` (nothing). A task is stale if its solution does what is forbidden since, or declines what is allowed since.

The last line on stdout is one JSON object. Of the night of the tenth day, and with a number of each night after:

    stale_tasks          stale tasks that are published
    stale_unchecked      stale tasks that would be published if none were withheld for a change
    withdrawn            tasks withheld for a change
    withdrawn_wrongly    those of them that are not stale
    n_published          tasks that are published
    changes_named        tools that the night names as changed

`withdrawn_before`: tasks withheld on the ninth night, before any change. `changes` names for each rule and tool the stale tasks
of the night of the tenth day that are published, and those that are withheld. All with `--privacy off`.
"""

from __future__ import annotations

import argparse
import json
import pickle
import re
import sys
import tempfile
from bisect import bisect_right
from collections.abc import Callable, Iterable
from copy import copy
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from nightly import Night, run, table
from relearning_service import DAY_OF_CHANGE, RULES, Day, days
from stale_sentences import SENTENCES, sentence_days, sentences_of

from warehouse.store import Store

REASON = "rule_changed"


Judge = Callable[[bytes, str, tuple[str, ...]], tuple[str, ...]]
"""Of what `begun` has of a session, a solution and names of changes: those that make the solution wrong."""


class Judged(NamedTuple):
    """Tasks of a night, each with the rules that make it stale: none if it is as true as it was."""

    published: dict[str, tuple[str, ...]]
    withheld: dict[str, tuple[str, ...]]
    named: list[str]
    """Tools that changed, as the night names them."""


def main() -> int:
    """Run the nights and print the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rules", nargs="+", choices=sorted(RULES), default=list(RULES))
    parser.add_argument("--renamed", nargs="+", default=[])
    parser.add_argument("--sentences", nargs="*", choices=sorted(SENTENCES))
    parser.add_argument("--sizes", default="45,80,32")
    parser.add_argument("--nights", type=int, default=3)
    parser.add_argument("--folder", type=Path)
    given = parser.parse_args()
    before, change, after = map(int, given.sizes.split(","))
    sizes = [before] * (DAY_OF_CHANGE - 1) + [change] + [after] * (given.nights - 1)
    with tempfile.TemporaryDirectory(dir=given.folder) as scratch:
        if given.sentences is None:
            changes = [*given.rules, *given.renamed]
            nights = lived(list(days(sizes, given.rules)), given.rules, Path(scratch), given.renamed)
        else:
            changes = given.sentences or [*SENTENCES]
            nights = lived(list(sentence_days(sizes, changes)), changes, Path(scratch), judge=sentences_of)
    print(json.dumps({"benchmark": "stale", "figures": figures(nights, changes), "changes": {
        change: {kind: sum(change in own for own in getattr(nights[DAY_OF_CHANGE], kind).values())
                 for kind in ("published", "withheld")} for change in changes}}))
    return 0


def lived(
    happened: list[Day], rules: Iterable[str], scratch: Path, renamed: Iterable[str] = (), judge: Judge | None = None
) -> dict[int, Judged]:
    """Return what each night from the ninth on publishes and withholds, by its day."""
    inbox, out = scratch / "logs", scratch / "out"
    inbox.mkdir()
    runs: list[Night] = []
    nights: dict[int, Judged] = {}
    begun: list[tuple[int, bytes]] = []
    for day in happened:
        text = "".join([*day.late, *day.lines])
        for tool in renamed if day.number >= DAY_OF_CHANGE else ():
            text = re.sub(rf'(?<="){tool}(?=\\?")', f"{tool}_now", text)
        (inbox / f"day-{day.number:02}.jsonl").write_text(text, "utf-8")
        (inbox / f"reviews-{day.number:02}.jsonl").write_text("".join(reviews(day)), "utf-8")
        begun += day.begun
        if day.number >= DAY_OF_CHANGE - 1:
            runs.append(run(f"day {day.number}", [inbox], out))
            nights[day.number] = judged(out, begun, (*rules, *renamed), judge or rules_of)
    table(runs)
    return nights


def reviews(day: Day) -> list[str]:
    """Return a person's word on every other session of a day: this service serves all well."""
    session_ids = dict.fromkeys(json.loads(line)["metadata"]["session_id"] for line in day.lines)
    return [json.dumps({"session_id": name, "right": True, "reviewer": "lee"}) + "\n" for name in list(session_ids)[::2]]


def judged(out: Path, begun: list[tuple[int, bytes]], rules: tuple[str, ...], judge: Judge) -> Judged:
    """Judge the tasks of a night by the service itself. `begun`: the service when each session began, or what it wanted."""
    with Store.open(out / "warehouse.duckdb", write=False) as store:
        rows = store.read(
            "select task_id, starts_at, solution, kept from (select task_id, starts_at, solution from mart.tasks join "
            "mart.rubrics using (task_id) union all select task_id, starts_at, solution from mart.variants) join "
            "mart.decisions on subject = task_id where stage = 'verify' and (kept or reason = $reason)", reason=REASON)
        named = store.read("select subject from mart.decisions where stage = 'drift' and reason = $reason", reason=REASON)
    night = Judged({}, {}, sorted(re.split("/(?:rules of|instructions on) ", subject)[1].partition("/")[0]
                                  for subject in named["subject"]))
    for task_id, starts_at, solution, is_published in rows.iter_rows():
        place = bisect_right(begun, starts_at.timestamp(), key=lambda each: each[0]) - 1
        (night.published if is_published else night.withheld)[task_id] = judge(begun[place][1], solution, rules)
    return night


@cache
def rules_of(service: bytes, solution: str, changes: tuple[str, ...]) -> tuple[str, ...]:
    """Return the changes each of which alone makes the service answer a call of the solution otherwise. `service`: as it was
    when the task begins; none if that is after the change."""
    if pickle.loads(service).changed:
        return ()
    is_stale = differs(service, solution, changes)
    return tuple(change for change in changes if differs(service, solution, {change})) if is_stale else ()


def differs(service: bytes, solution: str, changed: Iterable[str]) -> bool:
    """Return whether the service would answer a call otherwise if these rules were changed, and these tools had other names."""
    engine = pickle.loads(service)
    for step in json.loads(solution):
        if "tool" not in step:
            continue
        if step["tool"] in changed:
            return True
        other = copy(engine)
        other.pieces, other.potters = ({key: dict(row) for key, row in rows.items()}
                                       for rows in (engine.pieces, engine.potters))
        other.changed = frozenset(RULES).intersection(changed)
        if engine.call(step["tool"], step["arguments"]).answer != other.call(step["tool"], step["arguments"]).answer:
            return True
    return False


def figures(nights: dict[int, Judged], changes: Iterable[str]) -> dict[str, Any]:
    """Return what is printed."""
    shown: dict[str, Any] = {"n_changes": len(list(changes)), "withdrawn_before": len(nights[DAY_OF_CHANGE - 1].withheld)}
    for day, night in nights.items():
        if day >= DAY_OF_CHANGE:
            end = f"_{day}" if day > DAY_OF_CHANGE else ""
            n_stale, n_held = (sum(map(bool, each.values())) for each in (night.published, night.withheld))
            shown |= {f"stale_tasks{end}": n_stale, f"stale_unchecked{end}": n_stale + n_held,
                      f"withdrawn{end}": len(night.withheld), f"withdrawn_wrongly{end}": len(night.withheld) - n_held,
                      f"n_published{end}": len(night.published), f"changes_named{end}": len(night.named)}
    return shown


if __name__ == "__main__":
    sys.exit(main())
