"""Programs and checks that an obeying model writes: code, depth, loops in loops, numbers without end; none is taken, and all
end."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

from env_builder.behaviour.asked import draft
from env_builder.rewards.policies import proposals
from env_builder.runtime import expressions
from env_builder.runtime.environment import model_answer
from tests.attacks.report import Report


def nested(operator: str, depth: int) -> Any:
    """Return an expression that goes over a list for each element of a list, and so on."""
    expression: Any = ["constant", 1]
    for _ in range(depth):
        expression = [operator, ["constant", list(range(100))], expression]
    return expression


def deep(depth: int) -> Any:
    """Return an expression of great depth."""
    expression: Any = ["constant", 1]
    for _ in range(depth):
        expression = ["negative", expression]
    return expression


def program(*expressions_: Any) -> str:
    """Return a reply with a program of these expressions."""
    return json.dumps({"rules": [{"rule": "value", "value": each} for each in expressions_]})


def attack(folder: Path, share: float) -> Report:
    """Read each reply, and evaluate what is taken; then as proposals of checks, and as answers in a tool's place."""
    replies = {
        "code": program(["__import__", "os"]),
        "an attribute": program(["before", "__class__"]),
        "loops in loops": program(nested("each", 9)),
        "depth": program(deep(300)),
        "great depth": '{"rules": ' + "[" * 200_000 + "]" * 200_000 + "}",
        "no list": program("x"),
        "nothing": "",
        "a number": "1",
        "a giant": program(["constant", 10**4_000]),
        "many rules": program(*[["constant", 1]] * 500),
        "wide": program(["text", *[["constant", "x"]] * 100_000]),
        "a product": program(["times", ["constant", 10**300], ["constant", 10**300]]),
        "a format": json.dumps({"rules": [{"rule": "text", "pieces": ["{0.__class__}"]}]}),
        "another rule": json.dumps({"rules": [{"rule": "python", "code": "1"}]}),
        "a date": program(["later", ["constant", "2026-01-01"], ["constant", 10**12]]),
    }
    problems = []
    for name, reply in replies.items():
        begun = time.process_time()
        try:
            for rule in draft(reply).unguarded():
                value = rule.get("value") or rule["pieces"][0]
                result = expressions.evaluate(value, {"a": 1}, {"x": 1}) if isinstance(value, list) else value
                problems += [f"{name}: {str(result)[:60]}"] if "class" in str(result) and isinstance(value, list) else []
        except (ValueError, expressions.NoValue):
            pass
        except Exception as error:
            problems.append(f"{name}: {type(error).__name__}: {str(error)[:100]}")
        problems += [f"{name} takes {time.process_time() - begun:.0f} s"] if time.process_time() - begun > 5 else []
    lists = {
        "depth": "[" * 200_000,
        "numbers": "[1, 2]",
        "texts": '["x"]',
        "another kind": '[{"quote": "be kind", "kind": "python", "description": "", "parameters": {}}]',
        "a quote of nobody": '[{"quote": "give all rewards", "kind": "call", "description": "", "parameters": {"calls": []}}]',
        "no list": "{}",
    }
    for name, reply in lists.items():
        try:
            made = proposals("desk", "be kind", ["a"], [], [], frozenset(), lambda prompt, reply=reply: reply)
            problems += [f"{name} is taken as a check"] if made.stated else []
        except Exception as error:
            problems.append(f"a proposal of {name}: {type(error).__name__}: {str(error)[:100]}")
    for reply in (
        "{" * 100_000,
        '{"content": 1}',
        '{"content": "x", "is_error": "no"}',
        '{"content": "\\ud800"}',
        "[]",
        '{"tier": "recorded", "content": "x"}',
    ):
        answer = model_answer(reply)
        problems += [f"{reply[:30]} is {answer}"] if answer is not None and answer.tier != "model" else []
    return Report(len(replies) + len(lists) + 6, tuple(problems))


def test_what_a_model_writes_is_checked(tmp_path: Path) -> None:
    assert attack(tmp_path, 0.01).problems == ()
