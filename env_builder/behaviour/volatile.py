"""Values that nobody could foretell: the time of the call, and names that a tool draws at random.

In: examples of a value. Out: a `now` or `fresh` expression, or None; and which paths of a document such expressions fill, so
that comparisons leave them out. The time: every example is an instant in one form, a constant span after its call (whole
quarters of an hour; for days, whole hours), to a minute. In a log without a clock: instants that never come again and follow
each other in each session. A fresh name: no two examples alike, all of one shape, with a digit.
Sees: forms that `runtime/clock.py` reads; texts of fixed shape, whole numbers where a new record's name is sought. Does not
see: a name computed in a way that looks like chance; a time drawn at random.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import datetime, timedelta
from itertools import groupby, pairwise
from typing import Any

from env_builder.behaviour.examples import Expression, WriteExample
from env_builder.runtime import clock
from env_builder.runtime.expressions import NOW
from env_builder.runtime.numbering import SIGNS

MINIMUM_EXAMPLES = 5
MINIMUM_AGAIN = 3
"""Calls with the arguments of another session's that must have been answered with another time: a record keeps its own."""
LATE = timedelta(minutes=1)
"""How far a written time may be from that of the call, beside the constant span."""
NEAR = timedelta(days=2)
STEP_S, HOUR_S, DAY_S = 900, 3600, 86400
MINIMUM_SIGNS = 4
"""Characters that vary, at least: fewer are a counter or a code that means something."""
Path = list[str | None]
"""Names from the top of a document; None stands for every element of a list."""


def explained(examples: list[WriteExample], hint: list[str]) -> Expression | None:
    """Return the time of the call, or else a text drawn at random. `hint`: path at which it stands."""
    texts = all(isinstance(one.after, str) for one in examples)
    return now(examples) or (fresh(examples, ".".join(hint)) if texts else None)


def now(examples: list[WriteExample]) -> Expression | None:
    """Return the `now` expression of values that are the time of their call."""
    if len(examples) < MINIMUM_EXAMPLES:
        return None
    pairs: list[tuple[datetime, datetime]] = []
    forms: set[str] = set()
    for example in examples:
        written = clock.read(example.after)
        called = None if written is None else example.look(NOW, "exact")
        if written is None or called is None:
            return None
        forms.add(written[0])
        pairs.append((written[1], clock.after(called, 0)))
    if len(forms) > 1:
        return None
    form = forms.pop()
    if clock.is_day(form) and len({example.after for example in examples}) == 1 and abs(pairs[0][0] - pairs[0][1]) > NEAR:
        return None  # one day that never varies is a constant, unless it is that of the log
    seconds = _days(pairs) if clock.is_day(form) else _span(pairs)
    return None if seconds is None else ["now", form, seconds]


def _span(pairs: list[tuple[datetime, datetime]]) -> int | None:
    """Return the constant span in seconds between calls and what was written."""
    apart = sorted((written - called).total_seconds() for written, called in pairs)
    span = STEP_S * round(apart[len(apart) // 2] / STEP_S)
    return span if all(abs(one - span) <= LATE.total_seconds() for one in apart) else None


def _days(pairs: list[tuple[datetime, datetime]]) -> int | None:
    """Return the constant span, the one of fewest hours apart from whole days, after which calls fall on the days written."""
    written, called = pairs[0]
    whole = DAY_S * (written.date() - called.date()).days
    spans = [whole + days * DAY_S + sign * hours * HOUR_S for hours in range(15) for sign in (1, -1) for days in (0, 1, -1)]
    return next((span for span in spans if all(
        (called + timedelta(seconds=span)).date() == written.date() for written, called in pairs)), None)


def stamps(values_by_session: Iterable[list[Any]], n_again: int) -> Expression | None:
    """Return the `now` expression of values that are the time of their call, in a log without a clock.

    `values_by_session`: those of each session in the order of its calls; `n_again`: calls that ask what another session had
    asked. No two values are alike, though the questions are, they vary to the second, and follow each other in each session.
    """
    written = [[clock.read(value) for value in values] for values in values_by_session]
    pairs = [pair for session in written for pair in session if pair is not None]
    forms, instants = {form for form, _ in pairs}, [at for _, at in pairs]
    if len(forms) != 1 or len(pairs) < sum(map(len, written)) or len(set(instants)) < len(instants):
        return None
    form = forms.pop()
    varied = {(at.second, at.microsecond) for at in instants}
    follow = all(one < other for session in written for (_, one), (_, other) in pairwise(filter(None, session)))
    if clock.is_day(form) or not follow or len(varied) < MINIMUM_EXAMPLES or n_again < MINIMUM_AGAIN:
        return None
    return ["now", form, 0, max(instants).isoformat()]


def fresh(examples: list[WriteExample], place: str) -> Expression | None:
    """Return the `fresh` expression of values that are drawn at random. `place`: tells draws of one call apart."""
    values = [one.after for one in examples]
    if len(values) < MINIMUM_EXAMPLES or len({(type(value), value) for value in values}) < len(values):
        return None
    if all(type(value) is int and value > 0 for value in values):
        return ["fresh", place, [["number", len(str(max(values)))]]]
    if not all(isinstance(value, str) and re.fullmatch(r"[\w:.#/+=-]+", value) for value in values):
        return None
    shape = _shape([str(value) for value in values])
    varying = sum(piece[1] for piece in shape or () if not isinstance(piece, str))
    if shape is None or varying < MINIMUM_SIGNS or not all(re.search(r"\d", value) for value in values):
        return None
    return ["fresh", place, shape]


def _shape(values: list[str]) -> list[Any] | None:
    """Pieces that all values have in common: runs of characters, each the same text, or so many signs of one set."""
    parts = [re.findall(r"[^\W_]+|[\W_]+", value) for value in values]
    if len({len(drawn_parts) for drawn_parts in parts}) > 1:
        return None
    pieces: list[Any] = []
    for run in zip(*parts, strict=True):
        drawn_parts = _run(run)
        if drawn_parts is None:
            return None
        pieces += drawn_parts
    texts = groupby(pieces, key=lambda piece: isinstance(piece, str))
    return [piece for is_text, same in texts for piece in (["".join(same)] if is_text else same)]


def _run(values: tuple[str, ...]) -> list[Any] | None:
    """Pieces of one run: the letters that all begin with, then characters."""
    if len(set(values)) == 1:
        return [values[0]]
    columns = enumerate(zip(*values, strict=False))
    at = next((at for at, signs in columns if len(set(signs)) > 1 or re.match(r"[\W\d_]", signs[0])), min(map(len, values)))
    text = values[0][:at]
    rest = [value[len(text):] for value in values]
    if len({len(one) for one in rest}) > 1:
        return None
    signs = next((name for name, allowed in SIGNS.items() if all(set(one) <= set(allowed) for one in rest)), None)
    return None if signs is None else [*([text] if text else []), [signs, len(rest[0])]]


def paths(expression: Any) -> list[Path]:
    """Paths in the value of the expression at which nobody can foretell it; [[]]: all of it."""
    if not isinstance(expression, list) or not expression:
        return []
    operator, *operands = expression
    if operator == "fresh" or (operator == "now" and not clock.is_day(operands[0])):
        return [[]]
    if operator == "object":
        return [[name, *path] for name, inner in operands[0] for path in paths(inner)]
    if operator == "with":
        return [*paths(operands[0]), *([name, *path] for name, inner in operands[1] for path in paths(inner))]
    if operator == "append":
        return [*paths(operands[0]), *([None, *path] for inner in operands[1:] for path in paths(inner))]
    if operator in ("each", "rows"):
        return [[None, *path] for path in paths(operands[1])]
    if operator == "replace":
        return [*paths(operands[0]), *([None, name, *path] for name, inner in operands[4] for path in paths(inner))]
    if operator in ("concat", "agree", "first"):
        return [path for inner in operands for path in paths(inner)]
    return [[]] if any(paths(inner) for inner in operands) else []


def of_fields(fields: dict[str, Any]) -> list[Path]:
    """Return the same for a document made field by field, sorted."""
    volatile_paths = [[name, *path] for name, expression in fields.items() for path in paths(expression)]
    return sorted(volatile_paths, key=lambda path: [step or "" for step in path])
