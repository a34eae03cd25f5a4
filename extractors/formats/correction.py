"""What a person corrected: one JSON line for each statement on a session's outcome, a family's name or a check of a rubric.

    {"format": "traceroom-correction/1", "at": "2026-03-09T10:00:00Z", "by": "Ada", "why": "…",
     "subject": {"kind": "outcome", "id": SESSION}, "value": "succeeded"}

`value` of an outcome: `succeeded` or `failed`; of a family: its name; of a check: an object of `accepted`, `role`, `weight`,
`description`, `parameters`; null takes back what was stated of the subject before. The id of a check is its own (wherever it
stands) or TASK/CHECK. A value with a `kind` adds a check: it has `role`, `description` and `parameters` too, and the id
TASK/NAME or FAMILY/NAME.
Does not see: whether the subject exists; the build does.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import orjson

from extractors.formats.format import Emit, Format, Head, LogRecord, RejectedRecord, Row, each_record, sample
from extractors.formats.instants import microseconds
from warehouse.vocabulary import FAILED, SUCCEEDED

NAME = "correction"
VERSION = "traceroom-correction/1"
KINDS = ("outcome", "family", "check")
OUTCOMES = (SUCCEEDED, FAILED)
"""What a correction of an outcome says."""
FORMER_OUTCOMES = {"good": SUCCEEDED, "bad": FAILED}
"""What files of former versions say -> what it means; they are still read."""
ROLES = ("gate", "score", "penalty", "shaping", "diagnostic")
MOST_WEIGHT = 1000.0
_FAMILY = "traceroom-correction/"


def claims(head: Head) -> bool:
    """Return whether the first object says that it is a correction."""
    return head.is_json and str(head.first.get("format", "")).startswith(_FAMILY)


@each_record
def read(record: LogRecord, emit: Emit) -> None:
    """One event a line; a line that is no whole correction is rejected, with what it lacks first."""
    value = record.value if isinstance(record.value, dict) else {}
    problem = wrong_with(value)
    if problem is not None:
        raise RejectedRecord("malformed_correction", f"{problem}; repair the line, or correct it again")
    subject = value["subject"]
    emit.event(
        record, "correction", happened_at=microseconds(value["at"]), tool=subject["kind"], call_id=subject["id"],
        session_id=subject["id"] if subject["kind"] == "outcome" else None, name=value["by"].strip(),
        content=value["why"].strip(), value=orjson.dumps(value["value"], option=orjson.OPT_SORT_KEYS).decode())


def wrong_with(line: Row) -> str | None:
    """Return what keeps an object from being a correction, in a few words; None where nothing does."""
    if line.get("format") != VERSION:
        return f"its format is not {VERSION}"
    if microseconds(line.get("at")) is None:
        return "'at' is no time"
    for name in ("by", "why"):
        if not _is_text(line.get(name)):
            return f"'{name}' is no text"
    subject = line.get("subject")
    if not isinstance(subject, dict) or subject.get("kind") not in KINDS or not _is_text(subject.get("id")):
        return f"'subject' is not {{kind: {' or '.join(KINDS)}, id}}"
    if "value" not in line:
        return "'value' is not there"
    kind = subject["kind"]
    value = line["value"]
    if value is None:
        return None
    if kind == "outcome":
        is_outcome = value in OUTCOMES or value in FORMER_OUTCOMES
        return None if is_outcome else f"'value' of an outcome is not {' or '.join(OUTCOMES)}"
    if kind == "family":
        return None if _is_text(value) else "'value' of a family is no name"
    if not isinstance(value, dict) or not value or value.keys() - _OF_A_CHECK.keys():
        return f"'value' of a check is no object of {', '.join(_OF_A_CHECK)}"
    lacking = [name for name in _OF_AN_ADDED_CHECK if name not in value] if "kind" in value else []
    if lacking:
        return f"'value' of an added check has no {', '.join(lacking)}"
    if "kind" in value and not all(subject["id"].rpartition("/")[::2]):
        return "'id' of an added check is not TASK/NAME or FAMILY/NAME"
    wrong = next((name for name, item in value.items() if not _OF_A_CHECK[name](item)), None)
    return f"'{wrong}' of a check cannot be {value[wrong]!r}" if wrong else None


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and bool(value.strip())


_OF_A_CHECK: dict[str, Callable[[Any], bool]] = {
    "accepted": lambda value: isinstance(value, bool), "role": lambda value: value in ROLES,
    "weight": lambda value: type(value) in (int, float) and 0 <= value <= MOST_WEIGHT, "description": _is_text,
    "says": _is_text, "kind": _is_text, "parameters": lambda value: isinstance(value, dict)}
_OF_AN_ADDED_CHECK = ("role", "description", "parameters")

FORMAT = Format(name=NAME, claims=claims, read=read, sample=sample("correction.jsonl"), rank=5)
