"""A chat is rebuilt from its export as it was at any instant, and what an export does not hold is not made up."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from env_builder import Environment
from env_builder.backends import AppSource, assemble
from env_builder.office.chats import ChatHistory, chat_history
from extractors.inventory import discover
from extractors.reading import read
from tests.apps import task

NOON = 1772452800
"""2026-03-02T12:00:00Z."""


def ts(seconds: float) -> str:
    return f"{NOON + seconds:.6f}"


def message(seconds: float, text: str, user: str = "U1", **more: Any) -> dict[str, Any]:
    return {"type": "message", "user": user, "ts": ts(seconds), "text": text, **more}


def changed(seconds: float, original: float, before: dict[str, Any], after: str) -> dict[str, Any]:
    now = message(original, after, edited={"user": "U1", "ts": ts(seconds)})
    return {"type": "message", "subtype": "message_changed", "hidden": True, "ts": ts(seconds), "message": now,
            "previous_message": before}


def export(folder: Path, *desk: dict[str, Any], **others: list[dict[str, Any]]) -> Path:
    files = {"users.json": [{"id": "U1", "name": "mara", "real_name": "Mara Lind"}, {"id": "U2", "name": "jo"}],
             "channels.json": [{"id": "C1", "name": "desk"}, {"id": "C2", "name": "late", "created": NOON + 3600}],
             "desk/2026-03-02.json": list(desk), **{f"{name}/2026-03-02.json": rows for name, rows in others.items()}}
    for name, value in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(json.dumps(value))
    return folder


def history_of(folder: Path) -> ChatHistory:
    return chat_history(pl.concat([read(each).events for each in discover([folder])[0]]))


def shown_at(history: ChatHistory, seconds: float, out: Path, *calls: tuple[str, dict[str, Any]]) -> list[Any]:
    """Return what tools of the chat answer at an instant."""
    environment = out / "environments" / str(seconds)
    at = pl.Series([(NOON + seconds) * 1e6]).cast(pl.Int64).cast(pl.Datetime("us")).dt.strftime("%Y-%m-%dT%H:%M:%S%.6fZ").item()
    assemble("chat", [AppSource("chat", "office", history.content, {"app": "chat"})], [task() | {"starts_at": at}], [],
             environment, out / "rewards" / str(seconds))
    env = Environment.load(environment)
    env.reset("t" * 64)
    results = [env.call(tool, arguments) for tool, arguments in calls]
    return [(json.loads(each.content), each.tier) if not each.is_error else each.content for each in results]


DESK = ("chat_read", {"channel": "desk"})


def texts(answer: Any) -> list[tuple[str | None, bool]]:
    return [(row["text"], row.get("edited", False)) for row in answer[0]]


def test_an_edit_that_nobody_recorded_hides_what_was_written_before(tmp_path: Path) -> None:
    history = history_of(export(tmp_path, message(0, "order 8", edited={"user": "U1", "ts": ts(60)}), message(10, "ok", "U2")))
    [early], [late] = (shown_at(history, at, tmp_path / "out", DESK) for at in (30, 61))
    assert texts(early) == [(None, False), ("ok", False)] and early[1] == "unknown"
    assert "not on record" in early[0][0]["note"]
    assert texts(late) == [("order 8", True), ("ok", False)] and late[1] == "derived"


def test_recorded_edits_and_deletions_are_shown_in_their_time(tmp_path: Path) -> None:
    first, second = message(0, "order 7"), message(0, "order 8", edited={"user": "U1", "ts": ts(60)})
    gone = message(5, "secret", "U2")
    history = history_of(export(
        tmp_path, message(0, "order 9", edited={"user": "U1", "ts": ts(90)}), changed(60, 0, first, "order 8"),
        changed(90, 0, second, "order 9"),
        {"type": "message", "subtype": "message_deleted", "hidden": True, "ts": ts(70), "deleted_ts": ts(5),
         "previous_message": gone}))
    answers = [texts(shown_at(history, at, tmp_path / "out", DESK)[0]) for at in (30, 65, 75, 95)]
    assert answers == [[("order 7", False), ("secret", False)], [("order 8", True), ("secret", False)], [("order 8", True)],
                       [("order 9", True)]]


def test_an_edit_between_recorded_ones_is_noticed(tmp_path: Path) -> None:
    first = message(0, "one")
    third = message(0, "three", edited={"user": "U1", "ts": ts(70)})
    history = history_of(export(tmp_path, message(0, "five", edited={"user": "U1", "ts": ts(100)}),
                                changed(60, 0, first, "two"), changed(80, 0, third, "four")))
    answers = [texts(shown_at(history, at, tmp_path / "out", DESK)[0])[0][0] for at in (30, 65, 75, 85, 105)]
    assert answers == ["one", None, "three", None, "five"]


def test_nothing_is_there_before_its_time(tmp_path: Path) -> None:
    join = {"type": "message", "subtype": "channel_join", "user": "U2", "ts": ts(50), "text": "<@U2> has joined"}
    leave = {"type": "message", "subtype": "channel_leave", "user": "U2", "ts": ts(90), "text": "<@U2> has left"}
    reply = message(40, "yes", "U2", thread_ts=ts(0))
    history = history_of(export(tmp_path, message(0, "well?", thread_ts=ts(0)), reply, join, leave, late=[message(3700, "hi")]))
    channels: tuple[str, dict[str, Any]] = ("chat_channels", {})
    thread = ("chat_read", {"channel": "desk", "thread": ts(0)})
    early = shown_at(history, 30, tmp_path / "out", channels, DESK, thread, ("chat_read", {"channel": "late"}))
    assert early[0][0]["channels"] == [{"channel": "desk", "members": ["U1"]}] and "replies" not in early[1][0][0]
    assert len(early[2][0]) == 1 and early[3] == "no channel 'late'; there are: desk"
    middle = shown_at(history, 60, tmp_path / "out", channels, DESK, thread)
    assert middle[0][0]["channels"][0]["members"] == ["U1", "U2"] and middle[1][0][0]["replies"] == 1
    assert [row["text"] for row in middle[2][0]] == ["well?", "yes"] and middle[2][0][1]["thread"] == ts(0)
    late = shown_at(history, 3800, tmp_path / "out", channels)
    assert late[0][0]["channels"] == [{"channel": "desk", "members": ["U1"]}, {"channel": "late", "members": ["U1"]}]


def test_what_is_left_out_has_a_reason(tmp_path: Path) -> None:
    folder = export(tmp_path, message(0, "hi"), {"type": "message", "subtype": "channel_topic", "user": "U1", "ts": ts(1),
                                                "topic": "lamps"}, D1=[message(2, "between us")])
    (folder / "dms.json").write_text(json.dumps([{"id": "D1", "members": ["U1", "U2"]}]))
    history = history_of(folder)
    reasons = sorted(history.decisions.filter(pl.col("kept").not_())["reason"])
    assert reasons == ["no_part_of_a_chat", "private_conversation"]
    assert not any("between us" in str(version) for version in history.content.versions)
    (tmp_path / "lone").mkdir()
    (tmp_path / "lone" / "day.json").write_text(json.dumps([message(0, "whose channel?")]))
    assert history_of(tmp_path / "lone").decisions.filter(pl.col("kept").not_())["reason"].to_list() == ["no_channel"]


EDITS = st.lists(
    st.tuples(st.integers(1, 50), st.sampled_from("abc"), st.booleans()), max_size=5, unique_by=lambda each: each[0])


@settings(max_examples=300)
@example([(1, "a", True), (2, "b", False), (3, "a", False), (4, "c", True)], 2)
@given(EDITS, st.integers(0, 60))
def test_a_shown_text_was_the_text_at_that_time(edits: list[tuple[int, str, bool]], at: int) -> None:
    """Whatever part of the edits was recorded, no wrong text is shown, and a complete record leaves no gap."""
    edits = [(number * 5, text, is_recorded) for number, text, is_recorded in sorted(edits)]
    current, events = message(0, "first"), []
    past = [(0, "first")]
    for seconds, text, is_recorded in edits:
        events += [changed(seconds, 0, current, text)] if is_recorded else []
        current = message(0, text, edited={"user": "U1", "ts": ts(seconds)})
        past.append((seconds, text))
    rows = [{"format": "slack", "kind": "log", "tool": "message message_changed", "content": json.dumps(each), "name": None,
             "session_id": f"desk:talk:{ts(0)}", "happened_at": NOON * 10**6 + round((float(each["ts"]) - NOON) * 1e6),
             "lossy": None, "event_id": "e", "file_id": "f"} for each in events]
    lossy = json.dumps([f"edited at {current['edited']['ts']}"]) if edits else None
    rows.append({**(rows[0] if rows else {}), "format": "slack", "kind": "message", "tool": None, "content": current["text"],
                 "name": "U1", "session_id": f"desk:talk:{ts(0)}", "happened_at": NOON * 10**6, "lossy": lossy, "event_id": "e",
                 "file_id": "f"})
    frame = pl.DataFrame(rows).with_columns(pl.col("happened_at").cast(pl.Datetime("us")).dt.replace_time_zone("UTC"))
    versions = [each for each in chat_history(frame).content.versions if each.kind == "message"]
    instant = f"2026-03-02T12:{at * 5 // 60:02}:{at * 5 % 60:02}.500000Z"
    now = [each.value["text"] for each in versions if (each.since or "") <= instant < (each.until or "9")]
    right = [text for seconds, text in past if seconds <= at * 5 + .5][-1]
    assert len(now) == 1 and now[0] in (None, right)
    assert now[0] == right or not all(is_recorded for _, _, is_recorded in edits)


def test_the_export_of_the_portal(data: Path, tmp_path: Path) -> None:
    folder = data / "portal" / "logs" / "slack"
    if not folder.is_dir():
        pytest.skip("the data set is not here")
    history = history_of(folder)
    versions = list(history.content.versions)
    counts = pl.Series([version.kind for version in versions]).value_counts().rows()
    assert {kind: n for kind, n in counts if kind in ("channel", "message", "person")} == {
        "channel": 3, "message": 151, "person": 8}
    assert history.decisions["kept"].all()
