"""Relabel ids and shuffle lists for the agent, where a rollout asks for it: memorized names are then worth nothing.

In: a seed, what is switched on, the forms of the ids and the places of lists that have no order. Out: the opening, the user's
words and answers as the agent sees them, and its words and arguments in the environment's own names. It stands between agent
and environment: apps, journal and rubric know nothing of it, so that the grader replays the journal as it is.

Every id keeps its form: letters where letters stood, digits where digits did, a number's prefix and the words within an id as
they are. The ids of one form are permuted among each other, by seed and form alone, so no two get the same name, and new ids
are relabelled as well. Sees: forms of the keys of entities and of texts in arguments on record. Does not see: names without a
digit; short numbers, which may be quantities; forms that a tool's schema lists as choices. The hash of a file is that of its
bytes with the episode's names in them, as far as these can be rewritten (documents.py); its size stays the recorded one.
"""

from __future__ import annotations

import json
import random
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from math import gcd, prod
from pathlib import Path
from string import ascii_lowercase, ascii_uppercase, digits
from typing import Any

from .answers import parse
from .caching import cached
from .canonical import canonical, digest
from .documents import rewritten
from .exchanges import NameClasses, exchange_of
from .records import Result

SWITCHES = ("rebound", "shuffled")
STYLES: tuple[dict[str, Any], ...] = tuple(
    {"ensure_ascii": escaped, "separators": marks, "indent": indent}
    for indent in (None, 2, 4, 1) for marks in (None, (",", ":")) for escaped in (False, True))
"""How JSON is written: lists are shuffled in texts that one of these gives, byte for byte."""
ANY = "*"


class Relabelling:
    """One episode's; forks share it."""

    def __init__(self, seed: int, renaming: Renaming, places: Mapping[str, Sequence[Sequence[str]]]) -> None:
        self._seed = seed
        self.renaming = renaming
        self._places = places

    def shown(self, tool: str, arguments: Any, result: Result) -> Result:
        """Return an answer as the agent sees it; the order of lists depends on the seed and the question alone."""
        content = result.content
        places = self._places.get(tool, ()) if not result.is_error else ()
        value = parse(content) if places else None
        style = None if value is None else next((style for style in STYLES if json.dumps(value, **style) == content), None)
        if style is not None:
            draw, wanted = random.Random(canonical([self._seed, "shuffled", tool, arguments])), set(map(tuple, places))
            for place, items in lists_in(value):
                if place in wanted:
                    draw.shuffle(items)
            content = json.dumps(value, **style)
        return result._replace(content=self.renaming.shown(content))


def lists_in(value: Any) -> list[tuple[tuple[str, ...], list[Any]]]:
    """(place, list) of every list of two and more in a JSON value: names of fields on the way, `*` for elements and for ids."""
    lists: list[tuple[tuple[str, ...], list[Any]]] = []
    stack: list[tuple[tuple[str, ...], Any]] = [((), value)]
    while stack:
        place, one = stack.pop()
        if isinstance(one, dict):
            stack += [((*place, ANY if any(map(str.isdigit, name)) else name), each) for name, each in reversed(one.items())]
        elif isinstance(one, list):
            stack += [((*place, ANY), each) for each in reversed(one)]
            if len(one) > 1:
                lists.append((place, one))
    return lists


LEAST_DIGITS = 3
"""Digits that an id holds at the least, all of whose other characters stay as they are."""
LEAST_TOKENS = 3
"""Ids with one prefix that make a form of their own where others of their length have letters and digits anywhere."""
LEAST_ALONE, LEAST_AS_ARGUMENT = 5, 7
"""Digits of an id of digits alone: of an entity's key; of a text that a call was asked with."""

_TOKEN = re.compile(r"[A-Za-z0-9]+(?:[_-][A-Za-z0-9]+)*")
_ESCAPED = re.compile(r"\\(?:u[0-9a-fA-F]{4}|.)|" + _TOKEN.pattern)
_PIECE = re.compile(r"[A-Za-z0-9]+|[_-]+")
_NUMBERED = re.compile(r"([A-Za-z]*?)([0-9]+)")
_MEASURE = re.compile(r"[0-9]+[A-Za-z]+|[A-Za-z]+")
_DATED = re.compile(r"\d{4}-\d{1,2}-\d{1,2}")
_HEX = re.compile(r"[0-9a-fA-F]{8,}(?:-[0-9a-fA-F]+)*")
HASH_LENGTH = 64
_HASH = re.compile(r"(?<![0-9a-zA-Z])([0-9a-f]{64})(?![0-9a-zA-Z])")
_BOTH = ascii_lowercase + ascii_uppercase + digits


class Renaming:
    """How one seed renames the ids of these forms; the same for all who have the same world and seed."""

    def __init__(self, forms: frozenset[str], seed: int, classes: NameClasses | None = None,
                 files: Mapping[str, Path] | None = None) -> None:
        """`classes`: names that are exchanged among each other besides; `files`: sha256 -> where bytes with names lie."""
        self._forms, self._seed = forms, seed
        self._files = files or {}
        self._hashes: dict[bool, dict[str, str]] | None = None
        self._exchange = exchange_of(classes, seed) if classes is not None and any(classes) else None
        self._renamed: dict[tuple[str, bool], str] = {}

    def shown(self, value: Any, back: bool = False) -> Any:
        """Return a text or JSON value as the agent sees and gives it; `back`: one of the agent's in the environment's names."""
        if not self._forms and self._exchange is None:
            return value
        if isinstance(value, str):
            return self._all(value, back)
        if isinstance(value, list):
            return [self.shown(each, back) for each in value]
        if isinstance(value, dict):
            return {self._all(name, back): self.shown(each, back) for name, each in value.items()}
        if isinstance(value, int) and not isinstance(value, bool):  # of few digits it says how many
            return int(self._all(str(value), back)) if len(str(abs(value))) >= LEAST_ALONE else value
        return value

    def meant(self, value: Any) -> Any:
        return self.shown(value, True)

    def _all(self, text: str, back: bool) -> str:
        if self._files and len(text) >= HASH_LENGTH and _HASH.search(text) is not None:
            hashes = self._renewed()[back]
            parts = _HASH.split(text)
            if any(part in hashes for part in parts[1::2]):
                return "".join(hashes[part] if part in hashes else self._names(part, back) for part in parts)
        return self._names(text, back)

    def _renewed(self) -> dict[bool, dict[str, str]]:
        """Return hashes of files by those that the same files have with this episode's names in them, and back."""
        if self._hashes is None:
            renewed = {}
            for sha256, path in self._files.items():
                content = rewritten(path.read_bytes(), lambda text: self._names(text, False))
                if content is not None and (other := digest(content)) != sha256:
                    renewed[sha256] = other
            self._hashes = {False: renewed, True: {other: sha256 for sha256, other in renewed.items()}}
        return self._hashes

    def _names(self, text: str, back: bool) -> str:
        if back and self._exchange is not None:
            text = self._exchange.shown(text, back)
        if self._forms:
            text = _tokens(text).sub(lambda match: self._one(match, back), text)
        return text if back or self._exchange is None else self._exchange.shown(text)

    def _one(self, match: re.Match[str], back: bool) -> str:
        token = match[0]
        form = self._form(token)
        if form is None or (token.isdigit() and _is_part(match)):
            return token
        key = (token, back)
        if key not in self._renamed:
            self._renamed[key] = self._permuted(token, form, back)
        return self._renamed[key]

    def _form(self, token: str) -> str | None:
        form = form_of(token)
        return form if form in self._forms else loose if (loose := _loose(token)) in self._forms else None

    def _permuted(self, token: str, form: str, back: bool) -> str:
        """Return the token's place in its form's permutation; walk on until the form is the same, so forms stay apart."""
        signs = _signs(token, form)
        size = prod(map(len, signs))
        draw = random.Random(canonical([self._seed, "rebound", form]))
        factor = next(each for each in iter(lambda: draw.randrange(1, size), None) if gcd(each, size) == 1)
        step, inverse = draw.randrange(1, size), pow(factor, -1, size)
        while True:
            number = 0
            for sign, among in zip(token, signs, strict=True):
                number = number * len(among) + among.index(sign)
            number = (number - step) * inverse % size if back else (number * factor + step) % size
            written = []
            for among in reversed(signs):
                number, place = divmod(number, len(among))
                written.append(among[place])
            token = "".join(reversed(written))
            if self._form(token) == form and _signs(token, form) == signs:
                return token


def _tokens(text: str) -> re.Pattern[str]:
    """Return the pattern of names in a text: in one that may be JSON, a backslash and what follows are one character."""
    return _ESCAPED if '"' in text else _TOKEN


@cached(65536)
def form_of(token: str) -> str | None:
    """Return the form of an id, by which ids are permuted among each other, whatever their case; None: no id."""
    if token[0] == "\\" or token.isalpha() or _DATED.match(token):
        return None
    parts, n_free = [], 0
    for piece in _PIECE.findall(token):
        numbered = _NUMBERED.fullmatch(piece)
        if numbered:
            n_free += len(numbered[2])
            zero = not numbered[1] and numbered[2][0] == "0"
            parts.append(f"{numbered[1].lower()}{'0' if zero else '9'}{len(numbered[2])}")
        elif not piece[0].isalnum() or _MEASURE.fullmatch(piece):
            parts.append(piece.lower())
        else:
            n_free += len(piece)
            parts.append(f"{_kind(piece, token)}{len(piece)}")
    return "|".join(parts) if n_free >= (LEAST_ALONE if token.isdigit() else LEAST_DIGITS) else None


def _loose(token: str) -> str | None:
    """Return the form of ids with letters and digits in any place, of one case."""
    free = token.isalnum() and not token.isalpha() and not token.isdigit() and token in (token.lower(), token.upper())
    return f"x{len(token)}" if free else None


def _kind(piece: str, token: str) -> str:
    """`h`: hexadecimal, as the whole id is; `m`: of both cases; `x`: of one."""
    mixed = piece != piece.lower() and piece != piece.upper()
    return "m" if mixed else "h" if _HEX.fullmatch(token) else "x"


def _signs(token: str, form: str) -> list[str]:
    """Of each sign of an id of this form, those that may stand in its place."""
    if form == _loose(token):
        return [digits + (ascii_lowercase if token == token.lower() else ascii_uppercase)] * len(token)
    signs: list[str] = []
    for piece in _PIECE.findall(token):
        numbered = _NUMBERED.fullmatch(piece)
        if numbered:
            signs += [*numbered[1], *([digits] * len(numbered[2]))]
        elif not piece[0].isalnum() or _MEASURE.fullmatch(piece):
            signs += piece
        else:
            kind, small = _kind(piece, token), piece == piece.lower()
            letters = ascii_lowercase if small else ascii_uppercase
            signs += [_BOTH if kind == "m" else digits + letters[:6] if kind == "h" else digits + letters] * len(piece)
    return signs


def _is_part(match: re.Match[str]) -> bool:
    """Do the digits belong to a number with a fraction? Marks between thousands leave no `LEAST_ALONE` digits together."""
    text, begin, end = match.string, match.start(), match.end()
    return (text[begin - 1:begin] == "." and text[begin - 2:begin - 1].isdigit()) or (
        text[end:end + 1] == "." and text[end + 1:end + 2].isdigit())


def forms(keys: Iterable[str], argument_values: Iterable[Any], tools: Iterable[Any]) -> frozenset[str]:
    """Forms of the ids of a world. `keys`: of entities; `argument_values`: scalars of recorded calls; `tools`: descriptors."""
    texts = (value for value in argument_values
             if isinstance(value, str) and not (value.isdigit() and len(value) < LEAST_AS_ARGUMENT))
    tokens = {token for text in (*keys, *texts) if " " not in text for token in _tokens(text).findall(text)}
    counts = Counter(form for token in tokens if (form := form_of(token)))
    chosen = {token for text in _choices(list(tools)) for token in _tokens(text).findall(text)}
    other_forms = counts.keys() - {form_of(token) for token in chosen} - {_loose(token) for token in chosen}
    rare = {form_of(token) for token in tokens if _loose(token) in other_forms and _loose(token) != form_of(token)}
    return frozenset(form for form in other_forms if form not in rare or counts[form] >= LEAST_TOKENS)


def _choices(value: Any) -> list[str]:
    """Texts among which a schema lets an agent choose."""
    if isinstance(value, list):
        return [text for each in value for text in _choices(each)]
    if not isinstance(value, dict):
        return []
    own = [str(each) for name in ("enum", "const", "default") if name in value
           for each in (value[name] if isinstance(value[name], list) else [value[name]])]
    return own + [text for each in value.values() for text in _choices(each)]
