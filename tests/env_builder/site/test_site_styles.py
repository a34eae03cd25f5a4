"""Style sheets compiled: which rule wins, which selectors and media queries hold."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from env_builder.runtime.site.flat import FlatPage
from env_builder.runtime.site.snapshot import PageView, RefDraw
from env_builder.runtime.site.styling import Styles
from env_builder.site.parsing import parse
from env_builder.site.styles import compile_sheet, compile_styles

BODY = """<div id=menu class="menu wide"><ul><li class=a>one<li class="a b">two<li>three</ul></div>
<p class=x lang=en-gb>four</p><input disabled type=text class=x value=five><a href=/ data-y="a b">six</a><span>seven</span>"""
WORDS = ("one", "two", "three", "four", "five", "six", "seven")


def shown(css: str, body: str = BODY, width: int = 1280) -> set[str]:
    """Return the words of a page that a style sheet does not hide."""
    page = FlatPage(parse(f'<link rel=stylesheet href="/s.css?v=1">{body}'))
    styles = Styles(json.loads(json.dumps(compile_styles({"https://site.test/s.css": css}))), width=width)
    text = "\n".join(PageView(page, styles.look(page), {}).lines({}, None, RefDraw.draw(1, 99, 3)))
    return {word for word in WORDS if word in text}


@pytest.mark.parametrize(
    ("css", "hidden"),
    [
        (".a{display:none}", "one two"),
        (".a.b { display : NONE ; }", "two"),
        ("#menu li{display:none}", "one two three"),
        ("#menu > li{display:none}", ""),
        ("ul > li + li{display:none}", "two three"),
        (".b ~ li{display:none}", "three"),
        ("li:first-child, li:last-child{display:none}", "one three"),
        ("li:nth-child(2n+1){display:none}", "one three"),
        ("li:not(.a){display:none}", "three"),
        (":is(#menu, p) .b{display:none}", "two"),
        ("p[lang|=en]{display:none}", "four"),
        ('a[data-y~="b"]{display:none}', "six"),
        ("a[href^='/']{display:none}", "six"),
        (":disabled{display:none}", "five"),
        (".x{visibility:hidden}", "four five"),
        ("li:hover{display:none}", ""),
        (".a:unknown, .a{display:none}", ""),
        (".a:focus, .a{display:none}", "one two"),
        (".a{display:none} .a{display:block}", ""),
        (".a{display:block} li{display:none}", "three"),
        (".a{display:none!important} #menu .a{display:block}", "one two"),
        ("#menu .a{display:block} .a{display:none}", ""),
        ("@media print{.a{display:none}}", ""),
        ("@media (max-width:600px){.a{display:none}}", ""),
        ("@media screen and (min-width: 50em){.a{display:none}}", "one two"),
        ("@media (hover:none){.a{display:none}}", ""),
        ("@media print, all{@media (min-width:1px){.a{display:none}}}", "one two"),
        ("@supports (display:grid){.a{display:none}}", "one two"),
        ("@font-face{src:url(x)} .a{display:none}", "one two"),
        ("/* .x{} */.a{content:'}';display:none}", "one two"),
        ("@import url('x;y');.a{display:none}", "one two"),
        (".a{display:none", "one two"),
        (".w\\69 de li{display:none}", "one two three"),
        ("}.a{display:none}.b{display:none}", "two"),
        ("@media (width >= 50rem){.a{display:none}}", "one two"),
        ("@media (width < 1280px){.a{display:none}}", ""),
        ("@media (400px<=width<=1280px){.a{display:none}}", "one two"),
        ("@media not all and (min-width:2000px){.a{display:none}}", "one two"),
        ("@media not print{.a{display:none}}", "one two"),
        ("@media(min-width:1px){.a{display:none}}", "one two"),
        ("@media (prefers-color-scheme:dark){.a{display:none}}", ""),
        ("@media (prefers-reduced-motion:no-preference){.a{display:none}}", "one two"),
        ("@layer x, y; @layer y{.a{display:block}} @layer x{#menu .a{display:none}}", ""),
        ("@layer x{#menu .a{display:none}} .a{display:list-item}", ""),
        ("@layer x{.a{display:none!important}} #menu .a{display:block!important}", "one two"),
        ("#menu{color:red; .a{display:none} & li.b{display:block}}", "one"),
        ("#menu{&:hover{color:red} > ul{ > li{ &:first-child{display:none}}}}", "one"),
        ("ul{@media (min-width:1px){li{display:none}} display:flex}", "one two three"),
        (".x{&.x{display:none}}", "four five"),
        ("[lang=EN-gb i]{display:none}", "four"),
        ("*{display:none}", " ".join(WORDS)),
        ("p,{display:none}", ""),
        (".a{};.b{display:none}", ""),
    ],
)
def test_rules_hide_what_they_hide_in_a_browser(css: str, hidden: str) -> None:
    assert set(WORDS) - shown(css) == set(hidden.split())


def test_the_viewport_decides_media_queries() -> None:
    css = "@media (max-width: 600px) { .a { display: none } }"
    assert shown(css, width=600) == set(WORDS) - {"one", "two"} and shown(css, width=601) == set(WORDS)


def test_an_attribute_wins_over_sheets_but_not_over_what_is_important() -> None:
    body = '<p class=a style="display:block">one</p><p class=b style="display:block">two</p>'
    assert shown(".a{display:none} .b{display:none!important}", body) == {"one"}


def test_the_hidden_attribute_yields_to_a_sheet() -> None:
    assert shown("p{display:block}", "<p hidden>one</p><div hidden>two</div>") == {"one"}


@pytest.mark.parametrize(
    ("sheet", "applies"),
    [
        ("<style>", True),
        ("<style media=print>", False),
        ("<style media='(min-width: 9000px)'>", False),
        ("<style media='screen and (min-width: 9px)'>", True),
        ("<noscript><style>", False),
        ("<template><style>", False),
    ],
)
def test_a_sheet_for_something_else_is_left_out(sheet: str, applies: bool) -> None:
    page = FlatPage(parse(f"<body>{sheet}p{{display:none}}</style></noscript></template><p>one"))
    look = Styles(compile_styles({}, ["p{display:none}"])).look(page)
    assert look.removed[page.of_tag["p"][0]] == applies


def test_text_of_a_style_stands_before_and_after() -> None:
    css = """.i::before{content:"\\201C" attr(data-t) "x"} .i:after{content:'!'; display:block} .j::before{content:url(x)}"""
    page = FlatPage(parse(f"<style>{css}</style><a href=/ class=i data-t=T>one</a><a href=/ class=j>two</a>"))
    styles = Styles(compile_styles({}, [css]))
    view = PageView(page, styles.look(page), {})
    assert view.select('role=link[name="“Txone !"]') and view.select('role=link[name="two"]')


def test_what_is_not_about_showing_is_dropped() -> None:
    assert compile_sheet("a{color:red} .b{margin:0;display:var(--x)} :root{--x:1}") == []


CSS = st.text(st.sampled_from("abx.#>+~:,;{}()[]\"'\\*/@ \n-=!") | st.characters(codec="utf-8"), max_size=60)
PIECES = st.lists(
    st.sampled_from(
        [
            ".a",
            "{",
            "}",
            "display:none",
            ";",
            "@media",
            "(min-width:1px)",
            ":not(",
            ")",
            "'",
            "/*",
            "li",
            ",",
            ">",
            "[x=",
            "]",
            "::before",
            "content:'x'",
        ]
    ),
    max_size=25,
).map(" ".join)


@given(CSS | PIECES)
def test_any_text_is_compiled_without_an_error(text: str) -> None:
    page = FlatPage(parse(f"<style>x</style>{BODY}"))
    look = Styles(json.loads(json.dumps(compile_styles({"/x": text})))).look(page)
    assert len(look.shown) == len(page.tags)
    assert shown(f"{text}") <= set(WORDS)
