"""Collect what identifies people: values of identifying fields, words of their names, and the fields that hold them.

Fields and values are read from text (JSON, also inside strings, Python literals, YAML, `key=value`), so truncated or wrapped
documents are read too. `Finding` collects in any order; `People` decides. A name that is also another word (a colour, a
month) counts only in its place. Sees fields, names that introduce themselves or are addressed, and a common given name with
another word. Names that only sentences, records with an address or other scripts show are judged in `mentions`, `records` and
`scripts`, once all is collected. Does not see a rare name without any cue."""

from __future__ import annotations

import json
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from datetime import date
from functools import lru_cache
from itertools import pairwise
from secrets import randbits

import polars as pl

from extractors.privacy.credentials import SECRET
from extractors.privacy.evidence import NameEvidence, holds_persons, is_among_persons, is_person_in_field
from extractors.privacy.fields import (
    NOUNS,
    OWN,
    id_behind,
    kind_of_field,
    kind_of_identity,
    kind_of_value,
    nouns_of,
    speaks_of_a_person,
)
from extractors.privacy.letters import (
    LETTERS,
    MARKS,
    STREETS,
    TITLES,
    has_unspaced,
    is_caseless,
    is_given,
    is_household,
    is_listed,
    is_plain,
    lowered,
    words_in,
)
from extractors.privacy.logins import login_in
from extractors.privacy.mentions import PARTICLES, PRODUCTS, Judge, folded
from extractors.privacy.policy import Policy
from extractors.privacy.pseudonyms import day_of, spellings
from extractors.privacy.scripts import is_joined_name
from extractors.privacy.split_names import holds_family_names, split_names

_WORD = re.compile(LETTERS)
_BEFORE = re.compile(r"^[\W_]+")
_SHORT = 6
"""Digits of a number from which on it says by itself whose it is."""
_NATIONAL = 10
"""Digits of a telephone number without its country."""
_SOME = 3
"""Names from which on a field holds names."""
_GROWN = date(2010, 1, 1)
"""A day of birth from then on is carried into no text: it may be any day of which the logs speak."""
_SHORTEST, _LONG = 4, 5
"""Letters below which a word alone is no name, and below which only a common one is."""
_LOOKED_AT = 200
"""Values of a field that decide whether it is one of persons."""
_NOTHING = words_in(
    "value a b bdi dd div dt em h1 h2 h3 h4 h5 h6 i li p small span strong sub sup td th")
"""Fields that say nothing of what they hold: its neighbouring field does, or it is a tag of a page."""
_FEW = 3
"""Different texts in which a misspelt name may stand."""
PersonFact = tuple[str, str]
"""Kind, value; of the kind `word`, a word of a name; of `own`, an id too short to be looked for; of `login`, a name too short
for that."""
LOGIN = "login"


class People:
    """The dictionary of a corpus."""

    def __init__(self, finding: Finding, policy: Policy, before: Iterable[PersonFact] = ()) -> None:
        self.policy = policy
        self.fields: dict[str, str] = {}
        """Identifying field -> kind."""
        self.values: dict[str, str] = {}
        """Value that is carried into every text, in lower case -> kind."""
        self.words: set[str] = set()
        """Words of names."""
        self.full: set[tuple[str, str]] = set()
        """Names of two words that are somebody's, as they stand in a field, after a cue or in an id."""
        self._likely: list[str] = []
        """Names by the look of values in fields of persons."""
        self.whole: set[str] = set()
        """Names in scripts that join words, as they are written."""
        self.short: set[str] = set()
        """Ids of persons that are anybody's where no field or path says so."""
        self.logins = {login for each in finding.identities if _is_short_login(login := each.partition("@")[0])}
        """Names of who did something, also before an @, that are too short to be looked for in texts."""
        self.tools = {*finding.tools, *(value.lower() for value in policy.keep.values)}
        self.rare = {word for word, n in finding.words.items() if n <= _FEW}
        self.facts: set[PersonFact] = set()
        """All of it, to be remembered."""
        finding.finish()
        judge = finding.evidence.judge(finding.words)
        others = self._read_fields(finding, judge) | {noun.lower() for noun, _ in finding.segments}
        self.nouns = nouns_of(field for field, kind in self.fields.items() if kind == "id")
        """What persons are called where their ids stand."""
        for noun, value in sorted(finding.segments):
            if noun.lower() in self.nouns:
                self._take("id", value)
        for name in sorted(finding.names):
            self._take_name(name)
        sure = frozenset(self.words)
        for likely in self._likely:
            self._take("name", likely)
        for name in sorted(set(finding.evidence.names(judge))):
            self._take_name(name)
        for kind, value in sorted(finding.evidence.forms):
            self._take_form(kind, value, judge)
        for whole in sorted(finding.evidence.whole_names()):
            self._take("name", whole)
        for identity in sorted(finding.identities):
            if identity_kind := kind_of_identity(identity):
                self._take(identity_kind, identity)
        for kind, value in sorted(before):
            self._take_fact(kind, value)
        self._drop_words(finding, others)
        if self.short and "id" not in policy.fields:
            self.fields.setdefault("id", OWN)
        self._take_split_names(finding)
        self.facts.update(("word", word) for word in self.words)
        self.facts.update((LOGIN, name) for name in self.logins)
        self.facts.update(("full", " ".join(pair)) for pair in self.full)
        self.doubtful = {word for word in self.words if is_household(word) or word in STREETS
                         or _is_vague(word, judge, word in sure) or (word in others and not is_given(word))}
        """Words of names that are something else too."""

    def _take_fact(self, kind: str, value: str) -> None:
        """Take in what is known from before."""
        if kind == LOGIN:
            self.logins.add(value)
        elif kind in ("word", OWN):
            (self.words if kind == "word" else self.short).add(value)
        elif kind == "full":
            first, _, last = value.partition(" ")
            self.full.add((first, last))
        else:
            self._take(kind, value)

    def _drop_words(self, finding: Finding, others: set[str]) -> None:
        """Take back ids that are words of other fields, but for logins: who did something, and a field of ids has it."""
        logins = {lowered(value) for field, value in finding.pairs if self.fields.get(field.lower()) == "id"} & {
            lowered(each) for each in finding.identities}
        for value in [each for each, kind in self.values.items()
                      if kind == "id" and each in others - logins and not is_listed(each)]:
            del self.values[value]

    def _read_fields(self, finding: Finding, judge: Judge) -> set[str]:
        """Take in values of identifying fields; gives words that are a value of others."""
        values: dict[str, list[str]] = defaultdict(list)
        for field, value in sorted(finding.pairs):
            values[field].append(value)
        others: set[str] = set()
        kinds = {field: self.policy.fields.get(field) or kind_of_field(field) or _looks(values[field]) for field in values}
        for field in sorted(values, key=lambda each: (kinds[each] in (None, "people"), each)):   # others tell what these are
            kind = kinds[field]
            if kind in (None, "people"):
                kind = self._names_of_known(values[field]) or kind
            if kind is None or kind == "keep":
                if field not in _NOTHING:
                    others.update(value.lower() for value in values[field] if value.isalpha())
                continue
            self.fields[field.lower()] = self.fields[_BEFORE.sub("", field.lower())] = kind
            is_personal = kind == "people" and speaks_of_a_person(field)
            is_full = kind == "people" and holds_persons(values[field][:_LOOKED_AT], judge)
            for value in values[field]:
                if kind == "people" and kind_of_value(kind, value) is None and (
                        is_person_in_field(value, judge, is_personal or is_full)
                        or (is_personal and is_full and is_among_persons(value, judge))):
                    self._likely.append(value)
                elif (value_kind := kind_of_value(kind, value)) and value not in self.policy.keep.values:
                    self._take(value_kind, value)
                elif kind == "people" and value.isalpha():
                    others.add(value.lower())
        return others

    def _take(self, kind: str, value: str) -> None:
        lower = _BEFORE.sub("", lowered(value.strip()))
        if kind == "name":
            if has_unspaced(value):
                self._take_whole(value.strip())
            else:
                self._take_name(tuple(_WORD.findall(lower)))
            return
        if kind == "date" and (day := day_of(value)) and day < _GROWN:
            self.values.update(dict.fromkeys(spellings(day), kind))
            self.facts.add((kind, value.strip()))
        n_digits = sum(sign.isdigit() for sign in lower)
        n_letters = sum(sign.isalpha() for sign in lower)
        if kind in ("zip", "ending", "date", "secret"):
            return   # their places are known by the field, or by a cue
        if (n_letters == 0 and n_digits < _SHORT) or len(lower) < 4:
            if kind == "id" and n_digits:
                self.short.add(lower)
                self.facts.add((OWN, lower))
            return
        if (lower.isalpha() and (is_plain(lower) or is_household(lower))) or lower in self.tools:
            return
        self.values.setdefault(lower, kind)
        self.facts.add((kind, value.strip()))
        if kind in ("email", "id"):
            local = lower.partition("@")[0].partition("+")[0]
            if "@" in lower and len(local) >= _SHORT and any(map(str.isdigit, local)) and not local.isdigit():
                self.values.setdefault(local, "id")
            words = _WORD.findall(local)
            if len(words) == 2 and all(is_given(word) or is_listed(word) or is_household(word) for word in words):
                self.full.add((words[0], words[1]))
        if kind == "phone":
            digits = "".join(sign for sign in lower if sign.isdigit())
            for each in {digits, digits[-_NATIONAL:]} if len(digits) >= _NATIONAL else ():
                self.values.setdefault(each, kind)

    def _names_of_known(self, values: list[str]) -> str | None:
        """Kind of a field whose name says little, and that holds names of people who are known."""
        named = [words for value in values if (words := set(_WORD.findall(lowered(value)))) and words <= self.words]
        sure = sum(not any(map(is_household, words)) for words in named)
        return "name" if sure >= _SOME and 5 * len(named) >= 4 * len(values) else None

    def _take_form(self, kind: str, value: str, judge: Judge) -> None:
        """Take in what its form shows; the name of a home folder only where it is no word."""
        if value in self.policy.keep.values:
            return
        if kind == "user":
            words = _WORD.findall(lowered(value))
            if len(value) >= _SHORTEST and not any(judge.look(word) in ("word", "noun", "both") for word in words):
                self._take("id", value)
                if value[0] in "nrtbf":   # behind a single \\ it reads as an escape
                    self._take("id", value[1:])
            return
        self._take(kind, value)
        if has_unspaced(value):
            self.values.setdefault(lowered(value), kind)
            self.whole.add(value)

    def _take_whole(self, name: str) -> None:
        """Take in a name in a script that joins words; where its words stand apart, as one word too."""
        if len(name) > 1 and name not in self.policy.keep.values and name.lower() not in self.tools:
            self.whole.update({name, name.replace(" ", "").replace("　", "")})
            self.facts.add(("name", name))

    def _take_split_names(self, finding: Finding) -> None:
        """Take in names that two fields hold, whose words these fields have shown to be names."""
        stay = {value for field, value in finding.pairs if self.policy.fields.get(field) == "keep"}
        for given, family in sorted(each for each in finding.split_names if stay.isdisjoint(each)):
            if has_unspaced(given) and has_unspaced(family):
                if is_joined_name(family + given):
                    self._take_whole(family + given)
                continue
            first, last = ([word for word in _WORD.findall(lowered(each)) if len(word) > 1 and word not in PARTICLES]
                           for each in (given, family))
            telling = [word for word in (*first, *last) if not is_plain(word)]
            if first and last and telling and self.words.issuperset(telling):
                self.full.update({(first[0], last[-1]), (first[-1], last[0])})

    def _take_name(self, words: tuple[str, ...]) -> None:
        if len(words) == 2:
            self.full.add((words[0], words[1]))
        if any(map(is_caseless, words)):
            self.full.update(pairwise(words))
        if not all(map(str.isascii, words)) and not any(map(is_caseless, words)):   # as keyboards without accents write it
            self._take_name(tuple(folded(word) for word in words if len(folded(word)) > 1))
        self.words.update(
            part for word in words for part in _WORD.findall(word)
            if len(part) > 1 and not is_plain(part) and part not in TITLES and part not in self.tools)


def _is_short_login(name: str) -> bool:
    """Return whether somebody is called so, by a few letters that are no common word."""
    lower = lowered(name)
    return (1 < len(name) < _SHORTEST and name.isalpha() and not is_plain(lower) and not is_household(lower)
            and kind_of_identity(name) is not None)


def _is_vague(word: str, judge: Judge, is_sure: bool) -> bool:
    """Whether a word, alone, is more than a name: a short one, one of a script without capitals, one of every day."""
    if is_caseless(word) or len(word) < _SHORTEST:
        return True
    is_short = len(word) < _LONG and word.isascii() and not is_listed(word)
    return is_short or judge.is_vague(word, is_sure)


def _looks(values: list[str]) -> str | None:
    few = values[:200]
    n_emails = sum("@" in value and kind_of_value("people", value) == "email" for value in few)
    return "email" if n_emails and 2 * n_emails > len(few) else None


_ESCAPE = r"""\\+(["'])"""
_OPENED = r"""["']([\[{]+\s*["'])"""
_QUOTED = r"""["'][\p{L}_][\p{L}\p{M}0-9_ .-]*["']\s?:\s*(?:"[^"]+"|'[^']+'|-?[0-9]+|\[[^\[\]{}]+\])"""
_LINES = r"""(?m)^[ \t>*-]*[A-Za-z_][A-Za-z0-9_ -]*:[ \t]+[^ \t\n{\[|>][^\n]*"""
_TAG = r"""<[A-Za-z_][A-Za-z0-9_.-]*>[^<>\n]{1,200}</"""
_NAMED = r"""["'](?:key|name|field|label|attribute)["']\s*:\s*"[A-Za-z_][^"]{0,40}"\s*,\s*["']value["']\s*:\s*"[^"]+\""""
_EQUALS = r"""[A-Za-z_][A-Za-z0-9_]*=(?:"[^"\n]+"|[^\s&,;"'<>=]+)"""
_READ = re.compile(rf"""^[\s>*-]*["']?([^\W\d][\w{MARKS} .\-]{{0,48}}?)["']?\s*[:=]\s*(.*)$""", re.DOTALL)
_TAGGED = re.compile(r"<([^>]+)>([^<]+)</")
_CALLED = re.compile(r'["\']\s*:\s*"([^"]+)"\s*,\s*["\']value["\']\s*:\s*"([^"]+)"')
_ITEM = re.compile(r'"([^"]{1,200})"|\'([^\']{1,200})\'')
_LONGEST = 2000
Pair = tuple[str, str]


def _tagged(text: str) -> tuple[Pair, ...]:
    """Of a document's tag, or of a name and a value that stand in fields of their own."""
    match = _TAGGED.match(text) or _CALLED.search(text)
    return ((match[1].strip(), _plain(match[2].strip())),) if match else ()


@lru_cache(1 << 15)   # other files tell the same again
def _read(text: str) -> tuple[Pair, ...]:
    match = _READ.match(text)
    return tuple((match[1], value) for value in _values(match[2].strip())) if match else ()


def _values(text: str) -> list[str]:
    if text.startswith("["):
        return [_plain(one or other) for one, other in _ITEM.findall(text)]
    if len(text) > 1 and text[0] in "\"'" and text[-1] == text[0]:
        text = text[1:-1]
    return [_plain(text.strip())] if text.strip() else []


def _plain(text: str) -> str:
    if "\\" not in text:
        return text
    try:
        return str(json.loads(f'"{text}"'))
    except ValueError:
        return text


ON_PATHS = ("request", "business", "log", "page")
"""Kinds of events whose `tool` is text of the log."""
_OF_NOBODY = ("feedback", "outcome", "correction", "review", "answer", "row_change", "link")
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
    (rf"\"name\"\s*:\s*\"{_WRITTEN}\"[^{{}}]{{0,400}}?\"(?:(?i:\w*birth\w*)|dob|gender|nationality)\"", _INNER))
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
    """What was seen so far; `finish` before it is judged."""

    def __init__(self) -> None:
        self.pairs: set[Pair] = set()
        self.evidence = NameEvidence(pairs_in)
        self.names: set[tuple[str, ...]] = set()
        """Words of names that stood after a cue, in lower case."""
        self.words: Counter[str] = Counter()
        """Words of messages, in lower case -> how many different texts hold them."""
        self.identities: set[str] = set()
        """Who did something, as events state it."""
        self.tools: set[str] = set()
        self.split_names: set[tuple[str, str]] = set()
        """Given and family names that two fields of one record hold."""
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
        self.segments.update(segment for each in behind if (segment := id_behind(each)))
        self.identities.update(events.filter(states_who())["name"].unique())
        posted = events.filter(pl.col("kind") == "request", pl.col("arguments").str.contains(SECRET, literal=True))["arguments"]
        self.identities.update(login.name for text in posted.unique() if (login := login_in(text)) is not None)
        self.tools.update(events.filter(pl.col("kind").is_in(["call", "result"]))["tool"].drop_nulls().unique())
        spoken = events.filter(pl.col("kind").is_in(["message", "feedback", "reasoning"]))
        said_texts = pl.concat([spoken["content"], spoken["value"]]).drop_nulls().unique()
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
            self.evidence.see(_plain_texts(texts["text"]), texts.filter("said")["text"])
            self._see_texts(texts["text"])

    def _put_off(self, texts: pl.Series, is_spoken: bool) -> None:
        """Let texts wait that no file told lately: several tell the same."""
        hashes = texts.hash(self._seed ^ is_spoken)
        is_new = ~hashes.is_in(self._lately.implode())
        self._lately = pl.concat([self._lately if len(self._lately) < _LATELY else self._lately.clear(), hashes.filter(is_new)])
        new = texts.filter(is_new)
        self._waiting.append(pl.DataFrame({"text": new, "said": pl.repeat(is_spoken, len(new), eager=True)}))
        self._n_bytes += int(new.estimated_size())

    def _see_texts(self, texts: pl.Series) -> None:
        plain = _plain_texts(texts).str.replace_all(_ESCAPE, "$1")
        plain = plain.str.replace_all(_OPENED, "$1")   # JSON in strings, as outside of them
        for pattern, read in ((_QUOTED, _read), (_LINES, _read), (_EQUALS, _read), (_TAG, _tagged), (_NAMED, _tagged)):
            matches = plain.str.extract_all(pattern).explode().drop_nulls()
            matches = matches.filter(matches.str.len_bytes() < _LONGEST).unique()
            self.pairs.update(pair for text in matches for pair in read(text))
        for text in texts.filter(holds_family_names(texts)):
            self.split_names.update(split_names(text, pairs_in))
        for pattern, inner in _PLACES:
            for each in plain.str.extract_all(pattern).explode().drop_nulls().unique():
                if (match := inner.search(each)) and (name := _introduced(_words(match[1]), True)):
                    self.names.add(name)

    def _see_names(self, texts: pl.Series) -> None:
        for pattern, cue, is_sure in _CUES:
            for each in texts.str.extract_all(pattern).explode().drop_nulls().unique():
                if (match := cue.match(each)) and (name := _introduced(_words(match[1]), is_sure)):
                    self.names.add(name)
        for pair in texts.str.extract_all(_PAIR).explode().drop_nulls().unique():
            words = _words(pair)
            last = lowered(words[-1]) if len(words) > 1 else ""
            if last and is_given(lowered(words[0])) and not is_plain(last) and last not in PRODUCTS:
                self.names.add(tuple(lowered(word) for word in words if len(word) > 1))


def _plain_texts(texts: pl.Series) -> pl.Series:
    """Return texts with composed letters."""
    wide = texts.str.len_bytes() != texts.str.len_chars()
    return pl.concat([texts.filter(~wide), texts.filter(wide).str.normalize("NFC")]) if wide.any() else texts


_FIELDS = tuple(map(re.compile, (rf"""["'][^\W\d][\w{MARKS} .-]*["']\s?:\s*(?:"[^"]+"|'[^']+')""", _EQUALS)))


def pairs_in(text: str) -> Iterator[Pair]:
    """Yield the fields of a short text with their values."""
    for pattern in _FIELDS:
        for match in pattern.finditer(text):
            yield from _read(match[0])
    for line in text.split("\n"):
        if ":" in line or "=" in line:
            yield from _read(line)


def _words(text: str) -> list[str]:
    return [word.removesuffix("'s").removesuffix("’s").rstrip("'’-") for word in text.split()]


def _introduced(words: list[str], strong: bool) -> tuple[str, ...]:
    """Return the words at the beginning that are a name."""
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
