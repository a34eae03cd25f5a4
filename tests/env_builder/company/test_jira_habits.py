"""Recorded calls and changelogs teach how a company has set up its Jira, and nothing that two habits would explain."""

from __future__ import annotations

import json
from typing import Any

from env_builder.company.calls import RecordedCall
from env_builder.company.conventions import learn
from env_builder.company.jira_habits import learn_jira
from env_builder.company.jira_rules import learn_rules
from env_builder.runtime.company import CompanyWorld, FieldVersion

SECOND = 1_000_000


def versions(key: str, **fields: Any) -> list[FieldVersion]:
    """Return versions of an issue; a list of pairs is (second, value) of a field over time."""
    rows = []
    for name, value in fields.items():
        for at, each in value if isinstance(value, list) and value and isinstance(value[0], tuple) else [(0, value)]:
            rows.append(FieldVersion("jira", key, name, each, at * SECOND, "a1"))
    return rows


def world_of(*issues: list[FieldVersion], workflow: bool = False) -> CompanyWorld:
    steps = [{"id": "21", "name": "Close", "to": "Done"}, {"id": "11", "name": "Start", "to": "Busy"}]
    setup = [FieldVersion("jira_status", "Open", "transitions", steps, 0)] if workflow else []
    return CompanyWorld([*setup, *(row for issue in issues for row in issue)])


def recorded(tool: str, arguments: dict[str, Any], answer: Any, at: int = 100, is_error: bool = False) -> RecordedCall:
    return RecordedCall(at * SECOND, "m@toys.example", tool, arguments, answer if is_error else json.dumps(answer), is_error)


def shown(**more: Any) -> dict[str, Any]:
    return {
        "id": "1",
        "key": "KIT-1",
        "summary": "x",
        "status": {"name": "Busy", "category": "In Progress", "color": "blue"},
        **more,
    }


def test_the_parts_of_an_issue_that_answers_show() -> None:
    world = world_of(versions("KIT-1", status="Open"))
    full = learn_jira([recorded("jira_get_issue", {"issue_key": "KIT-1"}, shown(url="u", resolution={"name": "Done"}))], world)
    assert full["shown"] == {
        "browse_url": False,
        "jira_get_issue": {"all": True, "comments": True},
        "jira_search": {"all": True, "comments": False},
    }
    assert full["categories"] == {"Busy": ["In Progress", "blue"]}
    lean = learn_jira(
        [
            recorded("jira_get_issue", {"issue_key": "KIT-1"}, shown(browse_url="b", comments=[])),
            recorded("jira_search", {"jql": "x", "fields": "*all"}, {"issues": [shown(url="u")]}),
        ],
        world,
    )
    assert lean["shown"]["jira_get_issue"] == {"all": False, "comments": True} and lean["shown"]["browse_url"]
    assert "shown" not in learn_jira([], world)


def test_transitions_are_learnt_where_no_workflow_was_exported() -> None:
    steps = [{"id": "5", "name": "Go", "to_status": "Busy"}]
    issue = versions("KIT-1", status=[(0, "Open"), (50, "Busy")])
    calls = [
        recorded("jira_get_transitions", {"issue_key": "KIT-1"}, steps, at=10),
        recorded("jira_get_transitions", {"issue_key": "KIT-1"}, [], at=60),
        recorded("jira_get_transitions", {"issue_key": "KIT-1"}, steps, at=70),
    ]
    assert learn_jira(calls, world_of(issue))["transitions"] == {"Open": steps}
    assert "transitions" not in learn_jira(calls, world_of(issue, workflow=True))


def test_the_default_priority_is_what_issues_got_that_asked_for_none() -> None:
    def made(kind: str, priority: str, **more: str) -> RecordedCall:
        return recorded(
            "jira_create_issue",
            {"project_key": "KIT", **more},
            {"issue": shown(issue_type={"name": kind}, priority={"name": priority})},
        )

    world = world_of()
    asked = made("Task", "High", additional_fields='{"priority": {"name": "High"}}')
    assert learn_jira([made("Task", "Minor"), asked], world)["default_priorities"] == {"KIT Task": "Minor", "": "Minor"}
    assert learn_jira([made("Task", "Minor"), made("Bug", "Major")], world)["default_priorities"] == {
        "KIT Task": "Minor",
        "KIT Bug": "Major",
    }


def test_a_refused_transition_teaches_its_words() -> None:
    world = world_of(versions("KIT-1", status=[(0, "Open"), (50, "Done")]), workflow=True)
    call = recorded(
        "jira_transition_issue",
        {"issue_key": "KIT-1", "transition_id": "11"},
        "Error: no way to 'Busy' for KIT-1 in Done (11)",
        is_error=True,
    )
    hidden = recorded(
        "jira_transition_issue",
        {"issue_key": "KIT-9", "transition_id": "11"},
        "Error: Issue does not exist or you do not have permission to see it.",
        is_error=True,
    )
    assert learn_jira([call, hidden], world)["refused_transitions"] == [
        "Error: no way to '{to}' for {key} in {status} ({transition})"
    ]


def test_a_refused_update_teaches_the_conditions_that_no_success_meets() -> None:
    done = versions("KIT-1", status=[(0, "Open"), (50, "Done")], resolution=[(0, None), (50, "Done")])
    open_one = versions("KIT-2", status="Open", resolution=None, priority=[(0, "Low"), (60, "High")])
    call = recorded(
        "jira_update_issue",
        {"issue_key": "KIT-1", "fields": '{"priority": {"name": "Low"}}'},
        "Error: KIT-1 is locked",
        is_error=True,
    )
    rule = learn_jira([call], world_of(done, open_one))["refused_updates"]
    assert rule == [{"field": "priority", "text": "Error: {key} is locked", "conditions": ["resolved", "status Done"]}]
    assert "always" in learn_jira([call], world_of(done))["refused_updates"][0]["conditions"]


def test_fields_that_somebody_changed_on_a_resolved_issue() -> None:
    issue = versions(
        "KIT-1",
        status=[(0, "Open"), (50, "Done")],
        resolution=[(0, None), (50, "Done")],
        labels=[(0, []), (60, ["x"])],
        priority=[(0, "Low"), (20, "High")],
    )
    assert learn([], world_of(issue))["jira"] == {"changed_on_resolved": ["labels"]}


def test_fields_that_were_changed_several_times_but_never_on_a_resolved_issue() -> None:
    def issue(key: str, priority: list[tuple[int, str]]) -> list[FieldVersion]:
        return versions(key, status=[(0, "Open"), (50, "Done")], resolution=[(0, None), (50, "Done")], priority=priority)

    early = [(0, "Low"), (20, "High"), (30, "Low")]
    world = world_of(issue("KIT-1", early), issue("KIT-2", early[:2]))
    assert learn([], world)["jira"] == {"locked_on_resolved": ["priority"]}
    late = world_of(issue("KIT-1", early), issue("KIT-2", early[:2]), issue("KIT-3", [(0, "Low"), (60, "High")]))
    assert learn([], late)["jira"] == {"changed_on_resolved": ["priority"]}


def test_a_rule_is_learnt_that_acts_on_all_issues_of_one_value_alone() -> None:
    hot = [
        versions(
            f"KIT-{n}",
            priority="High",
            type="Bug" if n % 2 else "Task",
            labels=[(0, []), (0, ["hot"])],
            due=[(0, None), (1, "1970-01-03")],
        )
        for n in range(6)
    ]
    cold = [versions(f"KIT-{n}", priority="Low", type="Bug", labels=[(0, []), (9, ["hot"])]) for n in range(10, 14)]
    assert learn_rules(world_of(*hot, *cold)) == [
        {"when": [["priority", "High"]], "on_change": None, "field": "due", "days": 2},
        {"when": [["priority", "High"]], "on_change": None, "field": "labels", "adds": "hot"},
    ]
    odd = versions("KIT-20", priority="High", type="Bug", labels=[])
    assert learn_rules(world_of(*hot[:5], odd)) == []
    assert learn_rules(world_of(*hot[:4], *cold)) == []


def test_whether_a_rule_acts_on_later_changes_is_learnt_from_them() -> None:
    hot = [versions(f"KIT-{n}", priority="High", labels=[(0, []), (0, ["hot"])]) for n in range(6)]
    acted = versions("KIT-20", priority=[(0, "Low"), (90, "High")], labels=[(0, []), (91, ["hot"])])
    ignored = versions("KIT-21", priority=[(0, "Low"), (90, "High")], labels=[])
    assert [learn_rules(world_of(*hot, *more))[0]["on_change"] for more in ([acted], [ignored], [acted, ignored])] == [
        True,
        False,
        None,
    ]
