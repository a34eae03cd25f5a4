"""A name whose parts stand in two fields of one record is known as a whole."""

from __future__ import annotations

import json

import pytest

from extractors.privacy.people import Finding, People, pairs_in
from extractors.privacy.policy import Policy
from extractors.privacy.split_names import split_names
from tests.extractors.privacy.test_carrying import events


@pytest.mark.parametrize(("text", "names"), [
    ('{"name": {"first_name": "Maria", "last_name": "Lopez"}}', [("Maria", "Lopez")]),
    ('[{"lastName": "Lopez", "firstName": "Ana"}, {"lastName": "Kim", "firstName": "Jo"}]', [("Ana", "Lopez"), ("Jo", "Kim")]),
    (json.dumps({"row": json.dumps({"vorname": "Max", "id": 3, "nachname": "Weber"})}), [("Max", "Weber")]),
    ("first_name: Maria\nlast_name: Lopez\ncity: Rome\nfirst_name: Tom\nlast_name: Jones",
     [("Maria", "Lopez"), ("Tom", "Jones")]),
    ("GET /find?first_name=Maria&last_name=Lopez", [("Maria", "Lopez")]),
    ("a row {'customer_first_name': 'Maria', 'customer_last_name': 'Lopez'} was read", [("Maria", "Lopez")]),
    ('{"a": {"first_name": "Maria"}, "b": {"last_name": "Lopez"}}', []), ('{"first": 1, "last": 20}', [])])
def test_parts_of_one_record_are_one_name(text: str, names: list[tuple[str, str]]) -> None:
    assert list(split_names(text, pairs_in)) == names


def names_of(*records: dict[str, str], policy: Policy | None = None) -> set[str]:
    finding = Finding()
    finding.see(events(*(("result", json.dumps(record, ensure_ascii=False)) for record in records)))
    return {value for kind, value in People(finding, policy or Policy()).facts if kind in ("full", "name")}


def test_common_names_in_two_fields_are_remembered_as_one_name() -> None:
    assert names_of({"first_name": "Maria", "last_name": "Lopez"}) == {"maria lopez"}
    assert names_of({"first_name": "Ana Maria", "last_name": "de la Cruz"}) >= {"ana cruz", "maria cruz"}
    assert "王伟" in names_of({"last_name": "王", "first_name": "伟"})


def test_fields_that_hold_no_names_make_none() -> None:
    assert names_of({"first": "Apple", "last": "Pear"}, {"family": "Sans", "given": "Bold"}) == set()
    assert names_of({"first_name": "Maria", "last_name": "Lopez"}, policy=Policy(
        fields={"first_name": "keep", "last_name": "keep"})) == set()
