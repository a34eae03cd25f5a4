"""Pairs of reads of one place, and the acts between them that name it.

In: calls of one service in order, and which of them are looks. Out: of each two looks that follow each other, in which fields
they differ, and which tools were called between. Sees: acts that share a word with the place, or with something that a look
lists; where they differ, what was given and appears comes first; where they do not, an act that names a part of the question
says nothing. Does not see: acts that name nothing of the place.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping
from typing import NamedTuple

from env_builder.runtime.answers import parsed
from env_builder.runtime.caching import cached
from env_builder.runtime.relevance import ids_in, leaves, listed_in, names
from env_builder.world.calls import LoggedCall, order_of
from env_builder.world.documents import Documents

MINIMUM_LOOKS = 3
WITHOUT_ARGUMENTS = "{}"
ALIKE = 0.8
"""Share of equal first looks, with nothing done before them, from which sessions begin alike there."""
FIRST_LOOKS = 10
"""First looks compared at one tool, from which they tell that sessions begin differently."""

Place = tuple[str, ...]
"""(scope …, looking tool or class, key): something that can be read again."""


class Between(NamedTuple):
    """Two reads at one place, one after the other."""

    place: str
    unnamed: bool
    """Nothing names the place, so every call counts as between."""
    tools: frozenset[str]
    """Tools called between them that name the place; also the second read's own where it shows a document."""
    changed: frozenset[str]
    """Fields (of an answer that is no document: the empty name) that the reads differ in."""
    own: str | None = None
    """The tool of both reads, None where they are of two."""
    is_alone: bool = False
    """Only calls of that tool came between."""


class LookWords(NamedTuple):
    """Words of a call that may name something."""

    given: frozenset[str]
    """Those of its arguments."""
    named: frozenset[str]
    """Those of its arguments and its answer."""


class Sight:
    """Which calls are looks: those that show a document, and those of tools that tell something."""

    def __init__(self, documents: Documents, telling: frozenset[str]) -> None:
        self.documents, self.telling = documents, telling
        self._questions: QuestionWords | None = None
        self._words: dict[tuple[str, int], LookWords] = {}
        self._shown: dict[tuple[str, int], tuple[str, str, str] | None] = {}

    def words(self, call: LoggedCall) -> LookWords:
        """Return the words of a call, which are taken from it once however often all calls are gone through."""
        number = call.session_id, call.position
        if number not in self._words:
            given = names(call.arguments)
            self._words[number] = LookWords(given, given | ids_in(call.content))
        return self._words[number]

    def questions(self, calls: list[LoggedCall]) -> QuestionWords:
        """Return the words of the questions in the calls of the service, which are gone through once."""
        if self._questions is None:
            self._questions = _questions(calls, self)
        return self._questions

    def look(self, call: LoggedCall, scope: Place) -> tuple[Place | None, str]:
        """Return the place that the call looks at, and what it shows there."""
        number = call.session_id, call.position
        shown = self._shown[number] if number in self._shown else self._shown.setdefault(number, self.documents.seen_in(call))
        if shown:
            return (*scope, shown[0], shown[1]), shown[2]
        if call.failed or call.tool in self.documents.tools or call.tool not in self.telling:
            return None, ""
        return (*scope, call.tool, call.key), call.content

    def names_of(self, place: Place, call: LoggedCall) -> frozenset[str]:
        """Words that name the place; the empty word where nothing does."""
        if place[-2] in self.documents.classes:
            return self.documents.words(place[-2], place[-1])
        return names(call.arguments) or frozenset(("",))


@cached(16384)
def differing(before: str, after: str) -> frozenset[str]:
    """Return the fields that two answers differ in; the empty name where they are no objects."""
    if before == after:
        return frozenset()
    one, other = parsed(before), parsed(after)
    if isinstance(one, dict) and isinstance(other, dict):
        absent = object()
        return frozenset(name for name in one.keys() | other.keys() if one.get(name, absent) != other.get(name, absent))
    return frozenset(("",))


def all_betweens(
    calls: list[LoggedCall], sight: Sight, acting: frozenset[str], shared: bool, listed: bool = False
) -> Iterator[Between]:
    """All pairs of reads that follow each other at one place, and the acting tools between that name it. `listed`: where a
    look shows a list of objects, also those that name something in it."""
    ordered = sorted(calls, key=order_of) if shared else calls
    places = _places(ordered, sight, shared, listed)
    last: dict[Place, str] = {}
    looked_by: dict[Place, tuple[str, int]] = {}
    others = _Others()
    since: dict[Place, dict[str, set[str]]] = defaultdict(dict)
    partly: dict[Place, set[str]] = defaultdict(set)
    questions = sight.questions(calls)
    made: dict[Place, set[str]] = defaultdict(set)  # what answers since the last read named: who repeats it gives nothing
    for call in ordered:
        scope: Place = () if shared else (call.session_id,)
        place, content = sight.look(call, scope)
        others.add(scope, call.tool)
        if call.tool in acting and not call.failed:
            given, named = sight.words(call)
            here = places.get(scope, {})
            reached = set[Place]().union(*(here[word] for word in (*named, "") if word in here))
            shown = named.union(value for value in call.parsed.values() if isinstance(value, str)) if reached and isinstance(
                call.parsed, dict) else named
            for linked in reached:
                since[linked].setdefault(call.tool, set()).update(given - made[linked])
                made[linked] |= shown - given
                if questions.names_partly(call.tool, linked, named):
                    partly[linked].add(call.tool)
        if place is None:
            continue
        if place in last:
            since[place].pop(place[-2], None)
            if call.tool in acting and place[-2] in sight.documents.classes:
                since[place].setdefault(call.tool, set()).update(names(call.arguments))
            own, alone = looked_by[place]
            between = _between(place, since[place], last[place], content, partly[place])
            yield between if own != call.tool else between._replace(own=own, is_alone=alone == others[scope, own])
        last[place], looked_by[place] = content, (call.tool, others[scope, call.tool])
        since[place], made[place], partly[place] = {}, set(), set()


class _Others:
    """How many calls of other tools there were."""

    def __init__(self) -> None:
        self._n = Counter[tuple[Place, str]]()

    def add(self, scope: Place, tool: str) -> None:
        """Count a call. `scope`: where calls may come between."""
        self._n[scope, tool] += 1
        self._n[scope, ""] += 1

    def __getitem__(self, place: tuple[Place, str]) -> int:
        scope, tool = place
        return self._n[scope, ""] - self._n[scope, tool]


class QuestionWords(NamedTuple):
    """The words of questions that show no document."""

    words: dict[Place, frozenset[str]]
    """(tool, question) -> all words of it."""
    own: dict[Place, frozenset[str]]
    """(tool, question) -> those that tell it from other questions of the tool."""
    whole: set[tuple[str, str]]
    """(acting tool, looking tool): a call of the one named all words of a question of the other, which has several."""

    def names_partly(self, act: str, place: Place, named: Collection[str]) -> bool:
        """Return whether a call that names these words names not all of the question, of a tool that at times names all."""
        question = place[-2:]
        return ((act, place[-2]) in self.whole and not self.words.get(question, frozenset()).isdisjoint(named)
                and not self.own[question].issubset(named))


def _questions(calls: list[LoggedCall], sight: Sight) -> QuestionWords:
    words: dict[Place, frozenset[str]] = {
        (call.tool, call.key): names(call.arguments) for call in calls
        if call.tool in sight.telling and call.tool not in sight.documents.tools and not call.failed}
    common: dict[str, frozenset[str]] = {}
    for (tool, _), own in words.items():
        common[tool] = common.get(tool, own) & own
    parts: dict[Place, frozenset[str]] = {place: own - common[place[0]] for place, own in words.items()}
    by_word: dict[str, dict[tuple[str, frozenset[str]], None]] = defaultdict(dict)
    for place, own in parts.items():
        for word in own if len(words[place]) > 1 else ():
            by_word[word][place[0], own] = None
    whole: set[tuple[str, str]] = set()
    for call in calls:
        if not call.failed:
            named = sight.words(call).named
            whole.update((call.tool, tool) for word in named for tool, own in by_word.get(word, ())
                         if (call.tool, tool) not in whole and own <= named)
    return QuestionWords(words, parts, whole)


def _between(place: Place, acts: dict[str, set[str]], before: str, after: str, partly: Collection[str] = ()) -> Between:
    """Compare two reads of one place. Where they differ, tools that were given something which only one of the two shows come
    first; where they do not, tools that named a part of the question say nothing. `acts`: what each tool was given."""
    changed = differing(before, after)
    tools = frozenset(acts) if changed else frozenset(acts).difference(partly)
    if changed and len(acts) > 1:
        one, other = _shown(before), _shown(after)
        givers = frozenset(tool for tool, given in acts.items() if any((word in one) != (word in other) for word in given))
        tools = givers or tools
    return Between(place[-2], place[-1] == WITHOUT_ARGUMENTS, tools, changed)


@cached(4096)
def _shown(content: str) -> frozenset[str] | str:
    """Whole scalars of an answer that is JSON, else its text: to look for words in."""
    value = parsed(content)
    return content if value is None else frozenset(map(str, leaves(value)))


def against_baseline(calls: list[LoggedCall], sight: Sight, acting: frozenset[str]) -> list[Between]:
    """Where every session starts from the same state: a session's first read after acts, with what others saw before any."""
    named: dict[tuple[str, str], dict[str, set[str]]] = defaultdict(dict)
    looked: set[tuple[str, Place]] = set()
    fresh: dict[Place, Counter[str]] = defaultdict(Counter)
    later: list[tuple[Place, dict[str, set[str]], str, set[str]]] = []
    questions = sight.questions(calls)
    for call in calls:
        place, content = sight.look(call, ())
        if place is not None and (call.session_id, place) not in looked:
            looked.add((call.session_id, place))
            acts: dict[str, set[str]] = {}
            for word in sight.names_of(place, call):
                acts.update(named[call.session_id, word])
            acts.pop(call.tool, None)
            if acts:
                heard = {tool: {word for word in sight.names_of(place, call) if tool in named[call.session_id, word]}
                         for tool in acts}
                later.append((place, acts, content, {
                    tool for tool, words in heard.items() if questions.names_partly(tool, place, words)}))
            else:
                fresh[place][content] += 1
        if call.tool in acting and not call.failed:
            given, words = sight.words(call)
            for word in words | {""}:
                before = named[call.session_id, word].get(call.tool, set[str]())
                named[call.session_id, word] = {**named[call.session_id, word], call.tool: before | given}
    # what was also seen with no write call before is no sign of one (a wrapper or the clock altered it)
    usual = {place: counts.most_common(1)[0][0] for place, counts in fresh.items()}
    alike = _beginning_alike(fresh)
    return [
        _between(place, acts, usual[place], content, partly) for place, acts, content, partly in later
        if place[-2] in alike and place in fresh and (content == usual[place] or content not in fresh[place])]


def _beginning_alike(fresh: Mapping[Place, Counter[str]]) -> set[str]:
    """Return the tools and classes that show the same in every session before anything was done. `fresh`: what was shown there.

    Where one shows that sessions begin from states of their own, a first look elsewhere says nothing of what was done before
    it, unless such looks are known to agree."""
    n, n_same = Counter[str](), Counter[str]()
    for place, counts in fresh.items():
        n[place[-2]] += counts.total() - 1
        n_same[place[-2]] += counts.most_common(1)[0][1] - 1
    alike = {shown for shown, times in n.items() if n_same[shown] >= ALIKE * times}
    differing = any(times >= FIRST_LOOKS for shown, times in n.items() if shown not in alike)
    return {shown for shown in alike if n[shown] >= MINIMUM_LOOKS} if differing else alike


def _places(calls: list[LoggedCall], sight: Sight, shared: bool, listed: bool) -> dict[Place, dict[str, set[Place]]]:
    """Scope -> word -> places that the word names; the empty word leads to places that nothing names."""
    places: dict[Place, dict[str, set[Place]]] = defaultdict(lambda: defaultdict(set))
    looked: Counter[Place] = Counter()
    shown: dict[Place, frozenset[str]] = defaultdict(frozenset)
    for call in calls:
        scope: Place = () if shared else (call.session_id,)
        place, content = sight.look(call, scope)
        if place is None:
            continue
        looked[place] += 1
        if listed and place[-2] not in sight.documents.classes:
            shown[place] |= listed_in(content)
        if looked[place] >= 2:  # only what is looked at again can speak
            for word in (sight.names_of(place, call) if looked[place] == 2 else frozenset[str]()) | shown[place]:
                places[scope][word].add(place)
            shown[place] = frozenset()
    return places
