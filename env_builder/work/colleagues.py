"""Colleagues of a task, as they answered: what each wrote in that piece of work after the acting person had turned to them.

In: a task with its replies, the conditions of its values, the acts with their versions. Out: the rows of
`env_builder.runtime.office.colleagues`, and when the acting person has to wait.
A reply is scripted if it only says something, answers an act of the person (in a thread with it, or by somebody whom it was
for), could be seen by the person, and its words are known as they were then. It answers the last such act in its thread, else
the last one that was for its author. Where an act begins a thread it must tell what the recorded one told of the opening.
Does not see: replies that nobody had asked for (they never come); words that an export has only as they were edited later;
what a colleague changed besides, since a stretch of work ends there.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from math import ceil
from typing import Any, NamedTuple

from env_builder.runtime.company import PRESENT, CompanyDesk, DeskStart, PersonSight, Undecided
from env_builder.runtime.company.parts import is_long, is_table, words_of
from env_builder.runtime.office.colleagues import LONGEST_WAIT, SELF, WAIT, is_among, renamed
from env_builder.runtime.office.company import CompanyEpisode
from env_builder.work.acts import RecordAct
from env_builder.work.demonstrations import DemonstrationFinder, DemonstrationStep
from env_builder.work.intended import IntendedValues, placing_fields
from env_builder.work.replaying import RecordName, ReplayedActs
from env_builder.work.stretches import WorkHabits, WorkTask
from warehouse.records import CREATED, RecordKind, WorkEvent

_MINUTE = 60_000_000
_ID = re.compile(r"(?=\S*\d)\S{6,}")
_TOKEN = re.compile(r"[\w.@-]+")
_NAMED = re.compile(r"\{(\w+)\}")
Row = dict[str, Any]


class NeededWait(NamedTuple):
    """A wait for an answer."""

    until: int
    """When the answer came on record (microseconds)."""
    minutes: int


class ScriptedColleagues(NamedTuple):
    """Who answers in a task."""

    row: Row | None
    """Without the task's id; None: nobody answers."""
    waits: tuple[NeededWait, ...]
    """In the order of the answers."""


class _AnsweringAct(NamedTuple):
    event: WorkEvent
    act: RecordAct
    ask: WorkEvent


def scripted(task: WorkTask, replayed: ReplayedActs, intended: IntendedValues, habits: WorkHabits, finder: DemonstrationFinder
             ) -> ScriptedColleagues:
    """Return the colleagues of a task. `replayed`, `intended`: of the task as it is asked."""
    return _Scripting(task, replayed, intended, habits, finder).run()


class _Scripting:
    def __init__(self, task: WorkTask, replayed: ReplayedActs, intended: IntendedValues, habits: WorkHabits,
                 finder: DemonstrationFinder) -> None:
        self._task, self._replayed, self._intended, self._habits, self._finder = task, replayed, intended, habits, finder
        own = {act.ref for act in task.own}
        self._made_by = {act.record: act.ref in own for act in reversed(task.acts)
                         if replayed.before.get(act.record, {}) is None}
        """Record that came to be in the task -> whether the acting person made it."""
        self._names = {name: self._names_of(name) for name, is_own in self._made_by.items() if is_own}

    def run(self) -> ScriptedColleagues:
        answering: list[_AnsweringAct] = []
        rows: list[Row] = []
        for event in sorted(self._task.replies, key=lambda reply: reply.at):
            answer = self._answering(event)
            row = None if answer is None else self._answer_row(answer, answering)
            if answer is not None and row is not None:
                answering.append(answer)
                rows.append(row)
        if not rows:
            return ScriptedColleagues(None, ())
        refs = list(dict.fromkeys(answer.ask.ref for answer in answering))
        for row, answer in zip(rows, answering, strict=True):
            row["ask"] = refs.index(answer.ask.ref)
        asks = [self._ask_row(ref, answering) for ref in refs]
        waits = tuple(NeededWait(answer.event.at, ceil((answer.event.at - answer.ask.at) / _MINUTE) + 1)
                      for answer in answering)
        return ScriptedColleagues({"asks": asks, "answers": rows}, waits)

    # Replies

    def _answering(self, event: WorkEvent) -> _AnsweringAct | None:
        """Return a reply with the act that it answers; None if it cannot be scripted."""
        if not self._habits.is_message(event) or event.at > self._task.ends_at:
            return None
        ask = self._ask_of(event)
        acts = self._finder.acts([event.ref])
        if ask is None or len(acts) != 1 or acts[0].guessed & set(self._texts(event.record[0])) or not self._may_see(acts[0]):
            return None
        return _AnsweringAct(event, acts[0], ask)

    def _ask_of(self, event: WorkEvent) -> WorkEvent | None:
        earlier = [act for act in reversed(self._task.own) if act.at < event.at and act.actor == self._task.person]
        in_thread = (act for act in earlier if act.thread == event.thread)
        return next(in_thread, None) or next((act for act in earlier if event.actor in act.addressees), None)

    def _texts(self, entity_class: str) -> tuple[str, ...]:
        return self._habits.kinds.get(entity_class, RecordKind(entity_class)).texts

    def _may_see(self, act: RecordAct) -> bool:
        """Return whether the acting person could see a record as it was then; False where nobody can tell."""
        content = self._finder.content
        try:
            state = self._finder.suite.world.at(act.at)
            desk = CompanyDesk(DeskStart(state, self._task.person, content.accounts, PersonSight(state, self._task.person)))
            return desk.exists(*act.record) and desk.sees(*act.record)
        except (Undecided, LookupError):
            return False

    def _answer_row(self, answer: _AnsweringAct, earlier: Sequence[_AnsweringAct]) -> Row | None:
        """Return the row of an answer, but for the number of its ask; None if it speaks of what nobody answers."""
        changes = [self._change(place, answer.act) for place in answer.act.hidden]
        text = json.dumps(changes, ensure_ascii=False)
        words = set(words_of([change[name] for change in changes for name in ("id", "before", "after")]))
        mentions = [name for name in self._made_by if name not in (answer.ask.record, answer.event.record)
                    and _is_named(name[1], text, words)]
        numbers = {each.event.record: number for number, each in enumerate(earlier)}
        if any(not self._made_by[name] and name not in numbers for name in mentions):
            return None
        return {"person": answer.event.actor, "at": answer.event.at, "delay_s": (answer.event.at - answer.ask.at) / 1e6,
                "mentions": [{"record": self._intended.selector(name, is_short=True), "names": self._names[name]}
                             for name in mentions if self._made_by[name]],
                "follows": sorted(numbers[name] for name in mentions if not self._made_by[name]), "changes": changes}

    def _change(self, place: int, act: RecordAct) -> Row:
        versions = self._finder.places.world.versions
        version = versions[place]
        record = (version.entity_class, version.entity_id)
        is_new = self._finder.places.of_record[record][0] in act.hidden
        is_open = version.guessed_until > version.at
        before = act.before.get(version.field) if record == act.record and not is_new else None
        return {"class": record[0], "id": record[1], "field": version.field, "is_new": is_new, "before": before,
                "after": None if is_open and version.field != PRESENT else version.value,
                **({"is_open": True} if is_open and version.field != PRESENT else {})}

    # Asks

    def _ask_row(self, ref: str, answering: Sequence[_AnsweringAct]) -> Row:
        own = [answer for answer in answering if answer.ask.ref == ref]
        ask = own[0].ask
        people = {answer.event.actor for answer in own}
        after = [number for number, answer in enumerate(answering)
                 if answer.event.actor in people and answer.event.at < ask.at and answer.ask.ref != ref]
        return {"record": self._selector(ask), "has": self._has(ask), "reaches": self._reaches(ask, own),
                "about": self._about(ask), "names": self._names.get(ask.record, []), "after": after}

    def _selector(self, ask: WorkEvent) -> Row:
        if self._replayed.before.get(ask.record, {}) is not None:
            return {"class": ask.record[0], "id": ask.record[1]}
        kind = self._habits.kinds.get(ask.record[0], RecordKind(ask.record[0]))
        where = {**self._intended.thread_at_start(ask.record), **self._intended.where(ask.record)}
        placing = set(placing_fields(kind))
        return {"class": ask.record[0], "where": {field: condition for field, condition in where.items()
                                                  if field in placing or field not in kind.people}}

    def _has(self, ask: WorkEvent) -> Row:
        """Return the values that an act gave a record that was there; of tables, texts and lists none."""
        if ask.verb.endswith(CREATED):
            return {}
        conditions = {change.field: self._intended.condition(ask.record, change.field, change.after) for change in ask.changes
                      if not (is_table(change.after) or is_long(change.after) or isinstance(change.after, (list, dict)))}
        return {field: condition for field, condition in conditions.items() if condition is not None}

    def _reaches(self, ask: WorkEvent, own: Sequence[_AnsweringAct]) -> dict[str, str]:
        """Return field -> account of whom an act was for, unless they had written in its thread before; of all who answer it,
        the first one for whom it was."""
        for person in dict.fromkeys(answer.event.actor for answer in own):
            if self._is_in_thread(ask) and any(act.thread == ask.thread and act.actor == person and act.at < ask.at
                                               for act in (self._task.request, *self._task.replies)):
                continue
            accounts = {person, *self._finder.content.accounts.get(person, {}).values()}
            values = self._replayed.after.get(ask.record) or {}
            fields = {field: account for field, value in sorted(values.items()) for account in sorted(accounts)
                      if is_among(account, value)}
            if fields:
                return fields
        return {}

    def _about(self, ask: WorkEvent) -> Row:
        """Return what an act that begins a thread told of the opening, and of what the work made."""
        fields = [field for field in self._texts(ask.record[0]) if not field.endswith("*")]
        if self._is_in_thread(ask):
            return {"fields": fields, "words": [], "made": []}
        values = self._replayed.after.get(ask.record) or {}
        text = " ".join(value for field in fields if isinstance(value := values.get(field), str))
        opening = set(words_of(self._task.opening))
        return {"fields": fields, "words": [word for word in self._intended.facts(text) if word in opening],
                "made": [self._intended.selector(name, is_short=True) for name in self._intended.made_in(text)
                         if name != ask.record and self._made_by.get(name)]}

    def _is_in_thread(self, ask: WorkEvent) -> bool:
        """Return whether the conditions of an act tell its thread: it changed a record that was there, or answers one."""
        selector = self._selector(ask)
        kind = self._habits.kinds.get(ask.record[0], RecordKind(ask.record[0]))
        answered = _NAMED.findall(kind.answers)
        return "id" in selector or bool(answered and all(field in selector["where"] for field in answered))

    def _names_of(self, name: RecordName) -> list[list[str]]:
        """Return (name on record, field) of the ids that a product gave a record."""
        fields = self._replayed.after[name] or {}
        given = [[value, field] for field, value in sorted(fields.items()) if isinstance(value, str) and _ID.fullmatch(value)
                 and self._intended.condition(name, field, value) is None]
        return [[name[1], SELF], *given]


def _is_named(key: str, text: str, words: set[str]) -> bool:
    return key in text if _ID.fullmatch(key) else key.casefold() in words


def with_waits(steps: Iterable[DemonstrationStep], colleagues: ScriptedColleagues, episode: CompanyEpisode) -> list[Row]:
    """Return steps with the waits that lie between them, played in an episode: later steps name what it gave earlier ones."""
    pending, out, names = list(colleagues.waits), list[Row](), dict[str, str]()
    for step in steps:
        while pending and pending[0].until <= step.at:
            minutes = pending.pop(0).minutes
            for begun in range(0, minutes, LONGEST_WAIT):
                own = min(minutes - begun, LONGEST_WAIT)
                out.append({"tool": WAIT, "arguments": {"minutes": own}})
                episode.wait(own)
        arguments = renamed(step.arguments, names)
        out.append({"tool": step.tool, "arguments": arguments})
        names |= _renamings(step.content, episode.call(step.tool, arguments).content)
    return out


def _renamings(before: str, after: str) -> dict[str, str]:
    """Return the ids of one answer -> those in their places in another one like it."""
    old, new = _TOKEN.findall(before), _TOKEN.findall(after)
    return {} if len(old) != len(new) else {
        each: other for each, other in zip(old, new, strict=True) if each != other and _ID.fullmatch(each)
        and _ID.fullmatch(other)}
