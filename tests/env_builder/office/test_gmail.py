"""Gmail's tools answer over one person's mailbox as of an instant."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from env_builder.runtime.company import CompanyDesk, ProductRefusal, Undecided
from env_builder.runtime.office.gmail import TOOLS
from env_builder.runtime.office.gmail_query import (
    Expression,
    Letter,
    QueryProblem,
    SearchRules,
    matches,
    parse_query,
    write_query,
)
from tests.small_company import ADA, BEN, CLEO, NOON, desk_of, fields_of, is_open, mail_of, world_of

IDS = {"gmail": {"known_ids": {"a1": "<1@x>", "a2": "<2@x>", "a3": "<3@x>", "a4": "<4@x>"}}}
MAILS = world_of(
    mail_of("<1@x>", -900, "rye@farm.example", [ADA], "Price of rye", "Ten a sack.", name="Rye Farm"),
    mail_of(
        "<2@x>", -800, ADA, ["rye@farm.example", BEN], "Re: Price of rye", "Too dear.", thread="<1@x>", references=["<1@x>"]
    ),
    mail_of("<3@x>", -700, BEN, [ADA], "Sacks", "We have no sacks left.", attach=["count.pdf"]),
    mail_of("<4@x>", 700, BEN, [ADA], "Sacks again", "They have come."),
)


def ask(desk: CompanyDesk, tool: str, **arguments: Any) -> str:
    return TOOLS[tool].answer(desk, arguments)


def found(query: str, desk: CompanyDesk | None = None) -> list[str]:
    answer = ask(desk or desk_of(MAILS, conventions=IDS), "search_gmail_messages", query=query)
    return [line.removeprefix("- ID: ") for line in answer.splitlines()[1:]]


@pytest.mark.parametrize(
    ("query", "ids"),
    [
        ("", ["a3", "a2", "a1"]),
        ("from:rye@farm.example", ["a1"]),
        ("from:(rye OR ben) -subject:price", ["a3"]),
        ("to:ben rye", ["a2"]),
        ("has:attachment", ["a3"]),
        ("filename:count.pdf", ["a3"]),
        ('"no sacks"', ["a3"]),
        ('"sacks no"', []),
        ("{dear sack}", ["a3", "a2", "a1"]),
        ("dear OR sack from:ada", ["a2"]),
        ("in:sent", ["a2"]),
        ("-in:sent subject:sacks", ["a3"]),
        ("after:2026/03/03", []),
        ("newer_than:1h subject:rye", ["a2", "a1"]),
        ("older_than:1d", []),
        ("rfc822msgid:1@x", ["a1"]),
        ("label:harvest", []),
        ("subject:(price rye)", ["a2", "a1"]),
    ],
)
def test_a_search_finds_the_latest_first_and_nothing_later(query: str, ids: list[str]) -> None:
    assert found(query) == ids


@pytest.mark.parametrize(
    "query",
    ["is:unread", "in:inbox", "is:starred", "larger:5M", "(rye", "after:yesterday", "before:2026/03/02 dear OR larger:1"],
)
def test_a_search_is_open_where_flags_or_the_grammar_decide(query: str) -> None:
    assert is_open(TOOLS, desk_of(MAILS, conventions=IDS), "search_gmail_messages", query=query)


def test_a_flag_that_the_rest_of_the_query_leaves_out_does_not_matter() -> None:
    assert found("is:unread subject:oats") == []


def test_a_part_of_a_word_matches_unless_calls_show_otherwise() -> None:
    assert found("subject:pri") == ["a2", "a1"]
    assert found("subject:pri", desk_of(MAILS, conventions={"gmail": {**IDS["gmail"], "part_words": False}})) == []


def test_days_begin_where_calls_show_it_and_are_open_in_between() -> None:
    world = world_of(mail_of("<1@x>", -9 * 3600, BEN, [ADA], "Early"))  # at 03:00 UTC
    assert is_open(TOOLS, desk_of(world, conventions=IDS), "search_gmail_messages", query="after:2026/03/02")
    for midnight, ids in ((0, ["a1"]), (8 * 3600, [])):
        assert found("after:2026/03/02", desk_of(world, conventions={"gmail": {**IDS["gmail"], "midnight": midnight}})) == ids


def test_a_message_shows_its_subject_sender_and_text() -> None:
    assert ask(desk_of(MAILS, conventions=IDS), "get_gmail_message_content", message_id="a1") == (
        "Subject: Price of rye\nFrom:    Rye Farm <rye@farm.example>\n\n--- BODY ---\nTen a sack."
    )


def test_messages_of_others_and_of_the_future_are_not_found() -> None:
    desk = desk_of(MAILS, BEN, conventions=IDS)
    for message_id in ("a1", "a4", "zz"):
        with pytest.raises(ProductRefusal, match="not found"):
            ask(desk, "get_gmail_message_content", message_id=message_id)


def test_an_id_that_nobody_knows_leaves_the_call_open() -> None:
    assert is_open(TOOLS, desk_of(MAILS), "get_gmail_message_content", message_id="a1")
    assert is_open(TOOLS, desk_of(MAILS), "search_gmail_messages", query="rye")
    assert ask(desk_of(MAILS), "search_gmail_messages", query="oats") == "No messages found for 'oats'."


def test_an_id_that_the_export_states_needs_no_calls() -> None:
    world = world_of(mail_of("<1@x>", -5, BEN, [ADA], "Oats"), fields_of("mailbox", f"{ADA}|<1@x>", -5, id="g7"))
    assert found("oats", desk_of(world)) == ["g7"]
    assert ask(desk_of(world), "get_gmail_message_content", message_id="g7").startswith("Subject: Oats")


def test_mail_reaches_colleagues_and_goes_into_the_thread_that_it_answers() -> None:
    desk = desk_of(MAILS, conventions=IDS)
    answer = ask(
        desk,
        "send_gmail_message",
        to=f"{BEN}, rye@farm.example",
        subject="Re: Sacks",
        body="How many?",
        in_reply_to="a3",
        cc=CLEO,
    )
    message_id = answer.removeprefix("Email sent! Message ID: ")
    (key,) = desk.own("mail")
    assert desk.record("mail", key) == {
        "sender": ADA,
        "name": "Ada Roe",
        "to": [BEN, "rye@farm.example"],
        "cc": [CLEO],
        "subject": "Re: Sacks",
        "body": "How many?",
        "date": float(NOON),
        "attach": None,
        "references": ["<3@x>"],
        "thread": "<3@x>",
    }
    assert sorted(desk.own("mailbox")) == [f"{owner}|{key}" for owner in (ADA, BEN, CLEO)]
    assert found("subject:sacks", desk) == [message_id, "a3"]
    assert "How many?" in ask(desk, "get_gmail_message_content", message_id=message_id)
    assert found("is:unread subject:oats", desk) == [] and not is_open(
        TOOLS, desk, "search_gmail_messages", query="label:sent how"
    )


def test_labels_of_the_episode_count_though_those_before_are_not_known() -> None:
    desk = desk_of(MAILS, conventions=IDS)
    ask(desk, "modify_gmail_message_labels", message_id="a3", add_label_ids=["Later"], remove_label_ids=["INBOX"])
    assert found("label:later", desk) == ["a3"] and found("-in:inbox subject:sacks", desk) == ["a3"]
    ask(desk, "modify_gmail_message_labels", message_id="a3", remove_label_ids=["Later"])
    assert found("label:later", desk) == []
    with pytest.raises(ProductRefusal, match="At least one"):
        ask(desk, "modify_gmail_message_labels", message_id="a3")


def test_mail_in_the_trash_is_found_there_alone() -> None:
    desk = desk_of(MAILS, conventions=IDS)
    ask(desk, "modify_gmail_message_labels", message_id="a3", add_label_ids=["TRASH"])
    assert found("subject:sacks", desk) == [] and found("in:trash subject:sacks", desk) == ["a3"]


def test_a_thread_shows_its_letters_in_order() -> None:
    text = ask(desk_of(MAILS, conventions=IDS), "get_gmail_thread_content", thread_id="a1")
    assert [line for line in text.splitlines() if line.startswith(("Messages", "From", "===", "Date"))] == [
        "Messages: 2",
        "=== Message 1 ===",
        "From: Rye Farm <rye@farm.example>",
        "Date: Mon, 02 Mar 2026 11:45:00 +0000",
        "=== Message 2 ===",
        f"From: {ADA}",
        "Date: Mon, 02 Mar 2026 11:46:40 +0000",
    ]


def test_a_draft_is_with_nobody_else() -> None:
    desk = desk_of(MAILS, conventions=IDS)
    assert ask(desk, "draft_gmail_message", to=BEN, subject="Perhaps", body="x").startswith("Draft created! Draft ID: ")
    assert [key.partition("|")[0] for key in desk.own("mailbox")] == [ADA] and len(found("in:drafts perhaps", desk)) == 1


_NAMES = st.sampled_from(("", "from", "to", "subject", "cc"))
_WORDS = st.sampled_from(("rye", "oats", "ada", "a-b", "x@y.example"))
_TERMS = st.builds(
    lambda operator, value, phrase: Expression("term", operator=operator, value=value, is_phrase=phrase),
    _NAMES,
    _WORDS,
    st.booleans(),
)
_TREES = st.recursive(
    _TERMS,
    lambda inner: st.one_of(
        st.builds(lambda node: Expression("not", (node,)), inner),
        st.builds(
            lambda kind, nodes: Expression(kind, tuple(nodes)),
            st.sampled_from(("all", "any")),
            st.lists(inner, min_size=2, max_size=3),
        ),
    ),
    max_leaves=8,
)
_TEXTS = st.lists(_WORDS, max_size=4).map(" ".join)
RULES = SearchRules(0, lambda letter, label: None, True, 0)


def letter_with(text: str) -> Letter:
    return Letter(
        "<k>",
        "",
        "",
        (),
        (),
        "",
        "",
        (),
        0,
        "",
        (),
        {name or "anywhere": text for name in ("", "from", "to", "subject", "cc")},
    )


@given(_TREES)
def test_a_query_reads_as_it_was_written(tree: Expression) -> None:
    assert parse_query(write_query(tree)) == tree


@given(_TREES, _TEXTS)
def test_what_a_query_rejects_its_opposite_accepts(tree: Expression, text: str) -> None:
    answer = matches(tree, letter_with(text), RULES)
    assert answer is not None and matches(Expression("not", (tree,)), letter_with(text), RULES) is not answer


@given(_TREES, _TEXTS)
def test_an_open_reading_never_contradicts_a_certain_one(tree: Expression, text: str) -> None:
    letter = letter_with(text)
    open_answer = matches(tree, letter, RULES._replace(part_words=None))
    for part_words in (True, False):
        assert open_answer in (None, matches(tree, letter, RULES._replace(part_words=part_words)))


@given(st.text(st.sampled_from('abOR ():{}"-|@./'), max_size=30))
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        parse_query(text)
    except QueryProblem as problem:
        assert str(problem)


def test_labels_whose_times_are_not_known_cannot_be_listed() -> None:
    named = world_of(mail_of("<1@x>", -5, BEN, [ADA], "x"))
    assert "INBOX" in ask(desk_of(named), "list_gmail_labels")
    labelled = world_of(
        mail_of("<1@x>", -5, BEN, [ADA], "x"),
        [*mail_of("<5@x>", -4, BEN, [ADA], "y")][:-1],
        [version._replace(value=["Mill"]) for version in mail_of("<5@x>", -4, BEN, [ADA], "y")[-1:]],
    )
    with pytest.raises(Undecided, match="labels"):
        ask(desk_of(labelled), "list_gmail_labels")
