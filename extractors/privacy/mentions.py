"""Judge capitalized words in a sentence: which of them are the name of a person.

In: runs of two to five capitalized words, as `RUNS` extracts them with up to three words in lower case before and after. Out:
words of names, in lower case. Evidence: lists of names in many languages, an address that spells the words, a word around
them that speaks of a person ("spoke with", "pan", "Hanım", "kanssa"); against it, words that the same logs write in lower
case, words of every day, places. One sure name vouches for a word that no list knows. Does not see: a name of one word
without a cue (`people`), scripts without capitals (`scripts`)."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Container, Mapping
from functools import lru_cache
from typing import NamedTuple

from anyascii import anyascii

from extractors.privacy import name_lists
from extractors.privacy.letters import LETTERS, TITLES, is_given, is_household, is_listed, is_plain, lowered, words_in

_UPPER = r"\p{Lu}[\p{L}\p{M}'’\-]*\.?"
_BETWEEN = r"(?:(?:van|von|der|den|de|del|della|da|dos|das|do|di|du|la|le|bin|ibn|binti|bint|al|el|ter|ten|zu|y) ){0,2}"
RUNS = (rf"(?:\p{{Ll}}[\p{{L}}\p{{M}}'’]*[,:]? ){{0,3}}{_UPPER}(?: {_BETWEEN}{_UPPER}){{1,4}}"
        r"(?: \p{Ll}[\p{L}\p{M}]*){0,2}")
"""A run with the words around it."""
_NAMED = rf"({_UPPER}(?: {_BETWEEN}{_UPPER}){{1,3}})"
SIGNED = (
    rf"(?:,|\n)[ \t]*\r?\n[ \t]*(?:[-–—~][ \t]*)?{_NAMED}[ \t]*\s*$",
    rf"^{_NAMED} here\b",
    r"(?i:^(?:\p{L}+(?: \p{L}+)?[,!.] ?)?(?:this is|it['’]s|i['’]m|i am|hier ist|ich bin|je suis|ici|soy|sono|sou|aqui é|"
    rf"jestem|dit is|ik ben|det är|jag är|ben|я|это)) {_NAMED}(?:[,.!;:]|$| (?:and|und|et|y|e|i|ve|en|och|и|from|von|de)\b)")
"""Where people who write say who they are: a last line behind a greeting, and the beginning; the name is group 1."""
PARTICLES = words_in("van von der den de del della da dos das do di du la le bin ibn binti bint al el ter ten zu y")
_ABOUT_PEOPLE = words_in(
    "spoke spoken speak speaking talk talked talking meet met phoned emailed mailed told asked contacted "
    "helped helping assisting user customer client patient passenger guest colleague coworker friend "
    "husband wife son daughter brother sister mother father boss manager doctor nurse driver agent behalf signed regards "
    "sincerely married "
    "sprach spreche gesprochen telefoniert getroffen traf herr herrn frau kunde kundin kollege kollegin freund freundin mann "
    "parlé rencontré discuté appelé monsieur madame cliente collègue ami amie mari femme "
    "hablé hablado hablar conocí llamé señor señora compañero compañera amigo amiga esposo esposa doña paciente "
    "parlato parlai sentito signor signora signore collega amico marito moglie paziente "
    "falei falado conversei encontrei liguei senhor senhora colega amigo marido esposa "
    "gesproken sprak gepraat gebeld meneer mevrouw heer klant vriend vriendin man vrouw "
    "rozmawiałem rozmawiałam spotkałem spotkałam dzwoniłem pan pani panem panią pana panu klient klientka kolega "
    "mluvil mluvila hovořil hovořila volal volala paní kolega kolegyně klient hovoril hovorila "
    "razgovarao razgovarala govoril govorila gospod gospa gospodin gospođa "
    "konuştum görüştüm bay bayan bey hanım ile müşteri arkadaşım sayın "
    "pratade talade träffade snakket snakkede talte herr fru kund kunde kollega "
    "puhuin juttelin tapasin kanssa rouva asiakas beszéltem találkoztam úr asszony ügyfél "
    "vorbit discutat întâlnit domnul doamna client clienta "
    "berbicara bicara bertemu berjumpa bapak ibu pak bu dengan saudara pelanggan bercakap encik puan "
    "chuyện gặp với anh chị ông bà cô chú khách nakausap kausap si ni kay "
    "niliongea nilizungumza nimeongea bwana bibi mteja sọ pẹ̀lú mo bá "
    "говорил говорила разговаривал разговаривала общался общалась встретил встретила встречался звонил звонила господин "
    "госпожа клиент клиентка коллега коллегой друг подруга зовут розмовляв розмовляла говорив говорила пан пані паном панею "
    "клієнт зустрів говорих разговарях срещнах клиентът господин "
    "μίλησα μιλούσα συνάντησα κύριο κυρία κύριος πελάτης πελάτισσα τον την του της")
"""Words beside which a name is a person's."""
_STEMS = re.compile(
    "(?:spoke|talk|speak|met|sprach|gesproch|telefon|parl|habl|convers|rozmawia|spotka|dzwoni|mluvi|hovori|telefono|beszél|"
    "felhív|"
    "találko|prata|snakk|talte|puhu|jutte|soit|vorbi|discut|bicara|gặp|gọi|konuş|görüş|aradı|говор|разговар|обща|звон|встре|"
    "розмов|"
    "телефон|μίλη|μιλ|συναντ|τηλεφ|gesprok|sprak|belde)")
"""Beginnings of verbs of speaking and meeting."""
_TOWARDS = words_in("to with from by for and under")
_FOLLOWS_PEOPLE = words_in("ile kanssa bey hanım called phoned emailed wrote says said asked")
PRODUCTS = words_in(
    "api app apps build ci cloud cluster code database framework haiku kernel latitude library linux opus pipeline sdk server "
    "sonnet studio therapy unix")
"""Words that end names of products and never a person's, even behind a given name."""
NO_PERSON = words_in(
    "inc ltd llc llp plc gmbh ag kg se sa sarl sas srl spa bv nv ab oy oyj as aps corp co bank team shop store street "
    "avenue road "
    "airport airlines university hospital hotel church beach lake mount river san santa st saint fort new north south east "
    "west upper lower mr mrs ms plus pro max mini ultra") | PRODUCTS
_FUNCTION_WORDS = words_in(
    "w z na od dla przez jutro wczoraj v ve ze pro zítra včera till från med och att av på för hos og til fra ile için bir bu "
    "yarın dün holnap tegnap az és hogy mert và của cho với là os da em com para por del y el los con que en le les des du "
    "au avec "
    "et pour il della che van het een voor aan ja että kun cu pe din untuk dengan yang ke dari ya wa kwa za za po este la lo "
    "aby czy jest že si su gli nel sur dans chez sin uma um não são ik heb met ook niet")
_INNER = re.compile(r"(?!Mc|Mac|De|Di|Le|La|Van|Fitz)\w*[a-z][A-Z]")
_HYPHENED = re.compile(r"[A-Z][a-z]+-[a-z]+")
"""A given name of Korea in Latin letters."""
_LATIN = re.compile("[A-Za-z\u00c0-\u024f\u1e00-\u1eff]")
_LIST_LETTERS = re.compile(LETTERS)
_TOGETHER = 3
"""Texts that write a listed name in lower case, from which on it is a word too."""
_CLEAR = 6
"""Letters from which on a given name is seldom a word as well."""
_LEAST = 5
"""Letters of an address that spell a name by themselves."""


@lru_cache(1 << 16)
def folded(word: str) -> str:
    """Spell a word as addresses do: in ASCII, in lower case, letters alone."""
    text = word if word.isascii() else anyascii(unicodedata.normalize("NFC", word))
    return "".join(sign for sign in text.lower() if sign.isalpha())


def spellings_of(words: tuple[str, ...]) -> set[str]:
    """How the local part of an address may spell a name of two words or more, without digits and signs between."""
    first, last = folded(words[0]), folded(words[-1])
    if len(words) < 2 or not first or not last:
        return set()
    middle = "".join(map(folded, words[1:-1]))
    made = {first + last, last + first, first[0] + last, first + last[0], last + first[0], first + middle + last,
            last + middle + first, last + first + middle}
    return {each for each in made if len(each) >= _LEAST}


def squashed(local: str) -> str:
    """Return the letters of an address's local part."""
    return folded(local.partition("+")[0])


class Shown(NamedTuple):
    """What all texts show of words in lower case."""

    n_lower: Mapping[str, int]
    """Word -> how many messages write it so."""
    often: Container[str]
    """Words that messages write so at least as often as otherwise."""
    articled: Container[str]
    """Words that stand behind an article."""
    locals: Container[str]
    """Letters of the local parts of addresses."""
    in_data: Container[str]
    """Words that stand capitalized beside each other in results and arguments."""


class Judge:
    """What the logs show of words: how they are written in lower case, which stand in data, and which addresses there are."""

    def __init__(self, shown: Shown) -> None:
        self._n_lower, self._often, self._articled, self._locals, self._in_data = shown
        self.look = lru_cache(1 << 16)(self._look)

    def _look(self, word: str) -> str:
        """How a word in lower case looks: `sure` a name, `both` a name and a word, a plain `word`, a `noun` by how
        the logs write it, `unknown`."""
        is_one = is_listed(word) or word in name_lists.given() or word in name_lists.family()
        is_word = any(each in name_lists.ordinary() or is_household(each) for each in (word, word.removesuffix("s"))) or (
            word in NO_PERSON)
        if is_one:
            return "both" if is_word or (self.is_noun(word) and not is_given(word)) else "sure"
        return "word" if is_word else "noun" if word in self._often or word in self._articled else "unknown"

    def is_noun(self, word: str) -> bool:
        """Whether the logs write a word that lists call a name as people write a noun: behind an article, or often in "
        "lower case."""
        return word in self._articled or (word in self._often and self._n_lower.get(word, 0) >= _TOGETHER)

    def is_vague(self, word: str, is_sure: bool) -> bool:
        """Whether a name is a word of every day too; `is_sure`: a field or its owner says that it is a name."""
        if is_given(word):
            return False
        if is_listed(word):
            return self.is_noun(word)
        is_short = len(word) < _CLEAR or not word.isascii()
        is_one = not is_sure or word in name_lists.family() or (is_short and word in name_lists.given())
        return word in name_lists.ordinary() or word in NO_PERSON or self.is_noun(word) or (is_one and word in self._n_lower)

    def is_spelled(self, words: tuple[str, ...]) -> bool:
        """Whether an address of the logs spells the words."""
        return any(each in self._locals for each in spellings_of(words))

    def names_in(self, run: str, is_spoken: bool) -> list[tuple[str, ...]]:
        """Names in a run, each its words in lower case."""
        before, tokens, after = _parts(run)
        if not is_spoken and not before:
            return []
        cued = any(map(_STEMS.match, before)) or not _ABOUT_PEOPLE.isdisjoint(before)
        cued |= not _FOLLOWS_PEOPLE.isdisjoint(after[:1])
        cued |= bool(before) and not any(map(_is_latin, tokens)) and all(map(_is_latin, before))
        names: list[tuple[str, ...]] = []
        is_foreign = _is_foreign(before, after)
        is_open = is_foreign or (bool(before) and before[-1] in _TOWARDS)
        at, begins = 0, not before
        while at < len(tokens):
            is_near = all(lowered(token).rstrip(".") in TITLES for token in tokens[:at])
            place = _Spot(cued and is_near, begins, is_open and is_near, is_foreign)
            size = next((n for n in range(min(4, len(tokens) - at), 1, -1) if self._is_name(tokens[at:at + n], place)), 0)
            if size:
                bare = " ".join(_bare(lowered(token)) for token in tokens[at:at + size])
                names.append(tuple(_LIST_LETTERS.findall(bare)))
            at += size or 1
            begins = _ends_sentence(tokens[at - 1])
        return names

    def _is_name(self, tokens: list[str], place: _Spot) -> bool:
        """Whether tokens are a name as a whole."""
        if any(map(_ends_name, tokens[:-1])) or any(map(_INNER.match, tokens)):
            return False
        tokens = [*tokens[:-1], _bare(tokens[-1])]
        if any(each in PARTICLES for each in (tokens[0], tokens[-1])) or len(tokens[-1]) < 2:
            return False
        if any(token.isupper() and len(token) > 1 for token in tokens) and not all(token.isupper() for token in tokens):
            return False
        lower = [lowered(token) for token in tokens]
        if lowered(tokens[0]).rstrip(".") in TITLES or " ".join(lower) in name_lists.places():
            return False
        words = [word for token, each in zip(tokens, lower, strict=True) if token not in PARTICLES and len(each.rstrip(".")) > 1
                 for word in _LIST_LETTERS.findall(each)]
        if words and any(is_given(each) or each in name_lists.given() for each in (words[0], folded(words[0]))):   # no airport
            words = [word for word in words if len(word) > 1]
        if len(words) < 2:
            return False
        looks = [self.look(word) for word in words]
        if not NO_PERSON.isdisjoint(words):
            return False
        if any(map(_HYPHENED.fullmatch, tokens)) and len(tokens) == 2 and {"sure", "both"}.intersection(looks):
            return True
        if not place.begins and (looks == ["both", "sure"] or (looks == ["sure", "both"] and place.cued | place.open)):
            return True
        if "word" in looks or (not place.foreign and any(map(is_plain, words))):
            return False
        if self.is_spelled(tuple(words)):
            return True
        return self._is_shown(words, looks, place)

    def _is_shown(self, words: list[str], looks: list[str], place: _Spot) -> bool:
        """Whether the looks of words, and what stands around them, show a name."""
        n_sure, n_unknown = looks.count("sure"), looks.count("unknown") + looks.count("noun")
        if not n_sure:
            if not n_unknown:
                return place.cued
            n_new = n_unknown - looks.count("noun") + (looks.count("both") if place.foreign or place.cued else 0)
            is_new = n_new == len(looks) < 4 and not place.begins
            return is_new and (place.cued or (place.open and not any(word in self._in_data for word in words)))
        if not n_unknown:
            return True
        is_given_name = [look == "sure" and (word in name_lists.given() or is_given(word))
                         for word, look in zip(words, looks, strict=True)]
        if "noun" in looks and not any(is_given_name):
            return False
        ends = looks[-1] == "sure" and looks[0] == "unknown" and words[-1] in name_lists.family()
        is_likely = place.cued or place.open or is_given_name[0] or (not place.begins and (any(is_given_name) or ends))
        return len(words) < 4 and is_likely


class _Spot(NamedTuple):
    """Where tokens stand."""

    cued: bool
    """A word around them speaks of a person."""
    begins: bool
    """A sentence begins with them, so that the first is capitalized anyway."""
    open: bool
    """Names of products and functions seldom stand there: behind "to" and the like, or between words of another language than
    English and German."""
    foreign: bool
    """They stand between words of such a language."""


def _is_latin(word: str) -> bool:
    return _LATIN.match(word) is not None


def _bare(token: str) -> str:
    """Return a word without a sentence's end, and without the signs of a genitive."""
    token = token[:-1] if _ends_sentence(token) else token
    return token.rstrip("'’-").removesuffix("'s").removesuffix("’s")


def _ends_name(token: str) -> bool:
    return _ends_sentence(token) or token.endswith(("'s", "’s"))


def _ends_sentence(token: str) -> bool:
    return token.endswith(".") and len(token) > 2 and lowered(token[:-1]) not in TITLES


def _is_foreign(before: list[str], after: list[str]) -> bool:
    """Whether the words around a run are of a language that gives capitals to names alone."""
    around = {*before, *after}
    return bool(before) and any(not word.isascii() or word in _FUNCTION_WORDS for word in around) and (
        around.isdisjoint(name_lists.english_and_german() - _FUNCTION_WORDS))


@lru_cache(1 << 16)
def _parts(run: str) -> tuple[list[str], list[str], list[str]]:
    """Words before a run, its capitalized words and particles, and words after it."""
    words = run.split(" ")
    first = next(at for at, word in enumerate(words) if word[:1].isupper())
    last = max(at for at, word in enumerate(words) if word[:1].isupper())
    return [word.strip(",:") for word in words[:first]], words[first:last + 1], words[last + 1:]
