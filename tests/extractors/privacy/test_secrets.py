"""Secrets: whatever detect-secrets finds is cut out, and what it has nothing against stays."""

from __future__ import annotations

import base64
import json
import re
from typing import TYPE_CHECKING

import polars as pl
import pytest
from detect_secrets.core.plugins.util import get_mapping_from_secret_type_to_class
from detect_secrets.plugins.base import RegexBasedDetector
from hypothesis import given, settings
from hypothesis import strategies as st

from extractors.privacy import Cleaner, Finding, People, Policy, Pseudonyms
from extractors.privacy.credentials import PATTERNS, cut_out, suspects
from tests.conftest import SAMPLE

if TYPE_CHECKING:
    from hypothesis.strategies import SearchStrategy

DETECTORS = {
    kind.__name__: kind() for kind in get_mapping_from_secret_type_to_class().values() if issubclass(kind, RegexBasedDetector)}
FORMS = [(name, number) for name, each in sorted(DETECTORS.items()) for number in range(len(list(each.denylist)))]
ASCII = st.characters(min_codepoint=32, max_codepoint=126, exclude_characters='"<>\\')
AROUND = (
    "{}", "it said {} and went on", '{{"q": "{}"}}', '{{"q": "{{\\"env\\": \\"{}\\"}}"}}', "export X={} Y=1", "a: '{}'\nb: 2")
SIGNED = st.tuples(
    st.dictionaries(st.text("ab", min_size=1), st.integers(), min_size=1), st.dictionaries(st.text(), st.integers()))
DRAWN = re.compile(r"(?=.*[a-z])(?=.*\d).{14,}")


def part(told: object) -> str:
    return base64.urlsafe_b64encode(json.dumps(told).encode()).decode().rstrip("=")


def secrets_of(name: str, pattern: re.Pattern[str]) -> SearchStrategy[str]:
    """Secrets that a detector has this pattern for."""
    if name == "JwtTokenDetector":   # it decodes what looks like one
        return SIGNED.map(lambda both: f"{part(both[0])}.{part(both[1])}.{'x_-0' * 8}")
    found = st.from_regex(pattern, fullmatch=True, alphabet=ASCII)
    if pattern.pattern.find("AP[") > 0:   # without a letter in lower case or a digit it is a number of something else
        return found.filter(DRAWN.search)
    return found


def is_json(text: str) -> bool:
    try:
        return bool(json.loads(json.loads(text)["q"]))
    except (ValueError, LookupError, TypeError):
        return False


def cleaned(text: str) -> str:
    return str(Cleaner(People(Finding(), Policy()), Pseudonyms(b"k" * 32)).texts(pl.Series([text]))[0])


@pytest.mark.parametrize(("name", "number"), FORMS)
def test_whatever_detect_secrets_finds_is_gone(name: str, number: int) -> None:
    oracle, met = DETECTORS[name], []

    @settings(max_examples=20, derandomize=True)
    @given(secrets_of(name, list(oracle.denylist)[number]), st.sampled_from(AROUND))
    def holds(secret: str, around: str) -> None:
        text = around.format(secret)
        found = set(oracle.analyze_string(text))
        met.extend(found)
        made = cleaned(text)
        still = set(oracle.analyze_string(made))
        assert not (found & still if name == "IPPublicDetector" else still), made   # another one stands there
        assert is_json(made) or not is_json(text), made

    holds()
    assert met, "nothing was tried"


@pytest.mark.parametrize(("text", "made"), [
    ("git remote https://ann:x@git.example.com/a.git", "git remote https://[secret]@git.example.com/a.git"),
    ("redis://:pw@cache:6379/0", "redis://[secret]@cache:6379/0"),
    ('aws_secret_access_key = "' + "aB3/" * 10 + '"', 'aws_secret_access_key = "[secret]"'),
    (f"//registry.example.com/:_authToken={'0' * 36} # ours", "//registry.example.com/:_authToken=[secret] # ours"),
    ("PuTTY-User-Key-File-3: ssh-ed25519\nEncryption: none\nPrivate-Lines: 1\nAAAAIFx=\nPrivate-MAC: 0a1b\nthanks",
     "[secret]\nthanks"),
    ("-----BEGIN RSA PRIVATE KEY-----\nMIIEow\nand it broke off -- see below", "[secret]"),
    ('{"key": "-----BEGIN PRIVATE KEY-----\\nMIIEow==\\n", "n": 1}', '{"key": "[secret]", "n": 1}'),
    (f"the token is glptt-{'a1' * 20}.", "the token is [secret].")])
def test_what_stands_around_a_secret_stays(text: str, made: str) -> None:
    assert suspects(pl.Series([text]))[0] and cut_out(text).startswith(made)


@pytest.mark.parametrize("text", [
    "laws about the key question: may the passenger change it", "task-force-of-the-whole-departement-and-others",
    "see https://example.com:8080/a@b and 12:30:45", "order 12345678:550e8400-e29b-41d4-a716-446655440000",
    "AP1234567890 and APARTMENTS, token: 5", '{"key": "a-word-of-a-list", "cache_key": "' + "0a1b" * 16 + '"}'])
def test_what_is_no_secret_stays(text: str) -> None:
    assert cut_out(text) == text


def test_in_ordinary_logs_nothing_is_cut() -> None:
    lines = [line for path in sorted(SAMPLE.rglob("*.jsonl")) for line in path.read_text("utf-8").splitlines()]
    assert len(lines) > 50 and [line for line in lines if cut_out(line) != line] == []


def test_the_forms_are_of_the_dialect_of_the_search_through_releases() -> None:
    for name, pattern in PATTERNS:
        assert pl.Series(["nothing"]).str.contains(pattern).to_list() == [False], name
