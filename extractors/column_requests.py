"""Which columns tell of requests to an application: target, status, query, body, answer and id.

In: the columns of a file, of which some are taken. Out: columns, and fields of a mapping.
"""

from __future__ import annotations

from extractors.column_choice import Choice, path_of
from extractors.shapes import Column

_TARGET_WORDS = ("path", "url", "uri", "route", "target", "endpoint")


def target(choice: Choice) -> Column | None:
    """The column of paths or addresses."""
    could = [column for column in choice.free() if column.is_targets and column.presence >= 0.8]
    return max(could, key=lambda column: sum(word in _TARGET_WORDS for word in column.words), default=None)


def request_fields(choice: Choice) -> dict[str, str | None]:
    """Status, query, body, response and id."""
    found = {"status": path_of(choice.best("status", lambda column: column.is_http_status, least=0.0))}
    beside = _beside_status(choice, found["status"])
    for name in ("query", "body", "response"):
        held = beside if name == "response" and beside is not None else choice.best(
            name, lambda column: _holds(column) and not column.is_outer, least=2.0)
        found[name] = path_of(held)
        if held is not None:
            choice.take_inside(held.path)
    found["request_id"] = path_of(choice.best(
        "request_id", lambda column: column.is_scalar_id and len(column.counts) == len(column.values), least=2.0))
    return found


def _beside_status(choice: Choice, status: str | None) -> Column | None:
    """What an answer held besides its status, where both stand in one object."""
    holder = (status or "").rpartition(".")[0]
    return choice.best("body", lambda column: bool(holder) and column.path.rpartition(".")[0] == holder and column.is_objects,
                       least=0.0)


def _holds(column: Column) -> bool:
    return column.is_objects or column.share(lambda each: isinstance(each, (dict, list))) > 0
