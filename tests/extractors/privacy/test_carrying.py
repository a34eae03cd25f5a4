"""What is known of people is carried into every text; what is no one's stays."""

from __future__ import annotations

import json

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from extractors.privacy import Cleaner, Finding, People, Policy, Pseudonyms
from extractors.privacy.policy import Keep
from extractors.privacy.rewriting import _CHUNK, _PLAIN
from warehouse.records import Event, frame_schema

MADE = Pseudonyms(b"k" * 32)
PERSON = {"user_id": "siobhan_brown_6181", "name": {"first_name": "Siobhan", "last_name": "Brown"},
          "address": {"address1": "912 Elm Street", "zip": "80279"}, "email": "siobhan.brown7922@example.com"}


def events(*told: tuple[str, str], session: str = "s") -> pl.DataFrame:
    rows = [{"event_id": f"e{n}", "record_id": f"r{n}", "file_id": "f", "source": "s", "format": "x", "session_id": session,
             "kind": kind, "tool": "find" if kind in ("call", "result") else None,
             ("arguments" if kind == "call" else "value" if kind == "row_change" else "content"): text}
            for n, (kind, text) in enumerate(told)]
    return pl.DataFrame(rows, schema=frame_schema(Event))


def cleaned(*told: tuple[str, str], policy: Policy | None = None) -> list[str]:
    rows, finding = events(*told), Finding()
    finding.see(rows)
    made = Cleaner(People(finding, policy or Policy()), MADE).events(rows)
    return [row["content"] or row["arguments"] or row["value"] for row in made.iter_rows(named=True)]


def test_what_joined_still_joins() -> None:
    made = cleaned(
        ("result", json.dumps(PERSON)), ("call", '{"user_id": "siobhan_brown_6181"}'),
        ("row_change", json.dumps({"before": None, "after": PERSON}, separators=(",", ":"))),
        ("result", "Error: user siobhan_brown_6181 not found"),
        ("message", "I'm Siobhan Brown at 912 elm street, zip 80279, mail SIOBHAN.BROWN7922@example.com. The brown shoes."))
    person = json.loads(made[0])
    first, last = person["name"]["first_name"], person["name"]["last_name"]
    assert json.loads(made[1])["user_id"] == person["user_id"] and person["user_id"] in made[3]
    assert person["user_id"].startswith(f"{first}_{last}_".lower())
    assert json.loads(made[2])["after"] == person
    assert made[4] == (f"I'm {first} {last} at {person['address']['address1'].lower()}, zip {person['address']['zip']}, mail "
                       f"{MADE.of('email', 'SIOBHAN.BROWN7922@example.com')}. The brown shoes.")
    assert person["email"].upper().startswith(MADE.of("email", "SIOBHAN.BROWN7922@example.com").split("@")[0])


@pytest.mark.parametrize("text", [
    "The price is 80279 and the quantity 912.", '{"price": 80279, "color": "brown", "name": "Grill", "order": "#W1234567"}',
    "It may rain in May; I will mark it.", '{"type": "mark", "options": {"size": "S"}, "item_id": "5946177616"}',
    "Version 1.2.3 of 2024-05-01T10:00:00Z took 1234567890123 ns.", '{"tool": "find", "enum": ["first", "last"]}'])
def test_what_is_nobodys_stays(text: str) -> None:
    assert cleaned(("result", json.dumps(PERSON)), ("result", text))[1] == text


@pytest.mark.parametrize(("text", "gone"), [
    ("my name is Xanthe Okonkwo-Reyes", "Okonkwo"), ("Please ask Mrs. Wigglesworth", "Wigglesworth"),
    ("mail me at xq.zed@corp-mail.io", "xq.zed"), ("call +44 20 7946 0958 or (555) 123-4567", "7946"),
    ("card 4111-1111-1111-1111", "4111-1111"), ("I live at 77 Kestrel Lane", "Kestrel"), ("SSN 123-45-6789", "45-6789"),
    ("born on 1980-03-31", "1980-03-31"), ("GB29NWBK60161331926819", "NWBK6016"), ("ending in 1234", "1234"),
    ("use AKIAIOSFODNN7EXAMPLE", "AKIAIOSF"), ("my password is hunter2x9", "hunter2x9"),
    ("siobhan called", "siobhan"), ("SIOBHAN", "SIOBHAN"), ("Sioban said so", "Sioban"), ("Siobhan's bag", "Siobhan"),
    ("send it to 342 Cedar Lane, Suite 748, Austin, TX 78701 instead", "78701"), ("912 Elm Street, New York 10001", "10001"),
    ("see /siobhan_brown_6181/x", "siobhan"), ("name: siobhanBrown", "Brown")])
def test_what_stands_in_no_field_goes_too(text: str, gone: str) -> None:
    made = cleaned(("result", json.dumps(PERSON)), ("message", text), ("message", "siobhan_brown_6181"))[1]
    assert gone not in made and made != text


def test_escapes_of_json_are_read_and_written() -> None:
    made = cleaned(("result", '{"first_name": "Jos\\u00e9", "last_name": "M\\u00fcller"}'), ("message", "José\nMüller"),
                   ("result", '{"note": "Hi\\nMüller"}'))
    told = json.loads(made[0])
    assert made[0].isascii() and made[1] == f"{told['first_name']}\n{told['last_name']}"
    assert json.loads(made[2])["note"] == f"Hi\n{told['last_name']}"


def test_a_policy_declares_and_keeps() -> None:
    policy = Policy(fields={"badge": "id", "email": "keep"}, keep=Keep(values=frozenset({"Siobhan"})))
    person = json.dumps({**PERSON, "badge": "QX-1234"})
    made = cleaned(("result", person), ("message", "badge QX-1234 of Siobhan"), policy=policy)
    assert "QX-1234" not in made[0] + made[1] and "Siobhan" in made[1] and policy.policy_id != Policy().policy_id


def test_the_order_of_readings_changes_nothing() -> None:
    one, other = events(("message", "Siobhan here")), events(("result", json.dumps(PERSON)), session="t")
    people = []
    for order in ((one, other), (other, one)):
        finding = Finding()
        for each in order:
            finding.see(each)
        people.append(People(finding, Policy()))
    assert people[0].facts == people[1].facts and people[0].fields == people[1].fields
    assert Cleaner(people[0], MADE).events(one).equals(Cleaner(people[1], MADE).events(one))
    assert "Siobhan" not in Cleaner(people[0], MADE).events(one)["content"][0]


def test_what_one_file_holds_and_another_has_said_is_seen_as_said() -> None:
    text = "my name is Xanthe Okonkwo"
    kinds = [("result", "message"), ("message", "result"), ("message", "message")]
    names = []
    for order in kinds:
        finding = Finding()
        for kind in order:
            finding.see(events((kind, text)))
        finding.finish()
        names.append(finding.names)
    assert names[0] == names[1] == names[2] and ("xanthe", "okonkwo") in names[0]


@given(st.text("aZ0. _@+'-\"{}:,/\n", max_size=60))
def test_a_plain_text_has_the_same_chunks_by_the_shorter_pattern(text: str) -> None:
    assert [each.span() for each in _PLAIN.finditer(text)] == [each.span() for each in _CHUNK.finditer(text)]


def test_token_ids_of_what_was_there_go() -> None:
    rows = events(("message", "x")).with_columns(usage=pl.lit('{"input_tokens": 3, "prompt_token_ids": [1, 2]}'))
    finding = Finding()
    finding.see(rows)
    assert json.loads(Cleaner(People(finding, Policy()), MADE).events(rows)["usage"][0]) == {"input_tokens": 3}


@pytest.mark.parametrize(("field", "text", "gone"), [
    ('{"phone": "+49 221 7700101"}', "call +49 221 7700101 please", "7700101"),
    ('{"content": [{"text": "{\\"last_name\\": \\"Kvistgaard\\"}"}]}', "Kvistgaard it is", "Kvistgaard"),
    ('{"customer": {"no": "4", "name": "Zebulon Quiggle"}}', "Quiggle has none", "Quiggle"),
    ('{"name": "Zebulon Quiggle", "age": 3, "dob": "1971-03-14"}', "Quiggle has none", "Quiggle"),
    ('{"date_of_birth": "1971-03-14"}', "1971-03-14", "1971-03-14"),
    ('{"dob": "14 March 1971"}', "I was born March 14, 1971", "March 14"),
    ('{"birth_date": "19710314"}', "it is 03/14/1971", "03/14"),
    ('{"mrn": "MRN-558812"}', "see mrn-558812", "558812"),
    ('{"phone_numbers": ["0171 7711223"], "customer_ids": ["C-99123q"]}', "0171 7711223 or C-99123q", "99123"),
    ('{"last_name_1": "Zwickl", "phoneNo": "0171 7711224"}', "Zwickl: 0171 7711224", "Zwickl"),
    ('{"vorname": "Gundula", "nachname": "Weißkopfler", "straße": "Lindenallee 14"}', "Frau Weißkopfler", "kopfler"),
    ('{"to": "Wendel Schnurr <w.s@x.de>"}', "Schnurr wrote", "Schnurr"),
    ("<customer><lastName>Zwickel</lastName></customer>", "zwickel is here", "zwickel"),
    ('[{"key": "last_name", "value": "Zwickel"}]', "zwickel is here", "zwickel"),
    ('{"first_name": "İlker", "last_name": "İnönüoglu"}', "İNÖNÜOGLU asks", "İNÖNÜOGLU"),
    ('{"note": "Ask Mr. Kabulke about it"}', "Kabulke knows", "Kabulke")])
def test_what_a_field_tells_is_carried(field: str, text: str, gone: str) -> None:
    made = cleaned(("result", field), ("message", text))
    assert gone not in made[1] and gone not in made[0] and made[0] != field


@pytest.mark.parametrize(("text", "gone"), [
    ("Hello my name is Adelgunde Pfefferkorn.", "Pfefferkorn"), ("This is Mr. Kabulke speaking.", "Kabulke"),
    ("Thank you, Mrs. Hagedorn.", "Hagedorn"), ("Frau Dr. Pfefferkorn kommt", "Pfefferkorn"),
    ("born on 14 March 1971", "14 March"), ("geboren am 14.03.1971", "14.03"),
    ("use dckr_pat_abcdefghijklmnop012345", "abcdefghij"),
    ("card 2223 0031 2200 3222", "0031"), ("or 4111.1111.1111.1111", "1111.1111"),
    ("+49 221 7700101", "7700101"), ("ring 0171 7711223", "7711223"), ("postgres://svc:Pw0geheim@db/x", "geheim"),
    ('{"headers": {"authorization": "Basic dXNlcjpodW50ZXIyMjIq"}}', "dXNlcjpodW"),
    ('{"headers": {"cookie": "sid=qfqfq1w2e3; theme=dark"}}', "qfqfq1"), ("DB_PASS=kkkqf1", "kkkqf1")])
def test_what_is_introduced_or_has_a_form_goes(text: str, gone: str) -> None:
    assert gone not in cleaned(("message", text))[0]


def test_a_value_ends_where_the_next_field_begins() -> None:
    made = cleaned(("result", "level=info phone=01715512345 status=200 id=7"),
                   ("result", "address=12 Elm Street port=8080 host=db1"))
    assert made[0].startswith("level=info phone=0") and made[0].endswith(" status=200 id=7") and "5512345" not in made[0]
    assert made[1].endswith(" Street port=8080 host=db1") and "Elm" not in made[1]


def test_an_account_called_like_a_thing_of_the_logs_is_one_in_its_field_alone() -> None:
    made = cleaned(("result", '{"username": "orders"}'), ("call", '{"table": "orders"}'), ("message", "the orders table"))
    assert json.loads(made[0])["username"] != "orders" and made[1:] == ['{"table": "orders"}', "the orders table"]


def test_a_name_in_one_sentence_says_nothing_of_the_next() -> None:
    made = cleaned(("result", '{"first_name": "Emma", "last_name": "Will"}'), ("message", "Emma. Will you call?"))
    assert made[1].endswith(". Will you call?") and "Emma" not in made[1]


def test_an_address_at_the_end_of_a_sentence_is_the_same_address() -> None:
    made = cleaned(("message", "from 84.132.17.201."), ("message", "84.132.17.201 it was"))
    assert made[0].removeprefix("from ").rstrip(".") == made[1].removesuffix(" it was")


def test_who_did_something_has_a_pseudonym_that_joins() -> None:
    rows = events(("message", "ask zquiggl"), ("log", "{}"), ("log", "{}"), ("row_change", "{}"), ("log", "{}")).with_columns(
        pl.Series("name", ["zquiggl", "bob", "Zebulon Quiggl", "update", "cookie:05f36b79"]))
    finding = Finding()
    finding.see(rows)
    made = Cleaner(People(finding, Policy()), MADE).events(rows)
    who = made["name"].to_list()
    assert who[0] != "zquiggl" and made["content"][0] == f"ask {who[0]}"
    assert {"bob", "Zebulon Quiggl"}.isdisjoint(who) and who[3:] == ["update", "cookie:05f36b79"]


def test_an_escape_in_code_stays_one() -> None:
    code = 'assert xml == "<!--\\ufffd-->"  # é'
    made = cleaned(("result", code), ("result", f"{code} by Siobhan"), ("result", json.dumps(PERSON)))
    assert made[0] == code and made[1].startswith(code) and "Siobhan" not in made[1]


@pytest.mark.parametrize("text", ["use Claude Code please", "a package for Arch Linux", "the Cassandra Cluster fell"])
def test_a_product_is_no_person_though_its_name_begins_as_one(text: str) -> None:
    assert cleaned(("message", text))[0] == text
    assert "Lake" not in cleaned(("message", "ask Cassandra Lake"))[0]


def test_a_login_is_the_same_person_in_forms_pages_and_messages() -> None:
    login = '{"body":{"__login_name":"chiara","__login_password":"[secret]"}}'
    page = json.dumps({"body": "<b>Hello, chiara</b><table><tr><td>chiara</td></tr></table><i name=\"nosy\">chiara</i>"})
    told = [("message", "<@chiara> please look at 12"), ("call", login), ("result", page)]
    rows = events(*told).with_columns(pl.Series("name", ["chiara", None, None]))
    finding = Finding()
    finding.see(rows)
    made = Cleaner(People(finding, Policy()), MADE).events(rows).to_dicts()
    name = made[0]["name"]
    assert name != "chiara" and made[0]["content"] == f"<@{name}> please look at 12"
    assert json.loads(made[1]["arguments"])["body"]["__login_name"] == name
    assert "chiara" not in made[2]["content"] and f"<td>{name}</td>" in made[2]["content"]


def test_a_short_login_is_who_writes_in_a_chat_and_a_key_s_neighbour_is_nobody() -> None:
    login, call = ('{"query":{},"body":{"act":"in","who":"ivo","password":"[secret]"}}',
                   '{"query":{},"body":{"model":"small","api_key":"[secret]"}}')
    rows = events(("message", "hello"), ("call", login), ("call", call)).with_columns(
        pl.Series("name", ["ivo", None, None]), pl.Series("kind", ["message", "request", "request"]))
    finding = Finding()
    finding.see(rows)
    made = Cleaner(People(finding, Policy()), MADE).events(rows).to_dicts()
    assert json.loads(made[1]["arguments"])["body"] == {"act": "in", "who": made[0]["name"], "password": "[secret]"}
    assert made[0]["name"] != "ivo" and made[2]["arguments"] == call


def test_a_short_login_is_another_where_it_is_all_the_text_of_an_element() -> None:
    page = json.dumps({"body": "<p> bo\n</p><b>rut</b><td>BO</td><p>bo came</p><i>its</i><a title=bo>it</a>"})
    rows = events(("row_change", page), ("row_change", "no page: > bo <"))
    named = events(("business", "x"), ("business", "y"), ("business", "z")).with_columns(
        name=pl.Series(["bo", "rut@example.com", "it"]), event_id=pl.Series(["n0", "n1", "n2"]))
    finding = Finding()
    finding.see(rows)
    finding.see(named)
    for people in (People(finding, Policy()), People(Finding(), Policy(), People(finding, Policy()).facts)):
        body, other = Cleaner(people, MADE).events(rows)["value"]
        assert json.loads(body)["body"] == (
            f"<p> {MADE.of('id', 'bo')}\n</p><b>{MADE.of('id', 'rut')}</b><td>BO</td><p>bo came</p><i>its</i>"
            "<a title=bo>it</a>"), "what is a word, or within a text, stays"
        assert other == "no page: > bo <"
    assert Cleaner(People(finding, Policy()), MADE).events(named)["name"].to_list()[:2] == [
        MADE.of("id", "bo"), f"{MADE.of('id', 'rut')}@example.com"], "as where they do something"
