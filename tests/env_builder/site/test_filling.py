"""What stands in a template's places, and the page that it makes again."""

from __future__ import annotations

import pytest

from env_builder.runtime.site.trees import Element, decode, encode, squeeze
from env_builder.site.filling import extract, fill
from env_builder.site.parsing import parse
from env_builder.site.shapes import learn_template

PAGES = [squeeze(parse(page)) for page in (
    '<h1 id="a">Monday</h1><ul><li><a href="/1/">saw</a> 3.00</ul>',
    '<h1 id="b">Tuesday</h1><ul><li><a href="/1/">saw</a> 3.00<li><a href="/2/">axe</a> 9.50</ul><p>Closed <b>now</b>.</p>',
    "<h1>Sunday</h1><ul></ul>")]
TEMPLATE = learn_template(PAGES)


@pytest.mark.parametrize("page", [*PAGES, squeeze(parse('<h1 id="z">Friday</h1><ul><li><a href="/7/">nail</a> 1.00</ul>'))])
def test_a_page_that_fits_is_made_again_of_its_filling(page: Element) -> None:
    filling = extract(TEMPLATE, page)
    assert filling is not None
    assert fill(TEMPLATE, filling) == page


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
        fill(TEMPLATE, {})


def test_nodes_survive_as_json() -> None:
    nodes = [*PAGES, 'text with "quotes"']
    assert decode(encode(nodes)) == nodes
