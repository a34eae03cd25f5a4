"""Kinds of checks: ours, a family a module, and those of installed packages (entry point group `traceroom.checks`).

An entry point's name is the kind's name, its value a subclass of `CheckKind`; the environment and its grader need nothing
installed for our own. A module is loaded when a rubric first names one of its kinds.
"""

from __future__ import annotations

import json
from functools import cache, lru_cache
from importlib import import_module
from typing import TYPE_CHECKING, Any

from ..canonical import UNWRITABLE, canonical
from ..schemas import refusal
from .kind import Ask, CheckKind, CheckResult, EpisodeView, Schema

if TYPE_CHECKING:
    from importlib.metadata import EntryPoints

__all__ = ["GROUP", "Ask", "CheckKind", "CheckResult", "EpisodeView", "Schema", "kind_of", "kinds", "prepared"]

GROUP = "traceroom.checks"
KEPT = 512
"""Checks that are kept as they were read."""
OWN = {
    "state": "states:StateCheck", "untouched": "states:UntouchedCheck", "must_not_write": "states:MustNotWriteCheck",
    "said": "conduct:ReportedCheck", "spoke": "conduct:SpokeCheck", "not_said": "conduct:NotReportedCheck",
    "promised": "conduct:PromisedCheck", "call": "conduct:CallCheck", "order": "conduct:OrderCheck",
    "declined": "conduct:DeclinedCheck", "not_denied": "conduct:NotDeniedCheck", "honeypot": "conduct:HoneypotCheck",
    "sql": "querying:SqlCheck", "file": "states:FileCheck", "process": "states:ProcessCheck", "judge": "judging:JudgeCheck",
    "combine": "combining:CombineCheck", "verified": "verified:VerifiedCheck", "confined": "ledger:ConfinedCheck",
    "lineage": "ledger:LineageCheck", "listed": "ledger:ListedCheck", "record": "records:RecordCheck",
    "bounded": "records:BoundedCheck", "preceded": "records:PrecededCheck", "withheld": "records:WithheldCheck",
}
"""The registry of our own kinds: name -> module here and class in it."""


def kinds() -> tuple[str, ...]:
    """Names of all kinds that there are, those of installed packages among them."""
    return tuple(sorted({*OWN, *(point.name for point in _points())}))


def _points() -> EntryPoints:
    from importlib.metadata import entry_points  # only where a kind is not ours: an environment starts sooner without it

    return entry_points(group=GROUP)


@cache
def kind_of(name: str) -> CheckKind:
    """Return the kind of this name: ours before anybody's. ValueError: there is none, or it is no `CheckKind`."""
    if name in OWN:
        module, _, class_name = OWN[name].partition(":")
        own: CheckKind = getattr(import_module(f".{module}", __name__), class_name)()
        return own
    point = next((point for point in _points() if point.name == name), None)
    if point is None:
        raise ValueError(f"no kind {name!r}; there are: {', '.join(kinds())}")
    loaded = point.load()
    if not isinstance(loaded, type) or not issubclass(loaded, CheckKind):
        raise ValueError(f"the entry point {point.value} of the kind {name!r} is no CheckKind; see docs/rewards.md")
    return loaded()


def prepared(name: str, parameters: Any) -> tuple[CheckKind, Any]:
    """Return the kind, and the parameters as it takes them. ValueError with one sentence where it refuses them."""
    kind = kind_of(name)
    try:
        text = canonical(parameters)
    except UNWRITABLE as error:
        raise ValueError("parameters cannot be written as JSON, or go too deep") from error
    return kind, _prepared(name, text)


@lru_cache(maxsize=KEPT)
def _prepared(name: str, parameters: str) -> Any:
    """From the text, so that nobody can change what is kept: the same check of the same task is often met again."""
    kind, given = kind_of(name), json.loads(parameters)
    wrong = refusal({"type": "object", **kind.parameters}, given, "parameters")
    if wrong:
        raise ValueError(wrong)
    return kind.prepare(given)
