"""Collect what texts show of names, in any order, and judge it once all is known.

In: texts, and whether somebody said them. Out: names as words, and names as they are written in scripts that join words. What
is collected: runs of capitalized words, how often words stand in lower case, addresses with what stands in their records, and
names in scripts without capitals. Does not see: structure other than that of records with an address."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping

import polars as pl

from extractors.privacy import name_lists
from extractors.privacy.fields import is_any_name, is_of_no_person, kind_of_field, speaks_of_a_person
from extractors.privacy.forms import values_in
from extractors.privacy.letters import LETTERS, TITLES, has_unspaced, is_caseless, is_given, is_plain, lowered
from extractors.privacy.mentions import NO_PERSON, PARTICLES, RUNS, SIGNED, Judge, Shown, folded, squashed
from extractors.privacy.records import Neighbour, beside_addresses
from extractors.privacy.scripts import JOINED, SEPARATED, is_joined_name, joined_names, separated_names

_WORD = re.compile(LETTERS)
_ARTICLED = (
    r"\b(?i:der|die|das|ein|eine|einen|einem|einer|den|dem|des|im|zum|zur|vom|kein|keine|keinen|mein|meine|meinen|unser|"
    r"unsere) "
    r"\p{Lu}\p{Ll}{3,}",
    r"\b(?i:the|a|an|this|my|your|la|le|les|un|une|el|los|las|una|o|os|as|um|uma|il|lo|gli|i|de|het|een|den|det|ett|en|az|"
    r"egy|η|ο|"
    r"το|τα|οι|του|της|των) \p{Ll}{3,}", r"\b[lL]['’]\p{Ll}{3,}")
"""Articles with nouns behind them: of German, where these are capitalized, and of other languages."""
_CHUNK = r"[\p{L}\p{M}\d_@.+/\\=-]+"
"""A word, or an address, an id or a path, whose words are none."""
_LOCAL = r"[\p{L}\d][\w.+%-]*@"
_SHAPE = re.compile(r"[^\W\d_][^\d_@/\\<>{}\[\]()|=:;*#&!?%$€+]{0,58}")
Read = Callable[[str], Iterator[tuple[str, str]]]


class NameEvidence:
    """What was seen of names so far."""

    def __init__(self, read: Read) -> None:
        self._read = read
        self.runs: dict[str, bool] = {}
        """Capitalized words with those around them -> whether somebody said them."""
        self.n_lower: Counter[str] = Counter()
        """Words in lower case -> how many different messages hold them."""
        self.articled: set[str] = set()
        """Words behind an article, in lower case."""
        self.locals: set[str] = set()
        """Letters of the local parts of addresses."""
        self.neighbours: set[Neighbour] = set()
        self.forms: set[tuple[str, str]] = set()
        """Kinds and values of what its form shows."""
        self.joined: set[str] = set()
        self.separated: set[tuple[str, ...]] = set()

    def see(self, texts: pl.Series, spoken: pl.Series) -> None:
        """Take in texts, and those of them that somebody said."""
        chunks = spoken.str.extract_all(_CHUNK).list.unique().explode().drop_nulls().str.strip_chars_end(".-/")
        lower = chunks.filter(chunks.str.contains(r"^\p{Ll}[\p{L}\p{M}]{2,}$") & (chunks == chunks.str.to_lowercase()))
        self.n_lower.update(dict(lower.to_frame("word").group_by("word").len().iter_rows()))
        for pattern in _ARTICLED:
            self.articled.update(_WORD.findall(lowered(each))[-1] for each in _all(spoken, pattern))
        for each in _all(texts, RUNS):
            self.runs.setdefault(each, False)
        self.runs.update(dict.fromkeys(_all(spoken, RUNS), True))
        for pattern in SIGNED:
            self.runs.update((f"signed {each}", True) for each in spoken.str.extract(pattern).drop_nulls().unique())
        with_address = texts.filter(texts.str.contains("@", literal=True))
        self.locals.update(squashed(each[:-1]) for each in _all(with_address, _LOCAL))
        self.forms.update(values_in(texts))
        for text in with_address:
            self.neighbours.update(beside_addresses(text, self._read))
        for text in spoken.filter(spoken.str.contains(JOINED)):
            self.joined.update(joined_names(text))
        for text in spoken.filter(spoken.str.contains(SEPARATED)):
            self.separated.update(separated_names(text))

    def judge(self, n_texts: Mapping[str, int]) -> Judge:
        """Return the judge of words that all of this makes; `n_texts`: how many messages hold a word in any case."""
        often = {word for word, n in self.n_lower.items() if 2 * n > n_texts.get(word, 0)}
        in_data = {word for run, is_spoken in self.runs.items() if not is_spoken for word in _WORD.findall(lowered(run))}
        return Judge(Shown(self.n_lower, often, self.articled, self.locals, in_data))

    def names(self, judge: Judge) -> Iterator[tuple[str, ...]]:
        """Yield names of separate words, each in lower case."""
        for run, is_spoken in self.runs.items():
            yield from judge.names_in(run, is_spoken)
        yield from self.separated
        for each in self.neighbours:
            if not has_unspaced(each.value) and is_name_beside(each, judge):
                yield tuple(_WORD.findall(lowered(each.value)))

    def whole_names(self) -> Iterator[str]:
        """Yield names in scripts that join words, as they are written."""
        yield from self.joined
        for each in self.neighbours:
            if has_unspaced(each.value) and (speaks_of_a_person(each.field) or (
                    is_joined_name(each.value) and not is_of_no_person(each.field))) and _SHAPE.fullmatch(each.value):
                yield each.value


def is_name_beside(each: Neighbour, judge: Judge) -> bool:
    """Whether a value that stands beside an address is a name: by its field, its look and the letters of the address."""
    value = each.value.strip()
    words = _name_words(value)
    if not words:
        return False
    is_personal = speaks_of_a_person(each.field) or (is_any_name(each.field) and not is_of_no_person(each.field))
    looks = [judge.look(word) for word in words]
    if not any(look == "word" for look in looks) and is_spelled_by(words, each.local) and not is_of_no_person(each.field):
        return True
    if not all(_is_capital(word) or word.lower() in PARTICLES for word in value.split()):
        return False
    if is_personal:
        return "sure" in looks or "word" not in looks
    if is_of_no_person(each.field) or kind_of_field(each.field) is not None or " ".join(words) in name_lists.places():
        return False
    return len(words) > 1 and "word" not in looks and ("sure" in looks or looks.count("unknown") == len(looks) < 4)


def _name_words(value: str) -> list[str]:
    """Words of a value that has the shape of a name, without titles and particles; none where it has not."""
    words = [word for word in _WORD.findall(lowered(value)) if word not in PARTICLES and word not in TITLES and len(word) > 1]
    is_shaped = _SHAPE.fullmatch(value) and len(words) <= 5 and NO_PERSON.isdisjoint(words) and not all(map(is_plain, words))
    return words if is_shaped else []


def is_spelled_by(words: list[str], local: str) -> bool:
    """Whether the local part of an address spells a name: its last or first word, or its initials with one of them."""
    letters, parts = squashed(local), [folded(word) for word in words]
    long = [part for part in parts if len(part) > 3]
    if any(part in letters for part in long) and (len(parts) == 1 or letters[0] in {part[:1] for part in parts}):
        return True
    return len(parts) > 1 and "".join(parts) == letters


def _is_capital(word: str) -> bool:
    word = word.lstrip("'’\"(") or word
    return word[0].isupper() or is_caseless(word)


def is_person_in_field(value: str, judge: Judge, is_sure: bool) -> bool:
    """Whether a value of a field that names persons is a name by its look: two to four capitalized words that are no others,
    one that is a given name, or a name in a script without capitals. Where the field is not `is_sure`, lists decide."""
    if has_unspaced(value):
        return is_joined_name(value)
    words = _name_words(value)
    looks = [judge.look(word) for word in words]
    if not all(_is_capital(word) or word.lower() in PARTICLES for word in value.split()):
        return False
    if " ".join(words) in name_lists.places() or "word" in looks or not looks:
        return False
    if not is_sure:
        return len(words) > 1 and "sure" in looks and "noun" not in looks
    if len(words) == 1:
        return looks[0] == "sure" and (words[0] in name_lists.given() or is_given(words[0]))
    return "sure" in looks or looks.count("unknown") + looks.count("both") == len(looks)


def is_among_persons(value: str, judge: Judge) -> bool:
    """Whether a value has the form of a name, though its words are others too (Grace Kit), in a field of persons alone."""
    words = _name_words(value)
    is_formed = 1 < len(words) < 5 and all(_is_capital(word) or word.lower() in PARTICLES for word in value.split())
    return is_formed and any(judge.look(word) != "word" for word in words) and " ".join(words) not in name_lists.places()


def holds_persons(values: list[str], judge: Judge) -> bool:
    """Whether a field of names is one of persons: nearly all of its values look so, and lists hold words of at least half."""
    like = sum(is_person_in_field(value, judge, True) for value in values)
    sure = sum(is_person_in_field(value, judge, False) for value in values)
    return 5 * like >= 4 * len(values) and 2 * sure >= len(values) > 1


def _all(texts: pl.Series, pattern: str) -> list[str]:
    """Different matches of a pattern."""
    return texts.str.extract_all(pattern).explode().drop_nulls().unique().to_list()
