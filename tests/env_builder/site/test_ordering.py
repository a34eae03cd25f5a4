"""Lists whose order says nothing are told from those with one, and are laid out by a seed."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from random import Random

from hypothesis import given
from hypothesis import strategies as st

from env_builder.runtime.site.layout import LayoutRules, PageLayout, shown_text
from env_builder.runtime.site.routes import SiteRoutes
from env_builder.runtime.site.trees import Element
from env_builder.site.ordering import learn_unordered
from env_builder.site.parsing import parse
from env_builder.site.recorded import PageSession, RecordedRequest

ROUTES = SiteRoutes({"/things/": "/things/"})
ITEMS = [(name, f"{price}.50", f"2026-0{month}-11") for name, price, month in (
    ("Lamp", 20, 3), ("Quill", 4, 7), ("Harbour", 130, 1), ("Ant", 9, 9), ("Zoo", 55, 2), ("Moss", 31, 5))]
LIST = ("html", "body", "table", "tbody")


def page(items: list[tuple[str, str, str]], field: str = "") -> str:
    rows = "".join(f"<tr><td><a href='/things/{name}'>{name}</a>{field}</td><td>{price}</td><td>{day}</td></tr>"
                   for name, price, day in items)
    return f"<h1>Things</h1><ul><li>New<li>Old<li>All</ul><table>{rows}</table>"


def sessions(pages: list[str]) -> list[PageSession]:
    begin = datetime(2026, 3, 2, tzinfo=UTC)
    return [PageSession(f"s{number}", "x", [RecordedRequest(
        begin + timedelta(hours=number), "GET", "/things/", None, 200, None, html, None)]) for number, html in enumerate(pages)]


def shuffled(n_pages: int = 6) -> list[list[tuple[str, str, str]]]:
    random = Random(5)
    return [random.sample(ITEMS, 4 + number % 3) for number in range(n_pages)]


def test_rows_in_any_order_have_none() -> None:
    assert learn_unordered(sessions([page(each) for each in shuffled()]), ROUTES) == [{"path": "/things/", "list": list(LIST)}]


def test_sorted_rows_stay() -> None:
    for key in (lambda item: item[0], lambda item: -float(item[1]), lambda item: item[2]):
        pages = [page(sorted(each, key=key)) for each in shuffled()]
        assert learn_unordered(sessions(pages), ROUTES) == []


def test_rows_in_the_order_in_which_they_came_stay() -> None:
    assert learn_unordered(sessions([page(ITEMS[:number]) for number in range(3, 7)]), ROUTES) == []


def test_without_evidence_lists_stay() -> None:
    assert learn_unordered(sessions([page(each) for each in shuffled(2)]), ROUTES) == []
    assert learn_unordered(sessions([page(each, "<input name=chosen type=checkbox>") for each in shuffled()]), ROUTES) == []


@given(st.integers(0, 99), st.permutations(ITEMS), st.integers(2, 6))
def test_a_layout_has_the_same_rows_in_one_order(seed: int, items: list[tuple[str, str, str]], n_shown: int) -> None:
    layout = PageLayout(LayoutRules([{"path": "/things/", "list": list(LIST)}]), seed)
    whole, part = parse(page(ITEMS)), parse(page(items[:n_shown]))
    before = shown_text(part)
    arranged = rows(layout.arranged("/things/", part))
    assert sorted(arranged) == sorted(rows(part)) and shown_text(part) == before, "the page itself stays as it is"
    assert arranged == [row for row in rows(layout.arranged("/things/", whole)) if row in arranged]
    assert layout.arranged("/things/", part) is layout.arranged("/things/", part), "a page is laid out once"
    assert layout.arranged("/others/", part) is part


def test_seeds_lay_out_otherwise() -> None:
    orders = {tuple(rows(PageLayout(LayoutRules([{"path": "/things/", "list": list(LIST)}]), seed).arranged(
        "/things/", parse(page(ITEMS))))) for seed in range(8)}
    assert len(orders) > 5


def rows(tree: Element) -> list[str]:
    return [shown_text(element) for element in tree.elements() if element.tag == "tr"]
