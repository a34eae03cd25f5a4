"""Answer calls that are only confirmed, or refused as what they name does not exist: `confirm` rules (docs/behaviour.md).

In: a rule, arguments, whether what the call names exists, what the episode did to it before, and what the tool answered
before. Out: (answer, is it a failure), or None. The confirmation is one text, or counts the tool's calls.
Sees: one naming argument. Does not see: entities that no answer showed, and refusals for other reasons.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any, NamedTuple

from .canonical import canonical
from .filters import without_blanks
from .texts import signs_of

Rule = dict[str, Any]
WORKS, MISSING = "works", "missing"
"""What a call says after an earlier call named the same: as ever, or that it does not exist."""
_LETTERS, _DIGITS = re.compile(r"[^\W\d_]+"), re.compile(r"\d+")


class NamedEntity(NamedTuple):
    """What is known of the value that names an entity."""

    exists: bool
    """Was it shown, or did a call that names it work?"""
    is_refused: bool
    """Was it only ever refused?"""
    earlier: list[tuple[str, bool]]
    """Earlier write calls that name it: (tool, was it answered)."""


NO_NAME = NamedEntity(True, False, [])


class EpisodeWrite(NamedTuple):
    """A write call of the episode."""

    tool: str
    arguments: dict[str, Any]
    answer: str | None
    """None: it was not answered."""
    before: str | None = None
    """Text of the document that it names, as it was just before, where a rule asks for it."""

    def names(self, value: str) -> bool:
        return any(str(other) == value for other in self.arguments.values())


def naming_of(rule: Rule, value: str, is_shown: bool, writes: list[EpisodeWrite]) -> NamedEntity:
    """Return what is known of a value in an episode. `is_shown`: does it stand in a column that the rule names?"""
    made = any(write.answer is not None and value in write.answer for write in writes)
    exists = is_shown or made or value in rule["known"]
    earlier = [(write.tool, write.answer is not None) for write in writes if write.names(value)]
    return NamedEntity(exists, value in rule["refused"] and not exists, earlier)


def answers_of(tool: str, writes: list[EpisodeWrite]) -> list[str] | None:
    """Return what the tool answered before, None if not all of it is known, or if write calls name it."""
    own = [write.answer for write in writes if write.tool == tool]
    answered = [answer for answer in own if answer is not None]
    is_named = any(write.names(answer) for write in writes for answer in answered)
    return None if is_named or len(answered) < len(own) else answered


def confirmation(
    rule: Rule, arguments: dict[str, Any], naming: NamedEntity, answers: Iterable[str] | None
) -> tuple[str, bool] | None:
    """Return the answer and whether it is a failure. `answers`: the tool's earlier ones in the episode, None if unknown."""
    given = without_blanks(arguments)
    if sorted(given) not in rule["names"]:
        return None
    after = {rule["after"].get(tool, "") if is_answered or rule["after"].get(tool) == WORKS else ""
             for tool, is_answered in naming.earlier}
    if rule["argument"] is not None:
        value = given[rule["argument"]]
        is_strange = isinstance(value, str) and bool(rule["shapes"]) and shape(value) not in rule["shapes"]
        is_absent = naming.is_refused or is_strange
        if (after == {MISSING} and naming.exists) or (not naming.earlier and not naming.exists and is_absent):
            return None if rule["missing"] is None else (rule["missing"], rule["is_error"])
        if not naming.exists or after - {WORKS}:
            return None
    if rule["confirms"] is None or not all(_is_accepted(rule, name, given.get(name)) for name in rule["accepted"]):
        return None
    text = confirmed(rule["confirms"], answers)
    return None if text is None else (text, False)


def _is_accepted(rule: Rule, name: str, value: Any) -> bool:
    """Return whether an argument has a value that was accepted, or the signs of many such values."""
    return canonical(value) in rule["accepted"][name] or (
        isinstance(value, str) and signs_of(value) in rule.get("signs", {}).get(name, ()))


def confirmed(confirms: dict[str, Any], answers: Iterable[str] | None) -> str | None:
    """Return the text of the next confirmation, None if it counts and an earlier answer is not known."""
    if confirms["from"] is None:
        return str(confirms["before"])
    if answers is None:
        return None
    n = sum(number_in(confirms, answer) is not None for answer in answers)
    return f"{confirms['before']}{confirms['from'] + n:0{confirms['width']}}{confirms['after']}"


def number_in(confirms: dict[str, Any], answer: str) -> int | None:
    """Return the number that a counting confirmation contains, None if the answer is none."""
    before, after = confirms["before"], confirms["after"]
    digits = answer[len(before): len(answer) - len(after)]
    is_one = answer.startswith(before) and answer.endswith(after) and digits.isdecimal() and len(digits) >= confirms["width"]
    return int(digits) if is_one else None


def shape(value: str) -> str:
    """Return a name with each run of letters and of digits as one sign."""
    return _DIGITS.sub("0", _LETTERS.sub("a", value))
