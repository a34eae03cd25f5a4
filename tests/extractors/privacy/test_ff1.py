"""FF1: the published samples of NIST, and that decryption inverts encryption."""

from __future__ import annotations

import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from extractors.privacy.permuting import FF1

NUMERALS = string.digits + string.ascii_lowercase
KEY = "2B7E151628AED2A6ABF7158809CF4F3C"
KEY_192 = KEY + "EF4359D8D580AA4F"
KEY_256 = KEY_192 + "7F036D6F04FC6A94"
WORD = "3737373770717273373737"


def spelled(value: int, radix: int, length: int) -> str:
    numerals = ""
    for _ in range(length):
        value, last = divmod(value, radix)
        numerals = NUMERALS[last] + numerals
    return numerals


@pytest.mark.parametrize(("key", "radix", "tweak", "plain", "encrypted"), [
    (KEY, 10, "", "0123456789", "2433477484"),
    (KEY, 10, "39383736353433323130", "0123456789", "6124200773"),
    (KEY, 36, WORD, "0123456789abcdefghi", "a9tv40mll9kdu509eum"),
    (KEY_192, 10, "", "0123456789", "2830668132"),
    (KEY_192, 10, "39383736353433323130", "0123456789", "2496655549"),
    (KEY_192, 36, WORD, "0123456789abcdefghi", "xbj3kv35jrawxv32ysr"),
    (KEY_256, 10, "", "0123456789", "6657667009"),
    (KEY_256, 10, "39383736353433323130", "0123456789", "1001623463"),
    (KEY_256, 36, WORD, "0123456789abcdefghi", "xs8a0azh2avyalyzuwd")])
def test_it_gives_the_samples_of_nist(key: str, radix: int, tweak: str, plain: str, encrypted: str) -> None:
    cipher = FF1(bytes.fromhex(key), radix)
    value = cipher.encrypt(int(plain, radix), len(plain), bytes.fromhex(tweak))
    assert spelled(value, radix, len(plain)) == encrypted
    assert cipher.decrypt(value, len(plain), bytes.fromhex(tweak)) == int(plain, radix)


@given(st.binary(min_size=32, max_size=32), st.integers(2, 300), st.binary(max_size=40), st.data())
def test_decryption_inverts_encryption_of_any_length(key: bytes, length: int, tweak: bytes, data: st.DataObject) -> None:
    value, cipher = data.draw(st.integers(0, 2**length - 1)), FF1(key, 2)
    image = cipher.encrypt(value, length, tweak)
    assert 0 <= image < 2**length and cipher.decrypt(image, length, tweak) == value


def test_it_permutes_a_small_domain() -> None:
    cipher = FF1(b"k" * 32, 2)
    assert sorted(cipher.encrypt(value, 7, b"t") for value in range(128)) == list(range(128))
