"""The simplest expression that explains all examples of a value, by enumeration.

In: examples (document before, arguments, value after). Out: an expression of the behaviour language
(`runtime/expressions.py`), or None if none of those tried explains every example. They are tried in the order of simplicity:
unchanged, constant, an argument, a value of the document before, then composed ones, then values that nobody can predict. A day
that is always that of the call is no constant, however few days the log has.

Numbers may be computed over the positions of list arguments: the sum of what each names, or of the difference of two of those;
and values may switch with the sign of such a sum. Does not see: products, percentages, sums of more than two terms a position.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from datetime import timedelta
from itertools import product
from typing import Any

from env_builder.behaviour import volatile
from env_builder.behaviour.examples import NOTHING, SAMPLES, Expression, WriteExample, best, fits, same, values
from env_builder.behaviour.lists import extended, in_row, replaced, row_values
from env_builder.runtime import clock
from env_builder.runtime.expressions import DONE
from env_builder.world.features import features, is_number, sums

DIGITS = 2
"""Digits to which money is rounded, where numbers only agree once rounded."""
MINIMUM_SIDES = 3
Composed = Callable[[list[WriteExample], list[str]], Expression | None]
"""(examples, path in the document before to try first) -> an expression that gives all of them."""


def computed(examples: list[WriteExample]) -> Expression | None:
    """Return a number that is such a sum, as it stands, rounded, without or with the other sign."""
    if not all(is_number(one.after) for one in examples):
        return None
    return best((shape for one in examples[:SAMPLES] for shape in _shapes(one)), examples)


def _shapes(one: WriteExample) -> Iterator[Expression]:
    """Yield sums in every shape that gives the number of this example."""
    for expression, value in sums(one.before, one.arguments, one.look, one.classes):
        for shape, shaped in (
            (expression, value), (["round", expression, DIGITS], round(value, DIGITS)), (["absolute", expression], abs(value)),
            (["negative", expression], -value), (["round", ["absolute", expression], DIGITS], round(abs(value), DIGITS)),
        ):
            if same(shaped, one.after):
                yield shape


def switched(examples: list[WriteExample]) -> Expression | None:
    """One of two constants, by the sign of such a sum."""
    texts = list({example.after: None for example in examples if isinstance(example.after, str)})
    if len(texts) != 2 or any(sum(example.after == one for example in examples) < MINIMUM_SIDES for one in texts):
        return None
    return best((shape for one in examples[:SAMPLES] for shape in _signs(one, texts)), examples)


def _signs(one: WriteExample, texts: list[str]) -> Iterator[Expression]:
    for expression, value in sums(one.before, one.arguments, one.look, one.classes):
        above, below = sorted(texts, key=lambda text: (text == one.after) != (value > 0))
        yield ["sign", expression, ["constant", above], ["constant", below]]


MINIMUM_VARIED = 3
"""Different values that what is computed must have had."""
MINIMUM_EACH = 2
"""Examples of each value that an answer is chosen by."""
MAXIMUM_WAYS = 12
MAXIMUM_CHOICES = 3
"""Ways to choose that are laid beside each other: where they differ, nothing is there."""
MAXIMUM_OFFSETS = 30


def counted(examples: list[WriteExample]) -> Expression | None:
    """Return the value that the n-th call of a session always gave."""
    given: dict[int, Any] = {}
    for one in examples:
        place = one.look(DONE, one.tool) if one.tool else None
        if not isinstance(place, int) or not same(given.setdefault(place, one.after), one.after):
            return None
    in_order = [given[place] for place in sorted(given)]
    is_counted = sorted(given) == list(range(len(given))) and len({str(value) for value in in_order}) == len(given)
    return ["nth", examples[0].tool, in_order] if is_counted and 1 < len(given) < len(examples) else None


def shifted(examples: list[WriteExample]) -> Expression | None:
    """Return a number that is another one, so much more or less."""
    if not all(is_number(one.after) for one in examples) or not _varied(examples):
        return None
    first = examples[0]
    there = [*features(first.before, first.arguments, first.look, first.classes), *row_values(first)]
    offsets = [[how, expression, ["constant", abs(first.after - value)]]
               for expression, value in there if is_number(value) and (how := "plus" if first.after > value else "minus")]
    return best(offsets[:MAXIMUM_OFFSETS], examples)


def _varied(examples: list[WriteExample]) -> bool:
    return len({str(one.after) for one in examples}) >= MINIMUM_VARIED


def chosen(examples: list[WriteExample]) -> Expression | None:
    """Return the constant that goes with a value of few, of an argument or of the document; of several such ways what they
    agree on."""
    if any(isinstance(one.after, dict | list) for one in examples) or len({str(one.after) for one in examples}) < 2:
        return None
    ways: list[Expression] = []
    first = examples[0]
    for expression, value in features(first.before, first.arguments, first.look, first.classes, plain=True):
        if isinstance(value, str | int) and len(ways) < MAXIMUM_CHOICES:
            way = _choice(expression, examples)
            ways += [] if way is None else [way]
    return None if not ways else ways[0] if len(ways) == 1 else ["agree", *ways]


MAXIMUM_DEFAULTS = 2
"""Arguments that one value may depend on being given, one after the other: their ways grow with the factorial of this."""
_n_defaults: ContextVar[int] = ContextVar("n_defaults", default=0)


def defaulted(examples: list[WriteExample]) -> Expression | None:
    """Return what an argument gives where it is given, and what holds where it is not, there as shortly as may be."""
    depth = _n_defaults.get()
    if depth >= MAXIMUM_DEFAULTS:
        return None
    token = _n_defaults.set(depth + 1)
    try:
        ways = [way for name in sorted(set().union(*(one.arguments for one in examples)))
                if (way := _defaulted_by(name, examples)) is not None]
    finally:
        _n_defaults.reset(token)
    return min(ways, key=lambda way: (len(str(way)), str(way)), default=None)


def _defaulted_by(name: str, examples: list[WriteExample]) -> Expression | None:
    given, lacking = ([one for one in examples if (name in one.arguments) == there] for there in (True, False))
    if min(len(given), len(lacking)) < MINIMUM_EACH:
        return None
    first = explain(given, [])
    other = None if first is None else explain(lacking, [])
    return None if other is None else ["given", name, first, other]


MADE = "#made"
"""The argument under which fields of what comes of a call are known to each other while they are explained."""
MAXIMUM_TERMS = 5


def made_of(missing: dict[str, list[WriteExample]], fields: dict[str, Expression], whole: list[dict[str, Any]]) -> None:
    """Add to `fields` what is made of other fields: sums and differences of these, shares of one. `whole`: all fields after."""
    progress = True
    while progress:
        numbers = [name for name in fields if all(is_number(after.get(name)) for after in whole)]
        progress = False
        for name in [name for name in missing if name not in fields]:
            examples = [one._replace(arguments={**one.arguments, MADE: {other: after[other] for other in numbers}})
                        for one, after in zip(missing[name], whole, strict=True)]
            expression = explain(examples, []) if numbers else None
            if expression is not None:
                fields[name], progress = _with_made(expression, fields), True


def _with_made(expression: Any, fields: dict[str, Expression]) -> Any:
    """Return the expression with the fields that it speaks of worked out."""
    if not isinstance(expression, list):
        return expression
    if expression[:2] == ["argument", MADE]:
        return fields[expression[2]]
    return [_with_made(part, fields) for part in expression]


def balanced(examples: list[WriteExample]) -> Expression | None:
    """Return a sum or difference of other fields."""
    made = examples[0].arguments.get(MADE, {})
    if not made or not all(is_number(one.after) for one in examples) or not _varied(examples):
        return None
    names = sorted(made, key=lambda name: (-len({str(one.arguments[MADE][name]) for one in examples}), name))[:MAXIMUM_TERMS]
    for signs in sorted(product((0, 1, -1), repeat=len(names)), key=lambda signs: (sum(map(abs, signs)), -sum(signs), signs)):
        terms = [(name, sign) for name, sign in zip(names, signs, strict=True) if sign]
        if len(terms) < 2 or terms[0][1] < 0:
            continue
        expression: Expression = ["argument", MADE, terms[0][0]]
        for name, sign in terms[1:]:
            expression = ["plus" if sign > 0 else "minus", expression, ["argument", MADE, name]]
        for shape in (["round", expression, DIGITS], expression):
            if fits(shape, examples):
                return shape
    return None


def scaled(examples: list[WriteExample]) -> Expression | None:
    """Return a share of another field, rounded as money."""
    first = max(examples, key=lambda one: abs(one.after) if is_number(one.after) else 0)
    made = first.arguments.get(MADE, {})
    if not made or not all(is_number(one.after) for one in examples) or not _varied(examples):
        return None
    return best((["round", ["times", ["argument", MADE, name], ["constant", round(first.after / value, 4)]], DIGITS]
                 for name, value in sorted(made.items()) if value and first.after), examples)


def priced(examples: list[WriteExample]) -> Expression | None:
    """Return the sum over a list of objects that were given: of a number of each, or of a number in the row that it names, and
    of the product of both."""
    if not all(is_number(one.after) for one in examples) or not _varied(examples):
        return None
    prices = (item for one in examples[:SAMPLES] for item in _prices(one))
    return best((shape for item in prices for shape in (["round", item, DIGITS], item)), examples)


def _prices(one: WriteExample) -> Iterator[Expression]:
    for name in sorted(one.arguments):
        items = one.arguments[name]
        if not isinstance(items, list) or not items or not all(isinstance(item, dict) for item in items):
            continue
        inner = one._replace(arguments={**one.arguments, **{f"{name}.{key}": value for key, value in items[0].items()}})
        rows = [(_of_item(expression, name), value) for expression, value in row_values(inner) if is_number(value)]
        own = [["argument", name, key] for key, value in sorted(items[0].items()) if is_number(value)]
        for item in [*own, *(row for row, _ in rows), *(["times", row, factor] for row, _ in rows for factor in own)]:
            yield ["sum", ["rows", [name], item]]


def _of_item(expression: Any, name: str) -> Any:
    """Return the expression with arguments that stand for fields of an element as such."""
    if not isinstance(expression, list):
        return expression
    if expression[0] == "argument" and expression[1].startswith(f"{name}."):
        return ["argument", name, expression[1].removeprefix(f"{name}.")]
    return [_of_item(part, name) for part in expression]


def gathered(examples: list[WriteExample]) -> Expression | None:
    """Return the elements of a list that was there and of one that was given; where none was there, what else holds."""
    if not all(isinstance(one.after, list) for one in examples):
        return None
    first = max(examples, key=lambda one: len(one.after))
    there = [(expression, value) for expression, value in features(first.before, first.arguments, first.look, first.classes)
            if isinstance(value, list) and value]
    for own, given in ((one, other) for one, _ in there for other, _ in there if other[0] == "argument" != one[0]):
        joined: Expression = ["joined", own, given]
        pairs = [(one, value) for one, value in zip(examples, values(joined, examples), strict=True)]
        rest = [one for one, value in pairs if value is NOTHING]
        if len(pairs) - len(rest) >= MINIMUM_VARIED and all(value is NOTHING or same(value, one.after) for one, value in pairs):
            other = explain(rest, []) if rest else None
            return joined if not rest else None if other is None else ["else", joined, other]
    return None


def _choice(expression: Expression, examples: list[WriteExample]) -> Expression | None:
    given: dict[tuple[type, Any], tuple[Any, Any, int]] = {}
    for value, one in zip(values(expression, examples), examples, strict=True):
        if value is NOTHING or isinstance(value, dict | list):
            return None
        _, after, n = given.get((type(value), value), (value, one.after, 0))
        if not same(after, one.after) or len(given) > MAXIMUM_WAYS:
            return None
        given[type(value), value] = (value, after, n + 1)
    if any(n < MINIMUM_EACH for _, _, n in given.values()):
        return None
    ways = sorted(given.values(), key=lambda way: str(way[0]))
    return ["choose", expression, [[value, ["constant", after]] for value, after, _ in ways]]


def dated(examples: list[WriteExample]) -> Expression | None:
    """Return the day or instant that lies so many days after another: always as many, or as a number or a choice says."""
    if not all(isinstance(one.after, str) and clock.read(one.after) for one in examples) or not _varied(examples):
        return None
    first = examples[0]
    days = [expression for expression, value in features(first.before, first.arguments, first.look, first.classes)
            if isinstance(value, str) and clock.read(value)]
    for base in [["now", (clock.read(first.after) or ("",))[0], 0], *days][:MAXIMUM_OFFSETS]:
        spans = [_days(value, one.after) for value, one in zip(values(base, examples), examples, strict=True)]
        if None not in spans:
            apart = [one._replace(after=span) for one, span in zip(examples, spans, strict=True)]
            n_days = _constant(apart) or _multiple(apart) or chosen(apart)
            if n_days is not None:
                return ["later", base, n_days]
    return None


def _days(value: Any, after: str) -> int | None:
    """Return whole days from one day or instant to the other, None where they are not written alike or no whole days apart."""
    one, other = clock.read(value) if value is not NOTHING else None, clock.read(after)
    if one is None or other is None or clock.write(one[0], other[1]) != after:
        return None
    apart = other[1] - one[1]
    return apart.days if apart == timedelta(days=apart.days) else None


def _constant(examples: list[WriteExample]) -> Expression | None:
    return ["constant", examples[0].after] if len({one.after for one in examples}) == 1 else None


def _multiple(examples: list[WriteExample]) -> Expression | None:
    """Return a number that is so many times an argument."""
    first = examples[0]
    times = [["times", ["argument", name], ["constant", first.after // value]]
             for name, value in sorted(first.arguments.items()) if is_number(value) and value and first.after % value == 0]
    return best(times, examples)


def removed(examples: list[WriteExample], hint: list[str]) -> Expression | None:
    """Return the list as it was without the elements that something names, or with one more, sorted."""
    if not hint or not all(isinstance(one.after, list) for one in examples):
        return None
    first = examples[0]
    named = [expression for expression, value in features(first.before, first.arguments, first.look, ())
             if isinstance(value, str | int) and expression[:2] != ["before", hint[0]]]
    there = ["before", *hint]
    return best((["without", there, one] for one in named), examples) or best(
        (["joined", there, ["argument", name]] for name, value in sorted(first.arguments.items()) if isinstance(value, list)),
        examples)


def affixed(examples: list[WriteExample], fewest: int = MINIMUM_VARIED) -> Expression | None:
    """Return a text that is an argument with the same characters before and after it, in `fewest` different values at least."""
    first = examples[0]
    if not all(isinstance(one.after, str) for one in examples) or len({one.after for one in examples}) < fewest:
        return None
    for name, text in sorted(first.arguments.items()):
        if not isinstance(text, str) or not text or text not in first.after:
            continue
        before, _, after = first.after.partition(text)
        if (before or after) and all(one.after == f"{before}{one.arguments.get(name)}{after}" for one in examples):
            pieces = [["constant", before] if before else None, ["argument", name], ["constant", after] if after else None]
            return ["text", *(piece for piece in pieces if piece)]
    return None


def worded(examples: list[WriteExample]) -> Expression | None:
    """Return a text of as many words in all examples, of which those that differ are explained one by one. What stands between
    words is the same in all."""
    if not all(isinstance(one.after, str) for one in examples):
        return None
    words = [_WORDS.split(one.after) for one in examples]
    if len({len(each) for each in words}) > 1 or len(words[0]) < 2:
        return None
    pieces: list[Expression] = []
    for place, column in enumerate(zip(*words, strict=True)):
        is_same = len(set(column)) == 1
        if place % 2 and not is_same:   # a separator, which is no word: read again, it would be split into itself
            return None
        piece: Expression | None = ["constant", column[0]] if is_same else explain(
            [one._replace(after=value) for one, value in zip(examples, _typed(column), strict=True)], [])
        if piece is None:
            return None
        pieces.append(piece)
    return ["text", *pieces]


_WORDS = re.compile(r"""([\s;,:|=()\[\]{}"']+|\.(?=\s|$))""")


def _typed(column: tuple[str, ...]) -> list[Any]:
    """Return words as numbers, where all are."""
    for kind in (int, float):
        try:
            numbers = [kind(word) for word in column]
        except ValueError:
            continue
        if all(str(number) == word for number, word in zip(numbers, column, strict=True)):
            return numbers
    return list(column)


MAXIMUM_PATHS = 200
MAXIMUM_ITEMS = 3
__all__ = ["WriteExample", "explain", "fits", "same"]


def explain(examples: list[WriteExample], hint: list[str]) -> Expression | None:
    """Return the first expression that gives `after` in every example. `hint`: path in the document before to try first.

    Where both something given and something kept explain all, neither is proven: the answer is what they agree on.
    """
    today = volatile.now(examples) if isinstance(examples[0].after, str) else None
    if today is not None and not volatile.paths(today):
        return today
    expressions: list[Expression] = []
    for expression in _leaves(examples, hint):
        if all(one[0] != expression[0] for one in expressions) and fits(expression, examples):
            if not expressions and expression[0] not in ("before", "argument"):
                return expression
            if expression[0] in ("before", "argument") and (not isinstance(examples[0].after, dict) or not expressions):
                expressions.append(expression)
    if len(expressions) == 1 and expressions[0][0] == "argument" and fits(["sorted", expressions[0]], examples):
        expressions.append(["sorted", expressions[0]])  # no example tells whether it is put in order
    if expressions:
        return ["agree", *expressions] if len(expressions) > 1 else expressions[0]
    composed = (compose(examples, hint) for compose in COMPOSED)
    return next((expression for expression in composed if expression is not None), None)


def _leaves(examples: list[WriteExample], hint: list[str]) -> Iterator[Expression]:
    first = examples[0]
    if hint:
        yield ["before", *hint]
        if same(first.arguments.get(hint[-1]), first.after):  # what is named so is put there, though it never varied
            yield ["argument", hint[-1]]
    if not isinstance(first.after, dict | list) or not first.after:  # a whole structure that never varies is a coincidence
        yield ["constant", first.after]
    for path in _paths(first.arguments, first.after):
        yield ["argument", *path]
    for path in _paths(first.before, first.after):
        yield ["before", *path]
    if isinstance(first.after, list):
        for name, value in sorted(first.arguments.items()):
            if isinstance(value, list) and len(value) == len(first.after):
                yield ["sorted", ["argument", name]]
    if isinstance(first.after, int | float) and not isinstance(first.after, bool):
        yield from _numbers(first)


def _numbers(first: WriteExample) -> Iterator[Expression]:
    for root, value in (("argument", first.arguments), ("before", first.before)):
        for path in _paths(value, -first.after):
            yield ["negative", [root, *path]]
    for name, value in first.before.items():
        if isinstance(value, list) and value and all(isinstance(row, dict) for row in value):
            for field in sorted(value[0]):
                yield ["total", ["before", name], field]


def _paths(value: Any, wanted: Any) -> list[list[Any]]:
    """Paths of a JSON value that lead to `wanted`, the shortest first."""
    matching = [path for path, leaf in _walk(value, []) if path and same(leaf, wanted)]
    return sorted(matching, key=lambda path: (len(path), [str(step) for step in path]))[:MAXIMUM_PATHS]


def _walk(value: Any, path: list[Any]) -> Iterator[tuple[list[Any], Any]]:
    yield path, value
    if len(path) > 3:
        return
    if isinstance(value, dict):
        for name, item in value.items():
            yield from _walk(item, [*path, name])
    elif isinstance(value, list):
        for index, item in enumerate(value[:MAXIMUM_ITEMS]):
            yield from _walk(item, [*path, index])


def _object(examples: list[WriteExample], hint: list[str]) -> Expression | None:
    """Return an object of explained fields, where all examples have the same ones in the same order."""
    shapes = {tuple(example.after) if isinstance(example.after, dict) else None for example in examples}
    shape = shapes.pop()
    if shapes or not shape:
        return None
    fields: dict[str, Expression] = {}
    missing: dict[str, list[WriteExample]] = {}
    for name in shape:
        inner = [example._replace(after=example.after[name]) for example in examples]
        expression = explain(inner, [*hint, name])
        if expression is None:
            missing[name] = inner
        else:
            fields[name] = expression
    made_of(missing, fields, [example.after for example in examples])
    return ["object", [[name, fields[name]] for name in shape]] if len(fields) == len(shape) else None


def _selected(examples: list[WriteExample]) -> Iterator[Expression]:
    """Yield what gives the value of an example: an element that an argument selects, in the document or in another one."""
    for one in examples[:SAMPLES]:
        candidates = features(one.before, one.arguments, one.look, one.classes)
        yield from (expression for expression, value in candidates if same(value, one.after))


def _unhinted(explained: Callable[[list[WriteExample]], Expression | None]) -> Composed:
    return lambda examples, hint: explained(examples)


COMPOSED: tuple[Composed, ...] = (
    _object, lambda examples, hint: extended(examples, hint, explain), lambda examples, hint: replaced(examples, hint, explain),
    lambda examples, hint: best(_selected(examples), examples),
    *map(_unhinted, (computed, switched, counted, in_row, priced, balanced, scaled, volatile.now, defaulted, dated, shifted)),
    _unhinted(affixed), _unhinted(worded), _unhinted(chosen), removed, _unhinted(gathered), volatile.explained)
"""What composes an expression of others, in the order in which they are tried."""
