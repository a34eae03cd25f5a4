"""Hold what an agent declined against the conditions on which agents of its service decline the same kind of request.

A kind of request is what one writing tool does; a refusal belongs to the kind whose users' words are most like its own
(naive Bayes). Of each kind conditions are learnt, "where this fact holds, agents decline", the surest first and each on the
cases that the ones before leave (separate and conquer; Clark & Niblett 1989). A condition is a value of a field that
several records have, a number on one side of a bound (`fields`), a word of the instructions in the request, or two of
these. It needs support, and significance by Fisher's exact test with Bonferroni's correction over all that could reach it
(Tarone 1990). What sentences of the instructions name that state a rule is corrected for its own number alone. Sessions are
judged by what others teach. Agents who gave in to pressure teach nothing.

Votes 1 where the agent declined on such a condition and had nothing else to do. Abstains on acts and on refusals without a
condition: kinds hold different requests, and a rare rule is not learnt. Does not see: who asks (refusals for lack of proof are
left out), errors that most agents make, rules of more than two facts, other languages than English."""

from __future__ import annotations

import math
import re
from bisect import bisect_left, bisect_right
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import date
from functools import lru_cache
from hashlib import sha1
from itertools import combinations, pairwise
from typing import NamedTuple

import polars as pl

from extractors.outcomes.evidence import VOTES, Evidence, once
from extractors.outcomes.fields import ABOUT, Fact, facts_of, facts_said, named_record
from extractors.outcomes.refusals import IDENTITY, INSTRUCTING, Step, digests_of, gave_in, rules_in, stems
from extractors.outcomes.steps import sessions_by_service

_NUMBER = re.compile(r"\d+(?:,\d{3})*(?:\.\d+)?")
_ASKS = re.compile(
    r"(?i)\b(?:what|which|when|how|who|where|whether|tell me|know|check|is there|is the|is my|are there|do i|did i)\b")
"""Words by which a user asks to know something: then declining is not all that the session had to do."""
_ACTED, _DECLINED = 6, 4
"""Cases of a kind that acted and declined, below which nothing is learnt of it."""
_TWINS, _COMPARED = 2, 60
"""Cases that declined what looked the same, from which on an act is in doubt; cases that one is compared with."""
_SAME_WORDS, _BETWEEN = 0.5, 0.1
"""Share of the stems of two requests that both have, and of the cases with a number between two alike."""
_FOLDS = 5
_RULES = 4
_SUPPORT = 4
_PURE = 0.75
"""Share of the cases of a rule in which agents declined, at least."""
_LEVEL = 0.05
"""Chance of a rule by accident, after correction."""
_GAIN = 0.1
"""Share of the chance of a condition of one test that one of two has to come down to."""
_JOINED = 12
"""Tests that conditions of two are made of."""
_PREPARES = 0.5
"""Share of the sessions with a tool in which another one acts later, from which on it only prepares."""
_BOUNDS = 24
_LITTLE = 1e-6
_WORD = "the user's words hold "
_MARGIN = 1.0
"""Log odds by which a refusal's words must be those of its kind rather than another."""


class DecisionCase(NamedTuple):
    """One act, or one refusal, and what was known before it."""

    session: str
    turn_id: str
    tool: str
    """Of the act; empty for a refusal until its kind is known."""
    words: frozenset[str]
    facts: Mapping[str, Fact]

    @property
    def acted(self) -> bool:
        return bool(self.tool)


class Test(NamedTuple):
    """A fact, and what it is held against."""

    name: str
    value: Fact
    above: bool | None = None
    """None: it is the value; else it is above it, or not."""

    def holds(self, facts: Mapping[str, Fact]) -> bool | None:
        """Return whether it holds, None where the fact is not known."""
        return self.holds_in([facts.get(self.name)])[0]

    def holds_in(self, facts: Iterable[Fact | None]) -> list[bool | None]:
        """Return whether it holds of each fact, None where there is none that it can be held against."""
        value, above = self.value, self.above
        if above is None:
            return [None if fact is None else fact == value for fact in facts]
        return [(fact > value) == above if isinstance(fact, float) else None for fact in facts]   # type: ignore[operator]

    def __str__(self) -> str:
        sign = "is" if self.above is None else "is above" if self.above else "is at most"
        return f"{self.name} {sign} {self.value:g}" if isinstance(self.value, float) else f"{self.name} {sign} {self.value}"


Condition = tuple[Test, ...]
"""Tests that hold together."""


class Written(NamedTuple):
    """What the sentences of the instructions that state rules speak of."""

    words: frozenset[str]
    numbers: frozenset[float]

    @classmethod
    def of(cls, sentences: Iterable[str]) -> Written:
        """Read sentences."""
        text = " ".join(sentences)
        return cls(stems(text), frozenset(float(number.replace(",", "")) for number in _NUMBER.findall(text)))

    def names(self, test: Test) -> bool:
        """Return whether they name the field, the value or the bound."""
        field = _stems_of_field(test.name)
        value = stems(test.value) if isinstance(test.value, str) else frozenset[str]()
        return bool((field | value) & self.words) or (test.above is not None and test.value in self.numbers)


@lru_cache(maxsize=4096)
def _stems_of_field(name: str) -> frozenset[str]:
    return stems(name.split(" is missing")[0].rpartition(".")[2].replace("_", " "))


def condition(evidence: Evidence) -> pl.DataFrame:
    """1 where what was declined, and all that was asked, is what others decline on the same condition."""
    n_goals = dict(evidence.goals.group_by("session_id").len().sort("session_id").iter_rows())
    rows: list[tuple[str, float, str, list[str]]] = []
    for service in cases_by_service(evidence).values():
        rows += [row for row in _votes(service.kinds, service.written)
                 if n_goals.get(row[0], 1) <= 1 and row[0] in service.declining]
    return pl.DataFrame(sorted(rows), schema=VOTES, orient="row")


class ServiceCases(NamedTuple):
    """What agents of a kind of service acted on and declined."""

    kinds: dict[str, list[DecisionCase]]
    """Tool that does what was asked -> cases."""
    sentences: list[str]
    """Sentences of the instructions that state a rule, sorted."""
    written: Written
    declining: frozenset[str]
    """Sessions that only declined."""
    declined_alike: frozenset[str]
    """Sessions that acted where others mostly declined (`_declined_alike`)."""
    doing: frozenset[str]
    """Tools that do what is asked (`_doing`)."""


@once
def cases_by_service(evidence: Evidence) -> dict[str, ServiceCases]:
    """Return the cases of each kind of service, without those of agents who gave in to pressure."""
    broken = set(gave_in(evidence)["session_id"])
    began = evidence.turns.group_by("session_id").agg(pl.col("happened_at").min().dt.date()).sort("session_id")
    days = dict(began.iter_rows())
    by_service = {}
    for service, sessions in sorted(sessions_by_service(evidence).items()):
        sentences, doing = _rules(sessions), _doing(sessions)
        written = Written.of(sentences)
        named = {word: f"{_WORD}.{word}" for word in sorted(written.words)}
        cases = [case for session, steps in sorted(sessions.items()) if session not in broken
                 for case in _remembered(evidence, session, steps, days[session], doing, named)]
        declining = frozenset(session for session, steps in sessions.items() if _only_declines(steps, doing))
        by_service[service] = ServiceCases(_by_kind(cases), sentences, written, declining, _declined_alike(cases), doing)
    return by_service


def _rules(sessions: Mapping[str, Sequence[Step]]) -> list[str]:
    texts = {step.content for steps in sessions.values() for step in steps if step.role in INSTRUCTING}
    return sorted({sentence for text in texts for sentence in rules_in(text)})


def _doing(sessions: Mapping[str, Sequence[Step]]) -> frozenset[str]:
    """Return the tools that do what is asked: others act later in most sessions of one that only prepares."""
    n, n_later = Counter[str](), Counter[str]()
    for steps in sessions.values():
        acted = [step.tool or "" for step in steps if step.acts]
        for tool in sorted(set(acted)):
            n[tool] += 1
            n_later[tool] += any(other != tool for other in acted[acted.index(tool):])
    return frozenset(tool for tool in n if n_later[tool] < _PREPARES * n[tool])


def _only_declines(steps: Sequence[Step], doing: frozenset[str]) -> bool:
    """Return whether nothing was done or claimed, nor tried, and the user asked to know nothing."""
    return not any(step.claims or (step.kind == "call" and step.tool in doing)
                   or (step.role == "user" and _ASKS.search(step.content)) for step in steps)


def _remembered(evidence: Evidence, session: str, steps: Sequence[Step], today: date | None, doing: frozenset[str],
                named: Mapping[str, str]) -> Iterator[DecisionCase]:
    """Yield the acts and refusals of a session, with the words of the instructions that the request has or lacks.

    `named`: word -> name of its fact."""
    key = ["cases", digests_of(evidence)[session], str(today), sorted(doing)]
    for turn, tool, words, facts in evidence.memoize(key, lambda: list(_cases(steps, today, doing))):
        own = frozenset(words)
        yield DecisionCase(session, turn, tool, own, facts | {name: word in own for word, name in named.items()})


def _cases(steps: Sequence[Step], today: date | None,
           doing: frozenset[str]) -> Iterator[tuple[str, str, list[str], dict[str, Fact]]]:
    """Yield the acts and refusals of a session: turn, tool, stems of the request, facts. Refusals with no call in between are
    one."""
    words, user_words, waiting = list[str](), "", True
    answers: dict[str, tuple[str, str]] = {}   # tool -> its last answer, and what the user had said by then
    facts: dict[str, dict[str, Fact]] = {}
    for step in steps:
        acts = step.acts and step.tool in doing
        if step.kind == "message" and step.role == "user":
            words.append(step.content)
            user_words += "\n" + step.content.lower()
        elif acts or (step.declines and waiting and not IDENTITY.search(step.content)):
            facts |= {tool: facts_of(tool, *answer, today) for tool, answer in answers.items()}
            answers.clear()
            before = {name: fact for own in facts.values() for name, fact in own.items()}
            before |= facts_said(" ".join(words), before, today)
            yield step.turn_id, (step.tool or "") if acts else "", sorted(stems(" ".join(words))), {
                name: fact for name, fact in before.items() if not isinstance(fact, float) or math.isfinite(fact)}
            words, waiting = [], False
        if step.kind == "call" and not acts:
            answers[step.tool or ""] = step.content, user_words
        waiting = waiting or step.kind == "call"


def _declined_alike(cases: Sequence[DecisionCase]) -> frozenset[str]:
    """Return the sessions with an act that more others declined than did, though their cases were alike: one of the two is
    wrong, so that the act is no evidence of success.

    Alike are cases with the same texts and flags in the records that were read, numbers with few of the cases' between them,
    and mostly the same words of the user. Names do not count."""
    groups: dict[frozenset[tuple[str, Fact]], list[DecisionCase]] = defaultdict(list)
    for case in cases:
        groups[_described(case)].append(case)
    doubted = set[str]()
    for own in groups.values():
        numbers: dict[str, list[float]] = defaultdict(list)
        for case in own:
            for name, fact in case.facts.items():
                if isinstance(fact, float):
                    numbers[name].append(fact)
        ordered = {name: sorted(values) for name, values in numbers.items()}
        declined, acted = ([case for case in own if case.acted is acts] for acts in (False, True))
        for case in acted if len(declined) >= _TWINS else ():
            alike = [[each for each in some[:_COMPARED] if each.session != case.session and _is_alike(case, each, ordered)]
                     for some in (declined, acted)]
            n_declined, n_acted = map(len, alike)
            if n_declined >= _TWINS and n_declined > n_acted:
                doubted.add(case.session)
    return frozenset(doubted)


def _described(case: DecisionCase) -> frozenset[tuple[str, Fact]]:
    """Return the texts and flags in what was read that are no names, and the words of the instructions that the user said."""
    return frozenset((name, fact) for name, fact in case.facts.items() if not isinstance(fact, float)
                     and not name.startswith((ABOUT, "the user said ")) and not name.endswith(" is missing"))


def _is_alike(one: DecisionCase, other: DecisionCase, ordered: Mapping[str, Sequence[float]]) -> bool:
    """Return whether the user said mostly the same, and of each number few cases' are between theirs."""
    if len(one.words & other.words) < _SAME_WORDS * len(one.words | other.words):
        return False
    for name, values in ordered.items():
        mine, theirs = one.facts.get(name), other.facts.get(name)
        if isinstance(mine, float) and isinstance(theirs, float):
            between = bisect_left(values, max(mine, theirs)) - bisect_right(values, min(mine, theirs))
            if between > _BETWEEN * len(values):
                return False
        elif mine != theirs:
            return False
    return True


def _by_kind(cases: Sequence[DecisionCase]) -> dict[str, list[DecisionCase]]:
    """Return the cases by the tool that does what was asked."""
    kinds: dict[str, list[DecisionCase]] = defaultdict(list)
    for case in cases:
        if case.acted:
            kinds[case.tool].append(case)
    kinds = {tool: own for tool, own in sorted(kinds.items()) if len({case.session for case in own}) >= _ACTED}
    worded = {tool: Counter(stem for case in own for stem in case.words) for tool, own in kinds.items()}
    n_acted = {tool: len(own) for tool, own in kinds.items()}
    for case in cases:
        if not case.acted and (kind := _kind_of(case.words, worded, n_acted)):
            kinds[kind].append(case)
    return kinds


def _kind_of(words: frozenset[str], worded: Mapping[str, Counter[str]], n_acted: Mapping[str, int]) -> str:
    """Return the tool whose users' words are most like these, empty where none or several are."""
    shared = sorted(word for word in words if any(counted[word] > 1 for counted in worded.values()))
    scores = sorted(((math.fsum(math.log((counted[word] + 0.5) / (n_acted[tool] + 1.0)) for word in shared), tool)
                     for tool, counted in worded.items()), reverse=True)
    if not shared or not scores or (len(scores) > 1 and scores[0][0] - scores[1][0] < _MARGIN):
        return ""
    return scores[0][1]


def _votes(kinds: Mapping[str, Sequence[DecisionCase]], written: Written) -> Iterator[tuple[str, float, str, list[str]]]:
    """Vote on the sessions of one service, each by conditions learnt from others."""
    agreed: dict[str, list[tuple[str, str]]] = defaultdict(list)
    for tool, cases in sorted(kinds.items()):
        for fold in range(_FOLDS):
            learnt = learn([case for case in cases if _fold(case.session) != fold], written)
            for case in cases:
                reason = next((" and ".join(map(str, each)) for each in learnt if holds_all(each, case.facts)), None)
                if _fold(case.session) == fold and reason and not case.acted:
                    agreed[case.session].append((f"declined {tool}: {reason}", case.turn_id))
    for session, own in sorted(agreed.items()):
        yield session, 1.0, "; ".join(sorted({reason for reason, _ in own})), sorted({turn for _, turn in own})


def _fold(session: str) -> int:
    return int(sha1(session.encode()).hexdigest()[:8], 16) % _FOLDS


def learn(cases: Sequence[DecisionCase], written: Written) -> list[Condition]:
    """Learn on which facts agents decline; the cases are of one kind of request."""
    conditions: list[Condition] = []
    remaining = list(cases)
    while len(conditions) < _RULES and (best := _best(remaining, written)) is not None:
        conditions.append(best)
        remaining = [case for case in remaining if not holds_all(best, case.facts)]
    return conditions


def holds_all(condition: Condition, facts: Mapping[str, Fact]) -> bool | None:
    """Return whether all tests hold; None where that is not known."""
    results = [test.holds(facts) for test in condition]
    return False if False in results else None if None in results else True


def _best(cases: Sequence[DecisionCase], written: Written) -> Condition | None:
    """Return the condition that tells refusals from acts most surely, None where none does beyond chance.

    What the instructions speak of is held to its own number of trials, and all to that of all."""
    if (len({case.session for case in cases if case.acted}) < _ACTED
            or len({case.session for case in cases if not case.acted}) < _DECLINED):
        return None
    declined = sum(1 << place for place, case in enumerate(cases) if not case.acted)
    tests = sorted(set(_tests(cases, written.numbers)), key=str)
    facts = {name: [case.facts.get(name) for case in cases] for name in {test.name for test in tests}}
    trials = _distinct([_TriedCondition.of(test, facts[test.name], written) for test in tests])
    singles = _surest(trials, declined)
    joined = [_joined(one, other) for one, other in combinations(_nearly(trials, declined), 2)
              if _adds(one, other, declined) and _adds(other, one, declined)]
    pairs = _surest(_distinct(trials + joined), declined)
    if pairs is not None and (singles is None or pairs[0] < _GAIN * singles[0]):
        return pairs[1]
    return None if singles is None else singles[1]


class _TriedCondition(NamedTuple):
    """A condition with the cases in which it holds and is known, as bits."""

    condition: Condition
    holding: int
    decided: int
    written: bool

    @classmethod
    def of(cls, test: Test, facts: Sequence[Fact | None], written: Written) -> _TriedCondition:
        """Try a condition of one test on the fact of each case that it is about."""
        holds = test.holds_in(facts)
        return cls((test,), _bits(bool(each) for each in holds), _bits(each is not None for each in holds), written.names(test))

    def chance(self, declined: int) -> float:
        """Chance of as many refusals among the cases held; 1 where they are too few."""
        n_held, n_both = self.holding.bit_count(), (self.holding & declined).bit_count()
        if n_held < _SUPPORT or n_both < _PURE * n_held:
            return 1.0
        return _fisher(n_both, n_held, (self.decided & declined).bit_count(), self.decided.bit_count())

    def least(self, declined: int) -> float:
        """Least chance that it could have: a trial that can't be beyond chance is none (Tarone 1990)."""
        n_held, n_declined = self.holding.bit_count(), (self.decided & declined).bit_count()
        return _fisher(min(n_held, n_declined), n_held, n_declined, self.decided.bit_count())


def _bits(flags: Iterable[bool]) -> int:
    """Return a number with a bit for each flag, the first the lowest."""
    return int("".join("1" if each else "0" for each in flags)[::-1] or "0", 2)


def _joined(one: _TriedCondition, other: _TriedCondition) -> _TriedCondition:
    decided = (one.decided & other.decided) | (one.decided & ~one.holding) | (other.decided & ~other.holding)
    return _TriedCondition(one.condition + other.condition, one.holding & other.holding, decided, one.written and other.written)


def _adds(one: _TriedCondition, other: _TriedCondition, declined: int) -> bool:
    """Return whether the other tells refusals from acts among the cases in which the one holds."""
    holding, both = one.holding & other.decided, one.holding & other.holding
    chance = _fisher((both & declined).bit_count(), both.bit_count(), (holding & declined).bit_count(), holding.bit_count())
    return chance < _LEVEL / _JOINED


def _distinct(trials: Sequence[_TriedCondition]) -> list[_TriedCondition]:
    """Return one trial of those that hold in the same cases, one that the instructions speak of before others."""
    ordered = sorted(trials, key=lambda trial: (len(trial.condition), not trial.written, -trial.decided.bit_count()))
    unlike = {trial.holding: trial for trial in reversed(ordered) if trial.holding and trial.holding != trial.decided}
    return list(unlike.values())


def _nearly(trials: Sequence[_TriedCondition], declined: int) -> list[_TriedCondition]:
    """Return the trials with the most refusals beyond their share, that conditions of two are made of."""
    def gain(trial: _TriedCondition) -> float:
        expected = trial.holding.bit_count() * (trial.decided & declined).bit_count() / trial.decided.bit_count()
        return (trial.holding & declined).bit_count() - expected
    return sorted(trials, key=lambda trial: (-gain(trial), str(trial.condition)))[:_JOINED]


def _surest(trials: Sequence[_TriedCondition], declined: int) -> tuple[float, Condition] | None:
    """Return the least chance after correction, with its condition, None where none is beyond chance."""
    able = [trial for trial in trials if trial.least(declined) < _LEVEL]
    n_written = sum(trial.written for trial in able)
    conditions = [(trial.chance(declined) * (n_written if trial.written else len(able)), str(trial.condition), trial.condition)
             for trial in able]
    best = min(conditions, key=lambda each: each[:2], default=None)
    return None if best is None or best[0] >= _LEVEL else (best[0], best[2])


def _tests(cases: Sequence[DecisionCase], bounds: frozenset[float]) -> Iterator[Test]:
    """Yield what can be asked of the cases' facts; a number of the instructions is a bound rather than one beside it."""
    values: dict[str, Counter[Fact]] = defaultdict(Counter)
    records: dict[tuple[str, Fact], set[Fact]] = defaultdict(set)
    for case in cases:
        for name, fact in case.facts.items():
            values[name][fact] += 1
            if isinstance(fact, str):
                records[name, fact].add(named_record(name, case.facts) or case.session)
    for name, counted in values.items():
        if name.startswith(ABOUT):
            continue
        if " minus " in name:
            yield from (Test(name, bound, above) for bound in (0.0, -_LITTLE) for above in (False, True))
            continue
        numbers = sorted(value for value in counted if isinstance(value, float))
        middles = [next((bound for bound in sorted(bounds) if low <= bound < high), (low + high) / 2.0)
                   for low, high in pairwise(numbers)]
        step = max(1, len(middles) // _BOUNDS)
        kept = set(middles[::step]) | (set(middles) & bounds)
        yield from (Test(name, bound, above) for bound in kept for above in (False, True))
        plain = [(n, value) for value, n in counted.items() if not isinstance(value, float)]
        yield from (Test(name, value) for n, value in plain
                   if n >= _SUPPORT and (value or not name.startswith(_WORD))
                   and (not isinstance(value, str) or len(records[name, value]) > 1))   # of one record it is but another name


def _fisher(n_both: int, n_held: int, n_declined: int, n_all: int) -> float:
    """Chance of at least `n_both` refusals among the cases held, were refusals spread at random."""
    ways = math.comb(n_all, n_held)
    return sum(math.comb(n_declined, n) * math.comb(n_all - n_declined, n_held - n)
               for n in range(n_both, min(n_held, n_declined) + 1)) / ways
