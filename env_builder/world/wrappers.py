"""Answers that something around the tools altered on their way to the agent: a frame around them, a text in their place.

In: a service's calls. Out: the calls with such frames taken off, and without those whose answer was replaced.
Sees: the same few characters around answers of several tools that are also known without them; one long text that several
tools give now and then, to questions that they otherwise answer otherwise. Does not see: an answer that was cut or reworded.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator

from env_builder.runtime.answers import failed, parse
from env_builder.world.calls import Call

MINIMUM_TOOLS = 3
"""Tools that must show the same frame or text: one tool alone may well answer so."""
LONGEST_FRAME = 60
SHORTEST_TEXT = 20
SELDOM = 0.2
"""Share of a tool's answers up to which a text counts as not its own."""
Frame = tuple[str, str]


def taken_off(calls: list[Call]) -> tuple[list[Call], list[Call]]:
    """(calls as the tools answered them, those whose answer is lost)."""
    contents: dict[tuple[str, str], set[str]] = defaultdict(set)
    for call in calls:
        contents[call.tool, call.key].add(call.content)
    frames = sorted(_frames(contents), key=lambda frame: (-len(frame[0]) - len(frame[1]), frame))
    bare = [_bare(call, frames) for call in calls]
    foreign = _foreign(bare)
    lost = [call for call in bare if call.content in foreign.get(call.tool, ())]
    gone = {call.event_id for call in lost}
    return [call for call in bare if call.event_id not in gone], lost


def _frames(contents: dict[tuple[str, str], set[str]]) -> Iterator[Frame]:
    tools: dict[Frame, set[str]] = defaultdict(set)
    for (tool, _), texts in sorted(contents.items()):
        for text in texts:
            for inner in texts:
                before, found, after = text.partition(inner) if inner and inner != text else ("", "", "")
                if found and before and after and len(before) + len(after) <= LONGEST_FRAME:
                    tools[before, after].add(tool)
    return (frame for frame, seen in tools.items() if len(seen) >= MINIMUM_TOOLS)


def _bare(call: Call, frames: list[Frame]) -> Call:
    for before, after in frames:
        if call.content.startswith(before) and call.content.endswith(after) and len(call.content) >= len(before) + len(after):
            content = call.content[len(before): len(call.content) - len(after)]
            parsed = parse(content)
            return call._replace(content=content, parsed=parsed, failed=failed(content, parsed, call.flagged))
    return call


def _foreign(calls: list[Call]) -> dict[str, set[str]]:
    """Tool -> texts among its answers that are not its own."""
    n = Counter(call.tool for call in calls)
    given = Counter((call.content, call.tool) for call in calls if len(call.content) >= SHORTEST_TEXT and not call.failed)
    tools: dict[str, set[str]] = defaultdict(set)
    for (content, tool), times in given.items():
        if times <= SELDOM * n[tool]:
            tools[content].add(tool)
    found: dict[str, set[str]] = defaultdict(set)
    for content, seldom in tools.items():
        if len(seldom) >= MINIMUM_TOOLS:
            for tool in seldom:
                found[tool].add(content)
    return found
