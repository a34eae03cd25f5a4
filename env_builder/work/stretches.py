"""Tasks of a company's work: who was asked what, when, and what that person then did.

In: pieces of work as lists of acts (`extractors.work`), the company's world. Out: a `WorkTask` for each stretch of a piece of
work in which one person, after another one's words, changed something; a reason for each stretch that makes none.
A stretch ends where somebody else changes a record (and does not only say something): what follows was asked anew.
Sees: the request as it stood at that instant. Does not see: requests in words that no app holds; a request whose text was
edited later is unknown, since exports keep the last text alone, and makes no task.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from env_builder.company.calls import AgentPrompt
from env_builder.runtime.company import CompanyWorld
from env_builder.work.requests import WorkRequests
from warehouse.records import CREATED, RecordKind, WorkEvent, WorkItem

BEYOND_TOOLS = frozenset({"commit"})
"""Classes of records that an episode cannot show whole: exports hold a repository's main line alone."""
_SAID_ONCE = 0.95
"""A class whose acts are creations in this share holds messages: nobody works on them afterwards."""
_MOVING = 0.3
"""Records usually move on in a field that this share of them changes after they were made."""
_USUAL = 3
"""A change of one value into another that this many records saw is a step of work, no correction."""


class WorkTask(NamedTuple):
    """A stretch of a piece of work, as a task."""

    task_id: str
    item_id: str
    kind: str
    person: str
    """Address of whom the agent acts for."""
    starts_at: int
    """Microseconds since 1970 UTC: just after the last that the person was told, or told the agent."""
    first_at: int
    """When the person began to act."""
    ends_at: int
    request: WorkEvent
    opening: str
    """What the agent is asked: the request as it stood then, or what the person told an agent of it."""
    earlier_words: tuple[str, ...]
    """What others had said in this piece of work before."""
    own: tuple[WorkEvent, ...]
    """What the person did."""
    replies: tuple[WorkEvent, ...]
    """What others said and did meanwhile in this piece of work."""

    acts: tuple[WorkEvent, ...]
    """Both, in order."""


class WorkHabits:
    """What the acts of a company show of its records: which are messages, which changes are steps of work."""

    def __init__(self, events: Sequence[WorkEvent], apps: Mapping[str, Sequence[RecordKind]],
                 accounts: Mapping[str, Mapping[str, str]]) -> None:
        """`apps`: app -> its kinds of records; `accounts`: address -> class -> id; who has several works in the company."""
        self.kinds: dict[str, RecordKind] = {}
        self._apps: dict[str, str] = {}
        for app, kinds in apps.items():
            self.kinds |= {kind.name: kind for kind in kinds}
            self._apps |= {kind.name: app for kind in kinds}
        self._places = frozenset(event.place.partition(":")[0] for event in events if event.place)
        self._joined = {(event.actor, event.at) for event in events if self._is_membership(event)}
        self.people = frozenset(address for address, owned in accounts.items() if len(owned) > 1)
        acts = Counter(event.record[0] for event in events)
        made = Counter(event.record[0] for event in events if event.verb.endswith(CREATED))
        self.messages = frozenset(kind for kind, count in acts.items() if made[kind] / count >= _SAID_ONCE
                                  and self._has_words(kind))
        self.classes = tuple(sorted(kind for kind in acts if not self.kinds.get(kind, RecordKind(kind)).part_of))
        self._authors = _author_fields(events, accounts)
        steps: dict[tuple[str, str, str, str], set[str]] = defaultdict(set)
        for event in events:
            for change in event.changes:
                steps[event.record[0], change.field, str(change.before), str(change.after)].add(event.record[1])
        self._steps = {step for step, records in steps.items() if len(records) >= _USUAL}
        moved: dict[tuple[str, str], set[str]] = defaultdict(set)
        for event in events:
            for change in event.changes if not event.verb.endswith(CREATED) else ():
                moved[event.record[0], change.field].add(event.record[1])
        self._beginnings: dict[tuple[str, str], Counter[str]] = defaultdict(Counter)
        for event in events:
            for change in event.changes if event.verb.endswith(CREATED) else ():
                self._beginnings[event.record[0], change.field][str(change.after)] += 1
        self._moving = {name for name, records in moved.items() if len(records) >= _MOVING * made[name[0]]}

    def _has_words(self, entity_class: str) -> bool:
        kind = self.kinds.get(entity_class)
        return kind is not None and bool(kind.texts and (kind.place or kind.answers or kind.people))

    def app_of(self, act: WorkEvent) -> str:
        """Return the app that an act was done in."""
        return self.app_of_class(act.record[0])

    def app_of_class(self, entity_class: str) -> str:
        """Return the app that a class of records belongs to."""
        return self._apps.get(entity_class, entity_class)

    def author_field(self, entity_class: str) -> str | None:
        """Return the field that names who made a record; None: there is none."""
        return self._authors.get(entity_class)

    def holds_words(self, entity_class: str) -> bool:
        """Return whether people write to each other in records of a class."""
        return bool(self.kinds.get(entity_class, RecordKind(entity_class)).texts)

    def is_message(self, act: WorkEvent) -> bool:
        """Return whether an act only says something."""
        return act.record[0] in self.messages

    def usual_beginning(self, entity_class: str, field: str) -> str | None:
        """Return the value that most new records of a class have in a field, as text; None: none was made."""
        values = self._beginnings.get((entity_class, field))
        return values.most_common(1)[0][0] if values else None

    def _is_membership(self, act: WorkEvent) -> bool:
        """Return whether an act only changed who belongs to a place, such as a channel."""
        kind = self.kinds.get(act.record[0])
        return (kind is not None and act.record[0] in self._places and not act.verb.endswith(CREATED)
                and all(change.field in kind.people for change in act.changes))

    def is_beside(self, act: WorkEvent) -> bool:
        """Return whether an act is beside the work: who joined a place, the notice of it, an answer to an invitation."""
        answers = len(act.changes) == 1 and bool(act.changes[0].answered_by)
        return answers or self._is_membership(act) or (act.record[0] in self.messages
                                                       and (act.actor, act.at) in self._joined)

    def has_steps(self, entity_class: str, field: str) -> bool:
        """Return whether records usually move on in a field, as through a workflow."""
        return (entity_class, field) in self._moving

    def corrects(self, act: WorkEvent, own: Iterable[WorkEvent]) -> bool:
        """Return whether an act changes a value that one of `own` set, into one that it does not usually become.

        What only goes on (a text that got more words) corrects nothing."""
        fields = {(earlier.record, change.field): change.after for earlier in own for change in earlier.changes}
        return any((act.record, change.field) in fields and fields[act.record, change.field] == change.before
                   and (act.record[0], change.field, str(change.before), str(change.after)) not in self._steps
                   and not (isinstance(change.after, str) and isinstance(change.before, str) and change.before in change.after)
                   for change in act.changes) and not act.verb.endswith(CREATED)


def _author_fields(events: Iterable[WorkEvent], accounts: Mapping[str, Mapping[str, str]]) -> dict[str, str]:
    """Return class -> the field that holds, in nearly all new records, the account of who made it."""
    made: Counter[str] = Counter()
    signed: dict[str, Counter[str]] = defaultdict(Counter)
    for event in events:
        if event.verb.endswith(CREATED) and event.actor in accounts:
            own = {event.actor, *accounts[event.actor].values()}
            made[event.record[0]] += 1
            signed[event.record[0]].update(change.field for change in event.changes
                                           if isinstance(change.after, str) and change.after in own)
    likeliest = {kind: fields.most_common(1)[0] for kind, fields in signed.items() if fields}
    return {kind: field for kind, (field, count) in likeliest.items() if count >= _SAID_ONCE * made[kind]}


class StretchFound(NamedTuple):
    """A stretch, or why it makes no task."""

    task: WorkTask | None
    item_id: str
    reason: str


def find_tasks(items: Iterable[WorkItem], events: Sequence[WorkEvent], world: CompanyWorld, habits: WorkHabits,
               prompts: Iterable[AgentPrompt] = ()) -> Iterator[StretchFound]:
    """Yield the tasks of pieces of work, and the reason of each stretch that makes none."""
    requests = WorkRequests(events, world, habits, prompts)
    places: dict[str, list[int]] = defaultdict(list)
    for place, event in enumerate(events):
        places[event.ref].append(place)
    for item in items:
        if item.reason:
            yield StretchFound(None, item.item_id, item.reason)
            continue
        acts = [event for place in sorted({place for ref in item.refs for place in places[ref]})
                if not habits.is_beside(event := events[place])]
        for person, start, end in stretches(acts, habits):
            yield _task(item, acts, person, start, end, habits, requests)


def stretches(acts: Sequence[WorkEvent], habits: WorkHabits) -> list[tuple[str, int, int]]:
    """Return (person, first, last place) of each stretch in which one person changed something, in the order of their ends."""
    spans: list[tuple[str, int, int]] = []
    open_ones: dict[str, tuple[int, int]] = {}
    for place, act in enumerate(acts):
        if act.actor not in habits.people:
            continue
        before = open_ones.get(act.actor)
        others = [] if before is None else [
            other for other in acts[before[1] + 1:place] if other.actor != act.actor and other.actor in habits.people
            and not habits.is_message(other) and not habits.corrects(other, (each for each in acts[before[0]:before[1] + 1]
                                                                            if each.actor == act.actor))]
        if before is not None and others:
            spans.append((act.actor, *before))
            before = None
        open_ones[act.actor] = (place if before is None else before[0], place)
    spans += [(person, *span) for person, span in open_ones.items()]
    return sorted(spans, key=lambda each: each[1])


def _task(item: WorkItem, acts: Sequence[WorkEvent], person: str, start: int, end: int, habits: WorkHabits,
          requests: WorkRequests) -> StretchFound:
    first, last = acts[start], acts[end]
    own, replies = acts_between(acts, person, first.at, last.at, habits)
    if all(habits.is_message(act) for act in own):
        return StretchFound(None, item.item_id, "only_words")
    if any(act.record[0] in BEYOND_TOOLS for act in own):
        return StretchFound(None, item.item_id, "beyond_tools")
    request = requests.find(acts[:start], own, person)
    if isinstance(request, str):
        return StretchFound(None, item.item_id, request)
    earlier_words = tuple(text for act in acts[:start] if act.actor != person for text in act.texts)
    task = WorkTask(f"{item.item_id}@{first.ref}", item.item_id, item.kind, person, request.starts_at, first.at, last.at,
                    request.act, request.opening, earlier_words, tuple(own), tuple(replies),
                    tuple(act for act in acts if act in own or act in replies))
    return StretchFound(task, item.item_id, "")


def acts_between(acts: Iterable[WorkEvent], person: str, since: int, until: int, habits: WorkHabits
                 ) -> tuple[list[WorkEvent], list[WorkEvent]]:
    """Return what a person did from `since` to `until`, and what others said meanwhile or put right later.

    An act that nobody is named of, such as a row that follows from another, is the person's."""
    acts = [act for act in acts if act.at >= since and not habits.is_beside(act)]
    own = [act for act in acts if act.at <= until and (act.actor == person or not act.actor)]
    replies = [act for act in acts if act.actor and act.actor != person
               and ((act.at <= until and habits.is_message(act)) or habits.corrects(act, own))]
    return own, replies
