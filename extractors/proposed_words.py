"""Words of a log that a mapping must translate: who speaks, and what kind a record is, where the words alone do not say it."""

from __future__ import annotations

from extractors.formats.mapped_words import kind_of, role_of
from extractors.shapes import Column, is_yes, words_of

_USER, _ASSISTANT = "user", "assistant"


def say_roles(column: Column | None, all_columns: list[Column], content: str | None) -> dict[str, str]:
    """Our role for each word of the column that is no plain word for one."""
    if column is None:
        return {}
    flags = _flag(column)
    if flags:
        return flags
    speaking = _items_with(all_columns, content)
    words = list(dict.fromkeys(str(each) for number, each in column.held.items() if number in speaking or not speaking))
    found: dict[str, str] = {}
    unknown = []
    for word in words:
        if role_of(word, {}) is not None:
            continue
        inside = next((role for part in words_of(word) if (role := role_of(part, {})) is not None), None)
        if inside is not None:
            found[word] = inside
        elif kind_of(word, {}) is None or kind_of(word, {}) == "message":
            unknown.append(word)
    taken = {role_of(word, {}) for word in words} | set(found.values())
    free = [role for role in (_USER, _ASSISTANT) if role not in taken]
    if len(unknown) <= len(free):   # who is not told comes first where nobody is: a user begins
        found |= dict(zip(unknown, free, strict=False))
    elif free == [_ASSISTANT]:
        found |= dict.fromkeys(unknown, _ASSISTANT)
    return found


def _flag(column: Column) -> dict[str, str]:
    """Roles of a flag like `is_bot`: its name says who speaks where it is true."""
    if not column.is_flag:
        return {}
    named = next((role for word in column.words if (role := role_of(word, {})) in (_USER, _ASSISTANT)), None)
    if named is None:
        return {}
    other = _USER if named == _ASSISTANT else _ASSISTANT
    return {word: named if is_yes(word) else other for word in column.counts}


def say_kinds(column: Column | None, all_columns: list[Column], fields: dict[str, str]) -> dict[str, str]:
    """Our kind for each word of the column that is no plain word for one, by what its records hold."""
    if column is None:
        return {}
    has = {name: _items_with(all_columns, fields.get(name)) for name in ("content", "arguments", "result", "tool")}
    found = {}
    for word in dict.fromkeys(column.counts):
        if kind_of(word, {}) is not None or role_of(word, {}) is not None:
            continue
        items = {number for number, each in column.held.items() if each == word}
        share = {name: len(items & numbers) / len(items) for name, numbers in has.items()}
        if share["tool"] > 0.5 and share["arguments"] > 0.5 and share["result"] <= 0.5:
            found[word] = "call"
        elif share["result"] > 0.5 and share["arguments"] <= 0.5:
            found[word] = "result"
        elif share["content"] > 0.5 and share["tool"] <= 0.5:
            found[word] = "message"
    return found


def _items_with(all_columns: list[Column], paths: str | None) -> set[int]:
    """Items that hold something at one of the paths."""
    wanted = set(paths.split("|")) if paths else set()
    return {number for column in all_columns if column.path in wanted for number in column.held}
