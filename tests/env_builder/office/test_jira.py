"""Tools of Jira answer as of an instant, as one person, and leave open what the exports do not tell."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from env_builder.runtime.company import CompanyDesk, CompanyWorld, DeskStart, FieldVersion, PersonSight, Undecided
from env_builder.runtime.office.company import CompanyEpisode, CompanySetup, CompanySuite
from env_builder.runtime.office.indented import indented_json
from env_builder.runtime.office.jira import TOOLS
from env_builder.runtime.office.jira_search import has_words
from tests.small_company import NOON, fields_of

MARA, JO, KIM = "mara@toys.example", "jo@toys.example", "kim@toys.example"
ACCOUNTS = {MARA: {"jira_user": "a1"}, JO: {"jira_user": "a2"}, KIM: {"jira_user": "a3"}}
STEPS = {
    "To Do": [("11", "Start", "In Progress"), ("21", "Close", "Done")],
    "In Progress": [("21", "Close", "Done")],
    "Done": [("31", "Again", "Reopened")],
}
SHOWS_ALL = {
    "jira_get_issue": {"all": True, "comments": True},
    "jira_search": {"all": True, "comments": False},
    "browse_url": False,
}


def record(entity_class: str, entity_id: str, at: float = -(10**6), **fields: Any) -> list[FieldVersion]:
    return fields_of(entity_class, entity_id, at, **fields)


def issue(key: str, at: float, **fields: Any) -> list[FieldVersion]:
    project, _, number = key.partition("-")
    return record(
        "jira",
        key,
        at,
        **{
            "key": key,
            "project": project,
            "created": NOON + at,
            "updated": NOON + at,
            "parent": None,
            "number": f"9{number}",
            "url": f"https://toys.example/rest/api/2/issue/{key}",
            "type": "Task",
            "status": "To Do",
            "priority": "Medium",
            "resolution": None,
            "resolved": None,
            "summary": f"Work {key}",
            "description": None,
            "duedate": None,
            "assignee": None,
            "reporter": "a1",
            "labels": [],
            "component": None,
            "fix_versions": [],
            "versions": [],
            "links": [],
            **fields,
        },
    )


def site(*more: list[FieldVersion]) -> CompanyWorld:
    versions = [
        each
        for name, steps in STEPS.items()
        for each in record("jira_status", name, name=name, transitions=[{"id": i, "name": n, "to": to} for i, n, to in steps])
    ]
    for name, number in (("High", "2"), ("Medium", "3"), ("Low", "4")):
        versions += record("jira_priority", name, name=name, number=number)
    for name in ("KIT", "SEC"):
        versions += record("jira_project", name, name=f"Project {name}", first_status="To Do", component_names=["wheels"])
    versions += record("jira_project", "SEC", readers=["Law"]) + record("jira_type", "Task", name="Task")
    versions += record("jira_status", "Done", resolution_after=["Done"]) + record("setting", "jira", shows_addresses=False)
    for account, name, address in (("a1", "Mara Lind", MARA), ("a2", "Jo Berg", JO), ("a3", "Kim Sol", KIM)):
        versions += record("jira_user", account, display_name=name, email=address, active=True)
        versions += record("person", address, title="Clerk", dept="Law" if account == "a3" else "Shop")
    return CompanyWorld([*versions, *(version for each in more for version in each)])


def desk_of(world: CompanyWorld, at: float = 0, address: str = MARA, habits: Mapping[str, Any] | None = None) -> CompanyDesk:
    state = world.at(int((NOON + at) * 1e6))
    learnt = {"jira": {"shown": SHOWS_ALL, **(habits or {})}}
    return CompanyDesk(DeskStart(state, address, ACCOUNTS, PersonSight(state, address), learnt))


def call(desk: CompanyDesk, tool: str, **arguments: Any) -> Any:
    answer = TOOLS[tool].answer(desk, arguments)
    desk.n_acts += bool(TOOLS[tool].writes)
    return json.loads(answer)


def refusal(desk: CompanyDesk, tool: str, **arguments: Any) -> str:
    from env_builder.runtime.company import ProductRefusal

    with pytest.raises(ProductRefusal) as caught:
        TOOLS[tool].answer(desk, arguments)
    return str(caught.value)


def keys(desk: CompanyDesk, jql: str) -> list[str]:
    return [each["key"] for each in call(desk, "jira_search", jql=jql, limit=50)["issues"]]


def test_an_issue_is_shown_in_the_order_of_the_server_s_model() -> None:
    world = site(
        issue("KIT-1", -100, description="Two\nlines", labels=["b"], component="wheels", duedate="2026-03-09"),
        record(
            "jira_comment",
            "501",
            -50,
            key="KIT-1",
            author="a2",
            body="ok",
            created=NOON - 50,
            updated=NOON - 50,
            deleted=False,
        ),
    )
    shown = call(desk_of(world), "jira_get_issue", issue_key="KIT-1")
    person = {"account_id": "a1", "display_name": "Mara Lind", "name": "Mara Lind", "email": None, "avatar_url": None}
    assert list(shown) == [
        "id",
        "key",
        "summary",
        "url",
        "description",
        "status",
        "issue_type",
        "priority",
        "project",
        "duedate",
        "assignee",
        "reporter",
        "labels",
        "components",
        "created",
        "updated",
        "comments",
    ]
    assert shown["reporter"] == person and shown["assignee"] == {"display_name": "Unassigned"}
    assert shown["status"] == {"name": "To Do", "category": "To Do", "color": ""}
    assert shown["created"] == "2026-03-02 11:58:20 UTC" and shown["project"] == {"key": "KIT", "name": "Project KIT"}
    assert shown["comments"][0]["created"] == "2026-03-02T11:59:10.000+0000"


def test_without_recorded_answers_the_server_s_own_fields_are_shown() -> None:
    world = site(issue("KIT-1", -100, resolution="Done"))
    desk = desk_of(world, habits={"shown": {}})
    assert list(call(desk, "jira_get_issue", issue_key="KIT-1")) == [
        "id",
        "key",
        "summary",
        "browse_url",
        "status",
        "issue_type",
        "priority",
        "assignee",
        "reporter",
        "created",
        "updated",
    ]
    assert list(call(desk, "jira_get_issue", issue_key="KIT-1", fields="summary,resolution")) == [
        "id",
        "key",
        "summary",
        "browse_url",
        "resolution",
    ]
    assert list(call(desk, "jira_search", jql="key = KIT-1")["issues"][0])[-2:] == ["created", "updated"]


def test_an_issue_of_later_or_of_a_hidden_project_is_not_there() -> None:
    world = site(issue("KIT-1", 100), issue("SEC-1", -100))
    for key in ("KIT-1", "SEC-1", "KIT-9"):
        assert (
            refusal(desk_of(world), "jira_get_issue", issue_key=key)
            == "Error: Issue does not exist or you do not have permission to see it."
        )
    assert call(desk_of(world, address=KIM), "jira_get_issue", issue_key="SEC-1")["key"] == "SEC-1"
    assert [each["key"] for each in call(desk_of(world), "jira_get_all_projects")] == ["KIT"]


def test_a_text_that_the_export_does_not_tell_leaves_only_answers_with_it_open() -> None:
    version = FieldVersion("jira_comment", "501", "body", "later text", int((NOON - 50) * 1e6), "a2", int((NOON + 50) * 1e6))
    world = site(
        issue("KIT-1", -100),
        [version],
        record("jira_comment", "501", -50, key="KIT-1", author="a2", deleted=False, created=NOON - 50, updated=NOON - 50),
    )
    with pytest.raises(Undecided):
        call(desk_of(world), "jira_get_issue", issue_key="KIT-1")
    assert call(desk_of(world), "jira_get_issue", issue_key="KIT-1", comment_limit=0)["key"] == "KIT-1"
    assert call(desk_of(world, at=60), "jira_get_issue", issue_key="KIT-1")["comments"][0]["body"] == "later text"


@pytest.fixture
def shelf() -> CompanyDesk:
    return desk_of(
        site(
            issue("KIT-1", -9 * 86400, priority="Low", assignee="a1", summary="Broken wheels", labels=["red"]),
            issue("KIT-2", -8 * 86400, priority="High", assignee="a2", duedate="2026-03-01"),
            issue("KIT-10", -3600, status="Done", resolution="Done", resolved=NOON - 60, component="wheels"),
            issue("SEC-1", -10),
        )
    )


@pytest.mark.parametrize(
    ("jql", "found"),
    [
        ("project = KIT ORDER BY created ASC", "KIT-1 KIT-2 KIT-10"),
        ("", "KIT-10 KIT-2 KIT-1"),
        ("project = 'project kit' AND status != done order by key", "KIT-1 KIT-2"),
        ("assignee = currentUser()", "KIT-1"),
        ("assignee = 'jo berg'", "KIT-2"),
        (f"assignee = '{JO}'", "KIT-2"),
        ("assignee != currentUser()", "KIT-2"),
        ("assignee is EMPTY", "KIT-10"),
        ("assignee not in (a2)", "KIT-1"),
        ("resolution = Unresolved AND priority > Medium", "KIT-2"),
        ("priority <= Medium order by created desc", "KIT-10 KIT-1"),
        ("statusCategory != Done ORDER BY priority DESC", "KIT-2 KIT-1"),
        ("labels = RED", "KIT-1"),
        ("labels != blue", "KIT-1"),
        ("created >= -8d order by key asc", "KIT-2 KIT-10"),
        ("created > startOfDay()", "KIT-10"),
        ("created < '2026-02-22'", "KIT-1"),
        ("created >= startOfMonth(-1) AND created < startOfMonth() ORDER BY created", "KIT-1 KIT-2"),
        ("due < now()", "KIT-2"),
        ("duedate = '2026-03-01'", "KIT-2"),
        ("resolved >= -1h", "KIT-10"),
        ("component = wheels", "KIT-10"),
        ("summary ~ 'wheels broken'", "KIT-1"),
        ('summary ~ "\\"broken wheels\\""', "KIT-1"),
        ('summary ~ "\\"wheels broken\\""', ""),
        ("text ~ brok*", "KIT-1"),
        ("key in (KIT-2, kit-1, KIT-77) ORDER BY key DESC", "KIT-2 KIT-1"),
        ("assignee = a1 OR key = KIT-2", "KIT-2 KIT-1"),
    ],
)
def test_search_finds_what_a_query_asks_for(shelf: CompanyDesk, jql: str, found: str) -> None:
    assert keys(shelf, jql) == found.split()


@pytest.mark.parametrize(
    "jql",
    [
        "sprint = 1",
        "status = Waiting",
        "summary ~ wheel",
        "assignee = nobody",
        "created = '2026-03-01'",
        "ORDER BY duedate",
        "created > startOfWeek()",
        "status WAS Done",
        "created > startOfYear(99999)",
        "created > -99999999999w",
        "labels > a",
        "text ~ 'a AND b'",
        "issuetype = Story",
    ],
)
def test_what_records_cannot_tell_of_a_query_is_undecided(shelf: CompanyDesk, jql: str) -> None:
    with pytest.raises(Undecided):
        keys(shelf, jql)


def test_an_order_that_does_not_decide_is_undecided() -> None:
    desk = desk_of(site(issue("KIT-1", -5), issue("KIT-2", -5)))
    with pytest.raises(Undecided):
        keys(desk, "project = KIT ORDER BY created")
    assert keys(desk, "project = KIT ORDER BY created, key DESC") == ["KIT-2", "KIT-1"]


def test_a_project_that_the_person_cannot_see_is_no_value(shelf: CompanyDesk) -> None:
    assert (
        refusal(shelf, "jira_search", jql="project = SEC") == "Error: The value 'SEC' does not exist for the field 'project'."
    )


def test_pages_of_a_search_and_of_a_project(shelf: CompanyDesk) -> None:
    page = call(shelf, "jira_search", jql="project = KIT", limit=1, start_at=1)
    assert (page["total"], page["start_at"], page["max_results"], [each["key"] for each in page["issues"]]) == (
        3,
        1,
        1,
        ["KIT-2"],
    )
    assert [each["key"] for each in call(shelf, "jira_get_project_issues", project_key="KIT", limit=2)["issues"]] == [
        "KIT-10",
        "KIT-2",
    ]
    assert [
        each["key"]
        for each in call(shelf, "jira_search", jql="status = Done OR key = SEC-1 order by key", projects_filter="KIT")[
            "issues"
        ]
    ] == ["KIT-10"]


def test_a_transition_follows_the_workflow_and_sets_the_resolution(shelf: CompanyDesk) -> None:
    assert call(shelf, "jira_get_transitions", issue_key="KIT-2") == [
        {"id": "11", "name": "Start", "to_status": "In Progress"},
        {"id": "21", "name": "Close", "to_status": "Done"},
    ]
    closed = call(shelf, "jira_transition_issue", issue_key="KIT-2", transition_id="21", comment="Fixed")
    assert closed["message"] == "Issue KIT-2 transitioned successfully"
    assert closed["issue"]["resolution"] == {"name": "Done"} and closed["issue"]["comments"][0]["body"] == "Fixed"
    assert closed["issue"]["resolutiondate"] == "2026-03-02T12:00:00.000+0000"
    assert "workflow operation (Start) that is not valid for the current state of this issue (KIT-2)" in refusal(
        shelf, "jira_transition_issue", issue_key="KIT-2", transition_id="11"
    )
    assert (
        refusal(shelf, "jira_transition_issue", issue_key="KIT-2", transition_id="77")
        == "Error: Transition id '77' is not valid for this issue."
    )
    reopened = call(shelf, "jira_transition_issue", issue_key="KIT-2", transition_id="31")["issue"]
    assert "resolution" not in reopened and reopened["status"]["name"] == "Reopened"
    assert keys(shelf, "statusCategory = 'To Do' order by key") == ["KIT-1", "KIT-2"]


def test_a_refused_transition_has_the_words_of_recorded_ones() -> None:
    habits = {"refused_transitions": ["Error: {key} is {status}, it cannot be {to}."]}
    desk = desk_of(site(issue("KIT-1", -5, status="Done")), habits=habits)
    assert (
        refusal(desk, "jira_transition_issue", issue_key="KIT-1", transition_id="11")
        == "Error: KIT-1 is Done, it cannot be In Progress."
    )


def test_transitions_without_a_workflow_are_those_of_recorded_answers() -> None:
    shown = [{"id": "5", "name": "Go", "to_status": "In Progress"}]
    world = site(issue("KIT-1", -5, status="Open"), issue("KIT-2", -5, status="Parked"))
    desk = desk_of(world, habits={"transitions": {"Open": shown}})
    assert call(desk, "jira_get_transitions", issue_key="KIT-1") == shown
    with pytest.raises(Undecided):
        call(desk, "jira_get_transitions", issue_key="KIT-2")


def test_a_new_issue_takes_the_next_number_and_the_defaults() -> None:
    world = site(issue("KIT-1", -100), issue("KIT-2", 100, assignee="a2"))
    made = call(
        desk_of(world),
        "jira_create_issue",
        project_key="KIT",
        summary="New",
        issue_type="task",
        assignee=JO,
        additional_fields='{"labels": ["z", "a"], "components": [{"name": "wheels"}], "priority": {"name": "High"}}',
    )
    shown = made["issue"]
    assert (shown["key"], shown["id"], shown["url"]) == ("KIT-2", "92", "https://toys.example/rest/api/2/issue/KIT-2")
    assert (shown["labels"], shown["components"], shown["priority"]) == (["a", "z"], ["wheels"], {"name": "High"})
    assert (shown["assignee"]["account_id"], shown["reporter"]["account_id"], shown["status"]["name"]) == ("a2", "a1", "To Do")
    later = desk_of(world, at=200)
    assert [
        call(later, "jira_create_issue", project_key="KIT", summary="New", issue_type="Task")["issue"]["key"] for _ in range(2)
    ] == ["KIT-3", "KIT-4"]
    assert call(later, "jira_get_issue", issue_key="KIT-4")["priority"] == {"name": "Medium"}
    assert keys(later, "reporter = currentUser() AND created >= -1m ORDER BY key ASC") == ["KIT-3", "KIT-4"]


def test_rules_of_the_site_act_on_new_issues() -> None:
    rules = [
        {"when": [["priority", "High"]], "on_change": None, "field": "labels", "adds": "hot"},
        {"when": [["priority", "High"]], "on_change": None, "field": "duedate", "days": 2},
    ]
    desk = desk_of(site(issue("KIT-1", -100)), habits={"rules": rules})
    made = call(
        desk, "jira_create_issue", project_key="KIT", summary="New", issue_type="Task", additional_fields={"priority": "High"}
    )["issue"]
    assert (made["labels"], made["duedate"]) == (["hot"], "2026-03-04")
    with pytest.raises(Undecided):
        call(desk, "jira_update_issue", issue_key="KIT-1", fields={"priority": {"name": "High"}})
    desk = desk_of(site(issue("KIT-1", -100)), habits={"rules": [{**rules[0], "on_change": True}]})
    assert call(desk, "jira_update_issue", issue_key="KIT-1", fields={"priority": {"name": "High"}})["issue"]["labels"] == [
        "hot"
    ]


def test_an_update_sets_fields_in_the_forms_of_the_server() -> None:
    desk = desk_of(site(issue("KIT-1", -100), record("jira_field", "customfield_7", name="Team", column="team")))
    fields = {"assignee": "Jo Berg", "labels": "b, a", "Due date": "2026-04-01", "team": {"value": "Blue"}, "summary": " S "}
    shown = call(desk, "jira_update_issue", issue_key="KIT-1", fields=json.dumps(fields))["issue"]
    assert (shown["assignee"]["name"], shown["labels"], shown["duedate"], shown["summary"]) == (
        "Jo Berg",
        ["a", "b"],
        "2026-04-01",
        "S",
    )
    assert desk.value("jira", "KIT-1", "team") == "Blue" and shown["updated"] == "2026-03-02 12:00:00 UTC"
    custom = call(desk, "jira_get_issue", issue_key="KIT-1", fields="customfield_7")
    assert custom == {"id": "91", "key": "KIT-1", "customfield_7": {"value": "Blue"}}
    assert (
        call(desk, "jira_update_issue", issue_key="KIT-1", fields={"status": "in progress"})["issue"]["status"]["name"]
        == "In Progress"
    )
    for wrong, text in (
        ({"labels": ["a b"]}, "The label 'a b' contains spaces which is invalid."),
        ({"summary": ""}, "You must specify a summary of the issue."),
        ("[]", "Parsed additional_fields is not"),
        ({"status": "Nowhere"}, "Could not find transition to status 'Nowhere'. Available transitions: Close"),
    ):
        assert refusal(desk, "jira_update_issue", issue_key="KIT-1", fields=wrong).startswith(f"Error: {text}")
    for unknown in ({"priority": "Urgent"}, {"components": ["doors"]}, {"assignee": "Lou"}, {"sprint": 3}):
        with pytest.raises(Undecided):
            call(desk, "jira_update_issue", issue_key="KIT-1", fields=unknown)


def test_a_resolved_issue_is_changed_only_where_somebody_did() -> None:
    world = site(issue("KIT-1", -100, status="Done", resolution="Done", resolved=NOON - 50), issue("KIT-2", -90))
    desk = desk_of(world, habits={"changed_on_resolved": ["labels"]})
    assert call(desk, "jira_update_issue", issue_key="KIT-1", fields={"labels": ["x"]})["issue"]["labels"] == ["x"]
    with pytest.raises(Undecided):
        call(desk, "jira_update_issue", issue_key="KIT-1", fields={"priority": "Low"})
    rule = {"field": "priority", "text": "Error: no more on {key}", "conditions": ["resolved", "status Done"]}
    desk = desk_of(world, habits={"refused_updates": [rule]})
    assert refusal(desk, "jira_update_issue", issue_key="KIT-1", fields={"priority": "Low"}) == "Error: no more on KIT-1"
    assert call(desk, "jira_update_issue", issue_key="KIT-2", fields={"priority": "Low"})["issue"]["priority"] == {
        "name": "Low"
    }


def test_comments_are_written_and_edited_by_their_authors() -> None:
    other = record(
        "jira_comment", "501", -50, key="KIT-1", author="a2", body="x", created=NOON - 50, updated=NOON - 50, deleted=False
    )
    desk = desk_of(site(issue("KIT-1", -100), other))
    assert call(desk, "jira_add_comment", issue_key="KIT-1", body="Häh") == {
        "id": "502",
        "body": "Häh",
        "created": "2026-03-02 12:00:00+00:00",
        "author": "Mara Lind",
    }
    edited = call(desk, "jira_edit_comment", issue_key="KIT-1", comment_id="502", body="Oh")
    assert edited["updated"] == "2026-03-02 12:00:01+00:00"
    assert [each["body"] for each in call(desk, "jira_get_issue", issue_key="KIT-1", comment_limit=1)["comments"]] == ["Oh"]
    with pytest.raises(Undecided):
        call(desk, "jira_edit_comment", issue_key="KIT-1", comment_id="501", body="No")
    assert (
        refusal(desk, "jira_edit_comment", issue_key="KIT-1", comment_id="7", body="No")
        == "Error: Can not find a comment for the id: 7."
    )
    assert refusal(desk, "jira_add_comment", issue_key="KIT-1", body=" ") == "Error: Comment body can not be empty!"
    assert keys(desk, "comment ~ oh") == ["KIT-1"]


def test_a_link_shows_on_both_issues(shelf: CompanyDesk) -> None:
    made = call(shelf, "jira_create_issue_link", link_type="Blocks", inward_issue_key="KIT-1", outward_issue_key="KIT-2")
    assert made == {
        "success": True,
        "message": "Link created between KIT-1 and KIT-2",
        "link_type": "Blocks",
        "inward_issue": "KIT-1",
        "outward_issue": "KIT-2",
    }
    first, second = (call(shelf, "jira_get_issue", issue_key=key)["issuelinks"][0] for key in ("KIT-1", "KIT-2"))
    assert first["outward_issue"]["key"] == "KIT-2" and second["inward_issue"]["fields"]["summary"] == "Broken wheels"
    assert first["type"] == {"id": "10000", "name": "Blocks", "inward": "is blocked by", "outward": "blocks"}
    assert keys(shelf, "issue in linkedIssues(KIT-1)") == ["KIT-2"]
    with pytest.raises(Undecided):
        call(shelf, "jira_create_issue_link", link_type="Eats", inward_issue_key="KIT-1", outward_issue_key="KIT-2")


def test_watchers_and_profiles(shelf: CompanyDesk) -> None:
    added = call(shelf, "jira_add_watcher", issue_key="KIT-1", user_identifier="a2")
    assert added["message"] == "User 'a2' added as watcher to KIT-1"
    assert shelf.exists("jira_watcher", "KIT-1/a2")
    assert call(shelf, "jira_get_user_profile", user_identifier="jo berg")["user"]["email"] == JO
    assert call(shelf, "jira_get_user_profile", user_identifier="me")["user"]["account_id"] == "a1"
    assert call(shelf, "jira_get_user_profile", user_identifier="x@y.example")["error"].startswith("Could not resolve email")


def test_fields_are_listed_where_the_export_lists_all() -> None:
    rows = [
        {"id": "summary", "name": "Summary", "custom": False, "clauseNames": ["summary"]},
        {"id": "duedate", "name": "Due date", "custom": False, "clauseNames": ["due", "duedate"]},
    ]
    listed = [each for row in rows for each in record("jira_listed_field", row["id"], row=row)]
    desk = desk_of(site(listed, record("setting", "jira", lists_all_fields=True)))
    assert call(desk, "jira_search_fields", limit=1) == rows[:1]
    assert call(desk, "jira_search_fields", keyword="due", limit=1) == rows[1:]
    for unknown in (desk_of(site()), desk):
        with pytest.raises(Undecided):
            call(unknown, "jira_search_fields", keyword="due", limit=2)


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
        max_leaves=8,
    )
)
def test_indented_json_is_python_s(value: Any) -> None:
    assert indented_json(value) == json.dumps(value, indent=2, ensure_ascii=False)


@given(st.lists(st.sampled_from(["wheel", "wheels", "door", "red"]), max_size=4), st.sampled_from(["wheel", "door", "red"]))
def test_a_word_that_is_there_is_found_and_another_form_is_undecided(words: list[str], wanted: str) -> None:
    text = " ".join(words)
    if wanted in words:
        assert has_words(text, wanted)
    elif wanted == "wheel" and "wheels" in words:
        with pytest.raises(Undecided):
            has_words(text, wanted)
    else:
        assert not has_words(text, wanted)


@pytest.mark.parametrize("arguments", [{}, {"issue_key": "KIT-1", "comment_limit": "some"}, {"issue_key": None}])
def test_arguments_that_the_schema_forbids_are_undecided(shelf: CompanyDesk, arguments: dict[str, Any]) -> None:
    with pytest.raises(Undecided):
        call(shelf, "jira_get_issue", **arguments)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.text(max_size=5) | st.sampled_from(["KIT-1", "a2", "High", "KIT"]),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=4), inner, max_size=2),
    max_leaves=4,
)
names = st.sampled_from(
    ["issue_key", "jql", "project_key", "summary", "issue_type", "fields", "additional_fields", "transition_id", "body",
     "comment_id", "limit", "assignee"])


@given(st.sampled_from(sorted(TOOLS)), st.dictionaries(names, json_values, max_size=6))
def test_any_arguments_are_answered_refused_or_undecided(tool: str, arguments: dict[str, Any]) -> None:
    from env_builder.runtime.company import ProductRefusal

    desk = desk_of(site(issue("KIT-1", -9, assignee="a1")))
    try:
        assert json.loads(TOOLS[tool].answer(desk, {"issue_key": "KIT-1", "project_key": "KIT", **arguments})) is not None
    except (ProductRefusal, Undecided) as error:
        assert str(error)


def test_a_change_in_doubt_leaves_the_field_open_and_one_of_a_locked_field_changes_nothing() -> None:
    done = issue("KIT-1", -900, summary="Wheels", status="Done", resolution="Done", resolved=NOON - 100)
    for habits, is_known in (({}, False), ({"locked_on_resolved": ["priority"]}, True)):
        suite = CompanySuite("toys", CompanySetup(site(done), products=("jira",)))
        own = CompanyEpisode(suite, desk_of(site(done), habits=habits))
        assert own.call("jira_update_issue", {"issue_key": "KIT-1", "fields": '{"priority": "High"}'}).tier == "unknown"
        assert own.desk.is_known("jira", "KIT-1", "priority") is is_known
        assert (own.call("jira_get_issue", {"issue_key": "KIT-1"}).tier == "derived") is is_known
        assert own.call("jira_get_issue", {"issue_key": "KIT-1", "fields": "summary,status"}).tier == "derived"


def test_an_issue_that_may_have_been_created_is_not_seen_in_a_project_that_the_person_cannot_see() -> None:
    world = site(issue("KIT-1", -900), issue("SEC-1", -900))
    own = CompanyEpisode(CompanySuite("toys", CompanySetup(world, products=("jira",))), desk_of(world))
    new = {"project_key": "SEC", "issue_type": "Task", "summary": "Locks"}
    assert own.call("jira_create_issue", new).tier == "unknown"
    assert own.call("jira_get_issue", {"issue_key": "SEC-2"}).tier == "derived"
    assert own.call("jira_search", {"jql": "project = KIT"}).tier == "derived"
    assert own.call("jira_search", {"jql": "summary ~ Locks"}).tier == "unknown"
    assert own.call("jira_get_issue", {"issue_key": "KIT-1"}).tier == "derived"
    assert own.call("jira_create_issue", {**new, "project_key": "KIT"}).tier == "unknown"   # its number is of the whole site
