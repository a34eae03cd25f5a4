"""What a format reads of each field: found by removing it, for every format alike."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import orjson
import pytest

from extractors.configuration import Source
from extractors.content import head_of
from extractors.field_uses import FieldReading, field_uses, n_unread
from extractors.formats import Format, named, registered
from extractors.inventory import SourceFile
from extractors.reading import read
from extractors.sniffing import sniff

HEADS = {each.name: head for each in registered() if (head := head_of(each.sample())) is not None}
WITH_FIELDS = [each for each in registered() if HEADS[each.name].layout in ("lines", "document", "table")]
BY_LINE = [each for each in registered() if HEADS[each.name].layout == "lines" and not each.whole]


def uses_of(log_format: str, *values: Any) -> dict[str, FieldReading]:
    return {each.path: each for each in field_uses(list(values), named(log_format), Source())}


def test_a_field_is_read_as_what_changes_without_it() -> None:
    uses = uses_of("openai_sessions", {
        "session_id": "s", "shift": "night", "cost": {"usd": 1, "cents": 2}, "empty": None,
        "messages": [{"role": "user", "content": "go", "mood": "calm"}]})
    assert uses["session_id"].read_as == ("session_id",) and uses["messages.content"].read_as == ("message.content",)
    unread = {path: use.example for path, use in uses.items() if not use.read_as}
    assert unread == {"shift": "night", "cost": '{"usd":1,"cents":2}', "messages.mood": "calm"}
    assert n_unread([*uses.values()]) == 3


def test_a_payload_that_an_event_carries_whole_is_one_field() -> None:
    uses = uses_of("cloudevents", {
        "specversion": "1.0", "id": "1", "source": "/desk", "type": "order.paid", "time": "2026-03-02T10:15:00Z",
        "data": {"order": 17, "lines": [{"item": "lamp", "n": 2}]}})
    assert uses["data"].read_as == ("business.arguments",) and not any(path.startswith("data.") for path in uses)


def test_a_field_that_repeats_another_is_not_counted_as_unread() -> None:
    call = {"id": "call_1", "function": {"name": "look", "arguments": "{}"}}
    uses = uses_of("openai_completions", *({
        "request": {"messages": [{"role": "user", "content": "go"}, *more]}, "response": {"choices": [{"message": answer}]}}
        for more, answer in (([], {"role": "assistant", "tool_calls": [call]}),
                             ([{"role": "assistant", "tool_calls": [call]}], {"role": "assistant", "content": "done"}))))
    assert uses["request.messages.tool_calls.id"].read_as == ("what another field states",)


@pytest.mark.parametrize("log_format", WITH_FIELDS, ids=lambda each: each.name)
def test_every_format_states_its_fields(log_format: Format, tmp_path: Path) -> None:
    (tmp_path / "log").write_bytes(log_format.sample())
    sniffed = sniff(tmp_path / "log")
    paths = [each.path for each in sniffed.uses]
    assert paths and len(set(paths)) == len(paths) and any(each.read_as for each in sniffed.uses)
    assert all(each.example for each in sniffed.uses)


@pytest.mark.parametrize("log_format", BY_LINE, ids=lambda each: each.name)
def test_an_added_field_is_read_only_where_an_event_holds_it(log_format: Format, tmp_path: Path) -> None:
    values = [orjson.loads(line) for line in log_format.sample().splitlines()]
    added = [{**each, "zz_unheard_of": "said nowhere else"} if isinstance(each, dict) else each for each in values]
    (tmp_path / "log").write_bytes(b"\n".join(map(orjson.dumps, added)))
    reading = read(SourceFile(tmp_path / "log", "log", Source(format=log_format.name)))
    [use] = [each for each in field_uses(added, log_format, Source()) if each.path == "zz_unheard_of"]
    assert bool(use.read_as) == ("said nowhere else" in reading.events.write_json())
