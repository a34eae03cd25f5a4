"""What a rule is induced from, and what its induction gives: the one signature that all rules share (registry.py).

Lists that are known whole (`Sources`): what the questions that answer with lists were last known to answer when a call was
made: in the same session with no write call between, else (where every session starts from the same state, and before any write
call) what nearly all sessions were answered. Does not see: a list that write calls changed since.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from itertools import groupby
from typing import Any, NamedTuple

from env_builder.behaviour.chosen import Kept
from env_builder.behaviour.guards import few_values
from env_builder.runtime.answers import parsed
from env_builder.runtime.lists import Listing, read
from env_builder.runtime.precedents import PastCalls
from env_builder.runtime.programs import presumed_effect
from env_builder.runtime.tables import Table, scalars
from env_builder.runtime.world import SURE, Name
from env_builder.world import ServiceWorld
from env_builder.world.calls import LoggedCall, order_of
from env_builder.world.documents import Documents, DocumentTool, tables
from env_builder.world.replay import LoggedStep

MINIMUM_ELEMENTS = 2
MINIMUM_SESSIONS = 3
MOST_SOURCES = 12
"""Questions that are tried as sources, those of most sessions first."""
Question = tuple[str, str]
"""(tool, canonical arguments)"""


class Moment(NamedTuple):
    """A call, and what lists were known when it was made."""

    call: LoggedCall
    lists: dict[Question, str]


class Sources:
    """All calls of a service beside the lists known at their moment."""

    def __init__(self, steps: Iterable[LoggedStep], reset: bool) -> None:
        ordered = list(steps)
        self.arguments: dict[Question, dict[str, object]] = {}
        contents: dict[Question, dict[str, str]] = defaultdict(dict)
        for step in ordered:
            whole = None if step.acting or step.call.failed or step.after else listing(step.call.content)
            if whole is not None and len(whole.values) >= MINIMUM_ELEMENTS:
                question = (step.call.tool, step.call.key)
                contents[question].setdefault(step.call.session_id, step.call.content)
                self.arguments[question] = step.call.arguments
        often = sorted((-len(ids), question) for question, ids in contents.items() if len(ids) >= MINIMUM_SESSIONS)
        self.questions = [question for _, question in often][:MOST_SOURCES]
        base = {question: text for question in self.questions for text in [_agreed(list(contents[question].values()))]
                if reset and text is not None}
        self._moments: dict[str, list[Moment]] = defaultdict(list)
        for _, session in groupby(ordered, key=lambda step: step.call.session_id):
            lists = base
            for step in session:
                self._moments[step.call.tool].append(Moment(step.call, lists))
                if step.act:
                    lists = {}
                elif (step.call.tool, step.call.key) in self.questions and not step.call.failed:
                    lists = {**lists, (step.call.tool, step.call.key): step.call.content}

    def moments(self, tool: str) -> list[Moment]:
        return self._moments[tool]


def listing(content: str) -> Listing | None:
    """Return the list of a text."""
    return read(content) if content[:1] in ("[", "{", "-") else None


def begun_documents(service: ServiceWorld) -> dict[Name, str]:
    """Return the documents as nearly all sessions read them before any write call that matters to them."""
    texts: dict[Name, Counter[str]] = defaultdict(Counter)
    for step in service.steps:
        if step.shown and not step.act and not step.after:
            texts[step.shown[:2]][step.shown[2]] += 1
    return {name: text for name, counts in texts.items() for text, times in counts.most_common(1)
            if times >= SURE * counts.total()}


def _agreed(texts: list[str]) -> str | None:
    best = max(sorted(set(texts)), key=texts.count)
    return best if texts.count(best) >= SURE * len(texts) else None


Rule = dict[str, Any]
Path = tuple[str, ...]
WORD = re.compile(r"[^\s\"',{}\[\]:]+")


class Induced(NamedTuple):
    """Rules, and what the log says for and against them."""

    rules: list[Rule]
    n_against: int = 0
    """Logged calls that the rules answer otherwise."""
    fidelity: float | None = None
    """Share exact of the held-out calls that rules from the other half answer; None: not measured here."""
    abstains: float | None = None
    """Share of the held-out calls that such rules do not answer; None: not measured here."""


NOTHING = Induced([])


def one_or_none(rule: Rule | None) -> Induced:
    """Induce the rule where there is one."""
    return Induced([rule]) if rule else NOTHING


UNEXPLAINED = ("recorded", "refuse", "rows", "shows")
"""Rules that leave open what a call answers that is not on record: where there are no others, the next rule is tried."""
GUARDING = ("validate", "unlisted")
"""Rules that only refuse arguments which no call that worked had: whatever they are, other rules are induced."""


class ShownRecords:
    """All documents and rows that a service's log shows."""

    def __init__(self, steps: Iterable[LoggedStep], rows: dict[str, Table]) -> None:
        texts: dict[tuple[str, str], dict[str, None]] = defaultdict(dict)
        for step in steps:
            if step.shown:
                texts[step.shown[:2]][step.shown[2]] = None
        self.rows = rows
        self.documents = {name: [parsed(text) for text in contents] for name, contents in sorted(texts.items())}
        self.classes = sorted({name[0] for name in self.documents})
        self._closed: dict[str, tuple[str, ...]] = {}
        self._holding: dict[str, dict[str, list[dict[str, Any]]]] = {}
        self._tables: dict[str, Table] = {}

    def listed(self, entity_class: str) -> Iterator[dict[str, Any]]:
        """Yield every document of the class as a row of `key` and `document`."""
        yield from ({"key": key, "document": document} for (kind, key), documents in self.documents.items()
                    if kind == entity_class for document in documents)

    def holding(self, entity_class: str) -> dict[str, list[dict[str, Any]]]:
        """Text of a scalar -> rows of the class that hold it."""
        if entity_class not in self._holding:
            rows = self._holding[entity_class] = defaultdict(list)
            for row in self.listed(entity_class):
                for text in texts_in(row):
                    rows[text].append(row)
        return self._holding[entity_class]

    def table(self, entity_class: str) -> Table:
        """Return the rows of the class."""
        if entity_class not in self._tables:
            self._tables[entity_class] = Table(self.listed(entity_class))
        return self._tables[entity_class]

    def named(self, entity_class: str, content: str) -> Iterator[tuple[str, Any]]:
        """Yield (key, latest document) of the records whose key is a word of the answer."""
        for word in dict.fromkeys(WORD.findall(content)):
            if (entity_class, word) in self.documents:
                yield word, self.documents[entity_class, word][-1]

    def closed(self, entity_class: str) -> tuple[str, ...]:
        """Return the fields that take few values in all records of the class."""
        if entity_class not in self._closed:
            self._closed[entity_class] = tuple(few_values(
                [one[-1] for (kind, _), one in self.documents.items() if kind == entity_class]))
        return self._closed[entity_class]

    def stable(self, entity_class: str, paths: Iterable[Path]) -> bool:
        """Return whether these fields of each record of the class always hold the same."""
        wanted = set(paths)
        return all(
            len({tuple(sorted((path, str(value)) for path, value in scalars(one) if path in wanted)) for one in contents}) == 1
            for (kind, _), contents in self.documents.items() if kind == entity_class)


def texts_in(row: dict[str, Any]) -> set[str]:
    """Texts of the scalars of a row's document."""
    return {str(value) for _, value in scalars(row["document"])}


class FirstReads:
    """The first read of each record: of all sessions, or of each where every session starts from the same state."""

    def __init__(self, steps: Iterable[LoggedStep], documents: Documents, shared: bool) -> None:
        self.documents = documents
        self._shared = shared
        self._first: dict[tuple[str, ...], LoggedStep] = {}
        for step in steps:
            if step.shown:
                name = self._scope(step, step.shown[0], step.shown[1])
                first = self._first.get(name)
                if first is None or order_of(step.call) < order_of(first.call):
                    self._first[name] = step

    def of(self, act: LoggedStep, entity_class: str, key: str) -> LoggedStep | None:
        """Return the first read of the record, in the world of this write call."""
        return self._first.get(self._scope(act, entity_class, self.documents.plain(entity_class, key)))

    def _scope(self, step: LoggedStep, entity_class: str, key: str) -> tuple[str, ...]:
        return (entity_class, key) if self._shared else (step.call.session_id, entity_class, key)


def row_tables(service: ServiceWorld) -> dict[str, Table]:
    """Class of rows -> all that the service's tools showed."""
    shown = {tool: rule for tool, program in service.programs.items() for rule in program["rules"] if rule["rule"] == "rows"}
    return tables(service.calls, shown)


class ServiceEvidence:
    """What the log of a service shows, whatever the tool: each part is looked for when the first tool needs it."""

    def __init__(self, service: ServiceWorld, demands: dict[str, Rule], finders: EvidenceFinders) -> None:
        self._service, self._finders = service, finders
        self._resets = service.starts_from == "reset"
        self.demands = demands
        """Tool -> its `validate` rule, of tools whose declared schema demands something."""

    @cached_property
    def rows(self) -> dict[str, Table]:
        """Class of rows -> all that the service's tools showed."""
        return row_tables(self._service)

    @cached_property
    def records(self) -> ShownRecords:
        """All documents and rows."""
        return ShownRecords(self._service.steps, self.rows)

    @cached_property
    def reads(self) -> FirstReads:
        """The first read of each record."""
        return FirstReads(self._service.steps, self._service.documents, self._service.starts_from == "shared")

    @cached_property
    def sources(self) -> Sources:
        """Lists that were known at each call."""
        return Sources(self._service.steps, self._resets)

    @cached_property
    def always(self) -> dict[str, dict[str, list[str]]]:
        """Tool -> which of its calls are answered as they always were (always.py); {} in a shared world."""
        return self._finders.always(self._service.steps) if self._resets else {}

    @cached_property
    def precedents(self) -> dict[str, Rule]:
        """Tool -> its `precedent` rule (precedents.py); {} in a shared world."""
        return self._finders.precedents(self._service.steps) if self._resets else {}

    @cached_property
    def pasts(self) -> dict[str, PastCalls]:
        """Event of a call -> the calls of its session before it (carried.py); {} in a shared world."""
        return self._finders.pasts(self._service.steps) if self._resets else {}

    @cached_property
    def chosen(self) -> Kept:
        """Tool -> class -> field -> values of parts that it was seen to choose (chosen.py)."""
        return self._finders.chosen(self._service.steps, self._service.starts_from == "shared")


class EvidenceFinders(NamedTuple):
    """How the parts are found that modules of rules know how to find."""

    always: Callable[[list[LoggedStep]], dict[str, dict[str, list[str]]]]
    precedents: Callable[[list[LoggedStep]], dict[str, Rule]]
    pasts: Callable[[list[LoggedStep]], dict[str, PastCalls]]
    chosen: Callable[[list[LoggedStep], bool], Kept]


@dataclass(slots=True)
class ToolEvidence:
    """The steps of one version of a tool, and the rules that were induced before the next one."""

    service: ServiceWorld
    tool: str
    steps: list[LoggedStep]
    shared: ServiceEvidence
    sources: Sources | None = None
    """The lists known at every call of the service; None for rules that must follow from `steps` alone: of an earlier version,
    and of half of the sessions."""
    rules: list[Rule] = field(default_factory=list)

    @property
    def documented(self) -> dict[str, Any]:
        """Return the tool's program as the world gives it: effect, class, and the rules of what it shows."""
        program: dict[str, Any] = self.service.programs[self.tool]
        return program

    @property
    def effect(self) -> str:
        return presumed_effect(self.documented)

    @property
    def document_tool(self) -> DocumentTool | None:
        """Return which class of records the tool speaks of and by which argument, if it speaks of one."""
        return self.service.documents.tools.get(self.tool)

    def has_only(self, *kinds: str) -> bool:
        """Return whether all rules so far that do more than guard are of these kinds."""
        return all(rule["rule"] in (*kinds, *GUARDING) for rule in self.rules)
