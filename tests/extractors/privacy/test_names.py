"""Names in any language go wherever something shows that they are names; words of every day stay."""

from __future__ import annotations

import json
import re
import unicodedata

import pytest

from benchmarks.first_hour_names_corpus import FORMS, GROUPS, WORDS
from extractors.privacy import Pseudonyms
from extractors.privacy.scripts import joined_names, separated_names
from tests.conftest import ROOT
from tests.extractors.privacy.test_carrying import cleaned

MADE = Pseudonyms(b"k" * 32)


@pytest.mark.parametrize("record", [
    {"customer": "Zvonimir Grubešić", "email": "box7@example.org"},
    {"kunde": "Ysolde Vantongeren", "email": "box7@example.org"},
    {"patient": "Thandolwethu Mkhwebane"}, {"받는사람": "김민수", "email": "box7@example.org"}, {"recipient": "王建国"},
    {"details": "Bjarnhéðinn Þrastarson", "email": "bjarnhedinn.thrastarson@example.org"}])
def test_a_name_in_a_record_goes_there_and_in_texts(record: dict[str, str]) -> None:
    name = next(iter(record.values()))
    made = cleaned(("result", json.dumps(record, ensure_ascii=False)), ("message", f"It is about {name} again."))
    assert name not in made[0] and name not in made[1] and made[1].startswith("It is about ")
    assert next(iter(json.loads(made[0]).values())) == made[1][len("It is about "):-len(" again.")]


def test_names_in_sentences_of_twenty_languages_go() -> None:
    texts = [(name, sentences[0].format(name)) for names, sentences in GROUPS.values() for name in names.split(", ")[:2]]
    made = cleaned(*(("message", text) for _, text in texts))
    assert [name for (name, _), text in zip(texts, made, strict=True) if name in text] == []


def test_words_of_every_day_stay_beside_names() -> None:
    kinds = ["result" if text.startswith("{") else "message" for text in WORDS]
    made = cleaned(*zip(kinds, WORDS, strict=True), ("message", "I spoke with Rose Marchetti and Uwe Koch."))
    assert made[:-1] == list(WORDS) and "Marchetti" not in made[-1]


@pytest.mark.parametrize(("value", "text"), FORMS)
def test_other_personal_data_goes_by_its_form(value: str, text: str) -> None:
    assert value not in cleaned(("message", text))[0]


@pytest.mark.parametrize("text", [
    "at 12:30:45 and std::vector, version 1:2:3", "Platz 3 von 10, Sitzplatz 12", "order AB-1234 in /home/user/app",
    "passport control is open", "The plate is dirty",
    "I need a flight from San Francisco to San Diego."])
def test_what_only_resembles_personal_data_stays(text: str) -> None:
    assert cleaned(("message", text))[0] == text


def test_names_in_every_script_get_another_name_of_their_script() -> None:
    groups = ("bengali", "tamil", "georgian", "armenian", "amharic", "persian")
    names = [name for group in groups for name in GROUPS[group][0].split(", ")[:3]]
    made = cleaned(*(("result", json.dumps({"passenger": name}, ensure_ascii=False)) for name in names))
    for name, text in zip(names, made, strict=True):
        other = json.loads(text)["passenger"]
        assert other != name and len(other.split()) == len(name.split())
        assert unicodedata.name(other[0]).split()[0] == unicodedata.name(name[0]).split()[0]


@pytest.mark.parametrize("text", [
    "Send it back.\n\nBest,\n{}", "{} here, where is my parcel?", "Hi, this is {}, and I have a question.",
    "Book it under {}, please."])
def test_a_rare_name_goes_where_people_say_who_they_are(text: str) -> None:
    assert "Zvonimir Grubešić" not in cleaned(("message", text.format("Zvonimir Grubešić")))[0]


def test_a_place_keeps_its_name_though_somebody_is_called_so() -> None:
    made = cleaned(("result", json.dumps({"name": "Francisco Marchetti", "email": "box1@example.org"})),
                   ("message", "I fly from San Francisco with Francisco Marchetti."))
    assert "San Francisco" in made[1] and "Francisco Marchetti" not in made[1]


def test_the_user_of_a_system_prompt_goes() -> None:
    made = cleaned(("message", "You are a support agent. The user is Zvonimir Grubešić."), ("message", "The user is 佐藤太郎."))
    assert "Grubešić" not in made[0] and "佐藤" not in made[1]


def test_a_name_that_an_address_spells_goes() -> None:
    address = '{"to": "thandolwethu.mkhwebane@example.org"}'
    made = cleaned(("call", address), ("message", "A note on Thandolwethu Mkhwebane, please."))
    assert "Mkhwebane" not in made[1]


def test_scripts_without_capitals_show_names_by_what_stands_around_them() -> None:
    assert list(joined_names("我昨天和王建国谈过发票的事。")) == ["王建国"] and list(joined_names("お客様の声")) == []
    assert list(separated_names("تحدثت أمس مع فاطمة حسين بخصوص الفاتورة")) == [("فاطمة", "حسين")]
    assert list(separated_names("أين طلبي؟ الأمل كبير والنور جميل.")) == []


@pytest.mark.parametrize(("name", "form"), [
    ("Agnieszka Lewandowska", r"[A-Z][a-z]+ [A-Z][a-z]+owska"), ("Дмитрий Кузнецов", r"[А-Я][а-яё]+ [А-Я][а-яё]+ов"),
    ("王建国", r"[\u4e00-\u9fff]{3}"), ("राजेश शर्मा", r"[\u0900-\u097f]+ [\u0900-\u097f]+")])
def test_a_pseudonym_looks_like_a_name_of_the_same_language(name: str, form: str) -> None:
    made = MADE.of("name", name)
    assert re.fullmatch(form, made) and made != name and Pseudonyms(b"k" * 32).of("name", name) == made


def test_endings_stay_and_no_two_words_have_one_pseudonym() -> None:
    words = {f"{head}{tail}" for head in ("kow", "zab", "wik", "lem") for tail in ("alska", "alski", "a", "owska", "ová", "i")}
    assert len({MADE.word(word) for word in words}) == len(words)


def test_no_name_of_the_benchmark_is_in_a_file_that_ships() -> None:
    shipped = "\n".join(path.read_text("utf-8").lower() for path in (ROOT / "extractors" / "privacy").glob("*.*"))
    names = [name.lower() for group, _ in GROUPS.values() for name in group.split(", ")]
    assert [name for name in names if name in shipped] == []
