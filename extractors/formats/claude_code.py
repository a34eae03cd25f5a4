"""Transcripts of Claude Code: a JSON line for each block that was said, in a tree (`extractors.formats.claude_code_tree`).

Sees: answers told in several lines (each part once, the counts of the last line), results with their error flag, sub-agents
(a session of their own: `<session>~agent-<id>`), branches that were given up (kept as candidates that were not taken), slash
commands with what was typed after them. Compaction, hooks, progress, reminders and other words of the harness become log
events, whole. Does not see the system prompt (no transcript holds it), nor what only `toolUseResult` says.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

import orjson

from extractors.formats.anthropic_blocks import parts
from extractors.formats.claude_code_tree import Line, climb, line_of, text
from extractors.formats.format import Emit, Format, Head, LogRecord, Row
from extractors.formats.instants import microseconds
from extractors.formats.samples import sample
from extractors.formats.usage import tokens

_HARNESS = re.compile(r"\s*(<(local-command-[a-z]+|system-reminder|bash-[a-z]+|task-notification|user-memory-input)>"
                      r"|\[Request interrupted by user|Caveat: The messages below were generated)")
_COMMAND = re.compile(r"\s*<command-(name|message)>")
_SPOKEN = ("message", "call", "result")


def claims(head: Head) -> bool:
    """One of the first lines stands in the tree, or is one that only these transcripts begin with."""
    return head.layout == "lines" and any(_is_line(each) for each in head.objects)


def _is_line(value: Row) -> bool:
    return ("parentUuid" in value and "sessionId" in value and "type" in value) or (
        value.get("type") == "summary" and "leafUuid" in value) or (
        value.get("type") == "file-history-snapshot" and "messageId" in value)


def read(records: Iterable[LogRecord], emit: Emit) -> None:
    """The conversations of one transcript."""
    lines: list[Line] = []
    seen: set[tuple[str | None, str]] = set()
    for record in records:
        if not isinstance(record.value, dict) or not isinstance(record.value.get("type"), str):
            emit.reject(record, "no_line", "the record is no line of a transcript (an object with a type); repair it")
            continue
        line = line_of(record)
        if line.uuid is not None and (line.session_id, line.uuid) in seen:
            emit.reject(record, "duplicate_line", f"line {line.uuid} is in the file already; nothing to mend")
            continue
        seen.add((line.session_id, line.uuid or record.record_id))
        lines.append(line)
    climb(lines)
    teller = _Teller(emit, {line.parent for line in lines if line.value.get("isMeta") is True and line.said})
    for line in lines:
        with emit.guarded(line.record):
            teller.tell(line)


class _Teller:
    """Emits the lines of one file."""

    def __init__(self, emit: Emit, expanded: set[str | None]) -> None:
        self._emit = emit
        self._expanded = expanded
        """Lines that the harness follows with the text of a command."""
        self._positions: dict[str | None, int] = {}
        self._answers: dict[tuple[str | None, str], list[Row]] = {}
        """Events of each answer told so far."""

    def tell(self, line: Line) -> None:
        """Emit one line."""
        value = line.value
        synthetic = line.said and value["message"].get("model") == "<synthetic>"
        if not line.said or synthetic or value.get("isMeta") is True or value.get("isCompactSummary") is True:
            kind = "synthetic" if synthetic else "meta" if value.get("isMeta") is True else value.get("subtype")
            kind = "compact summary" if value.get("isCompactSummary") is True else kind
            self._log(line, f"{value['type']} {kind}" if kind else str(value["type"]), orjson.dumps(line.record.value).decode())
        elif value["type"] == "user":
            self._user(line)
        else:
            self._assistant(line)

    def _user(self, line: Line) -> None:
        """A prompt, results, or both; what the harness said in the user's name becomes a log event."""
        message = line.value["message"]
        content = message.get("content")
        blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
        said: list[Any] = []
        for block in blocks if isinstance(blocks, list) else ():
            words = block.get("text") if isinstance(block, dict) and block.get("type") == "text" else None
            if isinstance(words, str) and _COMMAND.match(words):
                words, told = self._command(line, words)
                block = {"type": "text", "text": words}
            else:
                told = not (isinstance(words, str) and _HARNESS.match(words))
            if told:
                said.append(block)
            else:
                self._log(line, "harness", words)
        if said or not isinstance(blocks, list) or not blocks:
            for part in parts({**message, "role": "user", "content": said if isinstance(blocks, list) else blocks}):
                self._event(line, part)

    def _command(self, line: Line, words: str) -> tuple[str, bool]:
        """A slash command as it was typed, and whether it was said to the model."""
        name, typed = _between(words, "command-name"), _between(words, "command-args")
        found = " ".join(filter(None, (name, typed)))
        told = line.uuid in self._expanded or bool(typed)
        return (found, True) if told and found else (words, False)

    def _assistant(self, line: Line) -> None:
        """Parts of an answer that no line told before; a text that grew takes the place of its beginning."""
        message = line.value["message"]
        told = self._answers.setdefault((line.session_id, line.answer_id or line.record.record_id), [])
        new = 0
        for part in parts({**message, "role": "assistant"}):
            if not _told_again(part, told):
                told.append(self._event(line, part) if _is_worded(part) else self._log(line, "blank", part["content"]))
                new += 1
        usage = tokens(message.get("usage"))
        if usage is not None and told:
            told[0]["usage"] = orjson.dumps(usage, option=orjson.OPT_SORT_KEYS).decode()
        if not new:
            self._emit.reject(line.record, "repeated_part", "an earlier line of the answer tells the same; nothing to mend")

    def _event(self, line: Line, part: Row) -> Row:
        session_id = self._session(line)
        position = self._positions.get(session_id, 0)
        if part["kind"] in _SPOKEN and line.taken:
            self._positions[session_id] = position + 1
        notes = part["lossy"] if line.taken else [*part["lossy"], "candidate branch", "branch given up"]
        model = text(line.value["message"].get("model")) if line.said else None
        return self._emit.event(line.record, **{
            "session_id": session_id, "position": position, "model": model,
            "happened_at": microseconds(line.value.get("timestamp")), "service": self._emit.envelope.service(line.record.value),
            "name": self._emit.envelope.identity(line.record.value), **part, "lossy": notes})

    def _log(self, line: Line, tool: str, content: str | None) -> Row:
        return self._emit.event(line.record, "log", session_id=self._session(line), tool=tool, content=content, lossy=[],
                                happened_at=microseconds(line.value.get("timestamp")))

    @staticmethod
    def _session(line: Line) -> str | None:
        if line.agent is None or line.session_id is None:
            return line.session_id
        return f"{line.session_id}~agent-{line.agent}"


def _is_worded(part: Row) -> bool:
    """Whether a part says anything: streams leave blank texts behind."""
    return part["kind"] != "message" or bool(part["lossy"]) or bool((part["content"] or "").strip())


def _told_again(part: Row, told: list[Row]) -> bool:
    """Whether a line of the same answer told this part, or its beginning."""
    for row in told:
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
    """What stands in the first element of that name, without white space around it."""
    _, _, rest = words.partition(f"<{tag}>")
    found, end, _ = rest.partition(f"</{tag}>")
    return found.strip() if end else ""


FORMAT = Format(name="claude_code", history="once", claims=claims, read=read, sample=sample("claude_code.jsonl"), apart=False,
                rank=15)
