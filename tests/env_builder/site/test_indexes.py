"""Rows that each lead to an entity of their own are laid out in another order, between the headings that part them."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from env_builder.runtime.site.layout import LayoutRules, PageLayout
from env_builder.runtime.site.routes import SiteRoutes
from env_builder.runtime.site.trees import Element
from env_builder.site.indexes import learn_indexes
from env_builder.site.parsing import parse
from env_builder.site.recorded import PageSession, RecordedRequest

ROUTES = SiteRoutes({"/cards/": "/cards/", **{f"/cards/{number}": "/cards/{cards_1}" for number in range(1, 9)},
                    "/people/3": "/people/{people_1}"})


def row(number: int, more: str = "") -> str:
    return f"<tr><td>{number}</td><td><a href='{number}'>Lens {number}</a>{more}</td></tr>"


def page(rows: str) -> str:
    return f"<html><body><table><tbody>{rows}</tbody></table></body></html>"


def learn(*rows: str) -> list[dict[str, object]]:
    return learn_pages(*map(page, rows))


def learn_pages(*pages: str, form: tuple[tuple[str, str], ...] | None = None) -> list[dict[str, object]]:
    requests = [RecordedRequest(datetime(2026, 3, 2, tzinfo=UTC), "GET", "/cards/", form, 200, None, each, None)
                for each in pages]
    return learn_indexes([PageSession("s1", "x", requests, "ann")], ROUTES, [])


PARTED = "".join(["<tr><th>high</th></tr>", *map(row, (1, 2, 3, 4)), "<tr><th>low</th></tr>", *map(row, (5, 6, 7, 8))])


def test_rows_change_places_between_the_headings_that_part_them() -> None:
    rules = LayoutRules(learn(PARTED))
    recorded = parse(page(PARTED))
    orders = set()
    for seed in range(8):
        arranged = PageLayout(rules, seed).arranged("/cards/", recorded)
        texts = [next(each for child in tr.elements() for each in child.children if isinstance(each, str))
                 for tr in arranged.elements() if tr.tag == "tr"]
        assert (texts[0], texts[5]) == ("high", "low")
        assert sorted(texts[1:5]) == ["1", "2", "3", "4"] and sorted(texts[6:]) == ["5", "6", "7", "8"]
        assert not any(text == str(place) for place, text in enumerate(texts[1:5], 1)), "none keeps its place"
        orders.add(tuple(texts))
    assert len(orders) > 4


def test_places_of_elements_follow_the_rows() -> None:
    layout = PageLayout(LayoutRules(learn(PARTED)), 3)
    recorded = parse(page(PARTED))
    arranged = layout.arranged("/cards/", recorded)
    places, before, after = layout.places(arranged), list(recorded.elements()), list(arranged.elements())
    assert places is not None
    assert all(_is_alike(after[place], each) for place, each in zip(places, before, strict=True))


def _is_alike(one: Element, other: Element) -> bool:
    return (one.tag, one.attributes) == (other.tag, other.attributes)


@pytest.mark.parametrize("rows", [
    "".join(map(row, (1, 2))),
    row(1) + row(2) + row(2),
    row(1) + row(2) + "<tr><td>9</td><td><b>no link</b></td></tr>",
    "".join(row(number, "<input name='amount'>") for number in (1, 2, 3)),
], ids=["few", "one twice", "a row without a link", "fields of one name"])
def test_other_tables_stay(rows: str) -> None:
    assert learn(PARTED) and learn(rows) == []


def test_a_table_that_once_was_no_index_stays() -> None:
    assert learn(PARTED, row(1) + row(2) + row(2)) == []


def items(*hrefs: str, tag: str = "ol", row: str = "li") -> str:
    rows = "".join(f"<{row}><a href='{href}'><img src=x></a> Lens {href}</{row}>" for href in hrefs)
    return f"<html><body><{tag}>{rows}</{tag}></body></html>"


@pytest.mark.parametrize(("tag", "row"), [("ol", "li"), ("ul", "li"), ("div", "article")])
def test_a_list_is_an_index_too(tag: str, row: str) -> None:
    long, short = items("1", "2", "3", tag=tag, row=row), items("4", "5", tag=tag, row=row)
    rules = LayoutRules(learn_pages(long, short))
    for recorded in (parse(long), parse(short)):
        before = [each.attributes["href"] for each in recorded.elements() if each.tag == "a"]
        for seed in range(4):
            after = [each.attributes["href"] for each in PageLayout(rules, seed).arranged("/cards/", recorded).elements()
                     if each.tag == "a"]
            assert sorted(after) == before and all(one != other for one, other in zip(before, after, strict=True))


@pytest.mark.parametrize("page", [
    items("1", "2", "/people/3"),
    items("1", "1?part=2", "1?part=3"),
    items("1", "2", "2", "3"),
    items("1", "2", "3").replace("<ol>", "<ol>See also: "),
    items("1", "2", "3", tag="form"),
    items("1", "2", "3", tag="div", row="div"),
], ids=["two kinds", "parts of one", "one twice", "in a sentence", "a form", "no rows"])
def test_other_lists_stay(page: str) -> None:
    assert learn_pages(items("1", "2", "3")) and learn_pages(page) == []


BOXES = page("".join(row(number, f"<input type=checkbox name=chosen value={number}>") for number in (1, 2, 3)))


def test_boxes_to_tick_may_share_a_name_until_a_form_sends_two() -> None:
    assert learn_pages(BOXES) and learn_pages(BOXES, form=(("chosen", "1"), ("what", "print")))
    assert learn_pages(BOXES, form=(("chosen", "1"), ("chosen", "2"))) == [], "they are sent in the order of the page"
