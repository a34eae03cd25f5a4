"""What the rules of programs say about things, beside answering: rows, documents, values that nobody could foretell."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from .answers import parse
from .world import Name

Program = dict[str, Any]


def rows_rules(program: Program) -> list[dict[str, Any]]:
    """Its rules that say which rows its answers list."""
    return [rule for rule in program["rules"] if rule["rule"] == "rows"]


def open_to_bound(program: Program) -> Program:
    """The program of a tool to which something is bound, in all its versions."""
    def rules(row: Program) -> Program:
        others = [rule for rule in row["rules"] if rule["rule"] not in ("recorded", "bound")]
        return {**row, "rules": [{"rule": "recorded"}, {"rule": "bound"}, *others]}

    return rules(program) | ({"versions": list(map(rules, program["versions"]))} if "versions" in program else {})


def shown_by(program: Program, arguments: dict[str, Any], content: str) -> tuple[tuple[Name, str], ...]:
    """The document that an answer shows, by the tool's own rules."""
    for rule in program["rules"]:
        if rule["rule"] not in ("document", "write", "create", "shows"):
            continue
        before, after = rule["before"], rule["after"]
        text = content[len(before): len(content) - len(after)]
        document = parse(text) if content.startswith(before) and content.endswith(after) else None
        if isinstance(document, dict):
            key = arguments.get(rule["argument"]) if rule["argument"] else document.get(rule["field"])
            if isinstance(key, str | int):
                return (((rule["class"], str(key)), text),)
    return ()


def made_by(program: Program) -> frozenset[str]:
    """Classes of which it makes new things."""
    return frozenset(rule["class"] for rule in program["rules"] if rule["rule"] == "create")


def drawing(program: Program) -> frozenset[str]:
    """Classes of which it makes new things under names that hang on chance, or on what others made before."""
    return frozenset(rule["class"] for rule in program["rules"]
                     if rule["rule"] == "create" and rule["fields"][rule["field"]][0] in ("fresh", "following"))


def volatile(programs: dict[str, Program], documents: Iterable[str]) -> dict[str, Any]:
    """{"volatile": {class: [path, ...]}} of the classes of these documents (class/key); empty where there are no such paths."""
    kinds = {name.partition("/")[0] for name in documents}
    found: dict[str, list[Any]] = {}
    for _, program in sorted(programs.items()) if kinds else ():
        for rule in program["rules"]:
            known = found.setdefault(rule["class"], []) if rule.get("class") in kinds and "volatile" in rule else []
            known += [path for path in rule.get("volatile", ()) if path not in known]
    return {"volatile": found} if found else {}
