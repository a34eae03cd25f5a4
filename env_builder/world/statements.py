"""Arguments that take statements of a formal language: SQL, GraphQL, a shell.

In: calls with their arguments. Out: the arguments, and whether one of their statements begins with a word of changing. Such a
text is no wording: what is written decides what is done. Sees: first words, and signs that sentences do without. Does not see:
grammar, a change that a statement makes further on ("git push"), markup, which is text all the same.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable

from env_builder.world.calls import LoggedCall

FORMAL, FEW_BEGINNINGS, SAME_BEGINNINGS = 0.5, 12, 0.8
"""Share of an argument's values with a sign of formal languages, and of those that begin with one of its so many commonest
first words, from which they are statements."""
_SIGN = re.compile(r"[={}|;*\\]|\s--?\w")
_FIRST_WORD = re.compile(r"\W*(\w+)")

Argument = tuple[str, str]
"""(tool, argument)."""


def statements(calls: Iterable[LoggedCall]) -> dict[Argument, frozenset[str]]:
    """Return the arguments of several words that take statements, with the first words of these in small letters."""
    texts: dict[Argument, list[str]] = {}
    for call in calls:
        for argument, value in call.arguments.items():
            if isinstance(value, str) and value.strip():
                texts.setdefault((call.tool, argument), []).append(value.strip())
    return {where: frozenset(map(first_word, own)) for where, own in texts.items() if _are_statements(own)}


def begin_with(calls: Iterable[LoggedCall], words: Collection[str]) -> bool:
    """Return whether a statement that the calls take begins with one of these words."""
    return any(not beginnings.isdisjoint(words) for beginnings in statements(calls).values())


def _are_statements(texts: list[str]) -> bool:
    n_formal = sum(_SIGN.search(text) is not None and text[0] != "<" and len(text.split()) > 1 for text in texts)
    usual = sum(n for _, n in Counter(map(first_word, texts)).most_common(FEW_BEGINNINGS))
    return n_formal >= FORMAL * len(texts) and usual >= SAME_BEGINNINGS * len(texts)


def first_word(text: str) -> str:
    """Return the first word of a statement in small letters."""
    first = _FIRST_WORD.match(text)
    return first[1].lower() if first else ""
