"""Rubrics: the published document, and what the grader makes of it once.

`{"format": "traceroom-rubric/1", "rubric_id", "task_id", "checks": [{"check_id", "kind", "role", "weight", "description",
"parameters", "provenance"}]}`; `schema()` is its JSON Schema (docs/rubric.schema.json, and
rubric.schema.json beside every rubrics.jsonl).
"""

from __future__ import annotations

from typing import Any, NamedTuple

from .checks import OWN, CheckKind, CheckResult, EpisodeView, kind_of, prepared
from .schemas import fields, refusal

FORMAT = "traceroom-rubric/1"
ROLES = ("gate", "score", "penalty", "shaping", "diagnostic")
Schema = dict[str, Any]
IDS: Schema = {"type": "string", "minLength": 1}
CHECK = fields(
    "check_id", "kind", "role", "parameters",
    check_id=IDS,
    kind={"type": "string", "description": "one of those below, or of the entry point group traceroom.checks"},
    role={"enum": list(ROLES)},
    weight={"type": "number", "minimum": 0},
    description={"type": "string", "description": "one sentence for a person"},
    parameters={"type": "object"},
    provenance={"type": "object", "description": "supporting and contrary session ids, confidence, or who says so"},
    modes={"type": "array", "items": {"enum": ["eval", "train"]}, "minItems": 1,
           "description": "modes in which a penalty counts; without it in all"},
)
PARTIAL: Schema = {
    "type": "number", "minimum": 0, "maximum": 0.5,
    "description": "in the mode train an episode that fails a gate gets this times how far it has come by the shaping checks"}
RUBRIC = fields("checks", format={"enum": [FORMAT]}, rubric_id=IDS, task_id=IDS, partial=PARTIAL,
                checks={"type": "array", "items": CHECK})


class ParsedCheck(NamedTuple):
    """A check, read once."""

    check_id: str
    kind: str
    role: str
    weight: float
    description: str
    rule: CheckKind
    parameters: Any
    """As `prepare` of its kind gives them."""
    modes: frozenset[str] = frozenset()
    """Those in which a penalty counts; empty: all."""

    def judge(self, view: EpisodeView) -> CheckResult:
        return self.rule.judge(self.parameters, view)


class ParsedRubric(NamedTuple):
    """A rubric, read once: what `grade` takes beside the document itself, and faster."""

    rubric_id: str
    checks: tuple[ParsedCheck, ...]
    gates: tuple[int, ...]
    """Places of the checks that must hold."""
    scores: tuple[tuple[int, float], ...]
    """Place and weight of each check that counts."""
    penalties: tuple[tuple[int, float], ...]
    """Place and weight of each check that costs where it fails."""
    partial: float = 0.0
    """What an episode that fails a gate gets at most in the mode `train`."""

    @classmethod
    def read(cls, document: dict[str, Any]) -> ParsedRubric:
        """Return the rubric of a document. ValueError with one sentence: which rubric, which check, what is wrong."""
        name = document.get("rubric_id", "") if isinstance(document, dict) else ""
        wrong = refusal(RUBRIC, document, f"rubric {name}".rstrip())
        if wrong:
            raise ValueError(wrong)
        checks = tuple(map(_check, document["checks"]))
        weighed = {role: tuple((at, check.weight) for at, check in enumerate(checks) if check.role == role) for role in ROLES}
        gates = tuple(at for at, _ in weighed["gate"])
        return cls(str(name), checks, gates, weighed["score"], weighed["penalty"], float(document.get("partial", 0.0)))


def _check(check: dict[str, Any]) -> ParsedCheck:
    name = check["kind"]
    try:
        kind, parameters = prepared(name, check["parameters"])
    except ValueError as error:
        raise ValueError(f"check {check['check_id']} ({name}): {error}") from error
    weight, description = float(check.get("weight", 1.0)), check.get("description", "")
    modes = frozenset(check.get("modes", ()))
    return ParsedCheck(check["check_id"], name, check["role"], weight, description, kind, parameters, modes)


def schema() -> Schema:
    """JSON Schema (2020-12) of a rubric document with the kinds that are our own; other kinds' parameters are free."""
    kinds = {name: kind_of(name) for name in sorted(OWN)}
    of_kind = [
        {"if": {"properties": {"kind": {"const": name}}},
         "then": {"properties": {"parameters": {"$ref": f"#/$defs/{name}"}}}} for name in kinds]
    described = {name: kind.schema(of_kind) for name, kind in kinds.items()}
    checks = {"type": "array", "items": {**CHECK, "allOf": of_kind}}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema", "title": FORMAT, **RUBRIC,
        "required": ["format", "rubric_id", "task_id", "checks"], "properties": {**RUBRIC["properties"], "checks": checks},
        "$defs": described,
    }
