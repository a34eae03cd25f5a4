"""How the user of one episode behaves, drawn by seed from how people of its family did: the perturbation `habits`.

In: the habits of a service (`env_builder/habits.py`): family -> row, "" for all families; a seed. Out: the `UserHabits` of one
episode. No habit alters a fact that the user ends with: a user tells its own turns earlier or gives up sooner, typing errors
are made in common English words alone, and a wrong value is corrected in the same answer, so that no call can come between. A
family without a row has that of the whole service, if there is one.

    leaves   [[n, share], …]: of the people who had said n turns in a row that told nothing new, those who left then, unserved
    volunteers {argument: share}: of the people who told its value, those who did before it was asked for
    aside    {stock words: share}: of the people who answered a question with these words ("No.", "I don't know.") or with
             something else than was asked for, the latter
    corrects {argument: {"share": of the people who told its value, those who had told another one before, "values": those that
             people told, "frames": words of corrections around `VALUE` and `WRONG`}}
    typing   {"styles": [[small first letter, no full stop, people], …], "typos": share of common words}
"""

from __future__ import annotations

import random
import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

from .canonical import canonical

ALL = ""
"""The row of all families."""
LEAST_PATIENCE = 2
"""Answers in a row that tell nothing new, before which no user leaves."""
LONGEST = 20_000
COMMON = frozenset((
    "about", "after", "again", "also", "anything", "because", "been", "before", "could", "does", "from", "have", "help", "here",
    "just", "know", "like", "make", "more", "much", "need", "please", "should", "some", "something", "that", "their", "them",
    "then", "there", "they", "this", "today", "want", "what", "when", "where", "which", "will", "with", "would", "your"))
"""Words in which typing errors are made: none is a value, a yes or a no."""
OPENING = COMMON | frozenset((
    "a", "an", "and", "are", "at", "bye", "can", "do", "don't", "for", "great", "hello", "hey", "hi", "how", "i", "i'd", "i'm",
    "in", "is", "it", "it's", "its", "me", "my", "no", "not", "ok", "okay", "on", "or", "our", "so", "sure", "thank", "thanks",
    "that's", "the", "to", "we", "yeah", "yes", "you"))
"""Words with which a text may begin in either letter."""


VALUE, WRONG = "\0", "\1"
"""Where the value is in words around it, and the one that is taken back."""
NOTHING: Mapping[str, Mapping[str, Any]] = MappingProxyType({})


class UserHabits(NamedTuple):
    """What the user of one episode is like."""

    seed: str
    patience: int | None
    """Answers in a row that tell nothing new after which it leaves; None: as the script says."""
    volunteers: frozenset[str]
    """Arguments whose values it tells before they are asked for."""
    aside: Mapping[str, float]
    small: bool
    """Does it begin with a small letter?"""
    unmarked: bool
    """Does it leave out the full stop at the end?"""
    typos: float
    corrects: Mapping[str, Mapping[str, Any]] = NOTHING
    """Arguments of which it tells another value first, with their rows."""

    def mistaken(self, text: str, slots: frozenset[str], own_words: str, *place: Any) -> str:
        """Return the turn with another value of one of its arguments, and then the correction; as it is where that fits none.

        `slots`: arguments that it gives; `own_words`: all that the user ever says, in small letters. The other value is one
        that people gave, and none of this user's.
        """
        for slot in sorted(slots & self.corrects.keys()):
            row, draw = self.corrects[slot], self._draw("corrects", slot, text, *place)
            places = [match.span() for value in row["values"] for match in _places(text, value)]
            longest = [(since, until) for since, until in places if not any(
                first <= since and until <= last and (first, last) != (since, until) for first, last in places)]
            if len(longest) != 1:
                continue
            (since, until), = longest
            right = text[since:until]
            others = [value for value in row["values"] if not _places(own_words, value) and not _places(value, right)]
            if others:
                wrong, frame = draw.choice(others), draw.choice(row["frames"])
                return f"{text[:since]}{wrong}{text[until:]}\n{frame.replace(VALUE, right).replace(WRONG, wrong)}"
        return text

    def strays(self, words: str, *place: Any) -> bool:
        """Return whether the user says something else that it has to tell, instead of these stock words, at this place."""
        return self._draw("aside", *place).random() < self.aside.get(words, 0.0)

    def typed(self, text: str, *place: Any) -> str:
        """Return the words as this user types them at this place."""
        if len(text) > LONGEST:
            return text
        draw = self._draw("typing", text, *place)
        words = [_misspelt(word, draw) if word in COMMON and draw.random() < self.typos else word for word in text.split(" ")]
        first = words[0].strip(",.!?")
        if first.lower() in OPENING:
            words[0] = (words[0][:1].lower() if self.small else words[0][:1].upper()) + words[0][1:]
        written = " ".join(words)
        ends = self.unmarked and written.endswith(".") and written[-2:-1].isalpha() and written[-2:-1].islower()
        return written[:-1] if ends else written

    def _draw(self, *place: Any) -> random.Random:
        return random.Random(canonical([self.seed, *place]))


def habits_of(rows: Mapping[str, Mapping[str, Any]], family: str, seed: int, task_id: str) -> UserHabits | None:
    """Return the habits of a task's user in this episode; None where nothing is known of any."""
    row = rows.get(family, rows.get(ALL))
    if row is None:
        return None
    own = canonical([seed, "habits", task_id])
    draw = random.Random(own)
    patience = next((max(LEAST_PATIENCE, n) for n, share in row["leaves"] if draw.random() < share), None)
    volunteers = frozenset(name for name, share in sorted(row["volunteers"].items()) if draw.random() < share)
    styles = row["typing"]["styles"]
    small, unmarked, _ = draw.choices(styles, [n for *_, n in styles])[0]
    draw = random.Random(canonical([own, "corrects"]))  # of its own: environments without it draw the rest as ever
    corrects = {name: one for name, one in sorted(row.get("corrects", NOTHING).items()) if draw.random() < one["share"]}
    return UserHabits(own, patience, volunteers, row["aside"], small, unmarked, row["typing"]["typos"], corrects)


def _places(text: str, value: str) -> list[re.Match[str]]:
    """Return where a text has this value, in letters of any size, as words of its own."""
    return [*re.finditer(rf"(?<!\w){re.escape(value)}(?!\w)", text, re.IGNORECASE)]


def _misspelt(word: str, draw: random.Random) -> str:
    """Return the word without one of its letters, or with two that change places; never the first."""
    at = draw.randrange(1, len(word) - 1)
    return draw.choice((word[:at] + word[at + 1:], word[:at] + word[at + 1] + word[at] + word[at + 2:]))


def slips() -> Mapping[str, str]:
    """Return each misspelling of a common word that this makes and that is no common word itself -> the word."""
    made = {}
    for word in sorted(COMMON):
        for at in range(1, len(word) - 1):
            for wrong in (word[:at] + word[at + 1:], word[:at] + word[at + 1] + word[at] + word[at + 2:]):
                if wrong not in COMMON:
                    made[wrong] = word
    return made
