"""People who never lived, planted into logs as people stand in logs, and as badly as they are written.

In: a folder of logs, how many. Out: two files beside them (conversations, row changes), and what was planted: (side, kind,
original as it stands). Every second person stands in fields of a tool's result; of the others nothing stands in a field.
Names are made up: of letters, with accents, in Cyrillic, with a hyphen, and of words that mean something else too.
Seeded: the same people each time. What is not planted, for nothing finds it: base64, pictures, two mistakes in one word.
"""

from __future__ import annotations

import json
import random
import unicodedata
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote, quote_plus

from extractors.privacy.fields import iban_holds, luhn_digit

_BEGIN = ("ka", "lo", "mi", "ren", "sha", "tor", "vel", "yas", "bri", "den", "far", "gwi")
_MIDDLE = ("ri", "na", "do", "le", "vo", "shi", "ma", "ta", "be", "lu")
_END = ("ck", "ston", "va", "rez", "wyn", "dal", "ova", "mir", "gard", "sson")
_ACCENTS = str.maketrans("aeou", "áëøü")
_CYRILLIC = dict(zip(map(ord, "abcdefghiklmnorstvwyz"), "абцдефгхиклмнорствуыз", strict=True))
_WORDS = (("hope", "may", "will", "grace", "mark", "rose", "dean", "joy"),
          ("brown", "young", "lane", "stone", "banks", "woods", "rice", "day"))


class Planted(NamedTuple):
    """Something of a person that stands in the logs."""

    side: str
    kind: str
    value: str


class _Person(NamedTuple):
    first: str
    last: str
    email: str
    user: str
    digits: str
    card: str
    iban: str
    street: str
    key: str


def plant(logs: Path, n: int) -> list[Planted]:
    """Write the files; gives what stands in them."""
    draw, lines, changes = random.Random(7), [], []
    planted: list[Planted] = []
    for number in range(n):
        person, in_fields = _drawn(draw, number), number % 2 == 0
        side = "structured" if in_fields else "unstructured"
        told = list(_of_fields(person) if in_fields else _of_texts(person))
        planted += [Planted(side, kind, value) for kind, value, _ in told if value]
        said = [text for _, _, text in told]
        lines.append(_session(number, said, json.dumps(_record(person)) if in_fields else '{"ok": true}'))
        if in_fields:
            changes.append(_change(number, person))
            if len(person.last) > len("Banks"):   # a shorter one is a word that stands in code too
                planted.append(Planted(side, "row change", person.last))
    (logs / "planted.jsonl").write_text("\n".join(lines) + "\n", "utf-8")
    (logs / "planted_changes.jsonl").write_text("\n".join(changes) + "\n", "utf-8")
    return planted


def _drawn(draw: random.Random, number: int) -> _Person:
    first, last = ("".join(draw.choice(part) for part in (_BEGIN, _MIDDLE, _END)) for _ in range(2))
    style = number // 2 % 5
    if style == 1:
        first, last = first.translate(_ACCENTS), last.translate(_ACCENTS)
    elif style == 2:
        first, last = first.translate(_CYRILLIC), last.translate(_CYRILLIC)
    elif style == 3:
        last = f"{last}-{draw.choice(_BEGIN)}{draw.choice(_END)}"
    elif style == 4:
        first, last = draw.choice(_WORDS[0]), draw.choice(_WORDS[1])
    figures = f"{draw.randrange(10**9):09}"
    plain = [_ascii(each) or f"u{figures[:5]}" for each in (first, last)]
    body = f"NWBK{draw.randrange(10**14):014}"
    card = f"{draw.randrange(10**13):013}"
    return _Person(
        first.title(), last.title(), f"{plain[0]}.{plain[1]}{figures[:3]}@{draw.choice(('gmail.com', 'corp.io'))}",
        f"{plain[0]}_{plain[1]}_{figures[:4]}", f"{draw.randrange(201, 999)}{draw.randrange(201, 999)}{figures[5:]}",
        f"4{luhn_digit('4', card + figures[:1])}{card}{figures[:1]}",
        next(f"GB{each:02}{body}" for each in range(2, 99) if iban_holds(f"GB{each:02}{body}")),
        f"{draw.randrange(100, 9999)} {draw.choice(_BEGIN).title()}{draw.choice(_MIDDLE)}field Lane",
        f"sk-proj-{draw.getrandbits(160):040x}")


def _ascii(word: str) -> str:
    return "".join(sign for sign in unicodedata.normalize("NFD", word) if sign.isascii() and sign.isalpha())


def _record(person: _Person) -> dict[str, object]:
    """Return what a tool knows of them: the name split, the rest as usual."""
    return {"user_id": person.user, "name": {"first_name": person.first, "last_name": person.last}, "email": person.email,
            "phone": _phone(person), "card_number": person.card, "iban": person.iban, "address1": person.street,
            "api_key": person.key}


def _phone(person: _Person, form: str = "+1 ({}) {}-{}") -> str:
    return form.format(person.digits[:3], person.digits[3:6], person.digits[6:])


def _everywhere(person: _Person) -> Iterator[tuple[str, str, str]]:
    """(kind, original, text) of what has a form of its own."""
    dots, dashes = _phone(person, "{}.{}.{}"), _phone(person, "{}-{}-{}")
    spaced = " ".join(person.iban[at:at + 4] for at in range(0, len(person.iban), 4))
    grouped = " ".join(person.card[at:at + 4] for at in range(0, 16, 4))
    coded = quote(person.email, safe="")
    yield "email", person.email, f"Write to {person.email}."
    yield "email", person.email.upper(), f"or to {person.email.upper()}!"
    yield "in a URL", coded, f"GET https://shop.example/u?m={coded}&page=1 gave 404"
    yield "phone", _phone(person), f"Call {_phone(person)}"
    yield "phone", dots, f"or {dots}, whenever"
    yield "phone", dashes, f"tel: {dashes}"
    yield "phone", f"+1{person.digits}", f"sms to +1{person.digits} failed"
    yield "card", person.card, f"Pay with {person.card}"
    yield "card", grouped, f"that is {grouped}, yes"
    yield "account", person.iban, f"from {person.iban}"
    yield "account", spaced, f"account {spaced}"
    yield "address", person.street, f"send it to {person.street}."
    yield "secret", person.key, f"use {person.key}"
    yield "secret", person.key, f"curl -H 'Authorization: Bearer {person.key}' https://u:{person.digits}@api.example/v1"


def _of_texts(person: _Person) -> Iterator[tuple[str, str, str]]:
    """Of somebody of whom nothing stands in a field: who they are they say once."""
    name = f"{person.first} {person.last}"
    yield "name", name, f"Hi, my name is {name}, order 7 please."
    yield "name", name, f"booked for {name} only"
    yield "re-cased", name.upper(), f"THAT WAS {name.upper()}"
    yield "in JSON in JSON", name, json.dumps({"log": json.dumps({"note": f"for {name}"}, ensure_ascii=False)},
                                             ensure_ascii=False)
    if len(person.last) > 5 and person.last.isalpha():
        wrong = person.last[:3] + person.last[4:]
        yield "misspelt", wrong, f"Is {wrong} on the list?"
    yield from _everywhere(person)


def _of_fields(person: _Person) -> Iterator[tuple[str, str, str]]:
    """Yield the same, and more, of somebody whose record a tool told."""
    name, user = f"{person.first} {person.last}", person.user
    turned = f"{person.last}, {person.first}"
    inner = json.dumps({"msg": json.dumps({"text": f"welcome {name}", "to": person.email}, ensure_ascii=False)},
                       ensure_ascii=False)
    handle = person.email.partition("@")[0]
    apart = unicodedata.normalize("NFD", name)
    yield "name", name, f"order for {name}, thanks"
    yield "name", turned, f"passenger {turned} boarded"
    yield "re-cased", name.upper(), f"THAT WAS {name.upper()}"
    yield "re-cased", name.lower(), f"it was {name.lower()} here"
    yield "in JSON in JSON", f"welcome {name}", json.dumps({"log": inner}, ensure_ascii=False)
    yield "in JSON in JSON", json.dumps(name)[1:-1], json.dumps({"log": json.dumps({"x": f"for {name} now"})})
    yield "in a URL", quote(name), f"GET https://shop.example/find?q={quote(name)}&n=1"
    yield "in a URL", quote_plus(name), f"/find?q={quote_plus(name)}"
    yield "in an error", user, f"KeyError: '{user}' not in table users"
    yield "in a compound id", user, f"cart:{user}:7 s3://bucket/{user}/x.json {user}_v2"
    yield "in a compound id", handle, f"handle {handle} is taken"
    if person.last.isalpha():
        yield "together", f"{person.first}{person.last}", f"class {person.first}{person.last}Profile"
    yield "initial", f"{person.first[0]}. {person.last}", f"signed {person.first[0]}. {person.last}"
    yield "accents apart", apart, f"dear {apart},"
    yield "phone", person.digits, f"ring {person.digits} now"
    yield "re-cased", person.iban.lower(), f"pay to {person.iban.lower()} ok"
    yield "re-cased", person.street.upper(), f"SHIP TO {person.street.upper()} NOW"
    if len(person.last) > 5 and person.last.isalpha():
        wrong = person.last[:3] + person.last[4:]
        yield "misspelt", wrong, f"Is {wrong} on the list?"
    yield from _everywhere(person)


def _session(number: int, said: list[str], result: str) -> str:
    call = {"id": f"c{number}", "type": "function", "function": {"name": "look", "arguments": '{"q": 1}'}}
    return json.dumps({"id": f"planted{number}", "messages": [
        {"role": "user", "content": said[0]}, {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": f"c{number}", "content": result},
        *({"role": "user", "content": text} for text in said[1:]), {"role": "assistant", "content": "Done."}]},
        ensure_ascii=number % 3 == 0)


def _change(number: int, person: _Person) -> str:
    """Return a row of a table that calls the name by a word of its own."""
    after = {"id": number, "who_last": person.last, "note": f"asked by {person.user}", "n": 1}
    return json.dumps({"op": "c", "ts_ms": 1772409600000 + number, "before": None, "after": after,
                       "source": {"connector": "postgresql", "db": "planted", "table": "wishes", "lsn": number}})
