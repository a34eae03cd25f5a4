"""Refusals for what hangs together with a call, learnt by contrast: other documents, rows, sums, elements of lists.

In: calls of one tool, and the fields of its rule (what they are computed from are terms too). Out: messages of a `check` rule
(runtime/linked.py). Refusals of one message (ids, numbers and what the call gave are its slots) are explained by conditions
that hold in them and in no call that worked; the simplest few that hold in the same must all hold, and give the slots.
What fewer than three different calls speak for is not said: where it holds, nobody knows.
Sees: comparisons of two values one link away. Does not see: a reason that needs two conditions at once.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from itertools import islice, permutations, product
from typing import Any, NamedTuple

from env_builder.behaviour import totals
from env_builder.behaviour.examples import Expression
from env_builder.behaviour.joins import elements_of
from env_builder.behaviour.terms import (
    NOWHERE,
    UNKNOWN,
    Position,
    Term,
    Worked,
    expressions,
    measured,
    numbers_of,
    places,
    scopes_of,
    speaks_of,
    spread,
    value,
)
from env_builder.runtime.expressions import Scope
from env_builder.runtime.linked import Condition, holds, said
from env_builder.runtime.relevance import leaves
from env_builder.runtime.tables import Table
from env_builder.runtime.texts import written
from env_builder.world.features import is_number

MINIMUM_CALLS = 3
"""Different calls that must have been refused so before the refusal is said."""
MINIMUM_CONTRAST = 3
"""Calls that worked in which a condition must have been told."""
MINIMUM_ALWAYS = 5
"""Calls that worked in which what they gave must have named something."""
MAXIMUM_CONDITIONS = 4
MAXIMUM_WORKED = 100
MAXIMUM_NUMBERS = 40
MAXIMUM_VALUES = 3
SAMPLES = 2
LOOKED_AT = 16
"""Calls that worked in which things are looked for that never were otherwise."""
COMPUTED = ("sum", "total", "times", "minus", "plus", "round", "absolute", "length")
_SLOT = re.compile(r"[\w\-.]*\d[\w\-]*(?:\.\d+)?")
Truth = list[list[bool | None]]


class Case(NamedTuple):
    """A call, its canonical arguments, and the message it was refused with (None: it worked)."""

    scope: Scope
    key: str
    message: str | None


class Found(NamedTuple):
    """A condition and the refused calls in which it holds, by place."""

    doubts: tuple[bool, ...]
    """A slot is not found; a slot is not spoken of; it only remembers what was refused."""
    size: int
    condition: Condition
    covers: frozenset[int]
    pieces: list[Any] | None


class Known(NamedTuple):
    """What conditions may be made of."""

    fields: dict[str, Any]
    classes: tuple[str, ...]
    rows: Mapping[str, Table]
    lasting: bool
    """Every session begins from the same world: what was refused once is refused again."""


def induce(cases: list[Case], known: Known) -> list[dict[str, Any]]:
    """Messages of the rule. `cases`: calls of which the thing that they speak of is known."""
    worked = [case for case in cases if case.message is None]
    groups: dict[str, list[Case]] = defaultdict(list)
    for case in cases:
        if case.message is not None:
            groups[skeleton(case)].append(case)
    messages: list[dict[str, Any]] = []
    sample = Worked([case.scope for case in worked[:: max(1, len(worked) // MAXIMUM_WORKED)]])
    for _, refused in sorted(groups.items()):
        messages += _explained(refused, worked, sample, known)
    spoken = [when for one in messages for when in one["when"]]
    messages += [one for one in _never_broken(worked, sample, known) if one["when"][0] not in spoken]
    for one in messages:
        own = [case for case in cases if _is_said(one, case)]
        held = [[(case.key, [holds(when, case.scope) for when in other["when"]]) for case in own] for other in messages]
        one["over"] = [place for place, told in enumerate(held) if messages[place] is not one
                       and any(True in found for _, found in told)]
        one["past"] = [place for place, told in enumerate(held) if messages[place] is not one
                       and len({key for key, found in told if None in found}) >= MINIMUM_CALLS]
    return messages


def _never_broken(worked: list[Case], sample: Worked, known: Known) -> Iterator[dict[str, Any]]:
    """What calls that worked never broke: what they gave always named something in another document, and what they charged was
    never more than what an argument selects there. What becomes of calls that break it nobody knows."""
    if len(worked) < MINIMUM_ALWAYS:
        return
    numbers = [e for e in numbers_of(known.fields, worked[0].scope.arguments) if e[0] != "total"]
    for position in places([case.scope for case in worked[:MAXIMUM_WORKED]], known.fields):
        spoken: dict[str, Expression] = {}
        for scopes in sample.at(position)[:: max(1, len(worked) // LOOKED_AT)][:LOOKED_AT]:
            for scope in scopes:
                for e in expressions(scope, position, known.classes, {}, []):
                    spoken.setdefault(str(e), e)
        linked = [e for e in spoken.values() if e[0] == "at" and "document" in str(e[1])]
        given = [e for e in spoken.values() if e[0] == "argument" and (position is None or speaks_of(e, position[0]))]
        ids = [e for e in given if _is_id(e, sample, position)]
        holders = [e for e in linked if ids and e[1][0] == "document" and _holds_any(e, sample, position, dict)]
        pairs: list[tuple[str, Expression, Expression]] = [("strange", e, holder) for e, holder in product(ids, holders)]
        if position is None:
            chosen = [e for e in linked if len(e) > 2 and isinstance(e[2], list) and e[2][:1] == ["argument"]]
            left = [e for e in chosen if numbers and _holds_any(e, sample, None, int | float)]
            pairs += [("less", e, number) for e, number in product(left, numbers) if _is_tested(e, number, sample)]
        for kind, one, other in pairs:
            columns = zip(sample.values(one, position), sample.values(other, position), strict=True)
            compare = _is_less if kind == "less" else _is_strange
            told = [[compare(a, b) for a, b in zip(left, right, strict=True)] for left, right in columns]
            full = [kind, one, other] if position is None else ["any", *position, [kind, one, other]]
            if sum(False in held for held in told) >= MINIMUM_ALWAYS and not any(True in held for held in told) and not any(
                holds(full, case.scope) for case in worked
            ):
                yield {"when": [full], "pieces": None}


def _holds_any(expression: Expression, sample: Worked, position: Position, kind: Any) -> bool:
    """Is one of the first values that are known of this kind?"""
    known = (seen for scopes in sample.at(position) for scope in scopes
             if (seen := value(expression, scope)) is not NOWHERE and seen is not UNKNOWN)
    return any(isinstance(seen, kind) for seen in islice(known, LOOKED_AT))


def _is_tested(left: Expression, number: Expression, sample: Worked) -> bool:
    """Was something charged where it is known what is left, in several calls?"""
    both = zip(sample.values(left, None), sample.values(number, None), strict=True)
    return sum(bool(is_number(one) and is_number(other) and other > 0) for (one,), (other,) in both) >= MINIMUM_CONTRAST


def _is_id(expression: Expression, sample: Worked, position: Position) -> bool:
    texts = [seen for column in sample.values(expression, position) for seen in column if isinstance(seen, str)]
    return bool(texts) and all(any(map(str.isdigit, seen)) for seen in texts)


def _is_said(message: dict[str, Any], case: Case) -> bool:
    """Was the call refused in the words of the message, and for its reasons?"""
    return (case.message is not None and message["pieces"] is not None
            and all(holds(when, case.scope) for when in message["when"]) and said(message, case.scope) == case.message)


def understood(messages: list[dict[str, Any]], cases: list[Case]) -> list[Case]:
    """Calls that worked, or were refused in the words of one of the messages."""
    return [case for case in cases if case.message is None or any(_is_said(one, case) for one in messages)]


def skeleton(case: Case) -> str:
    """The message with its slots as dots."""
    text = case.message or ""
    given = {leaf for leaf in leaves(case.scope.arguments) if isinstance(leaf, str) and len(leaf) > 2}
    for leaf in sorted(given, key=lambda leaf: (-len(leaf), leaf)):
        text = re.sub(rf"(?<!\w){re.escape(leaf)}(?!\w)", "·", text)
    return _SLOT.sub("·", text)


def _explained(refused: list[Case], worked: list[Case], sample: Worked, known: Known) -> Iterator[dict[str, Any]]:
    """Messages for the refusals of one skeleton: the conditions that hold in most of them, then in most of the rest."""
    found = sorted(_found(refused, worked, sample, known), key=lambda one: (one.doubts, one.size, str(one.condition)))
    left = frozenset(range(len(refused)))
    while left:
        covers = max((one.covers & left for one in found), key=len, default=frozenset[int]())
        alike = [one for one in found if one.covers & left == covers]
        if not covers:
            return
        alike = [one for one in alike if one.doubts == alike[0].doubts]
        open_ = {place for place in left if any(holds(one.condition, refused[place].scope) is None for one in alike[:1])}
        many = len(covers) > 1 and len({refused[place].key for place in covers | open_}) >= MINIMUM_CALLS
        yield {"when": [one.condition for one in alike[:MAXIMUM_CONDITIONS]], "pieces": alike[0].pieces if many else None}
        left -= covers


def _found(refused: list[Case], worked: list[Case], sample: Worked, known: Known) -> Iterator[Found]:
    numbers = numbers_of(known.fields, refused[0].scope.arguments)
    numbers += [one for one in [_total(refused, worked, known, numbers)] if one]
    whole: list[Term] = []
    for position in places([case.scope for case in (*refused, *worked[:MAXIMUM_WORKED])], known.fields):
        bad = [scopes_of(case.scope, position) for case in refused]
        spoken: dict[str, Expression] = {}
        for scopes in bad[:: max(1, len(bad) // SAMPLES)][:SAMPLES]:
            for scope in scopes:
                for e in expressions(scope, position, known.classes, known.rows, numbers):
                    spoken.setdefault(str(e), e)
        own = {text: e for text, e in spoken.items() if position is None or speaks_of(e, position[0])}
        terms = measured(own, position, bad, sample)
        others = [spread(term, bad, sample.at(position)) for term in whole]
        whole = terms if position is None else whole
        for condition, truth in _conditions(terms, others, known, refused):
            full = condition if position is None else ["any", *position, condition]
            if any(holds(full, case.scope) for case in worked):
                continue
            covers = frozenset(place for place, told in enumerate(truth) if True in told)
            pieces = _pieces(refused, covers, truth, [*terms, *others])
            named = pieces is not None and all(str(piece) in str(condition) for piece in pieces if not isinstance(piece, str))
            memory = condition[0] == "among" and bool(condition[1][1:] or condition[1][0] in (pieces or ()))
            yield Found((pieces is None, not named, memory), _size(full, numbers), full, covers, pieces)


def _size(condition: Condition, numbers: list[Expression]) -> int:
    """How much a condition says; a number that the tool computes anyhow is one word."""
    text = str(condition)
    for number in sorted(map(str, numbers), key=len, reverse=True):
        text = text.replace(number, "#")
    return len(text)


def _conditions(
    terms: list[Term], others: list[Term], known: Known, refused: list[Case]
) -> Iterator[tuple[Condition, Truth]]:
    """(condition, where it holds in the refused calls), each with one of `terms` at least."""
    for term in terms:
        yield from _one_of(term)
    texts, more = (
        [term for term in some if term.expression[0] == "argument" and _any(term.bad, str)] for some in (terms, others))
    holders, wider = ([term for term in some if _any(term.bad, dict | list)] for some in (terms, others))
    yield from _compared("strange", [*product(texts, [*holders, *wider]), *product(more, holders)], _is_strange)
    numbers, rest = (
        sorted((term for term in some if _any(term.bad, int | float)), key=lambda term: (
            term.expression[0] not in COMPUTED, len(str(term.expression))))[:MAXIMUM_NUMBERS] for some in (terms, others))
    pairs = [*permutations(numbers, 2), *product(numbers, rest), *product(rest, numbers)]
    yield from _compared("less", pairs, _is_less)
    once = [(one, other) for one, other in pairs if str(one.expression) < str(other.expression)]
    yield from _compared("differ", once, _differs)
    if known.lasting:
        yield from _remembered(terms, refused)


def _any(columns: list[list[Any]], kind: Any) -> bool:
    return any(isinstance(seen, kind) and not isinstance(seen, bool) for column in columns for seen in column)


def _compared(kind: str, pairs: Any, compare: Any) -> Iterator[tuple[Condition, Truth]]:
    for one, other in pairs:
        n_told = 0
        for left, right in zip(one.good, other.good, strict=True):
            told = [compare(a, b) for a, b in zip(left, right, strict=True)]
            if True in told:
                break
            n_told += any(a is not NOWHERE and b is not NOWHERE and held is False
                          for a, b, held in zip(left, right, told, strict=True))
        else:
            truth = [[compare(a, b) for a, b in zip(left, right, strict=True)]
                     for left, right in zip(one.bad, other.bad, strict=True)]
            if n_told >= MINIMUM_CONTRAST and any(True in told for told in truth):
                yield [kind, one.expression, other.expression], truth


def _is_less(one: Any, other: Any) -> bool | None:
    if one is NOWHERE or other is NOWHERE:
        return False
    return one < other if is_number(one) and is_number(other) else None


def _differs(one: Any, other: Any) -> bool | None:
    if one is NOWHERE or other is NOWHERE:
        return False
    return None if one is UNKNOWN or other is UNKNOWN else bool(one != other)


def _is_strange(one: Any, other: Any) -> bool | None:
    if one is NOWHERE or other is NOWHERE:
        return False
    return one not in other if isinstance(other, dict | list) and isinstance(one, str) else None


def _one_of(term: Term) -> Iterator[tuple[Condition, Truth]]:
    """The term has one of the few values that it had in refused calls and in none that worked."""
    good = [seen for column in term.good for seen in column]
    plain = [seen for column in term.bad for seen in column if _is_plain(seen)]
    values = sorted({seen for seen in plain if seen not in good}, key=str)
    n_told = sum(any(_is_plain(seen) for seen in column) for column in term.good)
    if 0 < len(values) <= MAXIMUM_VALUES and n_told >= MINIMUM_CONTRAST:
        truth: Truth = [[_is_plain(seen) and seen in values if seen is not UNKNOWN else None for seen in column]
                        for column in term.bad]
        yield ["among", [term.expression], [[seen] for seen in values]], truth


def _is_plain(seen: Any) -> bool:
    """Is it a value of few: no id, no number, no list?"""
    return isinstance(seen, bool) or (isinstance(seen, str) and not any(map(str.isdigit, seen)))


def _remembered(terms: list[Term], refused: list[Case]) -> Iterator[tuple[Condition, Truth]]:
    """What the slots named is what was refused before."""
    if not terms:
        return
    everywhere: Truth = [[True for _ in column] for column in terms[0].bad]
    pieces = _pieces(refused, frozenset(range(len(refused))), everywhere, terms, anywhere=True)
    slots = [piece for piece in pieces or () if not isinstance(piece, str)]
    if not slots or any(slot[0] != "argument" for slot in slots):
        return
    by = {str(term.expression): term for term in terms}
    wanted = [_slots_of(case) for case in refused]
    columns = [by[str(slot)] for slot in slots]
    tuples: list[list[Any]] = []
    truth: Truth = []
    for place, texts in enumerate(wanted):
        here = [[column.bad[place][at] for column in columns] for at in range(len(columns[0].bad[place]))]
        truth.append([[str(one) for one in seen] == texts for seen in here])
        tuples += [seen for seen in here if [str(one) for one in seen] == texts and seen not in tuples]
    tuples.sort(key=str)
    yield ["among", slots, tuples], truth


def _slots_of(case: Case) -> list[str]:
    """The texts of the message's slots."""
    pattern = "(.+?)".join(map(re.escape, skeleton(case).split("·")))
    found = re.fullmatch(pattern, case.message or "", re.DOTALL)
    return list(found.groups()) if found else []


def _pieces(
    refused: list[Case], covers: frozenset[int], truth: Truth, terms: list[Term], anywhere: bool = False
) -> list[Any] | None:
    """The message's texts and slots, as they are where the condition first holds; None where a slot is not found."""
    if not covers:
        return None
    first = {place: [at for at, held in enumerate(truth[place]) if held] for place in covers}
    texts = {place: _slots_of(refused[place]) for place in covers}
    parts = skeleton(refused[min(covers)]).split("·")
    if any(len(found) != len(parts) - 1 for found in texts.values()):
        return None
    pieces: list[Any] = [parts[0]] if parts[0] else []
    for slot, part in enumerate(parts[1:]):
        fitting = [term.expression for term in terms if all(
            any(_is(term.bad[place][at], texts[place][slot]) for at in (first[place] if anywhere else first[place][:1]))
            for place in covers)]
        if not fitting:
            return None
        pieces += [min(fitting, key=lambda e: (len(str(e)), str(e))), *([part] if part else [])]
    return pieces


def _is(seen: Any, text: str) -> bool:
    return seen is not NOWHERE and seen is not UNKNOWN and written(seen, "plain", "as_given") == text


def _total(refused: list[Case], worked: list[Case], known: Known, numbers: list[Expression]) -> Expression | None:
    """What a number in the messages comes to, where it is no value at hand; in calls that worked, another slot says it."""
    texts = [_slots_of(case) for case in refused]
    elements = list(elements_of(known.fields))
    if not elements or len({len(found) for found in texts}) != 1:
        return None
    spoken = [*numbers, *expressions(refused[0].scope, None, (), {}, [])]
    told_by = list(zip(refused, texts, strict=True))
    said_by = [[e for e in spoken if all(_is(value(e, case.scope), found[slot]) for case, found in told_by)]
               for slot in range(len(texts[0]))]
    for slot in (slot for slot, own in enumerate(said_by) if not own and all(found[slot].isdigit() for found in texts)):
        told = [(case.scope, int(found[slot])) for case, found in told_by]
        for e in (own[0] for own in said_by if own):
            paid = [(case.scope, value(e, case.scope)) for case in worked]
            more = [(scope, number) for scope, number in paid if is_number(number)]
            total = totals.fit([*told, *more], [one for one in elements if ["sum", ["rows", *one]] != e])
            if total is not None:
                return total
        total = totals.fit(told, elements)
        if total is not None:
            return total
    return None
