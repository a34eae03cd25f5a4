"""What a page repeats of its request is not taken for what all pages of its route show."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from urllib.parse import quote

from hypothesis import example, given
from hypothesis import strategies as st

from env_builder.runtime.site.model import InducedPages
from env_builder.runtime.site.port import PortAnswer, PortRequest
from env_builder.runtime.site.trees import render
from env_builder.site.echoes import repeated_values
from env_builder.site.learning import RecordedAnswer, write_site
from env_builder.site.parsing import collapse, parse

MONDAY = datetime(2026, 3, 2, 9, tzinfo=UTC)


def page(target: str) -> str:
    return (f"<h1>Log in</h1><p>Then on to {target}.</p><form method=post action='/in?to={target}'>"
            f"<input name=to type=hidden value='{target}'><input name=who></form>")


def site(targets: Sequence[str]) -> InducedPages:
    """Return a site of one log in, or more, each with the way to another page."""
    answers = [RecordedAnswer(f"s{number}", "ann", MONDAY + timedelta(hours=number),
                              PortRequest("GET", f"/in?to={quote(target)}"),
                              PortAnswer(200, "recorded", page=collapse(parse(page(target)))))
               for number, target in enumerate(targets)]
    with TemporaryDirectory() as folder:
        write_site(Path(folder), answers, {"/in": "/in"})
        return InducedPages.load(Path(folder))


def shown(pages: InducedPages, target: str) -> str:
    request = PortRequest("GET", f"/in?to={quote(target)}")
    answered = pages.answer(request, "bea", MONDAY + timedelta(days=9), [])
    assert answered is not None and answered[0].page is not None
    return render(answered[0].page)


def test_the_one_page_on_record_shows_not_where_it_led_to_another_request() -> None:
    other = shown(site(["/boxes/77"]), "/boxes/91")
    assert "/boxes/77" not in other and "Log in" in other


def test_what_several_pages_repeat_is_repeated_for_another_value() -> None:
    assert shown(site(["/boxes/77"] * 4), "/boxes/91") == render(collapse(parse(page("/boxes/91"))))


def test_words_and_short_numbers_are_no_echoes() -> None:
    arguments = [{"query to": "/main", "query part": "profile", "query page": "12", "query id": "box12"},
                 {"query to": "/main", "query part": "profile", "query page": "12", "query id": "box13"}]
    assert repeated_values(arguments, arguments[0]) == ["/main"]


PATHS = st.from_regex(r"/boxes/[1-9][0-9]{2,5}", fullmatch=True)


def test_a_number_that_is_also_the_status_makes_no_kind_of_answer() -> None:
    assert "Log in" in shown(site(["/boxes/200"] * 4), "/boxes/100")


@given(one=PATHS, other=PATHS)
@example(one="/boxes/200", other="/boxes/100")
def test_no_page_shows_the_value_of_another_request(one: str, other: str) -> None:
    assert (one in shown(site([one]), other)) == (one in other)
