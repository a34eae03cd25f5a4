"""Mine how a service's users word what every user says: yes, no, no idea, understood, goodbye, and a value that was asked for.

In: the users' scripts of the tasks (`users.scripts`), and whose each task is. Out: act -> [text, people who used it] pairs, for
the perturbation `wordings` (`runtime/wordings.py`); an act in answer to one question has a key of its own. A wording counts if
every run of two words of it, its ends included, is used by `LEAST_PEOPLE` people or more, so that no person's own phrase is
passed on; words around a value, and answers to two ways, count as a whole. Sees: short turns that tell nothing of their own, by
where they come (after a question for a yes, after an open question, unasked, at the end) and by their English yes, no or no
idea. A turn may repeat the question's words; then it is a wording for that question alone. Does not see: words that mean a yes
only in their place, other languages' yes, no and "else"; that sessions without an identity are of one person.
"""

from __future__ import annotations

import json
import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import Any

import polars as pl

from env_builder.runtime.habits import VALUE
from env_builder.runtime.user import (
    HEARD,
    LEAVES,
    NO,
    UNSURE,
    YES,
    agrees,
    granted,
    names,
    question,
    sentences,
    stated,
    telling,
)
from env_builder.runtime.wordings import ACTS, ANSWERS, CHOICE, NO_MORE, TELLS, asks_for_more, frame_of, keyed

LEAST_PEOPLE = 3
MOST_WORDINGS = 100
"""Of an act, those that most people use."""
LONGEST = 80
"""Characters of a wording."""
IS_UNSURE = re.compile(
    r"\b(?:(?:do|does|did|can|could|wo|would)(?:n't|nt| not)|not|cannot|can not) (?:really |quite |even )?"
    r"(?:know|remember|recall|sure)\b|\bno idea\b|\bunsure\b|\bforgot(?:ten)?\b", re.IGNORECASE)
"""Where it is in a text, the user says that it does not know."""
_OF_UNSURE = frozenset(
    ("remember", "recall", "idea", "unsure", "forgot", "forgotten", "don", "dont", "doesn", "didn"))
"""Telling words of a text that says that its user does not know."""
_TOKEN = re.compile(r"[\w']+|[^\w\s]")
Words = tuple[str, ...]


def wordings(scripts: pl.DataFrame, people: Mapping[str, str]) -> dict[str, list[list[Any]]]:
    """Return the wordings of each act, those of most people first. `scripts`: (task_id, script); `people`: task -> person."""
    rows = {task_id: json.loads(script) for task_id, script in scripts.select("task_id", "script").sort("task_id").iter_rows()}
    runs: dict[Words, set[str]] = defaultdict(set)
    persons: dict[str, dict[str, set[str]]] = defaultdict(lambda: defaultdict(set))
    n_statements = n_answered = 0
    for task_id, row in rows.items():
        person = people.get(task_id, task_id)
        for text in row["turns"]:
            for run in runs_of_two(text):
                runs[run].add(person)
        acts = [*acts_of(row)]
        for act, text in acts:
            persons[act][text].add(person)
        n_statements += sum(not question(words) for one in row.get("script") or () for words in one["heard"])
        n_answered += sum(act == ACTS[HEARD] for act, _ in acts)
    common = {run for run, own in runs.items() if len(own) >= LEAST_PEOPLE}
    by_act = {act: _alike(texts) if act.partition(" ")[0] in (TELLS, CHOICE) else Counter(
        {text: len(own) for text, own in texts.items() if common.issuperset(runs_of_two(text))})
        for act, texts in persons.items()}
    answers = {ANSWERS: [["", round(n_answered / n_statements, 4)]]} if n_statements else {}
    return {**answers, **_most(by_act)}


def runs_of_two(text: str) -> Iterator[Words]:
    """Yield the runs of two words of a text, its ends included, marks apart."""
    return pairwise(("", *_TOKEN.findall(text.casefold()), ""))


def _alike(texts: Mapping[str, set[str]]) -> Counter[str]:
    """Return the texts that several people used as a whole; case, blanks and the last mark apart."""
    persons: dict[str, set[str]] = defaultdict(set)
    for text, own in texts.items():
        persons[_plain(text)] |= own
    return Counter({text: len(own) for text, own in texts.items() if len(persons[_plain(text)]) >= LEAST_PEOPLE})


def _plain(text: str) -> str:
    return " ".join(text.casefold().split()).rstrip(".!")


def _most(by_act: Mapping[str, Counter[str]]) -> dict[str, list[list[Any]]]:
    """Return the wordings of most people of each act; no consent is a mere sign of having heard."""
    consents = {" ".join(text.casefold().split()) for text in by_act.get(ACTS[YES], ())}
    by_act = {act: Counter({text: n for text, n in texts.items() if act != ACTS[HEARD]
                            or " ".join(text.casefold().split()) not in consents}) for act, texts in by_act.items()}
    return {act: [[text, n] for text, n in sorted(texts.items(), key=lambda item: (-item[1], item[0]))[:MOST_WORDINGS]]
            for act, texts in sorted(by_act.items())
            if texts and (act in (*ACTS.values(), NO_MORE, TELLS) or sum(texts.values()) >= LEAST_PEOPLE)}


def acts_of(row: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield (act, wording) of each turn of a user's script that is one of the acts and nothing else."""
    turns, script = row["turns"], row.get("script") or ()
    for place, (text, one) in enumerate(zip(turns, script, strict=False)):
        text = text.strip()
        if not text or len(text) > LONGEST or "\n" in text:
            continue
        heard = one["heard"][-1] if one["heard"] else ""
        asks = question(heard)
        if not stated(text) and not names(text) and asks:
            yield from _answering(text, heard, asks)
        if not stated(text) and not telling(text):
            when = "asked" if one["when"] == "unasked" and asks else one["when"]   # an answer to what nobody knows
            yield from ((act, text) for act in (
                [NO_MORE] if asks_for_more(heard) else _acts_at(when, place == len(turns) - 1, text)))
        elif (parted := frame_of(text)) is not None and one["when"] == "asked":
            yield TELLS, f"{parted[0].before}{VALUE}{parted[0].after}"


def _answering(text: str, heard: str, asks: str) -> Iterator[tuple[str, str]]:
    """Yield the act that a turn without names and facts is in answer to this question, unless it adds a telling word."""
    own = telling(text)
    is_unsure = IS_UNSURE.search(text) is not None
    if own - telling(asks) - (_OF_UNSURE if is_unsure else frozenset()):
        return
    if is_unsure and granted(text) is None:
        yield keyed(ACTS[UNSURE], asks), text
        if not own - _OF_UNSURE:
            yield ACTS[UNSURE], text
    elif not is_unsure and not asks_for_more(heard):
        consents = any(granted(one) for one in sentences(text))
        act = {True: ACTS[YES], False: ACTS[NO], None: CHOICE if not own and not consents else ""}[granted(text)]
        if act:
            yield keyed(act, asks), text


def _acts_at(when: str, is_last: bool, text: str) -> Iterator[str]:
    """Yield the act that a turn without facts is at this place; the text must agree with the stock words that it replaces."""
    stock = {"confirmed": (YES, NO), "asked": (), "unasked": (LEAVES,) if is_last else (HEARD,)}[when]
    yield from (ACTS[words] for words in stock if agrees(words, text))
