"""A mapping for records of an envelope that nobody knows: by the names of its fields, and by what their values look like.

In: parsed records of one file. Out: the fields of a source with format `mapped`, as the configuration holds them, or None.
What it sees: English names, times, ids that come again, words for roles and kinds, long text, JSON objects, HTTP. What
it does not see: meaning; what it proposes is shown with what it reads, for a person to judge.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from extractors.column_calls import call_fields
from extractors.column_choice import Choice
from extractors.column_requests import request_fields, target
from extractors.formats.scope import Scope, opened
from extractors.proposed_words import say_kinds, say_roles
from extractors.shapes import Column, columns

Fields = dict[str, Any]
_LISTS_DEEP = 4
_LOOK_AT = 400
_ENOUGH_ITEMS = 4000


def candidates(records: Sequence[Any]) -> Iterator[Fields]:
    """Mappings that might fit, for the records themselves and for each list of objects inside them."""
    looked_at = records[:_LOOK_AT]
    for path in (None, *list_paths(looked_at)):
        scopes = [scope for record in looked_at for scope in _scopes(record, path)][:_ENOUGH_ITEMS]
        items = [scope.values for scope in scopes]
        if not items:
            continue
        found = columns(items)
        for proposal in (_request, _talk, _audit, _opinion, _business):
            fields = proposal(Choice(found), items)
            if fields is not None:
                yield {**({"messages": path} if path is not None else {}), **fields}


def list_paths(records: Sequence[Any]) -> list[str]:
    """Paths of lists that hold objects or text, with the lists on the way, shortest first."""
    found: dict[str, None] = {}
    for record in records:
        _walk_lists(record, "", found, 0)
    return sorted(found, key=lambda path: (path.count("."), path))


def _walk_lists(value: Any, path: str, found: dict[str, None], depth: int) -> None:
    value = opened(value)
    if depth > _LISTS_DEEP:
        return
    if isinstance(value, list) and value:
        if any(isinstance(each, dict) for each in value):
            found.setdefault(path or ".", None)
        for each in value[:20]:
            if isinstance(each, dict):
                _walk_lists(each, path, found, depth + 1)
    elif isinstance(value, dict):
        for key, each in value.items():
            if isinstance(opened(each), (dict, list)):
                _walk_lists(each, f"{path}.{key}" if path else str(key), found, depth + 1)


def _scopes(record: Any, path: str | None) -> Iterator[Scope]:
    whole = Scope((record,), "")
    if path is None:
        if isinstance(record, dict):
            yield whole
    else:
        yield from whole.each(path)


def _facts(choice: Choice) -> Fields:
    """Facts around every kind of record."""
    return {"session_id": choice.session(), "time": choice.time(), "ended": choice.ended(), "identity": choice.identity(),
            "service": choice.service()}


def _talk(choice: Choice, items: list[tuple[Any, ...]]) -> Fields | None:
    """Messages, with calls and results among them where there are any."""
    kind = choice.kind()
    role = choice.role(kind)
    said = choice.says() if role is None and kind is None else {}
    if not (role or kind or said):
        return None
    fields: Fields = {"kind": kind.path if kind else None, "role": role.path if role else kind.path if kind else None,
                      "says": said}
    fields |= _facts(choice)
    fields["position"] = choice.position(fields["session_id"])
    if said and not (fields["session_id"] or fields["identity"]):
        fields["session_id"] = choice.unique_id()
    calls = _calls(items)
    if calls:
        fields |= calls
    else:
        fields |= call_fields(choice, kind)
    if not said:
        fields["content"] = choice.content()
    if not (fields.get("content") or said):
        return None
    fields |= choice.metrics()
    fields["roles"] = say_roles(role or kind, choice.columns, fields["content"]) if not said else {}
    fields["kinds"] = say_kinds(kind, choice.columns, fields) if kind else {}
    return _without_nothing(fields)


def _calls(items: list[tuple[Any, ...]]) -> Fields:
    """The list of tool calls inside messages, with its fields."""
    for path in list_paths([values[0] for values in items if isinstance(values[0], dict)]):
        inner = [scope.values[:1] for values in items for scope in Scope((values[0],), "").each(path)]
        choice = Choice(columns(inner))
        tool = choice.tool(is_call=True)
        if tool is None:
            continue
        found = call_fields(choice, None, tool)
        if found.get("arguments") or found.get("result"):
            return {"calls": path, **found}
    return {}


def _audit(choice: Choice, items: list[tuple[Any, ...]]) -> Fields | None:
    """Calls of tools, with their results, that nobody speaks about."""
    kind = choice.kind()
    found = call_fields(choice, kind)
    if not found.get("tool") or not (found.get("arguments") or found.get("result")):
        return None
    fields: Fields = {"kind": kind.path if kind else None, **found, **_facts(choice), **choice.metrics()}
    fields["kinds"] = say_kinds(kind, choice.columns, fields) if kind else {}
    return _without_nothing(fields)


def _request(choice: Choice, items: list[tuple[Any, ...]]) -> Fields | None:
    """Requests to an application."""
    method, path = choice.first(lambda column: column.is_methods), target(choice)
    if method is None or path is None:
        return None
    choice.take(method, path)
    fields: Fields = {"method": method.path, "path": path.path, **request_fields(choice)}
    fields |= _facts(choice)
    fields |= {name: each for name, each in choice.metrics().items() if name.startswith("latency")}
    return _without_nothing(fields)


def _opinion(choice: Choice, items: list[tuple[Any, ...]]) -> Fields | None:
    """Feedback: an answer to a question, with a comment."""
    value = choice.rating()
    if value is None:
        return None
    fields: Fields = {"kind": "=feedback", "value": value.path, "name": f"={'_'.join(value.words)}",
                      "comment": choice.content(), **_facts(choice)}
    return _without_nothing(fields)


def _business(choice: Choice, items: list[tuple[Any, ...]]) -> Fields | None:
    """Things that happened, by name."""
    event = choice.event_name()
    facts = _facts(choice)
    if event is None or facts["time"] is None:
        return None
    return _without_nothing({"kind": "=business", "tool": event.path, "arguments": choice.payload(), **facts})


def _without_nothing(fields: Fields) -> Fields:
    return {name: each for name, each in fields.items() if each not in (None, {}, "")}


Proposal = Callable[[Choice, list[tuple[Any, ...]]], Fields | None]
__all__ = ["Column", "Fields", "candidates", "list_paths"]
