"""What a thing that an act made tells of the things it was made from: fields that were filled in from them, read backwards.

Goes in: a `makes` rule, one call of its tool with its answer, and the thing as a look shows it. Comes out: parts of other
things, as rows of `key` and `document`. Only values that never change are read so (`row` expressions).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from .expressions import Missing, evaluate
from .tables import ROWS

Name = tuple[str, str]


class Origin(NamedTuple):
    """The call that made a thing."""

    rule: dict[str, Any]
    arguments: dict[str, Any]
    answer: Any
    plain: Callable[[Name], Name]
    """The thing by its bare key."""

    def made(self) -> Name | None:
        """(class, key) of the thing, None where the answer does not name it."""
        try:
            return self.plain((self.rule["class"], str(evaluate(self.rule["key"], self.answer, self.arguments))))
        except Missing:
            return None

    def rows(self, shown: Any) -> Iterator[tuple[str, dict[str, Any]]]:
        """(class, row) of what the thing, as a look showed it, tells of others."""
        for field, expression in self.rule["fields"].items() if isinstance(shown, dict) else ():
            if field not in shown or expression[0] != "row" or [name for name, _ in expression[2]] != ["key"]:
                continue
            first, *path = expression[3:]
            if first != "document" or not path or not all(isinstance(step, str) for step in path):
                continue
            try:
                key = evaluate(expression[2][0][1], self.answer, self.arguments)
            except Missing:
                continue
            part = shown[field]
            for step in reversed(path):
                part = {step: part}
            kind, bare = self.plain((expression[1].removesuffix(ROWS), str(key)))
            yield kind, {"key": bare, "document": part}
