"""Refusals that depend on more than the call: other documents, rows, sums, elements of lists. Learnt by contrast.

In: the calls of one tool, and the fields of its rule. Out: messages of a `check` rule (runtime/refusals.py). Ids, numbers and
what the call gave are the slots of a message. Refusals of one message are explained by conditions that hold in them and in no
call that worked; of conditions that hold in the same refusals, the simplest few must all hold, and they fill the slots. A
message with fewer than three different calls is not answered: where its conditions hold, the answer is unknown. The exception
is a message that names what is compared, if all calls that worked agree with it.

Totals: the sum of a number over the positions of a list, times the length of another list, plus up to two charges. A charge
is a constant times a given number, a list's length, or that length where an argument has one value. Two calls must confirm
it.

Checks without a message: a condition that every call that worked keeps (a value that another document always names, a charge
that never exceeds what an argument selects, an object with a value of a field that is there to be chosen and never was). A
call that breaks it has an unknown answer.

Sees: comparisons of two values one link away. Does not see: a reason that needs two conditions at once; slots that two terms
fill together; percentages, steps, charges that no call paid; conditions kept by chance; checks of some calls only.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from functools import reduce
from itertools import permutations, product
from math import prod
from typing import Any, NamedTuple

from env_builder.behaviour.examples import Expression
from env_builder.behaviour.guards import FEW_VALUES
from env_builder.behaviour.lists import elements_of
from env_builder.behaviour.terms import (
    MINIMUM_CONTRAST,
    NOWHERE,
    UNKNOWN,
    Compare,
    Position,
    Term,
    Truth,
    Worked,
    conditions,
    expressions,
    is_less,
    is_strange,
    is_word,
    measured,
    numbers_of,
    places,
    scopes_of,
    speaks_of,
    spread,
    value,
)
from env_builder.runtime.expressions import Scope
from env_builder.runtime.refusals import Condition, holds, message_text
from env_builder.runtime.relevance import leaves
from env_builder.runtime.tables import Table
from env_builder.runtime.texts import written
from env_builder.world.features import is_number

_SLOT = re.compile(r"[\w\-.]*\d[\w\-]*(?:\.\d+)?")


class MessageCase(NamedTuple):
    """A call, its canonical arguments, and the message it was refused with (None: it worked)."""

    scope: Scope
    key: str
    message: str | None


def skeleton(case: MessageCase) -> str:
    """Return the message with its slots as dots."""
    text = case.message or ""
    given = {leaf for leaf in leaves(case.scope.arguments) if isinstance(leaf, str) and len(leaf) > 2}
    for leaf in sorted(given, key=lambda leaf: (-len(leaf), leaf)):
        text = re.sub(rf"(?<!\w){re.escape(leaf)}(?!\w)", "·", text)
    return _SLOT.sub("·", text)


def slots_of(case: MessageCase) -> list[str]:
    """Return the texts of the message's slots."""
    pattern = "(.+?)".join(map(re.escape, skeleton(case).split("·")))
    matched = re.fullmatch(pattern, case.message or "", re.DOTALL)
    return list(matched.groups()) if matched else []


def pieces_of(
    refused: list[MessageCase], covers: frozenset[int], truth: Truth, terms: list[Term], anywhere: bool = False
) -> list[Any] | None:
    """Return the message's texts and slots, as they are where the condition first holds; None where a slot is not found."""
    if not covers:
        return None
    first = {place: [at for at, is_true in enumerate(truth[place]) if is_true] for place in covers}
    texts = {place: slots_of(refused[place]) for place in covers}
    parts = skeleton(refused[min(covers)]).split("·")
    if any(len(slots) != len(parts) - 1 for slots in texts.values()):
        return None
    pieces: list[Any] = [parts[0]] if parts[0] else []
    for slot, part in enumerate(parts[1:]):
        fitting = [term.expression for term in terms if all(
            any(fills(term.bad[place][at], texts[place][slot]) for at in (first[place] if anywhere else first[place][:1]))
            for place in covers)]
        if not fitting:
            return None
        pieces += [min(fitting, key=lambda e: (len(str(e)), str(e))), *([part] if part else [])]
    return pieces


def fills(value: Any, text: str) -> bool:
    """Is this how the value is written in a message?"""
    return value is not NOWHERE and value is not UNKNOWN and written(value, "plain", "as_given") == text


MINIMUM_ALWAYS = 5
"""Calls that worked in which what they gave must have named something."""
MAXIMUM_PLACES = 100
"""Calls that worked by which positions of lists are told apart."""
LOOKED_AT = 16
"""Calls that worked in which records are looked for that never were otherwise."""


def find(worked: list[Scope], sample: Worked, fields: dict[str, Any], classes: tuple[str, ...]) -> Iterator[Condition]:
    """Conditions that hold in no call that worked. `sample`: some of these calls; `fields`: what the rule makes of a call."""
    if len(worked) < MINIMUM_ALWAYS:
        return
    numbers = [e for e in numbers_of(fields, worked[0].arguments) if e[0] != "total"]
    for position in places(worked[:MAXIMUM_PLACES], fields):
        for kind, one, other in _pairs(sample, position, len(worked), classes, numbers):
            columns = zip(sample.values(one, position), sample.values(other, position), strict=True)
            n_told = _n_unbroken(is_less if kind == "less" else is_strange, columns)
            full = [kind, one, other] if position is None else ["any", *position, [kind, one, other]]
            if n_told >= MINIMUM_ALWAYS and not any(holds(full, scope) for scope in worked):
                yield full
        for row, field, values in _never_chosen(sample, position, classes):
            condition = ["among", [[*row, field]], [[value] for value in values]]
            full = condition if position is None else ["any", *position, condition]
            if not any(holds(full, scope) for scope in worked):
                yield full


CHANCE = 0.01
"""Chance below which it is no accident that nothing with a value was ever chosen."""


def _never_chosen(sample: Worked, position: Position, classes: tuple[str, ...]) -> Iterator[tuple[Expression, str, list[Any]]]:
    """Yield (an object that an argument chooses from several, a field, values that others beside it had and no chosen one),
    where calls that chose without regard to the field would hardly have left these values out."""
    for row, holder in _choices(sample, position, classes):
        chosen: dict[str, set[Any]] = defaultdict(set)
        candidates: list[list[dict[str, Any]]] = []
        for ours, others in zip(sample.values(row, position), sample.values(holder, position), strict=True):
            for one, whole in zip(ours, others, strict=True):
                if isinstance(one, dict) and isinstance(whole, dict | list):
                    elements = whole.values() if isinstance(whole, dict) else whole
                    candidates.append([each for each in elements if isinstance(each, dict)])
                    for field, there in one.items():
                        chosen[field].add(there if is_word(there) else UNKNOWN)
        for field, values in sorted(chosen.items()):
            columns = [[each.get(field) for each in rows] for rows in candidates]
            never = {each for column in columns for each in column if is_word(each)} - values
            few = UNKNOWN not in values and len(never | values) <= FEW_VALUES
            if never and few and _chance(columns, values) < CHANCE:
                yield row, field, sorted(never, key=str)


def _chance(columns: list[list[Any]], values: set[Any]) -> float:
    """Return the chance that one element of each column, drawn blindly, has one of these values."""
    return prod(sum(is_word(each) and each in values for each in column) / len(column) for column in columns if column)


def _choices(sample: Worked, position: Position, classes: tuple[str, ...]) -> Iterator[tuple[Expression, Expression]]:
    """Yield (object that an argument chooses, what holds all that it could have chosen)."""
    spoken: dict[str, tuple[Expression, Expression]] = {}
    scopes = sample.at(position)
    for some in scopes[:: max(1, len(scopes) // LOOKED_AT)][:LOOKED_AT]:
        for scope in some:
            for e, there in sample.features(scope, classes):
                holder = _holder(e) if isinstance(there, dict) else None
                if holder is not None and (position is None or speaks_of(e, position[0])):
                    spoken.setdefault(str(e), (e, holder))
    yield from (spoken[text] for text in sorted(spoken))


def _holder(expression: Expression) -> Expression | None:
    """Return what an argument chooses the object from: the object of its field, or the list with one that has its value."""
    if expression[0] == "at" and len(expression) == 3 and expression[2][:1] == ["argument"]:
        return list(expression[1])
    if expression[0] == "at" and len(expression) == 2 and expression[1][0] == "find" and expression[1][3][:1] == ["argument"]:
        return list(expression[1][1])
    return None


def _pairs(
    sample: Worked, position: Position, n_worked: int, classes: tuple[str, ...], numbers: list[Expression]
) -> Iterator[tuple[str, Expression, Expression]]:
    """(kind of comparison, what was given, what stands in another document)."""
    spoken: dict[str, tuple[Expression, Any]] = {}
    for scopes in sample.at(position)[:: max(1, n_worked // LOOKED_AT)][:LOOKED_AT]:
        for scope in scopes:
            for e, given_value in sample.features(scope, classes):
                if given_value is not None:
                    spoken.setdefault(str(e), (e, given_value))
    given = [e for e, _ in spoken.values() if e[0] == "argument" and (position is None or speaks_of(e, position[0]))]
    ids = [e for e in given if _is_id(e, sample, position)]
    linked = [(e, value) for e, value in spoken.values() if e[0] == "at" and "document" in str(e[1])]
    holders = [e for e, value in linked if e[1][0] == "document" and isinstance(value, dict)]
    yield from (("strange", e, holder) for e, holder in product(ids, holders))
    if position is None:
        chosen = [e for e, value in linked if is_number(value) and len(e) > 2 and e[2][:1] == ["argument"]]
        yield from (("less", e, number) for e, number in product(chosen, numbers) if _is_tested(e, number, sample))


def _n_unbroken(compare: Compare, columns: Iterator[tuple[list[Any], list[Any]]]) -> int:
    """In how many calls the comparison does not hold, 0 as soon as it holds in one."""
    n_told = 0
    for first_value, right in columns:
        outcomes = list(map(compare, first_value, right))
        if True in outcomes:
            return 0
        n_told += False in outcomes
    return n_told


def _is_tested(operand: Expression, number: Expression, sample: Worked) -> bool:
    """Was something charged where it is known what is left, in several calls?"""
    both = zip(sample.values(operand, None), sample.values(number, None), strict=True)
    return sum(bool(is_number(one) and is_number(other) and other > 0) for (one,), (other,) in both) >= MINIMUM_CONTRAST


def _is_id(expression: Expression, sample: Worked, position: Position) -> bool:
    texts = [value for column in sample.values(expression, position) for value in column if isinstance(value, str)]
    return bool(texts) and all(any(map(str.isdigit, value)) for value in texts)


MINIMUM_CHARGED_CALLS = 3
MINIMUM_CHARGED = 2
MINIMUM_SHARE = 0.5
"""Share of the calls in which the sum must be known."""
FEW = 4
"""Values of an argument up to which a charge may hang on one of them."""
Examples = list[tuple[Scope, Any]]
"""(call, what it comes to)."""


def fit(examples: Examples, elements: list[tuple[list[str], Expression]]) -> Expression | None:
    """Return the simplest total that gives every number, of calls in which its sum is known; it must be in most."""
    once = list({str((scope.arguments, number)): (scope, number) for scope, number in examples}.values())
    sums: list[Expression] = [["sum", ["rows", names, e]] for names, e in elements]
    for base in (*sums, *(["times", one, length] for one in sums for length in _lengths(once[0][0]))):
        measured = [(scope, number, basis) for scope, number in once for basis in [value(base, scope)] if is_number(basis)]
        if len(measured) < MINIMUM_SHARE * len(once) or len({str(number) for _, number, _ in measured}) < MINIMUM_CHARGED_CALLS:
            continue
        rest = [number - basis for _, number, basis in measured]
        charges = list(_charges([scope for scope, _, _ in measured])) if any(rest) else []
        for n in (0, 1, 2):
            for some in permutations(charges, n):
                charged = _charged(rest, list(some))
                if charged is not None:
                    return reduce(lambda total, e: ["plus", total, e], charged, base)
    return None


def _lengths(scope: Scope) -> list[Expression]:
    return [
        *(["length", ["argument", name]] for name, given in sorted(scope.arguments.items()) if isinstance(given, list)),
        *(["length", ["before", name]] for name, kept in sorted(scope.before.items()) if isinstance(kept, list))]


def _charges(scopes: list[Scope]) -> Iterator[tuple[Expression, list[Any]]]:
    """Yield what may be charged for, with how much of it each call had."""
    first = scopes[0]
    lengths = _lengths(first)
    switched: list[Expression] = []
    for name in sorted(first.arguments):
        given = [value(["argument", name], scope) for scope in scopes]
        if all(isinstance(one, str | bool) for one in given) and 1 < len(set(given)) <= FEW:
            switched += [
                ["first", ["same", ["argument", name], ["constant", one], unit], ["constant", 0]]
                for one in sorted(set(given), key=str) for unit in (*lengths, ["constant", 1])]
    units: list[Expression] = [["argument", name] for name, given in sorted(first.arguments.items()) if is_number(given)]
    for e in (*units, *lengths, *switched):
        amounts = [value(e, scope) for scope in scopes]
        if all(is_number(one) for one in amounts) and any(amounts):
            yield e, amounts


def _charged(rest: list[Any], charges: list[tuple[Expression, list[Any]]]) -> list[Expression] | None:
    """Return the charges with their constants, where they give all that is left."""
    explained: list[Expression] = []
    for place, (e, amounts) in enumerate(charges):
        later = charges[place + 1:]
        alone = [remainder / n for remainder, n, *others in zip(rest, amounts, *(more for _, more in later), strict=True)
                 if n and not any(others)]
        if len(alone) < MINIMUM_CHARGED or len(set(alone)) != 1 or not alone[0]:
            return None
        constant = int(alone[0]) if alone[0] == int(alone[0]) else alone[0]
        explained.append(["times", e, ["constant", constant]])
        rest = [remainder - n * constant for remainder, n in zip(rest, amounts, strict=True)]
    return None if any(rest) else explained


MINIMUM_CALLS = 3
"""Different calls that must have been refused so before the refusal is said."""
MAXIMUM_CONDITIONS = 4
MAXIMUM_WORKED = 100
SAMPLES = 2


class Explanation(NamedTuple):
    """A condition and the refused calls in which it holds, by place."""

    doubts: tuple[bool, ...]
    """A slot is not found; a slot is not spoken of; it only remembers what was refused."""
    size: int
    condition: Condition
    covers: frozenset[int]
    pieces: list[Any] | None


class KnownTerms(NamedTuple):
    """What conditions may be made of."""

    fields: dict[str, Any]
    classes: tuple[str, ...]
    rows: Mapping[str, Table]
    lasting: bool
    """Every session begins from the same world: what was refused once is refused again."""


def induce(cases: list[MessageCase], terms: KnownTerms) -> list[dict[str, Any]]:
    """Messages of the rule. `cases`: calls of which the record that they speak of is known."""
    worked = [case for case in cases if case.message is None]
    groups: dict[str, list[MessageCase]] = defaultdict(list)
    for case in cases:
        if case.message is not None:
            groups[skeleton(case)].append(case)
    messages: list[dict[str, Any]] = []
    sample = Worked([case.scope for case in worked[:: max(1, len(worked) // MAXIMUM_WORKED)]])
    for _, refused in sorted(groups.items()):
        messages += _explained(refused, worked, sample, terms)
    spoken = [when for one in messages for when in one["when"]]
    never = find([case.scope for case in worked], sample, terms.fields, terms.classes)
    messages += [{"when": [one], "pieces": None} for one in never if one not in spoken]
    for one in messages:
        own = [case for case in cases if _says(one, case)]
        truths = [[(case.key, [holds(when, case.scope) for when in other["when"]]) for case in own] for other in messages]
        one["over"] = [place for place, truth in enumerate(truths) if messages[place] is not one
                       and any(True in of_case for _, of_case in truth)]
        one["past"] = [place for place, truth in enumerate(truths) if messages[place] is not one
                       and len({key for key, of_case in truth if None in of_case}) >= MINIMUM_CALLS]
    return messages


def _says(message: dict[str, Any], case: MessageCase) -> bool:
    """Was the call refused in the words of the message, and for its reasons?"""
    return (case.message is not None and message["pieces"] is not None
            and all(holds(when, case.scope) for when in message["when"]) and message_text(message, case.scope) == case.message)


def understood(messages: list[dict[str, Any]], cases: list[MessageCase]) -> list[MessageCase]:
    """Return calls that worked, or were refused in the words of one of the messages."""
    return [case for case in cases if case.message is None or any(_says(one, case) for one in messages)]


def _explained(
    refused: list[MessageCase], worked: list[MessageCase], sample: Worked, terms: KnownTerms
) -> Iterator[dict[str, Any]]:
    """Messages for the refusals of one skeleton: the conditions that hold in most of them, then in most of the rest."""
    candidates = sorted(
        _find_explanations(refused, worked, sample, terms), key=lambda one: (one.doubts, one.size, str(one.condition)))
    unexplained = frozenset(range(len(refused)))
    while unexplained:
        covers = max((one.covers & unexplained for one in candidates), key=len, default=frozenset[int]())
        alike = [one for one in candidates if one.covers & unexplained == covers]
        if not covers:
            return
        alike = [one for one in alike if one.doubts == alike[0].doubts]
        open_ = {place for place in unexplained if any(holds(one.condition, refused[place].scope) is None for one in alike[:1])}
        many = len(covers) > 1 and len({refused[place].key for place in covers | open_}) >= MINIMUM_CALLS
        rare = {} if many else {"rare": True}
        yield {"when": [one.condition for one in alike[:MAXIMUM_CONDITIONS]],
               **({"pieces": alike[0].pieces, **rare} if many or _speaks_for_itself(alike[0]) else {"pieces": None})}
        unexplained -= covers


def _speaks_for_itself(explanation: Explanation) -> bool:
    """Return whether the message names what the condition says, and no call that worked ever met the condition."""
    kind = explanation.condition[3][0] if explanation.condition[0] == "any" else explanation.condition[0]
    named = any(not isinstance(piece, str) for piece in explanation.pieces or ())
    return kind in ("strange", "less") and named and not any(explanation.doubts)


def _find_explanations(
    refused: list[MessageCase], worked: list[MessageCase], sample: Worked, known_terms: KnownTerms,
) -> Iterator[Explanation]:
    numbers = numbers_of(known_terms.fields, refused[0].scope.arguments)
    numbers += [one for one in [_total(refused, worked, known_terms, numbers)] if one]
    whole: list[Term] = []
    for position in places([case.scope for case in (*refused, *worked[:MAXIMUM_WORKED])], known_terms.fields):
        bad = [scopes_of(case.scope, position) for case in refused]
        spoken: dict[str, Expression] = {}
        for scopes in bad[:: max(1, len(bad) // SAMPLES)][:SAMPLES]:
            for scope in scopes:
                for e in expressions(scope, position, known_terms.classes, known_terms.rows, numbers):
                    spoken.setdefault(str(e), e)
        own = {text: e for text, e in spoken.items() if position is None or speaks_of(e, position[0])}
        terms = measured(own, position, bad, sample)
        others = [spread(term, bad, sample.at(position)) for term in whole]
        whole = terms if position is None else whole
        remembered = _remembered(terms, refused) if known_terms.lasting else ()
        for condition, truth in (*conditions(terms, others, sample.things), *remembered):
            full = condition if position is None else ["any", *position, condition]
            if any(holds(full, case.scope) for case in worked):
                continue
            covers = frozenset(place for place, row_of_truth in enumerate(truth) if True in row_of_truth)
            pieces = pieces_of(refused, covers, truth, [*terms, *others])
            named = pieces is not None and all(str(piece) in str(condition) for piece in pieces if not isinstance(piece, str))
            memory = condition[0] == "among" and bool(condition[1][1:] or condition[1][0] in (pieces or ()))
            text = str(full)
            for number in sorted(map(str, numbers), key=len, reverse=True):
                text = text.replace(number, "#")
            yield Explanation((pieces is None, not named, memory), len(text), full, covers, pieces)


def _remembered(terms: list[Term], refused: list[MessageCase]) -> Iterator[tuple[Condition, Truth]]:
    """Yield what the slots named is what was refused before."""
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
        truth.append([[str(one) for one in shown] == texts for shown in here])
        tuples += [shown for shown in here if [str(one) for one in shown] == texts and shown not in tuples]
    tuples.sort(key=str)
    yield ["among", slots, tuples], truth


def _total(
    refused: list[MessageCase], worked: list[MessageCase], terms: KnownTerms, numbers: list[Expression]
) -> Expression | None:
    """Return what a number in the messages comes to if it is no value at hand; in calls that worked another slot gives it."""
    texts = [slots_of(case) for case in refused]
    elements = list(elements_of(terms.fields))
    if not elements or len({len(numbers_in) for numbers_in in texts}) != 1:
        return None
    spoken = [*numbers, *expressions(refused[0].scope, None, (), {}, [])]
    told_by = list(zip(refused, texts, strict=True))
    explaining = [[e for e in spoken if all(fills(value(e, case.scope), numbers_in[slot]) for case, numbers_in in told_by)]
               for slot in range(len(texts[0]))]
    for slot in (slot for slot, own in enumerate(explaining) if not own and all(each[slot].isdigit() for each in texts)):
        examples = [(case.scope, int(numbers_in[slot])) for case, numbers_in in told_by]
        for e in (own[0] for own in explaining if own):
            paid = [(case.scope, value(e, case.scope)) for case in worked]
            more = [(scope, number) for scope, number in paid if is_number(number)]
            total = fit([*examples, *more], [one for one in elements if ["sum", ["rows", *one]] != e])
            if total is not None:
                return total
        total = fit(examples, elements)
        if total is not None:
            return total
    return None
