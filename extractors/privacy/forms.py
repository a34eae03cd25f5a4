"""Find personal data that its form or the words before it show, and that begins with no digit: collected, and replaced "
"everywhere.

In: texts. Out: (kind, value): IPv6 addresses; streets with a number in the notations of some twenty countries, and British
and Canadian postal codes; numbers behind a word for a passport, an identity card or a licence plate; user names in paths of
home folders. Does not see: streets without a number, a plate or a passport's number without such a word."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable, Iterator
from typing import NamedTuple

import polars as pl

from extractors.privacy.letters import words_in

_UP = r"\p{Lu}[\p{L}\p{M}'’-]+"
_NUMBER = r",? ?(?:(?i:no|nr|n)[.:º°]{0,2} ?|№ ?)?\d{1,5}[A-Za-z]?\b"
_STREETS = (
    rf"\b(?:{_UP}[ -])?\p{{Lu}}[\p{{L}}-]*(?:straße|strasse|str\.|gasse|allee|chaussee|damm|ufer|weg) ?\d{{1,4}} ?[a-z]?\b",
    r"\b(?:\p{Lu}[\p{L}-]+ )(?:Straße|Strasse|Str\.|Allee|Gasse|Weg) \d{1,4}[a-z]?\b",
    r"\b\p{Lu}[\p{L}-]*(?:platz|ring|markt) \d{1,4}[a-z]?, \d{4,5}\b",
    r"\b\p{Lu}\p{L}+(?:straat|gracht|laan|kade|plein|singel|gatan|vägen|gata|veien|vei|vej|gade|gaten|katu|kuja|utca) "
    r"\d{1,4}[a-z]?\b",
    rf"\b{_UP}(?: {_UP})? (?:utca|út|tér|körút) \d{{1,4}}\b",
    rf"\b\d{{1,4}}(?: ?(?:bis|ter))?,? (?i:rue|avenue|boulevard|bd|place|allée|chemin|impasse|quai|cours|route) "
    rf"(?:(?:de|du|des|la|le|les|en|saint|sainte) |[ld]['’]){{0,3}}{_UP}(?:[ -]{_UP}){{0,3}}",
    rf"\b(?:[Cc]alle|[Cc]/|[Aa]venida|[Aa]vda\.|Av\.|[Pp]aseo|[Pp]laza|[Rr]ua|[Tt]ravessa|[Aa]lameda|[Pp]raça|Via|[Vv]iale|"
    rf"[Cc]orso|"
    rf"[Pp]iazza|[Vv]icolo|[Cc]arrera|[Cc]arrer|Strada|[Ss]tr\.|[Bb]ulevardul) (?:(?:de|del|della|dei|degli|do|da|dos|das|"
    rf"la|las|los|el) "
    rf"|d['’]){{0,2}}{_UP}(?: (?:de |del |della |do |da |dos |e |y )?{_UP}){{0,3}}{_NUMBER}",
    rf"\b(?:[Uu]l\.|[Uu]lica|[Uu]licy|[Aa]l\.|[Aa]leja|[Aa]lei|[Oo]s\.|[Uu]lice|[Nn]ám\.) (?:\p{{L}}+\.? "
    rf"){{0,2}}{_UP}{_NUMBER}(?:/\d{{1,4}})?",
    rf"(?:[Уу]л\.|[Уу]лиц[аеу]|[Пп]р\.|[Пп]росп\.|[Пп]роспект[еа]?|[Пп]ер\.|[Пп]ереул\w+|[Вв]ул\.|[Вв]улиц\w+|[Бб]ул\.|"
    rf"[Нн]аб\.) ?"
    rf"(?:{_UP} ?){{1,3}},? ?(?:д\.|дом|буд\.)? ?\d{{1,4}}(?:,? (?:кв\.|оф\.|корп\.) ?\d+)?",
    rf"\b{_UP}(?: {_UP}){{0,2}} (?:Caddesi|Cad\.|Sokak|Sokağı|Sok\.|Bulvarı|Blv\.)(?:,? (?:No|no)[:.]? ?\d+(?:/\d+)?| \d+)",
    rf"(?:Οδός|οδός|οδό|Λεωφόρος) {_UP}(?: {_UP})?,? \d{{1,4}}",
    rf"\b\d{{1,4}}[A-Z]?(?:/\d+)? (?:đường|phố|Đường|Phố) {_UP}(?: {_UP}){{0,3}}",
    rf"\b(?:Jalan|Jl\.) {_UP}(?: {_UP}){{0,3}}{_NUMBER}",
    r"\p{Han}{2,12}(?:路|街|大道|巷|弄)\d{1,5}(?:号|號)(?:[\p{Han}\d]{0,8}(?:室|楼|樓|单元))?",
    r"[\p{Han}\p{Hiragana}\p{Katakana}]{2,12}(?:丁目|町|区)\d{1,3}[-−‐]\d{1,3}(?:[-−‐]\d{1,3})?",
    r"[가-힣]{1,5}(?:시|구|군) [가-힣\d]{1,10}(?:로|길) \d{1,4}(?:-\d+)?",
    r"(?:شارع|طريق) [\u0600-\u06FF]+(?: [\u0600-\u06FF]+){0,2},? ?\d{1,4}",
    r"(?:רחוב|שדרות) [\u0590-\u05FF'\"]+(?: [\u0590-\u05FF'\"]+)? \d{1,4}")
_TAIL = (r"(?i:['’]?s?[ ,:#.-]*(?:(?:number|no|nr|num|nummer|número|numero|numer|номер|id|is|ist|es|est|è|é|to|n°|nº|plate|"
         r"with|the|号码|号|号碼|番号|"
         r"번호|는|은|は|是)[ ,:#.-]*){0,4})")
_PAPERS = (
    rf"(?i:\b(?:passport|reisepass|passeport|pasaporte|passaporto|passaporte|paspoort|paszport\w*|pasaport|паспорт\w*|"
    rf"driver['’]?s?[ -]licen[cs]e|driving licen[cs]e|führerschein\w*|permis de conduire|personalausweis\w*|national id|"
    rf"identity card|"
    rf"id card|carte d['’]identité|documento de identidad|codice fiscale|pesel|personnummer)|护照|護照|パスポート|여권)"
    rf"{_TAIL}[A-Z0-9]{{6,16}}\b")
_PLATES = (
    rf"(?i:\b(?:licen[cs]e plate|number ?plate|plate|car registration|vehicle registration|registration number|kennzeichen|"
    rf"nummernschild|plaque d['’]immatriculation|immatriculation|immatriculée?|matrícula|targa|kenteken|tablic\w+ "
    rf"rejestracyj\w+|"
    rf"numer rejestracyjny|plakası|plaka|placa|registreringsnummer|rendszám)|госномер|номерной знак|车牌号?|車牌|ナンバー|"
    rf"차량번호)"
    rf"{_TAIL}[A-ZÄÖÜ0-9]{{1,4}}(?:[ ·-]?[A-Z0-9]{{1,4}}){{1,3}}\b")
_VALUE = re.compile(r"[A-ZÄÖÜ0-9]{1,16}(?:[ ·-]?[A-ZÄÖÜ0-9]{1,6}){0,3}$")
_HOME = r"(?:/home/|/Users/|\b[A-Za-z]:[\\/]+(?:Users|Documents and Settings)[\\/]+)[\p{L}\d][\p{L}\d_.-]{1,31}"
_NOBODY = words_in(
    "user users ubuntu root admin administrator app apps runner work worker node public default shared guest dev vscode "
    "jovyan ec2-user "
    "docker git test tester me you username name your-name yourname someone project projects all agent sandbox build "
    "builder builds ci "
    "jenkins deploy service www web data python debian centos fedora pi vagrant circleci codespace openhands swe mpiuser "
    "container host "
    "linuxbrew home")


class _Form(NamedTuple):
    """A form, and what of a match is the value."""

    kind: str
    pattern: str
    """In the dialect of Rust's regex."""
    value: Callable[[str], str | None]


def _whole(match: str) -> str | None:
    return match.strip(" ,")


def is_network_address(text: str) -> bool:
    """Whether a text is an IPv6 address of three groups or more."""
    try:
        return ipaddress.IPv6Address(text).version == 6 and text.count(":") > 2
    except ValueError:
        return False


def _network(match: str) -> str | None:
    return match if is_network_address(match) else None


def _number(match: str) -> str | None:
    shape = _VALUE.search(match)
    value = shape[0] if shape else ""
    plain = [sign for sign in value if sign.isalnum()]
    return value if len(plain) > 4 and any(map(str.isdigit, plain)) else None


def _plate(match: str) -> str | None:
    value = _number(match)
    return value if value and any(map(str.isalpha, value)) else None


def _user(match: str) -> str | None:
    name = re.split(r"[\\/]", match)[-1].rstrip(".-")
    return name if name.lower() not in _NOBODY and len(name) > 2 else None


_FORMS = (
    _Form("ip", r"(?i)\b(?:[23][0-9a-f]{3}|f[cde][0-9a-f]{2}):[0-9a-f:]{2,36}[0-9a-f]\b", _network),
    *(_Form("address", pattern, _whole) for pattern in _STREETS),
    _Form("account", r"\b[A-Z]{1,2}\d[A-Z\d]? \d[ABD-HJLNP-UW-Z]{2}\b|\b[A-CEGHJ-NPR-TVXY]\d[A-Z] \d[A-Z]\d\b", _whole),
    _Form("account", _PAPERS, _number),
    _Form("account", _PLATES, _plate),
    _Form("user", _HOME, _user))


def values_in(texts: pl.Series) -> Iterator[tuple[str, str]]:
    """Yield kinds and values; of kind `user`: the name of a home folder, which may be a word too."""
    for form in _FORMS:
        for match in texts.str.extract_all(form.pattern).explode().drop_nulls().unique():
            if value := form.value(match):
                yield form.kind, value
