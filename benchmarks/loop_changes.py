"""How the services of loop.py change: a rule for who may have what, and the name of a tool. Nothing that builds imports this.

Each rule is a stricter one, in the words of the service's policy: what a customer asked for and got before is declined from
then on. The service's own agents follow it; its tools do not enforce it. A policy of the loop learns of it from logs alone.
"""

from __future__ import annotations

import functools
import random
from collections.abc import Callable
from copy import copy
from typing import Any, NamedTuple

SUFFIX = "_v2"


class Rule(NamedTuple):
    """A rule that becomes stricter."""

    goal: str
    """Kind of wish that it is about."""
    applies: Callable[[Any, Any, Any], bool]
    """(service, customer, goal) -> whether it forbids the wish."""
    reason: str
    before: str
    """Words of the policy, and what they become."""
    after: str


RULES = {
    "shop_refunds": Rule(
        "refund", lambda service, _, goal: service.t["orders"][goal.slots["order_id"]]["total"] > 100,
        "the refund is above 100.00 EUR and needs a manager", "200.00 EUR", "100.00 EUR"),
    "saas_seats": Rule(
        "plan", lambda _, __, goal: goal.slots["plan"] == "starter", "the starter plan is no longer sold",
        "Downgrades only", "The starter plan is no longer sold. Downgrades only"),
    "gym_classes": Rule(
        "book", lambda service, who, _: bool(service.rows("bookings", member=who, state="open")), "you have an open booking",
        "At most 3 open bookings", "At most 1 open booking"),
    "it_access": Rule(
        "read", lambda service, who, _: service.t["people"][who]["kind"] == "contractor", "contractors get no access",
        "Contractors never get\nwrite access and their access ends within 30 days", "Contractors get no access"),
}


def change_rule(service: Any) -> str:
    """Make the service's rule stricter, in its policy and for all customers to come. Return the reason it is declined with."""
    rule = RULES[service.name]
    if rule.before not in service.policy:
        raise ValueError(f"the policy of {service.name} does not say {rule.before!r}")
    service.policy = service.policy.replace(rule.before, rule.after)
    service.kinds = [functools.partial(_ruled, kind, rule) for kind in service.kinds]
    return rule.reason


def _ruled(kind: Callable[..., Any], rule: Rule, service: Any, rng: random.Random, who: Any) -> Any:
    """Return a wish, as it is right to answer it by the new rule."""
    goal = kind(service, rng, who)
    if not goal or goal.kind != rule.goal or not goal.act or not rule.applies(service, who, goal):
        return goal
    declined = copy(goal)
    declined.refuse, declined.forced, declined.act, declined.facts = rule.reason, goal.act, [], None
    return declined


def rename(service: Any, old: str) -> str:
    """Give a tool another name in what the service shows. Return the new name; who calls the old one is to be refused."""
    new = old + SUFFIX
    service.tools = {**service.tools, new: service.tools[old]}
    shown = service.schema
    service.schema = lambda: (tool for tool in shown() if tool["name"] != old)
    return new
