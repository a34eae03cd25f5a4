"""Effects across apps: a made-up company in which a closed ticket closes a row of a database and is told in the chat."""

from __future__ import annotations

import json
from collections.abc import Sequence
from random import Random
from typing import Any

import pytest

from env_builder.company.cross_effects import learn_effects
from env_builder.runtime.company import CompanyDesk, CompanyWorld, FieldVersion, Undecided
from env_builder.runtime.company.following import ACROSS
from env_builder.runtime.office.company import CompanyEpisode, CompanySetup, CompanySuite
from env_builder.runtime.office.slack import TOOLS as SLACK
from env_builder.runtime.office.tools import OfficeTool
from tests.small_company import ADA, BEN, NOON, desk_of, fields_of, world_of

WRITTEN = [{"ticket"}, {"slack", "slack_mention"}, {"db"}]
ACCOUNTS = {ADA: {"slack_user": "U1", "desk": "ada"}, BEN: {"slack_user": "U2", "desk": "ben"}}
BOT = "U9"
HOUR, DAY = 3600, 86_400


def by(actor: str | None, versions: list[FieldVersion]) -> list[FieldVersion]:
    return [version._replace(actor=actor) for version in versions]


def posted(at: float, user: str, text: str) -> list[FieldVersion]:
    ts = f"{NOON + at:.6f}"
    return by(user, fields_of("slack", f"C1/{ts}", at, channel="C1", ts=ts, user=user, text=text, deleted=False, reactions={}))


def history(seed: int, follows: bool = True, delay: float = 1.5, misses: int = 0) -> CompanyWorld:
    """Return the past: tickets are opened, put into the state `doing`, closed, of which `misses` bring nothing about."""
    random, versions = Random(seed), fields_of("slack_channel", "C1", -1e6, name="tickets", private=False, members=["U1", "U2"])
    for user, name in (("U1", "ada"), ("U2", "ben"), (BOT, "helper")):
        versions += fields_of("slack_user", user, -1e6, name=name, real_name=name)
    for number in range(24):
        at, who = -number * 6 * HOUR - random.randrange(3000) - DAY, random.choice(["ada", "ben"])
        key, case = f"T-{100 + number}", f"K{700 + 3 * number}"
        versions += by(who, fields_of("ticket", key, at, state="open", case=case, title=random.choice(["late", "torn"])))
        versions += fields_of("db", f"cases/{case}", at - 9000, case=case, state="active", closed_by=None, note=number)
        versions += by(who, fields_of("ticket", key, at + 100, state="doing"))
        versions += posted(at + 102, "U1" if who == "ada" else "U2", random.choice(["on it", "looking", "hm", f"{key}?"]))
        versions += by(who, fields_of("ticket", key, at + 900, state="closed"))
        if follows and number >= misses:
            versions += by(None, fields_of("db", f"cases/{case}", at + 900 + delay, state="done", closed_by=who,
                                           note=random.randrange(99)))
            versions += posted(at + 901 + delay, BOT, f"{key} was closed, case {case} too")
    for key, case in (("T-9", "K9"), ("T-8", "K8")):
        versions += fields_of("ticket", key, -500, state="doing", case=case, title="late")
        versions += fields_of("db", f"cases/{case}", -9000, case=case, state="active", closed_by=None, note=0)
    return world_of(versions)


def put(desk: CompanyDesk, arguments: dict[str, Any]) -> str:
    if arguments.get("doubtful"):
        desk.doubt("whether this is allowed")
    desk.write("ticket", arguments["ticket"], state=arguments["state"])
    return "ok"


def episode(world: CompanyWorld, rules: Sequence[dict[str, Any]]) -> CompanyEpisode:
    rules = json.loads(json.dumps(rules))   # as the app's files hold them
    suite = CompanySuite("desk", CompanySetup(world, ACCOUNTS, products=("slack",), conventions={ACROSS: {"rules": rules}}))
    suite.tools = {**SLACK, "put": OfficeTool(put, ("ticket",))}
    start = desk_of(world)._start._replace(accounts=ACCOUNTS)
    return CompanyEpisode(suite, CompanyDesk(start))


def test_a_closed_ticket_closes_its_case_and_is_told_in_the_chat() -> None:
    world = history(1)
    rules = learn_effects(world, ACCOUNTS, WRITTEN)
    assert sorted((rule["act"]["conditions"]["state"], rule["effect"]["kind"]) for rule in rules) == [
        ("closed", "db/cases"), ("closed", "slack")]
    own = episode(world, rules)
    assert own.call("put", {"ticket": "T-9", "state": "doing"}).content == "ok"
    assert own.desk.value("db", "cases/K9", "state") == "active"
    own.call("put", {"ticket": "T-9", "state": "closed"})
    assert own.desk.value("db", "cases/K9", "state") == "done" and own.desk.value("db", "cases/K9", "closed_by") == "ada"
    assert own.desk.value("db", "cases/K8", "state") == "active"
    with pytest.raises(Undecided):
        own.desk.value("db", "cases/K9", "note")   # nothing tells what it becomes
    told = own.call("conversations_history", {"channel_id": "C1", "limit": "1"}).content
    assert "T-9 was closed, case K9 too" in told and BOT in told


@pytest.mark.parametrize("world", [history(2, follows=False), history(3, misses=3), history(4, delay=60), history(5, delay=0)],
                         ids=["never", "not always", "late", "at one instant"])
def test_what_does_not_always_follow_soon_is_no_effect(world: CompanyWorld) -> None:
    kinds = {rule["effect"]["kind"] for rule in learn_effects(world, ACCOUNTS, WRITTEN)}
    assert "db/cases" not in kinds


def test_what_a_tool_writes_itself_is_no_effect_of_it() -> None:
    assert learn_effects(history(1), ACCOUNTS, [{"ticket", "slack", "db"}]) == []


def test_an_act_in_doubt_leaves_open_what_would_follow() -> None:
    world = history(1)
    own = episode(world, learn_effects(world, ACCOUNTS, WRITTEN))
    assert own.call("put", {"ticket": "T-9", "state": "closed", "doubtful": True}).tier == "unknown"
    for field in (("ticket", "T-9", "state"), ("db", "cases/K9", "state")):
        with pytest.raises(Undecided):
            own.desk.value(*field)
    assert own.desk.value("db", "cases/K8", "state") == "active"
    assert own.call("conversations_history", {"channel_id": "C1", "limit": "1"}).tier == "unknown"


def test_a_text_may_name_the_record_of_the_effect() -> None:
    versions = []
    for number in range(20):
        key, at = f"OX-{3 * number + 10}", -number * 9 * HOUR - DAY
        versions += by("ada", fields_of("job", key, at - 999, state="open"))
        versions += by("ada", fields_of("note", f"n{number}", at, text=f"{key}: off, see AB {number}", shut=number % 2 == 0))
        versions += by("ada", fields_of("job", key, at + 0.5, state="sent"))
    world = world_of(versions, fields_of("job", "OX-5", -500, state="open"))
    (rule,) = learn_effects(world, ACCOUNTS, [{"note"}, {"job"}])
    assert rule["effect"]["id"] == [["part", "text", r"[A-Z]+\-\d+"]]
    assert rule["effect"]["fields"] == {"state": [["const", "sent"]]}
    own = episode(world, [rule])
    own._app.tools["write"] = OfficeTool(lambda desk, given: desk.write("note", "mine", **given) or "ok", ("note",))
    own.call("write", {"text": "nothing to see", "shut": True})
    assert own.desk.value("job", "OX-5", "state") == "open"
    own.fork().call("write", {"text": "OX-5 and OX-10"})
    other = own.fork()
    other.desk.remove("note", "mine")
    other.call("write", {"text": "OX-5 is off", "shut": False})
    assert other.desk.value("job", "OX-5", "state") == "sent" and own.desk.value("job", "OX-5", "state") == "open"
