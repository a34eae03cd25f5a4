"""Clean events: remove secrets, and replace personal data by pseudonyms.

Event ids stay. Equal texts are cleaned once. What people said is searched again with the names of its session, for misspelt
ones: a rare word within one edit (Damerau 1964) of a name of five letters or more, found by deletions (SymSpell).

A name of two or three letters that somebody does things under is replaced where it is all the text of an element of a page.

Does not see: two mistakes in one word, short names, such names within other texts of pages."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Set
from functools import lru_cache

import polars as pl

from extractors.privacy.credentials import SECRET, cut_out, suspects
from extractors.privacy.fields import kind_of_identity
from extractors.privacy.logins import login_in, with_login
from extractors.privacy.people import ON_PATHS, People, PersonFact, states_who
from extractors.privacy.pseudonyms import Pseudonyms
from extractors.privacy.rewriting import Carried, Carrier

_TEXTS = ("content", "arguments", "value", "name", "session_id", "call_id", "requestor", "lossy")
_TOKENS = ("prompt_token_ids", "completion_token_ids", "logprobs", "token_ids")
"""Of a model's usage: they spell the text that was there before."""
_SPOKEN_KINDS = ("message", "reasoning", "feedback")
_BLANK = r"(?:\s|\\[nrt])*"
"""Spaces in a page, also as JSON writes them."""
_FIVE = re.compile(r"(?<![\w.#$€£-])\d{5}(?:-\d{4})?(?![\w-]|\.\d)")


class Cleaner:
    """Cleans events, piece by piece."""

    def __init__(self, people: People, pseudonyms: Pseudonyms) -> None:
        self._carrier = Carrier(people, pseudonyms)
        self._people, self._pseudonyms = people, pseudonyms
        self._names: dict[str, frozenset[str]] = {}
        self._zips: dict[str, frozenset[str]] = {}

    @property
    def met(self) -> set[PersonFact]:
        """What was replaced for its form alone: known from now on."""
        return self._carrier.met

    def events(self, events: pl.DataFrame) -> pl.DataFrame:
        if events.is_empty():
            return events
        on_paths = events["kind"].is_in(ON_PATHS)
        texts = events.select(*_TEXTS, tool=pl.when(on_paths).then("tool"))
        clean = self.texts(pl.concat(texts.get_columns()))   # all at once: the same stands in several
        columns = {name: clean.slice(at * events.height, events.height) for at, name in enumerate(texts.columns)}
        columns["name"] = self._identities(events, columns["name"])
        columns["arguments"] = self._logins(events["arguments"], columns["arguments"])
        columns["content"] = self._mentioned(events["content"], columns["content"])
        columns["value"] = self._on_pages(columns["value"])
        columns["tool"] = columns["tool"].zip_with(on_paths, events["tool"])
        made = events.with_columns(**columns)
        if events["usage"].null_count() < events.height:
            made = made.with_columns(pl.Series("usage", [_without_tokens(each) for each in events["usage"]], pl.String()))
        names: dict[str, set[str]] = {}   # words of names, and postal codes, in the texts of each session where some are
        zips: dict[str, set[str]] = {}
        sessions = events["session_id"].to_list()
        for column in ("content", "arguments", "value") if self._names else ():
            for session_id, text in zip(sessions, events[column].to_list(), strict=True):
                if text in self._names and session_id is not None:
                    names.setdefault(session_id, set()).update(self._names[text])
                    zips.setdefault(session_id, set()).update(self._zips[text])
        people = {session_id: frozenset(each & self._people.words) for session_id, each in names.items()}
        contents = made["content"].to_list()
        spoken = events.select("session_id", "content").with_row_index().filter(
            events["kind"].is_in(_SPOKEN_KINDS) & events["content"].is_not_null() & events["session_id"].is_in(list(people)))
        for at, session, before in spoken.iter_rows():
            contents[at] = self._correct_spelling(contents[at], before, people[session], zips[session])
        self._names, self._zips = {}, {}
        return made.with_columns(pl.Series("content", contents, pl.String())) if people else made

    def _identities(self, events: pl.DataFrame, cleaned: pl.Series) -> pl.Series:
        """Who did something, with those whom nothing but this place tells: a short or a plain name."""
        names = events["name"]
        same = events.select((states_who() & (pl.col("name") == cleaned)).fill_null(False).alias("same"))["same"]
        made = {name: self._pseudonyms.of(kind, name) for name in names.filter(same).unique()
                if name.lower() not in self._people.tools and (kind := kind_of_identity(name))}
        return cleaned.replace(made) if made else cleaned

    def _logins(self, before: pl.Series, cleaned: pl.Series) -> pl.Series:
        """Return arguments whose logins, where nothing else tells that they are people, are as those who do something."""
        made = {}
        typed = before.str.contains(SECRET, literal=True).fill_null(False)
        for text, clean in set(zip(before.filter(typed), cleaned.filter(typed), strict=True)):
            was, login = login_in(text), login_in(clean)
            if login is not None and login == was and (kind := kind_of_identity(login.name)):
                made[clean] = with_login(clean, login, self._pseudonyms.of(kind, login.name))
        return cleaned.replace(made) if made else cleaned

    def _mentioned(self, before: pl.Series, cleaned: pl.Series) -> pl.Series:
        """Return texts with those who are mentioned (`<@ana>`) called as they are where they write themselves."""
        def replaced(text: str, clean: str) -> str:
            for name in sorted(set(_MENTION.findall(text)) & set(_MENTION.findall(clean)), reverse=True):
                kind = kind_of_identity(name) if name.lower() not in self._people.tools else None
                if kind is not None:
                    clean = re.sub(rf"<@{re.escape(name)}(?![^>|\s])", f"<@{self._pseudonyms.of(kind, name)}", clean)
            return clean

        has_one = cleaned.str.contains("<@", literal=True).fill_null(False)
        if not has_one.any():
            return cleaned
        pairs = set(zip(before.filter(has_one), cleaned.filter(has_one), strict=True))
        made = {clean: replaced(text, clean) for text, clean in sorted(pairs)}
        return cleaned.replace(made)

    def _on_pages(self, cleaned: pl.Series) -> pl.Series:
        """Return answers in which short logins are as elsewhere, where one is all the text of an element of a page."""
        logins = sorted(self._people.logins - self._people.tools)
        if not logins:
            return cleaned
        alone = re.compile(rf"(>{_BLANK})({'|'.join(map(re.escape, logins))})(?={_BLANK}<)")
        has_one = cleaned.str.contains(r"</", literal=True).fill_null(False)
        made = {text: alone.sub(lambda match: match[1] + self._pseudonyms.of("id", match[2]), text)
                for text in cleaned.filter(has_one).unique()}
        made = {text: clean for text, clean in made.items() if clean != text}
        return cleaned.replace(made) if made else cleaned

    def texts(self, texts: pl.Series) -> pl.Series:
        different = texts.drop_nulls().unique()
        if different.is_empty():
            return texts
        made: list[str] = []
        for text, carried in zip(different, self._carried(different), strict=True):
            made.append(carried.text)
            if carried.names or carried.zips:
                self._names[text], self._zips[text] = carried.names, carried.zips
        changed = different != pl.Series(made)
        if not changed.any():
            return texts
        new = pl.Series(made).filter(changed)
        return texts.replace(different.filter(changed), new)

    def _carried(self, texts: pl.Series) -> Iterator[Carried]:
        cached = [self._carrier.cached(text) for text in texts]
        new = texts.filter(pl.Series([each is None for each in cached], dtype=pl.Boolean()))
        suspect = iter(suspects(new))
        for text, carried in zip(texts, cached, strict=True):
            yield carried or self._carrier.carry(text, cut_out(text) if next(suspect) else text)

    def _correct_spelling(self, text: str, before: str, names: frozenset[str], zips: set[str]) -> str:
        new_zips = zips - self._zips.get(before, frozenset())
        if new_zips:
            text = _FIVE.sub(lambda match: self._pseudonyms.of("zip", match[0]) if match[0] in new_zips else match[0], text)
        return replace_misspelt(text, names, self._people.rare, self._pseudonyms)


def _without_tokens(usage: str | None) -> str | None:
    if usage is None or not any(name in usage for name in _TOKENS):
        return usage
    document = json.loads(usage)
    if not isinstance(document, dict):
        return None
    return json.dumps({name: value for name, value in document.items() if name not in _TOKENS})


LEAST = 5
_MENTION = re.compile(r"<@([^>|\s]{1,100})")
_WORD = re.compile(r"[^\W\d_]{4,}")


def replace_misspelt(text: str, names: frozenset[str], rare: Set[str], pseudonyms: Pseudonyms) -> str:
    """Replace the misspelt names in a text."""
    near = _near(names)
    if not near or rare.isdisjoint(_WORD.findall(text.lower())):
        return text

    def replaced(match: re.Match[str]) -> str:
        word = match[0].lower()
        if word not in rare or near.get(word) == word:
            return match[0]
        name = next((near[each] for each in (word, *_shorter(word)) if each in near and _is_one_edit(word, near[each])), None)
        return pseudonyms.word(name if match[0].islower() else name.upper() if match[0].isupper() else name.title()
                               ) if name else match[0]

    return _WORD.sub(replaced, text)


@lru_cache(1 << 8)   # the names of a session are asked for with each of its texts
def _near(names: frozenset[str]) -> dict[str, str]:
    """Names, and what is left of them without one letter -> the name."""
    near: dict[str, str] = {}
    for name in sorted(names):
        if len(name) >= LEAST:
            for each in (name, *_shorter(name)):
                near.setdefault(each, name)
    return near


def _shorter(word: str) -> list[str]:
    return [word[:at] + word[at + 1:] for at in range(len(word))]


def _is_one_edit(one: str, other: str) -> bool:
    if abs(len(one) - len(other)) > 1:
        return False
    at = next((index for index, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))
    a, b = one[at:], other[at:]
    return a[1:] == b or a == b[1:] or a[1:] == b[1:] or (a[:2] == b[1::-1] and a[2:] == b[2:])
