"""What stands in a template's places, and the page that it makes again."""

from __future__ import annotations

import pytest

from env_builder.runtime.site.templates import SECRET, PageTemplate
from env_builder.runtime.site.trees import Element, decode, encode, render, squeeze
from env_builder.site.filling import extract, plain_template
from env_builder.site.parsing import parse
from env_builder.site.shapes import learn_template

PAGES = [squeeze(parse(page)) for page in (
    '<h1 id="a">Monday</h1><ul><li><a href="/1/">saw</a> 3.00</ul>',
    '<h1 id="b">Tuesday</h1><ul><li><a href="/1/">saw</a> 3.00<li><a href="/2/">axe</a> 9.50</ul><p>Closed <b>now</b>.</p>',
    "<h1>Sunday</h1><ul></ul>")]
TEMPLATE = learn_template(PAGES)
PAGE_TEMPLATE = PageTemplate(plain_template(TEMPLATE))


@pytest.mark.parametrize("page", [*PAGES, squeeze(parse('<h1 id="z">Friday</h1><ul><li><a href="/7/">nail</a> 1.00</ul>'))])
def test_a_page_that_fits_is_made_again_of_its_filling(page: Element) -> None:
    filling = extract(TEMPLATE, page)
    assert filling is not None
    assert PAGE_TEMPLATE.fill(filling, "") == page


def test_attributes_stand_where_the_pages_have_them() -> None:
    pages = [parse(f'<form{own} method="post" action="/{name}"><input{checked} type="radio" name="a"></form>')
             for name, own, checked in (("x", "", ""), ("y", ' id="b"', " checked"), ("z", "", ""))]
    template = learn_template(pages)
    for page in pages:
        made = PageTemplate(plain_template(template)).fill(extract(template, page) or {}, "")
        assert render(made) == render(page)


def test_a_filling_holds_places_alone() -> None:
    filling = extract(TEMPLATE, PAGES[2])
    assert filling is not None
    assert list(filling.values()) == [None, "Sunday", "[]", "[]"], "no id, the heading, no rows, no notice"


@pytest.mark.parametrize("page", [
    "<h1>Monday</h1>", "<h1>Monday</h1><ul></ul><form></form>", "<h1 class=x>Monday</h1><ul></ul>"])
def test_a_page_that_does_not_fit_has_no_filling(page: str) -> None:
    assert extract(TEMPLATE, squeeze(parse(page))) is None


def test_a_place_without_a_value_is_an_error() -> None:
    with pytest.raises(KeyError):
        PAGE_TEMPLATE.fill({}, "")


def test_nodes_survive_as_json() -> None:
    nodes = [*PAGES, 'text with "quotes"']
    assert decode(encode(nodes)) == nodes


def test_parts_without_places_are_shared_and_secrets_are_drawn() -> None:
    pages = [parse(f'<h1>{name}</h1><nav><a href="/">home</a></nav><input name="csrf" value="{SECRET}">') for name in "ab"]
    template = PageTemplate(plain_template(learn_template(pages)))
    first, second = (template.fill(extract(learn_template(pages), page) or {}, secret)
                     for page, secret in zip(pages, ("x1", "y2"), strict=True))
    assert [list(each.elements())[-1].attributes["value"] for each in (first, second)] == ["x1", "y2"]
    navs = [next(each for each in page.elements() if each.tag == "nav") for page in (first, second)]
    assert navs[0] is navs[1]


def test_an_unknown_place_is_marked_where_people_and_programs_look() -> None:
    filling = extract(TEMPLATE, PAGES[1])
    assert filling is not None
    heading, identity, rows = "1/0/0", "1/0/id", "1/1/0"
    assert {heading, identity, rows} <= set(filling)
    page = render(PAGE_TEMPLATE.fill(filling, "", frozenset({heading, identity, rows})))
    assert '<h1 data-unknown="id text">[unknown]</h1>' in page
    assert '<ul data-unknown="rows"><li data-unknown="row"><a href="/1/">saw</a>3.00</li>' in page
    assert '<li>[unknown]</li></ul>' in page
    assert '<p>Closed <b>' in page or "<p>Closed<b>" in page, "nothing else is marked"


def test_what_rows_have_in_common_is_no_reason_not_to_fit() -> None:
    pages = [squeeze(parse(page)) for page in (
        "<h2>A</h2><ul><li class=x>1<li class=x>2</ul>", "<ul><li class=x>3</ul>", "<h2>C</h2><ul><li class=x>4</ul>")]
    template = learn_template(pages)
    other = squeeze(parse("<h2>D</h2><ul><li class=x id=odd>5</ul>"))
    filling = extract(template, other)
    assert filling is not None and PageTemplate(plain_template(template)).fill(filling, "") == other
