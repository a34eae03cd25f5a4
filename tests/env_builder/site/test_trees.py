"""Pages as trees: what is kept, and that rendering a tree and parsing it again changes nothing."""

from __future__ import annotations

import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from env_builder.runtime.site.trees import Element, render, squeeze
from env_builder.site.parsing import parse
from warehouse.errors import Unavailable


def body(page: str) -> Element:
    return next(element for element in parse(page).elements() if element.tag == "body")


def test_a_page_keeps_elements_attributes_and_texts_in_order() -> None:
    assert body('<p class="a">one <b>two</b> three<!-- no --> four</p><input disabled value="&quot;5&quot;">').children == [
        Element("p", {"class": "a"}, ["one ", Element("b", {}, ["two"]), " three four"]),
        Element("input", {"disabled": "", "value": '"5"'})]


def test_broken_html_is_repaired_as_browsers_repair_it() -> None:
    row = body("<table><tr><td>1<td>2</table>").children[0]
    assert isinstance(row, Element)
    assert [element.tag for element in row.elements()] == ["table", "tbody", "tr", "td", "td"]


@pytest.mark.parametrize("page", [
    "<script>if (1 < 2 && a) {}</script><style>a > b {}</style>", "<textarea>\n\n first</textarea><pre>\nx</pre>",
    '<a href="/?a=1&amp;b=2" title=\'"\'>&lt;b&gt; &amp;amp;</a>', "<p>a<br>b<img src=x>c", "<title>a &lt; b</title>", ""])
def test_a_rendered_page_parses_to_the_same_tree(page: str) -> None:
    tree = parse(page)
    assert parse(render(tree)) == tree


@settings(max_examples=50, deadline=None)
@given(text=st.text(st.characters(codec="utf-8", exclude_categories=["Cs", "Cc"]), min_size=1),
       value=st.text(st.characters(codec="utf-8", exclude_categories=["Cs", "Cc"])))
def test_any_text_and_any_attribute_value_survive_rendering(text: str, value: str) -> None:
    page = Element("html", {}, [Element("head"), Element("body", {}, [Element("p", {"title": value}, [text])])])
    assert parse(render(page)) == page


def test_a_page_of_many_levels_is_read_and_written() -> None:
    page = parse("<div>" * 3000 + "deep")
    assert sum(1 for _ in page.elements()) > 400
    assert "deep" in render(page)
    assert "deep" in render(squeeze(page))


def test_squeezing_drops_blank_texts_and_runs_of_spaces() -> None:
    root = Element("p", {"class": " a \n b "}, ["\n ", Element("b", {}, [" one\n  two "]), " "])
    assert squeeze(root) == Element("p", {"class": "a b"}, [Element("b", {}, ["one two"])])


def test_without_the_parser_the_error_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "selectolax.lexbor", None)
    with pytest.raises(Unavailable, match=r"traceroom\[browser\]"):
        parse("<p>")
