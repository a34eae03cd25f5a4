"""The search language of a code host for issues and pull requests, as a grammar.

    query     = term { space term }          all terms must hold
    term      = [ "-" ] ( name ":" value | word | '"' phrase '"' )
    value     = word | '"' phrase '"' | [ ">" | ">=" | "<" | "<=" ] point | point ".." point      ("*": open end)
    names     = is type state repo org user author assignee label milestone no head base in sort comments created updated
                closed merged

In: a query. Out: tests of an issue, and the order that the query asks for. Words are looked for in title and body (`in:` names
others) without regard to case, as whole words. A qualifier that is not listed, OR and parentheses are `Undecided`, and so is
the order by best match. Does not see: that the real index takes words for the same that differ by their endings alone.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, NamedTuple

from ..company import CompanyDesk, Undecided
from .github_issues import COMMENT, ISSUE, REPOSITORY, is_pull, repository_key

_TERM = re.compile(r'(-?)(?:(\w+):)?("[^"]*"|[^\s"]+)')
_POINT = re.compile(r"^(>=|<=|>|<)?(.+)$")
_WORD = re.compile(r"\w+")
SORTS = {"created": "created", "updated": "updated", "comments": "comments"}


class IssueTerm(NamedTuple):
    """A part of a query."""

    is_not: bool
    name: str
    """Empty: a word."""
    value: str


class IssueQuery(NamedTuple):
    """A query."""

    terms: list[IssueTerm]
    places: tuple[str, ...]
    """Fields in which words are looked for."""
    sort: str | None
    is_rising: bool


def parse_query(text: str) -> IssueQuery:
    """Return what a query asks for. Errors: Undecided."""
    if re.search(r"[()]|\bOR\b|\bAND\b|\bNOT\b", text):
        raise Undecided("what a query with OR, AND, NOT or parentheses gives")
    terms: list[IssueTerm] = []
    places: tuple[str, ...] = ()
    sort, is_rising = None, False
    for dash, name, value in _TERM.findall(text):
        plain = value.strip('"')
        if name == "in":
            places = (*places, *plain.split(","))
        elif name == "sort":
            sort, _, direction = plain.partition("-")
            is_rising = direction == "asc"
        elif name and name not in _TESTS:
            raise Undecided(f"what the qualifier {name!r} means")
        else:
            terms.append(IssueTerm(bool(dash), name, plain))
    return IssueQuery(terms, places or ("title", "body"), sort, is_rising)


def fits(desk: CompanyDesk, key: str, query: IssueQuery) -> bool:
    """Return whether an issue passes all terms. Errors: Undecided."""
    return all(_passes(desk, key, term, query) is not term.is_not for term in query.terms)


def _passes(desk: CompanyDesk, key: str, term: IssueTerm, query: IssueQuery) -> bool:
    if term.name:
        return _TESTS[term.name](desk, key, term.value)
    wanted = _words(term.value)
    return any(_holds(_words(text), wanted) for place in query.places for text in _texts(desk, key, place))


def _texts(desk: CompanyDesk, key: str, place: str) -> list[str]:
    if place in ("comments", "comment"):
        return [desk.value(COMMENT, own, "body") or "" for own in desk.where(COMMENT, "issue", key)]
    if place not in ("title", "body"):
        raise Undecided(f"what it means to look in {place!r}")
    return [desk.value(ISSUE, key, place) or ""]


def _words(text: str) -> list[str]:
    return [word.casefold() for word in _WORD.findall(text)]


def _holds(words: list[str], wanted: list[str]) -> bool:
    return any(words[start:start + len(wanted)] == wanted for start in range(len(words) - len(wanted) + 1))


def _is(desk: CompanyDesk, key: str, value: str) -> bool:
    if value in ("issue", "pr", "pull-request"):
        return is_pull(desk, key) is (value != "issue")
    if value in ("open", "closed"):
        return bool(desk.value(ISSUE, key, "state") == value)
    if value in ("merged", "unmerged"):
        return is_pull(desk, key) and bool(desk.value(ISSUE, key, "merged")) is (value == "merged")
    raise Undecided(f"what is:{value} means")


def _repo(desk: CompanyDesk, key: str, value: str) -> bool:
    return str(desk.value(REPOSITORY, repository_key(key), "full_name")).casefold() == value.casefold()


def _owner(desk: CompanyDesk, key: str, value: str) -> bool:
    return str(desk.value(REPOSITORY, repository_key(key), "full_name")).casefold().startswith(value.casefold() + "/")


def _login(desk: CompanyDesk, value: str) -> str:
    return desk.account("login") if value == "@me" else value.lstrip("@")


def _author(desk: CompanyDesk, key: str, value: str) -> bool:
    return str(desk.value(ISSUE, key, "author")).casefold() == _login(desk, value).casefold()


def _assignee(desk: CompanyDesk, key: str, value: str) -> bool:
    return _login(desk, value).casefold() in [login.casefold() for login in desk.value(ISSUE, key, "assignees") or ()]


def _label(desk: CompanyDesk, key: str, value: str) -> bool:
    own = {name.casefold() for name in desk.value(ISSUE, key, "labels") or ()}
    return bool(own & {name.strip().strip('"').casefold() for name in value.split(",")})


def _no(desk: CompanyDesk, key: str, value: str) -> bool:
    field = {"label": "labels", "assignee": "assignees", "milestone": "milestone"}.get(value)
    if field is None:
        raise Undecided(f"what no:{value} means")
    return not desk.value(ISSUE, key, field)


def _equal(field: str) -> Callable[[CompanyDesk, str, str], bool]:
    return lambda desk, key, value: str(desk.value(ISSUE, key, field) or "").casefold() == value.casefold()


def _number(desk: CompanyDesk, key: str, value: str) -> bool:
    return _between(desk.value(ISSUE, key, "comments", 0), value, lambda text: (float(text), float(text)))


def _date(field: str) -> Callable[[CompanyDesk, str, str], bool]:
    def test(desk: CompanyDesk, key: str, value: str) -> bool:
        at = desk.changed_at(ISSUE, key, "merged") if field == "merged" and desk.value(ISSUE, key, "merged") else \
            None if field == "merged" else desk.value(ISSUE, key, field)
        return at is not None and _between(at, value, _span)
    return test


def _span(text: str) -> tuple[float, float]:
    """Return the first and the last second that a date or an instant means."""
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise Undecided(f"what the date {text!r} means") from None
    start = (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
    return start, start + (86_399.999_999 if len(text) == 10 else 0)


def _between(own: float, value: str, span: Callable[[str], tuple[float, float]]) -> bool:
    if ".." in value:
        low, _, high = value.partition("..")
        return (low == "*" or own >= span(low)[0]) and (high == "*" or own <= span(high)[1])
    match = _POINT.match(value)
    if match is None:
        raise Undecided(f"what {value!r} means")
    first, last = span(match[2])
    tests = {">": own > last, ">=": own >= first, "<": own < first, "<=": own <= last, None: first <= own <= last}
    return tests[match[1]]


_TESTS: dict[str, Callable[[CompanyDesk, str, str], bool]] = {
    "is": _is, "type": _is, "state": _equal("state"), "repo": _repo, "org": _owner, "user": _owner, "author": _author,
    "assignee": _assignee, "label": _label, "milestone": _equal("milestone"), "no": _no, "head": _equal("branch"),
    "base": _equal("base"), "comments": _number, "created": _date("created"), "updated": _date("updated"),
    "closed": _date("closed"), "merged": _date("merged"),
}
"""Qualifier -> its test."""


def ordered(desk: CompanyDesk, keys: list[str], sort: str | None, is_rising: bool) -> list[str]:
    """Return issues in an order of the search. Errors: Undecided: best match, or several that are equal."""
    if len(keys) < 2:
        return keys
    if sort not in SORTS:
        raise Undecided("the order by best match")
    values: dict[str, Any] = {key: desk.value(ISSUE, key, SORTS[sort]) for key in keys}
    if len(set(values.values())) < len(keys):
        raise Undecided("the order of issues with equal values")
    return sorted(keys, key=values.__getitem__, reverse=not is_rising)
