"""Stripe: every event is told, and each refund and dispute once, with the last that was said of it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import orjson
import polars as pl
import pytest

from extractors.inventory import SourceFile
from extractors.reading import Reading, read


def event(number: int, kind: str, **inner: Any) -> dict[str, Any]:
    return {"id": f"evt_{number}", "object": "event", "created": 1772446500 + number, "type": kind, "data": {"object": inner}}


def refund(number: int, status: str, kind: str = "refund.updated", **fields: Any) -> dict[str, Any]:
    return event(number, kind, id="re_1", object="refund", amount=2490, currency="eur", charge="ch_1", status=status, **fields)


def charge(number: int, **fields: Any) -> dict[str, Any]:
    return event(number, "charge.refunded", id="ch_1", object="charge", amount=2490, amount_refunded=2490, **fields)


def outcomes(tmp_path: Path, *values: Any, as_list: bool = False) -> tuple[Reading, list[tuple[Any, ...]]]:
    path = tmp_path / "events"
    listed = orjson.dumps({"object": "list", "data": list(values)}, option=orjson.OPT_INDENT_2)
    path.write_bytes(listed if as_list else b"\n".join(map(orjson.dumps, values)))
    reading = read(SourceFile(path, path.name))
    assert reading.file.format == "stripe"
    event_rows = reading.events.filter(kind="outcome")
    return reading, event_rows.select("session_id", "name", "value", "call_id").rows()


@pytest.mark.parametrize("as_list", [False, True])
def test_several_events_are_one_refund(tmp_path: Path, as_list: bool) -> None:
    session = {"metadata": {"session_id": "s"}}
    values = [charge(1, **session), refund(2, "pending", "refund.created"), refund(4, "succeeded"), refund(3, "pending")]
    for order in (values, values[::-1]):
        reading, event_rows = outcomes(tmp_path, *order, as_list=as_list)
        assert event_rows == [("s", "refund", "2490", "re_1")], "the session is that of the charge"
        assert "status succeeded" in reading.events.filter(kind="outcome")["lossy"].item()
        assert reading.events.filter(kind="business").height == 4


def test_a_refund_that_failed_a_charge_alone_and_a_dispute(tmp_path: Path) -> None:
    dispute = {"object": "dispute", "id": "dp_1", "charge": "ch_1", "amount": 9, "reason": "fraudulent"}
    assert outcomes(tmp_path, refund(1, "failed", metadata={"session_id": "s"}))[1] == [("s", "refund_failed", "2490", "re_1")]
    assert outcomes(tmp_path, charge(1))[1] == [(None, "refund", "2490", "ch_1")]
    listed = {"refunds": {"data": [{"id": "re_9", "object": "refund", "amount": 5, "charge": "ch_1"}]}}
    assert outcomes(tmp_path, charge(1, **listed))[1] == [(None, "refund", "5", "re_9")]
    reading, event_rows = outcomes(tmp_path, event(1, "charge.dispute.created", status="needs_response", **dispute),
                             event(2, "charge.dispute.closed", status="lost", **dispute))
    assert event_rows == [(None, "dispute", "lost", "dp_1")]
    assert reading.events.filter(kind="outcome")["content"].item() == "fraudulent"


def test_deliveries_and_records_of_something_else(tmp_path: Path) -> None:
    paid = event(1, "checkout.session.completed", id="cs", object="checkout.session", customer="cus_1")
    nameless = event(2, "refund.created", object="refund", amount=1)
    reading, event_rows = outcomes(tmp_path, paid, paid, {"object": "customer"}, nameless)
    assert reading.events.filter(kind="business").select("tool", "name", "call_id").rows() == [
        ("checkout.session.completed", "cus_1", "evt_1"), ("refund.created", None, "evt_2")]
    assert reading.decisions.filter(~pl.col("kept"))["reason"].to_list() == ["duplicate_event", "no_event"]
    assert event_rows == [(None, "refund", "1", None)]


def test_a_refund_whose_charge_is_no_id_breaks_nothing(tmp_path: Path) -> None:
    _, event_rows = outcomes(tmp_path, refund(1, "succeeded"), event(
        2, "refund.created", id="re_2", object="refund", charge=[], amount=1))
    assert event_rows == [(None, "refund", "2490", "re_1"), (None, "refund", "1", "re_2")]
