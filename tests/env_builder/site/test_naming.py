"""What may be exchanged at a reset is learnt from pages: names of what they are about, and nothing that tells what to do."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

from env_builder.runtime.exchanges import NameClasses
from env_builder.runtime.site.routes import SiteRoutes
from env_builder.site.naming import learn_names
from env_builder.site.recorded import PageSession, RecordedRequest

TITLES = {"101": "Copper kettle", "102": "Pending harbour", "103": "Walnut of autumn", "104": "Velvet pepper"}
PATHS = {f"/things/{number}/": "/things/{things_1}/" for number in TITLES}
ROUTES = SiteRoutes({**PATHS, "/things/": "/things/"})
ASKS = ["please open Copper kettle and set the pepper", "send A7Q2Z to <@ann>", "count 4006381333931"]


def learn(extra: str = "", day: str = "May 3, 2026", texts: Sequence[str] = ASKS) -> NameClasses:
    begin = datetime(2026, 3, 2, tzinfo=UTC)
    links = "".join(f"<li><a href='/things/{number}/'>{title} {number}</a></li>" for number, title in TITLES.items())
    pages = [("/things/", f"<h1>Things</h1><ul>{links}</ul>{extra}")]
    pages += [(f"/things/{number}/", f"<h1>{title}</h1><p>{day}</p><p>7 left</p><button>Keep autumn</button><td>Pending</td>")
              for number, title in TITLES.items()]
    requests = [RecordedRequest(begin + timedelta(minutes=number), "GET", url, None, 200, None, html, None)
                for number, (url, html) in enumerate(pages)]
    templates = [["GET /things/", 200, {"children": ["Velvet"]}]]
    return learn_names([PageSession("s1", "x", requests, "ann")], ROUTES, texts, templates)


def test_words_of_titles_are_exchanged_unless_they_say_what_to_do() -> None:
    words = {word for each in learn().words for word in each}
    assert words == {"copper", "kettle", "harbour", "walnut"}, "not of a button, an ask, a cell or a template"


def test_numbers_of_paths_and_long_ones_that_people_typed() -> None:
    assert learn().numbers == (tuple(sorted(TITLES)),), "one long number alone has nothing to be exchanged with"
    two = learn(texts=[*ASKS, "count 4006381333948"])
    assert ("4006381333931", "4006381333948") in two.numbers


def test_a_number_that_may_be_a_quantity_stays() -> None:
    assert "103" in learn().numbers[0]
    begin = datetime(2026, 3, 2, tzinfo=UTC)
    other = PageSession("s2", "x", [RecordedRequest(begin, "GET", "/about/", None, 200, None, "<p>103 kg</p>", None)])
    pages = [RecordedRequest(begin, "GET", url, None, 200, None, "<h1>x</h1>", None) for url in PATHS]
    names = learn_names([PageSession("s1", "x", pages), other], ROUTES, [], [])
    assert names.numbers == (("101", "102", "104"),)


def test_years_stay_where_days_have_years_of_two_digits() -> None:
    assert 2026 in learn().years and learn(day="due 03/05/26").years == ()
