"""Transcripts of Claude Code: a JSON line for each block of a message, in a tree.

Sees: answers in several lines (each part once, the counts of the last line), results with their error flag, sub-agents
(a session of their own: `<session>~agent-<id>`), branches that were given up (kept as candidates that were not taken), slash
commands with what was typed after them. Compaction, hooks, progress, reminders and other words of the harness become log
events, whole. Does not see the system prompt (no transcript holds it), nor what only `toolUseResult` says.

Of the tree: the last line's ancestors were taken, and with them the other lines of the same answers and the results of their
calls: parallel calls and stream snapshots branch the tree without giving anything up. Does not see parents in other files: a
line without a known parent goes on where the file stands, unless it is a prompt without any: that is the first prompt, edited.
Where no line of a conversation has a known parent, it is no tree: its lines follow each other.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import orjson

from extractors.formats.chat import SPOKEN
from extractors.formats.format import Emit, Format, Head, LogRecord, LogRecords, Row, sample
from extractors.formats.instants import microseconds
from extractors.formats.provider_parts import anthropic_parts
from extractors.formats.sampling import tokens
from extractors.formats.values import dumped, objects_in, word_of
from warehouse.vocabulary import CHECKOUT

_HARNESS = re.compile(r"\s*(<(local-command-[a-z]+|system-reminder|bash-[a-z]+|task-notification|user-memory-input)>"
                      r"|\[Request interrupted by user|Caveat: The messages below were generated)")
_COMMAND = re.compile(r"\s*<command-(name|message)>")
_MESSAGE_TYPES = ("user", "assistant")


def claims(head: Head) -> bool:
    """One of the first lines stands in the tree, or is one that only these transcripts begin with."""
    return head.layout == "lines" and any(
        {"parentUuid", "sessionId", "type"} <= each.keys() or (each.get("type") == "summary" and "leafUuid" in each)
        or (each.get("type") == "file-history-snapshot" and "messageId" in each) for each in head.objects)


def read(records: LogRecords, emit: Emit) -> None:
    """Read the conversations of one transcript."""
    lines: list[TranscriptLine] = []
    ids_of_lines: set[tuple[str | None, str]] = set()
    for record in records:
        if not isinstance(record.value, dict) or not isinstance(record.value.get("type"), str):
            emit.reject(record, "no_line", "the record is no line of a transcript (an object with a type); repair it")
            continue
        line = line_of(record)
        if line.uuid is not None and (line.session_id, line.uuid) in ids_of_lines:
            emit.reject(record, "duplicate_line", f"line {line.uuid} is in the file already; no action needed")
            continue
        ids_of_lines.add((line.session_id, line.uuid or record.record_id))
        lines.append(line)
    climb(lines)
    teller = _LineEmitter(emit, {line.parent for line in lines if line.value.get("isMeta") is True and line.has_message})
    for line in lines:
        with emit.guarded(line.record):
            teller.tell(line)
            if not line.taken:
                emit.reject(line.record, "branch_given_up", "the line is of a branch that was given up: its events are kept "
                            "as candidates, and no session has them; no action needed")


class _LineEmitter:
    """Emits the lines of one file."""

    def __init__(self, emit: Emit, expanded: set[str | None]) -> None:
        self._emit = emit
        self._expanded = expanded
        """Lines that the harness follows with the text of a command."""
        self._positions: dict[str | None, int] = {}
        self._answers: dict[tuple[str | None, str], list[Row]] = {}
        """Events of each answer so far."""
        self._checkouts: dict[str | None, Row] = {}
        """Folder and branch of each conversation, as last emitted."""

    def tell(self, line: TranscriptLine) -> None:
        value = line.value
        checkout = {ours: value[name] for ours, name in (("folder", "cwd"), ("branch", "gitBranch"))
                    if isinstance(value.get(name), str) and value[name]}
        if checkout and line.taken and self._checkouts.get(line.conversation) != checkout:
            self._checkouts[line.conversation] = checkout
            self._emit.event(line.record, "log", "checkout", session_id=line.conversation, tool=CHECKOUT, lossy=[],
                             content=dumped(checkout), happened_at=microseconds(value.get("timestamp")))
        synthetic = line.has_message and value["message"].get("model") == "<synthetic>"
        if not line.has_message or synthetic or value.get("isMeta") is True or value.get("isCompactSummary") is True:
            kind = "synthetic" if synthetic else "meta" if value.get("isMeta") is True else value.get("subtype")
            kind = "compact summary" if value.get("isCompactSummary") is True else kind
            self._log(line, f"{value['type']} {kind}" if kind else str(value["type"]), dumped(line.record.value))
        elif value["type"] == "user":
            self._user(line)
        else:   # parts of an answer that no line held before; a text that grew takes the place of its beginning
            rows = self._answers.setdefault((line.session_id, line.answer_id or line.record.record_id), [])
            n_before = len(rows)
            for part in anthropic_parts({**value["message"], "role": "assistant"}):
                if not _is_repeated(part, rows):   # streams leave blank texts behind
                    is_blank = part["kind"] == "message" and not part["lossy"] and not (part["content"] or "").strip()
                    rows.append(self._log(line, "blank", part["content"]) if is_blank else self._event(line, part))
            usage = tokens(value["message"].get("usage"))
            if usage is not None and rows:
                rows[0]["usage"] = orjson.dumps(usage, option=orjson.OPT_SORT_KEYS).decode()
            if len(rows) == n_before:
                self._emit.reject(line.record, "repeated_part",
                                  "an earlier line of the answer tells the same; no action needed")

    def _user(self, line: TranscriptLine) -> None:
        """Emit a prompt, results, or both; what the harness wrote in the user's name becomes a log event."""
        message = line.value["message"]
        content = message.get("content")
        blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
        spoken: list[Any] = []
        for block in blocks if isinstance(blocks, list) else ():
            words = block.get("text") if isinstance(block, dict) and block.get("type") == "text" else None
            if isinstance(words, str) and _COMMAND.match(words):   # as it was typed, where the model got it
                name, typed = _between(words, "command-name"), _between(words, "command-args")
                command = " ".join(filter(None, (name, typed)))
                is_spoken = bool(command and (line.uuid in self._expanded or typed))
                words = command if is_spoken else words
                block = {"type": "text", "text": words}
            else:
                is_spoken = not (isinstance(words, str) and _HARNESS.match(words))
            if is_spoken:
                spoken.append(block)
            else:
                self._log(line, "harness", words)
        if spoken or not isinstance(blocks, list) or not blocks:
            for part in anthropic_parts({**message, "role": "user", "content": spoken if isinstance(blocks, list) else blocks}):
                self._event(line, part)

    def _event(self, line: TranscriptLine, part: Row) -> Row:
        session_id = line.conversation
        position = self._positions.get(session_id, 0)
        if part["kind"] in SPOKEN and line.taken:
            self._positions[session_id] = position + 1
        notes = part["lossy"] if line.taken else [*part["lossy"], "candidate branch", "branch given up"]
        model = word_of(line.value["message"].get("model")) if line.has_message else None
        return self._emit.event(line.record, **{
            "session_id": session_id, "position": position, "model": model,
            "happened_at": microseconds(line.value.get("timestamp")), "service": self._emit.envelope.service(line.record.value),
            "name": self._emit.envelope.identity(line.record.value), **part, "lossy": notes})

    def _log(self, line: TranscriptLine, tool: str, content: str | None) -> Row:
        return self._emit.event(line.record, "log", session_id=line.conversation, tool=tool, content=content, lossy=[],
                                happened_at=microseconds(line.value.get("timestamp")))


def _is_repeated(part: Row, rows: list[Row]) -> bool:
    """Return whether a line of the same answer held this part, or its beginning."""
    for row in rows:
        if row["kind"] != part["kind"]:
            continue
        if part["kind"] == "call" and part["call_id"] is not None:
            if row["call_id"] == part["call_id"]:
                row["arguments"] = part["arguments"]
                return True
        elif part["kind"] == "message":
            had, says = (row.get("content") or "").strip(), part["content"] or ""
            if had and says.startswith(row["content"]):
                row["content"] = says
                return True
        elif all(row.get(key) == part.get(key) for key in ("content", "call_id", "arguments")):
            return True
    return False


def _between(words: str, tag: str) -> str:
    """Return what stands in the first element of that name, without white space around it."""
    _, _, rest = words.partition(f"<{tag}>")
    content, end, _ = rest.partition(f"</{tag}>")
    return content.strip() if end else ""


@dataclass(slots=True)
class TranscriptLine:
    """A line of the transcript; of a sub-agent's progress, the line inside it."""

    record: LogRecord
    value: Row
    session_id: str | None
    agent: str | None
    parent: str | None
    taken: bool = True

    @property
    def conversation(self) -> str | None:
        """Session that its events are of; a sub-agent has its own."""
        return self.session_id if self.agent is None or self.session_id is None else f"{self.session_id}~agent-{self.agent}"

    @property
    def has_message(self) -> bool:
        return self.value.get("type") in _MESSAGE_TYPES and isinstance(self.value.get("message"), dict)

    @property
    def uuid(self) -> str | None:
        return word_of(self.value.get("uuid"))

    @property
    def answer_id(self) -> str | None:
        """Id of the model's answer that it is a part of."""
        return word_of(self.value["message"].get("id")) if self.has_message and self.value["type"] == "assistant" else None

    def blocks(self) -> Iterator[Row]:
        yield from objects_in(self.value["message"].get("content")) if self.has_message else ()


def line_of(record: LogRecord) -> TranscriptLine:
    """Return a record as a line; whom it belongs to, as far as it says so itself."""
    value: Row = record.value
    session_id, data = word_of(value.get("sessionId")), value.get("data")
    inner = data.get("message") if value.get("type") == "progress" and isinstance(data, dict) else None
    if isinstance(data, dict) and isinstance(inner, dict) and inner.get("type") in _MESSAGE_TYPES:
        agent = word_of(data.get("agentId")) or word_of(value.get("parentToolUseID")) or "unnamed"
        line = {"timestamp": value.get("timestamp"), **inner}
        return TranscriptLine(record, line, session_id, agent, word_of(inner.get("parentUuid")))
    side = (word_of(value.get("agentId")) or "") if value.get("isSidechain") is True else None
    parent = word_of(value.get("parentUuid")) or word_of(value.get("logicalParentUuid"))
    return TranscriptLine(record, value, session_id, side, parent)


def climb(lines: list[TranscriptLine]) -> None:
    """Say of each line what conversation it is of and whether it was taken."""
    lines_by_id: dict[str | None, TranscriptLine] = {line.uuid: line for line in lines if line.uuid is not None}
    stated = next((line.session_id for line in lines if line.session_id is not None), None)
    groups: dict[tuple[str | None, str | None], list[TranscriptLine]] = {}
    for line in lines:
        line.session_id = line.session_id or stated
        if line.agent == "":   # older versions give sub-agents no id: the first line above names them
            first, visited = line, set[str | None]()
            while first.parent in lines_by_id and lines_by_id[first.parent].agent is not None and first.uuid not in visited:
                visited.add(first.uuid)
                first = lines_by_id[first.parent]
            line.agent = (first.uuid or "unnamed")[:8]
        groups.setdefault((line.session_id, line.agent), []).append(line)
    for group in groups.values():
        _take(group, lines_by_id)


def _take(group: list[TranscriptLine], lines_by_id: dict[str | None, TranscriptLine]) -> None:
    """Mark the lines of one conversation that were given up."""
    parents: dict[int, TranscriptLine] = {}   # the line before each, by identity
    before: TranscriptLine | None = None
    is_tree = any(each.parent in lines_by_id for each in group if each.parent is not None)
    for each in group:
        value, parent = each.value, lines_by_id.get(each.parent) if each.parent is not None else None
        is_first_prompt = is_tree and (   # an edited first prompt begins the conversation again
            each.has_message and value["type"] == "user" and "parentUuid" in value and value["parentUuid"] is None
            and not (value.get("isCompactSummary") or value.get("isMeta") or each.record.value is not value)
            and not any("tool_use_id" in block for block in each.blocks()))
        if parent is not None:
            parents[id(each)] = parent
        elif before is not None and not is_first_prompt:
            parents[id(each)] = before
        before = each if each.uuid is not None else before
    line = next((each for each in reversed(group) if each.has_message), None)
    path: set[int] = set()
    while line is not None and id(line) not in path:
        path.add(id(line))
        line = parents.get(id(line))
    answers = {each.answer_id for each in group if id(each) in path and each.answer_id is not None}
    kept = [each for each in group if id(each) in path or each.answer_id in answers]
    calls = {block["id"] for each in kept for block in each.blocks() if "input" in block and isinstance(block.get("id"), str)}
    for each in group:
        answered = (block.get("tool_use_id") for block in each.blocks())
        if each.has_message and not (id(each) in path or each.answer_id in answers
                                     or any(isinstance(call_id, str) and call_id in calls for call_id in answered)):
            each.taken = False


FORMAT = Format(name="claude_code", history="once", claims=claims, read=read, sample=sample("claude_code.jsonl"), apart=False,
                rank=15)
