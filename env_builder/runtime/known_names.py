"""Which entities exist as far as the log tells: to say of a call that nobody knows the answer to whether it names any of them.

In: facts and answers on record. Out: the naming arguments of each tool, and whether a call names what exists. An argument
*names* if its values differ, and nearly all values of its successful calls are known from elsewhere: they stand in answers of
other tools, in documents as the log began with them or as the session had seen them, are all that another tool was asked for,
or are keys of entities. One with few values, all of them known, names if arguments of its name do elsewhere; one without any,
if all others of its name do. Of numbers, answers and documents do not count: amounts stand there too, once they were written.
A call whose naming argument, or argument with a few values to choose from, has a value that is found nowhere is surely
refused: it changes nothing, whatever the tool would say. A name with another digit after it (`solaris-3`, where `solaris-2` is
shown) may exist, though. A number with more or fewer digits than all others of an argument have after the same letters
(`ORD-10229`, where all are like `ORD-1022`) names nothing. Refused is also a call with an argument that no successful call of
the tool has, if the service refuses such calls on record (`REFUSED`). Values that differ in nothing but their case are no
values to choose from. A call whose naming arguments all exist is one that may well have worked, also with a value that is new
by nature (an account number), if it looks like others that were given. A value that stands nowhere, of an argument whose
values other tools are mostly asked for alone, is *doubtful*: it may name nothing, and is not surely refused.

Sees: values as whole words of answers, values inside of objects and lists, values of several words if each has a digit (phone
and account numbers); that some of what sessions name by an argument was shown to them by nothing and met by no other session:
then a value that is found nowhere may exist too, if it looks like the others (Good's estimate of what is still unseen, 1953).
Does not see: other entities that exist and that no session met; refusals for other reasons.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from functools import lru_cache
from itertools import groupby
from math import inf
from pathlib import Path
from typing import Any

from .answers import parse
from .canonical import canonical
from .shards import SortedLines

FEWEST = 5
"""Different values of an argument from which it can be seen to name."""
NEARLY_ALL = 0.95
"""Share of these that must be known from elsewhere."""
MOSTLY = 0.8
"""Share of these that other tools must be asked for alone, for a value that stands nowhere to be doubtful."""
ALIKE = 20
"""Different values of an argument, as many digits after the same letters each, from which no other number of digits names."""
MANY_TIMES = 6
"""Times that each value of an argument was given on average, from which on its values are a list to choose from."""
OPEN = 3
"""Values that worked, that one call alone gave and that stand nowhere else, from which an argument has no list of values."""
REFUSED = 3
"""Different refused calls with arguments that no successful call of the tool has, from which a service refuses all of them; one
is enough if its answer names the argument."""
FEWEST_NAMED, NEW_NAMES = 10, 0.05
"""Times that sessions named something by an argument, and the share of them in which no other session met it, from which on
names of its kind exist that the log does not have."""
BEGUN = ""
"""Stands for the documents as the log began with them, among the tools that show values and the sessions that saw them."""
MOST_WORDS = 6
"""Words of a value that names."""
SHORT, MOST_PIECES = 200, 65536
"""Characters below which what stands in a row is kept with its values, and how many are."""
_WORD = re.compile(r"[^\s,;:\"'()\[\]{}<>|=]+")
_NUMBER = re.compile(r"[+-]?\d{1,15}(?:\.\d+)?")
_LETTERS_AND_NUMBER = re.compile(r"(\D*[^\W\d_]\D*)(\d+)")
_NUMBERED = re.compile(r"(.*[^\W\d_]{3,}[-_./# ])\d")
_BREAKS = str.maketrans(dict.fromkeys("\t\r\n,;:\"'()[]{}<>|=", "\n"))
"""What words in a row have not between them."""
_LETTER, _DIGIT = re.compile(r"[^\W\d_]"), re.compile(r"\d")

Row = Mapping[str, Any]


class KnownNames:
    """All that the log names, by the tools that showed it."""

    def __init__(
        self, keys: Iterable[str], answers: Mapping[tuple[str, str], Iterable[Row]],
        documents: Iterable[tuple[str | None, str]] = (), key_of: Mapping[str, str] | None = None,
    ) -> None:
        """`keys`: of entities; `answers`: (tool, canonical arguments) -> rows of recorded.jsonl; `documents`: (who saw
        it, text), who: BEGUN, a session, or None; `key_of`: their text -> the key that they are asked for by."""
        self._keys = frozenset(keys)
        self._shown_by: dict[str, set[str]] = defaultdict(set)
        self._given: dict[tuple[str, str], Counter[str]] = defaultdict(Counter)
        self._asked_alone: dict[str, set[str]] = defaultdict(set)
        self._arguments: set[tuple[str, str]] = set()
        self._tools: set[str] = set()
        given_in: dict[tuple[str, str, str], set[str]] = defaultdict(set)
        refused: list[tuple[str, Any, str]] = []
        texts: dict[str, set[str]] = defaultdict(set)
        meetings, documents = _Meetings(), [*documents]
        for (tool, arguments), rows in answers.items():
            for row in rows:
                if row["is_error"]:
                    refused.append((tool, parse(arguments), row["content"]))
                    continue
                self._tools.add(tool)
                texts[tool].add(row["content"])
                meetings.show(row["session"] or BEGUN, row["content"], arguments)
                given_arguments = parse(arguments)
                self._arguments.update((tool, str(name)) for name in given_arguments)
                for name, value in _scalars(given_arguments):
                    self._given[tool, name][value] += 1
                    given_in[row["session"] or BEGUN, tool, name].add(value)
                    meetings.name(row["session"] or BEGUN, name, value)
                    if len(given_arguments) == 1 and name in given_arguments:
                        self._asked_alone[value].add(tool)
        for session, document in documents:
            meetings.show(BEGUN if session is None else session, document, (key_of or {}).get(document, ""))
        self._open = meetings.open_names()
        self._see_documents(documents, given_in, texts)
        self._refuses_foreign = sum(self._refuses(*each) for each in refused) >= REFUSED
        self._sort_arguments()

    @property
    def rules(self) -> dict[str, Any]:
        """Return what the log tells of tools and their arguments, as a JSON value; all else is `lines`."""
        return {
            "arguments": sorted(self._arguments), "tools": sorted(self._tools), "refuses_foreign": self._refuses_foreign,
            "open": [[name, sorted(shapes)] for name, shapes in sorted(self._open.items())],
            "given": sorted(self._given_for), "naming": sorted(self._naming), "naming_anywhere": sorted(self._naming_anywhere),
            "looked_up": sorted(self._looked_up), "ranges": [[*own, *ends] for own, ends in sorted(self._ranges.items())],
            "choices": [[*own, sorted(values)] for own, values in sorted(self._choices.items())],
            "shapes": [[*own, sorted(shapes)] for own, shapes in sorted(self._new.items())],
            "numbers": [[*own, *form] for own, form in sorted(self._numbers.items())]}

    @property
    def lines(self) -> list[bytes]:
        """Return every value that is shown, and [tool, argument, value] of every one that was given, as lines of canonical JSON
        in the order of their bytes."""
        shown = {*self._keys, *self._shown_by, *self._asked_alone, *self._document_values}
        given = ([*own, value] for own, counts in self._given.items() for value in counts)
        return sorted((*map(_line, shown), *map(_line, given)))

    def strangers(self, tool: str, arguments: Any) -> list[str] | None:
        """Return the values that should be known and are found nowhere, sorted; or the names of arguments that are refused.

        None if the call names nothing, or if another of its values, or an argument's name, was never seen: nobody can say then.
        """
        if self._refuses_foreign and (foreign := self._foreign(tool, arguments)):
            return foreign
        given = _scalars(arguments)
        named = {value for name, value in given if self._is_naming(tool, name) or self._is_misnumbered((tool, name), value)}
        others = {value for name, value in given if value not in self._choices.get((tool, name), (value,))}
        unseen = {value for name, value in given if value in named and self._may_exist(name, value)}
        strangers = sorted(value for value in (named - unseen) | others if not self._is_shown(value))
        if strangers or unseen or not named:
            return [value for value in strangers if not self._is_sibling(value)] or None
        doubted = any(self._is_doubted(tool, name, value) for name, value in given)
        return None if doubted or any((tool, str(name)) not in self._arguments for name in arguments) else []

    def _may_exist(self, name: str, value: str) -> bool:
        """Return whether a value is found nowhere and looks like those that no other session met, of an argument of such."""
        return _shape(value) in self._open.get(name, ()) and not self._is_shown(value)

    def _is_sibling(self, value: str) -> bool:
        """Return whether a value is a name and a digit, and is shown with another digit: a copy that no session met."""
        name = _NUMBERED.fullmatch(value)
        return name is not None and any(self._is_shown(f"{name[1]}{digit}") for digit in range(10))

    def doubtful(self, tool: str, arguments: Any) -> list[str]:
        """Return the values of a call that the log has nowhere, of arguments whose values others are mostly asked for alone."""
        return sorted(value for name, value in _scalars(arguments)
                      if (tool, name) in self._looked_up and not _is_quantity(value) and not self._is_shown(value)
                      and not self._is_given((tool, name), value))

    def _see_documents(
        self, documents: Iterable[tuple[str | None, str]], given_in: Mapping[tuple[str, str, str], set[str]],
        texts: dict[str, set[str]],
    ) -> None:
        """Note what documents and answers show. `given_in`: (session, tool, argument) -> values; `texts`: tool -> answers."""
        texts_of: dict[str | None, set[str]] = defaultdict(set)
        for session, document in documents:
            if session == BEGUN:
                texts[BEGUN].add(document)
            else:
                texts_of[session].add(document)
        for tool, own in texts.items():
            for value in set[str]().union(*map(_values_of, _pieces(own))):
                self._shown_by[value].add(tool)
        pieces_of = {session: _pieces(own) for session, own in texts_of.items()}
        given = set[str]().union(*given_in.values())
        places: dict[str, set[str]] = defaultdict(set)   # value that was given -> pieces of documents that it stands in
        every = [(piece, _values_of(piece)) for piece in set[str]().union(*pieces_of.values())]
        for piece, values in every:
            for value in given & values:
                places[value].add(piece)
        self._document_values = frozenset[str]().union(*(values for _, values in every))
        self._earlier_values: dict[tuple[str, str], set[str]] = defaultdict(set)
        """(tool, argument) -> values that a document had shown to the session."""
        for (session, tool, name), own in given_in.items():
            pieces = pieces_of.get(session, set())
            self._earlier_values[tool, name].update(
                value for value in own if value in places and not _is_quantity(value) and not places[value].isdisjoint(pieces))

    def _sort_arguments(self) -> None:
        """Sort the arguments into those that name, those with values to choose from, and those with new values."""
        self._given_for = {*self._given}
        self._ranges = {own: (min(numbers), max(numbers)) for own, counts in self._given.items()
                        if all(map(_is_quantity, counts)) and (numbers := [*map(float, counts)])}
        """(tool, argument) -> its smallest and its largest value, where all are numbers."""
        n_known = {own: sum(self._is_met(value, own) for value in counts) for own, counts in self._given.items()}
        many = {own for own, counts in self._given.items() if len(counts) >= FEWEST}
        self._naming = {own for own in many if n_known[own] >= NEARLY_ALL * len(self._given[own])}
        n_looked_up = {own: sum(bool(self._asked_alone.get(value, set()) - {own[0]}) for value in self._given[own])
                       for own in many - self._naming}
        self._looked_up = {own for own, n in n_looked_up.items() if n >= MOSTLY * len(self._given[own])}
        """(tool, argument) whose values other tools are mostly asked for alone, too seldom to be sure that it names."""
        mostly = (own for own in many if n_known[own] >= MOSTLY * len(self._given[own]))
        self._numbers = {own: form for own in mostly if (form := _common_form(self._given[own]))}
        """(tool, argument) -> letters and number of digits of its values, mostly known, where these are the same in all."""
        names = {name for _, name in self._naming}
        self._naming |= {own for own, n in n_known.items() if own[1] in names and n == len(self._given[own])}
        self._naming_anywhere = names - {name for tool, name in many - self._naming}
        self._choices: dict[tuple[str, str], frozenset[str]] = {}
        self._new: dict[tuple[str, str], frozenset[str]] = {}
        """(tool, argument) -> shapes of its values, where most of them were not known before."""
        for own, counts in self._given.items():
            if own in self._naming:
                continue
            if own in many and 2 * n_known[own] < len(counts):
                self._new[own] = frozenset(map(_shape, counts))
            if counts.total() >= MANY_TIMES * len(counts) and not any(" " in value or _is_quantity(value) for value in counts):
                n_new = sum(n == 1 and not self._is_met(value, own) for value, n in counts.items())
                is_free = len({value.casefold() for value in counts}) < len(counts)  # who types as they like may type anything
                self._choices |= {own: frozenset(counts)} if n_new < OPEN and not is_free else {}

    def _is_naming(self, tool: str, name: str) -> bool:
        """Return whether an argument names: of a tool without successful calls on record, if all others of its name do."""
        return (tool, name) in self._naming or (name in self._naming_anywhere and (tool, name) not in self._given_for)

    def _is_misnumbered(self, own: tuple[str, str], value: str) -> bool:
        """Return whether a value of a (tool, argument) has another number of digits after the letters that all have."""
        form, number = self._numbers.get(own), _form(value)
        return form is not None and number is not None and form[0] == number[0] and form[1] != number[1]

    def _refuses(self, tool: str, given_arguments: Any, answer: str) -> int:
        """Return what a refused call counts for: nothing without an argument of its own, all if the answer names that."""
        foreign = self._foreign(tool, given_arguments)
        return 0 if not foreign else 1 if set(foreign).isdisjoint(values_in(answer)) else REFUSED

    def _foreign(self, tool: str, arguments: Any) -> list[str]:
        """Return the names of arguments that no successful call of the tool has, sorted; none if no call has any."""
        names = map(str, arguments) if isinstance(arguments, Mapping) and tool in self._tools else ()
        return sorted(name for name in names if (tool, name) not in self._arguments)

    def _is_shown(self, value: str) -> bool:
        return any(value in values for values in (self._keys, self._shown_by, self._asked_alone, self._document_values))

    def _is_given(self, own: tuple[str, str], value: str) -> bool:
        """Return whether a call that worked gave a (tool, argument) this value."""
        return value in self._given.get(own, ())

    def _is_met(self, value: str, own: tuple[str, str]) -> bool:
        """Return whether the value of a (tool, argument) is known from elsewhere, or was shown to the session that gave it."""
        return value in self._earlier_values[own] or self._is_known(value, own[0])

    def _is_known(self, value: str, tool: str) -> bool:
        elsewhere = self._asked_alone.get(value, set()) | (set() if _is_quantity(value) else self._shown_by.get(value, set()))
        return value in self._keys or bool(elsewhere - {tool})

    def _is_doubted(self, tool: str, name: str, value: str) -> bool:
        """Return whether the log does not show that the argument may have this value."""
        own = (tool, name)
        if own not in self._given_for:
            return own not in self._arguments
        is_like = bool(_DIGIT.search(value)) and _shape(value) in self._new.get(own, ())
        least, most = self._ranges.get(own, (inf, -inf))
        is_within = _is_quantity(value) and least <= float(value) <= most
        return not (self._is_given(own, value) or self._is_shown(value) or is_within or is_like)


class StoredNames(KnownNames):
    """The same from what was written of it (`rules`, `lines`): which values there are is looked up in the file."""

    def __init__(self, rules: Mapping[str, Any], lines: Path) -> None:
        def named(name: str) -> set[tuple[str, str]]:
            return {(tool, argument) for tool, argument in rules[name]}

        self._arguments, self._given_for, self._naming, self._looked_up = map(
            named, ("arguments", "given", "naming", "looked_up"))
        self._tools, self._naming_anywhere = set(rules["tools"]), set(rules["naming_anywhere"])
        self._refuses_foreign = rules["refuses_foreign"]
        self._open = {name: frozenset(shapes) for name, shapes in rules.get("open", ())}
        self._choices, self._new = (
            {(tool, name): frozenset(values) for tool, name, values in rules[kind]} for kind in ("choices", "shapes"))
        self._ranges = {(tool, name): (least, most) for tool, name, least, most in rules["ranges"]}
        self._numbers = {(tool, name): (letters, n) for tool, name, letters, n in rules.get("numbers", ())}
        self._lines = SortedLines(lines)

    def _is_shown(self, value: str) -> bool:
        return _line(value) in self._lines

    def _is_given(self, own: tuple[str, str], value: str) -> bool:
        return _line([*own, value]) in self._lines


class _Meetings:
    """Which sessions met which values: gave them, and were shown them unasked."""

    def __init__(self) -> None:
        self._named: dict[str, set[tuple[str, str]]] = defaultdict(set)
        """Argument -> (session, value) that it was given."""
        self._met_by: dict[str, set[str]] = defaultdict(set)
        self._texts: set[tuple[str, str, str]] = set()

    def name(self, session: str, argument: str, value: str) -> None:
        """Note that a session gave an argument this value."""
        self._met_by[value].add(session)
        if session != BEGUN:
            self._named[argument].add((session, value))

    def show(self, session: str, text: str, asked_for: str) -> None:
        """Note that a session was shown a text. `asked_for`: what it gave for it."""
        self._texts.add((session, text, asked_for))

    def open_names(self) -> dict[str, frozenset[str]]:
        """Return the arguments by which sessions name enough (`NEW_NAMES`) that nothing had shown them and no other met, with
        the shapes of all that they were given. What the log as a whole shows was asked for by a session that is not known: what
        that asked for is no second meeting."""
        unasked: dict[str, set[str]] = defaultdict(set)
        for session, text, asked_for in self._texts:
            values = values_in(text) & self._met_by.keys()
            others = values - values_in(asked_for)
            for value in others if session == BEGUN else values:
                self._met_by[value].add(session)
            unasked[session].update(others)
        n_new = {name: sum(len(self._met_by[value]) == 1 and value not in unasked[session] for session, value in pairs)
                 for name, pairs in self._named.items()}
        return {name: frozenset(_shape(value) for _, value in pairs) for name, pairs in self._named.items()
                if len(pairs) >= FEWEST_NAMED and n_new[name] >= NEW_NAMES * len(pairs)}


def _line(value: str | list[str]) -> bytes:
    return canonical(value).encode("utf-8", "surrogatepass")


def _is_quantity(value: str) -> bool:
    return _NUMBER.fullmatch(value) is not None


def _form(value: str) -> tuple[str, int] | None:
    """Return the letters before a number and how many digits it has; None of a value of another form."""
    match = _LETTERS_AND_NUMBER.fullmatch(value)
    return (match[1].casefold(), len(match[2])) if match else None


def _common_form(values: Iterable[str]) -> tuple[str, int] | None:
    """Return the form of all of at least `ALIKE` values; None if they have not the same."""
    forms = [_form(value) for value in values]
    return forms[0] if len(forms) >= ALIKE and len({*forms}) == 1 else None


def _shape(value: str) -> str:
    """Return a value with one sign for all letters and one for all digits."""
    return _DIGIT.sub("0", _LETTER.sub("a", value))


def values_in(text: str) -> set[str]:
    """Return the words of a text, and what several words in a row with a digit each make together."""
    return set().union(*map(_values_of, _pieces((text,))))


def _pieces(texts: Iterable[str]) -> set[str]:
    """Return what stands in the texts between breaks."""
    pieces = set[str]()
    for text in texts:
        pieces.update(text.translate(_BREAKS).split("\n"))
    return pieces


def _values_of(piece: str) -> frozenset[str]:
    return _in_short(piece) if len(piece) < SHORT else _in_piece(piece)


def _in_piece(piece: str) -> frozenset[str]:
    """Return the same of words in a row."""
    values = {word.strip(".") for word in _WORD.findall(piece)}
    for has_digit, run in groupby(piece.split(" ") if " " in piece else (), key=lambda word: bool(_DIGIT.search(word))):
        words = [word.strip(".") for word in run] if has_digit else []
        for begin in range(len(words)):
            values.update(" ".join(words[begin:end]) for end in range(begin + 2, min(begin + MOST_WORDS, len(words)) + 1))
    return frozenset(values)


_in_short = lru_cache(MOST_PIECES)(_in_piece)
"""Documents repeat them."""


def _scalars(arguments: Any) -> list[tuple[str, str]]:
    """(name, value) of the arguments that are one word, several words with a digit each, or a whole number, in order.

    Elements of lists count as several; values inside of objects go by the names on the path to them.
    """
    values, stack = [], [("", arguments)]
    while stack:
        name, value = stack.pop()
        if isinstance(value, Mapping):
            stack += reversed([(f"{name}.{own}" if name else str(own), item) for own, item in value.items()])
        elif isinstance(value, list):
            stack += [(name, item) for item in reversed(value)]
        elif isinstance(value, str | int) and not isinstance(value, bool):
            words = str(value).split()
            if not any(map(str.isspace, str(value))) or _is_numbered(words):
                values.append((name, " ".join(words)))
    return values


def _is_numbered(words: list[str]) -> bool:
    return 0 < len(words) <= MOST_WORDS and all(map(_DIGIT.search, words))
