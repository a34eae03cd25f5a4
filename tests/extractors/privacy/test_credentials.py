"""Credentials are not stored, whatever `--privacy` says: passwords, tokens and what forms carry against forgery."""

from __future__ import annotations

import json
from urllib.parse import quote

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from extractors.privacy.credentials import (
    SECRET,
    WEB,
    bytes_without_credentials,
    cut_fields,
    is_credential,
    without_credentials,
)
from warehouse.records import Event, empty

TYPED = "Tr0ub4dor-und-3"


@pytest.mark.parametrize("name", [
    "password", "userPassword", "new_password1", "user[password]", "passwd", "csrfmiddlewaretoken", "authenticity_token",
    "__RequestVerificationToken", "_csrf", "X-XSRF-TOKEN", "csrf_token", "_wpnonce", "form_key", "token", "access_token",
    "refreshToken", "idToken", "client_secret", "api_key", "PHPSESSID", "X-Amz-Signature", "g-recaptcha-response", "cvv"])
def test_fields_of_credentials_are_known_by_their_names(name: str) -> None:
    assert is_credential(name)


@pytest.mark.parametrize("name", [
    "pageToken", "next_token", "continuation-token", "max_tokens", "token_type", "passengers", "boarding_pass", "compass",
    "author", "signature_date", "code", "session", "key", "secretary", "tokens", "paper"])
def test_other_fields_are_not(name: str) -> None:
    assert not is_credential(name)


@pytest.mark.parametrize("text", [
    json.dumps({"body": {"user": "ada", "password": TYPED}}),
    json.dumps({"body": f"user=ada&password={quote(TYPED)}&go=1"}),
    json.dumps({"body": json.dumps({"ada": {"password": TYPED}})}),
    f"https://shop.example/login?user=ada&token={TYPED}#top", f"user%5Bpassword%5D={TYPED}&user%5Bname%5D=ada",
    f'{{"user": "ada", "password": "{TYPED}", cut'])
def test_a_typed_password_is_replaced_and_its_neighbours_stay(text: str) -> None:
    made = cut_fields(text)
    assert TYPED not in made and quote(TYPED) not in made and SECRET in made and "ada" in made


PLAIN = st.sampled_from(["name", "page_token", "note", "amount"])


@given(st.recursive(st.text(max_size=8) | st.integers() | st.none(), lambda inner: st.lists(inner, max_size=3)
                    | st.dictionaries(PLAIN, inner, max_size=3), max_leaves=9))
def test_what_holds_no_credential_stays_as_it_is(value: object) -> None:
    text = json.dumps({"a": value})
    assert cut_fields(text) == text


def test_only_a_web_application_s_events_lose_fields() -> None:
    text = json.dumps({"password": TYPED})
    events = pl.concat([empty(Event), pl.DataFrame({"kind": ["request", "call"], "arguments": [text, text]})], how="diagonal")
    assert without_credentials(events)["arguments"].to_list() == [f'{{"password":"{SECRET}"}}', text]
    assert "request" in WEB


def test_the_bytes_of_an_unreadable_record_lose_them_too() -> None:
    content = b'\xff{"password": "' + TYPED.encode() + b'", "token=' + TYPED.encode() + b" AKIAIOSFODNN7EXAMPLE"
    made = bytes_without_credentials(content)
    assert TYPED.encode() not in made and b"AKIA" not in made and made.startswith(b"\xff{")
