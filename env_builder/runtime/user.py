"""The scripted user of a many-turn task: what its session's user said, told when it was told there.

In: the task's opening and `user` row (docs/environment.md), and what the agent says. Out: the user's words, or None.

- An agent that says what the recorded one said hears what that one heard, word for word and in order.
- Any other is answered by what it asks: the turn whose question had these words; a told one again; a yes to what was wanted and
  a no to what differs; what comes next in order to a question that names nothing. A turn that nobody had to ask for is
  told once all before it are. Wrong facts are corrected by words that were said before; where nothing new is told for too long,
  the user leaves.

Nothing is invented: every answer is a turn of the script, a part of what was told before, or one of the `STOCK` words, which
hold no facts; and what the user learnt from the agent alone is said only to an agent that says it. Sees: words, facts, shapes
(asking.py). Does not see: what a question means beyond its words; a name or a word that is stated wrongly.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from .asking import agreeing, chooses, confirms, granted, opens, question, sentences, shape, stated, telling
from .words import Fact, facts_in

YES, NO, UNSURE, HEARD, LEAVES = "Yes.", "No.", "I don't know.", "OK.", "I'll leave it at that. Goodbye."
STOCK = (YES, NO, UNSURE, HEARD, LEAVES)
"""Words of the user that no session gives."""
COVER = 0.4
"""Share of a question's telling words, by weight, that must ask for what is told."""
WANTED = 0.6
"""Share of the words of a question for a yes that the user's own words must hold."""
OTHER = 100
"""Hundredths: weight of a word that does not ask for it."""
GONE = -1
OPENING = -1
"""Place of what was said before the agent's first move."""


class Said(NamedTuple):
    """How far a user has come: all of it that changes."""

    told: int = 0
    """Which turns were said, a bit each."""
    idle: int = 0
    """Answers in a row that told nothing new; `GONE`: the user has left."""
    at: int = 0
    """How many of the recorded agent's words the agent has said, in order."""


class Line(NamedTuple):
    """One turn of the script."""

    text: str
    when: str
    """`asked`, `confirmed` (a yes or a no), `unasked`."""
    asks: Mapping[str, float]
    """Words that ask for it, with their weight."""
    tells: bool
    """Does it tell facts of the user's own?"""
    learnt: frozenset[Fact]
    """Facts in it that the agent had told the user."""


class ScriptedUser:
    """The user of one task; immutable, so that forks share it and keep only their own `Said`."""

    __slots__ = (
        "_agrees", "_answers", "_before", "_full", "_index", "_known", "_learnt", "_lines",
        "_own", "_patience", "_places", "_shapes", "_wants")

    def __init__(self, row: Mapping[str, Any], opening: Sequence[Mapping[str, str]] = ()) -> None:
        turns, script = row["turns"], row.get("script")
        self._lines = tuple(
            Line(text, one["when"], one["asks"], bool(one["tells"]), _facts(one["learnt"]))
            for text, one in zip(turns, script or (), strict=script is not None))
        said = [message["content"] for message in opening if message["role"] == "user"]
        self._before = Line("\n".join(said), "asked", row.get("asks", {}), True, frozenset())
        self._answers = _answers(turns, script, row.get("after", ()))
        self._places: dict[str, list[int]] = {}
        for place, (text, _, _) in enumerate(self._answers):
            self._places.setdefault(text, []).append(place)
        self._wants = _facts(row.get("wants", ()))
        self._known = self._wants | _facts(row.get("seen", ()))
        self._shapes = {shape(fact) for fact in self._wants} - {None}
        self._index: dict[str, list[tuple[int, int]]] = {}
        for place, line in ((OPENING, self._before), *enumerate(self._lines)):
            for word, weight in line.asks.items():
                self._index.setdefault(word, []).append((place, round(100 * weight)))
        self._learnt = tuple(place for place, line in enumerate(self._lines) if line.learnt)
        heard = [words for one in script or () for words in one["heard"]]
        self._own = telling("\n".join([*said, *turns, *heard]))
        self._agrees = self._own.union(row.get("agreed", ()))
        self._patience = row.get("patience")
        self._full = (1 << len(turns)) - 1

    def reply(self, said: Said, text: str) -> tuple[Said, str | None]:
        """How far the user has come then, and the answer to `text`; None where the user says nothing: it waits, or is done."""
        if said.idle == GONE:
            return said, None
        if not self._lines:  # a script that tells nothing but the words: in order, whatever is said
            return self._next(said)
        at, answers = said.at, self._answers
        if at < len(answers) and answers[at][0] == text:
            return Said(said.told | answers[at][2], 0, at + 1), answers[at][1]
        for place in self._places.get(text, ()):
            answer, bits = answers[place][1:]
            if place > at and bits and not said.told & bits and self._follows(said.told, bits):
                return Said(said.told | bits, 0, place + 1), answer
        return self._improvise(said, text)

    def _next(self, said: Said) -> tuple[Said, str | None]:
        if said.at >= len(self._answers):
            return said, None
        _, text, bits = self._answers[said.at]
        return Said(said.told | bits, 0, said.at + 1), text

    def _follows(self, told: int, bits: int) -> bool:
        """Was everything told that the script tells before these turns?"""
        before = (bits & -bits) - 1
        return all(told >> place & 1 or not line.tells for place, line in enumerate(self._lines) if before >> place & 1)

    def _improvise(self, said: Said, text: str) -> tuple[Said, str | None]:
        facts = stated(text)
        asked = question(text)
        asks_back = bool(asked) and confirms(asked) and not chooses(asked)
        wrong = self._wrong(facts, asks_back) if facts else frozenset()
        if wrong:
            return self._idle(said, " ".join([NO, *self._right(said.told, wrong)]))
        place = self._elicited(said.told, asked, facts, asks_back) if asked else self._volunteered(said.told)
        if place is not None:
            return self._tell(said, place)
        if not asked:
            return (said, None) if said.told == self._full else self._idle(said, HEARD)
        return self._idle(said, self._again(said.told, asked, facts, asks_back))

    def _wrong(self, facts: frozenset[Fact], asks_back: bool) -> frozenset[str]:
        """Shapes of the user's facts in whose place the text states others that nobody has ever seen."""
        shapes = {form for fact in facts - self._known if (form := shape(fact)) in self._shapes}
        if not shapes or asks_back:
            return frozenset(form for form in shapes if form)
        right = {shape(fact) for fact in facts & self._wants}
        return frozenset(form for form in shapes if form and form not in right and form != "date")

    def _right(self, told: int, shapes: frozenset[str]) -> list[str]:
        """The words said so far that state the user's facts of these shapes."""
        said = [self._before.text, *(line.text for place, line in enumerate(self._lines) if told >> place & 1)]
        found = (one for text in said for one in sentences(text)
                 if any(shape(fact) in shapes and fact in self._wants for fact in stated(one)))
        return list(dict.fromkeys(found))[:1]

    def _elicited(self, told: int, asked: str, facts: frozenset[Fact], asks_back: bool) -> int | None:
        """The turn that the question asks for, of those not told; the next in order where it names nothing."""
        words = telling(asked)
        covers = self._covers(words)
        best, found = COVER, None
        for place in sorted({*covers, *self._learnt}) if facts else sorted(covers):
            line = self._lines[place] if place >= 0 else None
            if line is None or told >> place & 1 or (line.when == "confirmed" and not asks_back) or (
                    line.learnt and line.learnt.isdisjoint(facts)):
                continue
            cover = 1.0 if line.learnt else covers[place]
            if cover > best or (found is None and cover == best):
                best, found = cover, place
        if found is not None or covers.get(OPENING, 0.0) >= COVER:
            return found
        if opens(asked):
            kinds = ("confirmed",) if asks_back else ("asked", "unasked")
            first = next((place for place, line in self._left(told, facts) if line.when in kinds), None)
            return None if first is None or self._closes_early(told, first) else first
        if asks_back:
            return self._agreed(told, asked, words, facts)
        return None

    def _covers(self, words: frozenset[str]) -> dict[int, float]:
        """Of each line that words of the question ask for, their share of it by weight."""
        own: dict[int, int] = {}  # whole numbers, whose sum hangs on no order
        others: dict[int, int] = {}
        for word in words:
            for place, weight in self._index.get(word, ()):
                own[place] = own.get(place, 0) + weight
                others[place] = others.get(place, OTHER * len(words)) - OTHER
        return {place: weight / (weight + others[place]) for place, weight in own.items()}

    def _volunteered(self, told: int) -> int | None:
        """The turn that comes by itself: the first that is left of those that tell something or that nobody asks for."""
        left = [(place, line) for place, line in self._left(told, frozenset()) if line.tells or line.when == "unasked"]
        if not left or left[0][1].when != "unasked":
            return None
        return None if self._closes_early(told, left[0][0]) else left[0][0]

    def _closes_early(self, told: int, place: int) -> bool:
        """Is it the last turn, that tells nothing, while there is something left to say yes or no to?"""
        return place == len(self._lines) - 1 and not self._lines[place].tells and any(
            line.when == "confirmed" for _, line in self._left(told, frozenset()))

    def _left(self, told: int, facts: frozenset[Fact]) -> Iterable[tuple[int, Line]]:
        """The turns that may still be told to an agent that has just stated these facts."""
        return ((place, line) for place, line in enumerate(self._lines)
                if not told >> place & 1 and (not line.learnt or not line.learnt.isdisjoint(facts)))

    def _agreed(self, told: int, asked: str, words: frozenset[str], facts: frozenset[Fact]) -> int | None:
        """The next yes or no that tells nothing, to a question in words of the session or such that users say yes to."""
        if 2 * len(words & self._agrees) <= len(words) and (facts or agreeing(asked)):
            return None
        return next((place for place, line in self._left(told, facts) if line.when == "confirmed" and not line.tells), None)

    def _again(self, told: int, asked: str, facts: frozenset[Fact], asks_back: bool) -> str:
        """What to say to a question that no turn is left for."""
        words = telling(asked)
        if asks_back and not facts and not agreeing(asked):
            return YES
        if asks_back:
            wanted = len(words & self._own) >= WANTED * len(words) and (not facts or not facts.isdisjoint(self._wants))
            return YES if wanted else NO
        covers = self._covers(words)
        told_lines = ((cover, place) for place, cover in covers.items() if place == OPENING or (
            told >> place & 1 and self._lines[place].when == "asked"))
        best, place = max(told_lines, default=(0.0, OPENING))
        if best >= COVER:
            return (self._lines[place] if place >= 0 else self._before).text
        return NO if "else" in asked.lower() else UNSURE

    def _tell(self, said: Said, place: int) -> tuple[Said, str]:
        return Said(said.told | 1 << place, 0, said.at), self._lines[place].text

    def _idle(self, said: Said, text: str) -> tuple[Said, str]:
        """An answer that tells nothing new; the last one where the user has had enough of it."""
        if self._patience is None or said.idle + 1 < self._patience:
            return said._replace(idle=said.idle + 1), text
        last = self._lines[-1]
        closing = last.text if last.when == "unasked" and not last.tells and not last.learnt else LEAVES
        return said._replace(idle=GONE), closing


_ASKS = """\
You play the user of a service, in a conversation. Say the user's next words in your own: the same meaning, mood and language,
every number, date, name and id as it stands, nothing added and nothing left out. Reply with the words alone.

The agent said:
{heard}

The user's next words:
{words}
"""


def reworded(ask: Callable[[str], str], words: str, heard: str) -> str:
    """The words as a model says them, where it states just the same; else the words themselves."""
    answer = ask(_ASKS.format(heard=heard, words=words)).strip()
    return answer if agrees(words, answer) else words


def agrees(words: str, reworded: str) -> bool:
    """Does a paraphrase state just the facts, names, yes or no of the words that it stands for?"""
    if not reworded.strip():
        return False
    return (facts_in(words) == facts_in(reworded) and stated(words) == stated(reworded)
            and set(_NUMBERS.findall(words.lower())) == set(_NUMBERS.findall(reworded.lower()))
            and granted(words) == granted(reworded) and _names(reworded) <= _all(words) and _names(words) <= _all(reworded))


def _names(text: str) -> set[str]:
    """Words with a capital that begin no sentence."""
    return {name.casefold() for one in sentences(text) for word in one.split()[1:]
            if (name := word.strip(_MARKS))[:1].isupper() and name.partition("'")[0] != "I"}


def _all(text: str) -> set[str]:
    return {word.strip(_MARKS).casefold() for word in text.split()}


_NUMBERS = re.compile(
    r"\d+|\b(?:two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|hundred|thousand|half|twice|first|second|third|fourth|fifth"
    r"|sixth|seventh|eighth|ninth|tenth)\b")
_MARKS = ".,;:!?\"'()[]{}*_"


def _facts(pairs: Iterable[Sequence[str]]) -> frozenset[Fact]:
    return frozenset((kind, value) for kind, value in pairs)


def _answers(
    turns: Sequence[str], script: Sequence[Mapping[str, Any]] | None, after: Iterable[str]
) -> list[tuple[str, Any, int]]:
    """(the recorded agent's words, the answer to them or None, bits of the turns that it says), in order.

    What the user said before the agent said another word is one answer."""
    if script is None:
        return [("", text, 1 << place) for place, text in enumerate(turns)]
    found: list[tuple[str, Any, int]] = []
    left, bits = [], 0  # what the user said before the agent said anything comes with the first answer, however late
    for place, (text, one) in enumerate(zip(turns, script, strict=True)):
        left.append(text)
        bits |= 1 << place
        if one["heard"]:
            found += [(words, None, 0) for words in one["heard"][:-1]]
            found.append((one["heard"][-1], "\n".join(left), bits))
        elif found:
            found[-1] = (found[-1][0], "\n".join([found[-1][1], *left]), found[-1][2] | bits)
        else:
            continue
        left, bits = [], 0
    said = list(after)
    if left and said:
        found.append((said.pop(0), "\n".join(left), bits))
    return found + [(words, None, 0) for words in said]
