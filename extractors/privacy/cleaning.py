"""Events in, the same events without secrets and with pseudonyms out.

In: the events of one reading, the dictionary of the corpus, the owner's pseudonyms. Out: the events with the same ids, and with
other texts where somebody stood. Equal texts are cleaned once. What people said is looked through a second time with the names
of its session, for those that are misspelt.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

import polars as pl

from extractors.privacy.carrying import Carried, Carrier
from extractors.privacy.fields import kind_of_identity
from extractors.privacy.finding import ON_PATHS, states_who
from extractors.privacy.people import Known, People
from extractors.privacy.pseudonyms import Pseudonyms
from extractors.privacy.secrets import cut_out, suspects
from extractors.privacy.spelling import mended

_TEXTS = ("content", "arguments", "value", "name", "session_id", "call_id", "requestor", "lossy")
_TOKENS = ("prompt_token_ids", "completion_token_ids", "logprobs", "token_ids")
"""Of a model's usage: they spell the text that was there before."""
_SAID = ("message", "reasoning", "feedback")
_FIVE = re.compile(r"(?<![\w.#$€£-])\d{5}(?:-\d{4})?(?![\w-]|\.\d)")


class Cleaner:
    """Cleans events, piece by piece."""

    def __init__(self, people: People, pseudonyms: Pseudonyms) -> None:
        self._carrier = Carrier(people, pseudonyms)
        self._people, self._pseudonyms = people, pseudonyms
        self._names: dict[str, frozenset[str]] = {}
        self._zips: dict[str, frozenset[str]] = {}

    @property
    def met(self) -> set[Known]:
        """What was replaced for its form alone: known from now on."""
        return self._carrier.met

    def events(self, events: pl.DataFrame) -> pl.DataFrame:
        """The events, clean."""
        if events.is_empty():
            return events
        on_paths = events["kind"].is_in(ON_PATHS)
        texts = events.select(*_TEXTS, tool=pl.when(on_paths).then("tool"))
        clean = self.texts(pl.concat(texts.get_columns()))   # all at once: the same stands in several
        columns = {name: clean.slice(at * events.height, events.height) for at, name in enumerate(texts.columns)}
        columns["name"] = self._identities(events, columns["name"])
        columns["tool"] = columns["tool"].zip_with(on_paths, events["tool"])
        made = events.with_columns(**columns)
        if events["usage"].null_count() < events.height:
            made = made.with_columns(pl.Series("usage", [_without_tokens(each) for each in events["usage"]], pl.String()))
        return self._second_look(made, events)

    def _identities(self, events: pl.DataFrame, cleaned: pl.Series) -> pl.Series:
        """Who did something, with those whom nothing but this place tells: a short or a plain name."""
        names = events["name"]
        same = events.select((states_who() & (pl.col("name") == cleaned)).fill_null(False).alias("same"))["same"]
        made = {name: self._pseudonyms.of(kind, name) for name in names.filter(same).unique()
                if name.lower() not in self._people.tools and (kind := kind_of_identity(name))}
        return cleaned.replace(made) if made else cleaned

    def texts(self, texts: pl.Series) -> pl.Series:
        """Texts, each cleaned."""
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
        """What becomes of each text; few are new, for other files tell the same."""
        held = [self._carrier.held(text) for text in texts]
        new = texts.filter(pl.Series([each is None for each in held], dtype=pl.Boolean()))
        suspect = iter(suspects(new))
        for text, carried in zip(texts, held, strict=True):
            yield carried or self._carrier.carry(text, cut_out(text) if next(suspect) else text)

    def _second_look(self, made: pl.DataFrame, events: pl.DataFrame) -> pl.DataFrame:
        """What people said, with the names and postal codes of its session."""
        names, zips = self._of_sessions(events)
        contents = made["content"].to_list()
        said = events.select("session_id", "content").with_row_index().filter(
            events["kind"].is_in(_SAID) & events["content"].is_not_null() & events["session_id"].is_in(list(names)))
        for at, session, before in said.iter_rows():
            contents[at] = self._mended(contents[at], before, names[session], zips[session])
        self._names, self._zips = {}, {}
        return made.with_columns(pl.Series("content", contents, pl.String())) if names else made

    def _of_sessions(self, events: pl.DataFrame) -> tuple[dict[str, frozenset[str]], dict[str, set[str]]]:
        """Words of names, and postal codes, in the texts of each session where some are."""
        names: dict[str, set[str]] = {}
        zips: dict[str, set[str]] = {}
        sessions = events["session_id"].to_list()
        for column in ("content", "arguments", "value") if self._names else ():
            for session, text in zip(sessions, events[column].to_list(), strict=True):
                if text in self._names and session is not None:
                    names.setdefault(session, set()).update(self._names[text])
                    zips.setdefault(session, set()).update(self._zips[text])
        return {session: frozenset(each & self._people.words) for session, each in names.items()}, zips

    def _mended(self, text: str, before: str, names: frozenset[str], zips: set[str]) -> str:
        known = zips - self._zips.get(before, frozenset())
        if known:
            text = _FIVE.sub(lambda found: self._pseudonyms.of("zip", found[0]) if found[0] in known else found[0], text)
        return mended(text, names, self._people.rare, self._pseudonyms)


def _without_tokens(usage: str | None) -> str | None:
    if usage is None or not any(name in usage for name in _TOKENS):
        return usage
    told = json.loads(usage)
    return json.dumps({name: value for name, value in told.items() if name not in _TOKENS}) if isinstance(told, dict) else None
