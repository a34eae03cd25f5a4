"""Names of families and sentences of goals, from words and tools alone: on a made desk, on the real sample, in any order."""

from __future__ import annotations

import re
from pathlib import Path

import polars as pl
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from extractors.inventory import discover
from extractors.reading import read
from extractors.sessions import assemble
from extractors.tasks import goals_of
from extractors.tasks.names import (
    LONGEST,
    LONGEST_NAME,
    asked_by,
    called,
    cleaned,
    filled,
    general,
    marked,
    names_of,
    shortened,
    spoken,
)
from tests.extractors.tasks.shelves import TOOLS, desk, goal
from warehouse.records import Goal, frame

SAMPLES = Path(__file__).resolve().parents[2] / "logs"


def test_a_family_is_called_by_its_tool_or_by_its_most_typical_words() -> None:
    made = names_of(desk(), TOOLS)
    named = {row["family"]: row for row in made.families.to_dicts()}
    assert named["family of moveShelf"]["name"] == "move shelf"
    assert named["family of moveShelf"]["sentence"] == "please move shelf {id} to {town}. Thanks a lot!"
    assert named["family of "]["name"] == "how bright is the lamp by night"
    both = named["both"]
    assert both["name"] == f"move shelf + {named['family of ']['name']}"
    assert both["kinds"] == ["family of moveShelf", "family of "] and both["written_by"] is None


def kind_of_sentences(*sentences: str) -> pl.DataFrame:
    """Return goals of one kind without a tool, beside those of the desk."""
    return frame(Goal, [*desk().to_dicts(), *(goal(f"own{n}", 0, "other", words) for n, words in enumerate(sentences))])


@pytest.mark.parametrize(("sentences", "calls", "name"), [
    (("Please cancel my booking AB-1 for Carl", "could you cancel the booking of Ada?", "cancel booking 77 please"), (),
     "Please cancel booking"),
    (("My aunt Olga is unwell", "we moved to Graz", "I lost a parcel", "what now?"), (), "other requests"),
    (("My aunt Olga is unwell", "we moved to Graz", "I lost a parcel", "what now?"),
     (("own0", "getBooking", "read"), ("own1", "getBooking", "read"), ("own2", "endBooking", "write"),
      ("own3", "endBooking", "write"), ("own3", "getBooking", "read")), "end booking"),
    (("Olga and 41 lamps",), (), "other requests"),
    (("trains from Graz", "from Rome by trains", "trains, from Oslo", "trains from Lima"), (), "trains"),
    (("from Graz", "from Rome, by bus", "it comes from Oslo", "from Lima to here"), (), "other requests")])
def test_a_name_says_what_members_share_and_quotes_none_of_them(
        sentences: tuple[str, ...], calls: tuple[tuple[str, str, str], ...], name: str) -> None:
    called_tools = pl.DataFrame(
        [(session, 1, tool, effect) for session, tool, effect in calls], orient="row",
        schema={"session_id": pl.String, "position": pl.Int64, "tool": pl.String, "effect": pl.String})
    made = names_of(kind_of_sentences(*sentences), TOOLS, called_tools)
    assert dict(made.families.select("family", "name").iter_rows())["family of other"] == name


def test_a_sentence_marks_what_its_words_say_and_nothing_else() -> None:
    told = dict(names_of(desk(), TOOLS).sentences.select("goal_id", "sentence").iter_rows())
    assert told["move3/0"] == "please move shelf [id: #S-503] to [town: Lyon]. Thanks a lot!"
    assert told["lamp3/0"] == "how bright is the lamp 903 by night?"


@pytest.mark.parametrize("name", ["airline", "shop_app", "human_desk", "office"])
def test_real_logs_are_named_alike_in_any_order(name: str) -> None:
    files, _ = discover([SAMPLES / name])
    readings = [read(file) for file in files]
    made = assemble(pl.concat([r.events for r in readings]), pl.concat([r.declarations for r in readings]))
    effects = made.tools.select("service", "tool", pl.lit("write").alias("effect"))
    goals = goals_of(made.sessions, made.turns, effects)
    found = names_of(goals, made.tools)
    again = names_of(goals.sample(fraction=1.0, shuffle=True, seed=1), made.tools.reverse())
    assert found.families.equals(again.families) and found.sentences.equals(again.sentences)
    assert set(found.families["family"]) == set(goals["family"]) | set(goals["kind"])
    assert sorted(found.sentences["goal_id"]) == sorted(goals["goal_id"])
    single = found.families.filter(pl.col("kinds").list.len() == 1)
    assert single.select("service", "name").is_duplicated().sum() == 0 and (single["name"].str.len_chars() > 2).all()
    for words, sentence in goals.join(found.sentences, on="goal_id").select("goal", "sentence").iter_rows():
        unmarked = re.sub(r"\[[^:\]]+: ([^\]]*)\]", r"\1", sentence)
        known = set(re.findall(r"\w+", f"{words} {asked_by(words)}"))
        assert set(re.findall(r"\w+", unmarked)) <= known, "a sentence adds no word to what was said or requested"


def test_greetings_and_what_is_said_twice_are_left_out() -> None:
    assert cleaned("Hello\nHi there!  I need  a lamp.\nI need a lamp.") == "I need a lamp."
    assert cleaned("well, I need a lamp", frozenset({"well"})) == "I need a lamp"
    assert cleaned("hello", frozenset({"hello"})) == "hello" and cleaned("") == ""
    assert cleaned("one two three four. " * 40).endswith((".", "…"))


@given(st.text(max_size=600), st.dictionaries(st.text(min_size=1, max_size=5), st.text(max_size=9), max_size=4))
@example("{0}", {})
def test_any_text_is_worded(words: str, slots: dict[str, str]) -> None:
    said = cleaned(words)
    assert len(said) <= LONGEST and "\n" not in said and cleaned(said) in (said, cleaned(said))
    named = called(list(slots), "")
    once = marked(said, slots, lambda slot, value: filled(named[slot], value))
    assert not slots or len(once) >= len(said)
    assert len(shortened(words, LONGEST_NAME)) <= LONGEST_NAME
    assert not re.search(r"\d", re.sub(r"\{[^{}]*\}", "", general(said, lambda word: True)))   # marks in braces stay


def test_names_of_tools_and_slots_are_said_in_words() -> None:
    assert [spoken(tool) for tool in ("findOpenSlot", "find_open_slot", "desk.HTTPSend", "POST /rooms/{rooms_1}/keys")] == [
        "find open slot", "find open slot", "desk HTTP send", "rooms: keys"]
    assert [spoken(f"{method} {path}") for method, path in (
        ("GET", "/rooms"), ("GET", "/api/v2/rooms/{rooms_1}"), ("POST", "/rooms"), ("PATCH", "/rooms/{rooms_1}/spareKeys"),
        ("DELETE", "/rooms/{rooms_1}"), ("PURGE", "/rooms"), ("GET", "/{_1}"), ("GET", "/api"))] == [
        "rooms: list", "rooms: look up", "rooms: add", "rooms: change spare keys", "rooms: delete", "rooms: purge", "GET /…",
        "api: list"]
    assert asked_by("GET /rooms/{rooms_1}, POST /rooms") == "rooms: look up, rooms: add"
    assert asked_by("GET me a room, please") == "GET me a room, please"
    assert called(["a.id", "b.id", "rooms_1", "c.town"], "POST /rooms/{rooms_1}") == {
        "a.id": "a.id", "b.id": "b.id", "rooms_1": "rooms", "c.town": "town"}
