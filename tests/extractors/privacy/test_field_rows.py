"""A row that states the type or the name of its field loses what was typed, whatever the column is called."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from extractors.privacy.credentials import SECRET, cut_fields

TYPED = "hush-hush-77"


@pytest.mark.parametrize("row", [
    {"tag": "INPUT", "type": "password", "value": TYPED}, {"type": "PASSWORD", "keys": TYPED, "xpath": "/a/b"},
    {"inputType": "password", "what the person wrote": [TYPED]}, {"element.type": "password", "newValue": {"raw": TYPED}},
    {"target": {"type": "password", "tag": "input"}, "text": TYPED}, {"target": {"type": "password", "value": TYPED}},
    {"autocomplete": "current-password", "typed": TYPED}, {"name": "csrfmiddlewaretoken", "value": TYPED},
    {"id": "new_password1", "type": "text", "text": TYPED},
    {"field": {"name": "otp"}, "value": TYPED}, {"name": "otp", "newValue": TYPED},
    {"events": [{"kind": "key", "element": {"type": "password"}, "data": {"text": TYPED}}]}])
def test_what_was_typed_is_cut(row: dict[str, Any]) -> None:
    made = cut_fields(json.dumps(row))
    assert TYPED not in made and SECRET in made


def test_numbers_typed_are_cut_too() -> None:
    assert json.loads(cut_fields('{"type": "password", "tag": "INPUT", "value": 4711, "x": 3}')) == {
        "type": "password", "tag": "INPUT", "value": SECRET, "x": 3}


@pytest.mark.parametrize("row", [
    {"tag": "INPUT", "type": "password", "id": "id_password", "name": "login", "xpath": "/html[1]/input[1]", "url": "https://a.b/c",
     "title": "Sign in", "value": ""},
    {"grant_type": "password", "client": "desk", "scope": "orders"}, {"type": "text", "name": "city", "value": "Lyon"},
    {"name": "token count", "value": "12"}, {"type": "password_reset", "value": "asked"},
    {"error_type": "password", "message": "too short"}])
def test_which_field_it_is_and_other_rows_stay(row: dict[str, Any]) -> None:
    assert json.loads(cut_fields(json.dumps(row))) == row


@given(st.text(min_size=1, max_size=12), st.sampled_from(["password", "Password", " PASSWORD "]))
def test_no_column_of_a_name_of_its_own_keeps_it(column: str, stated: str) -> None:
    named = f"{column} zz"
    assert TYPED not in cut_fields(json.dumps({"type": stated, named: TYPED}))
