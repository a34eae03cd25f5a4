"""Whether tools of a company show the future: what was born after an episode's beginning, or what its work brings about.

In: the suite of a company, a beginning (instant and person), calls to try, values that the work brings about. Out: `Leak`s.
Sees: words, ids and numbers of an answer that no record has before that instant and some record has later; instants in answers
that are later than the beginning and stand in no value of then; values that the work brings about and nothing shows yet.
Does not see: the future in an order alone, or in a count that is a common number; words of fewer than four characters; values
whose time no export has (reactions, topics), as nothing tells whether they were there.
Calls to try (`tried_calls`) are those that agents made, with the ids of then in place of theirs, and searches for words that
occur only later: a search whose answer has no row of the future leaks nothing.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from typing import Any, NamedTuple

from env_builder.company.calls import RecordedCall
from env_builder.runtime.canonical import canonical
from env_builder.runtime.company import CompanyDesk, CompanyState, CompanyWorld, DeskStart
from env_builder.runtime.office.company import CompanyEpisode, CompanySuite

_TOKEN = re.compile(r"[\w.@+-]*\w")
_INSTANT = re.compile(r"\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|[+-]\d\d:?\d\d)?)?")
_LEAST = 4
_MOST_IDS = 40
"""Ids that are put into one recorded call."""
_SECOND = 1_000_000
_END = 2**61
_INSTANTS = 100_000_000
"""Numbers from which on a value is an instant in seconds, which answers write otherwise."""
_DAY = len("2026-03-02")
_A_DAY = 86_400
ACCOUNTS = ("person", "slack_user", "jira_user", "wiki_user")
_ANSWERS = 4
"""Answers of a tool that tell which words are its own."""
_N_WORDS = 20
"""Words of the future that are searched for."""


class LeakProbe(NamedTuple):
    """A call that may show the future."""

    tool: str
    arguments: dict[str, Any]


class Leak(NamedTuple):
    """What an answer shows of the future."""

    tool: str
    arguments: dict[str, Any]
    shown: str


class FutureWords:
    """When each word of a world's records was first there; words that most recorded answers of a tool have are the tool's."""

    def __init__(self, world: CompanyWorld, calls: Iterable[RecordedCall] = ()) -> None:
        self._first: dict[str, int] = {}
        answers: dict[str, list[set[str]]] = {}
        for call in calls:
            answers.setdefault(call.tool, []).append(set(tokens_of(call.content)))
        self.of_tool = {tool: {word for word, n in Counter(word for each in own for word in each).items() if 2 * n > len(own)}
                        for tool, own in answers.items() if len(own) >= _ANSWERS}
        for version in world.versions:
            at = version.at if version.guessed_until > _END else max(version.at, version.guessed_until)
            for token in {*tokens_of(version.value), *tokens_of(version.entity_id), *tokens_of(version.actor)}:
                self._first[token] = min(at, self._first.get(token, at))

    def later(self, instant: int) -> list[str]:
        """Return the words that are first there after an instant, soonest first."""
        return sorted((word for word, at in self._first.items() if at > instant), key=lambda word: (self._first[word], word))

    def in_text(self, text: str, instant: int) -> list[str]:
        """Return the words of a text that records have only after an instant."""
        return sorted({token for token in tokens_of(_INSTANT.sub(" ", text)) if self._first.get(token, 0) > instant})


def tokens_of(value: Any) -> Iterator[str]:
    """Yield the words, ids and numbers of a value that are long enough to tell something."""
    for text in _texts(value):
        for match in _TOKEN.finditer(text):
            if len(match[0]) >= _LEAST:
                yield match[0].lower()


def tried_calls(suite: CompanySuite, start: DeskStart, calls: Iterable[RecordedCall], words: FutureWords) -> list[LeakProbe]:
    """Return calls that read, made of recorded ones: each once, with ids of then, and with words of later."""
    state = start.state
    class_of = {key: kind for kind in state.world.ids for key in state.world.ids[kind]}
    later = words.later(state.instant)[:_N_WORDS]
    tried: dict[str, LeakProbe] = {}
    for call in calls:
        if call.tool not in suite.answers or call.tool in suite.writes:
            continue
        for arguments in (call.arguments, *_with_ids(call.arguments, class_of, start), *_with_words(call.arguments, later)):
            tried.setdefault(canonical([call.tool, arguments]), LeakProbe(call.tool, arguments))
    return list(tried.values())


def leaks_of(suite: CompanySuite, start: DeskStart, calls: Sequence[LeakProbe], words: FutureWords,
             brought: Iterable[str] = ()) -> list[Leak]:
    """Return what the answers to calls show of the future. `brought`: texts that the work brings about, and that are in no
    record yet."""
    instant = start.state.instant
    then = suite.world.at(instant)
    planned, there = planned_instants(then), {text for field in then.fields() for text in _texts(field.value)}
    wanted = [text for text in brought if len(text) >= _LEAST and not any(text in each for each in there)]
    episode, bare = CompanyEpisode(suite, CompanyDesk(start)), _without_records(suite, start)
    leaks = []
    for call in calls:
        answer = episode.call(call.tool, call.arguments)
        if answer.tier == "unknown":
            continue
        own = canonical([call.arguments, bare.call(call.tool, call.arguments).content]).lower()
        shown = [word for word in words.in_text(answer.content, instant)
                 if word not in own and word not in words.of_tool.get(call.tool, ())]
        shown += [text for text in wanted if text in answer.content and text.lower() not in own]
        shown += [at for at in _INSTANT.findall(answer.content)
                  if at.lower() not in own and not _is_planned(at, planned, instant)]
        leaks += [Leak(call.tool, call.arguments, each) for each in shown]
    return leaks


def _without_records(suite: CompanySuite, start: DeskStart) -> CompanyEpisode:
    """Return an episode of the same person where there are accounts alone: what it answers are the products' own words."""
    accounts = CompanyWorld(version for version in start.state.world.versions if version.entity_class in ACCOUNTS)
    return CompanyEpisode(suite, CompanyDesk(start._replace(state=accounts.at(start.state.instant))))


def _with_ids(arguments: dict[str, Any], class_of: dict[str, str], start: DeskStart) -> Iterator[dict[str, Any]]:
    for name, value in arguments.items():
        kind = class_of.get(value) if isinstance(value, str) else None
        if kind is not None:
            keys = list(start.state.ids(kind))[-_MOST_IDS:] + start.state.world.ids[kind][-2:]
            yield from ({**arguments, name: key} for key in keys)


def _with_words(arguments: dict[str, Any], later: list[str]) -> Iterator[dict[str, Any]]:
    texts = [name for name, value in arguments.items() if isinstance(value, str) and value]
    if len(texts) == 1 == len(arguments):   # a search for a text, or a look at an id that is not there yet
        yield from ({texts[0]: word} for word in later)


def planned_instants(state: CompanyState) -> set[int]:
    """Return the instants, in seconds, that records of a state name: those of events to come may be shown."""
    planned: set[int] = set()
    for field in state.fields():
        if isinstance(field.value, int | float):
            planned.add(int(field.value))
        for text in _texts(field.value):
            planned.update(at for at in map(_seconds, _INSTANT.findall(text)) if at is not None)
    return planned


def _is_planned(text: str, planned: set[int], instant: int) -> bool:
    """Return whether an instant or a day has begun, or records of then name it."""
    at = _seconds(text)
    if at is None or at * _SECOND <= instant:
        return True
    return at in planned if len(text) > _DAY else any(at - _A_DAY <= each <= at + 2 * _A_DAY for each in planned)


def _seconds(text: str) -> int | None:
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return None
    return int((moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp())


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, int | float) and abs(value) < _INSTANTS:
        yield str(value)
    elif isinstance(value, dict):
        for key, each in value.items():
            yield str(key)
            yield from _texts(each)
    elif isinstance(value, list):
        for each in value:
            yield from _texts(each)
