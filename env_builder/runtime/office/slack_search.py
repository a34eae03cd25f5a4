"""Slack's search language, as far as it is told by words, authors, channels, days and what a message has.

    query    = term*
    term     = ["-"] (word | '"' phrase '"' | modifier ":" value)
    modifier = from | in | before | after | on | during | has | is

A word matches a word of the text that begins with it, in any case; a phrase matches as it stands. Days are of UTC; `before` and
`after` leave the day itself out. In: a query, and filters that the server takes beside it. Out: `SlackQuery`.
Does not see, and raises Undecided: other modifiers (`to`, `with`, `creator` …), words that a stemmer makes equal.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, date, datetime, timedelta
from typing import Any, NamedTuple

from ..company import CompanyDesk, ProductRefusal, Undecided

_TERM = re.compile(r'(-?)(?:"([^"]*)"|([a-z]+):(?:"([^"]*)"|(\S+))|(\S+))')
_WORDS = re.compile(r"\w+")
_FILTERS = {"filter_in_channel": "in", "filter_in_im_or_mpim": "in", "filter_users_from": "from",
            "filter_date_before": "before", "filter_date_after": "after", "filter_date_on": "on",
            "filter_date_during": "during"}


class SlackTerm(NamedTuple):
    """One condition."""

    kind: str
    """`word`, `phrase`, or a modifier."""
    value: str
    is_not: bool


class SlackQuery(NamedTuple):
    """All conditions; a message must meet each."""

    terms: tuple[SlackTerm, ...]

    @property
    def has(self) -> tuple[SlackTerm, ...]:
        """The conditions on what a message has."""
        return tuple(term for term in self.terms if term.kind in ("has", "is"))

    def candidates(self, desk: CompanyDesk, entity_class: str) -> Iterable[str]:
        """Return keys of messages that may match."""
        words = [part for term in self.terms if term.kind == "word" and not term.is_not for part in _WORDS.findall(term.value)]
        return desk.with_beginning(entity_class, "text", max(words, key=len)) if words else desk.ids(entity_class)

    def in_text(self, text: str) -> bool:
        """Return whether a text meets the conditions on words."""
        folded = text.casefold()
        words = _WORDS.findall(folded)
        return all(_is_in(term, folded, words) != term.is_not for term in self.terms if term.kind in ("word", "phrase"))

    def fits(self, authors: set[str], channels: set[str], at: float) -> bool:
        """Return whether a message's author, channel and instant meet the conditions."""
        names = {"from": {name.casefold() for name in authors if name}, "in": {name.casefold() for name in channels}}
        day = datetime.fromtimestamp(at, UTC).date()
        for term in self.terms:
            if term.kind in names:
                fits = term.value.casefold().lstrip("@#").removeprefix("<@").rstrip(">") in names[term.kind]
            elif term.kind in _DAYS:
                fits = _DAYS[term.kind](day, *_span(term.value))
            else:
                continue
            if fits == term.is_not:
                return False
        return True

    def has_all(self, text: str, reactions: Mapping[str, Any], has_files: bool) -> bool:
        """Return whether a message has what is asked for: links, files, reactions (`has::eyes:`, `has:reaction`)."""
        for term in self.has:
            name = term.value.strip(":")
            there = {"link": "http://" in text or "https://" in text, "reaction": bool(reactions), "file": has_files}.get(
                name, name in reactions)
            if there == term.is_not:
                return False
        return True


_DAYS: dict[str, Callable[[date, date, date], bool]] = {
    "before": lambda day, first, _: day < first, "after": lambda day, _, last: day > last,
    "on": lambda day, first, last: first <= day <= last, "during": lambda day, first, last: first <= day <= last}


def parse_search(text: str, filters: Mapping[str, Any]) -> SlackQuery:
    """Return the query of a text and of the server's filters. Errors: ProductRefusal, Undecided."""
    terms = [_term(match) for match in _TERM.finditer(text)]
    terms += [SlackTerm(kind, str(filters[name]).strip(), is_not=False) for name, kind in _FILTERS.items() if filters.get(name)]
    if filters.get("filter_threads_only"):
        raise Undecided("threads alone are not searched")
    if not terms:
        raise ProductRefusal("Error: search query is required")
    return SlackQuery(tuple(terms))


def _term(match: re.Match[str]) -> SlackTerm:
    sign, phrase, modifier, quoted, value, word = match.groups()
    if phrase is not None:
        return SlackTerm("phrase", phrase.casefold(), sign == "-")
    if modifier is not None:
        if modifier not in (*_DAYS, "from", "in", "has", "is"):
            raise Undecided(f"the search modifier {modifier}: is not known")
        return SlackTerm(modifier, quoted if quoted is not None else value, sign == "-")
    return SlackTerm("word", word.casefold(), sign == "-")


def _is_in(term: SlackTerm, folded: str, words: list[str]) -> bool:
    if term.kind == "phrase":
        return term.value in folded
    parts = _WORDS.findall(term.value)
    return all(any(word.startswith(part) for word in words) for part in parts)


def _span(value: str) -> tuple[date, date]:
    """Return the first and last day of `2026-03-02`, `2026-03`, or `2026`. Errors: Undecided."""
    parts = value.split("-")
    try:
        if len(parts) == 3:
            return (day := date.fromisoformat(value)), day
        if len(parts) == 2:
            first = date(int(parts[0]), int(parts[1]), 1)
            return first, (first + timedelta(days=31)).replace(day=1) - timedelta(days=1)
        if value.isdecimal():
            return date(int(value), 1, 1), date(int(value), 12, 31)
    except ValueError as error:
        raise Undecided(f"{value!r} is no day of a search") from error
    raise Undecided(f"{value!r} is no day of a search that can be told without today's date")
