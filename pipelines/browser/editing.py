"""Change a check of a task, or add one: the form, what it would do (pipelines/trying.py), and the correction that keeps it.

Input: a task, a check's id or a kind, and the fields of a form. Output: the page's values, or one line of `OUT/corrections`.
Trying writes nothing. Does not see: whether the person is right."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import datetime
from typing import Any, NamedTuple

from env_builder.rewards.corrections import Corrected, uncorrected
from env_builder.rewards.persons import problem_of
from env_builder.rewards.witness import check_id
from env_builder.runtime.checks import kind_of, kinds
from extractors.formats.correction import MOST_WEIGHT, ROLES
from pipelines.browser.corrections import append, text_of
from pipelines.browser.library import Library
from pipelines.browser.sites import checks_of_any, find_any_task
from pipelines.trying import REASONS, Edit, TriedTasks, Workbench, waiting_edit
from warehouse.errors import InputError, Missing
from warehouse.records import Check

Row = dict[str, Any]
Schema = dict[str, Any]
MOST_TRIED = 20
"""Tasks that are tried at once on the page."""
LONGEST_PARAMETERS = 30_000
"""Characters of the parameters in a form."""
DEEPEST = 2
"""Levels of a schema that are described."""
_EMPTY = {"string": "", "array": [], "object": {}, "integer": 1, "number": 1, "boolean": True, "null": None}


class CheckEdit(NamedTuple):
    """What a form says of a check."""

    subject: str
    """Of the correction: CHECK, TASK/CHECK, or where a check is added."""
    scope: str
    """`task`, `family`, or the check's id: wherever it stands."""
    value: Row
    """Of the correction."""


def edit_page(library: Library, task_id: str, check: str, kind: str, form: Mapping[str, str] | None = None) -> Row:
    """Return the page's values: the check as it is, or an empty one of a kind; what `form` says goes before. Raises Missing."""
    task = find_any_task(library, task_id)
    built = _built(library, task_id, check) if check else None
    name = built.kind if built else kind or kinds()[0]
    if name not in kinds():
        raise Missing.named("kind", name, kinds())
    rule = kind_of(name)
    fields = {
        "role": built.role if built else "diagnostic", "weight": f"{built.weight:g}" if built else "1",
        "description": built.description if built else "", "accepted": "", "scope": "task",
        "parameters": json.dumps(built.parameters if built else skeleton(rule.parameters), ensure_ascii=False, indent=2),
        "why": ""}
    return {
        "template": "check", "task": task, "check": built, "kind": name, "kinds": kinds(), "roles": ROLES, "rule": rule,
        "parameters": [describe(each, schema, each in rule.parameters.get("required", ()))
                       for each, schema in rule.parameters.get("properties", {}).items()],
        "schema": json.dumps(rule.parameters, ensure_ascii=False, indent=2), "reasons": REASONS, "problem": "", "tried": None,
        "fields": fields | {name: form[name] for name in fields if form and name in form},
        "is_corrected": bool(built and built.provenance.get("correction"))}


def try_edit(workbench: Workbench, library: Library, folder: Any, form: Mapping[str, str]) -> TriedTasks:
    """Try what a form says. Raises InputError, Missing."""
    edit = parse_form(library, form)
    task_ids = workbench.reach(form.get("id", ""), edit.scope)
    correction = Corrected("tried", "you", "tried", edit.value)
    return workbench.try_tasks(task_ids, Edit({edit.subject: correction}), waiting_edit(library, folder), MOST_TRIED, True)


def keep_edit(library: Library, folder: Any, form: Mapping[str, str], now: datetime) -> Row:
    """Append what a form says to the corrections, or withdraw the check's correction. Raises InputError, Missing."""
    if form.get("do") == "withdraw":
        built = _built(library, form.get("id", ""), form.get("check", ""))
        subject, value = _subject_of(library, form, built), None
    else:
        edit = parse_form(library, form)
        subject, value = edit.subject, edit.value
    return append(folder, {"kind": "check", "id": subject}, value, form, now)


def parse_form(library: Library, form: Mapping[str, str]) -> CheckEdit:
    """Return what a form says of a check. Raises InputError with one sentence, and Missing."""
    task = find_any_task(library, form.get("id", ""))
    built = _built(library, task["task_id"], form.get("check", "")) if form.get("check") else None
    fields: Row = {"role": form.get("role", ""), "weight": _weight(form.get("weight", "")),
                   "description": text_of(form, "description", "what it checks"), "parameters": _parameters(form)}
    kind = built.kind if built else form.get("kind", "")
    problem = problem_of({"kind": kind, **fields})
    if problem:
        raise InputError(f"this check is refused: {problem}", hint="correct it below")
    if built is None:
        scope = "family" if form.get("scope") == "family" else "task"
        place = task["family"] if scope == "family" else task["task_id"]
        return CheckEdit(f"{place}/{check_id(kind, fields['role'], fields['parameters'])}", scope, {"kind": kind, **fields})
    subject = _subject_of(library, form, built)
    if "added" in built.provenance and subject == built.provenance["added"]:
        return CheckEdit(subject, "task" if subject.startswith(task["task_id"]) else "family", {"kind": kind, **fields})
    mined = uncorrected(built)
    value = {name: each for name, each in fields.items() if each != getattr(mined, name)}
    if form.get("accepted") in ("yes", "no"):
        value["accepted"] = form["accepted"] == "yes"
    if not value:
        raise InputError("nothing of the check is changed", hint="change something below")
    return CheckEdit(subject, "task" if "/" in subject else built.check_id, value)


def _subject_of(library: Library, form: Mapping[str, str], built: Check) -> str:
    """Return the subject of a correction of a check: an added check is changed where it was added."""
    everywhere = form.get("scope") == "everywhere"
    if "added" in built.provenance and (everywhere or str(built.provenance["added"]).startswith(f"{form.get('id', '')}/")):
        return str(built.provenance["added"])
    return built.check_id if everywhere else f"{form.get('id', '')}/{built.check_id}"


def _built(library: Library, task_id: str, name: str) -> Check:
    checks = {check["check_id"]: check for check in checks_of_any(library, find_any_task(library, task_id))}
    if name not in checks:
        raise Missing.named("check", name, checks, f"task {task_id} has these")
    return Check(**checks[name])


def _weight(text: str) -> float:
    try:
        weight = float(text)
    except ValueError as error:
        raise InputError(f"the weight {text[:20]!r} is no number", hint="write one, such as 1") from error
    if not 0 <= weight <= MOST_WEIGHT:
        raise InputError(f"the weight {text[:20]} is not between 0 and {MOST_WEIGHT:g}", hint="write one, such as 1")
    return weight


def _parameters(form: Mapping[str, str]) -> Any:
    text = form.get("parameters", "")
    if len(text) > LONGEST_PARAMETERS:
        raise InputError(f"the parameters have {len(text):,} characters of {LONGEST_PARAMETERS:,}", hint="shorten them")
    try:
        text.encode()
        parameters = json.loads(text)
        json.dumps(parameters, ensure_ascii=False, allow_nan=False).encode()
    except (ValueError, RecursionError) as error:
        raise InputError(f"the parameters are no JSON ({error})", hint='write an object, such as {"at_least": 1}') from error
    if not isinstance(parameters, dict):
        raise InputError("the parameters are no JSON object", hint='write one, such as {"at_least": 1}')
    return parameters


def describe(name: str, schema: Schema, is_required: bool) -> Row:
    """Return a parameter for a person: {"name", "is_required", "shape", "description"}."""
    return {"name": name, "is_required": is_required, "shape": shape(schema), "description": schema.get("description", "")}


def shape(schema: Schema, depth: int = DEEPEST) -> str:
    """Return what values a schema takes, in a few words."""
    if "enum" in schema:
        return "one of " + ", ".join(map(str, schema["enum"]))
    named = schema.get("type", "any value")
    kind = " or ".join(named) if isinstance(named, list) else str(named)
    least = f", {schema['minItems']} or more" if schema.get("minItems") else ""
    if kind == "array" and depth:
        return f"list of {shape(schema.get('items', {}), depth - 1).replace('object with', 'objects with')}{least}"
    if kind == "object" and depth and schema.get("properties"):
        return "object with " + ", ".join(
            f"{name}{'' if name in schema.get('required', ()) else '?'}" for name in schema["properties"])
    return kind


def skeleton(schema: Schema) -> Any:
    """Return the least that a schema asks for, with empty values to fill in."""
    if "enum" in schema:
        return schema["enum"][0]
    named = schema.get("type", "object")
    kind = named[0] if isinstance(named, list) else named
    if kind == "object":
        return {name: skeleton(schema["properties"][name]) for name in schema.get("required", ())}
    if kind == "array" and schema.get("minItems"):
        return [skeleton(schema.get("items", {}))]
    return _EMPTY[kind]
