"""Visits of a site in, how it writes instants out: the formats of its texts and addresses, and how far ahead of UTC each is.

A format is learnt of texts that have the same fields with the same signs between them. A number above
twelve decides which of two is the day, one below ten whether numbers are padded, one above twelve whether hours go to 24: all
texts must agree, and the format must write each of them again. How far ahead it is follows from the difference between posts
and the times that the page after them shows. What no text decides is no format.
Does not see: names of months that are not English, hours to twelve without a half, two zones in one format, summer time: one
zone holds for all recordings.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime, timedelta
from itertools import pairwise
from typing import NamedTuple

from env_builder.runtime.clock import MONTHS
from env_builder.runtime.site.times import SiteTimes, TimeFormat, instants_in
from env_builder.runtime.site.visits import SiteVisit

__all__ = ["learn_formats", "learn_times", "learn_zone"]

_LEAST, _LEAST_TEXTS, _LEAST_SESSIONS = 6, 3, 2
"""Texts of a format, those that differ, and sessions that saw it."""
_QUARTER, _SLACK, _FARTHEST = 900, 5, 14 * 3_600
"""Zones are multiples of a quarter of an hour; seconds between a post and what is written of it; the farthest zone."""
_LAST_MONTH, _TEN, _NOON = 12, 10, 12
_SHORT = [month[:3] for month in MONTHS]
_NAME = f"(?:{'|'.join([*MONTHS, *_SHORT])})"
_TIME = (r"(?P<glue>T|,? at | - |, |[ ,.]|&nbsp;)(?:(?P<spoken>(?:\d{1,2}(?::\d\d)? [ap]\.m\.|noon|midnight))"
         r"|(?P<hour>\d{1,2})(?P<colon>:|%3A|\.)(?P<minute>\d\d)(?:(?P<colon_2>:|%3A|\.)(?P<second>\d\d))?"
         r"(?:(?P<space>\s?)(?P<half>AM|PM|am|pm))?)(?P<utc>Z| UTC| GMT|)")
_DAYS = (r"(?P<year>\d{4})(?P<sign>[-/.])(?P<month>\d{1,2})(?P<sign_2>(?P=sign))(?P<day>\d{1,2})",
         r"(?P<one>\d{1,2})(?P<sign>[-/.])(?P<other>\d{1,2})(?P<sign_2>(?P=sign))(?P<year>\d{4}|\d\d)",
         rf"(?P<day>\d{{1,2}}(?:st|nd|rd|th)?)(?P<sign>[ -])(?P<name>{_NAME})(?P<sign_2>\.? |, |-)(?P<year>\d{{4}})",
         rf"(?P<name>{_NAME})(?P<sign>\.? )(?P<day>\d{{1,2}}(?:st|nd|rd|th)?)(?P<sign_2>,? )(?P<year>\d{{4}})")
_WRITINGS = [re.compile(rf"(?<![\w./-]){day}(?:{_TIME})?(?!\w)") for day in _DAYS]


class _Written(NamedTuple):
    """A text that may name an instant."""

    kinds: tuple[str, ...]
    """Its fields, then the signs behind each."""
    texts: tuple[str, ...]
    text: str
    signs: tuple[str, ...]


def learn_times(sessions: Sequence[Sequence[SiteVisit]]) -> SiteTimes:
    """Return how a site writes instants, in its zone."""
    zone = learn_zone(sessions)
    return SiteTimes(zone, tuple(learn_formats(sessions, zone)))


def learn_formats(sessions: Sequence[Sequence[SiteVisit]], zone: int = 0) -> list[TimeFormat]:
    """Return the formats in which a site writes instants, the most frequent first.

    `zone`: by how many seconds times are ahead of UTC where posts don't tell of a format."""
    texts_of: dict[tuple[tuple[str, ...], tuple[str, ...]], dict[str, _Written]] = defaultdict(dict)
    n_texts: Counter[tuple[tuple[str, ...], tuple[str, ...]]] = Counter()
    met: dict[tuple[tuple[str, ...], tuple[str, ...]], set[int]] = defaultdict(set)
    for number, session in enumerate(sessions):
        for value in dict.fromkeys(value for visit in session if visit.is_page for value in visit.values.values() if value):
            for each in _written_in(value):
                key = each.kinds, each.signs
                texts_of[key][each.text] = each
                n_texts[key] += 1
                met[key].add(number)
    formats = []
    for key, n in n_texts.most_common():
        if n >= _LEAST and len(texts_of[key]) >= _LEAST_TEXTS and len(met[key]) >= _LEAST_SESSIONS:
            parts = _parts(list(texts_of[key].values()))
            if parts is not None and all(_is_written(TimeFormat(parts), text) for text in texts_of[key]):
                is_utc = any(sign.strip() in ("Z", "UTC", "GMT") for sign in parts[-1:])
                ahead = 0 if is_utc else _zone_of(TimeFormat(parts), sessions)
                formats.append(TimeFormat(parts, zone if ahead is None else ahead))
    return formats


def learn_zone(sessions: Iterable[Sequence[SiteVisit]]) -> int:
    """Return by how many seconds times on pages are ahead of UTC: by what posts differ from times that pages show next."""
    shift = _agreed_zone((post, {at for value in page.values.values() if value for at in instants_in(value, SiteTimes())})
                       for session in sessions for post, page in pairwise(session) if post.is_write and page.is_page)
    return shift or 0


def _zone_of(format_: TimeFormat, sessions: Iterable[Sequence[SiteVisit]]) -> int | None:
    """Return by how many seconds a format's times are ahead of UTC; None where posts don't tell."""
    return _agreed_zone(((post, {match.at for value in page.values.values() if value for match in format_.instants(value)})
                       for session in sessions for post, page in pairwise(session) if post.is_write and page.is_page),
                      format_.unit) if format_.unit < timedelta(days=1) else None


def _agreed_zone(shown: Iterable[tuple[SiteVisit, Iterable[datetime]]], unit: timedelta = timedelta(seconds=1)) -> int | None:
    """Return by how much instants on pages differ from the posts before them, None where they don't tell."""
    votes: Counter[int] = Counter()
    n_posts = 0
    for post, instants in shown:
        shifts = {shift for at in instants if (shift := _shift(at, post.at, unit.total_seconds())) is not None}
        votes.update(shifts)
        n_posts += bool(shifts)
    best = max(votes, key=lambda shift: (votes[shift], -abs(shift)), default=0)
    return best if votes[best] >= max(_LEAST, n_posts / 2) else None


def _shift(at: datetime, post: datetime, unit: float) -> int | None:
    seconds = (at - post).total_seconds()
    shift = round(seconds / _QUARTER) * _QUARTER
    early = unit if unit > 1 else _SLACK   # a minute that is shown began before the post
    return shift if -early <= seconds - shift <= _SLACK and abs(shift) <= _FARTHEST else None


def _written_in(text: str) -> Iterator[_Written]:
    if not any(map(str.isdigit, text)):
        return
    for writing in _WRITINGS:
        for match in writing.finditer(text):
            groups = [(name, each) for name, each in sorted(match.groupdict().items(), key=lambda item: match.start(item[0]))
                      if each is not None]
            kinds, texts, signs = [], list[str](), list[str]()
            for name, each in groups:
                if name in ("year", "month", "day", "one", "other", "name", "hour", "minute", "second", "half", "spoken"):
                    signs += [""] * (len(texts) - len(signs))
                    kinds.append(_kind(name, each))
                    texts.append(each)
                else:
                    signs += [""] * (len(texts) - 1 - len(signs)) + [each]
            signs = (signs + [""] * len(texts))[:len(texts)]
            yield _Written(tuple(kinds), tuple(texts), match[0], tuple(signs))


def _kind(name: str, text: str) -> str:
    if name == "year":
        return f"year {len(text)}"
    if name == "day" and not text.isdigit():
        return "ordinal"
    return f"half {text}"[:5] + ("upper" if text.isupper() else "lower") if name == "half" else name


def _parts(written: Sequence[_Written]) -> tuple[str, ...] | None:
    """Return the fields of texts of one shape, with the signs behind each; None where they don't decide."""
    kinds, signs = written[0].kinds, written[0].signs
    fields: list[str | None] = []
    for index, kind in enumerate(kinds):
        texts = [each.texts[index] for each in written]
        if kind in ("one", "other"):
            kind = _order(kind, [(int(each.texts[kinds.index("one")]), int(each.texts[kinds.index("other")]))
                                 for each in written])
        fields.append(_field(kind, texts, is_half="half upper" in kinds or "half lower" in kinds))
    if None in fields:
        return None
    return tuple(part for field, sign in zip(fields, signs, strict=True) for part in (field or "", sign))


def _order(kind: str, pairs: Sequence[tuple[int, int]]) -> str:
    """Return whether a number is the day or the month, by those that can be no month."""
    is_first = any(one > _LAST_MONTH for one, _ in pairs)
    if is_first == any(other > _LAST_MONTH for _, other in pairs):
        return "undecided"
    return "day" if is_first == (kind == "one") else "month"


def _field(kind: str, texts: Sequence[str], *, is_half: bool) -> str | None:
    if kind in _FIXED:
        return _FIXED[kind]
    if kind == "name":
        is_full, is_short = any(each not in _SHORT for each in texts), any(each not in MONTHS for each in texts)
        return None if is_full == is_short else "B" if is_full else "b"
    if kind not in _PADDED:
        return None
    if kind == "hour" and not is_half and all(1 <= int(each) <= _NOON for each in texts):
        return None
    low = [each for each in texts if int(each) < _TEN]
    is_padded = all(len(each) == 2 for each in low)
    if not low or (not is_padded and any(len(each) == 2 for each in low)):
        return None
    padded, plain = _PADDED["hour of half" if kind == "hour" and is_half else kind]
    return padded if is_padded else plain


_FIXED = {"year 4": "Y", "year 2": "y", "ordinal": "o", "minute": "M", "second": "S", "half upper": "p", "half lower": "q",
          "spoken": "P"}
_PADDED = {"month": ("m", "n"), "day": ("d", "e"), "hour": ("H", "k"), "hour of half": ("I", "l")}
"""Fields of numbers: with a zero before those below ten, and without."""


def _is_written(format_: TimeFormat, text: str) -> bool:
    return any((match.start, match.end) == (0, len(text)) for match in format_.instants(text))
