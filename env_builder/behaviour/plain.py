"""The rules that need no search: the answer on record, a constant, a calculation, a document as it is known, what a tool shows,
and what else a call of it changes."""

from __future__ import annotations

from collections import Counter

from env_builder.behaviour.conversions import computes
from env_builder.behaviour.evidence import NOTHING, Induced, Rule, ToolEvidence
from env_builder.world.documents import usual_frame
from env_builder.world.effects import calculation as calculation_of

MINIMUM_CONSTANT = 3
"""Different questions to a tool of unknown effect that must all have had one answer."""


def recorded(evidence: ToolEvidence) -> Induced:
    """Induce the rule that answers what is on record."""
    return Induced([{"rule": "recorded"}])


def constant(evidence: ToolEvidence) -> Induced:
    """Induce the rule of a tool that always gives one answer."""
    unsure = evidence.effect in ("outside", "unknown")
    is_one = len({step.call.content for step in evidence.steps}) == 1
    enough = len({step.call.key for step in evidence.steps}) >= MINIMUM_CONSTANT
    if evidence.effect != "constant" and not (unsure and enough and is_one):
        return NOTHING
    content = evidence.steps[0].call.content
    numbered = unsure and any(map(str.isdecimal, content)) and not _several_in_one(evidence)
    return Induced([{"rule": "constant", "content": content, **({"first": True} if numbered else {})}])


def _several_in_one(evidence: ToolEvidence) -> bool:
    """Was the tool called twice in a session, or in a world that sessions share? If never, a number in its one answer may count
    its calls."""
    is_shared = evidence.service.starts_from == "shared"
    counts = Counter("" if is_shared else step.call.session_id for step in evidence.steps if not step.call.failed)
    return max(counts.values(), default=0) > 1


def calculation(evidence: ToolEvidence) -> Induced:
    """Induce the rule of a tool that calculates."""
    calculates = calculation_of([step.call for step in evidence.steps]) if evidence.effect == "pure" else None
    return Induced([{"rule": "arithmetic", **calculates._asdict()}]) if calculates else NOTHING


def document(evidence: ToolEvidence) -> Induced:
    """Take over the rules of a read that shows a document, and computes none."""
    return NOTHING if evidence.effect != "read" or computes(evidence) else Induced(evidence.documented["rules"])


def shown(evidence: ToolEvidence) -> list[Rule]:
    """Return the rule that says which record the answers show, of a tool whose answers nothing explains: a real answer of it
    is then understood."""
    tool = evidence.document_tool
    frame = usual_frame((step.call.content, step.shown[2]) for step in evidence.steps if step.shown)
    if tool is None or frame is None:
        return []
    also = evidence.service.also.get(evidence.tool, []) if tool.argument is None else []
    return [{"rule": "shows", "class": tool.entity_class, "argument": tool.argument,
             "field": evidence.service.documents.classes[tool.entity_class].self_field,
             "before": frame[0], "after": frame[1], "also": also}]


def shows(evidence: ToolEvidence) -> Induced:
    """Induce the rule of what a tool shows, where no rule explains its answers."""
    is_other = evidence.effect in ("constant", "pure") or not evidence.has_only("recorded", "refuse")
    return NOTHING if is_other or computes(evidence) else Induced(shown(evidence))


def changes(evidence: ToolEvidence) -> Induced:
    """Induce the rule of a tool that speaks of no record and changes some."""
    also = evidence.service.also.get(evidence.tool)
    return Induced([{"rule": "changes", "also": also}]) if evidence.document_tool is None and also is not None else NOTHING
