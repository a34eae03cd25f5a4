"""Arguments for a call that nobody made: from the slots of a goal, else from where good sessions took them.

In: slots (`mart.goals`: path -> value or values), the forms in which good sessions gave arguments, sources of arguments, and
what was shown so far. Out: arguments, or `Unbound` with the reason. A value that is read must be the only one at its place in
all that was shown: of two, nothing says which is meant.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from env_builder.runtime.answers import parsed
from env_builder.variants.moves import Arguments
from env_builder.variants.ways import Form, Sources

Slots = Mapping[str, Any]
Shown = list[tuple[str, str]]
"""(tool, answer)."""


class Unbound(Exception):
    """A call cannot be given what it takes."""

    def __init__(self, reason: str, detail: str) -> None:
        super().__init__(reason, detail)
        self.reason, self.detail = reason, detail


class Bound(NamedTuple):
    """A call's arguments, and the form that they follow."""

    arguments: Arguments
    form: Form


def bind(tool: str, forms: Iterable[Form], slots: Slots, sources: Sources, shown: Callable[[str], Shown]) -> Bound:
    """Arguments in the most usual of `forms` that takes all slots and can be filled.

    `shown`: what was shown of a tool so far, by its name. Raises Unbound, with what the most usual form lacks.
    """
    first: Unbound | None = None
    for form in forms:
        if not {path.partition(".")[0] for path in slots} <= form.names:
            continue
        try:
            arguments = {
                name: _filled(f"{name}", value, slots, lambda path: _read(tool, path, sources, shown))
                for name, value in form.example.items()}
        except Unbound as unbound:
            first = first or unbound
            continue
        if sum(isinstance(value, list) and len(value) > 1 for value in arguments.values()) > 1:
            first = first or Unbound("order_not_known", f"{tool} takes two lists, and nothing says what belongs together.")
            continue
        return Bound(arguments, form)
    raise first or Unbound("no_way", f"No good session gave {tool} {', '.join(sorted(slots))} together.")


def _filled(path: str, example: Any, slots: Slots, read: Callable[[str], str | None]) -> Any:
    """A value like the example with what the slots, else the sources, say."""
    if isinstance(example, dict):
        return {name: _filled(f"{path}.{name}", value, slots, read) for name, value in example.items()}
    if isinstance(example, list) and example and isinstance(example[0], dict):
        return [_filled(path, example[0], slots, read)]
    if isinstance(example, bool) or example is None:
        raise Unbound("slot_not_filled", f"The words do not say what {path} is.")
    given = slots[path] if path in slots else read(path)
    if given is None:
        raise Unbound("slot_not_filled", f"Neither the words nor what was looked up say what {path} is.")
    several = given if isinstance(given, list) else [given]
    if isinstance(example, list):
        return [_like(example[0] if example else "", value) for value in several]
    if len(several) > 1:
        raise Unbound("slot_not_filled", f"The words name {len(several)} values for {path}, which takes one.")
    return _like(example, several[0])


def _like(example: Any, text: str) -> Any:
    """The text as a value of the example's type."""
    if isinstance(example, str):
        return text
    try:
        return json.loads(text)
    except ValueError:
        raise Unbound("slot_not_filled", f"{text!r} is no number, as good sessions gave there.") from None


def _read(tool: str, path: str, sources: Sources, shown: Callable[[str], Shown]) -> str | None:
    """The one value that the argument's sources give, or None."""
    for source in sources.get((tool, path), ()):
        if not source.tool:
            return source.value
        values = {value for _, answer in shown(source.tool) for value in values_at(answer, source.path)}
        if len(values) == 1:
            return values.pop()
    return None


def in_order(slots: Slots, words: str, shown: Shown) -> dict[str, Any]:
    """The slots, several values in the order in which the words name them, or the record that an answer holds them in."""
    heard = words.lower()
    places: dict[str, int] = {}
    several = {value for values in slots.values() if isinstance(values, list) for value in values}
    for record in (record for _, answer in shown for record in _records(parsed(answer))) if several else ():
        texts = list(_singles(record))
        for value in several.intersection(texts):
            named = max((text for text in texts if text.lower() in heard), key=len, default=None)
            if named is not None:
                places.setdefault(value, heard.index(named.lower()))
    places |= {value: heard.index(value.lower()) for value in several if value.lower() in heard}
    return {path: sorted(values, key=lambda value: places.get(value, len(heard))) if isinstance(values, list) else values
            for path, values in slots.items()}


def _records(value: Any) -> Iterator[dict[str, Any]]:
    if isinstance(value, dict):
        yield value
    for inner in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from _records(inner)


def _singles(record: dict[str, Any]) -> Iterator[str]:
    for value in record.values():
        if isinstance(value, str) and value:
            yield value


def values_at(answer: str, path: str) -> list[str]:
    """Single values at a path of an answer: names joined by `.`, `[]` for elements, `*` for any name; of a text, the text."""
    value = parsed(answer)
    if value is None:
        return [answer.strip()] if not path and answer.strip() and " " not in answer.strip() else []
    found = [value]
    for step in path.replace("[]", ".[]").strip(".").split(".") if path else ():
        found = [inner for each in found for inner in _inner(each, step)]
    return [_text(each) for each in found if isinstance(each, str | int | float) and not isinstance(each, bool)]


def _inner(value: Any, step: str) -> list[Any]:
    if step == "[]":
        return value if isinstance(value, list) else []
    if not isinstance(value, dict):
        return []
    return list(value.values()) if step == "*" else [value[step]] if step in value else []


def _text(value: str | int | float) -> str:
    return value if isinstance(value, str) else json.dumps(value)
