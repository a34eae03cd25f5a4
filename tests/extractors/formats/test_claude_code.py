from __future__ import annotations

from pathlib import Path
from typing import Any

import orjson
import polars as pl
from hypothesis import given
from hypothesis import strategies as st

from extractors.formats.claude_code import FORMAT
from extractors.inventory import SourceFile
from extractors.reading import read
from extractors.sessions import assemble
from tests.extractors.formats.provider_reading import JSON, damaged, log, logs, nothing_vanishes, rejected_reasons, spoken_turns


def line(uuid: str, parent: str | None, content: Any, kind: str = "user", **fields: Any) -> dict[str, Any]:
    message = {"role": kind, "content": content, **fields.pop("message", {})}
    return {"uuid": uuid, "parentUuid": parent, "isSidechain": False, "sessionId": "s", "type": kind,
            "timestamp": f"2026-03-02T10:00:{int(uuid[1:]):02d}.000Z", "message": message, **fields}


def answer(uuid: str, parent: str | None, answer_id: str, block: Any, out: int = 1, **fields: Any) -> dict[str, Any]:
    return line(uuid, parent, [block], "assistant", message={
        "id": answer_id, "model": "m", "usage": {"input_tokens": 5, "output_tokens": out}}, **fields)


def text(words: str) -> dict[str, Any]:
    return {"type": "text", "text": words}


def call(call_id: str) -> dict[str, Any]:
    return {"type": "tool_use", "id": call_id, "name": f"do_{call_id}", "input": {"x": 1}}


def result(call_id: str, **fields: Any) -> list[dict[str, Any]]:
    return [{"type": "tool_result", "tool_use_id": call_id, "content": f"done {call_id}", **fields}]


def test_parallel_calls_branch_the_tree_and_nothing_is_given_up(tmp_path: Path) -> None:
    records = [line("u1", None, "go"), answer("u2", "u1", "m1", call("a")), answer("u3", "u2", "m1", call("b"), out=40),
               line("u4", "u2", result("a", is_error=True)), line("u5", "u3", result("b")),
               answer("u6", "u5", "m2", text("both done"), out=7)]
    reading, made = log(tmp_path, records)
    assert spoken_turns(made) == [("user", "go"), ("do_a", "done a"), ("do_b", "done b"), ("assistant", "both done")]
    assert made.turns.filter(kind="call")["is_error"].to_list() == [True, False]
    counts = [orjson.loads(each)["output_tokens"] for each in reading.events["usage"].drop_nulls()]
    assert counts == [40, 7], "an answer counts once, as its last line says"


def test_edited_prompts_are_branches_given_up_also_the_first(tmp_path: Path) -> None:
    records = [line("u1", None, "first try"), answer("u2", "u1", "m1", text("what?")), line("u3", None, "second try"),
               answer("u4", "u3", "m2", text("yes?")), line("u5", "u4", "do it badly"), answer("u6", "u5", "m3", text("bad")),
               line("u7", "u4", "do it well"), answer("u8", "u7", "m4", text("well"))]
    reading, made = log(tmp_path, records)
    assert spoken_turns(made) == [("user", "second try"), ("assistant", "yes?"), ("user", "do it well"), ("assistant", "well")]
    given_up = reading.events.filter(pl.col("lossy").is_not_null())
    assert given_up["content"].to_list() == ["first try", "what?", "do it badly", "bad"]
    assert set(given_up["lossy"]) == {'["candidate branch","branch given up"]'}


def test_a_text_that_grew_and_a_line_told_twice(tmp_path: Path) -> None:
    first = answer("u2", "u1", "m1", text("The ans"))
    whole = answer("u3", "u1", "m1", text("The answer is 4."), out=9)
    reading, made = log(tmp_path, [line("u1", None, "2+2?"), first, whole, {**whole, "extra": 1}])
    assert spoken_turns(made) == [("user", "2+2?"), ("assistant", "The answer is 4.")]
    assert rejected_reasons(reading) == ["repeated_part", "duplicate_line"]


def test_words_of_the_harness_are_no_turns(tmp_path: Path) -> None:
    typed = "<command-message>plan</command-message><command-name>/plan</command-name><command-args>a trip</command-args>"
    records = [line("u1", None, typed), line("u2", "u1", [text("A long recipe")], isMeta=True),
               answer("u3", "u2", "m1", text("\n\n")), answer("u4", "u3", "m1", text("Where to?")),
               line("u5", "u4", [text("<system-reminder>be brief</system-reminder>"), text("Rome")]),
               line("u6", "u5", "[Request interrupted by user]"),
               {"type": "summary", "summary": "a trip", "leafUuid": "u4"}]
    reading, made = log(tmp_path, records)
    assert spoken_turns(made) == [("user", "/plan a trip"), ("assistant", "Where to?"), ("user", "Rome")]
    kept = dict(reading.events.filter(kind="log").select("tool", "content").rows())
    assert kept["blank"] == "\n\n" and "A long recipe" in kept["user meta"] and "a trip" in kept["summary"]


def test_history_goes_on_over_compaction_and_lines_without_a_parent(tmp_path: Path) -> None:
    boundary = {"type": "system", "subtype": "compact_boundary", "uuid": "u3", "parentUuid": None, "logicalParentUuid": "u2",
                "sessionId": "s", "timestamp": "2026-03-02T10:00:03Z"}
    records = [line("u1", "lost", "go"), answer("u2", "u1", "m1", text("gone")), boundary,
               line("u4", "u3", "Summary: go, gone", isCompactSummary=True), line("u5", "u4", "again"),
               {"type": "progress", "uuid": "u6", "parentUuid": None, "sessionId": "s", "data": {"type": "hook_progress"}},
               line("u7", "u6", "more")]
    reading, made = log(tmp_path, records)
    assert [words for _, words in spoken_turns(made)] == ["go", "gone", "again", "more"]
    around = reading.events.filter(kind="log")["tool"].to_list()
    assert around == ["system compact_boundary", "user compact summary", "progress"]


def test_sub_agents_inline_in_progress_and_in_files_of_their_own(tmp_path: Path) -> None:
    side = {"isSidechain": True, "agentId": "x"}
    inner = {"type": "user", "uuid": "p1", "timestamp": "2026-03-02T10:00:02Z", "message": {"role": "user", "content": "look"}}
    records = [line("u1", None, "go"), answer("u2", "u1", "m1", call("a")),
               {"type": "progress", "uuid": "u3", "parentUuid": "u2", "sessionId": "s", "timestamp": "2026-03-02T10:00:02Z",
                "data": {"type": "agent_progress", "agentId": "y", "message": inner}},
               line("u4", None, "look again", **side), answer("u5", "u4", "m2", text("found"), **side),
               line("u6", "u2", result("a")), answer("u7", "u6", "m3", text("done"))]
    more = [line("u8", "u5", "and there?", **side), answer("u9", "u8", "m4", text("there too"), **side)]
    made = logs(tmp_path, {"s.jsonl": records, "agent-x.jsonl": more})
    assert spoken_turns(made, "s") == [("user", "go"), ("do_a", "done a"), ("assistant", "done")]
    assert spoken_turns(made, "s~agent-y") == [("user", "look")]
    assert [words for _, words in spoken_turns(made, "s~agent-x")] == ["look again", "found", "and there?", "there too"]


def test_real_transcripts_are_read_whole(data: Path) -> None:
    files = sorted((data / "coding_sessions/logs").glob("*.jsonl"))
    readings = [read(SourceFile(path, path.name)) for path in files]
    made = assemble(pl.concat([each.events for each in readings]))
    assert [each.file.format for each in readings] == ["claude_code"] * 3 and not any(
        rejected_reasons(each) for each in readings
    )
    counts = sorted(made.sessions.select("n_messages", "n_calls").rows())
    assert counts == [(1, 2), (1, 9), (2, 2), (9, 16), (87, 186)]
    calls = made.turns.filter(kind="call")
    assert calls["result_id"].null_count() == 0 and calls["is_error"].null_count() == 0
    assert all(set(each.records["record_id"]) == set(each.events["record_id"]) for each in readings)


@given(value=JSON, place=st.lists(st.integers(0, 9), min_size=1, max_size=6), number=st.integers(0, 20))
def test_no_damage_makes_anything_vanish(value: Any, place: list[int], number: int) -> None:
    whole = [orjson.loads(each) for each in FORMAT.sample().splitlines()]
    whole[number % len(whole)] = damaged(whole[number % len(whole)], place, value)
    nothing_vanishes(FORMAT, [*whole, value])
