"""Lists that are shipped: names that people have, names that are words too, and words that are no names."""

from __future__ import annotations

from functools import cache
from importlib.resources import files


def words_in(text: str) -> frozenset[str]:
    """The words of a text."""
    return frozenset(text.split())


GENERIC = words_in(
    "user usr customer cust client member account acct id uid employee emp patient guest agent person contact clerk admin "
    "org tenant team staff test driver rider host buyer seller tel ext")
"""Beginnings of ids that say what is counted: they stay."""
TITLES = words_in(
    "mr mrs ms miss dr prof herr frau monsieur madame mx sir")
STREETS = words_in(
    "street st road rd avenue ave boulevard blvd lane ln drive dr court ct way place pl square sq terrace ter highway hwy "
    "parkway pkwy circle cir trail trl suite ste apartment apt unit floor fl room rm building bldg box po p.o north south "
    "east west n s e w ne nw se sw strasse straße gasse weg platz rue allee")
"""Words of an address that name no place."""


@cache
def words_of(name: str) -> tuple[str, ...]:
    """The words of a shipped list, in order."""
    text = files("extractors.privacy").joinpath(f"{name}.txt").read_text("utf-8")
    return tuple(sorted({word for line in text.splitlines() if not line.startswith("#") for word in line.split()}))


@cache
def listed(name: str) -> frozenset[str]:
    """The same as a set."""
    return frozenset(words_of(name))


def is_given(word: str) -> bool:
    """Whether people are called so."""
    return word in listed("given")


def is_listed(word: str) -> bool:
    """Whether it is a given name or a surname, and no other word."""
    return word in listed("given") or word in listed("surnames")


def is_household(word: str) -> bool:
    """Whether it is a word that somebody may be called by."""
    return word in listed("household")


def is_plain(word: str) -> bool:
    """Whether it is no name where it stands alone."""
    return word in listed("plain")
