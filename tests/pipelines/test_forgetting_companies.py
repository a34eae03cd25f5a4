"""A person of a company who is forgotten is in no table and no environment any more, with none of their ids."""

from __future__ import annotations

import base64
import json
from pathlib import Path

import pytest

from env_builder import Environment
from pipelines.building.companies import apps
from pipelines.building.company_rooms import company_rooms
from pipelines.erasing.forgetting import forget
from pipelines.ingestion.ingest import ingest
from pipelines.inspection.company import stored_company
from pipelines.releases.releasing import registry_of
from pipelines.settings import Settings
from warehouse.lock import writing
from warehouse.store import Store

PETRA, KARIM, ZOE = "petra.alvarez@example.org", "knovotny@example.org", "zoe.reid@example.org"
IDS = {PETRA: ("U0PETRA77", "5fd1b7b56619d4b70bc1226f", "palvarez", "100"),
       KARIM: ("U0KARIM77", "5f586f84fd3b90bb5d2fdbb2", "karimdev", "101")}
NAMES = {PETRA: "Petra Alvarez", KARIM: "Karim Novotny"}
MAIL = """From {sender} Mon Mar  2 09:00:00 2026
Message-ID: <{number}@example.org>
From: <{sender}>
To: <{to}>
Date: Mon, 02 Mar 2026 09:00:00 +0000
Subject: Note {number}

Body {number}.

"""


def change(lsn: int, row: dict[str, object]) -> dict[str, object]:
    at = 1772442000000 + lsn
    return {"before": None, "after": row, "op": "c", "ts_ms": at, "source": {
        "table": "users" if "email" in row else "visits", "db": "crm", "schema": "public", "lsn": lsn, "ts_ms": at}}


def write(root: Path) -> None:
    people = [{"id": IDS[key][0], "name": IDS[key][2], "profile": {"real_name": NAMES[key], "email": key}} for key in NAMES]
    room = {"id": "C1", "name": "hall", "created": 1000, "members": [IDS[PETRA][0], IDS[KARIM][0]],
            "topic": {"value": "", "last_set": 0}}
    messages = [
        {"type": "message", "user": IDS[KARIM][0], "text": f"ask <@{IDS[PETRA][0]}>", "ts": "1772442195.000100"},
        {"type": "message", "user": IDS[PETRA][0], "text": "secret plan", "ts": "1772442196.000100"},
        {"type": "message", "user": IDS[KARIM][0], "text": "stays here", "ts": "1772442197.000100",
         "reactions": [{"name": "wave", "users": [IDS[PETRA][0], IDS[KARIM][0]], "count": 2}]}]
    jira = [{"accountId": IDS[key][1], "displayName": NAMES[key], "emailAddress": key} for key in NAMES]
    issues = [{"number": number, "title": "Slow", "user": {"login": login}, "state": "open", "body": "b", "labels": [],
               "created_at": "2026-03-02T08:00:00Z", "updated_at": "2026-03-02T08:00:00Z", "timeline": [],
               "html_url": f"https://github.com/acme/app/issues/{number}"}
              for number, login in ((7, IDS[PETRA][2]), (8, IDS[KARIM][2]))]
    rows = [change(900008 + 8 * number, {"id": int(IDS[key][3]), "email": key, "name": NAMES[key]})
            for number, key in enumerate(NAMES)]
    rows += [change(901008 + 8 * number, {"id": 500 + number, "owner_id": int(IDS[key][3]), "note": f"visit {number}"})
             for number, key in enumerate(NAMES)]
    files: dict[str, str] = {
        "slack/users.json": json.dumps(people), "slack/channels.json": json.dumps([room]),
        "slack/hall/2026-03-02.json": json.dumps(messages), "jira/users.json": json.dumps(jira),
        "github/acme_app_issues.json": json.dumps(issues), "crm/changes.jsonl": "".join(json.dumps(row) + "\n" for row in rows),
        f"mail/{PETRA}.mbox": MAIL.format(sender=PETRA, to=KARIM, number=1),
        f"mail/{KARIM}.mbox": MAIL.format(sender=PETRA, to=KARIM, number=1) + MAIL.format(sender=KARIM, to=ZOE, number=2)}
    for path, content in files.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(content, "utf-8")


def run(settings: Settings) -> None:
    Path(settings.out).mkdir(exist_ok=True)
    with writing(settings.warehouse, "a test"), Store.open(settings.warehouse) as store:
        ingest(store, settings)
        apps(store, settings)
        company_rooms(store, settings)


def stored(settings: Settings) -> str:
    """Return everything that is kept of the company, as one text."""
    with Store.open(settings.warehouse, write=False) as store:
        tables = [store.table(name).write_csv() for name in ("core.versions", "core.accounts")]
    files = [path.read_text("utf-8") for path in Path(settings.out).rglob("company/**/*") if path.suffix in (".json", ".jsonl")]
    return "\n".join([*tables, *files])


def records(settings: Settings) -> set[tuple[str, str]]:
    with Store.open(settings.warehouse, write=False) as store:
        return set(store.read("select distinct entity_class, entity_id from core.versions").iter_rows())


@pytest.fixture
def exports(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TRACEROOM_KEY", base64.b64encode(bytes(32)).decode())
    write(tmp_path / "logs")
    return tmp_path


@pytest.mark.slow
@pytest.mark.parametrize("privacy", [False, True])
@pytest.mark.parametrize("by", ["address", "account"])
def test_a_forgotten_person_is_nowhere_and_stays_away(exports: Path, privacy: bool, by: str) -> None:
    settings = Settings(logs=(str(exports / "logs"),), out=str(exports / "out"), privacy=privacy, image=False)
    run(settings)
    with Store.open(settings.warehouse, write=False) as store:
        company = stored_company(store)
    ids = IDS[PETRA] if not privacy else ()
    if not privacy:
        assert dict(company.accounts[PETRA]).keys() >= {"slack_user", "jira_user", "login", "users"}
    theirs = next(own for own in company.accounts.values() if own["users"] == IDS[PETRA][3])
    others = next(own for own in company.accounts.values() if own["users"] == IDS[KARIM][3])
    before = stored(settings)
    words = {value for value in (*ids, *theirs.values()) if not value.isdecimal()}
    assert all(word in before for word in words) and "secret plan" in before
    subject = PETRA if by == "address" else theirs["slack_user"]
    forget(settings, registry_of(settings), subject)
    assert not (settings.unverified / "company").exists(), "it held their data"
    for _ in range(2):   # at once, and after the next run has read the exports again
        after = stored(settings)
        assert [word for word in words if word.lower() in after.lower()] == []
        assert "secret plan" not in after and "Body 1" not in after and "visit 0" in before
        kept = records(settings)
        assert ("db", "users/100") not in kept and ("db", "users/101") in kept
        assert ("slack_user", others["slack_user"]) in kept
        with Store.open(settings.warehouse, write=False) as store:
            state = stored_company(store).world.at(2**61)
        assert state.guess("slack_channel", "C1", "members") == [others["slack_user"]]
        (mine,) = [key for key in state.ids("slack") if state.values("slack", key).get("text") == "stays here"]
        assert state.guess("slack", mine, "reactions") == {"wave": [others["slack_user"]]}
        assert [state.guess("db", f"visits/{key}", "owner_id") for key in (500, 501)] == [None, 101]
        assert "Body 2" in after and "ask <@" not in after
        run(settings)
    environment = Environment.load_room(settings.unverified / "company")
    assert "hall" in environment.call("channels_list", {"channel_types": "public_channel"}).content


def test_somebody_else_is_left_alone(exports: Path) -> None:
    settings = Settings(logs=(str(exports / "logs"),), out=str(exports / "out"), privacy=False, image=False)
    run(settings)
    before = stored(settings)
    forget(settings, registry_of(settings), "nobody@example.org")
    assert stored(settings) == before
