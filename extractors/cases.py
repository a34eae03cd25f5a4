"""Requests of people who work through cases: where a case begins in one's stream, and the request of another that opened it.

In: requests without a session, with the tool that each asks for. Out: the same, with marks where a run of a routine begins
(`routines`), and after they are cut, with the request that made what a run takes up first put into the run: a customer files a
thing, the answer names it, and somebody else begins a case by asking for it.

Does not see: a case that two people work on in turns, and a case that is taken up again later (it is a run of its own).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import polars as pl

from extractors import routines
from extractors.spelled import object_of

_NAME = re.compile(r"(?=.*\d)[\w#.-]{4,64}").fullmatch
"""A value that may name one thing: a digit in it, no blanks."""

_READS = ("GET", "HEAD", "OPTIONS")


def marked(requests: pl.DataFrame) -> pl.DataFrame:
    """Requests with `_begins`: a run of the identity's routine begins here."""
    ordered = requests.sort("source", "service", "name", "happened_at", "event_id", nulls_last=False)
    marks: list[bool] = []
    for _, part in ordered.group_by("source", "service", "name", maintain_order=True):
        named = part.height >= routines.LEAST and part["name"][0] is not None
        marks += (routines.begins(part["_tool"].to_list()) if named else None) or [False] * part.height
    return ordered.with_columns(pl.Series("_begins", marks, pl.Boolean()))


def joined(requests: pl.DataFrame) -> pl.DataFrame:
    """Requests of which those that opened a case of another identity are in its session."""
    taken: dict[str, tuple[Any, ...]] = {}
    first = requests.filter("_begins").sort("happened_at", "event_id").select(
        "session_id", "name", "happened_at", "_canonical", "value")
    for session, name, at, arguments, answer in first.iter_rows():
        for value in {*_values(object_of(arguments)), *_values(object_of(answer).get("body"))}:
            taken.setdefault(value, (session, name, at))
    if not taken:
        return requests
    made = requests.filter(~pl.col("_begins") & ~pl.col("_method").is_in(_READS)).sort("happened_at", "event_id")
    moved: dict[str, str] = {}
    known: set[str] = set()
    for event, name, at, arguments, answer in made.select("event_id", "name", "happened_at", "_canonical", "value").iter_rows():
        given = set(_values(object_of(arguments)))
        new = sorted(set(_values(object_of(answer).get("body"))) - given - known)
        known |= given | set(new)
        for value in new:
            session, other, when = taken.get(value, (None, None, None))
            if session is not None and other != name and (at is None or when is None or at <= when):
                moved[event] = session
                break
    return requests.with_columns(
        pl.col("event_id").replace_strict(moved, default=None, return_dtype=pl.String).alias("_moved")).with_columns(
        pl.coalesce("_moved", "session_id").alias("session_id")).drop("_moved") if moved else requests


def _values(document: Any) -> Iterator[str]:
    """Names of things at the top of a document."""
    for value in document.values() if isinstance(document, dict) else ():
        if isinstance(value, str) and _NAME(value):
            yield value
