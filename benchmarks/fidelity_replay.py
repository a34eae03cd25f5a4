"""Held-out sessions played in rooms that were built without them.

Two ways: in the room of a session's own task (trials of one task on both sides), and in an open room that is told each real
answer after it was asked for, session by session in the order of the log (tasks or days that the build never saw).
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable
from pathlib import Path

from fidelity_ceiling import Log
from fidelity_data import (
    Built,
    build,
    calls,
    constants,
    effects,
    environments,
    read_logs,
    rooms,
    sample,
    split,
    split_days,
    truth,
)
from fidelity_score import Call, Cassette, Clock, Decision, Tally, share, whole
from fidelity_sessions import sessions

from env_builder.runtime import Environment
from env_builder.runtime.answers import failed, parse

ALTERED = re.compile(r"<<.*>>|^<?Data omitted because", re.DOTALL)
"""What an agent's own wrapper makes of an answer: not the tool's."""


def decision_of(call: Call, content: str, tier: str, cassette: Cassette, log: Log, clocks: tuple[Clock, Clock]) -> Decision:
    """Score one answer beside the cassette's and the ceiling; a clock each for the room and for the cassette."""
    unknown = tier == "unknown"
    return Decision(
        not unknown and clocks[0].same(content, call.content), content == call.content, unknown,
        not unknown and failed(content, parse(content)), cassette.decision(call, clocks[1]), log.tells(call))


def trials(data: Path, scratch: Path, n_sessions: int | None, built: Path | None) -> dict[str, float]:
    """Trials 0 and 1 of each task against the next: every held-out session in a room of its task."""
    source, target = split(data, scratch, "trial")
    made = build(source, scratch / "out") if built is None else Built(built, 0, 0)
    source_labels, labels = truth(source), truth(target)
    places: dict[object, tuple[Environment, str]] = {}
    for environment in environments(made.out):
        for task in environment.tasks:
            for session_id in task.session_ids:
                if session_id in source_labels:
                    places.setdefault(source_labels[session_id]["task_id"], (environment, task.task_id))
    recorded = calls(made.out)
    cassette, log, kinds, service = Cassette(recorded), Log(recorded), effects(data, made.out), recorded[0].service
    chosen, tally = sample(labels, n_sessions), Tally()
    steps_of = {session_id: steps for session_id, steps in sessions(target) if session_id in chosen}
    fixed = constants([*recorded, *(
        Call(service, session_id, step.tool, step.arguments, step.content, False)
        for session_id, steps in steps_of.items() for step in steps if step.tool)])
    for session_id, steps in steps_of.items():
        environment, task_id = places.get(labels[session_id]["task_id"], (None, ""))
        if environment:
            environment.reset(task_id, seed=0)
        clocks, decisions = (Clock(), Clock()), []
        for step in steps:
            if step.tool is None:
                if environment:
                    environment.say(step.content)
                continue
            got = environment.call(step.tool, step.arguments) if environment else None
            call = Call(service, session_id, step.tool, step.arguments, step.content,
                        failed(step.content, parse(step.content)))
            decisions.append(decision_of(
                call, got.content if got else "", got.tier if got else "unknown", cassette, log, clocks))
            tally.add(decisions[-1], _names(call, kinds, fixed))
        if decisions:
            tally.add(whole(decisions), ["session"])
    print(tally.table(), file=sys.stderr)
    count = tally.count("all")
    return {
        **tally.of_all("all", "calls_exact"), **tally.of_all("session", "sessions_exact"),
        "wrong": share(count["wrong"], count["n"]), "unknown": share(count["unknown"], count["n"]),
        "calls_exact_bytes": share(count["bytes"], count["n"]), **tally.of_all("not constant", "calls_exact_not_constant"),
        **tally.of_all("read", "reads_exact"), **tally.of_all("write", "writes_exact"), **tally.of_all("error", "errors_exact"),
        **made.figures()}


def tasks(data: Path, scratch: Path, n_sessions: int | None, built: Path | None) -> dict[str, float]:
    """Three tenths of the task ids held out; each of their sessions in an open room that is told the answers afterwards."""
    source, target = split(data, scratch, "task")
    made = build(source, scratch / "out") if built is None else Built(built, 0, 0)
    labels = truth(target)
    chosen = sample(labels, n_sessions)
    played = [
        Call(labels[session_id]["service"], session_id, step.tool, step.arguments, step.content,
             failed(step.content, parse(step.content)))
        for session_id, steps in sessions(target) if session_id in chosen for step in steps if step.tool is not None]
    tally = live(played, made.out, data)
    count = tally.count("not constant")
    services = sorted({call.service for call in played})
    figures = tally.of_all("not constant", "calls_exact")
    for service in services:
        figures |= tally.of_all(f"{service} read", f"reads_exact_{service}")
        figures |= tally.of_all(f"{service} write", f"writes_exact_{service}")
    return figures | {
        **tally.of_all("write", "writes_exact"), "calls_exact_of_ceiling": share(count["exact"], count["tellable"]),
        "wrong": share(count["wrong"], count["n"]), "unknown": share(count["unknown"], count["n"]),
        "calls_exact_bytes": share(count["bytes"], count["n"]), **tally.of_all("constant", "constants_exact"),
        "n_altered": tally.count("altered")["n"], **made.figures()}


def days(data: Path, scratch: Path, n_calls: int | None, built: Path | None, n_last: int = 2) -> dict[str, float]:
    """Built from all days but the last; then these, request by request, each answer told after it was asked for."""
    made = build(split_days(data, scratch, n_last), scratch / "out") if built is None else Built(built, 0, 0)
    everything = calls(read_logs(data, scratch / "everything"))
    first = max(call.at or "" for call in calls(made.out))
    played = [call for call in everything if (call.at or "") > first][:n_calls]
    tally = live(played, made.out, data)
    return {**tally.answered("all"), **tally.answered("read", "_reads"), **tally.answered("write", "_writes"),
            **tally.of_answered("error", "errors_exact_of_answered"), **made.figures()}


def live(played: Iterable[Call], out: Path, data: Path) -> Tally:
    """Ask each call in order in an open room, score its answer, then tell the room the real one.

    Answers that a wrapper of the agent altered are neither scored nor told.
    """
    played, recorded = list(played), calls(out)
    altered = [call for call in (*played, *recorded) if ALTERED.search(call.content)]
    recorded = [call for call in recorded if not ALTERED.search(call.content)]
    places, cassette, log, kinds = rooms(out), Cassette(recorded), Log(recorded), effects(data, out)
    fixed, tally = constants([*recorded, *(call for call in played if not ALTERED.search(call.content))]), Tally()
    last: dict[str, str] = {}
    clocks = (Clock(), Clock())
    for call in played:
        environment = places.get(call.service)
        if last.get(call.service) != call.session_id:
            clocks = (Clock(), Clock())
            if environment:
                environment.reset(None, at=call.at)
            last[call.service] = call.session_id
        got = environment.call(call.tool, call.arguments) if environment else None
        decision = decision_of(call, got.content if got else "", got.tier if got else "unknown", cassette, log, clocks)
        if ALTERED.search(call.content):
            tally.add(decision, ["altered"])
            continue
        tally.add(decision, _names(call, kinds, fixed))
        if kinds.get((call.service, call.tool)) == "write" and not call.is_error:
            tally.add(decision, write_names(call, got.tier if got else "unknown"))
        if environment:
            environment.learn(call.tool, call.arguments, call.content)
        cassette.add(call)
        log.add(call)
    print(tally.table(), f"{len(altered)} answers were altered by a wrapper", sep="\n", file=sys.stderr)
    return tally


def write_names(call: Call, tier: str) -> list[str]:
    """Under what to count a write that works: its tool's writes, and those that a program answered, not a recording."""
    tool = f"{call.service} {call.tool}"
    return [f"write of {tool}", *([f"program of {tool}"] if tier not in ("unknown", "recorded") else [])]


def _names(call: Call, kinds: dict[tuple[str, str], str], fixed: set[tuple[str, str]]) -> list[str]:
    tool = (call.service, call.tool)
    names = ["all", f"tool {call.service} {call.tool}"]
    if tool in fixed:
        return [*names, "constant"]
    kind = kinds.get(tool, "other")
    return [*names, "not constant", kind, f"{call.service} {kind}", *(["error"] if call.is_error else [])]
