"""Learn how a site writes ages: from texts of its pages, and times at which what they are about may have begun.

A text is an example with each time that its row or page names, and those of posts about its entity. Texts that differ in their
numbers alone are one form. A form with one or two numbers is an age if one way of counting (units of natural lengths, rounded
down, to the nearest or up) explains most examples, and not the same numbers given to other examples. Where such forms stand,
other texts (`yesterday`) are forms without numbers. Between two forms the latter begins at the age that fewest examples
contradict, of several the roundest. What is learnt of half of the examples must say the other half.
Does not see: ages by the calendar; forms of ages of which no post and no page tells when they began.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from itertools import pairwise
from typing import NamedTuple, TypeAlias

from env_builder.runtime.site.aged import instants_told, named_instants, row_paths
from env_builder.runtime.site.ages import NUMBER, AgeForm, AgeFormat, numbers_of
from env_builder.runtime.site.times import SiteTimes, instants_in
from env_builder.runtime.site.trees import Element, decode
from env_builder.runtime.site.visits import Place, SiteVisit, path_of, rows_of

__all__ = ["AgeExample", "learn_ages", "site_ages"]

Cell: TypeAlias = tuple[str, Place, int]
UNITS = (1, 60, 3_600, 86_400, 604_800, 2_592_000, 2_629_800, 31_536_000, 31_557_600)
"""Second, minute, hour, day, week, month of 30 days or a twelfth of a year, year of 365 days or with leap days."""
_LEADS = (0.0, 0.5, 1.0)
_ROUND = (31_536_000, 2_592_000, 604_800, 86_400, 43_200, 3_600, 1_800, 900, 600, 300, 60, 30, 15, 10, 5, 1)
"""Ages at multiples of which one text gives way to the next, the roundest first."""
_LEAST, _LEAST_WORDS, _AGREED, _BY_CHANCE, _KEPT = 6, 3, 0.75, 0.5, 0.7
"""Examples of a form; of one without numbers; share that a way of counting explains, and of that share what it may explain
of the same numbers dealt out anew; share of a form's examples that the whole format says."""
_MOST_EXAMPLES = 400
"""Examples of a form that are looked at."""
_SLACK = 2.0
"""Seconds that pass between an act and the time that is written of it."""


class AgeExample(NamedTuple):
    """A text, where it stood, and how old what it is about may have been."""

    text: str
    cell: Cell
    ages: tuple[float, ...]
    """Seconds since each time that it may count from, sorted."""


class _Counted(NamedTuple):
    units: tuple[int, ...]
    lead: float


def learn_ages(examples: Sequence[AgeExample]) -> AgeFormat | None:
    """Return the format that examples show, None where they show none or contradict each other."""
    examples = [each for each in examples if each.ages]
    fitted = _fitted(examples)
    if fitted is None or not fitted.forms:
        return None
    for parity in (0, 1):
        learnt = _fitted([each for index, each in enumerate(examples) if index % 2 == parity])
        others = [each for index, each in enumerate(examples) if index % 2 != parity and fitted.meant(each.text) is not None]
        n_right = sum(learnt is not None and _says(learnt, each) for each in others)
        if n_right < _KEPT * len(others):
            return None
    return fitted


def _fitted(examples: Sequence[AgeExample]) -> AgeFormat | None:
    by_form: dict[str, list[AgeExample]] = defaultdict(list)
    for each in examples:
        if each.ages:
            by_form[numbers_of(each.text)[0]].append(each)
    counted = {form: way for form, each in by_form.items() if (way := _counted(form, each[:_MOST_EXAMPLES])) is not None}
    if not counted:
        return None
    is_first = _first_or_last(by_form, counted)
    cells = {each.cell for form in counted for each in by_form[form]}
    for form in [form for form in by_form if form not in counted]:   # each text without a way of counting is a form
        for example in by_form.pop(form):
            by_form[example.text].append(example)
    forms: list[tuple[str, _Counted, list[float]]] = []
    for form, shown in by_form.items():
        own = [example for example in shown if example.cell in cells]
        if form in counted or len(own) >= max(_LEAST_WORDS, _AGREED * len(shown)):
            ages = sorted(_age(example, form, counted, is_first) for example in (shown if form in counted else own))
            forms.append((form, counted.get(form, _Counted((), 0)), ages))
    fitted = _ordered(forms)
    while True:
        kept = [form for form in fitted.forms if _is_said(fitted, form, by_form[form.text], cells)]
        if len(kept) == len(fitted.forms):
            return fitted
        texts = {form.text for form in kept}
        fitted = _ordered([each for each in forms if each[0] in texts])


def _is_said(fitted: AgeFormat, form: AgeForm, examples: Sequence[AgeExample], cells: Iterable[Cell]) -> bool:
    own = [each for each in examples if each.cell in cells][:_MOST_EXAMPLES]
    return sum(_says(fitted, each) for each in own) >= _KEPT * len(own) and (bool(form.units) or form.least < 1e11)


def _says(fitted: AgeFormat, example: AgeExample) -> bool:
    return any(fitted.written(age + slack) == example.text for age in example.ages for slack in (0, -_SLACK, _SLACK))


def _counted(form: str, examples: Sequence[AgeExample]) -> _Counted | None:
    """Return the way of counting that explains most examples of a form; None without one that is no chance."""
    numbers = [numbers_of(each.text)[1] for each in examples]
    n_numbers = form.count(NUMBER)
    if not 1 <= n_numbers <= 2 or len(examples) < _LEAST or len(set(numbers)) < 2:
        return None
    ways = [_Counted((unit,), lead) for unit in UNITS for lead in _LEADS] if n_numbers == 1 else [
        _Counted((long, short), 0) for long in UNITS for short in UNITS if short < long]
    best, n_best = None, 0
    for way in ways:
        n_right = sum(_explains(way, form, each.ages, own) for each, own in zip(examples, numbers, strict=True))
        if n_right > n_best:
            best, n_best = way, n_right
    if best is None or n_best < _AGREED * len(examples):
        return None
    dealt = _dealt(numbers)
    n_others = sum(_explains(best, form, each.ages, other) for each, own, other in zip(examples, numbers, dealt, strict=True)
                   if other != own)
    n_dealt = sum(other != own for own, other in zip(numbers, dealt, strict=True))
    return best if n_dealt and n_others <= _BY_CHANCE * n_best / len(examples) * n_dealt else None


def _dealt(numbers: Sequence[tuple[int, ...]]) -> list[tuple[int, ...]]:
    """Return to each example the numbers of another one, others than its own where it can be."""
    ordered = sorted(range(len(numbers)), key=lambda index: numbers[index])
    shift = max(Counter(numbers).values())
    dealt = list(numbers)
    for position, index in enumerate(ordered):
        dealt[index] = numbers[ordered[(position + shift) % len(ordered)]]
    return dealt


def _explains(way: _Counted, form: str, ages: Iterable[float], numbers: Sequence[int]) -> bool:
    low, high = AgeForm(form, way.units, way.lead, 0).meant(numbers)
    if len(numbers) == 2 and numbers[1] * way.units[1] >= way.units[0]:
        return False
    return any(low - _SLACK <= age < high + _SLACK for age in ages)


def _first_or_last(by_form: Mapping[str, Sequence[AgeExample]], counted: Mapping[str, _Counted]) -> dict[Cell, bool]:
    """Return for each place of ages whether they count from the first time rather than the last."""
    votes: dict[Cell, Counter[bool]] = defaultdict(Counter)
    for form, way in counted.items():
        for each in by_form[form]:
            for is_first, age in ((False, each.ages[0]), (True, each.ages[-1])):
                votes[each.cell][is_first] += _explains(way, form, (age,), numbers_of(each.text)[1])
    return {cell: each[True] > each[False] for cell, each in votes.items()}


def _age(example: AgeExample, form: str, counted: Mapping[str, _Counted], is_first: Mapping[Cell, bool]) -> float:
    age = example.ages[-1 if is_first.get(example.cell) else 0]
    if form not in counted:
        return age
    numbers = numbers_of(example.text)[1]
    return next((each for each in (age, *example.ages) if _explains(counted[form], form, (each,), numbers)), age)


def _ordered(forms: Iterable[tuple[str, _Counted, list[float]]]) -> AgeFormat:
    """Return the format of forms with their ages, each begun where fewest ages contradict."""
    ordered = sorted(forms, key=lambda each: each[2][len(each[2]) // 2])
    learnt: list[AgeForm] = []
    for index, (form, way, ages) in enumerate(ordered):
        least = _threshold(ordered[index - 1][2] if index else [-1.0], ages)
        if index:
            least = max(least, learnt[-1].least)
        learnt.append(AgeForm(form, way.units, way.lead, least))
    return AgeFormat(learnt)


def _threshold(below: Sequence[float], above: Sequence[float]) -> float:
    """Return the age that parts two forms with fewest exceptions, of all such ages the roundest, of these the greatest."""
    edges = sorted([*((age, 1) for age in below), *((age, -1) for age in above)])
    n_wrong = best = len(below)
    spans = [(0.0, edges[0][0])] if edges else []
    for (age, side), (after, _) in pairwise([*edges, (edges[-1][0] + 1 if edges else 0, 0)]):
        n_wrong -= side
        if n_wrong < best:
            best, spans = n_wrong, []
        if n_wrong == best:
            spans.append((age, after))
    for unit in _ROUND:
        multiples = [(high + _SLACK) // unit * unit for low, high in spans if 0 < (high + _SLACK) // unit * unit > low - _SLACK]
        if multiples:
            return float(max(multiples))
    low, high = max(spans, key=lambda span: span[1] - span[0])
    return (low + high) / 2


def site_ages(sessions: Sequence[Sequence[SiteVisit]], times: SiteTimes) -> AgeFormat | None:
    """Return how a site writes ages, None where its pages do not show it; `times`: how it writes instants."""
    begins: dict[str, list[tuple[datetime, datetime]]] = defaultdict(list)
    visits = sorted((visit for session in sessions for visit in session), key=lambda visit: visit.at)
    examples: list[AgeExample] = []
    n_of_form: Counter[tuple[str, Cell]] = Counter()
    for visit in visits:
        for example in _examples(visit, begins, times):
            key = numbers_of(example.text)[0], example.cell
            n_of_form[key] += 1
            if n_of_form[key] <= _MOST_EXAMPLES:
                examples.append(example)
        for path, instant in instants_told(visit, times):
            begins[path].append((visit.at, instant))
    learnt = learn_ages(examples)
    return AgeFormat(learnt.forms, times) if learnt is not None else None


def _examples(visit: SiteVisit, begins: Mapping[str, Sequence[tuple[datetime, datetime]]],
              times: SiteTimes) -> Iterator[AgeExample]:
    for place, value in visit.values.items() if visit.is_page else ():
        if not value:
            continue
        if rows_of(value) is None:
            text = value.strip()
            if numbers_of(text)[0] and not text.isdigit():
                yield AgeExample(text, (visit.route, place, 0), _ages(visit, begins.get(path_of(visit.url), ()), ()))
            continue
        nodes = decode(value)
        for node, path in zip(nodes, row_paths(nodes, visit.url), strict=True):
            if isinstance(node, Element) and (path or len(nodes) == 1):
                near = list(named_instants(node, times))
                own = begins.get(path or path_of(visit.url), ())
                yield from _of_row(node, visit, place, _ages(visit, own, near), times)


def _of_row(row: Element, visit: SiteVisit, place: Place, ages: tuple[float, ...], times: SiteTimes) -> Iterator[AgeExample]:
    ordinal = 0
    for element in row.elements():
        own = [each for value in element.attributes.values() for each in instants_in(value, times)]
        for child in element.children:
            if isinstance(child, str):
                text = child.strip()
                if text and numbers_of(text)[0] and not text.isdigit() and not any(instants_in(text, times)):
                    yield AgeExample(text, (visit.route, place, ordinal), _ages(visit, (), own) if own else ages)
                ordinal += 1


def _ages(visit: SiteVisit, begins: Sequence[tuple[datetime, datetime]], near: Sequence[datetime]) -> tuple[float, ...]:
    instants = {*near, *(instant for _, instant in begins)}
    limit = visit.at + timedelta(seconds=_SLACK)
    return tuple(sorted(max((visit.at - each).total_seconds(), 0.0) for each in instants if each <= limit))
