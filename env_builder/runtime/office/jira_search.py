"""Search issues by JQL.

In: a Jira site as a person sees it (`JiraDesk`), a query (`jql.py`). Out: keys of issues, in the order that the query asks for.
Sees: standard fields, custom fields by name or `cf[…]`, the functions `currentUser`, `now`, `startOf…`, `endOf…` (day, month,
year), `linkedIssues`; relative dates; words of texts. Without ORDER BY the newest keys come first.
Does not see, and raises Undecided: words that a stemmer might make equal, wildcards inside words, ranks, sprints, votes,
watchers, names that no record holds, an order among issues that are equal in all fields of ORDER BY, weeks (their first day is
a setting of each person), empty values in the order.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import MAXYEAR, MINYEAR, datetime, timedelta
from itertools import pairwise
from typing import Any, NamedTuple

from ..company import Undecided
from .jira_issues import (
    CATEGORIES,
    COMMENT,
    FIELD,
    ISSUE,
    PRIORITY,
    PROJECT,
    RESOLUTION,
    STATUS,
    TYPE,
    JiraDesk,
    as_list,
    refused,
)
from .jql import JqlClause, JqlQuery, JqlValue, UnsupportedQuery, is_met, parse_jql, required_clauses

_FIELDS = {
    "project": "project", "status": "status", "priority": "priority", "issuetype": "type", "type": "type",
    "assignee": "assignee", "reporter": "reporter", "labels": "labels", "component": "component", "components": "component",
    "fixversion": "fix_versions", "affectedversion": "versions", "resolution": "resolution", "created": "created",
    "createddate": "created", "updated": "updated", "updateddate": "updated", "resolved": "resolved",
    "resolutiondate": "resolved", "due": "duedate", "duedate": "duedate", "summary": "summary", "description": "description",
    "environment": "environment", "parent": "parent", "key": "key", "issuekey": "key", "issue": "key", "id": "key",
}
"""Name in queries -> field of an issue."""
_NAMED = {"status": STATUS, "priority": PRIORITY, "type": TYPE, "resolution": RESOLUTION}
_PEOPLE = ("assignee", "reporter")
_INSTANTS = ("created", "updated", "resolved")
_INDEXED = ("key", "assignee", "reporter", "priority", "project")
"""Fields by which issues are found, the most selective ones first."""
_TEXTS = ("summary", "description", "environment")
_OFFSET = re.compile(r"([+-]?)((?:\d+[wdhm]\s*)+)")
_AMOUNT = re.compile(r"(\d+)([wdhm])")
_UNITS = {"w": timedelta(weeks=1), "d": timedelta(days=1), "h": timedelta(hours=1), "m": timedelta(minutes=1)}
_DAY = re.compile(r"(\d{4})[-/](\d{1,2})[-/](\d{1,2})(?:[ T](\d{1,2}):(\d{2}))?")
_BOUND = re.compile(r"(start|end)of(day|month|year)")
_STEM = 3
"""Words that begin with as many equal characters may be forms of one word."""
_ISSUE_KEY = re.compile(r"([A-Za-z]\w+)-(\d+)")
_SPECIAL = re.compile(r'[?~^+\[\]{}!\\:]|(?<!\w)-|\bAND\b|\bOR\b|\bNOT\b')
Rank = Callable[[str], Any]


class _Operand(NamedTuple):
    """What a clause compares with: a plain value, or None for EMPTY."""

    value: Any


def search_keys(site: JiraDesk, text: str) -> list[str]:
    """Return the keys of the issues that a query finds and the person sees, in order. Errors: Undecided, ProductRefusal."""
    query = parse_jql(text)
    return _JqlSearch(site, query).keys()


class _JqlSearch:
    """One query at one site."""

    def __init__(self, site: JiraDesk, query: JqlQuery) -> None:
        self._site, self._desk, self._query = site, site.desk, query
        self._operands: dict[int, list[_Operand]] = {}
        """Identity of a clause -> what it compares with."""
        self._given: JqlClause | None = None
        """The clause that an index answered."""

    def keys(self) -> list[str]:
        return self._sorted([key for key in self._candidates() if self._desk.sees(ISSUE, key) and self._meets(key)])

    def _meets(self, key: str) -> bool:
        where = self._query.where
        return where is None or is_met(where, lambda clause: self._test(key, clause)) is True

    def _candidates(self) -> list[str]:
        """Return the issues that can meet the query, by an index if one of its clauses has one."""
        clauses = {field: clause for clause in reversed(required_clauses(self._query.where)) if clause.operator == "="
                   and (field := _FIELDS.get(clause.field.casefold())) in _INDEXED}
        for field in _INDEXED:
            if field not in clauses or any(value.kind == "empty" for value in clauses[field].values):
                continue
            values = dict.fromkeys(operand.value for operand in self._wanted(field, clauses[field]))
            if field == "key":
                return [str(value) for value in values if self._desk.exists(ISSUE, str(value))]
            if None not in values:
                self._given = clauses[field]
                return [key for value in values for key in self._desk.where(ISSUE, field, value)]
        return list(self._desk.ids(ISSUE))

    # Clauses

    def _test(self, key: str, clause: JqlClause) -> bool | None:
        if clause is self._given:
            return True
        name = clause.field.casefold()
        if name == "statuscategory":
            return self._test_category(key, clause)
        if name in ("text", "comment"):
            return self._test_texts(key, clause, () if name == "comment" else _TEXTS)
        field = self._field(clause.field)
        if clause.operator == "~":
            return self._test_texts(key, clause, (field,), with_comments=False)
        if field in _TEXTS and not self._asks_for_empty(clause):
            raise UnsupportedQuery(f"{clause.field} {clause.operator} in the query")
        wanted = self._wanted(field, clause)
        value = key if field == "key" else self._site.value(key, field)
        members = as_list(value) if isinstance(value, list) or field == "component" else [] if value in (None, "") else [value]
        if not members:
            return True if any(each.value is None for each in wanted) else None
        if clause.operator == "=":
            if field in _INSTANTS and not self._asks_for_empty(clause):
                raise UnsupportedQuery(f"{clause.field} = in the query: to which second does it have to be equal?")
            members = [_folded(each) for each in members]
            return any(_folded(each.value) in members for each in wanted if each.value is not None)
        return self._compares(field, members[0], clause.operator, wanted[0].value)

    def _compares(self, field: str, value: Any, operator: str, wanted: Any) -> bool:
        if field == "priority":   # a higher priority has a lower number
            value, wanted = (-self._number(PRIORITY, each) for each in (value, wanted))
        elif field not in _INSTANTS and field != "duedate":
            if not (isinstance(value, int | float) and _is_number(wanted)):
                raise UnsupportedQuery(f"{operator} over {field!r} in the query")
            wanted = float(wanted)
        if wanted is None:
            raise UnsupportedQuery(f"{operator} EMPTY in the query")
        return bool({"<": value < wanted, "<=": value <= wanted, ">": value > wanted, ">=": value >= wanted}[operator])

    @staticmethod
    def _asks_for_empty(clause: JqlClause) -> bool:
        return all(value.kind == "empty" for value in clause.values)

    def _test_category(self, key: str, clause: JqlClause) -> bool:
        if clause.operator != "=":
            raise UnsupportedQuery(f"statusCategory {clause.operator} in the query")
        wanted = {value.text.casefold() for value in clause.values}
        status = self._site.value(key, "status")
        code = self._site.category_code(status)
        if code is not None:
            shown = str(self._desk.value(STATUS, status, "category", CATEGORIES.get(code, code)))
            return not wanted.isdisjoint({code, shown.casefold(), CATEGORIES.get(code, code).casefold()})
        if self._desk.value(STATUS, status, "resolution_after") == [None] and wanted == {"done"}:
            return False   # a status that leaves issues open is not of the done ones
        raise Undecided(f"no record shows the category of the status {status!r}")

    def _test_texts(self, key: str, clause: JqlClause, fields: tuple[str, ...], with_comments: bool = True) -> bool | None:
        """Return whether the words of a text occur; of several texts, in which is not asked."""
        if clause.operator != "~":
            raise UnsupportedQuery(f"{clause.field} {clause.operator} in the query")
        places = [(ISSUE, key, field) for field in fields]
        if with_comments:
            places += [(COMMENT, comment, "body") for comment in self._site.comments(key)]
        gap: Undecided | None = None
        for place in places:
            try:
                text = self._desk.value(*place) or ""
                if not isinstance(text, str):
                    raise Undecided("the words of a document in Atlassian's format")
                if has_words(text, clause.values[0].text):
                    return True
            except Undecided as undecided:
                gap = undecided
        if gap is not None:
            raise gap
        return False

    # Fields and values

    def _field(self, name: str) -> str:
        """Return the field of an issue that a query names. Errors: Undecided."""
        folded = name.casefold()
        standard = _FIELDS.get(folded)
        if standard is not None:
            return standard
        number = re.fullmatch(r"cf\[(\d+)\]|customfield_(\d+)", folded)
        for field in self._desk.ids(FIELD):
            if field == f"customfield_{number[1] or number[2]}" if number else \
                    str(self._desk.value(FIELD, field, "name")).casefold() == folded:
                return str(self._desk.value(FIELD, field, "column"))
        raise UnsupportedQuery(f"no record holds the field {name!r} of the query")

    def _wanted(self, field: str, clause: JqlClause) -> list[_Operand]:
        """Return what a clause compares with, worked out once."""
        operands = self._operands.get(id(clause))
        if operands is None:
            operands = self._operands[id(clause)] = []
            for value in clause.values:
                try:
                    operands += self._worked_out(field, value)
                except OverflowError:
                    raise UnsupportedQuery(f"the date {value.text!r} in the query") from None
        return operands

    def _worked_out(self, field: str, value: JqlValue) -> list[_Operand]:
        if value.kind == "empty":
            return [_Operand(None)]
        if value.kind == "call":
            return self._called(field, value)
        text = value.text
        if field == "resolution" and text.casefold() == "unresolved":
            return [_Operand(None)]
        if field == "project":
            return [_Operand(self._project(text))]
        if field in _PEOPLE:
            account = self._site.account(text)
            if account is None:
                raise Undecided(f"no record shows the person {text!r} of the query")
            return [_Operand(account)]
        if field in _NAMED:
            name = self._site.named(_NAMED[field], text)
            if name is None:
                raise Undecided(f"no record shows the {field} {text!r} of the query")
            return [_Operand(name)]
        if field in _INSTANTS:
            return [_Operand(self._instant(text).timestamp())]
        if field == "duedate":
            return [_Operand(f"{self._instant(text):%Y-%m-%d}")]
        return [_Operand(text.upper() if field in ("key", "parent") else text)]

    def _called(self, field: str, value: JqlValue) -> list[_Operand]:
        name = value.text.casefold()
        if name == "currentuser" and field in _PEOPLE and not value.arguments:
            return [_Operand(self._site.me)]
        if name == "linkedissues" and field == "key" and len(value.arguments) == 1:
            return [_Operand(link["key"]) for link in self._site.value(self._site.visible(value.arguments[0]), "links") or ()]
        if field in (*_INSTANTS, "duedate"):
            moment = self._bound(name, value.arguments)
            return [_Operand(f"{moment:%Y-%m-%d}" if field == "duedate" else moment.timestamp())]
        raise UnsupportedQuery(f"the function {value.text}() for {field!r} in the query")

    def _project(self, text: str) -> str:
        for key in self._desk.ids(PROJECT):
            names = (key, str(self._desk.value(PROJECT, key, "name", "")), str(self._desk.value(PROJECT, key, "number", "")))
            if text.casefold() in {name.casefold() for name in names} and self._site.sees_project(key):
                return key
        raise refused(f"The value '{text}' does not exist for the field 'project'.")

    def _number(self, entity_class: str, name: Any) -> int:
        number = str(self._desk.value(entity_class, str(name), "number", ""))
        if not number.isdigit():
            raise Undecided(f"no record shows the place of {name!r} among its like")
        return int(number)

    # Time

    def _now(self) -> datetime:
        return datetime.fromtimestamp(self._desk.now, self._site.zone())

    def _instant(self, text: str) -> datetime:
        day = _DAY.fullmatch(text.strip())
        if day is not None:
            try:
                year, month, of_month, hour, minute = (int(part or 0) for part in day.groups())
                return datetime(year, month, of_month, hour, minute, tzinfo=self._site.zone())
            except ValueError:
                raise UnsupportedQuery(f"invalid date {text!r} in the query (expected YYYY-MM-DD)") from None
        return self._now() + _offset(text)

    def _bound(self, name: str, arguments: tuple[str, ...]) -> datetime:
        """Return the instant of a function of time, moved by its argument."""
        if name == "now" and not arguments:
            return self._now()
        match = _BOUND.fullmatch(name)
        if match is None or len(arguments) > 1:
            raise UnsupportedQuery(f"the function {name}() in the query")
        unit, (amount, offset) = match[2], (0, timedelta())
        if arguments and re.fullmatch(r"[+-]?\d+", arguments[0].strip()):
            amount = int(arguments[0])
        elif arguments:
            amount, offset = _units(arguments[0], unit)
        begin = self._now().replace(hour=0, minute=0, second=0, microsecond=0)
        steps = amount + (match[1] == "end")
        if unit == "day":
            begin += timedelta(days=steps)
        elif unit == "month":
            months = begin.year * 12 + begin.month - 1 + steps
            year, month = months // 12, months % 12 + 1
            begin = begin.replace(year=_year(year), month=month, day=1)
        else:
            begin = begin.replace(year=_year(begin.year + steps), month=1, day=1)
        return begin + offset - (timedelta(milliseconds=1) if match[1] == "end" else timedelta())

    # Order

    def _sorted(self, keys: list[str]) -> list[str]:
        if len(keys) < 2:
            return keys
        order = self._query.order or (("key", True),)
        ranks = [(self._rank(field), is_descending) for field, is_descending in order]
        values = {key: [rank(key) for rank, _ in ranks] for key in keys}
        for index, (_, is_descending) in reversed(list(enumerate(ranks))):   # each sort keeps what the later ones say
            place = {key: own[index] for key, own in values.items()}
            keys = sorted(keys, key=place.__getitem__, reverse=is_descending)
        if any(values[first] == values[second] for first, second in pairwise(keys)):
            raise Undecided("the query does not say which of two issues comes first")
        return keys

    def _rank(self, name: str) -> Rank:
        field = self._field(name)
        if field == "key":
            return _key_rank

        def rank(key: str) -> Any:
            value = self._site.value(key, field)
            if value is None:
                raise Undecided(f"the place of issues without {name!r} in the order")
            if field == "priority":
                return -self._number(PRIORITY, value)
            if field in (*_INSTANTS, "duedate"):
                return value
            raise UnsupportedQuery(f"ORDER BY {name} in the query")

        return rank


def has_words(text: str, wanted: str) -> bool:
    """Return whether a text has the words that a query asks for, or the phrase in quotes.

    Errors: Undecided if only other forms of a word are there, or the query has an operator of its own.
    """
    words = re.findall(r"\w+", text.casefold())
    phrase = re.fullmatch(r'\s*"([^"]*)"\s*', wanted)
    if phrase is None and (_SPECIAL.search(wanted) or '"' in wanted):
        raise UnsupportedQuery(f"the operators in {wanted!r} of the query")
    parts = re.findall(r"\w+\*?", (phrase[1] if phrase else wanted).casefold())
    if phrase is None and "*" in re.sub(r"\w\*(?!\w)", "", wanted):
        raise UnsupportedQuery(f"the wildcards in {wanted!r} of the query")
    has_all = True
    for part in parts:
        if part.endswith("*"):
            has_all = has_all and any(word.startswith(part[:-1]) for word in words)
        elif part not in words:
            if any(word[:_STEM] == part[:_STEM] for word in words):
                raise Undecided(f"whether the search takes another form of {part!r} for the word")
            has_all = False
    if not has_all or phrase is None:
        return has_all and bool(parts)
    return any(words[start:start + len(parts)] == parts for start in range(len(words) - len(parts) + 1))


def _key_rank(key: str) -> Any:
    match = _ISSUE_KEY.fullmatch(key)
    return (match[1], int(match[2])) if match else (key, 0)


def _folded(value: Any) -> str:
    return str(value).casefold()


def _is_number(text: Any) -> bool:
    return re.fullmatch(r"-?\d+(\.\d+)?", str(text)) is not None


def _year(number: int) -> int:
    if not MINYEAR <= number <= MAXYEAR:
        raise OverflowError(number)
    return number


def _offset(text: str) -> timedelta:
    """Return a relative date such as `-1w 2d`. Errors: UnsupportedQuery."""
    match = _OFFSET.fullmatch(text.strip())
    if match is None:
        raise UnsupportedQuery(f"the date {text!r} in the query")
    total = sum((int(amount) * _UNITS[unit] for amount, unit in _AMOUNT.findall(match[2])), timedelta())
    return -total if match[1] == "-" else total


def _units(text: str, unit: str) -> tuple[int, timedelta]:
    """Return the argument of a function of time as whole units and a rest."""
    months = re.fullmatch(r"([+-]?\d+)(M|y)", text.strip())
    if months is None:
        return 0, _offset(text)
    if (months[2] == "M") != (unit == "month"):
        raise UnsupportedQuery(f"the date {text!r} in the query")
    return int(months[1]), timedelta()
