"""Call sequences that nobody made, answered by the real tools, played in the rooms of the sessions that they start from."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

from fidelity_ceiling import Log
from fidelity_data import Built, build, calls, constants, effects, environments, read_logs, rows, sample, truth
from fidelity_replay import decision_of, write_names
from fidelity_score import Call, Cassette, Clock, Tally, share, whole
from fidelity_variants import before_each, few_examples

from env_builder.runtime import Environment
from env_builder.runtime.answers import failed, parse

FEW = 20


class Place(NamedTuple):
    """Where a session's probes are played: a room and its task, or an instant of the open room."""

    environment: Environment
    task_id: str | None
    at: str | None = None

    def begin(self) -> None:
        """Begin an episode there."""
        self.environment.reset(self.task_id, seed=0, at=self.at)


class Scale(NamedTuple):
    """What answers are held against."""

    service: str
    cassette: Cassette
    log: Log
    kinds: dict[tuple[str, str], str]
    fixed: set[tuple[str, str]]
    starts: dict[str, str]
    """ISO instant at which each probed session began."""


def probes(data: Path, scratch: Path, n_sessions: int | None, built: Path | None, changes: bool, n_examples: int | None
           ) -> dict[str, float]:
    """All probes in rooms that were built from the logs, with or without row changes."""
    made = build(data, scratch / "out", *([] if changes else ["--exclude", "cdc"])) if built is None else Built(built, 0, 0)
    by_session = _probes(data, n_sessions)
    scale = _scale(data, calls(made.out), made.out)
    if changes:
        for row in _row_changes(data):
            scale.log.row(*row)
    out = made.out if n_examples is None else few_examples(made.out, scratch / "cut", n_examples)
    tally = Tally()
    _play(by_session, _places(out, by_session), scale, tally)
    print(tally.table(), file=sys.stderr)
    figures = _figures(tally) | made.figures()
    if n_examples is None:
        few = Tally()
        _play(by_session, _places(few_examples(made.out, scratch / "few", FEW), by_session), scale, few)
        figures |= few.of_answered("write that works", f"writes_exact_{FEW}") | few.of_answered("hidden", f"hidden_exact_{FEW}")
        figures |= few.answered("all", f"_{FEW}")
    return figures


def play_all(data: Path, out: Path, n_sessions: int | None, name: str = "probes.jsonl") -> Tally:
    """Play all probes of that file of the truth in rooms that were built from the logs."""
    by_session, tally = _probes(data, n_sessions, name), Tally()
    _play(by_session, _places(out, by_session), _scale(data, calls(out), out), tally)
    return tally


def own_out(data: Path, scratch: Path, n_sessions: int | None) -> dict[str, float]:
    """Each session's probes in an open room that is built from what was logged before the session began.

    The logs are read once; for each session, the latest first, later events are taken away and the stages from sessions to
    behaviours are carried out anew.
    """
    out = read_logs(data, scratch / "out", ("cdc",))
    by_session = _probes(data, n_sessions)
    recorded = calls(out)
    scale = _scale(data, recorded, out)
    tally = Tally()
    for session_id, room in before_each(out, scratch / "before", {name: scale.starts[name] for name in by_session}):
        start = scale.starts[session_id]
        log = Log(call for call in recorded if (call.at or "") < start)
        places = {session_id: Place(room, None, start)} if room else {}
        _play({session_id: by_session[session_id]}, places, scale._replace(log=log), tally)
    print(tally.table(), file=sys.stderr)
    return {**tally.answered("all", "_own_out"), **tally.of_answered("write that works", "writes_exact_of_answered_own_out"),
            **tally.of_answered("state", "state_exact_own_out"), "n_sessions_own_out": len(by_session)}


def _probes(data: Path, n_sessions: int | None, name: str = "probes.jsonl") -> dict[str, list[dict[str, Any]]]:
    by_session: dict[str, list[dict[str, Any]]] = {}
    for probe in rows(data / "truth" / name):
        by_session.setdefault(probe["session_id"], []).append(probe)
    chosen = sample(by_session, n_sessions)
    return {session_id: own for session_id, own in by_session.items() if session_id in chosen}


def _scale(data: Path, recorded: list[Call], out: Path) -> Scale:
    labels = truth(data)
    starts = {session_id: row["start"] for session_id, row in labels.items() if "start" in row}
    return Scale(Counter(call.service for call in recorded).most_common(1)[0][0], Cassette(recorded), Log(recorded),
                 effects(data, out, labels.values()), constants(recorded), starts)


def _row_changes(data: Path) -> Iterable[tuple[str, Any]]:
    """(key, row) of all row changes."""
    for path in sorted((data / "cdc").iterdir()):
        for change in rows(path):
            payload = change.get("payload", change)
            for row in (payload.get("before"), payload.get("after")):
                if row:
                    key = change.get("key") or payload.get("key")
                    yield str(next(iter(key.values())) if isinstance(key, dict) and key else key), row


def _places(out: Path, by_session: dict[str, Any]) -> dict[str, Place]:
    """Return the room and task that each session begins together with."""
    places: dict[str, Place] = {}
    for environment in environments(out):
        for task in environment.tasks:
            for session_id in task.session_ids:
                if session_id in by_session:
                    places.setdefault(session_id, Place(environment, task.task_id))
    return places


def _play(by_session: dict[str, list[dict[str, Any]]], places: dict[str, Place], scale: Scale, tally: Tally) -> None:
    for session_id, own in by_session.items():
        for probe in own:
            place = places.get(session_id)
            if place:
                place.begin()
            _play_probe(probe, place, scale, tally)


def _play_probe(probe: dict[str, Any], place: Place | None, scale: Scale, tally: Tally) -> None:
    clocks, past = (Clock(), Clock()), Past(scale)
    decisions = []
    for step in probe["steps"]:
        got = place.environment.call(step["tool"], step["arguments"]) if place else None
        content = step["result"]
        call = Call(scale.service, probe["session_id"], step["tool"], step["arguments"], content,
                    failed(content, parse(content)), scale.starts.get(probe["session_id"]))
        decision = decision_of(
            call, got.content if got else "", got.tier if got else "unknown", scale.cassette, scale.log, clocks)
        names = [*past.names(call), "all", f"kind {probe['kind']}", f"tool {call.tool}"]
        if "write that works" in names:
            names += write_names(call, got.tier if got else "unknown")
        if call.is_error and not decision.unknown and not decision.is_error and "error on record" not in names:
            names.append("error as success")
        tally.add(decision, names)
        past.add(call)
        decisions.append(decision)
    tally.add(whole(decisions), ["sequence"])


class Past:
    """What came before in a probe, as the real tools answered: it says what kind of question a call is."""

    def __init__(self, scale: Scale) -> None:
        self._scale = scale
        self._calls: list[Call] = []

    def add(self, call: Call) -> None:
        """Note a call."""
        self._calls.append(call)

    def names(self, call: Call) -> list[str]:
        """Under what to count the call."""
        tool = (call.service, call.tool)
        writes = self._scale.kinds.get(tool) == "write"
        if call.is_error:
            on_record = (*tool, call.content) in self._scale.log.errors
            return ["error", "error on record" if on_record else "error not on record"]
        if writes:
            return ["write that works", f"fields changed {self._changed(call)}"]
        return [*(["constant"] if tool in self._scale.fixed else ["read"]), *self._after(call)]

    def _after(self, call: Call) -> list[str]:
        """`state`: a write that worked came before; `hidden`: it changed this answer, and its own did not show it."""
        worked = [n for n, each in enumerate(self._calls)
                  if not each.is_error and self._scale.kinds.get((each.service, each.tool)) == "write"]
        if not worked:
            return []
        earlier = [each for each in self._calls[:worked[-1]] if (each.tool, each.key) == (call.tool, call.key)]
        shown = {self._calls[n].content for n in worked}
        changed = bool(earlier) and earlier[-1].content != call.content
        return ["state", *(["hidden"] if changed and call.content not in shown else [])]

    def _changed(self, call: Call) -> str:
        """How many fields of the thing the write changed, by what was last seen of it."""
        after = parse(call.content)
        named = {str(value) for value in call.arguments.values() if isinstance(value, str | int)}
        for each in reversed(self._calls):
            before = parse(each.content)
            if (isinstance(after, dict) and isinstance(before, dict) and before.keys() & after.keys() > set()
                    and 2 * len(before.keys() & after.keys()) > len(before.keys() | after.keys())
                    and named & {str(value) for value in each.arguments.values() if isinstance(value, str | int)}):
                return str(sum(before.get(name) != after.get(name) for name in {*before, *after}))
        return "?"


def _figures(tally: Tally) -> dict[str, float]:
    errors, other = tally.count("error on record"), tally.count("error not on record")
    return {
        **tally.answered("all"), **tally.of_answered("write that works", "writes_exact_of_answered"),
        "writes_answered": tally.answered("write that works")["answered"],
        **tally.of_answered("state", "state_exact"), **tally.of_answered("hidden", "hidden_exact"),
        "hidden_answered": tally.answered("hidden")["answered"],
        "errors_exact": share(errors["exact"], errors["n"]), "n_errors_exact": errors["n"],
        "cassette_errors_exact": share(errors["cassette_exact"], errors["n"]),
        "errors_as_success": tally.count("error as success")["n"], "n_errors_other": other["n"],
        **tally.of_all("sequence", "sequences_exact")}
