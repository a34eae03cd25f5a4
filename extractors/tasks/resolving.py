"""What a request's words mean as arguments: which value each argument should have, whoever did what.

In: requests of one kind, the arguments that calls for them were given, and what was looked up. Out: values by argument, for
every request. Candidates are runs of the user's words and values of answers that records described in them hold; which one is
meant is learnt from all calls of the kind (`choosing`), so a call that was given something else is outvoted. A value that
stands in no words and no answer is only told where nearly all calls were given the same.

Sees: the words that ask, later words of the same goal, answers that the session read, and answers of other sessions to things
that the words name. Does not see: what is meant but neither said nor looked up; negation.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import partial
from typing import NamedTuple

import orjson

from extractors.tasks.choosing import Choice
from extractors.tasks.looked_up import Answer, Held
from extractors.tasks.spans import phrases_of, shape_of, spans_of
from warehouse.records import Remember, anew

SUPPORT = 5
"""Fewer calls than this teach nothing."""

_SHARE = 0.05
"""Share of the calls' values from which on a shape or a source of values is looked at."""

_COVERED = 0.5
"""Share of the values that must be among the candidates, or the argument is left."""

_CONSTANT = 0.9
_LIKELY = 0.5


class Request(NamedTuple):
    """One goal: what was said and what could be looked up for it."""

    words: str
    """The words that ask."""
    later: str
    """What the user said later on."""
    answers: tuple[tuple[str, Answer], ...]
    """(tool, answer)."""


class _Terms(NamedTuple):
    """What values of an argument look like, and where they come from."""

    shapes: frozenset[str]
    sources: frozenset[tuple[str, str]]
    known: frozenset[str]
    constant: str | None
    several: bool
    """Some calls were given several values."""


_Candidates = dict[str, list[str]]
"""Value -> what is true of it."""


def resolve(
    requests: Sequence[Request], given: Sequence[dict[str, list[str]] | None], remember: Remember = anew
) -> list[dict[str, list[str]]]:
    """Values of each argument for each request. `given`: what a call for it was given, None where there is none or several."""
    names = sorted({name for values in given if values for name in values})
    resolved: list[dict[str, list[str]]] = [{} for _ in requests]
    phrases = [phrases_of(request.words) for request in requests]
    digests = [_digest([request.words, request.later, [[tool, answer.content] for tool, answer in request.answers]])
               for request in requests]
    for name in names:
        taught = [(request, said, values[name]) for request, said, values in zip(requests, phrases, given, strict=True)
                  if values and name in values]
        if len(taught) < SUPPORT:
            continue
        terms = _terms(taught)
        own = _digest([sorted(terms.shapes), sorted(terms.sources), sorted(terms.known), terms.constant])
        asked: list[_Candidates] = [
            remember(["meant", digest, own], partial(_candidates, request, said, terms))
            for digest, request, said in zip(digests, requests, phrases, strict=True)]
        choice = _choice([(rows, values[name]) for rows, values in zip(asked, given, strict=True) if values and name in values])
        if choice is None:
            continue
        sure = iter(choice([row for rows in asked for row in rows.values()]))
        for values, rows in zip(resolved, asked, strict=True):
            if chosen := _chosen({value: float(next(sure)) for value in rows}, terms.several):
                values[name] = chosen
    return resolved


def _terms(taught: Sequence[tuple[Request, frozenset[str], list[str]]]) -> _Terms:
    values = [value for _, _, given in taught for value in given]
    n = len(values)
    constant, times = Counter(values).most_common(1)[0]
    shapes = frozenset(shape for shape, k in Counter(map(shape_of, values)).items() if k >= max(2, _SHARE * n))
    found: Counter[tuple[str, str]] = Counter()
    for request, _, given in taught:
        found.update({(tool, path) for tool, answer in request.answers for path, held in answer.held.items()
                      if any(each.value in given for each in held)})
    sources = frozenset(source for source, k in found.items() if k >= max(2, _SHARE * len(taught)))
    known = frozenset(value for value, k in Counter(values).items() if k >= max(3, 0.02 * n))
    several = any(len(given) > 1 for _, _, given in taught)
    return _Terms(shapes, sources, known, constant if times >= _CONSTANT * n else None, several)


def _choice(taught: Sequence[tuple[_Candidates, list[str]]]) -> Choice | None:
    """Which candidate is meant, learnt from what calls were given; None where that is too seldom among them."""
    rows: list[list[str]] = []
    right: list[bool] = []
    covered = 0
    for candidates, given in taught:
        wanted = {value.lower() for value in given}
        right += [value.lower() in wanted for value in candidates]
        rows += candidates.values()
        covered += bool(wanted & {value.lower() for value in candidates})
    return Choice(rows, right) if covered >= _COVERED * len(taught) else None


def _chosen(sure: dict[str, float], several: bool) -> list[str]:
    best = max(sure.values(), default=0.0)
    if best < _LIKELY / 2:
        return []
    if several:
        return [value for value, p in sure.items() if p >= min(best, _LIKELY)]
    return [min(value for value, p in sure.items() if p == best)]


def _candidates(request: Request, said: frozenset[str], terms: _Terms) -> _Candidates:
    """All values that may be meant."""
    true: dict[str, set[str]] = {}
    spelled: dict[str, str] = {}
    for where, text in (("asked", request.words), ("later", request.later)):
        for span in spans_of(text, terms.shapes):
            true.setdefault(span.text.lower(), set()).update((where, *span.features))
            spelled.setdefault(span.text.lower(), span.text)
    for source in sorted(terms.sources):
        described = list(_described(request, source, said))
        most = max((n for _, n, _ in described), default=0)
        alone = sum(n == most for _, n, _ in described) == 1
        for held, n, features in described:
            rank = "worse" if n < most else "best" if alone else "tied"
            true.setdefault(held.value.lower(), set()).update((*features, f"{source} {rank}"))
            spelled[held.value.lower()] = held.value
    if terms.constant is not None:
        true.setdefault(terms.constant.lower(), set()).add("constant")
        spelled.setdefault(terms.constant.lower(), terms.constant)
    for value in true.keys() & {known.lower() for known in terms.known}:
        true[value].add("known")
    return {spelled[value]: sorted(features) for value, features in true.items()}


def _digest(told: object) -> str:
    return hashlib.sha256(orjson.dumps(told)).hexdigest()


def _described(request: Request, source: tuple[str, str], said: frozenset[str]) -> Iterator[tuple[Held, int, list[str]]]:
    """Values of a source, how many fields of their record the words mention, and what is true of them."""
    tool, path = source
    name_of = str(source)
    seen: set[tuple[object, ...]] = set()
    for answered, answer in request.answers:
        if answered != tool:
            continue
        for held in answer.held.get(path, ()):
            if held in seen:
                continue
            seen.add(held)
            features = [name_of, f"{name_of} said {held.value.lower() in said}",
                        f"{name_of} around {any(value in said for value in held.around)}"]
            by_name: dict[str, list[bool]] = {}
            for name, value in held.fields:
                by_name.setdefault(name, []).append(value in said)
            features += [f"{name_of} {name} {'all' if all(hits) else 'some' if any(hits) else 'none'}"
                         for name, hits in by_name.items()]
            yield held, sum(sum(hits) for hits in by_name.values()), features
