"""Resolve the slots of goals: which value each argument should have, whatever was done.

A goal's slots are the arguments of the tool that names its kind; if no tool does (questions), the arguments of reading tools
that most goals of the kind name. Candidates are runs of the user's words and values of answers whose records the words
describe. Logistic regression over features of the candidates (full-batch AdaGrad; Duchi, Hazan, Singer 2011; a fixed number of
steps) learns from all calls of the kind which candidate is meant, so one deviating call is outvoted. A value that is in no
words and no answer is used only if nearly all calls have it.

Sees the words that ask, later words of the same goal, answers that the session read, and answers of other sessions to entities
that the words name. Does not see: what was neither said nor read; negation; arguments of kinds with few calls."""

from __future__ import annotations

import hashlib
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from itertools import chain
from typing import NamedTuple

import numpy as np
import orjson
import polars as pl

from extractors.tasks.answers import Answer, AnswerValue, read
from extractors.tasks.arguments import slots_json
from extractors.tasks.words import phrases_of, shape_of, spans_of
from warehouse.records import Memoize, recompute

_FEW = 3
"""Entities that share a name at most, for the name to lead to them."""
_MOSTLY = 0.5
_NEVER = datetime.min.replace(tzinfo=UTC)


class _SlotGoal(NamedTuple):
    session_id: str
    place: int
    service: str
    label: str
    words: str
    begins: int
    ends: int


class _Call(NamedTuple):
    tool: str
    arguments: str
    position: int
    at: datetime | None
    answer: Answer | None
    """None where it is no JSON, and for what acts: its answer shows what was done, not what was there."""
    acted: frozenset[str]
    """Tools that acted in the session before."""
    values: dict[str, list[str]]


_Named = Mapping[str, Sequence[tuple[str, Sequence[_Call]]]]
"""Name -> (arguments, reads in order of time) of the entities that have it."""


def goal_slots(goals: pl.DataFrame, turns: pl.DataFrame, calls: pl.DataFrame, values: pl.DataFrame,
               memoize: Memoize = recompute) -> pl.DataFrame:
    """Columns session_id, place, slots (JSON object: argument -> value, or list of values)."""
    read_goals = [_SlotGoal(*row) for row in goals.sort("session_id", "place").select(_SlotGoal._fields).iter_rows()]
    called = _calls(calls, turns, values)
    spoken = turns.filter((pl.col("kind") == "message") & (pl.col("role") == "user")).sort("session_id", "position")
    user_messages: dict[str, list[tuple[int, str]]] = defaultdict(list)
    for session, position, text in spoken.select("session_id", "position", "content").iter_rows():
        user_messages[session].append((position, text or ""))
    by_kind: dict[tuple[str, str], list[_SlotGoal]] = defaultdict(list)
    for goal in read_goals:
        by_kind[goal.service, goal.label].append(goal)
    n_alike = Counter((goal.session_id, goal.label) for goal in read_goals)
    n_goals = Counter(goal.session_id for goal in read_goals)
    named = {service: _by_name(call for session in sessions for call in called[session])
             for service, sessions in calls.group_by("service").agg(pl.col("session_id").unique().sort()).iter_rows()}
    rows = []
    for (service, label), goals_of_kind in sorted(by_kind.items()):
        given = _given(label, goals_of_kind, called, n_alike, n_goals)
        requests = [
            _request(goal, called[goal.session_id], user_messages[goal.session_id], named.get(service, {}))
            for goal in goals_of_kind]
        for goal, slots in zip(goals_of_kind, resolve(requests, given, memoize), strict=True):
            rows.append((goal.session_id, goal.place, slots_json(slots)))
        for _, answer in chain.from_iterable(request.answers for request in requests):
            answer.forget()
    return pl.DataFrame(rows, schema={"session_id": pl.String, "place": pl.Int64, "slots": pl.String}, orient="row")


def _calls(calls: pl.DataFrame, turns: pl.DataFrame, values: pl.DataFrame) -> Mapping[str, list[_Call]]:
    of_turn: dict[str, dict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
    for turn, path, value in values.iter_rows():
        of_turn[turn][path].append(value)
    by_session: dict[str, list[_Call]] = defaultdict(list)
    acted: dict[str, frozenset[str]] = defaultdict(frozenset)
    fine = calls.filter(~pl.col("failed")).join(turns.select("turn_id", "happened_at"), on="turn_id", how="left")
    for session, turn, tool, arguments, position, at, content, acts in fine.sort("session_id", "position").select(
            "session_id", "turn_id", "tool", "arguments", "position", "happened_at", "content", "acts").iter_rows():
        answer = None if acts else read(content or "")
        by_session[session].append(_Call(tool, arguments or "", position, at, answer, acted[session], dict(of_turn[turn])))
        if acts:
            acted[session] |= {tool}
    return by_session


def _by_name(calls: Iterable[_Call]) -> _Named:
    """Group reads before anything was written by the names of what they read, where few entities share the name."""
    reads: dict[tuple[str, str], list[_Call]] = defaultdict(list)
    for call in calls:
        if call.answer and not call.acted:
            reads[call.tool, call.arguments].append(call)
    by_name: dict[str, list[tuple[str, list[_Call]]]] = defaultdict(list)
    for (_, arguments), same_read in sorted(reads.items()):
        same_read.sort(key=lambda call: (call.at is not None, call.at or _NEVER))
        for name in sorted({name for call in same_read if call.answer for name in call.answer.names}):
            by_name[name].append((arguments, same_read))
    return {name: things for name, things in by_name.items() if len(things) <= _FEW}


def _request(goal: _SlotGoal, calls: Sequence[_Call], user_messages: Sequence[tuple[int, str]], named: _Named) -> Request:
    later = [text for position, text in user_messages if goal.begins <= position < goal.ends and goal.words not in text]
    own = [call for call in calls if call.position < goal.ends and goal.label not in call.acted]
    met = {(call.tool, call.arguments) for call in own if call.answer}
    began = min((call.at for call in calls if call.at), default=None)
    answers = [(call.tool, call.answer) for call in own if call.answer]
    for phrase in sorted(phrases_of(goal.words)):
        for arguments, reads in named.get(phrase, ()):
            before = [read_call for read_call in reads if not (read_call.at and began) or read_call.at < began]
            if before and before[-1].answer and (before[-1].tool, arguments) not in met:
                met.add((before[-1].tool, arguments))
                answers.append((before[-1].tool, before[-1].answer))
    return Request(goal.words, "\n".join(later), tuple(answers))


def _given(label: str, goals: Sequence[_SlotGoal], called: Mapping[str, list[_Call]], n_alike: Mapping[tuple[str, str], int],
           n_goals: Mapping[str, int]) -> list[dict[str, list[str]] | None]:
    """Return what calls for each goal were given, None where it is not clear which."""
    given: list[dict[str, list[str]] | None] = []
    place: Counter[str] = Counter()
    for goal in goals:
        own = [call for call in called[goal.session_id] if call.tool == label]
        once = list({call.arguments: call for call in own}.values())
        clear = len(once) == n_alike[goal.session_id, label]
        given.append(once[place[goal.session_id]].values if clear else None)
        place[goal.session_id] += 1
    if any(given):
        return given
    return _looked_for([goal if n_goals[goal.session_id] == 1 else None for goal in goals], called)


def _looked_for(goals: Sequence[_SlotGoal | None], called: Mapping[str, list[_Call]]) -> list[dict[str, list[str]] | None]:
    """Return the arguments of calls that stand in the words, where most goals name them."""
    given: list[dict[str, list[str]] | None] = [None] * len(goals)
    for at, goal in enumerate(goals):
        if goal is None:
            continue
        phrases = phrases_of(goal.words)
        stated: dict[str, list[str]] = {}
        for call in called[goal.session_id]:
            for path, values in call.values.items():
                if all(value.lower() in phrases for value in values):
                    stated.setdefault(f"{call.tool}.{path}", values)
        given[at] = stated
    counts = Counter(name for stated in given if stated for name in stated)
    n_asked = sum(goal is not None for goal in goals)
    usual = {name for name, n in counts.items() if n >= max(SUPPORT, _MOSTLY * n_asked)}
    return [stated and {name: values for name, values in stated.items() if name in usual} for stated in given]


_STEPS = 120
_RATE = 0.7
_DECAY = 1e-3
_MIN_ROWS = 3
"""Rows that have a feature, from which on it counts."""


class CandidateModel:
    """Learnt weights: feature -> nats."""

    def __init__(self, rows: Sequence[Sequence[str]], right: Sequence[bool]) -> None:
        counts = Counter(name for row in rows for name in row)
        self._numbers = {name: i + 1 for i, name in enumerate(sorted(name for name, n in counts.items() if n >= _MIN_ROWS))}
        at, which = self._flat(rows)
        goal, n_features = np.array(right, dtype=np.float64), len(self._numbers) + 1
        self._weights, squares = np.zeros(n_features), np.full(n_features, 1e-8)
        for _ in range(_STEPS):
            off = (_sure(np.bincount(at, self._weights[which], len(rows))) - goal) / max(1.0, goal.sum())
            slope = np.bincount(which, off[at], n_features) + _DECAY * self._weights
            squares += slope * slope
            self._weights -= _RATE * slope / np.sqrt(squares)

    def __call__(self, rows: Sequence[Sequence[str]]) -> np.ndarray:
        at, which = self._flat(rows)
        return _sure(np.bincount(at, self._weights[which], len(rows)))

    def _flat(self, rows: Sequence[Sequence[str]]) -> tuple[np.ndarray, np.ndarray]:
        """(row, feature) of all that is true; feature 0 is true of every row."""
        numbers = [[0, *(self._numbers[name] for name in row if name in self._numbers)] for row in rows]
        lengths = np.fromiter(map(len, numbers), np.int64, len(rows))
        return np.repeat(np.arange(len(rows)), lengths), np.fromiter(chain.from_iterable(numbers), np.int64, lengths.sum())


def _sure(nats: np.ndarray) -> np.ndarray:
    return np.asarray(1.0 / (1.0 + np.exp(-np.clip(nats, -30.0, 30.0))))


SUPPORT = 5
"""Fewer calls than this teach nothing."""
_SHARE = 0.05
"""Share of the calls' values from which on a shape or a source of values is looked at."""
_COVERED = 0.5
"""Share of the values that must be among the candidates, or the argument is left."""
_CONSTANT = 0.9
_LIKELY = 0.5


class Request(NamedTuple):
    """One goal: what the user wrote for it, and the answers that may hold its values."""

    words: str
    """The words that ask."""
    later: str
    """Later words of the user."""
    answers: tuple[tuple[str, Answer], ...]
    """(tool, answer)."""


class _Terms(NamedTuple):
    """Shapes and sources of the values of an argument."""

    shapes: frozenset[str]
    sources: frozenset[tuple[str, str]]
    frequent: frozenset[str]
    constant: str | None
    several: bool
    """Some calls were given several values."""


_Candidates = dict[str, list[str]]
"""Value -> what is true of it."""


def resolve(requests: Sequence[Request], given: Sequence[dict[str, list[str]] | None],
            memoize: Memoize = recompute) -> list[dict[str, list[str]]]:
    """Values of each argument for each request. `given`: what a call for it was given, None where there is none or several."""
    names = sorted({name for values in given if values for name in values})
    resolved: list[dict[str, list[str]]] = [{} for _ in requests]
    phrases = [phrases_of(request.words) for request in requests]
    digests = [_digest([request.words, request.later, [[tool, answer.content] for tool, answer in request.answers]])
               for request in requests]
    placed: list[dict[str, list[list[str]]]] = [
        memoize(["placed", digest, values], partial(_placed, request, values)) if values else {}
        for digest, request, values in zip(digests, requests, given, strict=True)]
    for name in names:
        taught = [(values[name], own[name]) for values, own in zip(given, placed, strict=True) if values and name in values]
        if len(taught) < SUPPORT:
            continue
        terms = _terms(taught)
        looked_for = _digest([sorted(terms.shapes), sorted(terms.sources), sorted(terms.frequent), terms.constant])
        candidates: list[_Candidates] = [
            memoize(["meant", digest, looked_for], partial(_candidates, request, own_phrases, terms))
            for digest, request, own_phrases in zip(digests, requests, phrases, strict=True)]
        choice = _choice(
            [(rows, values[name]) for rows, values in zip(candidates, given, strict=True) if values and name in values])
        if choice is None:
            continue
        sure = iter(choice([row for rows in candidates for row in rows.values()]))
        for values, rows in zip(resolved, candidates, strict=True):
            if chosen := _chosen({value: float(next(sure)) for value in rows}, terms.several):
                values[name] = chosen
    return resolved


def _placed(request: Request, given: Mapping[str, Sequence[str]]) -> dict[str, list[list[str]]]:
    """Return by argument the tool and path of the answers that hold one of the values that it was given."""
    return {name: [[tool, path] for tool, path in sorted({
        (tool, path) for tool, answer in request.answers for value in values for path in answer.places.get(value, ())})]
        for name, values in given.items()}


def _terms(taught: Sequence[tuple[list[str], list[list[str]]]]) -> _Terms:
    """Return what tells values of an argument. `taught`: what it was given, and the tools and paths that hold that."""
    values = [value for given, _ in taught for value in given]
    n = len(values)
    constant, times = Counter(values).most_common(1)[0]
    shapes = frozenset(shape for shape, k in Counter(map(shape_of, values)).items() if k >= max(2, _SHARE * n))
    n_of_source = Counter((tool, path) for _, sources in taught for tool, path in sources)
    sources = frozenset(source for source, k in n_of_source.items() if k >= max(2, _SHARE * len(taught)))
    frequent = frozenset(value for value, k in Counter(values).items() if k >= max(3, 0.02 * n))
    several = any(len(given) > 1 for given, _ in taught)
    return _Terms(shapes, sources, frequent, constant if times >= _CONSTANT * n else None, several)


def _choice(taught: Sequence[tuple[_Candidates, list[str]]]) -> CandidateModel | None:
    rows: list[list[str]] = []
    right: list[bool] = []
    covered = 0
    for candidates, given in taught:
        wanted = {value.lower() for value in given}
        right += [value.lower() in wanted for value in candidates]
        rows += candidates.values()
        covered += bool(wanted & {value.lower() for value in candidates})
    return CandidateModel(rows, right) if covered >= _COVERED * len(taught) else None


def _chosen(sure: dict[str, float], several: bool) -> list[str]:
    best = max(sure.values(), default=0.0)
    if best < _LIKELY / 2:
        return []
    if several:
        return [value for value, p in sure.items() if p >= min(best, _LIKELY)]
    return [min(value for value, p in sure.items() if p == best)]


def _candidates(request: Request, phrases: frozenset[str], terms: _Terms) -> _Candidates:
    true: dict[str, set[str]] = {}
    spelled: dict[str, str] = {}
    for where, text in (("asked", request.words), ("later", request.later)):
        for span in spans_of(text, terms.shapes):
            true.setdefault(span.text.lower(), set()).update((where, *span.features))
            spelled.setdefault(span.text.lower(), span.text)
    for source in sorted(terms.sources):
        described = list(_described(request, source, phrases))
        most = max((n for _, n, _ in described), default=0)
        alone = sum(n == most for _, n, _ in described) == 1
        for entry, n, features in described:
            rank = "worse" if n < most else "best" if alone else "tied"
            true.setdefault(entry.value.lower(), set()).update((*features, f"{source} {rank}"))
            spelled[entry.value.lower()] = entry.value
    if terms.constant is not None:
        true.setdefault(terms.constant.lower(), set()).add("constant")
        spelled.setdefault(terms.constant.lower(), terms.constant)
    for value in true.keys() & {word.lower() for word in terms.frequent}:
        true[value].add("known")
    return {spelled[value]: sorted(features) for value, features in true.items()}


def _digest(value: object) -> str:
    return hashlib.sha256(orjson.dumps(value)).hexdigest()


def _described(request: Request, source: tuple[str, str],
               phrases: frozenset[str]) -> Iterator[tuple[AnswerValue, int, list[str]]]:
    """Values of a source, how many fields of their record the words mention, and what is true of them."""
    tool, path = source
    name_of = str(source)
    visited: set[tuple[object, ...]] = set()
    for answered, answer in request.answers:
        if answered != tool:
            continue
        for entry in answer.values.get(path, ()):
            if entry in visited:
                continue
            visited.add(entry)
            features = [name_of, f"{name_of} said {entry.value.lower() in phrases}",
                        f"{name_of} around {any(value in phrases for value in entry.around)}"]
            by_name: dict[str, list[bool]] = {}
            for name, value in entry.fields:
                by_name.setdefault(name, []).append(value in phrases)
            features += [f"{name_of} {name} {'all' if all(hits) else 'some' if any(hits) else 'none'}"
                         for name, hits in by_name.items()]
            yield entry, sum(sum(hits) for hits in by_name.values()), features
