"""Which columns tell of calls: the tool, its arguments, its result, whether it went wrong, and the id that joins them.

In: the columns of a file, of which some are taken. Out: fields of a mapping.
"""

from __future__ import annotations

from extractors.column_choice import Choice, path_of
from extractors.column_tests import call_id_shape, could_be_result, is_call_id, role_free
from extractors.shapes import Column

_ERROR_WORDS = {"error", "err", "exception", "failure", "fault"}


def call_fields(choice: Choice, kind: Column | None, tool: Column | None = None) -> dict[str, str]:
    """Tool, arguments, result, error and id of calls; nothing where there are neither arguments nor results."""
    before = choice.taken()
    tool = tool or choice.tool()
    if tool is None:
        return {}
    items = set(tool.held)
    found = {"tool": tool.path, **_given(choice, items)}
    call_id = choice.best("call_id", lambda column: column.is_scalar_id and choice.is_beside(column, items) and
                          is_call_id(column, items), least=2.0, shape=call_id_shape)
    if call_id is not None:
        found["call_id"] = _with_matching(choice, call_id)
    found |= _answered(choice, items)
    if kind is None and not found.keys() & {"arguments", "result"}:
        choice.go_back(before)
        return {}
    error = _error(choice)
    return {**found, **({"error": error} if error else {})}


def _given(choice: Choice, items: set[int]) -> dict[str, str]:
    given = choice.best("arguments", lambda column: column.is_objects and choice.is_beside(column, items) and role_free(column))
    if given is None:
        return {}
    paths = choice.with_others("arguments", given, lambda column: column.is_objects) or given.path
    choice.take_inside(paths)
    return {"arguments": paths}


def _answered(choice: Choice, items: set[int]) -> dict[str, str]:
    def answers(column: Column) -> bool:
        return choice.is_beside(column, items) and could_be_result(column)
    answer = choice.best("result", answers, least=2.0)
    if answer is None:
        return {}
    paths = choice.with_others("result", answer, answers) or answer.path
    choice.take_inside(paths)
    return {"result": paths}


def _error(choice: Choice) -> str | None:
    fine = choice.best("fine", lambda column: column.is_flag, least=2.0)
    if fine is not None:
        return f"!{fine.path}"

    def could(column: Column) -> bool:
        return column.is_status or column.is_flag or bool(set(column.words) & _ERROR_WORDS)
    return path_of(choice.best("error", could, least=2.0))


def _with_matching(choice: Choice, call_id: Column) -> str:
    """The path of a call's id, and of the field that a result says it under."""
    known = set(call_id.counts)
    for column in list(choice.free()):
        is_apart = column.is_scalar_id and not set(column.held) & set(call_id.held)
        if is_apart and column.values and set(column.counts) <= known:
            choice.take(column)
            return f"{call_id.path}|{column.path}"
    return call_id.path
