"""What a reset may show otherwise is learnt from pages that did, and a layout keeps what is sent and reached."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from env_builder.runtime.site.flat import FlatPage
from env_builder.runtime.site.layout import ArrangedSite, LayoutRules, PageLayout, is_meaningless
from env_builder.runtime.site.port import PortAnswer, PortRequest, SitePort
from env_builder.runtime.site.routes import SiteRoutes
from env_builder.runtime.site.trees import Element
from env_builder.site.layouts import fitting_viewports, learn_blocks, learn_labels, learn_layout
from env_builder.site.parsing import parse
from env_builder.site.recorded import PageSession, RecordedRequest
from env_builder.site.styles import compile_styles

ROUTES = SiteRoutes({"/desk/": "/desk/", "/shelf/": "/shelf/", "/things/7/": "/things/{things_1}/"})
NEWS, HELP = "<section><h2>News</h2><p>none</p></section>", "<div><h2>Help</h2><a href='/shelf/'>Shelf</a></div>"
FORM = ("<form method=post action=/desk/><input type=hidden name=token value='[secret]'>"
        "<label for=field-1>Title</label><input id=field-1 name=x7 value=a><input name=title id=kept-2>"
        "<button>Save</button></form>")


def sessions(pages: Sequence[str], url: str = "/desk/") -> list[PageSession]:
    begin = datetime(2026, 3, 2, tzinfo=UTC)
    return [PageSession(f"s{number}", "x", [RecordedRequest(
        begin + timedelta(hours=number), "GET", url, None, 200, None, html, None)], "ann") for number, html in enumerate(pages)]


def test_blocks_that_stood_in_two_orders_may_change_places() -> None:
    one, other = f"<h1>Desk</h1>{NEWS}{HELP}<footer>x</footer>", f"<h1>Desk</h1>{HELP}{NEWS}<footer>x</footer>"
    row, = learn_blocks(sessions([one, other, one, other]), ROUTES)
    assert row["blocks"] == ["div | Help", "section | News"], "neither the heading nor the end of the page"
    assert learn_blocks(sessions([one, one, one, other]), ROUTES) == [], "once is no evidence"
    orders = {str(PageLayout(LayoutRules([row]), seed).arranged("/desk/", parse(one))).index("News") for seed in range(9)}
    assert len(orders) == 2


def test_links_to_one_page_are_named_by_words_of_the_site() -> None:
    links = [f"<a href='/shelf/'>{label}</a>" for label in ("Shelf", "View shelf", "Ann shelf", "Shelf 2", "Back")]
    rows = learn_labels(sessions([*links, *links]), ROUTES, ["ann@x"])
    assert rows == [{"address": "/shelf/", "labels": ["Shelf", "View shelf"]}]
    assert learn_labels(sessions(links), ROUTES) == [], "each was seen once"
    things = ["<a href='/things/7/'>Red thing</a>", "<a href='/things/7/'>Thing</a>"]
    assert learn_labels(sessions([*things, *things]), ROUTES) == [], "titles of what has an id are no synonyms"
    shown = {str(PageLayout(LayoutRules(rows), seed).arranged("/desk/", parse(links[0]))).count("View shelf")
             for seed in range(9)}
    assert shown == {1}, "no name stays where it was recorded"


def test_a_window_that_hides_a_link_is_none() -> None:
    sheet = "@media (max-width: 1100px) { a { display: none } } @media (min-width: 1900px) { p { display: none } }"
    html = f"<html><head><style>{sheet}</style></head><body><a href='/shelf/'>Shelf</a><p>More</p></body></html>"
    sizes = fitting_viewports(sessions([html]), ROUTES, compile_styles({}, [sheet]))
    assert (1024, 768) not in sizes and (1280, 720) in sizes and (1920, 1080) in sizes


class Site(SitePort):
    """Keeps what it was asked."""

    def __init__(self, page: Element) -> None:
        self.page = page
        self.asked: list[PortRequest] = []

    def ask(self, request: PortRequest) -> PortAnswer:
        self.asked.append(request)
        return PortAnswer(200, "recorded", page=self.page)


@given(st.integers(0, 99))
def test_forms_come_back_with_recorded_names_and_tokens(seed: int) -> None:
    page = parse(FORM)
    rows = learn_layout(sessions([FORM]), ROUTES, ["#kept-2 { color: red }"], compile_styles({}, []))
    layout = PageLayout(LayoutRules(rows), seed)
    port = ArrangedSite(site := Site(page), layout, lambda method, url: ("/desk/", ()))
    shown = port.ask(PortRequest("GET", "/desk/")).page
    assert shown is not None
    fields = [each.attributes for each in shown.elements() if each.tag == "input"]
    label, = (each.attributes for each in shown.elements() if each.tag == "label")
    assert fields[0]["value"] != "[secret]" and fields[1]["name"] != "x7" and fields[2]["name"] == "title"
    assert label["for"] == fields[1]["id"] != "field-1" and fields[2]["id"] == "kept-2", "a style sheet names it"
    port.ask(PortRequest("POST", "/desk/", tuple((each["name"], each.get("value", "")) for each in fields)))
    assert site.asked[-1].form == (("token", "[secret]"), ("x7", "a"), ("title", ""))


@given(st.integers(0, 99), st.lists(st.integers(0, 999), unique=True, min_size=2, max_size=7))
def test_each_element_of_a_page_has_its_place_on_the_arranged_one(seed: int, numbers: list[int]) -> None:
    rows = "".join(f"<li><b>{number}</b><a href='/things/{number}/'>x</a></li>" for number in numbers)
    page = parse(f"<ul>{rows}</ul><p>end</p>")
    layout = PageLayout(LayoutRules([{"path": "/desk/", "list": ["html", "body", "ul"]}]), seed)
    arranged = layout.arranged("/desk/", page)
    places = layout.places(arranged)
    before, after = FlatPage(page), FlatPage(arranged)
    assert places is not None and sorted(places) == list(range(len(before.tags)))
    for number, place in enumerate(places):
        assert (before.tags[number], before.attributes[number]) == (after.tags[place], after.attributes[place])
        assert before.tags[number] not in ("b", "li") or before.text(number) == after.text(place)
    assert layout.places(page) is None or arranged is page


def test_names_without_a_word_say_nothing() -> None:
    assert all(map(is_meaningless, ("q", "x7", "f_12", "a9f3c2", "0")))
    assert not any(map(is_meaningless, ("title", "form-0-quantity", "")))
