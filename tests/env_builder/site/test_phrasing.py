"""Phrases that may be exchanged are titles of what links lead to, and texts that asks gave."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime

from env_builder.runtime.site.routes import SiteRoutes
from env_builder.site.phrasing import KnownTexts, learn_phrases
from env_builder.site.recorded import PageSession, RecordedRequest

TITLES = ("dull lens", "grey sea", "loud bell", "warm ink")
ROUTES = SiteRoutes({"/cards/": "/cards/", **{f"/cards/{place}": "/cards/{cards_1}" for place in range(4)}})


def learn(texts: Sequence[str] = (), asked: Mapping[str, Sequence[str]] | None = None, query: str = "", more: str = "",
          constants: Sequence[str] = (), words: Sequence[str] = ()) -> list[list[str]]:
    rows = "".join(f"<li><a href='{place}'>{title}</a> <a href='{place}'>Look at it</a></li>"
                   for place, title in enumerate(TITLES))
    request = RecordedRequest(datetime(2026, 3, 2, tzinfo=UTC), "GET", f"/cards/{query}", None, 200, None,
                              f"<ul>{rows}</ul><a href='/cards/'>All the cards</a>{more}", None)
    known = KnownTexts(texts, asked or {}, set(constants), set(words))
    return sorted(sorted(each) for each in learn_phrases([PageSession("s1", "x", [request])], ROUTES, known) if each)


def test_titles_are_names_of_links_to_one_entity() -> None:
    assert learn() == [list(TITLES)]


def test_what_asks_gave_joins_the_titles_it_became() -> None:
    assert learn(asked={"new title": ["dull lens", "thin rope"], "note": ["Seen again.", "sent back", "alone"]}) == [
        ["Seen again", "sent back"], sorted([*TITLES, "thin rope"])], "signs at its end are none of a phrase"


def test_a_phrase_of_which_a_part_was_written_stays() -> None:
    assert learn(["please look at grey sea", "the bell, please"]) == [list(TITLES)], "the whole, or a word alone"
    assert learn(asked={"title": ["very old rope at home"]}, texts=["rope home"]) == [list(TITLES)]


def test_a_part_that_several_phrases_have_names_none_of_them() -> None:
    asked = {"title": [f"{name} makes odd noise" for name in ("Lamp", "Bell", "Rope", "Door")]}
    assert sorted(asked["title"]) in learn(["what makes odd noise?"], asked)


def test_phrases_are_exchanged_with_those_that_a_search_finds_too() -> None:
    assert learn(query="?q=lens", asked={"title": ["dull lens", "thin lens"]}) == [
        ["dull lens", "thin lens"], ["grey sea", "loud bell", "warm ink"]]


def test_phrases_of_templates_and_words_that_are_exchanged_by_themselves_stay() -> None:
    assert learn(constants=["warm ink"], words=["bell"]) == [["dull lens", "grey sea"]]


def test_a_title_that_its_address_has_too_stays() -> None:
    assert learn(more="<li><a href='/cards/red-rope_12'>Red rope</a></li><li><a href='12'>Blue rope</a></li>") == [
        sorted([*TITLES, "Blue rope"])]
