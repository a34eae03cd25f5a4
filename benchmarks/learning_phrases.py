"""What the small agent of learning.py can say: phrases that the logs' agent uses, with gaps that are filled by copying.

Utterances that begin alike (three words, any with a digit being the same) are one phrase: its words are those that most of them
have, and what stands between is a gap.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable
from typing import NamedTuple

BEGINNING = 3
LEAST = 10
"""Utterances of a phrase."""
OFTEN = 0.8
"""Share of a phrase's utterances that hold its words."""
_BETWEEN = "\n"
"""Between pieces, where a gap may begin and end: never within a number."""
_PIECE = re.compile(r"[#\w][\w@.\-+'%]*\w|\w|[^\w\s]")


class Phrase(NamedTuple):
    """Words, with None for a gap."""

    name: str
    pieces: tuple[str | None, ...]

    @property
    def n_gaps(self) -> int:
        """Gaps to fill."""
        return self.pieces.count(None)

    def said(self, values: Iterable[str]) -> str:
        """Return the phrase with its gaps filled, in order."""
        given = iter(values)
        text = " ".join(next(given, "") if piece is None else piece for piece in self.pieces)
        return re.sub(r"\s+([.,;:!?)])", r"\1", text.replace("( ", "("))

    def gaps_of(self, text: str) -> list[str] | None:
        """Return what stands in the gaps of an utterance; None where it does not fit."""
        parts = ["(.+?)" if piece is None else re.escape(piece) for piece in self.pieces]
        found = re.fullmatch(_BETWEEN.join(parts), _BETWEEN.join(_PIECE.findall(text)), re.DOTALL)
        return [re.sub(r"\s+([.,;:!?)])", r"\1", part.replace(_BETWEEN, " ")) for part in found.groups()] if found else None


class Phrases:
    """All phrases of a log's agent."""

    def __init__(self, utterances: Iterable[str], least: int = LEAST) -> None:
        alike: dict[str, list[list[str]]] = defaultdict(list)
        for text in utterances:
            alike[_beginning(text)].append(_PIECE.findall(text))
        self.by_name: dict[str, Phrase] = {}
        for name, known in sorted(alike.items()):
            if len(known) >= least:
                self.by_name[name] = _phrase(name, known)

    def name_of(self, text: str) -> str | None:
        """Return the phrase that an utterance is; None where it is none that is known."""
        name = _beginning(text)
        return name if name in self.by_name else None


def _beginning(text: str) -> str:
    shown = ["#" if any(sign.isdigit() for sign in word) else word for word in text.split()[:BEGINNING]]
    return "say: " + " ".join(shown)


def _phrase(name: str, known: list[list[str]]) -> Phrase:
    common = {piece for piece, n in Counter(piece for one in known for piece in set(one)).items() if n >= OFTEN * len(known)}
    forms = Counter(tuple(_gapped(one, common)) for one in known)
    return Phrase(name, max(forms, key=lambda form: (forms[form], form.count(None), str(form))))


def _gapped(pieces: list[str], common: set[str]) -> Iterable[str | None]:
    last: str | None = ""
    for piece in pieces:
        now = piece if piece in common else None
        if now is not None or last is not None:
            yield now
        last = now
