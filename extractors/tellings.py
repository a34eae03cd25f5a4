"""What one log tells of a conversation, in a form in which logs of two kinds can be compared.

In: rows of a conversation as columns. Out: `LoggedTalk`, its parts (messages without instructions, calls), its answers, times
and ids; and `compare`, how two tellings go together. Sees through: missing results and instructions, texts that were cut,
other spaces, another order of keys. Does not see through: translated or reworded texts, other tool names, parts in another
order (but for two neighbours).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any, Literal, NamedTuple

import orjson

from extractors.formats.history import canonical

Relation = Literal["equal", "prefix", "fork", "other"]
"""`equal`: part by part the same. `prefix`: one ends earlier, and is the same so far. `fork`: they begin with the same parts
and go on differently. `other`: not even the first part is the same."""
_CUT = re.compile(r"[\s\[(<{]*(?:…|\.\.\.|truncated)"
                  r"(?:[^\n]{0,40}(?:truncated|chars|characters|bytes|more)[^\n]{0,20})?[\])>}]*\s*$")
_CUT_MARKED, _CUT_BARE = 24, 60
"""Characters that a text must keep to count as the beginning of another: with a mark that it was cut, and without."""
_HEAD = 24
_MIDNIGHT_US = 86_400_000_000
_ID = 12
"""An id of this many characters is made by chance, and no number of a call within its session."""


class SpokenPart(NamedTuple):
    """A message or call: `side` is who speaks, or the tool; `text` what it says or its arguments."""

    side: str
    text: str
    raw: str
    """Arguments as logged, without spaces; of a message, its text."""


@dataclass(slots=True, eq=False)
class LoggedTalk:
    """A conversation as one log tells it."""

    name: str
    store: tuple[str, str]
    """Source and format: one log of one kind, which tells no conversation twice."""
    rows: list[int]
    parts: list[SpokenPart]
    times: list[int | None]
    """Of each part, in microseconds."""
    answers: list[SpokenPart]
    ids: frozenset[str]
    """Ids of calls and messages that are made by chance, and the session's own."""
    identities: frozenset[str]

    @property
    def begins(self) -> int | None:
        return next((time for time in self.times if time is not None), None)

    @property
    def ends(self) -> int | None:
        return next((time for time in reversed(self.times) if time is not None), None)

    @property
    def has_days_alone(self) -> bool:
        """Whether its clock gives no time of day."""
        stated = {time for time in self.times if time is not None}
        return bool(stated) and all(time % _MIDNIGHT_US == 0 for time in stated)

    @property
    def n_characters(self) -> int:
        return sum(len(part.text) for part in self.parts)


def telling_of(name: str, rows: list[int], columns: dict[str, list[Any]], aliases: Iterable[str] = ()) -> LoggedTalk:
    """Return what these rows tell. `aliases`: other names of the session, in any log."""
    parts, times, answers = [], [], []
    ids, identities = {each for known_as in (name, *aliases) for each in _session_ids(known_as)}, set()
    for row in rows:
        kind, call_id = columns["kind"][row], columns["call_id"][row]
        if call_id is not None and is_unique_id(call_id):
            ids.add(call_id)
        if (identity := columns["name"][row]) is not None:
            identities.add(identity)
        if kind == "result":
            if (content := columns["content"][row]) is not None:
                answers.append(_whole(content))
            continue
        part = part_of(row, columns)
        if part.side not in ("system", "developer") and (part.text or kind == "call"):
            parts.append(part)
            times.append(columns["happened_at"][row])
    store = (columns["source"][rows[0]], columns["format"][rows[0]])
    return LoggedTalk(name, store, rows, parts, times, answers, frozenset(ids), frozenset(identities))


def part_of(row: int, columns: dict[str, list[Any]]) -> SpokenPart:
    """Return a message or call as a part."""
    if columns["kind"][row] == "call":
        raw = columns["arguments"][row] or ""
        return SpokenPart(f"call {columns['tool'][row]}", canonical(raw) or _plain(raw), "".join(raw.split()))
    text = _plain(columns["content"][row] or "")
    return SpokenPart(str(columns["role"][row]), text, text)


def _whole(content: str) -> SpokenPart:
    return SpokenPart("", _plain(content), "".join(content.split()) if content[:1] in "{[" else content)


def is_unique_id(text: str) -> bool:
    """Whether an id looks as if it were made by chance: long, with figures."""
    return len(text) >= _ID and sum(map(str.isdigit, text)) >= 3


def _session_ids(name: str) -> list[str]:
    bare = name.partition("~")[0].rpartition(":")[2].replace("-", "").lower()
    return [f"session {bare}"] if is_unique_id(bare) else []


def _plain(text: str) -> str:
    """Text without differences that two loggers make: spaces, and the order of keys of JSON."""
    if text[:1] in "{[":
        try:
            return orjson.dumps(orjson.loads(text), option=orjson.OPT_SORT_KEYS).decode()
        except (orjson.JSONDecodeError, TypeError):
            pass
    made = " ".join(text.split())
    return text if made == text else made   # a text that is as logged is held once


def head(telling: LoggedTalk) -> tuple[str, ...]:
    """Return the beginnings of what the users of a conversation write, else of all parts: equal where texts were cut."""
    spoken = [part for part in telling.parts if part.side == "user"] or telling.parts
    return tuple(part.text[:_HEAD].rstrip(".… ").casefold() for part in spoken)


def same_part(one: SpokenPart, two: SpokenPart) -> bool:
    """Whether two parts are one, or one is the beginning of the other."""
    return one.side == two.side and (one.text == two.text or _is_cut(one.text, two.text) or _is_cut(one.raw, two.raw))


def _is_cut(one: str, two: str) -> bool:
    for marked, whole in ((one, two), (two, one)):
        mark = _CUT.search(marked)
        if mark is not None and mark.start() >= _CUT_MARKED and whole.startswith(marked[:mark.start()].rstrip()):
            return True
    short, long = sorted((one, two), key=len)
    return len(short) >= _CUT_BARE and long.startswith(short)


def compare(one: LoggedTalk, two: LoggedTalk) -> Relation:
    """Return how two tellings go together; only what both tell counts."""
    sides = {part.side.split()[0] for part in one.parts} & {part.side.split()[0] for part in two.parts}
    first, second = _of(one, sides), _of(two, sides)
    n_same = 0
    while n_step := _step(first[n_same:n_same + 2], second[n_same:n_same + 2]):
        n_same += n_step
    if not n_same:
        return "other"
    if n_same < min(len(first), len(second)) or not _agree(one.answers, two.answers, len(first) == len(second)):
        return "fork"
    return "equal" if len(first) == len(second) else "prefix"


def _step(first: list[tuple[SpokenPart, int | None]], second: list[tuple[SpokenPart, int | None]]) -> int:
    """Return how many of the next parts are the same: two, where one log has them the other way round."""
    if not first or not second:
        return 0
    if same_part(first[0][0], second[0][0]):
        return 1
    if len(first) == len(second) == 2 and same_part(first[0][0], second[1][0]) and same_part(first[1][0], second[0][0]):
        return 2
    return 0


def _of(telling: LoggedTalk, sides: set[str]) -> list[tuple[SpokenPart, int | None]]:
    return [(part, time) for part, time in zip(telling.parts, telling.times, strict=True) if part.side.split()[0] in sides]


def _agree(one: Sequence[SpokenPart], two: Sequence[SpokenPart], is_whole: bool) -> bool:
    """Whether answers are the same, where both logs have them: all of the shorter list in any order, or cut."""
    if not one or not two:
        return True
    short, long = sorted((one, two), key=len)
    texts = {answer.text for answer in long}
    rest = [answer for answer in short if answer.text not in texts]
    n_other = sum(not any(same_part(answer, other) for other in long) for answer in rest)
    return n_other == 0 or (is_whole and n_other * 4 <= len(short))


def offsets(one: LoggedTalk, two: LoggedTalk) -> list[int]:
    """Return by how much the second clock is behind the first, part by part, in microseconds."""
    sides = {part.side.split()[0] for part in one.parts} & {part.side.split()[0] for part in two.parts}
    pairs = zip(_of(one, sides), _of(two, sides), strict=False)
    return [before[1] - after[1] for before, after in pairs if before[1] is not None and after[1] is not None]


def offset(one: LoggedTalk, two: LoggedTalk) -> float | None:
    """Return the median of `offsets`; None where a log has no times."""
    stated = offsets(one, two)
    return median(stated) if stated else None
