"""An answer of nothing, and when it says that a call failed."""

from __future__ import annotations

from env_builder.world.calls import without_empty_answers
from tests.env_builder.world.calls import call


def test_null_is_a_failure_of_a_tool_that_confirms_where_others_fail_so() -> None:
    shown = [call("show", {"card": f"C-{n}"}, "null" if n == 5 else '{"card": 1}') for n in range(6)]
    closed = [call("close", {"card": f"C-{n}"}, "true" if n % 2 else "null") for n in range(6)]
    chosen = [call("next", {"card": f"C-{n}"}, f"C-{n}" if n % 2 else "null") for n in range(6)]
    sown = [call("sow", {"card": f"C-{n}"}, "null" if n % 2 else "Error: it is full") for n in range(6)]
    read = without_empty_answers([*shown, *closed, *chosen, *sown])
    failed = {each.tool for each in read if each.failed and each.content == "null"}
    assert failed == {"show", "close"}
    assert not any(each.failed for each in without_empty_answers(closed))
