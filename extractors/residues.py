"""Remove what a harness left in users' messages: text that is the same in many sessions, at the same edge of other words.

In: turns. Out: turns whose user messages lack such text; a message of nothing else has no content (null), unless its user says
nothing else at all: then nobody would know what the session is about. Two kinds count:

- a mark: capital letters between signs (`###STOP###`, `<|END|>`, `[[DONE]]`) that begins or ends messages of several sessions;
- a prompt: lines without a digit that begin or end the first message of most sessions, while what is left differs.

Sees the letters alone, per service. Does not see: marks in plain words, a constant line that holds a number (it may be a fact
that the agent needs), text that a harness varied.
"""

from __future__ import annotations

import re
from collections import Counter

import polars as pl

_MARK = r"(?:[#<>\[\](){}|*=_~@$%^&-]{2,})\s?[A-Z][A-Z0-9 _-]*[A-Z0-9]\s?(?:[#<>\[\](){}|*=_~@$%^&-]{2,})"
_AT_EDGE = re.compile(rf"^\s*({_MARK})|({_MARK})\s*$")
FEWEST_SESSIONS = 3
"""Sessions with a mark, from which a harness set it."""
MANY_SESSIONS, MOST_SESSIONS = 10, 0.5
"""Sessions of a service, and the share whose first message has a line at its edge, from which the line is a harness's."""
DIFFERENT = 0.3
"""Distinct texts that are left, as a share of these sessions, from which people wrote the rest."""
LINE_WORDS = 5
"""Words of the shortest line that is a part of a prompt."""
_FIRST, _LAST = 0, -1


_OWN = (pl.col("kind") == "message") & (pl.col("role") == "user") & (pl.col("content").fill_null("") != "")


def without_residues(turns: pl.DataFrame) -> pl.DataFrame:
    """Return turns whose user messages lack the text that a harness added; order and number of turns stay."""
    return without(residues(turns.lazy()), turns)


def residues(turns: pl.LazyFrame) -> pl.DataFrame:
    """Return the messages that have such text, without it: columns turn_id, bare, changed."""
    columns = "service", "session_id", "position", "turn_id", "content"
    messages = turns.filter(_OWN).select(columns).sort("service", "session_id", "position").collect()
    cleaned: dict[str, str | None] = {}
    for _, rows in messages.group_by("service", maintain_order=True):
        sessions, ids, texts = (rows[name].to_list() for name in ("session_id", "turn_id", "content"))
        bare = _without_prompts(sessions, _without_marks(sessions, texts))
        worded = {session for session, text in zip(sessions, bare, strict=True) if text.strip()}
        bare = [text if session in worded else old for session, text, old in zip(sessions, bare, texts, strict=True)]
        cleaned |= {name: text.strip() or None for name, text, old in zip(ids, bare, texts, strict=True) if text != old}
    return pl.DataFrame({"turn_id": list(cleaned), "bare": list(cleaned.values()), "changed": [True] * len(cleaned)},
                        schema={"turn_id": pl.String, "bare": pl.String, "changed": pl.Boolean})


def without(changed: pl.DataFrame, turns: pl.DataFrame) -> pl.DataFrame:
    """Put the texts of `residues` in the place of those that the turns have."""
    if changed.is_empty():
        return turns
    joined = turns.join(changed, on="turn_id", how="left", maintain_order="left")
    content = pl.when(pl.col("changed").fill_null(False) & _OWN).then("bare").otherwise("content")
    return joined.with_columns(content.alias("content")).drop("bare", "changed")


def _without_marks(sessions: list[str], texts: list[str]) -> list[str]:
    """Remove marks of several sessions from the edges of texts."""
    using: dict[str, set[str]] = {}
    for session_id, text in zip(sessions, texts, strict=True):
        for mark in _marks(text):
            using.setdefault(mark, set()).add(session_id)
    marks = sorted((mark for mark, own in using.items() if len(own) >= FEWEST_SESSIONS), key=lambda mark: (-len(mark), mark))
    return [_stripped(text, marks) for text in texts]


def _marks(text: str) -> set[str]:
    return {mark for groups in _AT_EDGE.findall(text) for mark in groups if mark}


def _stripped(text: str, marks: list[str]) -> str:
    before = None
    while text != before:
        before = text
        for mark in marks:
            trimmed = text.strip()
            if trimmed.endswith(mark) or trimmed.startswith(mark):
                text = trimmed.removesuffix(mark).removeprefix(mark).strip()
    return text


def _without_prompts(sessions: list[str], texts: list[str]) -> list[str]:
    """Remove lines that most sessions share from the edges of their first messages."""
    first = {session_id: place for place, session_id in reversed(list(enumerate(sessions)))}
    if len(first) < MANY_SESSIONS:
        return texts
    lines = {place: texts[place].splitlines() for place in first.values()}
    for edge in (_LAST, _FIRST):
        while (shared := _shared_line(lines, edge)) is not None:
            for own in lines.values():
                if len(own) > 1 and own[edge].strip() == shared:
                    del own[edge]
                    while own and not own[edge].strip():
                        del own[edge]
    return ["\n".join(lines[place]) if place in lines and len(lines[place]) < len(text.splitlines()) else text
            for place, text in enumerate(texts)]


def _shared_line(lines: dict[int, list[str]], edge: int) -> str | None:
    """Return the line at the edge of most texts, if other words are left in them that differ."""
    counts = Counter(own[edge].strip() for own in lines.values() if len(own) > 1)
    line, n = min(counts.items(), key=lambda each: (-each[1], each[0]), default=("", 0))
    is_prose = len(line.split()) >= LINE_WORDS and not any(map(str.isdigit, line))
    if n < MOST_SESSIONS * len(lines) or not is_prose:
        return None
    rest = {tuple(own[:edge] if edge else own[1:]) for own in lines.values() if own and own[edge].strip() == line}
    return line if len(rest) >= DIFFERENT * n else None
