"""End states are compared by what they mean."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from env_builder.runtime.canonical import canonical
from env_builder.runtime.ends import beyond, end_state, unquoted, unreached

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-10**9, 10**9) | st.text(max_size=6) | st.sampled_from(["7", "-3", "2.5", "007"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3), max_leaves=6)


def write_call(arguments: dict[str, Any]) -> dict[str, Any]:
    return {"documents": {}, "write_calls": [["pay", canonical(arguments)]]}


def differs(one: dict[str, Any], other: dict[str, Any]) -> bool:
    first, second = end_state(write_call(one), {}), end_state(write_call(other), {})
    return bool(unreached(first, second) or beyond(second, first))


@pytest.mark.parametrize(("one", "other", "wanted"), [
    ({"n": 5}, {"n": "5"}, False), ({"n": -2.5}, {"n": "-2.5"}, False), ({"rows": [{"n": "0"}]}, {"rows": [{"n": 0}]}, False),
    ({"code": "007"}, {"code": 7}, True), ({"release": "1.10"}, {"release": 1.1}, True), ({"n": "5"}, {"n": 6}, True),
    ({"is_on": True}, {"is_on": "1"}, True), ({"id": "9" * 16}, {"id": float("9" * 16)}, True), ({"n": "٣"}, {"n": 3}, True),
])
def test_a_number_written_as_text_is_this_number_and_a_name_of_digits_is_none(
    one: dict[str, Any], other: dict[str, Any], wanted: bool
) -> None:
    assert differs(one, other) is wanted


def test_documents_keep_texts_apart_from_numbers() -> None:
    text, number = ({"documents": {"order/1": value}, "write_calls": []} for value in ('{"n":"5"}', '{"n":5}'))
    assert unreached(end_state(text, {}), end_state(number, {})) == [["document", "order/1"]]


@given(VALUES)
def test_normal_form_of_arguments_is_final(value: Any) -> None:
    assert unquoted(unquoted(value)) == unquoted(value)
