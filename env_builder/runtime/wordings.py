"""Let the user answer as users of the log do, drawn by seed: the perturbation `wordings`.

In: the wordings of a service (`env_builder/wordings.py`), the user's next words, what the agent said, a source of draws.
Out: the same act as several people of the log put it, or None: the user waits. Exchanged are the runtime's own stock words,
which no session gives, and turns that tell one value and nothing else ("It is AB12"), around which other people's words are
put. Words that people used in answer to this very question (its telling words) come first.

    yes, no, goodbye        another wording of it; a no to "anything else?" is worded as others answered that
    no, to two ways         ("Shall I go on, or do you need more?", without facts) what people answered that tells and grants
                            nothing, else as to a question that the user cannot answer
    I don't know            where people said so to this question, another wording of it; else the user says once more what it
                            came for, a sentence of that
    OK                      as often as people answer an agent that asks nothing; else the user waits

A drawn wording must state the same facts, names, yes or no as the words that it replaces (`user.agrees`), else these are said;
one of two ways is neither yes nor no. Does not change: turns that tell more, openings. Text is only searched, never a pattern.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from .habits import VALUE
from .user import HEARD, LEAVES, NO, UNSURE, YES, agrees, question, sentences, stated, telling

ACTS = {YES: "yes", NO: "no", UNSURE: "unsure", HEARD: "heard", LEAVES: "leaves"}
"""Stock words of the scripted user -> their act."""
TELLS, NO_MORE, ANSWERS, CHOICE = "tells", "no_more", "answers", "choice"
"""Telling one value; a no to "anything else?"; the share of the agent's words without a question that people answer, as its
one row (text "", share); an answer to two ways."""
MORE = "else"
"""What a question for more holds."""
OR = " or "


def keyed(act: str, questions: str) -> str:
    """Return the name of an act in answer to a question: the words that tell what it is about stand behind the act."""
    return " ".join([act, "to", *sorted(telling(questions))])


def asks_for_more(heard: str) -> bool:
    """Return whether the agent asks for anything else."""
    return MORE in question(heard).lower()


class Frame(NamedTuple):
    """Words around one value."""

    before: str
    after: str


def frame_of(text: str) -> tuple[Frame, str] | None:
    """Part a text that tells one value, the only word with a digit, and has no other telling word; None of any other."""
    numbered = [word for word in text.split() if any(sign.isdigit() for sign in word)]
    if len(numbered) != 1 or text.count(numbered[0]) != 1 or "\n" in text:
        return None
    value = numbered[0].strip(".,;:!?\"'()")
    before, _, after = text.partition(value)
    return None if telling(before) or telling(after) or stated(text) != stated(value) else (Frame(before, after), value)


class Wordings:
    """The wordings of one service; immutable, shared by all episodes."""

    def __init__(self, rows: Mapping[str, Sequence[Sequence[Any]]]) -> None:
        self._texts = {act: [text for text, _ in own] for act, own in rows.items()}
        self._weights = {act: [weight for _, weight in own] for act, own in rows.items()}

    def reworded(self, words: str, heard: str, request: str, draw: random.Random) -> str | None:
        """Return the words as another person of the log says them, or as they are; None: the user waits.

        `heard`: what the agent said; `request`: the user's words before the agent's first move.
        """
        stock, _, rest = words.partition(" ") if words.startswith(f"{NO} ") else (words, "", "")
        questions = question(heard)
        if stock == HEARD and ANSWERS in self._weights and draw.random() >= self._weights[ANSWERS][0]:
            return None
        if stock == NO and not rest and asks_for_more(heard):
            return self._drawn(NO_MORE, draw) or words
        if stock == NO and not rest and OR in questions and not stated(heard):
            return self._drawn(keyed(CHOICE, questions), draw) or _once_more(request, draw) or words
        if stock == UNSURE and keyed(ACTS[UNSURE], questions) not in self._texts and (again := _once_more(request, draw)):
            return again
        if stock in ACTS:
            wording = self._drawn(keyed(ACTS[stock], questions), draw) or self._drawn(ACTS[stock], draw)
            drawn = " ".join(filter(None, (wording, rest)))
        elif (parted := frame_of(words)) is not None and (frame := self._drawn(TELLS, draw)):
            drawn = frame.replace(VALUE, parted[1])
        else:
            return words
        return drawn if agrees(words, drawn) else words

    def _drawn(self, act: str, draw: random.Random) -> str:
        return draw.choices(self._texts[act], self._weights[act])[0] if self._texts.get(act) else ""


def _once_more(request: str, draw: random.Random) -> str | None:
    """Return a sentence of what the user came for."""
    own = [one for one in sentences(request) if telling(one)]
    return draw.choice(own) if own else None
