"""Arguments that name an entity only together, and the one name that they make.

A program's `joint` lists sets of arguments. A call with all of such a set has one argument more inside: its name is theirs with
`+` between, its value theirs with `/` between. Agents neither give it nor see it. Sees: texts and whole numbers.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

BETWEEN_NAMES = "+"
BETWEEN_VALUES = "/"


def joined(arguments: dict[str, Any], joints: Iterable[Sequence[str]]) -> dict[str, Any]:
    """Return the arguments with the one name that those of each set make together, where all of them are given."""
    more: dict[str, Any] = {}
    for names in joints:
        values = [arguments.get(name) for name in names]
        if all(type(value) in (str, int) for value in values):
            more[BETWEEN_NAMES.join(names)] = BETWEEN_VALUES.join(map(str, values))
    return {**arguments, **more} if more else arguments


def apart(arguments: Any) -> Any:
    """Return the arguments as agents give them; what is no object stays as it is."""
    if not isinstance(arguments, dict):
        return arguments
    return {name: value for name, value in arguments.items() if not is_joint(name, arguments)}


def names_together(key: str, words: Collection[str]) -> bool:
    """Return whether words name an entity: by its key, or by all the parts of a joint one."""
    return key in words or (BETWEEN_VALUES in key and all(part in words for part in key.split(BETWEEN_VALUES)))


def is_joint(name: str, arguments: Mapping[str, Any]) -> bool:
    """Return whether the argument stands for several others of the call."""
    return BETWEEN_NAMES in name and all(part in arguments for part in name.split(BETWEEN_NAMES))


def key_argument(arguments: Mapping[str, Any]) -> str | None:
    """Return the only argument, or the one that stands for all the others; None where neither is."""
    if len(arguments) == 1:
        return next(iter(arguments))
    return next((name for name in arguments if is_joint(name, arguments) and set(
        name.split(BETWEEN_NAMES)) == arguments.keys() - {name}), None)
