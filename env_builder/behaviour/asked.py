"""Programs that a language model writes in our language, for tools that induction leaves without one.

In: behaviours, the world, and `ask`: a prompt in, text out. Out: behaviours with the programs that hold, and a decision a tool
that was asked about. The model sees the language, the tool's schema and calls of one half of the sessions; it writes rules
without guards, whose operators must be of the language. They are taken where they give every call of the other half that they
answer exactly as logged, and answer at least half of those that worked; the guards are learnt from the log, as for induced
rules, and no logged failure may look to them like a call that works.
Sees: what a rule gives for logged calls. Does not see: whether it is right where nobody called.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Annotated, Any, Literal, NamedTuple

import polars as pl
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError

from env_builder.behaviour import guards, templates
from env_builder.behaviour.evidence import row_tables
from env_builder.behaviour.examples import WriteExample
from env_builder.behaviour.trials import Malformed, Trial, TrialCall, half_of, trial_calls, tried
from env_builder.runtime import expressions
from env_builder.runtime.canonical import canonical, digest
from env_builder.runtime.expressions import OPERATORS
from env_builder.world import InducedWorld, ServiceWorld
from env_builder.world.documents import STYLES
from warehouse.errors import Unavailable
from warehouse.records import Behaviour, Decision, frame

MOST_RULES = 8

_RULES = """\
A program says what a tool answers and what it changes, as JSON: rules that are tried in order, the first that can answer does.

{"rule": "value", "value": e, "style": s}
    answers the value of the expression e. s says how it is written: null for a bare text, else
    {"separators": [", ", ": "], "ensure_ascii": true} with the separators and the escaping of the tool's JSON
{"rule": "text", "pieces": [p, …], "form": "plain", "numbers": ["as_given"]}
    answers a sentence; each p is a text, or an expression over the arguments whose value is written there. form: "plain", or
    "json" where values are escaped as inside a JSON string; numbers: "as_given", "whole" or "float"
{"rule": "document", "class": c, "argument": a, "before": "", "after": ""}
    answers the thing of class c that the argument a names, as JSON, between two texts
{"rule": "write", "class": c, "argument": a, "before": "", "after": "", "fields": {field: e, …},
 "order": [field, …], "style": s}
    changes the thing of class c that the argument a names to one with these fields, and answers it; a field that stays is
    ["before", field]; order: the fields that are new

"""


MOST_PARTS, MOST_DEPTH, MOST_REPEATS = 2_000, 40, 2
"""Of an expression that a model wrote: its parts, how deep they lie, and how many times one is repeated within another."""
REPEATS = (["each"], ["rows"])


def _expression(value: Any) -> Any:
    if not isinstance(value, list) or not value or not isinstance(value[0], str):
        raise ValueError(f"an expression is a list that begins with an operator, not {json.dumps(value)[:60]}")
    if value[0] not in OPERATORS:
        raise ValueError(f"no operator {value[0]!r}; there are: {', '.join(sorted(OPERATORS))}")
    _check_size(value)
    return value


def _check_size(expression: Any) -> None:
    """Refuse an expression that would not end in time: one that is too large, or repeats what it repeats. Raises ValueError."""
    pending, n_parts = [(expression, 0, 0)], 0
    while pending:
        part, depth, n_repeats = pending.pop()
        n_parts += 1
        if n_parts > MOST_PARTS or depth > MOST_DEPTH or n_repeats > MOST_REPEATS:
            raise ValueError(f"an expression has at most {MOST_PARTS} parts, {MOST_DEPTH} deep, {MOST_REPEATS} repeated")
        if isinstance(part, list | dict):
            n_inside = n_repeats + (isinstance(part, list) and part[:1] in REPEATS)
            pending += [(each, depth + 1, n_inside) for each in (part.values() if isinstance(part, dict) else part)]


Expression = Annotated[Any, AfterValidator(_expression)]


class _Rule(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True)


class Style(_Rule):
    """How JSON is written."""

    separators: tuple[str, str] = STYLES[0]["separators"]
    ensure_ascii: bool = True


class Value(_Rule):
    """Answers the value of an expression."""

    rule: Literal["value"]
    value: Expression
    style: Style | None = None


class Text(_Rule):
    """Answers a sentence."""

    rule: Literal["text"]
    pieces: list[str | Expression] = Field(min_length=1)
    form: Literal["plain", "json", "json_ascii"] = "plain"
    numbers: list[Literal["as_given", "whole", "float"]] = Field(default=["as_given"], min_length=1)


class ProposedDocument(_Rule):
    """Answers a thing as it is."""

    rule: Literal["document"]
    entity_class: str = Field(alias="class")
    argument: str
    before: str = ""
    after: str = ""


class Write(_Rule):
    """Changes a thing, and answers it."""

    rule: Literal["write"]
    entity_class: str = Field(alias="class")
    argument: str
    before: str = ""
    after: str = ""
    fields: dict[str, Expression] = Field(min_length=1)
    order: list[str] = Field(default_factory=list)
    style: Style = Style()


class ProgramDraft(_Rule):
    """A model's reply."""

    rules: list[Annotated[Value | Text | ProposedDocument | Write, Field(discriminator="rule")]] = Field(max_length=MOST_RULES)

    def unguarded(self) -> list[dict[str, Any]]:
        """Return the rules as the interpreter takes them, held back by no guard."""
        when: dict[str, Any] = {"when": None}
        open_ = {"write": {**when, "also": []}, "text": when, "value": when, "document": {}}
        return [rule.model_dump(by_alias=True) | open_[rule.rule] for rule in self.rules]


def draft(reply: str) -> ProgramDraft:
    """Return the program in a model's reply, also where words or a fence stand around it. Raises ValueError."""
    begin, end = reply.find("{"), reply.rfind("}")
    try:
        return ProgramDraft.model_validate(json.loads(reply[begin:end + 1]))
    except RecursionError as error:
        raise ValueError("it is nested too deeply") from error


def language() -> str:
    """Return the language in words."""
    return _RULES + (expressions.__doc__ or "")


MINIMUM_QUESTIONS = 4
"""Different questions that worked in each half: fewer neither show what a tool does nor test it."""
N_SHOWN = 16
N_FAILED = 4
LONGEST = 3000
"""Signs of each answer and thing that are shown."""
SILENT = ("recorded", "refuse", "validate", "rows", "shows", "makes", "always", "carried", "precedent", "status")
"""Rules that leave a tool without a program."""
Rules = list[dict[str, Any]]


class JudgedProgram(NamedTuple):
    """What became of a model's reply."""

    rules: Rules | None
    """The rules with their guards; None: not taken."""
    held_out: Trial
    reason: str
    detail: str


def written(
    behaviours: pl.DataFrame, world: InducedWorld, tools: pl.DataFrame, ask: Callable[[str], str], model: str
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """(behaviours with the programs that hold, decisions). Where the model does not answer, the rest is left as it is."""
    rows: list[dict[str, Any]] = []
    decisions: list[Decision] = []
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
                judged = _propose_program(service, program, schemas.get((row["service"], row["tool"]), {}), ask)
            except Unavailable as error:
                gone = str(error)
                judged = _refused("model_unavailable", gone)
        rows.append(row if judged.rules is None else {
            **row, "n_against": 0, "fidelity": judged.held_out.exact, "abstains": judged.held_out.abstains,
            "program": canonical({**program, "rules": [*program["rules"], *judged.rules], "written_by": model})})
        decisions.append(Decision(
            stage="behaviour", subject=f"{row['service']}/{row['tool']}", kept=judged.rules is not None,
            reason=judged.reason, detail=judged.detail))
    return frame(Behaviour, rows).sort("service", "tool"), frame(Decision, decisions)


def _refused(reason: str, detail: str, trial: Trial | None = None) -> JudgedProgram:
    return JudgedProgram(None, trial or Trial(0, 0, 0), reason, detail)


def _propose_program(
    service: ServiceWorld, program: dict[str, Any], schema: dict[str, Any], ask: Callable[[str], str]
) -> JudgedProgram:
    calls = trial_calls(service, program["tool"])
    halves = [[one for one in calls if half_of(one.step) == half] for half in (0, 1)]
    if any(len({one.step.call.key for one in half if not one.step.call.failed}) < MINIMUM_QUESTIONS for half in halves):
        return _refused("too_few_calls", f"A model is not asked: {len(calls)} calls neither show nor test what it does.")
    try:
        proposal = draft(ask(_prompt(service, program, schema, halves[0])))
    except (ValidationError, ValueError) as error:
        return _refused("malformed_program", f"The model's reply is no program: {' '.join(str(error).split())[:200]}.")
    if not proposal.rules:
        return _refused("no_program_written", "The model finds no rule that says what it does.")
    try:
        rows = row_tables(service)
        calls = [*halves[0], *halves[1]]
        worked = [one for one in halves[1] if not one.step.call.failed]
        trial = tried(worked, {**program, "rules": proposal.unguarded()}, rows)
        summary = f"of {trial.n} held-out calls that worked it gives {trial.n_exact} as logged and {trial.n_wrong} otherwise"
        if trial.n_wrong or 2 * trial.n_exact < trial.n:
            return _refused("program_does_not_hold", f"The model's program is not taken: {summary}.", trial)
        rules = [_guarded(rule, calls) for rule in proposal.unguarded()]
        whole = tried(calls, {**program, "rules": rules}, rows)
        if whole.n_wrong or 2 * whole.n_exact < len([one for one in calls if not one.step.call.failed]):
            return _refused(
                "program_does_not_hold", f"The model's program is not taken: of all {whole.n} calls, those that were refused "
                f"among them, it gives {whole.n_exact} as logged and {whole.n_wrong} otherwise.", trial)
        return JudgedProgram(rules, trial, "program_written", f"The model's program is taken: {summary}.")
    except Malformed as error:
        return _refused("malformed_program", f"The model's program cannot be carried out: {error}.")


def _guarded(rule: dict[str, Any], calls: list[TrialCall]) -> dict[str, Any]:
    """Return the rule with the guards that the calls which worked bear out, by contrast with those that failed."""
    worked = [one for one in calls if not one.step.call.failed]
    if rule["rule"] == "write":
        before = {id(one): _before(rule, one) for one in calls}
        examples = [
        WriteExample(text, one.step.call.arguments, None) for one in worked if (text := before[id(one)]) is not None]
        failures = [(text, one.step.call.arguments) for one in calls
                    if one.step.call.failed and (text := before[id(one)]) is not None]
        return {**rule, "when": guards.learn(examples, failures)}
    if rule["rule"] in ("text", "value"):
        named = _arguments(rule.get("pieces", rule.get("value")))
        return {**rule, "when": templates.limits([one.step.call.arguments for one in worked], named)}
    return rule


def _before(rule: dict[str, Any], one: TrialCall) -> Any:
    text = one.texts.get((rule["class"], str(one.step.call.arguments.get(rule["argument"]))))
    return None if text is None else json.loads(text)


def _arguments(expression: Any) -> set[str]:
    """Names of the arguments that an expression speaks of."""
    if not isinstance(expression, list):
        return set()
    own = {expression[1]} if expression[:1] == ["argument"] and len(expression) > 1 else set[str]()
    return own.union(*map(_arguments, expression))


def _prompt(service: ServiceWorld, program: dict[str, Any], schema: dict[str, Any], calls: list[TrialCall]) -> str:
    ordered = sorted(calls, key=lambda one: digest(one.step.call.event_id))
    shown = [one for one in ordered if not one.step.call.failed][:N_SHOWN]
    shown += [one for one in ordered if one.step.call.failed][:N_FAILED]
    classes = [f"{name}: {', '.join(sorted(entity_class.fields))}"
               for name, entity_class in sorted(service.documents.classes.items())]
    return language() + "\n".join((
        "", "Classes of things that are known, with the fields that each has:", *(classes or ["none"]), "",
        f"The tool {program['tool']} (its effect as found: {program['effect']}):", str(schema.get("description") or ""),
        str(schema.get("input_schema") or "{}"), "", "Its calls:", *map(_example, shown), "",
        'Reply with one JSON object and nothing else: {"rules": [rule, …]}. Where no rule of the language can say what the',
        'tool does, reply {"rules": []}.', ""))


def _example(one: TrialCall) -> str:
    named = {str(value) for value in one.step.call.arguments.values() if isinstance(value, str | int)}
    documents = "".join(f"known before: {entity_class} {key} is {text[:LONGEST]}\n"
                    for (entity_class, key), text in sorted(one.texts.items()) if key in named)
    how = "it failed with" if one.step.call.failed else "it answered"
    return f"{documents}called with {one.step.call.key}\n{how}: {one.step.call.content[:LONGEST]}\n"
