"""A person who is forgotten is nowhere any more, is not read again, and nobody else is touched."""

from __future__ import annotations

import json
import multiprocessing
import os
import re
import shutil
import tempfile
import time
from pathlib import Path
from urllib.parse import urlsplit

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipelines.erasing import folders
from pipelines.erasing.finding import Theirs
from pipelines.erasing.folders import contents
from pipelines.erasing.forgetting import Forgot, forget
from pipelines.erasing.identifiers import Identifiers, known_of
from pipelines.erasing.remembered import Remembered, key_of, rows_of
from pipelines.ingestion import ingest as ingesting
from pipelines.releases.releasing import registry_of
from pipelines.settings import Settings
from tests.conftest import KEY
from tests.lakes import in_files, in_postgres, take_in
from tests.pipelines.conftest import Traceroom, tables
from tests.pipelines.ingestion import held, ingest
from tests.postgres import Postgres
from warehouse.errors import InputError
from warehouse.store import Store

RAW = ("raw.records", "core.events", "mart.decisions")


def line(number: int, who: str, *, mentions: str = "") -> str:
    """Return a conversation of somebody whom only a tool's argument names, as a line of JSON."""
    return json.dumps({"session_id": f"s{number}", "messages": [
        {"role": "user", "content": f"question {number} {mentions}"},
        {"role": "assistant", "content": "", "tool_calls": [
            {"id": f"c{number}", "type": "function", "function": {"name": "look", "arguments": json.dumps({"user": who})}}]},
        {"role": "tool", "tool_call_id": f"c{number}", "content": json.dumps({"user": who, "rank": number})},
        {"role": "assistant", "content": f"answer {number}"}]}) + "\n"


def written(folder: Path, lines: list[str], name: str = "a.jsonl") -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text("".join(lines))
    return folder


def forgotten(out: Path, subject: str) -> Forgot:
    settings = Settings(logs=(), out=str(out))
    return forget(settings, registry_of(settings), subject)


def kept(out: Path) -> dict[str, pl.DataFrame]:
    rows = held(out)
    return {table: rows[table].sort(pl.all()) for table in RAW} | {"memory": memory(out)}


def memory(out: Path) -> pl.DataFrame:
    with Store.open(out / "warehouse.duckdb", write=False) as store:
        return store.table("raw.forgotten")


def somebody(out: Path) -> str:
    """Who stands in most of the events of a run, but not in all of its services' rooms alone."""
    with Store.open(out / "warehouse.duckdb", write=False) as store:
        rows = store.read("select arguments from core.turns where arguments is not null")["arguments"]
    found = [name for text in rows for name in re.findall(r"[a-z]+_[a-z]+_\d{4}", text)]
    return max(sorted(set(found)), key=found.count)


def test_of_a_whole_run_nothing_is_left_of_them(
    run_once: tuple[Path, str], tmp_path: Path, traceroom: Traceroom
) -> None:
    out = tmp_path / "out"
    shutil.copytree(run_once[0], out)
    who = somebody(out)
    assert folders.still_there(out, Identifiers([who]))
    before = tables(out)
    theirs = set(before["core.turns"].filter(pl.col("arguments").str.contains(who, literal=True))["session_id"])
    done = traceroom("forget", "--subject", who, "--out", out, "--json")
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert told["n_sessions"] >= len(theirs) > 0 and told["rows"]["core.sessions"] == told["n_sessions"]
    assert [path for path in out.rglob("*") if path.is_file() and who.encode() in path.read_bytes()] == []
    after = tables(out)
    others = before["core.sessions"].join(after["core.sessions"], on="session_id", how="semi")
    assert others.equals(after["core.sessions"]) and others.height == before["core.sessions"].height - told["n_sessions"]
    for table in ("core.turns", "mart.outcomes", "mart.goals", "mart.tasks"):
        assert after[table].join(before[table], on=after[table].columns[0], how="anti").is_empty(), table
    still = before["core.turns"].join(others, on="session_id", how="semi")
    assert still.equals(after["core.turns"])


def test_who_is_forgotten_is_not_read_again(tmp_path: Path) -> None:
    logs = written(tmp_path / "logs", [line(n, f"ann_{n % 4}000") for n in range(20)])
    ingest(tmp_path / "out", logs)
    forgotten(tmp_path / "out", "ann_2000")
    assert held(tmp_path / "out")["core.events"]["session_id"].n_unique() == 15
    written(logs, [line(n, f"ann_{n % 4}000") for n in range(20)] + [line(50, "ann_2000"), line(51, "ann_1000")])
    written(logs, [line(n, f"ann_{n % 4}000") for n in range(8, 12)], "again.jsonl")
    ingest(tmp_path / "out", logs)
    rows = held(tmp_path / "out")
    assert rows["core.events"]["session_id"].n_unique() == 16   # and the new one of somebody else
    assert rows["raw.records"].filter(pl.col("reject_reason") == "forgotten").height == 7
    assert rows["mart.decisions"].filter(pl.col("reason") == "forgotten").height == 7
    assert not any(b"ann_2000" in path.read_bytes() for path in (tmp_path / "out").rglob("*") if path.is_file())


def test_what_somebody_else_s_session_says_of_them_goes_with_it(tmp_path: Path) -> None:
    logs = written(tmp_path / "logs", [line(1, "ann_1000"), line(2, "bob_2000", mentions="for ann_1000"), line(3, "bob_2000")])
    ingest(tmp_path / "out", logs)
    assert forgotten(tmp_path / "out", "ANN_1000").n_sessions == 0   # nothing is put together yet: events alone are told
    assert set(held(tmp_path / "out")["core.events"]["session_id"]) == {"s3"}


def test_a_session_that_turns_out_to_be_theirs_goes_as_a_whole(tmp_path: Path) -> None:
    """The second file tells who it was; what the first one told is taken out again."""
    logs = written(tmp_path / "logs", [line(1, "ann_1000"), line(2, "bob_2000")])
    ingest(tmp_path / "out", logs)
    forgotten(tmp_path / "out", "eve_3000")
    written(logs, [line(2, "bob_2000", mentions="I am eve_3000")], "b.jsonl")
    ingest(tmp_path / "out", logs)
    assert set(held(tmp_path / "out")["core.events"]["session_id"]) == {"s1"}
    assert b"bob_2000" not in (tmp_path / "out" / "warehouse.duckdb").read_bytes()


def test_a_file_that_is_named_after_them_is_not_opened_again(tmp_path: Path) -> None:
    logs = written(tmp_path / "logs", [line(1, "ann_1000")], "ann_1000.jsonl")
    ingest(tmp_path / "out", written(logs, [line(2, "bob_2000")]))
    forgotten(tmp_path / "out", "ann_1000")
    ingest(tmp_path / "out", logs)
    assert set(held(tmp_path / "out")["core.events"]["session_id"]) == {"s2"}
    assert not any(b"ann_1000" in path.read_bytes() for path in (tmp_path / "out").rglob("*") if path.is_file())


SUBJECTS = ("ann_0000", "ann_1000", "ann_2000", "ann_1000")


@pytest.fixture(scope="module")
def before_and_after(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, pl.DataFrame]]:
    """Return the folder of an ingestion, and what is kept once each of three people was forgotten, in order and once."""
    folder = tmp_path_factory.mktemp("orders")
    logs = written(folder / "logs", [line(n, f"ann_{n % 5}000", mentions=f"ann_{n % 7}000" * (n % 3 == 0)) for n in range(24)])
    ingest(folder / "before", logs)
    shutil.copytree(folder / "before", folder / "after")
    for name in sorted(set(SUBJECTS)):
        forgotten(folder / "after", name)
    return folder / "before", kept(folder / "after")


@pytest.mark.slow
@settings(max_examples=6)
@given(st.permutations(SUBJECTS))
def test_order_and_repetition_do_not_matter(before_and_after: tuple[Path, dict[str, pl.DataFrame]], order: list[str]) -> None:
    before, after = before_and_after
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "out"
        shutil.copytree(before, out)
        for name in order:
            forgotten(out, name)
        rows = kept(out)
    assert [table for table in after if not after[table].equals(rows[table])] == []


def test_forgetting_before_reading_is_forgetting_after(tmp_path: Path) -> None:
    lines = [line(n, f"ann_{n % 4}000") for n in range(12)]
    ingest(tmp_path / "after", written(tmp_path / "logs", lines))
    ingest(tmp_path / "before", written(tmp_path / "none", [line(99, "bob_9000")]))
    for out in ("after", "before"):
        forgotten(tmp_path / out, "ann_2000")
    ingest(tmp_path / "before", tmp_path / "logs")
    ids = [set(held(tmp_path / out)["core.events"].filter(pl.col("session_id") != "s99")["event_id"]) for out in
           ("after", "before")]
    assert ids[0] == ids[1] and ids[0]
    marked = [held(tmp_path / out)["raw.records"].filter(pl.col("reject_reason") == "forgotten") for out in ("after", "before")]
    assert set(marked[0]["record_id"]) == set(marked[1]["record_id"]) and marked[0].height == 3


def test_episodes_of_the_service_go_wherever_they_were_played(tmp_path: Path) -> None:
    for name in ("rollouts/main", "transfer/main", "transfer/other"):
        (tmp_path / name).mkdir(parents=True)
    assert folders.to_withdraw(Settings(logs=(), out=str(tmp_path)), ["main"]) == ["rollouts/main", "transfer/main"]


def test_a_dry_run_changes_nothing(run_once: tuple[Path, str], tmp_path: Path, traceroom: Traceroom) -> None:
    out = tmp_path / "out"
    shutil.copytree(run_once[0], out)
    before = {path: path.read_bytes() for path in out.rglob("*.duckdb")}
    done = traceroom("forget", "--subject", somebody(out), "--out", out, "--dry-run", "--json")
    assert done.returncode == 0 and json.loads(done.stdout)["n_sessions"] > 0, done.stderr
    assert all((out / name).is_dir() for name in json.loads(done.stdout)["withdrawn"])
    assert {path: path.read_bytes() for path in out.rglob("*.duckdb")} == before


@pytest.mark.slow
def test_of_a_lake_nothing_is_left_of_them(tmp_path: Path) -> None:
    """Neither in its rows nor in what its catalog knows of them (least and greatest values), nor in a former snapshot."""
    lines = [line(n, f"zoe_{n % 4}000") for n in range(12)]
    out, logs = tmp_path / "out", written(tmp_path / "logs", lines)
    take_in(in_files(tmp_path), out, [str(logs)])
    with Store.open(out / "warehouse.duckdb") as store:
        store.publish()
    forgotten(out, "zoe_3000")
    assert [path for folder in ("rows", "out") for path in (tmp_path / folder).rglob("*")
            if path.is_file() and any(b"zoe_3000" in each for each in contents(path))] == []
    assert b"zoe_3000" not in (tmp_path / "catalog.ducklake").read_bytes()
    with Store.published(out / "warehouse.duckdb") as store:
        assert store.read("select count(distinct session_id) as n from core.events").item() == 9
    take_in(in_files(tmp_path), out, [str(written(logs, [*lines, line(30, "zoe_3000"), line(31, "zoe_1000")]))])
    with Store.open(out / "warehouse.duckdb", write=False) as store:
        assert store.read("select count(distinct session_id) as n from core.events").item() == 10


@pytest.mark.slow
@pytest.mark.xdist_group("postgres")
def test_of_a_lake_on_a_server_nothing_is_left_of_them(
        postgres: Postgres, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither in the files of its rows, of any snapshot, nor in what its catalog answers with."""
    monkeypatch.setenv("PGPASSWORD", postgres.password)
    lines = [line(n, f"zoe_{n % 4}000") for n in range(12)]
    url, out, logs = in_postgres(postgres, tmp_path / "rows"), tmp_path / "out", written(tmp_path / "logs", lines)
    take_in(url, out, [str(logs)])
    database = urlsplit(url.removeprefix("ducklake:")).path.removeprefix("/")
    before = postgres.run("pg_dump", "--data-only", database)
    assert "zoe_3000" in before or any(b"zoe_3000" in each for path in (tmp_path / "rows").rglob("*.parquet")
                                       for each in contents(path))
    forgotten(out, "zoe_3000")
    assert "zoe_3000" not in postgres.run("pg_dump", "--data-only", database)
    assert [path for folder in ("rows", "out") for path in (tmp_path / folder).rglob("*")
            if path.is_file() and any(b"zoe_3000" in each for each in contents(path))] == []
    with Store.open(out / "warehouse.duckdb", write=False) as store:
        assert store.read("select count(distinct session_id) as n from core.events").item() == 9


def test_who_is_named_by_an_address_goes_with_the_id_that_is_said_too(tmp_path: Path) -> None:
    """Most events have the id alone; the session that tells of both goes as a whole either way."""
    record = json.dumps({"user_id": "zoe_3000", "email": "zoe.k@mail.org"})
    lines = [line(n, f"zoe_{n % 4}000") for n in range(12)] + [line(20, "bob_1000", mentions=record.replace('"', "'"))]
    for name, subject, also in (("mail", "zoe.k@mail.org", ("zoe_3000",)), ("id", "zoe_3000", ())):
        out = tmp_path / name
        ingest(out, written(tmp_path / "logs", lines))
        done = forget(Settings(logs=(), out=str(out)), registry_of(Settings(logs=(), out=str(out))), subject, also)
        assert subject in done.values
        assert set(held(out)["core.events"]["session_id"]) == {f"s{n}" for n in range(12) if n % 4 != 3}
        assert not any(b"zoe_3000" in path.read_bytes() for path in out.rglob("*") if path.is_file())


def test_under_a_pseudonym_they_are_found_by_their_own_name(tmp_path: Path) -> None:
    mails = [f"ann.{n}@mail{n}.org" for n in range(4)]
    logs = written(tmp_path / "logs", [line(n, mails[n % 4]) for n in range(12)])
    settings = Settings(logs=(str(logs),), out=str(tmp_path / "out"), privacy=True)
    for _ in range(2):
        with Store.open(settings.warehouse) as store:
            ingesting.ingest(store, settings)
            assert not any(mail in text for mail in mails for text in store.table("core.events")["arguments"].drop_nulls())
        forgotten(tmp_path / "out", mails[2])
        with Store.open(settings.warehouse) as store:
            assert store.read("select count(distinct session_id) as n from core.events").item() == 9
            assert store.count("raw.people") == 3   # and they are not seen again
        written(logs, [line(n, mails[n % 4]) for n in range(12)] + [line(40, mails[2])])


def test_another_key_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    logs = written(tmp_path / "logs", [line(1, "ann_1000"), line(2, "bob_2000")])
    ingest(tmp_path / "out", logs)
    forgotten(tmp_path / "out", "ann_1000")
    monkeypatch.setenv("TRACEROOM_KEY", KEY[::-1])
    for again in (lambda: ingest(tmp_path / "out", logs), lambda: forgotten(tmp_path / "out", "bob_2000")):
        with pytest.raises(InputError, match="not the key"):
            again()


def _forget_in_a_process(out: Path, who: str) -> None:
    os.environ["TRACEROOM_KEY"] = KEY
    forgotten(out, who)


@pytest.mark.slow
def test_killed_at_any_moment_the_next_call_goes_on(run_once: tuple[Path, str], tmp_path: Path) -> None:
    who = somebody(run_once[0])
    shutil.copytree(run_once[0], tmp_path / "whole")
    began = time.monotonic()
    forgotten(tmp_path / "whole", who)
    took = time.monotonic() - began
    wanted, server = tables(tmp_path / "whole"), multiprocessing.get_context("fork")
    for number in range(1, 5):
        out = tmp_path / f"killed{number}"
        shutil.copytree(run_once[0], out)
        process = server.Process(target=_forget_in_a_process, args=(out, who))
        process.start()
        process.join(took * number / 5)
        process.kill()
        process.join()
        forgotten(out, who)
        found = tables(out)
        assert [name for name in wanted if not wanted[name].sort(pl.all()).equals(found[name].sort(pl.all()))] == []
        assert folders.still_there(out, Identifiers([who])) == []
        assert {path.name for path in out.iterdir()} == {path.name for path in (tmp_path / "whole").iterdir()}


WORDS = st.text("ab1_-.@é ß\"\\", max_size=24)


@given(st.from_regex(r"[a-b]{1,3}[_.@-]?[0-9]{1,4}", fullmatch=True), WORDS, WORDS)
def test_a_value_is_found_as_a_word_and_by_its_hash_alike(value: str, before: str, after: str) -> None:
    key = key_of()
    person = Identifiers([value])
    no_rows = pl.DataFrame(schema={"event_id": pl.String(), "record_id": pl.String()})
    blind = Remembered(key, rows_of(key, person, Theirs(no_rows, [], [], [], [])))
    for text in (before + value + after, before + after, f"{before} {value.upper()} {after}", json.dumps({"user": value})):
        assert person.within(text) == blind.speaks(text), text
    assert person.within(json.dumps({"user": value}))


@pytest.mark.parametrize(("value", "text", "is_found"), [
    ("ann_1000", "ann_10001", False), ("ann_1000", "joann_1000", False), ("ann_1000", "ann_1000_2", True),
    ("ann_1000", "first\\nann_1000", True), ("ann@example.org", "mail=ann%40example.org&x=1", True),
    ("é1é1", '{"user": "\\u00e91\\u00e91"}', True), ("12", "12 doors", False), ("12", '{"user_id": 12}', True),
    ("12", '{"user_id": 125}', False), ("anna", "anna said", False), ("anna", '{\\"customer\\": \\"anna\\"}', True)])
def test_where_a_value_says_something(value: str, text: str, is_found: bool) -> None:
    assert Identifiers([value]).within(text) is is_found


def test_a_date_or_a_tariff_that_others_have_too_stands_for_nobody(tmp_path: Path, traceroom: Traceroom) -> None:
    logs, out = tmp_path / "logs", tmp_path / "out"
    logs.mkdir()
    rows = []
    for number, who in enumerate(("KD-77012x", "KD-77112x", "KD-77212x")):
        record = {"customer_id": who, "member_since": "2024-05-01", "tariff_code": "10002000", "bonus": "0.00000000",
                  "phone": "+49 221 7700101" if number < 2 else "+49 221 7700102"}
        rows.append(json.dumps({"session_id": f"s{number}", "messages": [
            {"role": "user", "content": f"I am {who}, which plan do I have?"},
            {"role": "assistant", "tool_calls": [{"id": "c", "type": "function", "function": {
                "name": "get_customer", "arguments": json.dumps({"customer_id": who})}}]},
            {"role": "tool", "tool_call_id": "c", "content": json.dumps(record)},
            {"role": "assistant", "content": "Basic."}]}))
    (logs / "chat.jsonl").write_text("".join(f"{row}\n" for row in rows), "utf-8")
    assert traceroom("run", logs, "--out", out, "--no-image", "--privacy", "off").returncode == 0
    with Store.open(out / "warehouse.duckdb") as store:
        told = known_of(store, ["KD-77012x"])
        assert told.values == [] and known_of(store, ["KD-77212x"]).values == ["+49 221 7700102"]
