"""Refusals for what hangs together with a call, learnt by contrast: other documents, rows, sums, elements of lists.

In: calls of one tool, and the fields of its rule (what they are computed from are terms too). Out: messages of a `check` rule
(runtime/linked.py). Refusals of one message (ids, numbers and what the call gave are its slots) are explained by conditions
that hold in them and in no call that worked; the simplest few that hold in the same must all hold, and give the slots.
What fewer than three different calls speak for is not said: where it holds, nobody knows; but for a message that names what
is compared, and that all calls that worked bear out.
Sees: comparisons of two values one link away. Does not see: a reason that needs two conditions at once.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from env_builder.behaviour import totals, unbroken
from env_builder.behaviour.comparisons import Truth, conditions
from env_builder.behaviour.examples import Expression
from env_builder.behaviour.joins import elements_of
from env_builder.behaviour.terms import (
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
from env_builder.behaviour.wording import Case, fills, pieces_of, skeleton, slots_of
from env_builder.runtime.linked import Condition, holds, said
from env_builder.runtime.tables import Table
from env_builder.world.features import is_number

MINIMUM_CALLS = 3
"""Different calls that must have been refused so before the refusal is said."""
MAXIMUM_CONDITIONS = 4
MAXIMUM_WORKED = 100
SAMPLES = 2


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
    never = unbroken.find([case.scope for case in worked], sample, known.fields, known.classes)
    messages += [{"when": [one], "pieces": None} for one in never if one not in spoken]
    for one in messages:
        own = [case for case in cases if _is_said(one, case)]
        held = [[(case.key, [holds(when, case.scope) for when in other["when"]]) for case in own] for other in messages]
        one["over"] = [place for place, told in enumerate(held) if messages[place] is not one
                       and any(True in found for _, found in told)]
        one["past"] = [place for place, told in enumerate(held) if messages[place] is not one
                       and len({key for key, found in told if None in found}) >= MINIMUM_CALLS]
    return messages


def _is_said(message: dict[str, Any], case: Case) -> bool:
    """Was the call refused in the words of the message, and for its reasons?"""
    return (case.message is not None and message["pieces"] is not None
            and all(holds(when, case.scope) for when in message["when"]) and said(message, case.scope) == case.message)


def understood(messages: list[dict[str, Any]], cases: list[Case]) -> list[Case]:
    """Calls that worked, or were refused in the words of one of the messages."""
    return [case for case in cases if case.message is None or any(_is_said(one, case) for one in messages)]


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
        rare = {} if many else {"rare": True}
        yield {"when": [one.condition for one in alike[:MAXIMUM_CONDITIONS]],
               **({"pieces": alike[0].pieces, **rare} if many or _speaks_for_itself(alike[0]) else {"pieces": None})}
        left -= covers


def _speaks_for_itself(found: Found) -> bool:
    """Does the message name what the condition, which no call that worked ever met, says of it?"""
    kind = found.condition[3][0] if found.condition[0] == "any" else found.condition[0]
    named = any(not isinstance(piece, str) for piece in found.pieces or ())
    return kind in ("strange", "less") and named and not any(found.doubts)


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
        remembered = _remembered(terms, refused) if known.lasting else ()
        for condition, truth in (*conditions(terms, others, sample.things), *remembered):
            full = condition if position is None else ["any", *position, condition]
            if any(holds(full, case.scope) for case in worked):
                continue
            covers = frozenset(place for place, told in enumerate(truth) if True in told)
            pieces = pieces_of(refused, covers, truth, [*terms, *others])
            named = pieces is not None and all(str(piece) in str(condition) for piece in pieces if not isinstance(piece, str))
            memory = condition[0] == "among" and bool(condition[1][1:] or condition[1][0] in (pieces or ()))
            yield Found((pieces is None, not named, memory), _size(full, numbers), full, covers, pieces)


def _size(condition: Condition, numbers: list[Expression]) -> int:
    """How much a condition says; a number that the tool computes anyhow is one word."""
    text = str(condition)
    for number in sorted(map(str, numbers), key=len, reverse=True):
        text = text.replace(number, "#")
    return len(text)


def _remembered(terms: list[Term], refused: list[Case]) -> Iterator[tuple[Condition, Truth]]:
    """What the slots named is what was refused before."""
    if not terms:
        return
    everywhere: Truth = [[True for _ in column] for column in terms[0].bad]
    pieces = pieces_of(refused, frozenset(range(len(refused))), everywhere, terms, anywhere=True)
    slots = [piece for piece in pieces or () if not isinstance(piece, str)]
    if not slots or any(slot[0] != "argument" for slot in slots):
        return
    by = {str(term.expression): term for term in terms}
    wanted = [slots_of(case) for case in refused]
    columns = [by[str(slot)] for slot in slots]
    tuples: list[list[Any]] = []
    truth: Truth = []
    for place, texts in enumerate(wanted):
        here = [[column.bad[place][at] for column in columns] for at in range(len(columns[0].bad[place]))]
        truth.append([[str(one) for one in seen] == texts for seen in here])
        tuples += [seen for seen in here if [str(one) for one in seen] == texts and seen not in tuples]
    tuples.sort(key=str)
    yield ["among", slots, tuples], truth


def _total(refused: list[Case], worked: list[Case], known: Known, numbers: list[Expression]) -> Expression | None:
    """What a number in the messages comes to, where it is no value at hand; in calls that worked, another slot says it."""
    texts = [slots_of(case) for case in refused]
    elements = list(elements_of(known.fields))
    if not elements or len({len(found) for found in texts}) != 1:
        return None
    spoken = [*numbers, *expressions(refused[0].scope, None, (), {}, [])]
    told_by = list(zip(refused, texts, strict=True))
    said_by = [[e for e in spoken if all(fills(value(e, case.scope), found[slot]) for case, found in told_by)]
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
