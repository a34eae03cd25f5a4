"""Checks of checks: `combine`.

Sees what its nested checks find. Where some of them hang on answers that nobody knew, or a judge failed, it is taken as held
and as not held: what comes out either way is certain.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from ..schemas import fields
from . import prepared
from .kind import CheckKind, CheckResult, EpisodeView, Parameters, Schema

HOW = ("all", "any", "majority", "threshold", "weighted", "veto")
DEEPEST = 8
"""Levels of checks within checks."""


class Nested(NamedTuple):
    """A check within."""

    kind: str
    rule: CheckKind
    parameters: Any
    weight: float


class CombinedChecks(NamedTuple):
    """Checks, and how many of them have to hold."""

    how: str
    nested: list[Nested]
    bound: float
    """Weight that has to hold."""

    def holds(self, passed: list[bool]) -> bool:
        if self.how == "veto":
            return not any(passed)
        return self.weight(passed) >= self.bound - 1e-9

    def weight(self, passed: list[bool]) -> float:
        return sum(check.weight for check, holds in zip(self.nested, passed, strict=True) if holds)


NESTED = fields("kind", "parameters", kind={"type": "string"}, parameters={"type": "object"},
                weight={"type": "number", "minimum": 0}, description={"type": "string"})


class CombineCheck(CheckKind):
    """Check that all, any or so many of other checks pass."""

    description = (
        "Of the nested checks `all`, `any`, more than half (`majority`), `at_least` so many (`threshold`) or so large a share "
        "of the weight (`weighted`) hold, or none does (`veto`: each forbids).")
    parameters = fields(
        "how", "checks", how={"enum": list(HOW)}, checks={"type": "array", "items": NESTED, "minItems": 1},
        at_least={"type": "number", "minimum": 0})

    def prepare(self, parameters: Parameters) -> CombinedChecks:
        how, checks = parameters["how"], parameters["checks"]
        depth = 0
        level: list[Any] = [parameters]  # counted without recursion: a rubric may be anybody's
        while level and depth <= DEEPEST:
            depth += 1
            level = [check.get("parameters") for one in level if isinstance(one, dict) and isinstance(one.get("checks"), list)
                     for check in one["checks"] if isinstance(check, dict)]
        if depth > DEEPEST:
            raise ValueError(f"checks within checks go no deeper than {DEEPEST}")
        if (how in ("threshold", "weighted")) != ("at_least" in parameters):
            raise ValueError(f"{how!r} {'takes no' if 'at_least' in parameters else 'needs'} `at_least`")
        weights = [float(check.get("weight", 1.0)) if how == "weighted" else 1.0 for check in checks]
        n, total = len(checks), sum(weights)
        if total <= 0:
            raise ValueError("the weights add up to nothing")
        least = float(parameters.get("at_least", 0))
        if least > (1 if how == "weighted" else n) or (how in ("threshold", "weighted") and least <= 0):
            raise ValueError(f"{how!r} can never tell anything with `at_least` {least:g}")
        bound = {"all": n, "any": 1, "majority": n // 2 + 1, "threshold": least, "weighted": least * total, "veto": 0}[how]
        nested = []
        for index, (check, weight) in enumerate(zip(checks, weights, strict=True)):
            try:
                kind, given = prepared(check["kind"], check["parameters"])
            except ValueError as error:
                raise ValueError(f"checks[{index}] ({check['kind']}): {error}") from error
            nested.append(Nested(check["kind"], kind, given, weight))
        return CombinedChecks(how, nested, bound)

    def judge(self, combined: CombinedChecks, view: EpisodeView) -> CheckResult:
        results = [check.rule.judge(check.parameters, view) for check in combined.nested]
        passed = [bool(each.passed) for each in results]
        best = combined.holds([holds or each.depends_on_unknown for holds, each in zip(passed, results, strict=True)])
        worst = combined.holds([holds and not each.depends_on_unknown for holds, each in zip(passed, results, strict=True)])
        unscored = best != worst and any(each.passed is None for each in results)
        evidence = [{"kind": check.kind, "passed": each.passed, "evidence": each.evidence}
                    for check, each in zip(combined.nested, results, strict=True)]
        share = None
        if combined.how != "veto":
            shares = [float(bool(each.passed)) if each.share is None else each.share for each in results]
            reached = sum(check.weight * share for check, share in zip(combined.nested, shares, strict=True))
            share = max(shares) if combined.how == "any" else min(1.0, reached / combined.bound)
        return CheckResult(None if unscored else combined.holds(passed), evidence, best != worst, share)

    def nested(self, parameters: Parameters) -> list[dict[str, Any]]:
        return list(parameters["checks"])

    def schema(self, of_kind: list[Schema]) -> Schema:
        checks = {"type": "array", "items": {**NESTED, "allOf": of_kind}, "minItems": 1}
        own = super().schema(of_kind)
        return {**own, "properties": {**own["properties"], "checks": checks}}
