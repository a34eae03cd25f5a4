"""Tools of Slack over a company's world."""

from __future__ import annotations

import csv
import io
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from env_builder.company.conventions import settled_after
from env_builder.runtime.company import CompanyDesk, CompanyWorld, FieldVersion, Undecided
from env_builder.runtime.office.company import CompanyEpisode, CompanySuite
from env_builder.runtime.office.slack import csv_rows
from env_builder.runtime.office.slack_search import parse_search

_START = 1_772_440_000
_SECOND = 1_000_000
_PEOPLE = {"ada@example.org": {"slack_user": "U1"}, "bob@example.org": {"slack_user": "U2"}}


def record(entity_class: str, key: str, at: float, **values: object) -> list[FieldVersion]:
    return [FieldVersion(entity_class, key, name, value, int(at * _SECOND)) for name, value in values.items()]


def message(channel: str, at: int, user: str, text: str, **more: object) -> list[FieldVersion]:
    ts = f"{_START + at}.000100"
    return record("slack", f"{channel}/{ts}", _START + at, channel=channel, ts=ts, user=user, text=text, reactions={}, **more)


def company(*more: list[FieldVersion], conventions: dict[str, object] | None = None) -> CompanySuite:
    rows = [
        record("slack_user", "U1", 0, name="ada", real_name="Ada Nowak", display_name="Ada", email="ada@example.org", title="",
               is_bot=False, deleted=False),
        record("slack_user", "U2", 0, name="bob", real_name="Bob, Jr.", display_name="", email="bob@example.org", title="Cook",
               is_bot=False, deleted=False),
        record("slack_channel", "C1", 0, name="hall", kind="channel", private=False, members=["U1", "U2"], topic="", purpose="",
               archived=False),
        record("slack_channel", "G1", 0, name="attic", kind="channel", private=True, members=["U2"], topic="", purpose="",
               archived=False),
        message("C1", 100, "U2", "the soup, is ready"), message("C1", 200, "U1", "thanks"),
        message("C1", 300, "U2", "more?", thread_ts=f"{_START + 100}.000100"), message("G1", 150, "U2", "secret soup"),
        message("C1", 9_000, "U2", "soup of tomorrow")]
    versions = [version for row in [*rows, *more] for version in row]
    return CompanySuite("company", CompanyWorld(versions), _PEOPLE, None, ("slack",), {"slack": conventions or {}})  # type: ignore[arg-type]


def desk(suite: CompanySuite, at: int, address: str = "ada@example.org") -> CompanyEpisode:
    instant = datetime.fromtimestamp(_START + at, UTC).isoformat()
    return CompanyEpisode(suite, CompanyDesk(suite.start_of(instant, address)))


def test_history_has_the_newest_first_and_neither_replies_nor_what_comes_later() -> None:
    lines = desk(company(), 1_000).call("conversations_history", {"channel_id": "#hall", "limit": "5"}).content.splitlines()
    assert [line.split(",")[0] for line in lines[1:]] == [f"{_START + 200}.000100", f"{_START + 100}.000100"]
    assert '"Bob, Jr."' in lines[2]
    assert '"the soup, is ready"' in lines[2]


def test_who_is_no_member_finds_no_private_channel() -> None:
    episode = desk(company(), 1_000)
    refused = episode.call("conversations_history", {"channel_id": "G1"})
    assert (refused.content, refused.is_error) == ("Error: channel_not_found", True)
    assert "secret" not in episode.call("conversations_search_messages", {"search_query": "soup"}).content
    assert "secret" in desk(company(), 1_000, "bob@example.org").call(
        "conversations_search_messages", {"search_query": "soup"}).content
    assert "attic" not in episode.call("channels_list", {"channel_types": "public_channel,private_channel"}).content


def test_a_message_is_posted_seen_by_others_and_taken_back_by_a_snapshot() -> None:
    episode = desk(company(), 1_000)
    before = episode.snapshot()
    thread = {"channel_id": "C1", "thread_ts": f"{_START + 100}.000100"}
    posted = episode.call("conversations_add_message", {**thread, "payload": "coming"})
    assert posted.tier == "derived"
    replies = episode.call("conversations_replies", thread).content
    assert replies.splitlines()[-1].startswith(posted.content.splitlines()[1].split(",")[0])
    assert len(episode.difference()["documents"]) == 1
    episode.restore(before)
    assert episode.difference()["documents"] == {}


def test_a_reaction_whose_time_nobody_recorded_is_undecided_until_such_ones_have_settled() -> None:
    late = [FieldVersion("slack", f"C1/{_START + 200}.000100", "reactions", {"eyes": ["U2"]}, (_START + 200) * _SECOND,
                         guessed_until=2**62)]
    ask = ("conversations_history", {"channel_id": "C1", "limit": "5"})
    assert desk(company(late), 1_000).call(*ask).tier == "unknown"
    settled = company(late, conventions={"settled": {"eyes": 500.0}})
    assert desk(settled, 600).call(*ask).tier == "unknown"
    assert "eyes:1" in desk(settled, 1_000).call(*ask).content


def test_ages_of_a_kind_that_changed_late_teach_nothing() -> None:
    eyes = [(float(age), True) for age in range(100, 120)]
    assert settled_after({"eyes": [(50.0, False), *eyes], "heart": [(900.0, False), (10.0, True)]}) == {"eyes": 100.0}
    assert settled_after({"eyes": eyes[:4]}) == {}


@pytest.mark.parametrize(("query", "texts"), [
    ("soup", [True, False]), ('"is ready"', [True, False]), ("-soup", [False, True]), ("from:@bob soup", [True, False]),
    ("in:#hall than", [False, True]), ("from:me thanks", [False, True]), ("before:2026-03-02 soup", [False, False])])
def test_the_search_language_selects(query: str, texts: list[bool]) -> None:
    content = desk(company(), 1_000).call("conversations_search_messages", {"search_query": query}).content
    assert [text in content for text in ("the soup, is ready", ",thanks,")] == texts


def test_a_modifier_that_is_not_known_is_no_word() -> None:
    with pytest.raises(Undecided, match="creator"):
        parse_search("creator:me soup", {})


@given(st.lists(st.lists(st.text(), min_size=2, max_size=2)))
def test_any_text_comes_back_out_of_the_rows(rows: list[list[str]]) -> None:
    rows = [[cell.replace("\r", " ").replace("\x00", " ") for cell in row] for row in rows]
    assert list(csv.reader(io.StringIO(csv_rows(("a", "b"), rows), newline=""))) == [["a", "b"], *rows]
