"""Calls of a company's own tools for changes of rows: which columns the call named, and what a trigger wrote."""

from __future__ import annotations

from env_builder.company.content import CompanyContent
from env_builder.work.demonstrations import DemonstrationFinder
from env_builder.work.row_inverses import row_proposals
from extractors.apps import installed_apps
from extractors.apps.version import AppVersion
from extractors.work.events import find_events
from extractors.work.items import WorkItem
from tests.small_company import ADA, BEN, NOON, mail_of, world_of

PLAN = {
    "arguments": {"what": ["text"], "no": ["text"], "set": ["object"]}, "required": ["what", "no", "set"],
    "filters": [{"argument": "no", "form": "column", "column": "$key", "op": "eq"}], "orders": [["stream"]],
    "paging": {"limit": None, "offset": None, "page": None, "default": None, "most": 0, "first": 1}, "one": True, "shows": None,
    "fields": None, "none": None, "refusals": [], "act": {"kind": "update", "values": "set", "columns": [], "key": [],
                                                         "lines": None},
    "answer": ["row"], "style": {"format": "json", "separators": [",", ":"], "indent": None, "sort": True, "ascii": [True]},
    "table": {"argument": "what", "names": {"Bin": "bins"}}}
LEARNT = {
    "tables": {"bins": {"types": {"id": "text", "flour": "integer", "room": "integer"}, "key": ["id"]}},
    "effects": [{"table": "bins", "event": "update", "column": "flour", "slots": [{
        "relation": ["self"], "column": "room", "when": [],
        "formulas": [["minus", ["constant", 100], ["column", "new", "flour"]]]}]}],
    "tools": {"put": PLAN}, "descriptors": [{"name": "put", "description": "put", "inputSchema": {
        "type": "object", "properties": {"what": {"type": "string"}, "no": {"type": "string"}, "set": {"type": "object"}}}}]}
ACCOUNTS = {ADA: {"person": ADA}, BEN: {"person": BEN}}
KINDS = [kind for app in installed_apps() for kind in app.kinds]


def recorded(actor: str, at: float, record: str, **values: object) -> list[AppVersion]:
    return [AppVersion("db", "bins/4", name, value, round((NOON + at) * 1e6), round(at) + 900, None, 0, record)
            for name, value in values.items()]


def mails(*at: float) -> list[AppVersion]:
    return [AppVersion(*version[:5], 0, ADA, version.guessed_until, str(second)) for second in at
            for version in mail_of(f"<m{second}@mill.example>", second, ADA, [BEN], "Bins", f"Number {second}",
                                   thread=f"aabbccdd{second}")]


def finder_of(versions: list[AppVersion]) -> tuple[DemonstrationFinder, WorkItem]:
    events = find_events(versions, ACCOUNTS)
    whole = sorted([*world_of().versions, *versions], key=lambda version: version.at)
    content = CompanyContent(whole, ACCOUNTS, {}, ("gmail",), LEARNT)
    return DemonstrationFinder(content, events, KINDS), WorkItem("item", tuple(
        event.ref for event in events if event.at >= NOON * 1e6), 1.0)


def test_the_smallest_call_that_does_it_is_taken_and_triggers_get_none() -> None:
    finder, item = finder_of([
        *recorded("", -500, "a", **{"$present": True}, id="4", flour=10, room=90), *mails(0, 200),
        *recorded("", 100, "b", flour=30, room=70)])
    demonstration = finder.find(item)
    assert demonstration is not None and not demonstration.missed
    use = next(step for step in demonstration.steps if step.tool == "put")
    assert use.arguments == {"what": "Bin", "no": "4", "set": {"flour": 30}}
    assert (use.person, use.lossy) == (ADA, ("doer_inferred",))
    assert finder.end_of(demonstration) == []


def test_who_changed_a_row_stays_open_where_nobody_acted_around_it() -> None:
    finder, item = finder_of([
        *recorded("", -500, "a", **{"$present": True}, id="4", flour=10, room=90), *mails(0),
        *recorded("", 90_000, "b", flour=30, room=70)])
    demonstration = finder.find(item)
    assert demonstration is not None
    assert [step.tool for step in demonstration.steps if step.refs] == ["send_gmail_message"]
    assert [ref for ref in demonstration.recorded if ref.startswith("db:bins/4")]


def test_a_tool_is_asked_only_for_tables_that_it_names() -> None:
    finder, item = finder_of([*recorded("", 0, "a", **{"$present": True}, id="4", flour=1, room=9),
                              *recorded("", 100, "b", flour=30, room=70)])
    act = finder.acts(item.refs)[-1]
    assert [uses[0].arguments["set"] for uses in row_proposals(LEARNT, act)] == [
        {"flour": 30}, {"room": 70}, {"flour": 30, "room": 70}]
    assert list(row_proposals(LEARNT, act._replace(record=("db", "sacks/4")))) == []
    assert list(row_proposals(None, act)) == []
