"""What the texts of a corpus tell of people: values of identifying fields, and names that stand after a cue.

In: the events of readings, one after the other. Out: sets and counts, that are the same in whatever order they came; `people`
judges them. What it sees: fields (`pairs`), names that introduce themselves, are addressed, or are made of a common given name
and another word. What it does not see: a rare name without any cue.
"""

from __future__ import annotations

import re
from collections import Counter
from secrets import randbits

import polars as pl

from extractors.privacy.fields import NOUNS
from extractors.privacy.kept import is_given, is_household, is_listed, is_plain
from extractors.privacy.letters import lowered
from extractors.privacy.pairs import Pair, pairs_of, unescaped
from extractors.privacy.records import id_behind

ON_PATHS = ("request", "business", "log")
"""Kinds of events whose `tool` is text of the log."""
_OF_NOBODY = ("feedback", "outcome", "correction", "row_change", "link")
"""Kinds of events whose `name` says what, not who."""
_BEHIND = r"(?:/home)?/[A-Za-z_]+/[\w~-]*[0-9][^/?#\s]*"
TEXTS = ("content", "arguments", "value", "name")
_NAME = r"\p{L}[\p{L}'’\-]+"
_SURE = (r"my (?:full |last |first )?name(?: is|'s|:)|name is|named|mr\.?|mrs\.?|ms\.?|mx\.?|dr\.?|prof\.?|herr|frau|"
         r"mein name ist|ich hei(?:ß|ss)e|je m'appelle|me llamo|mi nombre es|mi chiamo|meu nome é|mijn naam is")
_WEAK = (r"on behalf of|miss|i'm|i am|this is|speaking with|hi|hello|hey|dear|regards,|sincerely,|thanks,|thank you,|called|"
         r"hallo|liebe|lieber|ich bin|bonjour|hola|soy")
_TITLE = r"(?:(?:mr|mrs|ms|mx|dr|prof|med|herr|frau)\b\.?\s+)*"
_CUES = tuple((rf"(?i)\b(?:{cue})\s+{_TITLE}{_NAME}(?: {_NAME}){{0,2}}", re.compile(rf"(?i)(?:{cue})\s+{_TITLE}(.*)"),
               cue == _SURE) for cue in (_SURE, _WEAK))
"""A cue with the words behind it, these alone, and whether they are a name however rare."""
_WRITTEN = r"\p{Lu}[\p{L}'’\-]+(?: \p{Lu}\.)?(?: \p{Lu}[\p{L}'’\-]+){1,2}"
"""A name of two or three words."""
_NOUN = "(?:" + "|".join(sorted(NOUNS)) + "|doctor|nurse|driver)s?"
_INNER = re.compile(r'"name"\s*:\s*"([^"]+)"')
_PAIR = r"\b\p{Lu}[\p{Ll}'’\-]+ (?:\p{Lu}\. )?\p{Lu}[\p{L}'’\-]+"
_PLACES = (
    (r"\b(?:[Mm]y name is|Mr|Mrs|Ms|Mx|Dr|Prof|Herrn?|Frau)\.?\s+(?:(?:Dr|Prof|med)\.?\s+)*"
     r"\p{Lu}[\p{L}'’\-]+(?: \p{Lu}[\p{L}'’\-]+){0,2}",
     re.compile(r"^(?:[Mm]y name is|\w+\.?)\s+(?:(?:Dr|Prof|med)\b\.?\s+)*(.*)")),
    (rf"{_WRITTEN}[\\\"']{{0,2}} ?<[\w.+%-]+@", re.compile(r"^([^\\\"<]+)")),
    (rf"\"{_NOUN}\"\s*:\s*\[?\s*\{{[^{{}}]{{0,400}}?\"name\"\s*:\s*\"{_WRITTEN}\"", _INNER),
    (rf"\"name\"\s*:\s*\"{_WRITTEN}\"[^{{}}]{{0,400}}?\"(?:(?i:\w*birth\w*)|dob|gender|nationality)\"",
     _INNER),
)
"""Where names are written out, and the name there: in an object that is called a person, or has what only persons have."""

_LATELY = 1 << 18
"""Texts of which is kept in mind that they were seen."""
_TOGETHER = 1 << 23
"""Bytes of texts that are looked at together."""
_NONE = pl.DataFrame(schema={"text": pl.String(), "said": pl.Boolean()})


def states_who() -> pl.Expr:
    """Whether an event's `name` is an identity, and no hash of one."""
    return ~pl.col("kind").is_in(_OF_NOBODY) & ~pl.col("name").str.starts_with("cookie:")


class Finding:
    """What was seen so far."""

    def __init__(self) -> None:
        self.pairs: set[Pair] = set()
        self.names: set[tuple[str, ...]] = set()
        """Words of names that stood after a cue, in lower case."""
        self.words: Counter[str] = Counter()
        """Words of messages, in lower case -> how many different texts hold them."""
        self.identities: set[str] = set()
        """Who did something, as events state it."""
        self.tools: set[str] = set()
        self.segments: set[tuple[str, str]] = set()
        """Names in paths of requests, and the ids that stand behind them."""
        self._lately, self._seed = pl.Series(dtype=pl.UInt64), randbits(64)
        """Hashes of texts, by a seed that nobody knows: none can be made to look like another one."""
        self._waiting, self._n_bytes = [_NONE], 0
        """Texts that are still to be looked at, and whether somebody said them."""

    def see(self, events: pl.DataFrame) -> None:
        """Take in the events of a reading."""
        paths = events.filter(pl.col("kind").is_in(ON_PATHS))["tool"].drop_nulls().unique()
        behind = paths.str.extract_all(_BEHIND).explode().drop_nulls().unique()
        self.segments.update(found for each in behind if (found := id_behind(each)))
        self.identities.update(events.filter(states_who())["name"].unique())
        self.tools.update(events.filter(pl.col("kind").is_in(["call", "result"]))["tool"].drop_nulls().unique())
        said = events.filter(pl.col("kind").is_in(["message", "feedback", "reasoning"]))
        said_texts = pl.concat([said["content"], said["value"]]).drop_nulls().unique()
        lower = said_texts.str.to_lowercase().str.extract_all(r"\p{L}{4,}").list.unique().explode().drop_nulls()
        self.words.update(dict(lower.to_frame("word").group_by("word").len().iter_rows()))
        self._put_off(pl.concat([events[name].drop_nulls() for name in TEXTS]).unique(), False)
        self._put_off(said_texts, True)
        if self._n_bytes >= _TOGETHER:
            self.finish()

    def finish(self) -> None:
        """Look at the texts that wait: many are looked at together."""
        texts = pl.concat(self._waiting).group_by("text").agg(pl.col("said").any())
        self._waiting, self._n_bytes = [_NONE], 0
        if not texts.is_empty():
            self._see_names(texts.filter("said")["text"])
            self._see_texts(texts["text"])

    def _put_off(self, texts: pl.Series, said: bool) -> None:
        """Let texts wait that no file told lately: several tell the same."""
        hashes = texts.hash(self._seed ^ said)
        is_new = ~hashes.is_in(self._lately.implode())
        self._lately = pl.concat([self._lately if len(self._lately) < _LATELY else self._lately.clear(), hashes.filter(is_new)])
        new = texts.filter(is_new)
        self._waiting.append(pl.DataFrame({"text": new, "said": pl.repeat(said, len(new), eager=True)}))
        self._n_bytes += int(new.estimated_size())

    def _see_texts(self, texts: pl.Series) -> None:
        """Fields with their values, and names that are written out, in texts of any kind."""
        wide = texts.str.len_bytes() != texts.str.len_chars()
        if wide.any():
            texts = pl.concat([texts.filter(~wide), texts.filter(wide).str.normalize("NFC")])
        plain = unescaped(texts)
        self.pairs.update(pairs_of(plain))
        for pattern, inner in _PLACES:
            for each in plain.str.extract_all(pattern).explode().drop_nulls().unique():
                if (found := inner.search(each)) and (name := _introduced(_words(found[1]), True)):
                    self.names.add(name)

    def _see_names(self, texts: pl.Series) -> None:
        for pattern, cue, is_sure in _CUES:
            for each in texts.str.extract_all(pattern).explode().drop_nulls().unique():
                if (found := cue.match(each)) and (name := _introduced(_words(found[1]), is_sure)):
                    self.names.add(name)
        for pair in texts.str.extract_all(_PAIR).explode().drop_nulls().unique():
            words = _words(pair)
            if len(words) > 1 and is_given(lowered(words[0])) and not is_plain(lowered(words[-1])):
                self.names.add(tuple(lowered(word) for word in words if len(word) > 1))


def _words(text: str) -> list[str]:
    return [word.removesuffix("'s").removesuffix("’s").rstrip("'’-") for word in text.split()]


def _introduced(words: list[str], strong: bool) -> tuple[str, ...]:
    """The words at the beginning that are a name."""
    name: list[str] = []
    for word in words:
        lower = lowered(word)
        is_one = is_listed(lower) or (word[:1].isupper() and not is_plain(lower) and bool(strong or name))
        is_one |= is_household(lower) and word[:1].isupper() and bool(strong or name)
        if not is_one or is_plain(lower):
            break
        name.append(lower)
    lone = len(name) == 1 and not strong and not is_given(name[0])
    return () if lone else tuple(name)
