"""pgaudit: text, csvlog and jsonlog; statements over lines, told twice, taken back; what is no change."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import orjson
import polars as pl
import pytest

from extractors.formats import Emit, Head, LogRecord
from extractors.formats.envelope import Envelope
from extractors.formats.pgaudit import FORMAT
from extractors.inventory import SourceFile
from extractors.reading import read
from extractors.sessions import assemble

PREFIX = "2026-03-02 10:15:48.700 UTC app shop [4242]: LOG:  "


def entries(*values: Any) -> tuple[pl.DataFrame, list[str]]:
    """Events of lines, and why lines became none."""
    emit = Emit("file", "main", "pgaudit", Envelope())
    FORMAT.read([LogRecord(f"{number:064d}", number, value) for number, value in enumerate(values, start=1)], emit)
    return emit.frame(), [reason for _, reason, _ in emit.rejects]


def audit(number: int, statement: str, parameters: str = "<none>", kind: str = "WRITE", command: str = "UPDATE",
          who: str = "SESSION", rows: str = "") -> str:
    quoted = '"' + statement.replace('"', '""') + '"'
    return f'{PREFIX}AUDIT: {who},{number},1,{kind},{command},TABLE,public.t,{quoted},"{parameters}"{rows}'


@pytest.mark.parametrize("name", ["pgaudit_stderr.log", "pgaudit_csvlog.csv"])
def test_the_samples_give_the_rows(data: Path, name: str) -> None:
    lines = (data / "format_samples/08_app" / name).read_text().splitlines()
    assert FORMAT.claims(Head("text", [], None, lines))
    events, rejected = entries(*lines)
    made = assemble(events).row_changes
    assert not rejected and made["operation"].to_list() == ["create", "update", "update"]
    assert made["table_name"].to_list() == ["refunds", "orders", "tickets"]
    assert [orjson.loads(text) for text in made["after"]] == [
        {"id": "re_9001", "order_id": "LN-10482", "amount_cents": "2490", "status": "succeeded"},
        {"id": "LN-10482", "status": "refunded"}, {"id": "5512", "status": "solved"}]
    assert made["key"].to_list() == [None, '{"id":"LN-10482"}', '{"id":"5512"}']
    transactions = ["9001", "9001", "9010"] if "csv" in name else [None] * 3
    assert events["call_id"].to_list() == transactions


def test_a_file_of_csvlog_with_a_statement_over_lines(tmp_path: Path) -> None:
    path = tmp_path / "postgresql.csv"
    start = "2026-03-02 10:15:48.700 UTC,app,shop,4242,10.0.0.5:5,69a5.1092,1,UPDATE,2026-03-02 10:15:00 UTC,3/0,0,LOG,00000,"
    statement = '""UPDATE t\nSET a = $1\n WHERE id = 1""'
    path.write_text(f'{start}"AUDIT: SESSION,1,1,WRITE,UPDATE,TABLE,public.t,{statement},a""b",,,,\n'
                    f'{start}"connection received: host=10.0.0.5, port=5",,,,\n')
    reading = read(SourceFile(path, path.name))
    assert reading.file.format == "pgaudit" and reading.file.n_records == 4
    assert reading.events["kind"].to_list() == ["row_change", "log"] and reading.events["call_id"].to_list() == [None, None]
    assert orjson.loads(reading.events["value"][0])["after"] == {"id": 1, "a": 'a"b'}
    rejected = reading.decisions.filter(~pl.col("kept"))
    assert rejected["reason"].to_list() == ["joined_line"] * 2 and sorted(rejected["line"]) == [2, 3]


def test_text_that_the_server_indents(tmp_path: Path) -> None:
    first, *rest = audit(1, "UPDATE t\n\tSET a = 1\n\tWHERE id = 1").split("\n")
    events, rejected = entries(first, *rest, f"{PREFIX}checkpoint starting: time", "\tand more of it")
    assert events.select("kind", "content").rows() == [
        ("row_change", "UPDATE t\nSET a = 1\nWHERE id = 1"), ("log", f"{PREFIX}checkpoint starting: time\nand more of it")]
    assert rejected == ["joined_line"] * 3


def test_what_is_not_certain_keeps_its_statement() -> None:
    statement = "UPDATE t SET a = a || $1 WHERE b > $2"
    events, _ = entries(audit(1, statement, "x,1"), audit(2, "UPDATE t SET a = $1 WHERE id = 1", "z", rows=",3"))
    assert [orjson.loads(text) for text in events["value"]] == [
        {"before": None, "after": None, "statement": statement, "parameters": ["x", "1"]},
        {"before": None, "after": None, "statement": "UPDATE t SET a = $1 WHERE id = 1", "parameters": ["z"]}]
    assert events["content"].to_list()[0] == statement and set(events["kind"]) == {"row_change"}


def test_statements_told_twice_and_statements_logged_before() -> None:
    statement = "UPDATE t SET a = $1 WHERE id = 1"
    events, _ = entries(audit(1, statement, "x"), audit(1, statement, "x", who="OBJECT"), audit(2, statement, "x"),
                        audit(2, "<previously logged>", "<previously logged>", command="DELETE"),
                        audit(3, statement, "x", rows=",0"), audit(1, statement.replace("id", "k"), "x"))
    assert events["kind"].to_list() == ["row_change", "log", "row_change", "row_change", "log", "row_change"]
    assert events["content"][3] == statement, "the statement that was logged before"


def test_what_a_rollback_took_back_is_no_change() -> None:
    def other(command: str) -> str:
        return audit(9, command, kind="MISC", command=command)

    made = [audit(n, f"UPDATE t SET a = 1 WHERE id = {n}") for n in range(4)]
    events, _ = entries(other("BEGIN"), made[0], other("COMMIT"), other("BEGIN"), made[1], made[2], other("ROLLBACK"), made[3])
    assert events.filter(kind="row_change")["arguments"].to_list() == ['{"id":0}', '{"id":3}']
    taken = events.filter(pl.col("lossy").fill_null("").str.contains("rolled back"))
    assert taken["kind"].to_list() == ["log"] * 2


def test_jsonlog_zones_and_other_records() -> None:
    message = audit(1, "DELETE FROM t WHERE id = $1", "7", command="DELETE").removeprefix(PREFIX)
    line = {"timestamp": "2026-03-02 10:15:48.700 CET", "pid": 1, "txid": 5, "message": message, "error_severity": "LOG"}
    assert FORMAT.claims(Head("lines", [line])) and not FORMAT.claims(Head("lines", [{"message": "AUDIT: of the books"}]))
    events, rejected = entries(line, {"message": "started"}, 5, audit(1, "x").replace(" UTC", " +01:00"))
    assert events["kind"].to_list() == ["row_change", "log", "row_change"] and rejected == ["no_line"]
    assert events["call_id"].to_list() == ["5", None, None] and "time zone CET taken as UTC" in events["lossy"][0]
    assert events["happened_at"][2].isoformat() == "2026-03-02T09:15:48.700000+00:00"
