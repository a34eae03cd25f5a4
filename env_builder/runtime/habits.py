"""How the user of one episode behaves, drawn by seed from how people of its family did: the perturbation `habits`.

In: the habits of a service (`env_builder/habits.py`): family -> row, "" for all families; a seed. Out: the `UserHabits` of one
episode. No habit invents or alters a fact: a user tells its own turns earlier or gives up sooner, and typing errors are made in
common English words alone. A family without a row has that of the whole service, if there is one.

    leaves   [[n, share], …]: of the people who had said n turns in a row that told nothing new, those who left then, unserved
    volunteers {argument: share}: of the people who told its value, those who did before it was asked for
    aside    {stock words: share}: of the people who answered a question with these words ("No.", "I don't know.") or with
             something else than was asked for, the latter
    typing   {"styles": [[small first letter, no full stop, people], …], "typos": share of common words}
"""

from __future__ import annotations

import random
from collections.abc import Mapping
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
    return UserHabits(own, patience, volunteers, row["aside"], small, unmarked, row["typing"]["typos"])


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
