"""Propose a mapping for records of an unknown envelope, by names of fields and the shapes of their values.

Input: parsed records of one file. Output: the fields of a source with format `mapped`, as the configuration holds them, or
None. Sees English names, times, repeated ids, words for roles and kinds, long text, JSON objects, HTTP. Does not see meaning: a
proposal is shown with what it reads, for a person to judge."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any

from extractors.column_choice import ColumnChoice, call_fields, request_fields
from extractors.columns import RecordColumn, columns, is_yes, words_of
from extractors.formats.mapped import RecordScope
from extractors.formats.mapped_words import kind_of, role_of
from extractors.formats.values import opened

Fields = dict[str, Any]
_LISTS_DEEP = 4
_MOST_RECORDS = 400
_ENOUGH_ITEMS = 4000
_TARGET_WORDS = ("path", "url", "uri", "route", "target", "endpoint")


def candidates(records: Sequence[Any]) -> Iterator[Fields]:
    """Yield mappings that might fit, for the records themselves and for each list of objects inside them."""
    first = records[:_MOST_RECORDS]
    for path in (None, *list_paths(first)):
        wholes = (RecordScope((record,), "") for record in first if path is not None or isinstance(record, dict))
        scopes = (scope for whole in wholes for scope in (whole.each(path) if path is not None else (whole,)))
        items = [scope.values for scope in islice(scopes, _ENOUGH_ITEMS)]
        if not items:
            continue
        described = columns(items)
        for propose in (_request, _talk, _audit, _opinion, _business):
            fields = propose(ColumnChoice(described), items)
            if fields is not None:
                yield {**({"messages": path} if path is not None else {}),
                       **{name: each for name, each in fields.items() if each not in (None, {}, "")}}


def list_paths(records: Sequence[Any]) -> list[str]:
    """Paths of lists that hold objects or text, with the lists on the way, shortest first."""
    paths: dict[str, None] = {}
    for record in records:
        _walk_lists(record, "", paths, 0)
    return sorted(paths, key=lambda path: (path.count("."), path))


def _walk_lists(value: Any, path: str, paths: dict[str, None], depth: int) -> None:
    value = opened(value)
    if depth > _LISTS_DEEP:
        return
    if isinstance(value, list) and value:
        if any(isinstance(each, dict) for each in value):
            paths.setdefault(path or ".", None)
        for each in value[:20]:
            if isinstance(each, dict):
                _walk_lists(each, path, paths, depth + 1)
    elif isinstance(value, dict):
        for key, each in value.items():
            if isinstance(opened(each), (dict, list)):
                _walk_lists(each, f"{path}.{key}" if path else str(key), paths, depth + 1)


def _facts(choice: ColumnChoice) -> Fields:
    return {name: choice.path(name) for name in ("session_id", "time", "ended", "identity", "service")}


def _talk(choice: ColumnChoice, items: list[tuple[Any, ...]]) -> Fields | None:
    kind = choice.kind()
    role = choice.role(kind)
    texts = choice.says() if role is None and kind is None else {}
    if not (role or kind or texts):
        return None
    fields: Fields = {"kind": kind.path if kind else None, "role": role.path if role else kind.path if kind else None,
                      "says": texts}
    fields |= _facts(choice)
    fields["position"] = choice.position(fields["session_id"])
    if texts and not (fields["session_id"] or fields["identity"]):
        fields["session_id"] = choice.path("unique_id")
    fields |= _calls(items) or call_fields(choice, kind)
    if not texts:
        fields["content"] = choice.content()
    if not (fields.get("content") or texts):
        return None
    fields |= choice.metrics()
    fields["roles"] = say_roles(role or kind, choice.columns, fields["content"]) if not texts else {}
    fields["kinds"] = say_kinds(kind, choice.columns, fields)
    return fields


def _calls(items: list[tuple[Any, ...]]) -> Fields:
    for path in list_paths([values[0] for values in items if isinstance(values[0], dict)]):
        inner = [scope.values[:1] for values in items for scope in RecordScope((values[0],), "").each(path)]
        choice = ColumnChoice(columns(inner))
        tool = choice.tool(is_call=True)
        if tool is not None and (fields := call_fields(choice, None, tool)).keys() & {"arguments", "result"}:
            return {"calls": path, **fields}
    return {}


def _audit(choice: ColumnChoice, items: list[tuple[Any, ...]]) -> Fields | None:
    kind = choice.kind()
    calls = call_fields(choice, kind)
    if not calls.get("tool") or not (calls.get("arguments") or calls.get("result")):
        return None
    fields: Fields = {"kind": kind.path if kind else None, **calls, **_facts(choice), **choice.metrics()}
    fields["kinds"] = say_kinds(kind, choice.columns, fields)
    return fields


def _request(choice: ColumnChoice, items: list[tuple[Any, ...]]) -> Fields | None:
    method = next((column for column in choice.free() if column.is_methods), None)
    targets = [column for column in choice.free() if column.is_targets and column.presence >= 0.8]
    path = max(targets, key=lambda column: sum(word in _TARGET_WORDS for word in column.words), default=None)
    if method is None or path is None:
        return None
    choice.take(method, path)
    fields: Fields = {"method": method.path, "path": path.path, **request_fields(choice)}
    fields |= _facts(choice)
    return fields | {name: each for name, each in choice.metrics().items() if name.startswith("latency")}


def _opinion(choice: ColumnChoice, items: list[tuple[Any, ...]]) -> Fields | None:
    value = choice.chosen("rating")
    return None if value is None else {"kind": "=feedback", "value": value.path, "name": f"={'_'.join(value.words)}",
                                       "comment": choice.content(), **_facts(choice)}


def _business(choice: ColumnChoice, items: list[tuple[Any, ...]]) -> Fields | None:
    event, facts = choice.path("event"), _facts(choice)
    if event is None or facts["time"] is None:
        return None
    return {"kind": "=business", "tool": event, "arguments": choice.path("payload"), **facts}


_USER, _ASSISTANT = "user", "assistant"


def say_roles(column: RecordColumn | None, all_columns: list[RecordColumn], content: str | None) -> dict[str, str]:
    """Our role for each word of the column that is no plain word for one."""
    if column is None:
        return {}
    # a flag like `is_bot`: its name says who speaks where it is true
    flagged = next((role for word in column.words if (role := role_of(word, {})) in (_USER, _ASSISTANT)), None)
    if column.is_flag and flagged is not None:
        other = _USER if flagged == _ASSISTANT else _ASSISTANT
        return {word: flagged if is_yes(word) else other for word in column.counts}
    speaking = _items_with(all_columns, content)
    words = list(dict.fromkeys(str(each) for number, each in column.by_item.items() if number in speaking or not speaking))
    roles: dict[str, str] = {}
    unknown = []
    for word in words:
        if role_of(word, {}) is not None:
            continue
        inside = next((role for part in words_of(word) if (role := role_of(part, {})) is not None), None)
        if inside is not None:
            roles[word] = inside
        elif kind_of(word, {}) is None or kind_of(word, {}) == "message":
            unknown.append(word)
    taken = {role_of(word, {}) for word in words} | set(roles.values())
    free = [role for role in (_USER, _ASSISTANT) if role not in taken]
    if len(unknown) <= len(free):   # roles in order of appearance: a user begins
        roles |= dict(zip(unknown, free, strict=False))
    elif free == [_ASSISTANT]:
        roles |= dict.fromkeys(unknown, _ASSISTANT)
    return roles


def say_kinds(column: RecordColumn | None, all_columns: list[RecordColumn], fields: dict[str, str]) -> dict[str, str]:
    """Our kind for each word of the column that is no plain word for one, by what its records hold."""
    if column is None:
        return {}
    items_with = {name: _items_with(all_columns, fields.get(name)) for name in ("content", "arguments", "result", "tool")}
    kinds = {}
    for word in dict.fromkeys(column.counts):
        if kind_of(word, {}) is not None or role_of(word, {}) is not None:
            continue
        items = {number for number, each in column.by_item.items() if each == word}
        share = {name: len(items & numbers) / len(items) for name, numbers in items_with.items()}
        if share["tool"] > 0.5 and share["arguments"] > 0.5 and share["result"] <= 0.5:
            kinds[word] = "call"
        elif share["result"] > 0.5 and share["arguments"] <= 0.5:
            kinds[word] = "result"
        elif share["content"] > 0.5 and share["tool"] <= 0.5:
            kinds[word] = "message"
    return kinds


def _items_with(all_columns: list[RecordColumn], paths: str | None) -> set[int]:
    wanted = set(paths.split("|")) if paths else set()
    return {number for column in all_columns if column.path in wanted for number in column.by_item}
