"""Privacy in a run: nothing of a person is written, what was made stays whole, and one OUT is cleaned one way."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from pipelines.ingestion.ingest import ingest
from pipelines.privacy import guard
from pipelines.privacy.guard import owner, stored_people
from pipelines.privacy.keys import Seal
from pipelines.running import engines as turns
from pipelines.settings import Settings
from tests.pipelines.conftest import Traceroom, same, tables
from tests.pipelines.ingestion import small
from warehouse.errors import InputError
from warehouse.lock import writing
from warehouse.store import Store

KEY, OTHER = "a key of the tests, long enough", "another key of the tests, long enough"
PERSON = '{"user_id": "siobhan_okonkwo_6181", "first_name": "Siobhan", "last_name": "Okonkwo", "email": "sio.ok@corp.io"}'


@pytest.fixture(autouse=True)
def _key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRACEROOM_KEY", KEY)


def session(number: int, said: str, result: str) -> str:
    call = {"id": "c1", "type": "function", "function": {"name": "find", "arguments": '{"q": 1}'}}
    return json.dumps({"id": f"s{number}", "messages": [
        {"role": "user", "content": said}, {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c1", "content": result}, {"role": "assistant", "content": "Done."}]}) + "\n"


@pytest.fixture
def people(tmp_path: Path) -> Path:
    """Two files: what one says in a text stands in a field of the other; and a line that nobody can read."""
    folder = tmp_path / "people"
    folder.mkdir()
    (folder / "a.jsonl").write_text(session(1, "Siobhan Okonkwo here", "ok") + session(2, "and okonkwo, Siobhan?", "ok"))
    (folder / "b.jsonl").write_text(session(3, "hello", PERSON) + '{"broken": "Siobhan Okonkwo\n')
    return folder


def settings(logs: Path, out: Path, privacy: bool | None = True) -> Settings:
    return Settings(logs=(str(logs),), out=str(out), privacy=privacy)


def read(told: Settings) -> dict[str, object]:
    Path(told.out).mkdir(exist_ok=True)
    with writing(told.warehouse, "a test"), Store.open(told.warehouse) as store:
        counts = ingest(store, told)
        store.publish()
        return {**counts, "events": store.table("core.events"), "known": stored_people(store, owner())}


def everything(folder: Path) -> bytes:
    return b"".join(path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file())


def test_nothing_of_a_person_is_stored_whichever_file_names_them(people: Path, tmp_path: Path) -> None:
    found = read(settings(people, tmp_path / "out"))
    assert found["n_new_events"] and ("word", "okonkwo") in found["known"]  # type: ignore[operator]
    content = everything(tmp_path / "out").lower()
    assert not [word for word in (b"siobhan", b"okonkwo", b"sio.ok@corp.io") if word in content]
    texts = found["events"]["content"].drop_nulls().to_list()  # type: ignore[index]
    result = next(json.loads(text) for text in texts if text.startswith("{"))
    assert any(f"{result['first_name']} {result['last_name']} here" == text for text in texts)
    assert result["user_id"].startswith(f"{result['first_name']}_{result['last_name']}_".lower())


def test_a_second_run_adds_nothing_and_another_order_of_files_changes_nothing(people: Path, tmp_path: Path) -> None:
    first = settings(people, tmp_path / "out")
    read(first)
    before = tables(tmp_path / "out")
    assert read(first)["n_new_records"] == 0 and same(before, tables(tmp_path / "out")) == []
    for one, other in (("a", "z"), ("b", "a"), ("z", "b")):
        (people / f"{one}.jsonl").rename(people / f"{other}.jsonl")
    other_order = settings(people, tmp_path / "other")
    events = read(other_order)["events"]
    assert sorted(events["content"].drop_nulls()) == sorted(before["core.events"]["content"].drop_nulls())  # type: ignore[index]


def test_workers_clean_as_this_process_does(people: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also what waits on the disk meanwhile, and what is known by its form alone."""
    (people / "c.jsonl").write_text("".join(
        session(10 + n, f"this is Siobhan number {n}, card 4111 1111 1111 {n:04}", f"mail x{n}.zed@corp-mail.io")
        for n in range(60)))
    monkeypatch.setenv("TRACEROOM_WORKERS", "2")
    monkeypatch.setattr(guard, "_MEMORY", 20_000)
    monkeypatch.setattr(turns, "_FED", 0)
    found = []
    for in_processes in (False, True):
        with small(900, in_processes=in_processes):
            read(settings(people, tmp_path / str(in_processes)))
        found.append(tables(tmp_path / str(in_processes)))
        assert not list((tmp_path / str(in_processes)).glob("*.waiting"))
    assert same(*found) == []


def test_a_later_night_knows_who_was_seen(people: Path, tmp_path: Path) -> None:
    read(settings(people, tmp_path / "out"))
    (people / "c.jsonl").write_text(session(4, "it is OKONKWO again", "no"))
    events = read(settings(people, tmp_path / "out"))["events"]
    assert any("again" in (text or "") for text in events["content"])  # type: ignore[index]
    assert b"OKONKWO" not in everything(tmp_path / "out")


def test_one_out_is_cleaned_one_way(people: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    on, off = tmp_path / "on", tmp_path / "off"
    read(settings(people, on))
    read(settings(people, off, privacy=False))
    for told, why in ((settings(people, on, privacy=False), "read with --privacy on"),
                      (settings(people, off), "read with --privacy off")):
        with pytest.raises(InputError, match=why):
            read(told)
    assert read(settings(people, on, privacy=None))["n_new_records"] == 0   # as OUT was read
    monkeypatch.setenv("TRACEROOM_KEY", OTHER)
    with pytest.raises(InputError, match="read with another key"):
        read(settings(people, on))


def test_a_run_with_nothing_to_do_is_refused_too_where_it_asks_for_another_way(
        people: Path, tmp_path: Path, traceroom: Traceroom) -> None:
    made = ("run", people, "--out", tmp_path / "out", "--no-image")
    assert traceroom(*made, TRACEROOM_KEY=KEY).returncode == 0
    for asked, key, why in ((("--privacy", "off"), KEY, "read with --privacy on"), ((), OTHER, "read with another key")):
        refused = traceroom(*made, *asked, TRACEROOM_KEY=key)
        assert refused.returncode == 2 and why in refused.stderr, refused.stderr
    assert traceroom(*made, TRACEROOM_KEY=KEY).returncode == 0


def test_what_is_quarantined_is_for_its_owner_alone(people: Path, tmp_path: Path, traceroom: Traceroom) -> None:
    done = traceroom("run", people, "--out", tmp_path / "out", "--privacy", "on", "--no-image", TRACEROOM_KEY=KEY)
    assert done.returncode == 0, done.stderr
    assert b"Okonkwo" not in everything(tmp_path / "out")
    raws = [[row["raw"] for row in json.loads(traceroom("show", "--rejected", "--json", "--out", tmp_path / "out",
                                                        TRACEROOM_KEY=key).stdout) if row["raw"]] for key in (KEY, OTHER)]
    assert any("Siobhan Okonkwo" in raw for raw in raws[0]) and raws[1] == ["(sealed with another key)"]


def test_nobody_is_looked_for_with_another_key(people: Path, tmp_path: Path, traceroom: Traceroom) -> None:
    """They would stand there under another name, and nothing would be found of them."""
    assert traceroom("run", people, "--out", tmp_path / "out", "--no-image", TRACEROOM_KEY=KEY).returncode == 0
    asked = ("forget", "--subject", "siobhan_okonkwo_6181", "--dry-run", "--json", "--out", tmp_path / "out")
    refused = traceroom(*asked, TRACEROOM_KEY=OTHER)
    assert refused.returncode == 2 and "was read with another key" in refused.stderr
    assert json.loads(traceroom(*asked, TRACEROOM_KEY=KEY).stdout)["n_sessions"] == 1


def test_a_seal_opens_what_it_shut_and_nothing_else() -> None:
    seal = Seal()
    assert seal.decrypt(seal.encrypt(b"rows")) == b"rows" and b"rows" not in seal.encrypt(b"rows")


def test_the_owner_is_told_a_pseudonym(traceroom: Traceroom) -> None:
    made = [traceroom("pseudonym", "Siobhan Okonkwo", TRACEROOM_KEY=key).stdout.strip() for key in (KEY, KEY, OTHER)]
    assert made[0] == made[1] != made[2] and len(made[0].split()) == 2 and "Okonkwo" not in made[0]
    email = json.loads(traceroom("pseudonym", "sio.ok@corp.io", "--json", TRACEROOM_KEY=KEY).stdout)
    assert email["kind"] == "email" and "@" in email["pseudonym"]
    assert "no kind 'colour'" in traceroom("pseudonym", "red", "--kind", "colour", TRACEROOM_KEY=KEY).stderr


def test_a_release_looks_for_names_that_only_split_fields_hold(tmp_path: Path) -> None:
    folder = tmp_path / "logs"
    folder.mkdir()
    (folder / "a.jsonl").write_text(session(1, "hello", '{"first_name": "Maria", "last_name": "Lopez"}'))
    where = settings(folder, tmp_path / "out")
    read(where)
    with Store.open(where.warehouse, write=False) as store:
        assert guard.names_in(store) == {"maria lopez"}
