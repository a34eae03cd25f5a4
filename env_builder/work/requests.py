"""The request of a task: the words by which the acting person was asked, as the person received them.

In: what others did in a piece of work before, the person's own acts, what people told their agents. Out: a `TaskRequest`, or
why there is none. Of others' words the last that the person received counts: named in them, or where the person could read
them. Words that say nothing of the work (a consent, thanks, a bare link, a newsletter) are none: the words before them count,
and the task still begins after them. What tells is a word that seldom occurs and that stands in what the person then did.
Where one session of the person's agent spans all that the person did, what the person told the agent is the opening, and the
task begins then. Sees: words letter by letter. Does not see: what a text means; a request that names the work in other words.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple, Protocol

from env_builder.company.calls import AgentPrompt
from env_builder.runtime.company import CompanyState, CompanyWorld, PersonSight
from env_builder.runtime.company.desk import Undecided
from env_builder.runtime.company.parts import words_of
from warehouse.records import RecordKind, WorkEvent

SELDOM = 0.02
"""Share of all acts that may have a word, outside a piece of work, which tells that work from others."""
FEW = 4
"""Acts that may have such a word in any company, however small."""
_AFTER = 1_000_000
"""Microseconds by which the act on record of an agent's last call may come after its session: exports round to seconds."""


class ReadingHabits(Protocol):
    """What is known of the classes of records: `WorkHabits`."""

    kinds: dict[str, RecordKind]

    def holds_words(self, entity_class: str) -> bool:
        """Return whether people write to each other in records of a class."""
        ...

    def is_message(self, act: WorkEvent) -> bool:
        """Return whether an act only says something."""
        ...


class TaskRequest(NamedTuple):
    """How somebody was asked."""

    act: WorkEvent
    """What another person wrote."""
    opening: str
    """What the agent is asked: these words as they stood then, or what the person told the agent."""
    starts_at: int
    """Microseconds since 1970 UTC: of the last that the person received before the work."""


class WorkRequests:
    """The requests in a company's work."""

    def __init__(self, events: Sequence[WorkEvent], world: CompanyWorld, habits: ReadingHabits,
                 prompts: Iterable[AgentPrompt] = ()) -> None:
        self._world, self._habits, self._n_acts = world, habits, len(events)
        self._counts = Counter(word for event in events for word in {word for text in event.texts for word in words_of(text)})
        self._prompts: dict[str, list[AgentPrompt]] = {}
        for prompt in prompts:
            self._prompts.setdefault(prompt.acting_for, []).append(prompt)

    def find(self, before: Sequence[WorkEvent], own: Sequence[WorkEvent], person: str) -> TaskRequest | str:
        """Return the request of a person's acts, or why there is none. `before`: the acts of the work before them, in order."""
        received = list(self._received(before, person))
        if not received:
            return "not_asked"
        done = {word for act in own for word in words_in(act)}
        inside = Counter(word for each in (*before, *own) for word in {*_words_of_texts(each)})
        act = next((act for act in received if any(word in done and self._tells(word, inside[word])
                                                   for word in _words_of_texts(act))), None)
        if act is None:
            return "request_says_nothing"
        opening = opening_of(act, self._world.at(act.at), self._habits)
        if opening is None:
            return "request_unknown"
        prompt = self._prompt(received[0].at, own, person)
        if prompt is not None:
            return TaskRequest(act, prompt.text, prompt.at)
        return TaskRequest(act, opening, received[0].at)

    def _received(self, before: Sequence[WorkEvent], person: str) -> Iterator[WorkEvent]:
        """Yield what others wrote to the person, the last first."""
        for act in reversed(before):
            if act.actor == person or not act.texts or not self._habits.holds_words(act.record[0]):
                continue
            if person in act.addressees or (self._habits.is_message(act) and self._could_read(act, person)):
                yield act

    def _could_read(self, act: WorkEvent, person: str) -> bool:
        try:
            sight = PersonSight(self._world.at(act.at), person)
        except LookupError:   # the exports do not show what the person could read
            return True
        return may_read(sight, act)

    def _tells(self, word: str, n_inside: int) -> bool:
        """Return whether a word seldom occurs outside this work. `n_inside`: acts of the work with the word."""
        return len(word) > 1 and self._counts[word] - n_inside <= max(FEW, SELDOM * self._n_acts)

    def _prompt(self, since: int, own: Sequence[WorkEvent], person: str) -> AgentPrompt | None:
        """Return what the person told the one session that spans the acts."""
        first, last = own[0].at, max(act.at for act in own)
        spanning = [prompt for prompt in self._prompts.get(person, ())
                    if since <= prompt.at <= first and last <= prompt.until + _AFTER]
        return spanning[0] if len(spanning) == 1 and spanning[0].text else None


def may_read(sight: PersonSight, act: WorkEvent) -> bool:
    """Return whether a person can read the record of an act, or whether nothing shows that the person cannot."""
    try:
        return sight.sees(*act.record)
    except (LookupError, Undecided):
        return True


def _words_of_texts(act: WorkEvent) -> Iterator[str]:
    return (word for text in act.texts for word in words_of(text))


def words_in(act: WorkEvent) -> Iterator[str]:
    """Yield the words of what an act wrote or set, and of the record that it was done to."""
    yield from _words_of_texts(act)
    yield from words_of(act.record[1])
    for change in act.changes:
        yield from words_of(change.after)


def opening_of(request: WorkEvent, state: CompanyState, habits: ReadingHabits) -> str | None:
    """Return the words of a request as they stood; None where no export tells them."""
    kind = habits.kinds.get(request.record[0], RecordKind(request.record[0]))
    fields = state.get(*request.record)
    texts = [field for name, field in fields.items() if name in (kind.texts or fields)]
    if not texts or any(not field.is_known for field in texts):
        return None
    words = [field.value for field in texts if isinstance(field.value, str) and field.value]
    return "\n\n".join(words) or None
