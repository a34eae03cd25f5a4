"""Fields with their values, as they stand in texts: JSON (also inside a string of JSON), Python's way, YAML, `key=value`.

In: a frame's column of texts. Out: (field, value). It reads text, no documents: so what is cut off, wrapped or logged twice
over is read all the same.
"""

from __future__ import annotations

import json
import re
from functools import lru_cache

import polars as pl

_QUOTED = r"""["'][A-Za-z_][A-Za-z0-9_ .-]*["']\s?:\s*(?:"[^"]+"|'[^']+'|-?[0-9]+|\[[^\[\]{}]+\])"""
_LINES = r"""(?m)^[ \t>*-]*[A-Za-z_][A-Za-z0-9_ -]*:[ \t]+[^ \t\n{\[|>][^\n]*"""
_EQUALS = r"""[A-Za-z_][A-Za-z0-9_]*=(?:"[^"\n]+"|[^\s&,;"'<>=]+)"""
_READ = re.compile(r"""^[\s>*-]*["']?([^\W\d][\w .\-]{0,48}?)["']?\s*[:=]\s*(.*)$""", re.DOTALL)
_ITEM = re.compile(r'"([^"]{1,200})"|\'([^\']{1,200})\'')
_LONGEST = 2000
Pair = tuple[str, str]


def pairs_of(texts: pl.Series) -> set[Pair]:
    """The fields with their values in texts, of which no two are equal."""
    plain = texts.str.replace_all('\\"', '"', literal=True)
    found = pl.concat([
        plain.str.extract_all(pattern).explode().drop_nulls() for pattern in (_QUOTED, _LINES, _EQUALS)])
    return {pair for text in found.filter(found.str.len_bytes() < _LONGEST).unique() for pair in _read(text)}


@lru_cache(1 << 15)   # other files tell the same again
def _read(text: str) -> tuple[Pair, ...]:
    found = _READ.match(text)
    return tuple((found[1], value) for value in _values(found[2].strip())) if found else ()


def _values(text: str) -> list[str]:
    if text.startswith("["):
        return [_plain(one or other) for one, other in _ITEM.findall(text)]
    if len(text) > 1 and text[0] in "\"'" and text[-1] == text[0]:
        text = text[1:-1]
    return [_plain(text.strip())] if text.strip() else []


def _plain(text: str) -> str:
    """What JSON's escapes stand for."""
    if "\\" not in text:
        return text
    try:
        return str(json.loads(f'"{text}"'))
    except ValueError:
        return text
