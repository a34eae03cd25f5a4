"""Mine how people correct themselves: they give an argument's value, and later another one, which their agent then uses.

In: the talks of a service's tasks (`users.talks_of`), the person of each. Out: per argument, how often people correct it, the
values that several people gave, and the words around a correction, for the perturbation `habits`. A correction is a line of the
user that is the first to give the value which the agent's last call has, and that says so ("Actually …", "… instead", "not …"),
after an earlier line gave another usual value of this argument. It counts where neither a tool nor the agent can have asked for
it: no call had the first value before, the agent regretted nothing in between, and did not name the last value itself. A value
that another argument has too may be that one's, and does not count. Does not see: languages other than English; values that
fewer than `LEAST_PEOPLE` people gave, such as ids; a request that is taken back whole; corrections after a call.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping
from typing import Any, NamedTuple

from env_builder.runtime.habits import VALUE, WRONG
from env_builder.runtime.stances import declines, takes_back
from env_builder.runtime.user import sentences, stated, telling
from env_builder.users import Talk, holds
from env_builder.wordings import LEAST_PEOPLE, LONGEST, runs_of_two

_MARKS = re.compile(
    r"\b(?:actually|i mean(?:t)?|sorry|wait|instead|chang\w+ my mind|rather|correction|oops|my mistake|my bad|i forgot"
    r"|i (?:just |now )?remember(?:ed)?)\b", re.IGNORECASE)
_REGRETS = re.compile(r"\b(?:sorry|unfortunately|afraid)\b", re.IGNORECASE)
"""Of the agent: something speaks against what the user gave."""
_REFUSES = re.compile(rf"\bnot (?:the |on |at |in |to )?{WRONG}", re.IGNORECASE)
_OF_CORRECTIONS = telling(
    "actually mean meant sorry wait instead change changed changing mind rather correction oops mistake bad forgot remember "
    "remembered make made do think oh hey now")
"""Telling words that a correction may have without telling anything else."""


class CorrectedSlot(NamedTuple):
    """One argument that the user of a talk corrected."""

    slot: str
    frame: str
    """The words around the last value, `VALUE`, and the first one, `WRONG`; empty where they tell more than that."""


class TalkCorrections(NamedTuple):
    """What one talk shows."""

    corrected: list[CorrectedSlot]
    gave: frozenset[str]
    """Arguments whose last value the user was the first to give."""


def fitted_corrections(talks: Mapping[str, Talk], people: Mapping[str, str], least: int) -> dict[str, dict[str, Any]]:
    """Return argument -> `share` of those who gave it that corrected it, `values` that people gave, `frames` of corrections.

    `people`: task -> person. There is no row of an argument that fewer than `least` talks gave, that fewer than `LEAST_PEOPLE`
    people corrected, or of whose corrections no words may be passed on.
    """
    usual = _usual_values(talks, people)
    gave, by_slot = Counter[str](), defaultdict[str, list[tuple[str, str]]](list)
    for task_id, talk in talks.items():
        own = corrections(talk, usual)
        gave.update(own.gave)
        for one in own.corrected:
            by_slot[one.slot].append((people.get(task_id, task_id), one.frame))
    enough = {slot: own for slot, own in sorted(by_slot.items())
              if gave[slot] >= least and len({person for person, _ in own}) >= LEAST_PEOPLE and len(usual[slot]) > 1}
    frames = _passed_on({frame for own in enough.values() for _, frame in own if frame}, talks, people)
    rows = {slot: {"share": round(len(own) / gave[slot], 4), "values": [*usual[slot].values()],
                   "frames": sorted(frames.intersection(frame for _, frame in own))} for slot, own in enough.items()}
    return {slot: row for slot, row in rows.items() if row["frames"]}


def _usual_values(talks: Mapping[str, Talk], people: Mapping[str, str]) -> dict[str, dict[str, str]]:
    """Return argument -> value in small letters -> as most people write it, of values that `LEAST_PEOPLE` people gave."""
    givers: dict[tuple[str, str], set[str]] = defaultdict(set)
    spellings: dict[tuple[str, str], Counter[str]] = defaultdict(Counter)
    for task_id, talk in talks.items():
        text = "\n".join([*talk.opening, *talk.turns])
        small = text.casefold()
        if len(small) != len(text):
            continue
        for slot, value in {(slot, value) for _, slot, value in talk.given}:
            if holds(small, value):
                givers[slot, value].add(people.get(task_id, task_id))
                spellings[slot, value][text[small.find(value):][:len(value)]] += 1
    usual: dict[str, dict[str, str]] = defaultdict(dict)
    for (slot, value), own in sorted(givers.items()):
        if len(own) >= LEAST_PEOPLE:
            usual[slot][value] = min(spellings[slot, value].items(), key=lambda each: (-each[1], each[0]))[0]
    return usual


def corrections(talk: Talk, usual: Mapping[str, Collection[str]]) -> TalkCorrections:
    """Return what the user of a talk corrected. `usual`: argument -> values that people give, in small letters."""
    last = {slot: value for _, slot, value in talk.given}
    later = ((turn, line) for turn, text in enumerate(talk.turns, 1) for line in text.split("\n"))
    lines = [(0, "\n".join(talk.opening)), *later]
    small = [(turn, line.casefold()) for turn, line in lines]
    heard = [[words.casefold() for words in own] for own in talk.heard]
    corrected, gave = [], set()
    for slot, value in sorted(last.items()):
        at = next((place for place, (_, line) in enumerate(small) if holds(line, value)), None)
        if at is None or any(holds(words, value) for own in heard[:lines[at][0]] for words in own):
            continue
        gave.add(slot)
        others = _others(talk, slot, value, usual.get(slot, ()))
        wrong = next((one for one in others if _is_replaced(talk, (slot, one), small, at)), None)
        if wrong is not None and (frame := _frame(lines[at][1], value, wrong)) is not None:
            corrected.append(CorrectedSlot(slot, frame))
    return TalkCorrections(corrected, frozenset(gave))


def _others(talk: Talk, slot: str, value: str, usual: Collection[str]) -> Iterator[str]:
    """Yield the usual values that are neither the last one nor perhaps of another argument."""
    elsewhere = {other for _, name, other in talk.given if name != slot} | {value}
    yield from (wrong for wrong in sorted(usual) if not any(holds(one, wrong) or holds(wrong, one) for one in elsewhere))


def _is_replaced(talk: Talk, wrong: tuple[str, str], lines: list[tuple[int, str]], at: int) -> bool:
    """Return whether the user gave the wrong value before the line at this place, and nobody can have objected to it."""
    since = next((turn for turn, line in lines[:at] if holds(line, wrong[1])), None)
    until = lines[at][0]
    if since is None or any((name, value) == wrong and n_told <= until for n_told, name, value in talk.given):
        return False
    return not any(declines(words) or _REGRETS.search(words) for heard in talk.heard[since:until] for words in heard)


def _frame(line: str, value: str, wrong: str) -> str | None:
    """Return the words around the value in the sentence that gives it; empty where they tell more than a correction; None
    where the line corrects nothing."""
    marked = re.sub(re.escape(wrong), WRONG, line, flags=re.IGNORECASE)
    if not _MARKS.search(line) and not _REFUSES.search(marked):
        return None
    for sentence in sentences(marked):
        frame = re.sub(re.escape(value), VALUE, sentence, flags=re.IGNORECASE)
        words = frame.replace(VALUE, " ").replace(WRONG, " ")
        is_plain = (frame.count(VALUE) == 1 and frame.count(WRONG) <= 1 and len(frame) <= LONGEST and not stated(words)
                    and telling(words) <= _OF_CORRECTIONS and not takes_back(words))
        if is_plain and (_MARKS.search(frame) or _REFUSES.search(frame)):
            return frame
    return ""


def _passed_on(frames: Collection[str], talks: Mapping[str, Talk], people: Mapping[str, str]) -> set[str]:
    """Return the frames of which `LEAST_PEOPLE` people or more used each run of two words, apart from the values."""
    wanted = {run for frame in frames for run in _runs_of(frame)}
    users: dict[tuple[str, ...], set[str]] = defaultdict(set)
    for task_id, talk in talks.items() if wanted else ():
        for text in (*talk.opening, *talk.turns):
            for run in wanted.intersection(runs_of_two(text)):
                users[run].add(people.get(task_id, task_id))
    return {frame for frame in frames if all(len(users[run]) >= LEAST_PEOPLE for run in _runs_of(frame))}


def _runs_of(frame: str) -> set[tuple[str, ...]]:
    """Return the runs of two words between the values of a frame, without its ends."""
    return {run for part in re.split(f"[{VALUE}{WRONG}]", frame) for run in [*runs_of_two(part)][1:-1]}
