"""Gmail's search language as a grammar, and whether a letter matches a query.

In: the text of a query; letters. Out: an expression, and per letter True, False, or None where the exports cannot tell.

    query    = group { group }                  all of them
    group    = unit { ("OR" | "|") unit }       one of them; OR binds closer than a blank
    unit     = [ "-" | "+" ] ( "(" query ")" | "{" unit { unit } "}" | term )
    term     = [ operator ":" ] ( value | "(" query ")" )
    value    = word | '"' phrase '"'
    operator = from to cc bcc deliveredto subject filename label in is has after newer before older newer_than older_than
               rfc822msgid

Sees: names and addresses, subjects, texts, names of attachments, labels. Does not see: stems and synonyms that Gmail may add,
categories, sizes, chats. Dates begin at midnight UTC or at Pacific midnight, as calls show (`midnight`); where they show
neither, a letter between the two midnights is undecided. A value matches inside a longer word too, unless calls show that it
does not (`part_words`): Gmail itself matches whole words.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from typing import NamedTuple

_TOKEN = re.compile(r"""\s*(?:(?P<open>[({])|(?P<close>[)}])|(?P<sign>[-+](?=[^\s]))|(?P<bar>\|)
    |(?P<operator>[A-Za-z][A-Za-z0-9_]*):(?=\S)|"(?P<phrase>[^"]*)"|(?P<word>[^\s(){}"|]+))""", re.VERBOSE)
_WORDS = re.compile(r"\w+")
_SPAN = re.compile(r"(\d+)([hdmy])")
_DAYS = {"h": 1 / 24, "d": 1, "m": 30, "y": 365}
_PACIFIC = 8 * 3600
"""Seconds from midnight UTC to midnight at Gmail's servers; an hour less in summer, which stays undecided."""
OPERATORS = frozenset((
    "from", "to", "cc", "bcc", "deliveredto", "subject", "filename", "label", "in", "is", "has", "after", "newer", "before",
    "older", "newer_than", "older_than", "rfc822msgid"))
PLACES = {"inbox": "INBOX", "sent": "SENT", "trash": "TRASH", "spam": "SPAM", "draft": "DRAFT", "drafts": "DRAFT",
          "unread": "UNREAD", "starred": "STARRED", "important": "IMPORTANT", "chat": "CHAT", "chats": "CHAT"}
"""Names of Gmail's own labels in queries."""
HIDDEN = ("TRASH", "SPAM")


class QueryProblem(Exception):
    """A query outside the grammar; the text says which part."""


class Letter(NamedTuple):
    """A message in one mailbox."""

    key: str
    """Message-ID."""
    sender: str
    name: str
    to: tuple[str, ...]
    cc: tuple[str, ...]
    subject: str
    body: str
    attached: tuple[str, ...]
    date: float
    thread: str
    references: tuple[str, ...]
    texts: dict[str, str]
    """Field of a search -> its text, folded."""


class SearchRules(NamedTuple):
    """How the company's mail server reads a query, as far as calls show, and what a letter's labels are."""

    now: float
    has_label: Callable[[Letter, str], bool | None]
    """Whether a letter has a label; None: it is not known."""
    part_words: bool | None = None
    """Whether a value matches inside a longer word."""
    midnight: int | None = None
    """Seconds after midnight UTC at which a day of a query begins."""


class Expression(NamedTuple):
    """A node: `all` and `any` of nodes, `not` of one, or a term (`operator`, `value`)."""

    kind: str
    nodes: tuple[Expression, ...] = ()
    operator: str = ""
    value: str = ""
    is_phrase: bool = False


class _Token(NamedTuple):
    kind: str
    text: str


def parse_query(text: str) -> Expression:
    """Return the expression of a query. Errors: QueryProblem."""
    return _Parser(_tokens(text)).whole()


def write_query(node: Expression) -> str:
    """Return a query that reads as the expression."""
    if node.kind == "term":
        value = f'"{node.value}"' if node.is_phrase else node.value
        return f"{node.operator}:{value}" if node.operator else value
    if node.kind == "not":
        return f"-{write_query(node.nodes[0])}"
    inner = (" " if node.kind == "all" else " OR ").join(write_query(each) for each in node.nodes)
    return f"({inner})"


def matches(node: Expression, letter: Letter, rules: SearchRules) -> bool | None:
    """Return whether a letter matches; None: the exports cannot tell."""
    if node.kind == "not":
        inner = matches(node.nodes[0], letter, rules)
        return None if inner is None else not inner
    if node.kind == "term":
        return _matches_term(node, letter, rules)
    decides = node.kind == "any"
    is_open = False
    for each in node.nodes:
        inner = matches(each, letter, rules)
        if inner is decides:
            return decides
        is_open = is_open or inner is None
    return None if is_open else not decides


def labels_named(node: Expression) -> set[str]:
    """Return the labels that a query asks for by name."""
    own = {PLACES.get(node.value.lower(), node.value)} if node.operator in ("label", "in", "is") else set()
    return own.union(*(labels_named(each) for each in node.nodes))


def _tokens(text: str) -> list[_Token]:
    tokens, at = [], 0
    while at < len(text.rstrip()):
        match = _TOKEN.match(text, at)
        if match is None or match.lastgroup is None:
            raise QueryProblem(f"the query does not go on as Gmail's language does at {text[at:].strip()!r}")
        tokens.append(_Token(match.lastgroup, match[match.lastgroup]))
        at = match.end()
    return tokens


class _Parser:
    """Recursive descent over the tokens."""

    def __init__(self, tokens: list[_Token]) -> None:
        self._tokens, self._at = tokens, 0

    def whole(self) -> Expression:
        node = self._query("")
        if self._at < len(self._tokens):
            raise QueryProblem(f"{self._tokens[self._at].text!r} closes nothing")
        return node

    def _next(self) -> _Token | None:
        return self._tokens[self._at] if self._at < len(self._tokens) else None

    def _take(self) -> _Token:
        token = self._next()
        if token is None:
            raise QueryProblem("the query ends too early")
        self._at += 1
        return token

    def _query(self, operator: str) -> Expression:
        groups = []
        while (token := self._next()) is not None and token.kind != "close":
            if token == _Token("word", "AND"):
                self._at += 1
                continue
            groups.append(self._group(operator))
        return groups[0] if len(groups) == 1 else Expression("all", tuple(groups))

    def _group(self, operator: str) -> Expression:
        units = [self._unit(operator)]
        while (token := self._next()) is not None and (token == _Token("word", "OR") or token.kind == "bar"):
            self._at += 1
            units.append(self._unit(operator))
        return units[0] if len(units) == 1 else Expression("any", tuple(units))

    def _unit(self, operator: str) -> Expression:
        token = self._take()
        if token.kind == "sign":
            node = self._unit(operator)
            return Expression("not", (node,)) if token.text == "-" else node
        if token.kind == "open":
            return self._inside(token.text, operator)
        if token.kind == "operator":
            return self._term(token.text.lower())
        if token.kind in ("word", "phrase"):
            return Expression("term", operator=operator, value=token.text, is_phrase=token.kind == "phrase")
        raise QueryProblem(f"{token.text!r} stands where a term is expected")

    def _inside(self, opened: str, operator: str) -> Expression:
        node = self._query(operator)
        closed = self._take()
        if closed.text != {"(": ")", "{": "}"}[opened]:
            raise QueryProblem(f"{closed.text!r} closes {opened!r}")
        return Expression("any", node.nodes) if opened == "{" and node.kind == "all" and node.nodes else node

    def _term(self, operator: str) -> Expression:
        if operator not in OPERATORS:
            raise QueryProblem(f"the operator {operator!r} is outside the grammar")
        token = self._take()
        if token.kind == "open":
            return self._inside(token.text, operator)
        text = token.text
        while token.kind != "phrase" and (after := self._next()) is not None and token.kind == "operator":
            token = self._take()   # a value that has a colon
            text = f"{text}:{after.text}"
        return Expression("term", operator=operator, value=text, is_phrase=token.kind == "phrase")


def _matches_term(node: Expression, letter: Letter, rules: SearchRules) -> bool | None:
    operator, value = node.operator, node.value
    if operator in ("label", "in", "is"):
        return _matches_label(operator, value, letter, rules)
    if operator == "has":
        return bool(letter.attached) if value.lower() == "attachment" else None
    if operator in ("after", "newer", "before", "older"):
        begins = _instants(value, rules.midnight)
        if not begins:
            raise QueryProblem(f"{value!r} is no date of a query")
        return _agreed({(letter.date >= begin) is (operator in ("after", "newer")) for begin in begins})
    if operator in ("newer_than", "older_than"):
        return (letter.date >= rules.now - _span(value)) is (operator == "newer_than")
    if operator == "rfc822msgid":
        return letter.key.strip("<>") == value.strip("<>")
    if operator == "bcc":
        return None
    return _has_text(letter.texts.get(operator or "anywhere", ""), value.casefold(), rules.part_words)


def _matches_label(operator: str, value: str, letter: Letter, rules: SearchRules) -> bool | None:
    name = value.lower()
    if operator == "in" and name in ("anywhere", "all"):
        return True
    if operator == "is" and name == "read":
        is_unread = rules.has_label(letter, "UNREAD")
        return None if is_unread is None else not is_unread
    return rules.has_label(letter, PLACES.get(name, value))


def _has_text(text: str, value: str, part_words: bool | None) -> bool | None:
    """Return whether a text has a value: as whole words for certain, as a part of a word as calls show."""
    if value.rstrip("*") not in text:
        return False
    if value.endswith("*"):
        return re.search(rf"(?<!\w){re.escape(value.rstrip('*'))}", text) is not None or part_words
    whole = re.search(rf"(?<!\w){re.escape(value)}(?!\w)", text)
    return True if whole is not None or not _WORDS.search(value) else part_words


def _agreed(answers: set[bool]) -> bool | None:
    return answers.pop() if len(answers) == 1 else None


def _instants(value: str, midnight: int | None) -> list[float]:
    """Return when the day of a query begins, as each reading has it; none: it is no date."""
    if value.isdigit() and len(value) > 8:
        return [float(value)]
    match = re.fullmatch(r"(\d{4})[/-](\d{1,2})[/-](\d{1,2})", value)
    if match is None:
        return []
    try:
        day = date(int(match[1]), int(match[2]), int(match[3]))
    except ValueError:
        return []
    begin = datetime(day.year, day.month, day.day, tzinfo=UTC).timestamp()
    return [begin + midnight] if midnight is not None else [begin, begin + _PACIFIC - 3600, begin + _PACIFIC]


def _span(value: str) -> float:
    match = _SPAN.fullmatch(value.lower())
    if match is None:
        raise QueryProblem(f"{value!r} is no span of a query (2d, 3m, 1y)")
    return timedelta(days=int(match[1]) * _DAYS[match[2]]).total_seconds()
