"""Success of pieces of work: the probability that each ended well, from what the apps show.

In: items with their kinds, and their acts. Out: for each item a probability, or none, and what speaks for and against it.
No labels are used. What is usual is learnt for each kind from its own items: which values are copied from what was written
before, which states are followed by others, which steps an item has, whether the one who asked gets an answer. What each signal
is worth is estimated from the others (`extractors.outcomes.combining`).

| signal | speaks against | speaks for |
|---|---|---|
| `copied` | the last value at a position was not written before, though the kind copies it | all such values were |
| `state` | the last state is one that other items of the kind leave | it is one that they end in |
| `steps` | half of what the kind's items usually have is missing | it is there |
| `listed` | of the records that it treats alike its texts leave one out, or name another | they agree, as the kind's do |
| `answer` | nobody answered the one who asked, though others get an answer | – |
| `declined` | – | usual steps are missing, and somebody said no at the end |
| `complaint` | the last words of the one who asked complain, and nobody did anything after them | – |
| `thanks` | – | the last words of the one who asked give thanks |

An item must have come to its end (`state`, `steps`, `answer`, `declined`), and what was done must be right (`copied`,
`listed`, `complaint`, `thanks`): the probability is the product of both. A value that was set wrong and corrected counts as
what it became; it is a `WorkCorrection`.
Abstains (None) where an item lacks its end and the exports end before other items of its kind would have moved.
Does not see: errors that no value, word or state shows; a wrong value that was asked for.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import polars as pl

from extractors.outcomes.combining import combine
from extractors.outcomes.endings import COMPLAINT, THANKS
from extractors.work.listed import ListedRecords, ids_by_class, listed_records
from extractors.work.shapes import ActShapes, EarlierTexts, Position
from warehouse.records import CREATED, WorkEvent, WorkItem

_LEAST = 5
"""Items of a kind that teach what is usual."""
_COPIED = 0.75
"""Share of a kind's items that copy a value, from which on the others are deviations."""
_COMMON = 0.25
"""Share of a kind's items that have a position whose value counts."""
_OWN_THREAD = 0.5
"""Share of a thread's acts that an item has, from which on the thread is its own."""
_DIFFERENT = 3
"""Values that a position takes at least, if it is no constant of the kind."""
_USUAL, _MISSING, _ENOUGH = 0.6, 0.6, 0.8
"""Share of a kind's items that have a usual step; shares of them below which an item lacks them, and that suffice."""
_LEAVES, _STAYS = 0.6, 0.3
"""Share of items that leave a state from which on it is none to end in; below which it is one."""
_FEW_STATES = 6
_AGAIN = re.compile(
    r"(?i)\b(?:still|again|is back|not yet|instead of|should (?:be|have been)|not right|too (?:late|much|little|many))\b")
_NO = re.compile(
    r"(?i)\b(?:declin\w+|reject\w+|den(?:y|ied)|refus\w+|cannot|can'?t|can not|won'?t|unable|unfortunately|"
    r"not (?:allowed|possible|covered|needed|approved|necessary|eligible|in (?:this|the))|no, |no\.)")
_LAST = 3
"""Acts at the end of an item in which somebody may say no."""
_WAITS = 0.9
"""Quantile of the longest pauses in a kind's items, after which an item without its end counts as abandoned."""


class _WorkSignal(NamedTuple):
    """What a signal's votes are taken for before anything is estimated (`extractors.outcomes.combining.VoteMeaning`)."""

    group: str
    weight: float
    graded: bool = False
    settled: bool = False
    of_faultless: bool = False


_ENDED = {"state": _WorkSignal("state", 2.0, settled=True), "steps": _WorkSignal("steps", 2.0, settled=True),
          "answer": _WorkSignal("answer", 1.0), "declined": _WorkSignal("declined", 3.0, settled=True)}
_RIGHT = {"copied": _WorkSignal("copied", 3.0, settled=True), "listed": _WorkSignal("copied", 3.0, settled=True),
          "complaint": _WorkSignal("complaint", 2.5, settled=True),
          "thanks": _WorkSignal("thanks", 0.5)}


class WorkVote(NamedTuple):
    """What one signal says of an item."""

    signal: str
    vote: float
    """Below 0: it ended badly."""
    detail: str


class WorkCorrection(NamedTuple):
    """A value that nobody had written before, and that was set to one that somebody had."""

    position: Position
    wrong: str
    right: str


class WorkOutcome(NamedTuple):
    """How an item ended, as far as the apps show it."""

    probability: float | None
    """Of success; None: nothing tells, or it was still open."""
    votes: tuple[WorkVote, ...] = ()
    corrections: tuple[WorkCorrection, ...] = ()


def judge_items(items: Sequence[WorkItem], events: Sequence[WorkEvent]) -> dict[str, WorkOutcome]:
    """Return the outcome of each item, by id. Items of no kind have none."""
    acts = {event.ref: event for event in events}
    shapes = ActShapes(events)
    threads = _ThreadActs(events, shapes)
    ids = ids_by_class(events)
    until = max((event.at for event in events), default=0)
    kinds: dict[str, list[_ItemCourse]] = defaultdict(list)
    for item in items:
        if item.kind:
            course = [acts[ref] for ref in item.refs]
            kinds[item.kind].append(_ItemCourse(item, course, threads.around(course), shapes, listed_records(course, ids)))
    outcomes: dict[str, WorkOutcome] = {}
    still_open: set[str] = set()
    for courses in kinds.values():
        if len(courses) >= _LEAST:
            of_kind = _votes_of_kind(courses, shapes)
            outcomes |= of_kind
            still_open |= _still_open(courses, of_kind, until)
    ended, right = (_chances(outcomes, signals) for signals in (_ENDED, _RIGHT))
    return {item.item_id: outcomes.get(item.item_id, WorkOutcome(None))._replace(
        probability=round(ended[item.item_id] * right[item.item_id], 6)
        if item.item_id in ended and item.item_id not in still_open and outcomes[item.item_id].votes else None)
        for item in items}


def _chances(outcomes: Mapping[str, WorkOutcome], signals: Mapping[str, _WorkSignal]) -> dict[str, float]:
    """Return the probability of each item by some of the signals alone."""
    rows = [(item, vote.signal, vote.vote) for item, outcome in outcomes.items() for vote in outcome.votes
            if vote.signal in signals]
    frame = pl.DataFrame(rows, schema={"session_id": pl.String, "name": pl.String, "vote": pl.Float64}, orient="row")
    combined = combine(frame, dict.fromkeys(outcomes, "work"), signals).probabilities
    return dict(combined.select("session_id", "probability").iter_rows())


class _ThreadActs:
    """The acts of each thread, to see what was written around an item though the item may lack it."""

    def __init__(self, events: Sequence[WorkEvent], shapes: ActShapes) -> None:
        self._order = {event.ref: number for number, event in enumerate(events)}
        self._shapes = shapes
        self._of_thread: dict[str, list[WorkEvent]] = defaultdict(list)
        for event in events:
            if not shapes.is_shared(event.record):
                self._of_thread[event.thread].append(event)

    def around(self, acts: Sequence[WorkEvent]) -> list[WorkEvent]:
        """Return an item's acts, and the others of threads that are mostly the item's, by time."""
        whole = {act.ref: act for act in acts}
        for thread, n in Counter(act.thread for act in acts).items():
            if n >= _OWN_THREAD * len(self._of_thread[thread]):
                whole |= {act.ref: act for act in self._of_thread[thread]}
        return sorted(whole.values(), key=lambda act: self._order[act.ref])


class _ItemCourse:
    """An item's acts, by time, as its kind's others can be compared with them."""

    def __init__(self, item: WorkItem, acts: Sequence[WorkEvent], around: Sequence[WorkEvent], shapes: ActShapes,
                 listed: ListedRecords | None) -> None:
        self.item_id = item.item_id
        self.listed = listed
        self.acts = acts
        self.around = around
        """The acts, and the others of their threads."""
        self.teaches = not item.reason
        self.asker = acts[0].actor
        self.steps = {f"{shapes.name(act)} {'asker' if act.actor == self.asker else 'other'}" for act in acts}
        self.values: dict[Position, list[tuple[str, bool]]] = defaultdict(list)
        """Position -> each value that it took, and whether that had been written before the first of them."""
        self.states: dict[tuple[tuple[str, str], str, str], list[str]] = defaultdict(list)
        """Record, container and part -> the values that it took."""
        self._read(shapes)

    def _read(self, shapes: ActShapes) -> None:
        first: dict[Position, EarlierTexts] = {}
        written = EarlierTexts()
        own = {act.ref for act in self.acts}
        for number, act in enumerate(self.around):
            values = shapes.values(act)
            for position, value in values.items():
                if position not in first:
                    first[position] = written.copy()
                if number and act.ref in own:
                    self.values[position].append((value, first[position].holds(value)))
                states = self.states[act.record, position.container, position.part]
                if not states or states[-1] != value:
                    states.append(value)
            written.add(shapes, act)

    @property
    def answered(self) -> bool:
        """Return whether somebody else wrote to the one who asked, or where the request is."""
        first = self.acts[0]
        return any(act.actor != self.asker and act.texts and (
            act.thread == first.thread or (first.place and act.place == first.place) or self.asker in act.addressees)
            for act in self.acts[1:])

    @property
    def declined(self) -> bool:
        """Return whether somebody else than the one who asked said no in the last acts."""
        return any(_NO.search(words) for act in self.acts[-_LAST:] if act.actor != self.asker
                   for words in (*act.texts, *(str(change.after) for change in act.changes)))

    @property
    def last_reaction(self) -> str:
        """Return the last words of the one who asked after the others had done something; empty: none, or a change followed."""
        replies = [number for number, act in enumerate(self.acts) if number and act.actor == self.asker and act.texts
                   and act.verb.endswith(CREATED)]
        if not replies or all(act.actor == self.asker for act in self.acts[:replies[-1]]):
            return ""
        later = self.acts[replies[-1] + 1:]
        return " ".join(self.acts[replies[-1]].texts) if not any(act.actor != self.asker for act in later) else ""


def _votes_of_kind(courses: Sequence[_ItemCourse], shapes: ActShapes) -> dict[str, WorkOutcome]:
    """Return the votes on each item of one kind, and what was corrected in it."""
    teaching = [course for course in courses if course.teaches]
    teachers = teaching if len(teaching) >= _LEAST else courses
    copies = _copied_positions(teachers)
    departures = _left_states(teachers)
    often = Counter(step for course in teachers for step in course.steps)
    usual = {step for step, n in often.items() if n >= _USUAL * len(teachers)}
    answers = sum(course.answered for course in teachers) >= _USUAL * len(teachers)
    listings = _agreeing_listings(teachers)
    outcomes = {}
    for course in courses:
        agreeing = [*_copied(course, copies, shapes), *_listed(course, listings)]
        cast = [vote for vote in agreeing if vote.vote < 0] or agreeing
        cast += [*_state(course, departures, shapes), *_words(course)]
        if usual:
            share = len(usual & course.steps) / len(usual)
            if share < _MISSING or share >= _ENOUGH:
                cast.append(WorkVote("steps", 1.0 if share >= _ENOUGH else -1.0, f"has {share:.0%} of the usual steps"))
            if share < _MISSING and course.declined:
                cast.append(WorkVote("declined", 1.0, "somebody said no at the end"))
        if answers and not course.answered:
            cast.append(WorkVote("answer", -1.0, "the one who asked got no answer"))
        outcomes[course.item_id] = WorkOutcome(None, tuple(cast), tuple(_corrections(course, copies)))
    return outcomes


def _copied_positions(courses: Sequence[_ItemCourse]) -> set[Position]:
    """Return the positions whose value nearly all items of the kind take from what was written before."""
    agree: Counter[Position] = Counter()
    last: dict[Position, set[str]] = defaultdict(set)
    n: Counter[Position] = Counter()
    for course in courses:
        for position, values in course.values.items():
            n[position] += 1
            agree[position] += values[-1][1]
            last[position].add(values[-1][0])
    return {position for position in n if n[position] >= max(_LEAST, _COMMON * len(courses))
            and agree[position] >= _COPIED * n[position]
            and len(last[position]) >= _DIFFERENT}


def _copied(course: _ItemCourse, copies: set[Position], shapes: ActShapes) -> Iterator[WorkVote]:
    checked = {position: values[-1] for position, values in course.values.items() if position in copies}
    unlike = sorted({f"'{value}' ({shapes.label(position.container, position.part)})"
                     for position, (value, agrees) in checked.items() if not agrees})
    n_unlike, n_alike = (len({value for value, agrees in checked.values() if agrees is wanted}) for wanted in (False, True))
    if unlike and n_unlike > n_alike:
        return   # what was written before is not of this item, or lies where no export sees it
    if unlike:
        yield WorkVote("copied", -1.0, f"nobody had written {', '.join(unlike[:3])} before")
    elif checked:
        yield WorkVote("copied", 1.0, f"{len(checked)} values agree with what was written before")


def _agreeing_listings(courses: Sequence[_ItemCourse]) -> list[str]:
    """Return in which ways the records that items of the kind treat alike and name are nearly always the same."""
    listed = [course.listed for course in courses if course.listed is not None]
    return [way for way in ListedRecords._fields if len(listed) >= _LEAST
            and sum(not getattr(each, way) for each in listed) >= _COPIED * len(listed)]


def _listed(course: _ItemCourse, ways: Sequence[str]) -> Iterator[WorkVote]:
    if course.listed is not None and ways:
        differ = sorted({name for way in ways for name in getattr(course.listed, way)})
        yield WorkVote("listed", -1.0 if differ else 1.0, f"treated or named alone: {', '.join(differ[:3]) or 'nothing'}")


def _left_states(courses: Sequence[_ItemCourse]) -> dict[tuple[str, str, str], float]:
    """Return for each state of the kind the share of its items that leave it."""
    departures: dict[tuple[str, str, str], list[bool]] = defaultdict(list)
    for course in courses:
        for (_, container, part), values in course.states.items():
            for number, value in enumerate(values):
                departures[container, part, value].append(number + 1 < len(values))
    n_values = Counter((container, part) for container, part, _ in departures)
    moves = {(container, part) for (container, part, _), each in departures.items() if len(each) >= _LEAST
             and sum(each) >= _LEAVES * len(each)}
    return {(container, part, value): sum(each) / len(each) for (container, part, value), each in departures.items()
            if (container, part) in moves and n_values[container, part] <= _FEW_STATES and len(each) > 1}


def _state(course: _ItemCourse, departures: Mapping[tuple[str, str, str], float], shapes: ActShapes) -> Iterator[WorkVote]:
    shares = {(shapes.label(container, part), values[-1]): departures[container, part, values[-1]]
              for (_, container, part), values in course.states.items() if (container, part, values[-1]) in departures}
    begun = sorted(f"{part} '{value}'" for (part, value), share in shares.items() if share >= _LEAVES)
    if begun:
        yield WorkVote("state", -1.0, f"ends in a state that others leave: {', '.join(begun)}")
    elif shares and min(shares.values()) <= _STAYS:
        yield WorkVote("state", 1.0, "ends in a state that others end in")


def _words(course: _ItemCourse) -> Iterator[WorkVote]:
    words = course.last_reaction
    if words and (re.search(COMPLAINT, words) or _AGAIN.search(words)):
        yield WorkVote("complaint", -1.0, "the last words of the one who asked complain")
    elif words and re.search(THANKS, words):
        yield WorkVote("thanks", 1.0, "the one who asked gave thanks")


def _corrections(course: _ItemCourse, copies: set[Position]) -> Iterator[WorkCorrection]:
    for position, values in course.values.items():
        wrong = [value for value, agrees in values if not agrees]
        is_message = position.part.startswith("#") and position.verb.endswith(CREATED)   # each one has numbers of its own
        if position in copies and wrong and values[-1][1] and not is_message:
            yield WorkCorrection(position, wrong[-1], values[-1][0])


def _still_open(courses: Sequence[_ItemCourse], outcomes: Mapping[str, WorkOutcome], until: int) -> set[str]:
    """Return the items that lack their end at a time when others of the kind would not have moved yet."""
    pauses = sorted(max((later.at - act.at for act, later in zip(course.acts, course.acts[1:], strict=False)), default=0)
                    for course in courses)
    patience = pauses[min(int(_WAITS * len(pauses)), len(pauses) - 1)]
    return {course.item_id for course in courses if until - course.acts[-1].at < patience
            and any(vote.vote < 0 and vote.signal in _ENDED for vote in outcomes[course.item_id].votes)}
