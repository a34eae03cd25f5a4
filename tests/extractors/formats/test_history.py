"""Histories held once: whatever is shared, the parts are those of the whole text."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from extractors.formats.history import Histories, PromptHistory

MESSAGES = st.lists(st.dictionaries(st.sampled_from(["role", "content"]), st.text(max_size=4), min_size=1), max_size=6)


def parts_of(message: Any) -> list[dict[str, Any]]:
    kind = "reasoning" if message.get("role") == "" else "message"
    return [{"kind": kind, "role": message.get("role"), "content": message.get("content"), "lossy": []}]


def parts(history: PromptHistory) -> list[dict[str, Any]]:
    return [part for _, part in history.beyond(0)]


@given(inputs=st.lists(MESSAGES, max_size=6), cut=st.lists(st.integers(0, 6), max_size=6), spaced=st.booleans(),
       text=st.booleans())
def test_any_sequence_of_inputs_reads_as_each_alone(inputs: list[list[Any]], cut: list[int], spaced: bool, text: bool) -> None:
    histories, before = Histories(), []
    for number, new in enumerate(inputs):
        before = [*before[:cut[number] if number < len(cut) else None], *new]
        logged = json.dumps(before, separators=(", ", ": ") if spaced else (",", ":")) if text else [*before]
        history = histories.of("s", logged, parts_of)
        assert history is not None
        alone = [part for message in before for part in parts_of(message)]
        assert parts(history) == alone and history.n_parts == len(alone)
        assert [i for i, _ in history.beyond(0)] == list(range(len(alone)))
        printed = [part for part in alone if part["kind"] != "reasoning"]
        assert history.n_prints == len(printed)
        for n_known in range(1, history.n_prints + 1):
            rejected = [part for _, part in history.beyond(n_known) if part["kind"] != "reasoning"]
            assert rejected == printed[n_known:]


def test_a_growing_history_is_read_once() -> None:
    histories, read = Histories(), []

    def watched(message: Any) -> list[dict[str, Any]]:
        read.append(message["content"])
        return parts_of(message)

    text = [{"role": "user", "content": f"{number}"} for number in range(50)]
    last = None
    for size in range(1, 51):
        last = histories.of("s", json.dumps(text[:size]), watched)
    assert read == [f"{number}" for number in range(50)] and last is not None and last.n_parts == 50
    assert histories.of("s", json.dumps(text), watched) is last, "the same text is the same history"
    branch = histories.of("s", json.dumps([*text[:30], {"role": "user", "content": "else"}]), watched)
    assert branch is not None and branch.n_parts == 31 and read[50:] == ["else"], "an earlier state is gone on from"


def test_two_openings_are_two_histories_and_torn_text_is_none() -> None:
    histories = Histories()
    message = json.dumps([{"role": "user", "content": "hi"}])
    one, two = (histories.of("s", message, parts_of, opening, lambda opening=opening: parts_of({"content": opening}))
                for opening in ("a", "b"))
    assert one is not None and two is not None and [each["content"] for each in parts(two)] == ["b", "hi"]
    assert two.since(one) is None and two.since(two) == []
    assert histories.of("s", message[:-5], parts_of, "a") is None
    assert histories.of("s", message[:-1] + ', {"role"', parts_of, "a") is None
    longer = histories.of("s", message[:-1] + ', {"content": "x"} ]', parts_of, "a")
    assert longer is not None and longer.since(one) is not None and longer.n_parts == 3


def test_values_that_are_no_messages_break_nothing() -> None:
    histories = Histories()
    for logged in ("[]", " [ ] ", "[]", '{"content": "x"}', "7", '["x"]'[:0] + "null", [], [{"content": "a"}]):
        history = histories.of("s", logged, parts_of)
        assert history is not None and history.n_parts == ('"x"' in str(logged) or "a" in str(logged))
