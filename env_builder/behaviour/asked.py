"""Programs that a language model writes in our language, for tools that induction leaves without one.

In: behaviours, the world, and `ask`: a prompt in, text out. Out: behaviours with the programs that hold, and a verdict a tool
that was asked about. The model sees the language, the tool's schema and calls of one half of the sessions; it writes rules
without guards. They are taken where they give every call of the other half that they answer exactly as logged, and answer at
least half of those that worked; the guards are learnt from the log, as for induced rules, and no logged failure may look to
them like a call that works. Sees: what a rule gives for logged calls. Does not see: whether it is right where nobody called.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, NamedTuple

import polars as pl
from pydantic import ValidationError

from env_builder.behaviour import guards, row_tables, templates
from env_builder.behaviour.examples import Example
from env_builder.behaviour.programs import Draft, draft, language
from env_builder.behaviour.trials import Malformed, Seen, Trial, seen, tried
from env_builder.runtime.canonical import canonical, digest
from env_builder.runtime.tables import Table
from env_builder.world import Service, World
from warehouse.errors import Unavailable
from warehouse.records import Behaviour, Verdict, frame

MINIMUM_QUESTIONS = 4
"""Different questions that worked in each half: fewer neither show what a tool does nor test it."""
N_SHOWN = 16
N_FAILED = 4
LONGEST = 3000
"""Signs of each answer and thing that are shown."""
SILENT = ("recorded", "refuse", "validate", "rows", "shows", "makes")
"""Rules that leave a tool without a program."""
Rules = list[dict[str, Any]]


class Judged(NamedTuple):
    """What became of a model's reply."""

    rules: Rules | None
    """The rules with their guards; None: not taken."""
    held_out: Trial
    reason: str
    detail: str


def written(
    behaviours: pl.DataFrame, world: World, tools: pl.DataFrame, ask: Callable[[str], str], model: str
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """(behaviours with the programs that hold, verdicts). Where the model does not answer, the rest is left as it is."""
    rows: list[dict[str, Any]] = []
    verdicts: list[Verdict] = []
    schemas = {(row["service"], row["tool"]): row for row in tools.to_dicts()}
    gone: str | None = None
    for row in behaviours.to_dicts():
        program = json.loads(row["program"])
        service = world.services.get(row["service"])
        if service is None or "versions" in program or not all(rule["rule"] in SILENT for rule in program["rules"]):
            rows.append(row)
            continue
        judged = _refused("model_unavailable", gone) if gone else None
        if judged is None:
            try:
                judged = _asked(service, program, schemas.get((row["service"], row["tool"]), {}), ask)
            except Unavailable as error:
                gone = str(error)
                judged = _refused("model_unavailable", gone)
        rows.append(row if judged.rules is None else _taken(row, program, judged, model))
        verdicts.append(Verdict(
            stage="behaviour", subject=f"{row['service']}/{row['tool']}", kept=judged.rules is not None,
            reason=judged.reason, detail=judged.detail))
    return frame(Behaviour, rows).sort("service", "tool"), frame(Verdict, verdicts)


def _taken(row: dict[str, Any], program: dict[str, Any], judged: Judged, model: str) -> dict[str, Any]:
    made = {**program, "rules": [*program["rules"], *(judged.rules or [])], "written_by": model}
    return {**row, "program": canonical(made), "n_against": 0, "fidelity": judged.held_out.exact,
            "abstains": judged.held_out.abstains}


def _refused(reason: str, detail: str, trial: Trial | None = None) -> Judged:
    return Judged(None, trial or Trial(0, 0, 0), reason, detail)


def _asked(service: Service, program: dict[str, Any], schema: dict[str, Any], ask: Callable[[str], str]) -> Judged:
    calls = seen(service, program["tool"])
    halves = [[one for one in calls if _half(one) == half] for half in (0, 1)]
    if any(len({one.step.call.key for one in half if not one.step.call.failed}) < MINIMUM_QUESTIONS for half in halves):
        return _refused("too_few_calls", f"A model is not asked: {len(calls)} calls neither show nor test what it does.")
    try:
        found = draft(ask(_prompt(service, program, schema, halves[0])))
    except (ValidationError, ValueError) as error:
        return _refused("malformed_program", f"The model's reply is no program: {' '.join(str(error).split())[:200]}.")
    if not found.rules:
        return _refused("no_program_written", "The model finds no rule that says what it does.")
    try:
        return _judged(found, program, halves, row_tables(service))
    except Malformed as error:
        return _refused("malformed_program", f"The model's program cannot be carried out: {error}.")


def _judged(found: Draft, program: dict[str, Any], halves: list[list[Seen]], rows: dict[str, Table]) -> Judged:
    calls = [*halves[0], *halves[1]]
    worked = [one for one in halves[1] if not one.step.call.failed]
    trial = tried(worked, {**program, "rules": found.unguarded()}, rows)
    told = f"of {trial.n} held-out calls that worked it gives {trial.n_exact} as logged and {trial.n_wrong} otherwise"
    if trial.n_wrong or 2 * trial.n_exact < trial.n:
        return _refused("program_does_not_hold", f"The model's program is not taken: {told}.", trial)
    rules = [_guarded(rule, calls) for rule in found.unguarded()]
    whole = tried(calls, {**program, "rules": rules}, rows)
    if whole.n_wrong or 2 * whole.n_exact < len([one for one in calls if not one.step.call.failed]):
        return _refused("program_does_not_hold", f"The model's program is not taken: of all {whole.n} calls, those that were "
                        f"refused among them, it gives {whole.n_exact} as logged and {whole.n_wrong} otherwise.", trial)
    return Judged(rules, trial, "program_written", f"The model's program is taken: {told}.")


def _guarded(rule: dict[str, Any], calls: list[Seen]) -> dict[str, Any]:
    """The rule with the guards that the calls which worked bear out, by contrast with those that failed."""
    worked = [one for one in calls if not one.step.call.failed]
    if rule["rule"] == "write":
        before = {id(one): _before(rule, one) for one in calls}
        examples = [Example(text, one.step.call.arguments, None) for one in worked if (text := before[id(one)]) is not None]
        failures = [(text, one.step.call.arguments) for one in calls
                    if one.step.call.failed and (text := before[id(one)]) is not None]
        return {**rule, "when": guards.learn(examples, failures)}
    if rule["rule"] in ("text", "value"):
        said = _arguments(rule.get("pieces", rule.get("value")))
        return {**rule, "when": templates.limits([one.step.call.arguments for one in worked], said)}
    return rule


def _before(rule: dict[str, Any], one: Seen) -> Any:
    text = one.texts.get((rule["class"], str(one.step.call.arguments.get(rule["argument"]))))
    return None if text is None else json.loads(text)


def _arguments(expression: Any) -> set[str]:
    """Names of the arguments that an expression speaks of."""
    if not isinstance(expression, list):
        return set()
    own = {expression[1]} if expression[:1] == ["argument"] and len(expression) > 1 else set[str]()
    return own.union(*map(_arguments, expression))


def _half(one: Seen) -> int:
    return int(digest(one.step.call.session_id), 16) % 2


def _prompt(service: Service, program: dict[str, Any], schema: dict[str, Any], calls: list[Seen]) -> str:
    ordered = sorted(calls, key=lambda one: digest(one.step.call.event_id))
    shown = [one for one in ordered if not one.step.call.failed][:N_SHOWN]
    shown += [one for one in ordered if one.step.call.failed][:N_FAILED]
    classes = [f"{name}: {', '.join(sorted(known.fields))}" for name, known in sorted(service.documents.classes.items())]
    return language() + "\n".join((
        "", "Classes of things that are known, with the fields that each has:", *(classes or ["none"]), "",
        f"The tool {program['tool']} (its effect as found: {program['effect']}):", str(schema.get("description") or ""),
        str(schema.get("input_schema") or "{}"), "", "Its calls:", *map(_example, shown), "",
        'Reply with one JSON object and nothing else: {"rules": [rule, …]}. Where no rule of the language can say what the',
        'tool does, reply {"rules": []}.', ""))


def _example(one: Seen) -> str:
    named = {str(value) for value in one.step.call.arguments.values() if isinstance(value, str | int)}
    known = "".join(f"known before: {entity_class} {key} is {text[:LONGEST]}\n"
                    for (entity_class, key), text in sorted(one.texts.items()) if key in named)
    how = "it failed with" if one.step.call.failed else "it answered"
    return f"{known}called with {one.step.call.key}\n{how}: {one.step.call.content[:LONGEST]}\n"
