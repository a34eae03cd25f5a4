"""Tools that compute one number from the numbers that they are given (`world.computed`), as rules.

In: the calls of a tool that worked, with their answers. Out: a `value` rule, or None.
"""

from __future__ import annotations

import json
from typing import Any

from env_builder.behaviour.evidence import UNEXPLAINED, Induced, ToolEvidence, one_or_none
from env_builder.behaviour.templates import AGAINST, limits
from env_builder.runtime.texts import admits
from env_builder.world.computed import computations, examples_of, varying
from env_builder.world.documents import STYLES
from env_builder.world.replay import LoggedStep


def induce(evidence: ToolEvidence) -> Induced:
    """Induce the rule of a tool that computes a number from its arguments."""
    return one_or_none(conversion_rule(evidence.steps) if evidence.has_only(*UNEXPLAINED) else None)


def computes(evidence: ToolEvidence) -> bool:
    """Return whether the tool computes what it answers from the question alone: then its answers show no record. What repeats
    its key does, for a record."""
    documented = evidence.document_tool
    if documented is None:
        return conversion_rule(evidence.steps) is not None
    is_record = evidence.service.documents.classes[documented.entity_class].self_field is not None
    return not is_record and conversion_rule(evidence.steps) is not None


def conversion_rule(steps: list[LoggedStep]) -> dict[str, Any] | None:
    """Return the `value` rule of one tool."""
    done = list({(step.call.key, step.call.content): step.call for step in steps if not step.call.failed}.values())
    values = [_parsed(call.content) for call in done]
    style = next((style for style in STYLES if all(
        json.dumps(value, **style) == call.content for value, call in zip(values, done, strict=True))), None)
    field = varying(values)
    if style is None or field is None:
        return None
    examples = examples_of(done, values, field)
    expression = next(computations(examples), None)
    when = limits([one.arguments for one in examples], set(examples[0].arguments))
    refused = [step for step in steps if step.call.failed and admits(when, step.call.arguments)]
    if expression is None or len(refused) > AGAINST * len(done):
        return None
    whole = expression if not field else ["object", [
        [name, expression if name == field else ["constant", value]] for name, value in values[0].items()]]
    return {"rule": "value", "when": {**when, "values": {}}, "value": whole, "style": dict(style)}


def _parsed(content: str) -> Any:
    try:
        return json.loads(content)
    except (ValueError, RecursionError):
        return None
