"""What a question asks for: the fields of tools' answers that the sessions of a family tell the user.

In: witnesses by family. Out: for a session, the facts that answer its question (`Questions.answer`). A *field* is a tool and a
place in its answer: a path of names (lists count as one place) where the answer is a JSON or Python object, else the n-th fact
of the text. A field belongs to the answer if `MOST_TELL` of at least `FEWEST` sessions that are not known to be bad tell it
after the tool gave it, and nobody had named it before; also if the session tells it in a sentence in which others tell it. So
the words come from what the tools answered in the session itself; agents only show which field was asked for.

Sees: numbers, dates and ids anywhere; words where a field takes few values ("delivered"). Does not see: what the agent worked
out (a sum, a count), a field that agents leave out as often as they tell it, and names, whose values rarely recur.
"""

from __future__ import annotations

import ast
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from collections.abc import Set as AbstractSet
from functools import cached_property, lru_cache
from typing import Any, NamedTuple

from env_builder.rewards.witness import SAY, Witness
from env_builder.runtime.words import Fact, facts_in, forms_of, heard_in
from env_builder.world.calls import LoggedCall

FEWEST = 4
"""Sessions in which a field was answered, from which one can say whether it is told."""
MOST_TELL = 0.7
"""Share of them that tell it, from which it belongs to the answer."""
MOST_FACTS = 12
"""Facts of one answer."""
FEW_VALUES = 0.5
"""Distinct values of a field, as a share of its sessions, up to which its words are states and no names."""
LONGEST_WORDS = 4
_SENTENCE = re.compile(r"(?:[^.!?\n]|[.](?=\d))+")
_STATE = re.compile(r"[^\W\d_]{2,}(?:[ _-][^\W\d_]{2,})*")

Field = tuple[str, str]
"""(tool, place in its answer)."""


class Telling(NamedTuple):
    """What a session did with a field."""

    facts: frozenset[Fact]
    """Of its value."""
    is_told: bool
    """Were they all told?"""
    phrases: frozenset[str]
    """Sentences that told one, numbers and the like masked."""


TellingByField = dict[Field, Telling]


class FieldUse(NamedTuple):
    """How a family's sessions treat a field."""

    n_sessions: int
    n_told: int
    values: frozenset[Fact]

    @property
    def belongs(self) -> bool:
        """Do most sessions tell it?"""
        return self.n_sessions >= FEWEST and self.n_told >= MOST_TELL * self.n_sessions


class Questions:
    """Which fields each family's sessions tell."""

    def __init__(self, by_family: dict[str, list[Witness]]) -> None:
        """`by_family`: sessions of each family that are not known to be bad."""
        self._tellings: dict[str, TellingByField] = {}
        self._asked_fields: dict[str, frozenset[Field]] = {}
        for family, sessions in sorted(by_family.items()):
            self._asked_fields[family] = self._fields_of(sessions)
        everybody = {one.session_id: one for sessions in by_family.values() for one in sessions}
        counts = Counter((field, phrase) for _, one in sorted(everybody.items())
                         for field, telling in self._tellings_in(one).items() if telling.is_told for phrase in telling.phrases)
        self._stock = {pair for pair, n in counts.items() if n >= FEWEST}
        self._asking = frozenset(family for family, sessions in by_family.items() if _only_asks(sessions))
        self._own_stock = {family: self._stock_of(sessions) for family, sessions in sorted(by_family.items())}

    def answer(self, family: str, session: Witness) -> list[Fact]:
        """Return the facts that answer the session's question, sorted; empty if nothing, or not all of it, was told there."""
        return self._answer_in(session, self._asked_fields.get(family, frozenset()), self._stock)

    def answer_to(self, kind: str, session: Witness) -> list[Fact]:
        """Return the facts that answer a goal of this kind among others: only fields and sentences of the kind itself count.

        Without a kind, it may be any that a question of its own asks for, and whose sessions change nothing.
        """
        kinds = [kind] if kind else [name for name in self._asked_fields if name in self._asking]
        fields = frozenset[Field]().union(*(self._asked_fields.get(name, frozenset()) for name in kinds))
        stock = frozenset[tuple[Field, str]]().union(*(self._own_stock.get(name, frozenset()) for name in kinds))
        return self._answer_in(session, fields, stock)

    def _answer_in(self, session: Witness, fields: AbstractSet[Field], stock: AbstractSet[tuple[Field, str]]) -> list[Fact]:
        """Return the facts of these fields that the session told, and of those that it told in a sentence of the stock."""
        wanted = [telling.facts for field, telling in sorted(self._tellings_in(session).items()) if telling.is_told and (
            field in fields or any((field, phrase) in stock for phrase in telling.phrases))]
        return sorted(frozenset[Fact]().union(*wanted))[:MOST_FACTS]

    def _stock_of(self, sessions: list[Witness]) -> frozenset[tuple[Field, str]]:
        """Return the fields with the sentences that tell them in these sessions, if they are a service's stock."""
        pairs = ((field, phrase) for one in sessions for field, telling in self._tellings_in(one).items()
                if telling.is_told for phrase in telling.phrases)
        return frozenset(pair for pair in pairs if pair in self._stock)

    def _fields_of(self, sessions: list[Witness]) -> frozenset[Field]:
        n_sessions, n_told = Counter[Field](), Counter[Field]()
        values: dict[Field, set[Fact]] = defaultdict(set)
        for session in sessions:
            for field, telling in self._tellings_in(session).items():
                n_sessions[field] += 1
                n_told[field] += telling.is_told
                values[field] |= telling.facts
        uses = {field: FieldUse(n, n_told[field], frozenset(values[field])) for field, n in n_sessions.items()}
        return frozenset(field for field, use in uses.items() if use.belongs and _tells_a_state(use))

    def _tellings_in(self, session: Witness) -> TellingByField:
        if session.session_id not in self._tellings:
            rows = session.remembered("tellings", None, lambda: _tellings_of(session))
            self._tellings[session.session_id] = {
                (tool, place): Telling(frozenset(map(_fact, facts)), is_told, frozenset(phrases))
                for tool, place, facts, is_told, phrases in rows}
        return self._tellings[session.session_id]


def _only_asks(sessions: list[Witness]) -> bool:
    """Return whether no session of a family made a write call or declined."""
    return len(sessions) >= FEWEST and not any(one.changes or one.declined for one in sessions)


def _tells_a_state(use: FieldUse) -> bool:
    """Return whether words of the field are states, which recur, and no names; numbers, dates and ids always count."""
    return all(kind != "words" for kind, _ in use.values) or len(use.values) <= max(2, FEW_VALUES * use.n_sessions)


def _fact(fact: list[str]) -> Fact:
    return fact[0], fact[1]


def _tellings_of(session: Witness) -> list[list[Any]]:
    """[tool, place, *Telling] of the fields that the session's answers gave, each with whether the agent stated it later."""
    given = frozenset[Fact]().union(*(_forms(heard_in(text)) for text in session.given_before))
    own = " ".join(" ".join(session.given_before).casefold().split())
    tellings: dict[Field, list[Any]] = {}
    later: tuple[int, _LaterWords] | None = None
    for call in session.calls:
        if call.failed:
            continue
        texts = [step.text for step in session.steps if step.tool == SAY and step.position > call.position]
        if later is None or later[0] != len(texts):
            later = len(texts), _LaterWords("\n".join(texts))
        after = later[1]
        for place, facts in _fields(call):
            new = {fact for fact in facts if not (fact[1] in own if fact[0] == "words" else _forms_of(fact) & given)}
            if new:
                is_told = all(fact[1] in after.plain if fact[0] == "words" else _forms_of(fact) & after.heard for fact in new)
                tellings[call.tool, place] = [sorted(new), bool(is_told), after.phrases(new) if is_told else []]
    return [[*field, *telling] for field, telling in tellings.items()]


class _LaterWords:
    """What an agent said after a call."""

    def __init__(self, words: str) -> None:
        self.heard, self.plain = heard_in(words), f" {' '.join(words.casefold().split())} "
        self._words = words

    @cached_property
    def _sentences(self) -> list[tuple[frozenset[Fact], str]]:
        """Facts of each sentence, and its text with numbers and the like masked."""
        return [(heard_in(sentence),
                 " ".join("0" if any(map(str.isdigit, word)) else word for word in sentence.casefold().split()))
                for sentence in _SENTENCE.findall(self._words)]

    def phrases(self, facts: Iterable[Fact]) -> list[str]:
        """Return the sentences that tell one of the facts, masked, sorted; words of a state count as themselves."""
        forms = frozenset[Fact]().union(*(_forms_of(fact) for fact in facts if fact[0] != "words"))
        return sorted({masked for heard, masked in self._sentences if not forms.isdisjoint(heard)})


_forms_of = lru_cache(1 << 14)(forms_of)


def _forms(facts: frozenset[Fact]) -> frozenset[Fact]:
    return facts.union(*(_forms_of(fact) for fact in facts if fact[0] != "day"))


def _fields(call: LoggedCall) -> Iterator[tuple[str, list[Fact]]]:
    """Yield (place, facts) of a call's answer."""
    value = _object(call)
    if value is None:
        for number, fact in enumerate(_in_order(call.content)):
            yield f"#{number}", [fact]
        return
    by_path: dict[str, list[Fact]] = defaultdict(list)
    for path, leaf in _leaves(value, ""):
        by_path[path] += _facts_of(str(leaf), type(leaf).__name__)
    for path, facts in by_path.items():
        if facts:
            yield path, facts


def _object(call: LoggedCall) -> Any:
    """Return the answer as an object or a list, also in Python's notation; None if it is text."""
    if isinstance(call.parsed, dict | list):
        return call.parsed
    if call.content[:1] in "{[(":
        try:
            value = ast.literal_eval(call.content)
        except (ValueError, SyntaxError, MemoryError, RecursionError):
            return None
        return value if isinstance(value, dict | list | tuple) else None
    return None


def _leaves(value: Any, path: str) -> Iterator[tuple[str, Any]]:
    if isinstance(value, dict):
        for name, inner in value.items():
            yield from _leaves(inner, f"{path}/{name}")
    elif isinstance(value, list | tuple):
        for inner in value:
            yield from _leaves(inner, f"{path}/")
    else:
        yield path, value


@lru_cache(1 << 14)
def _facts_of(text: str, kind: str) -> list[Fact]:
    """Facts of a single value, by its text; answers hold the same ones again and again."""
    if kind in ("bool", "NoneType"):
        return []
    facts = sorted(facts_in(text))
    if facts:
        return facts[:1] if kind in ("int", "float") else facts
    is_state = kind == "str" and len(text.split()) <= LONGEST_WORDS and _STATE.fullmatch(text)
    return [("words", " ".join(text.casefold().replace("_", " ").split()))] if is_state else []


def _in_order(text: str) -> Iterable[Fact]:
    """Facts of a text, word after word."""
    for word in text.split()[:200]:
        yield from sorted(facts_in(word))
