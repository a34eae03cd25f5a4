"""Aliases to sessions: over files and sources, in chains and circles, with links that contradict each other."""

from __future__ import annotations

from typing import Any

import polars as pl
from hypothesis import given
from hypothesis import strategies as st

from extractors.sessions import assemble, resolve_aliases
from warehouse.records import Event, frame


def event(number: int, kind: str, session_id: str | None, **more: Any) -> dict[str, Any]:
    return dict.fromkeys(Event.model_fields) | {
        "event_id": f"e{number:03d}", "record_id": f"r{number:03d}", "file_id": f"f{number % 3}", "source": "main",
        "format": "x", "kind": kind, "session_id": session_id, "position": 0, **more}


def link(number: int, session_id: str, alias: str, source: str = "main") -> dict[str, Any]:
    return event(number, "link", session_id, value=alias, source=source)


def said(number: int, session_id: str, content: str, **more: Any) -> dict[str, Any]:
    return event(number, "message", session_id, role="user", content=content, **more)


def sessions_of(rows: list[dict[str, Any]]) -> dict[str, str]:
    found, _ = resolve_aliases(frame(Event, rows))
    return dict(found.filter(pl.col("kind") != "link").select("content", "session_id").iter_rows())


@given(order=st.permutations(range(6)))
def test_a_chain_of_aliases_ends_at_the_session_in_any_order(order: list[int]) -> None:
    rows = [link(1, "s", "trace:1"), link(2, "trace:1", "span:1"), link(3, "span:1", "reply:1"), said(4, "reply:1", "a"),
            said(5, "trace:1", "b"), said(6, "trace:9", "c")]
    assert sessions_of([rows[place] for place in order]) == {"a": "s", "b": "s", "c": "trace:9"}


def test_links_hold_in_their_source_alone_and_stay_as_they_are() -> None:
    rows = [link(1, "s", "trace:1"), said(2, "trace:1", "a"), said(3, "trace:1", "b", source="other")]
    assert sessions_of(rows) == {"a": "s", "b": "trace:1"}
    found, decisions = resolve_aliases(frame(Event, rows))
    assert found.filter(kind="link")["session_id"].to_list() == ["s"] and found.height == 3 and decisions == []


def test_two_sessions_of_one_alias_are_told_and_a_circle_ends() -> None:
    rows = [link(1, "t", "trace:1"), link(2, "s", "trace:1"), said(3, "trace:1", "a"), link(4, "b", "a"), link(5, "a", "b"),
            said(6, "b", "c"), link(7, "x", "x")]
    assert sessions_of(rows) == {"a": "s", "c": "a"}
    [decision] = resolve_aliases(frame(Event, rows))[1]
    assert (decision.subject, decision.reason, decision.kept) == ("e001", "conflicting_link", False)
    assert assemble(frame(Event, rows)).decisions.filter(reason="conflicting_link").height == 1


def test_traces_become_one_session_with_its_feedback() -> None:
    rows = [link(1, "s", "trace:1"), said(2, "trace:1", "hello"), event(3, "feedback", "trace:1", name="thumb", value="1"),
            event(4, "outcome", "s", name="solved", value="yes"),
            event(5, "outcome", None, name="late", value="no", call_id="c"),
            event(6, "call", "trace:1", role="assistant", tool="t", call_id="c", arguments="{}", position=1, file_id="f2"),
            event(7, "outcome", None, name="lost", value="?")]
    made = assemble(frame(Event, rows))
    assert made.sessions["session_id"].to_list() == ["s"]
    assert sorted(made.feedback.select("name", "session_id").rows()) == [("late", "s"), ("solved", "s"), ("thumb", "s")]
    lost = made.decisions.filter(reason="unknown_session")
    assert lost["subject"].to_list() == ["e007"] and lost["detail"][0].startswith("outcome on a session that it does not name")


def test_kinds_that_are_no_turns_pass_without_harm() -> None:
    kinds = ("reasoning", "business", "log", "row_change", "request")
    rows = [said(1, "s", "hello")] + [
        event(number, kind, "s", content="x", tool="t", arguments="{}") for number, kind in enumerate(kinds, start=2)]
    made = assemble(frame(Event, rows))
    assert made.turns.filter(session_id="s")["content"].to_list() == ["hello"]
    assert made.sessions["session_id"].to_list() == ["s", "s~requests"]
    assert made.row_changes.height == 1
