"""The conditions on which agents decline: those that logs bear out, those that only the instructions state, and required steps.

In: the evidence of all sessions. Out: a frame of `ConditionRow`. A condition that `conditions.learn` finds beyond chance is
`borne_out`, with the sentence of the instructions that names it. A sentence that states a rule, and that none of these bears
out, is `stated`: it belongs to the tool whose name or requests have its words, and to the field that it gives a value or a
bound of. A look that most sessions take before a tool acts, and that a sentence asks for, is a `step`.

Sees: words that a sentence shares with the names of tools and fields, their values, and users' requests. Does not see: what a
sentence means, synonyms, rules on which nobody declined, rules about what agents did not read, other languages than English."""

from __future__ import annotations

import hashlib
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal, NamedTuple

import polars as pl

from extractors.outcomes.conditions import (
    Condition,
    DecisionCase,
    ServiceCases,
    Test,
    Written,
    cases_by_service,
    holds_all,
    learn,
)
from extractors.outcomes.evidence import Evidence
from extractors.outcomes.fields import ABOUT
from extractors.outcomes.refusals import IDENTITY, INSTRUCTING, Step, rules_in, sentences_in, stems
from extractors.outcomes.steps import sessions_by_service
from warehouse.records import ConditionRow, frame

_TYPICAL, _RATHER = 0.25, 2.0
"""Share of a kind's requests with a word, and times that of other kinds, from which on the word belongs to the kind."""
_LETTERS = 5
"""First letters by which a word of a sentence is that of a tool or field."""
_NEAR = 3
"""Words between a field and its bound, at most."""
_DERIVED = re.compile(rf" minus |^the user|^the number|^days since the date|^{ABOUT}| is missing$")
"""Facts that no sentence names by themselves."""
_FIRST = re.compile(r"(?i)\b(?:before|first|confirm\w*|verif\w+|check\w*|identi\w+|authenticat\w+|on file|compare\w*)\b")
"""English words by which a sentence asks for a step before an act."""
_FEWEST, _USUAL = 6, 0.8
"""Sessions with a tool that acts, and share of them with a step before it, from which on it is one."""


class _Stated(NamedTuple):
    """What a sentence may mean of a field, with the cases on which it holds."""

    name: str
    """Of the fact."""
    text: str
    cases: list[DecisionCase]

    @property
    def share(self) -> float:
        """Return the share of these cases that were declined."""
        return sum(not case.acted for case in self.cases) / max(1, len(self.cases))


class _ToolWords(NamedTuple):
    """First letters of the words by which a sentence speaks of a tool."""

    name: frozenset[str]
    """Of its name alone."""
    every: frozenset[str]
    """Of its name, and of its requests more than of others'."""


def condition_rows(evidence: Evidence) -> pl.DataFrame:
    """Return the conditions of every kind of service, as a frame of `ConditionRow`."""
    rows: list[ConditionRow] = []
    steps = sessions_by_service(evidence)
    for service, cases in cases_by_service(evidence).items():
        words = _words_of_tools(cases.kinds)
        borne_out = {tool: learn(own, cases.written) for tool, own in sorted(cases.kinds.items())}
        settled = [_borne_out(service, tool, each, cases, words[tool]) for tool, own in borne_out.items() for each in own]
        stated = list(_stated_rows(service, cases, words, borne_out))
        settled = [_worded_alike(row, stated) for row in settled]
        sentences, sessions = {(row.tool, row.sentence) for row in settled}, list(steps[service].values())
        rows += [*settled, *(row for row in stated if (row.tool, row.sentence) not in sentences),
                 *_step_rows(service, sessions)]
    return frame(ConditionRow, rows).unique("condition_id", maintain_order=True).sort("service", "tool", "status", "condition")


def _row(service: str, tool: str, condition: str, sentence: str, status: Literal["borne_out", "stated", "step"],
         cases: Iterable[DecisionCase] = (), field: str = "") -> ConditionRow:
    sides = {acted: sorted({case.session for case in cases if case.acted == acted}) for acted in (True, False)}
    key = hashlib.sha256("\n".join((service, tool, status, condition, sentence)).encode()).hexdigest()
    return ConditionRow(
        condition_id=key[:16], service=service, tool=tool, status=status, condition=condition, field=field, sentence=sentence,
        declined_session_ids=sides[False], acted_session_ids=sides[True])


def _borne_out(service: str, tool: str, condition: Condition, cases: ServiceCases, words: _ToolWords) -> ConditionRow:
    held = [case for case in cases.kinds[tool] if holds_all(condition, case.facts)]
    named = [(_n_named(sentence, condition), len(_prefixes(sentence) & words.every), sentence) for sentence in cases.sentences]
    sentence = max(named, key=lambda each: each[:2], default=(0, 0, ""))
    text = " and ".join(map(_in_words, condition))
    return _row(service, tool, text, sentence[2] if sentence[0] else "", "borne_out", held, condition[0].name)


def _in_words(test: Test) -> str:
    if isinstance(test.value, bool):
        return test.name if test.value else f"not: {test.name}"
    return str(test)


def _worded_alike(row: ConditionRow, stated: Sequence[ConditionRow]) -> ConditionRow:
    """Return a condition with the sentence that states what holds in the same cases: another field may say the same."""
    sides = row.declined_session_ids, row.acted_session_ids
    alike = (each.sentence for each in stated
             if each.tool == row.tool and (each.declined_session_ids, each.acted_session_ids) == sides)
    return row.model_copy(update={"sentence": next(alike, row.sentence)})


def _n_named(sentence: str, condition: Condition) -> int:
    """Count the tests of a condition that a sentence names."""
    return sum(Written.of([sentence]).names(test) for test in condition)


def _words_of_tools(kinds: Mapping[str, Sequence[DecisionCase]]) -> dict[str, _ToolWords]:
    """Return the words of each tool's name that no other's has, and those that its requests hold more often than others."""
    shares = {tool: Counter({word: n / len(cases) for word, n in Counter(
        word for case in cases for word in {stem[:_LETTERS] for stem in case.words}).items()}) for tool, cases in kinds.items()}
    n_tools = Counter(word for tool in kinds for word in _prefixes(tool))
    words = {}
    for tool, own in shares.items():
        others = [other for name, other in shares.items() if name != tool]
        named = frozenset(word for word in _prefixes(tool) if n_tools[word] == 1)
        typical = frozenset(word for word, share in own.items() if share >= max(
            _TYPICAL, *(_RATHER * other[word] for other in others), 0.0))
        words[tool] = _ToolWords(named, named | typical)
    return words


def _prefixes(text: str) -> frozenset[str]:
    """Return the first letters of the words: "cancelled" is "cancel"."""
    return frozenset(stem[:_LETTERS] for stem in stems(text.replace("_", " ")))


def _stated_rows(service: str, cases: ServiceCases, words: Mapping[str, _ToolWords],
                 borne_out: Mapping[str, Sequence[Condition]]) -> Iterator[ConditionRow]:
    """Yield what sentences state of a tool and a field of which no condition is known, each by the clearest sentence."""
    clearest: dict[tuple[str, str], tuple[tuple[int, int], ConditionRow]] = {}
    for sentence in cases.sentences:
        tool = "" if IDENTITY.search(sentence) else _tool_of(sentence, words)
        stated = _named_most(sentence, tool, cases.kinds[tool]) if tool else None
        names = {test.name for condition in borne_out.get(tool, ()) for test in condition}
        if stated and stated.share and stated.name not in names:
            row = _row(service, tool, stated.text, sentence, "stated", stated.cases, stated.name)
            worth = len(_prefixes(sentence) & words[tool].name), -len(sentence)
            if (tool, stated.text) not in clearest or worth > clearest[tool, stated.text][0]:
                clearest[tool, stated.text] = worth, row
    yield from (row for _, row in clearest.values())


def _tool_of(sentence: str, words: Mapping[str, _ToolWords]) -> str:
    """Return the tool with the most words of its name, then of its requests, in a sentence; of several the one whose words come
    first; empty if none has any."""
    own = _prefixes(sentence)
    order = [stem for word in sentence.split() for stem in sorted(_prefixes(word))]
    shared = {tool: own & each.every for tool, each in sorted(words.items()) if own & each.every}
    return min(shared, key=lambda tool: (-len(own & words[tool].name), -len(shared[tool]), min(
        (place for place, stem in enumerate(order) if stem in shared[tool]), default=len(order))), default="")


def _named_most(sentence: str, tool: str, cases: Sequence[DecisionCase]) -> _Stated | None:
    """Return what a sentence states of the field that it names most clearly: by one of its values, else by a bound."""
    own = stems(sentence)
    values: dict[str, set[str | float]] = defaultdict(set)
    for case in cases:
        for name, fact in case.facts.items():
            read, _, field = name.rpartition(" ")[2].partition(".")
            if field and read != tool and not isinstance(fact, bool) and not _DERIVED.search(name):
                values[name].add(fact)
    best: tuple[tuple[bool, int, int], Test] | None = None
    for name, facts in sorted(values.items()):
        words = _prefixes(name.rpartition(".")[2]) & _prefixes(sentence)
        texts = sorted(fact for fact in facts if isinstance(fact, str) and stems(fact) and stems(fact) <= own
                       and not rules_in(fact))   # "never" is the rule's own word
        bounds = _bounds(sentence, words) if all(isinstance(fact, float) for fact in facts) else []
        tests = [Test(name, text) for text in texts[:1]] or [Test(name, bound, True) for bound in bounds]
        worth = bool(texts), len(words), -len(name)
        if tests and (best is None or worth > best[0]):
            best = worth, tests[0]
    if best is None:
        return None
    return max(_sides(best[1], [case for case in cases if best[1].name in case.facts]), key=lambda side: side.share)


def _bounds(sentence: str, words: frozenset[str]) -> list[float]:
    """Return the number nearest to one of the words in a sentence, if it is near enough to be theirs."""
    parts = sentence.split()
    places = [place for place, part in enumerate(parts) if _prefixes(part) & words]
    near = sorted((abs(place - other), number) for place, part in enumerate(parts) for number in Written.of([part]).numbers
                  for other in places if abs(place - other) <= _NEAR)
    return [near[0][1]] if near else []


def _sides(test: Test, cases: Sequence[DecisionCase]) -> Iterator[_Stated]:
    """Yield what a sentence with this value or bound may mean."""
    bound = test.value
    meanings: dict[str, Callable[[Any], bool]] = {"is": lambda fact: fact == bound, "is not": lambda fact: fact != bound}
    if isinstance(bound, float):
        meanings = {"is above": lambda fact: fact > bound, "is at least": lambda fact: fact >= bound,
                    "is at most": lambda fact: fact <= bound, "is below": lambda fact: fact < bound}
    value = f"{bound:g}" if isinstance(bound, float) else bound
    for meaning, holds in meanings.items():
        yield _Stated(test.name, f"{test.name} {meaning} {value}", [case for case in cases if holds(case.facts[test.name])])


def _step_rows(service: str, sessions: Collection[Sequence[Step]]) -> Iterator[ConditionRow]:
    """Yield the looks, and the words, that most sessions have before a tool acts and that a sentence asks for."""
    texts = {step.content for steps in sessions for step in steps if step.role in INSTRUCTING}
    asking = sorted({sentence for text in texts for sentence in sentences_in(text) if _FIRST.search(sentence)})
    acting = {step.tool or "" for steps in sessions for step in steps if step.acts}
    before: dict[str, list[frozenset[str]]] = defaultdict(list)
    for steps in sessions:
        for tool, names in _first_steps(steps).items():
            before[tool].append(names)
    for tool, own in sorted(before.items()):
        for name in sorted(frozenset().union(*own) - acting):
            if len(own) >= _FEWEST and sum(name in each for each in own) >= _USUAL * len(own):
                sentence = _asking_most(asking, name, tool)
                if sentence:
                    yield _row(service, tool, f"{name or 'speaking'} comes first", sentence, "step", field=name)


def _asking_most(sentences: Sequence[str], step: str, tool: str) -> str:
    """Return the sentence that asks for a step before a tool: for proof of identity, else with the words of the step."""
    own, others = _prefixes(step), _prefixes(tool)
    worth = {sentence: (len(_prefixes(sentence) & own), len(_prefixes(sentence) & others)) for sentence in sentences
             if IDENTITY.search(sentence) or _prefixes(sentence) & own}
    return max(worth, key=lambda sentence: (worth[sentence], sentence), default="")


def _first_steps(steps: Sequence[Step]) -> dict[str, frozenset[str]]:
    """Return by tool that acts what came before its first call: tools, and "" for words of the agent."""
    before: dict[str, frozenset[str]] = {}
    names: set[str] = set()
    for step in steps:
        if step.acts and step.tool:
            before.setdefault(step.tool, frozenset(names))
        if step.kind == "call":
            names.add(step.tool or "")
        elif step.role == "assistant":
            names.add("")
    return before
