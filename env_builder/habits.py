"""Fit how people of each family of tasks behave: how long they bear it, what they tell unasked, what they type.

In: the talks of a service's tasks (`users.talks_of`), the family and the person of each, which ended well. Out: family -> row,
and "" for the whole service, for the perturbation `habits` (`runtime/habits.py`). There is no row below `LEAST_SESSIONS` talks
or `LEAST_PEOPLE` people, and none of an argument whose value fewer told.

Patience is a hazard (Kaplan and Meier 1958): of all runs of n turns that told nothing new, the share after which the user left:
had the last word, or did not answer a question, in a session that did not end well. People who went on, were served or waited
are censored there. Sees: values of arguments and facts that turns state.
Does not see: people who left for another reason, what words tell without a number or an argument. Corrections are mined
in `env_builder/corrections.py`.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping
from typing import Any, NamedTuple

from env_builder.corrections import fitted_corrections
from env_builder.runtime.habits import ALL, COMMON, slips
from env_builder.runtime.user import NO, UNSURE, granted, question, telling
from env_builder.runtime.wordings import asks_for_more
from env_builder.users import Read, Talk, Turned, reads_of
from env_builder.wordings import IS_UNSURE

LEAST_SESSIONS, LEAST_PEOPLE = 20, 3
LEAST_AT_RISK = 20
"""Runs of so many turns, below which nothing is said of who leaves then."""
ASIDE = "aside"
RARE = 0.05
"""How often a misspelling may be written, to the word; else it is a word of its own."""
_SLIPS = slips()


class TalkHabits(NamedTuple):
    """What one talk shows."""

    person: str
    runs: list[int]
    """Lengths of the runs of turns that told nothing new."""
    left_after: int
    """Length of the run at the end of a talk that the user left and that did not end well; 0 of any other."""
    volunteered: dict[str, bool]
    """Argument that the user gave -> before it was asked for?"""
    answers: Counter[str]
    """Answers to questions that are `ASIDE`, `UNSURE`, `NO`."""
    style: tuple[bool, bool]
    words: Counter[str]
    """Common words, and what may be misspellings of them."""


def habits(
    talks: Mapping[str, Talk], families: Mapping[str, str], people: Mapping[str, str], good: Collection[str],
    read: Mapping[str, Read] | None = None,
) -> dict[str, dict[str, Any]]:
    """Return the rows by family.

    `families`, `people`: task -> family, person; `good`: tasks whose talk ended well; `read`: what
    the talks hold, where it is known.
    """
    read = reads_of(talks) if read is None else read
    by_family: dict[str, dict[str, TalkHabits]] = defaultdict(dict)
    for task_id, talk in sorted(talks.items()):
        if talk.turns:
            one = _observe(talk, read[task_id], people.get(task_id, task_id), task_id in good)
            for family in {ALL, families.get(task_id, ALL)}:
                by_family[family][task_id] = one
    enough = {family: observed for family, observed in sorted(by_family.items())
              if len(observed) >= LEAST_SESSIONS and len({one.person for one in observed.values()}) >= LEAST_PEOPLE}
    return {family: _fit([*observed.values()]) | {"corrects": fitted_corrections(
        {task_id: talks[task_id] for task_id in observed}, people, LEAST_SESSIONS)} for family, observed in enough.items()}


def _observe(talk: Talk, read: Read, person: str, is_good: bool) -> TalkHabits:
    turns = read.turned
    runs, run = [], 0
    for one in turns:
        run = 0 if one.tells else run + 1
        runs += [] if one.tells else [run]
    opened = dict.fromkeys(read.given, True)
    later = {slot: one.when == "unasked" for one in turns for slot in one.slots}
    answers = Counter(_answers(one, text, heard[-1]) for one, text, heard in zip(turns, talk.turns, talk.heard, strict=False)
                      if heard and question(heard[-1]) and not one.slots and not one.tells)
    texts = [text for text in (*talk.opening, *talk.turns) if text.strip()]
    words = [word for text in texts for word in text.lower().split()]
    return TalkHabits(
        person, runs, run if _is_left(talk) and not is_good else 0, later | opened, answers,
        (_most(text[:1].islower() for text in texts), _most(text.rstrip()[-1:].isalnum() for text in texts)),
        Counter(word for word in words if word in COMMON or word in _SLIPS))


def _is_left(talk: Talk) -> bool:
    """Return whether the user had the last word, or left a question without an answer."""
    return not talk.heard[-1] or bool(question(talk.heard[-1][-1]))


def _answers(one: Turned, text: str, heard: str) -> str:
    """Return what an answer that gives no argument and no fact is, empty where it is none of these."""
    if granted(text) is not None:
        return NO if not granted(text) and not asks_for_more(heard) else ""
    if IS_UNSURE.search(text):
        return UNSURE
    return ASIDE if telling(text) and telling(text).isdisjoint(one.words) else ""


def _most(flags: Iterable[bool]) -> bool:
    every = [*flags]
    return 2 * sum(every) > len(every)


def _fit(observed: list[TalkHabits]) -> dict[str, Any]:
    at_risk = Counter(run for one in observed for run in one.runs)
    departures = Counter(one.left_after for one in observed if one.left_after)
    by_slot: dict[str, list[tuple[str, bool]]] = defaultdict(list)
    for one in observed:
        for slot, unasked in one.volunteered.items():
            by_slot[slot].append((one.person, unasked))
    styles = Counter(one.style for one in observed)
    answers = sum((one.answers for one in observed), Counter[str]())
    words = sum((one.words for one in observed), Counter[str]())
    n_typos = sum(n for word, n in words.items() if word in _SLIPS and n <= RARE * words[_SLIPS[word]])
    return {
        "leaves": [[n, _share(departures[n], at_risk[n])] for n in sorted(departures) if at_risk[n] >= LEAST_AT_RISK],
        "volunteers": {slot: _share(sum(unasked for _, unasked in own), len(own)) for slot, own in sorted(by_slot.items())
                       if len(own) >= LEAST_SESSIONS and len({person for person, _ in own}) >= LEAST_PEOPLE},
        "aside": {words: _share(answers[ASIDE], answers[ASIDE] + answers[words]) for words in (NO, UNSURE)},
        "typing": {"styles": [[*style, n] for style, n in sorted(styles.items())], "typos": _share(
            n_typos, n_typos + sum(words[word] for word in COMMON))}}


def _share(part: int, whole: int) -> float:
    return round(part / whole, 4) if whole else 0.0
