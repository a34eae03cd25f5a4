"""Personal data by its form alone, where a text has come to something that may begin it.

In: a text and the place of a chunk (a run of signs without spaces). Out: where it ends, and its kind. Numbers with many uses
(five digits, four digits, dates) are taken only after a word that says what they are, and five digits behind an address.
"""

from __future__ import annotations

import re

from extractors.privacy.checks import card_holds, iban_holds

_STREET = (r"street|st|road|rd|avenue|ave|boulevard|blvd|lane|ln|drive|dr|court|ct|place|pl|square|terrace|highway|hwy|parkway|"
           r"pkwy|circle|trail|way")
_SUITE = r"(?:,? (?i:suite|ste|apartment|apt|unit|#)\.? ?\w+)?"
_ADDRESS = re.compile(
    rf"\d{{1,6}}[A-Za-z]? (?:[A-Z0-9][\w'’.-]* ){{1,3}}(?i:{_STREET})\b{_SUITE}|"
    rf"\d{{1,6}} (?:[a-z]+ ){{1,2}}(?:street|avenue|boulevard)\b|P\.?O\.? Box \d+")
_ZIP_OF_ADDRESS = re.compile(
    rf"{_SUITE}(?:,? [A-Z][\w.'’-]*){{1,5}},? (\d{{5}}(?:-\d{{4}})?)(?![\w-])")
_PHONE = re.compile(
    r"(?:\d{1,3}[ .-]?)?\(?\d{3}\)?[ .-]{1,2}\d{3}[ .-]\d{4}(?![\d-])|\d{7,15}(?=\D|$)|"
    r"\d{1,3}[ .-]\(?\d{1,4}\)?(?:[ .-]\d{2,4}){2,4}(?!\d)|0\d{2,4}[ -]\d{3,4}[ -]?\d{3,5}(?![\d-])")
_ABROAD = re.compile(r"\d{1,3}[ .-]?\(?\d{1,5}\)?(?:[ .-]?\d{2,9}){1,4}(?!\d)")
"""Behind a +."""
_CARD = re.compile(r"(?:[3-6]\d|2[2-7])\d{2}[ .-]?\d{4}[ .-]?\d{4}[ .-]?\d{1,7}(?![\d-])|3[47]\d{2}[ -]?\d{6}[ -]?\d{5}(?!\d)")
_SSN = re.compile(r"(?!000|666|9)\d{3}-(?!00)\d{2}-(?!0000)\d{4}(?![\d-])")
_IBAN = re.compile(r"[A-Z]{2}\d{2}(?: ?[A-Z0-9]{4}){2,7}(?: ?[A-Z0-9]{1,3})?\b")
_IP = re.compile(r"(?:(?:25[0-5]|2[0-4]\d|1?\d?\d)\.){3}(?:25[0-5]|2[0-4]\d|1?\d?\d)(?!\w|\.\w)")
_SHORT = 8
"""Signs of a number that is nobody's by itself."""
_LONG = re.compile(r"\d{7,15}(?!\d)")
CUES: dict[str, tuple[str, re.Pattern[str]]] = {
    **dict.fromkeys(("zip", "zipcode", "postal", "postcode"), (
        "zip", re.compile(r"(?i)[ -]*(?:code)?(?:'s|s)?[ :#-]*(?:is|of|was|in|to|for)?[ :]*(\d{5}(?:-\d{4})?)(?![\d-])"))),
    **dict.fromkeys(("ending", "ends"), ("ending", re.compile(r"(?i)(?: in| with)?[ :#*x-]*(\d{4})(?!\d)"))),
    "last": ("ending", re.compile(r"(?i) (?:four|4)(?: digits)?(?: of [a-z ]{1,30}?)?(?: are| is)?[ :]*(\d{4})(?!\d)")),
    **dict.fromkeys(("born", "birthday", "birth", "dob", "geboren"), ("date", re.compile(
        r"(?i)(?: date)?(?: is| on| am|:)*[ :]*"
        r"(\d{4}[-/.]\d{1,2}[-/.]\d{1,2}|\d{1,2}[-/.]\d{1,2}[-/.](?:\d{4}|\d\d)|(?:19|20)\d{6}|"
        r"\d{1,2}(?:st|nd|rd|th|\.)?(?: of)? [A-Za-z]{3,9}\.?,? \d{4}|"
        r"[A-Za-z]{3,9}\.? \d{1,2}(?:st|nd|rd|th)?,? \d{4})(?!\d)"))),
}
"""Words after which a number is what they say."""
Found = tuple[int, int, str]


def number_at(text: str, start: int) -> Found | None:
    """Begin, end and kind of what begins with a number at `start`."""
    before = text[start - 1:start]
    if before in ("+", "("):
        found = _PHONE.match(text, start) or (_ABROAD.match(text, start) if before == "+" else None)
        if found and (found.re is _PHONE or _is_phone(found[0])):
            return start, found.end(), "phone"
    elif before == "=" or text[max(0, start - 2):start] == "//":
        return _ip_at(text, start)
    elif before in (".", "#", "_", "/", "\\"):
        return None
    if (found := _CARD.match(text, start)) and card_holds(found[0]):
        return start, found.end(), "card"
    for pattern, kind in ((_SSN, "account"), (_ADDRESS, "address"), (_IP, "ip")):
        if found := pattern.match(text, start):
            return start, found.end(), kind
    if (found := _PHONE.match(text, start)) and not _LONG.fullmatch(found[0]) and _is_phone(found[0]):
        return start, found.end(), "phone"
    return None


def is_long(chunk: str) -> bool:
    """Whether a number may be somebody's by itself: it is no short one, or has four parts."""
    return len(chunk) > _SHORT or chunk.count(".") == 3


def _ip_at(text: str, start: int) -> Found | None:
    found = _IP.match(text, start)
    return (start, found.end(), "ip") if found else None


def account_at(text: str, start: int) -> Found | None:
    """The same of a bank account that begins there."""
    if (found := _IBAN.match(text, start)) and iban_holds(found[0]):
        return start, found.end(), "account"
    return None


def zip_after(text: str, end: int) -> Found | None:
    """The same of the postal code of an address whose street ends at `end`: behind a town, or town and state."""
    found = _ZIP_OF_ADDRESS.match(text, end)
    return (found.start(1), found.end(1), "zip") if found else None


def cue_at(text: str, word: str, end: int) -> Found | None:
    """The same of the number that a word speaks of, which ends at `end`."""
    kind, pattern = CUES[word]
    found = pattern.match(text, end)
    return (found.start(1), found.end(1), kind) if found else None


def _is_phone(text: str) -> bool:
    return 10 <= sum(sign.isdigit() for sign in text) <= 15 and not re.match(r"\d{4}-\d{2}-\d{2}", text)
