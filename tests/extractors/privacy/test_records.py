"""Short ids of persons: one pseudonym in paths, queries, bodies and their own records; the same digits elsewhere stay."""

from __future__ import annotations

import json

import polars as pl
import pytest

from extractors.privacy import Cleaner, Finding, People, Policy, Pseudonyms
from warehouse.records import Event, frame_schema

MADE = Pseudonyms(b"k" * 32)
SEVEN = MADE.of("id", "7")


def cleaned(*rows: tuple[str, str | None, str | None], policy: Policy | None = None) -> pl.DataFrame:
    """Return requests: what was asked (method and path), arguments and answer."""
    told = [{"event_id": f"e{n}", "record_id": f"r{n}", "file_id": "f", "source": "s", "format": "x", "kind": "request",
             "tool": tool, "arguments": arguments, "value": value} for n, (tool, arguments, value) in enumerate(rows)]
    events, finding = pl.DataFrame(told, schema=frame_schema(Event)), Finding()
    finding.see(events)
    return Cleaner(People(finding, policy or Policy()), MADE).events(events)


def test_path_query_and_body_still_join() -> None:
    user = {"id": 7, "first_name": "Ann", "orders": [{"id": 7, "total": 7}], "pages": 7}
    made = cleaned(
        ("GET /api/v2/users/7/orders", '{"query":{}}', json.dumps({"status": 200, "body": user})),
        ("POST /orders", json.dumps({"query": {"user_id": "7"}, "body": {"user_id": 7, "n": 7}}),
         '{"status":201,"body":{"id":7}}'),
        ("GET /orders/7", None, json.dumps({"status": 200, "body": {"id": 7, "customer": {"id": 7}, "user_id": 7}})),
        ("GET /login?user_id=7&page=7", None, None))
    assert made["tool"].to_list() == [
        f"GET /api/v2/users/{SEVEN}/orders", "POST /orders", "GET /orders/7", f"GET /login?user_id={SEVEN}&page=7"]
    body = json.loads(made["value"][0])["body"]
    assert str(body["id"]) == SEVEN and body["orders"] == [{"id": 7, "total": 7}] and body["pages"] == 7
    assert json.loads(made["arguments"][1]) == {"query": {"user_id": SEVEN}, "body": {"user_id": int(SEVEN), "n": 7}}
    assert json.loads(made["value"][1])["body"] == {"id": 7}
    assert json.loads(made["value"][2])["body"] == {"id": 7, "customer": {"id": int(SEVEN)}, "user_id": int(SEVEN)}


@pytest.mark.parametrize("path", [
    "/users/v2/list", "/orders/7", "/home/user/app2/main.py", "/users/all", "/users/7.json5x", "/api/user2/x"])
def test_what_is_no_persons_id_stays(path: str) -> None:
    made = cleaned((f"GET {path}", '{"q": "app2 v2 7.json5x"}', None))
    assert made["tool"][0] == f"GET {path}" and made["arguments"][0] == '{"q": "app2 v2 7.json5x"}'


def test_what_the_policy_calls_a_person_is_one_in_paths_too() -> None:
    rows = (("GET /pilots/12", '{"query":{"pilot_id":"12"}}', None),)
    assert cleaned(*rows)["tool"][0] == "GET /pilots/12"
    twelve = MADE.of("id", "12")
    made = cleaned(*rows, policy=Policy(fields={"pilot_id": "id"}))
    assert made["tool"][0] == f"GET /pilots/{twelve}" and twelve in made["arguments"][0]


def test_rows_of_persons_and_what_refers_to_them_join() -> None:
    made = cleaned(
        ("a", None, json.dumps({"op": "u", "after": {"id": 31, "username": "ann.l", "age": 31}})),
        ("b", None, json.dumps({"after": {"id": 31, "customer_id": 31, "first_name": "Ann"}})),
        ("c", None, '{"log": "{\\"id\\": 31, \\"last_name\\": \\"Lee\\"}"}'))
    new = MADE.of("id", "31")
    assert json.loads(made["value"][0])["after"] | {"username": ""} == {"id": int(new), "username": "", "age": 31}
    assert json.loads(made["value"][1])["after"]["id"] == 31
    assert json.loads(json.loads(made["value"][2])["log"])["id"] == int(new)


def test_another_night_knows_them() -> None:
    first = Finding()
    row = {"event_id": "e", "record_id": "r", "file_id": "f", "source": "s", "format": "x", "kind": "request",
           "tool": "GET /users/7"}
    first.see(pl.DataFrame([row], schema=frame_schema(Event)))
    people = People(Finding(), Policy(), People(first, Policy()).facts)
    text = pl.Series(['{"id": 7, "last_name": "Doe"}'])
    assert json.loads(Cleaner(people, MADE).texts(text)[0])["id"] == int(SEVEN)
