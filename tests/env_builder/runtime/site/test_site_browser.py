"""The browser without a window: what it asks a site for, what it refuses, and that its state is a value."""

from __future__ import annotations

import re
from typing import Any
from urllib.parse import parse_qsl

import pytest
from hypothesis import given
from hypothesis import strategies as st

from env_builder.runtime.records import Result
from env_builder.runtime.site.addresses import resolve, urlencoded
from env_builder.runtime.site.browser import SiteBrowser
from env_builder.runtime.site.browser_tools import TOOLS, WINDOWLESS, descriptors
from env_builder.runtime.site.finding import may_be_slow
from env_builder.runtime.site.port import Delivery, PortAnswer, PortRequest
from env_builder.runtime.site.snapshot import RefDraw
from env_builder.site.parsing import parse
from tests.made_site import ORIGIN, MadePort


class Person:
    """Somebody at the made-up site's first page."""

    def __init__(self, **options: Any) -> None:
        self.port = MadePort()
        self.browser = SiteBrowser(self.port, ORIGIN, **options)
        self.do("navigate", url="/")

    def do(self, tool: str, **arguments: Any) -> Result:
        return self.browser.call(f"browser_{tool}", arguments)

    def click(self, role: str, name: str) -> Result:
        return self.do("click", target=f'role={role}[name="{name}"]')

    def type(self, role: str, name: str, text: str, **options: Any) -> Result:
        return self.do("type", target=f'role={role}[name="{name}"]', text=text, **options)

    def ref(self, text: str) -> str:
        match = re.search(rf"{text}.*\[ref=(e\d+)\]", "\n".join(self.browser.lines()))
        assert match is not None
        return match[1]

    @property
    def last(self) -> PortRequest:
        return self.port.journal[-1]


def page_port(*pages: PortAnswer) -> Any:
    """Return a port that gives these answers in turn, the last one for good."""

    class Port:
        def __init__(self) -> None:
            self.journal: list[PortRequest] = []

        def ask(self, request: PortRequest) -> PortAnswer:
            self.journal.append(request)
            return pages[min(len(self.journal), len(pages)) - 1]

    return Port()


def shown(html: str) -> PortAnswer:
    return PortAnswer(200, "recorded", page=parse(html))


def test_an_answer_holds_address_title_and_snapshot() -> None:
    content = Person().do("snapshot").content
    assert content.splitlines()[:5] == [
        "### Page",
        "- Page URL: http://site.test/",
        "- Page Title: A form",
        "### Snapshot",
        "```yaml",
    ]
    assert re.search(r'- textbox "Name" \[ref=e\d+\]', content)
    assert 'option "First option" [selected]' in content
    assert "Inside" not in content


def test_a_posted_form_sends_what_a_browser_sends_in_its_order() -> None:
    person = Person()
    person.type("textbox", "Name", "a long name")
    person.click("radio", "A")
    person.click("checkbox", "One")
    person.click("checkbox", "Two")
    person.do("select_option", target="role=listbox", values=["II", "3"])
    assert not person.click("button", "Save").is_error
    assert person.port.asked == ["GET /", "POST /save?x=1", "GET /"]
    assert person.port.journal[1].form == (
        ("t", "1"),
        ("_charset_", "UTF-8"),
        ("n", "a long n"),
        ("mail", ""),
        ("count", "1"),
        ("site", ""),
        ("code", ""),
        ("kind", "a"),
        ("inlegend", "yes"),
        ("c1", "on"),
        ("s", "First option"),
        ("m", "2"),
        ("m", "3"),
        ("ta", "line 1\r\nline 2"),
        ("r", "50"),
        ("d", ""),
        ("col", "#000000"),
        ("file", ""),
        ("ro", "ro"),
        ("go", "save"),
        ("outside", "out"),
    )
    assert person.browser.page is not None and person.browser.page.address == "http://site.test/#frag"


@pytest.mark.parametrize(
    ("role", "name", "text", "message"),
    [
        ("textbox", "Name", "", "Please fill out this field."),
        ("textbox", "Name", "ab", "3 characters or more (you are currently using 2 characters)"),
        ("textbox", "Mail", "no", "'no' is missing an '@'"),
        ("spinbutton", "Count", "4", "The two nearest valid values are 3 and 5."),
        ("spinbutton", "Count", "12", "less than or equal to 10"),
        ("textbox", "Site", "x", "Please enter a URL."),
        ("textbox", "Code", "a1", "requested format. two letters"),
    ],
)
def test_a_form_that_a_browser_refuses_is_not_sent(role: str, name: str, text: str, message: str) -> None:
    person = Person()
    person.type("textbox", "Name", "abc")
    person.type(role, name, text)
    answer = person.click("button", "Save")
    assert not answer.is_error
    assert f'The form was not sent. {role} "{name}"' in answer.content and message in answer.content
    assert f'{role} "{name}" [active]' in answer.content
    assert person.port.asked == ["GET /"]


def test_a_button_may_send_elsewhere_and_unchecked() -> None:
    person = Person()
    person.click("button", "Other")
    assert person.last.url.startswith("/other?t=1&_charset_=UTF-8&n=&") and person.last.url.endswith("&go=other&outside=out")


def test_enter_sends_a_form_with_one_field_or_a_button() -> None:
    person = Person()
    person.type("textbox", "Query", "a b+c~é", submit=True)
    assert person.last.url == "/search?q=a+b%2Bc%7E%C3%A9&h=%C3%A4+%7E*%27%26"
    person = Person()
    person.type("textbox", "First", "1", submit=True)
    assert person.port.asked == ["GET /"], "two fields and no button: Enter sends nothing"
    person.type("textbox", "Name", "abc", submit=True)
    assert ("go", "save") in (person.port.journal[1].form or ())


@pytest.mark.parametrize(
    ("link", "asked"),
    [
        ("Odd", ["GET /page?a=b%20c&d=%27%C3%A9%27"]),
        ("Moved", ["GET /moved", "GET /dest?z=1"]),
        ("Here", []),
        ("Top", []),
        ("Script", []),
    ],
)
def test_links_lead_where_a_browser_goes(link: str, asked: list[str]) -> None:
    person = Person()
    assert not person.click("link", link).is_error
    assert person.port.asked[1:] == asked


def test_redirects_turn_a_post_into_a_get_or_keep_it() -> None:
    person = Person()
    person.click("button", "Kept")
    assert person.port.journal[1:] == [
        PortRequest("POST", "/kept", (("v", "1"),)),
        PortRequest("POST", "/dest307", (("v", "1"),)),
    ]
    person = Person()
    person.click("button", "Turned")
    assert person.port.journal[1:] == [PortRequest("POST", "/turned", (("w", "2"),)), PortRequest("GET", "/dest303", None)]


def test_a_loop_of_redirects_and_another_site_are_errors_and_the_page_stays() -> None:
    person = Person()
    before = person.browser.snapshot()
    for answer in (
        person.click("link", "Loop"),
        person.click("link", "Off"),
        person.do("navigate", url="/away"),
        person.do("navigate", url="https://other.test/"),
        person.do("navigate", url="ftp://site.test/"),
    ):
        assert answer.is_error and "\n" not in answer.content
        assert person.browser.snapshot() == before


def test_back_asks_again_and_puts_back_what_was_typed() -> None:
    person = Person()
    person.type("textbox", "Query", "words")
    person.do("select_option", target="role=listbox", values=["II"])
    person.click("link", "Odd")
    content = person.do("navigate_back").content
    assert person.port.asked == ["GET /", "GET /page?a=b%20c&d=%27%C3%A9%27", "GET /"]
    assert re.search(r'textbox "Query" \[ref=e\d+\]: words', content)
    assert re.search(r'option "II" \[selected\]', content)
    assert person.do("navigate_back").is_error


def test_back_over_a_fragment_asks_nothing_and_back_to_a_post_is_refused() -> None:
    person = Person()
    person.click("link", "Here")
    assert "URL: http://site.test/\n" in person.do("navigate_back").content
    assert person.port.asked == ["GET /"]
    person.click("button", "Kept")
    person.click("link", "Back")
    assert person.do("navigate_back").is_error


def test_a_file_goes_to_whoever_takes_it_and_the_page_stays() -> None:
    taken: list[tuple[Delivery, str]] = []

    def deliver(file: Delivery, url: str) -> str:
        taken.append((file, url))
        return f"Downloads/{file.name}"

    answer = Person(deliver=deliver).click("link", "File")
    assert 'Downloaded file file.txt to "Downloads/file.txt"' in answer.content and "URL: http://site.test/\n" in answer.content
    assert taken == [(Delivery("file.txt", "text/plain", b"text"), "http://site.test/file.txt")]


def test_files_are_chosen_by_a_click_and_sent_by_name() -> None:
    person = Person(find_file=lambda path: path != "absent.txt")
    assert person.do("file_upload", paths=["x.pdf"]).is_error
    person.click("button", "Up")
    assert person.click("link", "Odd").is_error, "the chooser is open"
    assert person.do("file_upload", paths=["absent.txt"]).content == "no file 'absent.txt'"
    assert not person.do("file_upload", paths=["a/x.pdf", "y.txt"]).is_error
    person.click("button", "Send")
    assert person.last.form == (("up", "x.pdf"), ("up", "y.txt"))


def test_a_question_waits_for_an_answer() -> None:
    person = Person()
    answer = person.click("button", "Ask")
    assert '"confirm" dialog with message "Really?"' in answer.content
    assert person.do("navigate", url="/").is_error
    person.do("handle_dialog", accept=False)
    assert person.port.asked == ["GET /"]
    person.click("button", "Ask")
    person.do("handle_dialog", accept=True)
    assert person.last == PortRequest("GET", "/sub?", None)
    person.do("navigate", url="/")
    person.click("link", "Asking")
    person.do("handle_dialog", accept=True)
    assert person.last.url == "/plain"


def test_tabs() -> None:
    person = Person()
    assert "- 1: [Other](http://site.test/new)" in person.click("link", "New").content
    assert "- Page Title: Other" in person.do("tabs", action="select", index=1).content
    person.do("tabs", action="new", url="/third")
    assert "- 2: (current) [Other](http://site.test/third)" in person.do("tabs", action="list").content
    person.do("tabs", action="close", index=0)
    assert "- Page URL: http://site.test/third" in person.do("tabs", action="close", index=0).content
    assert person.do("tabs", action="select", index=5).is_error
    assert "about:blank" in person.do("tabs", action="close").content


def test_a_ref_of_an_earlier_page_is_said_to_be_one() -> None:
    person = Person()
    ref = person.ref('link "Odd"')
    person.do("click", ref=ref)
    answer = person.do("click", target=ref)
    assert answer.is_error and "shown before" in answer.content and "snapshot" in answer.content
    assert person.do("click", target="e999999").is_error
    assert person.do("click", target="role=link").content.startswith("### Page")
    assert "names no elements" in person.do("click", target="role=tree").content


def test_refs_are_drawn_by_the_seed_and_not_in_the_pages_order() -> None:
    drawn = [re.findall(r"\[ref=e(\d+)\]", "\n".join(Person(seed=seed).browser.lines())) for seed in (1, 1, 2)]
    assert drawn[0] == drawn[1] != drawn[2]
    assert sorted(drawn[0], key=int) != drawn[0] and len(set(drawn[0])) == len(drawn[0])


def test_keys_edit_the_focused_field() -> None:
    person = Person()
    person.type("textbox", "Query", "ab")
    for key in ("Backspace", "c", "Shift+D", "Control+a", "Enter"):
        person.do("press_key", key=key)
    assert person.last.url.startswith("/search?q=acD&")
    person = Person()
    person.click("checkbox", "One")
    assert '"One" [active]' in person.do("press_key", key="Space").content
    assert '"Two" [checked] [active]' in person.do("press_key", key="Tab").content


def test_a_form_is_filled_whole_or_not_at_all() -> None:
    person = Person()
    before = person.browser.snapshot()
    fields = [
        {"target": 'role=textbox[name="Query"]', "name": "q", "type": "textbox", "value": "x"},
        {"target": 'role=textbox[name="RO"]', "name": "ro", "type": "textbox", "value": "x"},
    ]
    assert person.do("fill_form", fields=fields).content == 'textbox "RO" is read-only'
    assert person.browser.snapshot() == before
    assert not person.do("fill_form", fields=fields[:1]).is_error


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("type", {"target": 'role=spinbutton[name="Count"]', "text": "x"}),
        ("type", {"target": "role=combobox", "text": "x"}),
        ("type", {"target": 'role=textbox[name="Day"]', "text": "1/2/2026"}),
        ("click", {"target": 'role=option[name="I"]'}),
        ("select_option", {"target": "role=combobox", "values": ["Z"]}),
        ("select_option", {"target": "role=combobox", "values": ["?"]}),
        ("type", {"target": 'role=textbox[name="Never"]', "text": "x"}),
        ("wait_for", {}),
        ("find", {}),
        ("find", {"regex": "("}),
        ("find", {"regex": "(a+)+$"}),
        ("find", {"text": "a", "regex": "a"}),
        ("handle_dialog", {"accept": True}),
        ("evaluate", {}),
    ],
)
def test_what_cannot_be_done_is_one_sentence(tool: str, arguments: dict[str, Any]) -> None:
    person = Person()
    before = person.browser.snapshot()
    answer = person.do(tool, **arguments)
    if (tool, arguments.get("target")) != ("click", 'role=option[name="I"]'):  # an option of an open list can be clicked
        assert answer.is_error and "\n" not in answer.content
        assert person.browser.snapshot() == before


@pytest.mark.parametrize(
    ("pattern", "slow"),
    [
        ("(a+)+$", True),
        ("((a+)b?)*", True),
        ("(a|aa)+$", True),
        (r"(\w+\s?)*", True),
        (r"(a)\1", True),
        ("a" * 301, True),
        ("[a-z]+ [0-9]{2,4}", False),
        ("(ab)+c?", False),
        (r"[(a+)]+\)+", False),
        ("(a?)b+", False),
        ("link|button", False),
        ("", False),
    ],
)
def test_expressions_that_could_take_forever_are_known(pattern: str, slow: bool) -> None:
    assert may_be_slow(pattern) == slow


def test_enter_without_a_button_sends_from_a_text_alone() -> None:
    html = "<form action=/sent><input name=t aria-label=T><input type=date name=d><input type=checkbox aria-label=C></form>"
    port = page_port(shown(html))
    browser = SiteBrowser(port, ORIGIN)
    browser.call("browser_navigate", {"url": "/"})
    browser.call("browser_click", {"target": "role=checkbox"})
    browser.call("browser_press_key", {"key": "Enter"})
    assert len(port.journal) == 1
    browser.call("browser_type", {"target": 'role=textbox[name="T"]', "text": "x", "submit": True})
    assert port.journal[1] == PortRequest("GET", "/sent?t=x&d=", None)


def test_find_shows_lines_around_under_what_they_are_part_of() -> None:
    person = Person()
    content = person.do("find", text="query").content
    assert content.startswith("### Result\nFound 1 match for 'query':") and 'textbox "Query"' in content
    assert "No matches" in person.do("find", text="nowhere at all").content
    assert "showing first 1" in person.do("find", regex="/BUTTON/i", maxResults=1).content


def test_incremental_answers_hold_what_changed() -> None:
    person = Person(snapshots="incremental")
    content = person.type("textbox", "Query", "new words").content
    changed = [line for line in content.splitlines() if line.startswith("- <changed>")]
    assert len(changed) == 1 and changed[0].endswith(": new words")
    assert "<changed>" not in person.click("link", "Odd").content
    assert "```" not in Person(snapshots="none").type("textbox", "Query", "x").content


def test_details_open_and_what_they_hold_can_be_clicked() -> None:
    person = Person()
    summary = person.ref("More")
    assert "Inside" in person.do("click", target=summary).content
    person.click("link", "Inside")
    assert person.last.url == "/inside"


def test_a_menu_that_the_page_marks_as_toggled_opens() -> None:
    html = """<button aria-expanded=false aria-controls=menu>Account</button><ul id=menu hidden><li><a href=/me>Me</a></ul>
              <a href="#p2" role=tab>Second</a><div role=tabpanel id=p1>one</div><div role=tabpanel id=p2 hidden>two</div>"""
    port = page_port(shown(html))
    browser = SiteBrowser(port, ORIGIN)
    assert '"Me"' not in browser.call("browser_navigate", {"url": "/"}).content
    content = browser.call("browser_click", {"target": "role=button"}).content
    assert '"Me"' in content and '"Account" [expanded]' in content
    content = browser.call("browser_click", {"target": "role=tab"}).content
    assert "two" in content and "one" not in content
    assert '"Me"' in content and len(port.journal) == 1


def test_one_menu_is_open_at_a_time_though_all_have_one_id() -> None:
    menu = "<button id=same aria-haspopup=true aria-expanded=false>{0}</button><ul aria-labelledby=same hidden><li>of {0}</ul>"
    browser = SiteBrowser(page_port(shown(menu.format("A") + menu.format("B"))), ORIGIN)
    browser.call("browser_navigate", {"url": "/"})
    open_menus = []
    for name in "ABB":
        content = browser.call("browser_click", {"target": f'role=button[name="{name}"]'}).content
        open_menus.append([menu for menu in "AB" if f"of {menu}" in content])
    assert open_menus == [["A"], ["B"], []]


def test_a_page_that_leads_on_after_some_seconds_does_so_when_they_have_passed() -> None:
    waited: list[float] = []
    slow = PortAnswer(200, "recorded", page=parse("<p>Loading"), headers=(("Refresh", "3"),))
    browser = SiteBrowser(page_port(slow, shown("<p>Ready")), ORIGIN, wait=waited.append)
    assert "Loading" in browser.call("browser_navigate", {"url": "/slow"}).content
    assert "Loading" in browser.call("browser_wait_for", {"time": 1}).content
    assert "Ready" in browser.call("browser_wait_for", {"text": "Ready"}).content
    assert waited == [1, 2]
    at_once = page_port(shown('<meta http-equiv=refresh content="0; url=/next">'), shown("<p>Next"))
    assert "URL: http://site.test/next" in SiteBrowser(at_once, ORIGIN).call("browser_navigate", {"url": "/"}).content


def test_a_fork_goes_its_own_way_and_a_snapshot_brings_back_what_was() -> None:
    person = Person()
    person.type("textbox", "Query", "one")
    before, lines = person.browser.snapshot(), person.browser.lines()
    port = MadePort()
    fork = person.browser.fork(port)
    fork.call("browser_type", {"target": 'role=textbox[name="Query"]', "text": "two", "submit": True})
    assert port.asked == ["GET /search?q=two&h=%C3%A4+%7E*%27%26"] and person.port.asked == ["GET /"]
    assert person.browser.lines() == lines
    person.click("link", "Moved")
    person.browser.restore(before)
    assert person.browser.lines() == lines


def test_descriptors_are_those_of_the_answered_tools() -> None:
    assert [each["name"] for each in descriptors()] == sorted(WINDOWLESS)
    assert {each["name"] for each in descriptors(screenshots=True)} == TOOLS.keys()
    assert not any(word in name for name in TOOLS for word in ("evaluate", "run_code", "network"))


VALUES = st.recursive(
    st.none() | st.booleans() | st.floats() | st.text(max_size=12) | st.sampled_from(["e12", "role=link"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3),
)
NAMES = st.sampled_from(sorted({name for _, _, schema, _ in TOOLS.values() for name in schema["properties"]} | {"ref", "?"}))


@given(st.lists(st.tuples(st.sampled_from(WINDOWLESS), st.dictionaries(NAMES, VALUES, max_size=3)), max_size=6))
def test_garbage_is_one_sentence_and_changes_nothing(calls: list[tuple[str, dict[str, Any]]]) -> None:
    person = Person()
    for tool, arguments in calls:
        before = person.browser.snapshot()
        answer = person.browser.call(tool, arguments)
        if answer.is_error:
            assert "\n" not in answer.content.replace("\\n", "") or any("\n" in str(each) for each in arguments.values())
            assert person.browser.snapshot() == before


@given(st.integers(1, 500), st.integers(0, 2**96), st.integers(1, 10_000))
def test_every_element_has_a_ref_of_its_own(n_elements: int, random: int, start: int) -> None:
    refs = RefDraw.draw(start, n_elements, random)
    names = [refs.ref(number) for number in range(n_elements)]
    assert [refs.number(name) for name in names] == list(range(n_elements))
    assert all(start <= int(name[1:]) < start + refs.size for name in names)


@given(
    st.lists(st.tuples(st.text(st.characters(codec="utf-8"), max_size=6), st.text(st.characters(codec="utf-8"), max_size=6)))
)
def test_what_a_form_writes_into_an_address_can_be_read_again(pairs: list[tuple[str, str]]) -> None:
    assert parse_qsl(urlencoded(pairs), keep_blank_values=True) == [(name, value) for name, value in pairs]


@given(st.text(max_size=20))
def test_any_reference_leads_to_an_address_or_nowhere(reference: str) -> None:
    address = resolve("http://site.test/a/b?c=d#e", reference)
    if address is not None:
        assert (address.target.startswith("/") and address.text.isascii()) or not address.origin.isascii()
        assert resolve(address.text, "") == address._replace(fragment=None)
