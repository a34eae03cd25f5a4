"""Ids under other names: the same room, so that what was learnt by heart of it is worth nothing.

In: the ids of a world, a seed. Out: texts and arguments with other ids in their place, and back. Every id keeps its form:
letters where letters stood, digits where digits did, a number's prefix and the words within an id as they are. The ids of one
form are permuted among each other, by seed and form alone, so nothing is named twice and what is new is renamed as well.
Sees: forms of the keys of things and of texts that calls were asked with. Does not see: names without a digit; short numbers,
which may be quantities; forms that a tool's schema lists as choices.
"""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Iterable
from functools import lru_cache
from math import gcd, prod
from string import ascii_lowercase, ascii_uppercase, digits
from typing import Any

from .canonical import canonical

LEAST_DIGITS = 3
"""Digits that an id holds at the least, all of whose other signs stay as they are."""
LEAST_TOKENS = 3
"""Ids with one prefix that make a form of their own where others of their length have letters and digits anywhere."""
LEAST_ALONE, LEAST_ASKED = 5, 7
"""Digits of an id of digits alone: of a thing's key; of a text that a call was asked with."""

_TOKEN = re.compile(r"[A-Za-z0-9]+(?:[_-][A-Za-z0-9]+)*")
_ESCAPED = re.compile(r"\\(?:u[0-9a-fA-F]{4}|.)|" + _TOKEN.pattern)
_PIECE = re.compile(r"[A-Za-z0-9]+|[_-]+")
_NUMBERED = re.compile(r"([A-Za-z]*?)([0-9]+)")
_MEASURE = re.compile(r"[0-9]+[A-Za-z]+|[A-Za-z]+")
_DATED = re.compile(r"\d{4}-\d{1,2}-\d{1,2}")
_HEX = re.compile(r"[0-9a-fA-F]{8,}(?:-[0-9a-fA-F]+)*")
_BOTH = ascii_lowercase + ascii_uppercase + digits


class Renaming:
    """How one seed renames the ids of these forms; the same for all who have the same world and seed."""

    def __init__(self, forms: frozenset[str], seed: int) -> None:
        self._forms, self._seed = forms, seed
        self._known: dict[tuple[str, bool], str] = {}

    def shown(self, text: str) -> str:
        """The text as the agent sees it."""
        return self._all(text, False)

    def meant(self, value: Any) -> Any:
        """What the agent says or gives, a JSON value, in the room's own names."""
        return self._value(value, True)

    def carried(self, value: Any) -> Any:
        """A JSON value in the room's names as the agent has to give it."""
        return self._value(value, False)

    def _value(self, value: Any, back: bool) -> Any:
        if isinstance(value, str):
            return self._all(value, back)
        if isinstance(value, list):
            return [self._value(each, back) for each in value]
        if isinstance(value, dict):
            return {self._all(name, back): self._value(each, back) for name, each in value.items()}
        if isinstance(value, int) and not isinstance(value, bool):
            return int(self._all(str(value), back))
        return value

    def _all(self, text: str, back: bool) -> str:
        return _tokens(text).sub(lambda found: self._one(found, back), text)

    def _one(self, found: re.Match[str], back: bool) -> str:
        token = found[0]
        form = self._form(token)
        if form is None or (token.isdigit() and _is_part(found)):
            return token
        key = (token, back)
        if key not in self._known:
            self._known[key] = self._permuted(token, form, back)
        return self._known[key]

    def _form(self, token: str) -> str | None:
        form = form_of(token)
        return form if form in self._forms else loose if (loose := _loose(token)) in self._forms else None

    def _permuted(self, token: str, form: str, back: bool) -> str:
        """The token's place in its form's permutation; walked on until the form is the same, so forms stay among themselves."""
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
    """What finds the names in a text: in one that may be JSON, a backslash and what follows are one sign."""
    return _ESCAPED if '"' in text else _TOKEN


@lru_cache(65536)
def form_of(token: str) -> str | None:
    """What ids have in common that are permuted among each other, whatever their case; None: no id."""
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
    """The form of ids whose letters and digits stand anywhere, of one case."""
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


def _is_part(found: re.Match[str]) -> bool:
    """Do the digits belong to a number with a fraction? Marks between thousands leave no `LEAST_ALONE` digits together."""
    text, begin, end = found.string, found.start(), found.end()
    return (text[begin - 1:begin] == "." and text[begin - 2:begin - 1].isdigit()) or (
        text[end:end + 1] == "." and text[end + 1:end + 2].isdigit())


def forms(keys: Iterable[str], asked: Iterable[Any], tools: Iterable[Any]) -> frozenset[str]:
    """Forms of the ids of a world. `keys`: of things; `asked`: scalars that calls were asked with; `tools`: descriptors."""
    texts = (value for value in asked if isinstance(value, str) and not (value.isdigit() and len(value) < LEAST_ASKED))
    tokens = {token for text in (*keys, *texts) if " " not in text for token in _tokens(text).findall(text)}
    counts = Counter(form for token in tokens if (form := form_of(token)))
    chosen = {token for text in _choices(list(tools)) for token in _tokens(text).findall(text)}
    left = counts.keys() - {form_of(token) for token in chosen} - {_loose(token) for token in chosen}
    rare = {form_of(token) for token in tokens if _loose(token) in left and _loose(token) != form_of(token)}
    return frozenset(form for form in left if form not in rare or counts[form] >= LEAST_TOKENS)


def _choices(value: Any) -> list[str]:
    """Texts among which a schema lets an agent choose."""
    if isinstance(value, list):
        return [text for each in value for text in _choices(each)]
    if not isinstance(value, dict):
        return []
    own = [str(each) for name in ("enum", "const", "default") if name in value
           for each in (value[name] if isinstance(value[name], list) else [value[name]])]
    return own + [text for each in value.values() for text in _choices(each)]
