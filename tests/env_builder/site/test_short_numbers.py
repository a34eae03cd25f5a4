"""Which numbers of few digits are ids is learnt from what they stand next to."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

from env_builder.runtime.site.routes import SiteRoutes
from env_builder.site.recorded import PageSession, RecordedRequest
from env_builder.site.short_numbers import ShortNumbers, learn_short_numbers

NUMBERS = ("12", "28", "41", "57")
BEGIN = datetime(2026, 3, 2, tzinfo=UTC)


def learn(base: str = "/cards/", extra: str = "", stem: str = "", fixed: Sequence[str] = (),
          form: tuple[tuple[str, str], ...] | None = None) -> ShortNumbers:
    """Learn from a list of cards and the page of each."""
    routes = SiteRoutes({base: base, **{f"{base}{stem}{number}": f"{base}{{cards_1}}" for number in NUMBERS}})
    rows = "".join(f"<tr><td>{number}</td><td><a href='{stem}{number}'>Lens {number}</a></td>"
                   f"<td>{place + 10} days ago</td></tr>" for place, number in enumerate(NUMBERS))
    pages = [(base, f"<table>{rows}</table><p>1 to 4 of 41</p><a href='?page=12'>on</a>{extra}")]
    pages += [(f"{base}{stem}{number}", f"<h1>Card {number}</h1><p>2026-01-28 12:41</p>") for number in NUMBERS]
    requests = [RecordedRequest(BEGIN + timedelta(minutes=place), "GET", url, None, 200, None, html, None)
                for place, (url, html) in enumerate(pages)]
    if form is not None:
        shown = "".join(f"<input name='{name}' value=''>" for name, _ in form)
        html = f"<form method=post action='{base}'>{shown}</form>"
        requests.append(RecordedRequest(BEGIN + timedelta(hours=1), "GET", base, None, 200, None, html, None))
        requests.append(RecordedRequest(BEGIN + timedelta(hours=2), "POST", base, form, 302, base, None, None))
    return learn_short_numbers([PageSession("s1", "x", requests, "ann")], routes, fixed)


def test_numbers_in_paths_are_ids_and_contexts_tell_where_they_count() -> None:
    learnt = learn()
    assert learnt.ids == (NUMBERS,) and learnt.stems == ()
    assert {"of {}", "page={}", "{} days"} <= set(learnt.counting)
    assert not {"card {}", "lens {}", "cards/{}"} & set(learnt.counting)


def test_a_word_before_numbers_without_a_gap_is_a_stem() -> None:
    learnt = learn(stem="card")
    assert learnt.ids == (NUMBERS,) and learnt.stems == ("card",)


def test_a_number_that_counts_alone_or_was_set_in_a_form_stays() -> None:
    assert learn(extra="<b>28</b>").ids == (("12", "41", "57"),)
    assert learn(form=(("amount", "41"),)).ids == (("12", "28", "57"),)
    assert learn(fixed=["/srv/57"]).ids == (("12", "28", "41"),)
    assert learn(extra="<select><option>28</option></select>").ids == (NUMBERS,), "a choice counts nothing"


def test_parts_of_dates_in_paths_are_no_ids() -> None:
    routes = SiteRoutes({f"/days/{number}/11": "/days/{days_1}/{days_2}" for number in NUMBERS})
    requests = [RecordedRequest(BEGIN, "GET", f"/days/{number}/11", None, 200, None, "<h1>x</h1>", None) for number in NUMBERS]
    assert learn_short_numbers([PageSession("s1", "x", requests)], routes, ()).ids == ()


def test_ids_in_queries_stand_in_the_headings_of_their_pages() -> None:
    pages = [(f"/show?id={number}&size=33", f"<title>Card {number}</title>") for number in NUMBERS]
    pages.append(("/cards?page=12", "<h1>Cards</h1><p>57 cards</p>"))
    requests = [RecordedRequest(BEGIN, "GET", url, None, 200, None, html, None) for url, html in pages]
    learnt = learn_short_numbers([PageSession("s1", "x", requests)], SiteRoutes({"/show": "/show", "/cards": "/cards"}), ())
    assert learnt.ids == (NUMBERS,) and "{} cards" in learnt.counting and "id={}" not in learnt.counting
