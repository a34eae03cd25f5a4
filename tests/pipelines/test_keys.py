"""The owner's key: where it is taken from, and what is made where there is none."""

from __future__ import annotations

import hashlib
import hmac
import stat
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.privacy.keys import Owner, OwnerKey, keyed_hash, owner_key
from warehouse.errors import InputError

SECRET = "a secret of twenty-five characters"


def quiet(sentence: str) -> None:
    raise AssertionError(sentence)


def test_the_variable_wins_over_the_file_it_names_and_that_over_ones_own(tmp_path: Path) -> None:
    named, own = tmp_path / "named", tmp_path / "traceroom" / "key"
    named.write_text(f"{SECRET} of a file\n")
    own.parent.mkdir()
    own.write_text(f"{SECRET} of one's own\n")
    environ = {"XDG_CONFIG_HOME": str(tmp_path)}
    keys = [owner_key({**environ, **more}, quiet) for more in (
        {"TRACEROOM_KEY": SECRET, "TRACEROOM_KEY_FILE": str(named)}, {"TRACEROOM_KEY_FILE": str(named)}, {})]
    assert len(set(keys)) == 3 and {(len(key.secret), key.scheme) for key in keys} == {(32, 1)}
    assert keys[1] == owner_key({"TRACEROOM_KEY": f"{SECRET} of a file"}, quiet)


def test_a_key_that_is_made_is_said_once_and_only_its_owner_can_read_it(tmp_path: Path) -> None:
    said: list[str] = []
    environ = {"HOME": str(tmp_path)}
    key = owner_key(environ, said.append)
    path = tmp_path / ".config" / "traceroom" / "key"
    assert len(said) == 1 and str(path) in said[0] and path.read_text().strip() not in said[0]
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert owner_key(environ, quiet) == key and key.scheme == 3 and path.read_text().startswith("traceroom-key-3:")
    assert owner_key({"TRACEROOM_KEY": path.read_text()}, quiet) == key
    assert [each.name for each in path.parent.iterdir()] == ["key"]


def test_two_that_make_one_at_once_have_the_same(tmp_path: Path) -> None:
    said: list[str] = []
    with ThreadPoolExecutor(8) as pool:
        keys = list(pool.map(lambda _: owner_key({"XDG_CONFIG_HOME": str(tmp_path)}, said.append), range(32)))
    assert len(set(keys)) == 1 and len(said) == 1


@pytest.mark.parametrize(("content", "why"), [
    (b"short", "the key has 5 characters; give 16 random"), (b"\xff" * 40, "it is no text"), (None, "No such file")])
def test_a_key_that_cannot_be_used_is_said(tmp_path: Path, content: bytes | None, why: str) -> None:
    path = tmp_path / "key"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(InputError, match=why):
        owner_key({"TRACEROOM_KEY_FILE": str(path)}, quiet)


def test_an_empty_variable_is_no_key(tmp_path: Path) -> None:
    (tmp_path / "key").write_text(SECRET)
    named = {"TRACEROOM_KEY_FILE": str(tmp_path / "key")}
    assert owner_key({"TRACEROOM_KEY": "", **named}, quiet) == owner_key(named, quiet)
    with pytest.raises(InputError, match="TRACEROOM_KEY: the key has 0 characters"):
        owner_key({"TRACEROOM_KEY": " "}, quiet)


def test_a_folder_that_cannot_be_made_is_said(tmp_path: Path) -> None:
    (tmp_path / "traceroom").write_text("a file")
    with pytest.raises(InputError, match="cannot create a key"):
        owner_key({"XDG_CONFIG_HOME": str(tmp_path)}, quiet)


def test_a_hash_is_an_hmac_of_kind_and_text() -> None:
    made = hmac.new(b"k" * 32, b"subject\0u_1", hashlib.sha256).hexdigest()
    assert keyed_hash(b"k" * 32, "subject", "u_1") == made


@given(st.binary(min_size=32, max_size=32), st.text(min_size=1), st.text())
def test_a_hash_says_nothing_without_its_key_or_kind(key: bytes, kind: str, text: str) -> None:
    made = keyed_hash(key, kind, text)
    assert made == keyed_hash(key, kind, text) and len(made) == 64
    assert made != keyed_hash(key[::-1] + b"x", kind, text) and made != keyed_hash(key, kind + "x", text)


def test_the_key_decides_the_scheme_of_the_pseudonyms() -> None:
    made = {scheme: Owner(OwnerKey(b"k" * 32, scheme)).pseudonyms().of("name", "Emma Lopez") for scheme in (1, 2)}
    assert made[1] == "Vivian Dupree" != made[2]
