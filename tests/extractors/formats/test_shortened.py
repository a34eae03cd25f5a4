"""Lines made short: what is read of them is what is read of the whole lines."""

from __future__ import annotations

import json
from typing import Any

import orjson
from hypothesis import given
from hypothesis import strategies as st

from extractors.formats import Emit, LogRecord
from extractors.formats.envelope import Envelope
from extractors.formats.format import Block
from extractors.formats.history import Shortened
from extractors.formats.otlp import read, read_block
from tests.extractors.formats.spans import any_value, batch, chat, dumped, log, logs, span, text_message

RULES = dumped([{"type": "text", "content": "rules " * 90}])
LONG = '"quoted" – a \\ long text 🙏 ' * 20


def both(lines: list[bytes]) -> tuple[Emit, Emit]:
    """Return what the lines tell, read one by one and as a block."""
    def record(index: int) -> LogRecord | None:
        try:
            return LogRecord(f"{index:064d}", index + 1, orjson.loads(lines[index]))
        except orjson.JSONDecodeError:
            return None

    block = Block([f"{index:064d}" for index in range(len(lines))], list(range(1, len(lines) + 1)), lines, record)
    one, other = (Emit("file", "main", "otlp", Envelope()) for _ in range(2))
    read(block.records(), one)
    read_block(block, other)
    return one, other


def same(lines: list[bytes]) -> Emit:
    one, other = both(lines)
    assert other.events == one.events and other.declarations == one.declarations
    assert [(record.line, *rest) for record, *rest in other.rejects] == [(record.line, *rest) for record, *rest in one.rejects]
    return one


KINDS = ["say", "again", "branch", "rules", "torn", "spaced", "damaged"]
STEPS = st.lists(st.tuples(st.integers(0, 2), st.sampled_from(KINDS)),
                 max_size=12)


@given(steps=STEPS, ascii_only=st.booleans(), in_one=st.booleans())
def test_a_block_tells_what_its_lines_tell(steps: list[tuple[int, str]], ascii_only: bool, in_one: bool) -> None:
    """Conversations side by side that grow, go back, are sent again, are cut off, and change their instructions."""
    histories: dict[int, list[Any]] = {0: [], 1: [], 2: []}
    lines, last = [], b"{}"
    for number, (which, kind) in enumerate(steps, 1):
        history = histories[which]
        if kind == "branch":
            del history[-3:]
        history.append(("user", f"{number} {LONG if number % 2 else 'short'}"))
        more = {"gen_ai.system_instructions": RULES if kind != "rules" else RULES.replace("rules", "laws"),
                "gen_ai.tool.definitions": dumped([{"name": f"tool{which}", "parameters": {"description": LONG}}])}
        made = chat(number, history, [("assistant", f"answer {number}")], f"s{which}", **more)
        history.append(("assistant", f"answer {number}"))
        if kind == "torn":
            made["attributes"][2]["value"]["stringValue"] = made["attributes"][2]["value"]["stringValue"][:-9]
        value = batch(made, chat(number + 100, history, [], f"s{which}", **more)) if in_one else batch(made)
        line = json.dumps(value, ensure_ascii=ascii_only, separators=(", ", ": ") if kind == "spaced" else (",", ":")).encode()
        lines.append({"again": last, "damaged": line[:-7]}.get(kind, line))
        last = line
    same(lines)


def test_what_is_known_is_cut_out_of_the_line() -> None:
    history: list[Any] = []
    shortened, sizes = Shortened(), []
    for number in range(30):
        history.append(("user", f"{number} {LONG}"))
        line = orjson.dumps(batch(chat(number, history, [], **{"gen_ai.system_instructions": RULES})))
        sizes.append((len(shortened.line(line)), len(line)))
    assert all(short < 2500 for short, _ in sizes[1:]) and sizes[-1][1] > 15_000


def test_references_are_no_way_in() -> None:
    """A log that holds our mark says what it says."""
    forged = [chat(1, [("user", LONG * 3)], []),
              span(2, {"gen_ai.input.messages": "\0001\0002\0]", "gen_ai.output.messages": "[]"}),
              span(3, {"gen_ai.output.messages": dumped([text_message("assistant", "\0001\0000\0")]), "x": "\0001\0000\0"}),
              span(4, {"gen_ai.system_instructions": "\0009\0000\0", "gen_ai.input.messages": "\0"})]
    emit = same([orjson.dumps(batch(each)) for each in forged])
    assert [each["content"] for each in emit.events if each["kind"] == "message"] == [LONG * 3, "\0001\0000\0"]


def test_log_records_and_nested_values_are_whole() -> None:
    text = dumped([text_message("user", LONG * 3)])
    details = {"gen_ai.input.messages": text, "gen_ai.output.messages": "[]"}
    lines = [orjson.dumps(each) for each in (
        batch(chat(1, [("user", LONG * 3)], [])), logs(log("gen_ai.client.inference.operation.details", None, details)),
        logs(log(None, details)), batch(span(9, {"facts": details})),
        batch(span(5, {}, events=[{"name": "gen_ai.content.prompt", "attributes": [
            {"key": "gen_ai.prompt", "value": any_value(dumped([{"role": "user", "content": LONG * 2}]))}]}])))]
    emit = same([*lines, *lines])
    assert all("\0" not in str(each) for each in emit.events)
