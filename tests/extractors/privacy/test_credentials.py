"""Credentials are not stored, whatever `--privacy` says: passwords, tokens and what forms carry against forgery."""

from __future__ import annotations

import json
from pathlib import Path
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
from pipelines.running.run import run
from pipelines.settings import Settings
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


def test_a_form_that_was_sent_leaves_no_password_in_anything_that_is_stored(tmp_path: Path) -> None:
    def entry(number: int) -> dict[str, object]:
        form = f"user=ada&password={TYPED}&csrfmiddlewaretoken=f0rg3ry{number}"
        return {
            "startedDateTime": f"2026-01-0{number + 1}T10:00:00Z", "time": 20,
            "request": {"method": "POST", "url": f"https://shop.example/login?token={TYPED}", "queryString": [],
                        "headers": [{"name": "x-session-id", "value": f"s{number}"}],
                        "postData": {"mimeType": "application/x-www-form-urlencoded", "text": form}},
            "response": {"status": 200, "headers": [], "content": {
                "mimeType": "application/json",
                "text": json.dumps({"csrf_token": f"f0rg3ry{number}", "key": "AKIAIOSFODNN7EXAMPLE"})}}}

    log = tmp_path / "logs" / "pages.har"
    log.parent.mkdir()
    log.write_text(json.dumps({"log": {"version": "1.2", "entries": [entry(number) for number in range(6)]}}))
    run(Settings(logs=(str(log),), out=str(tmp_path / "out"), image=False, privacy=False))
    stored = b"".join(path.read_bytes() for path in (tmp_path / "out").rglob("*") if path.is_file())
    assert b"ada" in stored
    assert [each for each in (TYPED.encode(), b"f0rg3ry", b"AKIAIOSFODNN7EXAMPLE") if each in stored] == []
