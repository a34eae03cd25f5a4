"""Which arguments name a record only together: those of a reader that other tools take together as well.

In: a service's calls, with answers as JSON text. Out: for each tool the sets of arguments that make one name
(`runtime.joints`). A set is one where a tool with just these arguments shows objects, tells the same when asked again, and has
no name of a change; and where a second tool takes all of it too. Each argument either tells too little alone (it stands beside
several others of the rest, and then another object is shown), or is always given with the same others; not all are of the
second kind. A tool that is nearly always given texts of the same kind under other names names records by them as well.
Sees: two or three arguments that are texts or whole numbers and always given. Does not see: names that only readers take.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from itertools import product

from env_builder.runtime.canonical import canonical
from env_builder.runtime.joints import joined
from env_builder.world.calls import LoggedCall, calls_by_tool
from env_builder.world.effects import equal_repeats, tells_of_a_change

MOST_NAMES = 3
MINIMUM_OBJECTS = 5
"""Different names that must have been given to the reader."""
MINIMUM_REPEATS = 3
"""Equal answers to a question asked again."""
MINIMUM_SHARED = 2
"""Values of each argument that must stand beside several others, with other objects shown."""
MOSTLY = 0.8
Joints = dict[str, list[list[str]]]


def find(calls: list[LoggedCall]) -> Joints:
    """Return the sets of arguments that make one name, by tool."""
    worked = dict(sorted(calls_by_tool(call for call in calls if not call.failed).items()))
    takes = {tool: _always(mine) for tool, mine in worked.items()}
    sets = {tuple(sorted(takes[tool])) for tool, mine in worked.items() if _names_together(mine, takes[tool])}
    joints: Joints = {}
    for names in sorted(sets):
        taking = [tool for tool in worked if takes[tool].issuperset(names)]
        for tool in taking if len(taking) > 1 else ():
            joints.setdefault(tool, []).append(list(names))
        values = {name: {call.arguments[name] for tool in taking for call in worked[tool]} for name in names}
        for tool in sorted(worked.keys() - set(taking)) if len(taking) > 1 else ():
            joints.setdefault(tool, []).extend(_renamed(worked[tool], takes[tool], values))
    return {tool: own for tool, own in sorted(joints.items()) if own}


def _renamed(mine: list[LoggedCall], takes: frozenset[str], values: Mapping[str, set[object]]) -> Iterator[list[str]]:
    """Yield the arguments of a tool that make such a name under other names, in the order of the own ones: `from` and `to` are
    where a thing is. `values`: those that each of the own arguments was given."""
    options = [[name] if name in takes else [
        other for other in sorted(takes - values.keys()) if len(given := {call.arguments[other] for call in mine}) > 1
        and all(isinstance(value, str) for value in given)
        and sum(call.arguments[other] in values[name] for call in mine) >= MOSTLY * len(mine)] for name in values]
    yield from (list(names) for names in product(*options) if len(set(names)) == len(names))


def applied(calls: list[LoggedCall], joints: Joints) -> list[LoggedCall]:
    """Return the calls with the names that their arguments make together."""
    return [_joined(call, joints[call.tool]) if call.tool in joints else call for call in calls]


def _joined(call: LoggedCall, joints: list[list[str]]) -> LoggedCall:
    arguments = joined(call.arguments, joints)
    return call._replace(arguments=arguments, key=canonical(arguments))


def _always(mine: list[LoggedCall]) -> frozenset[str]:
    """Return the arguments that every call gives, as a text or a whole number."""
    return frozenset.intersection(*(
        frozenset(name for name, value in call.arguments.items() if type(value) in (str, int)) for call in mine))


def _names_together(mine: list[LoggedCall], names: frozenset[str]) -> bool:
    """Return whether the tool shows objects that these arguments name together, and none of them alone."""
    is_reader = equal_repeats(mine, shared=True) >= MINIMUM_REPEATS and not tells_of_a_change(mine[0].tool, "")
    if not is_reader or not 1 < len(names) <= MOST_NAMES or any(call.arguments.keys() != names for call in mine) or sum(
            isinstance(call.parsed, dict) for call in mine) < MOSTLY * len(mine):
        return False
    questions = {call.key: call for call in mine}
    shared = [_shared(list(questions.values()), name) for name in sorted(names)]
    return len(questions) >= MINIMUM_OBJECTS and any(shared) and None not in shared


def _shared(questions: list[LoggedCall], name: str) -> bool | None:
    """Return whether several values of the argument each stand beside others of the rest, with other objects shown; None where
    they stand beside others and the same object is shown."""
    objects: dict[object, list[str]] = defaultdict(list)
    for call in questions:
        objects[call.arguments[name]].append(call.content)
    several = [shown for shown in objects.values() if len(shown) > 1]
    if any(len(set(shown)) == 1 for shown in several):
        return None
    return True if len(several) >= MINIMUM_SHARED else None if several else False
