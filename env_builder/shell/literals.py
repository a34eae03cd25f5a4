"""What Python source says in literals: arguments of a call, without running anything."""

from __future__ import annotations

import ast
import warnings
from collections.abc import Iterator
from typing import Any


def parsed(text: str) -> ast.Module | None:
    """Return the syntax tree, None where it is no Python of this version."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")   # of code that is not ours
            return ast.parse(text)
    except (SyntaxError, ValueError, RecursionError):
        return None


def call_arguments(text: str, function: str) -> dict[str, Any]:
    """Return the keyword arguments of a call of a function of this name, as far as they are literals or names bound to some."""
    tree = parsed(text)
    if tree is None:
        return {}
    bound = {target.id: node.value for node in ast.walk(tree) if isinstance(node, ast.Assign)
             for target in node.targets if isinstance(target, ast.Name)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and _last_name(node.func) == function and node.keywords:
            return {keyword.arg: _value(keyword.value, bound) for keyword in node.keywords if keyword.arg is not None}
    return {}


def installed_in_sessions(text: str) -> Iterator[list[str]]:
    """Yield the literal arguments of each `session.install` of functions of nox whose body or name is about tests."""
    tree = parsed(text)
    for function in ast.walk(tree) if tree is not None else ():
        if isinstance(function, ast.FunctionDef) and ("test" in function.name or "pytest" in ast.dump(function)):
            for node in ast.walk(function):
                if isinstance(node, ast.Call) and _last_name(node.func) == "install":
                    yield [each.value for each in node.args if isinstance(each, ast.Constant) and isinstance(each.value, str)]


def imported_names(text: str) -> Iterator[str]:
    """Yield the first part of every absolute import."""
    tree = parsed(text)
    for node in ast.walk(tree) if tree is not None else ():
        if isinstance(node, ast.Import):
            yield from (each.name.partition(".")[0] for each in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield node.module.partition(".")[0]


def _last_name(node: ast.expr) -> str:
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""


def _value(node: ast.expr, bound: dict[str, ast.expr], depth: int = 0) -> Any:
    """Return the value of a literal, with names that are bound to literals; None for the rest."""
    if depth > 6:
        return None
    if isinstance(node, ast.Name):
        return _value(bound[node.id], bound, depth + 1) if node.id in bound else None
    if isinstance(node, ast.List | ast.Tuple):
        return [each for item in node.elts for each in _spread(item, bound, depth + 1)]
    if isinstance(node, ast.Dict):
        return {key.value: _value(each, bound, depth + 1) for key, each in zip(node.keys, node.values, strict=True)
                if isinstance(key, ast.Constant)}
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        one, other = (_value(each, bound, depth + 1) for each in (node.left, node.right))
        if isinstance(one, list) and isinstance(other, list):
            return one + other
        return one + other if isinstance(one, str) and isinstance(other, str) else one if other is None else other
    return node.value if isinstance(node, ast.Constant) else None


def _spread(item: ast.expr, bound: dict[str, ast.expr], depth: int) -> list[Any]:
    if isinstance(item, ast.Starred):
        value = _value(item.value, bound, depth)
        return value if isinstance(value, list) else []
    return [_value(item, bound, depth)]
