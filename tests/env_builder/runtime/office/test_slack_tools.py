"""Tools of a chat answer as of an instant, as one person, and leave open what the exports do not tell."""

from __future__ import annotations

import csv
import io
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from env_builder.company.calls import RecordedCall
from env_builder.company.chat_conventions import learn_slack
from env_builder.runtime.company import (
    CompanyDesk,
    CompanyWorld,
    DeskStart,
    FieldVersion,
    PersonSight,
    ProductRefusal,
    Undecided,
)
from env_builder.runtime.office.slack import TOOLS
from env_builder.runtime.office.slack_search import FILTERS, InvalidSearch, date_terms, interval, parse_search
from env_builder.runtime.office.tables import csv_text, decode_cursor, encode_cursor
from tests.small_company import NEVER, NOON
from tests.small_company import versions_at as record

HOUR, DAY = 3600, 86_400
MARA, JO, KIM = "mara@toys.example", "jo@toys.example", "kim@toys.example"
ACCOUNTS = {MARA: {"slack_user": "U1"}, JO: {"slack_user": "U2"}, KIM: {"slack_user": "U3"}}


def message(at: float, user: str, text: str, channel: str = "C1", **fields: Any) -> list[FieldVersion]:
    ts = f"{int(at)}.000100"
    values = {"channel": channel, "ts": ts, "user": user, "deleted": False, "text": text, "reactions": {}} | fields
    return record("slack", f"{channel}/{ts}", at, **values)


def ts(at: float) -> str:
    return f"{int(at)}.000100"


COMPANY = [
    *(version for user, name, full in (("U1", "mara.s", "Mara Sol"), ("U2", "jo", "Jo Park"), ("U3", "kim", "Kim Ash"))
      for version in record("slack_user", user, 0, name=name, real_name=full, display_name="", title="Maker", deleted=False,
                            email=f"{full.split()[0].lower()}@toys.example")),
    *record("slack_channel", "C1", 1000, kind="channel", private=False, name="builds", members=["U1", "U2"], created=1000,
            topic="", purpose="What we build", archived=False),
    *record("slack_channel", "G1", 1000, kind="channel", private=True, name="secret", members=["U1"], created=1000, topic="",
            purpose="", archived=False),
    *record("slack_channel", "D1", 1000, kind="im", private=True, name="U1-U2", members=["U1", "U2"], created=1000, topic="",
            purpose="", archived=False),
    *message(NOON - 40 * HOUR, "U1", "the kite, flies"),
    *message(NOON - 2 * HOUR, "U2", "kites are ready"),
    *message(NOON - HOUR, "U1", "well done", thread_ts=ts(NOON - 2 * HOUR)),
    *message(NOON - HOUR / 2, "U1", "a hidden kite", channel="G1"),
    *message(NOON - HOUR / 3, "U1", "kite for two", channel="D1"),
    *message(NOON - 10, "U2", "", subtype="channel_join"),
    *message(NOON + HOUR, "U1", "a later kite"),
]


def desk(versions: list[FieldVersion] = COMPANY, address: str = MARA, at: float = NOON, **conventions: Any) -> CompanyDesk:
    state = CompanyWorld(versions).at(round(at * 1e6))
    return CompanyDesk(DeskStart(state, address, ACCOUNTS, PersonSight(state, address), {"slack": conventions}))


def call(own: CompanyDesk, tool: str, **arguments: Any) -> str:
    return TOOLS[tool].answer(own, arguments)


def rows(answer: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(answer)))


def texts(answer: str) -> list[str]:
    return [row["Text"] for row in rows(answer)]


def test_history_is_newest_first_without_replies_activity_and_the_future() -> None:
    assert texts(call(desk(), "conversations_history", channel_id="#builds")) == ["kites are ready", "the kite, flies"]
    assert texts(call(desk(), "conversations_history", channel_id="C1", include_activity_messages=True))[0] == ""
    assert call(desk(), "conversations_history", channel_id="C1", limit="1") == (
        "MsgID,UserID,UserName,RealName,Channel,ThreadTs,Text,Time,Reactions,BotName,FileCount,AttachmentIDs,HasMedia,Cursor\n"
        "1772445600.000100,U2,jo,Jo Park,C1,,kites are ready,2026-03-02T10:00:00Z,,,0,,false,\n")


@pytest.mark.parametrize(("window", "n"), [("rolling", 2), ("days", 1)])
def test_a_limit_of_time_reaches_as_far_as_the_company_server_does(window: str, n: int) -> None:
    assert len(rows(call(desk(window=window), "conversations_history", channel_id="C1", limit="2d"))) == n


def test_a_cursor_goes_on_where_an_answer_ended() -> None:
    first = rows(call(desk(cursors=True), "conversations_history", channel_id="C1", limit="1"))
    rest = rows(call(desk(cursors=True), "conversations_history", channel_id="C1", cursor=first[-1]["Cursor"]))
    assert [row["Text"] for row in rest] == ["the kite, flies"] and rest[-1]["Cursor"] == ""
    query = {"search_query": "kite", "limit": 2}
    page = rows(call(desk(cursors=True), "conversations_search_messages", **query))
    more = rows(call(desk(cursors=True), "conversations_search_messages", **query, cursor=page[-1]["Cursor"]))
    assert [row["Text"] for row in page + more] == ["kite for two", "a hidden kite", "kites are ready", "the kite, flies"]


def test_who_is_no_member_of_a_private_channel_neither_reads_nor_finds_nor_writes() -> None:
    for tool, arguments in (("conversations_history", {}), ("conversations_add_message", {"text": "hi"})):
        with pytest.raises(ProductRefusal, match="Error: channel_not_found"):
            call(desk(address=JO), tool, channel_id="G1", **arguments)
    assert "a hidden kite" not in texts(call(desk(address=JO), "conversations_search_messages", search_query="kite"))
    assert "kite for two" not in texts(call(desk(address=KIM), "conversations_search_messages", search_query="kite"))
    assert "#secret" not in call(desk(address=JO), "channels_list", channel_types="public_channel,private_channel")


def test_a_thread_shows_its_first_message_and_what_was_replied() -> None:
    own = desk()
    posted = rows(call(own, "conversations_add_message", channel_id="C1", payload="thanks", thread_ts=ts(NOON - HOUR)))
    assert posted[0]["ThreadTs"] == ts(NOON - 2 * HOUR) and posted[0]["UserName"] == "mara.s"
    assert texts(call(own, "conversations_replies", channel_id="C1", thread_ts=ts(NOON - 2 * HOUR))) == [
        "kites are ready", "well done", "thanks"]
    with pytest.raises(ProductRefusal, match="thread_not_found"):
        call(own, "conversations_replies", channel_id="C1", thread_ts="1.5")


def test_a_post_is_found_and_notifies_those_it_mentions() -> None:
    own = desk()
    call(own, "conversations_add_message", channel_id="C1", text="<@U2> look at this dragon")
    assert texts(call(own, "conversations_search_messages", search_query="drag"))[0] == "<@U2> look at this dragon"
    assert [name[1].partition("/")[0] for name in own.changed() if name[0] == "slack_mention"] == ["U2"]
    assert call(own, "conversations_history", channel_id="C1", limit="1").count("dragon") == 1


@pytest.mark.parametrize(("query", "arguments", "expected"), [
    ("kite -two", {}, ["a hidden kite", "kites are ready", "the kite, flies"]),
    ('"kite for"', {}, ["kite for two"]),
    ("kite from:@jo", {}, ["kites are ready"]),
    ("kite from:me in:#builds", {}, ["the kite, flies"]),
    ("kite", {"filter_users_from": "jo"}, ["kites are ready"]),
    ("kite", {"filter_in_channel": "G1"}, ["a hidden kite"]),
    ("kite", {"filter_in_im_or_mpim": "@jo"}, ["kite for two"]),
    ("kite before:today", {}, ["the kite, flies"]),
    ("kite on:2026-03-02 in:builds", {}, ["kites are ready"]),
    ("kite", {"filter_date_after": "2026-03-01", "filter_in_channel": "#builds"}, ["kites are ready"]),
    ("during:March in:builds -is:thread -from:jo", {}, []),
    ("is:thread in:builds", {}, ["well done", "kites are ready"]),
    ("f:kite", {}, []),
])
def test_a_search_follows_slack_s_language(query: str, arguments: dict[str, Any], expected: list[str]) -> None:
    assert texts(call(desk(), "conversations_search_messages", search_query=query, **arguments)) == expected


def test_a_permalink_finds_one_message() -> None:
    link = f"https://toys.slack.com/archives/C1/p{ts(NOON - 2 * HOUR).replace('.', '')}"
    assert texts(call(desk(), "conversations_search_messages", search_query=link)) == ["kites are ready"]


def test_a_text_before_an_edit_and_fresh_reactions_are_undecided_and_settle() -> None:
    key, at = f"C1/{ts(NOON - 3 * HOUR)}", round((NOON - 3 * HOUR) * 1e6)
    edited = [*message(NOON - 3 * HOUR, "U1", "fixed kite"),
              FieldVersion("slack", key, "text", "fixed kite", at, None, round((NOON + 5 * HOUR) * 1e6))]
    with pytest.raises(Undecided, match="text"):
        call(desk(COMPANY + edited), "conversations_history", channel_id="C1")
    with pytest.raises(Undecided, match="text"):
        call(desk(COMPANY + edited), "conversations_search_messages", search_query="fixed")
    assert call(desk(COMPANY + edited), "conversations_search_messages", search_query="ready").count("\n") == 2
    assert "fixed kite" in call(desk(COMPANY + edited, at=NOON + 6 * HOUR), "conversations_history", channel_id="C1")
    reacted = [*message(NOON - 3 * HOUR, "U1", "look"),
               FieldVersion("slack", key, "reactions", {"eyes": ["U2"]}, at, None, NEVER)]
    with pytest.raises(Undecided, match="reactions"):
        call(desk(COMPANY + reacted), "conversations_history", channel_id="C1")
    settled = call(desk(COMPANY + reacted, at=NOON + DAY), "conversations_history", channel_id="C1")
    assert [row["Reactions"] for row in rows(settled) if row["Text"] == "look"] == ["eyes:1"]


def test_reactions_are_added_and_removed_once() -> None:
    own = desk()
    name = {"channel_id": "C1", "timestamp": ts(NOON - 2 * HOUR), "emoji": ":tada:"}
    assert call(own, "reactions_add", **name) == (
        f"Successfully added :tada: reaction to message {ts(NOON - 2 * HOUR)} in channel C1")
    with pytest.raises(ProductRefusal, match="already_reacted"):
        call(own, "reactions_add", **name)
    assert rows(call(own, "conversations_history", channel_id="C1", limit="1"))[0]["Reactions"] == "tada:1"
    call(own, "reactions_remove", **name)
    with pytest.raises(ProductRefusal, match="no_reaction"):
        call(own, "reactions_remove", **name)
    assert own.changed() == []


def test_channels_people_and_unread_messages() -> None:
    assert call(desk(), "channels_list", channel_types="public_channel,im", sort="popularity") == (
        "ID,Name,Topic,Purpose,MemberCount,Cursor\nC1,#builds,,What we build,2,\nD1,@jo,,DM with Jo Park,2,\n")
    assert call(desk(), "users_search", query="PARK") == (
        "UserID,UserName,RealName,DisplayName,Email,Title,DMChannelID\nU2,jo,Jo Park,,jo@toys.example,Maker,\n")
    assert call(desk(), "users_search", query="nobody") == "No users found matching the query."
    own = desk()
    with pytest.raises(Undecided, match="had read"):
        call(own, "conversations_unreads")
    call(own, "conversations_mark", channel_id="C1", ts=ts(NOON - 3 * HOUR))
    assert texts(call(own, "conversations_unreads")) == ["kites are ready"]
    call(own, "conversations_mark", channel_id="C1")
    assert rows(call(own, "conversations_unreads", include_messages=False)) == []


@given(st.lists(st.tuples(st.sampled_from([*FILTERS, "word", "phrase"]), st.from_regex(r"[a-z0-9]{1,6}", fullmatch=True),
                          st.booleans()), max_size=6))
def test_a_query_of_terms_is_read_as_those_terms(terms: list[tuple[str, str, bool]]) -> None:
    shown = {"word": "{}", "phrase": '"{}"'}
    query = " ".join(("-" if negated else "") + shown.get(kind, f"{kind}:{{}}").format(text) for kind, text, negated in terms)
    assert [tuple(term) for term in parse_search(query)] == terms


@given(st.text(max_size=40))
def test_any_query_is_read_and_any_date_is_an_interval_or_none(text: str) -> None:
    assert all(term.kind in (*FILTERS, "word", "phrase") for term in parse_search(text))
    span = interval(text, NOON)
    assert span is None or span[0] < span[1]


def test_dates_of_arguments_are_normalised_and_contradictions_refused() -> None:
    assert [term[:2] for term in date_terms("March 2026", "2 days ago", "", "", NOON)] == [
        ("after", "2026-02-28"), ("before", "2026-03-01")]
    for given_dates in (("", "", "today", "July"), ("2026-01-01", "2026-02-01", "", ""), ("some day", "", "", "")):
        with pytest.raises(InvalidSearch):
            date_terms(*given_dates, NOON)


_CELLS = st.text(st.characters(exclude_characters="\r\x00", exclude_categories=["Cs"]))


@given(st.lists(st.lists(_CELLS, min_size=2, max_size=2)), st.text(st.characters(exclude_categories=["Cs"])))
def test_tables_and_cursors_can_be_read_back(table: list[list[str]], text: str) -> None:
    assert list(csv.reader(io.StringIO(csv_text(["a", "b"], table), newline=""))) == [["a", "b"], *table]
    assert decode_cursor(encode_cursor(text)) == text


def test_recorded_answers_teach_the_window_and_when_reactions_settle() -> None:
    world = CompanyWorld([*COMPANY, *(version for hour in range(12) for version in message(
        NOON - (20 + hour) * HOUR, "U1", f"n{hour}", reactions={"eyes": ["U2"]}))])
    at = round(NOON * 1e6)
    shown = call(desk(list(world.versions), settled=0), "conversations_history", channel_id="C1", limit="2d")
    calls = [RecordedCall(at, MARA, "conversations_history", {"channel_id": "C1", "limit": "2d"}, shown, False)]
    learnt = learn_slack(calls, world)
    assert learnt["window"] == "rolling" and 19 * HOUR < learnt["settled"] <= 20 * HOUR
    assert learn_slack([], world) == {}
