"""Mine how a service's users word what every user says: yes, no, no idea, understood, goodbye, and a value that was asked for.

In: the users' scripts of the tasks (`users.scripts`), and whose each task is. Out: act -> [text, people who used it] pairs, for
the perturbation `wordings` (`runtime/wordings.py`). A wording counts if `LEAST_PEOPLE` people or more used it, case and
blanks apart, so that nobody's own phrase is passed on; of a text that tells a value, the words around it. Sees: short turns
that tell nothing of their own, by where they come (after a question for a yes, after an open question, unasked, at the end) and
by their English yes or no. Does not see: words that mean a yes only in their place, other languages' yes, no and "else";
that sessions without an identity are of one person.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from typing import Any

import polars as pl

from env_builder.runtime.user import HEARD, LEAVES, NO, UNSURE, YES, agrees, question, stated, telling
from env_builder.runtime.wordings import ACTS, ANSWERS, NO_MORE, TELLS, VALUE, asks_for_more, frame_of

LEAST_PEOPLE = 3
MOST_WORDINGS = 100
"""Of an act, those that most people use."""
LONGEST = 80
"""Characters of a wording."""
UNSURE_WORDS = ("don't know", "do not know", "not sure", "dont know", "no idea", "unsure")


def wordings(scripts: pl.DataFrame, people: Mapping[str, str]) -> dict[str, list[list[Any]]]:
    """Return the wordings of each act, those of most people first. `scripts`: (task_id, script); `people`: task -> person."""
    persons: dict[tuple[str, str], dict[str, set[str]]] = defaultdict(lambda: defaultdict(set))
    n_statements = n_answered = 0
    for task_id, script in scripts.select("task_id", "script").sort("task_id").iter_rows():
        row = json.loads(script)
        for act, text in acts_of(row):
            persons[act, " ".join(text.casefold().split())][text].add(people.get(task_id, task_id))
        statements = [[words for words in one["heard"] if not question(words)] for one in row.get("script") or ()]
        n_statements += sum(map(len, statements))
        n_answered += sum(act == ACTS[HEARD] for act, _ in acts_of(row))
    by_act: dict[str, Counter[str]] = defaultdict(Counter)
    for (act, _), spellings in persons.items():
        if len(set().union(*spellings.values())) >= LEAST_PEOPLE:
            for text, own in spellings.items():
                by_act[act][text] += len(own)
    answers = {ANSWERS: [["", round(n_answered / n_statements, 4)]]} if n_statements else {}
    return {**answers, **_most(by_act)}


def _most(by_act: Mapping[str, Counter[str]]) -> dict[str, list[list[Any]]]:
    """Return the wordings of most people of each act; no consent is a mere sign of having heard."""
    consents = {" ".join(text.casefold().split()) for text in by_act.get(ACTS[YES], ())}
    by_act = {act: Counter({text: n for text, n in texts.items() if act != ACTS[HEARD]
                            or " ".join(text.casefold().split()) not in consents}) for act, texts in by_act.items()}
    return {act: [[text, n] for text, n in sorted(texts.items(), key=lambda item: (-item[1], item[0]))[:MOST_WORDINGS]]
            for act, texts in sorted(by_act.items()) if texts}


def acts_of(row: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield (act, wording) of each turn of a user's script that is one of the acts and nothing else."""
    turns, script = row["turns"], row.get("script") or ()
    for place, (text, one) in enumerate(zip(turns, script, strict=False)):
        text = text.strip()
        if not text or len(text) > LONGEST or "\n" in text:
            continue
        if not stated(text) and not telling(text):
            heard = one["heard"][-1] if one["heard"] else ""
            when = "asked" if one["when"] == "unasked" and question(heard) else one["when"]   # an answer to what nobody knows
            yield from ((act, text) for act in (
                [NO_MORE] if asks_for_more(heard) else _acts_at(when, place == len(turns) - 1, text)))
        elif (parted := frame_of(text)) is not None and one["when"] == "asked":
            yield TELLS, f"{parted[0].before}{VALUE}{parted[0].after}"


def _acts_at(when: str, is_last: bool, text: str) -> Iterator[str]:
    """Yield the act that a turn without facts is at this place; the text must agree with the stock words that it replaces."""
    stock = {"confirmed": (YES, NO), "asked": (UNSURE,) if any(words in text.lower() for words in UNSURE_WORDS) else (),
             "unasked": (LEAVES,) if is_last else (HEARD,)}[when]
    yield from (ACTS[words] for words in stock if agrees(words, text))
