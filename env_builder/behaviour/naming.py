"""What a tool calls the things that it makes.

In: examples of new things, with their steps. Out: an expression of the name, or None. The first that holds: the n-th call of a
session always gave this name; each name's number is one above that of the call before, whose ever it was; no two are alike, all
of one shape, drawn at random. Sees: one number in a name. Does not see: numbers that several tools share, or that start anew.
"""

from __future__ import annotations

import re
from itertools import pairwise
from typing import Any

from env_builder.behaviour import volatile
from env_builder.behaviour.examples import Example, Expression
from env_builder.runtime.expressions import DONE
from env_builder.runtime.numbering import Form, named, number_of
from env_builder.world.effects import order_of
from env_builder.world.replay import Step

MINIMUM_EXAMPLES = 5
GAPS = 0.02
"""Share of names that may leave a number out."""


def explained(examples: list[Example], showing: dict[str, Any], done: list[Step]) -> Expression | None:
    """The expression of the new things' names. `showing`: their class, and the field of the name."""
    key = showing["field"]
    names = [one.after.get(key) for one in examples]
    return (
        _counted(examples, key, done[0].call.tool) or _following(showing["class"], names, done)
        or volatile.fresh([one._replace(after=name) for one, name in zip(examples, names, strict=True)], key))


def _counted(examples: list[Example], key: str, tool: str) -> Expression | None:
    """The name that the n-th call of a session always gave."""
    names: dict[int, set[Any]] = {}
    for example in examples:
        place = example.look(DONE, tool)
        if isinstance(place, int):
            names.setdefault(place, set()).add(example.after.get(key))
    given = [next(iter(names[place])) for place in range(len(names)) if len(names.get(place, ())) == 1]
    if not given or len({str(found) for found in names.values()}) < len(names) or len(given) < len(names):
        return None
    return ["nth", tool, given]


def _following(kind: str, names: list[Any], done: list[Step]) -> Expression | None:
    """The name after the one that was given last."""
    if len(names) < MINIMUM_EXAMPLES or not all(step.call.called_at for step in done):
        return None
    in_order = [names[place] for place in sorted(range(len(names)), key=lambda place: order_of(done[place].call))]
    form = _form(in_order)
    numbers = [number_of(str(name), form) for name in in_order]
    if any(number is None or named(number, form) != name for number, name in zip(numbers, in_order, strict=True)):
        return None
    gaps = [after != before + 1 for before, after in pairwise(number for number in numbers if number is not None)]
    return ["following", kind, form] if sum(gaps) <= GAPS * len(gaps) else None


def _form(names: list[Any]) -> Form | None:
    """The form of the names: what stands around the last number in the first one."""
    found = re.fullmatch(r"(.*?)(\d+)(\D*)", str(names[0]))
    if found is None or isinstance(names[0], int):
        return None
    before, digits, after = found.groups()
    return [before, len(digits) if any(str(name).startswith(f"{before}0") for name in names) else 0, after]
