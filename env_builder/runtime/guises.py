"""What an agent sees in the place of a room's own names and orders, where a rollout asks for it: ids re-bound, lists shuffled.

In: a seed, what is switched on, the ids of the world and the places of lists whose order says nothing. Out: the opening, the
user's words and answers as the agent sees them, and what it says and gives in the room's own names. It stands between agent and
room: room, journal and rubric know nothing of it, so that the grader replays the journal as it is.
"""

from __future__ import annotations

import json
import random
from collections.abc import Mapping, Sequence
from typing import Any

from .answers import parse
from .canonical import canonical
from .records import Result
from .renaming import Renaming

SWITCHES = ("rebound", "shuffled")
STYLES: tuple[dict[str, Any], ...] = tuple(
    {"ensure_ascii": escaped, "separators": marks, "indent": indent}
    for indent in (None, 2, 4, 1) for marks in (None, (",", ":")) for escaped in (False, True))
"""How JSON is written: lists are shuffled in texts that one of these gives, byte for byte."""
ANY = "*"


class Guise:
    """One episode's; forks share it."""

    def __init__(self, seed: int, renaming: Renaming | None, places: Mapping[str, Sequence[Sequence[str]]]) -> None:
        self._seed = seed
        self._renaming = renaming
        self._places = places

    def text(self, text: str) -> str:
        """A text of the room as the agent sees it."""
        return self._renaming.shown(text) if self._renaming else text

    def meant(self, value: Any) -> Any:
        """What the agent says or gives, in the room's own names."""
        return self._renaming.meant(value) if self._renaming else value

    def carried(self, value: Any) -> Any:
        """What is written in the room's own names as the agent has to give it."""
        return self._renaming.carried(value) if self._renaming else value

    def shown(self, tool: str, arguments: Any, result: Result) -> Result:
        """The room's answer as the agent sees it; the order of lists hangs on the seed and the question alone."""
        content = result.content
        places = self._places.get(tool, ()) if not result.is_error else ()
        if places:
            content = _shuffled(content, places, random.Random(canonical([self._seed, "shuffled", tool, arguments])))
        return result._replace(content=self.text(content))


def lists_in(value: Any) -> list[tuple[tuple[str, ...], list[Any]]]:
    """(place, list) of every list of two and more in a JSON value: names of fields on the way, `*` for elements and for ids."""
    found: list[tuple[tuple[str, ...], list[Any]]] = []
    left: list[tuple[tuple[str, ...], Any]] = [((), value)]
    while left:
        place, one = left.pop()
        if isinstance(one, dict):
            left += [((*place, ANY if any(map(str.isdigit, name)) else name), each) for name, each in reversed(one.items())]
        elif isinstance(one, list):
            left += [((*place, ANY), each) for each in reversed(one)]
            if len(one) > 1:
                found.append((place, one))
    return found


def _shuffled(content: str, places: Sequence[Sequence[str]], draw: random.Random) -> str:
    """The text with the lists at these places in another order; as it is where it is not written in a known style."""
    value = parse(content)
    if not isinstance(value, dict | list):
        return content
    style = next((style for style in STYLES if json.dumps(value, **style) == content), None)
    if style is None:
        return content
    value = json.loads(content)
    wanted = {tuple(place) for place in places}
    for place, found in lists_in(value):
        if place in wanted:
            draw.shuffle(found)
    return json.dumps(value, **style)
