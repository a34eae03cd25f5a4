"""Checks of the end state and of what was produced: `state`, `untouched`, `must_not_write`, `file`, `process`.

See what the episode changed, as the grader's own replay reached it, and results that the environment gave to calls (commands,
tests, linters), never what the agent claims of them. Files are documents that are named as files are (`class/path`): a file's
text is its document where that is a JSON text, else what stands at the pointer `at` in it. Do not see: in which order things
changed, what free text says, why a command failed, and files outside of the world.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable
from contextlib import suppress
from typing import Any, NamedTuple

from ..canonical import UNWRITABLE, canonical, digest
from ..ends import EndState, beyond, end_state, same, unreached
from ..joints import names_together
from ..relevance import leaves
from ..schemas import fields, mapping
from .kind import CheckKind, CheckResult, EpisodeView, IgnoredParts, Parameters, Row, Schema, clip
from .patterns import ABSENT, PATTERN, found_at, pattern_of, places_of

TEXTS: Schema = {"type": "array", "items": {"type": "string"}}
LOOSE: dict[str, Schema] = {
    "ignored_arguments": {**mapping(TEXTS), "description": "tool -> names of arguments that are free text and do not count"},
    "ignored_fields": {
        **mapping({"type": "array", "items": {"type": "array", "items": {"type": ["string", "null"]}}}),
        "description": "class -> paths in its documents that hold free text (names; null: every element of a list)"},
    "ignored_tools": {**TEXTS, "description": "tools whose write calls do not count: notes and hand-overs"},
}
PAIRS: Schema = {"type": "array", "items": {**TEXTS, "minItems": 2, "maxItems": 2}}
DIFFERENCE = fields(
    "documents", "write_calls", documents=mapping({"type": ["string", "null"]}), write_calls=PAIRS, made=PAIRS,
    volatile={"type": "object"})
ACCEPTED: Schema = {"type": "array", "items": DIFFERENCE, "description": "differences, each an end state that is right"}


class AcceptedEnds(NamedTuple):
    """Accepted end states."""

    loose: IgnoredParts
    accepted: list[EndState]
    sizes: list[int]
    """Of each, how many documents and write calls it has, at least 1."""


def _attempted(loose: IgnoredParts, rows: Iterable[Row]) -> EndState:
    """Return calls as write calls of an end state, without those whose arguments cannot be written."""
    keys = [(row["tool"], _written(row)) for row in rows]
    return end_state({"write_calls": [[tool, key] for tool, key in keys if key is not None]}, loose.parameters)


def _written(row: Row) -> str | None:
    try:
        return canonical(row["arguments"])
    except UNWRITABLE:
        return None


def _sure_attempts(view: EpisodeView) -> list[Row]:
    """Return the attempts to write, without those of tools that seem to read."""
    return [row for row in view.episode.attempts if row["tool"] not in view.episode.presumed_reads]


def _sure(changes: Iterable[list[str]], view: EpisodeView) -> list[list[str]]:
    """Return changes without the calls of tools that seem to read: nobody knows whether these changed anything."""
    return [change for change in changes if change[0] != "act" or change[1] not in view.episode.presumed_reads]


def _attempts_beyond(ends: AcceptedEnds, view: EpisodeView) -> list[list[str]]:
    """Return attempts to write, on entities that exist, what no accepted end has and that name none of its documents.

    A call that differs from an accepted one in texts of several words alone does not count: which words are right is unknown.
    Nor does one with such a text while an entity that every accepted end makes is missing: it may have made it, in other words.
    """
    is_open = all(any(view.document(name)[1] is None for name in documents) for documents, _ in ends.accepted)
    allowed = {(tool, _wordless(arguments)) for _, acts in ends.accepted for tool, arguments in acts}
    keys = {name.partition("/")[2] for documents, _ in ends.accepted for name in documents}
    writable = [row for row in _sure_attempts(view) if _written(row) is not None]
    named = [set(map(str, leaves(row["arguments"]))) for row in writable]
    rows = [row for row, words in zip(writable, named, strict=True) if not any(names_together(key, words) for key in keys)
            and not (is_open and _wordless(canonical(row["arguments"])) != canonical(row["arguments"]))]
    return [["act", *act] for act in _attempted(ends.loose, rows)[1] if (act[0], _wordless(act[1])) not in allowed]


def _wordless(arguments: str) -> str:
    """Return canonical arguments without texts of several words; where each word has a digit it is a number in groups."""
    given = json.loads(arguments)
    return canonical({name: value for name, value in given.items() if not isinstance(value, str) or len(value.split()) < 2
                      or all(any(map(str.isdigit, word)) for word in value.split())})


def _surely_missing(missing: list[list[str]], loose: IgnoredParts, view: EpisodeView) -> bool:
    """Is something not there, whatever the unknown answers were: a document that no such call can touch, another call?

    A document that the episode changed before and that such a call names is none of these: what was changed once can be again.
    """
    unwritten = {row["tool"] for row in view.unknown_writes if _written(row) is None}
    attempts = {(tool, _wordless(arguments)) for tool, arguments in _attempted(loose, view.unknown_writes)[1]}
    again = set(view.episode.difference.get("documents", ()))
    with suppress(RecursionError):  # where a call is too deep to be read, it may name all that was changed
        named = "\n".join(json.dumps(row["arguments"], ensure_ascii=False) for row in view.unknown_writes)
        again = {name for name in again if name.partition("/")[2] in named}
    look = view.episode.look
    return any(
        look is not None and look(item[1])[1] is not None and item[1] not in again
        if item[0] == "document" else item[1] not in unwritten and (item[1], _wordless(item[2])) not in attempts
        for item in missing)


def too_many_calls(ends: AcceptedEnds, reached: EndState) -> bool:
    """Write calls only ever add up: one too many stays one too many, whatever the unknown answers were."""
    return all(unreached(({}, reached[1]), ({}, wanted[1])) for wanted in ends.accepted)


def _calls_stay(view: EpisodeView) -> bool:
    """Documents may be set right again; write calls only ever add up, unless what they name may yet go by another name."""
    difference = view.episode.difference
    return not (view.unknown_writes or difference.get("made") or difference.get("volatile"))


def _settled(ends: AcceptedEnds, view: EpisodeView) -> tuple[EndState, EpisodeView]:
    """Return the end with the unknown calls that equal accepted ones but for ignored arguments, and the view without these.

    The log has such a call as done, with other words. Where the episode did the same act with other words again, what it names
    is not as the log had it any more, and the call stays unknown.
    """
    reached = view.end(ends.loose)
    if not view.unknown_writes:
        return reached, view
    accepted = {act for _, acts in ends.accepted for act in acts}
    acts, undecided = dict(reached[1]), []
    for row in view.unknown_writes:
        own = [act for act in _attempted(ends.loose, [row])[1]
               if act in accepted and not _reworded(act, row, ends, view)]
        for act in own:
            acts[act] = acts.get(act, 0) + 1
        undecided += [] if own else [row]
    return (reached[0], acts), view.without_unknown(undecided)


def _reworded(act: tuple[str, str], row: Row, ends: AcceptedEnds, view: EpisodeView) -> bool:
    """Return whether another call of the episode did the same act, but for ignored arguments in which it differs from `row`."""
    return any(call["tool"] == row["tool"] and not call.get("is_error") and not same(call.get("arguments"), row["arguments"])
               and act in _attempted(ends.loose, [call])[1] for _, call in view.calls)


def _leans(loose: IgnoredParts, view: EpisodeView) -> bool:
    return bool(view.unknown_writes) and view.leans(loose.parameters.get("ignored_tools", ()))


class AcceptedEndsCheck(CheckKind):
    """Check of the end state against accepted ones."""

    parameters = fields("accepted", accepted=ACCEPTED, **LOOSE)

    def prepare(self, parameters: Parameters) -> AcceptedEnds:
        loose = IgnoredParts.of(parameters)
        accepted = [end_state(wanted, loose.parameters) for wanted in parameters["accepted"]]
        return AcceptedEnds(loose, accepted, [len(documents) + len(acts) or 1 for documents, acts in accepted])


class StateCheck(AcceptedEndsCheck):
    """Check that the end state is one of the accepted ones."""

    description = "Every document and write call of one accepted end state is there, in whatever order."
    stops = "end"

    def judge(self, ends: AcceptedEnds, view: EpisodeView) -> CheckResult:
        end, view = _settled(ends, view)
        if len(ends.accepted) == 1 and not view.unknown_writes:
            missing = unreached(ends.accepted[0], end)
            return CheckResult(not missing, {"reached": [] if missing else [0], "missing": clip(missing)}, False,
                               1 - len(missing) / ends.sizes[0])
        lefts = [unreached(wanted, end) for wanted in ends.accepted]
        reached = [index for index, missing in enumerate(lefts) if not missing]
        share = max((1 - len(missing) / size for missing, size in zip(lefts, ends.sizes, strict=True)), default=0.0)
        doubtful = _leans(ends.loose, view) and not all(
            _surely_missing(missing, ends.loose, view) for missing in lefts)
        evidence = {"reached": reached, "missing": clip(min(lefts, key=len, default=[]))}
        return CheckResult(bool(reached), evidence, doubtful, share)


class UntouchedCheck(AcceptedEndsCheck):
    """Check that nothing but the named entities changed."""

    description = ("Nothing changed beyond the accepted end state that was reached (beyond every one where none was).")

    def judge(self, ends: AcceptedEnds, view: EpisodeView) -> CheckResult:
        """Leave the values of documents that an end state names to the check `state`."""
        (reached, view), accepted = _settled(ends, view), ends.accepted
        if len(accepted) == 1 and not view.unknown_writes:
            more = beyond(reached, accepted[0])
            return CheckResult(not more, {"beyond": clip(more)}, bool(more) and not _sure(more, view))
        if len(accepted) > 1:
            accepted = [wanted for wanted in accepted if not unreached(wanted, reached)] or accepted
        attempts = _attempts_beyond(ends, view) if _sure_attempts(view) else []
        if attempts:
            return CheckResult(False, {"beyond": clip(attempts)})
        least = [beyond(reached, wanted) for wanted in accepted]
        passed = not all(least)
        doubtful = (_leans(ends.loose, view) and (passed or not too_many_calls(ends, reached))) or (
            not passed and not all(_sure(more, view) for more in least))
        return CheckResult(passed, {"beyond": clip(min(least, key=len) if least else [])}, doubtful)

    def is_lost(self, ends: AcceptedEnds, view: EpisodeView) -> bool:
        return _calls_stay(view) and self.fails(ends, view) and too_many_calls(ends, view.end(ends.loose))


class MustNotWriteCheck(CheckKind):
    """Check that nothing changed."""

    description = "Nothing changed."
    parameters = fields(**LOOSE)
    stops = "end"
    demands_no_change = True

    def prepare(self, parameters: Parameters) -> IgnoredParts:
        return IgnoredParts.of(parameters)

    def judge(self, loose: IgnoredParts, view: EpisodeView) -> CheckResult:
        reached = view.end(loose)
        changed = unreached(reached, ({}, {}))
        if attempts := [["act", *act] for act in _attempted(loose, _sure_attempts(view))[1]]:
            return CheckResult(False, {"changed": clip(attempts)})
        sure = _sure(changed, view)
        doubtful = (bool(changed) and not sure) or (_leans(loose, view) and all(change[0] != "act" for change in sure))
        return CheckResult(not changed, {"changed": clip(changed)}, doubtful)

    def is_lost(self, loose: IgnoredParts, view: EpisodeView) -> bool:
        return _calls_stay(view) and self.fails(loose, view) and bool(view.end(loose)[1])


TEXT: Schema = {"type": "string"}
NAME: Schema = {"type": "string", "minLength": 1}
COUNT: Schema = {"type": "integer", "minimum": 0}


def file_text(text: str | None, at: str) -> str | None:
    """Return the text that a document holds, None where there is none."""
    if text is None:
        return None
    try:
        text_at = found_at(json.loads(text), at)
    except (ValueError, RecursionError):
        return text
    return text_at if isinstance(text_at, str) else None


def _written_after(place: int, view: EpisodeView) -> bool:
    """Did a call that may write come after: then the result speaks of another world."""
    return any(at > place and row["tool"] in view.episode.writes and row["tool"] != view.episode.journal[place]["tool"]
               and not row.get("is_error") for at, row in view.calls)


def _came_out(row: Row, result: dict[str, Any], view: EpisodeView) -> bool:
    answer = view.answer(row)
    named = all((value_at := found_at(answer, at)) is not ABSENT and same(value_at, value) for at, value in result.items())
    return named and row.get("tier") != "unknown" and (bool(result) or not row.get("is_error"))


def _lines(before: str | None, after: str | None, at: str) -> int:
    """Lines that were taken away or added."""
    old, new = (Counter((file_text(text, at) or "").splitlines()) for text in (before, after))
    return (old - new).total() + (new - old).total()


class FileCheck(CheckKind):
    """Check the content of a file that the episode produced."""

    description = "The file is there (or is not), its text has one of the hashes, holds the parts, is unchanged (or is not)."
    parameters = fields(
        "document", document=NAME, at=TEXT, exists={"type": "boolean"},
        sha256={"type": "array", "items": NAME, "minItems": 1}, contains=TEXTS, unchanged={"type": "boolean"})

    def prepare(self, parameters: Parameters) -> Parameters:
        if parameters.get("exists") is False and len(parameters) > 2:
            raise ValueError("a file that must not exist can hold nothing: leave `exists` or the other words")
        if any(len(one) != 64 or set(one) - set("0123456789abcdef") for one in parameters.get("sha256", ())):
            raise ValueError("a sha256 is 64 hex digits in small letters")
        return parameters

    def judge(self, parameters: Parameters, view: EpisodeView) -> CheckResult:
        name = parameters["document"]
        before, after = view.document(name)
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
        return CheckResult(passed, evidence, view.leans())


class ProcessCheck(CheckKind):
    """Check by a program of the grader's own."""

    description = (
        "The last call of a command came out as `result` says (or well), after the last write unless `stale`; documents that "
        "begin with `untouched` did not change, and no more than so many documents and lines did.")
    parameters = fields(
        call=PATTERN, result={"type": "object"}, stale={"type": "boolean"}, untouched=TEXTS, documents_at_most=COUNT,
        lines_at_most=COUNT, at=TEXT)
    stops = "path"

    def prepare(self, parameters: Parameters) -> Parameters:
        if not any(name in parameters for name in ("call", "untouched", "documents_at_most", "lines_at_most")):
            raise ValueError("a process names no call and no bound on what may change")
        call = {"call": pattern_of({**parameters["call"], "outcome": "any"})} if "call" in parameters else {}
        return parameters | call

    def judge(self, parameters: Parameters, view: EpisodeView) -> CheckResult:
        changed = sorted(view.episode.difference.get("documents", {}))
        evidence: dict[str, Any] = {}
        passed = True
        if "call" in parameters:
            ran = places_of(parameters["call"], view)
            evidence["ran"] = len(ran)
            evidence["stale"] = bool(ran) and _written_after(ran[-1], view)
            evidence["result"] = bool(ran) and _came_out(
                view.episode.journal[ran[-1]], parameters.get("result", {}), view)
            passed = evidence["result"] and (parameters.get("stale", False) or not evidence["stale"])
        touched = [name for name in changed if name.startswith(tuple(parameters.get("untouched", ())))]
        evidence["touched"] = clip(touched)
        passed = passed and not touched and len(changed) <= parameters.get("documents_at_most", len(changed))
        if "lines_at_most" in parameters:
            evidence["lines"] = sum(_lines(*view.document(name), parameters.get("at", "")) for name in changed)
            passed = passed and evidence["lines"] <= parameters["lines_at_most"]
        return CheckResult(passed, evidence, view.leans())
