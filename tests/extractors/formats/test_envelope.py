"""Facts around a record: which name wins, what a configuration maps, and names that say nothing."""

from __future__ import annotations

from typing import Any

import pytest

from extractors.formats.envelope import Envelope


@pytest.mark.parametrize(("record", "service"), [
    ({"service.name": "desk"}, "desk"), ({"service": {"name": "desk", "version": "2"}}, "desk"),
    ({"attributes": {"service.name": "desk"}}, "desk"), ({"service.name": "unknown_service"}, None),
    ({"service.name": "unknown_service:/opt/bin/program"}, None), ({"service.name": "unknown_services"}, "unknown_services"),
    ({"service.name": ""}, None), ({"service": ["desk"]}, None)])
def test_a_service_is_what_the_record_states(record: dict[str, Any], service: str | None) -> None:
    assert Envelope().service(record) == service
    assert Envelope(service="mine").service(record) == "mine"
    assert Envelope({"service": "kind"}).service({**record, "kind": "other"}) == "other"


def test_the_outermost_statement_counts() -> None:
    record = {"session_id": "outer", "metadata": {"session_id": "inner", "user_id": 7}, "user_id": True}
    assert Envelope().session_id(record) == "outer"
    assert Envelope().identity(record) == "7", "a flag is no id"
    assert Envelope({"session_id": "metadata.session_id"}).session_id(record) == "inner"
    assert Envelope({"session_id": "gone"}).session_id(record) is None, "a mapping is not guessed around"
