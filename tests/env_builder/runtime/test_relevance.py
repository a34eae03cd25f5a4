"""What texts name: a look at the text alone misses nothing that reading it would find; JSON is written as Python writes it."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as some

from env_builder.runtime.canonical import canonical, styled, written
from env_builder.runtime.write_calls import WriteCall

SCALARS = some.none() | some.booleans() | some.integers() | some.floats(allow_nan=False, allow_infinity=False) | some.text(
    some.sampled_from("a7 .-é\\\"\n😀/"), max_size=8)
VALUES = some.recursive(SCALARS, lambda inner: some.lists(inner, max_size=3) | some.dictionaries(
    some.text("ab7é\"", max_size=4), inner, max_size=3), max_leaves=8)
ARGUMENTS = some.dictionaries(some.text("ab7é", max_size=4), VALUES, max_size=3)


@settings(max_examples=60, deadline=None)
@given(ARGUMENTS, VALUES, some.booleans())
def test_an_act_may_name_whatever_it_names(arguments: dict[str, Any], answer: Any, ascii_alone: bool) -> None:
    act = WriteCall("tool", canonical(arguments), json.dumps(answer, ensure_ascii=ascii_alone), frozenset(), True)
    assert all(act.may_name(frozenset((word,))) for word in act.names)
    assert not act.names or act.may_name(act.names)
    assert not act.may_name(frozenset(("nowhere in it",))) or "\\" in act.key + str(act.touched)


@settings(max_examples=40, deadline=None)
@given(VALUES, some.sampled_from([{}, {"ensure_ascii": False}, {"indent": 2}, {"separators": (",", ":"), "sort_keys": True}]))
def test_json_is_written_as_python_writes_it(value: Any, style: dict[str, Any]) -> None:
    assert styled(value, style) == json.dumps(value, **style)
    assert json.loads(canonical(value)) == value and written(value) == canonical(value)
    assert written([value, float("nan")]) is None and written({"a": {1, 2}}) is None
    value = [value]
    value.append(value)
    assert written(value) is None, "what holds itself cannot be written"
