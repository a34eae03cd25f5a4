"""Fields with their values, as they stand in texts: JSON (also inside a string of JSON), Python's way, YAML, `key=value`.

In: a frame's column of texts. Out: (field, value) -> how many different texts hold it. It reads text, no documents: so what is
cut off, wrapped or logged twice over is read all the same.
"""

from __future__ import annotations

import json
import re

import polars as pl

_QUOTED = r"""["'][A-Za-z_][A-Za-z0-9_ .-]*["']\s?:\s*(?:"[^"]+"|'[^']+'|-?[0-9]+|\[[^\[\]{}]+\])"""
_LINES = r"""(?m)^[ \t>*-]*[A-Za-z_][A-Za-z0-9_ -]*:[ \t]+[^ \t\n{\[|>][^\n]*"""
_EQUALS = r"""[A-Za-z_][A-Za-z0-9_]*=(?:"[^"\n]+"|[^\s&,;"'<>=]+)"""
_READ = re.compile(r"""^[\s>*-]*["']?([^\W\d][\w .\-]{0,48}?)["']?\s*[:=]\s*(.*)$""", re.DOTALL)
_ITEM = re.compile(r'"([^"]{1,200})"|\'([^\']{1,200})\'')
_LONGEST = 2000
Pair = tuple[str, str]


def pairs_of(texts: pl.Series) -> dict[Pair, int]:
    """The fields with their values in texts, of which no two are equal."""
    plain = texts.str.replace_all('\\"', '"', literal=True)
    found = pl.concat([
        plain.str.extract_all(pattern).list.unique().explode().drop_nulls() for pattern in (_QUOTED, _LINES, _EQUALS)])
    counted = found.to_frame("pair").group_by("pair").len()
    made: dict[Pair, int] = {}
    for text, n in counted.filter(pl.col("pair").str.len_bytes() < _LONGEST).iter_rows():
        if read := _READ.match(text):
            for value in _values(read[2].strip()):
                made[read[1], value] = made.get((read[1], value), 0) + n
    return made


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
