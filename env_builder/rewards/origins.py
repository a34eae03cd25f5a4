"""Where the values that a session writes come from: can an agent that has not seen the log know them?

In: a session as `Witness`, the goal of its task, and how the service's sessions use each argument. Out: a `ValueOrigin` for
each value of its write calls. A value is known if the goal or the user states it, if an earlier answer shows it (a value that
the call itself named teaches nothing), if it is usual for the argument, or if it follows by a simple rule: a sum or
difference of numbers that were shown, a day that is named relative to now, words that were all stated.

Sees: ids, numbers and dates in any spelling of `runtime/words.py`, English number words, English words for days. Does not see:
values inside free text; whether a choice among usual values fits the words; that a rule gave the value only by accident.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator
from typing import Any, NamedTuple

from env_builder.rewards.witness import Witness
from env_builder.runtime.relevance import leaves
from env_builder.runtime.words import Fact, facts_in, forms_of
from env_builder.world.calls import LoggedCall
from env_builder.world.statements import Argument

NOWHERE = "nowhere"
FEWEST_USES = 3
"""Tasks that give an argument the same value, from which the value is usual."""
FEW_VALUES = 0.34
"""Distinct values of an argument, as a share of the tasks that give it, up to which its values are choices."""
MOST_WORDS = 0.75
"""Share of the words of a text that must have been stated, for the text to be made of them."""
TEXT = 4
"""Words between blanks from which a value is a text; of the parts of a name ("red-2024-03-11") all must have been stated."""
SQUEEZED = 5
"""Letters and digits of a value from which its punctuation does not matter."""
MOST_NUMBERS = 60
"""Numbers shown last that are added up."""
_WORD = re.compile(r"[^\W_]+")
_LITERAL = re.compile(r"""'([^']*)'|"([^"]*)"|([^\s'"(),;=]*\d[^\s'"(),;=]*)""")
"""What is in quotes in a statement, or holds a digit."""
_NUMBER_WORDS = {word: str(n) for n, word in enumerate((
    "zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"))} | {
    "a": "1", "an": "1", "both": "2", "couple": "2", "dozen": "12"}
_INSTANT = re.compile(r"(\d{4}-\d{2}-\d{2})([T ]\d{1,2}:\d{2}(:\d{2})?.*)?|\d{1,2}:\d{2}(:\d{2})?")
_RELATIVE = re.compile(
    r"\b(?:today|tonight|tomorrow|yesterday|now|noon|midnight|morning|afternoon|evening|next|coming|later|earlier|after|before|"
    r"days?|weeks?|months?|hours?|minutes?|(?:mon|tues|wednes|thurs|fri|satur|sun)day|"
    r"\d{1,2}(?::\d{2})?\s?[ap]\.?m|\d{1,2}:\d{2}|o'clock)\b", re.IGNORECASE)


class ValueOrigin(NamedTuple):
    """Where a value of a write call comes from."""

    tool: str
    argument: str
    value: str
    source: str
    """`goal`, `user`, `answer TOOL`, `usual`, `computed`, `clock`, `words`, or `nowhere`."""


class UsualValues:
    """Values that the tasks of a service give to arguments again and again."""

    def __init__(self, sessions: Iterable[tuple[str, Witness]], statements: Collection[Argument] = ()) -> None:
        """`sessions`: (task id, session); `statements`: arguments that take statements."""
        self.statements = statements
        by_task: dict[tuple[str, str], dict[str, set[str]]] = defaultdict(lambda: defaultdict(set))
        for task_id, session in sessions:
            for call in session.calls:
                for argument, value in _values(call, statements):
                    by_task[call.tool, argument][task_id].add(value)
        self._usual: set[tuple[str, str, str]] = set()
        for (tool, argument), values in by_task.items():
            counts = Counter(value for own in values.values() for value in own)
            if len(counts) <= FEW_VALUES * len(values):
                self._usual |= {(tool, argument, value) for value, n in counts.items() if n >= FEWEST_USES}

    def __contains__(self, use: tuple[str, str, str]) -> bool:
        return use in self._usual


class _Heard:
    """What a session has shown so far."""

    def __init__(self, goal: str) -> None:
        self._texts: list[tuple[str, str, frozenset[str]]] = []
        """(source, text in small letters, values that the question to it named)."""
        self._squeezed: list[str] = []
        self._facts: dict[Fact, str] = {}
        self._words: set[str] = set()
        self._numbers: list[float] = []
        self.add("goal", goal)

    def add(self, source: str, text: str, named: frozenset[str] = frozenset()) -> None:
        small = text.casefold()
        self._texts.append((source, small, named))
        self._squeezed.append("".join(_WORD.findall(small)))
        words = set(_WORD.findall(small)) - {word for value in named for word in _WORD.findall(value)}
        self._words |= words | {_NUMBER_WORDS[word] for word in words & _NUMBER_WORDS.keys()}
        own = {form for value in named for fact in facts_in(value) for form in forms_of(fact)}
        for fact in sorted(facts_in(text)):
            if fact not in own:
                self._facts.setdefault(fact, source)
                self._numbers += [float(fact[1])] if fact[0] == "number" else []
        self._numbers = self._numbers[-MOST_NUMBERS:]

    def source_of(self, value: str) -> str | None:
        """Return where a value was stated or what it follows from, None if nobody knows it."""
        return self._stated(value) or self._by_facts(value) or self._by_rule(value)

    def _stated(self, value: str) -> str | None:
        squeezed = "".join(_WORD.findall(value))
        for (source, text, named), plain in zip(self._texts, self._squeezed, strict=True):
            if value not in named and (_holds(text, value) or (len(squeezed) >= SQUEEZED and squeezed in plain)):
                return source
        return None

    def _by_facts(self, value: str) -> str | None:
        facts = facts_in(value)
        sources = [next((self._facts[form] for form in sorted(forms_of(fact)) if form in self._facts), None) for fact in facts]
        is_all = len(_WORD.findall(value)) <= 3 * len(facts)
        return sorted(source for source in sources if source)[0] if facts and all(sources) and is_all else None

    def _by_rule(self, value: str) -> str | None:
        words = _WORD.findall(value)
        if not words:
            return "words"
        if _INSTANT.fullmatch(value):
            return "clock" if any(_RELATIVE.search(text) for source, text, _ in self._texts) else None
        if _is_number(value) and self._is_computed(float(value)):
            return "computed"
        share = sum(word in self._words for word in words) / len(words)
        return "words" if share >= (MOST_WORDS if len(value.split()) >= TEXT else 1) else None

    def _is_computed(self, number: float) -> bool:
        numbers = self._numbers
        if abs(sum(numbers) - number) < 0.005:
            return True
        pairs = ((one, two) for at, one in enumerate(numbers) for two in numbers[at + 1:])
        return any(abs(result - abs(number)) < 0.005 for one, two in pairs for result in (one + two, abs(one - two), one * two))


def origins_of(session: Witness, goal: str, acting: Iterable[LoggedCall], usual: UsualValues) -> list[ValueOrigin]:
    """Return where each value of the calls `acting` of a session comes from, in order."""
    writes = [call.position for call in acting]
    formal = usual.statements
    key = [goal, writes, *sorted(map(list, formal))]
    sources = session.remembered("origins", key, lambda: _sources(session, goal, {*writes}, formal)) if writes else []
    return [ValueOrigin(tool, argument, value, source or ("usual" if (tool, argument, value) in usual else NOWHERE))
            for tool, argument, value, source in sources]


def _sources(session: Witness, goal: str, writes: set[int], formal: Collection[Argument]) -> list[list[str | None]]:
    """(tool, argument, value, source if anybody knows it) of each value of the calls at these positions, in order."""
    heard, sources = _Heard(goal), list[list[str | None]]()
    last = max(writes)
    for row in session.inputs:
        if isinstance(row, str):
            heard.add("user", row)
            continue
        values = _values(row, formal)
        if row.position in writes:
            sources += [[row.tool, argument, value, heard.source_of(value)] for argument, value in values]
        if row.position == last:
            break
        heard.add(f"answer {row.tool}", row.content, frozenset(value for _, value in values))
    return sources


def _values(call: LoggedCall, formal: Collection[Argument] = ()) -> list[tuple[str, str]]:
    """(argument, value in small letters) of the single values of a call, without yes and no.

    Of a statement they are what stands in quotes, and words with a digit: agents know the grammar, and read names in
    descriptions.
    """
    values = []
    for argument, value in call.arguments.items():
        texts = [_text(leaf) for leaf in leaves(value) if leaf is not None and not isinstance(leaf, bool)]
        if (call.tool, argument) in formal:
            texts = [part.strip("% ") for text in texts for parts in _LITERAL.findall(text) for part in parts]
        values += [(argument, text) for text in texts if text]
    return values


def _text(leaf: Any) -> str:
    text = str(leaf).strip().casefold()
    return text.removesuffix(".0") if isinstance(leaf, float) else text


def _holds(text: str, value: str) -> bool:
    """Whether a text holds a value as words of its own."""
    return any(not (_joins(text, at - 1, value[0]) or _joins(text, at + len(value), value[-1])) for at in _places(text, value))


def _places(text: str, value: str) -> Iterator[int]:
    at = text.find(value)
    while at >= 0:
        yield at
        at = text.find(value, at + 1)


def _joins(text: str, at: int, edge: str) -> bool:
    return 0 <= at < len(text) and text[at].isalnum() and edge.isalnum()


def _is_number(value: str) -> bool:
    return value.removeprefix("-").replace(".", "", 1).isdecimal()
