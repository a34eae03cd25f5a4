"""Generations and executions to one conversation."""

from __future__ import annotations

import random
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from extractors.formats.conversation import Execution, Generation, tell
from extractors.formats.envelope import Envelope
from extractors.formats.format import Emit, LogRecord
from extractors.formats.history import PromptHistory

RECORD = LogRecord("r" * 64, 1, None)


def message(role: str, content: str) -> dict[str, Any]:
    return {"kind": "message", "role": role, "content": content, "lossy": []}


def call(call_id: str | None, tool: str = "look", arguments: str = "{}") -> dict[str, Any]:
    return {"kind": "call", "role": "assistant", "call_id": call_id, "tool": tool, "arguments": arguments, "lossy": []}


def result(call_id: str | None, content: str) -> dict[str, Any]:
    return {"kind": "result", "call_id": call_id, "content": content, "lossy": []}


def story(generations: list[Generation], executions: list[Execution] = []) -> list[dict[str, Any]]:  # noqa: B006
    emit = Emit("f", "main", "x", Envelope())
    tell("s", generations, executions, emit)
    return emit.events


def generation(number: int, prompt: list[Any] | PromptHistory, *answer: dict[str, Any], **more: Any) -> Generation:
    return Generation(RECORD, f"g{number}", number * 1000, number * 1000 + 500, prompt=prompt, answers=[list(answer)], **more)


TURNS = st.lists(st.tuples(st.sampled_from(["say", "call", "think"]), st.text(max_size=3)), min_size=1, max_size=6)


@given(turns=TURNS, whole=st.booleans(), linked=st.booleans(), seed=st.integers(0, 9))
def test_whole_histories_in_any_order_tell_what_their_ends_tell(turns: list[Any], whole: bool, linked: bool, seed: int) -> None:
    """Each generation with all that came before, or with what is new alone, with or without the thoughts in it."""
    generations, texts, history = [], [message("system", "rules")], None
    event_rows: list[dict[str, Any]] = []
    for number, (kind, text) in enumerate(turns, 1):
        new = [message("user", f"{number} {text}")] if kind != "call" else []
        opening = [] if number > 1 else texts[:1]
        answer = [call(f"c{number}", arguments=f'{{"n":{number}}}')] if kind == "call" else [message("assistant", f"a{number}")]
        if kind == "think":
            answer.insert(0, {"kind": "reasoning", "role": "assistant", "content": "hm", "lossy": []})
        texts += new
        history = PromptHistory([*(texts if history is None else new)], history)
        prompt = (history if linked else [*texts]) if whole else [*opening, *new]
        generations.append(generation(number, prompt, *answer))
        event_rows += [*opening, *new, *answer]
        texts += [each for each in answer if each["kind"] != "reasoning" or number % 2]
        history = PromptHistory([each for each in answer if each["kind"] != "reasoning" or number % 2], history)
        if kind == "call":
            texts.append(result(f"c{number}", f"r{number}"))
            history = PromptHistory(texts[-1:], history)
            if not whole and number < len(turns):
                turns[number] = ("say", turns[number][1]) if turns[number][0] == "call" else turns[number]
    random.Random(seed).shuffle(generations)
    events = story(generations)
    rows = [(each["kind"], each["content"]) for each in events if each["kind"] in ("message", "reasoning")]
    assert rows == [(each["kind"], each["content"]) for each in event_rows if each["kind"] != "call"]
    counted = [each["position"] for each in events if each["kind"] in ("message", "call", "result")]
    assert counted == list(range(len(counted)))


def test_runs_of_tools_give_times_and_errors_to_the_calls_of_messages() -> None:
    first = generation(1, [message("user", "go")], call("a", arguments='{"n":1}'), call("b", "find"), usage={"input_tokens": 7})
    second = generation(9, [message("user", "go"), call("a", arguments='{"n": 1}'), call("b", "find"), result("a", "1"),
                            result("b", "2")], message("assistant", "done"))
    runs = [Execution(RECORD, "x", 2000, 3000, tool="look", call_id="other id", arguments={"n": 1}, result="1", is_error=False),
            Execution(RECORD, "y", 2500, 2600, tool="find", is_error=True),
            Execution(RECORD, "z", 4000, 5000, tool="find", call_id="c", arguments="{", result="3")]
    events = story([second, first], runs)
    calls = [(each["call_id"], each["happened_at"], each["latency_ms"]) for each in events if each["kind"] == "call"]
    assert calls == [("a", 2000, 1.0), ("b", 2500, 0.1), ("c", 4000, 1.0)]
    results = [(each["call_id"], each["content"], each.get("is_error"), each["happened_at"]) for each in events
               if each["kind"] == "result"]
    assert results == [("a", "1", False, 3000), ("b", "2", True, 2600), ("c", "3", None, 5000)]
    assert events[1]["usage"] == '{"input_tokens":7}' and [each for each in events if "usage" in each] == [events[1]]
    assert [each["lossy"] for each in events if each["kind"] == "call" and each["call_id"] == "c"] == [
        ["args_parse_error", "call known from its span alone"]]


def test_a_compacted_history_goes_on_and_a_candidate_is_no_part_of_it() -> None:
    long = "an answer that is long enough to be known again"
    first = generation(1, [message("user", "one")], message("assistant", long))
    first.answers.append([message("assistant", "another")])
    second = generation(2, [message("system", "summary"), message("assistant", long), message("user", "two")],
                        message("assistant", "end"))
    third = generation(3, [message("system", "summary"), message("assistant", long), message("user", "two"),
                           message("assistant", "end"), message("user", "three")], message("assistant", "bye"))
    events = story([first, second, third])
    assert [each["content"] for each in events] == ["one", long, "another", "two", "end", "three", "bye"]
    assert [each["position"] for each in events] == [0, 1, 2, 2, 3, 4, 5] and events[2]["lossy"] == ["candidate 1"]


def test_runs_alone_are_told_in_the_order_of_time() -> None:
    runs = [Execution(RECORD, f"e{number}", number * 10, number * 10 + 1, tool=f"t{number}") for number in range(200)]
    random.Random(1).shuffle(runs)
    events = story([], runs)
    assert [each["tool"] for each in events] == [f"t{number}" for number in range(200) for _ in range(2)]
    assert len({each["event_id"] for each in events}) == 400
