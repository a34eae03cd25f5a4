"""Checks of checks: `combine`.

Sees what its nested checks find. Where some of them hang on answers that nobody knew, or a judge failed, it is taken as held
and as not held: what comes out either way is certain.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from ..schemas import fields
from . import prepared
from .kind import Found, Kind, Parameters, Seen

HOW = ("all", "any", "majority", "threshold", "weighted", "veto")
DEEPEST = 8
"""Levels of checks within checks."""


class Nested(NamedTuple):
    """A check within."""

    kind: str
    judge: Any
    parameters: Any
    weight: float


class Combined(NamedTuple):
    """Checks, and how many of them have to hold."""

    how: str
    nested: list[Nested]
    bound: float
    """Weight that has to hold."""

    def holds(self, held: list[bool]) -> bool:
        """Whether it holds where these do."""
        if self.how == "veto":
            return not any(held)
        return self.weight(held) >= self.bound - 1e-9

    def weight(self, held: list[bool]) -> float:
        """Weight of those that hold."""
        return sum(check.weight for check, holds in zip(self.nested, held, strict=True) if holds)


def _combined(parameters: Parameters) -> Combined:
    how, checks = parameters["how"], parameters["checks"]
    if _depth(parameters) > DEEPEST:
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
        nested.append(Nested(check["kind"], kind.judge, given, weight))
    return Combined(how, nested, bound)


def _depth(parameters: Any) -> int:
    """Levels, counted without recursion: a rubric may be anybody's."""
    depth, level = 0, [parameters]
    while level and depth <= DEEPEST:
        depth += 1
        level = [check.get("parameters") for one in level if isinstance(one, dict) and isinstance(one.get("checks"), list)
                 for check in one["checks"] if isinstance(check, dict)]
    return depth


def _combine(combined: Combined, seen: Seen) -> Found:
    found = [check.judge(check.parameters, seen) for check in combined.nested]
    held = [bool(each.passed) for each in found]
    best = combined.holds([holds or each.swayed for holds, each in zip(held, found, strict=True)])
    worst = combined.holds([holds and not each.swayed for holds, each in zip(held, found, strict=True)])
    unscored = best != worst and any(each.passed is None for each in found)
    evidence = [{"kind": check.kind, "passed": each.passed, "evidence": each.evidence}
                for check, each in zip(combined.nested, found, strict=True)]
    share = None
    if combined.how != "veto":
        shares = [float(bool(each.passed)) if each.share is None else each.share for each in found]
        reached = sum(check.weight * share for check, share in zip(combined.nested, shares, strict=True))
        share = max(shares) if combined.how == "any" else min(1.0, reached / combined.bound)
    return Found(None if unscored else combined.holds(held), evidence, best != worst, share)


NESTED = fields("kind", "parameters", kind={"type": "string"}, parameters={"type": "object"},
                weight={"type": "number", "minimum": 0}, says={"type": "string"})
KINDS: dict[str, Kind] = {
    "combine": Kind(
        "Of the nested checks `all`, `any`, more than half (`majority`), `at_least` so many (`threshold`) or so large a share "
        "of the weight (`weighted`) hold, or none does (`veto`: each forbids).",
        fields("how", "checks", how={"enum": list(HOW)}, checks={"type": "array", "items": NESTED, "minItems": 1},
               at_least={"type": "number", "minimum": 0}),
        _combine, _combined),
}
