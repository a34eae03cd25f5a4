"""The same records in any container give the same events: files, exports of databases, envelopes of platforms."""

from __future__ import annotations

import gzip
import io
import json
import tarfile
import time
import zipfile
from pathlib import Path

import orjson
import pytest

from benchmarks import first_hour_wrapped
from benchmarks.first_hour_containers import CONTAINERS, lines
from extractors.configuration import Source
from extractors.inventory import SourceFile
from extractors.reading import Reading, read
from extractors.sniffing import sniff

SHAPES = Path(__file__).parent / "formats" / "shapes"
TALK = [{"session_id": f"s-{n}", "messages": [{"role": "user", "content": f"Where is order {n}?"},
                                             {"role": "assistant", "content": "On its way."}]} for n in range(3)]

SHORT = {"bigquery_export": {"langfuse_vercel_calls.json", "langfuse_vercel_text.json"}}
"""What falls short: a call is stated twice there, as JSON text with a number, and in columns with that number as text."""


def reading_of(folder: Path, content: bytes) -> Reading:
    (folder / "log").write_bytes(content)
    return read(SourceFile(folder / "log", "log", Source()))


def texts(reading: Reading) -> list[str]:
    return reading.events["content"].to_list()


@pytest.mark.parametrize("name", CONTAINERS)
def test_conversations_are_the_same_in_any_container(name: str, tmp_path: Path) -> None:
    packed = CONTAINERS[name](TALK)
    assert packed is not None
    reading = reading_of(tmp_path, packed)
    plain = reading_of(tmp_path, lines(TALK))
    assert reading.events["session_id"].to_list() == plain.events["session_id"].to_list()
    assert texts(reading) == texts(plain) and reading.events["role"].to_list() == plain.events["role"].to_list()


@pytest.mark.slow
@pytest.mark.parametrize("name", CONTAINERS)
def test_no_record_of_any_shape_is_misread_because_of_its_container(name: str) -> None:
    wrong = first_hour_wrapped.measure(SHAPES, [name])["wrapped"].get(name, {})
    assert wrong.keys() == SHORT.get(name, set()), wrong


def test_a_container_that_is_read_wrongly_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(CONTAINERS, "json_list", lambda rows: lines([{**row, "messages": row["messages"][:1]} for row in rows]))
    [(name, (decision, why))] = first_hour_wrapped.decisions("talk", TALK, ["json_list"])
    assert (name, decision) == ("json_list", "wrong") and "3 of 6" in why


def test_what_an_envelope_states_goes_with_the_record(tmp_path: Path) -> None:
    row = {"messages": [{"role": "user", "content": "Is it open?"}], "response": "Yes."}
    reading = reading_of(tmp_path, lines([{"offset": 7, "timestamp": 1772446500000, "session_id": "visit-1", "value": row}]))
    assert set(reading.events["session_id"]) == {"visit-1"}
    assert [at.isoformat() for at in reading.events["happened_at"]] == ["2026-03-02T10:15:00+00:00"] * 2
    inner = {**row, "session_id": "own", "created": 1772440000}
    reading = reading_of(tmp_path, lines([{"timestamp": 1772446500000, "session_id": "visit-1", "value": inner}]))
    assert set(reading.events["session_id"]) == {"own"}, "a record's own facts come first"
    assert {at.isoformat() for at in reading.events["happened_at"]} == {"2026-03-02T08:26:40+00:00"}


def test_facts_of_an_envelope_may_be_in_an_object_of_their_own(tmp_path: Path) -> None:
    row = {"messages": [{"role": "user", "content": "Is it open?"}], "response": "Yes."}
    around = {"MessageId": "m", "meta": {"thread_id": "t-9", "Timestamp": "2026-03-02T10:15:00Z", "UpdatedAt": "2027-01-01"}}
    reading = reading_of(tmp_path, lines([{**around, "event": row}]))
    assert set(reading.events["session_id"]) == {"t-9"}
    assert {at.isoformat() for at in reading.events["happened_at"]} == {"2026-03-02T10:15:00+00:00"}


def test_conversations_under_a_name_each_are_sessions_of_that_name(tmp_path: Path) -> None:
    document = {f"talk-{n}": {"messages": row["messages"], "state": "closed"} for n, row in enumerate(TALK)}
    reading = reading_of(tmp_path, json.dumps(document, indent=1).encode())
    assert reading.events["session_id"].unique(maintain_order=True).to_list() == ["talk-0", "talk-1", "talk-2"]


def test_words_beside_a_record_are_not_dropped_with_its_envelope(tmp_path: Path) -> None:
    """A conversation's answer next to its question is no envelope: the file is left to a mapping."""
    rows = [{"asked": TALK[n], "reply_text": "It was delivered on Monday to your neighbour."} for n in range(3)]
    assert reading_of(tmp_path, lines(rows)).file.format == "unknown_format"
    rows = [{"asked": TALK[n], "given": {"content": "Delivered."}} for n in range(3)]
    assert reading_of(tmp_path, lines(rows)).file.format == "unknown_format"


def test_sniff_tells_where_records_lie_and_lists_what_is_around_them(tmp_path: Path) -> None:
    path = tmp_path / "dump.jsonl"
    path.write_bytes(lines([{"_index": "logs", "user_id": "u-1", "_source": row} for row in TALK]))
    sniffed = sniff(path)
    uses = {each.path: each.read_as for each in sniffed.uses}
    assert (sniffed.format, sniffed.wrapping) == ("openai_sessions", "under _source")
    assert uses["_index"] == () and uses["user_id"] == ("a fact of its records",)
    assert uses["_source.messages.content"] == ("message.content",) and not any(each.startswith("messages") for each in uses)


def test_records_without_the_wrapped_one_are_rejected_with_the_place(tmp_path: Path) -> None:
    rows = [{"offset": n, "value": row} for n, row in enumerate(TALK)]
    reading = reading_of(tmp_path, lines([*rows, {"offset": 3, "value": None}]))
    assert reading.events["session_id"].n_unique() == 3
    [rejected] = reading.decisions.filter(kept=False).to_dicts()
    assert rejected["line"] == 4 and "it holds no record where the others have theirs (value)" in rejected["detail"]


def test_parts_between_values_that_are_no_json_are_rejected_alone(tmp_path: Path) -> None:
    text = "\n".join([json.dumps(TALK[0], indent=1), '{"torn": ', json.dumps(TALK[1], indent=1)])
    reading = reading_of(tmp_path, text.encode())
    assert set(reading.events["session_id"]) == {"s-0", "s-1"}
    [rejected] = reading.decisions.filter(kept=False).to_dicts()
    assert rejected["reason"] == "unreadable_record" and "begins no JSON" in rejected["detail"]


def test_urls_and_commas_in_strings_are_no_comments(tmp_path: Path) -> None:
    said = 'See https://example.com/a, // or "this", ] # please /* not */ a comment,}'
    row = {"session_id": "s", "messages": [{"role": "user", "content": said}]}
    assert texts(reading_of(tmp_path, b"// by hand\n" + json.dumps(row).encode() + b",\n")) == [said]


def test_cells_that_only_look_like_json_or_numbers_stay_text(tmp_path: Path) -> None:
    rows = ["session_id,kind,role,content", '7,message,user,{why} is it "late"?'.replace('"', ""),
            '7,message,assistant,"{""a"": 1}"', "0071,message,user,1772446500.000100"]
    reading = reading_of(tmp_path, "\n".join(rows).encode())
    assert texts(reading) == ["{why} is it late?", '{"a": 1}', "1772446500.000100"]
    assert reading.events["session_id"].to_list() == ["7", "7", "0071"]


def test_a_table_in_windows_characters_keeps_its_letters(tmp_path: Path) -> None:
    text = "session_id;kind;role;content\r\ns;message;user;Où est ma commande à 5 €?\r\n"
    for encoding in ("cp1252", "utf-8", "utf-8-sig", "utf-16"):
        assert texts(reading_of(tmp_path, text.encode(encoding))) == ["Où est ma commande à 5 €?"]


def test_inserts_of_mysql_and_rows_without_names_of_columns(tmp_path: Path) -> None:
    cell = json.dumps(TALK[0]["messages"]).replace("Where is", "Where's").replace("\\", "\\\\").replace("'", "\\'")
    dump = ("CREATE TABLE `talks` (\n  `session_id` varchar(9),\n  `messages` json,\n  PRIMARY KEY (`session_id`)\n);\n"
            f"INSERT INTO `talks` VALUES ('s-0','{cell}'),('s-1',NULL);\n")
    reading = reading_of(tmp_path, dump.encode())
    assert texts(reading) == ["Where's order 0?", "On its way."] and set(reading.events["session_id"]) == {"s-0"}


def test_files_of_archives_are_read_in_order_and_others_are_rejected_by_name(tmp_path: Path) -> None:
    members = {"b/2.jsonl": lines(TALK[1:]), "b/1.json": orjson.dumps(TALK[:1]), "notes.txt": b"by ops\n"}
    packed, tarred = io.BytesIO(), io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive, tarfile.open(fileobj=tarred, mode="w") as tape:
        for name, content in members.items():
            archive.writestr(name, content)
            info = tarfile.TarInfo(name)
            info.size = len(content)
            tape.addfile(info, io.BytesIO(content))
    for content in (packed.getvalue(), tarred.getvalue(), gzip.compress(tarred.getvalue())):
        reading = reading_of(tmp_path, content)
        assert reading.events["session_id"].unique(maintain_order=True).to_list() == ["s-0", "s-1", "s-2"]
        assert ["notes.txt" in each for each in reading.decisions.filter(kept=False)["detail"]] == [True]


def test_files_that_only_look_like_containers_cost_little(tmp_path: Path) -> None:
    """Comments, lists of columns and quotes that never close are looked at once each."""
    begun = time.process_time()
    for text in ("COPY t (", "COPY t (a\n", "CREATE TABLE t (\n", "INSERT INTO t (a) VALUES ('\n", '{"a": [\n', "# {\n"):
        reading_of(tmp_path, (text * 20_000 + "\nINSERT INTO t VALUES ('").encode())
    assert time.process_time() - begun < 10


def test_a_sparse_file_of_a_tar_is_counted_before_it_is_read(tmp_path: Path) -> None:
    info = tarfile.TarInfo("logs.jsonl")
    info.size, info.type = 1 << 40, tarfile.GNUTYPE_SPARSE
    reading = reading_of(tmp_path, info.tobuf(tarfile.GNU_FORMAT) + bytes(4096))
    assert reading.file.format == "unreadable_file"


def test_lines_of_an_application_beside_wrapped_conversations_are_read_as_without_these(tmp_path: Path) -> None:
    around = {"stream": "stdout", "time": "2026-03-02T10:15:00Z"}
    wrapped = [{"log": f"{json.dumps(row)}\n", **around} for row in TALK]
    access = '203.0.113.7 - - [02/Mar/2026:10:15:02 +0000] "GET /orders/7 HTTP/1.1" 200 148'
    others = [{"log": f"{each}\n", **around} for each in ("worker started", access, '{"level": "info", "msg": "warm"}')]
    reading = reading_of(tmp_path, lines([*others, *others, *wrapped]))
    alone = reading_of(tmp_path, lines([*others, *others]))
    assert (reading.file.format, alone.file.format) == ("openai_sessions", "json_log")
    assert reading.decisions.filter(kept=False).is_empty()
    assert sorted(reading.events["kind"]) == sorted([*alone.events["kind"], *(["message"] * 6)])
    assert reading.events.filter(kind="request")["tool"].to_list() == ["GET /orders/7"] * 2
