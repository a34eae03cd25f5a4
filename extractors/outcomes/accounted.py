"""Whether the user's words, or what was read under them, account for all that a session wrote or answered.

The signals of `given.py` find faults; they are silent where all is in order, and where they cannot tell. Here a session has a
vote for it if each value of each of its writes is accounted for:

- the user stated it, as it stands or by its parts (`spin-2026-03-06`: "spin on 2026-03-06");
- it stands in the one record of an answer that holds the most of the user's words, or alone at its place of an answer to a call
  whose own values are accounted for;
- nearly every session of the service gives it, or the argument is a text that agents word themselves.

A session wrote if it called a tool that does what is asked (`conditions`), not only such as prepare it. Each of several writes
must have a value that no other has: who only repeats values may do what nobody wanted. A session that wrote nothing and
declined nothing has the vote if it states a name or number of an answer to a call that is accounted for. None has it that
states a number which nothing showed, whose user took something back, or whose user did not state what users nearly always
state of a record that is read (an e-mail: the proof of who they are); nor one that wrote where others mostly declined and all
looked the same (`conditions`). In a service of whose sessions few are accounted for, none has it; where no session
declines, none that wrote nothing: its language may be one whose refusals are not recognised.

Sees values to the letter, but for case, the form of numbers and dates spelled out in English. Does not see: whether the tool is
the right one, a wish that was not done as well, a value that the user states for another purpose."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from functools import lru_cache, partial
from typing import NamedTuple

import polars as pl

from extractors.outcomes.conditions import cases_by_service
from extractors.outcomes.evidence import VOTES, Evidence, once
from extractors.outcomes.given import records_in
from extractors.outcomes.refusals import INSTRUCTING, Step, digests_of
from extractors.outcomes.steps import sessions_by_service
from extractors.tasks.answers import singles
from extractors.tasks.words import mentions, spellings

_FEWEST = 8
"""Sessions with an argument or a field, below which nothing is learnt of it."""
_NEARLY_ALL = 0.9
"""Share of the sessions with an argument that give it the same value, from which on the value is a constant."""
_WORDED = 0.5
"""Share of the sessions with an argument whose text the user did not state, from which on agents word it themselves."""
_PROVEN = 0.8
"""Share of the other sessions whose user states a field, from which on a session without it lacks a proof."""
_OFTEN = 0.3
"""Share of a service's sessions that wrote, or declined nothing, which must be accounted for: where it is less, requests ask
for more than their words name, and who did only that has done a part."""
_MOSTLY = 0.5
"""Share of the sessions that wrote which are accounted for, from which on it tells something that one is not."""
_UNACCOUNTED = -0.4
"""Vote of such a session, as a probability in -1..1."""
_LEAST = 10
"""A smaller whole number is no answer that could be told from others."""
_PROSE = re.compile(r"\s\S+\s\S+\s")
_PARTS = re.compile(r"\d{4}-\d\d-\d\d|[^\W_]+")
_NUMBER = re.compile(r"\d+(?:,\d{3})*(?:\.\d+)?")
_MARKERS = re.compile(r"(?m)^\s*\d+[.)]\s")
"""Numbers of a list's items."""
_NAME = re.compile(r"[\w@#+][\w@.,:+/#-]*\w")
_Values = Mapping[str, Sequence[tuple[str, str]]]
"""Path and value of each argument, by call."""


class _WrittenValue(NamedTuple):
    """A value that a write was given."""

    turn_id: str
    place: tuple[str, str]
    """Tool and path."""
    value: str
    accounted: bool


class _SessionAccount(NamedTuple):
    """What a session shows by itself."""

    written: list[_WrittenValue]
    answering: list[str]
    """Messages that state what was read under the user's words."""
    shown: bool
    """Each number that the agent states stands in the user's words, an answer or the instructions."""
    fields: dict[str, bool]
    """Tool and path of what answers hold once -> whether the user stated it."""


def as_stated(evidence: Evidence) -> pl.DataFrame:
    """1 where the user's words, or what was read under them, account for all that was written or answered."""
    return _votes(evidence).filter(pl.col("vote") > 0)


def unaccounted(evidence: Evidence) -> pl.DataFrame:
    """Unlikely to be right where they do not account for what was written, though they do in most sessions that write."""
    return _votes(evidence).filter(pl.col("vote") < 0)


@once
def _votes(evidence: Evidence) -> pl.DataFrame:
    digests, values, rows = digests_of(evidence), _values_by_turn(evidence), []
    cases = cases_by_service(evidence)
    for service, sessions in sessions_by_service(evidence).items():
        accounts = {session: _read_account(evidence.memoize(["accounted", digests[session]], partial(_account, steps, values)))
                    for session, steps in sorted(sessions.items())}
        ignored, proofs = _ignored(accounts), _proofs(accounts)
        acted = {session: turns for session, steps in sessions.items() if (turns := sorted(s.turn_id for s in steps if s.acts))}
        wrote = {session: turns for session, turns in acted.items()
                 if any(step.acts and step.tool in cases[service].doing for step in sessions[session])}
        fine = {session for session, own in accounts.items() if _is_in_order(sessions[session], own, proofs)}
        good = {session for session, turns in wrote.items()
                if session in fine and _is_accounted(turns, accounts[session].written, ignored)}
        understood = any(step.declines for steps in sessions.values() for step in steps)
        answered = {session for session in fine - wrote.keys() if understood and accounts[session].answering}
        in_doubt = cases[service].declined_alike
        served = [session for session, steps in sessions.items() if session in wrote or not any(s.declines for s in steps)]
        if len(good) + len(answered) < _OFTEN * len(served):
            continue
        rows += [(session, 1.0, "the user's words account for all that was written", wrote[session])
                 for session in good - in_doubt]
        rows += [(session, 1.0, "states what was read under the user's words", accounts[session].answering)
                 for session in answered]
        if len(good) >= _MOSTLY * len(wrote):
            rows += [(session, _UNACCOUNTED, "the user's words do not account for all that was written", wrote[session])
                     for session in wrote.keys() - good]
    return pl.DataFrame(sorted(rows), schema=VOTES, orient="row")


def _values_by_turn(evidence: Evidence) -> dict[str, list[tuple[str, str]]]:
    values: dict[str, list[tuple[str, str]]] = defaultdict(list)
    for turn, path, value in evidence.values.sort("turn_id", "path", "value").iter_rows():
        values[turn].append((path, value))
    return values


def _is_in_order(steps: Sequence[Step], own: _SessionAccount, proofs: frozenset[str]) -> bool:
    """Return whether all is shown and proven, nothing was taken back, and something was done if anything was declined."""
    declined = any(step.declines for step in steps) and not any(step.acts for step in steps)
    unproven = any(not stated and field in proofs for field, stated in own.fields.items())
    return own.shown and not (declined or unproven or any(step.takes_back for step in steps))


def _is_accounted(turns: Sequence[str], written: Sequence[_WrittenValue], ignored: frozenset[tuple[str, ...]]) -> bool:
    """Return whether all values of the writes are accounted for, and each write has one that no other has."""
    by_turn: dict[str, set[str]] = {turn: set() for turn in turns}
    for each in written:
        if each.place not in ignored and (*each.place, each.value.lower()) not in ignored:
            if not each.accounted:
                return False
            by_turn[each.turn_id].add(each.value.lower())
    n_writes = Counter(value for values in by_turn.values() for value in values)
    return all(any(n_writes[value] == 1 for value in values) for values in by_turn.values())


def _ignored(accounts: Mapping[str, _SessionAccount]) -> frozenset[tuple[str, ...]]:
    """Return the arguments (tool, path) that agents word themselves, and constants (tool, path, value)."""
    given: dict[tuple[str, str], dict[str, set[str]]] = defaultdict(lambda: defaultdict(set))
    worded: dict[tuple[str, str], set[str]] = defaultdict(set)
    for session, own in accounts.items():
        for each in own.written:
            given[each.place][each.value.lower()].add(session)
            if _PROSE.search(each.value) and not each.accounted:
                worded[each.place].add(session)
    ignored: set[tuple[str, ...]] = set()
    for place, by_value in given.items():
        n = len(set().union(*by_value.values()))
        if n >= _FEWEST:
            ignored.update((*place, value) for value, takers in by_value.items() if len(takers) >= _NEARLY_ALL * n)
            ignored.update([place] if len(worded[place]) >= _WORDED * n else [])
    return frozenset(ignored)


def _proofs(accounts: Mapping[str, _SessionAccount]) -> frozenset[str]:
    """Return the fields whose value users nearly always state."""
    n, n_stated = Counter[str](), Counter[str]()
    for own in accounts.values():
        n.update(own.fields.keys())
        n_stated.update(field for field, stated in own.fields.items() if stated)
    return frozenset(field for field in n if n[field] >= _FEWEST and n_stated[field] >= _PROVEN * (n[field] - 1))


_Row = tuple[list[tuple[str, str, str, str, bool]], list[str], bool, dict[str, bool]]


def _read_account(row: _Row) -> _SessionAccount:
    written, answering, shown, fields = row
    values = [_WrittenValue(turn, (tool, path), value, own) for turn, tool, path, value, own in written]
    return _SessionAccount(values, answering, shown, fields)


def _account(steps: Sequence[Step], values: _Values) -> _Row:
    """Return the fields of `_SessionAccount`; a call and a message count by the words and answers before them."""
    words, answers, under = "", list[tuple[bool, str]](), ""   # whether the call's values are accounted for, its answer
    numbers = set[float]()   # that words, answers and instructions hold
    written, answering, shown = list[tuple[str, str, str, str, bool]](), list[str](), True
    fields: dict[str, str] = {}
    for step in steps:
        if step.kind == "message" and step.role == "user":
            words += "\n" + step.content.lower()
            numbers |= _numbers(step.content)
        elif step.kind == "call":
            own = [(path, value, _accounts(words, answers, value)) for path, value in values.get(step.turn_id, ())]
            written += [(step.turn_id, step.tool or "", *each) for each in own if step.acts]
            accounted = all(each for *_, each in own)
            under += "\n" + step.content.lower() if accounted else ""
            answers.append((accounted, step.content))
            numbers |= _numbers(step.content)
            fields |= {f"{step.tool}{path}": value for path, value in _single_places(step.content).items()}
        elif step.role in INSTRUCTING:
            numbers |= _numbers(step.content)
        elif step.role == "assistant":
            shown = shown and _numbers(_MARKERS.sub("", step.content)) <= numbers
            if _answers(step.content, under, words):
                answering.append(step.turn_id)
    return written, answering, shown, {field: _is_stated(value, words) for field, value in fields.items()}


def _accounts(words: str, answers: Sequence[tuple[bool, str]], value: str) -> bool:
    """Return whether the user's words, or what was read under them, account for a value."""
    if _is_stated(value, words):
        return True
    lower = value.lower()
    holding = next(((own, answer) for own, answer in reversed(answers) if mentions(answer.lower(), lower)), None)
    if holding is None:
        return False
    parts = _PARTS.findall(lower)
    by_parts = len(parts) > 1 and all(_is_stated(part, words) for part in parts)
    return by_parts or _is_described(lower, holding[1], words) or (holding[0] and _is_only(value, holding[1]))


def _is_stated(value: str, words: str) -> bool:
    return any(mentions(words, spelling) for spelling in spellings(value))


def _is_described(value: str, answer: str, words: str) -> bool:
    """Return whether the one record with the value holds more of the words than each other record of the answer."""
    records = records_in(answer)
    own = [place for place, record in enumerate(records) if value in record]
    if len(own) != 1 or len(records) < 2:
        return False
    n_shared = [sum(len(token) > 1 and token != value and _is_stated(token, words) for token in record) for record in records]
    return n_shared.pop(own[0]) > max(n_shared)


def _is_only(value: str, answer: str) -> bool:
    """Return whether the answer is the value, or holds it at a place that has one value."""
    return answer.strip().strip("'\"") == value or value in _single_places(answer).values()


@lru_cache(maxsize=512)
def _single_places(answer: str) -> dict[str, str]:
    """Return the values of an answer at places with one value, by path."""
    places = singles(answer) or ()
    n = Counter(path for path, _ in places)
    return {path: value for path, value in places if n[path] == 1}


def _answers(text: str, under: str, words: str) -> bool:
    """Return whether a message has a number or name of what was read under the user's words, and not in these words."""
    numbers = (_numbers(text) - _numbers(words)) & _numbers(under)
    return any(number >= _LEAST or not number.is_integer() for number in numbers) or any(
        any(map(str.isdigit, name)) and not mentions(words, name) and mentions(under, name)
        for name in _NAME.findall(text.lower()) if len(name) > 2)


@lru_cache(maxsize=1024)
def _numbers(text: str) -> frozenset[float]:
    return frozenset(float(number.replace(",", "")) for number in _NUMBER.findall(text))
