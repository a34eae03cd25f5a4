"""Answer the tools of all apps of a company over one world, as of an instant and as one person; product `company`.

In: of the app's folder versions.jsonl (a row a value that a field took: `FieldVersion`), people.jsonl ({"address",
"accounts"}), conventions.json, inhouse.json (tools learnt from recorded calls; may be absent), schemas.jsonl (descriptors of
the tools), colleagues.jsonl (who answers what in which task: `colleagues.py`; may be absent); who acts (identities.py: a
session -> the person's address); the option `products` of the manifest's row: the products whose tools are offered.
Out: an app. Its products share one desk, so that an act in one can move another.
An answer that depends on what the exports do not tell has the tier `unknown`. What such a call may have written is open
from then on: answers that depend on it are unknown until it is written again.
"""

from __future__ import annotations

import importlib
import json
from collections.abc import Collection, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

from ..apps import App, AppState, Name, Start
from ..apps.identities import AGENT, SessionUsers
from ..canonical import canonical
from ..company import (
    CompanyDesk,
    CompanyWorld,
    DeskStart,
    FieldVersion,
    OngoingWorld,
    PersonSight,
    ProductRefusal,
    Undecided,
    UnwordedRefusal,
    open_what_may_follow,
)
from ..company.following import ACROSS, follow
from ..files import rows_of
from ..records import Result
from ..schemas import Schema, refusal
from . import drive_folder
from .colleagues import COLLEAGUES, DESCRIPTOR, NOTHING_ASKED, WAIT, AnswerProgress, Colleagues, told_time
from .inhouse import INHOUSE, tools_from
from .tools import OfficeTool

PRODUCTS: tuple[str, ...] = (
    "calendar_events",
    "confluence",
    "drive",
    "github",
    "gmail",
    "jira",
    "slack",
)
"""Modules of this package, each with the tools of one product."""
VERSIONS, PEOPLE, CONVENTIONS, SCHEMAS = "versions.jsonl", "people.jsonl", "conventions.json", "schemas.jsonl"
_LATEST = 2**61
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def load(folder: Path, row: Mapping[str, Any], users: SessionUsers) -> CompanySuite:
    """Load the app of a manifest's row from its folder."""
    world = CompanyWorld(FieldVersion(**version) for version in rows_of(folder / VERSIONS))
    accounts = {person["address"]: person["accounts"] for person in rows_of(folder / PEOPLE)}
    conventions = json.loads((folder / CONVENTIONS).read_bytes())
    schemas = {tool["name"]: tool["inputSchema"] for tool in rows_of(folder / SCHEMAS)} if (folder / SCHEMAS).exists() else {}
    induced = json.loads((folder / INHOUSE).read_bytes()) if (folder / INHOUSE).exists() else None
    scripts = rows_of(folder / COLLEAGUES) if (folder / COLLEAGUES).exists() else ()
    return CompanySuite(row["name"], CompanySetup(
        world, accounts, users, row.get("products", PRODUCTS), conventions, induced, schemas, row.get("world_goes_on", {}),
        {script["task_id"]: Colleagues(script) for script in scripts}))


def tools_of(products: Sequence[str]) -> dict[str, OfficeTool]:
    """Return the tools of products by name. ValueError: there is no such product."""
    tools: dict[str, OfficeTool] = {}
    for product in products:
        if product not in PRODUCTS:
            raise ValueError(f"no product {product!r} of a company; there are: {', '.join(PRODUCTS)}")
        tools |= importlib.import_module(f".{product}", __package__).TOOLS
    return tools


class CompanySetup(NamedTuple):
    """What a company's apps are made of."""

    world: CompanyWorld
    accounts: Mapping[str, Mapping[str, str]] = MappingProxyType({})
    """Address of a person -> class of accounts -> id."""
    users: SessionUsers = SessionUsers({})
    products: Sequence[str] = PRODUCTS
    conventions: Mapping[str, Any] = MappingProxyType({})
    induced: Mapping[str, Any] | None = None
    """The company's own tools, as calls teach them; None: there are none."""
    schemas: Mapping[str, Schema] = MappingProxyType({})
    """Tool -> JSON Schema of its arguments; a call that breaks it is refused."""
    world_goes_on: Mapping[str, Collection[str]] = MappingProxyType({})
    """Task in whose episodes other work goes on -> what belongs to its own work: records (`class:id`), or source records."""
    colleagues: Mapping[str, Colleagues] = MappingProxyType({})
    """Task -> who answers in its episodes."""


class CompanySuite(App):
    """The apps of a company over time."""

    def __init__(self, name: str, setup: CompanySetup) -> None:
        self.name = name
        self.world = setup.world
        self.schemas = {tool: {"additionalProperties": False, **schema} for tool, schema in setup.schemas.items()}
        self.folders = (drive_folder.FOLDER,) if "drive" in setup.products else ()
        self.tools = {**(tools_from(setup.induced) if setup.induced else {}), **tools_of(setup.products),
                      **(drive_folder.TOOLS if self.folders else {})}
        if setup.colleagues:
            self.tools[WAIT] = OfficeTool(_nobody_asked)   # what comes meanwhile is others' doing
            self.schemas[WAIT] = {"additionalProperties": False, **DESCRIPTOR["inputSchema"]}
        self.answers: Collection[str] = frozenset(self.tools)
        self.writes = frozenset(tool for tool, own in self.tools.items() if own.writes)
        self.explained = self.writes
        self._setup = setup
        self.rules: Sequence[Mapping[str, Any]] = setup.conventions.get(ACROSS, {}).get("rules", ())
        """What follows in other apps (`company/following.py`)."""
        self._starts: dict[tuple[str | None, str, str | None], DeskStart] = {}

    def reset(self, start: Start) -> CompanyEpisode:
        desk = CompanyDesk(self.start_of(start.instant, self._setup.users.user_of(start), start.task_id))
        return CompanyEpisode(self, desk, self._setup.colleagues.get(start.task_id or ""))

    def start_of(self, instant: str | None, address: str, task_id: str | None = None) -> DeskStart:
        """Return the beginning of the episodes of one person at an ISO instant. Errors: LookupError, ValueError."""
        own = self._setup.world_goes_on.get(task_id) if task_id is not None else None
        key = (instant, address, task_id if own is not None else None)
        begun = self._starts.get(key)
        if begun is None:
            state = self.world.at(_LATEST if instant is None else _microseconds(instant))
            begun = self._starts[key] = DeskStart(
                state, address, self._setup.accounts, PersonSight(state, address, address == AGENT), self._setup.conventions,
                goes_on=None if own is None else OngoingWorld(state, own))
        return begun


class CompanyEpisode(AppState):
    """One episode at one desk."""

    __slots__ = ("_app", "_colleagues", "_progress", "desk")

    def __init__(self, company: CompanySuite, desk: CompanyDesk, colleagues: Colleagues | None = None,
                 progress: AnswerProgress = NOTHING_ASKED) -> None:
        self._app, self.desk, self._colleagues, self._progress = company, desk, colleagues, progress

    def call(self, tool: str, arguments: dict[str, Any], key: str | None = None) -> Result:
        before = self.desk.n_acts
        result = self._call(tool, arguments)
        if self._colleagues is not None and self.desk.n_acts != before:
            self._progress = self._colleagues.hear(self.desk, self._progress)
        return result

    def _call(self, tool: str, arguments: dict[str, Any]) -> Result:
        own = self._app.tools.get(tool)
        if own is None:
            return Result(f"unknown tool {tool!r}; there are: {', '.join(sorted(self._app.answers))}", True, "unknown")
        schema = self._app.schemas.get(tool)
        wrong = refusal(schema, _coerced(schema, arguments), "the arguments") if schema is not None else None
        if wrong:
            return Result(f"Input validation error: {wrong}", True, "derived")
        self.desk.go_on()
        if tool == WAIT:
            return self.wait(int(arguments["minutes"]))
        before = self.desk.snapshot()
        rules = self._app.rules if own.writes else ()
        earlier = self.desk.fork() if rules else self.desk
        try:
            answer = own.answer(self.desk, arguments)
        except ProductRefusal as refused:
            self.desk.restore(before)
            self.desk.tick(False)
            return Result(str(refused), True, "derived")
        except Undecided as gap:
            self.desk.restore(before)
            if own.writes and not isinstance(gap, UnwordedRefusal):
                classes = {*own.writes, *(rule["effect"]["kind"].partition("/")[0] for rule in rules)}
                open_what_may_follow(self.desk, lambda desk: own.answer(desk, arguments), frozenset(classes),
                                     lambda desk, earlier: follow(desk, earlier, rules))
            self.desk.tick(bool(own.writes) and not isinstance(gap, UnwordedRefusal))
            return Result(f"unknown: {gap}", True, "unknown")
        if rules:
            follow(self.desk, earlier, rules)
        self.desk.tick(bool(own.writes) and self.desk.has_acted_since(before[0]))
        return Result(answer, False, "derived")

    def wait(self, minutes: int) -> Result:
        """Let time pass until somebody answers, these minutes at most."""
        if self._colleagues is None:
            self.desk.pass_time(60 * minutes)
        else:
            self._progress = self._colleagues.wait(self.desk, self._progress, minutes)
        self.desk.go_on()
        return Result(told_time(self.desk), False, "derived")

    def snapshot(self) -> Any:
        return self.desk.snapshot(), self._progress

    def restore(self, snapshot: Any) -> None:
        self.desk.restore(snapshot[0])
        self._progress = snapshot[1]

    def fork(self) -> CompanyEpisode:
        return CompanyEpisode(self._app, self.desk.fork(), self._colleagues, self._progress)

    def difference(self) -> dict[str, Any]:
        """Return the records that differ from the start; `made`: those that are new."""
        documents, made = {}, []
        for kind, key in self.desk.changed():
            before, after = self.read((kind, key))
            documents[f"{kind}/{key}"] = after
            made += [[kind, key]] if before is None else []
        return {"documents": documents, "write_calls": [], **({"made": made} if made else {})}

    def read(self, name: Name) -> tuple[str | None, str | None]:
        before, after = (self.desk.record(*name, is_start=is_start) for is_start in (True, False))
        return _written(before), _written(after)

    def may_write(self, tool: str) -> bool:
        return tool in self._app.writes

    def folder(self) -> dict[str, bytes]:
        files = drive_folder.files_of(self.desk) if self._app.folders else {}
        return {path: file.content for path, file in files.items()}


def _nobody_asked(desk: CompanyDesk, arguments: dict[str, Any]) -> str:
    """Answer a wait outside of an episode: time alone."""
    del arguments
    return told_time(desk)


def _coerced(schema: Schema, arguments: dict[str, Any]) -> dict[str, Any]:
    """Return arguments as servers take them: a number that is written as a text is one, and null is not given."""
    kinds = {name: own.get("type") for name, own in schema.get("properties", {}).items()}
    return {name: int(value) if kinds.get(name) in ("integer", "number") and isinstance(value, str) and value.isdecimal()
            else value for name, value in arguments.items() if value is not None}


def _written(record: dict[str, Any] | None) -> str | None:
    return None if record is None else canonical(record)


def _microseconds(instant: str) -> int:
    """Return an ISO instant as microseconds since 1970. Errors: ValueError."""
    moment = datetime.fromisoformat(instant)
    return round(((moment if moment.tzinfo else moment.replace(tzinfo=UTC)) - _EPOCH) / timedelta(microseconds=1))
