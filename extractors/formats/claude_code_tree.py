"""The tree of a Claude Code transcript: which lines are of the main conversation, of a sub-agent, of a branch given up.

In: the lines of one file, in file order. Out: for each its conversation, and whether it was taken. The last line's ancestors
were taken, and with them the other lines of the same answers and the results of their calls: parallel calls and stream
snapshots branch the tree without giving anything up. Does not see parents in other files: a line without a known parent goes
on where the file stands, unless it is a prompt without any: that is the first prompt, edited.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from extractors.formats.format import LogRecord, Row

_SAID = ("user", "assistant")


@dataclass(slots=True)
class Line:
    """A line of the transcript; of a sub-agent's progress, the line inside it."""

    record: LogRecord
    value: Row
    session_id: str | None
    agent: str | None
    parent: str | None
    taken: bool = True

    @property
    def said(self) -> bool:
        """Whether it holds a message."""
        return self.value.get("type") in _SAID and isinstance(self.value.get("message"), dict)

    @property
    def uuid(self) -> str | None:
        """Its name."""
        return text(self.value.get("uuid"))

    @property
    def answer_id(self) -> str | None:
        """Id of the model's answer that it is a part of."""
        return text(self.value["message"].get("id")) if self.said and self.value["type"] == "assistant" else None

    def blocks(self) -> Iterator[Row]:
        """The blocks of its message."""
        content = self.value["message"].get("content") if self.said else None
        yield from (each for each in (content if isinstance(content, list) else ()) if isinstance(each, dict))


def line_of(record: LogRecord) -> Line:
    """A record as a line; whom it belongs to, as far as it says so itself."""
    value: Row = record.value
    session_id, data = text(value.get("sessionId")), value.get("data")
    inner = data.get("message") if value.get("type") == "progress" and isinstance(data, dict) else None
    if isinstance(data, dict) and isinstance(inner, dict) and inner.get("type") in _SAID:
        agent = text(data.get("agentId")) or text(value.get("parentToolUseID")) or "unnamed"
        return Line(record, {"timestamp": value.get("timestamp"), **inner}, session_id, agent, text(inner.get("parentUuid")))
    side = (text(value.get("agentId")) or "") if value.get("isSidechain") is True else None
    return Line(record, value, session_id, side,
                text(value.get("parentUuid")) or text(value.get("logicalParentUuid")))


def climb(lines: list[Line]) -> None:
    """Say of each line what conversation it is of and whether it was taken."""
    known: dict[str | None, Line] = {line.uuid: line for line in lines if line.uuid is not None}
    stated = next((line.session_id for line in lines if line.session_id is not None), None)
    groups: dict[tuple[str | None, str | None], list[Line]] = {}
    for line in lines:
        line.session_id = line.session_id or stated
        if line.agent == "":
            line.agent = _root(line, known)
        groups.setdefault((line.session_id, line.agent), []).append(line)
    for group in groups.values():
        _take(group, known)


def _root(line: Line, known: dict[str | None, Line]) -> str:
    """Name of the first line above: older versions give sub-agents no id."""
    seen: set[str | None] = set()
    while line.parent in known and known[line.parent].agent is not None and line.uuid not in seen:
        seen.add(line.uuid)
        line = known[line.parent]
    return (line.uuid or "unnamed")[:8]


def _take(group: list[Line], known: dict[str | None, Line]) -> None:
    """Mark the lines of one conversation that were given up."""
    parents = _parents(group, known)
    tip = next((line for line in reversed(group) if line.said), None)
    path: set[int] = set()
    line = tip
    while line is not None and id(line) not in path:
        path.add(id(line))
        line = parents.get(id(line))
    answers = {line.answer_id for line in group if id(line) in path and line.answer_id is not None}
    kept = [line for line in group if id(line) in path or line.answer_id in answers]
    calls = {block["id"] for line in kept for block in line.blocks() if "input" in block and isinstance(block.get("id"), str)}
    for line in group:
        if line.said and not (id(line) in path or line.answer_id in answers or _answers(line, calls)):
            line.taken = False


def _parents(group: list[Line], known: dict[str | None, Line]) -> dict[int, Line]:
    """The line before each, by identity."""
    found: dict[int, Line] = {}
    before: Line | None = None
    for line in group:
        parent = known.get(line.parent) if line.parent is not None else None
        if parent is not None:
            found[id(line)] = parent
        elif before is not None and not _is_first_prompt(line):
            found[id(line)] = before
        if line.uuid is not None:
            before = line
    return found


def _is_first_prompt(line: Line) -> bool:
    """Whether a line without a parent begins the conversation anew, as an edited first prompt does."""
    value = line.value
    return line.said and value["type"] == "user" and "parentUuid" in value and value["parentUuid"] is None and not (
        value.get("isCompactSummary") or value.get("isMeta") or line.record.value is not value)


def _answers(line: Line, calls: Iterable[Any]) -> bool:
    return any(block.get("tool_use_id") in calls for block in line.blocks() if isinstance(block.get("tool_use_id"), str))


def text(value: Any) -> str | None:
    """An id that is one."""
    return value if isinstance(value, str) and value else None
