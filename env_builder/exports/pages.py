"""The README of what is exported: what it is, what it is worth, how it is run."""

from __future__ import annotations

from env_builder.exports.kit import Kit

PAGE = """\
# {name} for {consumer}

The service `{name}` as it was found in logs: {n_tasks} tasks ({splits}), {n_tools} tools. Made by Traceroom.

- digest `{digest}`: the same in every consumer's export of these tasks; the same episode has the same reward in each
- audit: {audit}
- the room around its tasks: {coverage}

## Run it

{run}
## What is in it

`room/` answers (its world, its tools' programs, its tasks, its runtime), `grader/` rewards (rubrics, known solutions, audit):
whoever plays must not read either. `play.py` opens both, `kit.json` has all figures.
"""


def readme(kit: Kit, consumer: str, run: str) -> str:
    """The page of a kit for one consumer; `run`: commands and what they need."""
    splits = ", ".join(f"{n} {split}" for split, n in kit.figures["n_tasks"].items())
    return PAGE.format(
        name=kit.name, consumer=consumer, n_tasks=len(kit.tasks), splits=splits, n_tools=len(kit.tools), digest=kit.digest,
        audit=_audit(kit), coverage=_coverage(kit), run=run)


def _audit(kit: Kit) -> str:
    published = kit.figures["audit"].get("published", {})
    rates = {f"{kind} accepted": rate for kind, rate in sorted(published.get("false_accept", {}).items())}
    rates |= {"good ones rejected": published["false_reject"]} if "false_reject" in published else {}
    return ", ".join(f"{name} {rate['k']} of {rate['n']}" for name, rate in rates.items()) or "see `grader/audit.json`"


def _coverage(kit: Kit) -> str:
    coverage = kit.figures["coverage"]
    if not coverage.get("n_calls"):
        return "not measured"
    return f"{coverage['answered']:.1%} of {coverage['n_calls']} calls that other sessions made there are answered"
