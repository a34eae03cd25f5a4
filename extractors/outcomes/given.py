"""Hold the values that writes were given, and the numbers that the agent states, against where such values usually come from.

Four signals, all learnt per service from its own sessions, none from ends that repeat:

- an argument that users nearly always state is given a value that this user did not state;
- a value of a request that was declined is written, and the user had named another since, which no write took;
- a record that was chosen out of an answer, though another record of it holds more of the user's words, where the chosen one
  nearly always holds the most;
- a sentence that agents say with numbers from answers, said with a number that nothing in this session showed.

Sees values to the letter, but for case, the form of numbers and dates spelled out in English; records in JSON, lists of marked
items, and lines. Does not see: values that users describe in other words (such arguments are left alone, as are single values
that users mostly put otherwise), texts for people, yes and no, numbers that agents word anew each time, a number that was shown
for something else, a wrong choice that the words do not tell apart."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from functools import lru_cache, partial
from typing import Any, NamedTuple

import polars as pl

from extractors.outcomes.evidence import VOTES, Evidence, once
from extractors.outcomes.refusals import INSTRUCTING, Step, digests_of
from extractors.outcomes.steps import sessions_by_service, set_sentences
from extractors.tasks.answers import read, reckonings, singles
from extractors.tasks.words import mentions, phrases_of, shape_of, spans_of, spellings

_FEWEST = 8
"""Sessions with an argument or a sentence, below which nothing is learnt of it."""
_USUALLY = 0.8
"""Share of the other sessions from which on a record is usually the one described, and a number usually shown."""
_MOSTLY = 0.7
"""Share of the other sessions from which on users state an argument: agents who err err here most."""
_NEARLY_ALWAYS = 0.9
"""Share of the other sessions from which on agents never write what they declined where another value is asked for."""
_OTHERWISE = 3
"""Other sessions that gave a value which their users did not state, from which on users may put this value in other words."""
_LONGEST = 60
_PROSE = re.compile(r"\s\S+\s\S+\s")
_NAME = re.compile(r"[\d@_]|\w[./-]\w")
_ITEM = re.compile(r"\n\s*[-*•]\s+")
_BRACKETS = re.compile(r"[)}\]],\s*[({\[]")
"""What parts the records of a list in a notation other than JSON."""
_PIECE = re.compile(r"\d{4}-\d\d-\d\d|[^\W\d_]{3,}")
_TOKEN = re.compile(r"[\w@+#][\w@.:+/#-]*[\w]|\w")
_NUMBER = re.compile(r"\d+(?:,\d{3})*(?:\.\d+)?")
_LEAST = 10
"""A smaller whole number comes out of anything."""
_RECORDS = 200
"""Records of an answer that are looked at."""


class _GivenValue(NamedTuple):
    """A value that a write was given."""

    session: str
    turn_id: str
    place: tuple[str, str]
    """Tool and path."""
    value: str
    usual: bool
    """It comes from where the signal looks."""


class _DeclinedValue(NamedTuple):
    """A value that a write was given, and perhaps a declined request named."""

    session: str
    turn_id: str
    tool: str
    path: str
    value: str
    since: str
    """What the user said after the agent declined it, up to the call, lower-cased; empty where it was not declined."""


_Judge = Callable[[str, Sequence[Step], Mapping[str, Sequence[tuple[str, str]]]], Iterator[_GivenValue]]


def unsaid(evidence: Evidence) -> pl.DataFrame:
    """-1 where a write took a value that the user did not state, for an argument that users nearly always state."""
    return _unusual(evidence, _stated, _MOSTLY, "wrote {}, which the user did not say, as users do")


def other_record(evidence: Evidence) -> pl.DataFrame:
    """-1 where a write took one record of an answer and the user's words are those of another one."""
    return _unusual(evidence, _chosen, _USUALLY, "wrote {}, though the user's words are those of another record")


def superseded(evidence: Evidence) -> pl.DataFrame:
    """-1 where a write took a value of a declined request, and the user had named another one since, which no write took."""
    digests, values, rows = digests_of(evidence), _values_by_turn(evidence), []
    for sessions in sessions_by_service(evidence).values():
        wrote = [_DeclinedValue(session, *each) for session, steps in sorted(sessions.items())
                 for each in evidence.memoize(["superseded", digests[session]], partial(_since_declined, steps, values))]
        takers: dict[tuple[str, str], dict[str, set[str]]] = defaultdict(lambda: defaultdict(set))   # value -> sessions
        for each in wrote:
            takers[each.tool, each.path][each.value.lower()].add(each.session)
        given = [_GivenValue(each.session, each.turn_id, (each.tool, each.path), each.value,
                             not _is_superseded(each, takers[each.tool, each.path])) for each in wrote]
        rows += _against(given, _NEARLY_ALWAYS, "wrote {}, which had been declined, where the user asked for another")
    return pl.DataFrame(sorted(rows), schema=VOTES, orient="row")


def _unusual(evidence: Evidence, judge: _Judge, least: float, description: str) -> pl.DataFrame:
    def judged(session: str, steps: Sequence[Step]) -> list[_GivenValue]:
        rows = evidence.memoize([description, digests[session]], lambda: [
            (each.turn_id, each.place, each.value, each.usual) for each in judge(session, steps, _values_by_turn(evidence))])
        return [_GivenValue(session, turn, (tool, path), value, usual) for turn, (tool, path), value, usual in rows]

    digests, rows = digests_of(evidence), []
    for sessions in sessions_by_service(evidence).values():
        rows += _against([each for session, steps in sorted(sessions.items()) for each in judged(session, steps)],
                         least, description)
    return pl.DataFrame(sorted(rows), schema=VOTES, orient="row")


def _against(given: Sequence[_GivenValue], least: float, description: str) -> list[tuple[str, float, str, list[str]]]:
    return [(session, -1.0, description.format(", ".join(sorted({each.value for each in against}))),
             sorted({each.turn_id for each in against}))
            for session, against in _exceptions(given, least).items()]


@once
def _values_by_turn(evidence: Evidence) -> dict[str, list[tuple[str, str]]]:
    """Return by call the path and value of each short argument."""
    values: dict[str, list[tuple[str, str]]] = defaultdict(list)
    for turn, path, value in evidence.values.sort("turn_id", "path", "value").iter_rows():
        if len(value) <= _LONGEST and not _PROSE.search(value):
            values[turn].append((path, value))
    return values


def _exceptions(given: Sequence[_GivenValue], least: float) -> dict[str, list[_GivenValue]]:
    """Return by session the values that do not come from where they usually do, judged by the other sessions."""
    by_place: dict[tuple[str, str], list[_GivenValue]] = defaultdict(list)
    for each in given:
        by_place[each.place].append(each)
    against: dict[str, list[_GivenValue]] = defaultdict(list)
    for values in by_place.values():
        usual = dict.fromkeys(sorted({each.session for each in values}), True)
        for each in values:
            usual[each.session] &= each.usual
        n, n_usual = len(usual), sum(usual.values())
        otherwise = Counter(value for value, _ in {(each.value, each.session) for each in values if not each.usual})
        likewise = Counter(value for value, _ in {(each.value, each.session) for each in values if each.usual})
        for each in values:
            if (not each.usual and n >= _FEWEST and n_usual >= least * (n - 1)
                    and not (otherwise[each.value] > _OTHERWISE and otherwise[each.value] > likewise[each.value])):
                against[each.session].append(each)
    return against


def _since_declined(
    steps: Sequence[Step], values: Mapping[str, Sequence[tuple[str, str]]]
) -> list[tuple[str, str, str, str, str]]:
    """Return (turn, tool, path, value, what the user said since) of each value of a write. Since: after the last refusal, where
    the user named the value before it and not again; else nothing."""
    before, since = "", ""   # the last refusal
    rows = []
    for step in steps:
        if step.kind == "message" and step.role == "user":
            since += "\n" + step.content.lower()
        elif step.declines:
            before, since = before + since, ""
        elif step.acts:
            for path, value in values.get(step.turn_id, ()):
                is_declined = before and since and _is_told(value, before) and not _is_told(value, since)
                rows.append((step.turn_id, step.tool or "", path, value, since if is_declined else ""))
    return rows


def _is_superseded(each: _DeclinedValue, takers: Mapping[str, Set[str]]) -> bool:
    """Return whether the words since name one of the values that other sessions wrote there, and this one did not."""
    return bool(each.since) and any(
        each.session not in sessions and mentions(each.since, value) for value, sessions in takers.items())


def _stated(session: str, steps: Sequence[Step], values: Mapping[str, Sequence[tuple[str, str]]]) -> Iterator[_GivenValue]:
    """Yield the values of a session's writes that the user stated, or instead of which the user stated others of their shape. A
    call that the next one repeats with other values counts for nothing."""
    words = ""
    for place, step in enumerate(steps):
        if step.kind == "message" and step.role == "user":
            words += "\n" + step.content
        elif step.acts and not (place + 1 < len(steps) and _corrects(steps[place + 1], step, values)):
            own = {value.lower() for _, value in values.get(step.turn_id, ())}
            for path, value in values.get(step.turn_id, ()):
                is_stated = any(mentions(words.lower(), spelling) for spelling in spellings(value))
                if is_stated or _has_others(words, value, own):
                    yield _GivenValue(session, step.turn_id, (step.tool or "", path), value, is_stated)


def _corrects(following: Step, step: Step, values: Mapping[str, Sequence[tuple[str, str]]]) -> bool:
    """Return whether the next call is of the same tool, and differs in the values of one argument."""
    if following.tool != step.tool or not following.acts:
        return False
    before, after = set(values.get(step.turn_id, ())), set(values.get(following.turn_id, ()))
    return len({path for path, _ in before ^ after}) == 1 and len(before & after) > 0


def _has_others(words: str, value: str, own: Set[str]) -> bool:
    """Return whether the words hold a name or number of the value's shape that the call was not given."""
    if not _NAME.search(value):
        return False
    if "@" in value:
        return any("@" in word and word not in own for word in phrases_of(words) if " " not in word)
    return any(span.text.lower() not in own for span in spans_of(words, frozenset((shape_of(value),))))


def _chosen(session: str, steps: Sequence[Step], values: Mapping[str, Sequence[tuple[str, str]]]) -> Iterator[_GivenValue]:
    """Yield the values of a session's writes that stand in one of several records of an answer, with whether no other record
    holds more of the user's words. The last answer that holds the value counts."""
    words, answers = "", list[str]()
    for step in steps:
        if step.kind == "message" and step.role == "user":
            words += "\n" + step.content.lower()
        elif step.acts:
            for path, value in values.get(step.turn_id, ()):
                if any(mentions(words, spelling) for spelling in spellings(value)):
                    continue   # the user named it
                ranked = next((best for answer in reversed(answers)
                               if (best := _is_best(value.lower(), answer, words)) is not None), None)
                if ranked is not None:
                    yield _GivenValue(session, step.turn_id, (step.tool or "", path), value, ranked)
        elif step.kind == "call":
            answers.append(step.content)


def _is_best(value: str, answer: str, words: str) -> bool | None:
    """Return whether no record of the answer holds more of the words than the one with this value; None if no record has it, or
    several have."""
    records = records_in(answer)
    own = [record for record in records if value in record]
    if len(own) != 1 or len(records) < 2:
        return None
    n_shared = [sum(_is_told(token, words) for token in record if token != value) for record in records]
    return n_shared[records.index(own[0])] == max(n_shared)


@lru_cache(maxsize=65536)
def _is_told(token: str, words: str) -> bool:
    return len(token) > 1 and any(mentions(words, spelling) for spelling in spellings(token))


@lru_cache(maxsize=512)
def records_in(answer: str) -> tuple[frozenset[str], ...]:
    """Return the values of each record of an answer, lower-cased."""
    document = read(answer)
    if document is not None:
        records = (frozenset((entry.value.lower(), *(value for _, value in entry.fields)))
                   for entries in document.values.values() for entry in entries if entry.fields)
        return tuple(dict.fromkeys(records))[:_RECORDS]
    parts = next((split.split(answer) for split in (_ITEM, _BRACKETS) if split.search(answer)), answer.split("\n"))
    return tuple(dict.fromkeys(_values_in(part.lower()) for part in parts))[:_RECORDS]


def _values_in(text: str) -> frozenset[str]:
    """Return the words of a text, and the dates and words that names are made of."""
    words = _TOKEN.findall(text)
    return frozenset((*words, *(piece for word in words for piece in _PIECE.findall(word))))


def misstated(evidence: Evidence) -> pl.DataFrame:
    """-1 where a sentence that agents say with numbers from answers is said with a number that nothing showed."""
    def stated(session: str, steps: Sequence[Step]) -> Any:
        return evidence.memoize(["misstated", digests[session]], lambda: list(_stated_numbers(steps)))

    digests, rows = digests_of(evidence), []
    for sessions in sessions_by_service(evidence).values():
        uses: dict[str, dict[str, tuple[bool, str, str]]] = defaultdict(dict)
        for session, steps in sorted(sessions.items()):
            for sentence, shown, number, turn in stated(session, steps):
                if uses[sentence].get(session, (True, "", ""))[0]:
                    uses[sentence][session] = shown, number, turn
        against: dict[str, dict[str, str]] = defaultdict(dict)
        for by_session in uses.values():
            n, n_shown = len(by_session), sum(shown for shown, _, _ in by_session.values())
            if n >= _FEWEST and n_shown >= _USUALLY * (n - 1):
                for session, (shown, number, turn) in by_session.items():
                    if not shown:
                        against[session][turn] = number
        rows += [(session, -1.0, "stated what nothing showed: " + ", ".join(sorted(set(numbers.values()))), sorted(numbers))
                 for session, numbers in against.items()]
    return pl.DataFrame(sorted(rows), schema=VOTES, orient="row")


def _stated_numbers(steps: Sequence[Step]) -> Iterator[tuple[str, bool, str, str]]:
    """Yield each sentence of the agent with a number: masked, whether its numbers were shown, one that was not, its turn."""
    shown: set[float] = set()
    read_values: list[tuple[str, tuple[tuple[str, str], ...]]] = []
    for step in steps:
        if step.kind == "call":
            shown |= _numbers(step.content)
            read_values.append((step.tool or "", singles(step.content) or ()))
        elif step.role == "user" or step.role in INSTRUCTING:
            shown |= _numbers(step.content)
        elif step.role == "assistant" and step.kind == "message":
            for masked, sentence in set_sentences(step):
                numbers = _numbers(sentence)
                unknown = sorted(number for number in numbers - shown if not _is_reckoned(number, read_values))
                if numbers:
                    yield masked, not unknown, f"{unknown[0]:g}" if unknown else "", step.turn_id


def _is_reckoned(number: float, answers: Sequence[tuple[str, tuple[tuple[str, str], ...]]]) -> bool:
    """Return whether a number that was not shown comes out of numbers that were, or is too small to tell."""
    return (number < _LEAST and number.is_integer()) or any(True for _ in reckonings(f"{number:g}", answers))


@lru_cache(maxsize=1024)
def _numbers(text: str) -> frozenset[float]:
    return frozenset(float(number.replace(",", "")) for number in _NUMBER.findall(text))
