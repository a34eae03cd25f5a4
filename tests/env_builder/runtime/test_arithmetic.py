"""Arithmetic: the value that Python's own parser gives, and no value for anything else."""

from __future__ import annotations

import ast
import operator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from env_builder.runtime.texts import FORMATS, arithmetic_value, calculated
from env_builder.world.effects import calculation
from tests.env_builder.world.calls import call

NUMBERS = st.integers(0, 10_000).map(str) | st.decimals(0, 999, places=2).map(str)
EXPRESSIONS = st.recursive(
    NUMBERS,
    lambda inner: st.builds("{} {} {}".format, inner, st.sampled_from("+-*/"), inner)
    | st.builds("({})".format, inner) | st.builds("-{}".format, inner), max_leaves=8)
OPERATORS: dict[type, Any] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: operator.truediv, ast.USub: operator.neg}


def by_python(node: ast.AST) -> Any:
    if isinstance(node, ast.Expression):
        return by_python(node.body)
    if isinstance(node, ast.BinOp):
        return OPERATORS[type(node.op)](by_python(node.left), by_python(node.right))
    if isinstance(node, ast.UnaryOp):
        return OPERATORS[type(node.op)](by_python(node.operand))
    assert isinstance(node, ast.Constant)
    return node.value


@given(EXPRESSIONS)
def test_gives_the_value_that_python_gives(text: str) -> None:
    try:
        wanted = by_python(ast.parse(text, mode="eval"))
    except ZeroDivisionError:
        with pytest.raises(ValueError):
            arithmetic_value(text)
    except SyntaxError:  # 007: a number to us, none to Python
        arithmetic_value(text)
    else:
        assert arithmetic_value(text) == wanted


@given(st.text(max_size=20))
def test_nothing_else_has_a_value_or_does_any_harm(text: str) -> None:
    try:
        arithmetic_value(text)
    except ValueError:
        return
    assert set(text) <= set("0123456789.+-*/() \t\n\r\x0b\x0c\x1c\x1d\x1e\x1f\x85") or not text.isascii()


@pytest.mark.parametrize("text", ["", "1 +", "(1", "1 2", "2 ** 3", "__import__('os')", "1e5", "((((", "1/0", "9" * 2000])
def test_refuses(text: str) -> None:
    with pytest.raises(ValueError):
        arithmetic_value(text)


def test_answers_only_where_all_styles_agree() -> None:
    assert calculated("1 + 1.5", ["float", "rounded"]) == "2.5"
    assert calculated("1 / 3", ["float", "rounded"]) is None
    assert calculated("1 / 3", ["rounded"]) == "0.33"
    assert calculated("nonsense", list(FORMATS)) is None


def test_finds_a_tool_that_calculates_and_no_other() -> None:
    asked = {"2 + 3": "5.0", "10 / 4": "2.5", "(1 + 1) * 3": "6.0"}
    calls = [call("sum_up", {"what": text}, content) for text, content in asked.items()]
    found = calculation(calls)
    assert found is not None and found.argument == "what" and set(found.styles) == {"float", "rounded"}
    assert calculation([*calls, call("sum_up", {"what": "1 + 1"}, "3.0")]) is None
    assert calculation([*calls, call("sum_up", {"what": "moon"}, "Error: no number")]) is not None
    assert calculation(calls[:2]) is None
