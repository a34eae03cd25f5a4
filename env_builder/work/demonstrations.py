"""What people did, as trajectories in tool calls: found by trial, played again, and compared with what is on record.

In: the company's content and suite, its events, pieces of work. Out: `Demonstration`s.
Found: each act of a listed person is tried in a fork of the episode of that instant, as that person, with the calls that
`inverses` and `row_inverses` propose; calls are taken if they change what the act changed (`sameness`) and nothing that is not
on record. What follows from another act gets no calls. Acts of nobody listed happen as recorded,
and so does what no tool offers within half a second of an act that has calls: the product did it (a post joins its channel).
A row's change that names nobody is its neighbours' doer's, if the same listed person acted before and after within an hour.
Played again: all calls in a fresh episode from the beginning of the work; its end is compared with the end on record.
Does not see: acts that no tool offers (they are in `missed`, and happen as recorded while the others are found), thoughts.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any, NamedTuple

from env_builder.company.content import CompanyContent, company_app
from env_builder.company.inverses import proposals
from env_builder.company.lookups import LookupMemory, looks_before
from env_builder.runtime.company import CompanyDesk, Undecided
from env_builder.runtime.office.company import CompanyEpisode
from env_builder.runtime.office.row_tables import ROW
from env_builder.work.acts import ActCall, EventLike, ItemLike, KindLike, RecordAct, acts_of
from env_builder.work.going_on import GoingOn, VersionPlaces
from env_builder.work.replaying import in_place
from env_builder.work.row_inverses import row_proposals
from env_builder.work.sameness import (
    ActIndex,
    CallOutcomes,
    Different,
    agrees,
    field_renamed,
    outcomes,
    shown_value,
    with_names,
)
from warehouse.records import ActChange

TOGETHER = 2_000_000
"""Microseconds within which acts may follow from one another whatever their order on record."""
AT_ONCE = 500_000
"""Microseconds within which the acts of a person are one act and what the product does with it."""
NEIGHBOURS_WITHIN = 3_600_000_000
"""Microseconds within which neighbours tell who did what names nobody."""
_STEM = 8
_PIECES = re.compile(r'[\n"\\]')
"""What answers may write in another way."""
_REASONS = (Undecided, LookupError, ValueError, TypeError)
"""What a proposal may meet: what the exports do not tell, or values of another shape than the product's."""


class DemonstrationStep(NamedTuple):
    """A call with its answer."""

    at: int
    """Microseconds since 1970 UTC: of the desk."""
    person: str
    """Address."""
    tool: str
    arguments: dict[str, Any]
    content: str
    is_error: bool
    tier: str
    refs: tuple[str, ...]
    """Events that it brings about; empty: it only looks."""
    lossy: tuple[str, ...] = ()
    """What is not as it was: `edited_later` (a text that an export has only as it was later), `doer_inferred`,
    `more_as_recorded` (what no tool offers came with it)."""


class MissedAct(NamedTuple):
    """An act that no calls were found for."""

    refs: tuple[str, ...]
    entity_class: str
    person: str
    reason: str


class Demonstration(NamedTuple):
    """A piece of work in tool calls."""

    item_id: str
    refs: tuple[str, ...]
    steps: tuple[DemonstrationStep, ...]
    missed: tuple[MissedAct, ...]
    followed: tuple[str, ...]
    """Refs of events that followed from calls."""
    recorded: tuple[str, ...]
    """Refs of events that happened as recorded: of nobody listed."""
    names: Mapping[str, str]
    """Id on record -> id in the episode."""
    openings: Mapping[str, str]
    """Person -> what others had last written to the person, in the work, before the first call; empty: nothing on record."""
    grounded: tuple[int, int]
    """Ids in arguments that an observation or the opening showed before, and all ids in arguments."""

    @property
    def people(self) -> list[str]:
        """Who acts, in the order of first writes."""
        return list(dict.fromkeys(step.person for step in self.steps if step.refs))


class _Trial(NamedTuple):
    uses: list[ActCall]
    episode: CompanyEpisode
    answers: list[Any]
    outcomes: CallOutcomes


class DemonstrationFinder:
    """Finds and plays the demonstrations of one company."""

    def __init__(self, content: CompanyContent, events: Sequence[EventLike], kinds: Sequence[KindLike]) -> None:
        """`kinds`: of all installed apps (`extractors.apps`)."""
        self.content, self.suite = content, company_app(content)
        self.places = VersionPlaces(self.suite.world)
        self.events = {event.ref: event for event in events}
        self._acts = acts_of(events, self.places, kinds)
        self._act_of = {ref: place for place, act in enumerate(self._acts) for ref in act.refs}
        self.index = ActIndex(self._acts, kinds)

    def acts(self, refs: Iterable[str]) -> list[RecordAct]:
        """Return the acts of events by time, each with its doer where that is known or follows."""
        own = self._of(refs)
        return [_with_doer(own, place, self.content.accounts) for place in range(len(own))]

    def going_on(self, acts: Sequence[RecordAct], stands_at: int | None = None) -> GoingOn:
        """Return the company without some acts; `stands_at`: as it stands at an instant (microseconds), and still."""
        world = GoingOn(self.suite, self.places, self.content.accounts, self.content.conventions, acts[0].at - 1, stands_at)
        world.hide([place for act in acts for place in act.hidden])
        return world

    def find(self, item: ItemLike, stands_at: int | None = None) -> Demonstration | None:
        """Return the demonstration of a piece of work; None if no listed person did anything in it.

        `stands_at`: all is done at this instant (microseconds), in an episode in which nobody else does anything."""
        acts = self.acts(item.refs)
        if not any(act.actor in self.content.accounts for act in acts):
            return None
        return _Finding(self, item, acts, stands_at).run()

    def end_of(self, demonstration: Demonstration) -> list[str]:
        """Play all calls in a fresh episode; return where its end differs from the end on record, as `class field`."""
        acts = self.acts(demonstration.refs)
        world = self.going_on(acts)
        world.hide([place for act in self._of(demonstration.followed) for place in act.hidden])
        world.names = dict(demonstration.names)
        recorded = [act for act in acts if act.refs[0] in demonstration.recorded]
        # An act on record and a call of one instant: the call's desk stands just before it.
        moves: list[tuple[int, RecordAct | DemonstrationStep]] = sorted(
            [*((act.at, act) for act in recorded), *((step.at, step) for step in demonstration.steps)],
            key=lambda each: each[0])
        for at, move in moves:
            world.go_on(at)
            if isinstance(move, RecordAct):
                world.apply(move.hidden)
                continue
            episode = world.episode(at, move.person)
            episode.call(move.tool, move.arguments)
            world.keep(at, episode)
        return self._differences(world, acts, demonstration)

    def _of(self, refs: Iterable[str]) -> list[RecordAct]:
        """Return the acts that events belong to: what else changed in a record at that instant is part of them."""
        return [self._acts[place] for place in sorted({self._act_of[ref] for ref in refs if ref in self._act_of})]

    def _differences(self, world: GoingOn, acts: Sequence[RecordAct], demonstration: Demonstration) -> list[str]:
        end = max(act.at for act in acts)
        world.go_on(end)
        listed = next(iter(demonstration.people), None) or next(iter(self.content.accounts))
        desk, final = world.desk(end, listed), self.suite.world.at(end)
        last: dict[tuple[str, str, str], RecordAct] = {
            (*act.record, field): act for act in acts for field in act.after if not field.startswith("$")}
        differences = []
        for (kind, key, field), act in last.items():
            version = final.version(kind, key, field)
            wanted = act.after[field] if version is None else version.value
            own = world.renamed(key)
            is_there = desk.exists(kind, own)
            got = shown_value(desk, kind, own, field) if is_there else None
            if final.exists(kind, key) != is_there or (is_there and not agrees(
                    field_renamed(act, field, wanted, world.names), got, field in act.guessed)):
                differences.append(f"{kind} {field}")
        return sorted(set(differences))


def _with_doer(acts: Sequence[RecordAct], place: int, accounts: Mapping[str, Any]) -> RecordAct:
    """Return an act; one that names nobody with the listed person who acted before and after it, if it is the same."""
    act = acts[place]
    values = [ActChange(field, act.before.get(field), after) for field, after in act.after.items()]
    answering = values[0].answered_by if len(values) == 1 else []
    if answering:
        return act._replace(actor=answering[0] if len(answering) == 1 else act.actor if act.actor in answering else "")
    if act.actor or act.entity_class != ROW:
        return act
    before = next((other for other in reversed(acts[:place]) if other.actor in accounts), None)
    after = next((other for other in acts[place + 1:] if other.actor in accounts), None)
    near = {other.actor for other in (before, after) if other is not None and abs(other.at - act.at) <= NEIGHBOURS_WITHIN}
    return act._replace(actor=near.pop()) if len(near) == 1 else act


class _Finding:
    """Finds the calls of one piece of work."""

    def __init__(self, finder: DemonstrationFinder, item: ItemLike, acts: list[RecordAct], stands_at: int | None) -> None:
        self.finder, self.item, self.acts = finder, item, acts
        self.world, self.stands_still = finder.going_on(acts, stands_at), stands_at is not None
        self.steps: list[DemonstrationStep] = []
        self.missed: list[MissedAct] = []
        self.recorded: list[str] = []
        self.followed: list[str] = []
        self.done: set[str] = set()
        self.called: set[str] = set()
        self.attached: list[RecordAct] = []
        self.openings: dict[str, str] = {}
        self.memories: dict[str, LookupMemory] = defaultdict(LookupMemory)

    def run(self) -> Demonstration:
        pending = list(self.acts)
        while pending:
            group = [act for act in pending if act.at - pending[0].at <= TOGETHER]
            self._do(group)
            pending = [act for act in pending if act.refs[0] not in self.done]
        return Demonstration(
            self.item.item_id, tuple(self.item.refs), tuple(self.steps), tuple(self.missed), tuple(self.followed),
            tuple(self.recorded), dict(self.world.names), dict(self.openings),
            (sum(memory.n_grounded for memory in self.memories.values()),
             sum(memory.n_ids for memory in self.memories.values())))

    def _do(self, group: list[RecordAct]) -> None:
        """Do one act of a group: the one from which most others follow, or else the first."""
        first = group[0]
        if len(group) > 1:
            trials = [(act, trial) for act in group if isinstance(trial := self._try(act), _Trial)]
            best = max(trials, key=lambda each: len(each[1].outcomes.followed), default=None)
            if best is not None and best[1].outcomes.followed:
                self._take(best[0])
                return
        if first.actor in self.finder.content.accounts:
            self._take(first)
            return
        self._apply(first)
        self.recorded += first.refs

    def _apply(self, act: RecordAct) -> None:
        self.world.go_on(act.at)
        self.world.apply(act.hidden)
        self.done.update(act.refs)

    def _take(self, act: RecordAct) -> None:
        """Make the calls of an act, looks before; or let it happen as recorded."""
        trial = self._try(act)
        if not isinstance(trial, _Trial):
            if any(other.refs[0] in self.called or isinstance(self._try(other), _Trial) for other in self._at_once(act)):
                self.recorded += act.refs
                self.attached.append(act)
                self._apply(act)
                return
            self.missed.append(MissedAct(act.refs, act.entity_class, act.actor, trial))
            self._apply(act)
            return
        at = act.at - 1
        memory = self.memories[act.actor]
        own = with_names(act, self.world.names)
        episode = self.world.episode(at, act.actor)
        if act.actor not in self.openings:
            self.openings[act.actor] = self._opening(act, episode)
            memory.note(self.openings[act.actor])
        for use, answer in looks_before(episode, own, trial.uses, memory, self._seen_acts(act),
                                        self.finder.content.induced, self._later(at)):
            self.steps.append(DemonstrationStep(at, act.actor, use.tool, use.arguments, answer.content, answer.is_error,
                                                answer.tier, ()))
        lossy = (*(["edited_later"] if act.guessed & set(act.after) and _holds_text(act) else []),
                 *(["more_as_recorded"] if any(other in self.attached for other in self._at_once(act)) else []),
                 *(["doer_inferred"] if self.finder.events[act.refs[0]].actor != act.actor else []))
        for use, answer in zip(trial.uses, trial.answers, strict=True):
            self.steps.append(DemonstrationStep(at, act.actor, use.tool, use.arguments, answer.content, answer.is_error,
                                                answer.tier, act.refs, lossy))
            memory.note(answer.content)
        self.world.keep(at, trial.episode)
        self.world.hide([place for other in trial.outcomes.followed for place in other.hidden])
        for old, new in trial.outcomes.names.items():
            self._rename(old, new)
        self.called.add(act.refs[0])
        followed = [ref for other in trial.outcomes.followed for ref in other.refs]
        self.followed += followed
        self.done.update(act.refs, followed)

    def _rename(self, old: str, new: str) -> None:
        if old == new:
            return
        self.world.names[old] = new
        tail = 0
        while tail < min(len(old), len(new)) and old[-1 - tail] == new[-1 - tail]:
            tail += 1
        if tail and min(len(old), len(new)) - tail >= _STEM and not old[-tail].isalnum():
            self.world.names[old[:-tail]] = new[:-tail]

    def _at_once(self, act: RecordAct) -> list[RecordAct]:
        """Return the person's other acts of that moment: one act, and what the product did with it."""
        return [other for other in self.acts if other.actor == act.actor and other.refs != act.refs
                and abs(other.at - act.at) <= AT_ONCE]

    def _later(self, at: int) -> list[str]:
        """Return the longest words of texts of the work that the exports have only as they were edited after an instant."""
        versions = self.finder.places.world.versions
        edited = [versions[place] for act in self.acts for place in act.hidden if versions[place].field in act.guessed]
        parts = [_PIECES.split(self.world.renamed(version.value)) for version in edited
                 if isinstance(version.value, str) and version.value.strip() and version.at <= at < version.guessed_until]
        return [max(pieces, key=len) for pieces in parts]

    def _opening(self, act: RecordAct, episode: CompanyEpisode) -> str:
        """Return what others had written so that the person saw it: last what was for the person, else what was last."""
        texts: list[tuple[bool, str]] = []
        later = self._later(act.at - 1)
        for other in self._seen_acts(act):
            written = [text for ref in other.refs if (event := self.finder.events.get(ref)) for text in event.texts
                       if not any(words in text for words in later)]
            if other.actor != act.actor and written and _may_see(episode, other):
                is_for = any(act.actor in self.finder.events[ref].addressees for ref in other.refs)
                texts.append((is_for, self.world.renamed("\n".join(written))))
        return next((text for is_for, text in reversed(texts) if is_for), texts[-1][1] if texts else "")

    def _seen_acts(self, act: RecordAct) -> list[RecordAct]:
        """Return the acts of the work by others since the person's last, the latest last."""
        own = [other for other in self.acts if other.at < act.at]
        last = max((place for place, other in enumerate(own) if other.actor == act.actor), default=-1)
        return [with_names(other, self.world.names) for other in own[last + 1:]]

    def _try(self, act: RecordAct) -> _Trial | str:
        """Return the first proposal whose calls do an act, or why none does."""
        at = act.at - 1
        self.world.go_on(at)
        own = with_names(act, self.world.names)
        if act.actor not in self.finder.content.accounts:
            return "nobody listed did it"
        reason = ""
        try:
            begin = self.world.episode(at, act.actor)
            if self.stands_still:
                own = _on_top(own, begin.desk)
            for uses in chain(proposals(begin.desk, own), row_proposals(self.finder.content.induced, own)):
                outcome = self._trial(begin, own, uses)
                if isinstance(outcome, _Trial):
                    return outcome
                reason = reason or outcome
        except _REASONS as error:
            reason = reason or f"not on record: {_general(error)}"
        return reason or f"no tool offers it: {self.finder.events[act.refs[0]].verb}"

    def _trial(self, begin: CompanyEpisode, act: RecordAct, uses: list[ActCall]) -> _Trial | str:
        episode, answers = begin.fork(), []
        for use in uses:
            if use.tool not in self.finder.suite.tools:
                return f"no tool offers it: {use.tool}"
            answer = episode.call(use.tool, use.arguments)
            if answer.is_error or answer.tier == "unknown":
                return f"{use.tool}: {answer.tier if answer.tier == 'unknown' else 'refused'}: {answer.content[:80]}"
            answers.append(answer)
        if not uses:
            return "nothing to change"
        try:
            result = outcomes(self.finder.index, act, begin.desk, episode.desk, self.world.names, self.done)
        except Different as error:
            return f"{uses[-1].tool}: {error}"
        except Undecided as gap:
            return f"{uses[-1].tool}: not on record: {_general(gap)}"
        return _Trial(uses, episode, answers, result)


def _on_top(act: RecordAct, desk: CompanyDesk) -> RecordAct:
    """Return an act as what it did to the values of its time does to those of a desk."""
    if act.is_new or not desk.exists(*act.record):
        return act
    now = {field: desk.value(*act.record, field) for field in act.after if not field.startswith("$")}
    return act._replace(before={**act.before, **now}, after={
        field: in_place(now[field], act.before.get(field), value) if field in now else value
        for field, value in act.after.items()})


def _may_see(episode: CompanyEpisode, act: RecordAct) -> bool:
    """Return whether a person could see a record; False where nobody can tell."""
    try:
        return episode.desk.exists(*act.record) and episode.desk.sees(*act.record)
    except Undecided:
        return False


def _general(error: Exception) -> str:
    return " ".join(word for word in str(error).split() if not any(map(str.isdigit, word)))[:80]


def _holds_text(act: RecordAct) -> bool:
    return any(isinstance(act.after.get(field), str) and act.after[field] for field in act.guessed)


def find_demonstrations(content: CompanyContent, events: Sequence[EventLike], items: Iterable[ItemLike],
                        kinds: Sequence[KindLike]) -> Iterator[tuple[Demonstration, list[str]]]:
    """Yield the demonstration of each piece of work that listed people took part in, with where its replay ends differently."""
    finder = DemonstrationFinder(content, events, kinds)
    for item in items:
        demonstration = finder.find(item)
        if demonstration is not None:
            yield demonstration, finder.end_of(demonstration)
