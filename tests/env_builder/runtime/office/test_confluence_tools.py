"""Tools of a wiki answer as of an instant, as one person, and leave open what the exports do not tell."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from env_builder.company.calls import RecordedCall
from env_builder.company.wiki_conventions import learn_confluence
from env_builder.runtime.company import (
    CompanyDesk,
    CompanyWorld,
    DeskStart,
    FieldVersion,
    PersonSight,
    ProductRefusal,
    Undecided,
)
from env_builder.runtime.office.confluence import TOOLS
from env_builder.runtime.office.confluence_cql import CqlClause, CqlGroup, CqlValue, InvalidCql, parse_query, satisfies
from tests.small_company import NEVER, NOON
from tests.small_company import versions_at as record

DAY = 86_400
MARA, JO = "mara@toys.example", "jo@toys.example"
ACCOUNTS = {MARA: {"wiki_user": "a1"}, JO: {"jira_user": "a2"}}
SITE = "https://toys.example/wiki"


def page(key: str, at: float, title: str, body: str, space: str = "DOCS", **fields: Any) -> list[FieldVersion]:
    values = {"author": "a1", "created": at, "status": "current", "type": "page", "space": space, "parent": None, "labels": [],
              "title": title, "body": body, "version": 1} | fields
    return record("wiki", key, at, **values)


COMPANY = [
    *record("person", MARA, 0, dept="HR", title="Maker"), *record("person", JO, 0, dept="Tools", title="Maker"),
    *record("wiki_user", "a1", 0, display_name="Mara Sol"), *record("jira_user", "a2", 0, display_name="Jo Park"),
    *record("wiki_space", "DOCS", 0, name="Documents"), *record("wiki_space", "STAFF", 0, readers=["HR"]),
    *page("10", NOON - 5 * DAY, "Kites", "<p>All about <b>dragons</b> &amp; tails.</p>"),
    *page("11", NOON - 4 * DAY, "Tails", "<p>Long and short</p><p>Red</p>", parent="10", author="a2"),
    *page("12", NOON - 3 * DAY, "Salaries", "<p>kites cost</p>", space="STAFF"),
    *record("wiki", "10", NOON - DAY, title="Kites", body="<p>All about dragons.</p>", version=2),
    *page("13", NOON + DAY, "Later kites", "<p>No</p>"),
    *record("wiki_comment", "20", NOON - DAY, author="a2", created=NOON - DAY, page="10", body="<p>Nice</p>"),
]


def desk(versions: list[FieldVersion] = COMPANY, address: str = MARA, at: float = NOON, **conventions: Any) -> CompanyDesk:
    state = CompanyWorld(versions).at(round(at * 1e6))
    own = {"confluence": {"site": SITE} | conventions}
    return CompanyDesk(DeskStart(state, address, ACCOUNTS, PersonSight(state, address), own))


def call(own: CompanyDesk, tool: str, **arguments: Any) -> Any:
    return json.loads(TOOLS[f"confluence_{tool}"].answer(own, arguments))


def search_ids(query: str, own: CompanyDesk | None = None, **arguments: Any) -> list[str]:
    return [row["id"] for row in call(own or desk(), "search", query=query, **arguments)]


def test_a_page_shows_the_version_of_the_instant() -> None:
    assert call(desk(), "get_page", page_id=f"{SITE}/spaces/DOCS/pages/11/Tails") == {"metadata": {
        "id": "11", "title": "Tails", "type": "page", "created": "2026-02-26 12:00:00 UTC",
        "updated": "2026-02-26 12:00:00 UTC", "url": f"{SITE}/spaces/DOCS/pages/11",
        "space": {"key": "DOCS", "name": "Documents"}, "author": "Jo Park", "version": 1, "attachments": [],
        "content": {"value": "<p>Long and short</p><p>Red</p>", "format": "storage"},
        "ancestors": [{"id": "10", "title": "Kites"}]}}
    assert call(desk(at=NOON - 2 * DAY), "get_page", page_id="10")["metadata"]["version"] == 1
    assert call(desk(), "get_page", title="Kites", space_key="DOCS")["metadata"]["updated"] == "2026-03-01 12:00:00 UTC"
    assert "not found in space" in call(desk(), "get_page", title="Kites", space_key="STAFF")["error"]


def test_pages_of_others_departments_and_of_the_future_are_not_there() -> None:
    for own, key in ((desk(address=JO), "12"), (desk(), "13"), (desk(), "99")):
        with pytest.raises(ProductRefusal, match=f"Error: No content found with id: ContentId{{id={key}}}"):
            call(own, "get_page", page_id=key)
    assert search_ids("kites") == ["10", "12"]
    assert search_ids("kites", desk(address=JO)) == ["10"]
    with pytest.raises(ProductRefusal, match="No space"):
        call(desk(address=JO), "create_page", space_key="STAFF", title="Mine", content="<p>a</p>")


@pytest.mark.parametrize(("query", "expected"), [
    ("dragon", ["10"]), ("DRAGONS about", ["10"]), ("b", []), ("ails", []),
    ("title ~ tail", ["11"]), ('text ~ "\\"all about\\""', ["10"]), ('text ~ "\\"about all\\""', []),
    ("space = DOCS AND NOT title = tails", ["10"]), ("space in (DOCS, STAFF) and creator = currentUser()", ["10", "12"]),
    ("(parent = 10 or id = 12) order by created", ["11", "12"]), ("ancestor = 10", ["11"]),
    ("created < 2026-02-26 order by title desc", ["10"]), ('lastModified >= "2026-03-01"', ["10"]),
    ('lastModified > now("-2d")', ["10"]), ("type = page order by title desc", ["11", "12", "10"]),
    ("type != page and space = DOCS", []),
])
def test_a_search_follows_cql(query: str, expected: list[str]) -> None:
    assert search_ids(query) == expected


def test_a_search_is_cut_and_narrowed_and_refuses_what_is_no_query() -> None:
    assert search_ids("kites", spaces_filter="STAFF") == ["12"] and search_ids("kites", limit=1) == ["10"]
    for wrong in ("title ~", "= 3", "title = a b", "(title = a", 'title = "a'):
        with pytest.raises(ProductRefusal, match="Could not parse cql"):
            search_ids(wrong)
    with pytest.raises(Undecided, match="watcher"):
        search_ids("watcher = currentUser()")


def test_a_page_is_created_updated_moved_and_deleted() -> None:
    own = desk(address=JO)
    made = call(own, "create_page", space_key="DOCS", title="Strings", content="<p>Thin</p>", parent_id="11")
    assert made["message"] == "Page created successfully" and made["page"]["author"] == "Jo Park"
    key = made["page"]["id"]
    assert [each["id"] for each in made["page"]["ancestors"]] == ["10", "11"] and int(key) > 20
    own.n_acts += 1
    changed = call(own, "update_page", page_id=key, title="String", content="<p>Thick</p>")["page"]
    assert (changed["version"], changed["title"], changed["updated"]) == (2, "String", "2026-03-02 12:00:01 UTC")
    own.n_acts += 5
    assert call(own, "get_page", page_id=key)["metadata"] == changed
    assert search_ids("thick", own) == [key] and search_ids("thin", own) == []
    with pytest.raises(ProductRefusal, match="already exists"):
        call(own, "create_page", space_key="DOCS", title="Kites", content="<p>a</p>")
    with pytest.raises(ProductRefusal, match="descendants"):
        call(own, "move_page", page_id="10", target_parent_id=key)
    assert call(own, "delete_page", page_id="11")["success"]
    assert [row["id"] for row in call(own, "get_page_children", parent_id="10")["results"]] == [key]
    assert call(own, "move_page", page_id=key, target_parent_id="10")["page"]["ancestors"] == [{"id": "10", "title": "Kites"}]


def test_comments_and_labels() -> None:
    own = desk()
    first = {"id": "20", "body": "Nice", "created": "", "updated": "", "title": "Re: Kites", "author": "Jo Park"}
    assert call(own, "get_comments", page_id="10") == [first]
    added = call(own, "add_comment", page_id="10", body="Thanks")["comment"]
    own.n_acts += 1
    reply = call(own, "reply_to_comment", comment_id="20", body="Yes")["comment"]
    assert call(own, "get_comments", page_id="10") == [first, added, reply]
    assert (added["author"], reply["parent_comment_id"]) == ("Mara Sol", "20") and added["id"] != reply["id"]
    assert call(own, "get_labels", page_id="10") == []
    assert [row["name"] for row in call(own, "add_label", page_id="10", name="Toys")] == ["toys"]
    assert search_ids("label = toys", own) == ["10"]
    labelled = [FieldVersion("wiki", "11", "labels", ["old"], round((NOON - DAY) * 1e6), None, NEVER)]
    with pytest.raises(Undecided, match="labels"):
        call(desk(COMPANY + labelled), "get_labels", page_id="11")


def test_markdown_is_shown_of_plain_paragraphs_alone() -> None:
    own = desk(content="markdown")
    shown = call(own, "get_page", page_id="11")["metadata"]["content"]
    assert shown == {"value": "Long and short\n\nRed", "format": "markdown"}
    with pytest.raises(Undecided, match="markup"):
        call(desk(at=NOON - 2 * DAY, content="markdown"), "get_page", page_id="10")
    raw = call(desk(at=NOON - 2 * DAY, content="markdown"), "get_page", page_id="10", convert_to_markdown=False)
    assert raw["metadata"]["content"]["format"] == "storage"


def test_recorded_answers_teach_the_site_and_what_a_search_tells() -> None:
    own = desk(urls="server")
    shown = [RecordedCall(0, MARA, f"confluence_{tool}", arguments, json.dumps(call(own, tool, **arguments)), False)
             for tool, arguments in (("get_page", {"page_id": "11"}), ("search", {"query": "kites"}))]
    assert learn_confluence(shown, CompanyWorld([])) == {
        "site": SITE, "urls": "server", "content": "storage", "search_fields": ["id", "title", "space", "version"]}
    assert learn_confluence([], CompanyWorld([])) == {}
    fields = ["id", "url", "author"]
    assert list(call(desk(search_fields=fields), "search", query="dragons")[0]) == fields
    unknown = CompanyDesk(DeskStart(CompanyWorld(COMPANY).at(NOON * 10**6), MARA, ACCOUNTS,
                                    PersonSight(CompanyWorld(COMPANY).at(NOON * 10**6), MARA)))
    with pytest.raises(Undecided, match="address of the site"):
        call(unknown, "get_page", page_id="10")


_CLAUSES = st.builds(
    CqlClause, st.sampled_from(["title", "space", "label"]), st.sampled_from(["=", "!=", "~"]),
    st.text(st.characters(exclude_categories=["Cs"]), max_size=8).map(lambda text: (CqlValue(text),)))
_CONDITIONS = st.recursive(_CLAUSES, lambda parts: st.one_of(
    st.builds(CqlGroup, st.sampled_from(["and", "or"]), st.lists(parts, min_size=2, max_size=3).map(tuple)),
    st.builds(CqlGroup, st.just("not"), parts.map(lambda part: (part,)))), max_leaves=6)


def _written(condition: CqlGroup | CqlClause) -> str:
    if isinstance(condition, CqlClause):
        text = condition.values[0].text.replace("\\", "\\\\").replace('"', '\\"')
        return f'{condition.field} {condition.operator} "{text}"'
    if condition.word == "not":
        return f"NOT ({_written(condition.parts[0])})"
    return "(" + f" {condition.word.upper()} ".join(f"({_written(part)})" for part in condition.parts) + ")"


@given(_CONDITIONS)
def test_a_condition_that_is_written_out_is_read_as_itself(condition: CqlGroup | CqlClause) -> None:
    query = parse_query(f"{_written(condition)} ORDER BY created DESC, title")
    assert query.condition == condition and query.order == (("created", True), ("title", False))
    assert satisfies(CqlGroup("not", (condition,)), lambda clause: len(clause.field) > 4) != satisfies(
        condition, lambda clause: len(clause.field) > 4)


@given(st.text(max_size=30))
def test_any_text_is_a_query_or_is_refused(text: str) -> None:
    try:
        assert parse_query(text).condition is not None or "order" in text.lower()
    except InvalidCql as error:
        assert str(error).startswith("Could not parse cql")
