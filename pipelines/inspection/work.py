"""The work that people did in a company's apps, for `traceroom show work` and the browser's pages.

In: `core.work_events`, `mart.work_items`, names of containers in `core.versions`. Out: kinds of work with their usual steps,
items with their acts.
A step is what is done, where, and by whom (the one who asked, others of the company, people outside, a machine). The steps of a
kind are those that a good part of its items have, in their median order. A median duration is over the items with both steps.
A kind whose items mostly only say something (messages, notices, who joined a channel) is talk, and is listed apart.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

from env_builder.people import find_people
from env_builder.runtime.company import CompanyWorld
from extractors.apps import installed_apps
from extractors.work.finding import find_work
from pipelines.building.work_rows import event_rows, item_rows
from pipelines.inspection.company import read_company
from pipelines.settings import Settings
from warehouse.errors import Missing
from warehouse.records import CREATED
from warehouse.store import Store
from warehouse.vocabulary import outcome_of

Row = dict[str, Any]
Read = Callable[..., Sequence[Row]]
_EVENTS = "select * from core.work_events order by position"
_ITEMS = "select * from mart.work_items order by opened_at, work_item_id"
_NAMED_BY = ("name", "title", "filename")
"""Fields with the name of a container."""
_NAMES = f"""select entity_class || ':' || entity_id as container, last(value order by position) as name from core.versions
    where field in {_NAMED_BY} group by all"""
_END = 2**61
_OFTEN = 0.3
"""Share of a kind's items from which on they share a step."""
_MOST_STEPS = 16
_TALK = 0.5
"""A kind is talk if in more than this share of its items nothing but words came about."""
_SAID_ONCE = 0.95
"""Records that hold words are messages if this share of what is done to them is their making."""
_LONGEST = 28
"""Characters of a value in a step's label."""
ASKER, COLLEAGUE, OUTSIDE, MACHINE = "asker", "colleague", "outside", "machine"
ROLES = {ASKER: "the one who asks", COLLEAGUE: "others of the company", OUTSIDE: "people outside", MACHINE: "no actor"}


class WorkStep(NamedTuple):
    """What is done in most items of a kind."""

    app: str
    label: str
    container: str
    role: str
    n_items: int
    wait_s: float | None
    """Median seconds since the step before; None: for the first."""


class KindOfWork(NamedTuple):
    """Items in which the same is done."""

    kind: str
    items: list[Row]
    steps: list[WorkStep]

    @property
    def apps(self) -> list[str]:
        """The apps of its steps, in the order in which they come in."""
        return list(dict.fromkeys(step.app for step in self.steps))

    def summary(self) -> Row:
        """Return a row for a list of kinds."""
        chances = [row["success"] for row in self.items if row["success"] is not None]
        outcomes = Counter(outcome_of(chance) for chance in chances)
        return {"kind": self.kind, "items": len(self.items), "median_hours": round(median(
            (row["closed_at"] - row["opened_at"]).total_seconds() for row in self.items) / 3600, 1),
            "succeeded": outcomes["succeeded"], "failed": outcomes["failed"],
            "undecided": len(self.items) - len(chances), "apps": ", ".join(self.apps)}


class WorkBook(NamedTuple):
    """The work of a company as it is shown."""

    events: dict[str, Row]
    """Acts by ref."""
    items: list[Row]
    names: Mapping[str, str]
    """Container -> the name that people gave it."""
    owners: Mapping[str, str]
    """Account in small letters, or address -> address of the person."""

    openings: Mapping[str, str]
    """Thread -> ref of its first act."""
    words: frozenset[str] = frozenset()
    """Classes of records that only say something, or only hold such records: messages, notices, channels."""

    def kinds(self) -> list[KindOfWork]:
        """Return the kinds of work, the most frequent first, without items that may be no single piece of work."""
        return [kind for kind in self.all_kinds() if not self.is_talk(kind)]

    def is_talk(self, kind: KindOfWork) -> bool:
        """Return whether nothing but words came about in most items of a kind."""
        silent = sum(all(self.events[ref]["entity_class"] in self.words for ref in item["refs"]) for item in kind.items)
        return silent > _TALK * len(kind.items)

    def all_kinds(self) -> list[KindOfWork]:
        """Return the kinds of work and of talk, the most frequent first."""
        of_kind: dict[str, list[Row]] = defaultdict(list)
        for row in self.items:
            if row["kind"] and row["reason"] in ("", "still_open"):
                of_kind[row["kind"]].append(row)
        return [KindOfWork(kind, rows, self._steps(rows))
                for kind, rows in sorted(of_kind.items(), key=lambda item: (-len(item[1]), item[0]))]

    def acts(self, item: Row) -> list[Row]:
        """Return the acts of an item, by time, with app, label and role."""
        rows = [self.events[ref] for ref in item["refs"]]
        return [{**row, "app": _APPS.get(row["entity_class"], row["entity_class"]),
                 "label": label_of(row, self.openings.get(row["thread"]) != row["ref"]),
                 "where": self.name_of(row["container"]), "role": self._role(row, rows[0]["actor"]),
                 "changed": json.loads(row["changes"])} for row in rows]

    def name_of(self, container: str) -> str:
        """Return what people call a container."""
        return self.names.get(container) or container.partition(":")[2]

    def values_of(self, item: Row) -> dict[str, str]:
        """Return the slots of an item, people by their addresses."""
        return {name: self.owners.get(value, value) for name, value in json.loads(item["slots"]).items()}

    def _role(self, act: Row, asker: str) -> str:
        actor = act["actor"]
        if not actor:
            return MACHINE
        return ASKER if actor == asker else COLLEAGUE if actor in self.owners or "@" not in actor else OUTSIDE

    def _steps(self, items: Sequence[Row]) -> list[WorkStep]:
        times: dict[tuple[str, str, str, str, int], dict[str, datetime]] = defaultdict(dict)
        places: dict[tuple[str, str, str, str, int], list[float]] = defaultdict(list)
        for item in items:
            acts = self.acts(item)
            n_before: Counter[tuple[str, str, str, str]] = Counter()
            for number, act in enumerate(acts):
                step = (act["app"], act["label"], act["where"], act["role"])
                key = (*step, n_before[step])
                n_before[step] += 1
                times[key][item["work_item_id"]] = act["happened_at"]
                places[key].append(number / len(acts))
        usual = sorted(times, key=lambda key: (-len(times[key]), key))[:_MOST_STEPS]
        usual = sorted((key for key in usual if len(times[key]) >= max(_OFTEN * len(items), 1)),
                       key=lambda key: (median(places[key]), key))
        steps = []
        for number, key in enumerate(usual):
            before = times[usual[number - 1]] if number else {}
            waits = [(at - before[item]).total_seconds() for item, at in times[key].items() if item in before]
            steps.append(WorkStep(*key[:4], len(times[key]), max(median(waits), 0.0) if waits else None))
        return steps


_APPS = {kind.name: app.name for app in installed_apps() for kind in app.kinds}


def label_of(act: Row, is_reply: bool) -> str:
    """Return what was done, in a few words."""
    entity_class, _, done = act["verb"].partition(" ")
    app = _APPS.get(entity_class, "")
    kind = entity_class.removeprefix(f"{app}_").replace("_", " ")
    if done == CREATED:
        return f"new {kind}" if kind != app else "reply" if is_reply else "new"
    if done == "gone":
        return f"{kind} deleted"
    changes = json.loads(act["changes"])
    single = changes[0]["after"] if len(changes) == 1 else None
    if isinstance(single, str) and 0 < len(single) <= _LONGEST and not any(character.isdigit() for character in single):
        return f"{changes[0]['field']} → {single}"
    return ", ".join(change["field"].lstrip("!") for change in changes[:3])


def book_of(read: Read) -> WorkBook:
    """Return the work that a run stored. Errors: Missing without any."""
    items = list(read(_ITEMS))
    if not items:
        raise Missing("the run found no work in exports of apps", "mart.work_items", "run over a company's exports")
    names = {row["container"]: str(json.loads(row["name"])) for row in read(_NAMES)}
    accounts = read("select address, account from core.accounts order by all")
    return _book(read(_EVENTS), items, names, _owners((row["address"], row["account"]) for row in accounts))


def work_at(logs: Sequence[Path], out: Path | str) -> WorkBook:
    """Return the work in folders of exports, or else what a run stored. Errors: InputError, Missing."""
    if not logs:
        with Store.published(Settings(logs=(), out=str(out)).warehouse) as store:
            return book_of(lambda sql: store.read(sql).to_dicts())
    reading = read_company(Settings(logs=tuple(map(str, logs)), out=str(out)))
    accounts = {person.address: person.accounts for person in find_people(CompanyWorld(reading.versions).at(_END))}
    company_work = find_work(reading.versions, accounts)
    names = {f"{version.entity_class}:{version.entity_id}": str(version.value) for version in reading.versions
             if version.field in _NAMED_BY}
    events, items = event_rows(company_work), item_rows(company_work)
    return _book([row.model_dump() for row in events], [row.model_dump() for row in items], names, _owners(
        (address, account) for address, owned in accounts.items() for account in owned.values()))


def _book(events: Sequence[Row], items: list[Row], names: Mapping[str, str], owners: Mapping[str, str]) -> WorkBook:
    openings: dict[str, str] = {}
    for row in events:
        openings.setdefault(row["thread"], row["ref"])
    return WorkBook({row["ref"]: row for row in events}, items, names, owners, openings, _classes_of_words(events))


def _classes_of_words(events: Sequence[Row]) -> frozenset[str]:
    """Return the classes of messages, and those of the places that have no words of their own and hold messages alone."""
    n_acts = Counter(row["entity_class"] for row in events)
    made = Counter(row["entity_class"] for row in events if row["verb"].endswith(CREATED))
    kinds = {kind.name: kind for app in installed_apps() for kind in app.kinds}
    messages = {name for name, kind in kinds.items() if kind.texts and (kind.place or kind.answers or kind.people)
                and n_acts[name] and made[name] >= _SAID_ONCE * n_acts[name]}
    within = defaultdict[str, set[str]](set)
    for row in events:
        within[(row["place"] or "").partition(":")[0]].add(row["entity_class"])
    return frozenset(messages | {place for place, classes in within.items()
                                 if classes <= messages and place in kinds and not kinds[place].texts})


def _owners(rows: Iterable[tuple[str, str]]) -> dict[str, str]:
    owned = list(rows)
    return {account.casefold(): address for address, account in owned} | {address: address for address, _ in owned}


def item_lines(book: WorkBook) -> Iterable[Row]:
    """Yield a row for each item: its refs, kind, success and times."""
    for row in book.items:
        yield {"work_item_id": row["work_item_id"], "refs": row["refs"], "family": row["kind"], "success": row["success"],
               "probability": row["probability"], "opened_at": row["opened_at"].isoformat(),
               "closed_at": row["closed_at"].isoformat(), "reason": row["reason"], "slots": json.loads(row["slots"])}
