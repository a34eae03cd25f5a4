"""What rules would have said to a logged call, from what was known just before it; and whether the real tool said the same.

In: a tool's rules, a step of the log, all rows that were listed. Out: the answer, or None. Sees: the thing that the call names,
and others as its session knew them. Does not see: answers on record, which would only say themselves again.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from env_builder.behaviour.trials import Before, Seen
from env_builder.runtime.behaviour import answer
from env_builder.runtime.ends import masked
from env_builder.runtime.records import Answer
from env_builder.runtime.tables import Table
from env_builder.world.replay import Step


def answered(rules: list[dict[str, Any]], step: Step, showing: dict[str, Any], rows: Mapping[str, Table]) -> Answer | None:
    """What these rules say to the step's call. `showing`: `class` and `argument` by which the call names a thing."""
    call = step.call
    name = (showing["class"], str(call.arguments.get(showing["argument"])))
    known = {} if showing["argument"] is None or step.before is None else {name: step.before}
    return answer({"tool": call.tool, "rules": rules}, call.key, call.arguments, Before(Seen(step, known), rows))


def right(found: Answer, step: Step, rule: dict[str, Any]) -> bool:
    """Did the real tool say and make the same, but for what nobody can foretell from one session? `rule`: its maker."""
    if step.call.failed or found.is_error:
        return found.is_error and step.call.failed and found.content == step.call.content
    if step.shown is None:
        return False
    loose = list(rule.get("volatile", []))
    if rule["rule"] == "create" and rule["fields"][rule["field"]][0] == "following":
        loose.append([rule["field"]])
    named = [rule.get("field")] not in loose
    return any((not named or name == step.shown[:2]) and masked(text, loose) == masked(step.shown[2], loose)
               for name, text in found.documents)
