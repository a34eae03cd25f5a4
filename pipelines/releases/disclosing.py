"""Secrets and personal data in the files of a release: what by its shape alone is certainly, or very likely, one.

In: files. Out: one row a file and kind, with how many different ones and the first of them, masked. Sees: keys and tokens of
known makes (those that privacy cuts out of logs), passwords in addresses; e-mail addresses, payment cards and IBANs whose
check digits hold, social security numbers, IPv6 addresses, telephone numbers with their country; names of people whom
privacy knows. Does not see: other names, postal addresses, birthdays, and secrets without a form of their own.
"""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import NamedTuple
from urllib.parse import unquote_plus

import polars as pl

from extractors.privacy.credentials import PATTERNS
from extractors.privacy.fields import card_holds, iban_holds
from extractors.privacy.forms import is_network_address

_ESCAPE = re.compile(r"(?i)\\u([0-9a-ce-f][0-9a-f]{3}|d[0-7][0-9a-f]{2})")
"""A character by its number; halves of others stay."""
_ROWS = 2000
_SHOWN = 3
READ = (".json", ".jsonl", ".parquet", ".html")
"""Ends of the names of files that hold data; all else of a release is code."""


class Kind(NamedTuple):
    """Something that must not get out."""

    name: str
    is_secret: bool
    pattern: str
    """In the dialect of Rust's regex: no looking around."""
    holds: Callable[[str], bool] = lambda text: True
    """Whether what has the form is one."""


def _not_reserved(text: str) -> bool:
    """Whether an address's domain can be somebody's (RFC 2606 and 6761 keep some for examples)."""
    domain = text.rpartition("@")[2].lower().rstrip(".")
    return not re.search(r"(^|\.)(example(\.(com|net|org))?|test|invalid|localhost|local)$", domain)


def _social_security(text: str) -> bool:
    area, group, serial = text.split("-")
    return area not in ("000", "666") and area[0] != "9" and group != "00" and serial != "0000"


_DECIMAL = r"\b\d+\.\d{9,}\b"
"""A fraction, whose digits may hold as those of a card."""
KINDS: tuple[Kind, ...] = (
    *(Kind(name, True, pattern) for name, pattern in PATTERNS),
    Kind("e-mail address", False, r"\b[\w.+-]{1,64}@[\w-]+(?:\.[\w-]+)*\.[A-Za-z]{2,}\b", _not_reserved),
    Kind("payment card", False, r"\b(?:4\d{3}|5[1-5]\d{2}|2[2-7]\d{2}|6011|65\d{2})(?:[ -]?\d{4}){3}\b"
         r"|\b3[47]\d{2}[ -]?\d{6}[ -]?\d{5}\b", card_holds),
    Kind("bank account", False, r"\b[A-Z]{2}\d{2}(?: ?[A-Z0-9]{4}){2,7}(?: ?[A-Z0-9]{1,3})?\b", iban_holds),
    Kind("social security number", False, r"\b\d{3}-\d{2}-\d{4}\b", _social_security),
    Kind("IPv6 address", False, r"(?i)\b(?:[23][0-9a-f]{3}|f[cde][0-9a-f]{2}):[0-9a-f:]{2,36}[0-9a-f]\b", is_network_address),
    Kind("telephone number", False, r"\+\d{1,3}[ .-]?\(?\d{2,4}\)?(?:(?:[ .-]\d{2,4}){2,4}|[ .-]\d{5,9})\b"),
)


def disclosed(
    files: Iterable[tuple[str, Path]], secret: bool, nobodys: frozenset[str] = frozenset()
) -> list[dict[str, object]]:
    """{"path", "kind", "n", "first"} of secrets, or of personal data that is no pseudonym (`nobodys`), by path."""
    kinds = [kind for kind in KINDS if kind.is_secret == secret]
    pseudonyms = {_plain(each) for each in nobodys}
    rows: list[dict[str, object]] = []
    for name, path in sorted(files):
        if path.suffix not in READ:
            continue
        values: dict[str, set[str]] = {kind.name: set() for kind in kinds}
        for lines in (some.str.replace_all(_DECIMAL, "0") for some in _texts(path)):
            for kind in kinds:
                matches = lines.str.extract_all(kind.pattern).explode().drop_nulls().unique()
                values[kind.name] |= {each for each in matches if kind.holds(each) and _plain(each) not in pseudonyms}
        rows += [{"path": name, "kind": kind, "n": len(each), "first": _masked(min(each))}
                  for kind, each in values.items() if each]
    return rows


def named(files: Iterable[tuple[str, Path]], names: frozenset[str]) -> list[dict[str, object]]:
    """{"path", "kind", "n", "first"} of names of known people, by path: in any case, with or without accents, joined by other
    characters, family name first, in neighbouring fields, in escapes of JSON and URLs."""
    forms = {form: name for name in sorted(names) for form in _forms(name)}
    rows: list[dict[str, object]] = []
    for path_name, path in sorted(files):
        if path.suffix not in READ or not forms:
            continue
        here: set[str] = set()
        for lines in _texts(path):
            matches = _words_of(lines).str.extract_many([*forms], overlapping=True)
            here |= {forms[form] for form in set(matches.explode().drop_nulls())}
        if here:
            rows.append({"path": path_name, "kind": "name of a person", "n": len(here), "first": _masked(min(here))})
    return rows


def _forms(name: str) -> list[str]:
    """Spell a name as `_words_of` does; of several words also with the last one first."""
    (spelled,) = _words_of(pl.Series([name]))
    words = spelled.split()
    if not name.isascii() and len(words) == 1:
        return [words[0]] if not words[0].isascii() else [spelled]   # scripts without spaces
    return [f" {' '.join(each)} " for each in (words, [words[-1], *words[:-1]])] if words else []


def _words_of(lines: pl.Series) -> pl.Series:
    """Spell lines as words with one space around each: no escapes, names of fields, accents or capitals."""
    plain = pl.Series([_unescaped(line) for line in lines], dtype=pl.String)
    return " " + (
        plain.str.replace_all(r'"[^"]{1,40}"\s*:', " ").str.to_lowercase().str.normalize("NFKD").str.replace_all(r"\p{M}", "")
        .str.replace_all(r"[^\p{L}\p{N}]+", " ").str.strip_chars()) + " "


def _unescaped(line: str) -> str:
    if "\\u" in line:
        line = _ESCAPE.sub(lambda match: chr(int(match[1], 16)), line)
    return unquote_plus(line) if "%" in line else line


def _texts(path: Path) -> Iterator[pl.Series]:
    if path.suffix != ".parquet":
        with path.open(encoding="utf-8", errors="replace") as lines:
            while some := lines.readlines(1 << 24):
                yield pl.Series(some)
        return
    rows = pl.scan_parquet(path)
    for start in range(0, rows.select(pl.len()).collect().item(), _ROWS):
        text = io.BytesIO()
        rows.slice(start, _ROWS).collect().write_ndjson(text)
        yield pl.Series(text.getvalue().decode("utf-8", "replace").split("\n"))


def _plain(text: str) -> str:
    """Spell a value in lower case, a number without the marks between its digits."""
    return text.lower() if "@" in text else re.sub(r"[\s().-]", "", text.lower())


def _masked(text: str) -> str:
    return f"{text[:_SHOWN]}…({len(text)} signs)"
