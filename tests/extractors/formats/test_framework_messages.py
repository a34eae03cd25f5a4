"""Conversations that agent frameworks keep give the turns that they had, in whatever order and envelope they lie."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest

from extractors.configuration import Source
from extractors.formats.format import Head
from extractors.formats.framework_messages import FORMAT
from extractors.inventory import SourceFile
from extractors.reading import read
from extractors.sessions import assemble

SHAPES = Path(__file__).parent / "shapes"
CALL = {"type": "tool-call", "toolCallId": "c1", "toolName": "find_lamp", "input": {"id": 7}}
RESULT = {"type": "tool-result", "toolCallId": "c1", "toolName": "find_lamp", "output": {"type": "json", "value": {"price": 9}}}


def turns(path: Path) -> list[tuple[str, str | None, str | None, datetime | None]]:
    """Return kind, tool, content and time of each turn."""
    reading = read(SourceFile(path, path.name, Source()))
    made = assemble(reading.events, reading.declarations).turns.sort("session_id", "position")
    return made.select("kind", "tool", "content", "happened_at").rows()


@pytest.mark.parametrize("is_newest_first", [False, True])
def test_each_turn_is_as_of_the_checkpoint_that_brought_it(tmp_path: Path, is_newest_first: bool) -> None:
    lines = (SHAPES / "langgraph_checkpoints.jsonl").read_text("utf-8").splitlines()
    (tmp_path / "states.jsonl").write_text("\n".join(lines[::-1] if is_newest_first else lines) + "\n", "utf-8")
    made = turns(tmp_path / "states.jsonl")
    assert [row[0] for row in made] == ["message", "call", "message"]
    assert [row[3] for row in made] == [datetime(2026, 1, 1, 0, minute, tzinfo=UTC) for minute in (1, 2, 4)]


def test_calls_late_in_a_plain_conversation_are_read(tmp_path: Path) -> None:
    talk = [{"role": "user" if n % 2 == 0 else "assistant", "content": f"word {n}"} for n in range(10)]
    plain = {"session_id": "a", "messages": talk}
    calls = [{"role": "assistant", "content": [CALL]}, {"role": "tool", "content": [RESULT]}]
    late = {"session_id": "b", "messages": [*talk, *calls]}
    (tmp_path / "log.jsonl").write_text("\n".join(map(json.dumps, [plain] * 40 + [late])) + "\n", "utf-8")
    assert turns(tmp_path / "log.jsonl")[-1][:3] == ("call", "find_lamp", '{"price":9}')


def test_text_around_a_tagged_call_stays(tmp_path: Path) -> None:
    text = 'Let me look.\n<tool_call>\n{"name": "find_lamp", "arguments": {"id": 7}}\n</tool_call>'
    messages = [{"role": "user", "content": "Which lamp?"}, {"role": "assistant", "content": text},
                {"role": "tool", "content": "<tool_response>\nred\n</tool_response>"}]
    (tmp_path / "log.jsonl").write_text(json.dumps({"id": "s", "messages": messages}) + "\n", "utf-8")
    assert [row[:3] for row in turns(tmp_path / "log.jsonl")] == [
        ("message", None, "Which lamp?"), ("message", None, "Let me look."), ("call", "find_lamp", "red")]


def test_a_record_of_no_messages_is_rejected_and_the_others_are_read(tmp_path: Path) -> None:
    first = (SHAPES / "langchain_dicts.jsonl").read_text("utf-8").splitlines()[0]
    (tmp_path / "log.jsonl").write_text(f'{first}\n{{"thread_id": "t9", "messages": [1, 2]}}\n', "utf-8")
    reading = read(SourceFile(tmp_path / "log.jsonl", "log.jsonl", Source()))
    rejected = reading.decisions.filter(~reading.decisions["kept"])
    assert reading.events.height > 3 and rejected["reason"].to_list() == ["no_messages"]


@pytest.mark.parametrize("record", [
    {"id": "b7", "steps": [{"task": "compile", "seconds": 4}, {"task": "test", "seconds": 9}]},
    {"id": "t1", "events": [{"from": "0xa1", "to": "0xb2", "value": 5}, {"from": "0xb2", "to": "0xc3", "value": 2}]},
    {"id": "m1", "history": [{"source": "sensor 4", "type": "reading", "content": "21.5"}]}])
def test_lists_of_another_kind_are_not_claimed(record: dict[str, object]) -> None:
    assert not FORMAT.claims(Head("lines", [record]))
