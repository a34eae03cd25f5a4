"""Fields with their values, as they stand in texts: JSON (also inside a string of JSON), Python's way, YAML, `key=value`.

In: a frame's column of texts. Out: (field, value). It reads text, no documents: so what is cut off, wrapped or logged twice
over is read all the same.
"""

from __future__ import annotations

import json
import re
from functools import lru_cache

import polars as pl

_ESCAPE = r"""\\+(["'])"""
_OPENED = r"""["']([\[{]+\s*["'])"""
_QUOTED = r"""["'][\p{L}_][\p{L}0-9_ .-]*["']\s?:\s*(?:"[^"]+"|'[^']+'|-?[0-9]+|\[[^\[\]{}]+\])"""
_LINES = r"""(?m)^[ \t>*-]*[A-Za-z_][A-Za-z0-9_ -]*:[ \t]+[^ \t\n{\[|>][^\n]*"""
_TAG = r"""<[A-Za-z_][A-Za-z0-9_.-]*>[^<>\n]{1,200}</"""
_NAMED = r"""["'](?:key|name|field|label|attribute)["']\s*:\s*"[A-Za-z_][^"]{0,40}"\s*,\s*["']value["']\s*:\s*"[^"]+\""""
_EQUALS = r"""[A-Za-z_][A-Za-z0-9_]*=(?:"[^"\n]+"|[^\s&,;"'<>=]+)"""
_READ = re.compile(r"""^[\s>*-]*["']?([^\W\d][\w .\-]{0,48}?)["']?\s*[:=]\s*(.*)$""", re.DOTALL)
_TAGGED = re.compile(r"<([^>]+)>([^<]+)</")
_CALLED = re.compile(r'["\']\s*:\s*"([^"]+)"\s*,\s*["\']value["\']\s*:\s*"([^"]+)"')
_ITEM = re.compile(r'"([^"]{1,200})"|\'([^\']{1,200})\'')
_LONGEST = 2000
Pair = tuple[str, str]


def unescaped(texts: pl.Series) -> pl.Series:
    """The texts with the JSON in their strings as it would stand alone."""
    return texts.str.replace_all(_ESCAPE, "$1").str.replace_all(_OPENED, "$1")


def pairs_of(texts: pl.Series) -> set[Pair]:
    """The fields with their values in texts that are `unescaped`."""
    made: set[Pair] = set()
    for pattern, read in ((_QUOTED, _read), (_LINES, _read), (_EQUALS, _read), (_TAG, _tagged), (_NAMED, _tagged)):
        found = texts.str.extract_all(pattern).explode().drop_nulls()
        made.update(pair for text in found.filter(found.str.len_bytes() < _LONGEST).unique() for pair in read(text))
    return made


def _tagged(text: str) -> tuple[Pair, ...]:
    """Of a document's tag, or of a name and a value that stand in fields of their own."""
    found = _TAGGED.match(text) or _CALLED.search(text)
    return ((found[1].strip(), _plain(found[2].strip())),) if found else ()


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
