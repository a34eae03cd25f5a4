"""Templates of pages: what is constant, what is a place, what repeats, and which new pages fit."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from env_builder.runtime.site.trees import Element, Node
from env_builder.site.shapes import ElementShape, TextShape, assign, fit, learn_template, places_of, rows_of


def element(tag: str, *children: Node, **attributes: str) -> Element:
    return Element(tag, {name.rstrip("_"): value for name, value in attributes.items()}, list(children))


def page(title: str, rows: Sequence[tuple[str, str]], *more: Node) -> Element:
    """Return a page with a heading and a block for each row, in blocks that are no table."""
    blocks = [element("div", element("a", name, href=f"/{name}/"), element("span", price), class_="row")
              for name, price in rows]
    return element("body", element("h1", title), element("section", *blocks), *more)


TWO_ROWS = page("Monday", [("saw", "3.00"), ("axe", "9.50")])
THREE_ROWS = page("Tuesday", [("saw", "3.00"), ("nail", "0.10"), ("glue", "2.00")])
NO_ROWS = page("Sunday", [])


def test_texts_and_attributes_that_differ_are_places_and_the_others_constant() -> None:
    template = learn_template([element("p", "Hello", lang="en", id_="a"), element("p", "Hello", lang="en", id_="b")])
    assert (template.constants, template.places) == ({"lang": "en"}, {"id"})
    assert template.children[0].shape == TextShape("Hello")
    assert places_of(template) == 1


def test_an_attribute_that_only_some_pages_have_is_a_place() -> None:
    template = learn_template([element("input", checked=""), element("input")])
    assert template.places == {"checked"}
    assert fit(template, element("input")).fits
    assert not fit(template, element("input", disabled="")).has_structure


def test_siblings_of_one_tag_and_class_in_different_numbers_are_rows() -> None:
    template = learn_template([TWO_ROWS, THREE_ROWS])
    section = template.children[1].shape
    assert isinstance(section, ElementShape)
    assert [(child.signature, child.number) for child in section.children] == [(("div", "row"), "rows")]
    row = section.children[0].shape
    assert isinstance(row, ElementShape)
    assert row.n_examples == 5
    assert rows_of(template) == 1


@pytest.mark.parametrize("n_rows", [0, 1, 2, 7])
def test_a_page_with_any_number_of_rows_fits(n_rows: int) -> None:
    template = learn_template([TWO_ROWS, THREE_ROWS, NO_ROWS])
    result = fit(template, page("Friday", [(f"item {n}", f"{n}.00") for n in range(n_rows)]))
    assert result.fits
    assert result.n_places == 1 + 3 * n_rows   # the heading, and of each row the link, its address and the price


def test_equally_many_rows_in_all_pages_are_rows_where_their_content_differs() -> None:
    template = learn_template([TWO_ROWS, page("Tuesday", [("nail", "0.10"), ("glue", "2.00")])])
    assert rows_of(template) == 1
    assert fit(template, THREE_ROWS).fits


def test_a_menu_that_is_the_same_everywhere_is_no_row() -> None:
    menu = element("ul", *(element("li", element("a", name, href=f"/{name}/")) for name in ("home", "shop")))
    template = learn_template([element("body", menu, "one"), element("body", menu, "two")])
    assert (rows_of(template), places_of(template)) == (0, 1)
    shorter = element("body", element("ul", element("li", element("a", "home", href="/home/"))), "three")
    assert fit(template, shorter).n_missing == 1


def test_cells_of_a_table_keep_their_columns() -> None:
    rows = [element("tr", element("td", name), element("td", "each"), element("td", price)) for name, price in
            (("saw", "3.00"), ("axe", "9.50"), ("nail", "0.10"))]
    template = learn_template([element("table", *rows[:1]), element("table", *rows[1:])])
    row = template.children[0].shape
    assert isinstance(row, ElementShape)
    assert [child.number for child in row.children] == ["one", "one", "one"]
    assert places_of(template) == 2


def test_what_only_some_pages_have_may_be_missing_wherever_it_stands() -> None:
    notice = element("div", "Saved.", class_="notice")
    template = learn_template([TWO_ROWS, page("Tuesday", [("saw", "1.00")], notice)])
    assert [child.number for child in template.children] == ["one", "one", "maybe"]
    assert fit(template, THREE_ROWS).has_structure
    assert fit(template, page("Monday", [], notice)).has_structure
    assert fit(template, page("Monday", [], notice, notice)).n_surplus == 2


def test_a_changed_constant_fits_the_structure_and_not_the_template() -> None:
    template = learn_template([element("p", "Hello", id_="a"), element("p", "Hello", id_="b")])
    result = fit(template, element("p", "Goodbye", id_="c"))
    assert (result.has_structure, result.fits, result.coverage) == (True, False, 0.5)


def test_an_unknown_element_and_a_missing_one_break_the_structure() -> None:
    template = learn_template([TWO_ROWS, THREE_ROWS])
    surplus = fit(template, page("Friday", [], element("form", element("input", name="q"), "Search")))
    assert (surplus.n_surplus, surplus.n_missing, surplus.has_structure) == (2, 0, False)
    missing = fit(template, element("body", element("h1", "Friday")))
    assert (missing.n_surplus, missing.n_missing, missing.has_structure) == (0, 1, False)


def test_a_template_fits_every_page_that_it_was_made_of() -> None:
    pages = [TWO_ROWS, THREE_ROWS, NO_ROWS, page("Monday", [("saw", "1.00")], element("hr"), element("p", "Closed"))]
    assert all(fit(learn_template(pages), each).fits for each in pages)


def test_nodes_are_assigned_so_that_most_have_a_child_of_the_template() -> None:
    one, many = element("b", "x"), element("i", "y")
    template = learn_template([element("p", one, many), element("p", many, many, one)])
    nodes = [many, many, many, one]
    assigned = assign(template.children, nodes)
    assert [child.signature if child else None for child in assigned] == [("i", "")] * 3 + [("b", "")]


def test_pages_without_a_common_root_have_no_template() -> None:
    with pytest.raises(ValueError, match="same root"):
        learn_template([element("html"), element("p")])
    with pytest.raises(ValueError, match="needs pages"):
        learn_template([])
