"""The snapshot: roles and names as the W3C maps them, what is hidden, how lines are written."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from env_builder.runtime.site.flat import DEEPEST, FlatPage
from env_builder.runtime.site.snapshot import PageView, RefDraw
from env_builder.runtime.site.styling import Styles
from env_builder.runtime.site.trees import Element
from env_builder.site.parsing import parse


def view(html: str) -> PageView:
    page = FlatPage(parse(html))
    return PageView(page, Styles().look(page), {})


def lines(html: str) -> list[str]:
    return [re.sub(r" \[ref=e\d+\]", "", line) for line in view(html).lines({}, None, RefDraw.draw(1, 99, 5))]


@pytest.mark.parametrize(
    ("html", "expected"),
    [
        ("<a href=/x>Go</a>", '- link "Go":'),
        ("<a>no link</a>", "- generic: no link"),
        ("<button>Send <b>it</b></button>", '- button "Send it"'),
        ("<input type=submit>", '- button "Submit"'),
        ("<input type=submit value=Go>", '- button "Go"'),
        ("<input type=reset>", '- button "Reset"'),
        ("<input type=file>", '- button "Choose File"'),
        ("<input type=image alt=Pic>", '- button "Pic"'),
        ("<input aria-label=Name value=v>", '- textbox "Name": v'),
        ("<input placeholder=Hint>", '- textbox "Hint"'),
        ("<input title=T placeholder=Hint>", '- textbox "T":'),
        ("<input type=search aria-label=S>", '- searchbox "S"'),
        ("<input type=number aria-label=N value=x>", '- spinbutton "N"'),
        ("<input type=range aria-label=R>", '- slider "R": "50"'),
        ("<input type=password value=abc aria-label=P>", '- textbox "P": •••'),
        ("<input type=hidden value=h>", None),
        ("<input list=l aria-label=C><datalist id=l><option>o</datalist>", '- combobox "C"'),
        ("<input type=date aria-label=D value=2026-02-30>", '- textbox "D"'),
        ("<input type=range aria-label=R min=2 step=3>", '- slider "R": "50"'),
        ("<label>Name <input value=v></label>", '  - textbox "Name": v'),
        ("<label for=i>By id</label><input id=i>", '  - textbox "By id"'),
        ("<span id=a>One</span><span id=b>Two</span><button aria-labelledby='b a'>x</button>", '  - button "Two One": x'),
        ("<label><input type=checkbox checked> Yes</label>", '  - checkbox "Yes" [checked]'),
        ("<input type=checkbox disabled aria-label=C>", '- checkbox "C" [disabled]'),
        ("<fieldset disabled><button>B</button></fieldset>", '  - button "B" [disabled]'),
        ("<div role=button aria-pressed=true aria-expanded=true>D</div>", '- button "D" [expanded] [pressed]'),
        ("<h2>Two: x</h2>", "- 'heading \"Two: x\" [level=2]'"),
        ("<div role=heading aria-level=4>H</div>", '- heading "H" [level=4]'),
        ("<nav aria-label=Main>x</nav>", '- navigation "Main": x'),
        ("<section>x</section>", "- generic: x"),
        ("<section aria-label=S>x</section>", '- region "S": x'),
        ("<form>x</form>", "- generic: x"),
        ("<article><header>h</header></article>", "  - generic: h"),
        ("<header>h</header>", "- banner: h"),
        ("<img src=x alt=''>", None),
        ("<img src=x alt=Logo>", '- img "Logo"'),
        ("<a href=/><img alt=Logo></a>", "- link:"),
        ("<table role=presentation><tr><td>1</table>", '- generic: "1"'),
        ("<table><tr><th>A<th>B<tr><td>1<td>2</table>", '      - columnheader "A"'),
        ("<table><tr><th>A<td>1</table>", '      - rowheader "A"'),
        ("<ul role=none><li>x</ul>", "- generic: x"),
        ("<p>yes</p>", '- paragraph: "yes"'),
        ("<p>a # b</p>", '- paragraph: "a # b"'),
        ("<p>12.5</p>", '- paragraph: "12.5"'),
        ("<p>  a \n b\xa0c </p>", "- paragraph: a b c"),
        ("<div>a<p></p>b</div>", "- generic:"),
        ("<div>a<b>b</b></div>", "- generic: ab"),
        ("<a href='data:x,y'>D</a>", "  - /url: data:x,…"),
        ("<div><div><p>deep</p></div></div>", "- paragraph: deep"),
        ("<svg><title>Chart</title></svg>", '- img "Chart"'),
        ("<details><summary>S</summary>in</details>", "- group:"),
        ("<div title=Tip>x</div>", '- generic "Tip": x'),
        ("<iframe title=F src=/></iframe>", "- iframe"),
        ("<textarea aria-label=T>\nx</textarea>", '- textbox "T": x'),
    ],
)
def test_roles_names_and_lines(html: str, expected: str | None) -> None:
    shown = lines(html)
    assert expected in shown if expected is not None else not shown


@pytest.mark.parametrize(
    ("html", "expected"),
    [
        ("<p aria-hidden=true>x</p>", ["- paragraph [aria-hidden]: x"]),
        ("<em aria-hidden=true></em>", []),
        ("<meter><button>x</button></meter>", ["- meter"]),
        ("<h1><select><option>one</select> two</h1>", None),
    ],
)
def test_what_is_hidden_from_assistive_technology_is_marked(html: str, expected: list[str] | None) -> None:
    assert lines(html) == (['- heading "one two" [level=1]:', "  - combobox:", '    - option "one" [selected]', "  - text: two"]
                           if expected is None else expected)


@pytest.mark.parametrize(
    "html",
    [
        "<p hidden>x</p>",
        "<p style='display:none'>x</p>",
        "<p style='visibility: hidden !important'>x</p>",
        "<template>x</template>",
        "<p></p><noscript>x</noscript>",
        "<dialog>x</dialog>",
        "<details><p>x</details>",
        "<script>x</script>",
        "<style>x</style>",
        "<div popover>x</div>",
        "<div style='display:none'><p style='display:block'>x</p></div>",
    ],
)
def test_what_browsers_hide_is_not_shown(html: str) -> None:
    assert not any("x" in line for line in lines(html))


def test_hidden_parts_are_no_part_of_a_name() -> None:
    html = "<button>Close <span aria-hidden=true>×</span><span hidden>!</span></button>"
    assert lines(html)[0] == '- button "Close": Close ×'


def test_a_visible_element_in_an_invisible_one_is_shown() -> None:
    assert lines('<div style="visibility:hidden">a<p style="visibility:visible">b</p></div>') == ["- paragraph: b"]


def test_a_menu_of_options_shows_which_is_selected() -> None:
    assert lines("<select aria-label=S><option>One<option selected>Two</select>") == [
        '- combobox "S":',
        '  - option "One"',
        '  - option "Two" [selected]',
    ]


def test_edits_change_the_lines_of_their_fields_alone() -> None:
    page = view(
        "<p>x</p><input aria-label=A value=1><input type=checkbox aria-label=B><select aria-label=S><option>o<option>p</select>"
    )
    refs = RefDraw.draw(1, 99, 7)
    text, box, select = (page.page.controls[place] for place in range(3))
    first, second = (number for number in page.page.below(select) if page.page.tags[number] == "option")
    before = page.lines({}, None, refs)
    after = page.lines({text: "two\nwords", box: True, select: (second,)}, text, refs)
    changed = [re.sub(r" \[ref=e\d+\]", "", line).strip() for line in after if line not in before]
    assert changed == [
        '- textbox "A" [active]: two words',
        '- checkbox "B" [checked]',
        '- option "o"',
        '- option "p" [selected]',
    ]
    assert page.lines({}, None, refs) == before and first != second


def test_a_page_deeper_than_any_is_cut_and_no_error() -> None:
    root = Element("p", {}, ["deepest"])
    for _ in range(3 * DEEPEST):
        root = Element("div", {}, [root, "text"])
    page = FlatPage(Element("html", {}, [Element("body", {}, [root])]))
    shown = PageView(page, Styles().look(page), {}).lines({}, None, RefDraw.draw(1, 999, 3))
    assert len(page.tags) == DEEPEST + 1 and shown and not any("deepest" in line for line in shown)


TAGS = st.sampled_from(
    [
        "a",
        "b",
        "button",
        "div",
        "details",
        "fieldset",
        "form",
        "h1",
        "img",
        "input",
        "label",
        "legend",
        "li",
        "option",
        "p",
        "select",
        "span",
        "summary",
        "table",
        "td",
        "textarea",
        "th",
        "tr",
        "ul",
    ]
)
ATTRIBUTES = st.dictionaries(
    st.sampled_from(
        [
            "alt",
            "aria-hidden",
            "aria-label",
            "aria-labelledby",
            "checked",
            "class",
            "disabled",
            "for",
            "form",
            "hidden",
            "href",
            "id",
            "multiple",
            "name",
            "placeholder",
            "role",
            "selected",
            "style",
            "title",
            "type",
            "value",
        ]
    ),
    st.sampled_from(["", "a", "b", "true", "none", "button", "checkbox", "radio", "display:none", "#", "/x y"]),
    max_size=4,
)
TREES = st.recursive(
    st.text(max_size=8), lambda inner: st.builds(Element, TAGS, ATTRIBUTES, st.lists(inner, max_size=4)), max_leaves=25
)


@given(TREES)
def test_any_tree_has_a_snapshot_whose_refs_lead_to_its_elements(tree: Element | str) -> None:
    page = FlatPage(Element("html", {}, [Element("body", {}, [tree])]))
    shown = PageView(page, Styles().look(page), {})
    refs = RefDraw.draw(1, len(page.tags), 11)
    numbers = [refs.number(ref) for line in shown.lines({}, None, refs) for ref in re.findall(r"\[ref=(e\d+)\]", line)]
    assert len(set(numbers)) == len(numbers) and all(number in shown.nodes for number in numbers)
    for number, node in shown.nodes.items():
        selected = shown.select(f"role={node.role}") or []
        assert all(shown.nodes[each].role == node.role for each in selected)
        assert all(shown.select(f"role={node.role} >> nth={place}") == [each] for place, each in enumerate(selected))
        around = (number, *page.ancestors(number))
        assert number in selected or any("aria-hidden" in page.attributes[each] for each in around)
