"""What an act makes of each field of a record that hangs together with it: one expression a field, or nothing known.

In: reads of records around a single act (`hidden.Sample`), as many as there are. Out: field -> expression over the record
before (`before`), the arguments, and what the act speaks of or answers (the argument `SPOKEN`); None for a field that changes
in a way that no expression says. Fields that (nearly) always stay are left out. Candidates are made from samples that changed,
and counted on all of them: others act too, so that a few may come out otherwise.
Sees: values that are given, set, added to or chosen by an argument; days counted from the call or another day; lists that get
one element, lose one, or have one changed that a value names. Does not see: sums over lists; two elements changed at once.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from env_builder.runtime import clock
from env_builder.runtime.answers import parsed
from env_builder.runtime.canonical import canonical
from env_builder.runtime.expressions import SPOKEN, Look, NoValue, evaluate
from env_builder.world.features import Expression, features, is_number

MINIMUM_RIGHT = 3
"""Samples that an expression must give."""
FEWEST = 2
"""Samples of each way in which a list may change."""
FAIR = 30
"""Changed samples from which candidates are made."""
MOST_TRIED = 60
"""Candidates that are counted on all samples, those first that most samples say."""
INNER_SHARE = 0.9
"""The least share of the elements that must come out right in lists that changed so: nobody else made those."""
DIGITS = 2
DAY_S = 86400
FEW = 8
"""Values of an argument up to which it may choose."""
ABSENT = object()


class FieldSample(NamedTuple):
    """One value before and after an act."""

    before: Any
    """What the expression may call `before`: the record, or an element of a list in it."""
    arguments: dict[str, Any]
    look: Look
    old: Any
    new: Any
    classes: tuple[str, ...] = ()
    """Classes of records that may be looked at."""

    def value(self, expression: Expression) -> Any:
        """Return what the expression gives, ABSENT for nothing."""
        try:
            return evaluate(expression, self.before, self.arguments, self.look)
        except NoValue:
            return ABSENT

    def features(self) -> list[tuple[Expression, Any]]:
        """Return all that can be said of what stood before."""
        return features(self.before, self.arguments, self.look, self.classes)


def explain(samples: list[FieldSample], field: list[Any], share: float) -> Expression | None:
    """Return the expression that gives (nearly) all values. `field`: where the old value stands in `before`, [] for nowhere;
    `share`: of the samples that say something, those that must come out right."""
    changed = [one for one in samples if not field or not _same(one.old, one.new)][:FAIR]
    scored = [(_worth(expression, samples), expression) for expression in _candidates(changed, field, share)]
    others = (_chosen(samples), *_defaults(samples))
    scored += [(_worth(expression, samples), expression) for expression in others if expression]
    good = [(right, wrong, expression) for (right, wrong), expression in scored
            if right >= min(MINIMUM_RIGHT, len(samples)) and right >= share * len(samples)]
    good.sort(key=lambda each: (each[1], -each[0], len(str(each[2])), str(each[2])))
    return _undecided(good, field) if good else None


RELATIVE = ("plus", "minus", "round", "later")


def _undecided(good: list[tuple[int, int, Expression]], field: list[Any]) -> Expression:
    """Return the best expression; where a constant and what is made of the old value say the same of all samples, both: they
    answer where they agree."""
    right, wrong, best = good[0]
    here = str(["before", *field])
    rivals = (one for n, m, one in good if (n, m) == (right, wrong) and one[0] in RELATIVE and here in str(one))
    rival = next(rivals, None) if best[0] == "constant" and field else None
    return best if rival is None else ["agree", best, rival]


def _same(one: Any, other: Any) -> bool:
    return type(one) is type(other) and bool(one == other)


def _worth(expression: Expression, samples: list[FieldSample]) -> tuple[int, int]:
    """Return (samples that it gives, samples of which it says something else)."""
    right = wrong = 0
    for one in samples:
        value = one.value(expression)
        right += value is not ABSENT and _same(value, one.new)
        wrong += value is not ABSENT and not _same(value, one.new)
    return right, wrong


def _candidates(changed: list[FieldSample], field: list[Any], share: float) -> list[Expression]:
    counts: Counter[str] = Counter()
    for one in changed:
        counts.update({canonical(expression) for expression in _sayings(one, field)})
    most = sorted(counts.items(), key=lambda item: (-item[1], len(item[0]), item[0]))[:MOST_TRIED]
    return [*(parsed(text) for text, _ in most), *_of_lists(changed, field, share)]


def _sayings(one: FieldSample, field: list[Any]) -> Iterator[Expression]:
    """Yield the ways in which one sample says its new value."""
    if one.new is ABSENT:
        return
    there = one.features()
    if not isinstance(one.new, dict | list) or not one.new:
        yield ["constant", one.new]
    yield from (expression for expression, value in there if expression != ["before", *field] and _same(value, one.new))
    if is_number(one.new):
        yield from _sums(one, there, field)
    if isinstance(one.new, str) and clock.read(one.new):
        yield from _days(one, there)


def _sums(one: FieldSample, there: list[tuple[Expression, Any]], field: list[Any]) -> Iterator[Expression]:
    """Yield the old number with something more or less, as it is or rounded."""
    if not field or not is_number(one.old):
        return
    here: Expression = ["before", *field]
    how, apart = ("plus", one.new - one.old) if one.new > one.old else ("minus", one.old - one.new)
    apart = round(apart, DIGITS)
    for by in [["constant", apart], *(expression for expression, value in there
                                      if expression != here and is_number(value) and round(value, DIGITS) == apart)]:
        yield ["round", [how, here, by], DIGITS] if isinstance(one.new, float) else [how, here, by]


def _days(one: FieldSample, there: list[tuple[Expression, Any]]) -> Iterator[Expression]:
    """Yield days after another one, or after that of the call: so many, or so many times an argument."""
    form, new = clock.read(one.new) or ("", None)
    days = [expression for expression, value in there if isinstance(value, str) and clock.read(value)]
    for base in [["now", form, 0], *days]:
        read = clock.read(one.value(base))
        if read is None or new is None or clock.write(read[0], new) != one.new:
            continue
        apart = (new - read[1]).total_seconds() / DAY_S
        if not apart and base[0] == "now" and clock.is_day(form):
            yield base
        if apart and apart == int(apart):
            yield ["later", base, ["constant", int(apart)]]
            yield from (
                ["later", base, ["times", expression, ["constant", int(apart) // value]]] for expression, value in there
                if expression[0] == "argument" and type(value) is int and value and int(apart) % value == 0)


def _chosen(samples: list[FieldSample]) -> Expression | None:
    """Return the constant that goes with each of the few values of an argument."""
    for expression, _ in samples[0].features() if samples else ():
        if expression[0] != "argument" or SPOKEN in expression:
            continue
        by_value: dict[str, Counter[str]] = defaultdict(Counter)
        values = [(one.value(expression), one.new) for one in samples]
        for value, new in values:
            if value is not ABSENT and new is not ABSENT:
                by_value[canonical(value)][canonical(new)] += 1
        if 1 < len(by_value) <= FEW and all(news.total() > 1 for news in by_value.values()):
            return ["choose", expression, [[parsed(value) if value[:1] in "[{" else _read(value), ["constant", _read(
                news.most_common(1)[0][0])]] for value, news in sorted(by_value.items())]]
    return None


def _defaults(samples: list[FieldSample]) -> Iterator[Expression]:
    """Yield an argument, and a constant where it is not given."""
    for name in sorted(set().union(*(one.arguments for one in samples)) - {SPOKEN}):
        news = Counter(canonical(one.new) for one in samples if name not in one.arguments and one.new is not ABSENT)
        if 0 < news.total() < len(samples):
            yield ["given", name, ["argument", name], ["constant", _read(news.most_common(1)[0][0])]]


def _read(text: str) -> Any:
    return parsed(f"[{text}]")[0]


def _of_lists(changed: list[FieldSample], field: list[Any], share: float) -> Iterator[Expression]:
    """Yield lists with one element more, one less, or one changed."""
    lists = [one for one in changed if isinstance(one.old, list) and isinstance(one.new, list)]
    if not field or len(lists) < share * len(changed):
        return
    here: Expression = ["before", *field]
    grown = [one._replace(old=ABSENT, new=one.new[-1]) for one in lists if one.new[:-1] == one.old and one.new]
    amended = [(one, at) for one in lists if (at := _amended(one)) is not None]
    inner = max(share, INNER_SHARE)
    item = _item(grown, inner) if len(grown) >= FEWEST else None
    appended = [] if item is None else [["append", here, item]]
    amendments = list(_amendments(amended, here, inner)) if len(amended) >= FEWEST else []
    yield from [*appended, *amendments]
    yield from (["else", one, other] for one in amendments for other in appended)
    yield from _named(lists, "without", here, _lost)


def _item(grown: list[FieldSample], share: float) -> Expression | None:
    """Return what comes to the end of a list: an object field by field."""
    shapes = {tuple(one.new) if isinstance(one.new, dict) else None for one in grown}
    shape = shapes.pop()
    if shapes or not shape:
        return explain(grown, [], share)
    fields = [[name, explain([one._replace(new=one.new[name]) for one in grown], [], share)] for name in shape]
    return None if any(expression is None for _, expression in fields) else ["object", fields]


def _lost(one: FieldSample) -> Any:
    """Return the only element that the list lost, ABSENT if there is none."""
    places = [at for at in range(len(one.old)) if one.old[:at] + one.old[at + 1:] == one.new]
    return one.old[places[0]] if places else ABSENT


def _named(
    lists: list[FieldSample], how: str, here: Expression, element: Callable[[FieldSample], Any]
) -> Iterator[Expression]:
    """Yield the operation on the element that a value of the act names."""
    counts: Counter[str] = Counter()
    for one in lists:
        item = element(one)
        counts.update({canonical(expression) for expression, value in one.features() if _holds(item, value)
                       and expression[0] == "argument"} if item is not ABSENT else ())
    yield from ([how, here, parsed(text)] for text, _ in counts.most_common(MOST_TRIED))


def _holds(item: Any, value: Any) -> bool:
    return isinstance(value, str | int) and (item == value or (isinstance(item, dict) and value in item.values()))


def _amended(one: FieldSample) -> int | None:
    """Return the place of the only element that changed, an object before and after."""
    if len(one.old) != len(one.new):
        return None
    places = [at for at, (old, new) in enumerate(zip(one.old, one.new, strict=True)) if old != new]
    return places[0] if len(places) == 1 and isinstance(one.old[places[0]], dict) and isinstance(
        one.new[places[0]], dict) else None


def _amendments(amended: list[tuple[FieldSample, int]], here: Expression, share: float) -> Iterator[Expression]:
    inner = [one._replace(before=one.old[at], old=one.old[at], new=one.new[at]) for one, at in amended]
    names = sorted({name for one in inner for name in one.new if not _same(one.old.get(name, ABSENT), one.new[name])})
    fields = []
    for name in names:
        parts = [one._replace(old=one.old.get(name, ABSENT), new=one.new.get(name, ABSENT)) for one in inner]
        fields.append([name, explain(parts, [name], share)])
    if not any(expression is None for _, expression in fields):
        for _, _, key in _named([one for one, _ in amended], "amend", here, lambda one: one.old[_amended(one) or 0]):
            yield ["amend", here, key, fields]


