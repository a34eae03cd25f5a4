"""Statements that a PostgreSQL server without an audit logs: the rows that they surely changed."""

from __future__ import annotations

from pathlib import Path

import orjson
import polars as pl

from extractors.sniffing import sniff
from tests.extractors.formats.test_shapes import SHAPES, read_shape

CSVLOG = SHAPES / "postgresql_csvlog.csv"


def test_statements_of_a_csvlog_are_row_changes() -> None:
    reading, made = read_shape(CSVLOG)
    assert sniff(CSVLOG).certainty == "likely", "a line of a statement over two lines joins it, and is listed"
    changes = [(row["table_name"], row["operation"], orjson.loads(row["after"])) for row in made.row_changes.sort(
        "happened_at").to_dicts()]
    assert changes == [("refunds", "create", {"id": "re_9001", "order_id": "LN-10482", "amount_cents": "2490"}),
                       ("orders", "update", {"id": "LN-10482", "status": "refunded"})]
    undone = reading.events.filter(pl.col("lossy").str.contains("rolled back"))
    assert undone["tool"].to_list() == ["orders", "carts"] and set(undone["kind"]) == {"log"}, "an error and a ROLLBACK"


def test_statements_of_a_jsonlog_are_the_same(tmp_path: Path) -> None:
    def line(second: int, message: str, severity: str = "LOG", detail: str | None = None) -> bytes:
        return orjson.dumps({"timestamp": f"2026-03-02 10:15:0{second}.700 UTC", "pid": 7, "session_id": "69a5.1",
                             "line_num": second,
                             "error_severity": severity, "message": message, **({"detail": detail} if detail else {})}) + b"\n"

    (tmp_path / "log").write_bytes(
        line(1, "execute a1: UPDATE orders SET status = $1 WHERE id = $2", detail="Parameters: $1 = 'it''s', $2 = 'LN-1'")
        + line(2, "statement: DELETE FROM carts WHERE id = 7") + line(3, "cannot delete", "ERROR"))
    reading, made = read_shape(tmp_path / "log")
    assert reading.file.format == "pgaudit"
    assert [orjson.loads(row) for row in made.row_changes["after"]] == [{"id": "LN-1", "status": "it's"}]
