"""Spans of one conversation in several files: the same sessions and turns as from one file that holds them all."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from polars.testing import assert_frame_equal

from extractors.formats import registered
from extractors.inventory import discover
from extractors.reading import read
from extractors.sessions import AssembledSessions, assemble

SHAPES = Path(__file__).parent / "formats" / "shapes"
SAMPLES = [each for each in registered() if each.history in ("spans", "traces") or each.name == "helicone"]
FORMATS = [each.name for each in SAMPLES]
_COLUMNS = ["session_id", "position", "kind", "role", "content", "tool", "arguments", "call_id", "happened_at", "answered_at",
            "is_error", "model"]
Records = list[Any]
PLANS: dict[str, Callable[[int, int], int]] = {
    "halves": lambda place, n: int(place * 2 >= n), "in turns": lambda place, n: place % 2,
    "in turns, the second first": lambda place, n: (place + 1) % 2, "a file each": lambda place, n: place}


def records_of(content: bytes) -> tuple[Records, str]:
    """Return the records of a sample, as small as they can be, and the ending of its files."""
    lines = content.decode().splitlines()
    if not lines[0].startswith(("{", "[")):
        return lines, ".csv"
    try:
        values = json.loads(content)
    except json.JSONDecodeError:
        values = [json.loads(line) for line in lines]
    values = values if isinstance(values, list) else [values]
    return [part for value in values for part in _single(value)], ".jsonl"


def _single(value: dict[str, Any]) -> Records:
    """Return a batch or a page as one for each of its spans."""
    if "resourceSpans" in value:
        return [{"resourceSpans": [{**resource, "scopeSpans": [{**scope, "spans": [span]}]}]}
                for resource in value["resourceSpans"] for scope in resource["scopeSpans"] for span in scope["spans"]]
    return [{**value, "data": [each]} for each in value["data"]] if isinstance(value.get("data"), list) else [value]


def assembled(folder: Path, files: dict[Any, Records], ending: str) -> AssembledSessions:
    """Write the records as files, and read them the public way."""
    folder.mkdir()
    for name, records in files.items():
        lines = [each if isinstance(each, str) else json.dumps(each, ensure_ascii=False) for each in records]
        (folder / f"{name}{ending}").write_text("".join(f"{line}\n" for line in lines), "utf-8")
    readings = [read(each) for each in discover([folder])[0]]
    return assemble(pl.concat([each.events for each in readings]), pl.concat([each.declarations for each in readings]))


def compared(made: AssembledSessions) -> pl.DataFrame:
    return made.turns.select(_COLUMNS).sort("session_id", "position")


def samples() -> list[Any]:
    """Return the samples of all formats of traces, and shapes of them, that have several records."""
    contents = {each.name: each.sample() for each in SAMPLES}
    contents |= {path.name: path.read_bytes() for path in sorted(SHAPES.glob("lang*")) if "ui_observations" not in path.name}
    split = {name: records_of(content) for name, content in contents.items()}
    return [pytest.param(*each, id=name) for name, each in split.items() if len(each[0]) > 1 + (each[1] == ".csv")]


@pytest.mark.parametrize("plan", PLANS)
@pytest.mark.parametrize(("records", "ending"), samples())
def test_spans_in_several_files_are_the_conversation_of_one(records: Records, ending: str, plan: str, tmp_path: Path) -> None:
    header, rows = (records[:1], records[1:]) if ending == ".csv" else ([], records)
    files: dict[Any, Records] = {}
    for place, record in enumerate(rows):
        files.setdefault(PLANS[plan](place, len(rows)), [*header]).append(record)
    whole, split = (assembled(tmp_path / name, each, ending) for name, each in (("whole", {0: records}), ("split", files)))
    assert whole.turns.height
    assert_frame_equal(compared(split), compared(whole))
    assert split.sessions["session_id"].to_list() == whole.sessions["session_id"].to_list()
    assert split.feedback["value"].to_list() == whole.feedback["value"].to_list()


def test_every_format_of_traces_is_held_to_it() -> None:
    names = {param.id for param in samples()}
    assert {name for name in FORMATS if name not in names} <= {"mlflow"}, "a record of MLflow is a whole trace"
    assert {"otlp", "langfuse", "langsmith", "phoenix_spans", "logfire", "weave", "helicone", "braintrust"} <= names


def _chat(number: int, prompt: list[tuple[str, str]], answer: str, trace: int, **attributes: str) -> dict[str, Any]:
    def messages(each: list[tuple[str, str]]) -> str:
        return json.dumps([{"role": role, "parts": [{"type": "text", "content": text}]} for role, text in each])

    stated = {"gen_ai.operation.name": "chat", "gen_ai.input.messages": messages(prompt),
              "gen_ai.output.messages": messages([("assistant", answer)]), **attributes}
    begin = 1_772_446_500_000_000_000 + number * 10**9
    span = {"traceId": f"{trace:032x}", "spanId": f"{number:016x}", "name": "chat", "startTimeUnixNano": str(begin),
            "endTimeUnixNano": str(begin + 10**8),
            "attributes": [{"key": key, "value": {"stringValue": value}} for key, value in stated.items()]}
    return {"resourceSpans": [{"scopeSpans": [{"spans": [span]}]}]}


def _dialogue(n_turns: int, trace: Callable[[int], int], **attributes: str) -> Records:
    said: list[tuple[str, str]] = [("system", "Be brief.")]
    spans = []
    for turn in range(n_turns):
        said.append(("user", f"question {turn}"))
        spans.append(_chat(turn, said, f"This is the answer to question number {turn}.", trace(turn), **attributes))
        said.append(("assistant", f"This is the answer to question number {turn}."))
    return spans


@pytest.mark.parametrize("placed", [each for each in itertools.product((0, 1), repeat=4) if 0 < sum(each) < 4])
def test_traces_without_a_session_that_go_on_in_another_file_are_one_session(placed: tuple[int, ...], tmp_path: Path) -> None:
    spans = _dialogue(4, trace=lambda turn: turn + 1)
    files = {name: [span for span, number in zip(spans, placed, strict=True) if number == name] for name in (0, 1)}
    whole, split = assembled(tmp_path / "whole", {0: spans}, ".jsonl"), assembled(tmp_path / "split", files, ".jsonl")
    assert split.sessions.height == whole.sessions.height == 1
    assert_frame_equal(compared(split), compared(whole))


def test_conversations_that_begin_alike_in_two_files_stay_apart(tmp_path: Path) -> None:
    one, other = _dialogue(2, trace=lambda turn: 7), _dialogue(2, trace=lambda turn: 8)
    assert assembled(tmp_path / "split", {0: one, 1: other}, ".jsonl").sessions.height == 2


def test_equal_answers_to_several_questions_stay_several(tmp_path: Path) -> None:
    state = {"gen_ai.conversation.id": "s1"}
    spans = [_chat(number, [("user", f"question {number}")], "Done.", trace=1, **state) for number in range(4)]
    whole = assembled(tmp_path / "whole", {0: spans}, ".jsonl")
    assert whole.turns["content"].to_list() == [text for number in range(4) for text in (f"question {number}", "Done.")]
    for number, files in enumerate(({0: spans[::2], 1: spans[1::2]}, {0: spans[:2], 1: spans[2:]})):
        assert_frame_equal(compared(assembled(tmp_path / str(number), files, ".jsonl")), compared(whole))
