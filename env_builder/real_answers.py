"""Answers of real tools that people accepted, as answers on record of the session that they belong to.

In: a service's rows, its tasks, and sequences of calls with the real answers, each from the state in which a session began.
Out: the rows with an answer on record for what the environment does not know, each for that session alone and after just the
write calls before it; decisions on the others. What a read shows after a write call never was so, and is not taken. Neither
facts nor programs follow from such a call: it was made on a copy of the state, so it is no part of what happened. Detects a
write call that worked, of which nothing shows what it changed, and an earlier call of a sequence that the environment answers
otherwise: neither is what comes after it taken. Does not see: whether the real tool was in the state in which the session
began; a person said so.
"""

from __future__ import annotations

import json
from typing import Any, NamedTuple

import orjson
import polars as pl

from env_builder.rooms import Rows
from env_builder.runtime.answers import parse
from env_builder.runtime.canonical import canonical
from env_builder.runtime.episode import EpisodeState
from env_builder.runtime.joints import joined
from env_builder.runtime.notations import read_in
from env_builder.runtime.programs import Ready, shown_by
from env_builder.runtime.relevance import names
from env_builder.runtime.tool_parts import ToolParts
from env_builder.runtime.world import View, World
from warehouse.records import Decision, frame

STAGE = "environments"
Row = dict[str, Any]


class _Taken(NamedTuple):
    """What became of one sequence."""

    rows: list[Row]
    kept: bool
    reason: str
    detail: str


def with_answers(rows: Rows, tasks: pl.DataFrame, answers: pl.DataFrame) -> tuple[Rows, pl.DataFrame]:
    """Return the rows with the answers, and decisions on the sequences. `tasks`: of `mart.tasks`; `answers`: events of kind
    `answer` of the service, rows of `core.events`, where `call_id` names the sequence. Of several
    decisions on the same calls the latest counts."""
    if answers.is_empty():
        return rows, frame(Decision, [])
    programs = {row["tool"]: row for row in rows.programs}
    state = EpisodeState(World(rows.facts, rows.recorded), programs, View(None, frozenset()))
    starts = {session_id: instant for sessions, instant in tasks.select("session_ids", _instant()).iter_rows()
              for session_id in sessions}
    recorded, decisions = dict[str, Row](), []
    tools, parts = {tool: Ready(row) for tool, row in programs.items()}, ToolParts(programs)
    for calls in _latest(answers):
        first = calls[0]
        calls = [{**call, "tool": parts.named(call["tool"], orjson.loads(call["arguments"]))} for call in calls]
        named = [{**call, "arguments": joined(orjson.loads(call["arguments"]), programs.get(call["tool"], {}).get("joint", ()))}
                 for call in calls]
        is_accepted = _decision(first)["accepted"]
        taken = _taken(state, first["session_id"], starts, named, tools) if is_accepted else _Taken(
            [], False, "answer_declined", f"{first['name']} declined what was answered for session {first['session_id']}.")
        recorded |= {canonical([row[name] for name in ("tool", "arguments", "after", "session")]): row for row in taken.rows}
        decisions.append(Decision(stage=STAGE, subject=first["call_id"], kept=taken.kept, reason=taken.reason,
                                  detail=taken.detail, file_id=first["file_id"]))
    return rows._replace(recorded=sorted([*rows.recorded, *recorded.values()], key=_place)), frame(Decision, decisions)


def _latest(answers: pl.DataFrame) -> list[list[Row]]:
    """Return the calls of the latest decision on each sequence, in order of session and calls."""
    by_calls: dict[str, list[Row]] = {}
    ordered = answers.sort("happened_at", "call_id", "position", nulls_last=False)
    for _, own in ordered.group_by("happened_at", "call_id", maintain_order=True):
        calls = own.to_dicts()
        by_calls[canonical([calls[0]["session_id"], [[call["tool"], call["arguments"]] for call in calls]])] = calls
    return [by_calls[name] for name in sorted(by_calls)]


def _taken(
    empty: EpisodeState, session_id: str, starts: dict[str, str | None], calls: list[Row], tools: dict[str, Ready]
) -> _Taken:
    """Make the calls in the environment, and take each answer that it does not know."""
    if session_id not in starts:
        return _Taken([], False, "no_task_of_session", f"No task begins together with session {session_id}; no action needed.")
    state = empty.fork(View(starts[session_id], frozenset((session_id,))))
    rows: list[Row] = []
    n_unknown = 0
    looks = [call for call in calls if _decision(call).get("look")]
    made = calls[:len(calls) - len(looks)]
    for call in made:
        before, may_write = state.fork(), state.may_write(call["tool"])
        after = state.after(call["tool"], call["arguments"])
        result = state.call(call["tool"], call["arguments"])
        if result.tier != "unknown" and (result.content, result.is_error) != (call["content"], call["is_error"]):
            return _Taken(rows, bool(rows), "answered_otherwise", (
                f"Session {session_id}: the environment answers {call['tool']} otherwise than the real tool did; what comes "
                "after it is not taken. Ask the real tool in the state in which the session began."))
        worked = may_write and not call["is_error"] and tools[call["tool"]].get("presumed") != "read"
        of_call = looks if call is made[-1] else []   # they show what all calls before them left
        effects = _changes(before, tools, call, of_call) if result.tier == "unknown" and worked else []
        if effects is None:
            return _Taken(rows, bool(rows), "answer_changes_unseen", (
                f"Session {session_id}: the real {call['tool']} worked, and nothing shows what it changed; this and what comes "
                "after it is not taken."))
        if result.tier == "unknown":
            state.learn(call["tool"], call["arguments"], call["content"])
            n_unknown += 1
            if after == [] or (after and may_write):
                rows.append(_row(call, session_id, after, effects))
    if not n_unknown:
        detail = f"Session {session_id}: the environment answers these calls; no action needed."
        return _Taken(rows, False, "answer_known", detail)
    if not rows:
        detail = f"Session {session_id}: what a read shows after a write call on a copy never was so; no action needed."
        return _Taken(rows, False, "answer_of_no_real_state", detail)
    return _Taken(rows, True, "answer_taken", f"Session {session_id}: what the real tool answered is on record for it.")


def _changes(state: EpisodeState, tools: dict[str, Ready], call: Row, looks: list[Row]) -> list[Row] | None:
    """Return the documents that the looks after a call show, changed or not: the program would guess. None where a read that
    shows documents, and that the tool is not known to leave alone, was not made again, or not of all that the call names; or
    where none of them changed: what the call changed is elsewhere. `state`: before the call."""
    relation = tools[call["tool"]].get("relation", {})
    shown = dict(document for look in looks if not look["is_error"] and look["tool"] in tools
                 for document in _shown(tools[look["tool"]], look, state.view.instant))
    of_looks = {kind for kind, _ in shown}
    for tool, program in tools.items():
        kinds = {rule["class"] for rule in program["rules"] if rule["rule"] == "document"}
        if relation.get(tool) == "keeps":
            continue
        every = {(kind, name) for kind in kinds for name in names(call["arguments"])}
        there = {name for name in every if state.document(name) is not None}
        if not kinds <= of_looks or not there <= shown.keys():
            return None
    before = {name: state.document(name) for name in shown}
    if all(text is None or parse(text) == parse(shown[name]) for name, text in before.items()):
        return None
    return [{"class": kind, "key": key, "value": text} for (kind, key), text in sorted(shown.items())]


def _shown(program: Ready, look: Row, instant: str | None) -> tuple[tuple[tuple[str, str], str], ...]:
    """Return the documents that a look shows, as the environment keeps them."""
    program = program.at(instant) if program.has_versions else program
    content = read_in(look["content"], program["notations"], instant) if program.has_notations else look["content"]
    return shown_by(program, look["arguments"], content)


def _decision(call: Row) -> Row:
    decision: Row = orjson.loads(call["value"])
    return decision


def _row(call: Row, session_id: str, after: list[list[str]], effects: list[Row]) -> Row:
    """Return a row of recorded.jsonl."""
    return {"tool": call["tool"], "arguments": canonical(call["arguments"]), "content": call["content"],
            "is_error": call["is_error"], "from": None, "to": None, "session": session_id, "after": after, "effects": effects,
            "event": call["event_id"]}


def _place(row: Row) -> tuple[Any, ...]:
    """Return where a row stands in the file: nulls last, as `rooms_of` sorts."""
    nullable = [(value is None, value or "") for value in (row["session"], row["from"], row["event"])]
    return row["tool"], row["arguments"], json.dumps(row["after"]), *nullable


def _instant() -> pl.Expr:
    return pl.col("starts_at").dt.strftime("%Y-%m-%dT%H:%M:%S%.6fZ")
