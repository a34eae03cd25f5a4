"""Checks of what was produced: `file` and `process`, over a world of documents that are called as files are (`class/path`).

A file's text is its document where that is a JSON text, else what stands at the pointer `at` in it. See the documents as the
grader's replay left them, and results that the room gave to calls (commands, tests, linters), never what the agent claims of
them. Do not see: why a command failed, and files outside of the world.
"""

from __future__ import annotations

import json
from collections import Counter
from typing import Any, NamedTuple

from ..canonical import digest
from ..ends import same
from ..schemas import fields
from .kind import Found, Kind, Parameters, Row, Schema, Seen, clip
from .patterns import ABSENT, PATTERN, Pattern, found_at, pattern_of, places_of
from .states import TEXTS

TEXT: Schema = {"type": "string"}
NAME: Schema = {"type": "string", "minLength": 1}
COUNT: Schema = {"type": "integer", "minimum": 0}


def file_text(text: str | None, at: str) -> str | None:
    """The text that a document holds, None where there is none."""
    if text is None:
        return None
    try:
        found = found_at(json.loads(text), at)
    except (ValueError, RecursionError):
        return text
    return found if isinstance(found, str) else None


def _file(parameters: Parameters, seen: Seen) -> Found:
    name = parameters["document"]
    before, after = seen.document(name)
    at = parameters.get("at", "")
    text = file_text(after, at)
    there = text is not None
    evidence: dict[str, Any] = {"there": there}
    passed = there == parameters.get("exists", True)
    if "sha256" in parameters:
        evidence["sha256"] = digest(text) if text is not None else None
        passed = passed and evidence["sha256"] in parameters["sha256"]
    if "contains" in parameters:
        missing = [part for part in parameters["contains"] if text is None or part not in text]
        evidence["missing"] = clip(missing)
        passed = passed and not missing
    if "unchanged" in parameters:
        evidence["unchanged"] = before is not None and file_text(before, at) == text
        passed = passed and evidence["unchanged"] == parameters["unchanged"]
    return Found(passed, evidence, seen.leans())


def _file_parameters(parameters: Parameters) -> Parameters:
    if parameters.get("exists") is False and len(parameters) > 2:
        raise ValueError("a file that must not exist can hold nothing: leave `exists` or the other words")
    if any(len(one) != 64 or set(one) - set("0123456789abcdef") for one in parameters.get("sha256", ())):
        raise ValueError("a sha256 is 64 hex digits in small letters")
    return parameters


class Process(NamedTuple):
    """A command's result, and what may have changed before it."""

    call: Pattern | None
    result: list[tuple[str, Any]]
    stale: bool
    untouched: tuple[str, ...]
    documents: int | None
    lines: int | None
    at: str


def _process_of(parameters: Parameters) -> Process:
    if not any(name in parameters for name in ("call", "untouched", "documents_at_most", "lines_at_most")):
        raise ValueError("a process names no call and no bound on what may change")
    result = list(parameters.get("result", {}).items())
    call = pattern_of({**parameters["call"], "outcome": "any"}) if "call" in parameters else None
    return Process(call, result, parameters.get("stale", False), tuple(parameters.get("untouched", ())),
                   parameters.get("documents_at_most"), parameters.get("lines_at_most"), parameters.get("at", ""))


def _process(process: Process, seen: Seen) -> Found:
    changed = sorted(seen.episode.difference.get("documents", {}))
    evidence: dict[str, Any] = {}
    passed = True
    if process.call is not None:
        ran = places_of(process.call, seen)
        evidence["ran"] = len(ran)
        evidence["stale"] = bool(ran) and _written_after(ran[-1], seen)
        evidence["result"] = bool(ran) and _came_out(seen.episode.journal[ran[-1]], process.result, seen)
        passed = evidence["result"] and (process.stale or not evidence["stale"])
    touched = [name for name in changed if name.startswith(process.untouched)] if process.untouched else []
    evidence["touched"] = clip(touched)
    passed = passed and not touched and (process.documents is None or len(changed) <= process.documents)
    if process.lines is not None:
        evidence["lines"] = sum(_lines(*seen.document(name), process.at) for name in changed)
        passed = passed and evidence["lines"] <= process.lines
    return Found(passed, evidence, seen.leans())


def _written_after(place: int, seen: Seen) -> bool:
    """Did a call that may write come after: then the result speaks of another world."""
    return any(at > place and row["tool"] in seen.episode.writes and row["tool"] != seen.episode.journal[place]["tool"]
               and not row.get("is_error") for at, row in seen.calls)


def _came_out(row: Row, result: list[tuple[str, Any]], seen: Seen) -> bool:
    answer = seen.answer(row)
    named = all((found := found_at(answer, at)) is not ABSENT and same(found, value) for at, value in result)
    return named and row.get("tier") != "unknown" and (bool(result) or not row.get("is_error"))


def _lines(before: str | None, after: str | None, at: str) -> int:
    """Lines that were taken away or added."""
    old, new = (Counter((file_text(text, at) or "").splitlines()) for text in (before, after))
    return (old - new).total() + (new - old).total()


KINDS: dict[str, Kind] = {
    "file": Kind(
        "The file is there (or is not), its text has one of the hashes, holds the parts, is unchanged (or is not).",
        fields("document", document=NAME, at=TEXT, exists={"type": "boolean"},
               sha256={"type": "array", "items": NAME, "minItems": 1}, contains=TEXTS, unchanged={"type": "boolean"}),
        _file, _file_parameters),
    "process": Kind(
        "The last call of a command came out as `result` says (or well), after the last write unless `stale`; documents that "
        "begin with `untouched` did not change, and no more than so many documents and lines did.",
        fields(call=PATTERN, result={"type": "object"}, stale={"type": "boolean"}, untouched=TEXTS, documents_at_most=COUNT,
               lines_at_most=COUNT, at=TEXT),
        _process, _process_of),
}
